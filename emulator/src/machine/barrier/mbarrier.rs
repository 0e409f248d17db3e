//! The mbarrier object: a phase completes when no arrival and no byte is pending (PTX ISA 9.7.13.15.6).

use crate::order::{ActorId, Clock, Stamp, Views};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Completed phases whose arrivals are told apart: no waiter is further behind.
const REMEMBERED: usize = 64;

/// Largest count of arrivals, and of pending bytes.
pub const LIMIT: i64 = crate::program::limits::MBARRIER as i64;

/// Bytes of a phase: which statements announced how many, and which copies brought how many.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    pub announced: Vec<Bytes>,
    pub brought: Vec<Bytes>,
    /// By `mbarrier.complete_tx`, which copies nothing.
    pub completed: Vec<Bytes>,
    /// Of what was brought, the bytes of copies that were issued for an earlier phase.
    pub late: u64,
}

/// Bytes of one statement.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    pub site: u32,
    pub times: u32,
    pub bytes: u64,
}

impl Traffic {
    fn clear(&mut self) {
        self.announced.clear();
        self.brought.clear();
        self.completed.clear();
        self.late = 0;
    }

    /// Bytes of the copies that were issued for this phase.
    pub fn own(&self) -> u64 {
        sum(&self.brought).saturating_sub(self.late)
    }

    pub fn announce(&mut self, site: u32, bytes: u32) {
        add(&mut self.announced, site, bytes);
    }

    pub fn complete(&mut self, site: u32, bytes: u32) {
        add(&mut self.completed, site, bytes);
    }

    pub fn bring(&mut self, site: u32, bytes: u32) {
        add(&mut self.brought, site, bytes);
    }
}

/// All bytes of a list.
pub fn sum(list: &[Bytes]) -> u64 {
    list.iter().map(|b| b.bytes).sum()
}

fn add(list: &mut Vec<Bytes>, site: u32, bytes: u32) {
    match list.iter_mut().find(|known| known.site == site) {
        Some(known) => {
            known.times += 1;
            known.bytes += u64::from(bytes);
        }
        None => list.push(Bytes { site, times: 1, bytes: bytes.into() }),
    }
}

/// What the arrivals of a phase, and of those before it, knew.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// What every wait learns; of what is scoped, what its own CTA told.
    pub views: Views,
    /// What is scoped that other CTAs told, for waits at `.cluster` scope.
    pub beyond: Clock,
}

/// An mbarrier object, kept beside the memory: its 64 bits are opaque.
#[derive(Debug)]
pub struct Mbarrier {
    /// Index of its CTA in the cluster.
    pub cta: usize,
    /// Offset in the CTA's shared window.
    pub offset: u32,
    /// Initialised, and not invalidated since.
    pub valid: bool,
    /// The `mbarrier.inval` that was executed, nothing since.
    pub invalidated: Option<u32>,
    pub init: Stamp,
    /// Number of the phase that is not complete, from 0.
    pub phase: u64,
    pub expected: u32,
    /// How many arrivals `arrive_drop` has taken away from each phase, and where it did so last.
    pub dropped: Option<(u32, u32)>,
    pub pending: u32,
    pub bytes: i64,
    /// Bytes of the current phase, and of the one before.
    pub traffic: Traffic,
    pub traffic_before: Traffic,
    /// Bytes have been announced since the initialisation.
    pub has_announced: bool,
    /// A phase was complete before its bytes were there: later ones count with what it has left.
    pub was_early: bool,
    /// What the arrivals of the current phase knew.
    pub current: Told,
    /// In clocks, the number of phases known to be complete.
    pub actor: ActorId,
    /// Phases completed before the last initialisation.
    earlier: u32,
    /// What the arrivals of the first n completed phases knew; the last is for all.
    completed: VecDeque<Told>,
    /// The arrivals of the current phase: statement, and how many.
    pub arrivals: Vec<(u32, u32)>,
    /// Those of the phase before.
    pub previous: Vec<(u32, u32)>,
    /// Waits that passed: all that come before a phase is complete, one for each phase, warp and statement.
    waits: Vec<Passing>,
    /// Waits that the phase behind the one they wait for may overtake.
    pub overtaken: Vec<Overtaken>,
    /// The statements of waits that passed before any phase was complete, as phase 0 came behind them.
    pub behind_its_wait: Vec<u32>,
    /// Phase and statement of the first arrivals since the initialisation.
    pub history: Vec<(u64, u32)>,
    /// Who has arrived or brought bytes, and when last: a hang is told from it.
    pub came: Vec<Came>,
    /// The last time that each warp has used it.
    pub uses: Vec<Used>,
    /// Where the copies that complete the current phase write.
    pub destinations: Vec<Destination>,
    /// The last asynchronous write that completes on it, for each CTA that gets the bytes.
    pub promises: SmallVec<[Promise; 1]>,
    /// The cluster's commits that there were before its initialisation.
    pub first_commit: usize,
}

/// A warp's arrivals by one statement, or the bytes that its copies bring.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    pub warp: usize,
    pub site: u32,
    pub bytes: bool,
    /// The last phase that it came in.
    pub phase: u64,
}

/// A warp has arrived, announced bytes, or asked.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub warp: usize,
    /// The warp's epoch then.
    pub epoch: u32,
    pub site: u32,
}

/// What a copy writes, in the shared memory of the mbarrier's or another CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// What the clocks say of the mbarrier when it is complete.
    pub epoch: u32,
    pub cta: usize,
    pub start: u32,
    pub end: u32,
    /// Stands for where the bytes come from: all of the rows, or what a thread stores.
    pub source: u64,
    pub site: u32,
    /// The warp that has issued the copy.
    pub warp: usize,
}

impl Destination {
    /// Whether it matters which of the two comes last. One statement by which a warp writes them in two rounds has not waited for its stage: who
    /// reads the bytes says so.
    fn collides(&self, other: &Destination) -> bool {
        let of_two = (self.site, self.warp) != (other.site, other.warp);
        let meet = self.cta == other.cta && self.start < other.end && other.start < self.end && of_two;
        meet && (self.start, self.end, self.source) != (other.start, other.end, other.source)
    }
}

/// A wait passed, and would not have if this phase had been complete before it.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    pub before: u64,
    /// The warp, and its epoch then.
    pub warp: usize,
    pub actor: ActorId,
    pub epoch: u32,
    pub site: u32,
    /// The statement has let one of these lanes pass for the same phase just before, or twice before any phase.
    pub again: bool,
}

/// A phase may complete before a wait has seen the one before.
#[derive(Clone, Copy, Debug)]
pub struct Overtaken {
    /// The later of the two.
    pub phase: u64,
    /// The statement of the wait, its warp, and the epoch of that then.
    pub site: u32,
    pub warp: usize,
    pub actor: ActorId,
    pub epoch: u32,
    /// It passed for the same phase twice running, or twice before any phase.
    pub again: bool,
}

impl Overtaken {
    fn of(wait: &Passing) -> Overtaken {
        let &Passing { before: phase, warp, actor, epoch, site, again } = wait;
        Overtaken { phase, site, warp, actor, epoch, again }
    }
}

/// An asynchronous write is complete when its mbarrier says so.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// Rank of the CTA that gets the bytes.
    pub cta: usize,
    /// What the clocks will say of the barrier then.
    pub epoch: u32,
    /// The statement.
    pub site: u32,
    /// All were issued in the CTA that gets the bytes.
    pub own: bool,
}

impl Mbarrier {
    pub fn init(&mut self, count: u32, stamp: Stamp) {
        let earlier = self.earlier.saturating_add(self.phase.min(u64::from(u32::MAX)) as u32);
        let new = Mbarrier::new(self.cta, self.offset, self.actor);
        *self = Mbarrier { valid: true, init: stamp, expected: count, pending: count, earlier, ..new };
    }

    pub fn new(cta: usize, offset: u32, actor: ActorId) -> Mbarrier {
        Mbarrier {
            cta,
            offset,
            valid: false,
            invalidated: None,
            init: Stamp::new(0, 0, 0, 0),
            phase: 0,
            expected: 0,
            dropped: None,
            pending: 0,
            bytes: 0,
            traffic: Traffic::default(),
            traffic_before: Traffic::default(),
            has_announced: false,
            was_early: false,
            current: Told::default(),
            actor,
            earlier: 0,
            completed: VecDeque::from([Told::default()]),
            arrivals: Vec::new(),
            previous: Vec::new(),
            waits: Vec::new(),
            overtaken: Vec::new(),
            behind_its_wait: Vec::new(),
            history: Vec::new(),
            came: Vec::new(),
            uses: Vec::new(),
            destinations: Vec::new(),
            promises: SmallVec::new(),
            first_commit: 0,
        }
    }

    /// `count` arrivals with what they know. `Err`: more than are pending.
    pub fn arrive(&mut self, count: u32, site: u32, views: &Views) -> Result<(), ()> {
        if count > self.pending {
            return Err(());
        }
        self.pending -= count;
        self.arrivals.push((site, count));
        if self.history.len() < REMEMBERED {
            self.history.push((self.phase, site));
        }
        self.current.views.join(views);
        Ok(())
    }

    /// What the clocks say of a phase that one arrival alone completed, without any bytes: who knew of all phases before it and arrives so knows
    /// that it is complete, without a wait. Compilers release the stages of a ring so before they start it.
    pub fn completed_alone(&self, phase: u64, known: u32) -> Option<u32> {
        let epoch = self.next_epoch() - 1;
        let alone = self.phase == phase + 1 && self.previous.len() == 1;
        let bytes = !self.traffic_before.announced.is_empty() || !self.traffic_before.brought.is_empty();
        (alone && !bytes && known + 1 == epoch).then_some(epoch)
    }

    /// The current phase takes so many arrivals more. `Err`: more than it can.
    pub fn raise_pending(&mut self, count: u32) -> Result<(), ()> {
        if i64::from(self.pending) + i64::from(count) > LIMIT {
            return Err(());
        }
        self.pending += count;
        Ok(())
    }

    /// `arrive_drop`: the phases behind take so many arrivals fewer.
    pub fn drop_expected(&mut self, count: u32, site: u32) {
        let taken = count.min(self.expected);
        self.expected -= taken;
        self.dropped = Some((self.dropped.map_or(0, |(before, _)| before) + taken, site));
    }

    /// A copy will complete the current phase. One that completes it too and writes some of the same bytes.
    pub fn brings(&mut self, new: Destination) -> Option<Destination> {
        self.destinations.retain(|known| known.epoch == new.epoch);
        let other = self.destinations.iter().find(|known| known.collides(&new)).copied();
        if !self.destinations.contains(&new) {
            self.destinations.push(new);
        }
        other
    }

    /// A warp uses it: its last use before.
    pub fn used(&mut self, new: Used) -> Option<Used> {
        match self.uses.iter_mut().find(|known| known.warp == new.warp) {
            Some(known) => Some(std::mem::replace(known, new)),
            None => {
                self.uses.push(new);
                None
            }
        }
    }

    /// An arrival of this warp, or bytes that its copy brings, counts for the current phase.
    pub fn comes(&mut self, warp: usize, site: u32, bytes: bool) {
        let phase = self.phase;
        match self.came.iter_mut().find(|known| (known.warp, known.site, known.bytes) == (warp, site, bytes)) {
            Some(known) => known.phase = phase,
            None => self.came.push(Came { warp, site, bytes, phase }),
        }
    }

    /// Begins the next phase if this one is complete; tells whether it did.
    pub fn complete(&mut self) -> bool {
        // All have dropped out: nothing arrives any more.
        let over = self.expected == 0 && self.arrivals.is_empty();
        if self.pending != 0 || self.bytes != 0 || over {
            return false;
        }
        self.phase += 1;
        self.pending = self.expected;
        let mut known = std::mem::take(&mut self.current);
        known.views.hb.raise(self.actor, self.earlier.saturating_add(self.phase.min(u64::from(u32::MAX)) as u32));
        // Whoever waits for a phase must have seen it before the next one completes, whatever the schedule.
        let done = self.phase - 1;
        let late = |wait: &&Passing| wait.before == done && known.views.came_before(wait.actor) < wait.epoch;
        self.overtaken.extend(self.waits.iter().filter(late).map(Overtaken::of));
        if done == 0 {
            let in_time = self.waits.iter().filter(|wait| wait.before == 0 && !late(wait));
            self.behind_its_wait.extend(in_time.map(|wait| wait.site));
        }
        self.waits.retain(|wait| wait.before > done);
        if let Some(before) = self.completed.back() {
            known.views.join(&before.views);
            known.beyond.join(&before.beyond);
        }
        self.completed.push_back(known);
        if self.completed.len() > REMEMBERED {
            self.completed.pop_front();
        }
        std::mem::swap(&mut self.previous, &mut self.arrivals);
        self.arrivals.clear();
        std::mem::swap(&mut self.traffic, &mut self.traffic_before);
        self.traffic.clear();
        true
    }

    /// How many phases are surely complete when a wait for this parity passes, and what their arrivals knew. The waiter
    /// knows of `known` phases that they are complete. In another schedule it would have come just then, and have passed at
    /// the first phase of the other parity: what happened later in this schedule tells it nothing.
    pub fn learned(&self, parity: u32, known: u32) -> (u64, &Told) {
        let known = u64::from(known.saturating_sub(self.earlier));
        let phases = if (known & 1) as u32 != parity & 1 { known } else { known + 1 };
        let behind = self.phase.saturating_sub(phases).min(self.completed.len() as u64 - 1);
        (self.phase - behind, &self.completed[self.completed.len() - 1 - behind as usize])
    }

    /// Since it was initialised, for the first time, an even number of phases is complete, and nothing that completed them came behind this epoch.
    pub fn ends_even_without(&self, actor: ActorId, epoch: u32) -> bool {
        let knows = self.completed.back().is_none_or(|last| last.views.came_before(actor) >= epoch);
        self.earlier == 0 && self.phase > 0 && self.phase.is_multiple_of(2) && !knows
    }

    /// A wait passes.
    pub fn passed(&mut self, wait: Passing) {
        if wait.before < self.phase {
            // Two phases too late, it passes as well.
            self.overtaken.push(Overtaken::of(&wait));
            return;
        }
        let same =
            |known: &&mut Passing| (known.before, known.actor, known.site) == (wait.before, wait.actor, wait.site);
        match self.waits.iter_mut().find(same) {
            // What comes before the later one comes before both.
            Some(known) => {
                known.epoch = wait.epoch;
                known.again |= wait.again;
            }
            None => self.waits.push(wait),
        }
    }

    /// A write of bytes in this CTA begins, which the current phase waits for.
    pub fn promise(&mut self, cta: usize, site: u32, own: bool) {
        let new = Promise { cta, epoch: self.next_epoch(), site, own };
        match self.promises.iter_mut().find(|known| known.cta == cta) {
            Some(known) => *known = Promise { own: own && (known.own || known.epoch < new.epoch), ..new },
            None => self.promises.push(new),
        }
    }

    /// What the clocks will say of this barrier when the current phase is complete.
    pub fn next_epoch(&self) -> u32 {
        self.earlier.saturating_add(self.phase.min(u64::from(u32::MAX)) as u32).saturating_add(1)
    }

    /// The phase whose completion an epoch stands for, if it is one since the last initialisation.
    pub fn phase_of(&self, epoch: u32) -> Option<u64> {
        Some(u64::from(epoch.checked_sub(self.earlier)?.checked_sub(1)?))
    }

    /// An access of the asynchronous proxy that is known of when the current phase is complete.
    pub fn stamp(&self, site: u32, cluster: u32) -> Stamp {
        Stamp::asynchronous(self.actor, self.next_epoch(), site, cluster)
    }

    /// A wait for this parity passes: the current phase has the other one.
    pub fn passes(&self, parity: u32) -> bool {
        (self.phase & 1) as u32 != parity & 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(count: u32) -> Mbarrier {
        let mut b = Mbarrier::new(0, 0, 7);
        b.init(count, Stamp::new(0, 1, 0, 0));
        b
    }

    #[test]
    fn a_fresh_barrier_lets_parity_one_pass_and_holds_parity_zero() {
        let b = fresh(1);
        assert!(b.passes(1) && !b.passes(0));
    }

    /// A wait for parity 1 by somebody who knows of no phase passes on the fresh barrier, however late it comes.
    #[test]
    fn a_wait_teaches_what_it_would_have_taught_in_any_schedule() {
        let mut b = fresh(1);
        for phase in 1..=3 {
            let mut views = Views::default();
            views.hb.raise(1, phase);
            b.arrive(1, 0, &views).unwrap();
            assert!(b.complete());
        }
        let learned = |parity, known| {
            let (phases, told) = b.learned(parity, known);
            (phases, told.views.hb.get(1), told.views.hb.get(7))
        };
        assert_eq!(learned(1, 0), (0, 0, 0));
        assert_eq!(learned(0, 0), (1, 1, 1));
        assert_eq!(learned(1, 1), (2, 2, 2));
        assert_eq!(learned(0, 2), (3, 3, 3));
    }

    /// Bytes may arrive before they are announced: the count goes negative, and the phase waits for both.
    #[test]
    fn a_phase_completes_when_arrivals_and_bytes_are_both_there() {
        let mut b = fresh(2);
        b.bytes -= 4096;
        assert!(!b.complete());
        b.arrive(1, 0, &Views::default()).unwrap();
        b.bytes += 8192;
        b.arrive(1, 0, &Views::default()).unwrap();
        assert!(!b.complete(), "4096 bytes are pending");
        b.bytes -= 4096;
        assert!(b.complete());
        assert!(b.passes(0) && !b.passes(1));
        assert_eq!(b.pending, 2);
        b.arrive(2, 0, &Views::default()).unwrap();
        assert_eq!(b.arrive(1, 0, &Views::default()), Err(()));
    }
}
