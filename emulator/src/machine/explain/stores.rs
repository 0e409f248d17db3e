//! Bulk copies out of shared memory whose source or destination is another than it should be: nothing has to be waited for, an address is wrong.

use super::GLOBAL_RULE;
use super::copy::Cure;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race, RaceMemory};
use crate::machine::tma::Copy;
use crate::order::{GRANULE, Stamp};
use crate::program::op::TmaKind;

const SOURCE_RULE: &str = "A bulk copy out of shared memory takes its bytes from the address that it is given (PTX ISA, cp.async.bulk, cp.async.bulk.tensor).";

/// So many of them are remembered.
const MOST: usize = 64;

/// A copy out of shared memory takes its bytes from a box that MMAs multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxStored {
    site: u32,
    cta: usize,
    start: u32,
    bytes: u32,
}

impl Cluster<'_> {
    /// A copy reads these bytes of shared memory: do they begin in a box that MMAs multiply?
    pub fn note_box_stored(&mut self, cta: usize, site: u32, start: u32, bytes: u32) {
        let multiplied = self.ctas[cta].loaded.tile(start).is_some_and(|tile| tile.taken.is_some());
        let new = BoxStored { site, cta, start, bytes };
        if multiplied && self.boxes_stored.len() < MOST && !self.boxes_stored.contains(&new) {
            self.boxes_stored.push(new);
        }
    }

    /// The copy that makes this write to global memory.
    fn copy_that_writes(&self, stamp: Stamp) -> Option<&Copy> {
        let is_it =
            |copy: &&Copy| (copy.site, copy.writes.actor, copy.writes.epoch) == (stamp.site, stamp.actor, stamp.epoch);
        self.copies.iter().find(is_it)
    }

    /// Two stores of one thread write some bytes of a buffer both, and not all of them: each is meant for a place of its own.
    pub fn cure_of_stores_that_overlap(&self, race: &Race) -> Option<Cure> {
        let (first, second) = (race.conflict.first, race.second);
        let RaceMemory::Global(buffer) = race.memory else { return None };
        let (one, other) = (self.copy_that_writes(first)?, self.copy_that_writes(second)?);
        let begins = |copy: &Copy| Some(copy.rows.first()?.inside?.1);
        let (one, other) = (begins(one)?, begins(other)?);
        if one.first == other.first {
            return None;
        }
        let buffer = &self.global.buffers[buffer];
        let place = |runs: &crate::machine::memory::Runs| {
            let rows = if runs.count > 1 {
                format!("{} rows of {} bytes", runs.count, runs.bytes)
            } else {
                format!("{} bytes", runs.bytes)
            };
            format!("{rows} from {} on", buffer.describe_element(runs.first))
        };
        let text = format!(
            "of two copies of the thread, one writes {}, the next {}: they overlap",
            place(&one),
            place(&other)
        );
        Some(Cure {
            labels: vec![self.label(second.site, text)],
            ..Cure::new(
                GLOBAL_RULE,
                "Give each copy a destination of its own: check the coordinates, or the address, of the second one, and how far they go on from one copy \
                 to the next.",
            )
        })
    }

    /// A store reads a box that was loaded for MMAs, while threads have stored a tile of that size elsewhere which no copy reads.
    pub fn cure_of_a_wrong_source(&self, race: &Race) -> Option<Cure> {
        let (first, second) = (race.conflict.first, race.second);
        let RaceMemory::Shared(cta) = race.memory else { return None };
        let store = match (self.kind(first)?, self.kind(second)?) {
            (ActorKind::Mbarrier, ActorKind::BulkReads { .. }) => second,
            (ActorKind::BulkReads { .. }, ActorKind::Mbarrier) => first,
            _ => return None,
        };
        let byte = race.conflict.byte as u32;
        let is_it = |stored: &&BoxStored| {
            let BoxStored { site, start, bytes, .. } = **stored;
            (stored.cta, site) == (cta, store.site) && (start..start + bytes).contains(&byte)
        };
        let &BoxStored { start: source, bytes, .. } = self.boxes_stored.iter().find(is_it)?;
        let (at, writer) = self.stored_and_not_copied(cta, bytes)?;
        let (meant, read) = (self.shared_name(at), self.shared_name(source));
        let text = format!("threads store here: to {meant}, from which no copy takes anything");
        Some(Cure {
            labels: vec![self.label(writer, text)],
            ..Cure::new(
                SOURCE_RULE,
                format!(
                    "Check the source address of the copy: it takes a box that MMAs multiply, in {read}; the tile that threads have stored begins at {meant}."
                ),
            )
        })
    }

    /// So many bytes of shared memory, side by side, that threads have written and no copy takes: where, and the last store.
    fn stored_and_not_copied(&self, cta: usize, bytes: u32) -> Option<(u32, u32)> {
        let step = GRANULE as u32;
        let end = self.ctas[cta].shared.bytes.len() as u32;
        let by_warp = |at: u32| {
            let writer = self.ctas[cta].shared_shadow.writer(at.into())?;
            matches!(self.kind(writer), Some(ActorKind::Warp(_))).then_some(writer.site)
        };
        let mut copied = vec![false; end.div_ceil(step) as usize];
        for copy in self.copies.iter().filter(|copy| !matches!(copy.kind, TmaKind::Load | TmaKind::Prefetch)) {
            for from in copy.shared.iter().filter(|from| from.cta == cta) {
                let (first, last) = (from.offset / step, (from.offset + copy.extent).div_ceil(step));
                let last = (last as usize).min(copied.len());
                let taken = copied.get_mut(first as usize..last);
                taken.unwrap_or_default().fill(true);
            }
        }
        let mut begin = 0;
        for at in (0..end).step_by(step as usize) {
            if copied[(at / step) as usize] || by_warp(at).is_none() {
                begin = at + step;
            } else if at + step - begin >= bytes {
                return Some((begin, by_warp(at)?));
            }
        }
        None
    }
}
