//! Listings of the pages of the steps: lines of a step's file as the student first gets it.
//!
//! `{{#step 7: let at = PipelineState::producer(t, PIPE_DEPTH);}}` is the line of step 7's file that begins so, and `{{#step 4: k.warp(0, |w|
//! { … t.repeat(gemm.tiles_k}}` all from the line that begins like the first text to the one that begins like the second. A block
//! that is open there is closed, and `…` stands for what is left out of it. The file is the untouched one: made from the solution, with a `todo` for each of its marked regions, or what the student edition holds. So a page can show
//! nothing of a solution, and what somebody writes into `steps/` changes no page.

use super::listings;

const BEGIN: &str = "{{#step ";
/// Stands for the lines between.
const BETWEEN: &str = " … ";

/// What a line of a page asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    pub step: u8,
    first: &'a str,
    last: &'a str,
}

/// What a line asks for; nothing, if it is another line.
///
/// # Errors
/// When it names no step or no line.
pub fn asked(line: &str) -> Option<Result<Asked<'_>, String>> {
    let inner = line.trim().strip_prefix(BEGIN)?;
    let asked = || {
        let (step, lines) = inner.strip_suffix("}}")?.split_once(": ")?;
        let (first, last) = lines.split_once(BETWEEN).unwrap_or((lines, lines));
        let (first, last) = (first.trim(), last.trim());
        (!first.is_empty() && !last.is_empty()).then_some(Asked { step: step.parse().ok()?, first, last })
    };
    Some(asked().ok_or_else(|| {
        format!(
            "`{}` does not say which lines\n  try: Write `{BEGIN}7: how its only line begins}}}}`, or `{BEGIN}7: how the first line \
             begins{BETWEEN}how the last one begins}}}}`.",
            line.trim()
        )
    }))
}

/// The text of a page with its listings in it; `untouched` gives the file of a step.
///
/// # Errors
/// When a listing stands nowhere in that file, or more than once, or the file is not there.
pub fn shown(text: &str, untouched: &dyn Fn(u8) -> Result<String, String>) -> Result<String, String> {
    let mut shown = String::with_capacity(text.len());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let lines = match asked(line) {
            None => line.to_string(),
            Some(asked) => asked
                .and_then(|asked| lines_of(&untouched(asked.step)?, &asked))
                .map_err(|error| format!("line {}: {error}", index + 1))?,
        };
        shown.push_str(&lines);
    }
    Ok(shown)
}

/// The lines that are asked for, moved to the left.
fn lines_of(file: &str, asked: &Asked) -> Result<String, String> {
    let lines: Vec<&str> = file.lines().collect();
    let begins = |index: usize, text: &str| lines[index].trim_start().starts_with(text);
    // From a last line up to the nearest first one, if no other last one is nearer to that.
    let found = (0..lines.len()).filter(|last| begins(*last, asked.last)).filter_map(|last| {
        let first = (0..=last).rev().find(|first| begins(*first, asked.first))?;
        (first..last).all(|between| !begins(between, asked.last)).then_some((first, last))
    });
    let found: Vec<(usize, usize)> = found.collect();
    let [(first, last)] = found.as_slice() else {
        return Err(format!(
            "from a line that begins with `{}` to one that begins with `{}`: this stands {} times in the untouched file of step {} \
             (allowed: once)\n  try: Copy the beginnings from that file (`cargo workbook reset step{:02}` writes it), as long as \
             there are others like them.",
            asked.first,
            asked.last,
            found.len(),
            asked.step,
            asked.step
        ));
    };
    let rest = closed(&lines, *first, *last);
    let shown: Vec<&str> = lines[*first..=*last].iter().copied().chain(rest.iter().map(String::as_str)).collect();
    Ok(listings::at_the_left(&shown))
}

/// What closes the blocks that are still open where a listing ends: their last lines, and `…` for what stands between.
fn closed(lines: &[&str], first: usize, last: usize) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut open = Vec::new();
    for line in &lines[first..=last] {
        if line.trim_start().starts_with('}') {
            open.pop();
        }
        if line.trim_end().ends_with('{') {
            open.push(indent(line));
        }
    }
    let (mut at, mut rest) = (last, Vec::new());
    for depth in open.into_iter().rev() {
        let closes = |line: &&str| line.trim_start().starts_with('}') && indent(line) == depth;
        let Some(end) = (at + 1..lines.len()).find(|end| closes(&lines[*end])) else { break };
        if end > at + 1 {
            rest.push(format!("{}…", " ".repeat(depth + 4)));
        }
        rest.push(lines[end].to_string());
        at = end;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn kernel() {\n    let a = 1;\n    k.warp(0, |w| {\n        w.todo(\"7.1\");\n    });\n    k.warp(0, |w| {\n        let b = 2;\n    });\n}\n";

    fn told(asks: &str) -> Result<String, String> {
        shown(&format!("```rust\n{{{{#step 7: {asks}}}}}\n```\n"), &|step| {
            (step == 7).then(|| FILE.to_string()).ok_or_else(|| format!("no step {step}"))
        })
    }

    #[test]
    fn lines_are_shown_from_the_first_to_the_last() {
        assert_eq!(told("let a = ").as_deref(), Ok("```rust\nlet a = 1;\n```\n"));
        assert_eq!(told("k.warp(0 … let b").as_deref(), Ok("```rust\nk.warp(0, |w| {\n    let b = 2;\n});\n```\n"));
        assert_eq!(
            told("k.warp(0, |w| { … w.todo").as_deref(),
            Ok("```rust\nk.warp(0, |w| {\n    w.todo(\"7.1\");\n});\n```\n")
        );
        assert_eq!(told("fn kernel() {").as_deref(), Ok("```rust\nfn kernel() {\n    …\n}\n```\n"));
        assert_eq!(shown("as it is\n", &|_| Err(String::new())).as_deref(), Ok("as it is\n"));
    }

    /// A listing that stands nowhere or twice, and one that is not understood, fail the build.
    #[test]
    fn what_stands_not_once_is_an_error() {
        for (asks, says) in [
            ("let c", "0 times"),
            ("k.warp(0", "2 times"),
            ("let b … let a", "0 times"),
            ("", "does not say which lines"),
            (" … let b", "does not say which lines"),
        ] {
            let error = told(asks).expect_err(asks);
            assert!(error.starts_with("line 2: ") && error.contains(says), "{asks}: {error}");
        }
        assert!(shown("{{#step 8: let a}}\n", &|step| Err(format!("no step {step}"))).is_err());
        assert!(shown("{{#step x: let a}}\n", &|_| Ok(FILE.into())).is_err());
    }
}
