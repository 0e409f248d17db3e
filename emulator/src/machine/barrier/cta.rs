//! Barriers of a CTA (`bar`, `barrier`): who arrives, and when those that wait go on.

use crate::diagnostic::Severity;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::names::counted;
use crate::machine::state::{At, NamedArrival, Span};
use crate::machine::warp::State;
use crate::machine::warp::registers::lanes;
use crate::program::limits;
use crate::program::op::{BarrierVote, Op};
use crate::protocol::What;
use crate::report::{Actor, EventKind};

impl Cluster<'_> {
    /// `votes`: the lanes whose predicate holds, of `barrier.red`.
    pub fn cta_barrier(
        &mut self,
        at: At,
        (id, threads): (u16, Option<u16>),
        wait: bool,
        aligned: bool,
        votes: Option<u32>,
    ) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        // A CTA barrier does not wait for lanes that have ended.
        if aligned && mask != self.warps[w].live {
            self.whole_warp(w, mask, site)?;
        }
        let first = mask.trailing_zeros() as usize;
        let value = |r: u16| self.warps[w].registers.b32[usize::from(r)][first];
        let id = value(id);
        // None are all of the CTA: only an arrival needs a number (PTX ISA, barrier).
        let count = threads.map(value).filter(|&count| count != 0 || !wait);
        let beyond = limits::barrier_number(id.into())
            .or_else(|| limits::barrier_threads(|| format!("barrier {id}"), count?.into()));
        if let Some(beyond) = beyond {
            return Err(self.beyond(site, beyond));
        }
        let c = self.warps[w].cta;
        let time = self.warps[w].fragments[f].ready_at;
        let named = &mut self.ctas[c].named[id as usize];
        let in_use = named.in_use();
        if in_use && named.expected != count {
            let (before, site_before) = (named.expected, named.site);
            let text = |c: Option<u32>| c.map_or("all threads".to_string(), |c| counted(c, "thread"));
            let mut diagnostic = self.problem(
                "named-barrier",
                site,
                format!("barrier {id} is used for {} and for {} in the same phase", text(before), text(count)),
                "All warps that take part in one phase of a barrier give the same thread count (PTX ISA 9.7.13.1).",
                "Give the same count where the same warps meet. Where they are two groups, give each a barrier number of its own.".into(),
            );
            diagnostic.labels.push(self.label(site_before, format!("the first to arrive said {}", text(before))));
            return Err(Some(Box::new(diagnostic)));
        }
        if in_use && named.votes.is_some() != votes.is_some() {
            let site_before = named.site;
            let mut diagnostic = self.problem(
                "named-barrier",
                site,
                format!("barrier {id} is used by barrier.red and by another instruction in the same phase"),
                "barrier.red meets only barrier.red at a barrier; what comes of other mixtures is not defined (PTX ISA, barrier).",
                "Give each of them a barrier number of its own.".into(),
            );
            diagnostic.labels.push(self.label(site_before, "the first to arrive"));
            return Err(Some(Box::new(diagnostic)));
        }
        named.expected = count;
        named.site = site;
        if count.is_some() && self.options.judges() {
            self.warps_meet_apart(w, site, id);
        }
        let named = &mut self.ctas[c].named[id as usize];
        if let Some(votes) = votes {
            let (hold, all) = named.votes.unwrap_or_default();
            named.votes = Some((hold + votes.count_ones(), all + mask.count_ones()));
        }
        named.latest = named.latest.max(time);
        let warp = &mut self.warps[w];
        warp.release_to(&mut named.views);
        warp.halves.tell(&mut named.halves);
        let whole = named.arrive(warp.index, mask, warp.live);
        let what = What::Named { cta: c as u8, id: id as u8, expected: count.map(|count| count as u16) };
        self.record.add(w, mask, site, what);
        if wait {
            self.wait_apart(w, f, mask, State::CtaBarrier(id));
        }
        if whole {
            self.complete_named(c, id);
        }
        Ok(())
    }

    /// A warp arrives at a barrier that counts threads, and others met there before: had it come earlier, it would have been counted as one of them,
    /// unless it knows that their phase is complete.
    fn warps_meet_apart(&mut self, w: usize, site: u32, id: u32) {
        let (warp, named) = (&self.warps[w], &self.ctas[self.warps[w].cta].named[id as usize]);
        let early = |came: &&NamedArrival| !warp.has_heard_of(self.warps[came.warp].actor, came.epoch);
        let took_part = named.before.iter().any(|came| came.warp == w);
        let other = if took_part || named.told { None } else { named.before.iter().find(early).copied() };
        if let Some(other) = other {
            let (who, them) = (self.warp_name(w), self.warp_name(other.warp));
            let mut diagnostic = self.problem(
                "named-barrier",
                site,
                format!("{who} may arrive at barrier {id} while {them} and others meet there, and be counted as one of them"),
                "A barrier with a thread count is complete when so many threads have arrived, whichever they are (PTX ISA 9.7.13.1).",
                "Give each group of warps that meets by itself a barrier number of its own.".into(),
            );
            diagnostic.severity = Severity::Finding;
            diagnostic.labels.push(self.label(other.site, format!("{them} arrives here; nothing orders this before")));
            self.findings.add(diagnostic);
            self.ctas[self.warps[w].cta].named[id as usize].told = true;
        }
        let epoch = self.warps[w].epoch;
        let named = &mut self.ctas[self.warps[w].cta].named[id as usize];
        named.came.retain(|came| came.warp != w);
        named.came.push(NamedArrival { warp: w, epoch, site });
    }

    /// Lanes have ended: lets the waiters of a CTA barrier go if all others have arrived.
    pub fn check_named(&mut self, c: usize, id: u32) {
        let named = &mut self.ctas[c].named[id as usize];
        for warp in self.warps.iter().filter(|w| w.cta == c) {
            named.arrive(warp.index, 0, warp.live);
        }
        self.complete_named(c, id);
    }

    /// Lets the waiters of a CTA barrier go if all have arrived.
    fn complete_named(&mut self, c: usize, id: u32) {
        let live = self.live_threads(c);
        let named = &mut self.ctas[c].named[id as usize];
        let expected = named.expected.unwrap_or(live);
        if named.arrived == 0 || named.arrived < expected {
            return;
        }
        let remembered = named.remembered();
        let done = std::mem::replace(named, remembered);
        let time = done.latest + self.costs.cta_barrier + 2 * u64::from(expected / 32);
        let (cta, number) = (c as u8, id as u8);
        self.record.add(0, 0, done.site, What::NamedDone { cta, id: number });
        for w in 0..self.warps.len() {
            if self.warps[w].cta != c {
                continue;
            }
            let mut joined = false;
            for f in 0..self.warps[w].fragments.len() {
                let fragment = &mut self.warps[w].fragments[f];
                if fragment.state != State::CtaBarrier(id) {
                    continue;
                }
                let (start, pc, mask) = (fragment.ready_at, fragment.pc, fragment.mask);
                fragment.state = State::Ready;
                fragment.ready_at = time;
                joined = true;
                let inst = self.kernel.code.get(pc.saturating_sub(1) as usize);
                let site = inst.map_or(done.site, |i| i.site);
                self.record.add(w, mask, site, What::NamedPassed { cta, id: number });
                let op = inst.map(|i| &i.op);
                if let (Some((hold, all)), Some(&Op::BarrierReduce { what, d, .. })) = (done.votes, op) {
                    let value = match what {
                        BarrierVote::And => u32::from(hold == all),
                        BarrierVote::Or => u32::from(hold != 0),
                        BarrierVote::Count => hold,
                    };
                    let registers = &mut self.warps[w].registers;
                    lanes(mask).for_each(|lane| registers.set_lane(d, lane, value.into()));
                    registers.set_defined(d, mask, u32::MAX);
                }
                // Now and then one comes so late that the others are done with what follows.
                let most = if self.perturbed(8) { 6000 } else { 200 };
                let delay = self.jitter(most);
                self.warps[w].fragments[f].ready_at += delay;
                let actor = Actor::Warp(self.warps[w].index);
                self.trace(c, actor, Span::of_warp(w, start, time), site, || EventKind::CtaBarrier {
                    id,
                    threads: expected,
                });
            }
            if joined {
                self.warps[w].views.join(&done.views);
                done.halves.iter().for_each(|halves| self.warps[w].halves.join(halves));
                self.warps[w].synchronised();
            }
        }
        self.acted();
        self.lower_horizon(time);
    }
}
