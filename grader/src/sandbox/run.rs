//! Runs a program where hand-ins run, and says how it ended; or that this machine failed, which is never the program's fault.
//!
//! In the sandbox, all that is believed is what its outer process [reports](super::report). Whether a program takes too long is
//! judged by the CPU time that it used: a machine that does ten things at once makes nobody's kernel worse. The limit on the clock is
//! for those that sleep.

use super::report::{self, Reached, Report};
use super::{Cage, Limits, Spec};
use crate::children::{self, Within};
use std::path::Path;
use std::time::Duration;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Its CPU time was used up.
    CpuUsedUp,
    /// Its time on the clock was over.
    ClockRanOut,
}

/// A program that ran to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// CPU time that it used, and what it started.
    pub cpu_seconds: f64,
    /// CPU time that it may use.
    pub cpu_limit: u64,
    /// Seconds on the clock.
    pub seconds: f64,
    /// What it printed.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
    /// What it left and was not taken, and why.
    pub not_taken: Vec<String>,
}

/// The sandbox ends by itself. What is later than that by so much is ended from outside, and is its fault.
const GRACE: Duration = Duration::from_secs(60);
/// Who was killed after so much of its CPU time was killed for that: the kernel counts in ticks, which differ from the time that it tells.
const USED_UP: f64 = 0.9;
/// Signals as Linux numbers them; there is no sandbox elsewhere.
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;

impl Cage {
    /// Runs a program to its end.
    ///
    /// # Errors
    /// When this machine fails: what failed. That says nothing of the program.
    pub fn run(&self, spec: &Spec) -> Result<Ran, String> {
        let Limits { cpu_seconds, clock_seconds, output, .. } = spec.limits;
        let (clock, cpu) = (Duration::from_secs(clock_seconds), Duration::from_secs(cpu_seconds));
        match self {
            Cage::Locked { .. } => {
                let within = Within { clock: clock + GRACE, cpu: None, output };
                let said = children::run_within(&mut self.command(spec), &within)?;
                judged(said, report::read(&spec.report()), &spec.limits)
            }
            Cage::Open => {
                let said = children::run_within(&mut self.command(spec), &Within { clock, cpu: Some(cpu), output })?;
                let end = match (said.stopped, said.code, said.signal) {
                    (Some(children::Stopped::Cpu), ..) => End::CpuUsedUp,
                    (Some(children::Stopped::Clock), ..) => End::ClockRanOut,
                    (None, Some(code), _) => End::Exited(code),
                    (None, None, signal) => End::Signalled(signal.unwrap_or_default()),
                };
                Ok(Ran {
                    end,
                    cpu_seconds: said.cpu_seconds,
                    cpu_limit: cpu_seconds,
                    seconds: said.seconds,
                    stdout: said.stdout,
                    stderr: said.stderr,
                    not_taken: Vec::new(),
                })
            }
        }
    }
}

/// What became of a run, by the report alone.
fn judged(said: children::Ended, report: Option<Report>, limits: &Limits) -> Result<Ran, String> {
    let why = |what: &str| match said.stderr.trim() {
        "" => what.to_string(),
        text => format!("{what}; it said: {}", text.lines().next_back().unwrap_or_default()),
    };
    if said.stopped.is_some() {
        return Err(why(&format!("the sandbox did not end {} s after it should have", GRACE.as_secs())));
    }
    let Some(report) = report else { return Err(why("the sandbox was ended before it began")) };
    if let Some(failed) = &report.failed {
        return Err(failed.clone());
    }
    if report.reached != Reached::Ended {
        let when = match report.reached {
            Reached::Begun => "before it was furnished",
            Reached::Entered => "before the program was started",
            Reached::Started | Reached::Ended => "while the program ran",
        };
        return Err(format!("the sandbox was ended {when}"));
    }
    let used_up = report.cpu_seconds >= USED_UP * limits.cpu_seconds as f64;
    let end = match (report.code, report.signal) {
        _ if report.cpu_ran_out => End::CpuUsedUp,
        _ if report.clock_ran_out => End::ClockRanOut,
        (_, Some(SIGKILL | SIGXCPU)) if used_up => End::CpuUsedUp,
        // A program cannot send itself this one, and its own limits send it for CPU time alone.
        (_, Some(SIGKILL)) => {
            return Err(format!(
                "the program was killed from outside after {:.1} s of CPU time: the machine ran out of memory, or somebody ended it",
                report.cpu_seconds
            ));
        }
        (Some(0), None) => End::Exited(0),
        _ if report.short_of_memory => {
            return Err("the machine ran out of memory while the program ran".to_string());
        }
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signalled(signal),
        (None, None) => return Err("the sandbox does not say how the program ended".to_string()),
    };
    Ok(Ran {
        end,
        cpu_seconds: report.cpu_seconds,
        cpu_limit: limits.cpu_seconds,
        seconds: report.seconds,
        stdout: said.stdout,
        stderr: said.stderr,
        not_taken: report.not_taken,
    })
}

impl Ran {
    /// How it ended, in a few words; `None`: by itself, and well.
    pub fn failure(&self) -> Option<String> {
        match self.end {
            End::Exited(0) => None,
            End::Exited(code) => Some(format!("exit status: {code}")),
            End::Signalled(signal) => Some(format!("ended by signal {signal}{}", meaning(signal))),
            End::CpuUsedUp | End::ClockRanOut => self.too_long(),
        }
    }

    /// After what it was ended, if it took too long.
    pub fn too_long(&self) -> Option<String> {
        match self.end {
            End::Exited(_) | End::Signalled(_) => None,
            // The limit: what was used differs from run to run, and a grade must not.
            End::CpuUsedUp => Some(format!("{} s of CPU time", self.cpu_limit)),
            // It had ten times as long as its CPU time could last.
            End::ClockRanOut => Some(format!(
                "{:.0} s on the clock, of which it used {:.1} s of CPU time (it slept or waited)",
                self.seconds, self.cpu_seconds
            )),
        }
    }
}

/// What a signal means here.
fn meaning(signal: i32) -> &'static str {
    match signal {
        4 => ": it made an instruction that there is not",
        6 => ": it gave up",
        // The first process of a namespace cannot end itself by signal 6: `abort` ends by this one.
        11 => ": it used memory that it does not have, its stack was used up, or it gave up (abort)",
        25 => ": a file became too large",
        31 => ": it made a system call that is not allowed",
        _ => "",
    }
}

impl Spec {
    /// Where the sandbox says how far it came: beside the stage, which nothing in the sandbox sees.
    pub(super) fn report(&self) -> std::path::PathBuf {
        self.stage.with_file_name("report")
    }

    /// A program that is asked for a kernel with `--emit REQUEST ANSWER`, which lie in one folder.
    pub fn asks(mut self, cage: &Cage, request: &Path, answer: &Path) -> Spec {
        let folder = answer.parent().unwrap_or(Path::new(""));
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let inside = |path: &Path| cage.work(folder).join(name(path)).display().to_string();
        self.arguments = vec!["--emit".to_string(), inside(request), inside(answer)];
        self.stage = folder.join("stage");
        self.input = Some((request.to_path_buf(), name(request)));
        self.outputs = vec![super::Output { name: name(answer), to: answer.to_path_buf() }];
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended() -> Report {
        Report { reached: Reached::Ended, code: Some(0), cpu_seconds: 0.5, seconds: 1.0, ..Report::default() }
    }

    fn of(report: Option<Report>) -> Result<End, String> {
        // Whatever its own exit status is, the report alone counts.
        let said =
            children::Ended { code: Some(3), stderr: "sandbox: all went well".to_string(), ..Default::default() };
        judged(said, report, &Limits { cpu_seconds: 20, ..Limits::default() }).map(|ran| ran.end)
    }

    #[test]
    fn whose_fault_an_end_is() {
        let signalled = |signal, cpu_seconds| Report { code: None, signal: Some(signal), cpu_seconds, ..ended() };
        assert_eq!(of(Some(ended())), Ok(End::Exited(0)));
        assert_eq!(of(Some(Report { code: Some(125), ..ended() })), Ok(End::Exited(125)));
        assert_eq!(of(Some(signalled(6, 0.5))), Ok(End::Signalled(6)));
        assert_eq!(of(Some(signalled(SIGKILL, 19.5))), Ok(End::CpuUsedUp), "by the kernel");
        assert_eq!(of(Some(Report { cpu_ran_out: true, ..signalled(SIGKILL, 20.0) })), Ok(End::CpuUsedUp));
        assert_eq!(of(Some(Report { clock_ran_out: true, ..signalled(SIGKILL, 0.1) })), Ok(End::ClockRanOut));
        assert_eq!(of(Some(Report { short_of_memory: true, ..ended() })), Ok(End::Exited(0)), "others ran out");
        let here = [
            ("before it began", None),
            ("before it was furnished", Some(Report::default())),
            ("before the program was started", Some(Report { reached: Reached::Entered, ..Report::default() })),
            ("while the program ran", Some(Report { reached: Reached::Started, ..Report::default() })),
            ("no space left", Some(Report { failed: Some("no space left".to_string()), ..ended() })),
            ("killed from outside", Some(signalled(SIGKILL, 0.5))),
            ("out of memory", Some(Report { short_of_memory: true, ..signalled(6, 0.5) })),
            ("out of memory", Some(Report { short_of_memory: true, code: Some(1), ..ended() })),
            ("does not say how", Some(Report { code: None, ..ended() })),
        ];
        for (says, report) in here {
            let why = of(report.clone()).expect_err(says);
            assert!(why.contains(says), "{report:?}: {why}");
        }
    }
}
