//! Loops that nothing ends any more: all that could go on goes round, and finds the same each time.
//!
//! A warp that comes back to the same branch with the same registers, of those that [decide](crate::program::flow::leaving) how the loop goes on, while nobody
//! has changed anything that it could see, goes on like that until somebody does. Where all warps that are not blocked do so, and no engine has
//! anything left to do, nobody will. Where some of them look at global memory, that is so if all clusters go round. Where some write in their
//! rounds, it is noted for a while who writes and looks where: if nobody looks where somebody writes, all goes on as it is.

use super::forecast::{Forecast, Left};
use crate::machine::chip::Chip;
use crate::machine::cluster::Cluster;
use crate::machine::warp::registers::Registers;
use crate::machine::warp::{State, Warp};
use crate::program::Kernel;
use crate::program::flow::leaving::{Begins, Leaving};
use crate::program::op::{L32, L64, Op, Reg};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Rounds without a change from which on a warp's registers are compared.
const ROUNDS: u32 = 1 << 4;
/// Instructions that a round has at least: something that changes what decides, and a branch.
const LEAST_OF_A_ROUND: u64 = 2;
/// So many times as long as one round others may take.
const LONGER: u64 = 8;
/// After so many at most they are compared with later ones: the warp may have come to another loop.
const MOST_ROUNDS: u32 = 1 << 12;

/// So many rounds of a pause, one behind the other, from which on it is looked at as a loop by itself.
const PATIENCE: u32 = 1 << 8;

/// What happened in a window that is more than asking again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activity {
    /// Something has changed, other than words in memory.
    pub acted: bool,
    /// Warps have written to memory.
    pub wrote: bool,
    /// A warp has found something new there.
    pub found_new: bool,
}

impl Activity {
    pub fn join(&mut self, other: Activity) {
        self.acted |= other.acted;
        self.wrote |= other.wrote;
        self.found_new |= other.found_new;
    }

    pub fn any(self) -> bool {
        self.acted || self.wrote || self.found_new
    }
}

/// By a branch back, and whether the loops around it are left out.
type Known = FxHashMap<(u32, bool), Option<Arc<Leaving>>>;

/// What decides how the loops of a kernel go on, by each of their branches back, as far as anybody has asked. It is the same for all of a loop.
#[derive(Debug, Default)]
pub struct Leavings(Mutex<Known>);

impl Leavings {
    /// `alone`: without the loops around it.
    fn of(&self, kernel: &Kernel, branch: u32, alone: bool) -> Option<Arc<Leaving>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leaving) = known.get(&(branch, alone)) {
            return leaving.clone();
        }
        let leaving = Leaving::of(kernel, branch, alone).map(Arc::new);
        let all = leaving.iter().filter(|_| !alone);
        known.extend(all.flat_map(|all| all.back().map(|branch| ((branch, false), Some(all.clone())))));
        known.insert((branch, alone), leaving.clone());
        leaving
    }
}

/// The rounds of a warp since something changed last, other than words in memory.
#[derive(Debug)]
pub struct Rounds {
    /// What [`Cluster::changes`] and [`Cluster::far_changes`] were then.
    since: u64,
    since_far: u64,
    count: u32,
    /// From this one on they are compared again.
    next: u32,
    /// It has looked at global memory; and waited for what is there.
    far: bool,
    strong: bool,
    /// The loop in which it was seen last, from its first instruction to its last, and what decides there.
    first: u32,
    last: u32,
    leaving: Option<Arc<Leaving>>,
    seen: Option<Box<Seen>>,
    /// Rounds of a pause, one behind the other, and how many are taken for one.
    paused: u32,
    patience: u32,
    /// It is known to go round, by this branch, and what [`Cluster::writes`] and [`Cluster::far_writes`] were when the round began that all others are like.
    by: Option<(u32, [u64; 2])>,
    /// What ends it lies beyond all that the run may execute; or else it may end itself before.
    outlasts: bool,
    leaves: bool,
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds::since(0, 0)
    }
}

impl Rounds {
    fn since(since: u64, since_far: u64) -> Rounds {
        Rounds {
            since,
            since_far,
            count: 0,
            next: ROUNDS,
            far: false,
            strong: false,
            first: 0,
            last: u32::MAX,
            leaving: None,
            seen: None,
            paused: 0,
            patience: PATIENCE,
            by: None,
            outlasts: false,
            leaves: false,
        }
    }

    /// It may end itself, by what it counts or by the clock.
    pub fn may_leave(&self) -> bool {
        self.leaves
    }

    /// What decides how it goes on, and of that the registers where its round begins.
    pub fn leaving(&self) -> Option<(&Leaving, &Begins)> {
        let leaving = self.leaving.as_deref()?;
        Some((leaving, leaving.begins(self.seen.as_ref()?.pc)?))
    }

    /// The warp looks at global memory.
    #[inline]
    pub fn look_far(&mut self, strong: bool) {
        self.far = true;
        self.strong |= strong;
    }

    /// Whether the result of an instruction is known to decide nothing about its loop.
    pub fn passes_over(&self, pc: u32) -> bool {
        self.leaving.as_deref().is_some_and(|leaving| leaving.idle.contains(&pc))
    }

    /// It asks for what other clusters may bring about.
    pub fn asks(&self) -> bool {
        self.strong
    }
}

/// A warp at a branch back: what decides how it goes on.
#[derive(Debug)]
struct Seen {
    pc: u32,
    mask: u32,
    /// In this round.
    at: u32,
    /// The branch back of the widest loop that it has gone round in since.
    widest: u32,
    writes: [u64; 2],
    /// The time by then.
    time: u64,
    b32: Vec<L32>,
    b64: Vec<L64>,
    pred: Vec<u32>,
}

impl Seen {
    fn is_like(&self, pc: u32, mask: u32, registers: &Registers, leaving: &Leaving) -> bool {
        let Some(begins) = leaving.begins(self.pc) else { return false };
        let low = |reg: Reg| leaving.low.get(&reg).copied().unwrap_or(u64::MAX);
        let same32 = |(&n, known): (&u16, &L32)| {
            let bits = low(Reg::B32(n)) as u32;
            registers.b32[usize::from(n)].iter().zip(known).all(|(now, then)| (now ^ then) & bits == 0)
        };
        let same64 = |(&n, known): (&u16, &L64)| {
            let bits = low(Reg::B64(n));
            registers.b64[usize::from(n)].iter().zip(known).all(|(now, then)| (now ^ then) & bits == 0)
        };
        let pred = || begins.pred.iter().map(|&n| registers.pred[usize::from(n)]);
        (self.pc, self.mask) == (pc, mask)
            && pred().eq(self.pred.iter().copied())
            && begins.b32.iter().zip(&self.b32).all(same32)
            && begins.b64.iter().zip(&self.b64).all(same64)
            && !leaving.by_time
    }
}

/// Whether a fragment goes on by itself, or by an answer of the chip.
fn goes_on(state: &State) -> bool {
    matches!(state, State::Ready | State::Chip(_))
}

/// Whether an instruction leaves everything as it is, but for registers, and finds the same again as long as nobody changes anything that is
/// counted.
pub fn only_looks(op: &Op) -> bool {
    match op {
        Op::Load(_)
        // What changes something says so itself.
        | Op::Atomic(_)
        | Op::Store(_)
        | Op::BarrierWait { .. }
        | Op::Hint
        | Op::GridWait
        | Op::Sleep
        | Op::Fence { .. }
        | Op::ProxyFence { .. }
        | Op::TensorFence { .. }
        | Op::WarpSync { .. }
        | Op::MatrixLoad { .. } => true,
        op => op.exchanges(),
    }
}

impl Cluster<'_> {
    /// A warp has executed something that is neither arithmetic nor a branch.
    #[inline]
    pub fn count_change(&mut self, op: &Op) {
        self.changes += u64::from(!only_looks(op));
    }

    /// All lanes of a fragment branch back, from here.
    #[inline]
    pub fn goes_round(&mut self, w: usize, f: usize, pc: u32) {
        let (changes, far_changes) = (self.changes, self.far_changes);
        let rounds = &mut self.warps[w].rounds;
        if rounds.since != changes || rounds.far && rounds.since_far != far_changes {
            *rounds = Rounds::since(changes, far_changes);
        } else if !(rounds.first..=rounds.last).contains(&pc) {
            // Another loop. That it ends by itself is thought of it, too, until more is known.
            let Rounds { far, strong, leaves, patience, .. } = *rounds;
            *rounds = Rounds { far, strong, leaves, patience, ..Rounds::since(changes, rounds.since_far) };
        }
        rounds.count += 1;
        if rounds.count >= rounds.next {
            self.compare_rounds(w, f, pc);
        }
    }

    #[cold]
    fn compare_rounds(&mut self, w: usize, f: usize, pc: u32) {
        let now = [self.writes, self.far_writes];
        if self.warps[w].rounds.by.is_some_and(|(_, writes)| writes == now) {
            self.see_whether_all_go_round();
            return;
        }
        if self.warps[w].fragments.len() > 1 && self.look(pc, |_| true).is_some() && self.let_waiting_go_on(w, f) {
            return;
        }
        let warp = &mut self.warps[w];
        // Lanes that have parted go on in turns: what is compared is one part's round.
        let alone = warp.fragments.iter().filter(|f| goes_on(&f.state)).count() == 1;
        if !alone || warp.open_loads.iter().any(|load| !load.landed) {
            return;
        }
        let (registers, mask, rounds) = (&warp.registers, warp.fragments[f].mask, &mut warp.rounds);
        let time = warp.fragments[f].ready_at;
        let pauses = rounds.leaving.as_deref().is_some_and(|leaving| leaving.pauses.contains(&pc));
        rounds.paused = if pauses { rounds.paused + 1 } else { 0 };
        if pauses && rounds.paused >= rounds.patience {
            // It may never end. If it does, the next one may take longer.
            rounds.patience = rounds.patience.saturating_mul(2);
            (rounds.leaving, rounds.seen) = (self.leavings.of(self.kernel, pc, true), None);
            (rounds.by, rounds.outlasts) = (None, false);
        } else if pauses {
            // No round of its own.
            rounds.count -= 1;
            return;
        }
        let count = rounds.count;
        if let (Some(seen), Some(leaving)) = (rounds.seen.as_deref_mut(), &rounds.leaving) {
            let wide = |branch: u32| match self.kernel.code[branch as usize].op {
                Op::Branch { target, .. } => branch - target.min(branch),
                _ => 0,
            };
            if wide(pc) > wide(seen.widest) {
                seen.widest = pc;
            }
            if seen.is_like(pc, mask, registers, leaving) {
                rounds.by = Some((seen.widest, std::mem::replace(&mut seen.writes, now)));
                self.see_whether_all_go_round();
                return;
            }
            if count == seen.at + 1 && (seen.pc, seen.mask) == (pc, mask) && self.outlasts(w, pc, time) {
                self.see_whether_all_go_round();
                return;
            }
            let rounds = &mut self.warps[w].rounds;
            let at = rounds.seen.as_ref().map_or(0, |seen| seen.at);
            // A round that is to be told apart may be made of several others.
            let then = at + at.min(MOST_ROUNDS);
            if count < then {
                rounds.next = if count < at + at.min(MOST_ROUNDS) / 4 { count + 1 } else { then };
                return;
            }
        }
        let known = self.warps[w].rounds.leaving.clone().filter(|known| known.begins(pc).is_some());
        let Some(leaving) = known.or_else(|| self.leavings.of(self.kernel, pc, false)) else { return };
        if leaving.pauses.contains(&pc) {
            self.warps[w].rounds.leaving = Some(leaving);
            return;
        }
        let Some(begins) = leaving.begins(pc) else { return };
        let Warp { registers, rounds, .. } = &mut self.warps[w];
        let b32 = begins.b32.iter().map(|&n| registers.b32[usize::from(n)]).collect();
        let b64 = begins.b64.iter().map(|&n| registers.b64[usize::from(n)]).collect();
        let pred = begins.pred.iter().map(|&n| registers.pred[usize::from(n)]).collect();
        rounds.seen = Some(Box::new(Seen { pc, mask, at: count, widest: pc, writes: now, time, b32, b64, pred }));
        if let [first, .., last] = leaving.members[..] {
            (rounds.first, rounds.last) = (first, last);
        }
        rounds.leaving = Some(leaving);
    }

    /// A round ends with other values than it began with: whether the loop outlasts the run all the same.
    fn outlasts(&mut self, w: usize, pc: u32, time: u64) -> bool {
        let Warp { registers, rounds, .. } = &self.warps[w];
        let (Some(seen), Some(leaving)) = (rounds.seen.as_deref(), rounds.leaving.clone()) else { return false };
        let Some(begins) = leaving.begins(pc) else { return false };
        let mut steps: FxHashMap<Reg, [i128; 32]> = FxHashMap::default();
        for (&n, before) in begins.b32.iter().zip(&seen.b32) {
            let by = |lane: usize| i128::from(registers.b32[usize::from(n)][lane].wrapping_sub(before[lane]) as i32);
            steps.insert(Reg::B32(n), std::array::from_fn(by));
        }
        for (&n, before) in begins.b64.iter().zip(&seen.b64) {
            let by = |lane: usize| i128::from(registers.b64[usize::from(n)][lane].wrapping_sub(before[lane]) as i64);
            steps.insert(Reg::B64(n), std::array::from_fn(by));
        }
        // No round has fewer, whatever others execute beside it; and this one may have been shorter than those to come.
        let rounds_left = self.budget.saturating_sub(self.instructions) / LEAST_OF_A_ROUND + 1;
        let cycles = rounds_left.saturating_mul(time.saturating_sub(seen.time).max(1)).saturating_mul(LONGER);
        let left = Left { rounds: rounds_left.into(), cycles };
        let forecast = self.forecast(w, seen.mask, pc, &leaving, &steps, left);
        let writes = [self.writes, self.far_writes];
        let rounds = &mut self.warps[w].rounds;
        rounds.outlasts = forecast == Forecast::Outlasts;
        // Where that is not known, what it counts may end it.
        rounds.leaves = forecast != Forecast::Outlasts;
        if let (true, Some(seen)) = (rounds.outlasts, &mut rounds.seen) {
            rounds.by = Some((pc, std::mem::replace(&mut seen.writes, writes)));
        }
        rounds.outlasts
    }

    /// The warp whose loop ends only after all that the run may execute, if what it looks at in memory stays as it is. Of a wait for an mbarrier more is
    /// known: what should arrive there.
    pub fn outlasting(&self) -> Option<usize> {
        let is_wait = |at: usize| matches!(self.kernel.code[at].op, Op::BarrierWait { .. });
        let waits = |w: usize| self.endless_at(w).is_some_and(|(at, _)| is_wait(at));
        (0..self.warps.len())
            .find(|&w| self.warps[w].rounds.outlasts && self.is_going_round(&self.warps[w]) && !waits(w))
    }

    /// Of a cluster in which all go round: nobody else can end that, or another cluster, by what it writes to global memory.
    fn see_whether_all_go_round(&mut self) {
        if !self.all_go_round() {
            return;
        }
        let now = [self.writes, self.far_writes];
        let live = || self.warps.iter().filter(|warp| warp.live != 0);
        let quiet = live().all(|warp| warp.rounds.by.is_none_or(|(_, writes)| writes == now));
        if quiet && !live().any(|warp| warp.rounds.far) {
            self.nobody_acts = true;
        } else {
            self.round_since = Some((self.changes, self.far_changes));
            self.quiet_since = quiet.then_some(now);
        }
    }

    fn all_go_round(&self) -> bool {
        let ready = |warp: &Warp| warp.fragments.iter().any(|f| goes_on(&f.state));
        self.warps.iter().all(|warp| !ready(warp) || self.is_going_round(warp)) && self.next_event().is_none()
    }

    fn is_going_round(&self, warp: &Warp) -> bool {
        let Rounds { since, since_far, far, by, ref leaving, .. } = warp.rounds;
        // It may have left the loop, and have come to no other branch back so far.
        let inside = |pc: u32| leaving.as_deref().is_some_and(|leaving| leaving.members.binary_search(&pc).is_ok());
        let goes_round = by.is_some() && since == self.changes && (!far || since_far == self.far_changes);
        goes_round && warp.fragments.iter().any(|f| goes_on(&f.state) && inside(f.pc))
    }

    /// Whether all of the cluster goes round until somebody changes memory.
    pub fn goes_round_until_told(&self) -> bool {
        self.round_since == Some((self.changes, self.far_changes)) && self.awaited == 0 && self.next_event().is_none()
    }

    /// Whether nobody has written to memory since.
    pub fn is_quiet(&self) -> bool {
        self.quiet_since == Some([self.writes, self.far_writes])
    }

    /// The branch back of the loop that a warp goes round in for ever.
    pub fn endless_branch(&self, w: usize) -> Option<u32> {
        self.warps[w].rounds.by.filter(|_| self.is_going_round(&self.warps[w])).map(|(branch, _)| branch)
    }

    /// The loop that a warp goes round in for ever: what it looks at last there, or else its branch, and whether it looks at anything.
    pub fn endless(&self, w: usize) -> Option<(u32, bool)> {
        self.endless_at(w).map(|(at, looks)| (self.kernel.code[at].site, looks))
    }

    /// The same, by the place in the code.
    fn endless_at(&self, w: usize) -> Option<(usize, bool)> {
        let rounds = &self.warps[w].rounds;
        let by = self.endless_branch(w)?;
        let leaving = rounds.leaving.as_deref()?;
        let found = self.look(by, |at| !leaving.idle.contains(&at));
        Some((found.unwrap_or(by) as usize, found.is_some()))
    }

    /// The last instruction of the loop of a branch back that looks at memory, of those that decide, or at an mbarrier.
    fn look(&self, branch: u32, decides: impl Fn(u32) -> bool) -> Option<u32> {
        let code = &self.kernel.code;
        let Op::Branch { target, .. } = code.get(branch as usize)?.op else { return None };
        let looks = |&at: &u32| match code[at as usize].op {
            Op::Load(_) | Op::Atomic(_) => decides(at),
            Op::BarrierWait { .. } => true,
            _ => false,
        };
        (target..=branch).rev().find(looks)
    }

    /// All that it does and looks at from now on is noted, and its rounds count anew.
    fn begin_trail(&mut self) {
        self.trail = Some(Box::default());
        self.round_since = None;
        let (since, since_far) = (self.changes, self.far_changes);
        for rounds in self.warps.iter_mut().map(|warp| &mut warp.rounds) {
            let Rounds { far, strong, leaving, patience, .. } = std::mem::take(rounds);
            *rounds = Rounds { count: ROUNDS, far, strong, leaving, patience, ..Rounds::since(since, since_far) };
        }
    }
}

impl Chip<'_> {
    /// Some loop may end by what it counts, or by the clock.
    pub fn some_may_leave(&self) -> bool {
        let leaves = |warp: &Warp| warp.live != 0 && warp.rounds.may_leave();
        self.running.iter().any(|running| running.cluster.warps.iter().any(leaves))
    }

    /// Whether all clusters go round in loops that find the same in global memory each time, and nobody's time limit ends a wait.
    pub fn all_go_round(&mut self, end: u64) -> bool {
        if !self.running.iter().all(|running| running.cluster.goes_round_until_told()) {
            return false;
        }
        if let Some(at) = (0..self.running.len()).find(|&at| self.cluster(at).goes_on_by_itself()) {
            // Who has waited goes on by itself.
            self.cluster(at).round_since = None;
            self.go_on(at, end);
            return false;
        }
        if self.running.iter().all(|running| running.cluster.is_quiet()) {
            return true;
        }
        // They write. If nobody looks there, nothing comes of it.
        if self.trails.on {
            let in_vain = self.nobody_meets_a_write();
            self.end_trails();
            self.trails.put_off(end);
            return in_vain;
        }
        if self.trails.may_begin(end) {
            self.trails.on = true;
            self.running.iter_mut().for_each(|running| running.cluster.begin_trail());
        }
        false
    }

    fn end_trails(&mut self) {
        self.trails.on = false;
        self.running.iter_mut().for_each(|running| running.cluster.trail = None);
    }

    /// A window has ended: all clusters learn what happened in it.
    pub fn tell(&mut self, happened: Activity) {
        if happened.acted && self.trails.on {
            self.end_trails();
        }
        for running in &mut self.running {
            running.cluster.far_changes += u64::from(happened.acted);
            running.cluster.far_writes += u64::from(happened.wrote);
        }
    }

    fn nobody_meets_a_write(&self) -> bool {
        let trails = || self.running.iter().map(|running| running.cluster.trail.as_deref());
        let mut written = FxHashSet::default();
        for trail in trails() {
            let Some(trail) = trail.filter(|trail| !trail.meets_itself()) else { return false };
            written.extend(trail.far_writes());
        }
        trails().flatten().all(|trail| trail.far_reads().all(|spot| !written.contains(&spot)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hundreds of polls, one behind the other, in a loop around them: each has a branch back, and all are one loop.
    #[test]
    fn what_decides_is_computed_once_for_a_loop() {
        let poll = |n: usize| {
            format!("I{n}:\nld.acquire.gpu.global.u32 %r1, [%a];\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra I{n};\n")
        };
        let polls: String = (0..300).map(poll).collect();
        let text = format!(
            ".version 8.7\n.target sm_100a\n.address_size 64\n.entry k(.param .u64 a) {{\n.reg .b32 %r<3>;\n.reg .b64 %a;\n.reg .pred %p0;\n\
             ld.param.u64 %a, [a];\nmov.u32 %r2, 0;\nL:\n{polls}add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p0, %r2, 4;\n@%p0 bra L;\nret;\n}}\n"
        );
        let program = crate::load(&text).expect("it loads");
        let kernel = &program.kernels[0];
        let back = |(pc, inst): (usize, &crate::program::op::Inst)| match inst.op {
            Op::Branch { target, .. } => (target as usize <= pc).then_some(pc as u32),
            _ => None,
        };
        let branches: Vec<u32> = kernel.code.iter().enumerate().filter_map(back).collect();
        let leavings = Leavings::default();
        let all: Vec<_> =
            branches.iter().map(|&branch| leavings.of(kernel, branch, false).expect("it is a loop")).collect();
        assert_eq!(all.len(), 301);
        assert!(all.iter().all(|leaving| Arc::ptr_eq(leaving, &all[0])));
        assert!(branches.iter().all(|&branch| all[0].begins(branch).is_some()));
    }
}
