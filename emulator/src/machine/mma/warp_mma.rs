//! `mma.sync` and `movmatrix`: what the lanes of a warp hold is one matrix (PTX ISA, mma, matrix fragments; movmatrix).
//!
//! A lane's group is its number divided by 4, its place the rest. It holds four bytes of a row of A and of a column of B at a time, and
//! pairs of neighbours in a row of C and D. Products are those of `tcgen05.mma`, but for FP8: ptxas makes FP16 of it, and two products of
//! that. What is said of [`crate::Numerics`] holds here, too.

use crate::machine::arithmetic::batch::with_factors;
use crate::machine::arithmetic::exact_kinds::Precision;
use crate::machine::arithmetic::strip::Strip;
use crate::machine::arithmetic::{kinds, simd};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::At;
use crate::machine::tensor_memory::scale_factors::ScaleFactors;
use crate::machine::warp::registers::Registers;
use crate::numerics::{MmaStep, Numerics};
use crate::program::kind::{Accumulator, Format, Kind, Types};
use crate::program::op::Reg;
use crate::program::warp_mma::{Form, WarpMmaOp};
use half::f16;

/// Cycles from an `mma.sync` m16n8k16, or a `movmatrix`, to its result: what a chain of 16 takes on an H200, less what is around it
/// (`emulator/tests/silicon/timing/warp_mma`). Of a B200 nothing is known.
pub const LATENCY: u64 = 23;

const ROWS: usize = 16;
const COLUMNS: usize = 8;

/// The half of each lane's register of A, B or C that holds two bytes, by what is constant in a lane and what pairs run along.
fn lane_of(group: usize, along: usize) -> (usize, u32) {
    (4 * group + along % 8 / 2, 16 * (along as u32 % 2))
}

/// Adds the product of 16 rows of 32 bytes and 8 columns to the cells.
fn multiply(numerics: Numerics, types: &Types, a: &[u16], b: &[u16], cells: &mut [u32]) -> Result<(), String> {
    let step = MmaStep {
        a_bf16: types.a == Format::Bf16,
        b_bf16: types.b == Format::Bf16,
        d_f32: types.d == Accumulator::F32,
        accumulate: true,
        ..MmaStep::default()
    };
    match types.kind {
        Kind::F16 => step.run_batch(numerics, false, 1, a, b, cells),
        Kind::F8f6f4 => {
            let mut sums = vec![0; cells.len()];
            let step = MmaStep { accumulate: false, ..step };
            step.run_batch(numerics, false, 2, &halves(types.a, a), &halves(types.b, b), &mut sums)?;
            for (cell, sum) in cells.iter_mut().zip(sums) {
                *cell = added(step.d_f32, *cell, sum);
            }
            Ok(())
        }
        _ => {
            let rows: Vec<(usize, usize)> = (0..ROWS).map(|row| (row, row * COLUMNS)).collect();
            with_factors(|factors| {
                simd::run(kinds::Product {
                    numerics,
                    precision: Precision::FULL,
                    descriptor: &types.descriptor(ROWS as u32, COLUMNS as u32),
                    accumulate: true,
                    scale: 0,
                    a: a.as_chunks().0,
                    b: b.as_chunks().0,
                    scales: &ScaleFactors::default(),
                    strips: &[Strip { rows: &rows, columns: 0..COLUMNS }],
                    factors,
                    cells,
                    prefetches: Default::default(),
                });
            });
            Ok(())
        }
    }
}

/// FP8 as FP16, which holds it exactly: of every register the low half of all rows, then the high half (`F2FP.F16.E4M3.UNPACK_B` of
/// either half in the machine code, with an `HMMA` behind each).
fn halves(format: Format, rows: &[u16]) -> Vec<u16> {
    let value = |byte: u16| match format.narrow() {
        Some(narrow) if !narrow.value(byte.into()).is_nan() => f16::from_f64(narrow.value(byte.into())).to_bits(),
        _ => 0x7fff,
    };
    let mut list = Vec::with_capacity(2 * rows.len());
    for half in 0..2 {
        for row in rows.chunks(16) {
            let words = row.iter().skip(half).step_by(2).flat_map(|word| [value(word & 0xff), value(word >> 8)]);
            list.extend(words);
        }
    }
    list
}

/// `FADD` or `HADD2`: rounded to nearest, with the canonical NaN.
fn added(d_f32: bool, c: u32, sum: u32) -> u32 {
    if d_f32 {
        let value = f32::from_bits(c) + f32::from_bits(sum);
        return if value.is_nan() { 0x7fff_ffff } else { value.to_bits() };
    }
    // FP32 holds enough bits of the sum of two FP16 numbers to be rounded once more.
    let value = f16::from_bits(c as u16).to_f32() + f16::from_bits(sum as u16).to_f32();
    if value.is_nan() { 0x7fff } else { f16::from_f32(value).to_bits().into() }
}

impl Cluster<'_> {
    pub fn warp_mma(&mut self, at: At, op: &WarpMmaOp) -> Result<(), Stop> {
        self.whole_warp(at.w, at.mask, at.site)?;
        match op.form {
            Form::Narrow { types, bytes } => return self.narrow_mma(at, op, types, bytes),
            Form::Wide { rows, depth, round } => self.wide_mma(at, op, (rows, depth), round),
        }
        Ok(())
    }

    fn narrow_mma(&mut self, at: At, op: &WarpMmaOp, types: Types, bytes: usize) -> Result<(), Stop> {
        let r = &self.warps[at.w].registers;
        let half = |reg: u16, (lane, shift): (usize, u32)| (r.b32[usize::from(reg)][lane] >> shift) as u16;
        let lacks = |reg: u16, (lane, _): (usize, u32)| r.defined(Reg::B32(reg)) >> lane & 1 == 0;
        // Rows of A, and columns of B as rows; what is beyond the depth is zero. Of each, whether an element has no value.
        let (mut a, mut b) = ([0u16; 16 * ROWS], [0u16; 16 * COLUMNS]);
        let (mut a_lacks, mut b_lacks) = ([false; ROWS], [false; COLUMNS]);
        for (row, lacking) in a_lacks.iter_mut().enumerate() {
            for k in 0..bytes / 2 {
                let (reg, place) = (op.a[row / 8 + 2 * (k / 8)], lane_of(row % 8, k));
                a[16 * row + k] = half(reg, place);
                *lacking |= lacks(reg, place);
            }
        }
        for (column, lacking) in b_lacks.iter_mut().enumerate() {
            for k in 0..bytes / 2 {
                let (reg, place) = (op.b[k / 8], lane_of(column, k));
                b[16 * column + k] = half(reg, place);
                *lacking |= lacks(reg, place);
            }
        }
        let wide = types.wide_d();
        // Where an element of C and D lies: which of the registers, the lane, and the half of it.
        let place = |row: usize, column: usize| {
            let (lane, shift) = lane_of(row % 8, column);
            if wide { (2 * (row / 8) + column % 2, lane, 0) } else { (row / 8, lane, shift) }
        };
        let mut cells = [0u32; ROWS * COLUMNS];
        let mut defined = vec![u32::MAX; op.d.len()];
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let (n, lane, shift) = place(row, column);
                cells[COLUMNS * row + column] = r.b32[usize::from(op.c[n])][lane] >> shift;
                if a_lacks[row] || b_lacks[column] || lacks(op.c[n], (lane, 0)) {
                    defined[n] &= !(1 << lane);
                }
            }
        }
        if let Err(why) = multiply(self.options.numerics, &types, &a, &b, &mut cells) {
            return Err(Some(Box::new(self.problem(
                "ptx-semantics",
                at.site,
                format!("the product of this MMA was not computed: {why}"),
                "mma.sync multiplies 16 rows of A and 8 columns of B (PTX ISA, mma).",
                "This is a mistake of the emulator: please report the kernel.".into(),
            ))));
        }
        let mut values = vec![[0u32; 32]; op.d.len()];
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let (n, lane, shift) = place(row, column);
                let cell = cells[COLUMNS * row + column];
                values[n][lane] |= if wide { cell } else { (cell & 0xffff) << shift };
            }
        }
        self.set_fragments(at, op, &values, &defined, Registers::write32);
        Ok(())
    }

    /// The registers of D: which lanes of each hold a defined value, and what all of them hold. How long FP64 takes is not known (the tensor
    /// core of a B200 has a small part of the rate that an H200 has): as long as the others.
    pub fn set_fragments<V>(
        &mut self,
        at: At,
        op: &WarpMmaOp,
        values: &[V],
        defined: &[u32],
        write: impl Fn(&mut Registers, u16, u32, &V),
    ) {
        let done = self.warps[at.w].fragments[at.f].ready_at + LATENCY;
        let uses = op.uses();
        for ((&d, value), &defined) in op.d.iter().zip(values).zip(defined) {
            let (Reg::B32(number) | Reg::B64(number)) = d else { continue };
            self.set_fragment(at, &uses, d, defined, done, |registers| write(registers, number, at.mask, value));
        }
    }

    /// `movmatrix`: the matrix of 8 × 8 halves that the lanes hold, with rows and columns exchanged.
    pub fn move_matrix(&mut self, at: At, d: u16, a: u16) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        self.whole_warp(w, mask, site)?;
        let r = &self.warps[w].registers;
        let (from, known) = (r.b32[usize::from(a)], r.defined(Reg::B32(a)));
        let (mut value, mut defined) = ([0u32; 32], u32::MAX);
        for row in 0..8 {
            for column in 0..8 {
                let ((source, low), (lane, shift)) = (lane_of(column, row), lane_of(row, column));
                value[lane] |= (from[source] >> low & 0xffff) << shift;
                defined &= !(u32::from(known >> source & 1 == 0) << lane);
            }
        }
        let done = self.warps[w].fragments[f].ready_at + LATENCY;
        self.set_fragment(at, &[Reg::B32(a)], Reg::B32(d), defined, done, |registers| {
            registers.write32(d, mask, &value)
        });
        Ok(())
    }

    /// A register of a result, of which lanes hold no defined value whose sources have none.
    pub fn set_fragment(
        &mut self,
        at: At,
        uses: &[Reg],
        d: Reg,
        defined: u32,
        done: u64,
        write: impl FnOnce(&mut Registers),
    ) {
        let At { w, mask, site, .. } = at;
        if defined != u32::MAX {
            self.inherit_origin(w, uses, d, mask, site);
        } else {
            self.warps[w].origins.remove(&d);
        }
        let warp = &mut self.warps[w];
        write(&mut warp.registers);
        warp.registers.set_defined(d, mask, defined);
        warp.on_the_way.push(&warp.registers, d, done);
    }
}
