//! The proof that no interleaving gets stuck, or what stands against it.

use super::machine::Shape;
use super::record::{Record, What};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};

/// What the recorded run does not order, so that another interleaving may do otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Doubt {
    /// The step it is about, and its statement.
    pub step: u32,
    pub site: u32,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// This wait is for `phase` of the mbarrier; the phase behind may complete before the wait looks. `by` is what completes it.
    Overtaken { barrier: u32, phase: u32, by: u32 },
    /// This arrival, or these bytes, may come before the phase before theirs is complete.
    CountsEarly { barrier: u32, phase: u32 },
    /// This announcement may come behind all arrivals of its phase.
    AnnouncedLate { barrier: u32, phase: u32 },
    /// This use of an mbarrier may come before its initialisation.
    BeforeInit { barrier: u32 },
    /// The mbarrier is initialised again or invalidated here, which may come before a use.
    EndsInUse { barrier: u32 },
    /// This arrival at a CTA barrier may come before the phase before its own is complete.
    NamedEarly { cta: u8, id: u8 },
    /// This allocation may wait for columns that the CTA itself holds, or one of another cluster that waits for this one's.
    Columns,
    /// The same of the right to allocate.
    Permit,
    /// The record does not explain why this wait passed.
    NotModelled,
    /// Registers are given back here only behind a warp that takes some: that one may wait for these.
    Registers,
}

/// How many steps of each set of lanes, and how many phases of each barrier, came before.
#[derive(Clone, Debug, Default, PartialEq)]
struct Clock(Vec<u32>);

impl Clock {
    fn get(&self, n: usize) -> u32 {
        self.0.get(n).copied().unwrap_or(0)
    }

    fn raise(&mut self, n: usize, to: u32) {
        if self.0.len() <= n {
            self.0.resize(n + 1, 0);
        }
        self.0[n] = self.0[n].max(to);
    }

    fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, &theirs) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(theirs);
        }
    }
}

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

/// An mbarrier since its initialisation, as the recorded run had it.
#[derive(Debug)]
struct Phases {
    /// Where clocks count its phases: 1 for the initialisation, 1 more for each that is complete.
    at: usize,
    expected: u32,
    pending: u32,
    bytes: i64,
    phase: u32,
    /// What comes before the completion of the current phase; and before its arrivals.
    current: Clock,
    arrivals: Clock,
    /// Announcements without an arrival in the current phase: step, site, and its place in its sequence.
    announced: Vec<(u32, u32, usize, u32)>,
    /// What came before the completion of phases, the last at the end.
    complete: VecDeque<Clock>,
    /// Waits that must come before the end of a phase: it, the step, site, and its place in its sequence.
    waits: Vec<(u32, u32, u32, usize, u32)>,
    /// The last use by each sequence.
    uses: FxHashMap<usize, u32>,
}

/// Completed phases that are remembered: no wait is further behind, or it would have been overtaken.
const REMEMBERED: usize = 8;

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
    issued: FxHashMap<u32, (Clock, u8)>,
    /// Words of their clocks.
    remembered: usize,
    wgmmas: FxHashMap<u16, VecDeque<(u32, Clock)>>,
    held: Vec<Held>,
    /// Allocations of CTAs that have not given up the right to allocate: nobody else allocates on their SM.
    permits: Vec<(u16, u32, u32)>,
    /// Steps that took registers, and those that gave some behind one.
    takes: Vec<(usize, u32)>,
    gives_late: Vec<(u32, u32)>,
    /// How many registers a thread each warp has more than at first, now and at most.
    registers: FxHashMap<u16, (i32, i32)>,
    shape: Shape,
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
    examiner.all_registers();
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
                self.certificate.before.push(SmallVec::from_slice(&[issue]));
                let clock = match self.issued.get_mut(&issue) {
                    Some((clock, tells)) if *tells > 1 => {
                        *tells -= 1;
                        clock.clone()
                    }
                    _ => {
                        let clock = self.issued.remove(&issue).unwrap_or_default().0;
                        self.remembered = self.remembered.saturating_sub(clock.0.len());
                        clock
                    }
                };
                self.counts(n, step.site, barrier, (count, -i64::from(bytes)), &clock, None);
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
                let new = Phases {
                    at,
                    expected: count,
                    pending: count,
                    bytes: 0,
                    phase: 0,
                    current: Clock::default(),
                    arrivals: Clock::default(),
                    announced: Vec::new(),
                    complete: VecDeque::new(),
                    waits: Vec::new(),
                    uses: FxHashMap::default(),
                };
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
                self.counts(n, step.site, barrier, (count, bytes.into()), &clock, Some(place));
            }
            What::Wait { barrier, parity } => self.wait(n, step.site, (barrier, parity), &mut clock, place),
            What::Issue { tells } => {
                self.remembered += clock.0.len();
                self.issued.insert(n, (clock.clone(), tells));
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
            What::TakeRegisters { count } => {
                self.takes.push(place);
                self.registers(step.warp, i32::from(count));
            }
            What::GiveRegisters { count } => {
                self.registers(step.warp, -i32::from(count));
                if self.takes.iter().any(|take| clock.get(take.0) >= take.1) {
                    self.gives_late.push((n, step.site));
                }
            }
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

    fn registers(&mut self, warp: u16, more: i32) {
        let (now, most) = self.registers.entry(warp).or_default();
        *now += more;
        *most = (*most).max(*now);
    }

    /// If all warps of a CTA can have the most that they ever take, at once, nobody waits for registers for ever. Otherwise those that are
    /// given must not depend on any that are taken.
    fn all_registers(&mut self) {
        let each = self.shape.warps() as u16;
        let ctas: BTreeSet<u16> = self.registers.keys().map(|warp| warp / each).collect();
        let short = |cta: &u16| self.registers.iter().filter(|r| r.0 / each == *cta).map(|r| r.1.1).sum::<i32>() > 0;
        if ctas.iter().any(short) {
            for (step, site) in std::mem::take(&mut self.gives_late) {
                self.doubt(step, site, Why::Registers);
            }
        }
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
        if used || midway || clock.get(b.at) != b.phase + 1 {
            self.doubt(n, site, Why::EndsInUse { barrier });
        }
    }

    /// Something counts for an mbarrier's current phase. `place`: of the step in its sequence; an engine has none.
    fn counts(
        &mut self,
        n: u32,
        site: u32,
        barrier: u32,
        (count, bytes): (u32, i64),
        clock: &Clock,
        place: Option<(usize, u32)>,
    ) {
        let Some(b) = self.barriers.get_mut(&barrier) else { return };
        let phase = b.phase;
        let known = clock.get(b.at);
        b.pending = b.pending.saturating_sub(count);
        b.bytes += bytes;
        b.current.join(clock);
        if let Some((sequence, own)) = place {
            b.uses.insert(sequence, own);
            if count == 0 && bytes > 0 {
                b.announced.push((n, site, sequence, own));
            }
        }
        if count > 0 {
            b.arrivals.join(clock);
        }
        let mut doubts: SmallVec<[(u32, u32, Why); 2]> = SmallVec::new();
        if known == 0 {
            doubts.push((n, site, Why::BeforeInit { barrier }));
        } else if known != phase + 1 {
            doubts.push((n, site, Why::CountsEarly { barrier, phase }));
        }
        if b.pending == 0 && b.bytes == 0 {
            for (step, site, sequence, own) in b.announced.drain(..) {
                if b.arrivals.get(sequence) < own {
                    doubts.push((step, site, Why::AnnouncedLate { barrier, phase }));
                }
            }
            b.arrivals = Clock::default();
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
        let mutual = room > 1 && short && (held > 0 || self.shape.ctas > 1 && !pair);
        if room > 1 && self.shape.ctas > 1 && !pair {
            self.permits.push((cta, n, site));
        }
        if held + u32::from(columns) > COLUMNS || mutual {
            self.doubt(n, site, Why::Columns);
        }
        self.held.push(Held { cta, columns, freed: None });
    }
}
