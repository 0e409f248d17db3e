//! The proof that no interleaving gets stuck, or what stands against it.

use super::clock::Clock;
use super::doubt::{Doubt, Why};
use super::machine::Shape;
use super::phases::{Arrival, Early, Moved, Phases, REMEMBERED};
use super::record::{Record, What};
use super::registers::Registers;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// What comes before a step in every interleaving, if the record is proved.
#[derive(Debug, Default)]
pub struct Certificate {
    pub doubts: Vec<Doubt>,
    /// The steps that come before each one by program order, or that asked for it.
    pub before: Vec<SmallVec<[u32; 2]>>,
}

/// Lanes of a warp that have done the same.
#[derive(Debug)]
struct Lanes {
    mask: u32,
    clock: Clock,
    last: Option<u32>,
}

/// A CTA barrier, or that of the cluster.
#[derive(Debug)]
struct Meeting {
    at: usize,
    rounds: u32,
    current: Clock,
    complete: Clock,
}

#[derive(Default)]
struct Examiner {
    certificate: Certificate,
    /// Sequences and barriers, numbered as they come.
    places: usize,
    sequences: FxHashMap<(u16, u32), usize>,
    warps: FxHashMap<u16, Vec<Lanes>>,
    barriers: FxHashMap<u32, Phases>,
    meetings: FxHashMap<(u8, u8), Meeting>,
    issued: FxHashMap<u32, Issued>,
    /// Of each sequence's commits that arrive in a CTA: where clocks count them, how many did, and the last one's step.
    commits: FxHashMap<(usize, u16), (usize, u32, u32)>,
    /// The phases that one of those completed alone.
    completed: FxHashMap<(usize, u16), Clock>,
    /// Where clocks count each sequence's commits to the same CTAs, and how many were issued.
    multicasts: FxHashMap<(usize, u16), (usize, u32)>,
    /// Words of their clocks.
    remembered: usize,
    wgmmas: FxHashMap<u16, VecDeque<(u32, Clock)>>,
    held: Vec<Held>,
    /// Allocations of CTAs that have not given up the right to allocate: nobody else allocates on their SM.
    permits: Vec<(u16, u32, u32)>,
    registers: Registers,
    shape: Shape,
}

/// What an engine was asked for.
#[derive(Clone, Debug, Default)]
struct Issued {
    clock: Clock,
    /// mbarriers that it will still tell.
    tells: u8,
    /// Whose commit it is.
    commits: Option<Committed>,
}

/// A commit: its sequence, and its place among those of the sequence to the same CTAs.
#[derive(Clone, Copy, Debug)]
struct Committed {
    sequence: usize,
    together: (usize, u32),
}

/// Columns of tensor memory that a CTA got, and the step that gave them back.
#[derive(Debug)]
struct Held {
    cta: u16,
    columns: u16,
    freed: Option<(usize, u32)>,
}

/// Columns of tensor memory of an SM.
const COLUMNS: u32 = 512;

/// Words of clocks that are kept at once.
const MOST_WORDS: usize = 1 << 26;

/// Examines what a cluster did that ran to its end. `None`: it did too much to be kept.
pub fn examine(record: &Record, shape: &Shape) -> Option<Certificate> {
    let mut examiner = Examiner { shape: *shape, ..Examiner::default() };
    examiner.certificate.before.reserve(record.steps.len());
    for n in 0..record.steps.len() as u32 {
        examiner.step(record, n);
        if examiner.remembered > MOST_WORDS {
            return None;
        }
    }
    for (step, site) in examiner.registers.in_doubt(&examiner.shape) {
        examiner.doubt(step, site, Why::Registers);
    }
    Some(examiner.certificate)
}

/// The number under which meetings keep the cluster's barrier.
const CLUSTER: (u8, u8) = (u8::MAX, u8::MAX);

impl Examiner {
    fn doubt(&mut self, step: u32, site: u32, why: Why) {
        let known = |d: &Doubt| d.site == site && std::mem::discriminant(&d.why) == std::mem::discriminant(&why);
        // One for each statement; a few of each show how it repeats.
        if self.certificate.doubts.iter().filter(|d| known(d)).count() < 4 {
            self.certificate.doubts.push(Doubt { step, site, why });
        }
    }

    fn step(&mut self, record: &Record, n: u32) {
        let step = record.steps[n as usize];
        match step.what {
            What::Done { issue, barrier, count, bytes } => {
                let Issued { mut clock, commits, .. } = match self.issued.get_mut(&issue) {
                    Some(issued) if issued.tells > 1 => {
                        issued.tells -= 1;
                        issued.clone()
                    }
                    _ => {
                        let issued = self.issued.remove(&issue).unwrap_or_default();
                        self.remembered = self.remembered.saturating_sub(issued.clock.0.len());
                        issued
                    }
                };
                let mut before = SmallVec::from_slice(&[issue]);
                let place = commits.map(|commit| self.commit_arrives(n, (commit, barrier), &mut clock, &mut before));
                self.certificate.before.push(before);
                let arrival = Arrival { place, together: commits.map(|commit| commit.together) };
                let alone = self.counts(n, step.site, barrier, (count, -i64::from(bytes)), &clock, arrival);
                if let (Some((at, complete)), Some(commit)) = (alone, commits) {
                    let cta = self.barriers.get(&barrier).map_or(u16::MAX, |b| b.cta);
                    self.completed.entry((commit.sequence, cta)).or_default().raise(at, complete);
                }
                return;
            }
            What::NamedDone { cta, id } => {
                self.certificate.before.push(SmallVec::new());
                self.all_there((cta, id));
                return;
            }
            What::ClusterDone => {
                self.certificate.before.push(SmallVec::new());
                self.all_there(CLUSTER);
                return;
            }
            _ => {}
        }
        let mask = step.lanes;
        let (mut clock, before) = self.before(step.warp, mask);
        self.certificate.before.push(before);
        let places = &mut self.places;
        let sequence = *self.sequences.entry((step.warp, mask & mask.wrapping_neg())).or_insert_with(|| {
            *places += 1;
            *places - 1
        });
        let own = clock.get(sequence) + 1;
        clock.raise(sequence, own);
        let place = (sequence, own);
        if !self.permits.is_empty() {
            let cta = step.warp / self.shape.warps() as u16;
            // A CTA barrier waits for warps of this CTA only.
            let waits = matches!(step.what, What::Wait { .. } | What::ClusterPassed);
            match step.what {
                What::Relinquish => self.permits.retain(|permit| permit.0 != cta),
                _ if waits => {
                    let held = self.permits.iter().position(|permit| permit.0 == cta);
                    if let Some((_, step, site)) = held.map(|held| self.permits.remove(held)) {
                        self.doubt(step, site, Why::Permit);
                    }
                }
                _ => {}
            }
        }
        match step.what {
            What::Init { barrier, count } => {
                self.ends(n, step.site, barrier, &clock);
                let at = self.places;
                self.places += 1;
                clock.raise(at, 1);
                let cta = step.warp / self.shape.warps() as u16;
                let new = Phases { at, cta, expected: count, pending: count, ..Phases::default() };
                self.barriers.insert(barrier, new);
            }
            What::Inval { barrier } => {
                self.ends(n, step.site, barrier, &clock);
                self.barriers.remove(&barrier);
            }
            What::Drop { barrier, count } => {
                if let Some(b) = self.barriers.get_mut(&barrier) {
                    b.expected = b.expected.saturating_sub(count);
                }
            }
            What::Arrive { barrier, count, bytes } => {
                let arrival = Arrival { place: Some(place), together: None };
                let alone = self.counts(n, step.site, barrier, (count, bytes.into()), &clock, arrival);
                if let Some((at, complete)) = alone {
                    clock.raise(at, complete);
                }
            }
            What::Wait { barrier, parity } => self.wait(n, step.site, (barrier, parity), &mut clock, place),
            What::Issue { tells, commit } => {
                self.remembered += clock.0.len();
                let commits = commit.map(|targets| self.committed(sequence, targets));
                self.issued.insert(n, Issued { clock: clock.clone(), tells, commits });
            }
            What::Asked { barrier, .. } => self.used(barrier, place),
            What::Named { cta, id, .. } => {
                let meeting = self.meeting((cta, id));
                meeting.current.join(&clock);
                if clock.get(meeting.at) != meeting.rounds {
                    self.doubt(n, step.site, Why::NamedEarly { cta, id });
                }
            }
            What::NamedPassed { cta, id } => clock.join(&self.meeting((cta, id)).complete),
            What::ClusterArrive => self.meeting(CLUSTER).current.join(&clock),
            What::ClusterPassed => clock.join(&self.meeting(CLUSTER).complete),
            What::Wgmma { number } => {
                let list = self.wgmmas.entry(step.warp).or_default();
                list.push_back((number, clock.clone()));
            }
            What::WgmmaWait { number } => {
                let first = self.shape.warpgroup(step.warp);
                for warp in first..first + 4 {
                    let list = self.wgmmas.entry(warp).or_default();
                    if let Some((_, theirs)) = list.iter().rev().find(|known| known.0 <= number) {
                        clock.join(theirs);
                    }
                    if warp == step.warp {
                        let behind = list.iter().filter(|known| known.0 + 64 < number).count();
                        list.drain(..behind);
                    }
                }
            }
            What::Alloc { columns, pair } => {
                self.allocates(n, step.site, step.warp / self.shape.warps() as u16, (columns, pair), &clock);
            }
            What::Relinquish => {}
            What::Free { columns } => {
                let cta = step.warp / self.shape.warps() as u16;
                let held = |h: &&mut Held| (h.cta, h.columns, h.freed) == (cta, columns, None);
                if let Some(held) = self.held.iter_mut().find(held) {
                    held.freed = Some(place);
                }
            }
            What::TakeRegisters { count } => self.registers.takes(step.warp, count, place),
            What::GiveRegisters { count } => self.registers.gives((n, step.site), step.warp, count, &clock),
            What::Meet | What::Exit => {}
            What::Done { .. } | What::NamedDone { .. } | What::ClusterDone => {}
        }
        let list = self.warps.entry(step.warp).or_default();
        list.push(Lanes { mask, clock, last: Some(n) });
    }

    /// What comes before a step of these lanes. They are taken out: the step puts them back.
    fn before(&mut self, warp: u16, mask: u32) -> (Clock, SmallVec<[u32; 2]>) {
        let list = self.warps.entry(warp).or_default();
        let mut clock = Clock::default();
        let mut before = SmallVec::new();
        let mut n = 0;
        while n < list.len() {
            if list[n].mask & mask == 0 {
                n += 1;
                continue;
            }
            before.extend(list[n].last);
            if list[n].mask & !mask == 0 {
                let lanes = list.swap_remove(n);
                if clock.0.is_empty() {
                    clock = lanes.clock;
                } else {
                    clock.join(&lanes.clock);
                }
            } else {
                list[n].mask &= !mask;
                clock.join(&list[n].clock);
                n += 1;
            }
        }
        (clock, before)
    }

    fn meeting(&mut self, which: (u8, u8)) -> &mut Meeting {
        let places = &mut self.places;
        self.meetings.entry(which).or_insert_with(|| {
            *places += 1;
            Meeting { at: *places - 1, rounds: 0, current: Clock::default(), complete: Clock::default() }
        })
    }

    /// All that a CTA barrier or the cluster's takes are there. Those that have ended are left out: to leave out what comes before
    /// proves less, nothing wrong.
    fn all_there(&mut self, which: (u8, u8)) {
        let meeting = self.meeting(which);
        meeting.rounds += 1;
        meeting.complete = std::mem::take(&mut meeting.current);
        let (at, rounds) = (meeting.at, meeting.rounds);
        meeting.complete.raise(at, rounds);
    }

    /// A use of an mbarrier that tells nothing.
    fn used(&mut self, barrier: u32, (sequence, own): (usize, u32)) {
        if let Some(b) = self.barriers.get_mut(&barrier) {
            b.uses.insert(sequence, own);
        }
    }

    /// An mbarrier's time ends here: all uses of it must come before.
    fn ends(&mut self, n: u32, site: u32, barrier: u32, clock: &Clock) {
        let Some(b) = self.barriers.get(&barrier) else { return };
        let used = b.uses.iter().any(|(&sequence, &last)| clock.get(sequence) < last);
        let midway = b.pending != b.expected || b.bytes != 0;
        if used || midway || clock.get(b.at) < b.by_engines {
            self.doubt(n, site, Why::EndsInUse { barrier });
        }
    }

    /// A sequence commits to these CTAs.
    fn committed(&mut self, sequence: usize, targets: u16) -> Committed {
        let places = &mut self.places;
        let (at, issued) = self.multicasts.entry((sequence, targets)).or_insert_with(|| {
            *places += 1;
            (*places - 1, 0)
        });
        *issued += 1;
        Committed { sequence, together: (*at, *issued) }
    }

    /// A commit arrives at an mbarrier, behind those of its sequence before it that arrive in its CTA: its place among them. Where it
    /// arrives elsewhere, too, it has arrived at all of them (assumption `commits-arrive-in-order`).
    fn commit_arrives(
        &mut self,
        n: u32,
        (Committed { sequence, together }, barrier): (Committed, u32),
        clock: &mut Clock,
        before: &mut SmallVec<[u32; 2]>,
    ) -> (usize, u32) {
        let cta = self.barriers.get(&barrier).map_or(u16::MAX, |b| b.cta);
        let places = &mut self.places;
        let (at, arrived, last) = self.commits.entry((sequence, cta)).or_insert_with(|| {
            *places += 1;
            (*places - 1, 0, n)
        });
        if *last != n {
            before.push(*last);
        }
        (*arrived, *last) = (*arrived + 1, n);
        clock.raise(*at, *arrived);
        clock.raise(together.0, together.1);
        self.completed.get(&(sequence, cta)).into_iter().for_each(|before| clock.join(before));
        (*at, *arrived)
    }

    /// Something counts for an mbarrier's current phase. If it alone completes it: where clocks count the phases, and what they say then.
    fn counts(
        &mut self,
        n: u32,
        site: u32,
        barrier: u32,
        (count, bytes): (u32, i64),
        clock: &Clock,
        arrival: Arrival,
    ) -> Option<(usize, u32)> {
        let b = self.barriers.get_mut(&barrier)?;
        let phase = b.phase;
        let known = clock.get(b.at);
        b.pending = b.pending.saturating_sub(count);
        b.bytes += bytes;
        b.current.join(clock);
        b.counted.push(arrival);
        if bytes != 0 {
            b.moves(Moved { step: n, site, place: arrival.place, bytes, arrives: count > 0, behind: 0 }, clock);
        }
        if let Some((sequence, own)) = arrival.place {
            b.uses.insert(sequence, own);
        } else {
            // 1 for the initialisation, 1 more for the phase that this counts for.
            b.by_engines = phase + 2;
        }
        if count > 0 {
            b.arrivals.join(clock);
        }
        let alone = b.counted.len() == 1 && (b.pending, b.bytes, bytes) == (0, 0, 0) && known == phase + 1;
        let alone = alone.then_some((b.at, phase + 2));
        let mut doubts: SmallVec<[(u32, u32, Why); 2]> = SmallVec::new();
        if known == 0 {
            doubts.push((n, site, Why::BeforeInit { barrier }));
        } else if known != phase + 1 && !b.is_behind_the_last_phase(clock) {
            let wait = b.waits.iter().find(|wait| wait.0 == phase).map(|wait| wait.2);
            doubts.push((n, site, Why::CountsEarly { barrier, phase, sure: false, wait }));
        }
        if b.pending == 0 && b.bytes == 0 {
            for (it, early) in b.announced_late() {
                if early != Early::Never {
                    let why = Why::AnnouncedLate { barrier, phase, sure: early == Early::Possible };
                    doubts.push((it.step, it.site, why));
                }
            }
            b.moved.clear();
            b.arrivals = Clock::default();
            b.counted_before = std::mem::take(&mut b.counted);
            b.phase += 1;
            b.pending = b.expected;
            let mut complete = std::mem::take(&mut b.current);
            if let Some(before) = b.complete.back() {
                complete.join(before);
            }
            complete.raise(b.at, b.phase + 1);
            b.waits.retain(|&(until, step, site, sequence, own)| {
                if until == phase && complete.get(sequence) < own {
                    doubts.push((step, site, Why::Overtaken { barrier, phase: until.wrapping_sub(1), by: n }));
                }
                until > phase
            });
            b.complete.push_back(complete);
            if b.complete.len() > REMEMBERED {
                b.complete.pop_front();
            }
        }
        for (step, site, why) in doubts {
            self.doubt(step, site, why);
        }
        alone
    }

    /// A wait for the phase of this parity that lies behind those the waiter knows to be complete.
    fn wait(
        &mut self,
        n: u32,
        site: u32,
        (barrier, parity): (u32, u8),
        clock: &mut Clock,
        (sequence, own): (usize, u32),
    ) {
        let Some(b) = self.barriers.get_mut(&barrier) else { return };
        b.uses.insert(sequence, own);
        let Some(known) = clock.get(b.at).checked_sub(1) else {
            return self.doubt(n, site, Why::BeforeInit { barrier });
        };
        // Phases that are complete when it passes in any interleaving.
        let complete = known + u32::from(known & 1 == u32::from(parity & 1));
        if complete > b.phase {
            return self.doubt(n, site, Why::NotModelled);
        }
        let behind = (b.phase - complete) as usize;
        if behind > 0 {
            // The phase behind the one it waits for was complete when it looked: found again without an arrival to name.
            let why = Why::Overtaken { barrier, phase: complete.wrapping_sub(1), by: n };
            self.doubt(n, site, why);
        }
        let Some(b) = self.barriers.get_mut(&barrier) else { return };
        b.waits.retain(|wait| (wait.0, wait.3) != (complete, sequence));
        b.waits.push((complete, n, site, sequence, own));
        for doubt in &mut self.certificate.doubts {
            if let Why::CountsEarly { barrier: at, phase, wait, .. } = &mut doubt.why
                && (*at, *phase) == (barrier, complete)
            {
                wait.get_or_insert(site);
            }
        }
        if complete > known
            && let Some(then) = b.complete.len().checked_sub(1 + behind).and_then(|n| b.complete.get(n))
        {
            clock.join(then);
        }
        clock.raise(b.at, complete + 1);
    }

    /// The CTA gets columns of tensor memory, beside those that it may still hold.
    fn allocates(&mut self, n: u32, site: u32, cta: u16, (columns, pair): (u16, bool), clock: &Clock) {
        let held = self
            .held
            .iter()
            .filter(|h| h.cta == cta && h.freed.is_none_or(|(sequence, own)| clock.get(sequence) < own));
        let held: u32 = held.map(|h| u32::from(h.columns)).sum();
        // Two clusters could each hold what the other waits for.
        let room = self.shape.room;
        let short = (held + u32::from(columns)) * room > COLUMNS;
        let apart = self.shape.ctas > if pair { 2 } else { 1 };
        let mutual = room > 1 && short && (held > 0 || apart);
        if room > 1 && apart {
            self.permits.push((cta, n, site));
        }
        if held + u32::from(columns) > COLUMNS || mutual {
            self.doubt(n, site, Why::Columns);
        }
        self.held.push(Held { cta, columns, freed: None });
    }
}
