//! A grade as a table for a spreadsheet: a row for each step.

use super::step_name;
use crate::advice::Next;
use crate::json::Report;
use harness::Part;

/// The table.
pub(super) fn render(report: &Report) -> Result<String, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let parts = Part::ALL.map(Part::name);
    let head = ["step", "title", "points", "max_points", "passed"].into_iter().chain(parts).chain(["device", "next"]);
    writer.write_record(head).map_err(failed)?;
    for step in &report.steps {
        let mut row = vec![
            step_name(step),
            step.title.clone(),
            step.points.to_string(),
            step.max_points.to_string(),
            step.passed.to_string(),
        ];
        row.extend(step.parts.iter().map(|part| part.outcome.words().to_string()));
        row.push(step.device.clone());
        row.push(harmless(&step.next.as_ref().map(Next::line).unwrap_or_default()));
        writer.write_record(row).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.error()))?;
    String::from_utf8(bytes).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("cannot write CSV: {error}")
}

/// A text that no spreadsheet takes for a formula, and that stays on one line.
pub(crate) fn harmless(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim_start().starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text }
}
