//! Listings of `listings/calls.rs`, moved to the left: they stand deep in a kernel.
//!
//! The `mdbook` program shows them as they stand.

/// How a page asks for the lines between two anchors.
const INCLUDE: &str = "{{#include ../listings/calls.rs:";

/// The text of a page with its listings in it. What asks for an anchor that is not there stays.
pub fn shown(text: &str, source: &str) -> String {
    let line = |line: &str| {
        let name = line.trim_end().strip_prefix(INCLUDE).and_then(|rest| rest.strip_suffix("}}"));
        name.and_then(|name| region(source, name)).unwrap_or_else(|| line.to_string())
    };
    text.split_inclusive('\n').map(line).collect()
}

/// The lines between two anchors, without the blanks that all of them begin with.
fn region(source: &str, name: &str) -> Option<String> {
    let (begin, end) = (format!("// ANCHOR: {name}"), format!("// ANCHOR_END: {name}"));
    let lines = source.lines().skip_while(|line| line.trim() != begin).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| line.trim() != end).collect();
    (!lines.is_empty()).then(|| at_the_left(&lines))
}

/// Lines without the blanks that all of them begin with.
pub fn at_the_left(lines: &[&str]) -> String {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let least = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or_default();
    lines.iter().map(|line| format!("{}\n", line.get(least..).unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_begin_at_the_left() {
        let source = "fn a() {\n    // ANCHOR: b\n    c(|| {\n        d();\n    });\n    // ANCHOR_END: b\n}\n";
        let page = |name: &str| format!("```rust\n{INCLUDE}{name}}}}}\n```\n");
        assert_eq!(shown(&page("b"), source), "```rust\nc(|| {\n    d();\n});\n```\n");
        assert_eq!(shown(&page("x"), source), page("x"));
    }
}
