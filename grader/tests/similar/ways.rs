//! Ways to write steps 4 (TMA), 6 (a ring, persistent) and 9 (pairs of CTAs, roles): in `ways.txt`, with choices `⟨one¦another⟩` at each
//! place where people decide for themselves. Who draws for himself has written a kernel of his own; two share what chance makes them share, and what
//! the builder's calls leave no choice about.

use super::class::{Bodies, NAMES, moved};
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
        // What is drawn may open what it does not close: then another order is another program.
        let balanced = |body: &str| body.matches(['(', '{', '[']).count() == body.matches([')', '}', ']']).count();
        let other = |body: &String| if balanced(body) { moved(body) } else { body.clone() };
        let moved = bodies.iter().map(|(id, body)| (id.clone(), other(body))).collect();
        disguised(&self.written(&moved))
    }

    /// What is compared of a text.
    pub fn pieces(&self, text: &str) -> Units {
        units(text, &self.known)
    }
}

/// A text with one of each of its choices: as long as one of the ways, and each line one of any of them. As with the drawn ones of step 2,
/// that does not compile; two who draw share a line now and then, and seldom two in a row.
fn chosen(text: &str, draw: &mut impl FnMut(usize) -> usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, choice)) = rest.split_once('⟨') {
        let (ways, behind) = choice.split_once('⟩').expect("a choice ends");
        let ways: Vec<&str> = ways.split('¦').collect();
        let mut lines: Vec<&str> = ways.iter().flat_map(|way| way.lines()).collect();
        let count = ways[draw(ways.len())].lines().count();
        // Nobody writes a line twice.
        let drawn: Vec<&str> = (0..count).map(|_| lines.swap_remove(draw(lines.len()))).collect();
        out += before;
        let own: Vec<String> = drawn.into_iter().map(|line| personal(line, draw)).collect();
        out += &own.join("\n");
        rest = behind;
    }
    out + rest
}

/// What stands for a number where people write the one or the other.
const NUMBERS: [(&str, &str); 12] = [
    ("BLK_K", "64"),
    ("BLK_M", "128"),
    ("BLK_N", "128"),
    ("MMA_K", "16"),
    ("MMA_M", "256"),
    ("MMA_N", "256"),
    ("EPI_N", "64"),
    ("CHUNK", "8"),
    ("CTAS", "2"),
    ("LEADER", "0"),
    ("EPI_CHUNKS", "(MMA_N / EPI_N)"),
    ("WARPGROUP", "(4 * 32)"),
];

/// A line as somebody else writes it: numbers or their names, products and sums the other way round, an argument with a name of its own.
fn personal(line: &str, draw: &mut impl FnMut(usize) -> usize) -> String {
    let mut words: Vec<String> = line.split_inclusive([' ', '(', ')', ',', ';', '.']).map(str::to_string).collect();
    for word in &mut words {
        let (bare, end) = match word.char_indices().next_back() {
            Some((at, sign)) if !sign.is_alphanumeric() && sign != '_' => (word[..at].to_string(), sign.to_string()),
            _ => (word.clone(), String::new()),
        };
        let number = NUMBERS.iter().find(|(name, _)| *name == bare).filter(|_| draw(2) == 0);
        if let Some((_, number)) = number {
            *word = format!("{number}{end}");
        }
    }
    // `x * y` of two plain words, and the same of sums.
    let plain =
        |word: &str| word.strip_suffix(' ').is_some_and(|word| word.chars().all(|c| c.is_alphanumeric() || c == '_'));
    for at in 1..words.len().saturating_sub(1) {
        let swaps = ["* ", "+ "].contains(&words[at].as_str()) && plain(&words[at - 1]) && draw(2) == 0;
        let (right, end) = words[at + 1].split_at(words[at + 1].len().saturating_sub(1));
        if swaps && !right.is_empty() && right.chars().all(|c| c.is_alphanumeric() || c == '_') {
            let (left, new_left, end) = (words[at - 1].trim_end().to_string(), format!("{right} "), end.to_string());
            words[at - 1] = new_left;
            words[at + 1] = left + &end;
        }
    }
    let line = words.concat();
    // The last argument gets a name of its own.
    let hoisted = line.strip_suffix(");").and_then(|call| call.rsplit_once(", ")).filter(|(call, last)| {
        let even = |text: &str| text.matches('(').count() == text.matches(')').count();
        even(last) && last.contains([' ', '.']) && !call.contains("let ")
    });
    match hoisted.filter(|_| draw(2) == 0) {
        Some((call, last)) => format!("let own = {last};\n{call}, own);"),
        None => line,
    }
}

/// Whole words exchanged for others, but for fields and methods: a disguise that still compiles.
fn disguised(text: &str) -> String {
    let (mut out, mut word, mut before) = (String::new(), String::new(), ' ');
    for sign in text.chars().chain([' ']) {
        if sign.is_alphanumeric() || sign == '_' {
            word.push(sign);
            continue;
        }
        let other = NAMES.iter().find(|(name, _)| *name == word && before != '.').map(|(_, other)| *other);
        out += other.unwrap_or(&word);
        word.clear();
        out.push(sign);
        before = sign;
    }
    out
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
