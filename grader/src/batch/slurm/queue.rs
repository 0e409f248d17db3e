//! The jobs of one folder of grades in Slurm's queue: submit, look, cancel. A job is found again by its name, which is that of the folder.

use crate::batch::store::Store;
use harness::workbook::pack::hex;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

/// Slurm's queue, as far as it is about one folder of grades.
pub(super) struct Queue {
    name: String,
}

impl Queue {
    /// That of a folder of grades. Its path is whole, and the same on all nodes.
    pub(super) fn of(store: &Store) -> Queue {
        let hash = hex(&Sha256::digest(store.folder.as_os_str().as_encoded_bytes()));
        Queue { name: format!("grader-{}", &hash[..16]) }
    }

    /// Submits an array of so many tasks. Gives the job's number. `options` may change what is not given here.
    pub(super) fn submit(
        &self,
        script: &Path,
        logs: &Path,
        array: &str,
        options: impl IntoIterator<Item = String>,
    ) -> Result<String, String> {
        let logs = logs.display().to_string().replace('%', "%%");
        let mut command = Command::new("sbatch");
        // The last of two that contradict each other counts: by these a job is found again.
        command.args(options).args(["--parsable", &format!("--job-name={}", self.name), &format!("--array={array}")]);
        command.arg(format!("--output={logs}/%a.log")).arg(script);
        let output = command.output().map_err(|error| {
            format!(
                "cannot start sbatch: {error}\n  try: Give this command where jobs are submitted, or leave out --slurm."
            )
        })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // `12`, or `12;cluster`.
        let number = text.lines().last().and_then(|line| line.split(';').next()).unwrap_or_default().trim();
        if output.status.success() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(number.to_string());
        }
        Err(format!(
            "sbatch refuses the job: {}{}\n  try: Give it what it asks for with --partition or --sbatch.",
            said(&output),
            text.trim()
        ))
    }

    /// The numbers of its jobs that wait, run, or are about to end.
    pub(super) fn jobs(&self) -> Result<BTreeSet<String>, String> {
        let mut command = Command::new("squeue");
        // `%F` is the array's number, also for a task of it.
        command.args(["--me", "--noheader", &format!("--name={}", self.name), "--format=%F"]);
        let output = command.output().map_err(|error| format!("cannot start squeue: {error}"))?;
        if !output.status.success() {
            return Err(format!("squeue fails: {}", said(&output)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_string).collect())
    }

    /// Ends jobs: those that wait, and those that run.
    pub(super) fn cancel(&self, jobs: &BTreeSet<String>) -> Result<(), String> {
        let output = Command::new("scancel").args(jobs).output();
        let output = output.map_err(|error| format!("cannot start scancel: {error}"))?;
        if output.status.success() { Ok(()) } else { Err(format!("scancel fails: {}", said(&output))) }
    }
}

/// Whether jobs can be submitted from here: there is an `sbatch`, and the cluster's controller answers.
///
/// # Errors
/// Which of the two is not so, in Slurm's words, and the way out.
pub(super) fn answers() -> Result<(), String> {
    const TRY: &str =
        "try: Give this command on a machine that submits jobs to the cluster, or leave out --slurm to grade here.";
    let search = std::env::var_os("PATH");
    let there = search.iter().flat_map(std::env::split_paths).any(|folder| folder.join("sbatch").is_file());
    if !there {
        return Err(format!("--slurm submits jobs with `sbatch`, and no folder of PATH has one\n  {TRY}"));
    }
    let mut command = Command::new("squeue");
    let output = command.args(["--me", "--noheader", "--format=%F"]).output();
    let why = match output {
        Err(error) => format!("cannot start squeue: {error}"),
        Ok(output) if output.status.success() => return Ok(()),
        // The last line is what it ends with; those before it are tries.
        Ok(output) => said(&output).lines().next_back().unwrap_or("squeue fails and says nothing").to_string(),
    };
    Err(format!(
        "--slurm needs a cluster, and its controller does not answer here: {why}\n  {TRY} `scontrol ping` asks it, too."
    ))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_string()
}
