//! Loops that nothing ends any more: all that could go on goes round, and finds the same each time.
//!
//! A warp that comes back to the same branch with the same registers, while nobody has changed anything that it could see, goes on like that
//! until somebody does. Where all warps that are not blocked do so, and no engine has anything left to do, nobody will. Where some of them look at
//! global memory, that is so if all clusters go round.

use super::chip::Chip;
use super::cluster::Cluster;
use super::warp::{State, Warp};
use crate::program::op::{L32, L64, Op};

/// Rounds without a change from which on a warp's registers are compared.
const ROUNDS: u32 = 1 << 11;
/// The same of a loop with strong loads of global memory: each of them takes a window of simulated time.
const FAR_ROUNDS: u32 = 1 << 6;

/// The rounds of a warp since something changed last.
#[derive(Debug, Default)]
pub struct Rounds {
    /// What [`Cluster::changes`] and [`Cluster::far_changes`] were then.
    since: u64,
    since_far: u64,
    count: u32,
    /// It has looked at global memory; and waited for what is there.
    far: bool,
    strong: bool,
    seen: Option<Box<Seen>>,
    /// It is known to go round, by this branch.
    by: Option<u32>,
}

impl Rounds {
    /// The warp looks at global memory.
    #[inline]
    pub fn look_far(&mut self, strong: bool) {
        self.far = true;
        self.strong |= strong;
    }

    /// It asks for what other clusters may bring about.
    pub fn asks(&self) -> bool {
        self.strong
    }
}

/// A warp at a branch back.
#[derive(Debug)]
struct Seen {
    pc: u32,
    b32: Vec<L32>,
    b64: Vec<L64>,
    pred: Vec<u32>,
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

    /// A warp has asked for what is never the same: the time.
    #[inline]
    pub fn count_clock(&mut self, op: &Op) {
        self.changes += u64::from(matches!(op, Op::Special { which, .. } if which.is_time()));
    }

    /// All lanes of a fragment branch back, from here.
    #[inline]
    pub fn goes_round(&mut self, w: usize, pc: u32) {
        let (changes, far_changes) = (self.changes, self.far_changes);
        let rounds = &mut self.warps[w].rounds;
        if rounds.since != changes || rounds.far && rounds.since_far != far_changes {
            *rounds = Rounds { since: changes, since_far: far_changes, ..Rounds::default() };
        }
        rounds.count += 1;
        if rounds.count >= if rounds.strong { FAR_ROUNDS } else { ROUNDS } {
            self.compare_rounds(w, pc);
        }
    }

    #[cold]
    fn compare_rounds(&mut self, w: usize, pc: u32) {
        if self.warps[w].rounds.by.is_some() {
            self.see_whether_all_go_round();
            return;
        }
        let warp = &mut self.warps[w];
        // Lanes that have parted go on in turns: what is compared is one part's round.
        let alone = warp.fragments.iter().filter(|f| goes_on(&f.state)).count() == 1;
        if !alone || warp.open_loads.iter().any(|load| !load.landed) {
            return;
        }
        let registers = &warp.registers;
        let same = |seen: &Seen| {
            seen.pc == pc && seen.pred == registers.pred && seen.b32 == registers.b32 && seen.b64 == registers.b64
        };
        if warp.rounds.seen.as_deref().is_some_and(same) {
            warp.rounds.by = Some(pc);
            self.see_whether_all_go_round();
        } else if warp.rounds.count.is_power_of_two() {
            let (b32, b64, pred) = (registers.b32.clone(), registers.b64.clone(), registers.pred.clone());
            warp.rounds.seen = Some(Box::new(Seen { pc, b32, b64, pred }));
        }
    }

    /// Of a cluster in which all go round: nobody else can end that, or another cluster, by what it writes to global memory.
    fn see_whether_all_go_round(&mut self) {
        if self.all_go_round() {
            match self.warps.iter().any(|warp| warp.rounds.far && warp.live != 0) {
                true => self.round_since = Some((self.changes, self.far_changes)),
                false => self.nobody_acts = true,
            }
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

    /// Whether all of the cluster goes round until another cluster changes global memory.
    pub fn goes_round_until_told(&self) -> bool {
        self.round_since == Some((self.changes, self.far_changes)) && self.awaited == 0 && self.next_event().is_none()
    }

    /// The loop that a warp goes round in for ever: what it looks at last there, or else its branch, and whether it looks at anything.
    pub fn endless(&self, w: usize) -> Option<(u32, bool)> {
        let by = self.warps[w].rounds.by.filter(|_| self.is_going_round(&self.warps[w]))?;
        let code = &self.kernel.code;
        let Op::Branch { target, .. } = code.get(by as usize)?.op else { return None };
        let looks = |op: &Op| matches!(op, Op::Load(_) | Op::Atomic(_) | Op::BarrierWait { .. });
        let round = code.get(target as usize..=by as usize)?;
        match round.iter().rfind(|inst| looks(&inst.op)) {
            Some(inst) => Some((inst.site, true)),
            None => Some((code[by as usize].site, false)),
        }
    }
}

impl Chip<'_> {
    /// Whether all clusters go round in loops that find the same in global memory each time, and nobody's time limit ends a wait.
    pub fn all_go_round(&mut self, end: u64) -> bool {
        if !self.running.iter().all(|running| running.cluster.goes_round_until_told()) {
            return false;
        }
        match (0..self.running.len()).find(|&at| self.cluster(at).time_limit_ends()) {
            Some(at) => {
                // Who has waited goes on by itself.
                self.cluster(at).round_since = None;
                self.go_on(at, end);
                false
            }
            None => true,
        }
    }
}
