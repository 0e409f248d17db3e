//! MMAs that are complete and not computed yet.
//!
//! A pipeline adds many products to one accumulator, and nobody looks at it in between. Those are computed together, so
//! that operands are converted once and sums stay in registers. What an MMA has read, and which cells hold a defined value
//! after it, is known when it is complete; only the sums come later: before anybody reads or writes tensor memory, or when
//! enough MMAs wait.

use super::exact_kinds::Precision;
use super::kinds;
use super::product::{Factors, Product};
use super::simd;
use super::strip::Strip;
use super::tiles;
use crate::machine::cluster::Cluster;
use crate::machine::mma::{Operands, PendingMma, Source};
use crate::machine::state::Cta;
use crate::machine::tensor_memory::{InstructionDescriptor, LANES, Layout, TensorMemory};
use crate::machine::tma::prefetches::Prefetches;
use crate::numerics::Numerics;
use crate::program::kind::Kind;
use smallvec::SmallVec;
use std::cell::RefCell;

/// Steps that are computed together. Their panels of B stay in the first-level cache.
const DEPTH: usize = 8;

/// Operands that a thread keeps for the next MMA.
const MOST_SPARE: usize = 64;

thread_local! {
    /// Memory of one product after the other. All clusters that a thread of the host runs share it: it stays in that thread's caches.
    static FACTORS: RefCell<Factors> = RefCell::default();
    static SPARE: RefCell<Vec<Operands>> = const { RefCell::new(Vec::new()) };
}

/// Does it in the memory for operands made ready that this thread has.
pub fn with_factors(work: impl FnOnce(&mut Factors)) {
    FACTORS.with_borrow_mut(work);
}

/// Memory to read operands into.
pub fn spare_operands() -> Operands {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Operands that have been multiplied: their memory is used again.
fn let_go(operands: Operands) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < MOST_SPARE {
            spare.push(operands.emptied());
        }
    });
}

/// MMAs that wait.
#[derive(Debug, Default)]
pub struct Batches {
    /// No two overlap, so that their order does not matter.
    waiting: Vec<Batch>,
    /// The parts of accumulators that were computed last, with the CTA's place in its group.
    parts: Vec<(Accumulator, usize, Vec<Part>)>,
}

/// Accumulators whose parts are kept.
const KEPT: usize = 8;

/// A part of an accumulator that lies side by side in tensor memory: first column of B, and rows with their cells.
type Part = (u32, Vec<(usize, usize)>);

/// Where an MMA adds, and to what.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Accumulator {
    /// Ranks of the CTAs: of a pair, the even one comes first.
    cta: usize,
    ctas: usize,
    descriptor: InstructionDescriptor,
    /// Its first lane and column.
    lane: u32,
    column: u32,
    /// Lanes that are not written, of each CTA.
    disabled: [u128; 2],
    /// Each lane has a row of A: see [`Layout::a_in_tensor`].
    a_by_lanes: bool,
}

/// MMAs that add to the same accumulator, one after the other. The first may overwrite or scale it.
#[derive(Debug)]
struct Batch {
    accumulator: Accumulator,
    accumulate: bool,
    scale: u32,
    steps: Vec<Operands>,
}

impl Accumulator {
    fn layout(&self) -> Layout {
        self.descriptor.layout(self.ctas, self.lane)
    }

    /// Which of the rows of A that were read belongs to a row of D in this lane.
    fn row_of_a(&self, row: u32, lane: u32) -> usize {
        (if self.a_by_lanes { lane } else { row }) as usize
    }

    fn overlaps(&self, other: &Accumulator) -> bool {
        let (end, other_end) = [self, other].map(|a| a.column + a.layout().columns(a.descriptor.n)).into();
        let shared = self.cta < other.cta + other.ctas && other.cta < self.cta + self.ctas;
        shared && self.column < other_end && other.column < end
    }

    /// The parts of the accumulator in one CTA that lie side by side in tensor memory, each in lanes of its own: first
    /// column of B, and rows with their cells.
    fn parts(&self, cta: usize) -> Vec<Part> {
        let (i, layout) = (&self.descriptor, self.layout());
        let part = |first| {
            let cell = |row: u32| {
                let (lane, at) = layout.cell(row, first, i.n);
                let written = lane < LANES && self.disabled[cta] >> lane & 1 == 0;
                written.then(|| (self.row_of_a(row, lane), TensorMemory::index(lane, self.column + at)))
            };
            (first, (0..i.m / self.ctas as u32).filter_map(cell).collect())
        };
        (0..i.n).step_by(layout.columns(i.n).max(1) as usize).map(part).collect()
    }
}

impl Batch {
    fn compute(
        &self,
        numerics: Numerics,
        cta: usize,
        parts: &[Part],
        factors: &mut Factors,
        tensor: &mut TensorMemory,
        prefetches: &mut Prefetches,
    ) {
        let Accumulator { descriptor: i, .. } = &self.accumulator;
        let run = self.accumulator.layout().columns(i.n);
        let strips: SmallVec<[Strip; 2]> = (parts.iter())
            .map(|(first, rows)| Strip { rows, columns: *first as usize..(*first + run) as usize })
            .collect();
        let step = i.step(self.accumulate, self.scale);
        let overwritten = !self.accumulate && parts.iter().all(|(_, rows)| rows.len() == LANES as usize);
        tensor.refresh(self.accumulator.column, run, overwritten);
        let a: SmallVec<[_; DEPTH]> = self.steps.iter().map(|o| &o.a[cta].bits[..]).collect();
        let b: SmallVec<[_; DEPTH]> = self.steps.iter().map(|o| &o.b.bits[..]).collect();
        simd::run(Product {
            numerics,
            step,
            a: &a,
            b: &b,
            strips: &strips,
            factors,
            // The CTAs of a pair share it.
            same_b: cta > 0,
            tiles: tiles::of(numerics, &step),
            cells: tensor.cells_mut(),
            prefetches: prefetches.lend(),
        });
    }
}

/// Says which cells of a CTA's part of D hold a defined value after an MMA, and why, if some do not.
fn define(
    accumulator: &Accumulator,
    cta: usize,
    operands: &Operands,
    accumulate: bool,
    origin: u32,
    tensor: &mut TensorMemory,
) {
    let (i, layout) = (&accumulator.descriptor, accumulator.layout());
    let (a, b) = (&operands.a[cta], &operands.b);
    let run = layout.columns(i.n);
    let whole = a.defined.is_empty() && b.defined.is_empty();
    if whole && accumulate && tensor.all_defined(accumulator.column, run) {
        return;
    }
    for first in (0..i.n).step_by(run.max(1) as usize) {
        let (mut written, mut defined) = (0u128, 0u128);
        for row in 0..i.m / accumulator.ctas as u32 {
            let lane = layout.cell(row, first, i.n).0;
            if lane < LANES {
                written |= 1 << lane;
                defined |= u128::from(a.is_defined(accumulator.row_of_a(row, lane))) << lane;
            }
        }
        written &= !accumulator.disabled[cta];
        defined &= written;
        for c in 0..run {
            let column = accumulator.column + c;
            let before = tensor.defined_lanes(column);
            let mut now = if b.is_defined((first + c) as usize) { defined } else { 0 };
            if accumulate {
                now &= before;
            }
            if written & !now != 0 && tensor.origin(column) == 0 {
                tensor.set_origin(column, origin);
            }
            if before & written != now {
                tensor.define_lanes(column, written, now);
            }
        }
    }
}

/// The accumulator of an MMA that is complete: which of its cells hold a defined value is known now.
fn defined(m: &PendingMma, operands: &Operands, ctas: &mut [impl AsMut<TensorMemory>]) -> Accumulator {
    let accumulator = Accumulator {
        cta: m.group[0],
        ctas: m.group.len(),
        descriptor: m.descriptor,
        lane: m.lane,
        column: m.column,
        disabled: m.disabled,
        a_by_lanes: matches!(m.a, Source::Tensor(_)) && m.descriptor.layout(m.group.len(), m.lane).a_in_tensor(0).0 > 0,
    };
    for (place, &c) in m.group.iter().enumerate() {
        define(&accumulator, place, operands, m.accumulate, m.origin, ctas[c].as_mut());
    }
    accumulator
}

impl Batches {
    /// An MMA of a blank cluster is complete: nothing is computed.
    pub fn define(&mut self, m: &PendingMma, operands: Operands, ctas: &mut [impl AsMut<TensorMemory>]) {
        defined(m, &operands, ctas);
        let_go(operands);
    }

    /// An MMA is complete: it waits with those that add to the same accumulator. `ctas` are those of the cluster.
    pub fn add(
        &mut self,
        numerics: Numerics,
        m: &PendingMma,
        operands: Operands,
        ctas: &mut [impl AsMut<TensorMemory>],
        prefetches: &mut Prefetches,
    ) {
        let accumulator = defined(m, &operands, ctas);
        if m.descriptor.kind != Kind::F16 {
            return self.at_once(numerics, &accumulator, m, operands, ctas, prefetches);
        }
        let joins = |b: &Batch| m.accumulate && m.scale == 0 && b.accumulator == accumulator;
        if let Some(at) = self.waiting.iter().position(joins) {
            self.waiting[at].steps.push(operands);
            if self.waiting[at].steps.len() == DEPTH {
                self.compute(at, numerics, ctas, prefetches);
            }
            return;
        }
        self.compute_overlapping(numerics, &accumulator, ctas, prefetches);
        let (accumulate, scale) = (m.accumulate, m.scale);
        let mut steps = Vec::with_capacity(DEPTH);
        steps.push(operands);
        self.waiting.push(Batch { accumulator, accumulate, scale, steps });
    }

    /// What waits for the same cells is computed.
    fn compute_overlapping(
        &mut self,
        numerics: Numerics,
        with: &Accumulator,
        ctas: &mut [impl AsMut<TensorMemory>],
        prefetches: &mut Prefetches,
    ) {
        while let Some(at) = self.waiting.iter().position(|b| b.accumulator.overlaps(with)) {
            self.compute(at, numerics, ctas, prefetches);
        }
    }

    /// An MMA of another kind than `kind::f16` is computed when it is complete.
    fn at_once(
        &mut self,
        numerics: Numerics,
        accumulator: &Accumulator,
        m: &PendingMma,
        operands: Operands,
        ctas: &mut [impl AsMut<TensorMemory>],
        prefetches: &mut Prefetches,
    ) {
        self.compute_overlapping(numerics, accumulator, ctas, prefetches);
        let run = accumulator.layout().columns(m.descriptor.n);
        for (place, &c) in m.group.iter().enumerate() {
            let parts = self.parts_of(accumulator, place);
            let parts = &self.parts[parts].2;
            let strips: Vec<Strip> = (parts.iter())
                .map(|(first, rows)| Strip { rows, columns: *first as usize..(*first + run) as usize })
                .collect();
            ctas[c].as_mut().refresh(accumulator.column, run, false);
            with_factors(|factors| {
                simd::run(kinds::Product {
                    numerics,
                    precision: Precision::FULL,
                    descriptor: &m.descriptor,
                    accumulate: m.accumulate,
                    scale: m.scale,
                    a: &operands.a[place].bits,
                    b: &operands.b.bits,
                    scales: &operands.factors[place],
                    strips: &strips,
                    factors,
                    cells: ctas[c].as_mut().cells_mut(),
                    prefetches: prefetches.lend(),
                });
            });
        }
        let_go(operands);
    }

    /// The place of the parts of an accumulator in one CTA of its group.
    fn parts_of(&mut self, accumulator: &Accumulator, place: usize) -> usize {
        let known = self.parts.iter().position(|(a, p, _)| *p == place && a == accumulator);
        known.unwrap_or_else(|| {
            if self.parts.len() == KEPT {
                self.parts.clear();
            }
            self.parts.push((accumulator.clone(), place, accumulator.parts(place)));
            self.parts.len() - 1
        })
    }

    /// Only what is known of accumulators.
    pub fn emptied(mut self) -> Batches {
        self.waiting.clear();
        self
    }

    fn compute(
        &mut self,
        at: usize,
        numerics: Numerics,
        ctas: &mut [impl AsMut<TensorMemory>],
        prefetches: &mut Prefetches,
    ) {
        let batch = self.waiting.swap_remove(at);
        let (first, count) = (batch.accumulator.cta, batch.accumulator.ctas);
        for (place, cta) in ctas[first..first + count].iter_mut().enumerate() {
            let known = self.parts_of(&batch.accumulator, place);
            let parts = &self.parts[known].2;
            with_factors(|factors| batch.compute(numerics, place, parts, factors, cta.as_mut(), prefetches));
        }
        batch.steps.into_iter().for_each(let_go);
    }

    /// All sums are computed.
    pub fn settle(&mut self, numerics: Numerics, ctas: &mut [impl AsMut<TensorMemory>], prefetches: &mut Prefetches) {
        while !self.waiting.is_empty() {
            self.compute(0, numerics, ctas, prefetches);
        }
    }
}

impl AsMut<TensorMemory> for Cta {
    fn as_mut(&mut self) -> &mut TensorMemory {
        &mut self.tensor
    }
}

impl Cluster<'_> {
    /// Tensor memory is about to be read or written.
    pub fn settle(&mut self) {
        let prefetches = &mut Prefetches::of(&mut self.unfetched, &self.global);
        self.batches.settle(self.options.numerics, &mut self.ctas, prefetches);
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
