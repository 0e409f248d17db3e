//! The product of one MMA of a kind other than `kind::f16`. Those of `kind::f16` have loops of their own, in [`super::product`]; this
//! puts elements into FP32, which holds them exactly, and lends the loops of [`Numerics::Fast`].

use super::exact_kinds::{self, Precision};
use super::formats::Format;
use super::operand::bytes;
use super::product::{Factors, Line, Pairs, Ready, fast};
use super::simd::{Lanes, WIDTH, Work};
use super::strip::Strip;
use crate::machine::mma::instruction_descriptor::{Accumulator, InstructionDescriptor};
use crate::machine::tensor_memory::scale_factors::ScaleFactors;
use crate::machine::tma::prefetches::Prefetches;
use crate::numerics::{MmaStep, Numerics};
use crate::program::kind::Kind;

/// The 32 bytes of a row of A, or of a column of B.
pub type Row = [u16; 16];

/// D = A·Bᵀ (+ D / 2^scale), with scale factors where the kind has them.
pub struct Product<'a> {
    pub numerics: Numerics,
    /// What [`Numerics::Exact`] keeps.
    pub precision: Precision,
    pub descriptor: &'a InstructionDescriptor,
    pub accumulate: bool,
    pub scale: u32,
    pub a: &'a [Row],
    pub b: &'a [Row],
    pub scales: &'a ScaleFactors,
    pub strips: &'a [Strip<'a>],
    pub factors: &'a mut Factors,
    pub cells: &'a mut [u32],
    /// What is asked for meanwhile.
    pub prefetches: Prefetches<'a>,
}

/// Elements of an MMA's depth that the loops take at once.
const STEP: usize = 16;

impl Work for Product<'_> {
    #[inline(always)]
    fn run<L: Lanes, const R: usize, const S: usize, const C: usize, const E: usize>(mut self) {
        if self.descriptor.kind == Kind::I8 {
            return self.integers();
        }
        if self.numerics == Numerics::Exact || !self.prepare() {
            return exact_kinds::run(self);
        }
        let Product { descriptor: i, accumulate, scale, strips, factors, cells, mut prefetches, .. } = self;
        let steps = steps(i.kind);
        let step = MmaStep { d_f32: i.d == Accumulator::F32, accumulate, scale, ..MmaStep::default() };
        let b = Pairs { all: &factors.b, which: 0..steps, steps };
        let mut pair = 0;
        for strip in strips {
            fast::<L, R, S, C>(&step, Ready(&factors.a, steps), (&b, pair), strip, cells, &mut prefetches);
            pair += strip.pairs();
        }
    }
}

/// How often the loops go over an MMA's depth.
fn steps(kind: Kind) -> usize {
    (kind.depth() as usize).div_ceil(STEP)
}

impl Product<'_> {
    /// Puts A and B into FP32, each element times its scale factor. Whether FP32 holds them all.
    #[inline(always)]
    fn prepare(&mut self) -> bool {
        let (i, steps, height) = (self.descriptor, steps(self.descriptor.kind), self.a.len());
        let mut fits = true;
        let Factors { a, b, .. } = &mut *self.factors;
        a.clear();
        a.resize(height.div_ceil(WIDTH) * steps, [Line([0.0; WIDTH]); 16]);
        let decode = Decoder::new(i.kind, i.a, i.negate_a);
        for (n, row) in self.a.iter().enumerate() {
            let mut values = decode.row(row);
            fits &= scaled(i, &mut values, self.scales.a.get(n));
            let panel = &mut a[n / WIDTH * steps..][..steps];
            for (step, values) in panel.iter_mut().zip(values.as_chunks::<STEP>().0) {
                step[n % WIDTH].0 = *values;
            }
        }
        let pairs: usize = self.strips.iter().map(Strip::pairs).sum();
        b.clear();
        b.resize(pairs * steps, [[Line([0.0; WIDTH]); 2]; 16]);
        let decode = Decoder::new(i.kind, i.b, i.negate_b);
        for (panel, columns) in self.strips.iter().flat_map(Strip::split).enumerate() {
            let pair = &mut b[panel / 2 * steps..][..steps];
            for (place, n) in columns.enumerate() {
                let mut values = decode.row(&self.b[n]);
                fits &= scaled(i, &mut values, self.scales.b.get(n));
                for (k, &value) in values.iter().enumerate().take(steps * STEP) {
                    pair[k / STEP][k % STEP][panel % 2].0[place] = value;
                }
            }
        }
        fits
    }

    /// Sums of integers are exact, in whatever order.
    #[inline(always)]
    fn integers(self) {
        const DEPTH: usize = 32;
        let i = self.descriptor;
        let decode = |row: &Row, format: Format| -> [i32; DEPTH] {
            let bytes = row.as_chunks::<8>().0.iter().flat_map(|chunk| bytes(*chunk));
            let mut values = [0; DEPTH];
            for (value, byte) in values.iter_mut().zip(bytes) {
                *value = if format == Format::S8 { i32::from(byte as i8) } else { byte.into() };
            }
            values
        };
        let a: Vec<_> = self.a.iter().map(|row| decode(row, i.a)).collect();
        for strip in self.strips {
            let columns = strip.columns.len();
            for (at, few) in self.b[strip.columns.clone()].chunks(WIDTH).enumerate() {
                let mut turned = [[0i32; WIDTH]; DEPTH];
                for (place, row) in few.iter().enumerate() {
                    for (turned, value) in turned.iter_mut().zip(decode(row, i.b)) {
                        turned[place] = value;
                    }
                }
                for &(row, first) in strip.rows {
                    let mut sums = [0i32; WIDTH];
                    for (&a, b) in a[row].iter().zip(&turned) {
                        for (sum, &b) in sums.iter_mut().zip(b) {
                            *sum += a * b;
                        }
                    }
                    let cells = &mut self.cells[first + at * WIDTH..first + columns.min((at + 1) * WIDTH)];
                    for (cell, sum) in cells.iter_mut().zip(sums) {
                        let before = if self.accumulate { *cell as i32 } else { 0 };
                        let added = if i.saturate { before.saturating_add(sum) } else { before.wrapping_add(sum) };
                        *cell = added as u32;
                    }
                }
            }
        }
    }
}

/// What makes numbers of rows.
pub struct Decoder {
    /// The value of each container of 8 bits; `None`: TF32.
    table: Option<Box<[f32; 256]>>,
    /// Two elements a byte.
    pairs: bool,
    negate: bool,
}

impl Decoder {
    pub fn new(kind: Kind, format: Format, negate: bool) -> Decoder {
        let pairs = matches!(kind, Kind::Mxf4 | Kind::Mxf4nvf4);
        let table = format.narrow().map(|narrow| {
            // FP4 alone in its byte stands in bits 2 to 5; beside another one, in half of the byte.
            let shift = if format == Format::E2m1 && !pairs { 2 } else { 0 };
            Box::new(std::array::from_fn(|container| narrow.value(container as u32 >> shift) as f32))
        });
        Decoder { table, pairs, negate }
    }

    /// The elements of a row; zeros behind the last.
    pub fn row(&self, row: &Row) -> [f32; 64] {
        let mut values = [0.0; 64];
        match &self.table {
            None => {
                // TF32 has ten bits of fraction; what is below does not count.
                for (value, word) in values.iter_mut().zip(row.as_chunks::<2>().0) {
                    let bits = u32::from(word[0]) | u32::from(word[1]) << 16;
                    *value = f32::from_bits(tf32(bits));
                }
            }
            Some(table) => {
                let bytes = row.iter().flat_map(|word| word.to_le_bytes());
                if self.pairs {
                    for (two, byte) in values.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
                        *two = [table[usize::from(byte & 0xf)], table[usize::from(byte >> 4)]];
                    }
                } else {
                    values.iter_mut().zip(bytes).for_each(|(value, byte)| *value = table[usize::from(byte)]);
                }
            }
        }
        if self.negate {
            values.iter_mut().for_each(|value| *value = -*value);
        }
        values
    }
}

/// TF32 of FP32 bits. A NaN whose bits are all cut off becomes an infinity.
fn tf32(bits: u32) -> u32 {
    bits & !0x1fff
}

/// Multiplies the elements of a row with its scale factors. Whether FP32 holds all that.
fn scaled(i: &InstructionDescriptor, values: &mut [f32; 64], factors: Option<&[u8; 4]>) -> bool {
    let (Some(scaling), Some(factors)) = (i.scaling, factors) else { return true };
    let mut fits = true;
    let block = (i.kind.depth() / scaling.factors) as usize;
    for (values, &factor) in values.chunks_mut(block).zip(factors.iter().take(scaling.factors as usize)) {
        let factor = scaling.format.value(factor).unwrap_or(f64::NAN);
        for value in values {
            let product = f64::from(*value) * factor;
            let near = product as f32;
            fits &= f64::from(near) == product || product.is_nan();
            *value = near;
        }
    }
    fits
}

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "kinds_model_tests.rs"]
mod model_tests;
