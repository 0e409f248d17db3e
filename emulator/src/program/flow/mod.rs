//! Where lanes that part at a branch meet again: the branch's immediate post-dominator.
//!
//! Hardware makes the same choice when it compiles a branch into a BSSY/BSYNC pair: lanes wait for each other where all
//! paths have come together again, and are free to run apart until then. Those for whom others ask in vain go on before
//! (`machine/schedule/part_waits.rs`). Lanes that end are waited for no longer: a path that returns or traps does not keep the others
//! from meeting.

pub mod decided;
pub mod dependence;
pub mod endless;
pub mod known;
pub mod leaving;
pub mod left_out;
pub mod one_column;
pub mod waits;
pub mod writers;

use super::Kernel;
use super::op::{Inst, Op, TRUE};

/// "Nowhere": the lanes do not meet before they end.
pub const NEVER: u32 = u32::MAX;

/// Fills `reconverge` of every conditional branch.
pub fn set_reconvergence(code: &mut [Inst]) {
    let exit = code.len();
    // First choice: a guarded return or trap is passed by the lanes that go on.
    let passing = successors(code, false);
    let first = post_dominators(&passing, exit);
    // Second: a path that ends in a return leads nowhere; only the last return of the text counts as the end.
    let reachable = reachable(&passing);
    let last = (0..exit).rev().find(|&pc| passing[pc] == [exit] && reachable[pc]);
    let mut to_the_end = passing;
    for (pc, list) in to_the_end.iter_mut().enumerate() {
        if *list == [exit] && Some(pc) != last {
            list.clear();
        }
    }
    let second = post_dominators(&to_the_end, exit);
    // Third, for loops that only a guarded return leaves: every return counts.
    let third = post_dominators(&successors(code, true), exit);
    // Fourth, where no return can be reached any more: what stops the run, and what goes round for ever, counts as the end.
    let lost = (0..exit).any(|pc| reachable[pc] && third[pc].is_none());
    let fourth = lost.then(|| {
        let mut stopping = successors(code, true);
        end_somewhere(code, &mut stopping);
        post_dominators(&stopping, exit)
    });
    let meets = |p: &usize| *p != exit;
    for (pc, inst) in code.iter_mut().enumerate() {
        if let Op::Branch { reconverge, .. } | Op::BranchTable { reconverge, .. } = &mut inst.op {
            let arrive = |list: &[usize]| list.iter().all(|&s| second[s].is_some());
            let p = first[pc]
                .filter(meets)
                .or_else(|| second[pc].filter(meets).filter(|_| arrive(&to_the_end[pc])))
                .or_else(|| third[pc].filter(meets))
                .or_else(|| fourth.as_ref()?[pc].filter(meets));
            *reconverge = p.map_or(NEVER, |p| p as u32);
        }
    }
}

impl Kernel {
    /// Where each instruction leads, with the end behind guarded ends: found out once.
    pub fn leads(&self) -> &[Vec<usize>] {
        self.leads.get_or_init(|| successors(&self.code, true))
    }

    /// Where all ways from each instruction come together again, [`NEVER`] if that is at the end: found out once, when a part of a warp waits where the
    /// rest goes on.
    pub fn joins(&self) -> &[u32] {
        self.joins.get_or_init(|| {
            let exit = self.code.len();
            let joins = post_dominators(&successors(&self.code, false), exit);
            joins.into_iter().map(|pc| pc.filter(|&pc| pc != exit).map_or(NEVER, |pc| pc as u32)).collect()
        })
    }
}

/// Where each instruction leads; the end is the number of instructions.
pub fn successors(code: &[Inst], guarded_end: bool) -> Vec<Vec<usize>> {
    let exit = code.len();
    let list = |(pc, inst): (usize, &Inst)| {
        let next = (pc + 1).min(exit);
        let conditional = inst.guard != TRUE || inst.guard_negated;
        match inst.op {
            Op::BranchTable { ref targets, .. } => {
                let mut list: Vec<usize> = targets.iter().map(|&t| (t as usize).min(exit)).collect();
                if conditional {
                    list.push(next);
                }
                list
            }
            Op::Branch { target, .. } if conditional => vec![next, (target as usize).min(exit)],
            Op::Branch { target, .. } => vec![(target as usize).min(exit)],
            Op::Exit if conditional && guarded_end => vec![next, exit],
            Op::Exit | Op::Trap(_) if conditional => vec![next],
            Op::Exit => vec![exit],
            // The run ends: nobody waits.
            Op::Trap(_) => vec![],
            _ => vec![next],
        }
    };
    code.iter().enumerate().map(list).collect()
}

/// Lets traps lead to the end, and endless loops, too: each by its last branch backwards.
fn end_somewhere(code: &[Inst], successors: &mut [Vec<usize>]) {
    let exit = code.len();
    for (inst, list) in code.iter().zip(successors.iter_mut()) {
        if matches!(inst.op, Op::Trap(_)) && list.is_empty() {
            list.push(exit);
        }
    }
    let (reachable, predecessors) = (reachable(successors), predecessors(successors));
    let mut ends = vec![false; exit + 1];
    spread(exit, &predecessors, &mut ends);
    for pc in (0..exit).rev() {
        if reachable[pc] && !ends[pc] && successors[pc].iter().any(|&to| to <= pc) {
            successors[pc].push(exit);
            spread(pc, &predecessors, &mut ends);
        }
    }
}

/// From where each instruction, and the end, is led to.
pub fn predecessors(successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut predecessors = vec![Vec::new(); successors.len() + 1];
    for (from, list) in successors.iter().enumerate() {
        for &to in list {
            predecessors[to].push(from);
        }
    }
    predecessors
}

/// Which instructions a path from the start leads to.
fn reachable(successors: &[Vec<usize>]) -> Vec<bool> {
    let mut seen = vec![false; successors.len() + 1];
    spread(0, successors, &mut seen);
    seen
}

/// Sees an instruction, and what lies behind it on ways of which nothing was seen before.
pub fn spread(from: usize, ways: &[Vec<usize>], seen: &mut [bool]) {
    let mut open = vec![from];
    while let Some(pc) = open.pop() {
        if !std::mem::replace(&mut seen[pc], true)
            && let Some(list) = ways.get(pc)
        {
            open.extend(list);
        }
    }
}

/// The loop around a branch back to a target, by instruction: all from which a way leads there, and to which one leads from there. `alone`: without the
/// loops around it, of which is what leads to its begin.
pub fn around(branch: usize, target: usize, alone: bool, next: &[Vec<usize>], before: &[Vec<usize>]) -> Vec<bool> {
    let (mut from, mut to) = (vec![false; next.len() + 1], vec![false; next.len() + 1]);
    spread(target, next, &mut from);
    to[target] = alone;
    spread(branch, before, &mut to);
    from.iter().zip(&to).map(|(from, to)| *from && *to).collect()
}

/// Immediate post-dominators by the algorithm of Cooper, Harvey and Kennedy on the reversed graph.
fn post_dominators(successors: &[Vec<usize>], exit: usize) -> Vec<Option<usize>> {
    let n = successors.len();
    let predecessors = predecessors(successors);
    // Reverse post-order of the reversed graph, from the exit.
    let mut order = Vec::with_capacity(n + 1);
    let mut seen = vec![false; n + 1];
    let mut stack = vec![(exit, 0)];
    seen[exit] = true;
    while let Some((node, child)) = stack.pop() {
        if let Some(&p) = predecessors[node].get(child) {
            stack.push((node, child + 1));
            if !seen[p] {
                seen[p] = true;
                stack.push((p, 0));
            }
        } else {
            order.push(node);
        }
    }
    order.reverse();
    let mut rank = vec![usize::MAX; n + 1];
    for (i, &node) in order.iter().enumerate() {
        rank[node] = i;
    }
    let mut dom: Vec<Option<usize>> = vec![None; n + 1];
    dom[exit] = Some(exit);
    let mut changed = true;
    while changed {
        changed = false;
        for &node in order.iter().skip(1) {
            let mut best: Option<usize> = None;
            for &s in &successors[node] {
                if dom[s].is_none() {
                    continue;
                }
                best = Some(match best {
                    None => s,
                    Some(mut a) => {
                        let mut b = s;
                        while a != b {
                            while rank[a] > rank[b] {
                                a = dom[a].unwrap_or(exit);
                            }
                            while rank[b] > rank[a] {
                                b = dom[b].unwrap_or(exit);
                            }
                        }
                        a
                    }
                });
            }
            if best.is_some() && dom[node] != best {
                dom[node] = best;
                changed = true;
            }
        }
    }
    dom
}
