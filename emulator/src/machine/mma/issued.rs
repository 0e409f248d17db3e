//! MMAs that were issued, complete or not: what a later one, or a load, has to do with the ones before.

use super::instruction_descriptor::Accumulator;
use crate::machine::explain::other_accumulator::Sum;
use crate::machine::layout::loaded::Brought;
use crate::machine::state::Heard;
use crate::machine::tensor_memory::{Halves, Layout, SharedDescriptor};
use crate::order::{ActorId, Stamp, Views};
use crate::program::kind::Kind;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};

/// So many of the MMAs before one are looked at for the reason why it adds to nothing.
const RECENT: usize = 64;

/// MMAs that were issued, whether they are complete or not.
#[derive(Debug, Default)]
pub struct Issued {
    /// The last of them.
    recent: VecDeque<Recent>,
    /// The last MMA that follows one of another warp in the pipeline, behind that.
    pub pipelined: Option<[Stamp; 2]>,
    /// How often each warp has issued an MMA by a statement.
    times: FxHashMap<(usize, u32), u64>,
    /// The last copies to tensor memory.
    pub copies: crate::machine::tensor_memory::copy::IssuedCopies,
    /// The statement of each warp's last one, and of the last one of all.
    pub sites: FxHashMap<usize, u32>,
    pub last: Option<u32>,
    /// Of a load of an accumulator that is not of FP32, by its statement and first register: the statement that computes with what it
    /// loads as with FP32 numbers.
    pub taken_for_fp32: FxHashMap<(u32, Option<u16>), Option<u32>>,
    /// The last MMA that a warp knew of when it loaded these columns last: warp, first column, columns.
    loads: FxHashMap<(usize, u32, u32), Option<Stamp>>,
    /// How often it was asked of a warp's load whether it reads another accumulator than it should.
    pub asked: FxHashMap<(usize, u32), usize>,
    /// The accumulators of each thread.
    sums: FxHashMap<ActorId, Sums>,
    /// Accumulators that overlap, of which that is told, and the statement at which it is.
    pub overlapping: Vec<([Extents; 2], u32)>,
    /// The first MMA of an accumulator that begins within another one of the same thread and size, and where both begin.
    pub shifted: FxHashMap<u32, [Extents; 2]>,
    /// The statements of their MMAs, and the columns that both have.
    pub astray: BTreeSet<(u32, u32, u32)>,
}

/// The accumulators of a thread.
pub type Sums = SmallVec<[Sum; 2]>;

/// An accumulator: its first column, M and N.
pub type Extents = (u32, u32, u32);

/// So many accumulators of a thread are remembered: those that it has used last.
const MOST_SUMS: usize = 8;

/// An MMA that was issued.
#[derive(Debug, Clone, Copy)]
pub struct Recent {
    pub warp: usize,
    /// The first of the CTAs that take part, and how many do.
    pub ctas: (usize, usize),
    /// The accumulator: its first column, M and N, and the columns that it takes.
    pub d: Extents,
    pub columns: u32,
    pub layout: Layout,
    pub kind: Kind,
    /// What it accumulates in.
    pub of: Accumulator,
    /// What it multiplies: where A begins, in either memory, and B.
    pub operands: (u32, u32),
    /// B, and whether its columns lie side by side.
    pub b: (SharedDescriptor, bool),
    /// What tells what lies there from what lay there before, of operands in shared memory of which that is known.
    pub brought: [Option<Brought>; 2],
    /// Lanes that it does not write, of each CTA.
    pub disabled: [u128; 2],
    /// It adds to what was there.
    pub adds: bool,
    /// Somebody has read the accumulator since.
    pub read: bool,
    pub stamp: Stamp,
    /// How often its warp had issued one by this statement before.
    pub nth: u64,
    /// The epoch of its warp when it was issued.
    pub at: u32,
}

impl Recent {
    /// Whether its accumulator has some of these columns, in whatever CTA.
    fn overlaps(&self, column: u32, columns: u32) -> bool {
        self.d.0 < column + columns && column < self.d.0 + self.columns
    }

    /// Whether it has some lanes of these halves.
    fn shares(&self, halves: Halves) -> bool {
        [false, true].into_iter().any(|upper| self.layout.halves().has(upper) && halves.has(upper))
    }

    /// How many lanes of a CTA it leaves as they were.
    pub fn lanes_left(&self, cta: usize) -> u32 {
        cta.checked_sub(self.ctas.0).and_then(|place| self.disabled.get(place)).map_or(0, |lanes| lanes.count_ones())
    }

    fn lies_in(&self, cta: usize, halves: Halves, column: u32, columns: u32) -> bool {
        let (first, count) = self.ctas;
        (first..first + count).contains(&cta) && self.shares(halves) && self.overlaps(column, columns)
    }
}

impl Issued {
    /// How often a warp has issued an MMA by this statement before; it does once more.
    pub fn nth(&mut self, warp: usize, site: u32) -> u64 {
        let times = self.times.entry((warp, site)).or_default();
        *times += 1;
        *times - 1
    }

    pub fn add(&mut self, mma: Recent) {
        let sums = self.sums.entry(mma.stamp.actor).or_default();
        let new = Sum { column: mma.d.0, columns: mma.columns, epoch: mma.stamp.epoch };
        sums.retain(|sum| (sum.column, sum.columns) != (new.column, new.columns));
        sums.push(new);
        if sums.len() > MOST_SUMS {
            sums.remove(0);
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(mma);
        self.sites.insert(mma.warp, mma.stamp.site);
        self.last = Some(mma.stamp.site);
    }

    /// The accumulators of the thread whose MMAs are these.
    pub fn sums_of(&self, actor: ActorId) -> Sums {
        self.sums.get(&actor).cloned().unwrap_or_default()
    }

    /// Whether a warp has loaded some of these columns when it knew of such an MMA.
    pub fn has_loaded(&self, warp: usize, (column, columns): (u32, u32), of: impl Fn(Stamp) -> bool) -> bool {
        self.loads.iter().any(|(&(w, first, count), &known)| {
            w == warp && first < column + columns && column < first + count && known.is_some_and(&of)
        })
    }

    /// The last one of the same accumulator, shape and kind.
    pub fn same_sum(&self, ctas: (usize, usize), d: Extents, kind: Kind) -> Option<&Recent> {
        self.recent.iter().rev().find(|m| (m.ctas, m.d, m.kind) == (ctas, d, kind))
    }

    /// The last ones of a warp.
    pub fn of_warp(&self, warp: usize) -> impl Iterator<Item = &Recent> {
        self.recent.iter().filter(move |mma| mma.warp == warp)
    }

    /// The statements of a warp's last MMAs, the last one first.
    pub fn sites_of(&self, warp: usize) -> impl Iterator<Item = u32> {
        self.recent.iter().rev().filter(move |mma| mma.warp == warp).map(|mma| mma.stamp.site)
    }

    /// Whether there was a copy to tensor memory.
    pub fn has_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// The last one whose accumulator has some of these columns: its place, and its statement.
    pub fn accumulator(&self, column: u32, columns: u32) -> Option<Stamp> {
        self.recent.iter().rev().find(|m| m.overlaps(column, columns)).map(|m| m.stamp)
    }

    /// The last one whose accumulator has some of these columns of a CTA.
    pub fn last_of(&self, cta: usize, halves: Halves, column: u32, columns: u32) -> Option<&Recent> {
        self.recent.iter().rev().find(|m| m.lies_in(cta, halves, column, columns))
    }

    /// The one of a CTA whose accumulator ends nearest in front of a column.
    pub fn ends_before(&self, cta: usize, halves: Halves, column: u32) -> Option<&Recent> {
        let end = |m: &&Recent| m.d.0 + m.columns;
        let lies = |m: &&Recent| (m.ctas.0..m.ctas.0 + m.ctas.1).contains(&cta) && m.shares(halves);
        self.recent.iter().filter(|m| lies(m) && end(m) <= column).max_by_key(end)
    }

    /// Those that a CTA takes part in.
    pub fn of_cta(&self, cta: usize) -> impl Iterator<Item = &Recent> {
        self.recent.iter().filter(move |m| (m.ctas.0..m.ctas.0 + m.ctas.1).contains(&cta))
    }

    /// The last one of a statement.
    pub fn by(&self, site: u32) -> Option<&Recent> {
        self.recent.iter().rev().find(|m| m.stamp.site == site)
    }

    /// Somebody reads these columns of a CTA.
    pub fn accumulators_read(&mut self, cta: usize, halves: Halves, column: u32, columns: u32) {
        self.recent.iter_mut().filter(|m| m.lies_in(cta, halves, column, columns)).for_each(|m| m.read = true);
    }

    /// A warp of a CTA that knows this much loads these columns: what it knows of their product, and whether it knows of one that it has not loaded.
    pub fn loads(
        &mut self,
        (warp, cta): (usize, usize),
        halves: Halves,
        (column, columns): (u32, u32),
        views: &Views,
    ) -> (Heard, bool) {
        let (mut known, mut next): (Option<&Recent>, Option<&Recent>) = (None, None);
        for mma in self.recent.iter().filter(|m| m.lies_in(cta, halves, column, columns)) {
            if views.heard(mma.stamp.actor) >= mma.stamp.epoch {
                (known, next) = (Some(mma), None);
            } else {
                next = next.or(Some(mma));
            }
        }
        let stamp = known.map(|m| m.stamp);
        let before = self.loads.insert((warp, column, columns), stamp).flatten();
        let heard = match known.zip(next) {
            Some(_) if stamp == before => Heard::Nothing,
            // Of what stands beside the product that it knows it has heard nothing.
            Some((known, next)) if !known.overlaps(next.d.0, next.columns) || !known.shares(next.layout.halves()) => {
                Heard::Nothing
            }
            Some((_, next)) if next.adds => Heard::Part,
            Some(_) => Heard::Whole,
            None => Heard::Nothing,
        };
        (heard, stamp.is_some() && stamp != before)
    }

    /// Whether a recent one of the same warp wrote some of these columns.
    pub fn wrote(&self, warp: usize, halves: Halves, column: u32, n: u32) -> bool {
        let overlap = |m: &Recent| m.shares(halves) && m.d.0 < column + n && column < m.d.0 + m.d.2;
        self.recent.iter().rev().any(|m| m.warp == warp && overlap(m))
    }

    /// The last one of the same warp that wrote some of these columns as another accumulator, or by another kind of MMA.
    pub fn aliased(&self, new: &Recent) -> Option<Recent> {
        let overlap = |m: &&Recent| m.shares(new.layout.halves()) && m.overlaps(new.d.0, new.columns);
        let differs = |m: &&Recent| m.d != new.d || m.kind != new.kind;
        self.recent.iter().rev().find(|m| m.warp == new.warp && differs(m) && overlap(m)).copied()
    }
}
