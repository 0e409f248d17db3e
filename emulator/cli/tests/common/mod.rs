//! Runs the command as a user does.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

pub fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub struct Said {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// Runs the command in a folder.
pub fn emulate(folder: &Path, arguments: &[&str]) -> Said {
    let run = Command::new(env!("CARGO_BIN_EXE_emulate"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Said { status: run.status.code().expect("an exit status"), out: text(run.stdout), err: text(run.stderr) }
}

/// Runs the command on a kernel and a launch file of their own folder.
pub fn emulate_texts(kernel: &str, launch: &str, arguments: &[&str]) -> Said {
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::fs::write(folder.path().join("k.ptx"), kernel).expect("written");
    std::fs::write(folder.path().join("k.json"), launch).expect("written");
    emulate(folder.path(), &[&["k.ptx", "--launch", "k.json"], arguments].concat())
}

/// What the clock says changes with the table of costs; everything else is here to stay.
pub fn without_cycles(text: &str) -> String {
    let masked = text.split_inclusive('\n').map(|line| match line.split_once(" cycles") {
        Some((before, after)) => format!("{}N cycles{after}", before.trim_end_matches(|c: char| c.is_ascii_digit())),
        None => line.to_string(),
    });
    masked.collect()
}
