//! What the statements at places do, as findings ask it: by what they were decoded to, not by how they are written.

use crate::diagnostic::Place;
use crate::program::op::{Inst, Op};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Registers go to memory.
    Stores,
    /// Something about `wgmma`.
    Wgmma,
    /// A wait for a phase of an mbarrier.
    Waits,
    /// A CTA barrier.
    Meets,
}

/// By line and column of the PTX text.
#[derive(Debug, Default)]
pub struct Statements(FxHashMap<(u32, u32), Does>);

impl Statements {
    pub fn of(code: &[Inst], sites: &[Place]) -> Statements {
        let does = |inst: &Inst| {
            Some(match inst.op {
                Op::Store(_) | Op::MatrixStore { .. } | Op::AsyncStore(_) | Op::Fill { .. } => Does::Stores,
                Op::Wgmma(_) | Op::WgmmaFence | Op::WgmmaCommit | Op::WgmmaWait { .. } => Does::Wgmma,
                Op::BarrierWait { .. } => Does::Waits,
                Op::CtaBarrier { .. } | Op::BarrierReduce { .. } => Does::Meets,
                _ => return None,
            })
        };
        let at = |inst: &Inst| sites.get(inst.site as usize).map(|place| (place.line, place.column));
        Statements(code.iter().filter_map(|inst| Some((at(inst)?, does(inst)?))).collect())
    }

    pub fn are(&self, place: &Place, what: Does) -> bool {
        self.0.get(&(place.line, place.column)) == Some(&what)
    }
}
