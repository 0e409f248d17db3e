//! Where lanes that part at a branch meet again: the branch's immediate post-dominator.
//!
//! Hardware makes the same choice when it compiles a branch into a BSSY/BSYNC pair: lanes wait for each other where all
//! paths have come together again, and are free to run apart until then.

use super::op::{Inst, Op, TRUE};

/// "Nowhere": the lanes do not meet before they end.
pub const NEVER: u32 = u32::MAX;

/// Fills `reconverge` of every conditional branch.
pub fn set_reconvergence(code: &mut [Inst]) {
    let n = code.len();
    let exit = n;
    let mut successors: Vec<Vec<usize>> = Vec::with_capacity(n);
    for (pc, inst) in code.iter().enumerate() {
        let next = if pc + 1 < n { pc + 1 } else { exit };
        let conditional = inst.guard != TRUE || inst.guard_negated;
        successors.push(match inst.op {
            Op::Branch { target, .. } if conditional => vec![next, (target as usize).min(exit)],
            Op::Branch { target, .. } => vec![(target as usize).min(exit)],
            Op::Exit | Op::Trap if conditional => vec![next, exit],
            Op::Exit | Op::Trap => vec![exit],
            _ => vec![next],
        });
    }
    let post = post_dominators(&successors, exit);
    for (pc, inst) in code.iter_mut().enumerate() {
        if let Op::Branch { reconverge, .. } = &mut inst.op {
            *reconverge = match post[pc] {
                Some(p) if p != exit => p as u32,
                _ => NEVER,
            };
        }
    }
}

/// Immediate post-dominators by the algorithm of Cooper, Harvey and Kennedy on the reversed graph.
fn post_dominators(successors: &[Vec<usize>], exit: usize) -> Vec<Option<usize>> {
    let n = successors.len();
    let mut predecessors = vec![Vec::new(); n + 1];
    for (from, list) in successors.iter().enumerate() {
        for &to in list {
            predecessors[to].push(from);
        }
    }
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
