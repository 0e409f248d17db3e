//! Where warps that go round in loops write, and where they look for what decides whether they leave: noted once all of them go round.

use crate::machine::cluster::Cluster;
use crate::machine::memory::resolve::{Access, Target};
use crate::machine::state::At;
use rustc_hash::FxHashSet;

/// Places beyond which nothing is said.
const MOST: usize = 1 << 17;
/// Bytes of a place.
const PLACE: u64 = 4;

/// When trails are noted.
#[derive(Debug)]
pub struct Trails {
    pub on: bool,
    /// Not before this time, and so long after it was in vain.
    from: u64,
    wait: u64,
}

impl Default for Trails {
    fn default() -> Trails {
        Trails { on: false, from: 0, wait: 1 << 15 }
    }
}

impl Trails {
    pub fn may_begin(&self, now: u64) -> bool {
        now >= self.from
    }

    pub fn put_off(&mut self, now: u64) {
        self.from = now.saturating_add(self.wait);
        self.wait = self.wait.saturating_mul(2);
    }
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spot {
    Global(usize, u64),
    Shared(usize, u64),
    /// Of a warp's threads.
    Local(usize, u64),
}

/// What a cluster did in memory.
#[derive(Debug, Default)]
pub struct Trail {
    reads: FxHashSet<Spot>,
    writes: FxHashSet<Spot>,
}

fn is_far(spot: &&Spot) -> bool {
    matches!(spot, Spot::Global(..))
}

impl Trail {
    /// Somebody has written where somebody of the cluster looks; or there are too many places to know.
    pub fn meets_itself(&self) -> bool {
        self.reads.len().max(self.writes.len()) >= MOST || self.reads.iter().any(|spot| self.writes.contains(spot))
    }

    pub fn far_writes(&self) -> impl Iterator<Item = Spot> {
        self.writes.iter().filter(is_far).copied()
    }

    pub fn far_reads(&self) -> impl Iterator<Item = Spot> {
        self.reads.iter().filter(is_far).copied()
    }

    fn note(&mut self, w: usize, target: Target, bytes: u64, writes: bool) {
        let places = if writes { &mut self.writes } else { &mut self.reads };
        let from = target.offset();
        for place in from / PLACE..(from + bytes).div_ceil(PLACE) {
            let spot = match target {
                Target::Global { buffer, .. } => Spot::Global(buffer, place),
                Target::Shared(cta, _) => Spot::Shared(cta, place),
                Target::Local(_) => Spot::Local(w, place),
                Target::Param(_) => continue,
            };
            if places.len() < MOST {
                places.insert(spot);
            }
        }
    }
}

impl Cluster<'_> {
    /// Lanes access memory at these places.
    #[inline]
    pub fn note_trail(&mut self, at: At, targets: &[(usize, Target)], bytes: u64, what: Access) {
        if self.trail.is_some() {
            self.note_places(at, targets, bytes, what);
        }
    }

    #[cold]
    fn note_places(&mut self, at: At, targets: &[(usize, Target)], bytes: u64, what: Access) {
        let Some(trail) = &mut self.trail else { return };
        let warp = &self.warps[at.w];
        let pc = warp.fragments[at.f].pc;
        let decides = !warp.rounds.passes_over(pc);
        // An atomic operation whose result decides is known to leave things as they are until it does not.
        let writes = match what {
            Access::Load if !decides => return,
            Access::Load => false,
            Access::Store => true,
            Access::Update => !decides,
        };
        targets.iter().for_each(|&(_, target)| trail.note(at.w, target, bytes, writes));
    }

    /// An atomic operation has changed memory.
    pub fn note_update(&mut self, w: usize, targets: impl Iterator<Item = Target>, bytes: u64) {
        if let Some(trail) = &mut self.trail {
            targets.for_each(|target| trail.note(w, target, bytes, true));
        }
    }
}
