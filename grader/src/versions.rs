//! What graded a hand-in: without it, nobody can grade it again and expect the same.

use harness::ptxas;
use harness::workbook::Workspace;
use harness::workbook::pack::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What of a checkout is compiled with each hand-in, beside the `lib.rs` of its step.
const SHARED: [&str; 6] =
    ["Cargo.toml", "Cargo.lock", "ptx/Cargo.toml", "ptx/src", "harness/emit/Cargo.toml", "harness/emit/src"];

/// Versions of what takes part in a grade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The workbook: its number, and the commit of the checkout if there is one.
    pub workbook: String,
    /// The emulator. It has its number from the workbook.
    pub emulator: String,
    /// The grader as it was built, with the judge, the emulator and the reference kernels in it: SHA-256 of the program.
    pub grader: String,
    /// What is compiled with a hand-in: SHA-256 of these sources of the checkout. `None`: they could not be read, or it was not asked.
    #[serde(default)]
    pub sources: Option<String>,
    /// The program of `--grade-with`, which a batch started in place of the grader: its SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade_with: Option<String>,
    /// The compiler of the hand-ins.
    pub rustc: Option<String>,
    /// The assembler of the part `resources`.
    pub ptxas: Option<String>,
}

impl Versions {
    /// Those of this program and of the tools that it will call. `root` is the checkout.
    pub fn here(root: &Path) -> Versions {
        let number = env!("CARGO_PKG_VERSION");
        let commit =
            first_line(Command::new("git").current_dir(root).args(["describe", "--always", "--dirty=, changed"]));
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let assembler = ptxas::find().ok().and_then(|path| last_line(Command::new(path).arg("--version")));
        Versions {
            workbook: commit.map_or(number.to_string(), |commit| format!("{number} ({commit})")),
            emulator: number.to_string(),
            grader: own_hash().unwrap_or_else(|error| format!("unknown: {error}")),
            sources: sources(root).ok(),
            grade_with: None,
            rustc: first_line(Command::new(rustc).arg("--version").current_dir(root)),
            ptxas: assembler,
        }
    }

    /// What decides on a grade, by name. The number of a workbook and of its emulator do not: the program's hash says more.
    pub fn deciding(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("grader", Some(&self.grader)),
            ("the sources compiled with a hand-in", self.sources.as_deref()),
            ("the program of --grade-with", self.grade_with.as_deref()),
            ("rustc", self.rustc.as_deref()),
            ("ptxas", self.ptxas.as_deref()),
        ]
    }

    /// What is another there than here: a sentence on each.
    pub fn others(&self, now: &Versions) -> Vec<String> {
        let workbook = ("workbook", Some(self.workbook.as_str()), Some(now.workbook.as_str()));
        let deciding =
            self.deciding().into_iter().zip(now.deciding()).map(|((name, then), (_, now))| (name, then, now));
        let other = std::iter::once(workbook).chain(deciding).filter(|(_, then, now)| then != now);
        let known = |version: Option<&str>| version.unwrap_or("none").to_string();
        other.map(|(what, then, now)| format!("{what} was {}, and is {} now", known(then), known(now))).collect()
    }
}

/// SHA-256 of the running program.
fn own_hash() -> io::Result<String> {
    file_hash(&std::env::current_exe()?)
}

/// SHA-256 of a file.
pub(crate) fn file_hash(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut hasher))?;
    Ok(hex(&hasher.finalize()))
}

/// SHA-256 of the sources of a checkout that are compiled with a hand-in: each file's name and hash.
fn sources(root: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    for place in SHARED {
        below(&root.join(place), &mut files)?;
    }
    for step in (Workspace { root: root.to_path_buf() }).steps() {
        files.push(root.join(Workspace::kernel(step)).with_file_name("lib.rs"));
    }
    files.sort();
    let mut hasher = Sha256::new();
    for path in files {
        let name = path.strip_prefix(root).unwrap_or(&path);
        hasher.update(format!("{} {}\n", file_hash(&path)?, name.display()));
    }
    Ok(hex(&hasher.finalize()))
}

/// The files below a folder, or this file.
fn below(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        below(&entry?.path(), files)?;
    }
    Ok(())
}

/// What is written goes into a hash.
pub(crate) struct HashWriter<'a>(pub(crate) &'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn first_line(command: &mut Command) -> Option<String> {
    said(command)?.lines().next().map(str::to_string)
}

fn last_line(command: &mut Command) -> Option<String> {
    said(command)?.lines().last().map(str::to_string)
}
