//! Which TODO of a later step is answered by what answered TODOs of an earlier one.
//!
//! Found by comparing the solutions' regions, and kept in a table beside the steps: so `carry` knows it where there are no
//! solutions, and the table says nothing of them but this.

use super::super::tokens::{Kind, Token, code};
use serde::{Deserialize, Serialize};
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The table, from the top folder.
pub const TABLE: &str = "steps/carry.json";

/// How a TODO follows from earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The code is the same.
    Same,
    /// The code is alike, and must change.
    Changed,
}

/// A TODO that follows from one of an earlier step, or from several one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// The later TODO.
    pub to: String,
    /// The earlier ones, in order; all of one step.
    pub from: Vec<String>,
    /// How it follows.
    pub how: How,
}

/// A marked region of a solution.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// Its TODO: `4.5`.
    id: String,
    code: String,
}

/// The regions of a solution, and the names that its code outside of them uses.
#[derive(Clone, Debug)]
pub(crate) struct Regions {
    step: u8,
    regions: Vec<Region>,
    known: BTreeSet<String>,
    /// One region, or several one after the other.
    runs: Vec<Run>,
}

/// Code of TODOs one after the other.
#[derive(Clone, Debug)]
struct Run {
    ids: Vec<String>,
    pieces: Vec<String>,
    /// How often each piece is in it.
    counts: BTreeMap<String, usize>,
}

impl Run {
    fn of(regions: &[Region], known: &BTreeSet<String>) -> Run {
        let text: String = regions.iter().map(|region| region.code.as_str()).collect();
        let pieces = normal(&code(&text), known);
        let mut counts = BTreeMap::new();
        for piece in &pieces {
            *counts.entry(piece.clone()).or_default() += 1;
        }
        Run { ids: regions.iter().map(|region| region.id.clone()).collect(), pieces, counts }
    }

    /// How much of two runs is the same, if it can be enough for code that is alike.
    fn ratio(&self, other: &Run) -> Option<f32> {
        let both = |(text, count): (&String, &usize)| other.counts.get(text).map_or(0, |theirs| *count.min(theirs));
        let common: usize = self.counts.iter().map(both).sum();
        // The order of the pieces can only make it less, and takes long to look at.
        let most = 2.0 * common as f32 / (self.pieces.len() + other.pieces.len()).max(1) as f32;
        (most >= ALIKE).then(|| TextDiff::from_slices(&texts(&self.pieces), &texts(&other.pieces)).ratio())
    }
}

impl Regions {
    /// Reads a solution whose regions are well formed.
    pub fn of(step: u8, solution: &str) -> Regions {
        let (mut regions, mut outside, mut open) = (Vec::new(), String::new(), None::<Region>);
        for line in solution.lines() {
            let comment = line.trim().strip_prefix("//").map(str::trim);
            if let Some(name) = comment.and_then(|text| text.strip_prefix("ANCHOR: todo_")) {
                open = Some(Region { id: name.trim().replace('_', "."), code: String::new() });
            } else if comment.is_some_and(|text| text.starts_with("ANCHOR_END: todo_")) {
                regions.extend(open.take());
            } else {
                let text = open.as_mut().map_or(&mut outside, |region| &mut region.code);
                text.push_str(line);
                text.push('\n');
            }
        }
        let words = code(&outside).into_iter().filter(|token| token.kind == Kind::Word);
        let known = words.map(|word| word.text.to_string()).collect();
        let lengths = 1..=LONGEST_RUN;
        let runs = lengths.flat_map(|length| regions.windows(length).map(|run| Run::of(run, &known))).collect();
        Regions { step, regions, known, runs }
    }
}

/// The relations of each step to each earlier one, in the order of the TODOs.
pub(crate) fn relations(steps: &[Regions]) -> Vec<Relation> {
    let mut all = Vec::new();
    for later in steps {
        for region in &later.regions {
            let earlier = steps.iter().filter(|earlier| earlier.step < later.step);
            all.extend(earlier.filter_map(|earlier| best(earlier, later, region)));
        }
    }
    all
}

/// The longest run of TODOs that one later TODO may take in.
const LONGEST_RUN: usize = 3;

/// Code is alike if so much of it is the same.
const ALIKE: f32 = 0.6;

/// A longer run must be so much more alike.
const BETTER: f32 = 0.1;

fn best(earlier: &Regions, later: &Regions, to: &Region) -> Option<Relation> {
    let wanted = Run::of(std::slice::from_ref(to), &later.known);
    let mut alike: Option<(f32, Relation)> = None;
    for run in &earlier.runs {
        let relation = |how| Relation { to: to.id.clone(), from: run.ids.clone(), how };
        if run.pieces == wanted.pieces {
            return Some(relation(How::Same));
        }
        let better = |ratio: &f32| {
            let least = alike.as_ref().map(|(most, before)| most + BETTER * (run.ids.len() - before.from.len()) as f32);
            *ratio >= ALIKE && least.is_none_or(|least| *ratio > least)
        };
        if let Some(ratio) = run.ratio(&wanted).filter(better) {
            alike = Some((ratio, relation(How::Changed)));
        }
    }
    alike.map(|(_, relation)| relation)
}

fn texts(pieces: &[String]) -> Vec<&str> {
    pieces.iter().map(String::as_str).collect()
}

/// Code in its normal form: names that it defines itself are numbered, commas before a closing bracket left out.
fn normal(tokens: &[Token<'_>], known: &BTreeSet<String>) -> Vec<String> {
    let own: Vec<&str> = bound(tokens).into_iter().filter(|name| !known.contains(*name)).collect();
    let mut pieces = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if token.is(",") && tokens.get(index + 1).is_some_and(|next| next.nests() < 0) {
            continue;
        }
        let variable = is_variable(tokens, index);
        pieces.push(match own.iter().position(|name| variable && *name == token.text) {
            Some(number) => format!("#{number}"),
            None => token.text.to_string(),
        });
    }
    pieces
}

/// Whether a piece names a variable or constant: no method, field, function, path or type.
fn is_variable(tokens: &[Token<'_>], index: usize) -> bool {
    let sign = |at: Option<usize>, text: &str| at.and_then(|at| tokens.get(at)).is_some_and(|token| token.is(text));
    let (before, after) = (|by| index.checked_sub(by), |by| Some(index + by));
    // `a.b` is a field of `a`, but `0..b` is a range.
    let field = sign(before(1), ".") && !sign(before(2), ".");
    let path = (sign(before(1), ":") && sign(before(2), ":")) || (sign(after(1), ":") && sign(after(2), ":"));
    let call = sign(after(1), "(") || sign(after(1), "!");
    tokens[index].kind == Kind::Word && !field && !path && !call
}

/// Names that code defines: by `let`, by `for`, as the arguments of closures.
fn bound<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let stands_after = |sign: &&str| index == 0 || tokens[index - 1].is(sign);
        let ends: &[&str] = match tokens[index].text {
            "let" => &["=", ";"],
            "for" => &["in"],
            // A closure begins where a value may stand; elsewhere `|` is an operator.
            "|" if ["(", ",", "=", "move", "{"].iter().any(stands_after) => &["|"],
            _ => {
                index += 1;
                continue;
            }
        };
        index += 1;
        let mut types = false;
        while let Some(token) = tokens.get(index).filter(|token| !ends.iter().any(|end| token.is(end))) {
            types = token.is(":") || (types && !token.is(","));
            let name = token.text.starts_with(|c: char| c.is_lowercase()) && !["mut", "ref"].contains(&token.text);
            if token.kind == Kind::Word && name && !types && !names.contains(&token.text) {
                names.push(token.text);
            }
            index += 1;
        }
        index += 1;
    }
    names
}

/// The table as text: a relation a line, so that changes can be read.
pub(crate) fn render(relations: &[Relation]) -> Result<String, String> {
    let mut text = "[\n".to_string();
    for (index, relation) in relations.iter().enumerate() {
        let line = serde_json::to_string(relation).map_err(|error| format!("cannot write {TABLE}: {error}"))?;
        let comma = if index + 1 < relations.len() { "," } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}{comma}");
    }
    text.push_str("]\n");
    Ok(text)
}

/// Reads the table.
pub(crate) fn parse(text: &str) -> Result<Vec<Relation>, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("{TABLE}: {error}\n  try: Get the file back from git, or from the course's material."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(step: u8, outside: &str, bodies: &[&str]) -> Regions {
        let mut text = outside.to_string();
        for (index, body) in bodies.iter().enumerate() {
            let anchor = format!("todo_{step}_{}", index + 1);
            text.push_str(&format!("\n// ANCHOR: {anchor}\n{body}\n// ANCHOR_END: {anchor}\n"));
        }
        Regions::of(step, &text)
    }

    fn related(earlier: (&str, &[&str]), later: (&str, &str)) -> Option<(String, How)> {
        let steps = [regions(1, earlier.0, earlier.1), regions(2, later.0, &[later.1])];
        let all = relations(&steps);
        let first = all.first()?;
        Some((first.from.join("+"), first.how))
    }

    #[test]
    fn what_follows_from_what() {
        let outside = "fn kernel(k, d) { let at = 1; let free = 2; let done = 3; const N: u32 = 4; const M: u32 = 5; }";
        let related = |earlier: &[&str], later: &str| related((outside, earlier), (outside, later));
        let is = |from: &str, how| Some((from.to_string(), how));
        let (same, changed) = (How::Same, How::Changed);
        assert_eq!(related(&["k.a(); // so", "k.b(d,\n at,);"], "k.b(d, at);"), is("1.2", same));
        assert_eq!(related(&["k.a();", "k.b(d);", "k.c();"], "k.b(d);\nk.c();"), is("1.2+1.3", same));
        // Own names do not matter, others do.
        assert_eq!(related(&["let x = k.a(); k.b(|y| y + x);"], "let u = k.a(); k.b(|v| v + u);"), is("1.1", same));
        assert_eq!(related(&["k.wait(at, at.phase());"], "k.wait(done, done.phase());"), is("1.1", changed));
        assert_eq!(related(&["k.wait(at, free, d);"], "k.wait(done, done, d);"), is("1.1", changed));
        // Another constant or method is other code.
        assert_eq!(related(&["k.wait(at, N);"], "k.wait(at, M);"), is("1.1", changed));
        assert_eq!(related(&["k.load_shared(at, N);"], "k.load_global(at, N);"), is("1.1", changed));
        assert_eq!(related(&["k.a(at);"], "for i in 0..8 { k.commit(d.at(i)); }"), None);
    }

    #[test]
    fn the_table_is_read_as_it_was_written() {
        let from = vec!["4.5".to_string(), "4.6".to_string()];
        let all = vec![
            Relation { to: "5.6".to_string(), from, how: How::Same },
            Relation { to: "5.7".to_string(), from: vec!["4.1".to_string()], how: How::Changed },
        ];
        let text = render(&all).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert_eq!(parse(&text), Ok(all));
        assert!(parse("[{}]").unwrap_err().starts_with("steps/carry.json: missing field"));
    }
}
