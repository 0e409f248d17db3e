//! What decides how a loop goes on, and whether it is left: the backward slice of the branches that lead out of it, and of all that others see.
//!
//! A poll counts its rounds, makes its pauses longer, or looks at the clock to tell how long it took. As long as no branch out of it depends on that, a
//! round that begins with the same in all other registers, and finds the same in memory, leads to one like it.

use super::dependence::deciding;
use super::{NEVER, around, predecessors, successors};
use crate::program::facts::number;
use crate::program::op::{Inst, Op, Reg};
use crate::program::{Kernel, opcode};
use rustc_hash::{FxHashMap, FxHashSet};

/// Statements of a loop of which it is asked whether branches matter; beyond that, all do.
const MOST: usize = 1 << 12;

/// What decides how a loop goes on.
#[derive(Debug, Default)]
pub struct Leaving {
    /// Branches back of pauses in the round, whose length decides nothing.
    pub pauses: FxHashSet<u32>,
    /// Of each branch back, the registers that decide where the round behind it begins.
    begins: FxHashMap<u32, Begins>,
    /// The instructions of the loop, and its conditional branches that decide.
    pub members: Vec<u32>,
    pub branches: FxHashSet<u32>,
    /// Instructions of the loop whose results decide nothing.
    pub idle: FxHashSet<u32>,
    /// One of them asks for the time.
    pub by_time: bool,
    /// Of registers of which nothing but low bits decides: these.
    pub low: FxHashMap<Reg, u64>,
}

/// Registers that decide, of those that are alive where a round begins.
#[derive(Debug, Default)]
pub struct Begins {
    pub b32: Vec<u16>,
    pub b64: Vec<u16>,
    pub pred: Vec<u16>,
}

/// The loop around a branch back: all from which a way leads there, and to which one leads from there.
struct Around<'k> {
    code: &'k [Inst],
    next: Vec<Vec<usize>>,
    members: Vec<usize>,
    inside: Vec<bool>,
}

type Set = Vec<u64>;

fn has(set: &Set, n: usize) -> bool {
    set[n / 64] >> (n % 64) & 1 == 1
}

/// An instruction does nothing but give registers a value, or take time.
fn only_gives(inst: &Inst) -> bool {
    let takes_time = matches!(
        inst.op,
        Op::Hint
            | Op::GridWait
            | Op::Sleep
            | Op::Fence { .. }
            | Op::ProxyFence { .. }
            | Op::TensorFence { .. }
            | Op::Load(_)
    );
    let moves = matches!(inst.op, Op::MatrixLoad { .. } | Op::WarpMma(_) | Op::MoveMatrix { .. } | Op::IsSpace { .. });
    inst.facts.plain || inst.op.exchanges() || takes_time || moves
}

fn is_conditional(inst: &Inst) -> bool {
    match inst.op {
        Op::BranchTable { .. } => true,
        Op::Branch { .. } | Op::Exit | Op::Trap(_) => inst.facts.guarded,
        _ => false,
    }
}

impl Leaving {
    /// Its branches back.
    pub fn back(&self) -> impl Iterator<Item = u32> {
        self.begins.keys().copied()
    }

    /// The registers that decide, where the round behind a branch back begins.
    pub fn begins(&self, branch: u32) -> Option<&Begins> {
        self.begins.get(&branch)
    }

    /// Of the loop that this branch goes back in: the same for all branches back in it. Or of its own rounds alone, without the loops around them.
    pub fn of(kernel: &Kernel, branch: u32, alone: bool) -> Option<Leaving> {
        let (code, branch) = (&kernel.code[..], branch as usize);
        let Op::Branch { target, .. } = code.get(branch)?.op else { return None };
        let around = Around::of(code, branch, target as usize, alone);
        let (n32, n64, preds) = kernel.registers;
        let (n32, n64) = (usize::from(n32), usize::from(n64));
        let words = (n32 + n64 + usize::from(preds) + 2).div_ceil(64);
        let numbers = |reg: Reg| {
            let first = number(reg, kernel.registers) as usize;
            first..first + if let Reg::B128(_) = reg { 2 } else { usize::from(reg != Reg::Sink) }
        };
        let mut branches = around.first_branches();
        let (alive, open) = loop {
            let alive = around.alive(words, &numbers, &branches);
            let decides = |at: usize| around.does_decide(at, &around.behind(at, words, &alive), &numbers, &branches);
            let open: Vec<usize> = around.open_branches(&branches);
            let more: Vec<usize> = open.iter().copied().filter(|&b| around.apart(b).any(decides)).collect();
            if more.is_empty() {
                break (alive, open);
            }
            branches.extend(more);
        };
        let back = |at: &usize| matches!(code[*at].op, Op::Branch { target, .. } if target as usize <= *at);
        let paused = open.iter().flat_map(|&b| around.apart(b).chain([b])).filter(back).map(|at| at as u32).collect();
        let begins = |at: usize| {
            let Op::Branch { target, .. } = code[at].op else { return None };
            let set = &alive[around.members.binary_search(&(target as usize)).ok()?];
            let among =
                |from: usize, to: usize| (from..to).filter(|&n| has(set, n)).map(move |n| (n - from) as u16).collect();
            let (b32, b64) = (among(0, n32), among(n32, n32 + n64));
            (target as usize <= at).then(|| Begins { b32, b64, pred: among(n32 + n64, n32 + n64 + usize::from(preds)) })
        };
        let begins: FxHashMap<u32, Begins> =
            around.members.iter().filter_map(|&at| Some((at as u32, begins(at)?))).collect();
        if !begins.contains_key(&(branch as u32)) {
            return None;
        }
        let gives = |at: &usize| {
            let behind = around.behind(*at, words, &alive);
            code[*at].defs.iter().any(|&reg| numbers(reg).any(|n| has(&behind, n)))
        };
        let decides = |at: &usize| around.does_decide(*at, &around.behind(*at, words, &alive), &numbers, &branches);
        let deciding: Vec<usize> = around.members.iter().copied().filter(decides).collect();
        let low = around.low_bits(kernel, &deciding);
        let (finds, idle): (Vec<usize>, Vec<usize>) = around.members.iter().partition(|at| gives(at));
        let by_time = finds.iter().any(|&at| matches!(code[at].op, Op::Special { which, .. } if which.is_time()));
        Some(Leaving {
            pauses: paused,
            begins,
            members: around.members.iter().map(|&at| at as u32).collect(),
            branches: branches.into_iter().map(|at| at as u32).collect(),
            idle: idle.into_iter().map(|at| at as u32).collect(),
            by_time,
            low,
        })
    }
}

impl<'k> Around<'k> {
    fn of(code: &'k [Inst], branch: usize, target: usize, alone: bool) -> Around<'k> {
        let next = successors(code, true);
        let inside = around(branch, target, alone, &next, &predecessors(&next));
        let members = (0..code.len()).filter(|&at| inside[at]).collect();
        Around { code, next, members, inside }
    }

    /// Branches that lead out of the loop.
    fn first_branches(&self) -> FxHashSet<usize> {
        let all = self.members.len() > MOST;
        let leaves = |at: &usize| {
            let inst = &self.code[*at];
            let out = matches!(inst.op, Op::Trap(_)) || self.next[*at].iter().any(|&to| !self.inside[to]);
            is_conditional(inst) && (all || out)
        };
        self.members.iter().copied().filter(leaves).collect()
    }

    /// Branches of which it is not known that they decide anything.
    fn open_branches(&self, known: &FxHashSet<usize>) -> Vec<usize> {
        let open = |at: &usize| is_conditional(&self.code[*at]) && !known.contains(at);
        self.members.iter().copied().filter(open).collect()
    }

    /// What lies between a branch and where its ways meet again.
    fn apart(&self, branch: usize) -> impl Iterator<Item = usize> {
        let meets = match self.code[branch].op {
            Op::Branch { reconverge, .. } | Op::BranchTable { reconverge, .. } if reconverge != NEVER => {
                Some(reconverge as usize)
            }
            _ => None,
        };
        let mut seen = FxHashSet::default();
        let mut open = self.next[branch].clone();
        std::iter::from_fn(move || {
            while let Some(at) = open.pop() {
                if Some(at) != meets && self.inside[at] && seen.insert(at) {
                    open.extend(&self.next[at]);
                    return Some(at);
                }
            }
            None
        })
    }

    /// Whether an instruction decides anything, where these registers do behind it.
    fn does_decide(
        &self,
        at: usize,
        behind: &Set,
        numbers: &impl Fn(Reg) -> std::ops::Range<usize>,
        branches: &FxHashSet<usize>,
    ) -> bool {
        let inst = &self.code[at];
        match inst.op {
            Op::Branch { .. } | Op::BranchTable { .. } | Op::Exit | Op::Trap(_) => branches.contains(&at),
            _ => !only_gives(inst) || inst.defs.iter().any(|&reg| numbers(reg).any(|n| has(behind, n))),
        }
    }

    fn behind(&self, at: usize, words: usize, alive: &[Set]) -> Set {
        let mut behind = vec![0; words];
        for place in self.next[at].iter().filter_map(|to| self.members.binary_search(to).ok()) {
            behind.iter_mut().zip(&alive[place]).for_each(|(a, b)| *a |= b);
        }
        behind
    }

    /// Of each member, the registers that decide, and are alive in front of it.
    fn alive(
        &self,
        words: usize,
        numbers: &impl Fn(Reg) -> std::ops::Range<usize>,
        branches: &FxHashSet<usize>,
    ) -> Vec<Set> {
        let mut alive = vec![vec![0u64; words]; self.members.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for (place, &at) in self.members.iter().enumerate().rev() {
                let inst = &self.code[at];
                let mut now = self.behind(at, words, &alive);
                if self.does_decide(at, &now, numbers, branches) {
                    let gives = inst.defs.iter().any(|&reg| numbers(reg).any(|n| has(&now, n)));
                    if !inst.facts.guarded {
                        inst.defs.iter().flat_map(|&reg| numbers(reg)).for_each(|n| now[n / 64] &= !(1 << (n % 64)));
                    }
                    let guard = inst.facts.guarded.then_some(Reg::Pred(inst.guard));
                    let uses = if gives { inst.uses.to_vec() } else { deciding(inst) };
                    uses.into_iter().chain(guard).flat_map(numbers).for_each(|n| now[n / 64] |= 1 << (n % 64));
                }
                if now != alive[place] {
                    alive[place] = now;
                    changed = true;
                }
            }
        }
        alive
    }

    /// Registers of which nothing but low bits decides, and these bits: what chooses one of eight flags, of a count that goes on for ever. All that
    /// uses them takes bits of them by a mask, or adds something to them that lies in another register.
    fn low_bits(&self, kernel: &Kernel, deciding: &[usize]) -> FxHashMap<Reg, u64> {
        let constant = |reg: Reg| match reg {
            Reg::B32(n) => kernel.constants32.iter().find(|(reg, _)| *reg == n).map(|&(_, value)| value.into()),
            Reg::B64(n) => kernel.constants64.iter().find(|(reg, _)| *reg == n).map(|&(_, value)| value),
            _ => None,
        };
        let mut low: FxHashMap<Reg, u64> = FxHashMap::default();
        for inst in deciding.iter().map(|&at| &self.code[at]) {
            let text = kernel.sites.get(inst.site as usize).map_or("", |place| &place.text);
            let (name, ty) = opcode(text).split_once('.').unwrap_or_default();
            let integer = ["b32", "b64", "u32", "u64", "s32", "s64"].contains(&ty);
            for &reg in inst.uses.iter() {
                let mut others = inst.uses.iter().copied().filter(|&other| other != reg);
                let bits = match (name, others.next().filter(|_| integer && inst.uses.len() == 2)) {
                    ("and", Some(other)) => constant(other).unwrap_or(u64::MAX),
                    ("add" | "sub", Some(_)) if *inst.defs == [reg] => 0,
                    _ => u64::MAX,
                };
                let halves = if let Reg::B128(n) = reg { [Reg::B64(n), Reg::B64(n + 1)] } else { [reg; 2] };
                halves.into_iter().for_each(|reg| *low.entry(reg).or_default() |= bits);
            }
        }
        // A sum carries from lower bits to higher ones.
        low.values_mut().for_each(|bits| *bits = u64::MAX.checked_shr(bits.leading_zeros()).unwrap_or_default());
        low.retain(|reg, bits| *bits != u64::MAX && matches!(reg, Reg::B32(_) | Reg::B64(_)));
        low
    }
}
