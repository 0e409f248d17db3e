//! Stores on top of another value that the same thread stored before: what was there in between is remembered by nobody, but who comes
//! after another thread's store of the last value only may still find it.

use super::memory::Runs;
use super::state::RaceMemory;
use crate::order::{ActorId, Stamp};
use rustc_hash::FxHashMap;
use std::cell::Cell;

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

#[derive(Debug, Default)]
pub struct Rewrites {
    /// An access came on top of one that the same actor made since it told anything last.
    pub again: Cell<bool>,
    /// From where to where an actor of a cluster did so, in an epoch, and changed what was there.
    changed: FxHashMap<(u32, ActorId, u32, RaceMemory), (u64, u64)>,
}

impl Rewrites {
    pub fn add(&mut self, stamp: Stamp, memory: RaceMemory, start: u64, end: u64) {
        let range = self.changed.entry((stamp.cluster, stamp.actor, stamp.epoch, memory)).or_insert((start, end));
        *range = (range.0.min(start), range.1.max(end));
    }

    /// Whether who wrote this byte last may have written another value there before, which the same others do not come after.
    pub fn has(&self, stamp: Stamp, memory: RaceMemory, byte: u64) -> bool {
        let range = self.changed.get(&(stamp.cluster, stamp.actor, stamp.epoch, memory));
        range.is_some_and(|&(start, end)| (start..end).contains(&byte))
    }
}
