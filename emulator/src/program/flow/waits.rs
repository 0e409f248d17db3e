//! Waits for mbarriers, as the code around them uses their answer: asked until it is true, asked once, or not heard at all.

use super::known::Known;
use super::{predecessors, successors};
use crate::program::facts::{Way, ways_lead};
use crate::program::op::{Inst, Op, Reg};
use rustc_hash::FxHashSet;

/// Instructions that are looked at behind a false answer. Loops that ask again are short.
const MOST: usize = 4096;

/// Finds the waits that ask until they pass, and those whose answer nobody hears; and atomic operations whose result nothing reads. Of registers that nothing writes, the constants.
pub fn mark_waits(code: &mut [Inst], constants: &[(u16, u32)]) {
    let mut ways = None;
    for n in 0..code.len() {
        let p = match &code[n].op {
            &Op::BarrierWait { p, .. } => p,
            Op::Atomic(op) => {
                let unread = op.d.is_some_and(|d| is_unread(code, n, d));
                code[n].facts.unread = unread;
                continue;
            }
            _ => continue,
        };
        let unread = is_unread(code, n, Reg::Pred(p));
        let ways = ways.get_or_insert_with(|| Ways::of(code));
        let spins = !unread && asks_again(code, n, p, constants, ways);
        let facts = &mut code[n].facts;
        (facts.unread, facts.spins) = (unread, spins);
    }
}

/// Whether nothing behind an instruction reads what it leaves in a register.
fn is_unread(code: &[Inst], n: usize, of: Reg) -> bool {
    !ways_lead(code, n, |at, inst| {
        let sets = inst.defs.contains(&of) && !inst.facts.guarded;
        let reads = inst.uses.contains(&of) || Reg::Pred(inst.guard) == of;
        if reads {
            Way::Found
        } else if sets && at != n {
            Way::Ends
        } else {
            Way::On
        }
    })
}

/// The ways of the code, backwards.
struct Ways {
    /// From where each instruction is reached, and the end.
    before: Vec<Vec<usize>>,
    /// From which instructions a way leads to one where threads end. One that ends in a trap leads nowhere.
    goes_on: Vec<bool>,
}

impl Ways {
    fn of(code: &[Inst]) -> Ways {
        let before = predecessors(&successors(code, true));
        let mut goes_on: Vec<bool> = code.iter().map(|inst| matches!(inst.op, Op::Exit)).collect();
        let mut open: Vec<usize> = (0..code.len()).filter(|&at| goes_on[at]).collect();
        while let Some(at) = open.pop() {
            for &from in &before[at] {
                if !std::mem::replace(&mut goes_on[from], true) {
                    open.push(from);
                }
            }
        }
        Ways { before, goes_on }
    }
}

/// The only instruction that a register's value in front of another comes from, if there is one.
fn only_definition(code: &[Inst], before: &[Vec<usize>], of: Reg, at: usize) -> Option<usize> {
    let (mut seen, mut open, mut found) = (FxHashSet::default(), vec![at], None);
    while let Some(at) = open.pop() {
        if before[at].is_empty() || at == 0 {
            return None;
        }
        for &from in before[at].iter().filter(|&&from| seen.insert(from)) {
            match (code[from].defs.contains(&of), found) {
                (false, _) => open.push(from),
                (true, Some(known)) if known != from => return None,
                (true, _) => found = Some(from),
            }
        }
    }
    found
}

/// Whether a wait asks for the same again when a way leads back to it over these instructions: they leave its operands as they are, or
/// compute them again from what they leave.
fn asks_the_same(code: &[Inst], n: usize, way: &FxHashSet<usize>, ways: &Ways) -> bool {
    let (mut open, mut seen) = (vec![n], FxHashSet::default());
    while let Some(user) = open.pop() {
        if !seen.insert(user) {
            continue;
        }
        for &reg in &code[user].uses {
            if !way.iter().any(|&at| code[at].defs.contains(&reg)) {
                continue;
            }
            let Some(definition) = only_definition(code, &ways.before, reg, user) else { return false };
            let Inst { op, facts, .. } = &code[definition];
            if !facts.plain || facts.guarded || matches!(op, Op::Special { .. }) {
                return false;
            }
            open.push(definition);
        }
    }
    true
}

/// Whether a wait whose answer is false is asked again, of the same mbarrier and parity, before anything that others see: whatever else
/// is true. A way that ends in a trap ends the run.
fn asks_again(code: &[Inst], n: usize, p: u16, constants: &[(u16, u32)], ways: &Ways) -> bool {
    let known = Known { preds: vec![(p, false)], ..Known::default() };
    let (mut seen, mut next, mut returns) = (FxHashSet::default(), vec![(n + 1, known)], false);
    while let Some((at, mut known)) = next.pop() {
        let Some(inst) = code.get(at) else { return false };
        if at == n {
            returns = true;
            continue;
        }
        if !seen.insert((at, known.clone())) {
            continue;
        }
        if seen.len() > MOST {
            return false;
        }
        let executed = known.guard(inst);
        match &inst.op {
            Op::Branch { target, .. } => {
                if executed != Some(false) {
                    next.push((*target as usize, known.clone()));
                }
                if executed != Some(true) {
                    next.push((at + 1, known));
                }
                continue;
            }
            Op::BranchTable { targets, .. } => {
                next.extend(targets.iter().map(|&target| (target as usize, known.clone())));
                if executed != Some(true) {
                    next.push((at + 1, known));
                }
                continue;
            }
            Op::Trap(_) if executed == Some(true) => continue,
            _ if executed == Some(false) => {}
            Op::Exit => return false,
            _ if inst.facts.visible => {
                let leads_on =
                    ways.goes_on[at] || ways_lead(code, at, |at, _| if at == n { Way::Found } else { Way::On });
                if leads_on {
                    return false;
                }
                continue;
            }
            _ => {}
        }
        known.execute(inst, constants);
        next.push((at + 1, known));
    }
    let way = seen.into_iter().map(|(at, _)| at).collect();
    returns && asks_the_same(code, n, &way, ways)
}
