//! `cvt` from and to numbers of 8, 6 and 4 bits, scale factors and TF32.

use crate::row::{Row, check, op};

pub fn rows() -> Vec<Row> {
    let mut rows = to_narrow();
    rows.extend(from_narrow());
    rows.extend(scaled());
    rows.extend(scales());
    rows.extend(tf32());
    rows
}

const NAN: u64 = 0x7fc0_0000;
const INFINITY: u64 = 0x7f80_0000;
const MINUS: u64 = 0x8000_0000;

fn fp32(x: f32) -> u64 {
    x.to_bits().into()
}

/// FP32 numbers, and what each becomes.
type Values = [(f32, u64); 6];

/// FP32 numbers and what they become: numbers, ties in both directions, the least number and half of it, too much, and NaN.
const NARROW: &[(&str, Values, u64, u64)] = &[
    // 4 bits of exponent, 3 of fraction: 448 is the greatest, 2^-9 the least. NaN stays NaN.
    ("e4m3x2", [(1.0, 0x38), (1.0625, 0x38), (1.1875, 0x3a), (448.0, 0x7e), (1e9, 0x7e), (0.001953125, 1)], 0x7f, 0x80),
    // 5 and 2: 57344 and 2^-16. Its infinity is not reached.
    (
        "e5m2x2",
        [(1.0, 0x3c), (1.125, 0x3c), (1.375, 0x3e), (57344.0, 0x7b), (1e9, 0x7b), (1.0 / 65536.0, 1)],
        0x7f,
        0x80,
    ),
    // 2 and 3: 7.5 and 0.125. There is no NaN: it becomes the greatest number.
    ("e2m3x2", [(1.0, 0x08), (0.0625, 0), (0.1875, 2), (7.5, 0x1f), (8.0, 0x1f), (0.125, 1)], 0x1f, 0x20),
    // 3 and 2: 28 and 0.0625.
    ("e3m2x2", [(1.0, 0x0c), (0.03125, 0), (0.09375, 2), (28.0, 0x1f), (30.0, 0x1f), (0.0625, 1)], 0x1f, 0x20),
    // 2 and 1: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
    ("e2m1x2", [(1.0, 2), (2.5, 4), (5.0, 6), (6.0, 7), (1e9, 7), (0.75, 2)], 7, 8),
];

fn to_narrow() -> Vec<Row> {
    let mut rows = Vec::new();
    for &(ty, values, nan, sign) in NARROW {
        let (class, bits) = if ty == "e2m1x2" { ('b', 4) } else { ('h', 8) };
        let opcode = format!("cvt.rn.satfinite.{ty}.f32");
        for (x, wanted) in values {
            // The first source in the high part, with the other sign.
            let sources = [('f', fp32(x) | MINUS), ('f', fp32(x))];
            rows.push(op(&opcode, class, &sources, (wanted | sign) << bits | wanted));
        }
        rows.push(op(&opcode, class, &[('f', NAN), ('f', MINUS)], nan << bits | sign));
        let most = values[3].1;
        rows.push(op(&opcode, class, &[('f', INFINITY), ('f', INFINITY | MINUS)], most << bits | most | sign));
        let relu = format!("cvt.rn.satfinite.relu.{ty}.f32");
        rows.push(op(&relu, class, &[('f', fp32(-1.0)), ('f', fp32(1.0))], values[0].1));
        rows.push(op(&relu, class, &[('f', NAN), ('f', MINUS)], nan << bits));
    }
    // 2^-10 is half of E4M3's least number; a step above it is nearer to that.
    rows.push(op("cvt.rn.satfinite.e4m3x2.f32", 'h', &[('f', 0x3a80_0000), ('f', 0x3a80_0001)], 0x0001));
    rows.extend([
        // FP16: 448 and −1.5; infinity and a NaN; the greatest, 65504, and the least, 2^-24.
        op("cvt.rn.satfinite.e4m3x2.f16x2", 'h', &[('r', 0x5f00_be00)], 0x7ebc),
        op("cvt.rn.satfinite.e4m3x2.f16x2", 'h', &[('r', 0xfc00_7e00)], 0xfe7f),
        op("cvt.rn.satfinite.e5m2x2.f16x2", 'h', &[('r', 0x5f00_be00)], 0x5fbe),
        op("cvt.rn.satfinite.e5m2x2.f16x2", 'h', &[('r', 0x7bff_0001)], 0x7b00),
        op("cvt.rn.satfinite.relu.e4m3x2.f16x2", 'h', &[('r', 0x5f00_be00)], 0x7e00),
        op("cvt.rn.satfinite.relu.e5m2x2.f16x2", 'h', &[('r', 0xfc00_3c00)], 0x003c),
        // BF16: 448 and −1.5; minus infinity and a NaN; 2^127 and 1.
        op("cvt.rn.satfinite.e4m3x2.bf16x2", 'h', &[('r', 0x43e0_bfc0)], 0x7ebc),
        op("cvt.rn.satfinite.e4m3x2.bf16x2", 'h', &[('r', 0xff80_7fc0)], 0xfe7f),
        op("cvt.rn.satfinite.e5m2x2.bf16x2", 'h', &[('r', 0x7f00_3f80)], 0x7b3c),
        op("cvt.rn.satfinite.relu.e4m3x2.bf16x2", 'h', &[('r', 0x43e0_bfc0)], 0x7e00),
        op("cvt.rn.satfinite.relu.e5m2x2.bf16x2", 'h', &[('r', 0xbf80_3f80)], 0x003c),
    ]);
    // 1 and −1, of FP16 and of BF16.
    for (ty, class, one, minus) in [("e2m3x2", 'h', 0x08, 0x28), ("e3m2x2", 'h', 0x0c, 0x2c), ("e2m1x2", 'b', 2, 10)] {
        let bits = if class == 'b' { 4 } else { 8 };
        for (from, pair) in [("f16x2", 0x3c00_bc00), ("bf16x2", 0x3f80_bf80)] {
            rows.push(op(&format!("cvt.rn.satfinite.{ty}.{from}"), class, &[('r', pair)], one << bits | minus));
            rows.push(op(&format!("cvt.rn.satfinite.relu.{ty}.{from}"), class, &[('r', pair)], one << bits));
        }
    }
    rows
}

fn from_narrow() -> Vec<Row> {
    let mut rows = Vec::new();
    // Two numbers, what they are in FP16, and that with `.relu`.
    for (ty, class, bits, wanted, clamped) in [
        ("e4m3x2", 'h', 0x7eb8, 0x5f00_bc00, 0x5f00_0000), // 448, −1
        ("e4m3x2", 'h', 0x017f, 0x1800_7fff, 0x1800_7fff), // 2^-9, NaN
        ("e4m3x2", 'h', 0xff80, 0x7fff_8000, 0x7fff_0000), // NaN, −0
        ("e5m2x2", 'h', 0x7bfc, 0x7b00_fc00, 0x7b00_0000), // 57344, −∞
        ("e5m2x2", 'h', 0x017e, 0x0100_7fff, 0x0100_7fff), // 2^-16, NaN
        ("e2m3x2", 'h', 0x1f21, 0x4780_b000, 0x4780_0000), // 7.5, −0.125
        ("e3m2x2", 'h', 0x1f21, 0x4f00_ac00, 0x4f00_0000), // 28, −0.0625
        ("e2m1x2", 'b', 0x79, 0x4600_b800, 0x4600_0000),   // 6, −0.5
        ("e2m1x2", 'b', 0x53, 0x4200_3e00, 0x4200_3e00),   // 3, 1.5
    ] {
        rows.push(op(&format!("cvt.rn.f16x2.{ty}"), 'r', &[(class, bits)], wanted));
        rows.push(op(&format!("cvt.rn.relu.f16x2.{ty}"), 'r', &[(class, bits)], clamped));
    }
    // The same in BF16, which holds every one of them.
    for (ty, class, bits, wanted, clamped) in [
        ("e4m3x2", 'h', 0x7eb8, 0x43e0_bf80, 0x43e0_0000), // 448, −1
        ("e4m3x2", 'h', 0x017f, 0x3b00_7fff, 0x3b00_7fff), // 2^-9, NaN
        ("e4m3x2", 'h', 0xff80, 0x7fff_8000, 0x7fff_0000), // NaN, −0
        ("e5m2x2", 'h', 0x7bfc, 0x4760_ff80, 0x4760_0000), // 57344, −∞
        ("e5m2x2", 'h', 0x017e, 0x3780_7fff, 0x3780_7fff), // 2^-16, NaN
        ("e2m3x2", 'h', 0x1f21, 0x40f0_be00, 0x40f0_0000), // 7.5, −0.125
        ("e3m2x2", 'h', 0x1f21, 0x41e0_bd80, 0x41e0_0000), // 28, −0.0625
        ("e2m1x2", 'b', 0x79, 0x40c0_bf00, 0x40c0_0000),   // 6, −0.5
        ("e2m1x2", 'b', 0x53, 0x4040_3fc0, 0x4040_3fc0),   // 3, 1.5
    ] {
        rows.push(op(&format!("cvt.rn.bf16x2.{ty}"), 'r', &[(class, bits)], wanted));
        rows.push(op(&format!("cvt.rn.relu.bf16x2.{ty}"), 'r', &[(class, bits)], clamped));
    }
    rows
}

/// Two numbers, each times a power of two: the upper factor is of the upper number (PTX ISA, cvt).
fn scaled() -> Vec<Row> {
    let mut rows = Vec::new();
    let cvt = "cvt.rn.scaled::n2::ue8m0.bf16x2";
    // Upper, lower: factors 2^6 and 2^-1 (0x85, 0x7e), and the numbers of each format 1 and −1.5.
    for (format, class, bits) in [
        ("e4m3x2", 'h', 0x38bc),
        ("e5m2x2", 'h', 0x3cbe),
        ("e2m3x2", 'h', 0x082c),
        ("e3m2x2", 'h', 0x0c2e),
        ("e2m1x2", 'b', 0x2b),
        ("s2f6x2", 'h', 0x40a0),
    ] {
        let scale = ('h', 0x857e);
        rows.push(op(&format!("{cvt}.{format}"), 'r', &[(class, bits), scale], 0x4280_bf40)); // 64, −0.75
        rows.push(op(
            &format!("cvt.rn.relu.scaled::n2::ue8m0.bf16x2.{format}"),
            'r',
            &[(class, bits), scale],
            0x4280_0000,
        ));
        rows.push(op(
            &format!("cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.{format}"),
            'r',
            &[(class, bits), scale],
            0x4280_bf40,
        ));
        rows.push(op(&format!("cvt.rn.satfinite.bf16x2.{format}"), 'r', &[(class, bits)], 0x3f80_bfc0));
        rows.push(op(&format!("cvt.rn.relu.satfinite.bf16x2.{format}"), 'r', &[(class, bits)], 0x3f80_0000));
        rows.push(op(&format!("cvt.rn.bf16x2.{format}"), 'r', &[(class, bits)], 0x3f80_bfc0));
    }
    rows.extend([
        // 2 · 2^127 and −2 · 2^127 lie beyond BF16.
        op(&format!("{cvt}.e4m3x2"), 'r', &[('h', 0x40c0), ('h', 0xfefe)], 0x7f80_ff80),
        op("cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.e4m3x2", 'r', &[('h', 0x40c0), ('h', 0xfefe)], 0x7f7f_ff7f),
        // Infinity, which E5M2 has; and 2^-127, the least factor, which is subnormal in BF16.
        op(&format!("{cvt}.e5m2x2"), 'r', &[('h', 0xfc3c), ('h', 0x7f00)], 0xff80_0040),
        op("cvt.rn.satfinite.bf16x2.e5m2x2", 'r', &[('h', 0xfc7c)], 0xff7f_7f7f),
        // A factor that is NaN, and a number that is.
        op(&format!("{cvt}.e4m3x2"), 'r', &[('h', 0x387f), ('h', 0xff7f)], 0x7fff_7fff),
        // BF16 numbers are multiples of 2^-133. 2^-7 and 1.5 · 2^-6 times 2^-127 are 0.5 and 1.5 of these: to the even neighbour.
        op(&format!("{cvt}.e4m3x2"), 'r', &[('h', 0x040c), ('h', 0x0000)], 0x0000_0002),
        // Of S2F6, 127 / 64 and −2.
        op("cvt.rn.bf16x2.s2f6x2", 'r', &[('h', 0x7f80)], 0x3ffe_c000),
        op("cvt.rn.relu.bf16x2.s2f6x2", 'r', &[('h', 0x7f80)], 0x3ffe_0000),
        // To S2F6: 1 and −1.5; what lies beyond; NaN is the greatest.
        op("cvt.rn.satfinite.s2f6x2.f32", 'h', &[('f', fp32(1.0)), ('f', fp32(-1.5))], 0x40a0),
        op("cvt.rn.satfinite.relu.s2f6x2.f32", 'h', &[('f', fp32(1.0)), ('f', fp32(-1.5))], 0x4000),
        op("cvt.rn.satfinite.s2f6x2.f32", 'h', &[('f', fp32(2.0)), ('f', fp32(-2.5))], 0x7f80),
        op("cvt.rn.satfinite.s2f6x2.f32", 'h', &[('f', 0x7fc0_0000), ('f', 0xff80_0000)], 0x7f80),
        // 0.5 / 64 and 1.5 / 64: to the even neighbour.
        op("cvt.rn.satfinite.s2f6x2.f32", 'h', &[('f', fp32(0.0078125)), ('f', fp32(0.0234375))], 0x0002),
        op("cvt.rn.satfinite.s2f6x2.bf16x2", 'h', &[('r', 0x3f80_bfc0)], 0x40a0),
        op("cvt.rn.satfinite.relu.s2f6x2.bf16x2", 'h', &[('r', 0x3f80_bfc0)], 0x4000),
        // Divided by 2^6 and by 2^-1.
        op(
            "cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32",
            'h',
            &[('f', fp32(64.0)), ('f', fp32(-0.75)), ('h', 0x857e)],
            0x40a0,
        ),
        op("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.bf16x2", 'h', &[('r', 0x4280_bf40), ('h', 0x857e)], 0x40a0),
        op("cvt.rn.satfinite.relu.scaled::n2::ue8m0.s2f6x2.bf16x2", 'h', &[('r', 0x4280_bf40), ('h', 0x857e)], 0x4000),
        op(
            "cvt.rn.satfinite.relu.scaled::n2::ue8m0.s2f6x2.f32",
            'h',
            &[('f', fp32(64.0)), ('f', fp32(-0.75)), ('h', 0x857e)],
            0x4000,
        ),
    ]);
    rows
}

fn scales() -> Vec<Row> {
    let mut rows = Vec::new();
    // FP32 numbers, and the scale below, above, and each of them clamped.
    for (bits, down, up, down_clamped, up_clamped) in [
        (0x3f80_0000, 0x7f, 0x7f, 0x7f, 0x7f), // 1
        (0x3fc0_0000, 0x7f, 0x80, 0x7f, 0x80), // 1.5
        (0x0040_0000, 0, 0, 0, 0),             // 2^-127, the least
        (0x0040_0001, 0, 1, 0, 1),
        (0x0000_0001, 0, 0, 0, 0),
        (0x7f7f_ffff, 0xfe, 0xff, 0xfe, 0xfe),
        (INFINITY, 0xff, 0xff, 0xfe, 0xfe),
        (NAN, 0xff, 0xff, 0xff, 0xff),
    ] {
        for (rounding, wanted) in
            [("rz", down), ("rp", up), ("rz.satfinite", down_clamped), ("rp.satfinite", up_clamped)]
        {
            let sources = [('f', bits), ('f', 0x4000_0000)];
            rows.push(op(&format!("cvt.{rounding}.ue8m0x2.f32"), 'h', &sources, wanted << 8 | 0x80));
        }
    }
    rows.extend([
        // BF16: 1.5 and 2; infinity and 0.
        op("cvt.rz.ue8m0x2.bf16x2", 'h', &[('r', 0x3fc0_4000)], 0x7f80),
        op("cvt.rp.ue8m0x2.bf16x2", 'h', &[('r', 0x3fc0_4000)], 0x8080),
        op("cvt.rz.satfinite.ue8m0x2.bf16x2", 'h', &[('r', 0x7f80_0000)], 0xfe00),
        op("cvt.rp.satfinite.ue8m0x2.bf16x2", 'h', &[('r', 0x7fc0_0041)], 0xff01),
        op("cvt.rn.bf16x2.ue8m0x2", 'r', &[('h', 0x7f80)], 0x3f80_4000),
        op("cvt.rn.bf16x2.ue8m0x2", 'r', &[('h', 0x00ff)], 0x0040_7fff),
        op("cvt.rn.bf16x2.ue8m0x2", 'r', &[('h', 0x01fe)], 0x0080_7f00),
    ]);
    rows
}

/// Ten bits of fraction: 0x1000 is half of the last.
fn tf32() -> Vec<Row> {
    let mut rows = Vec::new();
    for (bits, even, away, cut) in [
        (0x3f80_1000, 0x3f80_0000, 0x3f80_2000, 0x3f80_0000),
        (0xbf80_3000, 0xbf80_4000, 0xbf80_4000, 0xbf80_2000),
        (0x3f80_0fff, 0x3f80_0000, 0x3f80_0000, 0x3f80_0000),
        (0x0000_1000, 0, 0x2000, 0),
        (0x7f7f_ffff, 0x7f80_0000, 0x7f80_0000, 0x7f7f_e000),
        (INFINITY | MINUS, 0xff80_0000, 0xff80_0000, 0xff80_0000),
    ] {
        // Infinity is clamped, too.
        let clamped = |x: u64| if x & 0x7fff_ffff == INFINITY { x & MINUS | 0x7f7f_e000 } else { x };
        let relu = |x: u64| if x & MINUS != 0 { 0 } else { x };
        for (rounding, wanted) in [("rn", even), ("rz", cut)] {
            let mut row = |flags: &str, wanted| {
                rows.push(op(&format!("cvt.{rounding}{flags}.tf32.f32"), 'r', &[('f', bits)], wanted));
            };
            row("", wanted);
            row(".relu", relu(wanted));
            row(".satfinite", clamped(wanted));
            row(".satfinite.relu", relu(clamped(wanted)));
        }
        rows.push(op("cvt.rna.tf32.f32", 'r', &[('f', bits)], away));
        rows.push(op("cvt.rna.satfinite.tf32.f32", 'r', &[('f', bits)], clamped(away)));
    }
    // A NaN, as an H200 does it.
    for (rounding, wanted) in [
        ("rn", 0x7fff_e000),
        ("rz", 0x7fff_e000),
        ("rn.relu", 0x7fff_e000),
        ("rna", 0x7fc0_0000),
        ("rna.satfinite", 0x7fbf_e000),
    ] {
        rows.push(op(&format!("cvt.{rounding}.tf32.f32"), 'r', &[('f', NAN)], wanted));
    }
    // Such as would be rounded up, and over.
    rows.push(op("cvt.rna.tf32.f32", 'r', &[('f', 0x7fff_bdb5)], 0x7fff_a000));
    rows.push(op("cvt.rna.tf32.f32", 'r', &[('f', 0xffff_ffff)], 0xffff_e000));
    rows
}

#[test]
fn values() {
    check(&rows());
}
