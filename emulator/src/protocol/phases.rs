//! An mbarrier's phases, as the recorded run had them.

use super::clock::Clock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// An mbarrier since its initialisation, as the recorded run had it.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// Where clocks count its phases: 1 for the initialisation, 1 more for each that is complete.
    pub at: usize,
    pub cta: u16,
    pub expected: u32,
    pub pending: u32,
    pub bytes: i64,
    pub phase: u32,
    /// What comes before the completion of the current phase; and before its arrivals.
    pub current: Clock,
    pub arrivals: Clock,
    /// What has counted for the current phase, and what for the one before.
    pub counted: Counted,
    pub counted_before: Counted,
    /// Announcements without an arrival in the current phase.
    pub announced: Vec<Announced>,
    /// What came before the completion of phases, the last at the end.
    pub complete: VecDeque<Clock>,
    /// Waits that must come before the end of a phase: it, the step, site, and its place in its sequence.
    pub waits: Vec<(u32, u32, u32, usize, u32)>,
    /// The last use by each sequence.
    pub uses: FxHashMap<usize, u32>,
    /// What clocks must have of its phases to be behind all that engines have counted. Of what threads count, `uses` tells.
    pub by_engines: u32,
}

/// Bytes that are announced by a step of their own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    pub step: u32,
    pub site: u32,
    /// Its place in its sequence.
    pub sequence: usize,
    pub own: u32,
    /// The pending bytes of the phase when all has come that need not come behind it, and it has not.
    pub others: i64,
}

/// What counts for a phase.
type Counted = SmallVec<[Arrival; 4]>;

/// Something that counts for a phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Of a step, its place in its sequence; of a commit, among those of its thread that arrive in the CTA. What else an engine does
    /// has none.
    pub place: Option<(usize, u32)>,
    /// Of a commit, its place among those of its thread to the same CTAs: who knows of it at one of them knows of all.
    pub together: Option<(usize, u32)>,
}

impl Phases {
    /// Whether all that counted for the phase before the current one comes before what has this clock.
    pub fn is_behind_the_last_phase(&self, clock: &Clock) -> bool {
        let knows = |place: Option<(usize, u32)>| place.is_some_and(|(at, own)| clock.get(at) >= own);
        !self.counted_before.is_empty() && self.counted_before.iter().all(|a| knows(a.place) || knows(a.together))
    }
}

/// Completed phases that are remembered: no wait is further behind, or it would have been overtaken.
pub(super) const REMEMBERED: usize = 8;
