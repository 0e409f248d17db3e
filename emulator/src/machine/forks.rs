//! Which ways warps have gone at guards: for who asks why a statement was never executed.

use rustc_hash::FxHashMap;

/// Warps of one word of a set.
const WORD: usize = u64::BITS as usize;

/// By the place in the code and a word of warps: those of which lanes have not executed it, and those of which lanes have.
#[derive(Debug, Default)]
pub struct Forks(FxHashMap<(u32, u32), [u64; 2]>);

impl Forks {
    /// Lanes of a warp come to a guarded instruction. `left`, `executed`: some do not execute it, some do.
    pub fn note(&mut self, warp: usize, pc: u32, left: bool, executed: bool) {
        let sides = self.0.entry((pc, (warp / WORD) as u32)).or_default();
        for (side, some) in sides.iter_mut().zip([left, executed]) {
            *side |= u64::from(some) << (warp % WORD);
        }
    }

    /// Whether a warp's lanes have left an instruction out there, or have executed it: `[left, executed]`.
    pub fn of(&self, warp: usize, pc: usize) -> [bool; 2] {
        let sides = self.0.get(&(pc as u32, (warp / WORD) as u32)).copied().unwrap_or_default();
        sides.map(|side| side >> (warp % WORD) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_of_different_words_are_told_apart() {
        let mut forks = Forks::default();
        forks.note(3, 7, true, false);
        forks.note(67, 7, false, true);
        assert_eq!([3, 67, 131].map(|warp| forks.of(warp, 7)), [[true, false], [false, true], [false, false]]);
    }
}
