//! Opcodes that lack a word: with one more, or a few, they are of a form. The ISA demands these words, and ptxas refuses the text.

use super::exists::exists;
use super::nearest::forms;
use super::spelling::{Follow, Rest, follow, of_a_form, part_for};
use super::{Lowering, Operands, unknown};
use crate::program::Bad;
use crate::program::layout::type_bytes;
use crate::program::lower::Binding;
use crate::program::op::Reg;
use crate::syntax::ast::Operand;

/// Words that may lack at once.
const MOST: usize = 3;

/// Steps on the way through the forms of an opcode: none of them takes so many.
const STEPS: u32 = 200_000;

const COMPARISONS: &[&str] = &[
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];
const ROUNDINGS: &[&str] = &["rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"];

/// An opcode with the words that it lacks, and these words.
struct Whole {
    opcode: String,
    lacks: Vec<String>,
}

/// An opcode on its way through a form.
struct Way<'a> {
    parts: &'a [&'a str],
    /// Which parts the form has had.
    used: u64,
    had: usize,
    /// The words up to here, those that the opcode lacks marked.
    words: Vec<(String, bool)>,
    /// The word that the form is writing.
    word: String,
    may_lack: usize,
    steps: u32,
    found: Vec<Whole>,
}

impl Follow for Way<'_> {
    type Mark = (u64, usize, usize, String);

    fn word(&mut self) -> &mut String {
        &mut self.word
    }

    /// The opcode has it, or may lack it.
    fn part(&mut self) -> bool {
        let word = std::mem::take(&mut self.word);
        if let Some(n) = part_for(self.parts, self.used, self.had, &word) {
            self.used |= 1 << n;
            self.had += 1;
            self.words.push((self.parts[n].into(), false));
            return true;
        }
        let lacks = self.words.iter().filter(|(_, lacks)| *lacks).count();
        let may = self.had > 0 && lacks < self.may_lack && self.is_demanded(&word);
        if may {
            self.words.push((word, true));
        }
        may
    }

    /// All ways are looked for.
    fn ends(&mut self) -> bool {
        if self.had == self.parts.len() {
            self.keep();
        }
        false
    }

    fn mark(&self) -> Self::Mark {
        (self.used, self.had, self.words.len(), self.word.clone())
    }

    fn back_to(&mut self, (used, had, length, word): &Self::Mark) {
        (self.used, self.had) = (*used, *had);
        self.words.truncate(*length);
        self.word.clone_from(word);
    }

    fn may_step(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }
}

impl Way<'_> {
    /// Whether no form of the ISA does without a word in its place, also none that is not modelled. A state space, or what a form of its
    /// own is called by, may be left out.
    fn is_demanded(&self, word: &str) -> bool {
        match kind(word) {
            Kind::Type => self.parts.iter().all(|part| kind(part) != Kind::Type),
            Kind::Comparison | Kind::Rounding => true,
            Kind::Other => {
                matches!(word, "sync" | "aligned" | "satfinite" | "v2" | "v4" | "v8") || word.starts_with("cta_group::")
            }
        }
    }

    fn keep(&mut self) {
        let words: Vec<&str> = self.words.iter().map(|(word, _)| word.as_str()).collect();
        let lacks: Vec<String> = self.words.iter().filter(|(_, lacks)| *lacks).map(|(word, _)| word.clone()).collect();
        let opcode = words.join(".");
        if !lacks.is_empty()
            && !self.found.iter().any(|known| known.opcode == opcode)
            && exists(&words)
            && of_a_form(&words).is_some()
        {
            self.found.push(Whole { opcode, lacks });
        }
    }
}

/// All ways to complete an opcode with the fewest words.
fn whole(opcode: &str) -> Vec<Whole> {
    let parts: Vec<&str> = opcode.split('.').collect();
    if parts.len() > 32 {
        return vec![];
    }
    for may_lack in 1..=MOST {
        let mut found: Vec<Whole> = Vec::new();
        for (_, form) in forms().iter().filter(|(words, _)| words.iter().any(|word| word == parts[0])) {
            let words = Vec::new();
            let mut way =
                Way { parts: &parts, used: 0, had: 0, words, word: String::new(), may_lack, steps: STEPS, found };
            follow(&mut way, &Rest { nodes: form, behind: None });
            found = way.found;
        }
        if !found.is_empty() {
            return found;
        }
    }
    vec![]
}

/// What is said of an opcode that lacks a word; `None`: it lacks none, or more than that is wrong.
pub(super) fn lacks(l: &Lowering, o: &Operands) -> Option<Bad> {
    let all = whole(o.opcode);
    let best = all.iter().min_by_key(|whole| (unlike(l, o, whole), unusual(whole)))?;
    let dotted = |words: &[String]| words.iter().map(|word| format!(".{word}")).collect::<String>();
    // Words that can stand in the same place.
    let mut others: Vec<String> = Vec::new();
    for other in all.iter().filter(|other| other.lacks.len() == 1 && other.opcode != best.opcode) {
        let word = format!("`{}`", dotted(&other.lacks));
        if kind(&other.lacks[0]) == kind(&best.lacks[0]) && !others.contains(&word) && other.lacks != best.lacks {
            others.push(word);
        }
    }
    let (what, name) = match best.lacks.as_slice() {
        [word] => match kind(word) {
            Kind::Type => ("its type".to_string(), "types"),
            Kind::Comparison => ("its comparison".into(), "comparisons"),
            Kind::Rounding => ("its rounding".into(), "roundings"),
            Kind::Other => (format!("`{}`", dotted(&best.lacks)), "words there"),
        },
        words => (format!("`{}`", dotted(words)), ""),
    };
    let what = match (others.as_slice(), kind(&best.lacks[0])) {
        ([one], Kind::Other) => format!("{what} or {one}"),
        _ => what,
    };
    let help = match others.len() {
        0 | 1 => {
            format!("Write `{}`{}.", best.opcode, others.first().map_or(String::new(), |one| format!(", or {one}")))
        }
        _ => {
            let shown: Vec<&str> = others.iter().take(8).map(String::as_str).collect();
            let more = if others.len() > shown.len() { ", …" } else { "" };
            format!("Write `{}`; other {name} are {}{more}.", best.opcode, shown.join(", "))
        }
    };
    Some(unknown::lacks(o.opcode, &what, help))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Type,
    Comparison,
    Rounding,
    Other,
}

fn kind(word: &str) -> Kind {
    match word {
        _ if COMPARISONS.contains(&word) => Kind::Comparison,
        _ if ROUNDINGS.contains(&word) => Kind::Rounding,
        "pred" => Kind::Type,
        _ if type_bytes(word).is_some()
            || matches!(word, "f16x2" | "bf16x2" | "bf16" | "u16x2" | "s16x2" | "f32x2") =>
        {
            Kind::Type
        }
        _ => Kind::Other,
    }
}

/// Whether the type of a completed opcode has another width than the first register among the operands.
fn unlike(l: &Lowering, o: &Operands, whole: &Whole) -> bool {
    let Some(bytes) = whole.lacks.iter().find_map(|word| type_bytes(word)) else { return false };
    let width = o.list.iter().find_map(|operand| {
        let Operand::Name(name) = operand else { return None };
        match l.lookup(name)? {
            Binding::Register(Reg::B32(_), _) => Some(4),
            Binding::Register(Reg::B64(_), _) => Some(8),
            _ => None,
        }
    });
    width.is_some_and(|width| width != bytes)
}

/// What is offered first: types and roundings in the order in which they are most used.
fn unusual(whole: &Whole) -> usize {
    const USUAL: &[&str] = &["b32", "u32", "s32", "u64", "b64", "f32", "rn", "rzi"];
    // A type of numbers rather than of bits, where both are.
    whole.lacks.iter().map(|word| USUAL.iter().position(|usual| usual == word).unwrap_or(USUAL.len())).sum()
}
