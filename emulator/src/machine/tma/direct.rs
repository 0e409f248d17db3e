//! Loads of the TMA engine that copy straight from global to shared memory.
//!
//! A load reads its source some time before it writes its destination. Where nobody changes the source in between, one copy does
//! both, in the end: such a load waits. Global memory changes where a window ends; before it does, the loads that wait read their
//! source. What their own cluster has written since is not in global memory yet, and they must not see it.

use super::Copy;
use super::bounding_box::{Rows, read_rows};
use super::copy::{LINE, permutation, permute};
use super::prefetches::Prefetches;
use crate::machine::arithmetic::simd::prefetch;
use crate::machine::chip::outbox::{Outbox, bit};
use crate::machine::cluster::Cluster;
use crate::machine::memory::Global;
use crate::program::op::TmaKind;
use crate::report::Memory;
use crate::tensor_map::Swizzle;

/// Lines that are asked for before they are copied.
const AHEAD: usize = 32;

impl Copy {
    /// Whether its rows are all there, as they are, in pieces that a swizzle keeps together.
    fn is_plain(&self) -> bool {
        let whole = |rows: &Rows| {
            !rows.hangs_over() && rows.dense() && (self.swizzle == Swizzle::None || rows.bytes.is_multiple_of(16))
        };
        let as_they_are = self.kind == TmaKind::Load && !self.element.is_rounded();
        as_they_are && permutation(self.swizzle, 0).is_some() && self.rows.iter().all(whole)
    }

    /// A bit for each buffer that it reads.
    fn buffers(&self) -> u64 {
        self.rows.iter().filter_map(|rows| rows.inside).fold(0, |all, (_, runs)| all | bit(runs.buffer))
    }
}

impl Cluster<'_> {
    /// Whether a load need not read its source yet: global memory holds what it would read. It waits then.
    pub fn waits(&mut self, n: usize) -> bool {
        let copy = &self.copies[n];
        let waits = copy.is_plain() && copy.buffers() & self.outbox.written() == 0;
        if waits {
            // The first rows come at once, in case that nothing is multiplied until they are copied.
            self.unfetched.add(n, &copy.rows);
            Prefetches::of(&mut self.unfetched, &self.global).next();
            self.waiting.push(n);
        }
        waits
    }

    /// Some of these buffers are about to change: the loads that wait for them read them.
    pub fn read_waiting(&mut self, global: &Global, written: u64) {
        let mut at = 0;
        while at < self.waiting.len() {
            let n = self.waiting[at];
            if self.copies[n].buffers() & written == 0 {
                at += 1;
                continue;
            }
            self.waiting.swap_remove(at);
            self.unfetched.forget(n);
            let mut data = self.spare_data.pop().unwrap_or_default();
            let copy = &mut self.copies[n];
            data.resize(copy.bytes as usize);
            // They must not see what their own cluster has written since.
            let nothing = Outbox::default();
            copy.rows.iter().for_each(|rows| read_rows(rows, global, &nothing, &mut data));
            copy.data = Some(data);
        }
    }
}

/// Copies rows of global memory to swizzled shared memory.
pub fn deliver(shared: &mut Memory, rows: &[Rows], global: &Global, offset: u32, swizzle: Swizzle) {
    for rows in rows {
        let Some((_, runs)) = rows.inside else { continue };
        let source = &global.buffers[runs.buffer];
        let row = runs.bytes as usize;
        let (start, len) = ((offset + rows.linear) as usize, (rows.bytes * rows.count) as usize);
        let defined = source.whole || runs.starts().all(|at| source.memory.all_defined(at as usize, row));
        let lines = swizzle == Swizzle::None || start.is_multiple_of(LINE) && len.is_multiple_of(LINE);
        let blanks = shared.has_blanks() || source.memory.has_blanks();
        if !defined || !lines || blanks {
            let step = if swizzle == Swizzle::None { row } else { 16 };
            for (to, at) in rows.parts() {
                for n in (0..row).step_by(step) {
                    let to = swizzle.apply(offset + to + n as u32);
                    shared.copy_from(to as usize, &source.memory, at as usize + n, step);
                }
            }
            continue;
        }
        let bytes = &source.memory.bytes[..];
        if swizzle == Swizzle::None {
            for (to, at) in rows.parts() {
                let (begin, at) = ((offset + to) as usize, at as usize);
                shared.bytes[begin..begin + row].copy_from_slice(&bytes[at..at + row]);
            }
        } else if row.is_multiple_of(LINE) {
            // A swizzle repeats after eight lines.
            let flips: [usize; 8] =
                std::array::from_fn(|n| permutation(swizzle, (start + n * LINE) as u32).unwrap_or(0));
            let (mut at, mut column) = (runs.first as usize, 0);
            let ahead = AHEAD * runs.pitch as usize;
            for (n, into) in shared.bytes[start..start + len].as_chunks_mut::<LINE>().0.iter_mut().enumerate() {
                // Rows lie far from each other: memory brings several side by side only if it is asked for them before.
                prefetch(bytes.get(at + column + ahead..at + column + ahead + LINE).unwrap_or_default());
                permute(into, &bytes[at + column..].as_chunks().0[0], flips[n % 8]);
                column += LINE;
                if column == row {
                    (at, column) = (at + runs.pitch as usize, 0);
                }
            }
        } else {
            for (to, at) in rows.parts() {
                let from = bytes[at as usize..at as usize + row].as_chunks::<16>().0;
                for (chunk, at) in from.iter().zip((offset + to..).step_by(16)) {
                    let at = swizzle.apply(at) as usize;
                    shared.bytes[at..at + 16].copy_from_slice(chunk);
                }
            }
        }
        shared.mark(start, len, true);
    }
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
