//! What pages show of a student's file: the number of each line is the one that the student sees, and no TODO is given away before its hints.

use super::page;
use harness::workbook::Workspace;
use harness::{InProcess, JudgeOptions, diagnostics::Sources, judge, report, skeleton, step};
use ptx::{Cta, Gemm};
use std::fs;
use std::path::Path;

/// Pages whose reports `reports.rs` compares, with their numbers.
const REPORTED: [&str; 3] = ["hangs.md", "reading-a-finding.md", "wrong-results.md"];
/// How the block begins that shows the first run of step 1.
const FIRST_RUN: &str = "---- todo_1.1 ----\n";
/// Characters, blanks apart, of a line that is long enough to be an answer.
const AN_ANSWER: usize = 22;

fn workspace() -> Workspace {
    Workspace { root: Path::new(env!("CARGO_MANIFEST_DIR")).join("..") }
}

fn pages() -> Vec<String> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).expect("book/src").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    names.sort();
    names
}

fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next())
}

/// The line of a text, from 1, that holds something.
fn line_with(text: &str, what: &str) -> usize {
    let found: Vec<usize> = (1..).zip(text.lines()).filter(|(_, line)| line.contains(what)).map(|(n, _)| n).collect();
    assert_eq!(found.len(), 1, "`{what}` stands once");
    found[0]
}

/// All that a run says of an untouched file is said of its first TODO.
fn untouched(k: &mut Cta, _: &Gemm) {
    k.threads(128);
    k.todo("1.1");
}

#[test]
fn the_first_run_is_what_step_1_shows() {
    colored::control::set_override(false);
    let verdict = judge(
        step(1).expect("a step"),
        &InProcess(untouched),
        &JudgeOptions { seeds: 0, sources: Sources::none(), ..JudgeOptions::default() },
    );
    let said = report::next_todo(&verdict).expect("a TODO is open");
    // This kernel's only line that matters stands here and not in the student's file.
    let file = workspace().skeleton(1).expect("an untouched file");
    let place = format!("  --> steps/step01/src/kernel.rs:{}", line_with(&file, "todo(\"1.1\")"));
    let said: String = said
        .lines()
        .map(|line| if line.trim_start().starts_with("-->") { format!("{place}\n") } else { format!("{line}\n") })
        .collect();
    let text = page("step01.md");
    let shown: Vec<&str> = blocks(&text).filter_map(|block| block.strip_prefix(FIRST_RUN)).collect();
    assert_eq!(shown, [said.as_str()], "book/src/step01.md");
}

/// A number of a line is either one that a test compares, or is not on a page.
#[test]
fn each_number_of_a_line_is_compared() {
    let mut wrong = Vec::new();
    let solution = solutions::TEXTS.iter().find(|(number, _)| *number == 1).expect("a solution").1;
    let file = skeleton::solved(1, solution).text;
    for name in pages().iter().filter(|name| !REPORTED.contains(&name.as_str())) {
        let text = page(name);
        let first_run = blocks(&text).filter(|block| block.starts_with(FIRST_RUN)).count();
        if text.matches("kernel.rs:").count() != first_run {
            wrong.push(format!(
                "book/src/{name} names a line of a `kernel.rs` outside of the reports that are compared"
            ));
        }
        // Lines of step 1 as `inspect` lists them.
        for line in blocks(&text).flat_map(str::lines) {
            let Some((number, code)) = line.split_once(" |") else { continue };
            let Ok(number) = number.trim().parse::<usize>() else { continue };
            let stands = file.lines().nth(number.saturating_sub(1)).unwrap_or_default().trim();
            let (begins, ends) = code.trim().split_once('…').unwrap_or((code.trim(), ""));
            if !(stands.starts_with(begins) && stands.ends_with(ends)) {
                wrong.push(format!(
                    "book/src/{name}: line {number} of the file of step 1 is `{stands}`, not `{}`",
                    code.trim()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n  try: Print what the commands print now.", wrong.join("\n"));
}

fn dense(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// `(TODO, line)` of what a student writes: calls with arguments, long enough to be an answer.
fn answers() -> Vec<(String, String)> {
    let mut answers = Vec::new();
    for (_, solution) in solutions::TEXTS {
        for region in solution.split("// ANCHOR: todo_").skip(1) {
            let (name, rest) = region.split_once('\n').expect("a line behind an anchor");
            let lines = rest.split("// ANCHOR_END").next().unwrap_or_default().lines().map(dense);
            let lines = lines.map(|line| line.trim_end_matches(';').to_string());
            let long = lines.filter(|line| line.len() >= AN_ANSWER && !line.ends_with("()") && !line.ends_with('{'));
            answers.extend(long.map(|line| (name.trim().replace('_', "."), line)));
        }
    }
    answers
}

/// The answers that stand in a text.
fn given_away<'a>(text: &str, answers: &'a [(String, String)]) -> Vec<&'a (String, String)> {
    let lines: Vec<String> = text.lines().map(dense).collect();
    answers.iter().filter(|(_, answer)| lines.iter().any(|line| line.contains(answer.as_str()))).collect()
}

/// A page without its hints: what a student reads before asking for help.
fn before_hints(page: &str) -> String {
    let parts = page.split("<details><summary>TODO").enumerate().map(|(index, part)| match index {
        0 => part,
        _ => part.rsplit_once("</details>\n</details>\n</details>").map_or("", |(_, rest)| rest),
    });
    parts.collect()
}

/// No line that a TODO asks for stands on a page outside of the hints, in what a verdict tells to do, or in the text of a TODO.
#[test]
fn no_todo_is_given_away() {
    let answers = answers();
    assert!(answers.len() > 100, "{} lines", answers.len());
    let mut wrong = Vec::new();
    let mut look = |place: &str, text: &str| {
        wrong.extend(
            given_away(text, &answers)
                .iter()
                .map(|(todo, line)| format!("{place} holds a line of TODO {todo}: {line}")),
        );
    };
    for name in pages() {
        look(&format!("book/src/{name}"), &before_hints(&page(&name)));
    }
    for number in 1..=10 {
        look(
            &format!("the untouched file of step {number}"),
            &workspace().skeleton(number).expect("an untouched file"),
        );
        for milestone in step(number).expect("a step").milestones {
            look(&format!("what is to do for TODO {}", milestone.id), milestone.task);
        }
    }
    assert!(wrong.is_empty(), "{}\n  try: Say what is to be achieved, or put `…` for the arguments.", wrong.join("\n"));
    let page = "Call `t.commit(mma2tma.at(s))`.\n<details><summary>TODO 7.4: a nudge</summary>\nt.wait(mma2tma.at(s), at.phase());\n</details>\n</details>\n</details>\n";
    let seen: Vec<&str> = given_away(&before_hints(page), &answers).iter().map(|(_, line)| line.as_str()).collect();
    assert!(!seen.is_empty() && seen.iter().all(|line| *line == "t.commit(mma2tma.at(s))"), "{seen:?}");
}
