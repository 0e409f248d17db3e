//! Texts that no person would write. The parser may refuse them; it may not panic, and its spans may not lie.

use std::panic::catch_unwind;

use super::super::ast::{Function, Module, Span, Statement, Variable};
use super::super::{MAX_ERRORS, SyntaxError, parse};
use super::{DIALECT, PIPELINE};

/// xorshift64*: enough for this, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Less than `end`; 0 for 0.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.get(self.below(from.len())).copied().unwrap_or_default()
    }
}

/// What is put in: all that the grammar knows, and what it does not.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    ",",
    ";",
    ":",
    "::",
    ".",
    "@",
    "!",
    "|",
    "+",
    "-",
    "~",
    "*",
    "/",
    "%",
    "=",
    "?",
    "<<",
    "_",
    "\"",
    "//",
    "/*",
    "*/",
    "\n",
    "\0",
    "é",
    "…",
    "\u{feff}",
    "#",
    "0",
    "0x",
    "0f3F800000",
    "0d",
    "1.5e",
    "1e999",
    ".5",
    "0b2",
    "4294967295",
    "99999999999999999999",
    "-9223372036854775808",
    "18446744073709551615U",
    "%r1",
    "%tid.x",
    "a::b",
    "$L",
    ".reg",
    ".b32",
    ".shared",
    ".global",
    ".param",
    ".align",
    ".v4",
    ".ptr",
    ".attribute",
    ".loc",
    ".file",
    ".section",
    ".pragma",
    ".entry",
    ".func",
    ".visible",
    ".extern",
    ".version",
    ".callprototype",
    ".branchtargets",
    ".reqntid",
    ".alias",
    "call",
    "call (a), f, (",
    "generic(",
    "0xFF(",
    "[1000000000][1000000000]",
    "<4294967295>",
    "{{",
    "}}",
    "mov.b32 a, b;",
    "inlined_at",
];

/// The text in pieces: words, and everything else one character each.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(word.max(first.len_utf8()));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

fn mutated(seed: &[&str], random: &mut Random) -> String {
    let mut text = seed.to_vec();
    for _ in 0..1 + random.below(3) {
        let (at, other) = (random.below(text.len()), random.below(text.len()));
        match random.below(13) {
            _ if text.is_empty() => text.push(random.pick(PIECES)),
            0 | 1 => drop(text.remove(at)),
            2 | 3 => text.insert(at, random.pick(PIECES)),
            4 => text[at] = random.pick(PIECES),
            5 => text.insert(at, text[at]),
            6 => text.swap(at, other),
            // A word for a word: what comes out is often PTX again.
            7..=9 => {
                let is_word = |piece: &&str| piece.starts_with(|c: char| c.is_ascii_alphanumeric());
                let next = |from: usize| (from..text.len()).find(|&at| text.get(at).is_some_and(is_word));
                if let (Some(from), Some(to)) = (next(at), next(other)) {
                    text[to] = text[from];
                }
            }
            10 => {
                let (from, to) = (at.min(other), at.max(other).min(at.min(other) + 40));
                let copy = text[from..to].to_vec();
                let place = random.below(text.len());
                text.splice(place..place, copy);
            }
            11 => drop(text.drain(at..(at + random.below(40)).min(text.len()))),
            _ => text.truncate(at),
        }
    }
    let mut text = text.concat();
    // Bytes too, where they do not cut a character.
    for _ in 0..random.below(4) / 2 {
        let at = random.below(text.len());
        if text.is_char_boundary(at) && at < text.len() {
            let removed = text.remove(at);
            match random.below(3) {
                0 => {}
                1 => text.insert(at, char::from(random.below(128) as u8)),
                _ => text.extend([removed]),
            }
        }
    }
    text
}

/// Every span lies in the text, and its line and column are those of its first byte.
struct Check<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Check<'a> {
    fn new(text: &'a str) -> Check<'a> {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Check { text, lines }
    }

    fn span(&self, span: Span) -> &'a str {
        let start = span.start as usize;
        let line = self.lines.partition_point(|&first| first <= start);
        let column = start - self.lines[line - 1] + 1;
        assert_eq!((span.line as usize, span.column as usize), (line, column), "{span:?}");
        self.text.get(start..span.end as usize).unwrap_or_else(|| panic!("{span:?} is not in the text"))
    }

    fn errors(&self, errors: &[SyntaxError]) {
        assert!((1..=MAX_ERRORS).contains(&errors.len()));
        for error in errors {
            self.span(error.span);
            assert!(error.message.contains("expected") && !error.help.is_empty(), "{error:?}");
        }
    }

    fn module(&self, module: &Module) {
        self.variables(&module.variables);
        module.functions.iter().for_each(|function| self.function(function));
    }

    fn function(&self, function: &Function) {
        assert_eq!(self.span(function.span), function.name);
        self.variables(&function.returns);
        self.variables(&function.params);
        for (name, _, span) in &function.directives {
            assert_eq!(self.span(*span).strip_prefix('.'), Some(name.as_str()));
        }
        self.statements(function.body.as_deref().unwrap_or_default());
    }

    fn variables(&self, variables: &[Variable]) {
        for variable in variables {
            assert_eq!(self.span(variable.span), variable.name);
        }
    }

    fn statements(&self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::Variable(variable) => self.variables(std::slice::from_ref(variable)),
                Statement::Label(name, span) | Statement::Targets(name, _, span) => assert_eq!(self.span(*span), name),
                Statement::Block(inner) => self.statements(inner),
                Statement::Prototype(function) => self.function(function),
                Statement::Instruction(instruction) => {
                    let text = self.span(instruction.span);
                    let opcode = instruction.opcode.split('.').next().unwrap_or_default();
                    let first = if instruction.guard.is_some() { "@" } else { opcode };
                    assert!(text.starts_with(first) && text.contains(opcode) && !text.ends_with(';'), "{text}");
                }
            }
        }
    }
}

/// Parses and checks; whether it parsed.
fn check(text: &str) -> bool {
    let result = catch_unwind(|| match parse(text) {
        Ok(module) => {
            Check::new(text).module(&module);
            true
        }
        Err(errors) => {
            Check::new(text).errors(&errors);
            false
        }
    });
    result.unwrap_or_else(|_| panic!("this text panics:\n{text}\n\nescaped: {text:?}"))
}

#[test]
fn mutated_text_never_panics() {
    let seeds = [pieces(PIPELINE), pieces(DIALECT)];
    let mut random = Random(0x5EED);
    let mut parsed = 0;
    for round in 0..50_000 {
        parsed += usize::from(check(&mutated(&seeds[round % seeds.len()], &mut random)));
    }
    // Both outcomes must be frequent, or only one of them was tested.
    assert!((5_000..45_000).contains(&parsed), "{parsed} of 50000 parsed");
}

#[test]
fn every_beginning_of_a_text() {
    for text in [PIPELINE, DIALECT] {
        for end in 0..text.len() {
            if let Some(beginning) = text.get(..end) {
                check(beginning);
            }
        }
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
    let deep = 200_000;
    for (before, piece) in [
        ("", "{"),
        ("mov.b32 ", "{"),
        ("mov.b32 a, [b, ", "{"),
        ("mov.b32 ", "[a,"),
        ("call ", "("),
        ("mov.b32 a, ", "("),
        ("mov.b32 a, ", "-"),
        ("mov.b32 a, ", "!"),
        ("mov.b32 a, ", "1?"),
        ("mov.b32 a, ", "1?1:"),
        ("mov.b32 a, ", "1||1&&1|1^1&1==1<1<<1+1*("),
        (".shared .b8 a[2] = ", "{"),
        ("}", ".attribute("),
    ] {
        let text = format!(".version 8.8 .target sm_100a .entry k {{ {before}{}", piece.repeat(deep));
        assert!(!check(&text), "{before}{piece}");
    }
    let dimensions = "[1]".repeat(deep);
    let text = format!(".version 8.8 .target sm_100a .global .b8 a{dimensions} = {}", "{".repeat(deep));
    assert!(!check(&text));
}

#[test]
fn long_chains_are_not_deep() {
    let chain = format!(".version 8.8 .target sm_100a .entry k {{ mov.b32 a, 1{}; }}", "+1".repeat(100_000));
    assert!(check(&chain));
}
