//! The check of accesses of tensor memory against earlier ones.

use super::cluster::Cluster;
use super::state::{ActorKind, Race, RaceMemory};
use crate::order::{Access, Conflict, Reason, Rows, Stamp};

/// An access of tensor memory.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    pub stamp: Stamp,
    pub writes: bool,
    /// The columns are given back.
    pub frees: bool,
}

impl Use {
    pub fn of(stamp: Stamp, writes: bool) -> Use {
        Use { stamp, writes, frees: false }
    }
}

impl Cluster<'_> {
    /// Checks and remembers an access to cells side by side. Gives the conflict that weighs most: one that is forgiven, or no more than
    /// noted, does not hide one that is a finding.
    pub fn touch_cells(&mut self, w: usize, c: usize, at: u64, len: u64, new: Use) -> Option<Race> {
        let Use { stamp, writes, frees } = new;
        let access = Access { proxyless: true, ..Access::new(stamp, &self.warps[w].views) };
        if self.ctas[c].tensor_shadow.touch_rows(Rows { first: at, bytes: len, count: 1, pitch: 0 }, &access, writes) {
            return None;
        }
        let hard = |first: &Stamp| !self.is_forgiven(w, *first, new) && !self.is_noted(w, *first, new);
        let hard = self.ctas[c].tensor_shadow.conflict_with(at, len, &access, writes, &hard);
        let shadow = &mut self.ctas[c].tensor_shadow;
        let heaviest = if writes { shadow.write(at, len, &access) } else { shadow.read(at, len, &access) };
        let conflict: Conflict = match hard {
            Some(hard) if hard.reason == Reason::Unordered => hard,
            _ => heaviest.filter(|heaviest| !self.is_forgiven(w, heaviest.first, new)).or(hard)?,
        };
        let (in_time, unwaited) = (self.was_in_time(w, conflict.first), self.was_not_waited_for(w, conflict.first));
        Some(Race { frees, in_time, unwaited, ..Race::new(RaceMemory::Tensor(c), conflict, stamp) })
    }

    /// Whether the two run as a pipeline.
    fn is_forgiven(&self, w: usize, first: Stamp, new: Use) -> bool {
        matches!(self.kind(new.stamp), Some(ActorKind::Mmas { .. })) && self.pipelined_copy(w, first, new.stamp)
    }

    /// Whether it is no more than a note that nothing orders the two, since the first was over in time.
    fn is_noted(&self, w: usize, first: Stamp, new: Use) -> bool {
        let load = matches!(self.kind(first), Some(ActorKind::TensorLoads(_)));
        self.was_in_time(w, first) && (new.frees || load && self.was_not_waited_for(w, first))
    }
}
