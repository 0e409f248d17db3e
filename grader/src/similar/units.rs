//! A kernel in pieces that stay the same when names change and statements move.
//!
//! A statement is what stands between `;`, `{` and `}`. Its words are numbered in the order of their first use, but for keywords, types
//! of numbers, and what stands behind a `.` or `::`: those name the builder's calls, and nobody can rename them. Numbers keep their class:
//! 0, 1, a power of two, another. A [`Unit`] is one statement, or a run of tokens of neighbouring statements, as a hash.

use harness::workbook::tokens::{Kind, Token, code};
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A shorter statement is everybody's: `k.sync()`.
const SHORTEST: usize = 7;
/// Tokens of a run.
const RUN: usize = 12;
/// Names that are the language's.
const KEPT: [&str; 40] = [
    "as", "bool", "break", "const", "continue", "else", "enum", "f32", "f64", "false", "fn", "for", "i16", "i32",
    "i64", "i8", "if", "impl", "in", "isize", "let", "loop", "match", "move", "mut", "pub", "ref", "return", "self",
    "static", "struct", "true", "u16", "u32", "u64", "u8", "use", "usize", "where", "while",
];

/// A piece of a kernel, by a hash.
pub type Unit = u64;

/// The pieces of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Units {
    /// Whole statements.
    pub statements: BTreeSet<Unit>,
    /// Runs of tokens.
    pub runs: BTreeSet<Unit>,
}

/// A statement of a text.
struct Statement<'a> {
    tokens: Vec<Token<'a>>,
    unit: Unit,
}

/// The pieces of a kernel, without the statements of `known`: what everybody was given.
pub fn units(text: &str, known: &Units) -> Units {
    let mut units = Units::default();
    // Statements that were given are taken out, so that what a student wrote above and below them are neighbours.
    let mut written: Vec<Token> = Vec::new();
    for statement in statements(text) {
        if known.statements.contains(&statement.unit) {
            continue;
        }
        if statement.tokens.len() >= SHORTEST {
            units.statements.insert(statement.unit);
        }
        written.extend(&statement.tokens);
    }
    units.runs = written.windows(RUN).map(hash).filter(|run| !known.runs.contains(run)).collect();
    units
}

/// A statement that somebody wrote, and where.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// Which piece it is.
    pub(super) unit: Unit,
    /// The line on which it begins.
    pub(super) line: usize,
    /// Its words, numbers and signs, as they are called there.
    pub(super) words: Vec<String>,
}

/// The statements of [`units`], each as often as it stands there, in order.
pub(super) fn written(text: &str, known: &Units) -> Vec<Written> {
    let lines = Lines::of(text);
    let all = statements(text).into_iter().filter(|one| one.tokens.len() >= SHORTEST);
    all.filter(|one| !known.statements.contains(&one.unit))
        .map(|Statement { tokens, unit }| Written {
            unit,
            line: lines.of_byte(tokens.first().map_or(0, |token| token.at)),
            words: tokens.iter().map(|token| token.text.to_string()).collect(),
        })
        .collect()
}

/// All pieces of a text that everybody has: also those of short statements.
pub fn given(text: &str) -> Units {
    let all = statements(text);
    let tokens: Vec<Token> = all.iter().flat_map(|statement| statement.tokens.iter().copied()).collect();
    Units {
        statements: all.iter().map(|statement| statement.unit).collect(),
        runs: tokens.windows(RUN).map(hash).collect(),
    }
}

fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut all = Vec::new();
    let mut tokens: Vec<Token> = Vec::new();
    for token in code(text) {
        if matches!(token.text, ";" | "{" | "}") && token.kind == Kind::Sign {
            if !tokens.is_empty() {
                all.push(Statement { unit: hash(&tokens), tokens: std::mem::take(&mut tokens) });
            }
        } else {
            tokens.push(token);
        }
    }
    if !tokens.is_empty() {
        all.push(Statement { unit: hash(&tokens), tokens });
    }
    all
}

/// A hash of tokens, whatever they are called.
fn hash(tokens: &[Token]) -> Unit {
    let mut hasher = DefaultHasher::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Word if KEPT.contains(&token.text) || is_member(&tokens[..index]) => token.text.hash(&mut hasher),
            Kind::Word => {
                let next = numbers.len();
                (*numbers.entry(token.text).or_insert(next)).hash(&mut hasher);
            }
            Kind::Number => class(token.text).hash(&mut hasher),
            Kind::Text => "text".hash(&mut hasher),
            Kind::Sign | Kind::Comment => token.text.hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// Whether the next word stands behind a `.` or a `::`. A range `0..n` is no call.
fn is_member(before: &[Token]) -> bool {
    match before {
        [.., a, b] if a.is(".") && b.is(".") => false,
        [.., a, b] if a.is(":") && b.is(":") => true,
        [.., b] => b.is("."),
        [] => false,
    }
}

fn class(number: &str) -> &'static str {
    let digits: String = number.chars().take_while(|c| c.is_ascii_digit() || *c == '_').filter(|c| *c != '_').collect();
    match digits.parse::<u64>() {
        Ok(0) if digits.len() == number.len() => "0",
        Ok(1) => "1",
        Ok(value) if value.is_power_of_two() => "power of two",
        _ => "number",
    }
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// The line of a byte, from 1.
    fn of_byte(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_order_do_not_matter_and_calls_do() {
        let none = Units::default();
        let a = units(
            "let row = k.thread_index() / 8;\nlet from = k.load_global_16(gemm.a.at(row, start + column));\n",
            &none,
        );
        let b = units("let y = cta.load_global_16(g.a.at(r, s + c));\nlet r = cta.thread_index() / 16;\n", &none);
        assert_eq!(a.statements, b.statements, "renamed and exchanged");
        let lines: Vec<usize> = written("let a = b.c(d, e, f);\n\n// g\nlet h = b.c(d, 1, f);\n", &none)
            .iter()
            .map(|one| one.line)
            .collect();
        assert_eq!(lines, [1, 4]);
        let c = units("let r = cta.lane_index() / 16; let y = cta.load_global_16(g.b.at(r, s + c));", &none);
        assert!(c.statements.is_disjoint(&a.statements), "other calls are other statements");
        let swapped = units("let y = k.load_global_16(g.a.at(r, r + c));", &none);
        assert!(swapped.statements.is_disjoint(&a.statements), "one name twice is another statement");
    }
}
