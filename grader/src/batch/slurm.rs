//! A batch on the nodes of a cluster: a job array of Slurm, a task for each hand-in.
//!
//! All nodes see the folder of grades, the checkout and the program under the same paths. A task writes its result as a batch here does: whole or
//! not at all. What has none when the array has ended was on a node that failed, and is submitted again.

use super::seed;
use super::store::{Outcome, Store, write_whole};
use super::work::Work;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How often a hand-in is submitted whose node fails.
const TRIES: usize = 3;
/// Tasks of an array: Slurm's own limit, unless a cluster has another.
const TASKS: usize = 1000;
/// What a task takes beside grading: a node that starts, a checkout that is read over the network.
const MARGIN: Duration = Duration::from_secs(600);

/// How jobs are submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slurm {
    /// The partition, of CPUs or of GPUs; the cluster's default without it.
    pub partition: Option<String>,
    /// Further options of `sbatch`.
    pub options: Vec<String>,
    /// So many tasks at a time.
    pub jobs: Option<NonZeroUsize>,
}

impl Slurm {
    /// Grades all of these, and waits for them.
    ///
    /// # Errors
    /// When there is no `sbatch`, it refuses, or the folder of grades cannot be written.
    pub fn run(&self, store: &Store, mut work: Vec<Work>, say: impl Fn(&str)) -> Result<(), String> {
        let folder = absolute(&store.folder)?.join("slurm");
        for attempt in 1..=TRIES {
            for some in work.chunks(TASKS) {
                self.submit(&folder, some)?;
            }
            let mut missing = Vec::new();
            for one in work {
                let there = store.result(&one.id)?.is_some_and(|record| record.identity == one.identity);
                if !there {
                    missing.push(one);
                }
            }
            if missing.is_empty() {
                return Ok(());
            }
            say(&format!("note: {} of the array's tasks left no result, attempt {attempt} of {TRIES}", missing.len()));
            work = missing;
        }
        for one in work {
            let reason = format!(
                "no node graded it in {TRIES} tries\n  try: Look at {}/*.log, and give --retry.",
                folder.display()
            );
            let untried = Work { kept: Err(reason), ..one };
            let id = untried.id.clone();
            store.keep_result(&id, &untried.run(0))?;
        }
        Ok(())
    }

    fn submit(&self, folder: &Path, work: &[Work]) -> Result<(), String> {
        let Some(first) = work.first() else { return Ok(()) };
        fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        for (index, one) in work.iter().enumerate() {
            let text = serde_json::to_vec_pretty(one).map_err(|error| format!("cannot write JSON: {error}"))?;
            write_whole(&task(folder, index), &text)?;
        }
        let program = std::env::current_exe().map_err(|error| format!("cannot find this program itself: {error}"))?;
        let script = folder.join("task.sh");
        let text = format!("#!/bin/sh\nexec {} work {} \"$SLURM_ARRAY_TASK_ID\"\n", quoted(&program)?, quoted(folder)?);
        write_whole(&script, text.as_bytes())?;
        let at_once = self.jobs.map(|jobs| format!("%{jobs}")).unwrap_or_default();
        let minutes = (first.common.limit + MARGIN).as_secs().div_ceil(60);
        let mut command = Command::new("sbatch");
        command.args(["--wait", "--job-name=grader", "--nodes=1", &format!("--time={minutes}")]);
        command.arg(format!("--array=0-{}{at_once}", work.len() - 1));
        command.arg(format!("--output={}/%A_%a.log", folder.display()));
        command.args(self.partition.iter().map(|name| format!("--partition={name}")));
        command.args(&self.options).arg(&script);
        // What it prints, a person reads; grades are on the standard output.
        let output = command.output().map_err(|error| {
            format!(
                "cannot start sbatch: {error}\n  try: Give this command where jobs are submitted, or leave out --slurm."
            )
        })?;
        // The status is that of the tasks, and each says more by its result. One that was never submitted has a number in no text.
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() && !said.contains("Submitted batch job") {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "sbatch refuses the job: {}\n  try: Give it what it asks for with --partition or --sbatch.",
                why.trim()
            ));
        }
        Ok(())
    }
}

/// One task of an array: grades the hand-in of that number. `folder` is what [`Slurm::run`] made.
///
/// # Errors
/// When there is no such task, or its result cannot be written.
pub fn work(folder: &Path, index: usize) -> Result<(), String> {
    let path = task(folder, index);
    let text = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let work: Work =
        serde_json::from_slice(&text).map_err(|error| format!("{} is no task: {error}", path.display()))?;
    let store = Store::existing(folder.parent().unwrap_or(folder))?;
    let seed = match work.common.seed {
        Some(seed) => seed,
        None => seed::reveal(&store)?.seed,
    };
    let id = work.id.clone();
    let record = work.run(seed);
    store.keep_result(&id, &record)?;
    match record.outcome {
        Outcome::Graded(_) => Ok(()),
        Outcome::NotGraded { reason } => Err(reason),
    }
}

fn task(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{index}.json"))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("cannot find {}: {error}", path.display()))
}

/// A path as a word of the shell.
fn quoted(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8: no script can name it", path.display()))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}
