//! The problem that a kernel solves: D = A · Bᵀ, its shapes and its matrices in global memory.

use crate::address::GlobalAddress;
use crate::register::{Operand, U32, U64, Value};
use crate::state::with;
use std::fmt;

/// Type of the elements of A, B and D. Sums are always kept in FP32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
}

impl Dtype {
    /// Bytes of an element.
    pub const fn bytes(self) -> u32 {
        match self {
            Dtype::F16 | Dtype::Bf16 => 2,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
        })
    }
}

/// A matrix in global memory, row after row. It reaches the kernel as a parameter: a pointer with the matrix's name, or
/// a tensor map for each shape of tile that TMA moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// `"A"`, `"B"` or `"D"`.
    pub name: &'static str,
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
    /// Type of its elements.
    pub dtype: Dtype,
}

impl Matrix {
    /// The address of an element, for a load or a store.
    ///
    /// Executed by every thread of the scope, each with its own row and column. PTX: `ld.param.u64`, then one
    /// `mad.wide.u32` for a row and one for a column that is a register; constants go into the offset.
    #[track_caller]
    pub fn at(&self, row: impl Operand<U32>, column: impl Operand<U32>) -> GlobalAddress {
        let (row, column) = (row.value(), column.value());
        with(|s| {
            for (what, value, count) in [("row", row, self.rows), ("column", column, self.columns)] {
                if let Value::Unsigned(index) = value
                    && index >= u64::from(count)
                {
                    s.error(
                        format!("{what} {index} of matrix {} does not exist: it has {count} {what}s", self.name),
                        format!("use a {what} from 0 to {}", count.saturating_sub(1)),
                    );
                    return GlobalAddress::dummy();
                }
            }
            let element = u64::from(self.dtype.bytes());
            let pitch = u64::from(self.columns) * element;
            if pitch > u64::from(u32::MAX) {
                s.error(
                    format!("rows of matrix {} have {pitch} bytes: `mad.wide.u32` takes a pitch of 32 bits", self.name),
                    format!("use {} columns or fewer", u64::from(u32::MAX) / element),
                );
                return GlobalAddress::dummy();
            }
            s.point_to(self.name);
            let mut address: U64 = s.fresh();
            let destination = s.name(address);
            s.instruction(format!("ld.param.u64 {destination}, [{}]", self.name));
            let mut offset = 0;
            for (value, scale) in [(row, pitch), (column, element)] {
                match value {
                    Value::Unsigned(index) => offset += index * scale,
                    value => {
                        let next: U64 = s.fresh();
                        let (to, from, value) = (s.name(next), s.name(address), s.text(value));
                        s.instruction(format!("mad.wide.u32 {to}, {value}, {scale}, {from}"));
                        address = next;
                    }
                }
            }
            // An offset in brackets has 32 bits and a sign.
            if offset > i32::MAX as u64 {
                address = s.binary("add.u64", Value::of(address), Value::Unsigned(offset));
                offset = 0;
            }
            GlobalAddress { register: address, offset: offset as u32 }
        })
        .unwrap_or(GlobalAddress::dummy())
    }
}

/// D = A · Bᵀ: what a kernel is built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Rows of A and D.
    pub m: u32,
    /// Rows of B, columns of D.
    pub n: u32,
    /// Columns of A and B: the depth of the sums.
    pub k: u32,
    /// Type of A, B and D.
    pub dtype: Dtype,
    /// Streaming multiprocessors of the GPU.
    pub sms: u32,
    /// A, m × k.
    pub a: Matrix,
    /// B, n × k.
    pub b: Matrix,
    /// D, m × n.
    pub d: Matrix,
}

impl Gemm {
    /// Tiles of this many rows that cover M, the last one perhaps in part.
    pub const fn tiles_m(&self, rows: u32) -> u32 {
        self.m.div_ceil(rows)
    }

    /// Tiles of this many columns that cover N, the last one perhaps in part.
    pub const fn tiles_n(&self, columns: u32) -> u32 {
        self.n.div_ceil(columns)
    }

    /// Tiles of this depth that cover K, the last one perhaps in part.
    pub const fn tiles_k(&self, depth: u32) -> u32 {
        self.k.div_ceil(depth)
    }

    /// The problem of this size, for a GPU with `sms` multiprocessors (148 on a B200).
    pub fn new(m: u32, n: u32, k: u32, dtype: Dtype, sms: u32) -> Gemm {
        let matrix = |name, rows, columns| Matrix { name, rows, columns, dtype };
        Gemm { m, n, k, dtype, sms, a: matrix("A", m, k), b: matrix("B", n, k), d: matrix("D", m, n) }
    }
}

impl fmt::Display for Gemm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{} {}", self.m, self.n, self.k, self.dtype)
    }
}
