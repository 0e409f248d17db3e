//! Where the numbers of a table are from.
//!
//! A table with numbers has a row or a column `source`, or a comment above it, with an empty line between:
//!
//! - `<!-- numbers: computed -->`: a claim covers each row with a number;
//! - `<!-- numbers: source TEXT -->`: TEXT names a source, and the reader sees it in the same section, at the head of the page or below "Sources";
//! - `<!-- numbers: given, WHY -->`: they are chosen, names, or follow from the row; WHY says how the reader checks them.
//!
//! Numbers between backticks or quotation marks are quoted, and those in links and behind "step" are names.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

pub const COMPUTED: &str = "computed";
pub const WAY_OUT: &str = "try: Put `<!-- numbers: computed -->`, `<!-- numbers: source TEXT -->` or `<!-- numbers: given, WHY -->` and an \
     empty line above the table; book/tests/numbers/tables.rs says what they mean.";
const BEGIN: &str = "<!-- numbers: ";
/// What the name of a source has in it.
const SOURCES: [&str; 9] =
    ["PTX ISA", "https://", "docs/", "data/", "cargo workbook ", "ptxas 1", " Guide", "SemiAnalysis", "H200"];

/// A table that has numbers.
pub struct Table {
    pub line: usize,
    /// Line and text of each row with a number.
    pub rows: Vec<(usize, String)>,
    pub mark: Option<String>,
    has_source: bool,
    begin: usize,
}

fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Whether a number stands here that is neither quoted nor the name of a step.
fn has_number(text: &str) -> bool {
    let unquoted: String = text.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let mut names_step = false;
    for word in unquoted.split(|c: char| c.is_whitespace() || "|/()[]".contains(c)).filter(|word| !word.is_empty()) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if matches!(bare.to_lowercase().as_str(), "step" | "steps") {
            names_step = true;
            continue;
        }
        let digits = bare.bytes().take_while(|byte| byte.is_ascii_digit() || b".,".contains(byte)).count();
        let is_number = digits > 0 && !bare[digits..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_number && !names_step {
            return true;
        }
        names_step &= !word.ends_with([',', ';', ':']) && (is_number || matches!(bare, "to" | "and" | "or"));
    }
    false
}

/// The comment that ends above this place, with nothing but an empty line between.
fn mark(text: &str, begin: usize) -> Option<String> {
    let above = text[..begin].trim_end();
    let last = &above[above.rfind('\n').map_or(0, |at| at + 1)..];
    Some(last.trim().strip_prefix(BEGIN)?.strip_suffix("-->")?.trim().to_string())
}

/// The tables of a page that have numbers.
pub fn of(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut row, mut begin, mut quoted, mut inside) = (String::new(), 0, 0, false);
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Table(_)) => {
                inside = true;
                let (line, mark) = (line(text, range.start), mark(text, range.start));
                tables.push(Table { line, rows: Vec::new(), mark, has_source: false, begin: range.start });
            }
            Event::End(TagEnd::Table) => inside = false,
            Event::Start(Tag::TableRow | Tag::TableHead) => (row, begin) = (String::new(), range.start),
            Event::End(kind @ (TagEnd::TableRow | TagEnd::TableHead)) if inside => {
                let table = tables.last_mut().expect("rows stand in tables");
                table.has_source |= match kind {
                    TagEnd::TableHead => row.split('|').any(|cell| cell.trim() == "source"),
                    _ => row.split('|').next().is_some_and(|cell| cell.trim() == "source"),
                };
                // Sizes and depths of the heading are what was asked for.
                if kind == TagEnd::TableRow && has_number(&row) {
                    table.rows.push((line(text, begin), text[range].trim().to_string()));
                }
            }
            Event::End(TagEnd::TableCell) => row.push('|'),
            Event::Start(Tag::Link { .. }) => quoted += 1,
            Event::End(TagEnd::Link) => quoted -= 1,
            Event::Text(said) if inside && quoted == 0 => row.push_str(&said),
            Event::Code(_) if inside => row.push('`'),
            _ => {}
        }
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// What a reader sees around a place: its section, the head of the page and its list of sources. Comments are not seen.
fn seen(text: &str, at: usize) -> String {
    let heads: Vec<usize> = text.match_indices("\n#").map(|(at, _)| at).collect();
    let from = heads.iter().rev().find(|head| **head < at).copied().unwrap_or(0);
    let to = heads.iter().find(|head| **head > at).copied().unwrap_or(text.len());
    let lead = text.find("\n## ").unwrap_or(text.len());
    let list = text.find("\n## Sources").unwrap_or(text.len());
    let mut visible = String::new();
    for part in [&text[..lead], &text[from..to], &text[list..]].join("\n").split("<!--") {
        visible.push_str(part.split_once("-->").map_or(part, |(_, shown)| shown));
    }
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Line and fault of each table that does not say where its numbers are from, and of each mark without such a table.
pub fn unexplained(text: &str) -> Vec<(usize, String)> {
    let (mut wrong, tables) = (Vec::new(), of(text));
    for table in &tables {
        let why = match table.mark.as_deref() {
            None if table.has_source => continue,
            None => format!("nothing says where the numbers of this table are from: {}", table.rows[0].1),
            Some(COMPUTED) => continue,
            Some(mark) => match (mark.strip_prefix("source "), mark.strip_prefix("given, ")) {
                (Some(source), _) if !SOURCES.iter().any(|word| source.contains(word)) => {
                    format!("`{source}` is no source (allowed: a text with one of {})", SOURCES.join(", "))
                }
                (Some(source), _) if !seen(text, table.begin).contains(source) => {
                    format!(
                        "a reader does not see the source `{source}` in this section, at the head of the page, nor below \"Sources\""
                    )
                }
                (Some(_), _) => continue,
                (None, Some(why)) if why.split_whitespace().count() >= 4 => continue,
                (None, Some(why)) => format!("`{why}` does not say how a reader checks these numbers"),
                (None, None) => format!("`{mark}` is no mark (allowed: computed, source TEXT, given, WHY)"),
            },
        };
        wrong.push((table.line, why));
    }
    let used = tables.iter().filter(|table| table.mark.is_some()).count();
    let marks = text.matches(BEGIN).count();
    if marks != used {
        wrong.push((1, format!("{marks} marks, of which {used} stand above a table with numbers")));
    }
    wrong
}

/// Each fault is seen, and what is in order is not.
#[test]
fn a_table_without_a_source_is_seen() {
    let page = |mark: &str, cell: &str| {
        format!(
            "# P\n\nlead, PTX ISA 1.2\n\n## S\n\n{mark}\n\n| a | b |\n|---|---|\n| x | {cell} |\n\n## T\n\nPTX ISA 7.7\n\n## Sources\n\nPTX ISA 8.8\n"
        )
    };
    let faults = |mark: &str, cell: &str| {
        unexplained(&page(mark, cell)).into_iter().map(|(line, why)| format!("{line}: {why}")).collect::<Vec<_>>()
    };
    let fine: [(&str, &str); 6] = [
        ("<!-- numbers: source PTX ISA 1.2 -->", "128 bytes"),
        ("<!-- numbers: given, counted from the row above -->", "128"),
        ("<!-- numbers: computed -->", "3,719"),
        ("text", "`128`, \"at 7\", [9](p.md), steps 4 to 6, FP16, 1x2"),
        ("text", "none"),
        ("<!-- numbers: source PTX ISA 8.8 -->", "V0, 128"),
    ];
    for (mark, cell) in fine {
        assert_eq!(faults(mark, cell), Vec::<String>::new(), "{mark} {cell}");
    }
    let bad = [
        ("text", "128 bytes", "nothing says"),
        ("text", "2-CTA", "nothing says"),
        ("text", "step 9, 128 rows", "nothing says"),
        ("text", "0–734", "nothing says"),
        ("<!-- numbers: source PTX ISA 7.7 -->", "128", "does not see"),
        ("<!-- numbers: source hearsay -->", "128", "is no source"),
        ("<!-- numbers: given, why -->", "128", "does not say how"),
        ("<!-- numbers: known -->", "128", "is no mark"),
        ("<!-- numbers: computed -->", "none", "1 marks, of which 0"),
    ];
    for (mark, cell, expected) in bad {
        let found = faults(mark, cell);
        assert!(found.len() == 1 && found[0].contains(expected), "{mark} {cell}: {found:?}");
    }
    let with_row = "| | |\n|---|---|\n| bytes | 16 |\n| source | PTX ISA, st |\n";
    assert!(unexplained(with_row).is_empty() && of(with_row).len() == 1);
}
