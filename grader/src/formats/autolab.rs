//! The last two lines of an Autolab autograder: semantic feedback, and the scores. Autolab's guide for lab authors and its page on
//! formatted feedback describe both.
//!
//! A problem of the assessment is named as the step is: `step01`. Lateness costs nothing here, since Autolab has a rule of its own.

use super::{comes_next, explanation, step_name};
use crate::json::{Report, State};
use harness::workbook::name;
use serde_json::{Map, Value, json};

/// Both lines.
pub(super) fn render(report: &Report) -> Result<String, String> {
    let mut feedback = Map::new();
    let missing = report.not_handed_in.iter().map(|missing| name(missing.step));
    let stages: Vec<String> = report.steps.iter().map(step_name).chain(missing).collect();
    feedback.insert("_presentation".to_string(), Value::from("semantic"));
    feedback.insert("stages".to_string(), Value::from(stages));
    let mut scores = Map::new();
    for step in &report.steps {
        let mut tests = Map::new();
        for part in &step.parts {
            let passed = part.outcome == State::Passed;
            let test = if passed {
                json!({ "passed": true })
            } else {
                json!({ "passed": false, "hint": explanation(step, part) })
            };
            tests.insert(part.part.name().to_string(), test);
        }
        if let Some(next) = comes_next(step) {
            tests.insert("next".to_string(), json!({ "passed": false, "hint": next }));
        }
        feedback.insert(step_name(step), Value::from(tests));
        scores.insert(step_name(step), Value::from(step.points));
    }
    // Autolab keeps an earlier score of a problem that has none now.
    for step in report.not_handed_in.iter().map(|missing| name(missing.step)) {
        let hint = format!("{step} is not in what was handed in");
        feedback.insert(step.clone(), json!({ "handed in": { "passed": false, "hint": hint } }));
        scores.insert(step, Value::from(0.0));
    }
    // Each on one line: Autolab reads lines.
    Ok(format!("{}\n{}\n", Value::from(feedback), json!({ "scores": scores })))
}
