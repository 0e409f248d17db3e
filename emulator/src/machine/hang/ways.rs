//! Of who is stuck: what it would still come to, and waits that are wrong whatever others do.

use super::{Blocked, barrier_of};
use crate::diagnostic::Diagnostic;
use crate::machine::cluster::Cluster;
use crate::machine::warp::{Passed, State};
use crate::program::facts::leads;
use crate::program::flow::decided::decided_guards;
use crate::program::op::{Inst, Op, Reg, Special};

impl Cluster<'_> {
    /// Of each instruction, whether the first lane's guard there holds, where its place in the launch decides that.
    fn decided<'b>(&self, of: &'b Blocked) -> &'b [Option<bool>] {
        of.decided.get_or_init(|| {
            let lane = of.mask.trailing_zeros() & 31;
            let special = |which: Special| (!which.is_time()).then(|| self.special(of.warp, which, lane) as u32);
            decided_guards(&self.kernel.code, &self.kernel.constants32, special)
        })
    }

    /// From where somebody stands on to one of these statements: so many instructions at least.
    pub fn leads_to(&self, from: &Blocked, sites: &[u32]) -> Option<usize> {
        self.leads(from, |inst| sites.contains(&inst.site))
    }

    fn leads(&self, from: &Blocked, found: impl Fn(&Inst) -> bool) -> Option<usize> {
        let code = &self.kernel.code;
        let starts = (0..code.len()).filter(|&n| code[n].site == from.site);
        starts.filter_map(|n| leads(code, n, self.decided(from), &found)).min()
    }

    /// A wait that is wrong by itself, whatever others do: one for registers that nobody gives back any more, one that leaves out a phase, one
    /// whose index has run past its mbarriers, one for bytes that no statement announces, one for an mbarrier at which no statement arrives, or one at a CTA barrier to which nobody else would ever come.
    pub fn wrong_by_itself<'b>(&self, blocked: &'b [Blocked]) -> Option<&'b Blocked> {
        let starved = blocked.iter().find(|waiter| self.is_starved(blocked, waiter));
        let unannounced =
            |waiter: &Blocked| barrier_of(waiter).is_some_and(|n| self.is_unannounced(&self.barriers[n as usize]));
        let wrong = |waiter: &&Blocked| {
            unannounced(waiter)
                || barrier_of(waiter).is_some_and(|n| self.is_never_told(n))
                || self.skipped(waiter).is_some()
                || self.run_past(waiter).is_some()
                || self.waits_again(waiter).is_some()
        };
        let wrong = starved.or_else(|| blocked.iter().find(wrong));
        wrong.or_else(|| blocked.iter().find(|waiter| self.nobody_comes(blocked, waiter)))
    }

    /// Nothing has ever come to an mbarrier, and no statement of the kernel would arrive at it.
    pub fn is_never_told(&self, barrier: u32) -> bool {
        let b = &self.barriers[barrier as usize];
        let fresh = self.at_offset(b).all(|twin| twin.came.is_empty());
        fresh
            && self.may_arrive(b.offset).is_empty()
            && self.may_come_to(b.offset).into_iter().all(|site| self.has_gone_round(site))
    }

    /// A statement has arrived at one mbarrier twice: it has gone through those of its ring.
    fn has_gone_round(&self, site: u32) -> bool {
        self.barriers.iter().any(|b| {
            let mut phases = b.history.iter().filter(|(_, by)| *by == site).map(|(phase, _)| *phase);
            phases.next().is_some_and(|first| phases.any(|phase| phase > first))
        })
    }

    /// Nothing has ever come to two mbarriers, and who waits for one would arrive at the other behind its wait: whatever others do, the one whose
    /// work comes first should pass. That one, and the other.
    pub fn each_before_the_other<'b>(&self, blocked: &'b [Blocked]) -> Option<(&'b Blocked, &'b Blocked)> {
        let arrivals = |b: &Blocked| {
            let barrier = &self.barriers[barrier_of(b)? as usize];
            let fresh = self.at_offset(barrier).all(|twin| twin.came.is_empty());
            Some(self.arrival_sites_anywhere(barrier.offset)).filter(|sites| fresh && !sites.is_empty())
        };
        let fresh: Vec<(&Blocked, Vec<u32>)> = blocked.iter().filter_map(|b| Some((b, arrivals(b)?))).collect();
        let pairs = fresh.iter().enumerate().flat_map(|(n, one)| fresh[n + 1..].iter().map(move |other| (one, other)));
        let mut each = pairs.filter(|((one, to_one), (other, to_other))| {
            self.leads_to(one, to_other).is_some() && self.leads_to(other, to_one).is_some()
        });
        let ((one, _), (other, _)) = each.next()?;
        let first = self.first_of_fresh(&[one, other])?;
        Some((first, if std::ptr::eq(first, *one) { other } else { one }))
    }

    /// Whether a warp has passed a wait for this phase of an mbarrier.
    pub fn has_seen(&self, waiter: &Blocked, barrier: u32, phase: u64) -> bool {
        self.warps[waiter.warp].passed.iter().any(|passed| (passed.barrier, passed.phase) == (barrier, Some(phase)))
    }

    /// What is said of such a wait for an mbarrier.
    pub fn wrong_wait(&self, waiter: &Blocked) -> Option<Diagnostic> {
        let State::Mbarrier { barrier, parity, .. } = waiter.state else { return None };
        let (who, name) = (self.warp_name(waiter.warp), self.barrier_name(barrier));
        let now = self.barriers[barrier as usize].phase;
        let wait = self.label(waiter.site, format!("{who} waits for {name}, parity {parity} (phase {now})"));
        if let Some(last) = self.run_past(waiter) {
            let mut d = self.hang(
                waiter.site,
                format!(
                    "{who} waits for {name}: by the same statement it waited for {} before",
                    self.barrier_name(last.barrier)
                ),
                "Let the stage begin at 0 again behind the last one, where the mbarriers of this ring end.".into(),
            );
            d.labels = vec![wait];
            return Some(d);
        }
        if let Some(last) = self.waits_again(waiter) {
            let seen = last.phase.unwrap_or_default();
            let mut d = self.hang(
                waiter.site,
                format!("{who} waits for phase {now} of {name} right behind its wait for phase {seen}, and does nothing in between"),
                "Let a round of the loop wait for one phase: do what it tells of, and tell that it is done, before the next one is waited for."
                    .into(),
            );
            d.labels = vec![wait, self.label(last.site, format!("it passed phase {seen} here"))];
            return Some(d);
        }
        let (next, passed) = self.skipped(waiter)?;
        let before = match passed.phase {
            Some(phase) => format!("it passed phase {phase} here, with the same parity"),
            None => "it passed here on the fresh mbarrier, with the same parity".into(),
        };
        let mut d = self.hang(
            waiter.site,
            format!("{who} waits for phase {now} of {name} (parity {parity}), and left out phase {next}"),
            "Phase n has parity n mod 2: wait for the phases one after the other. In a ring, let the parity change when the stage begins at \
             0 again, there alone, and go on from one tile to the next."
                .into(),
        );
        d.labels = match passed.site == waiter.site {
            true => vec![wait],
            false => vec![wait, self.label(passed.site, before)],
        };
        Some(d)
    }

    /// The phase that this wait leaves out: its warp has passed the one before that, and asks for its parity again.
    fn skipped(&self, waiter: &Blocked) -> Option<(u64, Passed)> {
        let barrier = barrier_of(waiter)?;
        let mine = &self.warps[waiter.warp].passed;
        let Some(passed) = mine.iter().find(|passed| passed.barrier == barrier) else {
            return self.skipped_the_first(waiter, barrier);
        };
        let next = passed.phase.map_or(0, |phase| phase + 1);
        (self.barriers[barrier as usize].phase == next + 1).then_some((next, *passed))
    }

    /// The same of the first phase of an mbarrier that the warp has not waited for so far: by the same statement it has passed the first phase of
    /// another one, and nobody has passed that of this one. Who knows that the phase is complete need not wait for it: its own arrival completed
    /// it, say, to begin with a stage that is free.
    fn skipped_the_first(&self, waiter: &Blocked, barrier: u32) -> Option<(u64, Passed)> {
        let b = &self.barriers[barrier as usize];
        if b.phase_of(self.warps[waiter.warp].views.hb.get(b.actor)).is_some() {
            return None;
        }
        let mut mine = self.warps[waiter.warp].passed.iter().rev();
        let other = mine.find(|passed| passed.site == waiter.site && passed.phase == Some(0))?;
        let seen = |passed: &Passed| (passed.barrier, passed.phase) == (barrier, Some(0));
        let unseen = !self.warps.iter().any(|warp| warp.passed.iter().any(seen));
        (unseen && self.barriers[barrier as usize].phase == 1).then_some((0, *other))
    }

    /// The wait that has let the warp pass the phase before by another statement, where nothing stands between the two but what computes registers, and
    /// which comes round once more: each round waits for two phases.
    fn waits_again(&self, waiter: &Blocked) -> Option<Passed> {
        let barrier = barrier_of(waiter)?;
        let last = *self.warps[waiter.warp].passed.last().filter(|passed| passed.barrier == barrier)?;
        let code = &self.kernel.code;
        let place = |site: u32| code.iter().position(|inst| inst.site == site);
        let (from, to) = (place(last.site)?, place(waiter.site)?);
        let between = code.get(from + 1..to)?;
        let next = last.phase.is_some_and(|seen| seen + 1 == self.barriers[barrier as usize].phase);
        let nothing = |inst: &Inst| matches!(inst.op, Op::Branch { .. }) || inst.facts.plain;
        let twice = next && between.iter().all(nothing) && self.leads_to(waiter, &[last.site]).is_some();
        twice.then_some(last)
    }

    /// The wait that this statement let pass before, where it has gone through the mbarriers of one ring in their order, and has come to the memory
    /// behind them: to that of another ring.
    fn run_past(&self, waiter: &Blocked) -> Option<Passed> {
        let barrier = barrier_of(waiter)?;
        let offset = |barrier: u32| self.barriers[barrier as usize].offset;
        let passed = self.warps[waiter.warp].passed.iter().filter(|passed| passed.site == waiter.site);
        let mut before: Vec<&Passed> = passed.collect();
        before.sort_by_key(|passed| offset(passed.barrier));
        let last = before.last()?;
        let stride = before.windows(2).map(|two| offset(two[1].barrier) - offset(two[0].barrier)).min().unwrap_or(8);
        if offset(last.barrier) + stride != offset(barrier) {
            return None;
        }
        // What arrives at the one arrives at the other, too: the ring goes on.
        let came = |n: u32, site: u32| self.barriers[n as usize].came.iter().any(|came| came.site == site);
        if self.barriers[barrier as usize].came.iter().any(|one| came(last.barrier, one.site)) {
            return None;
        }
        let rings: Vec<Option<String>> =
            before.iter().map(|passed| self.ring_by_name(offset(passed.barrier))).collect();
        let one_ring = rings.iter().all(|ring| *ring == rings[rings.len() - 1]);
        let another = match (self.ring_by_name(offset(barrier)), &rings[rings.len() - 1]) {
            (Some(here), Some(before)) => here != *before,
            (None, None) => self.told_otherwise(barrier, last.barrier) || self.is_awaited_otherwise(barrier, &before),
            _ => true,
        };
        (one_ring && another).then_some(**last)
    }

    /// What a ring of mbarriers is called. Several in one variable have no names of their own, nor has what lies in none.
    fn ring_by_name(&self, offset: u32) -> Option<String> {
        let name = self.shared_name(offset);
        let beside = [offset.saturating_sub(8), offset + 8];
        let alone = !beside.into_iter().any(|other| self.shared_name(other) == name);
        let named = name.strip_prefix('`').filter(|_| alone)?;
        named.split(['[', '`']).next().map(str::to_string)
    }

    /// Commits tell the one of two mbarriers, and threads the other.
    fn told_otherwise(&self, one: u32, other: u32) -> bool {
        let by_commit = |n: u32| {
            let b = &self.barriers[n as usize];
            let came = b.came.iter().find(|came| !came.bytes).map(|came| came.site);
            let site = came.or_else(|| self.sure_to_arrive(b.offset).first().copied());
            site.map(|site| self.is_commit(site))
        };
        by_commit(one).zip(by_commit(other)).is_some_and(|(one, other)| one != other)
    }

    /// A statement has waited for an mbarrier, and never for one of these, for which another has.
    fn is_awaited_otherwise(&self, barrier: u32, these: &[&Passed]) -> bool {
        self.warps.iter().any(|warp| {
            let by = warp.passed.iter().filter(|passed| passed.barrier == barrier);
            let these_too = |site: u32| {
                let mut its = warp.passed.iter().filter(|passed| passed.site == site);
                its.any(|passed| these.iter().any(|one| one.barrier == passed.barrier))
            };
            by.into_iter().any(|passed| these.iter().all(|one| one.site != passed.site) && !these_too(passed.site))
        })
    }

    /// Nobody who has not arrived at this CTA barrier would come to it, or to one whose number is not known, by going on.
    fn nobody_comes(&self, blocked: &[Blocked], waiter: &Blocked) -> bool {
        let State::CtaBarrier(id) = waiter.state else { return false };
        let cta = self.warps[waiter.warp].cta;
        let mut others = blocked.iter().filter(|b| self.warps[b.warp].cta == cta && b.state != waiter.state);
        !others.any(|other| self.comes_to_cta_barrier(other, id))
    }

    /// Whether somebody who goes on may come to the CTA barrier of this number, or to one whose number is not known.
    pub fn comes_to_cta_barrier(&self, from: &Blocked, id: u32) -> bool {
        let comes = |inst: &Inst| {
            let known = self.is_of_cta_barrier(inst, id);
            known.or_else(|| Some(self.barrier_it_names(from, inst)? == id)).unwrap_or(true)
        };
        self.leads(from, comes).is_some()
    }

    /// The number of the CTA barrier that an instruction ahead takes from a register, if that holds it already: nothing on the way writes it again.
    fn barrier_it_names(&self, from: &Blocked, inst: &Inst) -> Option<u32> {
        let (Op::CtaBarrier { id, .. } | Op::BarrierReduce { id, .. }) = inst.op else { return None };
        let (registers, reg) = (&self.warps[from.warp].registers, Reg::B32(id));
        let holds =
            from.mask != 0 && registers.defined(reg) & from.mask == from.mask && registers.is_uniform(id, from.mask);
        let stays = holds && self.leads(from, |ahead| ahead.defs.contains(&reg)).is_none();
        stays.then(|| registers.b32[usize::from(id)][from.mask.trailing_zeros() as usize])
    }

    /// Whether threads come by this instruction to the CTA barrier of this number: `None` where its number is not known.
    pub fn is_of_cta_barrier(&self, inst: &Inst, id: u32) -> Option<bool> {
        let (Op::CtaBarrier { id: of, .. } | Op::BarrierReduce { id: of, .. }) = inst.op else { return Some(false) };
        let constants = &self.kernel.constants32;
        constants.iter().find(|constant| constant.0 == of).map(|constant| constant.1 == id)
    }
}
