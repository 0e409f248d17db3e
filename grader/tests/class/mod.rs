//! A class for tests: a folder of hand-ins, and batches over it.

// Each test program uses a part.
#![allow(dead_code)]

use grader::batch::store::{Outcome, Record};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;
use tempfile::TempDir;

/// A class: hand-ins and grades.
pub struct Class {
    /// Where all of it lies.
    pub folder: TempDir,
}

/// How a command ended: status, what it printed, what it said.
pub type Said = (Option<i32>, String, String);

impl Class {
    /// Hand-ins of step 1, by their names.
    pub fn new(kernels: &[(&str, &str)]) -> Class {
        let class = Class { folder: tempfile::tempdir().expect("a scratch folder") };
        for (name, text) in kernels {
            class.write(name, text);
        }
        class
    }

    /// Writes a hand-in's kernel of step 1.
    pub fn write(&self, name: &str, kernel: &str) {
        let folder = self.hand_ins().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("step01.rs"), kernel).expect("written");
    }

    /// Where hand-ins lie.
    pub fn hand_ins(&self) -> PathBuf {
        self.folder.path().join("hand-ins")
    }

    /// Where the grades of this name lie.
    pub fn grades(&self, out: &str) -> PathBuf {
        self.folder.path().join(out)
    }

    /// A command of the grader.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
        command.args(arguments).env("NO_COLOR", "1").env_remove("WORKBOOK_DEVICE");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A batch.
    pub fn batch(&self, out: &str, options: &[&str]) -> Command {
        let mut command = self.command(&["batch"]);
        command.arg(self.hand_ins()).arg("--out").arg(self.grades(out)).args(options);
        // Where nothing can be locked in, the grader refuses without this; `attacks.rs` says so.
        if !sandboxed() {
            command.args(["--", "--trust"]);
        }
        command
    }

    /// All results, by the names of their hand-ins.
    pub fn records(&self, out: &str) -> BTreeMap<String, Record> {
        self.records_but(out, Path::new(""))
    }

    /// The same without the one of this file.
    pub fn records_but(&self, out: &str, but: &Path) -> BTreeMap<String, Record> {
        let read = |path: PathBuf| -> Record {
            serde_json::from_slice(&fs::read(&path).expect("read")).unwrap_or_else(|error| panic!("{path:?}: {error}"))
        };
        let is_result = |path: &PathBuf| path != but && path.extension().is_some_and(|end| end == "json");
        let records = files(&self.grades(out).join("results")).into_keys().filter(is_result).map(read);
        records.map(|record| (record.name.clone(), record)).collect()
    }

    /// The table of grades.
    pub fn csv(&self, out: &str) -> String {
        fs::read_to_string(self.grades(out).join("grades.csv")).expect("grades.csv")
    }
}

/// Runs a command to its end.
pub fn said(mut command: Command) -> Said {
    let output = command.output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Whole files of a folder, and when they were written.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let whole = entries.flatten().filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    whole.map(|entry| (entry.path(), entry.metadata().and_then(|about| about.modified()).expect("a time"))).collect()
}

/// Without what no two runs have in common.
pub fn timeless(mut record: Record) -> Record {
    record.seconds = 0.0;
    if let Outcome::Graded(report) = &mut record.outcome {
        report.steps.iter_mut().for_each(|step| step.seconds = 0.0);
    }
    record
}

/// Whether hand-ins can be locked in on this machine.
pub fn sandboxed() -> bool {
    static SANDBOXED: OnceLock<bool> = OnceLock::new();
    *SANDBOXED.get_or_init(|| {
        let asked = Command::new(env!("CARGO_BIN_EXE_grader")).arg("sandbox").output();
        asked.expect("the grader runs").status.success()
    })
}
