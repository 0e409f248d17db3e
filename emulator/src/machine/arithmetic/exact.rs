//! The product of an MMA bit for bit. The rule, and where it comes from, is in the documentation of
//! [`Numerics::Exact`](crate::Numerics::Exact). [`one`] is the rule as it stands there; [`strip`] does the same for many
//! columns at once, and hands `one` what does not fit its shortcuts.

use super::product::{Factors, Line, Pair, Panel, d_values, read_cells, round_f16, rows_of, write_cells};
use super::simd::{Lanes, PAIR, WIDTH};
use super::strip::{Blocks, Strip};
use crate::machine::tma::prefetches::Prefetches;
use crate::numerics::MmaStep;
use smallvec::SmallVec;

/// Fractional bits that a term keeps, counted from the largest exponent.
pub const FRACTION: i32 = 25;
/// The exponent of a zero, in any format, and of a product that is zero.
pub const ZERO: i32 = -126;
/// Stands for the exponent of a factor that is zero: below all others, also when the other factor's is added. What [`block`] computes
/// has a term above [`ZERO`].
const ZERO_FACTOR: i16 = -2048;
/// Stands for the exponent of an infinity or a NaN: above all others, also when the other factor's is added.
const SPECIAL: i16 = 8192;

/// The exponent of a 16-bit number's unnormalised significand.
#[inline(always)]
pub fn exponent<const MANTISSA: u32, const EXPONENT: u32>(bits: u16) -> i16 {
    let most = (1 << EXPONENT) - 1;
    let (field, bias) = ((bits >> MANTISSA) as i16 & most, most / 2);
    let finite = if field == 0 { 1 - bias } else { field - bias };
    let finite = if bits & 0x7fff == 0 { ZERO_FACTOR } else { finite };
    if field == most { SPECIAL } else { finite }
}

/// A number taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// significand · 2^(exponent − 23): not normalised.
    Finite {
        significand: i64,
        exponent: i32,
    },
    Infinite {
        negative: bool,
    },
    Nan,
}

impl Number {
    pub fn new(bits: u32, mantissa: u32, width: u32) -> Number {
        let most = (1 << width) - 1;
        let (fraction, field) = (i64::from(bits & ((1 << mantissa) - 1)), (bits >> mantissa & most) as i32);
        let negative = bits >> (mantissa + width) & 1 == 1;
        let bias = most as i32 / 2;
        let (significand, exponent) = match (field, fraction) {
            (0, 0) => (0, ZERO),
            (0, _) => (fraction, 1 - bias),
            _ if field < most as i32 => (fraction | 1 << mantissa, field - bias),
            (_, 0) => return Number::Infinite { negative },
            _ => return Number::Nan,
        };
        let significand = significand << (23 - mantissa);
        Number::Finite { significand: if negative { -significand } else { significand }, exponent }
    }

    /// Itself, or what it is with the other sign.
    pub fn negated(self, negate: bool) -> Number {
        match self {
            Number::Finite { significand, exponent } if negate => {
                Number::Finite { significand: -significand, exponent }
            }
            Number::Infinite { negative } => Number::Infinite { negative: negative != negate },
            other => other,
        }
    }

    fn element(bits: u16, bf: bool) -> Number {
        if bf { Number::new(bits.into(), 7, 8) } else { Number::new(bits.into(), 10, 5) }
    }
}

/// One element of D: the rule, term by term. `cell` is D before.
fn one(step: &MmaStep, a: &[u16], b: &[u16], cell: u32) -> u32 {
    let (nan, infinity, negative_infinity) =
        if step.d_f32 { (0x7fff_ffff, 0x7f80_0000, 0xff80_0000) } else { (0x7fff, 0x7c00, 0xfc00) };
    let (mut infinities, mut terms) = ([false; 2], [(0i64, 0i32); 17]);
    // Terms as significand · 2^(exponent − 46).
    terms[16] = match (step.accumulate, step.d_f32) {
        (false, _) => (0, ZERO),
        (true, d_f32) => match if d_f32 { Number::new(cell, 23, 8) } else { Number::new(cell & 0xffff, 10, 5) } {
            Number::Finite { significand: 0, exponent } => (0, exponent),
            Number::Finite { significand, exponent } => (significand << 23, exponent - step.scale as i32),
            Number::Infinite { negative } => {
                infinities[usize::from(negative)] = true;
                (0, ZERO)
            }
            Number::Nan => return nan,
        },
    };
    let flip = step.negate_a != step.negate_b;
    for ((term, &a), &b) in terms.iter_mut().zip(a).zip(b) {
        let negative = (a ^ b) >> 15 == 1;
        match (Number::element(a, step.a_bf16), Number::element(b, step.b_bf16)) {
            (Number::Finite { significand: 0, .. }, Number::Finite { .. })
            | (Number::Finite { .. }, Number::Finite { significand: 0, .. }) => *term = (0, ZERO),
            (Number::Finite { significand, exponent }, Number::Finite { significand: s, exponent: e }) => {
                *term = (significand * s * if flip { -1 } else { 1 }, exponent + e);
            }
            (Number::Nan, _) | (_, Number::Nan) => return nan,
            // 0 · ∞.
            (Number::Finite { significand: 0, .. }, _) | (_, Number::Finite { significand: 0, .. }) => return nan,
            _ => infinities[usize::from(negative != flip)] = true,
        }
    }
    match infinities {
        [true, true] => return nan,
        [true, false] => return infinity,
        [false, true] => return negative_infinity,
        [false, false] => {}
    }
    let top = terms.iter().map(|&(_, exponent)| exponent).max().unwrap_or(ZERO);
    let sum: i64 = terms
        .iter()
        .map(|&(significand, exponent)| {
            let magnitude = significand.unsigned_abs();
            let drop = (46 - FRACTION + top - exponent) as u32;
            magnitude.checked_shr(drop).unwrap_or(0) as i64 * significand.signum()
        })
        .sum();
    round(sum, top - FRACTION, step.d_f32)
}

/// sum · 2^unit in the format of D: FP32 cut off, FP16 to nearest even.
pub fn round(sum: i64, unit: i32, d_f32: bool) -> u32 {
    let (mantissa, bias, sign) = if d_f32 { (23, 127, 31) } else { (10, 15, 15) };
    let infinity = (2 * bias as u32 + 1) << mantissa;
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let exponent = (63 - magnitude.leading_zeros() as i32 + unit).max(1 - bias);
    if exponent > bias {
        return u32::from(sum < 0) << sign | infinity;
    }
    // Bits of the magnitude below the last that the format has.
    let drop = exponent - mantissa - unit;
    let (kept, up) = match drop {
        ..=0 => (magnitude << -drop, false),
        1..64 => {
            let (kept, half) = (magnitude >> drop, 1u64 << (drop - 1));
            let rest = magnitude & ((half << 1) - 1);
            (kept, !d_f32 && (rest > half || rest == half && kept & 1 == 1))
        }
        _ => (0, false),
    };
    // The leading one of a normal number counts as one in the exponent's field; a carry goes there by itself.
    let bits = ((exponent + bias - 1) as u32) * (1 << mantissa) + kept as u32 + u32::from(up);
    if bits == 0 { 0 } else { u32::from(sum < 0) << sign | bits }
}

/// Largest exponents between which FP32 holds all that [`block`] computes: products and scaled terms neither overflow
/// nor lose bits that count, and no result is subnormal.
const LOW: i32 = -100;
const HIGH: i32 = 125;

/// What a step reads of A or of B, row after row.
type Elements<'a> = &'a [[u16; 16]];

/// All steps of a strip: the first, and those behind it.
#[inline(always)]
pub fn strip<L: Lanes, const E: usize>(
    [first, further]: &[MmaStep; 2],
    factors: &Factors,
    bits: (&[Elements], &[Elements]),
    strip: &Strip,
    pair: usize,
    cells: &mut [u32],
    prefetches: &mut Prefetches,
) {
    const { assert!(WIDTH.is_multiple_of(E), "a block lies in one panel of A") };
    let (columns, steps) = (strip.columns.len(), bits.0.len());
    let all = strip.blocks::<E>();
    for (at, pair) in (0..columns).step_by(PAIR).zip(pair..) {
        let width = (columns - at).min(PAIR);
        let block = |n: usize| Block {
            step: if n == 0 { first } else { further },
            a: &factors.a[n..],
            a_exponents: &factors.a_exponents[n..],
            steps,
            b: &factors.b[pair * steps + n],
            b_exponents: &factors.b_exponents[pair * steps + n],
            at,
            width,
            bits: (bits.0[n], &bits.1[n][strip.columns.start + at..]),
        };
        let few = || Blocks { whole: SmallVec::new(), rest: strip.rows.iter().collect() };
        let few = (width < PAIR).then(few);
        let Blocks { whole, rest } = few.as_ref().unwrap_or(&all);
        // All steps of some rows, whose cells stay in the first-level cache; two blocks in turns, since the next step of one waits
        // for its last.
        for two in whole.chunks(2) {
            prefetches.next();
            for n in 0..steps {
                let block = block(n);
                for rows in two {
                    if first.d_f32 {
                        block.run::<L, E, true, true>(rows, cells);
                    } else {
                        block.run::<L, E, false, true>(rows, cells);
                    }
                }
            }
        }
        for &row in rest {
            let row = std::array::from_ref(row);
            for n in 0..steps {
                if first.d_f32 {
                    block(n).run::<L, 1, true, false>(row, cells);
                } else {
                    block(n).run::<L, 1, false, false>(row, cells);
                }
            }
        }
    }
}

/// Two vectors of columns of B, or fewer columns, and all rows of A.
struct Block<'a> {
    step: &'a MmaStep,
    /// The step's panels, each so many steps behind the one before.
    a: &'a [Panel<f32>],
    a_exponents: &'a [Panel<u32>],
    steps: usize,
    b: &'a Pair<f32>,
    b_exponents: &'a Panel<i16, PAIR>,
    /// Where its columns begin in a row of cells, and how many there are.
    at: usize,
    width: usize,
    bits: (Elements<'a>, Elements<'a>),
}

impl Block<'_> {
    /// E rows of D, side by side in a panel of A: in FP32 or in FP16, of WHOLE vectors or not. What is out of bounds for it, it hands to [`slow`].
    #[inline(always)]
    fn run<L: Lanes, const E: usize, const D32: bool, const WHOLE: bool>(
        &self,
        rows: &[(usize, usize); E],
        cells: &mut [u32],
    ) {
        let width = if WHOLE { PAIR } else { self.width };
        let step = &MmaStep { d_f32: D32, ..*self.step };
        let lowest = (2 * ZERO_FACTOR) as u16;
        let mut exponents = [L::splat_shorts(u32::from(lowest) << 16 | u32::from(lowest)); E];
        let (panel, place) = (rows[0].0 / WIDTH * self.steps, rows[0].0 % WIDTH);
        let a: &[Line<[u32; WIDTH]>; E] = rows_of(&self.a_exponents[panel], place);
        for (k, b) in self.b_exponents.iter().enumerate() {
            let b = L::load_shorts(&b.0);
            for i in 0..E {
                let a = L::splat_shorts(a[i].0[k]);
                exponents[i] = L::max_shorts(exponents[i], L::add_shorts(a, b));
            }
        }
        // Lanes without a column hold 1 in D: an exponent that needs no care.
        let other = if D32 { 0x3f80_0000 } else { 0x3c00 };
        let zero = L::splat(0);
        let (mut tops, mut scales) = ([[zero; 2]; E], [[L::splat_float(0.0); 2]; E]);
        // How far above LOW; what is below counts as very far.
        let mut most = zero;
        for i in 0..E {
            tops[i] = [L::widen_first(exponents[i]), L::widen_second(exponents[i])];
            for c in 0..2 {
                let before = old::<L>(step, half(cells, rows[i].1 + self.at, width, c), other);
                tops[i][c] = L::max(tops[i][c], d_exponents::<L>(step, before));
                most = L::max_unsigned(most, L::sub(tops[i][c], L::splat(LOW as u32)));
                scales[i][c] = power::<L>(L::sub(L::splat(FRACTION as u32), tops[i][c]));
            }
        }
        let all_fit = L::all_within(most, 0, HIGH - LOW);
        // In units of 2^(top − 25), every term is below 2^27, and the conversion to an integer cuts it off. The products
        // together are below 16 · 2047² · 2^5 < 2^31.
        let mut sums = [[zero; 2]; E];
        let a: &[Line<[f32; WIDTH]>; E] = rows_of(&self.a[panel], place);
        for (k, b) in self.b.iter().enumerate() {
            let b = [L::load_floats(&b[0].0), L::load_floats(&b[1].0)];
            for i in 0..E {
                let a = L::splat_float(a[i].0[k]);
                for c in 0..2 {
                    sums[i][c] = L::add(sums[i][c], L::truncate(L::mul(L::mul(a, b[c]), scales[i][c])));
                }
            }
        }
        for i in 0..E {
            for c in 0..2 {
                let cells = half_mut(cells, rows[i].1 + self.at, width, c);
                if !all_fit && !L::all_within(tops[i][c], LOW, HIGH) {
                    let (a, b) = (&self.bits.0[rows[i].0], &self.bits.1[(c * WIDTH).min(width)..]);
                    slow(step, a, b, &L::store(tops[i][c]), cells);
                    continue;
                }
                let d = L::truncate(L::mul(d_values::<L>(step, old::<L>(step, cells, other)), scales[i][c]));
                // The inverse of the scale.
                let unit = L::floats(L::sub(L::splat((2 * 127) << 23), L::bits(scales[i][c])));
                let bits = if D32 {
                    L::bits(L::cut_sum(sums[i][c], d, unit, false))
                } else {
                    // A last bit that stands for the rest keeps the rounding from 24 bits to 11 right. A zero is +0.
                    let rounded = round_f16::<L>(L::cut_sum(sums[i][c], d, unit, true));
                    L::if_greater(L::and(rounded, L::splat(0x7fff)), zero, rounded, zero)
                };
                write_cells::<L>(bits, cells);
            }
        }
    }
}

/// A row's cells in the first or the second vector.
#[inline(always)]
fn half(cells: &[u32], first: usize, columns: usize, c: usize) -> &[u32] {
    &cells[first + (c * WIDTH).min(columns)..first + ((c + 1) * WIDTH).min(columns)]
}

#[inline(always)]
fn half_mut(cells: &mut [u32], first: usize, columns: usize, c: usize) -> &mut [u32] {
    &mut cells[first + (c * WIDTH).min(columns)..first + ((c + 1) * WIDTH).min(columns)]
}

/// D before; zeros if it does not enter.
#[inline(always)]
fn old<L: Lanes>(step: &MmaStep, cells: &[u32], other: u32) -> L::Ints {
    read_cells::<L>(if step.accumulate { cells } else { &[0; WIDTH][..cells.len()] }, other)
}

/// The exponents of D's unnormalised significands, scaled, as far as they count: in FP32, those of zeros and subnormal
/// numbers are below LOW anyhow. (A zero's is not to be lowered by the scale; but where that counts, [`slow`] does it.)
#[inline(always)]
fn d_exponents<L: Lanes>(step: &MmaStep, bits: L::Ints) -> L::Ints {
    if step.d_f32 {
        let field = L::right::<24>(L::left::<1>(bits));
        let exponent = L::sub(field, L::splat(127 + step.scale));
        // Unscaled, that of an infinity or a NaN is above HIGH by itself.
        let special = || L::if_greater(field, L::splat(0xfe), L::splat(SPECIAL as u32), exponent);
        return if step.scale == 0 { exponent } else { special() };
    }
    let field = L::and(L::right::<10>(bits), L::splat(0x1f));
    let exponent = L::sub(L::max(field, L::splat(1)), L::splat(15 + step.scale));
    let exponent = L::if_greater(field, L::splat(0x1e), L::splat(SPECIAL as u32), exponent);
    let magnitude = L::and(bits, L::splat(0x7fff));
    L::if_greater(magnitude, L::splat(0), exponent, L::splat(ZERO as u32))
}

/// 2^exponent, for −126 to 127.
#[inline(always)]
fn power<L: Lanes>(exponents: L::Ints) -> L::Floats {
    L::floats(L::left::<23>(L::add(exponents, L::splat(127))))
}

/// What [`block`] does not do, element by element.
#[cold]
#[inline(never)]
fn slow(step: &MmaStep, a: &[u16; 16], b: &[[u16; 16]], top: &[u32; WIDTH], cells: &mut [u32]) {
    for ((cell, &top), b) in cells.iter_mut().zip(top).zip(b) {
        let d = if step.d_f32 { *cell << 1 } else { *cell << 17 };
        // Padding is zero, and common.
        let zero = top as i32 <= HIGH
            && (d == 0 || !step.accumulate)
            && a.iter().zip(b).all(|(a, b)| a & 0x7fff == 0 || b & 0x7fff == 0);
        *cell = if zero { 0 } else { one(step, a, b, *cell) };
    }
}

#[cfg(test)]
#[path = "exact_tests.rs"]
pub mod tests;
