//! Tests of the exact product: cases worked out by hand, and a second model in FP64.

use super::*;
use crate::numerics::Numerics;
use half::{bf16, f16};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

const F16: MmaStep =
    MmaStep { a_bf16: false, b_bf16: false, d_f32: true, negate_a: false, negate_b: false, accumulate: true, scale: 0 };
const BF16: MmaStep = MmaStep { a_bf16: true, b_bf16: true, ..F16 };
const F16_D: MmaStep = MmaStep { d_f32: false, ..F16 };

/// One element with these products, the rest 0 · 0, by the block of 1, the block of 8, and the scalar rule.
fn element(step: MmaStep, products: &[(u16, u16)], d: u32) -> u32 {
    let (mut a, mut b) = ([0u16; 16], [0u16; 16]);
    for (n, &(x, y)) in products.iter().enumerate() {
        (a[n], b[n]) = (x, y);
    }
    let mut single = [d];
    step.run(Numerics::Exact, &a, &b, &mut single).unwrap();
    let mut eight = [d; 8];
    step.run(Numerics::Exact, &a, &b.repeat(8), &mut eight).unwrap();
    assert_eq!(eight, [single[0]; 8], "columns of one block differ");
    assert_eq!(one(&step, &a, &b, d), single[0], "the scalar rule differs");
    single[0]
}

/// Each from the rule, on paper. FP16: 1.0 = 3c00, BF16: 1.0 = 3f80.
#[test]
fn cases_worked_out_by_hand() {
    let check = |what: &str, got: u32, want: u32| assert_eq!(got, want, "{what}: got {got:#010x}, want {want:#010x}");
    let f = f32::to_bits;

    // 1. Exponents 0 (1 · 1) and −24 − 0: C = 2^-24 is above the cut 2^-25 and stays in the sum 1 + 2^-24. FP32 has
    //    2^-23: cut off towards zero, 1. (So would round to nearest even; case 2 tells them apart.)
    check("1", element(F16, &[(0x3c00, 0x3c00)], f(2f32.powi(-24))), f(1.0));

    // 2. C = 2^-24 + 2^-25 = 1.5 · 2^-24: both bits at or above 2^-25. Sum 1 + 0.75 · 2^-23: to nearest 1 + 2^-23,
    //    towards zero 1.
    check("2", element(F16, &[(0x3c00, 0x3c00)], f(1.5 * 2f32.powi(-24))), f(1.0));

    // 3. The negative of a small term: 1 − 2^-25. 2^-25 is kept; 1 − 2^-25 = 0.111…1b with 25 ones: exponent −1, FP32
    //    keeps down to 2^-24; cut off: 1 − 2^-24.
    check("3", element(F16, &[(0x3c00, 0x3c00)], f(-(2f32.powi(-25)))), f(1.0 - 2f32.powi(-24)));

    // 4. 1 − 2^-26: 2^-26 is below the cut of 2^-25, towards zero it is 0. Result 1. (A floor would give 1 − 2^-24.)
    check("4", element(F16, &[(0x3c00, 0x3c00)], f(-(2f32.powi(-26)))), f(1.0));

    // 5. The exponent is that of the unnormalised product: 1.5 · 1.5 = 2.25 has exponent 0, not 1, so that 2^-25 is kept.
    //    Products 1.5 · 1.5, −1.5 · 1.5, and C = 2^-25: the sum is 2^-25. (Normalised, the cut would be 2^-24: result 0.)
    check("5", element(F16, &[(0x3e00, 0x3e00), (0xbe00, 0x3e00)], f(2f32.powi(-25))), f(2f32.powi(-25)));

    // 6. Cancellation happens after the cut: 2^15 · 2^15 = 2^30, −2^30, and 1 · 2^5 = 2^5 + C = 2^4. The cut is 2^5:
    //    2^5 stays, 2^4 goes. Result 2^5. 2^15 = 7800, 2^5 = 5000.
    let cancel = [(0x7800, 0x7800), (0xf800, 0x7800), (0x3c00, 0x5000)];
    check("6", element(F16, &cancel, f(16.0)), f(32.0));

    // 7. A subnormal factor is kept, its exponent −14 is not normalised: 0001 = 2^-24 has exponent −14, significand 2^-10.
    //    2^-24 · 1 has exponent −14, the cut is 2^-39: C = 1.5 · 2^-39 has its bit at 2^-40 cut off. 2^-24 + 2^-39 has
    //    16 bits. (With exponent −24 the cut would be 2^-49.)
    let tiny = 2f32.powi(-24) + 2f32.powi(-39);
    check("7", element(F16, &[(0x0001, 0x3c00)], f(1.5 * 2f32.powi(-39))), f(tiny));

    // 8. Overflow: BF16 2^127 · 1 twice is 2^128: infinity. And 2^127 · 1 + (2^127 − 2^103) is the largest finite number
    //    2^128 − 2^104 plus 2^103: the unit is 2^102, all kept; sum 2^128 − 2^103, cut off to 2^128 − 2^104. 2^127 = 7f00.
    check("8a", element(BF16, &[(0x7f00, 0x3f80), (0x7f00, 0x3f80)], 0), 0x7f80_0000);
    check("8b", element(BF16, &[(0xff00, 0x3f80), (0xff00, 0x3f80)], 0), 0xff80_0000);
    check("8c", element(BF16, &[(0x7f00, 0x3f80)], 0x7eff_ffff), 0x7f7f_ffff);

    // 9. Infinities and NaN. ∞ · 1 = ∞; ∞ − ∞, 0 · ∞ and any NaN give the one NaN; ∞ and a product that overflows: ∞.
    check("9a", element(F16, &[(0x7c00, 0x3c00)], f(-1.0)), 0x7f80_0000);
    check("9b", element(F16, &[(0x7c00, 0xbc00)], f(-1.0)), 0xff80_0000);
    check("9c", element(F16, &[(0x7c00, 0x3c00), (0xfc00, 0x3c00)], 0), 0x7fff_ffff);
    check("9d", element(F16, &[(0x7c00, 0x0000)], f(1.0)), 0x7fff_ffff);
    check("9e", element(F16, &[(0xfe01, 0x3c00)], 0), 0x7fff_ffff);
    check("9f", element(F16, &[(0x3c00, 0x3c00)], 0xff80_0000), 0xff80_0000);
    check("9g", element(F16_D, &[(0x3c00, 0x3c00)], 0x7e00), 0x7fff);
    check("9h", element(BF16, &[(0x7f00, 0x7f00)], 0xff80_0000), 0xff80_0000);
    check("9i", element(MmaStep { negate_b: true, ..F16 }, &[(0x7c00, 0x3c00)], 0), 0xff80_0000);

    // 10. Signs of zero: −0 + 0 · −1 is +0; so is 1 − 1.
    check("10a", element(F16, &[(0x0000, 0xbc00)], 0x8000_0000), 0);
    check("10b", element(F16, &[(0x3c00, 0x3c00)], f(-1.0)), 0);

    // 11. FP16 output, to nearest even: 1 + 2^-11 lies between 1 and 1 + 2^-10: even is 1. (1 + 2^-10) + 2^-11: even is
    //     1 + 2^-9 = 3c02. 1 + 2^-11 + 2^-25 is above the tie: 3c01; with 2^-26, cut off before the sum: a tie again, 3c00.
    //     2^-11 = 1000; 2^-12 = 0c00, 2^-13 = 0800.
    check("11a", element(F16_D, &[(0x1000, 0x3c00)], 0x3c00), 0x3c00);
    check("11b", element(F16_D, &[(0x1000, 0x3c00)], 0x3c01), 0x3c02);
    check("11c", element(F16_D, &[(0x1000, 0x3c00), (0x0c00, 0x0800)], 0x3c00), 0x3c01);
    check("11d", element(F16_D, &[(0x1000, 0x3c00), (0x0800, 0x0800)], 0x3c00), 0x3c00);
    // 65504 + 16 = 65520 is the tie with 2^16: to even, and that is infinity. 65504 + 15 stays.
    check("11e", element(F16_D, &[(0x4c00, 0x3c00)], 0x7bff), 0x7c00);
    check("11f", element(F16_D, &[(0x4b80, 0x3c00)], 0x7bff), 0x7bff);
    // Subnormal results: 2^-14 · 2^-10 = 2^-24 = 0001; half of it, 2^-25, is a tie with 0: +0, also from below.
    check("11g", element(F16_D, &[(0x0400, 0x1400)], 0), 0x0001);
    check("11h", element(F16_D, &[(0x8400, 0x1000)], 0), 0);

    // 12. A product that is zero has exponent −126, whatever its other factor: 0 · 2^127 in BF16 cuts nothing off C = 2^-23 + 2^-25,
    //     nor off a subnormal C, nor off 2^-126 · 2^-23.
    let c = 2f32.powi(-23) + 2f32.powi(-25);
    check("12a", element(BF16, &[(0x0000, 0x7f00)], f(c)), f(c));
    check("12b", element(BF16, &[(0x7f00, 0x8000)], 1), 1);
    check("12c", element(BF16, &[(0x0080, 0x3400), (0xff00, 0x0000)], 0x8000_0000), 1);

    // 13. Subnormal FP32: BF16 2^-126 · 2^-23 = 2^-149: exponent −149, but D = +0 has −126: the cut is 2^-151. Result
    //     00000001. With 2^-24, 2^-150 is kept in the sum and cut off in the result, also if negative: +0.
    //     2^-126 = 0080, 2^-23 = 3400, 2^-24 = 3380.
    check("13a", element(BF16, &[(0x0080, 0x3400)], 0), 1);
    check("13b", element(BF16, &[(0x0080, 0x3380)], 0), 0);
    check("13c", element(BF16, &[(0x8080, 0x3380)], 0), 0);
    check("13d", element(BF16, &[(0x0000, 0x0000)], 0x807f_ffff), 0x807f_ffff);

    // 14. scale-input-d: C = 2^15 / 2^15 = 1, exponent 0; product 2^-25, exponent −25, stays: 1 + 2^-25, cut off to 1;
    //     minus 2^-25: 1 − 2^-24 as in case 3. Not enabled, C does not count. 2^-25 = 2^-12 · 2^-13.
    let scaled = MmaStep { scale: 15, ..F16 };
    check("14a", element(scaled, &[(0x8c00, 0x0800)], f(32768.0)), f(1.0 - 2f32.powi(-24)));
    check("14b", element(MmaStep { accumulate: false, ..F16 }, &[(0x3c00, 0x3c00)], 0x7fc0_0000), f(1.0));
    check("14c", element(MmaStep { negate_a: true, ..F16 }, &[(0x3c00, 0x4000)], f(1.0)), f(-1.0));
}

/// A significand and an exponent in FP64, subnormal numbers not normalised, a zero with exponent −126.
fn split(x: f64, least: i32) -> (f64, i32) {
    if x == 0.0 {
        return (0.0, -126);
    }
    let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(least);
    (x * 2f64.powi(-exponent), exponent)
}

/// The rule once more, in FP64 numbers instead of integers, as the paper's authors write it down; but for products that are zero.
fn model(step: &MmaStep, a: &[u16], b: &[u16], cell: u32) -> u32 {
    let value = |bits: u16, bf: bool| if bf { bf16::from_bits(bits).to_f64() } else { f16::from_bits(bits).to_f64() };
    let c = match (step.accumulate, step.d_f32) {
        (false, _) => 0.0,
        (_, true) => f64::from(f32::from_bits(cell)),
        (_, false) => f16::from_bits(cell as u16).to_f64(),
    };
    let sign = if step.negate_a != step.negate_b { -1.0 } else { 1.0 };
    let pairs: Vec<(f64, f64)> =
        a.iter().zip(b).map(|(&x, &y)| (sign * value(x, step.a_bf16), value(y, step.b_bf16))).collect();
    let plain = pairs.iter().map(|(x, y)| x * y).sum::<f64>() + c;
    if plain.is_nan() {
        return if step.d_f32 { 0x7fff_ffff } else { 0x7fff };
    }
    if plain.is_infinite() {
        return if step.d_f32 { (plain as f32).to_bits() } else { f16::from_f64(plain).to_bits().into() };
    }
    let least = |bf| if bf { -126 } else { -14 };
    let (significand, exponent) = split(c, if step.d_f32 { -126 } else { -14 });
    let mut terms = vec![(significand, if c == 0.0 { exponent } else { exponent - step.scale as i32 })];
    for (x, y) in pairs {
        let ((sx, ex), (sy, ey)) = (split(x, least(step.a_bf16)), split(y, least(step.b_bf16)));
        terms.push((sx * sy, if sx * sy == 0.0 { -126 } else { ex + ey }));
    }
    let top = terms.iter().map(|t| t.1).max().unwrap();
    let sum: f64 = terms.iter().map(|&(s, e)| (s * 2f64.powi(25 + e - top)).trunc()).sum();
    let exact = sum * 2f64.powi(top - 25);
    let (s, e) = split(exact, if step.d_f32 { -126 } else { -14 });
    if step.d_f32 {
        // Adding +0 makes a zero positive.
        let cut = (s * 2f64.powi(23)).trunc() * 2f64.powi(e - 23) + 0.0;
        return (cut as f32).to_bits();
    }
    let rounded = (s * 2f64.powi(10)).round_ties_even() * 2f64.powi(e - 10) + 0.0;
    // It is an FP16 number or too large: the conversion does not round.
    f16::from_f32(rounded as f32).to_bits().into()
}

/// Elements that make trouble: all exponents, near ones, subnormal numbers, zeros, infinities, NaN.
pub fn trouble(random: &mut Random, kind: u64, bf: bool) -> u16 {
    let (mantissa, bias) = if bf { (7, 127) } else { (10, 15) };
    let bits = random.next() as u16;
    let fraction = bits & ((1 << mantissa) - 1);
    let near = |spread: u64, random: &mut Random| {
        let field = bias + random.below(2 * spread + 1) - spread;
        bits & 0x8000 | (field as u16) << mantissa | fraction
    };
    match (kind, random.below(64)) {
        (_, 0) => bits & 0x8000,
        (_, 1) => bits & 0x8000 | fraction,
        (1, 2) => bits & 0x8000 | 0x7fff >> mantissa << mantissa,
        (1, 3) => bits | 0x7fff >> mantissa << mantissa,
        (0 | 1, _) => bits,
        (2, _) => near(1, random),
        (3, _) => near(6, random),
        (4, _) => near(14, random),
        (5, _) => bits & 0x8000 | fraction,
        (6, n) if n < 48 => bits & 0x8000,
        _ => near(3, random) & !(fraction >> 2),
    }
}

/// 1,310,720 outputs in blocks of all widths against the model in FP64.
#[test]
fn a_million_adversarial_outputs_agree_with_the_model() {
    let mut random = Random(3);
    let (mut outputs, mut seen) = (0u32, [0u32; 5]);
    for case in 0..1280u64 {
        let (m, n) = [(32, 32), (16, 64), (128, 8), (8, 128)][case as usize % 4];
        let d_f32 = random.below(3) != 0;
        let step = MmaStep {
            a_bf16: d_f32 && random.below(2) == 0,
            b_bf16: d_f32 && random.below(2) == 0,
            d_f32,
            negate_a: random.below(4) == 0,
            negate_b: random.below(4) == 0,
            accumulate: random.below(8) != 0,
            scale: if random.below(4) == 0 { random.below(16) as u32 } else { 0 },
        };
        let (kind_a, kind_b, kind_c) = (random.below(8), random.below(8), random.below(5));
        let mut a: Vec<u16> = (0..m * 16).map(|_| trouble(&mut random, kind_a, step.a_bf16)).collect();
        let mut b: Vec<u16> = (0..n * 16).map(|_| trouble(&mut random, kind_b, step.b_bf16)).collect();
        if case % 3 == 0 {
            // Products that cancel in pairs: the next k has the same factors, one negative; and a few that do not.
            for row in a.chunks_exact_mut(2).filter(|_| random.below(8) != 0) {
                row[1] = row[0] ^ 0x8000;
            }
            for row in b.chunks_exact_mut(2).filter(|_| random.below(8) != 0) {
                row[1] = row[0];
            }
        }
        let before: Vec<u32> = (0..m * n)
            .map(|at| {
                let bits = random.next() as u32;
                match kind_c {
                    0 => bits,
                    1 => 0,
                    2 => bits & 0x807f_807f,
                    // Near the sum of the products, negative: what is left is below the largest terms.
                    3 => {
                        let none = MmaStep { accumulate: false, ..step };
                        let sum = model(&none, &a[at / n * 16..][..16], &b[at % n * 16..][..16], 0);
                        (sum ^ if d_f32 { 1 << 31 } else { 1 << 15 }) ^ bits & 3
                    }
                    _ if d_f32 => bits & 0x807f_ffff | (97 + (bits >> 7 & 0x3f)) << 23,
                    _ => bits & 0xffff_bfff,
                }
            })
            .collect();
        let mut d = before.clone();
        step.run(Numerics::Exact, &a, &b, &mut d).unwrap();
        for (at, &got) in d.iter().enumerate() {
            let (x, y) = (&a[at / n * 16..][..16], &b[at % n * 16..][..16]);
            let (want, scalar) = (model(&step, x, y, before[at]), one(&step, x, y, before[at]));
            assert!(
                got == want && scalar == want,
                "case {case}, element {at}: {got:#010x}, scalar {scalar:#010x}, model {want:#010x}\n{step:?}\n\
                 a = {x:04x?}\nb = {y:04x?}\nd = {:#010x}",
                before[at]
            );
            let magnitude = got & if d_f32 { 0x7fff_ffff } else { 0x7fff };
            let (infinity, normal) = if d_f32 { (0x7f80_0000, 0x80_0000) } else { (0x7c00, 0x400) };
            seen[match magnitude {
                0 => 0,
                m if m < normal => 1,
                m if m < infinity => 2,
                m if m == infinity => 3,
                _ => 4,
            }] += 1;
            outputs += 1;
        }
    }
    // Zeros, subnormal and normal numbers, infinities, NaN: enough of each that the test means something.
    assert!(outputs >= 1_000_000 && seen.iter().all(|&count| count > 10_000), "{outputs} outputs, {seen:?}");
}
