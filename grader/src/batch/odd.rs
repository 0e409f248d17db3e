//! What lies among hand-ins and is none: each has its row in the table, for somebody may have handed it in, with what it is and what to do.

use crate::handin::KINDS;
use std::fs::Metadata;

/// How the names of archives end that are not read.
const OTHER_ARCHIVES: [&str; 9] = ["zip", "7z", "rar", "gz", "bz2", "xz", "zst", "tbz", "txz"];

/// Why an entry of this name is no hand-in, and the way out.
pub(super) fn why(name: &str, about: &Metadata) -> String {
    let end = name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
    if about.is_symlink() {
        return format!(
            "{name} is a symbolic link, and links are not followed\n  \
             try: Put what it leads to in its place: the folder or the archive itself."
        );
    }
    if !about.is_file() {
        return format!("{name} is neither a folder nor a plain file; a hand-in is {KINDS}\n  try: Remove it.");
    }
    if OTHER_ARCHIVES.contains(&end.as_str()) {
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
