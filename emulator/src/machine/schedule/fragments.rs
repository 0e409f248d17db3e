//! The fragments of a warp, and which of them can act first. The scheduler asks all warps of a cluster each time; few have changed since.

use crate::machine::warp::{Fragment, State};
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};

/// When fragments can act: of some that are ready, the first in order of time, then of place, and the next one's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soonest {
    /// [`u64::MAX`]: none is ready.
    pub time: u64,
    /// The place of the first.
    pub place: usize,
    pub next: u64,
}

impl Soonest {
    pub const NEVER: Soonest = Soonest { time: u64::MAX, place: 0, next: u64::MAX };
    /// To be looked up. No warp gets as far as this in time.
    const UNKNOWN: Soonest = Soonest { time: u64::MAX - 1, ..Soonest::NEVER };

    /// Takes others in, whose places are behind; their first one's is this.
    #[inline(always)]
    pub fn join(&mut self, other: &Soonest, place: usize) {
        if other.time < self.time {
            *self = Soonest { time: other.time, place, next: self.time.min(other.next) };
        } else {
            self.next = self.next.min(other.time);
        }
    }
}

/// Fragments of a warp. Whoever may change one makes it forget which can act first.
#[derive(Debug)]
pub struct Fragments {
    soonest: Soonest,
    list: SmallVec<[Fragment; 1]>,
}

impl Fragments {
    pub fn new(first: Fragment) -> Fragments {
        Fragments { soonest: Soonest::UNKNOWN, list: SmallVec::from_iter([first]) }
    }

    #[inline(always)]
    pub fn soonest(&mut self) -> &Soonest {
        if self.soonest.time == Soonest::UNKNOWN.time {
            self.look();
        }
        &self.soonest
    }

    fn look(&mut self) {
        let mut soonest = Soonest::NEVER;
        for (place, fragment) in self.list.iter().enumerate() {
            if matches!(fragment.state, State::Ready) {
                soonest.join(&Soonest { time: fragment.ready_at, place, next: u64::MAX }, place);
            }
        }
        self.soonest = soonest;
    }
}

impl Deref for Fragments {
    type Target = SmallVec<[Fragment; 1]>;

    #[inline(always)]
    fn deref(&self) -> &SmallVec<[Fragment; 1]> {
        &self.list
    }
}

impl DerefMut for Fragments {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut SmallVec<[Fragment; 1]> {
        self.soonest = Soonest::UNKNOWN;
        &mut self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::arithmetic::exact::tests::Random;

    fn fragment(ready_at: u64, state: State) -> Fragment {
        Fragment { pc: 0, mask: 1, ready_at, state, meeting: None }
    }

    /// Over several warps, after each change of one: what a look at all fragments in order says.
    #[test]
    fn the_first_is_the_one_that_a_look_at_all_finds() {
        let mut random = Random(7);
        let mut warps: Vec<Fragments> = (0..5).map(|n| Fragments::new(fragment(n, State::Ready))).collect();
        for step in 0..20_000 {
            let any = |random: &mut Random, n: usize| random.next() as usize % n;
            let warp = &mut warps[any(&mut random, 5)];
            let state = if random.next().is_multiple_of(3) { State::Meeting } else { State::Ready };
            let new = fragment(random.next() % 8, state);
            match any(&mut random, 4) {
                0 if warp.len() < 4 => warp.push(new),
                1 if warp.len() > 1 => _ = warp.pop(),
                _ => {
                    let at = any(&mut random, warp.len());
                    warp[at] = new;
                }
            }
            let mut got = Soonest::NEVER;
            for (w, warp) in warps.iter_mut().enumerate() {
                got.join(warp.soonest(), w);
            }
            let first = (got.time != u64::MAX).then(|| (got.place, warps[got.place].soonest().place));
            let ready = |(w, warp): (usize, &Fragments)| {
                let ready = warp.iter().enumerate().filter(|(_, fragment)| fragment.state == State::Ready);
                ready.map(|(f, fragment)| (fragment.ready_at, (w, f))).collect::<Vec<_>>()
            };
            let mut all: Vec<_> = warps.iter().enumerate().flat_map(ready).collect();
            all.sort_unstable();
            assert_eq!(first, all.first().map(|&(_, place)| place), "step {step}: {all:?}");
            let time = |n: usize| all.get(n).map_or(u64::MAX, |&(time, _)| time);
            assert_eq!((got.time, got.next), (time(0), time(1)), "step {step}: {all:?}");
        }
    }
}
