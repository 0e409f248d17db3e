//! What graded a hand-in: without it, nobody can grade it again and expect the same.

use crate::rubric::hex;
use harness::ptxas;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;

/// Versions of what takes part in a grade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The workbook: its number, and the commit of the checkout if there is one.
    pub workbook: String,
    /// The emulator. It has its number from the workbook.
    pub emulator: String,
    /// The grader as it was built, with the judge, the emulator and the reference kernels in it: SHA-256 of the program.
    pub grader: String,
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
            rustc: first_line(Command::new(rustc).arg("--version").current_dir(root)),
            ptxas: assembler,
        }
    }
}

/// SHA-256 of the running program.
fn own_hash() -> io::Result<String> {
    let path = std::env::current_exe()?;
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut hasher))?;
    Ok(hex(&hasher.finalize()))
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
