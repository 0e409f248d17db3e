//! A grade as a table for a spreadsheet: a row for each step. What lateness costs is of the whole hand-in, and the same in each row.

use super::not_graded::{Fault, NotGraded};
use super::step_name;
use crate::advice::Next;
use crate::json::Report;
use harness::Part;
use harness::answers::plain;

/// The table.
pub(super) fn render(report: &Report) -> Result<String, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head()).map_err(failed)?;
    let late = match &report.late {
        Some(late) => [late.days.to_string(), late.points_lost.to_string(), report.score.to_string()],
        None => [String::new(), String::new(), report.score.to_string()],
    };
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
        row.extend(late.clone());
        let stopped: Vec<&str> = step.stopped.iter().map(|one| one.text.as_str()).collect();
        row.push(harmless(&stopped.join("; ")));
        writer.write_record(row).map_err(failed)?;
    }
    text(writer)
}

fn head() -> Vec<&'static str> {
    let head = ["step", "title", "points", "max_points", "passed"].into_iter().chain(Part::ALL.map(Part::name));
    head.chain(["device", "next", "late_days", "late_points_lost", "score", "stopped"]).collect()
}

/// One row with the reason, and no points: that there is no grade is not the grade 0.
pub(super) fn not_graded(why: &NotGraded) -> Result<String, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head()).map_err(failed)?;
    let row = head().into_iter().map(|column| match column {
        "step" => "hand-in".to_string(),
        "title" => "not graded".to_string(),
        "passed" => "false".to_string(),
        "next" => harmless(&why.text()),
        "stopped" if why.fault == Fault::HandIn => harmless(&format!("refused: {}", why.reason)),
        _ => String::new(),
    });
    writer.write_record(row).map_err(failed)?;
    text(writer)
}

fn text(writer: csv::Writer<Vec<u8>>) -> Result<String, String> {
    let bytes = writer.into_inner().map_err(|error| failed(error.error()))?;
    String::from_utf8(bytes).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("cannot write CSV: {error}")
}

/// A text that no spreadsheet takes for a formula, and that stays on one line. Some split at `;`, whatever stands in quotes: then each
/// piece is a cell.
pub(crate) fn harmless(text: &str) -> String {
    // The last four are those of the first that Japanese writes wide.
    const BEGINS: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
    let skipped = |c: char| c.is_whitespace() || matches!(c, '"' | '\u{fffd}');
    let text = plain(text).replace(['\n', '\t'], " ");
    let piece = |piece: &str| match piece.trim_start_matches(skipped).starts_with(BEGINS) {
        true => format!("'{piece}"),
        false => piece.to_string(),
    };
    text.split(';').map(piece).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_wherever_a_spreadsheet_splits() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("Müller-Lüdenscheidt; Anna", "Müller-Lüdenscheidt; Anna"),
            ("anna;=cmd|'/c calc'!A0", "anna;'=cmd|'/c calc'!A0"),
            ("a; \"@SUM(1)", "a;' \"@SUM(1)"),
            ("\t-2", "' -2"),
            ("\r\n+2", "'\u{fffd} +2"),
            ("\u{202e}=x", "'\u{fffd}=x"),
            ("\u{ff1d}1;;\u{ff20}", "'\u{ff1d}1;;'\u{ff20}"),
            ("a = b - c", "a = b - c"),
        ] {
            assert_eq!(harmless(text), cell, "{text:?}");
        }
    }
}
