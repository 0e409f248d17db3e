//! Who touched which bytes of global memory: within a cluster, or across clusters.
//!
//! Most buffers are only ever read. Their reads are kept as they came, a box a record; byte for byte they matter only once somebody
//! writes the buffer.

use crate::machine::memory::Runs;
use crate::order::{Access, Conflict, Rows, Shadow, Stamp, Views};
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Reads of a buffer that nobody has written, at most, before they are kept byte for byte: 32 MB of them.
const MOST_READS: usize = 1 << 21;

/// A read, but for what it has in common with many others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    first: u64,
    epoch: u32,
    kind: u32,
}

/// Reads in the order in which they came.
#[derive(Debug, Default)]
struct Reads {
    list: Vec<Read>,
    /// What reads have in common, that is all but where they begin and the epoch: each of them once.
    kinds: Vec<(Runs, Stamp)>,
    numbers: FxHashMap<(Runs, Stamp), u32>,
}

impl Reads {
    fn push(&mut self, runs: Runs, stamp: Stamp) {
        let common = (Runs { first: 0, ..runs }, Stamp { epoch: 0, ..stamp });
        let kind = *self.numbers.entry(common).or_insert_with(|| {
            self.kinds.push(common);
            self.kinds.len() as u32 - 1
        });
        let read = Read { first: runs.first, epoch: stamp.epoch, kind };
        if self.list.last() != Some(&read) {
            self.list.push(read);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (Runs, Stamp)> {
        self.list.iter().map(|&Read { first, epoch, kind }| {
            let (runs, stamp) = self.kinds[kind as usize];
            (Runs { first, ..runs }, Stamp { epoch, ..stamp })
        })
    }
}

#[derive(Debug, Default)]
struct Touched {
    /// Kept byte for byte.
    exact: bool,
    reads: Reads,
    shadow: Shadow,
}

/// Accesses of all buffers.
#[derive(Debug, Default)]
pub struct Tracker {
    buffers: Vec<Touched>,
    /// Only accesses of different clusters are held against each other.
    across: bool,
}

/// Who accesses global memory.
#[derive(Clone, Copy)]
pub struct Toucher<'a> {
    pub stamp: Stamp,
    pub views: &'a Views,
    /// See [`Access::homes`].
    pub homes: Option<&'a [u8]>,
    /// See [`Access::again`].
    pub again: Option<&'a Cell<bool>>,
}

impl Tracker {
    /// For accesses within one cluster, or of all clusters.
    pub fn new(buffers: usize, across: bool) -> Tracker {
        Tracker { buffers: (0..buffers).map(|_| Touched::default()).collect(), across }
    }

    /// Checks and remembers an access; gives the first conflict.
    pub fn touch(&mut self, runs: Runs, by: Toucher, writes: bool) -> Option<Conflict> {
        let Toucher { stamp, views, homes, again } = by;
        let (runs, across) = (runs.distinct(), self.across);
        let touched = self.buffers.get_mut(runs.buffer)?;
        if !writes && !touched.exact && touched.reads.list.len() < MOST_READS {
            touched.reads.push(runs, stamp);
            return None;
        }
        if !touched.exact {
            touched.exact = true;
            let nothing = Views::default();
            for (runs, stamp) in std::mem::take(&mut touched.reads).iter() {
                let access = Access { across, global: true, ..Access::new(stamp, &nothing) };
                if touched.shadow.touch_rows(runs.rows(), &access, false) {
                    continue;
                }
                for start in runs.starts() {
                    touched.shadow.read(start, runs.bytes.into(), &access);
                }
            }
        }
        // Only bulk copies write global memory through the asynchronous proxy.
        let queued = writes && stamp.asynchronous && !across;
        let access = Access { across, queued, global: true, homes, again, ..Access::new(stamp, views) };
        if touched.shadow.touch_rows(runs.rows(), &access, writes) {
            return None;
        }
        let mut access = access;
        if let Some(again) = again.filter(|_| runs.rows().are_whole()) {
            // Some of it may be there already when it is written row by row.
            again.set(false);
            access.again = None;
        }
        let mut found = None;
        for start in runs.starts() {
            let bytes = u64::from(runs.bytes);
            let conflict = if writes {
                touched.shadow.write(start, bytes, &access)
            } else {
                touched.shadow.read(start, bytes, &access)
            };
            found = found.or(conflict);
            // Lanes that store to one place have not stored there before.
            access.again = access.again.filter(|_| runs.pitch >= bytes);
        }
        found
    }

    /// Who wrote a byte of a buffer, as far as that is remembered.
    pub fn writer(&self, buffer: usize, at: u64) -> Option<Stamp> {
        self.buffers.get(buffer)?.shadow.writer(at)
    }
}

impl Runs {
    fn rows(self) -> Rows {
        Rows { first: self.first, bytes: self.bytes.into(), count: self.count.into(), pitch: self.pitch }
    }
}
