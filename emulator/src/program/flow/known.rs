//! What can be said of registers without running the kernel: values that are known are computed with, the others stay unknown.

use crate::program::op::{Alu, FALSE, Inst, L32, Logic, Op, Reg, TRUE};

/// Values of predicates and of registers of 32 bits, in their order: those of one lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Known {
    /// Predicates.
    pub preds: Vec<(u16, bool)>,
    /// Registers.
    pub words: Vec<(u16, u32)>,
}

fn value<T: Copy>(list: &[(u16, T)], of: u16) -> Option<T> {
    list.iter().find(|known| known.0 == of).map(|known| known.1)
}

fn set<T: Copy + Ord>(list: &mut Vec<(u16, T)>, of: u16, to: Option<T>) {
    list.retain(|known| known.0 != of);
    list.extend(to.map(|to| (of, to)));
    list.sort_unstable();
}

fn combined(logic: Logic, a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (logic, a, b) {
        (Logic::And, Some(false), _) | (Logic::And, _, Some(false)) => Some(false),
        (Logic::Or, Some(true), _) | (Logic::Or, _, Some(true)) => Some(true),
        (Logic::And | Logic::Or, Some(a), Some(b)) => Some(if logic == Logic::And { a && b } else { a || b }),
        (Logic::Xor, Some(a), Some(b)) => Some(a != b),
        _ => None,
    }
}

impl Known {
    /// A predicate's value.
    pub fn pred(&self, p: u16) -> Option<bool> {
        match p {
            TRUE => Some(true),
            FALSE => Some(false),
            _ => value(&self.preds, p),
        }
    }

    fn word(&self, r: u16, constants: &[(u16, u32)]) -> Option<L32> {
        value(&self.words, r).or_else(|| value(constants, r)).map(|word| [word; 32])
    }

    /// A register's value.
    pub fn number(&self, r: u16, constants: &[(u16, u32)]) -> Option<u32> {
        self.word(r, constants).map(|word| word[0])
    }

    /// A register has this value now.
    pub fn set_number(&mut self, r: u16, value: Option<u32>) {
        set(&mut self.words, r, value);
    }

    /// What both know alike.
    pub fn common(&self, other: &Known) -> Known {
        let preds = self.preds.iter().filter(|known| other.preds.contains(known)).copied().collect();
        let words = self.words.iter().filter(|known| other.words.contains(known)).copied().collect();
        Known { preds, words }
    }

    /// Whether an instruction is executed.
    pub fn guard(&self, inst: &Inst) -> Option<bool> {
        self.pred(inst.guard).map(|p| p != inst.guard_negated)
    }

    /// An instruction is executed, or may be.
    pub fn execute(&mut self, inst: &Inst, constants: &[(u16, u32)]) {
        let executed = self.guard(inst);
        if executed == Some(false) {
            return;
        }
        let before = self.clone();
        let word = |r: u16| before.word(r, constants);
        for reg in &inst.defs {
            match *reg {
                Reg::Pred(p) => set(&mut self.preds, p, None),
                Reg::B32(r) => set(&mut self.words, r, None),
                _ => {}
            }
        }
        if executed.is_none() {
            return;
        }
        match inst.op {
            Op::Pred { logic, d, a, a_negated, b, negate } => {
                let a = before.pred(a).map(|a| a != a_negated);
                let b = before.pred(b).map(|b| b != (a_negated && negate));
                set(&mut self.preds, d, combined(logic, a, b).map(|is| is != negate));
            }
            Op::Setp { f: Alu::Compare32(f), d, q, a, b, logic } => {
                let holds = word(a).zip(word(b)).map(|(a, b)| f(&a, &b) & 1 == 1);
                let with = |holds: Option<bool>| match logic {
                    None => holds,
                    Some((logic, c, negated)) => combined(logic, holds, before.pred(c).map(|c| c != negated)),
                };
                for (d, holds) in [(d, with(holds)), (q, with(holds.map(|holds| !holds)))] {
                    d.into_iter().for_each(|d| set(&mut self.preds, d, holds));
                }
            }
            Op::Select32 { d, a, b, p, negated } => {
                let chosen = before.pred(p).and_then(|p| word(if p != negated { a } else { b }));
                set(&mut self.words, d, chosen.map(|word| word[0]));
            }
            Op::Alu { f, d, s: [a, b, _] } => {
                let mut result = [0; 32];
                let known = match f {
                    Alu::U32(f) => word(a).map(|a| f(&mut result, &a)),
                    Alu::B32(f) => word(a).zip(word(b)).map(|(a, b)| f(&mut result, &a, &b)),
                    _ => return,
                };
                set(&mut self.words, d, known.map(|()| result[0]));
            }
            _ => {}
        }
    }
}
