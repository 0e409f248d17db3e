//! Waits for mbarriers: what lets them pass, and what a warp learns from it.

use super::mbarrier::{Passing, Used};
use super::scopes::Order;
use crate::diagnostic::Severity;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::unheeded::repeat;
use crate::machine::state::{At, Span};
use crate::machine::warp::{Fragment, Passed, State};
use crate::program::limits;
use crate::program::op::{Op, Reg};
use crate::protocol::{Timing, What};
use crate::report::{Actor, EventKind};

/// Cycles after which a `mbarrier.try_wait` ends whose phase is not complete: assumption `try-wait-time-limit`.
const TIME_LIMIT: u64 = 1 << 20;
/// Times that lanes ask in vain before those that wait for them go on.
const SOME: u64 = 16;
/// Times that a warp asks in vain before it counts as one that does nothing else.
const OFTEN: u64 = 1000;

impl Cluster<'_> {
    pub fn barrier_wait(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        let &Op::BarrierWait { ref address, p, parity, state, block, relaxed, wide } = op else { return Ok(()) };
        let At { w, f, mask, site } = at;
        let addresses = self.barrier_addresses(at, address, false)?;
        let first = mask.trailing_zeros() as usize;
        let parity_register = parity;
        let parity = self.warps[w].registers.b32[usize::from(parity_register)][first];
        let one = addresses.only();
        let uniform = one.is_some() && self.warps[w].registers.is_uniform(parity_register, mask);
        let Some(slot) = one.filter(|_| uniform && parity <= 1) else {
            if let Some(beyond) = limits::parity(parity.into()).filter(|_| uniform) {
                return Err(self.beyond(site, beyond));
            }
            return Err(Some(Box::new(self.problem(
                "mbarrier-parity",
                site,
                "lanes of one warp wait for different barriers or parities".into(),
                limits::PARITY,
                "Let one lane wait at a time; lanes that wait apart are not modelled.".into(),
            ))));
        };
        let barrier = self.barrier(w, slot, site, "waited on")?;
        if let Some(state) = state.filter(|_| self.options.judges()) {
            self.check_state(w, mask, barrier, state, site);
        }
        let order = Order { relaxed, wide };
        self.warps[w].fragments[f].ready_at += self.costs.mbarrier;
        let now = self.warps[w].fragments[f].ready_at;
        let passes = self.barriers[barrier as usize].passes(parity);
        if passes {
            self.warps[w].fragments[f].state = State::Mbarrier { barrier, parity, p, mask, since: now, order };
            self.pass(w, f, now);
            return Ok(());
        }
        // A wait that passes notes its use itself.
        let epoch = self.warps[w].epoch;
        self.barriers[barrier as usize].used(Used { warp: w, epoch, site });
        if block && !self.perturbed(4) {
            self.let_others_go_on(w, f, mask);
            self.warps[w].fragments[f].state = State::Mbarrier { barrier, parity, p, mask, since: now, order };
        } else {
            // `test_wait`, or a `try_wait` that reached its time limit.
            let (spins, read) = self.spins_and_is_read(w, f);
            if !spins {
                self.goes_on_unheeding(w, barrier, site, !read);
            }
            match (spins, read) {
                (_, false) => self.wait_unread(site, barrier),
                (spins, _) if !spins => self.record.depends_on_timing(site, Timing::Polled),
                _ => {}
            }
            self.polls += 1;
            self.warps[w].polls += 1;
            self.warps[w].asks = Some((site, now));
            if self.warps[w].polls.is_multiple_of(SOME) {
                self.let_waiting_go_on(w, f);
            }
            let registers = &mut self.warps[w].registers;
            registers.write_pred(p, mask, 0);
            registers.set_defined(Reg::Pred(p), mask, u32::MAX);
            let next = self.next_event().unwrap_or(0).min(now + 1000);
            self.warps[w].fragments[f].ready_at = (now + self.costs.wake).max(next);
        }
        Ok(())
    }

    /// Nothing else goes on: whether anybody does by himself, lanes that wait for others of their warp or those whose time to wait is over.
    pub fn goes_on_by_itself(&mut self) -> bool {
        self.waiting_lanes_go_on() || self.time_limit_ends()
    }

    /// Nothing else goes on: a `mbarrier.try_wait` that is not asked until it passes ends by its time limit, and says so; whether one did.
    /// Who asks until it passes waits for ever, and so does who has asked this often, in whatever loop: that is a hang.
    fn time_limit_ends(&mut self) -> bool {
        let waiting = |fragment: &Fragment| match fragment.state {
            State::Mbarrier { barrier, p, mask, since, .. } => Some((barrier, p, mask, since)),
            _ => None,
        };
        let all = self.warps.iter().enumerate().flat_map(|(w, warp)| (0..warp.fragments.len()).map(move |f| (w, f)));
        let all = all.filter_map(|(w, f)| Some((w, f, waiting(&self.warps[w].fragments[f])?)));
        let once = |&(w, f, _): &(usize, usize, _)| self.warps[w].polls < OFTEN && !self.spins_and_is_read(w, f).0;
        let once = all.filter(once).min_by_key(|(.., wait)| wait.3);
        let Some((w, f, (barrier, p, mask, since))) = once else { return false };
        let site = self.site(w, f);
        let unread = !self.spins_and_is_read(w, f).1;
        if unread {
            self.wait_unread(site, barrier);
        }
        self.goes_on_unheeding(w, barrier, site, unread);
        self.record.depends_on_timing(site, Timing::Polled);
        self.polls += 1;
        let warp = &mut self.warps[w];
        warp.polls += 1;
        warp.registers.write_pred(p, mask, 0);
        warp.registers.set_defined(Reg::Pred(p), mask, u32::MAX);
        let fragment = &mut warp.fragments[f];
        fragment.state = State::Ready;
        fragment.ready_at = fragment.ready_at.max(since) + TIME_LIMIT;
        fragment.pc += 1;
        true
    }

    pub fn next_event(&self) -> Option<u64> {
        self.events.peek().map(|std::cmp::Reverse((time, ..))| *time)
    }

    /// What is known of the wait that a fragment executes: it asks until it passes, and its result is read.
    fn spins_and_is_read(&self, w: usize, f: usize) -> (bool, bool) {
        let inst = self.kernel.code.get(self.warps[w].fragments[f].pc as usize);
        inst.map_or((false, true), |inst| (inst.facts.spins, !inst.facts.unread))
    }

    /// Nobody hears whether it passed: what comes behind it may come before the phase is complete.
    fn wait_unread(&mut self, site: u32, barrier: u32) {
        let name = self.barrier_name(barrier);
        let mut diagnostic = self.problem(
            "wait-result-unread",
            site,
            format!("nothing reads what this wait for {name} says"),
            "mbarrier.test_wait does not wait, and mbarrier.try_wait only for a time that the system sets: the predicate says whether the \
             phase is complete (PTX ISA 9.7.13.15.16).",
            repeat(&name),
        );
        diagnostic.severity = Severity::Note;
        self.findings.add(diagnostic);
    }

    /// A wait succeeds: the warp learns what the arrivals knew.
    pub fn pass(&mut self, w: usize, f: usize, time: u64) {
        let State::Mbarrier { barrier, parity, p, mask, since, order } = self.warps[w].fragments[f].state else {
            return;
        };
        let site = self.site(w, f);
        match self.spins_and_is_read(w, f) {
            (_, false) => return self.pass_unread(w, f, time),
            (true, _) => _ = self.record.add(w, mask, site, What::Wait { barrier, parity: parity as u8 }),
            (false, _) => {
                // Another time it fails, and the warp goes on all the same.
                self.record.add(w, mask, site, What::Asked { barrier, parity: parity as u8 });
                self.record.depends_on_timing(site, Timing::Polled);
            }
        }
        let b = &self.barriers[barrier as usize];
        let warp = &mut self.warps[w];
        let before = warp.views.heard(b.actor);
        // A phase that is over by then, if only in time, is not the one that it waits for.
        let known = if self.clocks { warp.views.came_before(b.actor) } else { b.next_epoch().saturating_sub(2) };
        let (phases, told) = b.learned(parity, known);
        let known = &told.views;
        let fresh = known.hb.get(b.actor) > before;
        let phase = phases.checked_sub(1);
        if order.relaxed {
            // The warp learns what it would by an acquire only at its next fence.
            warp.halves.unacquired.join(known);
            warp.views.hear_late(known);
        } else {
            warp.views.join(known);
        }
        self.scopes.learn(warp, &told.beyond, order, site);
        // What its own lanes did before they arrived there is behind all that the waiting ones do now.
        warp.synced = warp.synced.max(known.hb.get(warp.actor).min(warp.epoch - 1));
        warp.registers.write_pred(p, mask, u32::MAX);
        warp.registers.set_defined(Reg::Pred(p), mask, u32::MAX);
        warp.polls = 0;
        warp.asks = None;
        let fragment = &mut warp.fragments[f];
        fragment.state = State::Ready;
        fragment.ready_at = time.max(fragment.ready_at);
        fragment.pc += 1;
        let last = warp.passed.iter().find(|passed| passed.barrier == barrier);
        let same_phase = last.filter(|passed| passed.phase == phase);
        // Parts of a warp that has diverged wait each by itself.
        let again = same_phase.is_some_and(|passed| passed.lanes & mask != 0);
        let other_part = same_phase.filter(|passed| passed.lanes & mask == 0);
        let twice = again && same_phase.is_some_and(|passed| passed.site == site);
        let lost = twice || last.is_some_and(|passed| passed.site == site && passed.lost);
        let lanes = mask | other_part.map_or(0, |passed| passed.lanes);
        let fresh = fresh || other_part.is_some_and(|passed| passed.fresh);
        let wait = Passing { before: phases, warp: w, actor: warp.actor, epoch: warp.epoch, site, again: twice };
        let used = Used { warp: w, epoch: wait.epoch, site };
        self.barriers[barrier as usize].used(used);
        if self.options.judges() {
            self.barriers[barrier as usize].passed(wait);
            self.overtaken(barrier);
        }
        let warp = &mut self.warps[w];
        warp.passed.retain(|passed| passed.barrier != barrier);
        warp.unheeded.retain(|unheeded| unheeded.barrier != barrier);
        warp.passed.push(Passed { barrier, site, lanes, parity, phase, fresh, again, lost });
        let (actor, id) = (Actor::Warp(warp.index), self.barrier_id(barrier));
        let home = self.warps[w].cta;
        self.trace(home, actor, Span::of_warp(w, since, time), site, || EventKind::BarrierWait {
            barrier: id,
            parity,
            passed_phase: phase,
        });
    }

    /// A wait ends whose result nothing reads: another time it ends by its time limit, so the warp learns nothing.
    fn pass_unread(&mut self, w: usize, f: usize, time: u64) {
        let State::Mbarrier { barrier, p, mask, .. } = self.warps[w].fragments[f].state else { return };
        let site = self.site(w, f);
        self.wait_unread(site, barrier);
        self.goes_on_unheeding(w, barrier, site, true);
        let warp = &mut self.warps[w];
        self.barriers[barrier as usize].used(Used { warp: w, epoch: warp.epoch, site });
        warp.registers.write_pred(p, mask, u32::MAX);
        warp.registers.set_defined(Reg::Pred(p), mask, u32::MAX);
        let fragment = &mut warp.fragments[f];
        fragment.state = State::Ready;
        fragment.ready_at = time.max(fragment.ready_at);
        fragment.pc += 1;
    }
}
