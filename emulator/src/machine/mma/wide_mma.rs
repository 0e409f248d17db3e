//! `mma.sync` of FP64: what the lanes of a warp hold is one matrix (PTX ISA, mma, matrix fragments with `.f64`).
//!
//! A lane's group is its number divided by 4, its place the rest. It holds one row and one column at a time: of A row `group` and column `place`,
//! of B row `place` and column `group`, of C and D two neighbours in a row. Further rows are 8 on, further depths 4.

use crate::machine::cluster::Cluster;
use crate::machine::state::At;
use crate::machine::warp::registers::Registers;
use crate::program::arithmetic::rounding64::{Round, fma};
use crate::program::op::Reg;
use crate::program::warp_mma::WarpMmaOp;

const COLUMNS: usize = 8;

impl Cluster<'_> {
    /// D = A B + C. Each element is a chain of fused multiplications and additions, the depths one after the other, each rounded as the
    /// instruction says: what an H100 computes, whatever the shape.
    pub fn wide_mma(&mut self, at: At, op: &WarpMmaOp, (rows, depth): (usize, usize), round: Round) {
        let r = &self.warps[at.w].registers;
        let value = |reg: u16, lane: usize| r.b64[usize::from(reg)][lane];
        let has = |reg: u16, lane: usize| r.defined(Reg::B64(reg)) >> lane & 1 == 1;
        // Rows of 8 lie in one register, the next 8 in the next; depths of 4 in those behind them.
        let blocks = rows / 8;
        let a = |row: usize, k: usize| (op.a[k / 4 * blocks + row / 8], row % 8 * 4 + k % 4);
        let b = |k: usize, column: usize| (op.b[k / 4], column * 4 + k % 4);
        let mut values = vec![[0u64; 32]; op.d.len()];
        let mut defined = vec![u32::MAX; op.d.len()];
        for row in 0..rows {
            for column in 0..COLUMNS {
                let (n, lane) = (row / 8 * 2 + column % 2, row % 8 * 4 + column / 2);
                let mut sum = value(op.c[n], lane);
                let mut whole = has(op.c[n], lane);
                for k in 0..depth {
                    let ((a, at), (b, from)) = (a(row, k), b(k, column));
                    sum = fma(value(a, at), value(b, from), sum, round);
                    whole &= has(a, at) && has(b, from);
                }
                values[n][lane] = sum;
                defined[n] &= !(u32::from(!whole) << lane);
            }
        }
        // How long one of FP64 takes is not known; the tensor core of a B200 has a small part of the rate that an H200 has.
        self.set_fragments(at, op, &values, &defined, Registers::write64);
    }
}
