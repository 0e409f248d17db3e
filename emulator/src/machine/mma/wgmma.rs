//! `wgmma`: what a warp does of its warpgroup's MMAs, and when it knows them to be complete.
//!
//! The four warps of a warpgroup execute the same MMAs, each when it comes to them. An MMA begins when the last of the four has:
//! its operands in shared memory must be ready to the eyes of every warp, for each reads all of B. The accumulator stays with the
//! tensor core until somebody may look at it.

use super::matrix_descriptor::Elements;
use super::wgmma_work::{Coming, Step};
use crate::machine::arithmetic::operand::Operand;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::names::counted;
use crate::machine::state::{ActorKind, At, Span};
use crate::machine::tensor_memory::SharedDescriptor;
use crate::machine::warp::registers::lanes;
use crate::machine::warp::{Queue, State};
use crate::order::Clock;
use crate::program::op::{Inst, Op, Reg};
use crate::program::wgmma::{ROWS, WARP_ROWS, WgmmaA, WgmmaOp, a_element};
use crate::protocol::What;
use crate::report::EventKind;
use std::collections::VecDeque;

/// Warps of a warpgroup.
pub const WARPS: usize = 4;

/// The MMAs of a warpgroup. They are numbered from 1, the same in all its warps.
#[derive(Debug, Default)]
pub struct Warpgroup {
    /// Epochs are the numbers of MMAs that have begun.
    pub queue: Queue,
    /// MMAs that not all four warps have come to, oldest first.
    pub coming: VecDeque<Coming>,
    /// Those up to this one are complete; when the last of them was.
    pub done: u32,
    pub done_at: u64,
    /// What came before each MMA that has begun and that not all warps have waited for; the first has this number.
    pub before: VecDeque<Clock>,
    pub first_before: u32,
    /// Complete, and not computed yet: all add to one accumulator.
    pub waiting: Vec<Step>,
}

/// A warp's side of it.
#[derive(Debug, Default)]
pub struct Own {
    /// MMAs that it has executed, and the place of the last one in the code.
    pub count: u32,
    last: u32,
    /// Those up to this one it has waited for.
    pub awaited: u32,
    /// The same for the values of registers alone: they were touched too early, which has been said.
    pub landed: u32,
    /// The last MMA of each group that it has not waited for, oldest first.
    groups: VecDeque<u32>,
    /// The last MMA that is in a group.
    committed: u32,
    /// Executions of `wgmma.fence`, and how many MMAs came before the last of them.
    fences: u32,
    before_fence: u32,
    /// By register, the last MMA that works on it, and its place in the code.
    used: Vec<(u32, u32)>,
    /// By register, how many fences there had been when something else last touched it, plus one; and the statement.
    touched: Vec<(u32, u32)>,
}

impl Own {
    fn fit(&mut self, registers: u16) {
        self.used.resize(registers.into(), (0, 0));
        self.touched.resize(registers.into(), (0, 0));
    }

    /// What touched registers before does not matter any more.
    pub fn fence(&mut self) {
        self.fences += 1;
        self.before_fence = self.count;
    }

    /// Whether an MMA is in a group.
    pub fn is_committed(&self, number: u32) -> bool {
        number <= self.committed
    }
}

/// What the lanes of a warp say about an MMA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inputs {
    pub a: Option<u64>,
    pub b: u64,
    pub accumulate: bool,
}

impl<'a> Cluster<'a> {
    /// The MMA at a place in the code.
    pub fn wgmma_at(&self, pc: u32) -> Option<&'a WgmmaOp> {
        match &self.kernel.code.get(pc as usize)?.op {
            Op::Wgmma(op) => Some(op),
            _ => None,
        }
    }

    /// The first warp of a warp's warpgroup.
    pub fn warpgroup_of(&self, w: usize) -> usize {
        w - self.warps[w].index as usize % WARPS
    }

    /// A warp executes `wgmma.mma_async`.
    pub fn wgmma(&mut self, at: At, op: &'a WgmmaOp) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        self.whole_warp(w, mask, site)?;
        let first = self.whole_warpgroup(w, site)?;
        let inputs = self.wgmma_inputs(at, op)?;
        let pc = self.warps[w].fragments[f].pc;
        if self.options.judges() {
            self.check_operands(w, op, site);
        }
        if self.options.tensor_load_factor != 1.0 {
            self.factor_fails.get_or_insert((site, "its accumulator lies in registers"));
        }
        let registers = self.kernel.registers.0;
        let own = &mut self.warps[w].wgmma;
        own.fit(registers);
        own.count += 1;
        own.last = pc;
        let number = own.count;
        op.fragments().for_each(|reg| own.used[usize::from(reg)] = (number, pc));
        self.record.add(w, mask, site, What::Wgmma { number });
        let part = self.a_part(w, op);
        let (time, views) = (self.warps[w].fragments[f].ready_at, self.warps[w].views.clone());
        let (before, a) = (Clock::default(), Operand::default());
        self.comes(w, first, Coming { pc, site, inputs, there: 0, time, views, before, a }, part)
    }

    /// All four warps must be there, with all their lanes.
    fn whole_warpgroup(&self, w: usize, site: u32) -> Result<usize, Stop> {
        let first = self.warpgroup_of(w);
        let (cta, number) = (self.warps[w].cta, self.warps[w].wgmma.count + 1);
        // One that has been here already may have ended since.
        let is_there = |warp: &crate::machine::warp::Warp| {
            warp.cta == cta && (warp.live == u32::MAX || warp.wgmma.count >= number)
        };
        let missing = (first..first + WARPS).find(|&n| !self.warps.get(n).is_some_and(is_there));
        let Some(missing) = missing else { return Ok(first) };
        let base = self.warps[first].index;
        let why = match self.warps.get(missing).filter(|warp| warp.cta == cta) {
            None => format!("the CTA ends with warp {}", base as usize + missing - first - 1),
            Some(warp) if warp.live == 0 => format!("warp {} has ended", warp.index),
            Some(warp) => format!("warp {} has {} only", warp.index, counted(warp.live.count_ones(), "thread")),
        };
        Err(Some(Box::new(self.problem(
            "wgmma-warpgroup",
            site,
            format!("{} executes a wgmma, but its warpgroup is not complete: {why}", self.warp_name(w)),
            crate::machine::explain::wgmma::WARPGROUP_RULE,
            format!(
                "Let all of warps {base} to {} execute it, and launch CTAs of whole warpgroups of 128 threads.",
                base + 3
            ),
        ))))
    }

    /// Descriptors and scale-d, which all lanes give alike.
    fn wgmma_inputs(&mut self, at: At, op: &WgmmaOp) -> Result<Inputs, Stop> {
        let At { w, mask, site, .. } = at;
        let registers = &self.warps[w].registers;
        if let Some(reg) = op.deciding().into_iter().find(|&reg| mask & !registers.defined(reg) != 0) {
            return Err(self.undefined_operand(w, site, reg, "an operand"));
        }
        let inputs = |lane: usize| Inputs {
            a: if let WgmmaA::Shared(a) = op.a { Some(registers.b64[usize::from(a)][lane]) } else { None },
            b: registers.b64[usize::from(op.b)][lane],
            accumulate: (registers.pred[usize::from(op.accumulate)] >> lane & 1 == 1) != op.accumulate_negated,
        };
        let all = inputs(0);
        let Some(other) = lanes(mask).find(|&lane| inputs(lane) != all) else { return Ok(all) };
        let what = crate::machine::explain::wgmma::difference(&all, &inputs(other));
        Err(Some(Box::new(self.problem(
            "wgmma-warpgroup",
            site,
            format!("lanes 0 and {other} of {} give a wgmma {what}", self.warp_name(w)),
            crate::machine::explain::wgmma::WARPGROUP_RULE,
            "Compute descriptors and scale-d from values that all threads of the warpgroup share.".into(),
        ))))
    }

    /// A warp's sixteen rows of A, out of its registers.
    fn a_part(&self, w: usize, op: &WgmmaOp) -> Option<(Vec<[u16; 16]>, Vec<bool>)> {
        let WgmmaA::Registers(list) = op.a else { return None };
        let registers = &self.warps[w].registers;
        let (mut bits, mut defined) = (vec![[0; 16]; WARP_ROWS as usize], vec![true; WARP_ROWS as usize]);
        for (r, &reg) in list.iter().enumerate() {
            let known = registers.defined(Reg::B32(reg));
            for (t, value) in registers.b32[usize::from(reg)].iter().enumerate() {
                let (row, k) = a_element(t, r);
                (bits[row][k], bits[row][k + 1]) = (*value as u16, (*value >> 16) as u16);
                defined[row] &= known >> t & 1 == 1;
            }
        }
        Some((bits, defined))
    }

    /// A warp comes to its next MMA. If it is the last of the four, the MMA begins.
    fn comes(
        &mut self,
        w: usize,
        first: usize,
        new: Coming,
        part: Option<(Vec<[u16; 16]>, Vec<bool>)>,
    ) -> Result<(), Stop> {
        if !self.warpgroups.contains_key(&first) {
            let actor = self.actor(ActorKind::Wgmmas { warp: first as u32 });
            self.warpgroups
                .insert(first, Warpgroup { queue: Queue::of(actor), first_before: 1, ..Warpgroup::default() });
        }
        let Some(group) = self.warpgroups.get_mut(&first) else { return Ok(()) };
        let (views, time) = (new.views.clone(), new.time);
        let place = (self.warps[w].wgmma.count - group.queue.epoch - 1) as usize;
        if place == group.coming.len() {
            let mut a = Operand::default();
            a.bits.resize(if part.is_some() { ROWS as usize } else { 0 }, [0; 16]);
            group.coming.push_back(Coming { a, ..new });
        } else if let Some(wrong) = self.differs(w, first, place, &new) {
            return Err(wrong);
        }
        let Some(group) = self.warpgroups.get_mut(&first) else { return Ok(()) };
        let coming = &mut group.coming[place];
        coming.views.keep_common(&views);
        coming.before.join(&views.before_now());
        coming.time = coming.time.max(time);
        coming.there |= 1 << (w - first);
        if let Some((bits, defined)) = part {
            let rows = (w - first) * WARP_ROWS as usize;
            coming.a.bits[rows..rows + bits.len()].copy_from_slice(&bits);
            if defined.contains(&false) {
                coming.a.defined.resize(ROWS as usize, true);
                coming.a.defined[rows..rows + defined.len()].copy_from_slice(&defined);
            }
        }
        if coming.there.count_ones() as usize == WARPS
            && let Some(coming) = group.coming.pop_front()
        {
            self.begin_wgmma(first, coming)?;
        }
        Ok(())
    }

    /// `wgmma.fence`, `wgmma.commit_group` and `wgmma.wait_group`.
    pub fn wgmma_order(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        self.whole_warp(w, mask, site)?;
        let (actor, time) = self.when(w, f);
        let cta = self.warps[w].cta;
        let own = &mut self.warps[w].wgmma;
        match *op {
            Op::WgmmaFence => own.fence(),
            Op::WgmmaCommit => {
                let covers = own.count - own.committed;
                own.committed = own.count;
                own.groups.push_back(own.count);
                // What the warp does from here on is not before the MMAs.
                self.warps[w].advance();
                self.trace(cta, actor, Span::of_warp(w, time, time), site, || EventKind::WgmmaCommit { covers });
            }
            Op::WgmmaWait { pending } => {
                let old = own.groups.len().saturating_sub(pending as usize);
                let Some(&last) = old.checked_sub(1).and_then(|n| own.groups.get(n)) else { return Ok(()) };
                let first = self.warpgroup_of(w);
                if self.warpgroups.get(&first).is_none_or(|group| group.done >= last) {
                    self.pass_wgmma(w, old, time, time, site);
                } else {
                    let wait = Some((old as u32, time));
                    self.warps[w].fragments[f].state = State::Wgmma { number: last, wait };
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A warp has waited for this many of its oldest groups.
    fn pass_wgmma(&mut self, w: usize, old: usize, since: u64, until: u64, site: u32) {
        let first = self.warpgroup_of(w);
        let own = &mut self.warps[w].wgmma;
        let Some(last) = own.groups.drain(..old).next_back() else { return };
        self.record.add(w, u32::MAX, site, What::WgmmaWait { number: last });
        let covers = last.saturating_sub(own.awaited);
        own.awaited = own.awaited.max(last);
        // Nobody may look at an accumulator that the next MMA works on: it stays where it is.
        let next = Some(own.last).filter(|_| own.count > last);
        let next = next.and_then(|pc| self.wgmma_at(pc));
        if let Some(group) = self.warpgroups.get(&first) {
            group.queue.raise(&mut self.warps[w].views.hb, last);
            // All four warps had come to it.
            if let Some(before) = last.checked_sub(group.first_before).and_then(|n| group.before.get(n as usize)) {
                self.warps[w].views.order.join(before);
            }
            let waiting = group.waiting.first().and_then(|step| self.wgmma_at(step.pc));
            if !next.zip(waiting).is_some_and(|(next, waiting)| next.same_accumulator(waiting)) {
                self.settle_wgmma(first);
            }
        }
        let everyone = self.warps[first..first + WARPS].iter().map(|warp| warp.wgmma.awaited).min().unwrap_or(0);
        if let Some(group) = self.warpgroups.get_mut(&first) {
            while group.first_before <= everyone && group.before.pop_front().is_some() {
                group.first_before += 1;
            }
        }
        let (cta, index) = (self.warps[w].cta, self.warps[w].index);
        let span = Span::of_warp(w, since, until);
        self.trace(cta, crate::report::Actor::Warp(index), span, site, || EventKind::WgmmaWait { covers });
    }

    /// Lets the warps of a warpgroup go that wait for what is complete.
    pub fn release_wgmma(&mut self, first: usize) {
        let Some(group) = self.warpgroups.get(&first) else { return };
        let (done, now) = (group.done, self.now);
        for w in first..first + WARPS {
            for f in 0..self.warps[w].fragments.len() {
                let State::Wgmma { number, wait } = self.warps[w].fragments[f].state else { continue };
                if number > done {
                    continue;
                }
                let site = self.site(w, f);
                let fragment = &mut self.warps[w].fragments[f];
                fragment.state = State::Ready;
                fragment.ready_at = fragment.ready_at.max(now);
                match wait {
                    Some((old, since)) => {
                        fragment.pc += 1;
                        self.pass_wgmma(w, old as usize, since, now, site);
                    }
                    None => self.settle_wgmma(first),
                }
                self.lower_horizon(now);
            }
        }
    }

    /// An instruction touches registers that MMAs work on. Tells whether it has to wait for their values: they were touched too
    /// early, which is said here.
    pub fn touches_fragments(&mut self, w: usize, f: usize, inst: &Inst) -> bool {
        if !self.options.computes() {
            return false;
        }
        let registers = self.kernel.registers.0;
        let own = &mut self.warps[w].wgmma;
        own.fit(registers);
        let numbers = || {
            inst.uses
                .iter()
                .chain(&inst.defs)
                .filter_map(|reg| if let Reg::B32(r) = reg { Some(usize::from(*r)) } else { None })
        };
        let known = own.awaited.max(own.landed);
        let early = numbers().map(|r| (own.used[r], r)).filter(|((number, _), _)| *number > known).max();
        if let Some(((number, pc), r)) = early {
            own.landed = number;
            let written = inst.defs.contains(&Reg::B32(r as u16));
            self.touched_early(w, number, pc, r as u16, written, inst.site);
            let first = self.warpgroup_of(w);
            if self.warpgroups.get(&first).is_some_and(|group| group.done < number) {
                self.warps[w].fragments[f].state = State::Wgmma { number, wait: None };
                return true;
            }
            self.settle_wgmma(first);
        }
        let own = &mut self.warps[w].wgmma;
        numbers().for_each(|r| own.touched[r] = (own.fences + 1, inst.site));
        false
    }

    /// The registers of an MMA that is about to begin: nothing else has touched them since the last `wgmma.fence`, and no other MMA
    /// works on them.
    fn check_operands(&mut self, w: usize, op: &'a WgmmaOp, site: u32) {
        let registers = self.kernel.registers.0;
        self.warps[w].wgmma.fit(registers);
        let own = &self.warps[w].wgmma;
        if own.fences == 0 {
            return self.missing_wgmma_fence(w, site, None);
        }
        let known = own.awaited.max(own.landed);
        // Of an accumulator it is no more than noted, which must not hide what is wrong with A.
        let mut noted = None;
        for (at, reg) in op.fragments().enumerate() {
            let is_d = at < op.d.len();
            if !is_d && self.kernel.constants32.iter().any(|(constant, _)| *constant == reg) {
                continue;
            }
            let (number, pc) = own.used[usize::from(reg)];
            let before = if number == 0 { None } else { self.wgmma_at(pc) };
            // Who used it last, as what.
            let fits = before.is_none_or(|before| {
                let was_d = before.d.contains(&reg);
                if is_d { was_d && before.same_accumulator(op) } else { !was_d }
            });
            if !fits && number > known {
                self.warps[w].wgmma.landed = number;
                return self.touched_early(w, number, pc, reg, is_d, site);
            }
            let touched = own.touched[usize::from(reg)];
            let other = if touched.0 == own.fences + 1 {
                touched.1
            } else if !fits && number > own.before_fence {
                self.kernel.code[pc as usize].site
            } else {
                continue;
            };
            if !is_d {
                return self.missing_wgmma_fence(w, site, Some((other, false)));
            }
            noted.get_or_insert((other, true));
        }
        if noted.is_some() {
            self.missing_wgmma_fence(w, site, noted);
        }
    }

    /// A warp's threads end: nothing may work on their registers any more.
    pub fn check_wgmma_at_exit(&mut self, w: usize) {
        let own = &self.warps[w].wgmma;
        if own.count > own.awaited.max(own.landed) {
            self.wgmma_outlives(w, own.last);
        }
    }

    /// A descriptor of an operand.
    pub fn wgmma_descriptor(
        &self,
        bits: u64,
        elements: Elements,
        which: &str,
        site: u32,
    ) -> Result<SharedDescriptor, Stop> {
        SharedDescriptor::decode_hopper(bits, elements).map_err(|(found, allowed)| {
            let rule = "The matrix descriptor of wgmma follows PTX ISA, Matrix Descriptor Format.";
            let mut problem = self.problem("matrix-descriptor", site, found, rule, format!("Allowed: {allowed}."));
            problem.labels[0].text = format!("the descriptor of {which}");
            Some(Box::new(problem))
        })
    }
}
