//! Tests of the FP32 product, and of where a product lies in tensor memory.

use super::super::exact::tests::Random;
use super::super::simd::Plain;
use super::*;
use half::{bf16, f16};

#[test]
fn conversions_agree_with_the_half_crate_on_every_input() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let rows = all.as_chunks().0;
    let same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
    let (f, b) = (values(rows, false, false), values(rows, true, true));
    for (&bits, (&f, &b)) in all.iter().zip(f.as_flattened().iter().zip(b.as_flattened())) {
        assert!(same(f, f16::from_bits(bits).to_f32()), "FP16 {bits:#06x} became {f}");
        assert!(same(b, -bf16::from_bits(bits).to_f32()), "BF16 {bits:#06x}, negated, became {b}");
    }
    // Every FP16 number, the FP32 numbers next to it, those next to the ties, and far outside.
    for bits in (0..=u32::MAX).step_by(0x7ff).chain((0..=u32::MAX).step_by(0x1001)) {
        let value = f32::from_bits(bits);
        if !value.is_nan() {
            let got = round_f16::<Plain>([value; WIDTH])[3];
            assert_eq!(got, f16::from_f32(value).to_bits().into(), "{value:e} = {bits:#010x}");
        }
    }
    for &bits in &all {
        let (got, want) = (f16_values::<Plain>([bits.into(); WIDTH])[3], f16_value(bits));
        assert!(same(got, want), "FP16 {bits:#06x} in a cell became {got}");
    }
}

/// The FP32 path is D, then each product by ascending k, each operation rounded: the plain loops.
#[test]
fn fast_sums_are_those_of_the_plain_loops() {
    let mut random = Random(11);
    for case in 0..200 {
        let (m, n) = (1 + case % 13, [8, 16, 24, 40, 72, 5, 33][case % 7]);
        let (a_bf16, d_f32) = (case % 3 == 1, case % 4 != 0);
        let (a_bf16, accumulate) = (a_bf16 && d_f32, case % 5 != 0);
        let step = MmaStep {
            a_bf16,
            d_f32,
            accumulate,
            scale: case as u32 % 4,
            negate_a: case % 2 == 1,
            ..MmaStep::default()
        };
        let a: Vec<u16> = (0..m * 16).map(|_| random.next() as u16).collect();
        let b: Vec<u16> = (0..n * 16).map(|_| random.next() as u16 & 0xbfff).collect();
        let before: Vec<u32> = (0..m * n).map(|_| random.next() as u32 & 0xbfff_bfff).collect();
        let mut d = before.clone();
        step.run(Numerics::Fast, &a, &b, &mut d).unwrap();
        for (at, &got) in d.iter().enumerate() {
            let c = if d_f32 { f32::from_bits(before[at]) } else { f16::from_bits(before[at] as u16).to_f32() };
            let mut sum = if accumulate { 1.0 / (1 << step.scale) as f32 * c } else { 0.0 };
            for k in 0..16 {
                let x = a[at / n * 16 + k];
                let x = if a_bf16 { bf16::from_bits(x).to_f32() } else { f16::from_bits(x).to_f32() };
                let x = if step.negate_a { -x } else { x };
                sum += x * f16::from_bits(b[at % n * 16 + k]).to_f32();
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

/// In every layout, with lanes disabled and rows or columns undefined: each cell of tensor memory as [`MmaStep`] says, or
/// as it was.
#[test]
fn products_lie_in_tensor_memory_as_the_layouts_say() {
    let mut random = Random(7);
    for case in 0..48u32 {
        let (m, rows, ctas) = [(128, 128, 1), (64, 64, 1), (128, 64, 2), (256, 128, 2)][case as usize % 4];
        let n = [16, 48, 64, 256][case as usize / 4 % 4];
        let (layout, accumulate, column) = (Layout::of(m, ctas), case % 3 != 0, 32);
        let numerics = if case % 2 == 0 { Numerics::Fast } else { Numerics::Exact };
        let format = |x: f32| f16::from_f32(x).to_bits();
        let mut operand = |rows: usize, holes: u64| Operand {
            bits: (0..rows * 16).map(|_| format(random.next() as i16 as f32 / 8192.0)).collect(),
            defined: (0..rows).map(|_| holes == 0 || !random.next().is_multiple_of(holes)).collect(),
        };
        let (a, b) = (operand(rows, u64::from(case / 16) * 9), operand(n as usize, u64::from(case / 16) * 5));
        let disabled = if case % 5 == 4 { u128::from(random.next()) << 32 } else { 0 };
        let mut tensor = TensorMemory::new();
        for lane in 0..LANES {
            for c in 0..512 {
                tensor.set(lane, c, (random.next() as i16 as f32).to_bits(), !random.next().is_multiple_of(7));
            }
        }
        let mut want: Vec<_> = (0..LANES * 512).map(|at| tensor.get(at / 512, at % 512)).collect();
        let step = MmaStep { d_f32: true, accumulate, ..MmaStep::default() };
        let cell = |r: usize, c: u32| {
            let (lane, at) = layout.cell(r as u32, c, n);
            (lane, TensorMemory::index(lane, column + at))
        };
        for r in 0..rows {
            for c in 0..n {
                let (lane, at) = cell(r, c);
                if disabled >> lane & 1 == 0 {
                    let mut d = [want[at].0];
                    let c = c as usize;
                    step.run(numerics, &a.bits[r * 16..][..16], &b.bits[c * 16..][..16], &mut d).unwrap();
                    want[at] = (d[0], a.defined[r] && b.defined[c] && (!accumulate || want[at].1));
                }
            }
        }
        let descriptor = InstructionDescriptor::decode((m / 16) << 24 | (n / 8) << 17 | 1 << 4, ctas as u32).unwrap();
        let descriptor = &descriptor;
        Product { numerics, descriptor, layout, column, accumulate, scale: 0, disabled, origin: 3 }.run(
            &mut tensor,
            &a,
            &b,
        );
        for (at, &want) in want.iter().enumerate() {
            let (lane, c) = (at as u32 / 512, at as u32 % 512);
            assert_eq!(tensor.get(lane, c), want, "case {case}, {layout:?}, {n} columns: lane {lane}, column {c}");
        }
        let undefined = |c: u32| (0..rows).any(|r| disabled >> cell(r, c).0 & 1 == 0 && !want[cell(r, c).1].1);
        for c in 0..n {
            let at = column + layout.cell(0, c, n).1;
            assert!(!undefined(c) || tensor.origin(at) == 3, "case {case}: column {at} has no origin");
        }
    }
}
