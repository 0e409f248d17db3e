//! Loops that nothing ends any more: all that could go on goes round, and finds the same each time.
//!
//! A warp that comes back to the same branch with the same registers, of those that [decide](crate::program::leaving) how the loop goes on, while nobody
//! has changed anything that it could see, goes on like that until somebody does. Where all warps that are not blocked do so, and no engine has
//! anything left to do, nobody will. Where some of them look at global memory, that is so if all clusters go round. Where some write in their
//! rounds, it is noted for a while who writes and looks where: if nobody looks where somebody writes, all goes on as it is.

use super::chip::Chip;
use super::cluster::Cluster;
use super::registers::Registers;
use super::warp::{State, Warp};
use crate::program::Kernel;
use crate::program::leaving::Leaving;
use crate::program::op::{L32, L64, Op};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Rounds without a change from which on a warp's registers are compared.
const ROUNDS: u32 = 1 << 8;
/// The same of a loop with strong loads of global memory: each of them takes a window of simulated time.
const FAR_ROUNDS: u32 = 1 << 6;

/// What decides how the loops of a kernel go on, by their branches back, as far as anybody has asked.
#[derive(Debug, Default)]
pub struct Leavings(Mutex<FxHashMap<u32, Option<Arc<Leaving>>>>);

impl Leavings {
    fn of(&self, kernel: &Kernel, branch: u32) -> Option<Arc<Leaving>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(branch).or_insert_with(|| Leaving::of(kernel, branch).map(Arc::new)).clone()
    }
}

/// The rounds of a warp since something changed last, other than words in memory.
#[derive(Debug, Default)]
pub struct Rounds {
    /// What [`Cluster::changes`] and [`Cluster::far_changes`] were then.
    since: u64,
    since_far: u64,
    count: u32,
    /// It has looked at global memory; and waited for what is there.
    far: bool,
    strong: bool,
    /// What decides in the loop in which it was seen last.
    leaving: Option<Arc<Leaving>>,
    seen: Option<Box<Seen>>,
    /// It is known to go round, by this branch, and what [`Cluster::writes`] and [`Cluster::far_writes`] were when the round began that all others are like.
    by: Option<(u32, [u64; 2])>,
}

impl Rounds {
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
    writes: [u64; 2],
    b32: Vec<L32>,
    b64: Vec<L64>,
    pred: Vec<u32>,
}

impl Seen {
    fn is_like(&self, pc: u32, mask: u32, registers: &Registers, leaving: &Leaving) -> bool {
        let b32 = || leaving.b32.iter().map(|&n| &registers.b32[usize::from(n)]);
        let b64 = || leaving.b64.iter().map(|&n| &registers.b64[usize::from(n)]);
        let pred = || leaving.pred.iter().map(|&n| registers.pred[usize::from(n)]);
        (self.pc, self.mask) == (pc, mask)
            && pred().eq(self.pred.iter().copied())
            && b32().eq(&self.b32)
            && b64().eq(&self.b64)
            && !leaving.by_time
    }
}

/// Whether a fragment goes on by itself, or by an answer of the chip.
fn goes_on(state: &State) -> bool {
    matches!(state, State::Ready | State::Chip(_))
}

/// Whether an instruction leaves everything as it is, but for registers, and finds the same again as long as nobody changes anything that is
/// counted.
fn only_looks(op: &Op) -> bool {
    match op {
        Op::Load(_)
        // What changes something says so itself.
        | Op::Atomic(_)
        | Op::Store(_)
        | Op::BarrierWait { .. }
        | Op::Hint
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
            *rounds = Rounds { since: changes, since_far: far_changes, ..Rounds::default() };
        }
        rounds.count += 1;
        if rounds.count >= if rounds.strong { FAR_ROUNDS } else { ROUNDS } {
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
        let warp = &mut self.warps[w];
        // Lanes that have parted go on in turns: what is compared is one part's round.
        let alone = warp.fragments.iter().filter(|f| goes_on(&f.state)).count() == 1;
        if !alone || warp.open_loads.iter().any(|load| !load.landed) {
            return;
        }
        let (registers, mask, rounds) = (&warp.registers, warp.fragments[f].mask, &mut warp.rounds);
        let count = rounds.count;
        if let (Some(seen), Some(leaving)) = (rounds.seen.as_deref_mut(), &rounds.leaving) {
            if seen.is_like(pc, mask, registers, leaving) {
                rounds.by = Some((pc, std::mem::replace(&mut seen.writes, now)));
                self.see_whether_all_go_round();
                return;
            }
            if count < seen.at.saturating_mul(2) {
                return;
            }
        }
        let Some(leaving) = self.leavings.of(self.kernel, pc).filter(|leaving| leaving.each_round) else { return };
        let b32 = leaving.b32.iter().map(|&n| registers.b32[usize::from(n)]).collect();
        let b64 = leaving.b64.iter().map(|&n| registers.b64[usize::from(n)]).collect();
        let pred = leaving.pred.iter().map(|&n| registers.pred[usize::from(n)]).collect();
        rounds.seen = Some(Box::new(Seen { pc, mask, at: count, writes: now, b32, b64, pred }));
        rounds.leaving = Some(leaving);
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
        let Rounds { since, since_far, far, by, .. } = warp.rounds;
        by.is_some() && since == self.changes && (!far || since_far == self.far_changes)
    }

    /// Whether all of the cluster goes round until somebody changes memory.
    pub fn goes_round_until_told(&self) -> bool {
        self.round_since == Some((self.changes, self.far_changes)) && self.awaited == 0 && self.next_event().is_none()
    }

    /// Whether nobody has written to memory since.
    pub fn is_quiet(&self) -> bool {
        self.quiet_since == Some([self.writes, self.far_writes])
    }

    /// The loop that a warp goes round in for ever: what it looks at last there, or else its branch, and whether it looks at anything.
    pub fn endless(&self, w: usize) -> Option<(u32, bool)> {
        let rounds = &self.warps[w].rounds;
        let (by, _) = rounds.by.filter(|_| self.is_going_round(&self.warps[w]))?;
        let leaving = rounds.leaving.as_deref()?;
        let code = &self.kernel.code;
        let Op::Branch { target, .. } = code.get(by as usize)?.op else { return None };
        let decides = |at: u32| !leaving.idle.contains(&at);
        let looks = |&at: &u32| match code[at as usize].op {
            Op::Load(_) | Op::Atomic(_) => decides(at),
            Op::BarrierWait { .. } => true,
            _ => false,
        };
        match (target..=by).rev().find(looks) {
            Some(at) => Some((code[at as usize].site, true)),
            None => Some((code[by as usize].site, false)),
        }
    }

    /// All that it does and looks at from now on is noted, and its rounds count anew.
    fn begin_trail(&mut self) {
        self.trail = Some(Box::default());
        self.round_since = None;
        let (since, since_far) = (self.changes, self.far_changes);
        for rounds in self.warps.iter_mut().map(|warp| &mut warp.rounds) {
            let (seen, by) = (None, None);
            *rounds = Rounds { since, since_far, count: ROUNDS, seen, by, ..std::mem::take(rounds) };
        }
    }
}

impl Chip<'_> {
    /// Whether all clusters go round in loops that find the same in global memory each time, and nobody's time limit ends a wait.
    pub fn all_go_round(&mut self, end: u64) -> bool {
        if !self.running.iter().all(|running| running.cluster.goes_round_until_told()) {
            return false;
        }
        if let Some(at) = (0..self.running.len()).find(|&at| self.cluster(at).time_limit_ends()) {
            // Who has waited goes on by itself.
            self.cluster(at).round_since = None;
            self.go_on(at, end);
            return false;
        }
        if self.running.iter().all(|running| running.cluster.is_quiet()) {
            return true;
        }
        // They write. If nobody looks there, nothing comes of it.
        if self.trails && self.nobody_meets_a_write() {
            return true;
        }
        if self.trails {
            self.end_trails();
            self.trails_from = end + self.trails_wait;
            self.trails_wait = self.trails_wait.saturating_mul(2);
        } else if end >= self.trails_from {
            self.trails = true;
            self.running.iter_mut().for_each(|running| running.cluster.begin_trail());
        }
        false
    }

    /// Something else has changed.
    pub fn end_trails(&mut self) {
        self.trails = false;
        self.running.iter_mut().for_each(|running| running.cluster.trail = None);
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
