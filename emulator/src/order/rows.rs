//! Areas of a memory: granules that lie in the same places of some blocks of a page, and what accesses cover as such areas.

use super::places::Rectangle;
use super::shadow::{BLOCK, GRANULE};

/// Blocks of a page.
const BLOCKS: u64 = u32::BITS as u64;

/// The same granules of each of some blocks of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    pub(super) page: u64,
    pub(super) places: Rectangle,
}

impl Area {
    /// Granules of a block.
    pub fn of_block(block: u64, granules: u64) -> Area {
        Area { page: block / BLOCKS, places: Rectangle { blocks: 1 << (block % BLOCKS), granules } }
    }

    /// Granules of each of some blocks side by side.
    #[inline]
    pub fn of_blocks(first: u64, blocks: u64, granules: u64) -> impl Iterator<Item = Area> {
        Spread { granules, first, blocks, count: blocks.min(1), ..Spread::default() }
    }

    /// All granules of so many blocks side by side, as far as they lie in the page of the first; and how many granules those are.
    pub(super) fn of_run(first: u64, blocks: u64) -> (Area, u64) {
        let blocks = blocks.min(BLOCKS - first % BLOCKS);
        let mask = (u32::MAX >> (BLOCKS - blocks)) << (first % BLOCKS);
        (Area { page: first / BLOCKS, places: Rectangle { blocks: mask, granules: u64::MAX } }, 64 * blocks)
    }

    /// Granules of blocks: those next to each other that have the same granules and lie in the same page are one area.
    #[inline]
    pub fn of_each(blocks: impl IntoIterator<Item = (u64, u64)>) -> impl Iterator<Item = Area> {
        let mut rest = blocks.into_iter().map(|(block, granules)| Area::of_block(block, granules)).peekable();
        std::iter::from_fn(move || {
            let mut area = rest.next()?;
            let Area { page, places: Rectangle { granules, .. } } = area;
            while let Some(next) = rest.next_if(|next| (next.page, next.places.granules) == (page, granules)) {
                area.places.blocks |= next.places.blocks;
            }
            Some(area)
        })
    }
}

/// Bytes of a memory: runs of equal length at equal distances, as the rows of a box are.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Where the first begins.
    pub first: u64,
    /// Bytes of each.
    pub bytes: u64,
    pub count: u64,
    /// From one to the next.
    pub pitch: u64,
}

impl Rows {
    /// Whether they cover whole granules.
    #[inline]
    pub fn are_whole(self) -> bool {
        (self.first | self.bytes | self.pitch).is_multiple_of(GRANULE)
    }

    /// Calls this with all areas that they cover, until it says no, and tells whether it never did. If they cover parts of
    /// granules, there are no such areas: that is a no.
    #[inline]
    pub(super) fn all(self, mut each: impl FnMut(Area) -> bool) -> bool {
        let Rows { first, bytes, count, pitch } = self;
        if !self.are_whole() {
            return false;
        }
        // So many rows on, as a power of two, one begins in the same place of a block.
        let cycle = BLOCK.trailing_zeros() - pitch.trailing_zeros().min(BLOCK.trailing_zeros());
        let pitch_of_same = (pitch << cycle) / BLOCK;
        (0..count.min(1 << cycle)).all(|n| {
            let count = ((count - n - 1) >> cycle) + 1;
            let spread = Spread { count, pitch: pitch_of_same, ..Spread::default() };
            spread.of_row(first + n * pitch, bytes).into_iter().all(|mut spread| spread.all(&mut each))
        })
    }
}

/// The same granules of blocks: runs of blocks at equal distances. Gives an area for each page that it comes to.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    granules: u64,
    /// Where the next run begins.
    first: u64,
    /// Blocks of each run.
    blocks: u64,
    /// Runs that are left.
    count: u64,
    /// From the begin of one run to that of the next.
    pitch: u64,
    /// Blocks of the next run that were given already.
    given: u64,
}

impl Spread {
    /// What rows cover of the first block that they touch, of those behind it, and of the last, when the first row is this one.
    fn of_row(self, start: u64, bytes: u64) -> [Spread; 3] {
        let end = start + bytes;
        let (before, behind) = (start % BLOCK / GRANULE, end % BLOCK / GRANULE);
        let (head, tail) = (u64::MAX << before, (1 << behind) - 1);
        let (low, high) = (start.div_ceil(BLOCK), end / BLOCK);
        let part = |granules, first, blocks: u64| Spread {
            granules,
            first,
            blocks,
            count: if blocks == 0 || granules == 0 { 0 } else { self.count },
            ..self
        };
        if low > high {
            return [part(head & tail, high, 1), Spread::default(), Spread::default()];
        }
        [part(head, low.wrapping_sub(1), u64::from(before > 0)), part(u64::MAX, low, high - low), part(tail, high, 1)]
    }
}

impl Iterator for Spread {
    type Item = Area;

    #[inline]
    fn next(&mut self) -> Option<Area> {
        let page = (self.first + self.given) / BLOCKS;
        let mut blocks = 0;
        while self.count > 0 {
            let at = self.first + self.given;
            if at / BLOCKS != page {
                break;
            }
            let more = (self.blocks - self.given).min(BLOCKS - at % BLOCKS);
            blocks |= (u32::MAX >> (BLOCKS - more)) << (at % BLOCKS);
            self.given += more;
            if self.given == self.blocks {
                self.given = 0;
                self.first += self.pitch;
                self.count -= 1;
            }
        }
        (blocks != 0).then_some(Area { page, places: Rectangle { blocks, granules: self.granules } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn granules(area: Area) -> impl Iterator<Item = u64> {
        let Area { page, places: Rectangle { blocks, granules } } = area;
        let of_block = move |block| (0..64).filter(move |g| granules >> g & 1 == 1).map(move |g| 64 * block + g);
        (0..BLOCKS).filter(move |block| blocks >> block & 1 == 1).flat_map(move |block| of_block(page * BLOCKS + block))
    }

    proptest! {
        #[test]
        fn areas_cover_the_rows(
            first in prop_oneof![0u64..10_000, Just(2048), Just(1024)],
            bytes in prop_oneof![0u64..10_000, Just(8), Just(64), Just(256), Just(4096)],
            count in 0u64..40,
            pitch in prop_oneof![0u64..700, Just(16), Just(64), Just(96), Just(128), Just(256), Just(384), Just(1024)],
        ) {
            let rows = Rows { first: 16 * first, bytes: 16 * bytes, count, pitch: 16 * pitch };
            let mut covered = Vec::new();
            let all = rows.all(|area| {
                covered.extend(granules(area));
                true
            });
            prop_assert!(all);
            let mut expected: Vec<u64> = (0..count).flat_map(|n| (0..bytes).map(move |g| first + n * pitch + g)).collect();
            for all in [&mut covered, &mut expected] {
                all.sort_unstable();
                all.dedup();
            }
            prop_assert_eq!(covered, expected);
        }
    }

    #[test]
    fn blocks_of_the_same_granules_are_one_area() {
        let areas: Vec<Area> = Area::of_each([(3, 6), (5, 6), (4, 6), (4, 9), (31, 9), (32, 9), (34, 9)]).collect();
        let area = |page, blocks, granules| Area { page, places: Rectangle { blocks, granules } };
        assert_eq!(areas, [area(0, 0b11_1000, 6), area(0, 1 << 31 | 1 << 4, 9), area(1, 0b101, 9)]);
        assert_eq!(Area::of_blocks(31, 2, 9).collect::<Vec<_>>(), [area(0, 1 << 31, 9), area(1, 1, 9)]);
        assert_eq!(Area::of_blocks(31, 0, 9).count(), 0);
    }

    #[test]
    fn rows_at_a_pitch_are_few_areas() {
        let areas = |first, bytes, count, pitch| {
            let mut areas = 0;
            let mut add = |_| {
                areas += 1;
                true
            };
            Rows { first, bytes, count, pitch }.all(&mut add).then_some(areas)
        };
        assert_eq!(areas(1024, 16 << 10, 1, 0), Some(1));
        assert_eq!(areas(24 << 10, 16 << 10, 1, 0), Some(2));
        assert_eq!(areas(0, 4096, 4, 8192), Some(1));
        assert_eq!(areas(256, 128, 128, 4096), Some(16));
        assert_eq!(areas(256, 128, 128, 1536), Some(12));
        assert_eq!(areas(8, 128, 128, 1536), None);
        assert_eq!(areas(0, 0, 128, 1536), Some(0));
    }
}
