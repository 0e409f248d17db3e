//! Two kernels side by side.

use colored::Colorize;
use std::fmt::Write;

/// What one thing is in each of the two; none where it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub label: String,
    pub cells: [Option<String>; 2],
}

/// Columns of text that a line may take.
pub(super) const WIDTH: usize = 100;

/// Rows of two lists with labels: those of the first in its order, then what the second has alone.
pub(super) fn joined(lists: [Vec<(String, String)>; 2]) -> Vec<Row> {
    let [first, mut second] = lists;
    let mut rows = Vec::new();
    for (label, cell) in first {
        let other = second.iter().position(|(other, _)| *other == label).map(|at| second.remove(at).1);
        rows.push(Row { label, cells: [Some(cell), other] });
    }
    rows.extend(second.into_iter().map(|(label, cell)| Row { label, cells: [None, Some(cell)] }));
    rows
}

/// A table. Rows that differ have a `*` in front.
pub(super) fn table(title: &str, names: &[String; 2], rows: &[Row]) -> String {
    const MARK: usize = 2;
    const GAP: usize = 2;
    // So that most tables have the same columns; no title is longer.
    const LEAST: usize = 26;
    let mut text = "\n".to_string();
    let longest = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let label = longest(&|row| row.label.chars().count()).max(LEAST);
    let first = longest(&|row| row.cells[0].as_ref().map_or(1, |cell| cell.chars().count())).max(names[0].len());
    // The second column begins in the middle of what is left, or where the first one ends.
    let first = first.max(WIDTH.saturating_sub(MARK + label + 2 * GAP) / 2);
    let line = |mark: &str, start: &str, cells: [&str; 2]| {
        let whole = format!("{mark:<MARK$}{start:<label$}{:GAP$}{:<first$}{:GAP$}{}", "", cells[0], "", cells[1]);
        whole.trim_end().to_string()
    };
    let cut = title.len().min(MARK);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", line(&title[..cut], &title[cut..], [&names[0], &names[1]]).bold());
    for row in rows {
        let differs = row.cells[0] != row.cells[1];
        let cells = row.cells.each_ref().map(|cell| cell.as_deref().unwrap_or("-"));
        let line = line(if differs { "*" } else { "" }, &row.label, cells);
        let _ = if differs { writeln!(text, "{}", line.yellow()) } else { writeln!(text, "{line}") };
    }
    text
}
