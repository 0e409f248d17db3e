//! Which ways warps have gone at guards: for who asks why a statement was never executed.

/// Warps of one word of a set.
const WORD: usize = u64::BITS as usize;

/// For each instruction, and each word of warps: those of which lanes have left it out, and those of which lanes have executed it.
#[derive(Debug, Default)]
pub struct Forks {
    words: usize,
    sides: Vec<[u64; 2]>,
}

impl Forks {
    /// Of so many instructions and warps.
    pub fn new(code: usize, warps: usize) -> Forks {
        let words = warps.div_ceil(WORD).max(1);
        Forks { words, sides: vec![[0; 2]; code * words] }
    }

    /// Lanes of a warp come to a guarded instruction. `left`, `executed`: some do not execute it, some do.
    #[inline]
    pub fn note(&mut self, warp: usize, pc: u32, left: bool, executed: bool) {
        let at = pc as usize * self.words + warp / WORD;
        if let Some(sides) = self.sides.get_mut(at) {
            sides[0] |= u64::from(left) << (warp % WORD);
            sides[1] |= u64::from(executed) << (warp % WORD);
        }
    }

    /// Whether a warp's lanes have left an instruction out there, or have executed it: `[left, executed]`.
    pub fn of(&self, warp: usize, pc: usize) -> [bool; 2] {
        let sides = self.sides.get(pc * self.words + warp / WORD).copied().unwrap_or_default();
        sides.map(|side| side >> (warp % WORD) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_of_different_words_are_told_apart() {
        let mut forks = Forks::new(8, 132);
        forks.note(3, 7, true, false);
        forks.note(67, 7, false, true);
        assert_eq!([3, 67, 131].map(|warp| forks.of(warp, 7)), [[true, false], [false, true], [false, false]]);
    }
}
