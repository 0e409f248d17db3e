//! Waits of lanes that have parted: a compiler may put a wait on both sides of a branch that only one lane takes, as XLA's Mosaic GPU does with the
//! lane that issues MMAs and the 31 others. What completes the next phase may then depend on the wait of one side alone. Both sides count as
//! one wait of the warp (assumption `lanes-in-step`): the other lanes are behind by some instructions, the next phase by a round of engines.

use super::record::What;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A wait of some lanes of a warp, which have not met the others since.
#[derive(Debug)]
struct Parted {
    step: u32,
    lanes: u32,
    barrier: u32,
    parity: u8,
    /// Lanes of the warp that have done anything since.
    moved: u32,
}

/// What becomes of a wait that is one with an earlier one of other lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// It belongs to that step: its lanes have done nothing since.
    To(u32),
    /// The lanes of that step, these, have done nothing since, and wait here.
    From(u32, u32),
}

/// Those of each warp.
#[derive(Debug, Default)]
pub(super) struct PartedWaits(FxHashMap<u16, SmallVec<[Parted; 4]>>);

impl PartedWaits {
    /// A step of these lanes, which gets the number `next`. If it waits for the same phase of the same mbarrier as other lanes of the warp: what
    /// becomes of the two.
    pub fn step(&mut self, warp: u16, lanes: u32, what: What, next: u32) -> Option<Joined> {
        if lanes == u32::MAX {
            self.0.remove(&warp);
            return None;
        }
        let What::Wait { barrier, parity } = what else {
            if let Some(list) = self.0.get_mut(&warp) {
                list.iter_mut().for_each(|wait| wait.moved |= lanes);
            }
            return None;
        };
        let list = self.0.entry(warp).or_default();
        let apart =
            |wait: &Parted| wait.lanes & lanes == 0 && (wait.moved & lanes == 0 || wait.moved & wait.lanes == 0);
        let same = list.iter().position(|wait| (wait.barrier, wait.parity) == (barrier, parity) && apart(wait));
        let earlier = same.map(|n| list.swap_remove(n));
        // Who waits for another phase of the mbarrier is ahead of who has not waited for this one, and the one after has the same parity again.
        list.retain(|wait| wait.barrier != barrier || wait.parity == parity && wait.lanes & lanes == 0);
        list.iter_mut().for_each(|wait| wait.moved |= lanes);
        let new = Parted { step: next, lanes, barrier, parity, moved: 0 };
        let (wait, joined) = match earlier {
            None => (new, None),
            Some(wait) if wait.moved & lanes == 0 => {
                (Parted { lanes: wait.lanes | lanes, ..wait }, Some(Joined::To(wait.step)))
            }
            Some(wait) => {
                list.iter_mut().for_each(|other| other.moved |= wait.lanes);
                (Parted { lanes: wait.lanes | lanes, ..new }, Some(Joined::From(wait.step, wait.lanes)))
            }
        };
        list.push(wait);
        joined
    }

    /// All lanes of a warp have met.
    pub fn met(&mut self, warp: u16) {
        self.0.remove(&warp);
    }
}
