//! Whether parameters or memory say when a statement of a loop is left out: a mask of tiles, or a launch that leaves some of them to another one.

use super::predecessors;
use crate::program::Kernel;
use crate::program::op::{Op, Reg};
use rustc_hash::FxHashSet;

/// The round of a loop: its statements, and the ways between them. The number of statements is where the round ends; ways out of the loop are left out.
struct Round {
    ways: Vec<Vec<usize>>,
    inside: Vec<bool>,
}

impl Kernel {
    /// Whether a round of the innermost loop with a wait around this statement may leave it out for what parameters or memory say.
    pub fn may_be_told_to_leave_out(&self, site: u32) -> bool {
        let multiplies = |op: &Op| matches!(op, Op::Mma(_) | Op::Wgmma(_));
        let all = self.code.iter().enumerate().filter(|(_, inst)| inst.site == site && multiplies(&inst.op));
        let all: Vec<usize> = all.map(|(at, _)| at).collect();
        all.iter().any(|&at| Round::around(self, at).says_what_is_given(self, at))
    }
}

impl Round {
    /// That of the innermost loop around a statement in which warps wait for something, or of the whole kernel.
    fn around(kernel: &Kernel, at: usize) -> Round {
        let (code, end) = (&kernel.code, kernel.code.len());
        let next = kernel.leads();
        let before = predecessors(next);
        let waits = |n: &usize| {
            matches!(
                code[*n].op,
                Op::BarrierWait { .. } | Op::Commit { .. } | Op::WgmmaWait { .. } | Op::CtaBarrier { .. }
            )
        };
        let mut left = vec![true; end + 1];
        let mut found = (None, vec![true; end]);
        left[end] = false;
        loop {
            let [to, from] = [next, &before[..]].map(|ways| reached(&ways[at], ways, |n| left[n]));
            let inside: Vec<bool> = (0..end).map(|n| to[n] && from[n]).collect();
            if !inside[at] {
                break;
            }
            let enters = |n: &usize| inside[*n] && before[*n].iter().any(|&from| !inside[from]);
            let Some(first) = (0..end).find(enters) else { break };
            if (0..end).filter(|&n| inside[n]).any(|n| waits(&n)) {
                found = (Some(first), inside.clone());
            }
            (0..end).for_each(|n| left[n] = inside[n]);
            left[first] = false;
            if first == at {
                break;
            }
        }
        let (head, inside) = found;
        let within = |&to: &usize| match to {
            _ if Some(to) == head => Some(end),
            _ if to == end && head.is_none() => Some(end),
            _ => Some(to).filter(|&to| to < end && inside[to]),
        };
        let ways = next.iter().enumerate().map(|(n, to)| {
            let to: Vec<usize> = if inside[n] { to.iter().filter_map(within).collect() } else { vec![] };
            if to.is_empty() { vec![end] } else { to }
        });
        Round { ways: ways.collect(), inside }
    }

    /// The branches on which it depends whether a round comes to a statement.
    fn branches<'a>(&'a self, at: usize) -> impl Iterator<Item = usize> + 'a {
        let end = self.ways.len();
        let passes = move |from: usize| from != at && reached(&[from], &self.ways, |n| n != at)[end];
        let decides = move |n: &usize| {
            let ways = &self.ways[*n];
            self.inside[*n]
                && *n != at
                && ways.len() > 1
                && ways.iter().any(|&to| passes(to))
                && ways.iter().any(|&to| !passes(to))
        };
        (0..end).filter(decides)
    }

    /// Whether what decides if a round comes to a statement is computed from parameters or memory.
    fn says_what_is_given(&self, kernel: &Kernel, at: usize) -> bool {
        let (mut asked, mut known) = (FxHashSet::from_iter([at]), FxHashSet::<(usize, Reg)>::default());
        let (mut open, mut regs) = (vec![at], Vec::<(usize, Reg)>::new());
        loop {
            if let Some(at) = open.pop() {
                let inst = &kernel.code[at];
                regs.extend(inst.facts.guarded.then_some((at, Reg::Pred(inst.guard))));
                if let Op::BranchTable { .. } = inst.op {
                    regs.extend(inst.uses.iter().map(|&reg| (at, reg)));
                }
                open.extend(self.branches(at).filter(|&branch| asked.insert(branch)));
                continue;
            }
            let Some((at, reg)) = regs.pop() else { return false };
            if !known.insert((at, reg)) {
                continue;
            }
            let writers = kernel.writers().all(at, reg);
            for &writer in &writers {
                let inst = &kernel.code[writer];
                match inst.op {
                    Op::Load(_) | Op::Atomic(_) => return true,
                    _ if inst.facts.plain || inst.op.exchanges() => {
                        regs.extend(inst.uses.iter().map(|&used| (writer, used)));
                    }
                    _ => {}
                }
                // Which of several values it is, branches say, too.
                if (inst.facts.guarded || writers.len() > 1) && self.inside[writer] && asked.insert(writer) {
                    open.push(writer);
                }
            }
        }
    }
}

/// What ways lead to from these on, as long as they may be gone.
fn reached(from: &[usize], ways: &[Vec<usize>], may: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut seen = vec![false; ways.len() + 1];
    let mut open: Vec<usize> = from.to_vec();
    while let Some(at) = open.pop() {
        if (at == ways.len() || may(at))
            && !std::mem::replace(&mut seen[at], true)
            && let Some(next) = ways.get(at)
        {
            open.extend(next);
        }
    }
    seen
}
