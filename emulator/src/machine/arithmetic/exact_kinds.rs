//! The product of an MMA of a kind other than `kind::f16`, bit for bit after the model of
//! [`Numerics::Exact`](crate::Numerics::Exact).

use super::exact::{FRACTION, Number, ZERO, round};
use super::formats::Format;
use super::kinds::{Product, Row};
use super::operand::bytes;
use crate::machine::mma::instruction_descriptor::{Accumulator, InstructionDescriptor, Scaling};
use crate::program::kind::Kind;

/// Elements of a row at most.
const MOST: usize = 64;
/// Products of 4-bit elements that are added without error before they are scaled.
const GROUP: usize = 16;
/// Fractional bits that such a scaled sum keeps, counted from the largest exponent.
const GROUP_FRACTION: i32 = 35;

/// How much of a sum counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    /// Fractional bits that a term keeps, counted from the largest exponent.
    fraction: i32,
    /// Bits of an FP32 result's fraction that are not zero.
    kept: u32,
}

impl Precision {
    /// That of `tcgen05.mma`.
    pub const FULL: Precision = Precision { fraction: FRACTION, kept: 23 };

    /// That of `wgmma.mma_async`: FP8 keeps 13 bits, of each term and of an FP32 result.
    pub fn of_wgmma(kind: Kind) -> Precision {
        if kind == Kind::F8f6f4 { Precision { fraction: 13, kept: 13 } } else { Precision::FULL }
    }

    /// A sum in the format of D.
    fn round(self, sum: i64, top: i32, d: Accumulator) -> u32 {
        let bits = round(sum, top - self.fraction, d != Accumulator::F16);
        let kept = if d == Accumulator::F16 { bits } else { bits & !((1 << (23 - self.kept)) - 1) };
        if kept & 0x7fff_ffff == 0 { 0 } else { kept }
    }
}

/// A row of A or a column of B, taken apart.
struct Parts {
    /// significand · 2^(exponent − 23), not normalised.
    significands: [i64; MOST],
    exponents: [i32; MOST],
    /// Some element is infinite or NaN; then all of them as they are.
    special: Option<Vec<Number>>,
    /// Significands in eighths, exponents, of its scale factors; and whether one is NaN.
    scales: [(i64, i32); 4],
    bad_scale: bool,
}

/// An element's number.
fn number(format: Format, bits: u32) -> Number {
    let Some(narrow) = format.narrow() else {
        // TF32 is cut off to ten bits of fraction. A NaN whose bits are all cut off becomes an infinity.
        return Number::new(bits >> 13, 10, 8);
    };
    let value = narrow.value(bits);
    if value.is_nan() {
        return Number::Nan;
    }
    if value.is_infinite() {
        return Number::Infinite { negative: value < 0.0 };
    }
    if value == 0.0 {
        return Number::Finite { significand: 0, exponent: ZERO };
    }
    let exponent = narrow.exponent(bits);
    Number::Finite { significand: (value * 2f64.powi(23 - exponent)) as i64, exponent }
}

/// The bits of the elements of a row.
fn elements(i: &InstructionDescriptor, format: Format, row: &Row) -> Vec<u32> {
    let bytes = row.as_chunks::<8>().0.iter().flat_map(|chunk| bytes(*chunk)).map(u32::from);
    match (i.kind, format) {
        (Kind::Tf32, _) => row.as_chunks::<2>().0.iter().map(|w| u32::from(w[0]) | u32::from(w[1]) << 16).collect(),
        (Kind::Mxf4 | Kind::Mxf4nvf4, _) => bytes.flat_map(|byte| [byte & 0xf, byte >> 4]).collect(),
        (_, Format::E2m1) => bytes.map(|byte| byte >> 2).collect(),
        _ => bytes.collect(),
    }
}

fn parts(i: &InstructionDescriptor, format: Format, negate: bool, row: &Row, factors: Option<&[u8; 4]>) -> Parts {
    let mut parts = Parts {
        significands: [0; MOST],
        exponents: [ZERO; MOST],
        special: None,
        scales: [(8, 0); 4],
        bad_scale: false,
    };
    let numbers: Vec<Number> =
        elements(i, format, row).into_iter().map(|bits| number(format, bits).negated(negate)).collect();
    for (n, number) in numbers.iter().enumerate() {
        match *number {
            Number::Finite { significand, exponent } => {
                (parts.significands[n], parts.exponents[n]) = (significand, exponent);
            }
            _ => parts.special = Some(Vec::new()),
        }
    }
    if parts.special.is_some() {
        parts.special = Some(numbers);
    }
    if let (Some(Scaling { format, .. }), Some(factors)) = (i.scaling, factors) {
        for (scale, &bits) in
            parts.scales.iter_mut().zip(factors.iter().take(i.scaling.map_or(0, |s| s.factors) as usize))
        {
            let exponent = format.exponent(bits);
            match format.value(bits) {
                Some(value) => *scale = ((value * 2f64.powi(3 - exponent)) as i64, exponent),
                None => parts.bad_scale = true,
            }
        }
    }
    parts
}

/// All elements of D.
pub fn run(product: Product) {
    let Product { descriptor: i, precision, accumulate, scale, a, b, scales, strips, cells, .. } = product;
    let rows: Vec<Parts> =
        (a.iter().enumerate()).map(|(n, row)| parts(i, i.a, i.negate_a, row, scales.a.get(n))).collect();
    let columns: Vec<Parts> =
        (b.iter().enumerate()).map(|(n, row)| parts(i, i.b, i.negate_b, row, scales.b.get(n))).collect();
    let groups = matches!(i.kind, Kind::Mxf4 | Kind::Mxf4nvf4);
    for strip in strips {
        for &(row, first) in strip.rows {
            let cells = &mut cells[first..first + strip.columns.len()];
            for (cell, column) in cells.iter_mut().zip(&columns[strip.columns.clone()]) {
                let before = Before::new(i.d, accumulate, scale, *cell);
                *cell = if groups {
                    in_groups(i, &rows[row], column, before)
                } else {
                    one(i, precision, &rows[row], column, before)
                };
            }
        }
    }
}

/// D before, as a term.
struct Before {
    number: Number,
    nan: u32,
    infinity: u32,
    sign: u32,
}

impl Before {
    fn new(d: Accumulator, accumulate: bool, scale: u32, cell: u32) -> Before {
        let number = match (accumulate, d) {
            (false, _) => Number::Finite { significand: 0, exponent: ZERO },
            (true, Accumulator::F16) => Number::new(cell & 0xffff, 10, 5),
            (true, _) => Number::new(cell, 23, 8),
        };
        let number = match number {
            Number::Finite { significand, exponent } if significand != 0 => {
                Number::Finite { significand, exponent: exponent - scale as i32 }
            }
            other => other,
        };
        match d {
            Accumulator::F16 => Before { number, nan: 0x7fff, infinity: 0x7c00, sign: 0x8000 },
            _ => Before { number, nan: 0x7fff_ffff, infinity: 0x7f80_0000, sign: 0x8000_0000 },
        }
    }

    /// significand · 2^(exponent − 23), or an infinity that counts with the others; `None`: a NaN.
    fn summand(&self, infinities: &mut [bool; 2]) -> Option<(i64, i32)> {
        match self.number {
            Number::Nan => None,
            Number::Infinite { negative } => {
                infinities[usize::from(negative)] = true;
                Some((0, ZERO))
            }
            Number::Finite { significand, exponent } => Some((significand, exponent)),
        }
    }

    /// What infinities, of either sign, come to.
    fn infinite(&self, [positive, negative]: [bool; 2]) -> Option<u32> {
        match (positive, negative) {
            (false, false) => None,
            (true, false) => Some(self.infinity),
            (false, true) => Some(self.infinity | self.sign),
            (true, true) => Some(self.nan),
        }
    }
}

/// Products that are neither finite nor zero times something.
fn special(a: &Parts, b: &Parts, depth: usize, infinities: &mut [bool; 2]) -> bool {
    let finite =
        |parts: &Parts, n: usize| Number::Finite { significand: parts.significands[n], exponent: parts.exponents[n] };
    let of = |parts: &Parts, n: usize| parts.special.as_ref().map_or_else(|| finite(parts, n), |all| all[n]);
    for n in 0..depth {
        match (of(a, n), of(b, n)) {
            (Number::Nan, _) | (_, Number::Nan) => return true,
            (Number::Infinite { negative }, Number::Infinite { negative: other }) => {
                infinities[usize::from(negative != other)] = true
            }
            (Number::Infinite { negative }, Number::Finite { significand, .. })
            | (Number::Finite { significand, .. }, Number::Infinite { negative }) => {
                if significand == 0 {
                    return true;
                }
                infinities[usize::from(negative != (significand < 0))] = true;
            }
            _ => {}
        }
    }
    false
}

/// One element of D: every product is a term.
fn one(i: &InstructionDescriptor, precision: Precision, a: &Parts, b: &Parts, before: Before) -> u32 {
    let depth = i.kind.depth() as usize;
    let mut infinities = [false; 2];
    let Some((significand, exponent)) = before.summand(&mut infinities) else { return before.nan };
    let d = (significand << 23, exponent);
    let nan = a.bad_scale || b.bad_scale;
    if nan || (a.special.is_some() || b.special.is_some()) && special(a, b, depth, &mut infinities) {
        return before.nan;
    }
    if let Some(bits) = before.infinite(infinities) {
        return bits;
    }
    // One scale factor a row, a power of two.
    let scale = a.scales[0].1 + b.scales[0].1;
    let (mut products, mut exponents, mut top) = ([0i64; MOST], [ZERO; MOST], d.1);
    for n in 0..depth {
        products[n] = a.significands[n] * b.significands[n];
        exponents[n] = if products[n] == 0 { ZERO } else { a.exponents[n] + b.exponents[n] + scale };
        top = top.max(exponents[n]);
    }
    // In units of 2^(top − 25), or another number of bits, cut off.
    let cut = |significand: i64, exponent: i32| {
        let drop = (46 - precision.fraction + top - exponent).min(63);
        (significand.unsigned_abs() >> drop) as i64 * significand.signum()
    };
    let sum = (0..depth).fold(cut(d.0, d.1), |sum, n| sum + cut(products[n], exponents[n]));
    precision.round(sum, top, i.d)
}

/// One element of D where products of 4-bit elements are added in groups, and the sums are scaled.
fn in_groups(i: &InstructionDescriptor, a: &Parts, b: &Parts, before: Before) -> u32 {
    let mut infinities = [false; 2];
    let Some(d) = before.summand(&mut infinities) else { return before.nan };
    if a.bad_scale || b.bad_scale {
        return before.nan;
    }
    if let Some(bits) = before.infinite(infinities) {
        return bits;
    }
    let factors = i.scaling.map_or(1, |scaling| scaling.factors) as usize;
    let (block, depth) = (i.kind.depth() as usize / factors, i.kind.depth() as usize);
    // significand · 2^(exponent − 8): products are multiples of 1/4, the two scale factors of 1/8.
    let mut terms = [(0i64, ZERO); MOST / GROUP];
    for (n, term) in terms.iter_mut().enumerate().take(depth / GROUP) {
        let sum: i64 = (n * GROUP..(n + 1) * GROUP).map(|k| quarters(a, b, k)).sum();
        let (x, y) = (a.scales[n * GROUP / block], b.scales[n * GROUP / block]);
        *term = (sum * x.0 * y.0, x.1 + y.1);
    }
    let top = terms.iter().map(|term| term.1).fold(d.1, i32::max);
    let cut = |significand: i64, exponent: i32, fraction: i32| {
        let left = GROUP_FRACTION - fraction + exponent - top;
        let magnitude = significand.unsigned_abs();
        let magnitude = if left >= 0 { magnitude << left } else { magnitude.checked_shr(-left as u32).unwrap_or(0) };
        magnitude as i64 * significand.signum()
    };
    let sum = terms.iter().fold(cut(d.0, d.1, 23), |sum, &(significand, exponent)| sum + cut(significand, exponent, 8));
    round(sum, top - GROUP_FRACTION, true)
}

/// A product of 4-bit elements, in quarters.
fn quarters(a: &Parts, b: &Parts, k: usize) -> i64 {
    let value = |parts: &Parts| {
        // In halves: 2^(exponent − 23) · 2.
        let (significand, exponent) = (parts.significands[k], parts.exponents[k]);
        if significand == 0 { 0 } else { significand >> (22 - exponent) }
    };
    value(a) * value(b)
}
