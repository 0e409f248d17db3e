//! The test main that every step shares: the verdict, as a test program shows it.
//!
//! One trial for each TODO (`todo_1.1`) and one for each part (`correct`, `race-free`, …), in that order. What comes
//! after the first thing that is open or wrong is ignored with a reason, so that its text appears once. When a filter
//! leaves that first thing out (nextest runs each trial alone), the others fail with the reason: they do not hold. Nextest
//! goes by name with the kind in front: `[step01]` for TODOs and `[verdict]` for parts keep the order there, too.
//!
//! The kernel function runs in a process of its own, this program asked with `--emit`: one that never returns, ends the
//! process or overflows the stack is an error like others.

use crate::emitted::Emitted;
use crate::judge::judge;
use crate::options::JudgeOptions;
use crate::progress::Progress;
use crate::report;
use crate::source::{InProcess, KernelSource};
use crate::steps::Step;
use crate::verdict::{MilestoneState, Outcome, Part, Verdict};
use libtest_mimic::{Arguments, ColorSetting, Completion, Failed, FormatSetting, Trial};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

/// The main of every `steps/stepNN/tests/verdict.rs`.
///
/// `--emit REQUEST ANSWER` builds the kernel for a request and ends: `workbook` and the grader get PTX text so.
pub fn step_main(step: u8, kernel: ptx::KernelFn) -> ExitCode {
    const USAGE: u8 = 2;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(status) = crate::cuda::asked(&arguments) {
        return status;
    }
    if let Some(status) = emit::answer::asked(kernel, &arguments) {
        return status;
    }
    let mut arguments = Arguments::from_args();
    let Some(step) = crate::step(step) else {
        eprintln!("error: there is no step {step}; there are steps 1 to {}", crate::STEPS.len());
        return ExitCode::from(USAGE);
    };
    let options = match JudgeOptions::from_env() {
        Ok(options) => JudgeOptions { progress: Progress::on_terminal(), ..options },
        Err(message) => {
            eprintln!("error: {message}");
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
    let verdict: Arc<OnceLock<Arc<Verdict>>> = Arc::default();
    let made = move || {
        let judged = || {
            // A system that does not say where this program lies builds the kernel here.
            let source: Box<dyn KernelSource> = match std::env::current_exe() {
                Ok(program) => Box::new(Emitted::new(program).echo()),
                Err(_) => Box::new(InProcess(kernel)),
            };
            Arc::new(judge(step, source.as_ref(), &options))
        };
        Arc::clone(verdict.get_or_init(judged))
    };
    let whole = made.clone();
    // The names first, for what the filter chooses; they need no verdict.
    let chosen = |trial: &Trial| !arguments.is_filtered_out(trial);
    let all = trials(step, Arc::new(Vec::new()), made.clone());
    let names: Vec<String> = all.iter().filter(|trial| chosen(trial)).map(|trial| trial.name().to_string()).collect();
    if let (true, Some(filter)) = (names.is_empty(), &arguments.filter) {
        let known: Vec<&str> = all.iter().map(Trial::name).collect();
        eprintln!("warning: no test matches `{filter}`; there are {}", known.join(", "));
    }
    // nextest runs every trial in a process of its own and counts one that ignores itself as passed: it must be told before.
    let waiting = match std::env::var_os("NEXTEST") {
        Some(_) => waiting(step, &made(), &all),
        None => Vec::new(),
    };
    let trials = trials(step, Arc::new(names), made).into_iter().map(|trial| {
        let ignored = waiting.iter().any(|name| name == trial.name());
        trial.with_ignored_flag(ignored)
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let judged = conclusion.num_passed > 0 && !conclusion.has_failed() && !arguments.list;
    if judged && matches!(arguments.format, None | Some(FormatSetting::Pretty)) {
        // What was measured, for who wants to make it better.
        for (part, outcome) in &whole().parts {
            if let Outcome::Passed { detail } = outcome {
                println!("{:<10} {detail}", part.name());
            }
        }
        println!();
    }
    conclusion.exit_code()
}

/// The trials that have nothing to say yet: they wait for another one, or their part was not checked.
fn waiting(step: &Step, verdict: &Verdict, all: &[Trial]) -> Vec<String> {
    let names: Vec<String> = all.iter().map(|trial| trial.name().to_string()).collect();
    let todos = step.milestones.iter().map(|m| (todo_name(m.id), todo(verdict, m.id, &names)));
    let parts = Part::ALL.into_iter().map(|part| (part.name().to_string(), outcome(verdict, part, &names)));
    let waits = |ended: &Result<Completion, Failed>| matches!(ended, Ok(Completion::Ignored { .. }));
    todos.chain(parts).filter(|(_, ended)| waits(ended)).map(|(name, _)| name).collect()
}

/// The trials of a step. `chosen` are the names of those that will run.
fn trials(
    step: &'static Step,
    chosen: Arc<Vec<String>>,
    verdict: impl Fn() -> Arc<Verdict> + Clone + Send + 'static,
) -> Vec<Trial> {
    let todos = step.milestones.iter().map(|milestone| {
        let (verdict, chosen) = (verdict.clone(), chosen.clone());
        let trial = Trial::ignorable_test(todo_name(milestone.id), move || todo(&verdict(), milestone.id, &chosen));
        trial.with_kind(format!("step{:02}", step.number))
    });
    let parts = Part::ALL.into_iter().map(|part| {
        let (verdict, chosen) = (verdict.clone(), chosen.clone());
        Trial::ignorable_test(part.name(), move || outcome(&verdict(), part, &chosen)).with_kind("verdict")
    });
    todos.chain(parts).collect()
}

fn todo_name(id: &str) -> String {
    format!("todo_{id}")
}

/// The milestone that comes first of all that are not done, if any TODO is open.
fn first_undone(verdict: &Verdict) -> Option<&str> {
    verdict.first_undone().map(|milestone| milestone.id.as_str())
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

/// What is not seen of a TODO while an earlier one is not done says nothing of it.
const BEFORE: &str = "cannot be seen yet: it needs what comes before";

fn todo(verdict: &Verdict, id: &str, chosen: &[String]) -> Result<Completion, Failed> {
    let Some(milestone) = verdict.milestones.iter().find(|milestone| milestone.id == id) else {
        return Ok(Completion::ignored_with("this step has no such TODO"));
    };
    let first = first_undone(verdict);
    match &milestone.state {
        MilestoneState::Done => Ok(Completion::Completed),
        MilestoneState::Flagged { part } => waits(verdict, &format!("works here; see `{part}`"), chosen),
        MilestoneState::Open { .. } if first == Some(id) => {
            Err(report::next_todo(verdict).unwrap_or_else(|| format!("TODO {id} is open")).into())
        }
        MilestoneState::Open { place, .. } => waits(verdict, &format!("open, {place}"), chosen),
        MilestoneState::Wrong { text, .. } if first == Some(id) => {
            Err(report::wrong_todo(verdict, id, text).unwrap_or_else(|| report::paint(text)).into())
        }
        MilestoneState::Wrong { text, .. } if first.is_none() => Err(match verdict.part_that_says(text) {
            Some(part) => format!("not so: {}; `{part}` says why", milestone.title).into(),
            None => report::wrong_todo(verdict, id, text).unwrap_or_else(|| report::paint(text)).into(),
        }),
        MilestoneState::Wrong { .. } => waits(verdict, BEFORE, chosen),
        MilestoneState::WaitsFor { id } => waits(verdict, &format!("waits for {id}"), chosen),
        MilestoneState::NotReached { reason } => waits(verdict, reason, chosen),
    }
}

fn outcome(verdict: &Verdict, part: Part, chosen: &[String]) -> Result<Completion, Failed> {
    match verdict.part(part) {
        Outcome::Passed { .. } => Ok(Completion::Completed),
        Outcome::Failed { text, .. } => Err(report::paint(text).into()),
        Outcome::NotChecked { reason, .. } => Ok(Completion::ignored_with(format!("not checked: {reason}"))),
        Outcome::NotReached { reason } => waits(verdict, reason, chosen),
    }
}
