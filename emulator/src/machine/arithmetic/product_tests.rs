//! Tests of the FP32 product.

use super::*;
use crate::machine::arithmetic::exact::tests::Random;
use crate::machine::arithmetic::simd::Plain;
use half::{bf16, f16};

#[test]
fn conversions_agree_with_the_half_crate_on_every_input() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
    for rows in all.as_chunks().0 {
        let (f, b) = (values::<Plain>(rows, false, false), values::<Plain>(rows, true, true));
        for (&bits, (f, b)) in rows.iter().zip(f.into_iter().zip(b)) {
            assert!(same(f, f16::from_bits(bits).to_f32()), "FP16 {bits:#06x} became {f}");
            assert!(same(b, -bf16::from_bits(bits).to_f32()), "BF16 {bits:#06x}, negated, became {b}");
        }
    }
    // Every FP16 number, the FP32 numbers next to it, those next to the ties, and far outside.
    for bits in (0..=u32::MAX).step_by(0x7ff).chain((0..=u32::MAX).step_by(0x1001)) {
        let value = f32::from_bits(bits);
        if !value.is_nan() {
            let got = round_f16::<Plain>([value; WIDTH])[3];
            assert_eq!(got, u32::from(f16::from_f32(value).to_bits()), "{value:e} = {bits:#010x}");
        }
    }
    for &bits in &all {
        let (got, want) = (f16_values::<Plain>([bits.into(); WIDTH])[3], f16_value(bits));
        assert!(same(got, want), "FP16 {bits:#06x} in a cell became {got}");
    }
}

/// In vectors, the FP32 path is D, then the products by ascending k, each added with one rounding: the plain loops.
#[test]
fn fast_sums_are_those_of_the_plain_loops() {
    let mut random = Random(11);
    for case in 0..200 {
        let (m, n) = (1 + case % 13, [8, 16, 24, 40, 72, 5, 33][case % 7]);
        let (a_bf16, d_f32) = (case % 3 == 1, case % 4 != 0);
        let (a_bf16, accumulate) = (a_bf16 && d_f32, case % 5 != 0);
        let b_bf16 = a_bf16 && case % 2 == 0;
        let step = MmaStep {
            a_bf16,
            b_bf16,
            d_f32,
            accumulate,
            scale: case as u32 / 8 % 4,
            negate_a: case % 2 == 1,
            ..MmaStep::default()
        };
        let a: Vec<u16> = (0..m * 16).map(|_| random.next() as u16).collect();
        let b: Vec<u16> = (0..n * 16).map(|_| random.next() as u16 & 0xbfff).collect();
        let before: Vec<u32> = (0..m * n).map(|_| random.next() as u32 & 0xbfff_bfff).collect();
        let mut d = before.clone();
        step.run_batch(Numerics::Fast, false, 1, &a, &b, &mut d).unwrap();
        for (at, &got) in d.iter().enumerate() {
            let c = if d_f32 { f32::from_bits(before[at]) } else { f16::from_bits(before[at] as u16).to_f32() };
            let mut sum = if accumulate { 1.0 / (1 << step.scale) as f32 * c } else { 0.0 };
            for k in 0..16 {
                let x = a[at / n * 16 + k];
                let x = if a_bf16 { bf16::from_bits(x).to_f32() } else { f16::from_bits(x).to_f32() };
                let x = if step.negate_a { -x } else { x };
                let y = b[at % n * 16 + k];
                let y = if b_bf16 { bf16::from_bits(y).to_f32() } else { f16::from_bits(y).to_f32() };
                sum = x.mul_add(y, sum);
            }
            let want = match (sum.is_nan(), d_f32) {
                (true, true) => 0x7fff_ffff,
                (true, false) => 0x7fff,
                (false, true) => sum.to_bits(),
                (false, false) => f16::from_f32(sum).to_bits().into(),
            };
            assert_eq!(got, want, "case {case}, {m} × {n}, element {at}: {sum:e}");
        }
    }
}
