//! The scheduler of a cluster.
//!
//! Whoever is earliest on the simulated clock acts: an engine's event, or a warp. A warp runs on until it blocks, or until
//! its next instruction could be seen by somebody who is earlier. A cluster runs window by window: what others can see of it
//! waits in its outbox for the end of the window.

pub mod diverge;
pub mod fragments;
pub mod issue;
pub mod part_waits;

use crate::machine::chip::outbox::Item;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::loops::endless::SELDOM;
use crate::machine::state::Pending;
use crate::machine::warp::{State, Warp};
use fragments::Soonest;
use std::cmp::Reverse;

/// Cycles after which a warp that has asked in vain and not asked again is taken to do something else.
const PATIENCE: u64 = 1 << 16;

/// Waits that did not succeed, without anything else happening, before the scheduler asks whether anything ever will.
const MANY_POLLS: u64 = 100_000;

/// How a window ended for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It goes on at this cycle.
    Until(u64),
    /// It goes on when an answer of the chip is there.
    Waits,
    /// All its threads have ended.
    Done,
    /// It cannot go on; its findings say why.
    Stopped,
}

impl Cluster<'_> {
    /// Runs to the end of a window, this cycle included.
    pub fn run(&mut self, until: u64) -> Progress {
        self.until = until;
        let stopped = loop {
            // The warp that can act first, and the time of the next one.
            let mut soonest = Soonest::NEVER;
            for (w, warp) in self.warps.iter_mut().enumerate() {
                soonest.join(warp.fragments.soonest(), w);
            }
            let Soonest { time, place: w, next } = soonest;
            let best = (time != u64::MAX).then_some((time, w));
            let event = self.next_event();
            let earliest = time.min(event.unwrap_or(u64::MAX));
            if until < earliest && earliest < u64::MAX {
                return Progress::Until(earliest);
            }
            let outcome = match (best, event) {
                (None, None) if self.warps.iter().all(|w| w.live == 0) && self.awaited == 0 => {
                    self.activity.acted = true;
                    if self.options.judges() {
                        self.record.seal();
                    }
                    self.outbox.push(self.end, Item::End);
                    return Progress::Done;
                }
                (None, None) if self.waits_for_chip() => return Progress::Waits,
                (None, None) if self.goes_on_by_itself() => Ok(()),
                (None, None) => {
                    self.explain_hang();
                    break None;
                }
                (Some((time, _)), Some(at)) if at <= time => self.event(),
                (None, Some(_)) => self.event(),
                (Some((_, w)), at) => {
                    let f = self.warps[w].fragments.soonest().place;
                    self.horizon = next.min(at.unwrap_or(u64::MAX)).min(until);
                    self.slice(w, f)
                }
            };
            if let Err(stop) = outcome {
                break stop;
            }
            if self.instructions >= self.look_at {
                self.look_at = self.instructions + SELDOM;
                if let Err(stop) = self.look_for_endless_loops() {
                    break stop;
                }
            }
            if std::mem::take(&mut self.nobody_acts) && !self.waits_for_chip() && !self.goes_on_by_itself() {
                self.explain_hang();
                break None;
            }
            if self.polls > MANY_POLLS && self.all_poll() && !self.waits_for_chip() {
                self.explain_hang();
                break None;
            }
        };
        if let Some(diagnostic) = stopped {
            self.findings.add(*diagnostic);
        }
        Progress::Stopped
    }

    /// Whether an answer of the chip lets it go on, sooner or later.
    fn waits_for_chip(&self) -> bool {
        let asked = |state: &State| {
            matches!(state, State::Chip(_)) || self.shares_sm() && matches!(state, State::TensorAlloc { .. })
        };
        self.awaited > 0 || self.warps.iter().any(|w| w.fragments.iter().any(|f| asked(&f.state)))
    }

    /// Whether a warp goes on with something other than asking again.
    pub fn computes(&self) -> bool {
        let ready = |warp: &Warp| warp.fragments.iter().any(|f| f.state == State::Ready);
        let asks = |warp: &Warp| warp.asks.is_some_and(|(_, at)| self.until.saturating_sub(at) < PATIENCE);
        self.warps.iter().any(|warp| !asks(warp) && ready(warp))
    }

    /// Something happened that is more than asking again for what does not happen.
    pub fn acted(&mut self) {
        self.polls = 0;
        self.changes += 1;
        self.activity.acted = true;
    }

    /// A warp has written to memory.
    pub fn wrote(&mut self) {
        self.polls = 0;
        self.writes += 1;
        self.activity.wrote = true;
    }

    /// A warp has found something new in memory.
    pub fn found_new(&mut self) {
        self.polls = 0;
        self.activity.found_new = true;
    }

    /// Whether all that could go on only ask again and again for what does not happen.
    fn all_poll(&self) -> bool {
        let ready = |warp: &&Warp| warp.fragments.iter().any(|f| f.state == State::Ready);
        self.warps.iter().filter(ready).all(|warp| warp.polls > 1000)
    }

    /// Executes instructions that compute registers from registers, up to one that has to wait, or may have something to say.
    fn compute_ahead(&mut self, w: usize, f: usize) {
        let warp = &mut self.warps[w];
        if !warp.origins.is_empty() {
            return;
        }
        let loading = warp.open_loads.iter().any(|load| !load.landed);
        let cta = &mut self.ctas[warp.cta];
        let (slots, slowed) = (&mut cta.issue[warp.index as usize % 4], cta.slowed.issue);
        let fragment = &mut warp.fragments[f];
        let (lanes, first) = (fragment.mask, fragment.pc as usize);
        let mut time = fragment.ready_at;
        // Those behind each other up to where it meets others, if that is ahead.
        let code = self.kernel.code.get(first..).unwrap_or_default();
        let meeting = fragment.meeting.map(|n| warp.meetings[n as usize].pc as usize);
        let most = meeting.and_then(|pc| pc.checked_sub(first)).unwrap_or(code.len());
        let most = most.min(self.budget.saturating_sub(self.instructions) as usize);
        let registers = &mut warp.registers;
        let mut done = 0;
        for inst in code.iter().take(most) {
            if !inst.facts.alone || time > self.until || warp.on_the_way.concerns(inst, time) {
                break;
            }
            let Some(mask) = registers.guarded(inst, lanes) else { break };
            if registers.undefined(inst, mask) != 0 || loading && registers.waits_for_load(inst) {
                break;
            }
            if mask != 0 {
                registers.compute(mask, &inst.op);
                registers.all_defined(inst, mask);
            }
            time = slots.take(time, slowed) + self.costs.issue;
            done += 1;
        }
        (fragment.pc, fragment.ready_at) = ((first + done) as u32, time);
        cta.busy.issue += done as u64;
        self.instructions += done as u64;
    }

    /// Runs one fragment until it blocks, splits, or has to let others act first.
    fn slice(&mut self, w: usize, f: usize) -> Result<(), Stop> {
        loop {
            self.compute_ahead(w, f);
            let fragment = &self.warps[w].fragments[f];
            if let Some(meeting) = fragment.meeting
                && self.warps[w].meetings[meeting as usize].pc == fragment.pc
            {
                self.warps[w].fragments[f].state = State::Meeting;
                self.meet(w);
                self.wait_no_longer(w);
                return Ok(());
            }
            let Some(inst) = self.kernel.code.get(fragment.pc as usize) else {
                return Err(Some(Box::new(self.problem(
                    "ptx-semantics",
                    self.kernel.code.len() as u32 - 1,
                    "a branch leaves the kernel".into(),
                    "Branches lead to labels of the same kernel.",
                    "Correct the label.".into(),
                ))));
            };
            let limit = if inst.facts.visible { self.horizon } else { self.until };
            if fragment.ready_at > limit {
                return Ok(());
            }
            self.instructions += 1;
            if self.instructions > self.budget {
                return Err(Some(Box::new(self.out_of_budget(inst.site))));
            }
            let before = self.warps[w].fragments.len();
            self.step(w, f)?;
            if self.polls > MANY_POLLS || self.nobody_acts {
                return Ok(());
            }
            let warp = &self.warps[w];
            match warp.fragments.get(f) {
                Some(fragment) if warp.fragments.len() == before && matches!(fragment.state, State::Ready) => {}
                _ => return Ok(()),
            }
        }
    }

    pub fn push_event(&mut self, time: u64, event: Pending) {
        self.sequence += 1;
        self.horizon = self.horizon.min(time);
        self.events.push(Reverse((time, self.sequence, event)));
    }

    /// Somebody else can act at this time: instructions that others see must not run ahead of it.
    pub fn lower_horizon(&mut self, time: u64) {
        self.horizon = self.horizon.min(time);
    }

    /// There is something now, at this time, that others wait for: those that stand so, by the rank of their CTA, ask for it again.
    pub fn try_again(&mut self, time: u64, waits: impl Fn(usize, &State) -> bool) {
        for warp in &mut self.warps {
            for fragment in warp.fragments.iter_mut().filter(|fragment| waits(warp.cta, &fragment.state)) {
                fragment.state = State::Ready;
                fragment.ready_at = fragment.ready_at.max(time);
            }
        }
        self.acted();
        self.lower_horizon(time);
    }

    fn event(&mut self) -> Result<(), Stop> {
        let Some(Reverse((time, _, event))) = self.events.pop() else { return Ok(()) };
        self.acted();
        self.now = time;
        self.end = self.end.max(time);
        match event {
            Pending::MmaRead(n) => self.mma_read(n),
            Pending::MmaDone(n) => self.mma_done(n, time),
            Pending::TensorCopyRead(n) => self.tensor_copy_read(n),
            Pending::TensorCopyDone(n) => self.tensor_copy_done(n, time),
            Pending::WgmmaRead(n) => self.wgmma_read(n),
            Pending::WgmmaDone(n) => self.wgmma_done(n, time),
            Pending::CommitArrive(n) => return self.commit_arrive(n, time),
            Pending::CopyRead(n) => self.copy_read(n),
            Pending::CopyDone(n) => return self.copy_done(n, time),
            Pending::Response(n) => self.respond(n, time),
            Pending::CopiesArrive(n) => return self.copies_arrive(n, time),
        }
        Ok(())
    }
}
