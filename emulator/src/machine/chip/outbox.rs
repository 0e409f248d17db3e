//! What a cluster does that other clusters can see. It takes effect where a window of simulated time ends; until then only the
//! cluster itself sees what it wrote.

use super::launch_control::Cancel;
use crate::machine::arithmetic::simd::prefetch;
use crate::machine::memory::atomics::AtomicJob;
use crate::machine::memory::resolve::Target;
use crate::machine::memory::{Global, POISON, Runs};
use crate::machine::tma::reduction::reduce;
use crate::order::{Far, Stamp, Views};
use crate::program::atomic::LoadOp;
use crate::program::op::Reduction;
use crate::report::Memory;
use crate::tensor_map::Element;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;

/// One thing that others can see.
#[derive(Debug)]
pub enum Item<'a> {
    /// A plain read, to be held against the writes of others.
    Read {
        runs: Runs,
        stamp: Stamp,
        known: Far,
    },
    /// A copy read its tensor map here; what was known of other clusters, and what acquire fences have brought.
    Map {
        buffer: usize,
        offset: u64,
        site: u32,
        known: Far,
        acquired: Far,
    },
    Write(Box<Write>),
    /// A strong write, after the [`Item::Write`] itself, tells what the writer knew: inside its cluster, and outside.
    Publish(Box<Published>),
    /// An atomic operation; the warp waits if it wants the old value.
    Atomic(Box<AtomicJob>),
    /// A strong load, which a warp waits for.
    Load(Box<LoadJob<'a>>),
    /// A request to cluster launch control.
    Cancel(Box<Cancel>),
    /// `tcgen05.alloc` where CTAs share an SM: a request, and its end.
    TensorAlloc(Columns),
    TensorFree {
        cta: usize,
        column: u32,
        columns: u32,
    },
    /// `tcgen05.relinquish_alloc_permit` where CTAs share an SM.
    Relinquish {
        cta: usize,
    },
    /// The cluster has ended.
    End,
}

/// Bytes on their way to global memory.
#[derive(Debug)]
pub struct Write {
    pub runs: Vec<Runs>,
    /// One run behind the other.
    pub data: Memory,
    /// All of it is blank: there is no data.
    pub blank: bool,
    /// They are combined with what is there.
    pub how: Option<(Reduction, Element)>,
    pub stamp: Stamp,
    /// What the writer knew of other clusters.
    pub known: Far,
}

/// A request for columns of tensor memory.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// The CTA (of a pair, one of them), by rank.
    pub cta: usize,
    pub columns: u32,
    /// The warp that waits, and that of the pair's other CTA.
    pub warp: usize,
    pub peer: Option<usize>,
}

/// What a strong write tells.
#[derive(Debug)]
pub struct Published {
    /// Buffers and offsets.
    pub places: Vec<(usize, u64)>,
    /// To warps of its own cluster, and to others.
    pub near: Views,
    pub far: Views,
}

/// A strong load.
#[derive(Debug)]
pub struct LoadJob<'a> {
    pub warp: usize,
    pub request: u32,
    pub op: &'a LoadOp,
    pub targets: Vec<(usize, Target)>,
    pub site: u32,
    /// When the value can be there.
    pub done_at: u64,
}

impl LoadJob<'_> {
    /// The buffers that it reads, one as often as one likes.
    pub fn buffers(&self) -> impl Iterator<Item = usize> {
        let buffer = |&(_, target): &(usize, Target)| {
            if let Target::Global { buffer, .. } = target { Some(buffer) } else { None }
        };
        self.targets.iter().filter_map(buffer)
    }
}

/// A set of buffers has a bit for each; the last one stands for all from there on.
pub fn bit(buffer: usize) -> u64 {
    1 << buffer.min(63)
}

/// Rows that are asked for before they are written: they lie far from each other.
const AHEAD: usize = 8;

/// Bytes of the pages by which writes are found again: a word that is read again and again often lies close behind one that is counted up.
const PAGE: u64 = 64;

/// Where writes are found again.
#[derive(Debug, Default)]
struct Index {
    /// Items that change bytes of a page.
    pages: FxHashMap<(usize, u64), Vec<u32>>,
    /// So many items have been looked at.
    known: usize,
}

impl Index {
    fn add(&mut self, n: u32, buffer: usize, first: u64, end: u64) {
        for page in first / PAGE..=(end - 1) / PAGE {
            let list = self.pages.entry((buffer, page)).or_default();
            if list.last() != Some(&n) {
                list.push(n);
            }
        }
    }

    /// Looks at the items that came since.
    fn update(&mut self, items: &[(u64, Item)]) {
        for (n, (_, item)) in (0..).zip(items).skip(self.known) {
            match item {
                Item::Write(write) => {
                    for &runs in &write.runs {
                        runs.starts().for_each(|at| self.add(n, runs.buffer, at, at + u64::from(runs.bytes)));
                    }
                }
                Item::Atomic(job) => {
                    job.places().for_each(|(buffer, at)| self.add(n, buffer, at, at + job.bytes as u64));
                }
                _ => {}
            }
        }
        self.known = items.len();
    }
}

/// What a cluster did in this window, in order.
#[derive(Debug, Default)]
pub struct Outbox<'a> {
    items: Vec<(u64, Item<'a>)>,
    /// Made when somebody reads a buffer that was written: most are not.
    index: RefCell<Index>,
    /// A [`bit`] for each buffer that is written.
    written: u64,
}

impl<'a> Outbox<'a> {
    /// Adds an item. Items are in order of time.
    pub fn push(&mut self, time: u64, item: Item<'a>) {
        match &item {
            Item::Write(write) => write.runs.iter().for_each(|runs| self.written |= bit(runs.buffer)),
            Item::Atomic(job) => job.places().for_each(|(buffer, _)| self.written |= bit(buffer)),
            _ => {}
        }
        let time = self.items.last().map_or(time, |last| last.0.max(time));
        self.items.push((time, item));
    }

    /// A [`bit`] for each buffer that is written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether the cluster may have written to a buffer what is not there yet.
    pub fn has_written(&self, buffer: usize) -> bool {
        self.written & bit(buffer) != 0
    }

    /// All items, with their times; the outbox is empty then.
    pub fn take(&mut self) -> Vec<(u64, Item<'a>)> {
        *self.index.get_mut() = Index::default();
        self.written = 0;
        std::mem::take(&mut self.items)
    }

    /// Reads global memory as the cluster sees it. The caller has checked the bounds.
    pub fn copy(&self, global: &Global, buffer: usize, at: u64, len: usize, into: &mut Memory, to: usize) {
        let base = &global.buffers[buffer].memory;
        if !self.has_written(buffer) || len == 0 {
            into.copy_from(to, base, at as usize, len);
            return;
        }
        let end = at + len as u64;
        let pages = at / PAGE..=(end - 1) / PAGE;
        let mut index = self.index.borrow_mut();
        index.update(&self.items);
        // Elements that are combined lie within 16 bytes.
        let from = at & !15;
        let upto = end.next_multiple_of(16).min(base.bytes.len() as u64);
        // From the latest on, down to one that has overwritten all that is asked for: a loop may have stored there a thousand times.
        let (mut needed, mut combined) = (vec![], false);
        let mut hits: SmallVec<[&[u32]; 2]> =
            pages.filter_map(|page| Some(&index.pages.get(&(buffer, page))?[..])).collect();
        while let Some(n) = hits.iter().filter_map(|hits| hits.last().copied()).max() {
            hits.iter_mut().for_each(|hits| *hits = hits.strip_suffix(&[n]).unwrap_or(hits));
            match &self.items[n as usize].1 {
                Item::Write(write) if !write.touches(buffer, from..upto) => continue,
                Item::Atomic(job) if !job.touches(buffer, from..upto) => continue,
                Item::Write(write) if write.how.is_none() => {
                    needed.push(n);
                    if !combined && write.covers(buffer, at..end) || write.covers(buffer, from..upto) {
                        break;
                    }
                }
                _ => {
                    needed.push(n);
                    combined = true;
                }
            }
        }
        if needed.is_empty() {
            into.copy_from(to, base, at as usize, len);
            return;
        }
        let mut seen = Memory::undefined((upto - from) as usize);
        seen.copy_from(0, base, from as usize, (upto - from) as usize);
        for n in needed.into_iter().rev() {
            match &self.items[n as usize].1 {
                Item::Write(write) => write.apply(buffer, from, &mut seen),
                Item::Atomic(job) => job.apply(buffer, from, &mut seen),
                _ => {}
            }
        }
        into.copy_from(to, &seen, (at - from) as usize, len);
    }

    /// Whether some of these bytes, of which there are up to 16, are blank.
    pub fn any_blank(&self, global: &Global, buffer: usize, at: u64, len: usize) -> bool {
        if !self.has_written(buffer) {
            return global.buffers[buffer].memory.any_blank(at as usize, len);
        }
        let mut seen = Memory::undefined(16);
        self.copy(global, buffer, at, len, &mut seen, 0);
        seen.any_blank(0, len)
    }

    /// Up to 16 bytes, lowest first, and whether all are defined.
    pub fn load(&self, global: &Global, buffer: usize, at: u64, len: usize) -> (u128, bool) {
        if !self.has_written(buffer) {
            return global.buffers[buffer].memory.load(at as usize, len);
        }
        let mut value = Memory::undefined(16);
        self.copy(global, buffer, at, len, &mut value, 0);
        value.load(0, len)
    }
}

impl Write {
    /// Whether some of its runs may lie there.
    fn touches(&self, buffer: usize, place: Range<u64>) -> bool {
        self.runs.iter().any(|runs| {
            let end = runs.first + u64::from(runs.count.saturating_sub(1)) * runs.pitch + u64::from(runs.bytes);
            runs.buffer == buffer && runs.first < place.end && place.start < end
        })
    }

    /// Whether one of its runs covers all of it.
    fn covers(&self, buffer: usize, place: Range<u64>) -> bool {
        self.runs
            .iter()
            .filter(|runs| runs.buffer == buffer)
            .any(|runs| runs.starts().any(|start| start <= place.start && place.end <= start + u64::from(runs.bytes)))
    }

    /// Writes the part that lies in a piece of a buffer, which begins at `from`.
    pub fn apply(&self, buffer: usize, from: u64, piece: &mut Memory) {
        let end = from + piece.bytes.len() as u64;
        let mut dense = 0;
        for &runs in &self.runs {
            let bytes = u64::from(runs.bytes);
            for start in runs.starts() {
                let (low, high) = (start.max(from), (start + bytes).min(end));
                if runs.buffer == buffer && low < high {
                    let at = dense + (low - start) as usize;
                    self.put(piece, (low - from) as usize, at, (high - low) as usize);
                }
                dense += runs.bytes as usize;
            }
        }
    }

    /// Writes it all. The bounds have been checked.
    pub fn finish(&self, global: &mut Global) {
        let mut dense = 0;
        let whole = self.blank || self.data.all_defined(0, self.data.bytes.len());
        let plain = whole && !self.blank && self.how.is_none() && !self.data.has_blanks();
        for &runs in &self.runs {
            let Global { buffers, published, .. } = &mut *global;
            let buffer = &mut buffers[runs.buffer];
            buffer.whole &= whole;
            let plain = plain && !buffer.memory.has_blanks();
            let (len, ahead) = (runs.bytes as usize, AHEAD * runs.pitch as usize);
            for start in runs.starts() {
                let at = start as usize;
                if plain {
                    prefetch(buffer.memory.bytes.get(at + ahead..at + ahead + len).unwrap_or_default());
                    buffer.memory.write(at, &self.data.bytes[dense..dense + len]);
                } else {
                    self.put(&mut buffer.memory, at, dense, len);
                }
                published.forget_range(runs.buffer, start, len as u64);
                dense += len;
            }
        }
    }

    /// Of a reduction, the first byte that it is combined with and that holds nothing.
    pub fn combines_with_nothing(&self, global: &Global) -> Option<(usize, u64)> {
        if self.how.is_none() || self.blank {
            return None;
        }
        self.runs.iter().find_map(|runs| {
            let buffer = &global.buffers[runs.buffer];
            if buffer.whole {
                return None;
            }
            let bytes = |start: u64| start as usize..start as usize + runs.bytes as usize;
            let nothing = |at: &usize| !buffer.memory.is_defined(*at) && !buffer.memory.is_blank(*at);
            let lacks = |start: &u64| !buffer.memory.all_defined(*start as usize, runs.bytes as usize);
            let at = runs.starts().filter(lacks).find_map(|start| bytes(start).find(nothing))?;
            Some((runs.buffer, at as u64))
        })
    }

    /// Writes some of its bytes, from `at` on.
    fn put(&self, memory: &mut Memory, to: usize, at: usize, len: usize) {
        if self.blank {
            memory.bytes[to..to + len].fill(POISON);
            return memory.write_blank(to, len);
        }
        match self.how {
            None => memory.copy_from(to, &self.data, at, len),
            Some((how, element)) => reduce(memory, to, &self.data, at, len, element, how),
        }
    }

    /// Whether memory holds exactly these bytes already.
    pub fn changes_nothing(&self, global: &Global) -> bool {
        let mut dense = 0;
        self.how.is_none()
            && !self.blank
            && !self.data.has_blanks()
            && self.runs.iter().all(|runs| {
                runs.starts().all(|start| {
                    let memory = &global.buffers[runs.buffer].memory;
                    let (at, len) = (start as usize, runs.bytes as usize);
                    let same = memory.bytes[at..at + len] == self.data.bytes[dense..dense + len]
                        && memory.all_defined(at, len)
                        && !memory.any_blank(at, len)
                        && self.data.all_defined(dense, len);
                    dense += len;
                    same
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::arithmetic::exact::tests::Random;

    /// Plain writes, in one piece and in several that may overlap, defined and not, and sums: what is read is what all of them leave, one
    /// after the other.
    #[test]
    fn a_cluster_reads_what_all_its_writes_leave() {
        let mut random = Random(11);
        let size = PAGE + 64;
        for case in 0..60 {
            let global = Global::of(Memory::zeros(size as usize));
            let (mut outbox, mut all) = (Outbox::default(), global.buffers[0].memory.clone());
            for step in 0..60 {
                let mut any = |n: u64| random.next() % n;
                // Close together, on both sides of a page's end.
                let (first, how) =
                    (PAGE - 64 + 8 * any(12), if any(4) == 0 { Some((Reduction::Add, Element::U64)) } else { None });
                let bytes = if how.is_some() { 8 } else { [1, 4, 8, 16, 40][any(5) as usize] };
                let (count, pitch) = [(1, 0), (3, 8), (2, 0)][any(3) as usize];
                let mut data = Memory::from_bytes((0..bytes * count).map(|_| any(256) as u8).collect::<Vec<u8>>());
                if any(5) == 0 {
                    data.mark(0, 1, false);
                }
                let runs = vec![Runs { buffer: 0, first, bytes: bytes as u32, count: count as u32, pitch }];
                let stamp = Stamp::new(Default::default(), 1, 0, 0);
                let write = Write { runs, data, blank: false, how, stamp, known: Default::default() };
                write.apply(0, 0, &mut all);
                outbox.push(0, Item::Write(Box::new(write)));
                let (at, len) = (PAGE - 64 + any(100), 1 + any(16) as usize);
                let (got, want) = (outbox.load(&global, 0, at, len), all.load(at as usize, len));
                assert_eq!(got.1, want.1, "case {case}, step {step}: whether {len} bytes from {at} on are defined");
                if got.1 {
                    assert_eq!(got.0, want.0, "case {case}, step {step}: {len} bytes from {at} on");
                }
            }
        }
    }
}
