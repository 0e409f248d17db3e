//! The check of accesses of tensor memory against earlier ones.

use super::Halves;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Cta, Race, RaceMemory};
use crate::order::{Access, Conflict, Reason, Rows, Shadow, Stamp};

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

impl Cta {
    /// The shadow of the upper half of each quarter of the lanes, or of the lower one, if they are looked at apart.
    pub fn shadow_of(&mut self, upper: bool) -> &mut Shadow {
        match &mut self.upper_shadow {
            Some(shadow) if upper => shadow,
            _ => &mut self.tensor_shadow,
        }
    }

    /// Those of these halves.
    pub fn shadows(&mut self, halves: Halves) -> impl Iterator<Item = &mut Shadow> {
        let (lower, upper) = (halves.has(false) || self.upper_shadow.is_none(), halves.has(true));
        let upper = self.upper_shadow.as_mut().filter(|_| upper);
        Some(&mut self.tensor_shadow).filter(|_| lower).into_iter().chain(upper)
    }
}

impl Cluster<'_> {
    /// An accumulator has half of the lanes of each quarter: from now on, the halves are looked at apart. What was accessed before counts
    /// for both.
    pub fn halves_matter(&mut self, c: usize) {
        let cta = &mut self.ctas[c];
        cta.upper_shadow.get_or_insert_with(|| cta.tensor_shadow.clone());
    }

    /// Checks and remembers an access to cells side by side, in half of their lanes or in all. Gives the conflict that weighs most: one
    /// that is forgiven, or no more than noted, does not hide one that is a finding.
    pub fn touch_cells(&mut self, w: usize, c: usize, at: u64, len: u64, halves: Halves, new: Use) -> Option<Race> {
        let apart = self.ctas[c].upper_shadow.is_some();
        let lower = if halves.has(false) || !apart { self.touch_half(w, c, at, len, false, new) } else { None };
        let upper = if halves.has(true) && apart { self.touch_half(w, c, at, len, true, new) } else { None };
        lower.or(upper)
    }

    fn touch_half(&mut self, w: usize, c: usize, at: u64, len: u64, upper: bool, new: Use) -> Option<Race> {
        let Use { stamp, writes, frees } = new;
        let access = Access::of_tensor_memory(stamp, &self.warps[w].views);
        let row = Rows { first: at, bytes: len, count: 1, pitch: 0 };
        if self.ctas[c].shadow_of(upper).touch_rows(row, &access, writes) {
            return None;
        }
        let hard = |first: &Stamp| !self.is_forgiven(w, *first, new) && !self.is_noted(w, *first, new);
        let cta = &self.ctas[c];
        let shadow = cta.upper_shadow.as_ref().filter(|_| upper).unwrap_or(&cta.tensor_shadow);
        let hard = shadow.conflict_with(at, len, &access, writes, &hard);
        let shadow = self.ctas[c].shadow_of(upper);
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
        matches!(self.kind(new.stamp), Some(ActorKind::Mmas { .. }))
            && (self.issued.pipelined == Some([first, new.stamp]) || self.pipelined_copy(w, first, new.stamp))
    }

    /// Whether it is no more than a note that nothing orders the two, since the first was over in time.
    fn is_noted(&self, w: usize, first: Stamp, new: Use) -> bool {
        let load = matches!(self.kind(first), Some(ActorKind::TensorLoads(_)));
        self.was_in_time(w, first) && (new.frees || load && self.was_not_waited_for(w, first))
    }
}
