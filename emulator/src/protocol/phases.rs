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
    /// What moved the pending bytes of the current phase.
    pub moved: Vec<Moved>,
    /// What came before the completion of phases, the last at the end.
    pub complete: VecDeque<Clock>,
    /// Waits that must come before the end of a phase: it, the step, site, and its place in its sequence.
    pub waits: Vec<(u32, u32, u32, usize, u32)>,
    /// The last use by each sequence.
    pub uses: FxHashMap<usize, u32>,
    /// What clocks must have of its phases to be behind all that engines have counted. Of what threads count, `uses` tells.
    pub by_engines: u32,
}

/// A step that moves the pending bytes of a phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub step: u32,
    pub site: u32,
    /// Of a thread's step, its place in its sequence.
    pub place: Option<(usize, u32)>,
    pub bytes: i64,
    /// It arrives, too.
    pub arrives: bool,
    /// Those in front of it in the list, by bits, that come before it in every interleaving.
    pub behind: u64,
}

/// Whether a phase may complete before some of its bytes are announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    Never,
    Possible,
    /// Too much moves its bytes to try all ways.
    Unknown,
}

/// Steps that may or may not have come when the phase completes, of which all ways are tried.
const MOST_OPEN: usize = 12;

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

impl Phases {
    /// Adds what moves the pending bytes. Those of which there is no room are taken to be behind nothing.
    pub fn moves(&mut self, step: Moved, clock: &Clock) {
        let known = |m: &Moved| m.place.is_some_and(|(at, own)| clock.get(at) >= own);
        let behind = self.moved.iter().take(64).enumerate().filter(|(_, m)| known(m));
        let behind = behind.fold(0, |bits, (n, _)| bits | 1 << n);
        self.moved.push(Moved { behind, ..step });
    }

    /// Announcements by steps of their own that no arrival of the phase, which is complete now, comes behind; and whether it may complete without
    /// each: when all its arrivals have come, and what comes before them, and of the rest such steps that no bytes are pending.
    pub fn announced_late(&self) -> Vec<(Moved, Early)> {
        let before_arrivals = |m: &Moved| m.place.is_some_and(|(at, own)| self.arrivals.get(at) >= own);
        let late = |m: &Moved| m.bytes > 0 && !m.arrives && m.place.is_some() && !before_arrivals(m);
        let all = self.moved.iter().enumerate();
        let late = all.clone().filter(|(_, m)| late(m));
        let many = self.moved.len() > 64;
        let early = |without: usize| {
            if many {
                return Early::Unknown;
            }
            let there = |m: &Moved| m.arrives || before_arrivals(m);
            let due: i64 = self.moved.iter().filter(|m| there(m)).map(|m| m.bytes).sum();
            let open =
                all.clone().filter(|&(n, m)| n != without && !there(m) && (m.behind >> without.min(63)) & 1 == 0);
            let open: SmallVec<[(usize, &Moved); MOST_OPEN]> = open.collect();
            if open.len() > MOST_OPEN {
                return Early::Unknown;
            }
            let possible = (0..1u32 << open.len()).any(|taken| {
                let took = |k: usize| taken >> k & 1 == 1;
                let lacks = |m: &Moved| (0..open.len()).any(|k| !took(k) && m.behind >> open[k].0 & 1 == 1);
                let mut steps = (0..open.len()).filter(|&k| took(k)).map(|k| open[k].1);
                let bytes: i64 = steps.clone().map(|m| m.bytes).sum();
                due + bytes == 0 && !steps.any(lacks)
            });
            if possible { Early::Possible } else { Early::Never }
        };
        late.map(|(n, m)| (*m, early(n))).collect()
    }
}

/// Completed phases that are remembered: no wait is further behind, or it would have been overtaken.
pub(super) const REMEMBERED: usize = 8;
