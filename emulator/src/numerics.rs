//! What one `tcgen05.mma` or `wgmma.mma_async` computes.

use crate::machine::arithmetic::batch::with_factors;
use crate::machine::arithmetic::product::Product;
use crate::machine::arithmetic::strip::Strip;
use crate::machine::arithmetic::{simd, tiles};

/// How the tensor core's arithmetic is computed.
///
/// # What is documented
///
/// The PTX ISA says of `tcgen05.mma` that D = A·B, or D = A·B + D, in the formats of the instruction descriptor; that
/// `scale-input-d` divides D by a power of two first; and that with `enable-input-d` false D does not enter. It does not
/// say in which order products are added, nor to how many bits. So neither of the two is *the* result.
///
/// # What is assumed
///
/// [`Exact`](Numerics::Exact) follows the model of MMA-Sim ([arXiv 2511.10909](https://arxiv.org/abs/2511.10909), code at
/// [microsoft/MMA-Sim](https://github.com/microsoft/MMA-Sim)). Its authors compared it with a B200, bit for bit, for
/// dense MMAs of `cta_group::1`. All outputs of an MMA follow one rule; the terms are D and the 16 products:
///
/// 1. A term's exponent is that of its *unnormalised* significand: for a product the sum of its factors' exponents, so
///    that its significand lies in [1, 4). A subnormal number has the smallest exponent of its format (FP16: −14, BF16
///    and FP32: −126). A zero has exponent −126 in any format, and so has a product with a factor that is zero. In
///    MMA-Sim the exponents of such a product add up, so that 0 · 2^60 would cut off all that is subnormal; an H200
///    showed that it does not (silicon/wgmma_numerics/subnormal_bf16_f32 and without_d_bf16_f32), and Blackwell is taken
///    to be alike.
/// 2. Every significand is cut off, towards zero, below 2^(E − 25), where E is the largest of the 17 exponents.
/// 3. What is left is added without error.
/// 4. An FP32 result is cut off towards zero; an FP16 result is rounded to nearest, ties to even. Subnormal results are
///    kept. What is too large becomes an infinity. A sum that is zero, or becomes zero, is +0.
/// 5. A NaN, 0·∞ or ∞ − ∞ gives `0x7fff_ffff` (FP16: `0x7fff`); otherwise an infinite term gives that infinity.
///
/// A D that does not enter is a term +0. Between MMAs, nothing wider than D is kept.
///
/// For `wgmma.mma_async` with FP16, BF16 and TF32 operands MMA-Sim has the same model with the same 25 bits, after Hopper. An H200 gave
/// the bits of this one in all 26 cases of silicon/wgmma_numerics, 4096 sums each, and in the 14 of silicon/wgmma_tf32, 2048 each. With
/// FP8 operands Hopper keeps less: terms are cut off below 2^(E − 13), and of the fraction of an FP32 result all but 13 bits are zero. A D
/// with more bits loses them, also if all products are zero. An FP16 result is rounded from what is left. An H200 gave these bits in all
/// 51 cases of silicon/wgmma_fp8, with E4M3 and E5M2 on either side.
///
/// `mma.sync` with FP16, BF16 and TF32 operands follows the rule with 25 bits (silicon/warp_mma). For FP8, ptxas (CUDA 13.0; targets
/// `sm_90a` and `sm_100a`) makes FP16 of both operands and two products of these: first those of the low halves of all registers, from a D
/// that does not enter, then those of the high halves, in the format of D; C is added to that with one rounding to nearest. Both ways to
/// compute do the same.
///
/// Of the other kinds of `tcgen05.mma`, the same model has `kind::tf32` (without the low 13 bits of each element, so that a NaN of which no
/// other bit is set becomes an infinity, as on an H200: silicon/wgmma_tf32/special), `f8f6f4` and
/// `mxf8f6f4` (whose scale factors add to the exponent of each product that is not zero), with 8 or 32 products. `mxf4` and `mxf4nvf4`
/// add 16 products each without error and multiply the sum with both scale factors; such a term's exponent is that of these two, and terms
/// are cut off below 2^(E − 35). `kind::i8` is exact: D goes round, or ends at the largest and the smallest number where the instruction
/// descriptor says so.
///
/// Nobody has published a comparison for the following, and the model is taken to hold all the same: `cta_group::2`; A in
/// tensor memory; negated operands; `scale-input-d`, which here lowers D's exponent and leaves its significand as it is; E2M3 and E3M2.
///
/// # By kind
///
/// | kind | documented (PTX ISA) | compared with hardware | assumed |
/// |---|---|---|---|
/// | `f16` | formats, D = A·B (+ D / 2^scale) | MMA-Sim on a B200; `wgmma` on an H200 | what stands above |
/// | `tf32` | the same; 19 bits of each element count | MMA-Sim on a B200; `wgmma` on an H200 | a NaN in the bits that are cut off (`mma-nan-in-cut-bits`) |
/// | `f8f6f4` | formats, D = A·B (+ D): `scale-input-d` is for the two above | MMA-Sim on a B200: E4M3, E5M2, E2M1 | E2M3, E3M2; formats mixed with these |
/// | `i8` | all: integer sums are exact, and wrap or end at the bounds | `wgmma` on an H200 | nothing |
/// | `mxf8f6f4` | as `f8f6f4`, and a scale factor (UE8M0) for each 32 elements of a row | MMA-Sim on a B200: E4M3, E5M2, E2M1 | E2M3, E3M2; a product of zero with its factor |
/// | `mxf4`, `mxf4nvf4` | the same, 32 or 16 elements, UE8M0 or, of 16, UE4M3 | MMA-Sim on a B200 | an infinite D; zeros; bit 7 of UE4M3 (`ue4m3-top-bit`) |
/// | `mma.sync` | formats | an H200 | Blackwell is as Hopper |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numerics {
    /// In FP32, fast; a sum differs from the tensor core's in the last bits. An FP16 accumulator is rounded once, at the
    /// end of an MMA.
    ///
    /// In which order is up to the CPU. In vectors: D, then the products in the order of k, each added with one rounding
    /// to nearest (a fused multiply-add); the same bits on every CPU. In the tiles of AMX, where CPU and system have them
    /// (`amx-bf16`, Linux): products of an MMA are added to each other first, in the order of the CPU, and such sums to D;
    /// but FP16 accumulators, and operands that are not finite, or in BF16 so small or large that tiles would not keep
    /// them, stay with the vectors. On one CPU the same MMAs give the same bits.
    ///
    /// FP8 of `wgmma.mma_async` keeps all bits of FP32 here, of which hardware drops ten.
    ///
    /// The kinds beside `kind::f16` stay with the vectors; elements count times their scale factors, and where FP32 does not hold those,
    /// the MMA is computed as by [`Exact`](Numerics::Exact).
    #[default]
    Fast,
    /// Bit for bit after the model of MMA-Sim.
    Exact,
}

/// One MMA of `kind::f16`, 16 deep.
///
/// ```
/// use emulator::{MmaStep, Numerics};
///
/// // 1 × 1 × 16 in FP16: sixteen times 1.0 × 1.0, added to 0.5.
/// let mut d = [0.5f32.to_bits()];
/// let step = MmaStep { accumulate: true, d_f32: true, ..MmaStep::default() };
/// step.run(Numerics::Exact, &[0x3c00; 16], &[0x3c00; 16], &mut d).expect("the sizes fit");
/// assert_eq!(f32::from_bits(d[0]), 16.5);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MmaStep {
    /// A is BF16; else FP16.
    pub a_bf16: bool,
    /// B is BF16; else FP16.
    pub b_bf16: bool,
    /// D is FP32; else FP16, in the low half of a cell.
    pub d_f32: bool,
    /// A is negated.
    pub negate_a: bool,
    /// B is negated.
    pub negate_b: bool,
    /// D is added (`enable-input-d`).
    pub accumulate: bool,
    /// Power of two that D is divided by before it is added (`scale-input-d`): 0 to 15.
    pub scale: u32,
}

impl MmaStep {
    /// D = A·Bᵀ, or D = A·Bᵀ + D / 2^scale. A is m × 16 and B is n × 16, both row after row; D is m × n cells of 32 bits,
    /// row after row. Sizes that do not fit together, and a scale above 15, are an error and leave D as it is.
    pub fn run(&self, numerics: Numerics, a: &[u16], b: &[u16], d: &mut [u32]) -> Result<(), String> {
        self.run_batch(numerics, true, 1, a, b, d)
    }

    /// Several steps, one after the other in A and in B; in tiles only if they may be used.
    #[doc(hidden)]
    pub fn run_batch(
        &self,
        numerics: Numerics,
        in_tiles: bool,
        steps: usize,
        a: &[u16],
        b: &[u16],
        d: &mut [u32],
    ) -> Result<(), String> {
        let (m, n) = (a.len() / 16 / steps, b.len() / 16 / steps);
        if !a.len().is_multiple_of(16 * steps) || !b.len().is_multiple_of(16 * steps) || d.len() != m * n {
            return Err(format!(
                "A has {} elements, B {}, D {}; allowed: A m × 16, B n × 16, D m × n",
                a.len(),
                b.len(),
                d.len()
            ));
        }
        if self.scale > 15 {
            return Err(format!("scale is {}; allowed: 0 to 15", self.scale));
        }
        let rows: Vec<(usize, usize)> = (0..m).map(|r| (r, r * n)).collect();
        let strips = [Strip { rows: &rows, columns: 0..n }];
        let (a, b) = (a.as_chunks().0, b.as_chunks().0);
        let a: Vec<_> = (0..steps).map(|step| &a[step * m..(step + 1) * m]).collect();
        let b: Vec<_> = (0..steps).map(|step| &b[step * n..(step + 1) * n]).collect();
        with_factors(|factors| {
            simd::run(Product {
                numerics,
                step: *self,
                a: &a,
                b: &b,
                strips: &strips,
                factors,
                same_b: false,
                tiles: if in_tiles { tiles::of(numerics, self) } else { None },
                cells: d,
                prefetches: Default::default(),
            });
        });
        Ok(())
    }

    /// Whether there are tiles for it.
    #[doc(hidden)]
    pub fn has_tiles(&self, numerics: Numerics) -> bool {
        tiles::of(numerics, self).is_some()
    }
}
