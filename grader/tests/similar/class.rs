//! A class of any size, and copies: twenty ways to write step 2, what is made of them, and disguises.

use grader::similar::{Kernel, Units, known_of, units};
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub const SOLUTION: &str = include_str!("../../../solutions/src/step02.rs");
const CLASS: &str = include_str!("step02.txt");

/// Whatever the twenty call things, and what the untouched file calls them.
pub const NAMES: [(&str, &str); 19] = [
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

pub type Bodies = BTreeMap<String, String>;

/// What each of the class wrote for each TODO.
pub fn class() -> Vec<(String, Bodies)> {
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
pub fn written(bodies: &Bodies) -> String {
    let rest = [
        ("2.3", "t.commit(mma_done);"),
        ("2.6", "k.tcgen05_fence_before();\nk.sync();\nk.warp(0, |w| w.tmem_dealloc(tmem));"),
    ];
    let mut text = String::new();
    for line in UNTOUCHED.lines() {
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

pub fn kernel(name: &str, text: String) -> Kernel {
    Kernel { name: name.to_string(), file: "step02.rs".to_string(), text }
}

pub fn kernels() -> Vec<Kernel> {
    class().iter().map(|(name, bodies)| kernel(name, written(bodies))).collect()
}

/// Whole words exchanged for others, also those of the untouched file.
pub fn renamed(text: &str, names: &[(&str, &str)]) -> String {
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

/// A copy in disguise: renamed, all names once more for each number, and with statements in another order where that changes nothing.
pub fn copy(bodies: &Bodies, number: usize) -> String {
    let mut bodies = bodies.clone();
    if number % 2 == 1 {
        for body in bodies.values_mut() {
            *body = moved(body);
        }
    }
    let others: Vec<String> = NAMES.iter().map(|(_, other)| format!("{other}{number}")).collect();
    let names: Vec<(&str, &str)> =
        NAMES.iter().zip(&others).map(|((name, _), other)| (*name, other.as_str())).collect();
    renamed(&format!("// All my own work.\n{}", written(&bodies)), &names)
}

/// So many who have written for themselves: the twenty, and then such whose every line is one of the twenty's, drawn for it alone. These
/// do not compile; like the twenty, any two of them share a little.
pub fn independent(count: usize) -> Vec<Bodies> {
    let twenty: Vec<Bodies> = class().into_iter().map(|(_, bodies)| bodies).collect();
    let mut state = 8_u64;
    let mut draw = |below: usize| {
        // Knuth's generator; its upper bits are good.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut drawn = |like: &Bodies| -> Bodies {
        let mut line = |id: &String| {
            let lines: Vec<&str> = twenty[draw(20)][id].lines().collect();
            lines[draw(lines.len())].to_string() + "\n"
        };
        like.iter().map(|(id, body)| (id.clone(), body.lines().map(|_| line(id)).collect())).collect()
    };
    let others: Vec<Bodies> = (20..count).map(|number| drawn(&twenty[number % 20])).collect();
    twenty.iter().take(count).cloned().chain(others).collect()
}

static KNOWN: LazyLock<Units> = LazyLock::new(|| known_of(2, SOLUTION).expect("well formed"));
static UNTOUCHED: LazyLock<String> =
    LazyLock::new(|| harness::skeleton::generate(2, "the solution", SOLUTION).expect("well formed"));

/// What is compared of a text.
pub fn pieces(text: &str) -> Units {
    units(text, &KNOWN)
}

/// Neighbours exchanged that begin alike and depend on nothing of each other.
pub fn moved(body: &str) -> String {
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
