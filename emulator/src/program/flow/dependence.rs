//! What depends on values that are not there: in a cluster that computes no values, what a `tcgen05.ld` or a `wgmma` brings, and what
//! loads bring from bytes that such values were stored to.
//!
//! Such values may be computed with, stored, and compared; the stores mark what they write. Where one decides what the kernel does
//! (a branch, an address, an operand of a barrier or an engine), the run says nothing any more about the kernel.

use crate::program::Kernel;
use crate::program::facts::number;
use crate::program::op::{Inst, Op, Reg, Special, TRUE};

/// The statements that depend on values that are not there.
#[derive(Debug, Default)]
pub struct Dependence {
    /// For each statement, whether it may store such a value.
    stores: Vec<bool>,
    /// The first whose effect may depend on one.
    pub control: Option<u32>,
}

impl Dependence {
    /// Of a kernel in which these statements, and every `tcgen05.ld` and `wgmma.mma_async`, bring values that are not there.
    pub fn of(kernel: &Kernel, sources: &[u32]) -> Dependence {
        let brings =
            |inst: &Inst| matches!(inst.op, Op::TensorLoad { .. } | Op::Wgmma(_)) || sources.contains(&inst.site);
        Dependence::spread(kernel, brings)
    }

    /// The first statement that asks for the time or for the SM's number, if what the kernel does may depend on the answer.
    pub fn on_the_clock(kernel: &Kernel) -> Option<u32> {
        let asks =
            |inst: &Inst| matches!(inst.op, Op::Special { which, .. } if which == Special::Sm || which.is_time());
        let first = kernel.code.iter().find(|inst| asks(inst))?.site;
        Dependence::spread(kernel, asks).control.map(|_| first)
    }

    /// What depends on the results of these instructions.
    fn spread(kernel: &Kernel, brings: impl Fn(&Inst) -> bool) -> Dependence {
        let code = &kernel.code;
        let (n32, n64, preds) = kernel.registers;
        let words = (usize::from(n32) + usize::from(n64) + usize::from(preds) + 2).div_ceil(64);
        let registers = |regs: &[Reg]| -> Vec<usize> {
            let halves = |reg: &Reg| {
                let first = number(*reg, kernel.registers) as usize;
                first..first + if let Reg::B128(_) = reg { 2 } else { usize::from(*reg != Reg::Sink) }
            };
            regs.iter().flat_map(halves).collect()
        };
        let next = kernel.leads();
        let mut before = vec![vec![0u64; words]; code.len() + 1];
        let has = |set: &[u64], regs: &[Reg]| registers(regs).iter().any(|n| set[n / 64] >> (n % 64) & 1 == 1);
        let mut changed = true;
        while changed {
            changed = false;
            for (pc, inst) in code.iter().enumerate() {
                let mut now = before[pc].clone();
                let always = inst.guard == TRUE && !inst.guard_negated;
                let guard = [Reg::Pred(inst.guard)];
                let brings = brings(inst);
                let carries = carries(inst) && (has(&now, &inst.uses) || !always && has(&now, &guard));
                for n in registers(&inst.defs) {
                    if brings || carries {
                        now[n / 64] |= 1 << (n % 64);
                    } else if always {
                        now[n / 64] &= !(1 << (n % 64));
                    }
                }
                for &to in &next[pc] {
                    for (known, &more) in before[to].iter_mut().zip(&now) {
                        changed |= more & !*known != 0;
                        *known |= more;
                    }
                }
            }
        }
        let mut found = Dependence { stores: vec![false; kernel.sites.len()], control: None };
        for (inst, known) in code.iter().zip(&before) {
            let guarded = inst.guard != TRUE || inst.guard_negated;
            let decides = !inst.facts.plain && guarded && has(known, &[Reg::Pred(inst.guard)]);
            if found.control.is_none() && (decides || has(known, &deciding(inst))) {
                found.control = Some(inst.site);
            }
            if let Some(stored) = found.stores.get_mut(inst.site as usize) {
                *stored |= has(known, &stored_by(inst));
            }
        }
        found
    }

    /// Whether a statement may store a value that is not there.
    pub fn stores(&self, site: u32) -> bool {
        self.stores.get(site as usize).is_some_and(|&stores| stores)
    }
}

/// Results depend on operands, and on nothing else does anything.
fn carries(inst: &Inst) -> bool {
    let lanes = matches!(inst.op, Op::Shuffle { .. } | Op::Vote { .. } | Op::Reduce { .. } | Op::Match { .. });
    inst.facts.plain || lanes || matches!(inst.op, Op::WarpMma(_) | Op::MoveMatrix { .. })
}

/// Registers that an instruction stores, or combines with memory.
fn stored_by(inst: &Inst) -> Vec<Reg> {
    match &inst.op {
        Op::Store(op) => op.s.to_vec(),
        Op::Atomic(op) => op.t.into_iter().chain([op.s]).collect(),
        Op::AsyncStore(op) => op.s.to_vec(),
        Op::TensorStore { s, .. } | Op::MatrixStore { s, .. } => s.iter().map(|&reg| Reg::B32(reg)).collect(),
        _ => vec![],
    }
}

/// Registers that decide what an instruction does.
pub fn deciding(inst: &Inst) -> Vec<Reg> {
    match &inst.op {
        _ if inst.facts.plain => vec![],
        Op::WarpMma(_) | Op::MoveMatrix { .. } => vec![],
        Op::Shuffle { mask, .. } | Op::Vote { mask, .. } | Op::Reduce { mask, .. } | Op::Match { mask, .. } => {
            vec![Reg::B32(*mask)]
        }
        Op::Store(op) => vec![op.address.base],
        Op::Atomic(op) => vec![op.address.base],
        Op::AsyncStore(op) => vec![op.to.base, op.barrier.base],
        Op::TensorStore { tensor, .. } => vec![tensor.base],
        Op::MatrixStore { address, .. } => vec![address.base],
        Op::Wgmma(op) => op.deciding(),
        _ => inst.uses.to_vec(),
    }
}
