//! Whose `cp.async` are waited for. A thread waits for its own copies, commits its own ones to groups, and tells an mbarrier of its own ones (PTX ISA,
//! cp.async.wait_group, cp.async.mbarrier.arrive): where a guard, or a branch, keeps lanes away, theirs are left.

use smallvec::SmallVec;

/// The copies of one epoch of a warp.
#[derive(Clone, Copy, Debug)]
struct Copies {
    epoch: u32,
    /// The lanes that have issued them, and those of these that have not committed them.
    lanes: u32,
    open: u32,
}

/// Who is told of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The warp itself, by a wait.
    Warp,
    Barrier(u32),
}

/// Lanes of which somebody is told, up to an epoch, while others' copies are left.
#[derive(Clone, Copy, Debug)]
struct Part {
    to: To,
    lanes: u32,
    epoch: u32,
}

/// Copies of a warp of which nobody is told yet.
#[derive(Debug, Default)]
pub struct Untold {
    copies: SmallVec<[Copies; 4]>,
    parts: SmallVec<[Part; 2]>,
}

/// So many epochs are remembered, and so many that are told of parts.
const MOST: usize = 64;
const MOST_PARTS: usize = 16;

impl Untold {
    pub fn issued(&mut self, epoch: u32, lanes: u32) {
        if let Some(last) = self.copies.last_mut().filter(|last| last.epoch == epoch) {
            last.lanes |= lanes;
            last.open |= lanes;
            return;
        }
        if self.copies.len() == MOST {
            self.copies.remove(0);
        }
        self.copies.push(Copies { epoch, lanes, open: lanes });
    }

    pub fn committed(&mut self, lanes: u32) {
        self.copies.iter_mut().for_each(|copies| copies.open &= !lanes);
    }

    /// Lanes whose copies up to this epoch are not told if these lanes tell, or have no group although groups are asked for.
    fn left(&self, lanes: u32, epoch: u32, groups: bool) -> u32 {
        let up_to = self.copies.iter().filter(|copies| copies.epoch <= epoch);
        up_to.fold(0, |left, copies| left | copies.lanes & !lanes | if groups { copies.open } else { 0 })
    }

    /// Lanes tell of their copies up to an epoch: the last one of which all lanes have told by now.
    pub fn told(&mut self, to: To, lanes: u32, epoch: u32, groups: bool) -> Option<u32> {
        let mut told = Part { to, lanes, epoch };
        if self.left(lanes, epoch, groups) != 0 {
            // Parts of a warp that has diverged do it one after the other.
            let before = self.parts.iter().position(|part| part.to == to).map(|n| self.parts.remove(n));
            if let Some(before) = before.filter(|before| before.lanes & lanes == 0) {
                told = Part { to, lanes: lanes | before.lanes, epoch: epoch.min(before.epoch) };
            }
            if self.left(told.lanes, told.epoch, groups) != 0 {
                if self.parts.len() == MOST_PARTS {
                    self.parts.remove(0);
                }
                self.parts.push(told);
                return None;
            }
        }
        self.copies.retain(|copies| copies.epoch > told.epoch);
        Some(told.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_waits_for_its_own_copies() {
        let mut untold = Untold::default();
        untold.issued(1, u32::MAX);
        untold.committed(u32::MAX);
        assert_eq!(untold.told(To::Warp, 1, 1, true), None, "those of 31 lanes are left");
        assert_eq!(untold.told(To::Warp, u32::MAX - 1, 1, true), Some(1), "the rest of the warp, apart");
        untold.issued(2, 1);
        untold.committed(1);
        assert_eq!(untold.told(To::Warp, 1, 2, true), Some(2), "only lane 0 has copied again");
        untold.issued(3, u32::MAX);
        untold.committed(1);
        assert_eq!(untold.told(To::Warp, u32::MAX, 3, true), None, "31 lanes have committed no group");
        assert_eq!(untold.told(To::Barrier(7), u32::MAX, 3, false), Some(3), "an arrival needs none");
    }
}
