//! All steps, and how far the student is with each.

use super::cargo::{Binary, test_binary};
use super::patience::Patience;
use super::remembered::Remembered;
use super::workspace::{Workspace, name};
use crate::{Emitted, JudgeOptions, MilestoneState, Outcome, Verdict, judge, step};
use std::fmt::Write;

/// A line of the list.
#[derive(Clone, Debug)]
pub struct Row {
    /// The step.
    pub step: u8,
    /// Its title; empty if this program does not know the step.
    pub title: String,
    /// Its points.
    pub points: u32,
    /// How far it is.
    pub progress: String,
}

/// Looks at each step of the checkout: builds it, and judges it, unless it is as it was when it was judged last and all need not be `fresh`.
pub fn rows(workspace: &Workspace, options: &JudgeOptions, fresh: bool) -> Vec<Row> {
    let mut remembered = Remembered::read(workspace, options, fresh);
    workspace.steps().into_iter().map(|number| row(workspace, number, options, &mut remembered)).collect()
}

fn row(workspace: &Workspace, number: u8, options: &JudgeOptions, remembered: &mut Remembered<'_>) -> Row {
    let Some(step) = step(number) else {
        let progress = "unknown to this program: its folder is there, its description is not".to_string();
        return Row { step: number, title: String::new(), points: 0, progress };
    };
    let _patience = Patience::new(format!("building and judging {} …", name(number)));
    let progress = match test_binary(workspace, number) {
        Ok(Binary::Ready(path)) => {
            let key = remembered.key(number, &path);
            remembered.of(number, key).unwrap_or_else(|| {
                let verdict = judge(step, &Emitted::new(path), options);
                let progress = progress(&verdict);
                // What failed on this machine may not the next time.
                remembered.keep(number, key.filter(|_| verdict.here.is_none()), &progress);
                progress
            })
        }
        Ok(Binary::DoesNotCompile { first, .. }) => format!("does not compile: {first}"),
        Err(error) => error.lines().next().unwrap_or_default().to_string(),
    };
    Row { step: number, title: step.title.to_string(), points: step.points, progress }
}

/// How far a step is, in one line.
pub fn progress(verdict: &Verdict) -> String {
    if verdict.passed() {
        return "passed".to_string();
    }
    if let Some(failure) = &verdict.build_failure {
        return format!("builds no kernel: {}", failure.text.lines().next().unwrap_or_default());
    }
    let is = |wanted: fn(&MilestoneState) -> bool| verdict.milestones.iter().filter(|m| wanted(&m.state)).count();
    let done = is(MilestoneState::seen);
    // The same as in the step's test: what is wrong comes before what is open further down.
    let next = verdict.milestones.iter().find(|milestone| milestone.state != MilestoneState::Done);
    if let Some(next) = next.filter(|_| verdict.next_todo().is_some()) {
        let how = match &next.state {
            MilestoneState::Open { place, .. } => format!(" at {place}"),
            MilestoneState::Wrong { text, .. } => format!(", wrong: {}", first_line(text)),
            MilestoneState::WaitsFor { id } => format!(", waits for {id}"),
            MilestoneState::NotReached { reason } => format!(", not reached: {}", first_line(reason)),
            MilestoneState::Flagged { part } => format!(": works here; see {part}"),
            MilestoneState::Done => String::new(),
        };
        return format!("{done} of {} TODOs done; next: {}{how}", verdict.milestones.len(), next.id);
    }
    let parts = |wanted: fn(&Outcome) -> bool| {
        let names: Vec<&str> = verdict.parts.iter().filter(|(_, o)| wanted(o)).map(|(part, _)| part.name()).collect();
        names.join(", ")
    };
    if verdict.only_unchecked() {
        return format!(
            "passed, except for what is not checked: {}",
            parts(|o| matches!(o, Outcome::NotChecked { .. }))
        );
    }
    let failed = parts(|outcome| matches!(outcome, Outcome::Failed { .. }));
    format!("no TODO is open, but it failed: {failed}")
}

/// What an explanation begins with.
fn first_line(text: &str) -> &str {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    first.trim_start_matches("error: ")
}

/// The list as text.
pub fn render(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.title.chars().count()).max().unwrap_or(0).max("title".len());
    let mut text = format!("{:<6}  {:<width$}  {:>6}  progress\n", "step", "title", "points");
    for row in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<6}  {:<width$}  {:>6}  {}", name(row.step), row.title, row.points, row.progress);
    }
    text
}
