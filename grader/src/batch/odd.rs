//! What lies among hand-ins and is none: each has its row in the table, for somebody may have handed it in, with what it is and what to do.

use crate::handin::{KINDS, end_of, is_other_archive};
use std::fs::Metadata;

/// Why an entry of this name is no hand-in, and the way out.
pub(super) fn why(name: &str, about: &Metadata) -> String {
    let end = end_of(name);
    if about.is_symlink() {
        return format!(
            "{name} is a symbolic link, and links are not followed\n  \
             try: Put what it leads to in its place: the folder or the archive itself."
        );
    }
    if !about.is_file() {
        return format!("{name} is neither a folder nor a plain file; a hand-in is {KINDS}\n  try: Remove it.");
    }
    if is_other_archive(name) {
        return format!(
            "{name} is a .{end} file; a hand-in is {KINDS}\n  \
             try: Unpack it into a folder of that name, or ask for what `cargo workbook pack` writes."
        );
    }
    if end == "rs" {
        return format!(
            "{name} is one Rust file; a hand-in is {KINDS}\n  \
             try: Put it into a folder with the student's name, as `step01.rs`, with the number of its step."
        );
    }
    format!(
        "{name} is a file of another kind; a hand-in is {KINDS}\n  \
         try: Ask for what `cargo workbook pack` writes. If it is nobody's hand-in, move it out of this folder."
    )
}
