//! A grade as JSON. The shape is documented in `docs/grader.md`, and only grows.

use crate::{Grade, Graded};
use harness::{MilestoneState, Outcome};
use serde::Serialize;

/// The version of the shape: a reader that knows it can read all that follow within the same number.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    passed: bool,
    allow_unchecked: bool,
    seed: Option<u64>,
    points: f64,
    max_points: u32,
    steps: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Step<'a> {
    step: u8,
    title: &'a str,
    file: Option<&'a str>,
    device: &'a str,
    passed: bool,
    points: f64,
    max_points: u32,
    build_failure: Option<&'a str>,
    parts: Vec<Part<'a>>,
    milestones: Vec<Milestone<'a>>,
    seconds: f64,
}

#[derive(Serialize)]
struct Part<'a> {
    part: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    text: &'a str,
}

#[derive(Serialize)]
struct Milestone<'a> {
    id: &'a str,
    title: &'a str,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Two decimals, the same that the table shows: binary fractions have more.
fn rounded(number: f64) -> f64 {
    format!("{number:.2}").parse().unwrap_or(number)
}

/// The grade as one JSON object, with line breaks.
///
/// # Errors
/// When a number in it cannot be written as JSON.
pub fn render(grade: &Grade) -> Result<String, String> {
    let report = Report {
        schema: SCHEMA,
        passed: grade.passed(),
        allow_unchecked: grade.allow_unchecked,
        seed: grade.seed,
        points: rounded(grade.points()),
        max_points: grade.max_points(),
        steps: grade.steps.iter().map(step).collect(),
    };
    serde_json::to_string_pretty(&report).map(|text| text + "\n").map_err(|error| format!("cannot write JSON: {error}"))
}

fn step(graded: &Graded) -> Step<'_> {
    let verdict = &graded.verdict;
    Step {
        step: verdict.step,
        title: &verdict.title,
        file: graded.file.as_deref(),
        device: &verdict.device,
        passed: verdict.passed(),
        points: rounded(verdict.points),
        max_points: verdict.max_points,
        build_failure: verdict.build_failure.as_deref(),
        parts: verdict.parts.iter().map(|(part, outcome)| self::part(part.name(), outcome)).collect(),
        milestones: verdict.milestones.iter().map(milestone).collect(),
        seconds: rounded(verdict.seconds),
    }
}

fn part<'a>(part: &'a str, outcome: &'a Outcome) -> Part<'a> {
    let (outcome, title, text) = match outcome {
        Outcome::Passed { detail } => ("passed", None, detail),
        Outcome::Failed { title, text } => ("failed", Some(title.as_str()), text),
        Outcome::NotChecked { reason } => ("not_checked", None, reason),
        Outcome::NotReached { reason } => ("not_reached", None, reason),
    };
    Part { part, outcome, title, text }
}

fn milestone(result: &harness::MilestoneResult) -> Milestone<'_> {
    let (state, text) = match &result.state {
        MilestoneState::Done => ("done", None),
        MilestoneState::Flagged { part } => ("flagged", Some(part.to_string())),
        MilestoneState::Open { place } => ("open", Some(place.to_string())),
        MilestoneState::Wrong { text } => ("wrong", Some(text.clone())),
        MilestoneState::NotReached { reason } => ("not_reached", Some(reason.clone())),
    };
    Milestone { id: &result.id, title: &result.title, state, text }
}
