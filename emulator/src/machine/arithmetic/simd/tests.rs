//! Tests of the kinds of vectors: all give the same bits.

use super::*;
use crate::machine::arithmetic::exact::tests::{Random, trouble};
use crate::machine::arithmetic::product::{Factors, Product};
use crate::machine::arithmetic::strip::Strip;
use crate::numerics::{MmaStep, Numerics};

/// Whatever vectors this CPU has, the results are those of the arrays: in blocks of each size that vectors ask for, where rows are left out,
/// with strips that end within a vector, and with factors in which an earlier product has left something.
#[test]
fn all_kinds_of_vectors_give_the_same_bits() {
    type Run = fn(Product);
    #[allow(unused_mut)]
    let mut kinds: Vec<(&str, Run)> = vec![("chosen", |product| run(product))];
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
        // SAFETY: the CPU has the features.
        kinds.push(("avx2", |product| unsafe { x86::avx2(product) }));
    }
    kinds.push(("plain, the blocks of AVX-512", |product| product.run::<Plain, 8, 8, 2, 4>()));
    kinds.push(("plain, blocks of six rows and of four", |product| product.run::<Plain, 6, 4, 2, 2>()));
    let mut left: Vec<Factors> = kinds.iter().map(|_| Factors::default()).collect();
    let mut random = Random(5);
    for case in 0..600u64 {
        let (m, n) = (1 + case as usize % 37, 8 * (1 + case as usize % 12));
        let bf = case % 3 == 0;
        let d_f32 = bf || case % 2 == 0;
        let (accumulate, scale) = (case % 7 != 0, case as u32 % 4);
        let step = MmaStep { a_bf16: bf, b_bf16: bf, d_f32, accumulate, scale, ..MmaStep::default() };
        let numerics = if case % 5 < 3 { Numerics::Exact } else { Numerics::Fast };
        let steps = 1 + case as usize / 3 % 3;
        let mut some = |count: usize, kind: u64| -> Vec<Vec<[u16; 16]>> {
            let mut rows = || (0..count).map(|_| from_fn(|_| trouble(&mut random, kind, bf))).collect();
            (0..steps).map(|_| rows()).collect()
        };
        let (a, b) = (some(m, case % 8), some(n, case / 8 % 8));
        let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(|a| &a[..]).collect(), b.iter().map(|b| &b[..]).collect());
        let before: Vec<u32> = (0..m * n).map(|_| random.next() as u32 & 0xbfff_bfff).collect();
        // Lanes that an MMA does not write leave rows out: here and there one, or sixteen together.
        let apart = if case % 4 == 1 { random.next() | random.next() } else { u64::MAX };
        let together = if case % 8 == 5 { 0xffff << (case % 19) } else { 0 };
        let of = |first: usize| -> Vec<(usize, usize)> {
            (0..m).filter(|&r| apart & !together & 1 << r != 0).map(|r| (r, r * n + first)).collect()
        };
        let middle = if case % 3 == 1 { n / 16 * 8 } else { 0 };
        let rows = [of(0), of(middle)];
        let both = [Strip { rows: &rows[0], columns: 0..middle }, Strip { rows: &rows[1], columns: middle..n }];
        let strips = if middle == 0 { &both[1..] } else { &both[..] };
        let compute = |kind: Run, factors: &mut Factors| {
            let mut cells = before.clone();
            kind(Product {
                numerics,
                step,
                a: &a,
                b: &b,
                strips,
                factors,
                same_b: false,
                tiles: None,
                cells: &mut cells,
                prefetches: Default::default(),
            });
            cells
        };
        let want = compute(|product| product.run::<Plain, 1, 1, 1, 1>(), &mut Factors::default());
        for ((name, kind), factors) in kinds.iter().zip(&mut left) {
            let got = compute(*kind, factors);
            assert!(got == want, "{name} vectors, case {case}: {step:?}, {numerics:?}, {m} × {n}, {steps} steps");
        }
    }
}

/// Without an instruction for it, a fused multiply-add gives what the CPU's or the library's gives: factors of 11 bits,
/// of all sizes; sums of all sizes, many of them close to a tie.
#[test]
fn multiply_adds_round_once() {
    let mut random = Random(17);
    for case in 0..2_000_000u64 {
        let word = random.next();
        let bits = |shift: u64| (word >> shift) as u32;
        // BF16 numbers, and FP16 ones as FP32.
        let factor = |bits: u32| {
            let bf = f32::from_bits(bits << 16);
            if case % 2 == 0 && bf.is_finite() { bf } else { f16_value(bits as u16 & 0xbfff) }
        };
        let (a, b) = (factor(bits(0) & 0xffff), factor(bits(16) & 0xffff));
        let product = f64::from(a) * f64::from(b);
        let c = match case % 4 {
            0 => f32::from_bits(random.next() as u32),
            // Close to the product, and close to where it is half a unit in the last place.
            1 => -(product as f32),
            2 => (product * 2f64.powi(20 + (random.next() % 12) as i32)) as f32,
            _ => (product / 2f64.powi(20 + (random.next() % 12) as i32)) as f32,
        };
        if c.is_nan() {
            continue;
        }
        let (got, want) = ((product + f64::from(c)) as f32, a.mul_add(b, c));
        assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{a:e} · {b:e} + {c:e}: {got:e}");
        let got = Plain::mul_add([a; WIDTH], [b; WIDTH], [c; WIDTH])[7];
        assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{a:e} · {b:e} + {c:e}: {got:e}");
    }
}

/// What the CPU converts and transposes, against the arrays.
#[test]
fn conversions_and_transpositions_are_those_of_the_arrays() {
    struct Convert<'a>(&'a [[u16; 16]; WIDTH], &'a mut Vec<u32>);
    impl Work for Convert<'_> {
        #[inline(always)]
        fn run<L: Lanes, const R: usize, const S: usize, const C: usize, const E: usize>(self) {
            for row in self.0 {
                for values in [L::store_floats(L::f16(row)), L::store_floats(L::bf16(row))] {
                    self.1.extend(values.map(|x| if x.is_nan() { 1 } else { x.to_bits() }));
                }
            }
            self.1.extend(L::transpose(self.0).as_flattened().iter().map(|&x| u32::from(x)));
        }
    }
    for block in 0..256u16 {
        let rows = from_fn(|j| from_fn(|k| block << 8 | (16 * j + k) as u16));
        let [mut want, mut got, mut avx2] = [const { Vec::new() }; 3];
        Convert(&rows, &mut want).run::<Plain, 1, 1, 1, 1>();
        run(Convert(&rows, &mut got));
        assert!(got == want, "chosen vectors, block {block}");
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            // SAFETY: the CPU has the features.
            unsafe { x86::avx2(Convert(&rows, &mut avx2)) };
            assert!(avx2 == want, "AVX2, block {block}");
        }
        assert!(want[16 * WIDTH * 2 + 1] == u32::from(rows[1][0]), "columns are rows, block {block}");
        avx2.clear();
    }
}

/// Subnormal numbers and NaNs are found in whichever lane they lie, and nothing else is taken for one.
#[test]
fn what_is_special_is_told_in_every_lane() {
    struct Ask<'a>(&'a [f32; WIDTH], &'a mut Vec<bool>);
    impl Work for Ask<'_> {
        #[inline(always)]
        fn run<L: Lanes, const R: usize, const S: usize, const C: usize, const E: usize>(self) {
            self.1.push(L::special(L::load_floats(self.0)) != 0);
        }
    }
    let plain = [0, 1 << 23, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000];
    let special = [1, 0x1234, (1 << 23) - 1, 0x7f80_0001, 0x7fff_ffff];
    for (bits, want) in plain.map(|bits| (bits, false)).into_iter().chain(special.map(|bits| (bits, true))) {
        for sign in [0, 1 << 31] {
            for lane in 0..WIDTH {
                let values = from_fn(|j| f32::from_bits(if j == lane { bits | sign } else { 0x4000_0000 }));
                let mut got = Vec::new();
                Ask(&values, &mut got).run::<Plain, 1, 1, 1, 1>();
                run(Ask(&values, &mut got));
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
                {
                    // SAFETY: the CPU has the features.
                    unsafe { x86::avx2(Ask(&values, &mut got)) };
                }
                assert!(got.iter().all(|&got| got == want), "{:#010x} in lane {lane}: {got:?}", bits | sign);
            }
        }
    }
}

/// Sums that 32 bits do not hold, and sums of every length that they do: cut off as the arrays do it.
#[test]
fn sums_are_cut_off_alike() {
    struct Cut<'a>([[u32; WIDTH]; 2], f32, &'a mut Vec<u32>);
    impl Work for Cut<'_> {
        #[inline(always)]
        fn run<L: Lanes, const R: usize, const S: usize, const C: usize, const E: usize>(self) {
            let [a, b] = [L::load(&self.0[0]), L::load(&self.0[1])];
            for odd in [false, true] {
                self.2.extend(L::store(L::bits(L::cut_sum(a, b, L::splat_float(self.1), odd))));
            }
        }
    }
    let mut random = Random(29);
    let mut over = 0;
    for case in 0..4000 {
        let shift = case % 31;
        let long = |bits: u64| i32::MAX - (bits >> 40) as i32;
        let a = from_fn(|_| match (case % 4, random.next()) {
            (0, bits) => (if bits & 1 == 1 { -long(bits) } else { long(bits) }) as u32,
            (_, bits) => (bits as i32 >> shift) as u32,
        });
        // D's part is below 2^27.
        let b = from_fn(|_| (random.next() as i32 >> (5 + random.next() % 27)) as u32);
        over += (0..WIDTH).filter(|&j| (a[j] as i32).checked_add(b[j] as i32).is_none()).count();
        let scale = 2f32.powi((random.next() % 226) as i32 - 125);
        let [mut want, mut got] = [const { Vec::new() }; 2];
        Cut([a, b], scale, &mut want).run::<Plain, 1, 1, 1, 1>();
        run(Cut([a, b], scale, &mut got));
        assert!(got == want, "case {case}: {a:x?} + {b:x?}, times {scale:e}");
    }
    assert!(over > 20, "{over} sums are too long for 32 bits: too few to mean something");
}
