//! Grades one hand-in in a process of its own: this program again, with `grade … --format json`.
//!
//! The process gets the seed through its standard input, where no process of a hand-in can look, and ends when that is closed: so none
//! outlives a batch that was killed. What is started in place of it may not look there: wardens end its whole group then.

use super::seed;
use super::store::{Asked, Outcome};
use crate::formats::not_graded::{self, Fault, NotGraded};
use crate::json::{Report, SCHEMA};
use crate::memory;
use harness::streams::Streams;
use harness::warden::{self, Watched};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What is read of a grade. One of ten steps with long explanations has less than a tenth of it.
const MAX_GRADE: u64 = 16 << 20;
/// What is read of its messages.
const MAX_SAID: u64 = 64 << 10;

/// What grades hand-ins.
#[derive(Clone, Debug)]
pub struct Grader {
    /// The program.
    pub program: PathBuf,
    /// The rubric's file.
    pub rubric: PathBuf,
    /// The seed of the inputs.
    pub seed: u64,
    /// The seed is not told: grades must not name it.
    pub secret: bool,
    /// The longest that one may take.
    pub limit: Duration,
    /// Where verdicts on kernels are kept, so that of equal ones one is judged; `None`: each is judged.
    pub verdicts: Option<PathBuf>,
}

/// Why a grader gave no grade.
enum Ended {
    /// Its time was up.
    TooLate,
    /// For this.
    Without(NotGraded),
}

impl From<String> for Ended {
    fn from(reason: String) -> Ended {
        Ended::Without(reason.into())
    }
}

impl Grader {
    /// Grades a hand-in. Whatever it does, this ends.
    pub fn grade(&self, path: &Path, name: &str, asked: &Asked) -> Outcome {
        let outcome = match self.run(path, asked) {
            Ok(report) => Outcome::Graded(Box::new(of_hand_in(report, path, name))),
            Err(Ended::TooLate) => {
                let seconds = self.limit.as_secs();
                let reason = format!(
                    "grading it took longer than {seconds} s and was ended\n  \
                     try: Give the batch again with a larger --limit (seconds), or with --retry if the machine was busy."
                );
                Outcome::NotGraded { reason, here: false, limit: Some(seconds), no_kernel: false }
            }
            // The copy's place says nothing to who reads this.
            Err(Ended::Without(why)) => Outcome::NotGraded {
                reason: why.reason.replace(&*path.to_string_lossy(), name),
                here: why.fault == Fault::Here,
                limit: None,
                no_kernel: why.no_kernel,
            },
        };
        if self.secret { seed::untold(outcome, self.seed) } else { outcome }
    }

    /// What says nothing of whose fault it is has the hand-in's: it is told as it is, and not tried again.
    fn run(&self, path: &Path, asked: &Asked) -> Result<Report, Ended> {
        let unknown = |reason| Ended::Without(NotGraded::hand_in(reason));
        let mut command = Command::new(&self.program);
        command.arg("grade").arg(path).args(["--format", "json", "--seed", "-", "--rubric"]).arg(&self.rubric);
        command.args(asked.steps.iter().flat_map(|step| ["--step".to_string(), step.to_string()]));
        command.args(asked.allow_unchecked.then_some("--allow-unchecked"));
        command.args(asked.handed_in.iter().flat_map(|moment| ["--handed-in", moment]));
        if let Some(folder) = &self.verdicts {
            command.arg("--verdicts").arg(folder);
        }
        command.args(&asked.options);
        // As it was when the batch began, also for who grades again, or on another machine.
        match asked.device.as_str() {
            "" => command.env_remove("WORKBOOK_DEVICE"),
            device => command.env("WORKBOOK_DEVICE", device),
        };
        command.env("NO_COLOR", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // When time is up, all that it started ends.
        let started = warden::start(&mut command, None);
        let mut watched = started.map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let mut stdin = watched.child.stdin.take();
        if let Some(stdin) = &mut stdin {
            // A process that is gone says so by its exit status.
            let _ = writeln!(stdin, "{}", self.seed).and_then(|()| stdin.flush());
        }
        let streams = Streams::of(&mut watched.child, [MAX_GRADE, MAX_SAID])
            .map_err(|error| format!("cannot read what is written by {}: {error}", self.program.display()))?;
        let status = wait(&mut watched, self.limit)?;
        drop(stdin);
        let Some(status) = status else {
            return Err(Ended::TooLate);
        };
        let program = self.program.display();
        watched.end_rest().map_err(|error| format!("cannot end what was started by {program}: {error}"))?;
        // Half of a grade is none; that it is not there in time says nothing of the hand-in.
        let written = streams.rest().map_err(|cut| format!("{program}: {}", cut.why))?;
        let (grade, said) = (written.stdout, String::from_utf8_lossy(&written.stderr).into_owned());
        // 0: all passed; 1: not all; 2: it could not be graded, and why.
        if status.code() == Some(2)
            && let Some(why) = not_graded::parse(&grade)
        {
            return Err(Ended::Without(why));
        }
        match status.code() {
            Some(0 | 1) => match serde_json::from_slice(&grade) {
                Ok(Report { schema, .. }) if schema != SCHEMA => Err(unknown(format!(
                    "{} gave a grade of schema {schema}; known is {SCHEMA}\n  try: Grade with a grader of this version.",
                    self.program.display()
                ))),
                read => read.map_err(|error| unknown(format!("the grader gave no grade: {error}"))),
            },
            // Another program in place of the grader, or a wrong argument.
            Some(2) if said.contains("error: ") => {
                let at = said.rfind("error: ").unwrap_or_default();
                Err(unknown(said[at..].trim_start_matches("error: ").trim_end().to_string()))
            }
            _ if memory::ran_out(&said) => Err(unknown(format!(
                "judging it takes more than {} MiB of memory, and was ended\n  \
                 try: Look for a kernel that keeps far more than a product needs: registers, CTAs, variables.",
                memory::MOST >> 20
            ))),
            _ => Err(unknown(format!("the grader ended without a grade ({status}); it said:\n{}", said.trim_end()))),
        }
    }
}

/// A grade that names the hand-in, not its copy.
fn of_hand_in(mut report: Report, path: &Path, name: &str) -> Report {
    for file in report.steps.iter_mut().filter_map(|step| step.file.as_mut()) {
        *file = file.replace(&*path.to_string_lossy(), name);
    }
    report
}

/// Waits for the end; `None`: time was up, and it was ended.
fn wait(watched: &mut Watched, limit: Duration) -> Result<Option<ExitStatus>, String> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        match watched.child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if begin.elapsed() < limit => thread::sleep(pause),
            Ok(None) => {
                watched.end().map_err(|error| format!("cannot end the grader: {error}"))?;
                return Ok(None);
            }
            Err(error) => return Err(format!("cannot wait for the grader: {error}")),
        }
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}
