//! `results.json` of a Gradescope autograder: <https://gradescope-autograders.readthedocs.io/en/latest/specs/>.
//!
//! A test for each part of each step. All texts are sent as plain text: Gradescope shows them as they are.

use super::{comes_next, explanation, late, step_name};
use crate::json::{Report, State};
use crate::table::missing;
use harness::Part;
use serde_json::{Value, json};

/// The file's text.
pub(super) fn render(report: &Report) -> Result<String, String> {
    let mut output = Vec::new();
    let mut tests = Vec::new();
    for step in &report.steps {
        for (index, part) in step.parts.iter().enumerate() {
            let mut test = json!({
                "name": format!("{} {}: {}", step_name(step), step.title, part.part),
                "name_format": "text",
                "number": format!("{}.{}", step.step, index + 1),
                "score": part.points,
                "max_score": part.max_points,
                "output": explanation(step, part),
                "output_format": "text",
                "visibility": "visible",
                "tags": [part.part.name()],
            });
            // Without a status, Gradescope takes one from the score: what was not looked at would be a failure.
            match (part.outcome, part.part) {
                (State::Passed, _) => test["status"] = Value::from("passed"),
                (State::Failed, _) | (State::NotReached, Part::Correct) => test["status"] = Value::from("failed"),
                (State::NotChecked | State::NotReached, _) => {}
            }
            tests.push(test);
        }
        if let Some(next) = comes_next(step) {
            output.push(format!("{}: {next}", step_name(step)));
        }
    }
    if !report.not_handed_in.is_empty() {
        output.push(missing(report).trim().to_string());
    }
    if let Some(lateness) = report.late.as_ref().filter(|late| late.days > 0) {
        output.insert(0, late(lateness));
    }
    let seconds: f64 = report.steps.iter().map(|step| step.seconds).sum();
    let results = json!({
        "score": report.score,
        "execution_time": seconds.ceil(),
        "output": output.join("\n\n"),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": { "rubric": report.rubric, "versions": report.versions },
        "tests": tests,
    });
    serde_json::to_string_pretty(&results)
        .map(|text| text + "\n")
        .map_err(|error| format!("cannot write JSON: {error}"))
}
