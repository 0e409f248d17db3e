//! The test main that every step shares: the verdict, as a test program shows it.
//!
//! One trial for each TODO (`todo_1.1`) and one for each part (`correct`, `race-free`, …), in that order. What comes
//! after the first thing that is open or wrong is ignored with a reason, so that its text appears once. When a filter
//! leaves that first thing out (nextest runs each trial alone), the others fail with the reason: they do not hold.

use crate::device::Device;
use crate::emitted;
use crate::judge::{JudgeOptions, judge};
use crate::report;
use crate::source::InProcess;
use crate::steps::Step;
use crate::verdict::{MilestoneState, Outcome, Part, Verdict};
use libtest_mimic::{Arguments, ColorSetting, Completion, Failed, FormatSetting, Trial};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

/// The main of every `steps/stepNN/tests/verdict.rs`.
///
/// `--emit REQUEST ANSWER` builds the kernel for a request and ends: `workbook` and the grader get PTX text so.
pub fn step_main(step: u8, kernel: ptx::KernelFn) -> ExitCode {
    const USAGE: u8 = 2;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--emit") {
        let [request, answer] = &arguments[at + 1..] else {
            eprintln!("--emit takes two paths: a request and an answer");
            return ExitCode::from(USAGE);
        };
        return match emitted::answer(&InProcess(kernel), Path::new(request), Path::new(answer)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("{message}");
                ExitCode::FAILURE
            }
        };
    }
    let mut arguments = Arguments::from_args();
    let Some(step) = crate::step(step) else {
        eprintln!("there is no step {step}; there are steps 1 to {}", crate::STEPS.len());
        return ExitCode::from(USAGE);
    };
    let device = match Device::from_env() {
        Ok(device) => device,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(USAGE);
        }
    };
    if arguments.format == Some(FormatSetting::Json) {
        arguments.color = Some(ColorSetting::Never);
    }
    match arguments.color {
        Some(ColorSetting::Always) => colored::control::set_override(true),
        Some(ColorSetting::Never) => colored::control::set_override(false),
        // `colored` decides: a terminal, and NO_COLOR. The lines of the front end follow it.
        Some(ColorSetting::Auto) | None => {
            let coloured = colored::control::SHOULD_COLORIZE.should_colorize();
            arguments.color = Some(if coloured { ColorSetting::Always } else { ColorSetting::Never });
        }
    }
    // In order: each line comes when it is known, and the verdict is made once for all.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    let options = JudgeOptions { device, ..JudgeOptions::default() };
    let verdict: Arc<OnceLock<Arc<Verdict>>> = Arc::default();
    let made = move || Arc::clone(verdict.get_or_init(|| Arc::new(judge(step, &InProcess(kernel), &options))));
    // The names first, for what the filter chooses; they need no verdict.
    let chosen = |trial: &Trial| !arguments.is_filtered_out(trial);
    let names = trials(step, Arc::new(Vec::new()), made.clone()).into_iter().filter(chosen);
    let names = Arc::new(names.map(|trial| trial.name().to_string()).collect());
    libtest_mimic::run(&arguments, trials(step, names, made)).exit_code()
}

/// The trials of a step. `chosen` are the names of those that will run.
fn trials(
    step: &'static Step,
    chosen: Arc<Vec<String>>,
    verdict: impl Fn() -> Arc<Verdict> + Clone + Send + 'static,
) -> Vec<Trial> {
    let kind = format!("step{:02}", step.number);
    let todos = step.milestones.iter().map(|milestone| {
        let (verdict, chosen) = (verdict.clone(), chosen.clone());
        Trial::ignorable_test(todo_name(milestone.id), move || todo(&verdict(), milestone.id, &chosen))
    });
    let parts = Part::ALL.into_iter().map(|part| {
        let (verdict, chosen) = (verdict.clone(), chosen.clone());
        Trial::ignorable_test(part.name(), move || outcome(&verdict(), part, &chosen))
    });
    todos.chain(parts).map(|trial| trial.with_kind(kind.clone())).collect()
}

fn todo_name(id: &str) -> String {
    format!("todo_{id}")
}

/// The milestone that comes first of all that are not done, if any TODO is open.
fn first_undone(verdict: &Verdict) -> Option<&str> {
    verdict.next_todo()?;
    let undone = |state: &MilestoneState| !matches!(state, MilestoneState::Done);
    verdict.milestones.iter().find(|milestone| undone(&milestone.state)).map(|milestone| milestone.id.as_str())
}

/// The trial that says what is wrong, and what that is.
fn first_failure(verdict: &Verdict) -> Option<(String, String)> {
    if let Some(id) = first_undone(verdict) {
        let place =
            verdict.next_todo().filter(|(milestone, _)| milestone.id == id).map(|(_, place)| format!(", {place}"));
        return Some((todo_name(id), format!("TODO {id} comes first{}", place.unwrap_or_default())));
    }
    verdict.parts.iter().find_map(|(part, outcome)| match outcome {
        Outcome::Failed { title, .. } => Some((part.name().to_string(), format!("`{part}` comes first: {title}"))),
        _ => None,
    })
}

/// A trial that waits for another one.
fn waits(verdict: &Verdict, reason: &str, chosen: &[String]) -> Result<Completion, Failed> {
    match first_failure(verdict) {
        Some((name, what)) if !chosen.contains(&name) => Err(format!("{what} (`{name}` says more)").into()),
        _ => Ok(Completion::ignored_with(reason)),
    }
}

fn todo(verdict: &Verdict, id: &str, chosen: &[String]) -> Result<Completion, Failed> {
    let Some(milestone) = verdict.milestones.iter().find(|milestone| milestone.id == id) else {
        return Ok(Completion::ignored_with("this step has no such TODO"));
    };
    let first = first_undone(verdict);
    match &milestone.state {
        MilestoneState::Done => Ok(Completion::Completed),
        MilestoneState::Open { .. } if first == Some(id) => {
            Err(report::next_todo(verdict).unwrap_or_else(|| format!("TODO {id} is open")).into())
        }
        MilestoneState::Open { place } => waits(verdict, &format!("open, {place}"), chosen),
        MilestoneState::Wrong { text } if first == Some(id) => Err(report::paint(text).into()),
        // Nothing is open: the parts explain.
        MilestoneState::Wrong { .. } if first.is_none() => {
            Err(format!("not so: {}; the part that fails says why", milestone.title).into())
        }
        MilestoneState::Wrong { .. } => waits(verdict, "not as it should be yet", chosen),
        MilestoneState::NotReached { reason } => waits(verdict, reason, chosen),
    }
}

fn outcome(verdict: &Verdict, part: Part, chosen: &[String]) -> Result<Completion, Failed> {
    match verdict.part(part) {
        Outcome::Passed { .. } => Ok(Completion::Completed),
        Outcome::Failed { text, .. } => Err(report::paint(text).into()),
        Outcome::NotChecked { reason } => Ok(Completion::ignored_with(format!("not checked: {reason}"))),
        Outcome::NotReached { reason } => waits(verdict, reason, chosen),
    }
}
