//! What D must be.

use crate::gemm;
use crate::inputs::{Inputs, decode, encode};
use crate::problem::Problem;
use ptx::Dtype;

/// The right D of some inputs, in FP64.
///
/// FP64 holds every integer sum of ours exactly (they stay below 2²⁴), in whatever order it is added, so one product
/// serves all kinds of inputs. Sizes at which FP64 takes too long will take FP32 with FP64 samples here.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The problem.
    pub problem: Problem,
    /// D must be the exact sum rounded once to nearest even, bit for bit; else it must be near.
    pub exact: bool,
    /// D, m × n.
    pub values: Vec<f64>,
    /// A and B as numbers, for partial products.
    pub operands: Operands,
}

/// A and B as numbers.
#[derive(Clone, Debug)]
pub struct Operands {
    /// A, row by row.
    pub a: Vec<f64>,
    /// B, row by row.
    pub b: Vec<f64>,
}

impl Reference {
    /// The reference for these inputs.
    pub fn new(inputs: &Inputs) -> Reference {
        let Problem { m, n, k, .. } = inputs.problem;
        let wide = |values: Vec<f32>| -> Vec<f64> { values.into_iter().map(f64::from).collect() };
        let operands = Operands { a: wide(inputs.a_values()), b: wide(inputs.b_values()) };
        let values = gemm::product(&operands.a, &operands.b, m as usize, n as usize, k as usize);
        Reference { problem: inputs.problem, exact: inputs.kind.is_exact(), values, operands }
    }

    /// Element of D.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.problem.n as usize + column]
    }

    /// Whether `found` (a number of the type) is right where `expected` is asked for.
    pub fn accepts(&self, expected: f64, found: f32) -> bool {
        let dtype = self.problem.dtype;
        if self.exact {
            // The sum is exact in FP32, so this rounds once. −0 and +0 are the same sum.
            found == decode(dtype, encode(dtype, expected as f32))
        } else {
            (f64::from(found) - expected).abs() <= tolerance(dtype, expected)
        }
    }
}

/// How far an element may be from the FP64 sum: the rounding of the type, and of FP32 sums in any order.
pub fn tolerance(dtype: Dtype, expected: f64) -> f64 {
    let relative = match dtype {
        Dtype::F16 => 1e-3,
        Dtype::Bf16 => 4e-3,
    };
    1e-2 + relative * expected.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::InputKind;

    fn tiny(kind: InputKind, a: &[f32], b: &[f32]) -> Reference {
        let encode_all = |values: &[f32]| values.iter().map(|v| encode(Dtype::F16, *v)).collect();
        Reference::new(&Inputs { problem: Problem::f16(1, 1, 2), kind, seed: 0, a: encode_all(a), b: encode_all(b) })
    }

    #[test]
    fn integers_are_rounded_once_to_nearest_even() {
        // 45·45 + 12·2 = 2049, halfway between the FP16 numbers 2048 and 2050: even is 2048.
        let reference = tiny(InputKind::Integers, &[45., 12.], &[45., 2.]);
        assert_eq!(reference.values, [2049.0]);
        assert!(reference.accepts(2049.0, 2048.0));
        assert!(!reference.accepts(2049.0, 2050.0));
    }

    #[test]
    fn normals_may_be_near() {
        let reference = tiny(InputKind::Normal, &[1.5, 0.], &[2., 0.]);
        assert_eq!(reference.values, [3.0]);
        // 1e-2 + 1e-3 · 3 = 0.013.
        assert!(reference.accepts(3.0, 3.0125));
        assert!(!reference.accepts(3.0, 3.0155));
        assert!(!reference.accepts(3.0, f32::NAN));
    }
}
