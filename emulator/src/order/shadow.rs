//! Who touched each byte of a memory last.
//!
//! A memory is looked at in blocks of 64 granules of 16 bytes. What is accessed in whole granules is remembered with a mask
//! of them, so that a tile costs an entry a block; a granule of which a part was accessed is split: it has a history of its
//! own, byte for byte, until all its bytes have the same again.

use super::history::{History, Hit};
use super::stamp::{Access, Reason, Stamp};
use rustc_hash::FxHashMap;

/// Bytes of a block: one bit of a mask for each granule.
pub const BLOCK: u64 = 64 * GRANULE;
/// Bytes that share a history while they are accessed together.
pub const GRANULE: u64 = 16;
/// Blocks that are allocated together.
const PAGE: usize = 64;
/// Entries of a block that are looked through at most. More come from many actors that read the same granules, each in an
/// order of its own: then each granule gets its own history.
const MOST: usize = 96;
/// All bytes of a granule.
const WHOLE: u64 = (1 << GRANULE) - 1;

/// Two accesses that are not ordered although one of them writes.
#[derive(Clone, Copy, Debug)]
pub struct Conflict {
    /// The one that came first in this run.
    pub first: Stamp,
    /// Whether the first wrote.
    pub first_writes: bool,
    /// Whether the second writes.
    pub second_writes: bool,
    /// Why they are not ordered.
    pub reason: Reason,
    /// A byte they share: the first one with this reason.
    pub byte: u64,
}

/// The granules of a block.
#[derive(Clone, Debug, Default)]
struct Block {
    history: History,
    /// Those whose bytes have a history of their own.
    split: u64,
}

/// The last write and the reads since then, for every byte of a memory.
#[derive(Debug, Default)]
pub struct Shadow {
    pages: Vec<Option<Box<[Block; PAGE]>>>,
    /// The bytes of granules that are split, by number.
    parts: FxHashMap<u64, History>,
    /// Nothing is remembered.
    off: bool,
}

impl Shadow {
    /// One that remembers nothing and finds nothing.
    pub fn off() -> Shadow {
        Shadow { off: true, ..Shadow::default() }
    }

    /// Checks and remembers a read. Gives the conflict that weighs most, of its first byte.
    pub fn read(&mut self, start: u64, len: u64, access: &Access) -> Option<Conflict> {
        self.touch(start, len, access, false)
    }

    /// Checks and remembers a write. Gives the conflict that weighs most, of its first byte.
    pub fn write(&mut self, start: u64, len: u64, access: &Access) -> Option<Conflict> {
        self.touch(start, len, access, true)
    }

    /// The same for granules of a block.
    pub fn read_mask(&mut self, block: u64, granules: u64, access: &Access) -> Option<Conflict> {
        self.touch_mask(block, granules, access, false)
    }

    /// The same for granules of a block.
    pub fn write_mask(&mut self, block: u64, granules: u64, access: &Access) -> Option<Conflict> {
        self.touch_mask(block, granules, access, true)
    }

    /// Whether a write of granules of a block, none of them split, races with nothing.
    pub fn lets_write(&self, block: u64, granules: u64, access: &Access) -> bool {
        let (page, slot) = (block as usize / PAGE, block as usize % PAGE);
        let Some(Some(page)) = self.pages.get(page) else { return true };
        page[slot].split & granules == 0 && page[slot].history.lets_write(granules, access)
    }

    fn touch(&mut self, start: u64, len: u64, access: &Access, writes: bool) -> Option<Conflict> {
        let end = start + len;
        let (mut found, mut at) = (None, if self.off { end } else { start });
        while at < end {
            let stop = (at / BLOCK * BLOCK + BLOCK).min(end);
            let granules = (stop - at) / GRANULE;
            let conflict;
            if at.is_multiple_of(GRANULE) && granules > 0 {
                let mask = (u64::MAX >> (64 - granules)) << (at % BLOCK / GRANULE);
                conflict = self.touch_mask(at / BLOCK, mask, access, writes);
                at += granules * GRANULE;
            } else {
                let next = (at / GRANULE * GRANULE + GRANULE).min(end);
                conflict = self.touch_part(at, next, access, writes);
                at = next;
            }
            found = heavier(found, conflict);
        }
        found
    }

    fn touch_mask(&mut self, block: u64, granules: u64, access: &Access, writes: bool) -> Option<Conflict> {
        if self.off {
            return None;
        }
        let split = cell(&mut self.pages, block).split & granules;
        if split == 0 {
            return self.touch_whole(block, granules, access, writes);
        }
        let found = self.touch_split(block, split, access, writes);
        let rest = if writes { granules } else { granules & !split };
        if rest == 0 { found } else { heavier(found, self.touch_whole(block, rest, access, writes)) }
    }

    /// Granules of which none is split.
    #[inline]
    fn touch_whole(&mut self, block: u64, granules: u64, access: &Access, writes: bool) -> Option<Conflict> {
        let cell = cell(&mut self.pages, block);
        let hit = cell.history.touch(granules, access, writes);
        if cell.history.entries() > MOST {
            scatter(cell, &mut self.parts, block);
        }
        hit.map(|hit| conflict(hit, block * BLOCK + u64::from(hit.place) * GRANULE, writes))
    }

    /// All of granules that are split: a write makes each of them one again, without a history.
    #[cold]
    fn touch_split(&mut self, block: u64, mut granules: u64, access: &Access, writes: bool) -> Option<Conflict> {
        if writes {
            cell(&mut self.pages, block).split &= !granules;
        }
        let mut found = None;
        while granules != 0 {
            let granule = block * 64 + u64::from(granules.trailing_zeros());
            granules &= granules - 1;
            let Some(part) = self.parts.get_mut(&granule) else { continue };
            let hit = part.touch(WHOLE, access, writes);
            found = heavier(found, hit.map(|hit| conflict(hit, granule * GRANULE + u64::from(hit.place), writes)));
            if writes {
                self.parts.remove(&granule);
            }
        }
        found
    }

    /// Bytes of one granule, not all of them.
    fn touch_part(&mut self, at: u64, next: u64, access: &Access, writes: bool) -> Option<Conflict> {
        let (granule, block) = (at / GRANULE, at / BLOCK);
        let place = (granule % 64) as u32;
        let cell = cell(&mut self.pages, block);
        let part = self.parts.entry(granule).or_insert_with(|| {
            // Every byte inherits what was known of the whole.
            cell.split |= 1 << place;
            cell.history.split_off(place, WHOLE)
        });
        let mask = (WHOLE >> (GRANULE - (next - at))) << (at % GRANULE);
        let hit = part.touch(mask, access, writes);
        if part.is_uniform(WHOLE)
            && let Some(part) = self.parts.remove(&granule)
        {
            cell.split &= !(1 << place);
            cell.history.merge(place, part);
        }
        hit.map(|hit| conflict(hit, granule * GRANULE + u64::from(hit.place), writes))
    }
}

/// Gives each granule of a block a history of its own.
#[cold]
fn scatter(cell: &mut Block, parts: &mut FxHashMap<u64, History>, block: u64) {
    let mut granules = cell.history.places();
    cell.split |= granules;
    while granules != 0 {
        let place = granules.trailing_zeros();
        granules &= granules - 1;
        parts.insert(block * 64 + u64::from(place), cell.history.split_off(place, WHOLE));
    }
    cell.history = History::default();
}

#[inline]
fn cell(pages: &mut Vec<Option<Box<[Block; PAGE]>>>, block: u64) -> &mut Block {
    let (page, slot) = (block as usize / PAGE, block as usize % PAGE);
    if pages.len() <= page {
        pages.resize_with(page + 1, || None);
    }
    let page = pages[page].get_or_insert_with(|| Box::new(std::array::from_fn(|_| Block::default())));
    &mut page[slot]
}

fn conflict(hit: Hit, byte: u64, second_writes: bool) -> Conflict {
    let Hit { first, first_writes, reason, .. } = hit;
    Conflict { first, first_writes, second_writes, reason, byte }
}

/// Of two conflicts, the one that weighs more; of equal ones, that of the first byte.
fn heavier(a: Option<Conflict>, b: Option<Conflict>) -> Option<Conflict> {
    match (&a, &b) {
        (Some(x), Some(y)) if (y.reason, y.byte) < (x.reason, x.byte) => b,
        (None, _) => b,
        _ => a,
    }
}

#[cfg(test)]
#[path = "shadow_tests.rs"]
mod tests;
