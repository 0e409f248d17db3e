//! The product of MMAs: operands made ready, FP32 sums, results into cells.

use super::exact;
use super::simd::{Lanes, PAIR, Tiles, WIDTH, Work, prefetch_lines};
use super::strip::{Part, Row, Strip};
use super::tiles;
use crate::machine::tma::prefetches::Prefetches;
use crate::numerics::{MmaStep, Numerics};
use std::ops::Range;

/// Of a step's A sixteen rows, one after the other; of its B a vector's columns, one k after the other. Beyond the last row or column are zeros.
pub type Panel<T, const W: usize = WIDTH> = [Line<[T; W]>; 16];
/// Two panels of B side by side.
pub type Pair<T> = [[Line<[T; WIDTH]>; 2]; 16];

/// A cache line: a vector that would lie across two takes twice as long to read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(align(64))]
pub struct Line<T>(pub T);

/// Operands in the form that the loops read. Kept from one product to the next, for its memory.
#[derive(Debug, Default)]
pub struct Factors {
    /// Values, signs as negated: all steps of the panel of A that [`Numerics::Fast`] is at, with elements of 16 bits.
    panel: Vec<Panel<f32>>,
    /// Else all of A: all steps of a panel one after the other, then those of the next.
    pub a: Vec<Panel<f32>>,
    /// The same of B: the pairs of all strips.
    pub b: Vec<Pair<f32>>,
    /// Exponents as [`exact::exponent`] gives them, in the same order, of A twice in the halves of a word. [`Numerics::Fast`] has no use
    /// for them.
    pub a_exponents: Vec<Panel<u32>>,
    pub b_exponents: Vec<Panel<i16, PAIR>>,
    /// In tiles.
    pub tiles: tiles::Factors,
}

/// MMAs that add to the same D, one after the other: D = A·Bᵀ (+ D / 2^scale), for each the rows of its A and B.
pub struct Product<'a> {
    pub numerics: Numerics,
    /// What all have in common. Only the first obeys `accumulate` and `scale`: the others add to D as it is.
    pub step: MmaStep,
    pub a: &'a [&'a [[u16; 16]]],
    pub b: &'a [&'a [[u16; 16]]],
    pub strips: &'a [Strip<'a>],
    pub factors: &'a mut Factors,
    /// The factors of B are those of the product before, which was computed in tiles if this one is.
    pub same_b: bool,
    /// What [`tiles::of`] gives, or `None`: then vectors do it.
    pub tiles: Option<Tiles>,
    pub cells: &'a mut [u32],
    /// What is asked for meanwhile.
    pub prefetches: Prefetches<'a>,
}

impl Work for Product<'_> {
    /// FP32 sums in blocks of R or S rows and C vectors, exact ones in blocks of E rows and two vectors.
    #[inline(always)]
    fn run<L: Lanes, const R: usize, const S: usize, const C: usize, const E: usize>(mut self) {
        if let Some(tiles) = self.tiles.take() {
            return tiles::run::<L, R, S, C>(self, tiles);
        }
        if self.numerics == Numerics::Exact {
            self.prepare_a::<L>();
        }
        if !self.same_b {
            self.prepare_b::<L>();
        }
        let steps = self.a.len();
        let mut pair = 0;
        for strip in self.strips {
            match self.numerics {
                Numerics::Fast => {
                    // An FP16 accumulator is rounded after each MMA.
                    let together = if self.step.d_f32 { steps.max(1) } else { 1 };
                    for first in (0..steps).step_by(together) {
                        self.fast::<L, R, S, C>(first..first + together, strip, pair);
                    }
                }
                Numerics::Exact => {
                    let what = [0, 1].map(|n| nth(&self.step, n));
                    exact::strip::<L, E>(
                        &what,
                        self.factors,
                        (self.a, self.b),
                        strip,
                        pair,
                        self.cells,
                        &mut self.prefetches,
                    );
                }
            }
            pair += strip.pairs();
        }
    }
}

/// What the n-th step does.
#[inline(always)]
pub fn nth(step: &MmaStep, n: usize) -> MmaStep {
    if n == 0 { *step } else { MmaStep { accumulate: true, scale: 0, ..*step } }
}

impl Product<'_> {
    /// FP32 sums of some steps, of a strip whose pairs begin at `pair`.
    #[inline(always)]
    pub fn fast<L: Lanes, const R: usize, const S: usize, const C: usize>(
        &mut self,
        which: Range<usize>,
        strip: &Strip,
        pair: usize,
    ) {
        let step = &nth(&self.step, which.start);
        let Factors { panel, b, .. } = &mut *self.factors;
        let b = Pairs { all: b, which: which.clone(), steps: self.b.len() };
        let a = Filled { step, rows: &self.a[which], panel };
        fast::<L, R, S, C>(step, a, (&b, pair), strip, self.cells, &mut self.prefetches);
    }

    /// All of A, for [`Numerics::Exact`].
    #[inline(always)]
    fn prepare_a<L: Lanes>(&mut self) {
        let Factors { a, a_exponents, .. } = &mut *self.factors;
        let (bf, steps) = (self.step.a_bf16, self.a.len());
        let panels = self.a.first().map_or(0, |rows| rows.len().div_ceil(WIDTH));
        a.resize(panels * steps, [Line([0.0; WIDTH]); 16]);
        a_exponents.resize(panels * steps, [Line([0; WIDTH]); 16]);
        for (n, rows) in self.a.iter().enumerate() {
            for (panel, rows) in rows.chunks(WIDTH).enumerate() {
                fill_panel::<L>(&self.step, rows, &mut a[panel * steps + n]);
                for (Line(to), row) in a_exponents[panel * steps + n].iter_mut().zip(rows) {
                    *to = exponents(row, bf).map(|e| u32::from(e as u16) << 16 | u32::from(e as u16));
                }
            }
        }
    }

    #[inline(always)]
    pub fn prepare_b<L: Lanes>(&mut self) {
        let Factors { b, b_exponents, .. } = &mut *self.factors;
        let (bf, steps) = (self.step.b_bf16, self.b.len());
        let pairs: usize = self.strips.iter().map(Strip::pairs).sum();
        let exact = self.numerics == Numerics::Exact;
        b.resize(pairs * steps, [[Line([0.0; WIDTH]); 2]; 16]);
        b_exponents.resize(if exact { pairs * steps } else { 0 }, [Line([0; PAIR]); 16]);
        for (panel, columns) in self.strips.iter().flat_map(Strip::split).enumerate() {
            let (pair, half) = (panel / 2, panel % 2);
            for (n, rows) in self.b.iter().enumerate() {
                let turned = fill_half::<L>(&self.step, &rows[columns.clone()], &mut b[pair * steps + n], half);
                if exact {
                    for (to, row) in b_exponents[pair * steps + n].iter_mut().zip(&turned) {
                        to.0[half * WIDTH..][..WIDTH].copy_from_slice(&exponents(row, bf));
                    }
                }
            }
        }
    }
}

/// Fills a panel of A.
#[inline(always)]
fn fill_panel<L: Lanes>(step: &MmaStep, rows: &[[u16; 16]], to: &mut Panel<f32>) {
    for (Line(to), row) in to.iter_mut().zip(rows) {
        *to = L::store_floats(values::<L>(row, step.a_bf16, step.negate_a));
    }
    to[rows.len()..].fill(Line::default());
}

/// Fills one half of a pair of B; gives its elements as they were, one k after the other.
#[inline(always)]
fn fill_half<L: Lanes>(step: &MmaStep, columns: &[[u16; 16]], to: &mut Pair<f32>, half: usize) -> [[u16; WIDTH]; 16] {
    let turned = turned::<L>(columns);
    for (to, row) in to.iter_mut().zip(&turned) {
        to[half].0 = L::store_floats(values::<L>(row, step.b_bf16, step.negate_b));
    }
    turned
}

/// Columns of B, one k after the other; zeros behind the last.
#[inline(always)]
pub fn turned<L: Lanes>(rows: &[[u16; 16]]) -> [[u16; WIDTH]; 16] {
    match rows.first_chunk() {
        Some(rows) => L::transpose(rows),
        None => {
            let mut padded = [[0; 16]; WIDTH];
            padded[..rows.len()].copy_from_slice(rows);
            L::transpose(&padded)
        }
    }
}

/// 16-bit elements as FP32.
#[inline(always)]
pub fn values<L: Lanes>(bits: &[u16; 16], bf: bool, negate: bool) -> L::Floats {
    let values = if bf { L::bf16(bits) } else { L::f16(bits) };
    L::mul(values, L::splat_float(if negate { -1.0 } else { 1.0 }))
}

/// An FP16 number as FP32. Without branches, so that loops become vector code.
#[inline(always)]
pub fn f16_value(bits: u16) -> f32 {
    // The exponent's bias differs by 112; a product rather than a sum, since it normalises subnormal numbers too.
    let magnitude = (f32::from_bits(u32::from(bits & 0x7fff) << 13) * f32::from_bits((112 + 127) << 23)).to_bits();
    let special = u32::from(bits & 0x7c00 == 0x7c00).wrapping_neg() & 0x7f80_0000;
    f32::from_bits(magnitude | special | u32::from(bits & 0x8000) << 16)
}

#[inline(always)]
fn exponents(bits: &[u16; 16], bf: bool) -> [i16; 16] {
    let mut exponents = [0; 16];
    for (to, &bits) in exponents.iter_mut().zip(bits) {
        *to = if bf { exact::exponent::<7, 8>(bits) } else { exact::exponent::<10, 5>(bits) };
    }
    exponents
}

/// Some steps of A, as the loops over FP32 read them.
pub trait Panels {
    /// Those of a panel, one after the other.
    fn panel<L: Lanes>(&mut self, panel: usize) -> &[Panel<f32>];
}

/// All panels, all steps of one after the other: so many.
pub struct Ready<'a>(pub &'a [Panel<f32>], pub usize);

impl Panels for Ready<'_> {
    #[inline(always)]
    fn panel<L: Lanes>(&mut self, panel: usize) -> &[Panel<f32>] {
        &self.0[panel * self.1..][..self.1]
    }
}

/// Rows of 16-bit elements, of which a panel is put into FP32 when it is wanted.
struct Filled<'a> {
    step: &'a MmaStep,
    rows: &'a [&'a [[u16; 16]]],
    panel: &'a mut Vec<Panel<f32>>,
}

impl Panels for Filled<'_> {
    #[inline(always)]
    fn panel<L: Lanes>(&mut self, panel: usize) -> &[Panel<f32>] {
        self.panel.resize(self.rows.len(), [Line([0.0; WIDTH]); 16]);
        for (rows, to) in self.rows.iter().zip(&mut *self.panel) {
            let rows = &rows[panel * WIDTH..];
            fill_panel::<L>(self.step, &rows[..rows.len().min(WIDTH)], to);
        }
        self.panel
    }
}

/// Some steps of B, as the loops over FP32 read them.
pub struct Pairs<'a> {
    pub all: &'a [Pair<f32>],
    pub which: Range<usize>,
    /// Out of so many.
    pub steps: usize,
}

impl Pairs<'_> {
    /// Those of a pair, one after the other.
    #[inline(always)]
    fn of(&self, pair: usize) -> &[Pair<f32>] {
        &self.all[pair * self.steps..][self.which.clone()]
    }
}

/// FP32 sums of some steps, of a strip and the pairs of B that begin with its columns: one panel of A after the other, which stays in the first-level
/// cache while B comes from the second.
#[inline(always)]
pub fn fast<L: Lanes, const R: usize, const S: usize, const C: usize>(
    step: &MmaStep,
    mut a: impl Panels,
    (b, pair): (&Pairs, usize),
    strip: &Strip,
    cells: &mut [u32],
    prefetches: &mut Prefetches,
) {
    const { assert!(R <= WIDTH && (S == R || S == WIDTH % R), "a panel of A is parts of R rows, and one of S") };
    const { assert!(C == 1 || C == 2, "a block lies in one pair of B") };
    let columns = strip.columns.len();
    for parts in strip.parts::<R, S>().chunk_by(|a, b| a.panel() == b.panel()) {
        let a = a.panel::<L>(parts[0].panel());
        for at in (0..columns).step_by(C * WIDTH) {
            let factors = &(a, b.of(pair + at / PAIR), at % PAIR / WIDTH);
            let width = (columns - at).min(C * WIDTH);
            for (n, part) in parts.iter().enumerate() {
                // D comes from far away, unless it is asked for before the block that needs it; the last block asks for the next columns'.
                let (next, at_next) = parts.get(n + 1).map_or((&parts[0], at + C * WIDTH), |next| (next, at));
                if step.accumulate && at_next + C * WIDTH <= columns {
                    next.rows().iter().for_each(|(_, cell)| prefetch_lines::<C>(cells, cell + at_next));
                }
                prefetches.next();
                match *part {
                    Part::Long(rows) if width <= WIDTH => block::<L, R, 1>(step, factors, rows, at, width, cells),
                    Part::Long(rows) => block::<L, R, C>(step, factors, rows, at, width, cells),
                    Part::Short(rows) if width <= WIDTH => block::<L, S, 1>(step, factors, rows, at, width, cells),
                    Part::Short(rows) => block::<L, S, C>(step, factors, rows, at, width, cells),
                    Part::One(row) if width <= WIDTH => block::<L, 1, 1>(step, factors, row, at, width, cells),
                    Part::One(row) => block::<L, 1, C>(step, factors, row, at, width, cells),
                }
            }
        }
    }
}

/// D of a vector's columns, its bits as they are; lanes without a column hold `other`.
#[inline(always)]
pub fn read_cells<L: Lanes>(cells: &[u32], other: u32) -> L::Ints {
    match cells.first_chunk() {
        Some(cells) => L::load(cells),
        None => {
            let mut bits = [other; WIDTH];
            bits[..cells.len()].copy_from_slice(cells);
            L::load(&bits)
        }
    }
}

/// The values of D's bits, scaled.
#[inline(always)]
pub fn d_values<L: Lanes>(step: &MmaStep, bits: L::Ints) -> L::Floats {
    let values = if step.d_f32 { L::floats(bits) } else { f16_values::<L>(bits) };
    if step.scale == 0 {
        return values;
    }
    L::mul(values, L::splat_float(1.0 / (1u32 << step.scale) as f32))
}

#[inline(always)]
pub fn write_cells<L: Lanes>(values: L::Ints, cells: &mut [u32]) {
    let values = L::store(values);
    match cells.first_chunk_mut() {
        Some(cells) => *cells = values,
        None => cells.copy_from_slice(&values[..cells.len()]),
    }
}

/// FP32 sums in the format of D. A NaN is the tensor core's.
#[inline(always)]
pub fn d_bits<L: Lanes>(step: &MmaStep, sums: L::Ints) -> L::Ints {
    if !step.d_f32 {
        return f16_bits::<L>(sums);
    }
    canonical::<L>(sums)
}

/// The FP16 numbers nearest to FP32 ones; a NaN is the canonical one.
#[inline(always)]
pub fn f16_bits<L: Lanes>(bits: L::Ints) -> L::Ints {
    let magnitude = L::and(bits, L::splat(0x7fff_ffff));
    L::if_greater(magnitude, L::splat(0x7f80_0000), L::splat(0x7fff), round_f16::<L>(L::floats(bits)))
}

/// Steps of a panel of A and of a pair of B, and which half of that a block begins with.
type Blocked<'a> = (&'a [Panel<f32>], &'a [Pair<f32>], usize);

/// R × C vectors of D, of rows that lie side by side in a panel of A.
#[inline(always)]
fn block<L: Lanes, const R: usize, const C: usize>(
    step: &MmaStep,
    factors: &Blocked,
    rows: &[Row; R],
    at: usize,
    columns: usize,
    cells: &mut [u32],
) {
    if columns == C * WIDTH && step.d_f32 && step.scale == 0 {
        let first = std::array::from_fn(|i| rows[i].1 + at);
        return sums::<L, R, C>(factors, rows[0].0, step.accumulate, &first, cells);
    }
    // What needs care is put into FP32 first.
    let mut scratch = [[[0u32; WIDTH]; C]; R];
    if step.accumulate {
        for i in 0..R {
            let cells = &cells[rows[i].1 + at..rows[i].1 + at + columns];
            for c in 0..C {
                let cells = &cells[c * WIDTH..columns.min((c + 1) * WIDTH)];
                scratch[i][c] = L::store(L::bits(d_values::<L>(step, read_cells::<L>(cells, 0))));
            }
        }
    }
    let first = std::array::from_fn(|i| i * C * WIDTH);
    sums::<L, R, C>(factors, rows[0].0, step.accumulate, &first, scratch.as_flattened_mut().as_flattened_mut());
    for i in 0..R {
        let cells = &mut cells[rows[i].1 + at..rows[i].1 + at + columns];
        for c in 0..C {
            let cells = &mut cells[c * WIDTH..columns.min((c + 1) * WIDTH)];
            let bits = d_bits::<L>(step, L::load(&scratch[i][c]));
            write_cells::<L>(bits, cells);
        }
    }
}

/// R × C vectors of sums, in FP32: D first, then the products by ascending k, each added without being rounded itself.
/// The loops over vectors are so short that the compiler unrolls them; `held` is then in registers.
#[inline(always)]
fn sums<L: Lanes, const R: usize, const C: usize>(
    &(a, b, half): &Blocked,
    row: usize,
    accumulate: bool,
    first: &[usize; R],
    cells: &mut [u32],
) {
    let mut held = [[L::splat_float(0.0); C]; R];
    if accumulate {
        for i in 0..R {
            let d = cells[first[i]..first[i] + C * WIDTH].as_chunks().0;
            for c in 0..C {
                held[i][c] = L::floats(L::load(&d[c]));
            }
        }
    }
    // Remainders, so that the loop needs no checks.
    let (place, half) = (row % WIDTH, half % 2);
    for (a, b) in a.iter().zip(b) {
        let a: &[Line<[f32; WIDTH]>; R] = rows_of(a, place);
        for (k, b) in b.iter().enumerate() {
            let mut vectors = [L::splat_float(0.0); C];
            for c in 0..C {
                vectors[c] = L::load_floats(&b[(half + c) % 2].0);
            }
            for i in 0..R {
                let a = L::splat_float(a[i].0[k]);
                for c in 0..C {
                    held[i][c] = L::mul_add(a, vectors[c], held[i][c]);
                }
            }
        }
    }
    // One question for all, which hardly ever finds one.
    let plain = !L::any_nan(&held);
    for i in 0..R {
        let d = cells[first[i]..first[i] + C * WIDTH].as_chunks_mut().0;
        for c in 0..C {
            let bits = L::bits(held[i][c]);
            d[c] = L::store(if plain { bits } else { canonical::<L>(bits) });
        }
    }
}

/// FP32 sums, a NaN as the tensor core writes it.
#[inline(always)]
fn canonical<L: Lanes>(sums: L::Ints) -> L::Ints {
    let magnitude = L::and(sums, L::splat(0x7fff_ffff));
    L::if_greater(magnitude, L::splat(0x7f80_0000), L::splat(0x7fff_ffff), sums)
}

/// R rows of a panel of A.
#[inline(always)]
pub fn rows_of<T, const R: usize>(panel: &Panel<T>, first: usize) -> &[Line<[T; WIDTH]>; R] {
    panel[first.min(WIDTH - R)..].first_chunk().expect("R rows lie behind")
}

/// [`f16_value`] of the low halves.
#[inline(always)]
fn f16_values<L: Lanes>(bits: L::Ints) -> L::Floats {
    let magnitude = L::left::<13>(L::and(bits, L::splat(0x7fff)));
    let scaled = L::bits(L::mul(L::floats(magnitude), L::splat_float(f32::from_bits((112 + 127) << 23))));
    let special = L::or(scaled, L::splat(0x7f80_0000));
    let scaled = L::if_greater(magnitude, L::splat((0x7c00 << 13) - 1), special, scaled);
    L::floats(L::or(scaled, L::left::<16>(L::and(bits, L::splat(0x8000)))))
}

/// The FP16 numbers nearest to FP32 ones that are not NaN, ties to even.
#[inline(always)]
pub fn round_f16<L: Lanes>(values: L::Floats) -> L::Ints {
    let bits = L::bits(values);
    let magnitude = L::and(bits, L::splat(0x7fff_ffff));
    // Next to 0.5, FP32 numbers are 2^-24 apart, as subnormal FP16 numbers are: the addition rounds.
    let half = L::splat_float(0.5);
    let small = L::sub(L::bits(L::add_floats(L::floats(magnitude), half)), L::bits(half));
    let odd = L::and(L::right::<13>(magnitude), L::splat(1));
    let up = L::add(L::sub(magnitude, L::splat(112 << 23)), L::add(odd, L::splat(0xfff)));
    let rounded = L::if_greater(L::splat(0x3880_0000), magnitude, small, L::right::<13>(up));
    let rounded = L::if_greater(magnitude, L::splat(0x477f_ffff), L::splat(0x7c00), rounded);
    L::or(rounded, L::and(L::right::<16>(bits), L::splat(0x8000)))
}

#[cfg(test)]
#[path = "product_tests.rs"]
mod tests;
