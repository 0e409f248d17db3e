//! The ways to write a grade: for people, for programs, and for the systems that courses use.
//!
//! Each is made from the same [`Report`], so all say the same points and the same next thing to do. What a student wrote (names, lines
//! of code in explanations) is hostile everywhere: it is escaped as each format asks for, and signs that cannot be seen or turn a line
//! around are replaced. JSON alone has texts as they are.

mod autolab;
mod csv;
mod gradescope;
pub(crate) mod html;
mod junit;
pub mod not_graded;

pub(crate) use self::csv::harmless;

use crate::advice;
use crate::json::{self, Lateness, PartReport, Report, State, Step};
use crate::{Grade, table};
use clap::ValueEnum;
use harness::answers::plain;

/// A way to write a grade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table, then what did not pass
    Text,
    /// One JSON object; docs/grader.md describes it
    Json,
    /// The results.json of a Gradescope autograder
    Gradescope,
    /// Two lines for Autolab: semantic feedback, and the scores
    Autolab,
    /// JUnit's XML: a test suite for each step, a test case for each part
    Junit,
    /// A row for each step
    Csv,
    /// One page that needs nothing else
    Html,
}

/// Writes a grade.
///
/// # Errors
/// When a number or a text cannot be written in that format.
pub fn render(format: Format, grade: &Grade, report: &Report) -> Result<String, String> {
    match format {
        Format::Text => {
            Ok(table::render(grade) + &table::missing(report) + &table::lateness(report) + &table::stopped(report))
        }
        other => of_report(other, report),
    }
}

/// Writes a grade that was stored. There is no table of it: JSON stands in its place.
///
/// # Errors
/// As [`render`].
pub fn of_report(format: Format, report: &Report) -> Result<String, String> {
    if matches!(format, Format::Text | Format::Json) {
        return json::render(report);
    }
    let report = &shown(report);
    match format {
        Format::Text | Format::Json => json::render(report),
        Format::Gradescope => gradescope::render(report),
        Format::Autolab => autolab::render(report),
        Format::Junit => junit::render(report),
        Format::Csv => csv::render(report),
        Format::Html => Ok(html::page(report, None)),
    }
}

/// The report without signs that cannot be seen, move a cursor or turn a line around. Our own words have none.
fn shown(report: &Report) -> Report {
    let clean = |text: &mut String| *text = text.split('\n').map(plain).collect::<Vec<_>>().join("\n");
    let mut report = report.clone();
    for step in &mut report.steps {
        step.stopped.iter_mut().for_each(|one| clean(&mut one.text));
        step.file.iter_mut().chain(&mut step.build_failure).for_each(clean);
        if let Some(next) = &mut step.next {
            clean(&mut next.title);
            [&mut next.place, &mut next.task].into_iter().flatten().for_each(clean);
        }
        for part in &mut step.parts {
            clean(&mut part.text);
            part.title.iter_mut().chain(&mut part.place).for_each(clean);
        }
        step.milestones.iter_mut().filter_map(|milestone| milestone.text.as_mut()).for_each(clean);
    }
    report
}

/// What is said of a part: its outcome, what is wrong and why; for `correct`, how far the milestones are.
fn explanation(step: &Step, part: &PartReport) -> String {
    let mut text = part.outcome.words().to_string();
    if let Some(title) = &part.title {
        text += &format!(": {title}");
    }
    if part.part == harness::Part::Correct && part.outcome != State::Passed {
        if let Some(failure) = &step.build_failure {
            return format!(
                "{text}\n\n{}",
                advice::why_not_built(step.no_kernel, failure, part.text.trim_end(), part.place.is_some())
            );
        }
        for milestone in &step.milestones {
            text += &format!("\n{} {}: {}", milestone.id, milestone.title, milestone.state.replace('_', " "));
        }
    }
    let why = match part.outcome {
        State::NotChecked => advice::why_not_checked(part.part, part.text.trim_end(), part.assembler_late),
        _ => part.text.trim_end().to_string(),
    };
    if why.trim().is_empty() { text } else { format!("{text}\n\n{why}") }
}

/// What comes next in a step, as lines.
fn comes_next(step: &Step) -> Option<String> {
    Some(format!("what comes next:\n  {}", step.next.as_ref()?.lines().join("\n  ")))
}

/// When it came, and what that costs.
fn late(late: &Lateness) -> String {
    let (due, came, days) = (&late.due, &late.handed_in, late.days);
    match days {
        0 => format!("in time: due {due}, handed in {came}"),
        _ => format!("late: due {due}, handed in {came}; day {days} costs {} points", late.points_lost),
    }
}

/// `step01`.
fn step_name(step: &Step) -> String {
    harness::workbook::name(step.step)
}
