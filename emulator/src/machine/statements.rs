//! What the statements at places do, as findings ask it: by what they were decoded to, not by how they are written.

use crate::diagnostic::Place;
use crate::program::op::{Inst, Op};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Registers go to memory.
    Stores,
    /// Something about `wgmma`.
    Wgmma,
    /// Threads arrive at an mbarrier.
    Arrives,
    /// Tensor memory goes to registers.
    Reads,
    /// A wait for a phase of an mbarrier.
    Waits,
    /// A CTA barrier.
    Meets,
    /// A copy of the TMA engine.
    Copies,
    /// An MMA of the tensor core, with operands in shared memory or tensor memory.
    Multiplies,
}

/// The statements of a kernel. They are looked through when a finding asks for the first time: most runs have none.
#[derive(Default)]
pub struct Statements<'a> {
    code: &'a [Inst],
    sites: &'a [Place],
    /// By line and column of the PTX text.
    known: OnceCell<FxHashMap<(u32, u32), Does>>,
}

impl<'a> Statements<'a> {
    pub fn of(code: &'a [Inst], sites: &'a [Place]) -> Statements<'a> {
        Statements { code, sites, known: OnceCell::new() }
    }

    pub fn are(&self, place: &Place, what: Does) -> bool {
        self.known.get_or_init(|| self.all()).get(&(place.line, place.column)) == Some(&what)
    }

    fn all(&self) -> FxHashMap<(u32, u32), Does> {
        let does = |inst: &Inst| {
            Some(match inst.op {
                Op::Store(_) | Op::MatrixStore { .. } | Op::AsyncStore(_) | Op::Fill { .. } => Does::Stores,
                Op::Wgmma(_) | Op::WgmmaFence | Op::WgmmaCommit | Op::WgmmaWait { .. } => Does::Wgmma,
                Op::BarrierArrive { .. } => Does::Arrives,
                Op::TensorLoad { .. } => Does::Reads,
                Op::BarrierWait { .. } => Does::Waits,
                Op::Mma(_) => Does::Multiplies,
                Op::Tma(_) => Does::Copies,
                Op::CtaBarrier { .. } | Op::BarrierReduce { .. } => Does::Meets,
                _ => return None,
            })
        };
        let at = |inst: &Inst| self.sites.get(inst.site as usize).map(|place| (place.line, place.column));
        self.code.iter().filter_map(|inst| Some((at(inst)?, does(inst)?))).collect()
    }
}
