//! Where a thread's place in the launch leads it: what follows from special registers and constants alone, for one lane, decides which
//! way it takes at the branches between roles.

use super::known::Known;
use super::successors;
use crate::program::op::{Inst, Op, Reg, ShuffleMode, Special};

/// Of each instruction, whether a lane's guard there holds: `None` where its place does not decide it. For hints alone: what one lane tells
/// the others of its warp is taken for the same in all of them, as the number of a warp is.
pub fn decided_guards(
    code: &[Inst],
    constants: &[(u16, u32)],
    special: impl Fn(Special) -> Option<u32>,
) -> Vec<Option<bool>> {
    let next = successors(code, true);
    // What is known in front of each instruction, on all ways to it that have been found.
    let mut before: Vec<Option<Known>> = vec![None; code.len()];
    let mut open = Vec::new();
    let reach = |before: &mut Vec<Option<Known>>, open: &mut Vec<usize>, at: usize, known: &Known| {
        let Some(place) = before.get_mut(at) else { return };
        let joined = match place {
            None => known.clone(),
            Some(there) => there.common(known),
        };
        if place.as_ref() != Some(&joined) {
            *place = Some(joined);
            open.push(at);
        }
    };
    reach(&mut before, &mut open, 0, &Known::default());
    while let Some(at) = open.pop() {
        let Some(mut known) = before[at].clone() else { continue };
        let inst = &code[at];
        let executed = known.guard(inst);
        match inst.op {
            Op::Branch { target, .. } if executed == Some(true) => {
                reach(&mut before, &mut open, target as usize, &known)
            }
            Op::Branch { .. } | Op::BranchTable { .. } | Op::Exit | Op::Trap(_) if executed == Some(false) => {
                reach(&mut before, &mut open, at + 1, &known);
            }
            _ => {
                if !inst.defs.is_empty() {
                    let value = match inst.op {
                        Op::Special { d: Reg::B32(d), which } => Some((d, special(which))),
                        Op::Shuffle { mode: ShuffleMode::Index, d, a, .. } => Some((d, known.number(a, constants))),
                        _ => None,
                    };
                    known.execute(inst, constants);
                    if let Some((d, value)) = value.filter(|_| executed == Some(true)) {
                        known.set_number(d, value);
                    }
                }
                next[at].iter().for_each(|&to| reach(&mut before, &mut open, to, &known));
            }
        }
    }
    code.iter().zip(before).map(|(inst, known)| known.and_then(|known| known.guard(inst))).collect()
}
