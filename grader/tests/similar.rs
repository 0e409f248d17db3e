//! Which pairs of a class stand out: copies do, renamed and moved about or not; twenty who wrote for themselves do not.
//!
//! The class is in `similar/step02.txt`: ways to write step 2 that differ in structure. Copies are made of it here.

use grader::similar::{Kernel, known_of, step};
use std::collections::BTreeMap;

const SOLUTION: &str = include_str!("../../solutions/src/step02.rs");
const CLASS: &str = include_str!("similar/step02.txt");

type Bodies = BTreeMap<String, String>;

/// What each of the class wrote for each TODO.
fn class() -> Vec<(String, Bodies)> {
    let all: Vec<_> = CLASS
        .split("=== ")
        .skip(1)
        .map(|one| {
            let (name, rest) = one.split_once('\n').expect("a name");
            let bodies = rest.split("--- ").skip(1).map(|body| {
                let (id, text) = body.split_once('\n').expect("a TODO");
                (id.to_string(), text.to_string())
            });
            (name.to_string(), bodies.collect())
        })
        .collect();
    assert_eq!(all.len(), 20);
    all
}

/// The untouched file with these in place of its TODOs.
fn written(bodies: &Bodies) -> String {
    let untouched = harness::skeleton::generate(2, "the solution", SOLUTION).expect("well formed");
    let rest = [
        ("2.3", "t.commit(mma_done);"),
        ("2.6", "k.tcgen05_fence_before();\nk.sync();\nk.warp(0, |w| w.tmem_dealloc(tmem));"),
    ];
    let mut text = String::new();
    for line in untouched.lines() {
        let id = line.split_once(".todo(\"").and_then(|(_, rest)| rest.split_once('"')).map(|(id, _)| id);
        match id {
            Some(id) => {
                let of_all = rest.iter().find(|(known, _)| *known == id).map(|(_, body)| *body);
                let body = bodies.get(id).map(String::as_str).or(of_all).unwrap_or_else(|| panic!("nothing for {id}"));
                text.push_str(body);
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

fn kernel(name: &str, text: String) -> Kernel {
    Kernel { name: name.to_string(), file: "step02.rs".to_string(), text }
}

fn kernels() -> Vec<Kernel> {
    class().iter().map(|(name, bodies)| kernel(name, written(bodies))).collect()
}

/// Pairs that stand out.
fn pairs(kernels: &[Kernel]) -> (usize, String) {
    step(2, kernels, &known_of(2, SOLUTION).expect("well formed"))
}

/// Whole words exchanged for others, also those of the untouched file.
fn renamed(text: &str, names: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        let known = names.iter().find(|(name, _)| *name == word);
        out.push_str(known.map_or(word.as_str(), |(_, other)| other));
        word.clear();
        out.push(c);
    }
    out
}

#[test]
fn twenty_who_wrote_for_themselves_are_no_pair() {
    let (count, text) = pairs(&kernels());
    assert_eq!(count, 0, "{text}");
    // Nor are those who wrote as the book does, beside each other.
    let mut with_book = kernels();
    with_book.push(kernel("reader 1", SOLUTION.to_string()));
    with_book.push(kernel("reader 2", SOLUTION.to_string()));
    let (count, text) = pairs(&with_book);
    assert_eq!(count, 0, "{text}");
    // Untouched files are all the same, and nobody wrote them.
    let untouched = harness::skeleton::generate(2, "the solution", SOLUTION).expect("well formed");
    let many: Vec<Kernel> = (0..5).map(|number| kernel(&number.to_string(), untouched.clone())).collect();
    assert_eq!(pairs(&many), (0, String::new()));
}

#[test]
fn each_copy_is_found_when_names_are_changed_and_statements_moved() {
    // Whatever the twenty call things, and what the untouched file calls them.
    let names = [
        ("row", "zeile"),
        ("column", "spalte"),
        ("thread", "faden"),
        ("tid", "x1"),
        ("me", "ich"),
        ("i", "n7"),
        ("r", "yy"),
        ("c", "xx"),
        ("sums", "werte"),
        ("chunk", "stueck"),
        ("chunks", "stuecke"),
        ("accumulator", "acc"),
        ("mma_done", "fertig"),
        ("round", "runde"),
        ("a", "links"),
        ("k", "cta"),
        ("t", "einer"),
        ("index", "nummer"),
        ("pass", "gang"),
    ];
    let mut all = kernels();
    for (name, mut bodies) in class() {
        // Statements that can stand in another order do: neighbours that need nothing of each other.
        let copied = moved(&bodies["2.1"]);
        bodies.insert("2.1".to_string(), copied);
        let text = renamed(&format!("// All my own work.\n{}", written(&bodies)), &names);
        all.push(kernel(&format!("copy of {name}"), text));
    }
    // Half of the class has copied, and each is found with the one it copied from.
    let (count, text) = pairs(&all);
    for (name, _) in class() {
        assert!(text.contains(&format!("step02: {name} and copy of {name} share ")), "{name}: {text}");
    }
    assert_eq!(count, 20, "and no other: {text}");
}

/// Neighbours exchanged that begin alike and depend on nothing of each other.
fn moved(body: &str) -> String {
    let mut lines: Vec<&str> = body.lines().collect();
    let kind = |line: &str| ["k.store_", "let "].into_iter().find(|word| line.trim_start().starts_with(word));
    let mut at = 0;
    let mut exchanged = 0;
    while at + 1 < lines.len() {
        let (this, next) = (lines[at], lines[at + 1]);
        let name = this.trim_start().trim_start_matches("let ").split([' ', ':', '(']).next().unwrap_or_default();
        if kind(this).is_some()
            && kind(this) == kind(next)
            && (name.is_empty() || !next.contains(name) || this.trim_start().starts_with("k."))
        {
            lines.swap(at, at + 1);
            exchanged += 1;
            at += 1;
        }
        at += 1;
    }
    if exchanged == 0 {
        // A comment says that nothing was moved; the copy is renamed all the same.
        return format!("// as it was\n{body}");
    }
    lines.join("\n")
}

#[test]
fn a_pair_is_shown_with_the_lines_that_both_have() {
    let class = class();
    let mut all = kernels();
    all.push(kernel("Zoë\u{1b}[2J", renamed(&written(&class[6].1), &[("copy", "hole"), ("thread", "faden")])));
    let (count, text) = pairs(&all);
    assert_eq!(count, 1, "{text}");
    assert!(text.contains("  07/step02.rs:"), "{text}");
    let line = all[6].text.lines().position(|line| line.contains("let mut copy = ")).expect("there") + 1;
    assert!(text.contains(&format!("  07/step02.rs:{line}  let mut copy = |k: &mut Cta")), "{line}: {text}");
    assert!(text.contains("  let mut hole = |k: &mut Cta"), "{text}");
}

#[test]
fn in_a_class_of_three_a_copy_is_found_and_the_third_is_left_alone() {
    let class = class();
    let all = vec![
        kernel("one", written(&class[2].1)),
        kernel("two", renamed(&written(&class[2].1), &[("me", "du"), ("job", "auftrag")])),
        kernel("three", written(&class[9].1)),
    ];
    let (count, text) = pairs(&all);
    assert_eq!(count, 1, "{text}");
    assert!(text.starts_with("step02: one and two share "), "{text}");
    assert_eq!(pairs(&all[1..]), (0, String::new()));
}
