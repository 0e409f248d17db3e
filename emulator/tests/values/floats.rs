//! Floating-point arithmetic: roundings, subnormals, saturation, NaN.

use crate::row::{Row, check, one, same};

// FP32.
const ONE: u64 = 0x3f80_0000;
const TWO: u64 = 0x4000_0000;
const THREE: u64 = 0x4040_0000;
const HALF: u64 = 0x3f00_0000;
const NAN: u64 = 0x7fc0_0000;
/// The least subnormal number, and one that twice is normal.
const TINY: u64 = 1;
const SUBNORMAL: u64 = 0x0040_0000;
/// 1 − 2^-24, the number below 1.
const BELOW: u64 = 0x3f7f_ffff;
// FP64.
const ONE64: u64 = 0x3ff0_0000_0000_0000;
const BELOW64: u64 = 0x3fef_ffff_ffff_ffff;

pub fn rows() -> Vec<Row> {
    let mut rows = rounded();
    rows.extend(flushed_and_saturated());
    rows.extend(pairs());
    rows.extend(fp64());
    rows.extend(approximate());
    rows.extend(halves());
    rows.extend(signs());
    rows.extend(extremes());
    rows
}

/// In the order nothing said, `.rn`, `.rz`, `.rm`, `.rp`; nothing said is `.rn`, where it may be left out.
fn each_rounding(base: &str, ty: &str, class: char, sources: &[u64], results: [u64; 4], optional: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (rounding, result) in [".rn", ".rz", ".rm", ".rp"].into_iter().zip(results) {
        rows.push(same(&format!("{base}{rounding}.{ty}"), class, sources, result));
    }
    if optional {
        rows.push(same(&format!("{base}.{ty}"), class, sources, results[0]));
    }
    rows
}

fn rounded() -> Vec<Row> {
    let mut rows = Vec::new();
    // 1 + 2^-24 lies half-way between 1 and the next number; below zero, down is away.
    rows.extend(each_rounding("add", "f32", 'f', &[ONE, 0x3380_0000], [ONE, ONE, ONE, ONE + 1], true));
    rows.push(same("add.rm.f32", 'f', &[ONE | 1 << 31, 0xb380_0000], (ONE | 1 << 31) + 1));
    rows.push(same("add.rz.f32", 'f', &[ONE | 1 << 31, 0xb380_0000], ONE | 1 << 31));
    // 1 − 2^-25 lies half-way between 1 − 2^-24 and 1.
    rows.extend(each_rounding("sub", "f32", 'f', &[ONE, 0x3300_0000], [ONE, BELOW, BELOW, ONE], true));
    // Opposites: +0, but −0 downwards.
    rows.push(same("sub.rm.f32", 'f', &[ONE, ONE], 1 << 31));
    rows.push(same("sub.rp.f32", 'f', &[ONE, ONE], 0));
    // (1 + 2^-23)(1 − 2^-23) = 1 − 2^-46.
    rows.extend(each_rounding("mul", "f32", 'f', &[ONE + 1, BELOW - 1], [ONE, BELOW, BELOW, ONE], true));
    // Too large: infinity, or the largest number.
    rows.push(same("mul.rz.f32", 'f', &[0x7f7f_ffff, TWO], 0x7f7f_ffff));
    rows.push(same("mul.rn.f32", 'f', &[0x7f7f_ffff, TWO], 0x7f80_0000));
    // 1 · 1 + 2^-24, and (1 + 2^-23)² − (1 + 2^-22) = 2^-46, which only one rounding leaves.
    for base in ["fma", "mad"] {
        rows.extend(each_rounding(base, "f32", 'f', &[ONE, ONE, 0x3380_0000], [ONE, ONE, ONE, ONE + 1], false));
        rows.push(same(&format!("{base}.rn.f32"), 'f', &[ONE + 1, ONE + 1, 0xbf80_0002], 0x2880_0000));
    }
    // 1/3 = 0x3eaaaaaa and two thirds; √2 = 0x3fb504f3 and a bit less than a third.
    let third = 0x3eaa_aaaa;
    rows.extend(each_rounding("div", "f32", 'f', &[ONE, THREE], [third + 1, third, third, third + 1], false));
    rows.extend(each_rounding("rcp", "f32", 'f', &[THREE], [third + 1, third, third, third + 1], false));
    let root = 0x3fb5_04f3;
    rows.extend(each_rounding("sqrt", "f32", 'f', &[TWO], [root, root, root, root + 1], false));
    rows
}

fn flushed_and_saturated() -> Vec<Row> {
    vec![
        same("add.f32", 'f', &[SUBNORMAL, SUBNORMAL], 0x0080_0000),
        same("add.ftz.f32", 'f', &[SUBNORMAL, SUBNORMAL], 0),
        same("sub.ftz.f32", 'f', &[0x0080_0001, 0x0080_0000], 0),
        same("mul.ftz.f32", 'f', &[0x8080_0000, HALF], 1 << 31),
        same("mul.rz.ftz.f32", 'f', &[0x0080_0000, HALF], 0),
        same("fma.rn.ftz.f32", 'f', &[TINY, ONE, ONE], ONE),
        same("mad.rn.ftz.f32", 'f', &[0x0080_0000, HALF, 0], 0),
        same("div.rn.ftz.f32", 'f', &[0x0080_0000, TWO], 0),
        same("rcp.rn.ftz.f32", 'f', &[SUBNORMAL], 0x7f80_0000),
        same("sqrt.rn.ftz.f32", 'f', &[SUBNORMAL], 0),
        same("add.sat.f32", 'f', &[ONE, HALF], ONE),
        same("sub.sat.f32", 'f', &[HALF, ONE], 0),
        same("mul.sat.f32", 'f', &[NAN, ONE], 0),
        same("fma.rn.sat.f32", 'f', &[HALF, HALF, HALF], 0x3f40_0000),
        same("mad.rn.sat.f32", 'f', &[TWO, TWO, HALF], ONE),
    ]
}

/// The low half holds the first of a pair.
fn pair(low: u64, high: u64) -> u64 {
    high << 32 | low
}

fn pairs() -> Vec<Row> {
    let mut rows = Vec::new();
    let add = (&[pair(ONE, ONE), pair(0x3380_0000, TWO)], [ONE, ONE, ONE, ONE + 1].map(|low| pair(low, THREE)));
    rows.extend(each_rounding("add", "f32x2", 'd', add.0, add.1, true));
    let sub = (&[pair(ONE, THREE), pair(0x3300_0000, TWO)], [ONE, BELOW, BELOW, ONE].map(|low| pair(low, ONE)));
    rows.extend(each_rounding("sub", "f32x2", 'd', sub.0, sub.1, true));
    let mul =
        (&[pair(ONE + 1, THREE), pair(BELOW - 1, TWO)], [ONE, BELOW, BELOW, ONE].map(|low| pair(low, 0x40c0_0000)));
    rows.extend(each_rounding("mul", "f32x2", 'd', mul.0, mul.1, true));
    let fma = &[pair(ONE, TWO), pair(ONE, ONE), pair(0x3380_0000, ONE)];
    rows.extend(each_rounding("fma", "f32x2", 'd', fma, [ONE, ONE, ONE, ONE + 1].map(|low| pair(low, THREE)), false));
    for base in ["add", "sub"] {
        let sources = &[pair(SUBNORMAL, SUBNORMAL), pair(SUBNORMAL, 0)];
        rows.push(same(&format!("{base}.ftz.f32x2"), 'd', sources, 0));
    }
    rows.push(same("mul.ftz.f32x2", 'd', &[pair(0x0080_0000, ONE), pair(HALF, ONE)], pair(0, ONE)));
    rows.push(same(
        "mul.rz.ftz.f32x2",
        'd',
        &[pair(ONE + 1, 0xbf00_0000), pair(ONE + 1, THREE)],
        pair(ONE + 2, 0xbfc0_0000),
    ));
    rows.push(same("fma.rn.ftz.f32x2", 'd', &[pair(TINY, ONE), pair(ONE, ONE), pair(ONE, TWO)], pair(ONE, THREE)));
    rows
}

fn fp64() -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(each_rounding("add", "f64", 'e', &[ONE64, 0x3ca0 << 48], [ONE64, ONE64, ONE64, ONE64 + 1], true));
    rows.extend(each_rounding("sub", "f64", 'e', &[ONE64, 0x3c90 << 48], [ONE64, BELOW64, BELOW64, ONE64], true));
    rows.extend(each_rounding("mul", "f64", 'e', &[ONE64 + 1, BELOW64 - 1], [ONE64, BELOW64, BELOW64, ONE64], true));
    let (third, three) = (0x3fd5_5555_5555_5555, 0x4008 << 48);
    rows.extend(each_rounding("div", "f64", 'e', &[ONE64, three], [third, third, third, third + 1], false));
    rows.extend(each_rounding("rcp", "f64", 'e', &[three], [third, third, third, third + 1], false));
    // √2 = 0x3ff6a09e667f3bcc and 0x0.908b of the next.
    let root = 0x3ff6_a09e_667f_3bcc;
    rows.extend(each_rounding("sqrt", "f64", 'e', &[0x4000 << 48], [root + 1, root, root, root + 1], false));
    for base in ["fma", "mad"] {
        // (1 + 2^-52)² − (1 + 2^-51) = 2^-104.
        let sources = [ONE64 + 1, ONE64 + 1, (ONE64 + 2) | 1 << 63];
        rows.extend(each_rounding(base, "f64", 'e', &sources, [0x3970 << 48; 4], false));
        // (1 + 2^-52)(1 − 2^-52) + 2^-1074, the smallest number, is a little more than 1 − 2^-104: down is 1 − 2^-53.
        let sources = [ONE64 + 1, BELOW64 - 1, 1];
        rows.extend(each_rounding(base, "f64", 'e', &sources, [ONE64, BELOW64, BELOW64, ONE64], false));
    }
    // Too large: infinity, or the largest number. Too small: zero, or the smallest one.
    let (largest, infinity, sign) = (0x7fef_ffff_ffff_ffff, 0x7ff0 << 48, 1 << 63);
    let ends = [infinity, largest, largest, infinity];
    rows.extend(each_rounding("add", "f64", 'e', &[largest, largest], ends, false));
    rows.extend(each_rounding("mul", "f64", 'e', &[largest, 0x4000 << 48], ends, false));
    rows.extend(each_rounding("div", "f64", 'e', &[largest, 0x3fe0 << 48], ends, false));
    let down = [infinity, largest, infinity, largest].map(|end| end | sign);
    rows.extend(each_rounding("fma", "f64", 'e', &[largest | sign, 0x4000 << 48, 1], down, false));
    let small = 0x1a70 << 48;
    rows.extend(each_rounding("mul", "f64", 'e', &[small, small], [0, 0, 0, 1], false));
    rows.extend(each_rounding("fma", "f64", 'e', &[small | sign, small, 0], [sign, sign, sign | 1, sign], false));
    rows.extend(each_rounding("div", "f64", 'e', &[1, 0x4000 << 48], [0, 0, 0, 1], false));
    // Opposites: +0, but −0 downwards.
    rows.extend(each_rounding("sub", "f64", 'e', &[ONE64, ONE64], [0, 0, sign, 0], false));
    rows
}

/// Where a result is exact, every approximation within the ISA's bounds gives it here.
fn approximate() -> Vec<Row> {
    vec![
        same("div.full.f32", 'f', &[0x40c0_0000, THREE], TWO),
        same("div.full.ftz.f32", 'f', &[SUBNORMAL, ONE], 0),
        same("div.approx.f32", 'f', &[0x40c0_0000, THREE], TWO),
        same("div.approx.ftz.f32", 'f', &[SUBNORMAL, ONE], 0),
        same("ex2.approx.f32", 'f', &[THREE], 0x4100_0000),
        same("ex2.approx.ftz.f32", 'f', &[0xc302_0000], 0), // 2^-130
        same("ex2.approx.f32", 'f', &[0xc302_0000], 0x0008_0000),
        same("lg2.approx.f32", 'f', &[0x4100_0000], THREE),
        same("lg2.approx.ftz.f32", 'f', &[SUBNORMAL], 0xff80_0000),
        same("rcp.approx.f32", 'f', &[0x4080_0000], 0x3e80_0000),
        // Of FP64 the upper 32 bits: 1/4; 1/3 has 0x3fd55555 there, and more; of 3 and a bit the bit does not count.
        same("rcp.approx.ftz.f64", 'e', &[0x4010 << 48], 0x3fd0 << 48),
        same("rcp.approx.ftz.f64", 'e', &[0x4008 << 48 | 0xffff_ffff], 0x3fd5_5555 << 32),
        same("rcp.approx.ftz.f64", 'e', &[1 << 63 | 5], 0xfff0 << 48),
        same("rcp.approx.ftz.f64", 'e', &[0x7fe0 << 48], 0),
        same("rcp.approx.ftz.f64", 'e', &[0x7ff0 << 48], 0),
        same("rsqrt.approx.ftz.f64", 'e', &[0x4010 << 48], 0x3fe0 << 48),
        same("rsqrt.approx.ftz.f64", 'e', &[7], 0x7ff0 << 48),
        same("rsqrt.approx.f64", 'e', &[0x4010 << 48], 0x3fe0 << 48),
        same("rcp.approx.ftz.f32", 'f', &[SUBNORMAL], 0x7f80_0000),
        same("sqrt.approx.f32", 'f', &[0x4110_0000], THREE),
        same("sqrt.approx.ftz.f32", 'f', &[SUBNORMAL], 0),
        same("rsqrt.approx.f32", 'f', &[0x4080_0000], HALF),
        same("rsqrt.approx.ftz.f32", 'f', &[SUBNORMAL], 0x7f80_0000),
        same("tanh.approx.f32", 'f', &[0x41a0_0000], ONE),
        same("ex2.approx.f16", 'h', &[0x4200], 0x4800),
        same("ex2.approx.f16x2", 'r', &[0x4200_3c00], 0x4800_4000),
        same("ex2.approx.ftz.bf16", 'h', &[0x4040], 0x4100),
        same("ex2.approx.ftz.bf16x2", 'r', &[0x4040_3f80], 0x4100_4000),
        same("tanh.approx.f16", 'h', &[0x4d00], 0x3c00),
        same("tanh.approx.f16x2", 'r', &[0x4d00_cd00], 0x3c00_bc00),
        same("tanh.approx.bf16", 'h', &[0x41a0], 0x3f80),
        same("tanh.approx.bf16x2", 'r', &[0x41a0_0000], 0x3f80_0000),
    ]
}

fn halves() -> Vec<Row> {
    let mut rows = Vec::new();
    for rn in ["", ".rn"] {
        // FP16: 1 + 2^-10 + 2^-11 goes to the even 1 + 2^-9; 1 − 2^-11 is exact; 1.5² = 2.25.
        rows.push(same(&format!("add{rn}.f16"), 'h', &[0x3c01, 0x1000], 0x3c02));
        rows.push(same(&format!("sub{rn}.f16"), 'h', &[0x3c00, 0x1000], 0x3bff));
        rows.push(same(&format!("mul{rn}.f16"), 'h', &[0x3e00, 0x3e00], 0x4080));
        rows.push(same(&format!("add{rn}.f16x2"), 'r', &[0x3c01_3c00, 0x1000_3c00], 0x3c02_4000));
        rows.push(same(&format!("sub{rn}.f16x2"), 'r', &[0x3c00_3c00, 0x1000_3c00], 0x3bff_0000));
        rows.push(same(&format!("mul{rn}.f16x2"), 'r', &[0x3e00_bc00, 0x3e00_4000], 0x4080_c000));
        // BF16: 1 + 2^-8 is half-way and goes to the even 1; 3 − 1 = 2; 1.5 · −2.5 = −3.75.
        rows.push(same(&format!("add{rn}.bf16"), 'h', &[0x3f80, 0x3b80], 0x3f80));
        rows.push(same(&format!("sub{rn}.bf16"), 'h', &[0x4040, 0x3f80], 0x4000));
        rows.push(same(&format!("mul{rn}.bf16"), 'h', &[0x3fc0, 0xc020], 0xc070));
        rows.push(same(&format!("add{rn}.bf16x2"), 'r', &[0x4040_3f80, 0xbf80_3b80], 0x4000_3f80));
        rows.push(same(&format!("sub{rn}.bf16x2"), 'r', &[0x4040_3f80, 0x3f80_3f80], 0x4000_0000));
        rows.push(same(&format!("mul{rn}.bf16x2"), 'r', &[0x3fc0_3f80, 0xc020_4000], 0xc070_4000));
    }
    // Subnormal FP16 numbers, and saturation.
    for (ty, class, high) in [("f16", 'h', 0), ("f16x2", 'r', 0x4000_0000)] {
        let one_up = if high == 0 { 0 } else { 0x3c00_0000 };
        let of = |low: u64| one_up | low;
        rows.push(same(&format!("add.{ty}"), class, &[of(0x0200), of(0x0200)], high | 0x0400));
        rows.push(same(&format!("add.ftz.{ty}"), class, &[of(0x0200), of(0x0200)], high));
        rows.push(same(&format!("sub.ftz.{ty}"), class, &[of(0x0401), of(0x0400)], 0));
        rows.push(same(&format!("mul.ftz.{ty}"), class, &[of(0x0400), of(0x3800)], one_up));
        rows.push(same(&format!("add.sat.{ty}"), class, &[of(0x3c00), of(0x3c00)], of(0x3c00)));
        rows.push(same(&format!("sub.sat.{ty}"), class, &[of(0x3c00), of(0x4000)], 0));
        rows.push(same(&format!("mul.sat.{ty}"), class, &[of(0x7e00), of(0x3c00)], one_up));
        rows.push(same(&format!("fma.rn.ftz.{ty}"), class, &[of(0x0001), of(0x3c00), of(0x0400)], high | 0x0400));
        rows.push(same(&format!("fma.rn.sat.{ty}"), class, &[of(0x4000), of(0x4000), of(0)], of(0x3c00)));
        rows.push(same(&format!("fma.rn.relu.{ty}"), class, &[of(0xbc00), of(0x3c00), of(0)], high));
    }
    rows.extend([
        same("fma.rn.f16", 'h', &[0x1000, 0x3c00, 0x3c01], 0x3c02),
        // With a little less than half, it goes down.
        same("fma.rn.f16x2", 'r', &[0x0fff_1000, 0x3c00_3c00, 0x3c01_3c01], 0x3c01_3c02),
        same("fma.rn.bf16", 'h', &[0x4040, 0x42b2, 0x8d80], 0x4385),
        // 3 · 89 = 267 is half-way between 266 and 268; 2^-100 decides, though FP64 cannot hold the sum.
        same("fma.rn.bf16x2", 'r', &[0x4040_4040, 0x42b2_42b2, 0x8d80_0d80], 0x4385_4386),
        // The same where the even one is below, as an H200 has it.
        same("fma.rn.bf16", 'h', &[0xde88, 0xde88, 0x60d6], 0x7d91),
        same("fma.rn.bf16", 'h', &[0xde88, 0xde88, 0], 0x7d90),
        same("fma.rn.relu.bf16", 'h', &[0xbf80, 0x3f80, 0], 0),
        same("fma.rn.relu.bf16x2", 'r', &[0xbf80_3f80, 0x3f80_3f80, 0], 0x3f80),
    ]);
    rows
}

fn signs() -> Vec<Row> {
    let negative = 1 << 31;
    vec![
        same("neg.f32", 'f', &[ONE], ONE | negative),
        same("neg.ftz.f32", 'f', &[TINY], negative),
        same("abs.f32", 'f', &[THREE | negative], THREE),
        same("abs.ftz.f32", 'f', &[TINY | negative], 0),
        same("neg.f16", 'h', &[0x3c00], 0xbc00),
        // Subnormal numbers are zero, and what is more than 1 is 1.
        same("add.ftz.sat.f16", 'h', &[0x0001, 0x4000], 0x3c00),
        same("add.ftz.sat.f16x2", 'r', &[0x4000_0001, 0x3c00_bc00], 0x3c00_0000),
        same("sub.ftz.sat.f16", 'h', &[0x4200, 0x3c00], 0x3c00),
        same("sub.ftz.sat.f16x2", 'r', &[0x3c00_0001, 0x3800_3c00], 0x3800_0000),
        same("mul.ftz.sat.f16", 'h', &[0x4000, 0x0001], 0),
        same("mul.ftz.sat.f16x2", 'r', &[0x4000_3c00, 0x4000_3800], 0x3c00_3800),
        same("fma.rn.ftz.sat.f16", 'h', &[0x4000, 0x4000, 0x0001], 0x3c00),
        same("fma.rn.ftz.sat.f16x2", 'r', &[0x3c00_0001, 0x3800_3c00, 0x0000_8001], 0x3800_0000),
        same("neg.ftz.f16", 'h', &[0x0001], 0x8000),
        same("abs.f16", 'h', &[0x8001], 1),
        same("abs.ftz.f16", 'h', &[0x8001], 0),
        same("neg.f16x2", 'r', &[0x3c00_bc00], 0xbc00_3c00),
        same("neg.ftz.f16x2", 'r', &[0x3c00_8001], 0xbc00_0000),
        same("abs.f16x2", 'r', &[0xbc00_8001], 0x3c00_0001),
        same("abs.ftz.f16x2", 'r', &[0xbc00_8001], 0x3c00_0000),
        same("neg.bf16", 'h', &[0x3f80], 0xbf80),
        same("abs.bf16", 'h', &[0xbf80], 0x3f80),
        same("neg.bf16x2", 'r', &[0x3f80_bf80], 0xbf80_3f80),
        same("abs.bf16x2", 'r', &[0xbf80_8001], 0x3f80_0001),
        same("neg.f64", 'e', &[ONE64], ONE64 | 1 << 63),
        same("abs.f64", 'e', &[ONE64 | 1 << 63], ONE64),
    ]
}

/// A NaN operand loses, but not with `.NaN`; −0 is less than +0.
fn extremes() -> Vec<Row> {
    let minus_zero = 1 << 31;
    let mut rows = vec![
        same("max.f32", 'f', &[NAN, ONE], ONE),
        same("min.f32", 'f', &[ONE, NAN], ONE),
        same("max.f32", 'f', &[minus_zero, 0], 0),
        same("min.f32", 'f', &[0, minus_zero], minus_zero),
        same("max.NaN.f32", 'f', &[NAN, ONE], 0x7fff_ffff),
        same("min.NaN.f32", 'f', &[ONE, NAN], 0x7fff_ffff),
        same("max.ftz.f32", 'f', &[TINY, minus_zero], 0),
        same("min.ftz.f32", 'f', &[TINY, ONE], 0),
        same("max.ftz.NaN.f32", 'f', &[TINY, NAN], 0x7fff_ffff),
        same("min.ftz.NaN.f32", 'f', &[TINY, NAN], 0x7fff_ffff),
        // Of three.
        same("max.f32", 'f', &[ONE, THREE, TWO], THREE),
        same("min.f32", 'f', &[TWO, THREE, ONE], ONE),
        same("max.abs.f32", 'f', &[ONE, THREE | minus_zero, TWO], THREE),
        same("min.abs.f32", 'f', &[TWO, THREE, ONE | minus_zero], ONE),
        // Of the magnitudes, with the sign of a product.
        same("max.xorsign.abs.f32", 'f', &[ONE, THREE | minus_zero], THREE | minus_zero),
        same("min.xorsign.abs.f32", 'f', &[THREE | minus_zero, ONE | minus_zero], ONE),
        same("min.xorsign.abs.f32", 'f', &[NAN, ONE | minus_zero], ONE | minus_zero),
        same("min.xorsign.abs.f32", 'f', &[0, THREE | minus_zero], minus_zero),
        same("max.NaN.xorsign.abs.f32", 'f', &[NAN, ONE | minus_zero], 0x7fff_ffff),
        same("min.NaN.xorsign.abs.f32", 'f', &[ONE | minus_zero, NAN], 0x7fff_ffff),
        same("max.ftz.xorsign.abs.f32", 'f', &[TINY, minus_zero], minus_zero),
        same("min.ftz.xorsign.abs.f32", 'f', &[TINY | minus_zero, ONE], minus_zero),
        same("max.ftz.NaN.xorsign.abs.f32", 'f', &[TINY, NAN], 0x7fff_ffff),
        same("min.ftz.NaN.xorsign.abs.f32", 'f', &[TINY | minus_zero, ONE], minus_zero),
        same("max.f64", 'e', &[0x7ff8 << 48, ONE64], ONE64),
        same("min.f64", 'e', &[0, 1 << 63], 1 << 63),
    ];
    for (base, result) in [("max", 0x4000), ("min", 0x3c00)] {
        rows.push(same(&format!("{base}.f16"), 'h', &[0x4000, 0x3c00], result));
        rows.push(same(&format!("{base}.f16x2"), 'r', &[0x4000_7e00, 0x3c00_3c00], result << 16 | 0x3c00));
        rows.push(same(&format!("{base}.NaN.f16"), 'h', &[0x4000, 0x7e00], 0x7fff));
        rows.push(same(&format!("{base}.NaN.f16x2"), 'r', &[0x4000_7e00, 0x3c00_3c00], result << 16 | 0x7fff));
        // Of 2 and −1, or a NaN and −1: the sign is that of a product, and a NaN has none.
        for (f16, one, nan) in [("f16", 0x3c00, 0x7e00), ("bf16", 0x3f80, 0x7fc0)] {
            let (two, minus, signed) = (0x4000, one | 0x8000, 0x8000 | if base == "max" { 0x4000 } else { one });
            rows.push(same(&format!("{base}.xorsign.abs.{f16}"), 'h', &[two, minus], signed));
            rows.push(same(&format!("{base}.NaN.xorsign.abs.{f16}"), 'h', &[nan, minus], 0x7fff));
            let halves = [two << 16 | nan, minus << 16 | minus];
            rows.push(same(&format!("{base}.xorsign.abs.{f16}x2"), 'r', &halves, signed << 16 | minus));
            rows.push(same(&format!("{base}.NaN.xorsign.abs.{f16}x2"), 'r', &halves, signed << 16 | 0x7fff));
        }
        // A subnormal number and −0: both are zero.
        let zero = if base == "max" { 0 } else { 0x8000 };
        rows.push(same(&format!("{base}.ftz.f16"), 'h', &[0x0001, 0x8000], zero));
        rows.push(same(&format!("{base}.ftz.f16x2"), 'r', &[0x4000_0001, 0x3c00_8000], result << 16 | zero));
        rows.push(same(&format!("{base}.ftz.NaN.f16"), 'h', &[0x0001, 0x7e00], 0x7fff));
        rows.push(same(&format!("{base}.ftz.NaN.f16x2"), 'r', &[0x4000_0001, 0x3c00_7e00], result << 16 | 0x7fff));
        // The sign is that of a product, of zeros, too.
        let signed = 0x8000 | result;
        rows.push(same(&format!("{base}.ftz.xorsign.abs.f16"), 'h', &[0x0001, 0x8000], 0x8000));
        rows.push(same(
            &format!("{base}.ftz.xorsign.abs.f16x2"),
            'r',
            &[0x4000_0001, 0xbc00_8000],
            signed << 16 | 0x8000,
        ));
        rows.push(same(&format!("{base}.ftz.NaN.xorsign.abs.f16"), 'h', &[0x0001, 0x7e00], 0x7fff));
        rows.push(same(
            &format!("{base}.ftz.NaN.xorsign.abs.f16x2"),
            'r',
            &[0x4000_0001, 0xbc00_7e00],
            signed << 16 | 0x7fff,
        ));
    }
    for (base, result) in [("max", 0x4000), ("min", 0x3f80)] {
        rows.push(same(&format!("{base}.bf16"), 'h', &[0x4000, 0x3f80], result));
        rows.push(same(&format!("{base}.bf16x2"), 'r', &[0x4000_7fc0, 0x3f80_3f80], result << 16 | 0x3f80));
        rows.push(same(&format!("{base}.NaN.bf16"), 'h', &[0x4000, 0x7fc0], 0x7fff));
        rows.push(same(&format!("{base}.NaN.bf16x2"), 'r', &[0x4000_7fc0, 0x3f80_3f80], result << 16 | 0x7fff));
    }
    // A decimal constant is a float where the type is one.
    rows.push(one("mov.f32 %f1, 2.5; add.f32 %f0, %f1, 0.5; mov.b32 %r0, %f0;", THREE));
    rows
}

#[test]
fn values() {
    check(&rows());
}
