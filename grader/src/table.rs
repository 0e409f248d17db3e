//! A grade as a table, and the explanation of each part that did not pass.

use crate::json::Report;
use crate::{Grade, Graded, advice};
use colored::{ColoredString, Colorize};
use harness::answers::plain;
use harness::report::{number, paint};
use harness::workbook::name;
use harness::{MilestoneState, Outcome, Part};
use std::fmt::Write;

/// Width of a part's column: `not checked` is the longest word.
const PART: usize = 11;

/// The table, the total, and what is behind each part that did not pass.
///
/// Writing to a `String` cannot fail, so results of `write!` are dropped here.
pub fn render(grade: &Grade) -> String {
    let width = grade.steps.iter().map(|graded| graded.verdict.title.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let _ = write!(text, "{:<6}  {:<width$}", "step", "");
    for part in Part::ALL {
        let _ = write!(text, "  {:<PART$}", part.name());
    }
    text.push_str("  points\n");
    for Graded { verdict, .. } in &grade.steps {
        let _ = write!(text, "{:<6}  {:<width$}", name(verdict.step), verdict.title);
        for (_, outcome) in &verdict.parts {
            let _ = write!(text, "  {}", cell(outcome));
        }
        let _ = writeln!(text, "  {} of {}", number(verdict.points), verdict.max_points);
    }
    let gap = 6 + 2 + width + Part::ALL.len() * (PART + 2) - "total".len();
    let _ = writeln!(text, "total{:gap$}  {} of {}", "", number(grade.points()), grade.max_points());
    for graded in &grade.steps {
        text.push_str(&explain(graded));
    }
    text
}

fn cell(outcome: &Outcome) -> ColoredString {
    // Padded first: escape sequences have no width.
    match outcome {
        Outcome::Passed { .. } => format!("{:<PART$}", "passed").green(),
        Outcome::Failed { .. } => format!("{:<PART$}", "failed").red(),
        Outcome::NotChecked { .. } => format!("{:<PART$}", "not checked").yellow(),
        Outcome::NotReached { .. } => format!("{:<PART$}", "not reached").dimmed(),
    }
}

fn explain(graded: &Graded) -> String {
    let Graded { file, verdict } = graded;
    let step = name(verdict.step);
    let of = file.as_ref().map(|file| format!(" ({})", shown(file))).unwrap_or_default();
    let mut text = String::new();
    if let Some(failure) = &verdict.build_failure {
        let why = match verdict.part(Part::Correct) {
            Outcome::Failed { text, says, .. } => {
                advice::why_not_built(Some(failure.cause), &failure.text, text, says.place.is_some())
            }
            _ => &failure.text,
        };
        let _ = writeln!(text, "\n{}\n{}", format!("{step}: no kernel{of}").bold(), indent(why));
    }
    for (part, outcome) in &verdict.parts {
        match outcome {
            Outcome::Failed { title, text: why, .. } if verdict.build_failure.is_none() => {
                let _ = writeln!(
                    text,
                    "\n{}\n{}",
                    format!("{step} {part}: failed{of}: {}", shown(title)).bold(),
                    indent(why)
                );
            }
            Outcome::NotChecked { reason, late } => {
                // A solution is the course's own.
                let why = if file.is_some() { advice::why_not_checked(*part, reason, *late) } else { reason.clone() };
                let _ = writeln!(text, "\n{}\n{}", format!("{step} {part}: not checked{of}").bold(), indent(&why));
            }
            _ => {}
        }
    }
    if verdict.build_failure.is_none() && !verdict.part(Part::Correct).passed() {
        let _ = writeln!(text, "\n{}", format!("{step}: milestones{of}").bold());
        for milestone in &verdict.milestones {
            let state = match &milestone.state {
                MilestoneState::Done => "done".to_string(),
                MilestoneState::Flagged { part } => format!("works here; see {part}"),
                MilestoneState::Open { place, .. } => format!("open, at {place}"),
                MilestoneState::Wrong { text, .. } => {
                    // The explanation stands above; its first line tells the milestones apart.
                    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
                    format!("something else happened: {}", first.trim_start_matches("error: "))
                }
                MilestoneState::WaitsFor { id } => format!("not reached: waits for {id}"),
                MilestoneState::NotReached { reason } => format!("not reached: {reason}"),
            };
            let _ = writeln!(text, "{}", indent(&format!("{} {}: {state}", milestone.id, milestone.title)));
        }
    }
    if let Some(next) = advice::in_step(graded) {
        let _ =
            writeln!(text, "\n{}\n{}", format!("{step}: what comes next{of}").bold(), indent(&next.lines().join("\n")));
    }
    text
}

/// What is not in the hand-in, and so of what the total is a part; empty when nothing.
pub fn missing(report: &Report) -> String {
    let left: u32 = report.not_handed_in.iter().map(|missing| missing.max_points).sum();
    // Those that follow one another as one.
    let mut ranges: Vec<[u8; 2]> = Vec::new();
    for step in report.not_handed_in.iter().map(|missing| missing.step) {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == step => *last = step,
            _ => ranges.push([step; 2]),
        }
    }
    if ranges.is_empty() {
        return String::new();
    }
    let named = |[first, last]: &[u8; 2]| match last - first {
        0 => name(*first),
        1 => format!("{} and {}", name(*first), name(*last)),
        _ => format!("{} to {}", name(*first), name(*last)),
    };
    let names: Vec<String> = ranges.iter().map(named).collect();
    let (points, of, all) = (number(report.points), report.max_points, report.max_points + left);
    format!(
        "\nnot handed in, with 0 of {left} points: {}\n    The total above is of what was handed in, {points} of {of}; of the whole rubric it is {points} of {all}.\n",
        names.join(", ")
    )
}

/// What lateness costs; empty when nothing.
pub fn lateness(report: &Report) -> String {
    let Some(late) = report.late.as_ref().filter(|late| late.days > 0) else { return String::new() };
    let (due, came, days) = (&late.due, &late.handed_in, late.days);
    let (lost, left, of) = (number(late.points_lost), number(report.score), report.max_points);
    format!(
        "\nlate: due {due}, handed in {came}; day {days} costs {lost} points\n      {left} of {of} points are left\n"
    )
}

/// What was refused or ended; empty when nothing.
pub fn stopped(report: &Report) -> String {
    let all: Vec<String> = report.stopped().map(|(step, one)| one.of_step(step)).collect();
    match all.as_slice() {
        [] => String::new(),
        lines => format!("\nrefused or stopped (no points depend on this)\n{}\n", indent(&lines.join("\n"))),
    }
}

/// A student's text without what moves a cursor, sets a title, clears a screen or turns a line around.
fn shown(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

fn indent(text: &str) -> String {
    let painted = paint(shown(text).trim_end());
    let lines: Vec<String> = painted.lines().map(|line| format!("    {line}").trim_end().to_string()).collect();
    lines.join("\n")
}
