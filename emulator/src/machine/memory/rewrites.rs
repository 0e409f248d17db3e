//! Stores on top of another value that the same thread stored before: what was there in between is remembered by nobody, but who comes
//! after another thread's store of the last value only may still find it.

use super::Runs;
use crate::machine::state::RaceMemory;
use crate::order::{ActorId, Stamp};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;

/// The bytes that the lanes of one statement, or its parts, have stored to so far: from the first to the last.
#[derive(Default)]
pub struct Span(Option<(usize, u64, u64)>);

impl Span {
    /// Adds bytes of a memory. Whether all of them lie outside: what is there already is by the same statement.
    pub fn add(&mut self, memory: usize, start: u64, end: u64) -> bool {
        let (known, low, high) = self.0.unwrap_or((memory, start, start));
        let outside = known == memory && (end <= low || high <= start);
        self.0 = Some((memory, low.min(start), high.max(end)));
        outside
    }

    /// The same of runs of a buffer.
    pub fn add_runs(&mut self, runs: Runs) -> bool {
        let last = u64::from(runs.count).saturating_sub(1) * runs.pitch + u64::from(runs.bytes);
        self.add(runs.buffer, runs.first, runs.first + last)
    }
}

/// What an actor did before its last epochs is forgotten, so that a loop does not fill the memory: an epoch ends where it tells others
/// something, and a value that was there before so many of them is hardly ever met.
const EPOCHS: usize = 4;
/// Ranges of an epoch. Of more, those next to each other are taken for one.
const RANGES: usize = 32;
/// Actors and memories.
const MOST: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct Rewrites {
    /// An access came on top of one that the same actor made since it told anything last.
    pub again: Cell<bool>,
    /// Where an actor of a cluster did so, and changed what was there.
    changed: FxHashMap<(u32, ActorId, RaceMemory), SmallVec<[Epoch; 1]>>,
}

/// Where in an epoch: ranges in their order, which do not touch.
#[derive(Debug)]
struct Epoch {
    epoch: u32,
    ranges: SmallVec<[Range<u64>; 1]>,
}

impl Epoch {
    fn add(&mut self, mut new: Range<u64>) {
        let from = self.ranges.partition_point(|known| known.end < new.start);
        let to = self.ranges.partition_point(|known| known.start <= new.end);
        if let [first, .., last] | [first @ last] = &self.ranges[from..to] {
            new = first.start.min(new.start)..last.end.max(new.end);
        }
        self.ranges.drain(from..to);
        self.ranges.insert(from, new);
        if self.ranges.len() > RANGES {
            let gap = |n: &usize| self.ranges[n + 1].start - self.ranges[*n].end;
            let narrowest = (0..self.ranges.len() - 1).min_by_key(gap).unwrap_or_default();
            self.ranges[narrowest].end = self.ranges.remove(narrowest + 1).end;
        }
    }
}

impl Rewrites {
    pub fn add(&mut self, stamp: Stamp, memory: RaceMemory, start: u64, end: u64) {
        let key = (stamp.cluster, stamp.actor, memory);
        if self.changed.len() >= MOST && !self.changed.contains_key(&key) {
            return;
        }
        let epochs = self.changed.entry(key).or_default();
        let at = epochs.iter().position(|known| known.epoch == stamp.epoch).unwrap_or_else(|| {
            if epochs.len() == EPOCHS {
                epochs.remove(0);
            }
            epochs.push(Epoch { epoch: stamp.epoch, ranges: SmallVec::new() });
            epochs.len() - 1
        });
        epochs[at].add(start..end);
    }

    /// Adds a range, and tells whether some of it was added before in the same epoch.
    pub fn add_again(&mut self, stamp: Stamp, memory: RaceMemory, range: Range<u64>) -> bool {
        let epochs = self.changed.get(&(stamp.cluster, stamp.actor, memory));
        let known = epochs.and_then(|epochs| epochs.iter().find(|known| known.epoch == stamp.epoch));
        let meets = |known: &Range<u64>| known.start < range.end && range.start < known.end;
        let again = known.is_some_and(|known| known.ranges.iter().any(meets));
        self.add(stamp, memory, range.start, range.end);
        again
    }

    /// Whether who wrote this byte last may have written another value there before, which the same others do not come after.
    pub fn has(&self, stamp: Stamp, memory: RaceMemory, byte: u64) -> bool {
        let epochs = self.changed.get(&(stamp.cluster, stamp.actor, memory));
        let in_epoch = epochs.and_then(|epochs| epochs.iter().find(|known| known.epoch == stamp.epoch));
        in_epoch.is_some_and(|known| known.ranges.iter().any(|range| range.contains(&byte)))
    }
}
