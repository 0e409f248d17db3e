//! What threads and engines do to mbarriers; which they name is in [`super::mbarrier_places`], waits for them in [`super::mbarrier_wait`].

use super::mbarrier::{LIMIT, Mbarrier, Used};
use super::mbarrier_state::token;
use super::scopes::Order;
use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::names::counted;
use crate::machine::state::{ActorKind, At, Span};
use crate::machine::warp::State;
use crate::machine::warp::registers::lanes;
use crate::order::Views;
use crate::program::limits;
use crate::program::op::{Address, Op, Reg};
use crate::protocol::What;
use crate::report::{Actor, EventKind};

/// What arrives at an mbarrier.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub count: u32,
    /// Bytes announced with it.
    pub announced: u32,
    pub site: u32,
    /// It is the tensor core's, for a commit.
    pub engine: bool,
}

/// Bytes as the record keeps them: more than it can hold end the run.
pub fn recorded(bytes: u32) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

impl Cluster<'_> {
    pub fn barrier_init(&mut self, at: At, address: &Address, count: u16) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let time = self.warps[w].fragments[f].ready_at;
        for (slot, who) in self.barrier_addresses(at, address, false)? {
            let name = || self.shared_name(slot.offset);
            let count = self.warps[w].registers.b32[usize::from(count)][who.trailing_zeros() as usize];
            if let Some(beyond) = limits::initial_count(name, count.into()) {
                return Err(self.beyond(site, beyond));
            }
            let known = self.barrier_at.get(&(slot.cta, slot.offset)).copied();
            if who.count_ones() > 1 || known.is_some() {
                let mut diagnostic = self.problem(
                    "mbarrier-reinitialised",
                    site,
                    match known {
                        Some(_) => format!("{} is initialised again while it is in use", name()),
                        None => format!("{} is initialised by {} lanes", name(), who.count_ones()),
                    },
                    "mbarrier.init on a location that holds a valid mbarrier is undefined (PTX ISA 9.7.13.15.9).",
                    "Let one thread initialise it, once; use mbarrier.inval before another use of the location.".into(),
                );
                diagnostic.severity = Severity::Finding;
                if let Some(b) = known {
                    let first = self.barriers[b as usize].init.site;
                    if first != site {
                        diagnostic.labels.push(self.label(first, "initialised here before"));
                    }
                }
                self.findings.add(diagnostic);
            }
            let stamp = self.stamp(w, who, site);
            let before = self.barriers.iter().position(|b| b.cta == slot.cta && b.offset == slot.offset);
            let barrier = before.unwrap_or_else(|| {
                let actor = self.actor(ActorKind::Mbarrier);
                self.barriers.push(Mbarrier::new(slot.cta, slot.offset, actor));
                self.barriers.len() - 1
            }) as u32;
            self.barriers[barrier as usize].init(count, stamp);
            self.barriers[barrier as usize].first_commit = self.commits.len();
            self.barrier_at.insert((slot.cta, slot.offset), barrier);
            let (first, end) = self.barrier_span;
            self.barrier_span = (first.min(slot.offset), end.max(slot.offset + 8));
            self.record.add(w, who, site, What::Init { barrier, count });
            let id = self.barrier_id(barrier);
            let actor = Actor::Warp(self.warps[w].index);
            self.trace(slot.cta, actor, Span::of_warp(w, time, time), site, || EventKind::BarrierInit {
                barrier: id,
                count,
            });
        }
        self.warps[w].fragments[f].ready_at += self.costs.mbarrier;
        Ok(())
    }

    pub fn barrier_arrive(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        let &Op::BarrierArrive { ref address, count, expect, state, remote, relaxed, wide, kind } = op else {
            return Ok(());
        };
        let At { w, f, mask, site } = at;
        let time = self.warps[w].fragments[f].ready_at;
        let addresses = self.barrier_addresses(at, address, remote)?;
        addresses.iter().for_each(|(slot, _)| self.reach(w, slot.cta, site));
        let epoch = self.warps[w].epoch;
        let mut views = if relaxed { self.warps[w].fenced_release() } else { self.warps[w].release() };
        let scoped = std::mem::take(&mut views.scoped);
        for (slot, who) in addresses {
            let barrier = self.barrier(w, slot, site, "arrived at")?;
            let before = self.barriers[barrier as usize].used(Used { warp: w, epoch, site });
            views.scoped = self.tell_scoped(w, barrier, &scoped, Order { relaxed, wide }, site);
            // Before any of the lanes has arrived.
            let b = &self.barriers[barrier as usize];
            let (first_phase, first_pending) = (b.phase, b.pending);
            for lane in lanes(who) {
                let value = |r: u16| self.warps[w].registers.b32[usize::from(r)][lane];
                let (count, bytes) = (count.map_or(1, value), expect.map(value));
                // The phase behind the one that this arrival may complete takes fewer already.
                if kind.drops {
                    self.record.add(w, 1 << lane, site, What::Drop { barrier, count });
                }
                self.record.add(
                    w,
                    1 << lane,
                    site,
                    What::Arrive { barrier, count, bytes: recorded(bytes.unwrap_or(0)) },
                );
                if let Some(beyond) = limits::arrivals(|| self.barrier_name(barrier), count.into()) {
                    return Err(self.beyond(site, beyond));
                }
                if let Some(bytes) = bytes {
                    self.expect(barrier, bytes, site)?;
                }
                // The phase, and what it waited for before this arrival.
                let b = &self.barriers[barrier as usize];
                let (phase, pending) = (b.phase, b.pending);
                if let Some(d) = state {
                    let token = token(barrier, phase, pending);
                    self.warps[w].registers.set_lane(Reg::B64(d), lane, token.into());
                }
                if kind.no_complete && count >= pending {
                    return Err(Some(Box::new(self.problem(
                        "mbarrier-overflow",
                        site,
                        format!(
                            "{} gets {} without completion in phase {phase}, which waits for {pending}",
                            self.barrier_name(barrier),
                            counted(count, "arrival")
                        ),
                        "An arrival with .noComplete must not complete the phase: it leaves one arrival pending at least (PTX ISA, \
                         mbarrier.arrive).",
                        "Let the last arrival of a phase be one without .noComplete.".into(),
                    ))));
                }
                if kind.drops {
                    self.barriers[barrier as usize].drop_expected(count, site);
                }
                let span = Span::of_warp(w, time, time);
                let arrival = Arrival { count, announced: bytes.unwrap_or(0), site, engine: false };
                let arrived = self.arrive(barrier, arrival, &views, span);
                let dropped = self.barriers[barrier as usize].dropped.is_some();
                arrived.map_err(|stop| {
                    if dropped {
                        return stop;
                    }
                    let stop = self.behind_a_wait_that_passed_again(w, stop);
                    let stop = self.behind_a_wait_that_passed_early(w, before, site, stop);
                    let stop = self.behind_no_wait(w, before, site, stop);
                    let stop = self.behind_an_unread_wait(w, before, stop);
                    self.behind_its_own_lanes(w, who, first_pending, stop)
                })?;
                let (b, hb) = (&self.barriers[barrier as usize], &mut self.warps[w].views.hb);
                if let Some(complete) = b.completed_alone(phase, hb.get(b.actor)) {
                    hb.raise(b.actor, complete);
                }
            }
            if who.count_ones() > 1 {
                self.check_split(at, barrier, first_phase, first_pending, who);
            }
        }
        if let Some(d) = state {
            self.warps[w].registers.set_defined(Reg::B64(d), mask, u32::MAX);
        }
        self.warps[w].fragments[f].ready_at += self.costs.mbarrier;
        Ok(())
    }

    pub fn expect(&mut self, barrier: u32, bytes: u32, site: u32) -> Result<(), Stop> {
        let b = &mut self.barriers[barrier as usize];
        b.bytes += i64::from(bytes);
        b.traffic.announce(site, bytes);
        b.has_announced = true;
        if b.bytes > LIMIT {
            let (total, name) = (b.bytes, self.barrier_name(barrier));
            return Err(Some(Box::new(self.problem(
                "mbarrier-bytes",
                site,
                format!("{name} would wait for {total} bytes"),
                "The pending bytes of a phase stay within ±1,048,575 (PTX ISA 9.7.13.15.2).",
                "Announce the bytes of one stage only.".into(),
            ))));
        }
        Ok(())
    }

    /// `mbarrier.complete_tx`: bytes that nobody copied count as if they had come.
    pub fn complete_bytes(&mut self, barrier: u32, bytes: u32, site: u32) -> Result<(), Stop> {
        let b = &mut self.barriers[barrier as usize];
        b.bytes -= i64::from(bytes);
        b.traffic.complete(site, bytes);
        if b.bytes < -LIMIT {
            let (total, name) = (-b.bytes, self.barrier_name(barrier));
            return Err(Some(Box::new(self.problem(
                "mbarrier-bytes",
                site,
                format!("{name} would have {total} bytes more than were announced"),
                "The pending bytes of a phase stay within ±1,048,575 (PTX ISA 9.7.13.15.2).",
                "Announce as many bytes with mbarrier.expect_tx as are completed.".into(),
            ))));
        }
        Ok(())
    }

    /// Arrivals, by a thread or an engine, and what follows from them.
    pub fn arrive(&mut self, barrier: u32, arrival: Arrival, views: &Views, span: Span) -> Result<(), Stop> {
        let Arrival { count, announced, site, engine } = arrival;
        let phase = self.barriers[barrier as usize].phase;
        if self.barriers[barrier as usize].arrive(count, site, views).is_err() {
            let b = &self.barriers[barrier as usize];
            let (pending, init) = (b.pending, b.init.site);
            let dropped = b.dropped.filter(|&(taken, _)| count <= pending + taken);
            let expected = b.expected + b.dropped.map_or(0, |(taken, _)| taken);
            let mut earlier: Vec<u32> = b.arrivals.iter().chain(&b.previous).map(|a| a.0).collect();
            earlier.dedup();
            self.overflowed = Some((barrier, span.w));
            let mut diagnostic = self.problem(
                "mbarrier-overflow",
                site,
                format!(
                    "{} gets {count} more {} in phase {phase}, which takes {pending} more",
                    self.barrier_name(barrier),
                    if count == 1 { "arrival" } else { "arrivals" }
                ),
                "An arrival lowers the pending count of its phase, which cannot fall below 0 (PTX ISA 9.7.13.15.2).",
                "Let as many threads arrive as mbarrier.init says, or initialise it for as many as arrive.".into(),
            );
            diagnostic
                .labels
                .push(self.label(init, format!("initialised for {} a phase", counted(expected, "arrival"))));
            if let Some((taken, drop)) = dropped {
                let text = format!("arrive_drop has taken {taken} of them away, for all phases behind its own");
                diagnostic.labels.push(self.label(drop, text));
                diagnostic.help = "Let threads that arrive in later phases, too, execute mbarrier.arrive here, not mbarrier.arrive_drop.".into();
            }
            for at in earlier.into_iter().take(2).filter(|&at| at != site) {
                diagnostic.labels.push(self.label(at, "this arrived, too"));
            }
            return Err(Some(Box::new(diagnostic)));
        }
        self.barriers[barrier as usize].comes(span.w, site, false);
        let id = self.barrier_id(barrier);
        let home = self.barriers[barrier as usize].cta;
        let actor = if engine { Actor::TensorCore } else { Actor::Warp(self.warps[span.w].index) };
        let kind = || EventKind::BarrierArrive { barrier: id, phase, count, announced };
        self.trace(home, actor, span, site, kind);
        self.try_complete(barrier, span.end);
        Ok(())
    }

    /// Wakes the waiters of a phase that is complete.
    pub fn try_complete(&mut self, barrier: u32, time: u64) {
        if !self.barriers[barrier as usize].complete() {
            return;
        }
        self.overtaken(barrier);
        self.acted();
        let wake = time + self.costs.wake;
        for w in 0..self.warps.len() {
            for f in 0..self.warps[w].fragments.len() {
                let State::Mbarrier { barrier: b, parity, .. } = self.warps[w].fragments[f].state else { continue };
                if b == barrier && self.barriers[barrier as usize].passes(parity) {
                    let delay = self.jitter(300);
                    self.pass(w, f, wake + delay);
                }
            }
        }
        self.lower_horizon(wake);
    }

    /// A store or a copy over a live mbarrier destroys it, and a plain load of it gives nothing that is known.
    pub fn check_barrier_bytes(&mut self, cta: usize, start: u32, end: u32, site: u32, writes: bool) {
        let hit = self.barriers.iter().find(|b| b.valid && b.cta == cta && b.offset < end && start < b.offset + 8);
        let Some(b) = hit else { return };
        let (name, init) = (self.shared_name(b.offset), b.init.site);
        let mut diagnostic: Diagnostic = self.problem(
            "mbarrier-overwritten",
            site,
            match writes {
                true => format!("{} overwrites the mbarrier {name}", self.called_writer(site)),
                false => format!("a plain load reads the mbarrier {name}"),
            },
            "Only mbarrier operations may touch a valid mbarrier object (PTX ISA 9.7.13.15).",
            match writes {
                true => {
                    "Check the address of the store, and the sizes of the buffers beside the barrier. If the barrier is not needed any more, end it with mbarrier.inval first."
                }
                false => {
                    "Check the address of the load. If it is to tell whether a phase is complete, use mbarrier.test_wait or mbarrier.try_wait."
                }
            }
            .into(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels.push(self.label(init, "initialised here"));
        self.findings.add(diagnostic);
    }
}
