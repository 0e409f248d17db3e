//! The reports that pages print whole: each kernel is judged again, and the lines that are shown must be in what is said of it, in their order,
//! with the numbers that they have in the file of a reader whose step is done.

use super::{at_all_sizes, closely, page, step_of};
use harness::verdict::{MilestoneState, Outcome, Verdict};
use harness::{report, skeleton};
use std::path::Path;

/// Page, and the kernel in `solutions/edited` of each of its reports, in their order; `findings/CODE` is the output of that name,
/// which another test compares.
const REPORTS: &[(&str, &[&str])] = &[
    (
        "hangs.md",
        &[
            "load_begins_with_0_7",
            "no_commit_1",
            "one_warp_8",
            "ring_of_two_8",
            "one_arrives_7",
            "bytes_of_both_5",
            "own_barrier_9",
            "mask_is_the_count_9",
            "rounds_differ_7",
            "parity_of_the_round_5",
            "one_named_barrier_10",
        ],
    ),
    ("reading-a-finding.md", &["no_proxy_fence_1", "no_wait_ld_1", "waits_too_late_5", "findings/can-hang"]),
    ("wrong-results.md", &["column_of_the_tile_3", "d_row_after_row_4"]),
];

/// How a block begins that is a report.
const BEGINS: [&str; 6] = ["error[", "finding[", "note[", "error: ", "a part of D", "Under the schedule of "];

/// A line, as it is compared: the number of a source line apart from its text, without what only sets it.
#[derive(Debug, PartialEq, Eq, Clone)]
struct Line {
    number: Option<u32>,
    text: String,
}

fn line(text: &str, number_of: impl Fn(u32) -> u32) -> Line {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((number, code)) = text.split_once(" |") {
        if let Ok(number) = number.trim().parse() {
            return Line { number: Some(number_of(number)), text: words(code) };
        }
        if number.trim().is_empty() {
            return Line { number: None, text: words(code) };
        }
    }
    if let Some(place) = text.trim_start().strip_prefix("--> ") {
        let mut parts = place.trim().rsplitn(3, ':');
        let (column, number) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return Line { number: number.parse().ok().map(number_of), text: format!("--> column {column}") };
    }
    Line { number: None, text: words(text.trim_start().trim_start_matches('|')) }
}

/// Lines of a page, in groups that stand together: `...` and `…` stand for what is left out.
fn groups(block: &str) -> Vec<Vec<Line>> {
    let mut groups = vec![Vec::new()];
    for text in block.lines().filter(|text| !text.trim().is_empty()) {
        if matches!(text.trim(), "..." | "…") {
            groups.push(Vec::new());
        } else {
            let bare = line(text, |number| number);
            // The bar alone is air.
            if !(bare.text.is_empty() && bare.number.is_none()) {
                groups.last_mut().expect("there is one").push(bare);
            }
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// Whether a line of a page is this one; `…` in it stands for what a TODO lets the reader find.
fn fits(shown: &Line, said: &Line) -> bool {
    let mut rest = said.text.as_str();
    let mut pieces = shown.text.split('…');
    let begins = pieces.next().and_then(|first| rest.strip_prefix(first));
    let Some(after) = begins else { return false };
    rest = after;
    let pieces: Vec<&str> = pieces.collect();
    for (index, piece) in pieces.iter().enumerate() {
        let found = if index + 1 == pieces.len() { rest.rfind(piece) } else { rest.find(piece) };
        let Some(at) = found else { return false };
        rest = &rest[at + piece.len()..];
    }
    shown.number == said.number && rest.is_empty()
}

/// The first group of a page that a text has not behind the others.
fn missing(groups: &[Vec<Line>], text: &[Line]) -> Option<Vec<Line>> {
    let mut rest = text;
    for group in groups {
        match rest
            .windows(group.len())
            .position(|window| group.iter().zip(window).all(|(shown, said)| fits(shown, said)))
        {
            Some(at) => rest = &rest[at + group.len()..],
            None => return Some(group.clone()),
        }
    }
    None
}

/// The texts of a verdict: what is shown, and each part's and each milestone's own.
fn texts(verdict: &Verdict) -> Vec<String> {
    let parts = verdict.parts.iter().filter_map(|(_, outcome)| match outcome {
        Outcome::Failed { text, .. } => Some(text.clone()),
        _ => None,
    });
    let milestones = verdict.milestones.iter().filter_map(|milestone| match &milestone.state {
        MilestoneState::Wrong { text, .. } => Some(text.clone()),
        _ => None,
    });
    [report::render(verdict)].into_iter().chain(parts).chain(milestones).collect()
}

/// Where a line of an edited solution stands in the file of a reader whose step is done so.
fn numbers(kernel: &str) -> impl Fn(u32) -> u32 + use<> {
    let file = Path::new(edited::FOLDER).join(format!("{kernel}.rs"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let solved = skeleton::solved(step_of(kernel), &text);
    // What is no line of that file is no line of a page.
    move |number| solved.line(number).unwrap_or_default()
}

/// What is not said of a kernel that a report shows.
fn unsaid(groups: &[Vec<Line>], verdict: &Verdict, kernel: &str) -> Option<String> {
    let number_of = numbers(kernel);
    let mut nearest: Option<(usize, String)> = None;
    for text in texts(verdict) {
        let lines: Vec<Line> = (text.lines().map(|text| line(text, &number_of)))
            .filter(|line| !(line.text.is_empty() && line.number.is_none()) && line.text != "...")
            .collect();
        // A text that has all of it is enough.
        let group = missing(groups, &lines)?;
        let begins = lines.iter().filter(|line| groups.iter().flatten().any(|known| fits(known, line))).count();
        if nearest.as_ref().is_none_or(|(best, _)| begins > *best) {
            let numbered = lines.iter().map(|line| match line.number {
                Some(number) => format!("{number} | {}", line.text),
                None => line.text.clone(),
            });
            let said = numbered.collect::<Vec<_>>().join("\n");
            nearest = Some((begins, format!("nothing says, in this order:\n{group:#?}\nsaid is:\n{said}")));
        }
    }
    nearest.map(|(_, why)| why)
}

#[test]
fn reports_are_what_the_verdict_says() {
    let mut wrong = Vec::new();
    for (name, kernels) in REPORTS {
        let text = page(name);
        let blocks: Vec<&str> = text.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        let reports: Vec<&str> =
            blocks.into_iter().filter(|b| BEGINS.iter().any(|begin| b.starts_with(begin))).collect();
        assert_eq!(reports.len(), kernels.len(), "book/src/{name}: a kernel for each report");
        for (report, kernel) in reports.iter().zip(*kernels) {
            let groups = groups(report);
            if kernel.starts_with("findings/") {
                let lines: Vec<Line> = page(&format!("{kernel}.txt")).lines().map(|text| line(text, |n| n)).collect();
                wrong.extend(missing(&groups, &lines).map(|group| format!("book/src/{name}, {kernel}: {group:#?}")));
                continue;
            }
            // Some show at another size only.
            let why = unsaid(&groups, &closely(kernel), kernel).and_then(|why| {
                let whole = unsaid(&groups, &at_all_sizes(kernel), kernel)?;
                Some(format!("{why}\nor, at all sizes: {whole}"))
            });
            wrong.extend(why.map(|why| {
                format!("book/src/{name}, \"{}\" ({kernel}): {why}", report.lines().next().unwrap_or_default())
            }));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Another number of a line, another word, another order and a line between are seen.
#[test]
fn a_stale_report_is_seen() {
    let said = "error[hang]: it never ends\n --> a.rs:7:9\n  |\n7 |   t.wait(b);\n  |     ^^^^ warp 7 waits\n9 |  k.sync();\n  = try: x\n";
    let said: Vec<Line> =
        said.lines().map(|text| line(text, |n| n + 10)).filter(|line| !line.text.is_empty()).collect();
    let stands = |block: &str| missing(&groups(block), &said).is_none();
    assert!(stands(
        "error[hang]: it never ends\n   --> steps/step01/src/kernel.rs:17:9\n    |\n 17 | t.wait(b);\n    |   ^^^^ warp 7 waits\n...\n    = try: x\n"
    ));
    assert!(!stands("error[hang]: it never ends\n   --> steps/step01/src/kernel.rs:17:8\n"));
    assert!(!stands(" 16 | t.wait(b);\n"));
    assert!(!stands(" 17 | t.wait(c);\n"));
    assert!(!stands(" 17 | t.wait(b);\n 19 | k.sync();\n"));
    assert!(!stands(" 19 | k.sync();\n...\n 17 | t.wait(b);\n"));
    assert!(stands(" 17 | t.wait(…);\n"));
    assert!(!stands(" 17 | t.wait(…)\n"));
    assert!(!stands(" 17 | k.wait(…);\n"));
    assert!(!stands(" 16 | t.wait(…);\n"));
}
