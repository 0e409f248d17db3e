//! The granules that an access covers when they do not lie side by side.

use super::shadow::{BLOCK, GRANULE};

/// Granules of a memory, by block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Each block once, lowest first, with a mask that is not empty.
    blocks: Vec<(u64, u64)>,
}

impl Footprint {
    /// The granules at these addresses, in any order and as often as one likes.
    pub fn new(granules: impl IntoIterator<Item = u64>) -> Footprint {
        let mut all: Vec<u64> = granules.into_iter().map(|at| at / GRANULE).collect();
        all.sort_unstable();
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for granule in all {
            let (block, bit) = (granule / 64, 1 << (granule % 64));
            match blocks.last_mut() {
                Some((last, mask)) if *last == block => *mask |= bit,
                _ => blocks.push((block, bit)),
            }
        }
        Footprint { blocks }
    }

    /// The blocks and the granules of each, when the whole begins this many blocks later.
    pub fn from(&self, block: u64) -> impl Iterator<Item = (u64, u64)> {
        self.blocks.iter().map(move |&(n, mask)| (block + n, mask))
    }

    /// The first byte and the one behind the last.
    pub fn bounds(&self) -> (u64, u64) {
        let low = self.blocks.first().map_or(0, |(n, mask)| n * BLOCK + u64::from(mask.trailing_zeros()) * GRANULE);
        let high =
            self.blocks.last().map_or(0, |(n, mask)| (n + 1) * BLOCK - u64::from(mask.leading_zeros()) * GRANULE);
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
        assert_eq!(Footprint::new([1040]).bounds(), (1040, 1056));
        assert_eq!(Footprint::new([]).bounds(), (0, 0));
    }
}
