//! What the pages of the steps show of the code agrees with the code: hints with the solutions, and all else is taken from the untouched files.

#[allow(dead_code)]
#[path = "../tool/listings.rs"]
mod listings;
#[path = "../tool/untouched.rs"]
mod untouched;

use harness::workbook::Workspace;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(step: u32) -> String {
    let path = root().join(format!("book/src/step{step:02}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dense(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Where `line` ends in `code` at the earliest; `…` in it stands for anything.
fn find(code: &str, line: &str) -> Option<usize> {
    let mut at = 0;
    for piece in line.split('…') {
        at += code.get(at..)?.find(piece)? + piece.len();
    }
    Some(at)
}

/// `(number of the TODO, its lines)` of a solution.
fn regions(solution: &str) -> Vec<(String, String)> {
    let mut regions = Vec::new();
    for part in solution.split("// ANCHOR: todo_").skip(1) {
        let (name, rest) = part.split_once('\n').expect("a line behind an anchor");
        let lines = rest.split("// ANCHOR_END").next().unwrap_or_default();
        regions.push((name.trim().replace('_', "."), lines.to_string()));
    }
    regions
}

/// The Rust listings of a text.
fn listings(text: &str) -> Vec<String> {
    let listing = |part: &str| part.split("```").next().unwrap_or_default().to_string();
    text.split("```rust,ignore\n").skip(1).map(listing).collect()
}

/// What lacks of a TODO's hints: a nudge, where to look, and a part of the code, each folded into the one before.
fn stages(page: &str, todo: &str) -> Result<String, String> {
    let begin = format!("<details><summary>TODO {todo}: a nudge</summary>");
    let places = page.matches(&begin).count();
    if places != 1 {
        return Err(format!("TODO {todo}: {places} nudges"));
    }
    let rest = page.split(&begin).nth(1).unwrap_or_default();
    let whole = rest.split("</details>\n</details>\n</details>").next().unwrap_or_default();
    let stages: Vec<&str> = whole.split("<details><summary>").collect();
    let named =
        |index: usize, name: &str| stages.get(index).and_then(|stage| stage.strip_prefix(&format!("{name}</summary>")));
    match (stages.len(), named(1, "where to look"), named(2, "a part of the code")) {
        (3, Some(look), Some(code)) if [stages[0], look, code].iter().all(|stage| stage.trim().len() > 20) => {
            Ok(code.to_string())
        }
        _ => Err(format!(
            "TODO {todo}: a nudge, `where to look` and `a part of the code` must be folded into each other"
        )),
    }
}

/// Each fault of the stages is seen.
#[test]
fn hints_come_in_three_stages() {
    let fold = |name: &str, inside: &str| {
        format!("<details><summary>{name}</summary>\n\nThis is a text of some length.\n\n{inside}</details>\n")
    };
    let code = fold("a part of the code", "");
    let whole = fold("TODO 1.1: a nudge", &fold("where to look", &code));
    assert!(stages(&whole, "1.1").is_ok());
    for bad in
        [fold("TODO 1.1: a nudge", &code), fold("TODO 1.1: a nudge", &fold("where to look", "")), whole.repeat(2)]
    {
        assert!(stages(&bad, "1.1").is_err(), "{bad}");
    }
}

/// Each line of a hint stands in the solution's region, in the same order, with anything in place of `…`; and something is left to write.
#[test]
fn hints_agree_with_the_solutions() {
    let folder = root().join("solutions/src");
    if !folder.is_dir() {
        return; // the student edition has no solutions
    }
    let mut wrong = Vec::new();
    let mut seen = 0;
    for step in 1..=10 {
        let page = page(step);
        let solution = fs::read_to_string(folder.join(format!("step{step:02}.rs"))).expect("a solution");
        for (todo, region) in regions(&solution) {
            let code = match stages(&page, &todo) {
                Ok(code) => code,
                Err(why) => {
                    wrong.push(why);
                    continue;
                }
            };
            let Some(hint) = listings(&code).into_iter().next() else {
                wrong.push(format!("TODO {todo} has no hint with code"));
                continue;
            };
            seen += 1;
            let region = dense(&region);
            let mut rest = region.as_str();
            for line in hint.lines() {
                let line = dense(line);
                match find(rest, &line) {
                    // A bracket that closes may be that of a line that is not shown.
                    Some(_) if line.starts_with('}') => {}
                    Some(end) => rest = &rest[end..],
                    None => {
                        wrong.push(format!("TODO {todo}: the solution has no line like `{line}`, or not in this place"))
                    }
                }
            }
            let shown: usize = hint.lines().map(|line| dense(line).replace('…', "").len()).sum();
            if shown * 100 > region.len() * 95 {
                wrong.push(format!("TODO {todo}: the hint shows {shown} of {} characters", region.len()));
            }
        }
    }
    assert!(seen >= 70, "{seen} hints");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A page without its hints, the only listings that are typed.
fn without_hints(page: &str) -> String {
    let parts = page.split("<details><summary>TODO").enumerate().map(|(index, part)| match index {
        0 => part,
        _ => part.rsplit_once("</details>\n</details>\n</details>").map_or("", |(_, rest)| rest),
    });
    parts.collect()
}

/// Listings of a page that are not lines of the step's untouched file, taken from it while the book is built.
fn typed(step: u8, page: &str) -> Vec<String> {
    let taken = |line: &str| matches!(untouched::asked(line), Some(Ok(asked)) if asked.step == step);
    let listings = listings(&without_hints(page)).into_iter();
    listings.filter(|listing| listing.is_empty() || !listing.lines().all(taken)).collect()
}

/// What a page shows of the step's file, outside of hints, is taken from that file as the student gets it.
#[test]
fn listings_are_taken_from_the_untouched_files() {
    let steps = Workspace { root: root() };
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for step in 1..=10u8 {
        let page = page(step.into());
        seen += listings(&without_hints(&page)).len();
        wrong.extend(typed(step, &page).iter().map(|listing| {
            format!(
                "book/src/step{step:02}.md: this is typed, and the file may say something else tomorrow:\n{listing}  try: Write \
                 `{{{{#step {step}: how the first line begins … how the last one begins}}}}` (book/tool/untouched.rs)."
            )
        }));
        let file = steps.skeleton(step).expect("an untouched file");
        let shown = untouched::shown(&page, &|step| steps.skeleton(step));
        match shown {
            Err(error) => wrong.push(format!("book/src/step{step:02}.md, {error}")),
            // No solution is shown: each line is one that the student has.
            Ok(shown) => {
                let listings = listings(&without_hints(&shown));
                let lines = listings.iter().flat_map(|listing| listing.lines());
                // `…` stands for the lines of a block of which only the ends are shown.
                let others = lines.filter(|line| line.trim() != "…" && !dense(&file).contains(&dense(line)));
                wrong.extend(others.map(|line| format!("step {step}: no line of the file: {line}")));
            }
        }
    }
    assert!(seen >= 20, "{seen} listings");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let listing = |line: &str| format!("```rust,ignore\n{line}\n```\n");
    assert_eq!(typed(4, &listing("k.sync();")), ["k.sync();\n"], "a listing that is typed is seen");
    assert_eq!(typed(4, &listing("{{#step 5: k.sync();}}")).len(), 1, "and one of another step");
    assert!(typed(4, &listing("{{#step 4: k.sync();}}")).is_empty());
}

/// A listing that no test compares with code that compiles: neither one of a step's page, of which the tests above know, nor lines of
/// `listings/calls.rs`.
fn unchecked(page: &str, text: &str) -> Vec<String> {
    let is_step = page.strip_prefix("step").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let blocks = text.split("```rust").skip(1).filter_map(|block| block.split("```").next());
    let code = blocks.filter_map(|block| block.split_once('\n')).map(|(_, code)| code.trim().to_string());
    // The build refuses what is asked of a step and not there.
    let taken = |line: &str| line.starts_with("{{#include ../listings/calls.rs:") || untouched::asked(line).is_some();
    let included = |code: &str| code.lines().all(taken);
    code.filter(|code| !is_step && !included(code)).collect()
}

/// What looks like Rust is Rust: each listing stands in a file that a test compiles.
#[test]
fn every_rust_listing_is_compiled() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for entry in fs::read_dir(root().join("book/src")).expect("book/src").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".md") {
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a page");
        seen += text.matches("```rust").count();
        // The tests above read such blocks alone.
        let other = text.split("```rust").skip(1).filter(|block| !block.starts_with(",ignore\n")).count();
        wrong.extend(
            (other > 0).then(|| format!("book/src/{name}: {other} blocks of Rust do not begin with ```rust,ignore")),
        );
        wrong.extend(
            unchecked(&name, &text).iter().map(|code| format!("book/src/{name}: no test compiles this:\n{code}")),
        );
    }
    assert!(seen > 170, "{seen} listings");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let typed = "```rust,ignore\nk.sync();\n```";
    assert_eq!(unchecked("tma.md", typed), ["k.sync();"], "a listing that is typed into a page is seen");
    assert!(unchecked("step04.md", typed).is_empty());
}
