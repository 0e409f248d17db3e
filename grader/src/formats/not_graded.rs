//! What is written when there is no grade, in each format but the table: Gradescope's and Autolab's students would see only that the
//! autograder failed, and who reads a file would find none.
//!
//! Whose fault it is decides. A hand-in that is refused has no points, and the reason is shown. Where the machine or the course is at
//! fault, **no score is sent**: nobody gets a 0 for that. Gradescope then says that the autograder failed to execute and gives none. Autolab
//! keeps the scores that are there; without any it writes 0 by itself, so the text says that this is no grade.

use super::{Format, csv, html, junit};
use crate::json::{SCHEMA, written};
use harness::answers::plain;
use harness::workbook::name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Whose fault it is that there is no grade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The hand-in's: it is refused, or holds no kernel.
    HandIn,
    /// The machine's, or the course's: no compiler, no sandbox, a rubric that cannot be read.
    Here,
}

/// Why there is no grade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotGraded {
    /// Whose fault it is.
    pub fault: Fault,
    /// It holds no kernel that was asked for: nothing was there to refuse.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_kernel: bool,
    /// The reason, with the way out.
    pub reason: String,
}

/// What is not the hand-in's fault unless somebody says so.
impl From<String> for NotGraded {
    fn from(reason: String) -> NotGraded {
        NotGraded { fault: Fault::Here, no_kernel: false, reason }
    }
}

impl NotGraded {
    /// The hand-in's fault.
    pub fn hand_in(reason: String) -> NotGraded {
        NotGraded { fault: Fault::HandIn, no_kernel: false, reason }
    }

    /// The hand-in's fault: it holds no kernel that was asked for.
    pub fn no_kernel(reason: String) -> NotGraded {
        NotGraded { no_kernel: true, ..NotGraded::hand_in(reason) }
    }

    /// What a student is told.
    pub(super) fn text(&self) -> String {
        let reason: Vec<String> = self.reason.lines().map(plain).collect();
        let reason = reason.join("\n");
        match self.fault {
            Fault::HandIn => format!("The hand-in is not graded, and has no points.\n\n{reason}"),
            Fault::Here => format!(
                "The hand-in could not be graded: ask the course.\nThis is not the fault of the hand-in, and no grade.\n\n{reason}"
            ),
        }
    }
}

/// What is written in place of a grade of these steps. Nothing as text: a person reads the error.
///
/// # Errors
/// When it cannot be written in that format.
pub fn render(format: Format, why: &NotGraded, steps: &[u8]) -> Result<String, String> {
    match format {
        Format::Gradescope => Ok(gradescope(why)),
        Format::Autolab => Ok(autolab(why, steps)),
        Format::Json => Ok(written(&json!({ "schema": SCHEMA, "not_graded": why }))? + "\n"),
        Format::Junit => junit::not_graded(why),
        Format::Csv => csv::not_graded(why),
        Format::Html => Ok(html::not_graded(None, &why.text())),
        Format::Text => Ok(String::new()),
    }
}

/// What `render` wrote as JSON: why there is no grade.
pub fn parse(json: &[u8]) -> Option<NotGraded> {
    /// The one object.
    #[derive(Deserialize)]
    struct Written {
        schema: u32,
        not_graded: NotGraded,
    }
    let written: Written = serde_json::from_slice(json).ok()?;
    (written.schema == SCHEMA).then_some(written.not_graded)
}

fn gradescope(why: &NotGraded) -> String {
    let mut results = json!({
        "output": why.text(),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
    });
    if why.fault == Fault::HandIn {
        results["score"] = Value::from(0.0);
        results["tests"] = Value::Array(Vec::new());
    }
    format!("{results:#}\n")
}

fn autolab(why: &NotGraded, steps: &[u8]) -> String {
    if why.fault == Fault::Here {
        return why.text() + "\n";
    }
    let test = json!({ "hand-in": { "passed": false, "hint": why.text() } });
    let feedback = json!({ "_presentation": "semantic", "stages": ["hand-in"], "hand-in": test });
    let scores: Map<String, Value> = steps.iter().map(|step| (name(*step), Value::from(0.0))).collect();
    format!("{feedback}\n{}\n", json!({ "scores": scores }))
}
