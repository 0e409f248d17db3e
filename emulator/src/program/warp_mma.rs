//! `mma.sync`, decoded.

use super::kind::Types;
use super::op::Reg;
use super::rounding64::Round;

/// Operands of `mma.sync`: 16 rows of A, 8 columns of B.
#[derive(Debug)]
pub struct WarpMmaOp {
    pub types: Types,
    /// Bytes of a row of A and of a column of B: 16 or 32.
    pub bytes: usize,
    /// D; `Reg::Sink` for `_`.
    pub d: Vec<Reg>,
    /// Fragments of A, B and C.
    pub a: Vec<u16>,
    /// See `a`.
    pub b: Vec<u16>,
    /// See `a`.
    pub c: Vec<u16>,
}

/// Operands of `mma.sync` of FP64: registers of 64 bits.
#[derive(Debug)]
pub struct WideMmaOp {
    /// Rows of A: 8 or 16. B has 8 columns.
    pub rows: usize,
    /// Columns of A: 4, 8 or 16.
    pub depth: usize,
    /// How each addition is rounded.
    pub round: Round,
    /// D; `Reg::Sink` for `_`.
    pub d: Vec<Reg>,
    /// Fragments of A, B and C.
    pub a: Vec<u16>,
    /// See `a`.
    pub b: Vec<u16>,
    /// See `a`.
    pub c: Vec<u16>,
}
