//! The granules of shared memory that an MMA's operand covers, and whether all of them hold defined values.

use crate::machine::tensor_memory::{self, SharedDescriptor};
use crate::order::{BLOCK, Footprint, Run};
use crate::report::Memory;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// A kernel has a few tiles, in a few slices each. One that makes up descriptors begins anew now and then.
const MOST: usize = 256;

/// Footprints of operands that were used before. One depends on where in its block the operand begins, not on which block.
#[derive(Debug, Default)]
struct Footprints(FxHashMap<(SharedDescriptor, u32, bool), Rc<Footprint>>);

thread_local! {
    /// All clusters that a thread of the host runs share them.
    static KNOWN: RefCell<Footprints> = RefCell::default();
}

/// What an operand of so many rows (or columns) covers, and the block from which that counts.
pub fn footprint(d: &SharedDescriptor, rows: u32, mn_major: bool) -> (Rc<Footprint>, u64) {
    KNOWN.with_borrow_mut(|known| known.of(d, rows, mn_major))
}

impl Footprints {
    fn of(&mut self, d: &SharedDescriptor, rows: u32, mn_major: bool) -> (Rc<Footprint>, u64) {
        let inside = SharedDescriptor { start: d.start % BLOCK as u32, ..*d };
        let key = (inside, rows, mn_major);
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            self.0.clear();
        }
        let known = self.0.entry(key).or_insert_with(|| {
            let chunks =
                tensor_memory::chunks(rows, mn_major, d.elements).map(|(mn, k)| inside.chunk(mn, k, mn_major).into());
            Rc::new(Footprint::new(chunks))
        });
        (known.clone(), u64::from(d.start) / BLOCK)
    }
}

impl Memory {
    /// The first granule of these of which not all of the first bytes, so many, are defined: its address. The caller has checked the bounds.
    pub(crate) fn undefined_granule(&self, runs: impl Iterator<Item = Run>, data: u32) -> Option<u32> {
        // A word says it of 64 bytes: four granules.
        const WORDS: usize = BLOCK as usize / 64;
        let whole = (1u64 << data) - 1;
        for Run { block, blocks, granules } in runs {
            let first = block as usize * WORDS;
            let words = &self.defined[first..self.defined.len().min(first + blocks as usize * WORDS)];
            // Mostly all of the blocks is defined.
            if words.iter().fold(u64::MAX, |all, word| all & word) == u64::MAX {
                continue;
            }
            for (n, &word) in (0..).zip(words) {
                let covered = granules >> (4 * (n % WORDS as u32)) & 0xf;
                let missing = (0..4).find(|g| covered >> g & 1 == 1 && word >> (16 * g) & whole != whole);
                if let Some(granule) = missing {
                    return Some(block as u32 * BLOCK as u32 + n * 64 + granule * 16);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start: u32, swizzle: u32) -> SharedDescriptor {
        SharedDescriptor {
            start,
            leading: 4096,
            stride: if swizzle == 0 { 256 } else { 8 * swizzle },
            swizzle,
            ..Default::default()
        }
    }

    #[test]
    fn a_footprint_covers_the_chunks_wherever_the_operand_begins() {
        let mut footprints = Footprints::default();
        for (swizzle, start, mn_major) in [0, 32, 64, 128].into_iter().flat_map(|swizzle| {
            [0x400, 0x420, 0x9860].into_iter().flat_map(move |at| [(swizzle, at, false), (swizzle, at, true)])
        }) {
            let d = descriptor(start, swizzle);
            let mut chunks: Vec<u64> = tensor_memory::chunks(64, mn_major, d.elements)
                .map(|(mn, k)| d.chunk(mn, k, mn_major).into())
                .collect();
            chunks.sort_unstable();
            let (footprint, base) = footprints.of(&d, 64, mn_major);
            let granules: Vec<u64> = footprint
                .from(base)
                .flat_map(|(block, mask)| {
                    (0..64).filter(move |g| mask >> g & 1 == 1).map(move |g| block * BLOCK + g * 16)
                })
                .collect();
            assert_eq!(granules, chunks, "{d:?}, {mn_major}");
            let (low, high) = footprint.bounds();
            assert_eq!(
                (base * BLOCK + low, base * BLOCK + high),
                (chunks[0], chunks[chunks.len() - 1] + 16),
                "{d:?}, {mn_major}"
            );
        }
    }

    #[test]
    fn the_cache_is_bounded_and_knows_places_in_a_block() {
        let mut footprints = Footprints::default();
        for stage in 0..8 {
            footprints.of(&descriptor(stage * 16384 + 32, 128), 128, false);
        }
        assert_eq!(footprints.0.len(), 1);
        for rows in 0..2000 {
            footprints.of(&descriptor(0, 128), 8 + rows, false);
        }
        assert!(footprints.0.len() <= MOST);
    }

    #[test]
    fn the_first_undefined_granule_is_found_at_any_place() {
        let d = descriptor(1024, 128);
        let (footprint, base) = Footprints::default().of(&d, 128, false);
        let mut memory = Memory::undefined(1024 + 128 * 128);
        for (mn, k) in tensor_memory::chunks(128, false, d.elements) {
            assert!(memory.undefined_granule(footprint.runs(base), 16).is_some());
            memory.store(d.chunk(mn, k, false) as usize, 16, 0, true);
        }
        assert_eq!(memory.undefined_granule(footprint.runs(base), 16), None);
        for (at, n) in tensor_memory::chunks(128, false, d.elements).zip(0..) {
            let at = d.chunk(at.0, at.1, false);
            memory.store((at + n % 16) as usize, 1, 0, false);
            assert_eq!(memory.undefined_granule(footprint.runs(base), 16), Some(at));
            memory.store((at + n % 16) as usize, 1, 0, true);
        }
    }
}
