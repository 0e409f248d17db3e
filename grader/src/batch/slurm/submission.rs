//! The folder of one submission, `GRADES/slurm/N`: a file for each task, the script that starts one, their logs, the results that they leave,
//! whether it has ended, and whether its results were taken.
//!
//! When it has ended, none of its tasks begins or leaves a result any more, whatever became of the job. When they were taken, nobody looks there
//! again: what a task leaves that did not see the end is of no effect.

use crate::batch::store::{Record, SCHEMA, Store, write_whole};
use crate::batch::work::Work;
use harness::workbook::whole::write_new;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A submission.
pub(super) struct Submission {
    /// Its folder.
    pub(super) folder: PathBuf,
}

impl Submission {
    /// A new one, with a task for each of these.
    pub(super) fn new(store: &Store, work: &[Work]) -> Result<Submission, String> {
        let all = store.folder.join("slurm");
        fs::create_dir_all(&all).map_err(|error| format!("cannot make {}: {error}", all.display()))?;
        let mut number = Submission::all(store)?.iter().filter_map(Submission::number).max().unwrap_or(0) + 1;
        let submission = loop {
            let folder = all.join(number.to_string());
            match fs::create_dir(&folder) {
                Ok(()) => break Submission { folder },
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(format!("cannot make {}: {error}", folder.display())),
            }
        };
        let left = submission.left();
        fs::create_dir(&left).map_err(|error| format!("cannot make {}: {error}", left.display()))?;
        for (index, one) in work.iter().enumerate() {
            let text = serde_json::to_vec_pretty(one).map_err(|error| format!("cannot write JSON: {error}"))?;
            write_whole(&submission.path(index), &text)?;
        }
        let program = std::env::current_exe().map_err(|error| format!("cannot find this program itself: {error}"))?;
        let (program, folder) = (quoted(&program)?, quoted(&submission.folder)?);
        let text = format!("#!/bin/sh\nexec {program} work {folder} \"$SLURM_ARRAY_TASK_ID\"\n");
        write_whole(&submission.script(), text.as_bytes())?;
        Ok(submission)
    }

    /// Those of a folder of grades.
    pub(super) fn all(store: &Store) -> Result<Vec<Submission>, String> {
        let all = store.folder.join("slurm");
        let failed = |error| format!("cannot read {}: {error}", all.display());
        let entries = match fs::read_dir(&all) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut submissions = Vec::new();
        for entry in entries {
            submissions.push(Submission { folder: entry.map_err(failed)?.path() });
        }
        submissions.retain(|submission| submission.number().is_some());
        Ok(submissions)
    }

    pub(super) fn number(&self) -> Option<u64> {
        self.folder.file_name()?.to_str()?.parse().ok()
    }

    /// What starts a task.
    pub(super) fn script(&self) -> PathBuf {
        self.folder.join("task.sh")
    }

    /// The folder of grades that it is for.
    pub(super) fn grades(&self) -> &Path {
        let all = self.folder.parent().unwrap_or(&self.folder);
        all.parent().unwrap_or(all)
    }

    fn path(&self, index: usize) -> PathBuf {
        self.folder.join(format!("{index}.json"))
    }

    /// What a task is to do.
    pub(super) fn task(&self, index: usize) -> Result<Work, String> {
        let path = self.path(index);
        let text = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        serde_json::from_slice(&text).map_err(|error| format!("{} is no task: {error}", path.display()))
    }

    /// Where tasks leave their results.
    fn left(&self) -> PathBuf {
        self.folder.join("results")
    }

    fn left_by(&self, index: usize) -> PathBuf {
        self.left().join(format!("{index}.json"))
    }

    /// The tasks that have left a result. The folder is read: a file of another machine may otherwise not be seen for a minute.
    pub(super) fn results(&self) -> Result<BTreeSet<usize>, String> {
        let folder = self.left();
        let failed = |error| format!("cannot read {}: {error}", folder.display());
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut there = BTreeSet::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            there.extend(name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<usize>().ok()));
        }
        Ok(there)
    }

    /// What a task has left.
    ///
    /// # Errors
    /// When it is there and cannot be read: all that takes part is one program, so it was damaged, or is another's.
    pub(super) fn result(&self, index: usize) -> Result<Option<Record>, String> {
        let path = self.left_by(index);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        match serde_json::from_slice::<Record>(&text) {
            Ok(record) if record.schema == SCHEMA => Ok(Some(record)),
            Ok(Record { schema, .. }) => {
                Err(not_a_result(&path, &format!("it has schema {schema}; known is {SCHEMA}")))
            }
            Err(error) => Err(not_a_result(&path, &error.to_string())),
        }
    }

    /// Leaves a task's result. If another run of the task was faster, its result stays.
    pub(super) fn leave(&self, index: usize, record: &Record) -> Result<(), String> {
        let path = self.left_by(index);
        let text = serde_json::to_vec_pretty(record).map_err(|error| format!("cannot write JSON: {error}"))?;
        match write_new(&path, &text) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(format!("cannot write {}: {error}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Whether its results were taken.
    pub(super) fn is_gathered(&self) -> bool {
        self.folder.join("gathered").exists()
    }

    /// They were.
    pub(super) fn gathered(&self) -> Result<(), String> {
        write_whole(&self.folder.join("gathered"), b"")
    }

    /// Whether it has ended.
    pub(super) fn ended(&self) -> bool {
        self.folder.join("ended").exists()
    }

    /// Ends it.
    pub(super) fn end(&self) -> Result<(), String> {
        write_whole(&self.folder.join("ended"), b"")
    }
}

fn not_a_result(path: &Path, found: &str) -> String {
    format!(
        "{} is no result of a task that this grader can read: {found}\n  \
         try: Give the batch with the grader that wrote it; or move the file away, and its hand-in is graded again.",
        path.display()
    )
}

/// A path as a word of the shell.
fn quoted(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8: no script can name it", path.display()))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}
