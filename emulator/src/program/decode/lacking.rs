//! Opcodes that lack a word: with one more, or a few, they are of a form. The ISA demands these words, and ptxas refuses the text.

use super::exists::exists;
use super::nearest::{Node, forms};
use super::spelling::{is_name, keeps_its_turn, of_a_form};
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

/// What is left of a form: nodes, and what stands behind the choice that they are of.
struct Rest<'a> {
    nodes: &'a [Node],
    behind: Option<&'a Rest<'a>>,
}

impl Way<'_> {
    /// The form has written a word: the opcode has it, or may lack it.
    fn part(&mut self) -> bool {
        let word = std::mem::take(&mut self.word);
        let left = |n: usize| self.used >> n & 1 == 0;
        let (base, at) = (self.parts[0], self.had);
        let fits = |part: &str| match part.strip_prefix('x') {
            Some(n) if word == "xN" => n.parse::<u32>().is_ok_and(u32::is_power_of_two),
            _ => part == word,
        };
        let place = (0..self.parts.len()).find(|&n| left(n) && fits(self.parts[n])).filter(|&n| {
            let turn = |n: usize| keeps_its_turn(base, self.parts[n]);
            let named = n != at && (is_name(base, self.parts[n]) || n == 0);
            !(named || turn(n) && (0..n).any(|n| left(n) && turn(n)))
        });
        if let Some(n) = place {
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

    fn walk(&mut self, rest: &Rest) {
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            return;
        }
        let Some((first, others)) = rest.nodes.split_first() else {
            match rest.behind {
                Some(behind) => self.walk(behind),
                None => {
                    if self.part() && self.had == self.parts.len() {
                        self.keep();
                    }
                }
            }
            return;
        };
        let tail = Rest { nodes: others, behind: rest.behind };
        match first {
            Node::Text(text) => {
                let mut words = text.split('.');
                self.word += words.next().unwrap_or_default();
                for next in words {
                    if !self.part() {
                        return;
                    }
                    self.word += next;
                }
                self.walk(&tail);
            }
            Node::Choice(alternatives, optional) => {
                let (used, had, length, word) = (self.used, self.had, self.words.len(), self.word.clone());
                let empty: &[Node] = &[];
                for nodes in alternatives.iter().map(Vec::as_slice).chain(optional.then_some(empty)) {
                    (self.used, self.had) = (used, had);
                    self.words.truncate(length);
                    self.word.clone_from(&word);
                    self.walk(&Rest { nodes, behind: Some(&tail) });
                }
            }
        }
    }

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
            way.walk(&Rest { nodes: form, behind: None });
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
