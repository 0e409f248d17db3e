//! What the statements at places do, as findings ask it: by what they were decoded to, not by how they are written.

use crate::diagnostic::Place;
use crate::program::facts::{Way, ways_lead};
use crate::program::flow::writers::Writers;
use crate::program::op::{Inst, Op, Reg};
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
    /// An arrival of MMAs that are complete.
    Commits,
    /// Tensor memory goes to registers.
    Reads,
    /// A wait for a phase of an mbarrier.
    Waits,
    /// A CTA barrier.
    Meets,
    /// A copy of the TMA engine.
    Copies,
    /// `cp.async`: a copy of a thread.
    CopiesChunks,
    /// A store whose bytes an mbarrier counts.
    Sends,
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
    /// The same way: the first and the last instruction. A statement of a device function has some for each call.
    order: OnceCell<FxHashMap<(u32, u32), (usize, usize)>>,
    writers: OnceCell<Writers>,
}

impl<'a> Statements<'a> {
    pub fn of(code: &'a [Inst], sites: &'a [Place]) -> Statements<'a> {
        Statements { code, sites, ..Statements::default() }
    }

    pub fn are(&self, place: &Place, what: Does) -> bool {
        self.known.get_or_init(|| self.all()).get(&(place.line, place.column)) == Some(&what)
    }

    /// Whether one place stands further down than another: in the kernel, with the bodies of functions in place of their calls.
    pub fn behind(&self, one: &Place, other: &Place) -> bool {
        let order = self.order.get_or_init(|| self.in_order());
        let of = |place: &Place| order.get(&(place.line, place.column));
        matches!((of(one), of(other)), (Some((_, last)), Some((first, _))) if last > first)
    }

    /// Whether a way leads from one place to another past no wait for an mbarrier.
    pub fn lead(&self, from: &Place, to: &Place) -> bool {
        self.lead_past(from, to, |op| matches!(op, Op::BarrierWait { .. }))
    }

    /// Whether a way leads from one place to another on which nobody waits for others, nor for what it has copied.
    pub fn lead_straight(&self, from: &Place, to: &Place) -> bool {
        self.lead_past(from, to, |op| {
            matches!(
                op,
                Op::BarrierWait { .. }
                    | Op::CtaBarrier { .. }
                    | Op::BarrierReduce { .. }
                    | Op::ClusterWait { .. }
                    | Op::BulkWait { .. }
                    | Op::AsyncWait { .. }
            )
        })
    }

    /// Whether a way leads from one place to another past no instruction that ends it.
    fn lead_past(&self, from: &Place, to: &Place, ends: impl Fn(&Op) -> bool) -> bool {
        let is = |inst: &Inst, place: &Place| self.at(inst) == Some((place.line, place.column));
        let way = |_: usize, inst: &Inst| match &inst.op {
            _ if is(inst, to) => Way::Found,
            op if ends(op) => Way::Ends,
            _ => Way::On,
        };
        let mut begins = (0..self.code.len()).filter(|&at| is(&self.code[at], from));
        begins.any(|at| ways_lead(self.code, at, way))
    }

    /// The statement that has written the count of an mbarrier which is initialised here.
    pub fn writer_of_count(&self, init: &Place) -> Option<usize> {
        let order = self.order.get_or_init(|| self.in_order());
        let &(at, _) = order.get(&(init.line, init.column))?;
        let Op::BarrierInit { count, .. } = self.code[at].op else { return None };
        self.writers.get_or_init(|| Writers::new(self.code)).last(at, Reg::B32(count))
    }

    fn at(&self, inst: &Inst) -> Option<(u32, u32)> {
        self.sites.get(inst.site as usize).map(|place| (place.line, place.column))
    }

    fn in_order(&self) -> FxHashMap<(u32, u32), (usize, usize)> {
        let mut order = FxHashMap::default();
        for (n, inst) in self.code.iter().enumerate() {
            if let Some(at) = self.at(inst) {
                order.entry(at).or_insert((n, n)).1 = n;
            }
        }
        order
    }

    fn all(&self) -> FxHashMap<(u32, u32), Does> {
        let does = |inst: &Inst| {
            Some(match inst.op {
                Op::Store(_) | Op::MatrixStore { .. } | Op::Fill { .. } => Does::Stores,
                Op::AsyncStore(_) => Does::Sends,
                Op::Wgmma(_) | Op::WgmmaFence | Op::WgmmaCommit | Op::WgmmaWait { .. } => Does::Wgmma,
                Op::BarrierArrive { .. } => Does::Arrives,
                Op::Commit { .. } => Does::Commits,
                Op::TensorLoad { .. } => Does::Reads,
                Op::BarrierWait { .. } => Does::Waits,
                Op::Mma(_) => Does::Multiplies,
                Op::Tma(_) => Does::Copies,
                Op::AsyncCopy { .. } => Does::CopiesChunks,
                Op::CtaBarrier { .. } | Op::BarrierReduce { .. } => Does::Meets,
                _ => return None,
            })
        };
        self.code.iter().filter_map(|inst| Some((self.at(inst)?, does(inst)?))).collect()
    }
}
