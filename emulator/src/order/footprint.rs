//! The granules that an access covers when they do not lie side by side.

use super::rows::Area;
use super::shadow::{BLOCK, GRANULE};

/// The same granules of each of some blocks side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub block: u64,
    pub blocks: u64,
    pub granules: u64,
}

/// Granules of a memory, by block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Each block once, lowest first, with a mask that is not empty.
    runs: Vec<Run>,
}

impl Footprint {
    /// The granules at these addresses, in any order and as often as one likes.
    pub fn new(granules: impl IntoIterator<Item = u64>) -> Footprint {
        let mut all: Vec<u64> = granules.into_iter().map(|at| at / GRANULE).collect();
        all.sort_unstable();
        let mut runs: Vec<Run> = Vec::new();
        for same in all.chunk_by(|a, b| a / 64 == b / 64) {
            let (block, granules) = (same[0] / 64, same.iter().fold(0, |mask, granule| mask | 1 << (granule % 64)));
            match runs.last_mut() {
                Some(last) if (last.block + last.blocks, last.granules) == (block, granules) => last.blocks += 1,
                _ => runs.push(Run { block, blocks: 1, granules }),
            }
        }
        Footprint { runs }
    }

    /// The blocks and the granules of each, when the whole begins this many blocks later.
    pub fn from(&self, block: u64) -> impl Iterator<Item = (u64, u64)> {
        self.runs(block).flat_map(|run| (run.block..run.block + run.blocks).map(move |n| (n, run.granules)))
    }

    /// The same, neighbours together.
    #[inline]
    pub fn runs(&self, block: u64) -> impl Iterator<Item = Run> {
        self.runs.iter().map(move |run| Run { block: block + run.block, ..*run })
    }

    /// The same, as areas of pages.
    #[inline]
    pub fn areas(&self, block: u64) -> impl Iterator<Item = Area> {
        self.runs(block).flat_map(|run| Area::of_blocks(run.block, run.blocks, run.granules))
    }

    /// How many there are, each counted once.
    pub fn granules(&self) -> u64 {
        self.runs.iter().map(|run| run.blocks * u64::from(run.granules.count_ones())).sum()
    }

    /// The first byte and the one behind the last.
    pub fn bounds(&self) -> (u64, u64) {
        let low =
            self.runs.first().map_or(0, |run| run.block * BLOCK + u64::from(run.granules.trailing_zeros()) * GRANULE);
        let high = self
            .runs
            .last()
            .map_or(0, |run| (run.block + run.blocks) * BLOCK - u64::from(run.granules.leading_zeros()) * GRANULE);
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_any_order_make_a_mask_for_each_block() {
        let footprint = Footprint::new([1024 + 32, 16, 1024 + 1008, 0, 16, 3072]);
        let blocks: Vec<_> = footprint.from(5).collect();
        assert_eq!(blocks, [(5, 0b11), (6, 1 << 63 | 0b100), (8, 1)]);
        assert_eq!(footprint.bounds(), (0, 3088));
        assert_eq!(footprint.granules(), 5);
        assert_eq!(Footprint::new([1040]).bounds(), (1040, 1056));
        assert_eq!(Footprint::new([]).bounds(), (0, 0));
    }
}
