//! Loops that nothing ends any more: all that could go on goes round, and finds the same each time.
//!
//! A warp that comes back to the same branch with the same registers, while nobody has changed anything that it could see, goes on like that
//! until somebody does. Where all warps that are not blocked do so, and no engine has anything left to do, nobody will.

use super::cluster::Cluster;
use super::warp::State;
use crate::program::op::{L32, L64, Op, Space};

/// Rounds without a change from which on a warp's registers are compared.
const ROUNDS: u32 = 1 << 11;

/// The rounds of a warp since something changed last.
#[derive(Debug, Default)]
pub struct Rounds {
    /// What [`Cluster::changes`] was then.
    since: u64,
    count: u32,
    seen: Option<Box<Seen>>,
    /// It is known to go round, by this branch.
    by: Option<u32>,
}

/// A warp at a branch back.
#[derive(Debug)]
struct Seen {
    pc: u32,
    b32: Vec<L32>,
    b64: Vec<L64>,
    pred: Vec<u32>,
}

/// Whether an instruction leaves everything as it is, but for registers, and finds the same again as long as nobody changes anything that is
/// counted.
fn only_looks(op: &Op) -> bool {
    let near = |space: Space| matches!(space, Space::Shared | Space::SharedCluster | Space::Param | Space::Local);
    match op {
        Op::Load(load) => near(load.space),
        // What changes something says so itself.
        Op::Atomic(atomic) => near(atomic.space),
        Op::BarrierWait { .. }
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
        let changes = self.changes;
        let rounds = &mut self.warps[w].rounds;
        if rounds.since != changes {
            *rounds = Rounds { since: changes, ..Rounds::default() };
        }
        rounds.count += 1;
        if rounds.count >= ROUNDS {
            self.compare_rounds(w, pc);
        }
    }

    #[cold]
    fn compare_rounds(&mut self, w: usize, pc: u32) {
        if self.warps[w].rounds.by.is_some() {
            self.nobody_acts |= self.all_go_round();
            return;
        }
        let warp = &mut self.warps[w];
        // Lanes that have parted go on in turns: what is compared is one part's round.
        let alone = warp.fragments.iter().filter(|f| f.state == State::Ready).count() == 1;
        if !alone || warp.open_loads.iter().any(|load| !load.landed) {
            return;
        }
        let registers = &warp.registers;
        let same = |seen: &Seen| {
            seen.pc == pc && seen.pred == registers.pred && seen.b32 == registers.b32 && seen.b64 == registers.b64
        };
        if warp.rounds.seen.as_deref().is_some_and(same) {
            warp.rounds.by = Some(pc);
            self.nobody_acts |= self.all_go_round();
        } else if warp.rounds.count.is_power_of_two() {
            let (b32, b64, pred) = (registers.b32.clone(), registers.b64.clone(), registers.pred.clone());
            warp.rounds.seen = Some(Box::new(Seen { pc, b32, b64, pred }));
        }
    }

    fn all_go_round(&self) -> bool {
        let ready = |warp: &super::warp::Warp| warp.fragments.iter().any(|f| f.state == State::Ready);
        let round = |warp: &super::warp::Warp| warp.rounds.since == self.changes && warp.rounds.by.is_some();
        self.warps.iter().all(|warp| !ready(warp) || round(warp)) && self.next_event().is_none()
    }

    /// The loop that a warp goes round in for ever: what it looks at last there, or else its branch, and whether it looks at anything.
    pub fn endless(&self, w: usize) -> Option<(u32, bool)> {
        let by = self.warps[w].rounds.by.filter(|_| self.warps[w].rounds.since == self.changes)?;
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
