//! The folder of one submission, `GRADES/slurm/N`: a file for each task, the script that starts one, their logs, and whether it has ended.
//!
//! When it has, none of its tasks begins or leaves a result any more, whatever became of the job.

use crate::batch::store::{Store, write_whole};
use crate::batch::work::Work;
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

    fn number(&self) -> Option<u64> {
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

    /// Whether it has ended.
    pub(super) fn ended(&self) -> bool {
        self.folder.join("ended").exists()
    }

    /// Ends it.
    pub(super) fn end(&self) -> Result<(), String> {
        write_whole(&self.folder.join("ended"), b"")
    }
}

/// A path as a word of the shell.
fn quoted(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8: no script can name it", path.display()))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}
