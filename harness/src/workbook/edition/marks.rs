//! Marks in texts that differ between the full tree and the student edition.
//!
//! In comments of Markdown and TOML:
//!
//! | mark | in the student edition |
//! |---|---|
//! | `full tree only` at the end of a line | without the line |
//! | `full tree only: begin` … `full tree only: end`, lines of their own | without them and what stands between |
//! | `student edition: TEXT`, a comment that is a line of its own | TEXT |

/// The text as the student edition has it. `file` is its path, for messages.
pub(super) fn apply(file: &str, text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut open = None;
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| Err(format!("{file}:{}: {what}\n  try: Give each `begin` its `end`.", index + 1));
        match (mark(line), open) {
            (Some(Mark::Begin), Some(_)) => return wrong("`full tree only: begin` within another one"),
            (Some(Mark::Begin), None) => open = Some(index + 1),
            (Some(Mark::End), None) => return wrong("`full tree only: end` without a `begin` above it"),
            (Some(Mark::End), Some(_)) => open = None,
            (_, Some(_)) | (Some(Mark::Line), None) => {}
            (Some(Mark::Student(other)), None) => {
                out.push_str(other);
                out.push('\n');
            }
            (None, None) => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    match open {
        Some(line) => {
            Err(format!("{file}:{line}: `full tree only: begin` has no end\n  try: Give each `begin` its `end`."))
        }
        None => Ok(out),
    }
}

enum Mark<'a> {
    Begin,
    End,
    Line,
    Student(&'a str),
}

/// The mark of a line: what its last comment says.
fn mark(line: &str) -> Option<Mark<'_>> {
    let line = line.trim();
    let (before, comment) = match line.strip_suffix("-->") {
        Some(rest) => rest.rsplit_once("<!--")?,
        None => line.rsplit_once('#')?,
    };
    let alone = before.trim().is_empty();
    match comment.trim() {
        "full tree only: begin" if alone => Some(Mark::Begin),
        "full tree only: end" if alone => Some(Mark::End),
        "full tree only" => Some(Mark::Line),
        text if alone => text.strip_prefix("student edition: ").map(Mark::Student),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_followed() {
        let text = "# Title\n| a | <!-- full tree only -->\n| b |\n<!-- student edition: | c | -->\n\
                    # full tree only: begin\nx = 1\n# full tree only: end\ny = 2 # kept\nz = 3 # full tree only\n";
        assert_eq!(apply("f", text).unwrap(), "# Title\n| b |\n| c |\ny = 2 # kept\n");
        let error = |text: &str| apply("a.md", text).unwrap_err();
        let begin = "<!-- full tree only: begin -->\n";
        let end = "<!-- full tree only: end -->\n";
        assert!(error(&format!("\n{begin}x\n")).starts_with("a.md:2: `full tree only: begin` has no end\n"));
        assert!(error(end).starts_with("a.md:1: `full tree only: end` without"));
        assert!(error(&format!("{begin}{begin}{end}")).starts_with("a.md:2: `full tree only: begin` within"));
    }
}
