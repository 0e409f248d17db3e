//! Loops of which it can be computed, in whichever round, that they are never left: what decides at each way out of them comes from registers that
//! nothing in the loop changes.

use super::{around, predecessors, successors};
use crate::program::Kernel;
use crate::program::op::{Inst, Op, Reg};
use rustc_hash::FxHashSet;

/// A loop whose ways out are decided by what no round changes.
#[derive(Debug)]
pub struct Settled {
    /// Its instructions, ascending.
    pub members: Vec<u32>,
    /// Its branch back.
    pub back: u32,
    pub exits: Vec<WayOut>,
}

/// A guarded instruction by which lanes leave a loop.
#[derive(Debug)]
pub struct WayOut {
    pub at: u32,
    /// Whether lanes leave that execute it, or else those that do not.
    pub by_executing: bool,
    /// What computes its guard in each round, from registers that keep their values: in order.
    pub computed_by: Vec<u32>,
    /// These registers.
    pub from: Vec<Reg>,
}

impl Kernel {
    /// All loops of this kind: found out once, when a run has taken long.
    pub fn settled_loops(&self) -> &[Settled] {
        self.settled.get_or_init(|| find(&self.code))
    }
}

/// More branches back are not looked at: what a loop has is looked at for each.
const MOST: usize = 1 << 9;

fn find(code: &[Inst]) -> Vec<Settled> {
    let next = successors(code, true);
    let before = predecessors(&next);
    let back = |(at, inst): (usize, &Inst)| match inst.op {
        Op::Branch { target, .. } if target as usize <= at => Some((at, target as usize)),
        _ => None,
    };
    let mut seen = FxHashSet::default();
    let mut found = Vec::new();
    for (branch, target) in code.iter().enumerate().filter_map(back).take(MOST) {
        // With the loops around it, and by itself.
        for alone in [false, true] {
            let inside = around(branch, target, alone, &next, &before);
            let members: Vec<u32> = (0..code.len()).filter(|&at| inside[at]).map(|at| at as u32).collect();
            if members.is_empty() || !seen.insert(members.clone()) {
                continue;
            }
            let around = Around { code, next: &next, before: &before, inside: &inside, members: &members };
            if let Some(exits) = around.ways_out() {
                found.push(Settled { back: around.widest(branch), exits, members });
            }
        }
    }
    found
}

struct Around<'k> {
    code: &'k [Inst],
    next: &'k [Vec<usize>],
    before: &'k [Vec<usize>],
    inside: &'k [bool],
    members: &'k [u32],
}

impl Around<'_> {
    /// The branch back that spans most: that of the outermost loop, of several in each other.
    fn widest(&self, branch: usize) -> u32 {
        let span = |&at: &u32| match self.code[at as usize].op {
            Op::Branch { target, .. } if self.inside[target as usize] => at.checked_sub(target),
            _ => None,
        };
        self.members.iter().copied().max_by_key(span).unwrap_or(branch as u32)
    }

    /// `None`: what decides at one of them changes, or is not known.
    fn ways_out(&self) -> Option<Vec<WayOut>> {
        let leads_out = |at: usize| self.next[at].iter().any(|&to| !self.inside[to]);
        let ends = |inst: &Inst| matches!(inst.op, Op::Exit | Op::Trap(_));
        let exits = self.members.iter().map(|&at| at as usize);
        exits.filter(|&at| leads_out(at) || ends(&self.code[at])).map(|at| self.way_out(at)).collect()
    }

    fn way_out(&self, at: usize) -> Option<WayOut> {
        let inst = &self.code[at];
        let by_executing = match inst.op {
            Op::Branch { target, .. } => !self.inside[target as usize],
            Op::Exit | Op::Trap(_) => true,
            _ => return None,
        };
        // Both ways of a branch lead out only where it is not a part of the loop.
        if !inst.facts.guarded || by_executing && !self.inside[at + 1] {
            return None;
        }
        let (mut computed_by, mut from) = (Vec::new(), Vec::new());
        self.settle(Reg::Pred(inst.guard), (at, 0), &mut computed_by, &mut from)?;
        // In the order in which they are executed: the one that is fewest steps away comes last.
        computed_by.sort_unstable_by_key(|&(steps, _)| std::cmp::Reverse(steps));
        Some(WayOut {
            at: at as u32,
            by_executing,
            computed_by: computed_by.into_iter().map(|(_, at)| at).collect(),
            from,
        })
    }

    /// Finds what computes a register's value in front of an instruction, on the one way that leads there: adds how many steps away from the way out it
    /// is, and its place; and the registers that keep their values. `None`: it may have several values.
    fn settle(
        &self,
        reg: Reg,
        (mut at, mut steps): (usize, usize),
        computed_by: &mut Vec<(usize, u32)>,
        from: &mut Vec<Reg>,
    ) -> Option<()> {
        while let (1.., &[before]) = (at, &self.before[at][..])
            && self.inside[before]
            && steps < self.members.len()
        {
            (at, steps) = (before, steps + 1);
            let inst = &self.code[at];
            if !inst.defs.iter().any(|&def| overlap(def, reg)) {
                continue;
            }
            if inst.facts.guarded || !inst.facts.alone {
                return None;
            }
            if !computed_by.contains(&(steps, at as u32)) {
                computed_by.push((steps, at as u32));
                for &used in &inst.uses {
                    self.settle(used, (at, steps), computed_by, from)?;
                }
            }
            return Some(());
        }
        // Several ways lead here: the register has one value if nothing in the loop gives it one.
        let changes = |&at: &u32| self.code[at as usize].defs.iter().any(|&def| overlap(def, reg));
        if self.members.iter().any(changes) {
            return None;
        }
        if !from.contains(&reg) {
            from.push(reg);
        }
        Some(())
    }
}

fn overlap(a: Reg, b: Reg) -> bool {
    let halves = |reg| if let Reg::B128(n) = reg { [Reg::B64(n), Reg::B64(n + 1)] } else { [reg; 2] };
    halves(a).iter().any(|half| *half != Reg::Sink && halves(b).contains(half))
}
