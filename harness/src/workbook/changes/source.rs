//! The source of two kernels: the lines that differ.
//!
//! Lines that differ in nothing but their indentation, or in the number of a TODO, count as the same: most of a step is
//! the step before, in a deeper block.

use super::table::WIDTH;
use colored::Colorize;
use similar::{Algorithm, ChangeTag, TextDiff};
use std::fmt::Write;

/// Lines shown around a difference.
const CONTEXT: usize = 3;

/// A line and its number in its file.
type Line<'a> = (usize, &'a str);

/// The lines in which two sources differ, as a unified diff.
pub(super) fn differences(files: [&str; 2], old: &str, new: &str) -> String {
    let (old, new) = (lines(old), lines(new));
    let alike = |lines: &[Line<'_>]| lines.iter().map(|(_, line)| plain(line)).collect::<Vec<String>>();
    let (plain_old, plain_new) = (alike(&old), alike(&new));
    let plain_old: Vec<&str> = plain_old.iter().map(String::as_str).collect();
    let plain_new: Vec<&str> = plain_new.iter().map(String::as_str).collect();
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).diff_slices(&plain_old, &plain_new);
    let mut text = format!("{}\n{}\n", format!("--- {}", files[0]).red(), format!("+++ {}", files[1]).green());
    let groups = diff.grouped_ops(CONTEXT);
    if groups.is_empty() {
        text.push_str("no line differs\n");
    }
    for group in &groups {
        let begin = group.first().map(|op| (op.old_range().start, op.new_range().start)).unwrap_or_default();
        let number = |lines: &[Line<'_>], at: usize| lines.get(at).map_or(lines.len() + 1, |(number, _)| *number);
        let head = format!("@@ line {} | line {} @@", number(&old, begin.0), number(&new, begin.1));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", head.blue());
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, line) = match change.tag() {
                ChangeTag::Delete => ('-', change.old_index().and_then(|at| old.get(at))),
                ChangeTag::Insert => ('+', change.new_index().and_then(|at| new.get(at))),
                ChangeTag::Equal => (' ', change.new_index().and_then(|at| new.get(at))),
            };
            for part in wrapped(line.map_or("", |(_, line)| line)) {
                let part = format!("{sign} {part}");
                let part = match sign {
                    '-' => part.trim_end().red().to_string(),
                    '+' => part.trim_end().green().to_string(),
                    _ => part.trim_end().to_string(),
                };
                let _ = writeln!(text, "{part}");
            }
        }
    }
    text
}

/// The lines that matter: without anchors, and without what a student's file says about itself.
fn lines(text: &str) -> Vec<Line<'_>> {
    let anchor = |line: &str| {
        let comment = line.trim().strip_prefix("//").map(str::trim_start);
        comment.is_some_and(|comment| comment.starts_with("ANCHOR:") || comment.starts_with("ANCHOR_END:"))
    };
    let about = |line: &&str| {
        let line = line.trim();
        line.is_empty() || (line.starts_with("//") && !line.starts_with("//!") && !line.starts_with("///"))
    };
    let head = text.lines().take_while(about).count();
    let numbered = text.lines().enumerate().skip(head).map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| !anchor(line)).collect()
}

/// A line without its indentation, and without the number of a TODO.
fn plain(line: &str) -> String {
    let line = line.trim();
    let rest = line.strip_prefix("// TODO ").and_then(|rest| rest.split_once(':'));
    match rest {
        Some((number, task)) if number.chars().all(|c| c.is_ascii_digit() || c == '.') => format!("// TODO:{task}"),
        _ => line.to_string(),
    }
}

/// A line in parts that fit the width, broken at spaces; what goes on is set deeper, or in a comment of
/// the same kind.
fn wrapped(line: &str) -> Vec<String> {
    const DEEPER: &str = "        ";
    let width = WIDTH - 2;
    let (indent, code) = line.split_at(line.len() - line.trim_start().len());
    let comment = ["//! ", "/// ", "// "].into_iter().find(|comment| code.starts_with(comment));
    let head = format!("{indent}{}", comment.unwrap_or(DEEPER));
    let mut parts = Vec::new();
    let mut rest = line.to_string();
    while rest.chars().count() > width {
        let limit = rest.char_indices().nth(width).map_or(rest.len(), |(at, _)| at);
        let Some(space) = rest[..limit].rfind(' ').filter(|at| *at > head.len()) else { break };
        let next = format!("{head}{}", rest[space..].trim_start());
        parts.push(rest[..space].to_string());
        rest = next;
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn what_differs_in_sources() {
        let old = "// Your file.\n\n//! Step 1\nfn kernel() {\n    // TODO 1.1: Go on.\n    // ANCHOR: todo_1_1\n    k.go_on();\n    \
                   // ANCHOR_END: todo_1_1\n    k.old();\n}\n";
        let new = "//! Step 2\nfn kernel() {\n    each(|k| {\n        // TODO 2.4: Go on.\n        k.go_on();\n        \
                   k.new_and_with_a_line_that_is_far_too_long(for_the_hundred_columns, that_a_terminal_has, today_or_ever);\n    });\n}\n";
        colored::control::set_override(false);
        expect![[r#"
            --- old.rs
            +++ new.rs
            @@ line 3 | line 1 @@
            - //! Step 1
            + //! Step 2
              fn kernel() {
            +     each(|k| {
                      // TODO 2.4: Go on.
                      k.go_on();
            -     k.old();
            +         k.new_and_with_a_line_that_is_far_too_long(for_the_hundred_columns, that_a_terminal_has,
            +                 today_or_ever);
            +     });
              }
        "#]]
        .assert_eq(&differences(["old.rs", "new.rs"], old, new));
        assert!(differences(["a", "b"], old, old).ends_with("no line differs\n"));
    }
}
