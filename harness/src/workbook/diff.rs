//! The lines in which two texts differ.

use similar::{Algorithm, ChangeTag, TextDiff};
use std::fmt::Write;

/// Lines shown around a difference.
const CONTEXT: usize = 2;

/// The lines of two texts that differ, with two lines around them: `-` for the first text, `+` for the second, each with
/// the number that it has in its text. Empty if they are the same.
pub fn lines(first: &str, second: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).diff_slices(&a, &b);
    let mut text = String::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            text.push_str("  ...\n");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, at) = match change.tag() {
                ChangeTag::Equal => (' ', change.new_index()),
                ChangeTag::Insert => ('+', change.new_index()),
                ChangeTag::Delete => ('-', change.old_index()),
            };
            let number = at.unwrap_or_default() + 1;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", format!("{sign} {number:>4} {}", change.value()).trim_end());
        }
    }
    if text.is_empty() && first != second {
        text.push_str("  (only the ends of lines differ)\n");
    }
    text
}
