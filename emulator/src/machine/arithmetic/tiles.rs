//! FP32 products in tiles of BF16 numbers.
//!
//! An FP16 number is the sum of two BF16 numbers: eight of its eleven significant bits, and the rest. So a product of two
//! is the sum of four products that tiles compute exactly; a BF16 number is one already.
//!
//! Each step is added to D by itself, so that it does not matter how many are computed together. Tiles take subnormal
//! numbers for zeros. A step goes there if its operands are zeros, or lie within [`SMALLEST`] and [`LARGEST`]: then
//! products, and whatever sums of them, are multiples of 2^-100, and none is infinite. With a D up to 2^-101 a sum is D or
//! at least 2^-101; with a larger D, it is a multiple of 2^-124. So only a D that is subnormal before needs care.

use super::product::{Line, Product, d_bits, d_values, nth, read_cells, turned, values, write_cells};
use super::simd::{Lanes, Tiles, WIDTH, flat_mut};
use super::strip::Strip;
use crate::machine::tma::prefetches::Prefetches;
use crate::numerics::{MmaStep, Numerics};
use std::ops::Range;

/// Rows and columns of the sums that are computed together: two tiles by two.
pub const BLOCK: usize = 2 * WIDTH;

/// Sums: rows of two lines.
pub type Sums = [[Line<[u32; WIDTH]>; 2]; BLOCK];

/// What operands must not be below, and above, as FP32 numbers: 2^-43 and 2^59.
const SMALLEST: u32 = (127 - 43) << 23;
const LARGEST: u32 = (127 + 59) << 23;
/// The smallest normal FP32 number.
const NORMAL: u32 = 1 << 23;
const MAGNITUDE: u32 = 0x7fff_ffff;

/// How the 16 numbers of a row of A, or of a column of B, lie in the pairs that are multiplied and added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Two BF16 numbers.
    Bf16,
    /// Both parts of an FP16 number. Of B: in one tile the first part twice, in the next the second.
    Split,
}

impl Form {
    /// Of both operands; they have the same.
    fn of(step: &MmaStep) -> Form {
        if step.a_bf16 { Form::Bf16 } else { Form::Split }
    }

    /// Pairs of 16 numbers: columns of a tile of A, rows of a tile of B.
    pub fn pairs(self) -> usize {
        match self {
            Form::Bf16 => 8,
            Form::Split => 16,
        }
    }

    /// Rows of the tiles that hold 16 columns of B.
    pub fn lines(self) -> usize {
        match self {
            Form::Bf16 => 8,
            Form::Split => 32,
        }
    }
}

/// Operands in pairs. Kept from one product to the next, for its memory.
#[derive(Debug, Default)]
pub struct Factors {
    /// All rows of one step after the other, up to a multiple of [`BLOCK`].
    a: Vec<Line<[u32; WIDTH]>>,
    /// The tiles of all panels, all steps of one after the other.
    b: Vec<Line<[u32; WIDTH]>>,
    /// Which steps have a B for tiles.
    b_fits: Vec<bool>,
}

/// The tiles for such products, if they are to be had. Not with FP16 accumulators: those are rounded after each MMA, and
/// vectors do that faster.
pub fn of(numerics: Numerics, step: &MmaStep) -> Option<Tiles> {
    let suit = numerics == Numerics::Fast && step.a_bf16 == step.b_bf16 && step.d_f32;
    if suit { Tiles::new(Form::of(step)) } else { None }
}

/// The largest and the smallest magnitude of some FP32 numbers other than zero; the latter counted from above.
struct Extent<L: Lanes> {
    most: L::Ints,
    gap: L::Ints,
}

impl<L: Lanes> Extent<L> {
    #[inline(always)]
    fn new() -> Extent<L> {
        Extent { most: L::splat(0), gap: L::splat(0) }
    }

    #[inline(always)]
    fn add(&mut self, bits: L::Ints, bf: bool) {
        let (magnitude, zero) = (L::and(bits, L::splat(MAGNITUDE)), L::splat(0));
        self.most = L::max(self.most, magnitude);
        if !bf {
            // No FP16 number is too small.
            return;
        }
        let gap = L::if_greater(magnitude, zero, L::sub(L::splat(MAGNITUDE), magnitude), zero);
        self.gap = L::max(self.gap, gap);
    }

    #[inline(always)]
    fn fits(&self) -> bool {
        L::all_within(self.most, 0, LARGEST as i32) && L::all_within(self.gap, 0, (MAGNITUDE - SMALLEST) as i32)
    }
}

/// FP32 sums, steps that do not fit the tiles in blocks of R rows and C vectors.
#[inline(always)]
pub fn run<L: Lanes, const R: usize, const S: usize, const C: usize>(mut product: Product, mut tiles: Tiles) {
    let steps = product.a.len();
    let fits = prepare_a::<L>(&mut product);
    if !product.same_b {
        prepare_b::<L>(&mut product);
    }
    let fits: Vec<bool> = fits.iter().zip(&product.factors.tiles.b_fits).map(|(&a, &b)| a && b).collect();
    let all = fits.iter().all(|&fits| fits);
    if !all {
        product.prepare_b::<L>();
    }
    let together = if all { steps } else { 1 };
    let mut panel = 0;
    for strip in product.strips {
        for first in (0..steps).step_by(together) {
            let (step, which) = (nth(&product.step, first), first..first + together);
            if fits[first] {
                let columns = strip.columns.len();
                let factors = &product.factors.tiles;
                let some = Steps { step: &step, factors, which, of: steps, columns, panel };
                some.add::<L>(&mut tiles, strip, product.cells, &mut product.prefetches);
            } else {
                product.fast::<L, R, S, C>(which, strip, panel / 2);
            }
        }
        panel += strip.panels();
    }
}

/// Eight significant bits of FP16 numbers, and what is left, each in the upper half of a word.
#[inline(always)]
fn split<L: Lanes>(values: L::Floats) -> [L::Ints; 2] {
    let first = L::and(L::bits(values), L::splat(0xffff_0000));
    [first, L::bits(L::mul_add(L::floats(first), L::splat_float(-1.0), values))]
}

/// The upper halves of words, side by side.
#[inline(always)]
fn pairs<L: Lanes>(first: L::Ints, second: L::Ints) -> L::Ints {
    L::or(L::right::<16>(first), second)
}

/// Says which steps have an A for tiles.
#[inline(always)]
fn prepare_a<L: Lanes>(product: &mut Product) -> Vec<bool> {
    let MmaStep { a_bf16, negate_a, .. } = product.step;
    let height = product.a.first().map_or(0, |rows| rows.len()).max(1).next_multiple_of(BLOCK);
    let lines = &mut product.factors.tiles.a;
    lines.resize(product.a.len() * height, Line::default());
    let mut fits = Vec::with_capacity(product.a.len());
    for (rows, lines) in product.a.iter().zip(lines.chunks_exact_mut(height)) {
        let mut extent = Extent::<L>::new();
        for (row, to) in rows.iter().zip(lines) {
            let values = values::<L>(row, a_bf16, negate_a);
            extent.add(L::bits(values), a_bf16);
            if a_bf16 {
                let flip = if negate_a { 0x8000_8000 } else { 0 };
                for (to, &[x, y]) in to.0.iter_mut().zip(row.as_chunks().0) {
                    *to = (u32::from(x) | u32::from(y) << 16) ^ flip;
                }
            } else {
                let [first, rest] = split::<L>(values);
                to.0 = L::store(pairs::<L>(first, rest));
            }
        }
        fits.push(extent.fits());
    }
    fits
}

#[inline(always)]
fn prepare_b<L: Lanes>(product: &mut Product) {
    let MmaStep { b_bf16, negate_b, .. } = product.step;
    let form = Form::of(&product.step);
    let Factors { b, b_fits, .. } = &mut product.factors.tiles;
    let panels: usize = product.strips.iter().map(Strip::panels).sum();
    b.resize(panels * product.b.len() * form.lines(), Line::default());
    b_fits.clear();
    b_fits.resize(product.b.len(), true);
    let mut tiles = b.chunks_exact_mut(form.lines());
    for columns in product.strips.iter().flat_map(Strip::split) {
        for ((rows, fits), lines) in product.b.iter().zip(&mut *b_fits).zip(&mut tiles) {
            let turned = turned::<L>(&rows[columns.clone()]);
            let mut extent = Extent::<L>::new();
            for k in 0..form.pairs() {
                if b_bf16 {
                    let two = [2 * k, 2 * k + 1].map(|k| &turned[k]);
                    let two =
                        [L::bits(values::<L>(two[0], true, negate_b)), L::bits(values::<L>(two[1], true, negate_b))];
                    extent.add(two[0], true);
                    extent.add(two[1], true);
                    lines[k].0 = L::store(pairs::<L>(two[0], two[1]));
                } else {
                    let values = values::<L>(&turned[k], false, negate_b);
                    extent.add(L::bits(values), false);
                    let [first, rest] = split::<L>(values);
                    lines[k].0 = L::store(pairs::<L>(first, first));
                    lines[WIDTH + k].0 = L::store(pairs::<L>(rest, rest));
                }
            }
            *fits &= extent.fits();
        }
    }
}

/// Rows of D whose A lies in one block.
struct Rows<'a> {
    rows: &'a [(usize, usize)],
    /// If the tiles can read and write them where they are: the first cells of twice 16 rows, and how far apart rows lie.
    place: Option<([usize; 2], usize)>,
}

impl Rows<'_> {
    fn new(rows: &[(usize, usize)]) -> Rows<'_> {
        let whole = rows.len() == BLOCK && rows[0].0.is_multiple_of(BLOCK) && rows[WIDTH].0 % BLOCK == WIDTH;
        let pitch = if whole { rows[1].1.checked_sub(rows[0].1) } else { None };
        let in_order = |half: &[(usize, usize)], pitch| {
            half.iter().enumerate().all(|(n, row)| *row == (half[0].0 + n, half[0].1 + n * pitch))
        };
        let pitch = pitch.filter(|&pitch| rows.chunks(WIDTH).all(|half| in_order(half, pitch)));
        Rows { rows, place: pitch.map(|pitch| ([rows[0].1, rows[WIDTH].1], pitch)) }
    }
}

/// Some steps of a strip.
struct Steps<'a> {
    step: &'a MmaStep,
    factors: &'a Factors,
    which: Range<usize>,
    /// Out of so many.
    of: usize,
    columns: usize,
    /// The strip's first.
    panel: usize,
}

impl Steps<'_> {
    #[inline(always)]
    fn add<L: Lanes>(&self, tiles: &mut Tiles, strip: &Strip, cells: &mut [u32], prefetches: &mut Prefetches) {
        // Rows of a block that are not written are computed all the same.
        let rows: Vec<Rows> = strip.rows.chunk_by(|(a, _), (b, _)| a / BLOCK == b / BLOCK).map(Rows::new).collect();
        let blocks = || (0..self.columns).step_by(BLOCK).flat_map(|at| rows.iter().map(move |rows| (at, rows)));
        let MmaStep { accumulate, scale, .. } = *self.step;
        let place = |(at, rows): (usize, &Rows)| {
            let direct = (!accumulate || scale == 0) && at + BLOCK <= self.columns;
            rows.place.filter(|_| direct).map(|(first, pitch)| (first.map(|first| first + at), pitch))
        };
        let mut sums = Sums::default();
        // One block ahead, so that D comes to the cache meanwhile.
        let mut ahead = blocks().map(|block| (block, place(block)));
        let mut next = ahead.next();
        let mut normal = next.is_some_and(|(_, place)| self.prepare::<L>(place, cells));
        while let Some(((at, rows), place)) = next {
            next = ahead.next();
            let in_place = normal;
            prefetches.next();
            normal = next.is_some_and(|(_, place)| self.prepare::<L>(place, cells));
            match place {
                Some((first, pitch)) if in_place => self.multiply(tiles, at, rows, (cells, first, pitch)),
                _ => self.with_care::<L>(tiles, at, rows, &mut sums, cells),
            }
        }
    }

    /// Whether tiles can add to what lies there; where a sum begins, it begins with zeros. (A closure would not be compiled for these vectors: each intrinsic in it
    /// becomes a call.)
    #[inline(always)]
    fn prepare<L: Lanes>(&self, place: Option<([usize; 2], usize)>, cells: &mut [u32]) -> bool {
        let Some((first, pitch)) = place else { return false };
        if self.step.accumulate {
            return all_normal::<L>((first, pitch), cells);
        }
        for first in first {
            (0..WIDTH).for_each(|row| cells[first + row * pitch..][..BLOCK].fill(0));
        }
        true
    }

    /// A block of which D is scaled, does not lie as tiles do, or holds what tiles do not keep.
    #[inline(always)]
    fn with_care<L: Lanes>(&self, tiles: &mut Tiles, at: usize, rows: &Rows, sums: &mut Sums, cells: &mut [u32]) {
        let end = self.columns;
        let halves = [at..(at + WIDTH).min(end), (at + WIDTH).min(end)..(at + BLOCK).min(end)];
        let mut special = 0;
        if self.step.accumulate {
            for &(row, cell) in rows.rows {
                for (half, to) in halves.iter().zip(&mut sums[row % BLOCK]) {
                    let d = read_cells::<L>(&cells[cell + half.start..cell + half.end], 0);
                    let d = d_values::<L>(self.step, d);
                    special |= L::special(d);
                    to.0 = L::store(L::bits(d));
                }
            }
        } else {
            flat_mut(sums.as_flattened_mut()).fill(0);
        }
        let flat = flat_mut(sums.as_flattened_mut());
        let place = ([0, WIDTH * BLOCK], BLOCK);
        if special == 0 {
            self.multiply(tiles, at, rows, (flat, place.0, place.1));
        } else {
            self.keep_subnormal(tiles, at, rows, flat);
        }
        for &(row, cell) in rows.rows {
            for (half, from) in halves.iter().zip(&sums[row % BLOCK]) {
                let bits = d_bits::<L>(self.step, L::load(&from.0));
                write_cells::<L>(bits, &mut cells[cell + half.start..cell + half.end]);
            }
        }
    }

    #[inline(always)]
    fn multiply(&self, tiles: &mut Tiles, at: usize, rows: &Rows, d: (&mut [u32], [usize; 2], usize)) {
        let lines = Form::of(self.step).lines();
        let height = self.factors.a.len() / self.of;
        let b = [0, 1].map(|half| {
            let first = (self.panel + at / WIDTH + half) * self.of;
            &self.factors.b[(first + self.which.start) * lines..(first + self.which.end) * lines]
        });
        let a = &self.factors.a[self.which.start * height + rows.rows[0].0 / BLOCK * BLOCK..self.which.end * height];
        tiles.add(self.which.len(), (a, height), (b, lines), d);
    }

    /// Where D holds subnormal numbers: whatever else is added to them rounds to itself.
    #[cold]
    #[inline(never)]
    fn keep_subnormal(&self, tiles: &mut Tiles, at: usize, rows: &Rows, sums: &mut [u32]) {
        for n in self.which.clone() {
            let before = sums.to_vec();
            let one = Steps { which: n..n + 1, ..*self };
            one.multiply(tiles, at, rows, (sums, [0, WIDTH * BLOCK], BLOCK));
            for (d, before) in sums.iter_mut().zip(before) {
                if *d & MAGNITUDE == 0 && (1..NORMAL).contains(&(before & MAGNITUDE)) {
                    *d = before;
                }
            }
        }
    }
}

/// A block of D holds normal numbers, zeros and infinities alone.
#[inline(always)]
fn all_normal<L: Lanes>((first, pitch): ([usize; 2], usize), cells: &[u32]) -> bool {
    let mut special = 0;
    for first in first {
        for row in 0..WIDTH {
            for d in cells[first + row * pitch..][..BLOCK].as_chunks().0 {
                special |= L::special(L::floats(L::load(d)));
            }
        }
    }
    special == 0
}

#[cfg(test)]
#[path = "tiles_tests.rs"]
mod tests;
