//! What loads on their way will copy, asked for while the tensor core computes: a product leaves memory idle, and what it brings meanwhile
//! is copied in less time.

use super::bounding_box::Rows;
use crate::machine::arithmetic::simd::prefetch;
use crate::machine::memory::{Global, Runs};
use std::collections::VecDeque;

/// Bytes that are asked for at a time.
const PIECE: u32 = 1024;

/// Sources of loads that nobody has asked for, in the order of their issue: the copy, by its place, and the rows that are left of it.
#[derive(Debug, Default)]
pub struct Unfetched(VecDeque<(usize, Runs)>);

impl Unfetched {
    /// What lies side by side in long rows, a CPU asks for by itself; rows without bytes bring nothing.
    pub fn add(&mut self, copy: usize, rows: &[Rows]) {
        let runs = rows.iter().filter_map(|rows| rows.inside).map(|(_, runs)| runs);
        self.0.extend(runs.filter(|runs| (1..=PIECE).contains(&runs.bytes)).map(|runs| (copy, runs)));
    }

    /// The copy has been done, or has read its source.
    pub fn forget(&mut self, copy: usize) {
        if !self.0.is_empty() {
            self.0.retain(|&(of, _)| of != copy);
        }
    }

    /// Whether something is left of a copy.
    pub fn has(&self, copy: usize) -> bool {
        self.0.iter().any(|&(of, _)| of == copy)
    }
}

/// The same, in the memory that they lie in; none by default.
#[derive(Default)]
pub struct Prefetches<'a>(Option<(&'a mut Unfetched, &'a Global)>);

impl<'a> Prefetches<'a> {
    pub fn of(unfetched: &'a mut Unfetched, global: &'a Global) -> Prefetches<'a> {
        Prefetches(Some((unfetched, global)))
    }

    pub fn lend(&mut self) -> Prefetches<'_> {
        Prefetches(self.0.as_mut().map(|(unfetched, global)| (&mut **unfetched, &**global)))
    }

    /// Asks for the next bytes.
    #[inline(always)]
    pub fn next(&mut self) {
        if let Some((Unfetched(left), global)) = &mut self.0
            && !left.is_empty()
        {
            ask(left, global);
        }
    }
}

#[inline(never)]
fn ask(unfetched: &mut VecDeque<(usize, Runs)>, global: &Global) {
    let mut left = PIECE;
    while let Some((_, runs)) = unfetched.front_mut().filter(|_| left > 0) {
        let bytes = global.buffers.get(runs.buffer).map_or(&[][..], |buffer| &buffer.memory.bytes);
        let rows = left.div_ceil(runs.bytes).min(runs.count);
        for first in runs.starts().take(rows as usize) {
            prefetch(bytes.get(first as usize..first as usize + runs.bytes as usize).unwrap_or_default());
        }
        left = left.saturating_sub(rows * runs.bytes);
        runs.first += u64::from(rows) * runs.pitch;
        runs.count -= rows;
        if runs.count == 0 {
            unfetched.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Memory;

    /// Rows of two copies, in their order, each once; none of a copy that has been done, and none that is long.
    #[test]
    fn each_row_is_asked_for_once() {
        let global = Global::of(Memory::zeros(1 << 14));
        let rows = |first, bytes, count| Rows {
            linear: 0,
            bytes,
            pitch: bytes,
            count,
            inside: Some((0, Runs { buffer: 0, first, bytes, count, pitch: 1040 })),
        };
        let mut unfetched = Unfetched::default();
        unfetched.add(3, &[rows(16, 384, 4)]);
        unfetched.add(5, &[rows(0, 128, 12), Rows::plain(2 * PIECE, Some((0, 0)))]);
        let left = |unfetched: &Unfetched| {
            unfetched.0.iter().map(|(copy, runs)| (*copy, runs.first, runs.count)).collect::<Vec<_>>()
        };
        // 1024 bytes are three rows of 384 and no more.
        Prefetches::of(&mut unfetched, &global).next();
        assert_eq!(left(&unfetched), [(3, 16 + 3 * 1040, 1), (5, 0, 12)]);
        // One of 384, and five of 128.
        Prefetches::of(&mut unfetched, &global).lend().next();
        assert_eq!(left(&unfetched), [(5, 5 * 1040, 7)]);
        unfetched.add(6, &[rows(64, 128, 2)]);
        unfetched.forget(5);
        assert_eq!(left(&unfetched), [(6, 64, 2)]);
        Prefetches::of(&mut unfetched, &global).next();
        Prefetches::of(&mut unfetched, &global).next();
        assert_eq!(left(&unfetched), []);
    }
}
