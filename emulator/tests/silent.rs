//! One change in a kernel that is right, and what is said of it where D comes out wrong: nobody tells the emulator what D should be.
//!
//! Of each statement: left out, exchanged with the next, its guard negated or left out, each of its numbers doubled, halved, one more, one less or 0,
//! its operation exchanged for another.

mod common;

use common::{one_tile, pair};
use emulator::{Launch, Options};

/// Operations that are taken for each other.
const OTHERS: &[(&str, &str)] = &[
    ("add.", "sub."),
    (".lt.", ".le."),
    (".ge.", ".gt."),
    (".eq.", ".ne."),
    (".ne.", ".eq."),
    ("xor.b32", "and.b32"),
    ("shl.", "shr."),
];

/// The numbers in a line that are no part of a name: where they stand.
fn numbers(line: &str) -> Vec<std::ops::Range<usize>> {
    let is_piece = |c: char| c.is_ascii_alphanumeric() || "%_.".contains(c);
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(start) = line[at..].find(|c: char| c.is_ascii_digit()).map(|n| at + n) {
        let end = line[start..].find(|c: char| !is_piece(c)).map_or(line.len(), |n| start + n);
        let alone = start == 0 || !line[..start].ends_with(is_piece);
        if alone && line[start..end].chars().all(|c| c.is_ascii_digit()) {
            all.push(start..end);
        }
        at = end;
    }
    all
}

/// What a line may become, in its place.
fn changes(line: &str) -> Vec<String> {
    let mut all = vec![format!("// {line}")];
    for range in numbers(line) {
        let Ok(n) = line[range.clone()].parse::<u64>() else { continue };
        let others = std::collections::BTreeSet::from([2 * n, n / 2, n + 1, n.saturating_sub(1), 0]);
        for other in others.into_iter().filter(|&other| other != n) {
            all.push(format!("{}{other}{}", &line[..range.start], &line[range.end..]));
        }
    }
    if let Some((guard, rest)) = line.trim_start().strip_prefix('@').and_then(|guarded| guarded.split_once(' ')) {
        let negated = guard.strip_prefix('!').map_or(format!("!{guard}"), str::to_string);
        all.push(format!("@{negated} {rest}"));
        all.push(rest.to_string());
    }
    all.extend(OTHERS.iter().filter(|(from, _)| line.contains(from)).map(|(from, to)| line.replacen(from, to, 1)));
    all
}

/// All texts with one change, and the line that it is in.
fn changed(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_statement = |n: &usize| {
        let line = lines[*n].trim();
        line.ends_with(';') && !line.starts_with('.') && !line.starts_with("//")
    };
    let with = |from: usize, to: usize, new: &str| {
        let (front, behind) = (lines[..from].join("\n"), lines[to..].join("\n"));
        format!("{front}\n{new}\n{behind}")
    };
    let mut all = Vec::new();
    for n in (0..lines.len()).filter(is_statement) {
        all.extend(changes(lines[n]).into_iter().map(|new| (n + 1, with(n, n + 1, &new))));
        if lines.get(n + 1).is_some() && is_statement(&(n + 1)) {
            all.push((n + 1, with(n, n + 2, &format!("{}\n{}", lines[n + 1], lines[n]))));
        }
    }
    all
}

/// Runs changed kernels: those of which D is wrong and nothing is said.
fn silent(text: &str, launch: &Launch) -> Vec<String> {
    let options = Options { max_instructions: 1_000_000, ..Options::default() };
    let d = |text: &str| {
        let program = emulator::load(text).ok()?;
        let report = emulator::run(&program, launch, &options);
        let said = !report.findings.is_empty() || !report.notes.is_empty();
        Some((report.buffers[2].bytes.clone(), said))
    };
    let (right, said) = d(text).expect("the kernel loads");
    assert!(!said, "something is said of the unchanged kernel");
    let all = changed(text);
    let (mut run, mut wrong, mut left) = (0, 0, Vec::new());
    for (line, text) in &all {
        let Some((d, said)) = d(text) else { continue };
        run += 1;
        wrong += usize::from(d != right);
        if d != right && !said {
            left.push(format!("line {line}: {}", text.lines().nth(line - 1).unwrap_or_default().trim()));
        }
    }
    println!("{} changes, {run} run, {wrong} with a wrong D, of {} nothing is said", all.len(), left.len());
    assert!(run > 300 && wrong > 200, "{run} run, {wrong} wrong");
    left
}

#[test]
fn something_is_said_of_each_wrong_tile() {
    let launch = one_tile::launch_of(&one_tile::operand(1), &one_tile::operand(2));
    let left = silent(one_tile::TEXT, &launch);
    assert!(left.is_empty(), "{}", left.join("\n"));
}

#[test]
fn something_is_said_of_each_wrong_product_of_a_pair() {
    let left = silent(pair::TEXT, &pair::launch(256, 192));
    assert!(left.is_empty(), "{}", left.join("\n"));
}
