//! What loads on their way will copy, asked for while the tensor core computes: a product leaves memory idle, and a load that finds its
//! lines in the caches takes a third of the time.

use super::bounding_box::Rows;
use super::memory::{Global, Runs};
use super::simd::prefetch;
use std::collections::VecDeque;

/// Bytes that are asked for at a time.
const PIECE: u32 = 1024;

/// Sources of loads that nobody has asked for, in the order of their issue: the copy, and the rows that are left of it.
#[derive(Debug, Default)]
pub struct Sources(VecDeque<(usize, Runs)>);

impl Sources {
    /// What lies side by side in long rows, a CPU asks for by itself.
    pub fn add(&mut self, copy: usize, rows: &[Rows]) {
        let runs = rows.iter().filter_map(|rows| rows.inside).map(|(_, runs)| runs);
        self.0.extend(runs.filter(|runs| (1..=PIECE).contains(&runs.bytes)).map(|runs| (copy, runs)));
    }

    /// The copy has been done.
    pub fn forget(&mut self, copy: usize) {
        self.0.retain(|&(of, _)| of != copy);
    }
}

/// Sources in the memory that they are of; none by default.
#[derive(Default)]
pub struct Asks<'a>(Option<(&'a mut Sources, &'a Global)>);

impl<'a> Asks<'a> {
    pub fn of(sources: &'a mut Sources, global: &'a Global) -> Asks<'a> {
        Asks(Some((sources, global)))
    }

    /// The same, lent.
    pub fn lend(&mut self) -> Asks<'_> {
        Asks(self.0.as_mut().map(|(sources, global)| (&mut **sources, &**global)))
    }

    /// Asks for the next bytes.
    #[inline(always)]
    pub fn next(&mut self) {
        if let Some((Sources(sources), global)) = &mut self.0
            && !sources.is_empty()
        {
            ask(sources, global);
        }
    }
}

#[inline(never)]
fn ask(sources: &mut VecDeque<(usize, Runs)>, global: &Global) {
    let mut left = PIECE;
    while let Some((_, runs)) = sources.front_mut().filter(|_| left > 0) {
        let bytes = &global.buffers[runs.buffer].memory.bytes[..];
        let rows = left.div_ceil(runs.bytes).min(runs.count);
        for first in runs.starts().take(rows as usize) {
            prefetch(bytes.get(first as usize..first as usize + runs.bytes as usize).unwrap_or_default());
        }
        left = left.saturating_sub(rows * runs.bytes);
        runs.first += u64::from(rows) * runs.pitch;
        runs.count -= rows;
        if runs.count == 0 {
            sources.pop_front();
        }
    }
}
