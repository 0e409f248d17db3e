//! Tests of the product in tiles. On a CPU without them, all of it is computed in vectors, and nothing is shown.

use super::*;
use crate::machine::arithmetic::exact::tests::{Random, trouble};
use crate::machine::arithmetic::product;
use crate::machine::arithmetic::simd;
use crate::machine::tensor_memory::{LANES, Layout, TensorMemory};
use half::{bf16, f16};
use std::array::from_fn;

type Operand = Vec<[u16; 16]>;
/// Rows of A, and the cell of the first of some columns of B.
type Part = (Vec<(usize, usize)>, Range<usize>);

/// MMAs that add to the same D.
struct Case {
    step: MmaStep,
    a: Vec<Operand>,
    b: Vec<Operand>,
    strips: Vec<Part>,
    cells: Vec<u32>,
}

impl Case {
    fn new(
        step: MmaStep,
        m: usize,
        n: usize,
        steps: usize,
        mut a: impl FnMut() -> u16,
        mut b: impl FnMut() -> u16,
    ) -> Case {
        let a = (0..steps).map(|_| (0..m).map(|_| from_fn(|_| a())).collect()).collect();
        let b = (0..steps).map(|_| (0..n).map(|_| from_fn(|_| b())).collect()).collect();
        let strips = vec![((0..m).map(|row| (row, row * n)).collect(), 0..n)];
        Case { step, a, b, strips, cells: vec![0; m * n] }
    }

    fn compute(&self, in_tiles: bool) -> Vec<u32> {
        let a: Vec<_> = self.a.iter().map(|a| &a[..]).collect();
        let b: Vec<_> = self.b.iter().map(|b| &b[..]).collect();
        let strips: Vec<_> =
            self.strips.iter().map(|(rows, columns)| Strip { rows, columns: columns.clone() }).collect();
        let mut cells = self.cells.clone();
        simd::run(Product {
            numerics: Numerics::Fast,
            step: self.step,
            a: &a,
            b: &b,
            strips: &strips,
            factors: &mut product::Factors::default(),
            same_b: false,
            tiles: if in_tiles { of(Numerics::Fast, &self.step) } else { None },
            cells: &mut cells,
            prefetches: Default::default(),
        });
        cells
    }

    fn d(&self, bits: u32) -> f64 {
        if self.step.d_f32 { f32::from_bits(bits).into() } else { f16::from_bits(bits as u16).into() }
    }

    /// What is in each cell in the end, and the sum of magnitudes, in FP64.
    fn sums(&self) -> Vec<Option<(f64, f64)>> {
        let value = |bits: u16, bf, negate| -> f64 {
            let value = if bf { bf16::from_bits(bits).to_f64() } else { f16::from_bits(bits).to_f64() };
            if negate { -value } else { value }
        };
        let MmaStep { a_bf16, b_bf16, negate_a, negate_b, accumulate, scale, .. } = self.step;
        let mut sums = vec![None; self.cells.len()];
        for (rows, columns) in &self.strips {
            for &(row, first) in rows {
                for (column, cell) in columns.clone().zip(first..) {
                    let d = if accumulate { self.d(self.cells[cell]) / f64::from(1 << scale) } else { 0.0 };
                    let products = self.a.iter().zip(&self.b).flat_map(|(a, b)| a[row].iter().zip(&b[column]));
                    let products = products.map(|(&x, &y)| value(x, a_bf16, negate_a) * value(y, b_bf16, negate_b));
                    sums[cell] = Some(products.fold((d, d.abs()), |(sum, size), x| (sum + x, size + x.abs())));
                }
            }
        }
        sums
    }
}

fn some_step(random: &mut Random) -> MmaStep {
    let mut one_in = |n: u64| random.next().is_multiple_of(n);
    let bf = one_in(2);
    MmaStep {
        a_bf16: bf,
        b_bf16: bf,
        d_f32: bf || !one_in(4),
        negate_a: one_in(3),
        negate_b: one_in(3),
        accumulate: !one_in(4),
        scale: if one_in(4) { 1 + u32::from(one_in(2)) } else { 0 },
    }
}

/// Small integers, in rows and columns of all numbers, in any of the cells: the same bits as in vectors.
#[test]
fn sums_that_are_exact_are_those_of_the_vectors() {
    let mut random = Random(41);
    for case in 0..300 {
        let step = some_step(&mut random);
        let (m, n) = ([1, 16, 33, 64, 128][case % 5], [8, 16, 24, 32, 40, 64, 96][case % 7]);
        let small = |bits: u64| (bits % 17) as f32 - 8.0;
        let element = |bits: u64| {
            let value = small(bits);
            if step.a_bf16 { bf16::from_f32(value).to_bits() } else { f16::from_f32(value).to_bits() }
        };
        let (mut ra, mut rb) = (Random(random.next()), Random(random.next()));
        let (a, b) = (|| element(ra.next() >> 9), || element(rb.next() >> 9));
        let mut all = Case::new(step, m, n, 1 + case % 6, a, b);
        for cell in &mut all.cells {
            let value = 4.0 * small(random.next() >> 9);
            *cell = if step.d_f32 { value.to_bits() } else { f16::from_f32(value).to_bits().into() };
        }
        assert!(all.compute(true) == all.compute(false), "case {case}: {step:?}, {m} × {n}");
    }
}

/// As MMAs lie in tensor memory: M of 64, 128 and 256, of one CTA and of pairs, with lanes that are not written.
#[test]
fn layouts_of_tensor_memory_are_those_of_the_vectors() {
    let mut random = Random(43);
    for (case, (m, ctas)) in (0..60).zip([(64, 1), (128, 1), (128, 2), (256, 2)].into_iter().cycle()) {
        let n = [16, 32, 48, 128, 256][case / 4 % 5];
        let (layout, rows, columns) = (Layout::of(m, ctas, 0), m as usize / ctas, n as usize);
        let step = MmaStep { scale: 0, d_f32: true, ..some_step(&mut random) };
        let one = if step.a_bf16 { 0x3f80 } else { 0x3c00 };
        let (mut ra, mut rb) = (Random(random.next()), Random(random.next()));
        let signs = |random: &mut Random| one | (random.next() as u16 & 1) << 15;
        let mut all = Case::new(step, rows, columns, 1 + case % 9, || signs(&mut ra), || 0);
        for row in all.b.iter_mut().flatten().flatten() {
            *row = signs(&mut rb);
        }
        let run = layout.columns(n);
        let written: Vec<bool> = (0..rows).map(|_| case % 3 != 0 || !random.next().is_multiple_of(10)).collect();
        all.strips = (0..n)
            .step_by(run as usize)
            .map(|first| {
                let cell = |row: usize| {
                    let (lane, column) = layout.cell(row as u32, first, n);
                    (row, TensorMemory::index(lane, 64 + column))
                };
                ((0..rows).filter(|&row| written[row]).map(cell).collect(), first as usize..(first + run) as usize)
            })
            .collect();
        all.cells = (0..TensorMemory::index(LANES, 0)).map(|_| (random.next() as i8 as f32).to_bits()).collect();
        assert!(all.compute(true) == all.compute(false), "case {case}: {step:?}, {m} × {n}, {ctas} CTAs");
    }
}

/// Elements and accumulators of all kinds, finite or not: within what FP32 may be off from FP64, and of the same kind as in
/// vectors where it is not finite.
#[test]
fn sums_are_as_close_as_fp32_is() {
    let mut random = Random(47);
    let (mut differ, mut finite) = (0, 0);
    for case in 0..400u64 {
        let step = some_step(&mut random);
        let (m, n, steps) = ([32, 48][case as usize % 2], [32, 40][case as usize / 2 % 2], 1 + case as usize % 4);
        let (mut ra, mut rb) = (Random(random.next()), Random(random.next()));
        let a = || trouble(&mut ra, case % 8, step.a_bf16);
        let b = || trouble(&mut rb, case / 8 % 8, step.b_bf16);
        let mut all = Case::new(step, m, n, steps, a, b);
        for cell in &mut all.cells {
            let bits = random.next();
            *cell = match bits >> 60 {
                0 => bits as u32,
                _ if step.d_f32 => (bits as i16 as f32 / 1024.0).to_bits(),
                _ => (bits as u32 & 0xbfff).min(0xbbff),
            };
        }
        let (tiles, vectors) = (all.compute(true), all.compute(false));
        differ += u32::from(tiles != vectors);
        for (at, sum) in all.sums().into_iter().enumerate() {
            let Some((sum, size)) = sum else { continue };
            let (got, other) = (all.d(tiles[at]), all.d(vectors[at]));
            // Roundings to FP32 of at most 34 summands a step, which the magnitudes bound; to FP16, once a step.
            let steps = steps as f64;
            let rounding = if step.d_f32 { 0.0 } else { steps * (size * 2f64.powi(-11) + 2f64.powi(-25)) };
            let bound = 34.0 * steps * size * 2f64.powi(-24) * 1.01 + rounding + 2f64.powi(-126);
            let most = if step.d_f32 { f64::from(f32::MAX) } else { 65504.0 };
            if !size.is_finite() || size + bound >= most {
                // An infinity, a NaN, or too large in between.
                assert!(
                    tiles[at] == vectors[at] || size.is_finite(),
                    "case {case}, element {at}: {:#x}, in vectors {:#x}, {step:?}",
                    tiles[at],
                    vectors[at]
                );
                continue;
            }
            finite += 1;
            assert!(
                (got - sum).abs() <= bound,
                "case {case}, element {at}: {got:e}, FP64 {sum:e} ± {bound:e}, {step:?}"
            );
            assert!((other - sum).abs() <= bound, "case {case}, element {at}: {other:e} in vectors, FP64 {sum:e}");
        }
    }
    assert!(finite > 100_000, "{finite} sums are finite: too few to mean something");
    let tiles = of(Numerics::Fast, &MmaStep { d_f32: true, ..MmaStep::default() }).is_some();
    assert!(!tiles || differ > 50, "{differ} cases differ from the vectors: are they computed in tiles at all?");
}

/// What tiles would not keep.
#[test]
fn numbers_that_tiles_do_not_keep_are_kept() {
    let mut random = Random(53);
    let bf = MmaStep { a_bf16: true, b_bf16: true, d_f32: true, accumulate: true, ..MmaStep::default() };
    let f = MmaStep { a_bf16: false, b_bf16: false, ..bf };
    // Of numbers without exact sums, one operand that is not finite, too small or too large: all is as in vectors.
    for (step, odd, tiles) in [
        (f, 0x7c00, false),
        (f, 0xfe01, false),
        (f, 0x0001, true),
        (bf, 0xff80, false),
        (bf, 0x7fc0, false),
        (bf, 0x0001, false),
        // 2^-44, 2^-43, 2^59 and the number above.
        (bf, (127 - 44) << 7, false),
        (bf, (127 - 43) << 7, true),
        (bf, (127 + 59) << 7, true),
        (bf, (127 + 59) << 7 | 1, false),
    ] {
        for in_a in [false, true] {
            let (mut ra, mut rb) = (Random(random.next()), Random(random.next()));
            // Of 13 exponents, so that sums are rounded.
            let one = |random: &mut Random| {
                let (bits, exponent) = (random.next() as u16, (random.next() % 13) as u16);
                if step.a_bf16 { (127 - exponent) << 7 | bits & 0x7f } else { (15 - exponent) << 10 | bits & 0x3ff }
            };
            let mut all = Case::new(step, 32, 32, 1, || one(&mut ra), || 0);
            for x in all.b[0].as_flattened_mut() {
                *x = one(&mut rb);
            }
            all.cells.fill(0.1f32.to_bits());
            let rows = if in_a { &mut all.a[0] } else { &mut all.b[0] };
            rows[20][7] = odd;
            let same = all.compute(true) == all.compute(false);
            let have = of(Numerics::Fast, &step).is_some();
            assert_eq!(same, !tiles || !have, "{odd:#06x} of {step:?}, in A: {in_a}");
        }
    }
    // A subnormal D stays where nothing is added, and a NaN becomes the tensor core's.
    let mut all = Case::new(f, 32, 32, 3, || 0, || 0x3c00);
    all.a[1][5][3] = 0x3c00;
    all.cells.fill(0x8000_0123);
    (all.cells[7], all.cells[40], all.cells[41]) = (0xff80_0001, 0x7f80_0000, 0x3f80_0000);
    let d = all.compute(true);
    assert_eq!(d, all.compute(false));
    assert_eq!(
        (d[7], d[8], d[40], d[41], d[5 * 32]),
        (0x7fff_ffff, 0x8000_0123, 0x7f80_0000, 0x3f80_0000, 0x3f80_0000)
    );
}

/// Steps that are computed together, of which some do not fit: the bits of one after the other.
#[test]
fn steps_together_are_steps_one_by_one() {
    let mut random = Random(59);
    for case in 0..60u64 {
        let step = MmaStep { scale: 0, ..some_step(&mut random) };
        let (mut ra, mut rb) = (Random(random.next()), Random(random.next()));
        let a = || trouble(&mut ra, 3, step.a_bf16);
        let mut together = Case::new(step, 64, 48, 7, a, || trouble(&mut rb, 4, step.b_bf16));
        if case % 2 == 0 {
            together.a[case as usize % 7][9][2] = 0x7f80;
        }
        let mut cells = together.cells.clone();
        for n in 0..7 {
            let step = MmaStep { accumulate: step.accumulate || n > 0, ..step };
            let (a, b) = (vec![together.a[n].clone()], vec![together.b[n].clone()]);
            cells = Case { step, a, b, strips: together.strips.clone(), cells }.compute(true);
        }
        assert!(together.compute(true) == cells, "case {case}: {step:?}");
    }
}
