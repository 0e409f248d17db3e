//! Lanes of a warp that store different values to one place by one instruction.
//!
//! The stores of two threads to the same bytes are a race if they are weak and neither is ordered before the other (PTX ISA 8.7.2), and nothing orders
//! those of one instruction: a GPU keeps one of them, and does not say which. Lanes that store the same value race to the letter; production kernels let them.

use super::resolve::Target;
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::program::atomic::StoreOp;
use smallvec::SmallVec;

/// The memory in which a target lies, other than memory of each thread's own, and its offset there.
fn place(target: Target) -> Option<((bool, usize), u64)> {
    match target {
        Target::Shared(cta, offset) => Some(((false, cta), offset.into())),
        Target::Global { buffer, offset } => Some(((true, buffer), offset)),
        Target::Local(_) | Target::Param(_) => None,
    }
}

impl Cluster<'_> {
    /// Lanes of a warp store so many bytes each, to these places.
    pub fn check_lanes_of_store(&mut self, w: usize, site: u32, op: &StoreOp, targets: &[(usize, Target)]) {
        let total = u64::from(op.bytes) * op.s.len() as u64;
        let apart = |two: &[(usize, Target)]| match (place(two[0].1), place(two[1].1)) {
            (Some((memory, one)), Some((other, two))) => memory == other && one + total <= two,
            _ => false,
        };
        if targets.windows(2).all(apart) {
            return;
        }
        let mut all: SmallVec<[_; 32]> = targets.iter().filter_map(|&(lane, at)| Some((place(at)?, lane))).collect();
        all.sort_unstable();
        let registers = &self.warps[w].registers;
        let bits = u128::MAX >> (128 - 8 * u32::from(op.bytes).min(16));
        let same = |one: usize, two: usize| {
            op.s.iter().all(|&reg| (registers.lane(reg, one) ^ registers.lane(reg, two)) & bits == 0)
        };
        let meet = all.windows(2).find(|two| {
            let [((memory, one), lane), ((other, begin), second)] = [two[0], two[1]];
            memory == other && begin < one + total && !(one == begin && same(lane, second))
        });
        let Some(&[(((global, memory), _), one), ((_, at), two)]) = meet.and_then(|two| two.first_chunk()) else {
            return;
        };
        let (code, place) = match global {
            true => ("race-global", self.global.buffers[memory].describe(at)),
            false => ("race-shared", self.shared_name(at as u32)),
        };
        let [one, two] = [one.min(two), one.max(two)];
        let mut diagnostic = self.problem(
            code,
            site,
            format!("lanes {one} and {two} of {} store different values to {place} at once", self.warp_name(w)),
            "Weak stores of two threads to the same bytes, neither of them ordered before the other, are a race (PTX ISA 8.7.2): a GPU keeps one of them, and \
             nothing says which.",
            "Give each lane a place of its own, let one lane store (by a guard, or elect.sync), or combine the values by an atomic operation.".into(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = "by one instruction".into();
        self.findings.add(diagnostic);
    }
}
