//! `mma.sync`, decoded.

use super::kind::Types;
use super::op::Reg;
use crate::program::arithmetic::rounding64::Round;

/// Operands of `mma.sync`: the fragments of four matrices that a lane holds.
#[derive(Debug)]
pub struct WarpMmaOp {
    pub form: Form,
    /// D; `Reg::Sink` for `_`.
    pub d: Vec<Reg>,
    /// Fragments of A, B and C: registers as wide as the form has them.
    pub a: Vec<u16>,
    /// See `a`.
    pub b: Vec<u16>,
    /// See `a`.
    pub c: Vec<u16>,
}

/// What an `mma.sync` multiplies. B has 8 columns.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// 16 rows of A; elements are packed in registers of 32 bits.
    Narrow {
        types: Types,
        /// Bytes of a row of A and of a column of B: 16 or 32.
        bytes: usize,
    },
    /// FP64; an element is a register of 64 bits.
    Wide {
        /// Rows of A: 8 or 16.
        rows: usize,
        /// Columns of A: 4, 8 or 16.
        depth: usize,
        /// How each addition is rounded.
        round: Round,
    },
}

impl Form {
    /// How many registers a lane's fragments of D, A, B and C have.
    pub fn registers(self) -> [usize; 4] {
        match self {
            Form::Narrow { types, bytes } => {
                let accumulators = if types.wide_d() { 4 } else { 2 };
                [accumulators, bytes / 8, bytes / 16, accumulators]
            }
            Form::Wide { rows, depth, .. } => [rows / 4, rows * depth / 32, depth / 4, rows / 4],
        }
    }

    /// A register of a fragment, by its number.
    pub fn register(self, number: u16) -> Reg {
        match self {
            Form::Narrow { .. } => Reg::B32(number),
            Form::Wide { .. } => Reg::B64(number),
        }
    }
}

impl WarpMmaOp {
    /// The registers that it reads.
    pub fn uses(&self) -> Vec<Reg> {
        [&self.a, &self.b, &self.c].into_iter().flatten().map(|&number| self.form.register(number)).collect()
    }
}
