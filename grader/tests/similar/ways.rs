//! Ways to write steps 4 (TMA), 6 (a ring, persistent) and 9 (pairs of CTAs, roles): in `ways.txt`, with choices `⟨one¦another⟩` at each
//! place where people decide for themselves. Who draws each choice for himself has written a kernel of his own; two share what chance makes them
//! share, and what the builder's calls leave no choice about.

use super::class::{Bodies, NAMES, moved, renamed};
use grader::similar::{Units, known_of, units};

const WAYS: &str = include_str!("ways.txt");

/// The steps that there are ways for.
pub const STEPS: [(u8, &str); 3] = [
    (4, include_str!("../../../solutions/src/step04.rs")),
    (6, include_str!("../../../solutions/src/step06.rs")),
    (9, include_str!("../../../solutions/src/step09.rs")),
];

/// A step, what everybody was given, and how each TODO may be written.
pub struct Ways {
    untouched: String,
    known: Units,
    todos: Bodies,
}

impl Ways {
    pub fn of(step: u8, solution: &str) -> Ways {
        let all = WAYS.split("=== ").skip(1).map(|part| part.split_once('\n').expect("a step"));
        let (_, text) = all.into_iter().find(|(number, _)| *number == step.to_string()).expect("ways of this step");
        let todos = text.split("--- ").skip(1).map(|body| {
            let (id, text) = body.split_once('\n').expect("a TODO");
            (id.to_string(), text.to_string())
        });
        Ways {
            untouched: harness::skeleton::generate(step, "the solution", solution).expect("well formed"),
            known: known_of(step, solution).expect("well formed"),
            todos: todos.collect(),
        }
    }

    /// What somebody writes who decides by these numbers.
    pub fn bodies(&self, draw: &mut impl FnMut(usize) -> usize) -> Bodies {
        self.todos.iter().map(|(id, text)| (id.clone(), chosen(text, draw))).collect()
    }

    /// A file with these in place of its TODOs.
    pub fn written(&self, bodies: &Bodies) -> String {
        let line = |line: &str| {
            let id = line.split_once(".todo(\"").and_then(|(_, rest)| rest.split_once('"')).map(|(id, _)| id);
            id.map_or(line, |id| bodies.get(id).unwrap_or_else(|| panic!("nothing for {id}"))).to_string() + "\n"
        };
        self.untouched.lines().map(line).collect()
    }

    /// A copy in disguise: other names, and statements in another order where that changes nothing.
    pub fn copy(&self, bodies: &Bodies) -> String {
        let moved = bodies.iter().map(|(id, body)| (id.clone(), moved(body))).collect();
        renamed(&self.written(&moved), &NAMES)
    }

    /// What is compared of a text.
    pub fn pieces(&self, text: &str) -> Units {
        units(text, &self.known)
    }
}

/// A text with one of each of its choices.
fn chosen(text: &str, draw: &mut impl FnMut(usize) -> usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, choice)) = rest.split_once('⟨') {
        let (ways, behind) = choice.split_once('⟩').expect("a choice ends");
        let ways: Vec<&str> = ways.split('¦').collect();
        out += before;
        out += ways[draw(ways.len())];
        rest = behind;
    }
    out + rest
}

/// Numbers below what is asked for, the same for each seed.
pub fn draws(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        // Knuth's generator; its upper bits are good.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}
