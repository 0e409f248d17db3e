//! The blocks of a page one by one: granule by granule, and byte by byte where a part of a granule was accessed.
//!
//! What is accessed in whole granules is remembered with a mask of them; a granule of which a part was accessed is split: it
//! has a history of its own, byte for byte, until all its bytes have the same again.

use super::history::{History, Hit, Sort};
use super::shadow::GRANULE;
use super::stamp::{Access, Stamp};
use rustc_hash::FxHashMap;

/// Entries of a block that are looked through at most. More come from many actors that read the same granules, each in an
/// order of its own: then each granule gets its own history.
const MOST: usize = 96;
/// All bytes of a granule.
const WHOLE: u64 = (1 << GRANULE) - 1;

/// The granules of a block.
#[derive(Clone, Debug, Default)]
struct Block {
    history: History<u64>,
    /// Those whose bytes have a history of their own.
    split: u64,
}

/// Conflicts are found at bytes of the page.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    blocks: [Block; 32],
    /// The bytes of granules that are split, by number.
    parts: FxHashMap<u32, History<u64>>,
}

impl Blocks {
    /// Begins a block with what is known of it.
    pub fn begin(&mut self, block: u32, history: History<u64>) {
        self.blocks[block as usize] = Block { history, split: 0 };
    }

    /// Whether a write of granules of a block, none of them split, races with nothing.
    pub fn lets(&self, block: u32, granules: u64, access: &Access) -> bool {
        let Block { history, split } = &self.blocks[block as usize];
        split & granules == 0 && history.lets(granules, access)
    }

    /// Checks and remembers an access to granules of a block. Gives the conflict that weighs most.
    pub fn touch(&mut self, block: u32, granules: u64, access: &Access, writes: bool) -> Option<Hit> {
        let split = self.blocks[block as usize].split & granules;
        if split == 0 {
            return self.touch_whole(block, granules, access, writes);
        }
        let found = self.touch_split(block, split, access, writes);
        let rest = if writes && access.stamp.covers_all() { granules } else { granules & !split };
        if rest == 0 {
            return found;
        }
        self.touch_whole(block, rest, access, writes).map_or(found, |hit| Hit::heavier(found, hit))
    }

    /// The conflict with earlier accesses of some sort that an access to granules of a block would have: the one that weighs most.
    pub fn conflict_with(&self, block: u32, granules: u64, access: &Access, writes: bool, sort: Sort) -> Option<Hit> {
        let Block { history, split } = &self.blocks[block as usize];
        let hit = history.conflict_with(granules & !split, access, writes, sort);
        let whole = hit.map(|hit| Hit { place: (block * 64 + hit.place) * GRANULE as u32, ..hit });
        let split = (0..64).filter(|n| (split & granules) >> n & 1 == 1).map(|n| block * 64 + n);
        let parts = split.filter_map(|granule| {
            let hit = self.parts.get(&granule)?.conflict_with(WHOLE, access, writes, sort)?;
            Some(of_part(granule, hit))
        });
        parts.fold(whole, Hit::heavier)
    }

    /// Granules of which none is split.
    #[inline]
    fn touch_whole(&mut self, block: u32, granules: u64, access: &Access, writes: bool) -> Option<Hit> {
        let history = &mut self.blocks[block as usize].history;
        let hit = history.touch(granules, access, writes);
        if history.entries() > MOST {
            self.scatter(block);
        }
        hit.map(|hit| Hit { place: (block * 64 + hit.place) * GRANULE as u32, ..hit })
    }

    /// All of granules that are split: a write that leaves nothing else to remember makes each of them one again, without a history.
    #[cold]
    fn touch_split(&mut self, block: u32, mut granules: u64, access: &Access, writes: bool) -> Option<Hit> {
        let joins = writes && access.stamp.covers_all();
        if joins {
            self.blocks[block as usize].split &= !granules;
        }
        let mut found = None;
        while granules != 0 {
            let granule = block * 64 + granules.trailing_zeros();
            granules &= granules - 1;
            let Some(part) = self.parts.get_mut(&granule) else { continue };
            if let Some(hit) = part.touch(WHOLE, access, writes) {
                found = Hit::heavier(found, of_part(granule, hit));
            }
            if joins {
                self.parts.remove(&granule);
            }
        }
        found
    }

    /// The same for bytes of one granule, not all of them.
    pub fn touch_part(&mut self, granule: u32, bytes: u64, access: &Access, writes: bool) -> Option<Hit> {
        let place = granule % 64;
        let block = &mut self.blocks[granule as usize / 64];
        let part = self.parts.entry(granule).or_insert_with(|| {
            // Every byte inherits what was known of the whole.
            block.split |= 1 << place;
            block.history.split_off(place, WHOLE)
        });
        let hit = part.touch(bytes, access, writes);
        if part.is_uniform(WHOLE)
            && let Some(part) = self.parts.remove(&granule)
        {
            block.split &= !(1 << place);
            block.history.merge(place, part);
        }
        hit.map(|hit| of_part(granule, hit))
    }

    /// Who wrote a byte of a block last.
    pub fn writer(&self, block: u32, byte: u32) -> Option<Stamp> {
        let (Block { history, split }, place) = (&self.blocks[block as usize], byte / GRANULE as u32);
        if split >> place & 1 == 1 {
            return self.parts.get(&(block * 64 + place))?.writer(1 << (byte % GRANULE as u32));
        }
        history.writer(1 << place)
    }

    /// Gives each granule of a block a history of its own.
    #[cold]
    fn scatter(&mut self, block: u32) {
        let Block { history, split } = &mut self.blocks[block as usize];
        let mut granules = history.places();
        *split |= granules;
        while granules != 0 {
            let place = granules.trailing_zeros();
            granules &= granules - 1;
            self.parts.insert(block * 64 + place, history.split_off(place, WHOLE));
        }
        *history = History::default();
    }

    /// Entries of all histories, and how many granules are split.
    #[cfg(test)]
    pub fn remembered(&self) -> (usize, usize) {
        let whole: usize = self.blocks.iter().map(|block| block.history.entries()).sum();
        (whole + self.parts.values().map(History::entries).sum::<usize>(), self.parts.len())
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        size_of::<Blocks>() + self.blocks.iter().map(|block| block.history.bytes()).sum::<usize>()
    }
}

fn of_part(granule: u32, hit: Hit) -> Hit {
    Hit { place: granule * GRANULE as u32 + hit.place, ..hit }
}
