//! `mma.sync` and `movmatrix`: what the lanes of a warp hold is one matrix (PTX ISA, mma, matrix fragments; movmatrix).
//!
//! A lane's group is its number divided by 4, its place the rest. It holds pairs of neighbours in a row of A, of a column of B, and of a
//! row of C and D. Products are those of `tcgen05.mma`; what is said of [`crate::Numerics`] holds here, too.

use super::cluster::{Cluster, Stop};
use super::state::At;
use crate::numerics::MmaStep;
use crate::program::op::Reg;
use crate::program::warp_mma::WarpMmaOp;

/// Cycles from an `mma.sync` m16n8k16, or a `movmatrix`, to its result: what a chain of 16 takes on an H200, less what is around it
/// (`emulator/tests/silicon/timing/warp_mma`). Of a B200 nothing is known.
const LATENCY: u64 = 23;

const ROWS: usize = 16;
const COLUMNS: usize = 8;

/// The half of each lane's register of A, B or C that holds an element, by what is constant in a lane and what pairs run along.
fn lane_of(group: usize, along: usize) -> (usize, u32) {
    (4 * group + along % 8 / 2, 16 * (along as u32 % 2))
}

impl Cluster<'_> {
    pub fn warp_mma(&mut self, at: At, op: &WarpMmaOp) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        self.whole_warp(w, mask, site)?;
        let r = &self.warps[w].registers;
        let half = |reg: u16, (lane, shift): (usize, u32)| (r.b32[usize::from(reg)][lane] >> shift) as u16;
        let lacks = |reg: u16, (lane, _): (usize, u32)| r.defined(Reg::B32(reg)) >> lane & 1 == 0;
        // Rows of A, and columns of B as rows; what is beyond the depth is zero. Of each, whether an element has no value.
        let (mut a, mut b) = ([0u16; 16 * ROWS], [0u16; 16 * COLUMNS]);
        let (mut a_lacks, mut b_lacks) = ([false; ROWS], [false; COLUMNS]);
        for (row, lacking) in a_lacks.iter_mut().enumerate() {
            for k in 0..op.depth {
                let (reg, place) = (op.a[row / 8 + 2 * (k / 8)], lane_of(row % 8, k));
                a[16 * row + k] = half(reg, place);
                *lacking |= lacks(reg, place);
            }
        }
        for (column, lacking) in b_lacks.iter_mut().enumerate() {
            for k in 0..op.depth {
                let (reg, place) = (op.b[k / 8], lane_of(column, k));
                b[16 * column + k] = half(reg, place);
                *lacking |= lacks(reg, place);
            }
        }
        // Where an element of C and D lies: which of the registers, the lane, and the half of it.
        let place = |row: usize, column: usize| {
            let (lane, shift) = lane_of(row % 8, column);
            if op.d_f32 { (2 * (row / 8) + column % 2, lane, 0) } else { (row / 8, lane, shift) }
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
        let step =
            MmaStep { a_bf16: op.bf16, b_bf16: op.bf16, d_f32: op.d_f32, accumulate: true, ..MmaStep::default() };
        if let Err(why) = step.run_batch(self.options.numerics, false, 1, &a, &b, &mut cells) {
            return Err(Some(Box::new(self.problem(
                "ptx-semantics",
                site,
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
                values[n][lane] |= if op.d_f32 { cell } else { (cell & 0xffff) << shift };
            }
        }
        let done = self.warps[w].fragments[f].ready_at + LATENCY;
        let uses: Vec<Reg> = [&op.a[..], &op.b, &op.c].concat().into_iter().map(Reg::B32).collect();
        for ((&d, value), defined) in op.d.iter().zip(&values).zip(defined) {
            let Reg::B32(reg) = d else { continue };
            self.set_fragment(at, &uses, (reg, value), defined, done);
        }
        Ok(())
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
        self.set_fragment(at, &[Reg::B32(a)], (d, &value), defined, done);
        Ok(())
    }

    /// A register of a result, which lanes hold no defined value of whose sources have none.
    fn set_fragment(&mut self, at: At, uses: &[Reg], (d, value): (u16, &[u32; 32]), defined: u32, done: u64) {
        let At { w, mask, site, .. } = at;
        let d_reg = Reg::B32(d);
        if defined != u32::MAX {
            self.inherit_origin(w, uses, d_reg, mask, site);
        } else {
            self.warps[w].origins.remove(&d_reg);
        }
        let warp = &mut self.warps[w];
        warp.registers.write32(d, mask, value);
        warp.registers.set_defined(d_reg, mask, defined);
        warp.on_the_way.push(&warp.registers, d_reg, done);
    }
}
