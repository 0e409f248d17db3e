//! Who touched the bytes of a page last.
//!
//! Most accesses cover the same granules of each of some blocks: a box that is copied, a slice of an operand, columns of all
//! lanes. As rectangles, each costs an entry a page. Blocks of which other things are accessed stand apart, one by one.

use super::blocks::Blocks;
use super::history::{History, Hit, Sort};
use super::places::Rectangle;
use super::shadow::{BLOCK, GRANULE};
use super::stamp::{Access, Stamp};

/// Bytes of a page: one bit of a mask for each block. All of a CTA's tensor memory.
pub const PAGE: u64 = 32 * BLOCK;
/// Rectangles that are looked through at most. When there are more, the blocks stand apart.
const MOST: usize = 64;

/// Conflicts are found at bytes of the page.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// Of all blocks but those that stand apart.
    history: History<Rectangle>,
    apart: u32,
    blocks: Option<Box<Blocks>>,
}

impl Page {
    /// Whether a write races with nothing. One that finds split granules is taken not to.
    #[inline]
    pub fn lets(&self, places: Rectangle, access: &Access) -> bool {
        self.history.lets(places, access)
            && self
                .blocks
                .iter()
                .all(|blocks| each(places.blocks & self.apart).all(|block| blocks.lets(block, places.granules, access)))
    }

    /// Checks and remembers an access to whole granules. Gives the conflict that weighs most.
    #[inline]
    pub fn touch(&mut self, places: Rectangle, access: &Access, writes: bool) -> Option<Hit> {
        if places.blocks & self.apart == 0 {
            self.touch_together(places, access, writes)
        } else {
            self.touch_any(places, access, writes)
        }
    }

    /// Blocks none of which stands apart.
    #[inline]
    fn touch_together(&mut self, places: Rectangle, access: &Access, writes: bool) -> Option<Hit> {
        let hit = self.history.touch(places, access, writes);
        if self.history.entries() > MOST {
            self.set_apart(self.history.blocks());
        }
        hit.map(|hit| Hit { place: hit.place * GRANULE as u32, ..hit })
    }

    /// A block that is written whole joins the others, if that leaves nothing else to remember of it.
    fn touch_any(&mut self, places: Rectangle, access: &Access, writes: bool) -> Option<Hit> {
        let mut found = None;
        if let Some(blocks) = &mut self.blocks {
            for block in each(places.blocks & self.apart) {
                if let Some(hit) = blocks.touch(block, places.granules, access, writes) {
                    found = Hit::heavier(found, hit);
                }
                if writes && places.granules == u64::MAX && access.stamp.covers_all() {
                    blocks.begin(block, History::default());
                    self.apart &= !(1 << block);
                }
            }
        }
        let rest = Rectangle { blocks: places.blocks & !self.apart, ..places };
        if rest.blocks == 0 {
            return found;
        }
        self.touch_together(rest, access, writes).map_or(found, |hit| Hit::heavier(found, hit))
    }

    /// The conflict with earlier accesses of some sort that an access to whole granules would have: the one that weighs most.
    pub fn conflict_with(&self, places: Rectangle, access: &Access, writes: bool, sort: Sort) -> Option<Hit> {
        let together = Rectangle { blocks: places.blocks & !self.apart, ..places };
        let hit = self.history.conflict_with(together, access, writes, sort);
        let mut found = hit.map(|hit| Hit { place: hit.place * GRANULE as u32, ..hit });
        if let Some(blocks) = &self.blocks {
            for block in each(places.blocks & self.apart) {
                if let Some(hit) = blocks.conflict_with(block, places.granules, access, writes, sort) {
                    found = Hit::heavier(found, hit);
                }
            }
        }
        found
    }

    /// Who wrote a byte last.
    pub fn writer(&self, byte: u32) -> Option<Stamp> {
        let (block, granule) = (byte / BLOCK as u32, byte / GRANULE as u32 % 64);
        if self.apart >> block & 1 == 1 {
            return self.blocks.as_ref()?.writer(block, byte % BLOCK as u32);
        }
        self.history.writer(Rectangle { blocks: 1 << block, granules: 1 << granule })
    }

    /// The same for bytes of one granule, not all of them.
    pub fn touch_part(&mut self, granule: u32, bytes: u64, access: &Access, writes: bool) -> Option<Hit> {
        let block = 1 << (granule / 64);
        if self.apart & block == 0 {
            self.set_apart(block);
        }
        self.blocks.as_mut()?.touch_part(granule, bytes, access, writes)
    }

    #[cold]
    fn set_apart(&mut self, set: u32) {
        let blocks = self.blocks.get_or_insert_default();
        each(set).for_each(|block| blocks.begin(block, self.history.of_block(block)));
        self.history.forget(set);
        self.apart |= set;
    }

    /// Entries of all histories, how many granules are split, and how many blocks stand apart.
    #[cfg(test)]
    pub fn remembered(&self) -> (usize, usize, u32) {
        let (entries, split) = self.blocks.as_ref().map_or((0, 0), |blocks| blocks.remembered());
        (self.history.entries() + entries, split, self.apart.count_ones())
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        size_of::<Page>() + self.history.bytes() + self.blocks.as_ref().map_or(0, |blocks| blocks.bytes())
    }
}

/// The numbers of the bits that are set.
fn each(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then_some(set.trailing_zeros());
        set &= set.wrapping_sub(1);
        lowest
    })
}
