//! The product of an MMA: operands made ready, FP32 sums, results into tensor memory.

use super::exact;
use super::simd::{Lanes, WIDTH};
use super::tensor::{InstructionDescriptor, LANES, Layout, Operand, TensorMemory};
use crate::numerics::{MmaStep, Numerics};
use std::ops::Range;

/// Columns of B, and where their results lie in some rows: (row of A, cell of the first column).
pub struct Strip<'a> {
    pub rows: &'a [(usize, usize)],
    pub columns: Range<usize>,
}

/// A vector's columns of B: one k after the other. Columns beyond the strip's last are zero.
pub type Panel<T> = [[T; WIDTH]; 16];

/// Operands of an MMA, in the form that the loops read.
pub struct Factors<'a> {
    /// As they came, row after row of 16.
    pub a_bits: &'a [[u16; 16]],
    pub b_bits: &'a [[u16; 16]],
    /// Values, signs as negated: rows of A, and the panels of all strips.
    pub a: Vec<[f32; 16]>,
    pub b: Vec<Panel<f32>>,
    /// Exponents in the same order, as [`exact::exponent`] gives them. [`Numerics::Fast`] has no use for them.
    pub a_exponents: Vec<[i16; 16]>,
    pub b_exponents: Vec<Panel<i16>>,
}

impl<'a> Factors<'a> {
    pub fn new(
        numerics: Numerics,
        step: &MmaStep,
        a_bits: &'a [u16],
        b_bits: &'a [u16],
        strips: &[Strip],
    ) -> Factors<'a> {
        let (a_bits, b_bits) = (a_bits.as_chunks().0, b_bits.as_chunks().0);
        let mut panels: Vec<Panel<u16>> = Vec::new();
        for strip in strips {
            for columns in b_bits[strip.columns.clone()].chunks(WIDTH) {
                let mut panel = [[0; WIDTH]; 16];
                for (j, column) in columns.iter().enumerate() {
                    for (lanes, &bits) in panel.iter_mut().zip(column) {
                        lanes[j] = bits;
                    }
                }
                panels.push(panel);
            }
        }
        let exact = numerics == Numerics::Exact;
        let turned = panels.as_flattened();
        let b = values(turned, step.b_bf16, step.negate_b);
        let a_exponents = if exact { exponents(a_bits, step.a_bf16) } else { vec![] };
        let b_exponents = if exact { exponents(turned, step.b_bf16) } else { vec![] };
        Factors {
            a_bits,
            b_bits,
            a: values(a_bits, step.a_bf16, step.negate_a),
            b: b.as_chunks().0.to_vec(),
            a_exponents,
            b_exponents: b_exponents.as_chunks().0.to_vec(),
        }
    }
}

/// 16-bit elements as FP32.
fn values(bits: &[[u16; 16]], bf: bool, negate: bool) -> Vec<[f32; 16]> {
    let flip = if negate { 0x8000u16 } else { 0 };
    if bf {
        bits.iter().map(|row| row.map(|b| f32::from_bits(u32::from(b ^ flip) << 16))).collect()
    } else {
        bits.iter().map(|row| row.map(|b| f16_value(b ^ flip))).collect()
    }
}

/// An FP16 number as FP32. Without branches, so that loops become vector code.
#[inline(always)]
fn f16_value(bits: u16) -> f32 {
    // The exponent's bias differs by 112; a product rather than a sum, since it normalises subnormal numbers too.
    let magnitude = (f32::from_bits(u32::from(bits & 0x7fff) << 13) * f32::from_bits((112 + 127) << 23)).to_bits();
    let special = u32::from(bits & 0x7c00 == 0x7c00).wrapping_neg() & 0x7f80_0000;
    f32::from_bits(magnitude | special | u32::from(bits & 0x8000) << 16)
}

fn exponents(bits: &[[u16; 16]], bf: bool) -> Vec<[i16; 16]> {
    if bf {
        bits.iter().map(|row| row.map(exact::exponent::<7, 8>)).collect()
    } else {
        bits.iter().map(|row| row.map(exact::exponent::<10, 5>)).collect()
    }
}

/// Computes strips: FP32 sums in blocks of R rows and C vectors, exact ones vector by vector.
#[inline(always)]
pub fn strips<L: Lanes, const R: usize, const C: usize>(
    numerics: Numerics,
    step: &MmaStep,
    factors: &Factors,
    strips: &[Strip],
    cells: &mut [u32],
) {
    let mut panel = 0;
    for strip in strips {
        match numerics {
            Numerics::Fast => fast::<L, R, C>(step, factors, strip, panel, cells),
            Numerics::Exact => exact::strip::<L>(step, factors, strip, panel, cells),
        }
        panel += strip.columns.len().div_ceil(WIDTH);
    }
}

#[inline(always)]
fn fast<L: Lanes, const R: usize, const C: usize>(
    step: &MmaStep,
    factors: &Factors,
    strip: &Strip,
    panel: usize,
    cells: &mut [u32],
) {
    let columns = strip.columns.len();
    let panels = &factors.b[panel..panel + columns.div_ceil(WIDTH)];
    // Groups of whole panels first; what is left, panel by panel.
    let groups = panels[..columns / WIDTH].as_chunks::<C>().0;
    let (whole, rest) = strip.rows.as_chunks::<R>();
    for (n, group) in groups.iter().enumerate() {
        let at = n * C * WIDTH;
        for rows in whole {
            let cell = rows.map(|(_, cell)| cell + at);
            block::<L, R, C>(step, rows.map(|(row, _)| &factors.a[row]), group, cell, C * WIDTH, cells);
        }
        for &(row, cell) in rest {
            block::<L, 1, C>(step, [&factors.a[row]], group, [cell + at], C * WIDTH, cells);
        }
    }
    for (n, panel) in panels.iter().enumerate().skip(groups.len() * C) {
        let at = n * WIDTH;
        for &(row, cell) in strip.rows {
            let width = (columns - at).min(WIDTH);
            block::<L, 1, 1>(step, [&factors.a[row]], std::array::from_ref(panel), [cell + at], width, cells);
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

/// R × C vectors of sums: D first, then the products by ascending k; each product rounded, then each sum.
#[inline(always)]
fn block<L: Lanes, const R: usize, const C: usize>(
    step: &MmaStep,
    a: [&[f32; 16]; R],
    b: &[Panel<f32>; C],
    first: [usize; R],
    columns: usize,
    cells: &mut [u32],
) {
    let mut sums = [[L::splat_float(0.0); C]; R];
    if step.accumulate {
        for i in 0..R {
            let cells = &cells[first[i]..first[i] + columns];
            for c in 0..C {
                let cells = &cells[c * WIDTH..columns.min((c + 1) * WIDTH)];
                sums[i][c] = d_values::<L>(step, read_cells::<L>(cells, 0));
            }
        }
    }
    for k in 0..16 {
        for c in 0..C {
            let b = L::load_floats(&b[c][k]);
            for i in 0..R {
                sums[i][c] = L::add_floats(sums[i][c], L::mul(L::splat_float(a[i][k]), b));
            }
        }
    }
    for i in 0..R {
        let cells = &mut cells[first[i]..first[i] + columns];
        for c in 0..C {
            let cells = &mut cells[c * WIDTH..columns.min((c + 1) * WIDTH)];
            let bits = if step.d_f32 { L::bits(sums[i][c]) } else { round_f16::<L>(sums[i][c]) };
            let nan = L::splat(if step.d_f32 { 0x7fff_ffff } else { 0x7fff });
            let magnitude = L::and(L::bits(sums[i][c]), L::splat(0x7fff_ffff));
            write_cells::<L>(L::if_greater(magnitude, L::splat(0x7f80_0000), nan, bits), cells);
        }
    }
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

/// A CTA's part of D = A·Bᵀ (+ D).
pub struct Product<'a> {
    pub numerics: Numerics,
    pub descriptor: &'a InstructionDescriptor,
    pub layout: Layout,
    pub column: u32,
    pub accumulate: bool,
    /// Power of two that D is divided by before it is added.
    pub scale: u32,
    /// Lanes that are not written.
    pub disabled: u128,
    /// Why rows or columns without defined operands hold nothing.
    pub origin: u32,
}

impl Product<'_> {
    pub fn run(&self, tensor: &mut TensorMemory, a: &Operand, b: &Operand) {
        let i = self.descriptor;
        let step = MmaStep {
            a_bf16: i.a_bf16,
            b_bf16: i.b_bf16,
            d_f32: i.d_f32,
            negate_a: i.negate_a,
            negate_b: i.negate_b,
            accumulate: self.accumulate,
            scale: self.scale,
        };
        // Runs of columns that lie side by side in tensor memory, each in lanes of its own.
        let run = self.layout.columns(i.n);
        let mut lists = Vec::new();
        for first in (0..i.n).step_by(run.max(1) as usize) {
            let (mut rows, mut written, mut defined) = (Vec::new(), 0u128, 0u128);
            for (row, &row_defined) in a.defined.iter().enumerate() {
                let (lane, at) = self.layout.cell(row as u32, first, i.n);
                if lane < LANES && self.disabled >> lane & 1 == 0 {
                    rows.push((row, TensorMemory::index(lane, self.column + at)));
                    written |= 1 << lane;
                    defined |= u128::from(row_defined) << lane;
                }
            }
            lists.push((first, rows, written, defined));
        }
        let strips: Vec<Strip> = lists
            .iter()
            .map(|(first, rows, ..)| Strip { rows, columns: *first as usize..(*first + run) as usize })
            .collect();
        let factors = Factors::new(self.numerics, &step, &a.bits, &b.bits, &strips);
        super::simd::run(self.numerics, &step, &factors, &strips, tensor.cells_mut());
        for (first, _, written, defined) in lists {
            for c in 0..run {
                let column = self.column + c;
                let mut now = if b.defined[(first + c) as usize] { defined } else { 0 };
                if self.accumulate {
                    now &= tensor.defined_lanes(column);
                }
                if written & !now != 0 && tensor.origin(column) == 0 {
                    tensor.set_origin(column, self.origin);
                }
                tensor.define_lanes(column, written, now);
            }
        }
    }
}

#[cfg(test)]
#[path = "product_tests.rs"]
mod tests;
