//! What threads and engines do to mbarriers; waits for them are in [`super::mbarrier_wait`].

use super::cluster::{Cluster, Stop};
use super::elsewhere::{Elsewhere, SPACE_RULE};
use super::mbarrier::{LIMIT, Mbarrier, Used};
use super::names::counted;
use super::registers::lanes;
use super::scopes::Order;
use super::state::{ActorKind, At, Slot, Span};
use super::warp::State;
use crate::diagnostic::{Diagnostic, Severity};
use crate::order::Views;
use crate::program::RESERVED_SHARED;
use crate::program::op::{Address, Op, Reg};
use crate::protocol::What;
use crate::report::{Actor, EventKind};

/// Mostly one.
#[derive(Debug, Default)]
pub struct Slots {
    first: Option<(Slot, u32)>,
    more: Vec<(Slot, u32)>,
}

impl Slots {
    fn add(&mut self, slot: Slot, lanes: u32) {
        let (first, _) = self.first.get_or_insert((slot, 0));
        if *first != slot && self.more.iter().all(|(known, _)| *known != slot) {
            self.more.push((slot, 0));
        }
        for (known, who) in self.first.iter_mut().chain(&mut self.more) {
            *who |= if *known == slot { lanes } else { 0 };
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Slot, u32)> {
        self.first.iter().chain(&self.more)
    }

    pub fn first(&self) -> Option<&(Slot, u32)> {
        self.first.as_ref()
    }

    /// The one place that all lanes give.
    pub fn only(&self) -> Option<Slot> {
        self.first.filter(|_| self.more.is_empty()).map(|(slot, _)| slot)
    }
}

impl IntoIterator for Slots {
    type Item = (Slot, u32);
    type IntoIter = std::iter::Chain<std::option::IntoIter<(Slot, u32)>, std::vec::IntoIter<(Slot, u32)>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

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

impl Cluster<'_> {
    /// The places that lanes give as mbarrier address, with the lanes that give each. `remote`: in any CTA of the cluster.
    pub fn barrier_addresses(&mut self, at: At, address: &Address, remote: bool) -> Result<Slots, Stop> {
        let At { w, mask, site, .. } = at;
        let own = self.warps[w].cta;
        let mut list = Slots::default();
        let registers = &self.warps[w].registers;
        let whole = |lane| (registers.lane(address.base, lane) as u64).wrapping_add(address.offset as u64);
        let raw = |lane| whole(lane) as u32;
        let first = raw(mask.trailing_zeros() as usize);
        let alike = match address.base {
            Reg::B32(reg) => registers.is_uniform(reg, mask),
            _ => lanes(mask).all(|lane| raw(lane) == first),
        };
        // Mostly all give the same address, or there is one only.
        let each = if alike { mask & mask.wrapping_neg() } else { mask };
        for lane in lanes(each) {
            let (whole, raw) = (whole(lane), raw(lane));
            if let Some(Elsewhere { whose, .. }) = self.not_shared(w, whole, remote) {
                return Err(Some(Box::new(self.problem(
                    "mbarrier-address",
                    site,
                    format!("the mbarrier address {whole:#x} of lane {lane} is no shared address: it is {}", whose),
                    SPACE_RULE,
                    "Pass the shared address of the mbarrier: `mov.u32 %r, bar;`, or convert a generic one with `cvta.to.shared.u64`.".into(),
                ))));
            }
            let (rank, offset) = ((raw >> 24) as usize, raw & 0x00ff_ffff);
            // A variable's name is an offset in the CTA's own window.
            let cta = if remote && address.base != Reg::Sink { rank } else { own };
            let end = self.ctas.get(cta).map_or(0, |c| c.shared.bytes.len() as u64);
            let foreign = !remote && rank != 0 && rank != own;
            if foreign || !offset.is_multiple_of(8) || offset < RESERVED_SHARED || u64::from(offset) + 8 > end {
                let (what, help) = if foreign {
                    (
                        format!(
                            "the mbarrier address {raw:#x} of lane {lane} lies in CTA {rank}, this form reaches the own CTA only"
                        ),
                        "Use the `.shared::cluster` form (with `_` for the state).".to_string(),
                    )
                } else if u64::from(offset) + 8 > end {
                    (
                        format!(
                            "the mbarrier address {raw:#x} of lane {lane} lies behind the CTA's shared memory, which ends at {end:#x}"
                        ),
                        format!(
                            "The launch gives the kernel {} of dynamic shared memory: give it as many as it lays out. Or it is no address, but \
                             the barrier's content.",
                            counted(u64::from(self.launch.dynamic_shared), "byte")
                        ),
                    )
                } else {
                    (
                        format!(
                            "the mbarrier address {raw:#x} of lane {lane} is not 8 aligned bytes of a CTA's shared memory"
                        ),
                        "Pass the barrier's address, not its content; align it to 8.".to_string(),
                    )
                };
                return Err(Some(Box::new(self.problem(
                    "mbarrier-address",
                    site,
                    what,
                    "An mbarrier object is 8 bytes in shared memory, aligned to 8 (PTX ISA, mbarrier).",
                    help,
                ))));
            }
            list.add(Slot { cta, offset }, if alike { mask } else { 1 << lane });
        }
        Ok(list)
    }

    /// The mbarrier at an offset, if it is initialised; and its initialisation must come before this use.
    pub fn barrier(&mut self, w: usize, slot: Slot, site: u32, used: &str) -> Result<u32, Stop> {
        let name = |this: &Self| match this.ctas.len() {
            1 => this.name_of_barrier_at(slot.offset),
            _ => format!("{} of CTA {}", this.name_of_barrier_at(slot.offset), slot.cta),
        };
        let Some(&barrier) = self.barrier_at.get(&(slot.cta, slot.offset)) else {
            let here = self.barriers.iter().filter(|b| (b.cta, b.offset) == (slot.cta, slot.offset));
            if let Some(ended) = here.filter_map(|b| b.invalidated).next_back() {
                let mut diagnostic = self.problem(
                    "mbarrier-not-initialised",
                    site,
                    format!("{} is {used} here, but it was invalidated before", name(self)),
                    "After mbarrier.inval, no operation but mbarrier.init may use the object (PTX ISA, mbarrier.inval).",
                    "Invalidate it behind its last use, or initialise it again before this one.".into(),
                );
                diagnostic.labels.push(self.label(ended, "invalidated here"));
                return Err(Some(Box::new(diagnostic)));
            }
            let known: Vec<String> =
                self.barriers.iter().filter(|b| b.valid).map(|b| self.name_of_barrier_at(b.offset)).collect();
            let known = if known.is_empty() {
                "no mbarrier is initialised".into()
            } else {
                format!("initialised are: {}", known.join(", "))
            };
            return Err(Some(Box::new(self.problem(
                "mbarrier-not-initialised",
                site,
                format!("{} is {used} here, but no mbarrier.init of it has been executed ({known})", name(self)),
                "Every operation on an mbarrier needs a preceding mbarrier.init (PTX ISA 9.7.13.15.3).",
                "Let one thread initialise it, then a fence.mbarrier_init and a CTA barrier, before anyone uses it.".into(),
            ))));
        };
        let init = self.barriers[barrier as usize].init;
        let warp = &self.warps[w];
        let known = warp.views.hb.get(init.actor).max(warp.views.inits.get(init.actor));
        if init.epoch > known && !self.options.timing_only {
            // Behind a relaxed barrier and a wait for something else it is there in time: kernels of CUTLASS 4 leave one at that. Right
            // behind the barrier it is not (NVIDIA/Fuser#1552).
            let in_time = warp.views.came_before(init.actor) >= init.epoch
                && warp.passed.iter().any(|passed| passed.phase.is_some());
            let what = if in_time { "only relaxed synchronisation" } else { "nothing" };
            let relaxed = self.relaxed_arrival_behind(init, &warp.views);
            let mut diagnostic = self.problem(
                "mbarrier-init-unordered",
                site,
                format!("{} uses {}, but {what} orders this after its initialisation", self.warp_name(w), name(self)),
                "An mbarrier.init must happen before every other operation on the object (PTX ISA 9.7.13.15.3).",
                if relaxed.is_some() {
                    "Give the cluster barrier's arrive behind the initialisation .release, or leave its .relaxed out.".into()
                } else if in_time {
                    "Put the fence.mbarrier_init behind this initialisation, too, or let the barrier's arrival release (without .relaxed)."
                        .into()
                } else if slot.cta == warp.cta {
                    "Put a CTA barrier between the initialisation and the first use.".into()
                } else {
                    "Put a fence.mbarrier_init and a barrier of the cluster (barrier.cluster.arrive, then wait) between the initialisation \
                     and the first use."
                        .into()
                },
            );
            diagnostic.severity = if in_time { Severity::Note } else { Severity::Finding };
            diagnostic.labels.push(self.label(init.site, "initialised here"));
            diagnostic.labels.extend(relaxed.map(|site| {
                self.label(
                    site,
                    "this arrival at the cluster barrier is relaxed: it tells nothing of the initialisation",
                )
            }));
            self.findings.add(diagnostic);
        }
        Ok(barrier)
    }

    pub fn barrier_init(&mut self, at: At, address: &Address, count: u16) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let time = self.warps[w].fragments[f].ready_at;
        for (slot, who) in self.barrier_addresses(at, address, false)? {
            let name = || self.shared_name(slot.offset);
            let count = self.warps[w].registers.b32[usize::from(count)][who.trailing_zeros() as usize];
            if count == 0 || i64::from(count) > LIMIT {
                return Err(Some(Box::new(self.problem(
                    "mbarrier-count",
                    site,
                    format!("{} is initialised for {}", name(), counted(count, "arrival")),
                    "The count of an mbarrier is 1 to 1,048,575 (PTX ISA 9.7.13.15.2).",
                    "Give the number of arrivals that complete a phase.".into(),
                ))));
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
            let (phase, pending) = (self.barriers[barrier as usize].phase, self.barriers[barrier as usize].pending);
            for lane in lanes(who) {
                let value = |r: u16| self.warps[w].registers.b32[usize::from(r)][lane];
                let (count, bytes) = (count.map_or(1, value), expect.map(value));
                // The phase behind the one that this arrival may complete takes fewer already.
                if kind.drops {
                    self.record.add(w, 1 << lane, site, What::Drop { barrier, count });
                }
                self.record.add(w, 1 << lane, site, What::Arrive { barrier, count, bytes: bytes.unwrap_or(0) });
                if count == 0 || i64::from(count) > LIMIT {
                    return Err(Some(Box::new(self.problem(
                        "mbarrier-count",
                        site,
                        format!("{} at {}", counted(count, "arrival"), self.barrier_name(barrier)),
                        "The count of an arrival lies in the range of an mbarrier's counts, up to 1,048,575 (PTX ISA 9.7.13.15.13); none is no arrival.",
                        "Give the number of arrivals, or leave it out for one.".into(),
                    ))));
                }
                if let Some(bytes) = bytes {
                    self.expect(barrier, bytes, site)?;
                }
                // The phase, and what it waited for before this arrival.
                let b = &self.barriers[barrier as usize];
                let (phase, pending) = (b.phase, b.pending);
                if let Some(d) = state {
                    let token = phase & 0xffff_ffff | u64::from(pending) << 32;
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
                    self.barriers[barrier as usize].drop_expected(count);
                }
                let span = Span::of_warp(w, time, time);
                let arrival = Arrival { count, announced: bytes.unwrap_or(0), site, engine: false };
                let arrived = self.arrive(barrier, arrival, &views, span);
                arrived.map_err(|stop| {
                    let stop = self.behind_a_wait_that_passed_again(w, stop);
                    let stop = self.behind_a_wait_that_passed_early(w, before, site, stop);
                    self.behind_no_wait(w, before, site, stop)
                })?;
                let (b, hb) = (&self.barriers[barrier as usize], &mut self.warps[w].views.hb);
                if let Some(complete) = b.completed_alone(phase, hb.get(b.actor)) {
                    hb.raise(b.actor, complete);
                }
            }
            if who.count_ones() > 1 {
                self.check_split(at, barrier, phase, pending, who);
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
            let (pending, expected, init) = (b.pending, b.expected, b.init.site);
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

    /// A plain store over a live mbarrier destroys it, and a plain load of it gives nothing that is known.
    pub fn check_barrier_bytes(&mut self, cta: usize, start: u32, end: u32, site: u32, writes: bool) {
        let hit = self.barriers.iter().find(|b| b.valid && b.cta == cta && b.offset < end && start < b.offset + 8);
        let Some(b) = hit else { return };
        let (name, init) = (self.shared_name(b.offset), b.init.site);
        let mut diagnostic: Diagnostic = self.problem(
            "mbarrier-overwritten",
            site,
            match writes {
                true => format!("a plain store overwrites the mbarrier {name}"),
                false => format!("a plain load reads the mbarrier {name}"),
            },
            "Only mbarrier operations may touch a valid mbarrier object (PTX ISA 9.7.13.15).",
            match writes {
                true => "Check the address of the store, and the sizes of the buffers beside the barrier.",
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
