//! `mma.sync`, decoded.

use super::op::Reg;

/// Operands of `mma.sync`: 16 rows of A, 8 columns of B.
#[derive(Debug)]
pub struct WarpMmaOp {
    /// A and B are BF16; else FP16.
    pub bf16: bool,
    /// C and D are FP32; else FP16, two in a register.
    pub d_f32: bool,
    /// Columns of A and rows of B: 8 or 16.
    pub depth: usize,
    /// D; `Reg::Sink` for `_`.
    pub d: Vec<Reg>,
    /// Fragments of A, B and C.
    pub a: Vec<u16>,
    /// See `a`.
    pub b: Vec<u16>,
    /// See `a`.
    pub c: Vec<u16>,
}
