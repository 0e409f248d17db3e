//! `cvt`.

use crate::row::{Row, check, one, op};

/// Integer types: name, bits, signed.
const INTEGERS: &[(&str, u32, bool)] = &[
    ("u8", 8, false),
    ("s8", 8, true),
    ("u16", 16, false),
    ("s16", 16, true),
    ("u32", 32, false),
    ("s32", 32, true),
    ("u64", 64, false),
    ("s64", 64, true),
];

/// The register class of a type of so many bits, and the bits that are compared: 8-bit types live in 16-bit registers.
fn class(bits: u32) -> char {
    match bits {
        8 | 16 => 'h',
        32 => 'r',
        _ => 'd',
    }
}

fn cut(value: i128, bits: u32) -> u64 {
    (value & ((1 << bits) - 1)) as u64
}

/// What stands in the register of a result: it is extended by its own type's sign.
fn held(value: i128, bits: u32, signed: bool) -> u64 {
    let low = cut(value, bits);
    if signed && low >> (bits - 1) & 1 == 1 { cut(low as i128 - (1 << bits), bits.max(16)) } else { low }
}

pub fn rows() -> Vec<Row> {
    let mut rows = between_integers();
    rows.extend(from_integers());
    rows.extend(to_integers());
    rows.extend(whole());
    rows.extend(wider());
    rows.extend(rounded_for_nothing());
    rows.extend(in_64_bits());
    rows.extend(narrower());
    rows.extend(pairs());
    rows.extend(by_random_bits());
    rows.extend(between_halves());
    rows
}

/// FP16 and BF16 of each other, which round; and `.ftz`, of which integers know nothing.
fn between_halves() -> Vec<Row> {
    let mut rows = vec![
        op("cvt.rn.f16.bf16", 'h', &[('h', 0x3f81)], 0x3c08),
        op("cvt.rn.bf16.f16", 'h', &[('h', 0x3e00)], 0x3fc0),
        // Without a rounding it is to nearest: 1 + 3·2^-8 lies between 1 + 2^-7 and 1 + 2·2^-7, and goes to the even one.
        op("cvt.bf16.f16", 'h', &[('h', 0x3c0c)], 0x3f82),
        op("cvt.f16.bf16", 'h', &[('h', 0x3300)], 0),
    ];
    // 2^-25 is half of the least FP16 number; 1 + 2^-10 lies an eighth of a step above 1 in BF16.
    for (way, least, minus, one) in
        [("rn", 0, 0x8000, 0x3f80), ("rz", 0, 0x8000, 0x3f80), ("rm", 0, 0x8001, 0x3f80), ("rp", 1, 0x8000, 0x3f81)]
    {
        rows.push(op(&format!("cvt.{way}.f16.bf16"), 'h', &[('h', 0x3300)], least));
        rows.push(op(&format!("cvt.{way}.f16.bf16"), 'h', &[('h', 0xb300)], minus));
        rows.push(op(&format!("cvt.{way}.bf16.f16"), 'h', &[('h', 0x3c01)], one));
        rows.push(op(&format!("cvt.{way}.ftz.f32.u32"), 'f', &[('r', 3)], 0x4040_0000));
    }
    for (ty, class, minus) in [("8", 'b', 0xff), ("16", 'h', 0xffff), ("32", 'r', 0xffff_ffff), ("64", 'd', u64::MAX)] {
        rows.push(op(&format!("cvt.rn.ftz.f32.s{ty}"), 'f', &[(class, minus)], 0xbf80_0000));
        rows.push(op(&format!("cvt.rn.ftz.sat.f32.u{ty}"), 'f', &[(class, minus)], 0x3f80_0000));
    }
    rows
}

/// Registers of 64 bits for narrower types (PTX ISA 9.4.1): NVVM writes `cvt.s64.s32` of one.
fn in_64_bits() -> Vec<Row> {
    let source = ('d', 0x1234_5678_89ab_cdef);
    vec![
        op("cvt.s64.s32", 'd', &[source], 0xffff_ffff_89ab_cdef),
        op("cvt.u64.u32", 'd', &[source], 0x89ab_cdef),
        op("cvt.u32.u16", 'r', &[source], 0xcdef),
        op("cvt.s32.s8", 'r', &[source], 0xffff_ffef),
        op("cvt.rn.f32.s16", 'f', &[source], 0xc648_4400), // −12817
        op("cvt.s16.s8", 'd', &[source], 0xffff_ffff_ffff_ffef),
        op("cvt.u16.u8", 'd', &[source], 0xef),
        op("cvt.u32.u64", 'd', &[source], 0x89ab_cdef),
        op("cvt.s32.s64", 'd', &[source], 0xffff_ffff_89ab_cdef),
        op("cvt.sat.s8.s32", 'd', &[('r', 0x8000_0000)], 0xffff_ffff_ffff_ff80),
    ]
}

fn between_integers() -> Vec<Row> {
    let mut rows = Vec::new();
    for &(from, from_bits, from_signed) in INTEGERS {
        for &(to, bits, signed) in INTEGERS {
            // −100, or what an unsigned type makes of its bits.
            let value = if from_signed { -100 } else { (1i128 << from_bits) - 100 };
            let source = (class(from_bits), cut(-100, from_bits));
            rows.push(op(&format!("cvt.{to}.{from}"), class(bits), &[source], held(value, bits, signed)));
            let (least, greatest) =
                if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
            let clamped = value.clamp(least, greatest);
            // `.sat` stands only where something can be cut off.
            let (low, high) = if from_signed {
                (-(1i128 << (from_bits - 1)), (1i128 << (from_bits - 1)) - 1)
            } else {
                (0, (1i128 << from_bits) - 1)
            };
            if low < least || high > greatest {
                rows.push(op(&format!("cvt.sat.{to}.{from}"), class(bits), &[source], held(clamped, bits, signed)));
            }
        }
    }
    rows
}

/// 100 and −100, which every float holds.
fn from_integers() -> Vec<Row> {
    let mut rows = Vec::new();
    for &(from, bits, signed) in INTEGERS {
        for (to, to_class, hundred, sign) in [
            ("f16", 'h', 0x5640, 15),
            ("bf16", 'h', 0x42c8, 15),
            ("f32", 'f', 0x42c8_0000, 31),
            ("f64", 'e', 0x4059 << 48, 63),
        ] {
            if to == "bf16" && bits == 8 {
                continue;
            }
            let (value, wanted) = if signed { (-100, hundred | 1 << sign) } else { (100, hundred) };
            rows.push(op(&format!("cvt.rn.{to}.{from}"), to_class, &[(class(bits), cut(value, bits))], wanted));
        }
    }
    // 2^24 + 1 lies half-way between two FP32 numbers.
    for (rounding, plus, minus) in [("rn", 0, 0), ("rz", 0, 0), ("rm", 0, 1), ("rp", 1, 0)] {
        rows.push(op(&format!("cvt.{rounding}.f32.u32"), 'f', &[('r', 0x100_0001)], 0x4b80_0000 + plus));
        rows.push(op(&format!("cvt.{rounding}.f32.s32"), 'f', &[('r', 0xfeff_ffff)], 0xcb80_0000 + minus));
        rows.push(op(&format!("cvt.{rounding}.bf16.u32"), 'h', &[('r', 0x101)], 0x4380 + plus));
        // 2^63 + 1 in FP64.
        rows.push(op(&format!("cvt.{rounding}.f64.u64"), 'e', &[('d', (1 << 63) + 1)], (0x43e0 << 48) + plus));
    }
    // 2^62 + 2^38 + 1: a step over FP64 would round twice.
    rows.push(op("cvt.rn.f32.u64", 'f', &[('d', (1 << 62) + (1 << 38) + 1)], 0x5e80_0001));
    rows.push(op("cvt.rn.sat.f32.s32", 'f', &[('r', 100)], 0x3f80_0000));
    rows
}

fn to_integers() -> Vec<Row> {
    let mut rows = Vec::new();
    // 2.5 and −2.5.
    for (from, from_class, up, sign) in [
        ("f16", 'h', 0x4100, 15),
        ("bf16", 'h', 0x4020, 15),
        ("f32", 'f', 0x4020_0000, 31),
        ("f64", 'e', 0x4004 << 48, 63),
    ] {
        for &(to, bits, signed) in INTEGERS.iter().filter(|i| from != "bf16" || i.1 > 8) {
            for (rounding, plus, minus) in [("rni", 2, -2), ("rzi", 2, -2), ("rmi", 2, -3), ("rpi", 3, -2)] {
                let opcode = format!("cvt.{rounding}.{to}.{from}");
                rows.push(op(&opcode, class(bits), &[(from_class, up)], plus));
                // Below the least value, it is the least one.
                let minus = if signed { held(minus, bits, true) } else { 0 };
                rows.push(op(&opcode, class(bits), &[(from_class, up | 1 << sign)], minus));
            }
        }
    }
    rows.extend([
        op("cvt.rzi.u8.f32", 'h', &[('f', 0x4396_0000)], 255), // 300
        op("cvt.rzi.sat.s8.f32", 'h', &[('f', 0x4396_0000)], 127),
        op("cvt.rzi.s32.f32", 'r', &[('f', 0x7fc0_0000)], 0),
        op("cvt.rzi.s32.f32", 'r', &[('f', 0xff80_0000)], 0x8000_0000),
        op("cvt.rpi.s32.f32", 'r', &[('f', 1)], 1),
        op("cvt.rpi.ftz.s32.f32", 'r', &[('f', 1)], 0),
    ]);
    rows
}

fn whole() -> Vec<Row> {
    let mut rows = Vec::new();
    for (rounding, plus, minus) in [
        ("rni", 0x4000_0000, 0xc000_0000),
        ("rzi", 0x4000_0000, 0xc000_0000),
        ("rmi", 0x4000_0000, 0xc040_0000),
        ("rpi", 0x4040_0000, 0xc000_0000),
    ] {
        rows.push(op(&format!("cvt.{rounding}.f32.f32"), 'f', &[('f', 0x4020_0000)], plus));
        rows.push(op(&format!("cvt.{rounding}.f32.f32"), 'f', &[('f', 0xc020_0000)], minus));
    }
    for (rounding, half, double) in
        [("rni", 0x4000, 0x4000), ("rzi", 0x4000, 0x4000), ("rmi", 0x4000, 0x4000), ("rpi", 0x4200, 0x4008)]
    {
        rows.push(op(&format!("cvt.{rounding}.f16.f16"), 'h', &[('h', 0x4100)], half));
        rows.push(op(&format!("cvt.{rounding}.f64.f64"), 'e', &[('e', 0x4004 << 48)], double << 48));
    }
    rows.extend([
        op("cvt.rpi.ftz.f32.f32", 'f', &[('f', 1)], 0),
        op("cvt.rni.sat.f32.f32", 'f', &[('f', 0x4020_0000)], 0x3f80_0000),
        op("cvt.rni.sat.f16.f16", 'h', &[('h', 0x4100)], 0x3c00),
        // Without a rounding to whole numbers a type becomes itself, cut off or flushed.
        op("cvt.sat.f32.f32", 'f', &[('f', 0x4020_0000)], 0x3f80_0000),
        op("cvt.sat.f32.f32", 'f', &[('f', 0xbf80_0000)], 0),
        op("cvt.sat.f32.f32", 'f', &[('f', 0x3ec0_0000)], 0x3ec0_0000),
        op("cvt.ftz.f32.f32", 'f', &[('f', 0x8000_0001)], 0x8000_0000),
        op("cvt.ftz.sat.f32.f32", 'f', &[('f', 1)], 0),
        op("cvt.f32.f32", 'f', &[('f', 1)], 1),
        op("cvt.sat.f16.f16", 'h', &[('h', 0x4100)], 0x3c00),
        op("cvt.f16.f16", 'h', &[('h', 0x4100)], 0x4100),
        op("cvt.bf16.bf16", 'h', &[('h', 0x4020)], 0x4020),
        // 2.5, −2.5 and −0.25 to whole numbers, as CUDA's hrint, htrunc, hfloor and hceil of BF16 write it.
        op("cvt.rni.bf16.bf16", 'h', &[('h', 0x4020)], 0x4000),
        op("cvt.rzi.bf16.bf16", 'h', &[('h', 0xc020)], 0xc000),
        op("cvt.rmi.bf16.bf16", 'h', &[('h', 0xc020)], 0xc040),
        op("cvt.rpi.bf16.bf16", 'h', &[('h', 0xbe80)], 0x8000),
        // Two numbers, cut off; further up what was in the lowest bits of a third.
        op("cvt.pack.sat.s16.s32", 'r', &[('r', 0xffff_0000), ('r', 5)], 0x8000_0005),
        op("cvt.pack.sat.u16.s32", 'r', &[('r', 0x7fff_ffff), ('r', 0xffff_ffff)], 0xffff_0000),
        op("cvt.pack.sat.s8.s32.b32", 'r', &[('r', 0xffff_ff00), ('r', 300), ('r', 0x1234_5678)], 0x5678_807f),
        op("cvt.pack.sat.u8.s32.b32", 'r', &[('r', 256), ('r', 0xffff_fffe), ('r', 0x1234_5678)], 0x5678_ff00),
        op("cvt.pack.sat.s4.s32.b32", 'r', &[('r', 9), ('r', 0xffff_fff0), ('r', 0x1234_5678)], 0x3456_7878),
        op("cvt.pack.sat.u4.s32.b32", 'r', &[('r', 16), ('r', 0xffff_fff0), ('r', 0x1234_5678)], 0x3456_78f0),
        op("cvt.pack.sat.s2.s32.b32", 'r', &[('r', 9), ('r', 0xffff_fff0), ('r', 0x1234_5678)], 0x2345_6786),
        op("cvt.pack.sat.u2.s32.b32", 'r', &[('r', 9), ('r', 0xffff_fff0), ('r', 0x1234_5678)], 0x2345_678c),
        // 1 and half a step, and 2^-50 more: rounded once.
        op("cvt.rn.f16.f64", 'h', &[('e', 0x3ff0_0200_0000_0000)], 0x3c00),
        op("cvt.rn.f16.f64", 'h', &[('e', 0x3ff0_0200_0000_0004)], 0x3c01),
        op("cvt.rn.bf16.f64", 'h', &[('e', 0x3ff0_1000_0000_0000)], 0x3f80),
        op("cvt.rn.bf16.f64", 'h', &[('e', 0x3ff0_1000_0000_0004)], 0x3f81),
        op("cvt.sat.f64.f64", 'e', &[('e', 0x4004 << 48)], 0x3ff0 << 48),
        op("cvt.f64.f64", 'e', &[('e', 0x4004 << 48)], 0x4004 << 48),
    ]);
    rows
}

fn wider() -> Vec<Row> {
    vec![
        op("cvt.f32.f16", 'f', &[('h', 0x0001)], 0x3380_0000), // 2^-24
        op("cvt.ftz.f32.f16", 'f', &[('h', 0x0001)], 0x3380_0000),
        op("cvt.sat.f32.f16", 'f', &[('h', 0xbc00)], 0),
        op("cvt.f32.f16", 'f', &[('h', 0x7e00)], 0x7fff_ffff),
        op("cvt.f32.bf16", 'f', &[('h', 0xc020)], 0xc020_0000),
        op("cvt.f64.f16", 'e', &[('h', 0xc100)], 0xc004 << 48),
        op("cvt.f64.bf16", 'e', &[('h', 0x4020)], 0x4004 << 48),
        op("cvt.f64.f32", 'e', &[('f', 1)], 0x36a0 << 48), // 2^-149
        op("cvt.ftz.f64.f32", 'e', &[('f', 0x8000_0001)], 1 << 63),
        op("cvt.sat.f64.f32", 'e', &[('f', 0x4000_0000)], 0x3ff0 << 48),
        op("cvt.ftz.sat.f64.f32", 'e', &[('f', 1)], 0),
        op("cvt.sat.f64.f16", 'e', &[('h', 0x4000)], 0x3ff0 << 48),
        op("cvt.ftz.f32.bf16", 'f', &[('h', 0x8001)], 0x8000_0000),
        op("cvt.f32.bf16", 'f', &[('h', 0x8001)], 0x8001_0000),
    ]
}

/// What is exact is the same however it is rounded.
fn rounded_for_nothing() -> Vec<Row> {
    let mut rows = Vec::new();
    for way in ["rn", "rz", "rm", "rp"] {
        rows.push(op(&format!("cvt.{way}.f32.bf16"), 'f', &[('h', 0xc021)], 0xc021_0000));
        rows.push(op(&format!("cvt.{way}.ftz.f32.bf16"), 'f', &[('h', 0xc021)], 0xc021_0000));
        rows.push(op(&format!("cvt.{way}.ftz.f32.bf16"), 'f', &[('h', 0x0001)], 0));
        rows.push(op(&format!("cvt.{way}.f64.bf16"), 'e', &[('h', 0xc021)], 0xc004_2000 << 32));
    }
    rows
}

fn narrower() -> Vec<Row> {
    let mut rows = Vec::new();
    for (rounding, up) in [("rn", 0), ("rz", 0), ("rm", 0), ("rp", 1)] {
        // 1 + 2^-30 and 1 + 2^-11, half-way in FP16.
        let a_bit_more = ('e', 0x3ff0_0000_0040_0000);
        rows.push(op(&format!("cvt.{rounding}.f32.f64"), 'f', &[a_bit_more], 0x3f80_0000 + up));
        rows.push(op(&format!("cvt.{rounding}.f16.f64"), 'h', &[a_bit_more], 0x3c00 + up));
        rows.push(op(&format!("cvt.{rounding}.bf16.f64"), 'h', &[a_bit_more], 0x3f80 + up));
        rows.push(op(&format!("cvt.{rounding}.f16.f32"), 'h', &[('f', 0x3f80_1000)], 0x3c00 + up));
        rows.push(op(&format!("cvt.{rounding}.bf16.f32"), 'h', &[('f', 0x3f80_1000)], 0x3f80 + up));
        // Below the least BF16 number; with `.ftz` it is zero before.
        rows.push(op(&format!("cvt.{rounding}.bf16.f32"), 'h', &[('f', 0x7fff)], up));
        rows.push(op(&format!("cvt.{rounding}.ftz.bf16.f32"), 'h', &[('f', 0x7fff)], 0));
    }
    rows.extend([
        op("cvt.rn.ftz.f32.f64", 'f', &[('e', 0x3730 << 48)], 0), // 2^-140
        op("cvt.rn.f32.f64", 'f', &[('e', 0x3730 << 48)], 0x200),
        op("cvt.rn.sat.f32.f64", 'f', &[('e', 0x4000 << 48)], 0x3f80_0000),
        op("cvt.rn.ftz.f16.f32", 'h', &[('f', 1)], 0),
        op("cvt.rn.sat.f16.f32", 'h', &[('f', 0xc000_0000)], 0),
        // 65520 is half-way to what would follow the largest FP16 number.
        op("cvt.rn.f16.f32", 'h', &[('f', 0x477f_f000)], 0x7c00),
        op("cvt.rz.f16.f32", 'h', &[('f', 0x477f_f000)], 0x7bff),
        op("cvt.rn.satfinite.f16.f32", 'h', &[('f', 0x477f_f000)], 0x7bff),
        op("cvt.rn.relu.f16.f32", 'h', &[('f', 0xbf80_0000)], 0),
        op("cvt.rn.bf16.f32", 'h', &[('f', 0x3f80_8000)], 0x3f80), // 1 + 2^-8
        op("cvt.rn.bf16.f32", 'h', &[('f', 0x3f81_8000)], 0x3f82),
        op("cvt.rz.bf16.f32", 'h', &[('f', 0x3f81_ffff)], 0x3f81),
        op("cvt.rn.bf16.f32", 'h', &[('f', 0xffff_ffff)], 0x7fff),
    ]);
    rows
}

/// The first source goes to the high half.
fn pairs() -> Vec<Row> {
    let (one_, less) = (('f', 0x3f80_0000), ('f', 0xc020_0000));
    vec![
        op("cvt.rn.f16x2.f32", 'r', &[less, one_], 0xc100_3c00),
        op("cvt.rn.relu.f16x2.f32", 'r', &[less, one_], 0x3c00),
        op("cvt.rz.f16x2.f32", 'r', &[('f', 0x3f80_1fff), one_], 0x3c00_3c00),
        op("cvt.rn.satfinite.f16x2.f32", 'r', &[('f', 0x4b00_0000), one_], 0x7bff_3c00),
        op("cvt.rn.bf16x2.f32", 'r', &[less, one_], 0xc020_3f80),
        op("cvt.rn.relu.bf16x2.f32", 'r', &[less, one_], 0x3f80),
        op("cvt.rz.bf16x2.f32", 'r', &[one_, ('f', 0x3f80_ffff)], 0x3f80_3f80),
        // One half of a pair of conversions, by way of a predicate.
        one("setp.eq.u32 %p1, 0, 1; mov.b32 %r0, 7; @%p1 cvt.rz.f16x2.f32 %r0, 0f3F800000, 0f3F800000;", 7),
    ]
}

/// A number in the middle of two becomes the larger one if its random bits carry: those of the first number of two are the upper ones, of four the
/// numbers of each byte have that byte of them.
fn by_random_bits() -> Vec<Row> {
    let (half, quarter) = (('f', 0x3f80_1000), ('f', 0x3f80_8000));
    let random = |bits| ('r', bits);
    let mut rows = vec![
        op("cvt.rs.f16x2.f32", 'r', &[half, half, random(0x0fff_1000)], 0x3c00_3c01),
        // 65520 lies in the middle of the greatest number and infinity.
        op("cvt.rs.f16x2.f32", 'r', &[('f', 0x477f_f000), half, random(0x1000_0fff)], 0x7c00_3c00),
        op("cvt.rs.satfinite.f16x2.f32", 'r', &[('f', 0x477f_f000), half, random(0x1000_0fff)], 0x7bff_3c00),
        op("cvt.rs.relu.f16x2.f32", 'r', &[('f', 0xbf80_1000), half, random(0x1fff_1fff)], 0x3c01),
        op("cvt.rs.relu.satfinite.f16x2.f32", 'r', &[('f', 0x4974_2400), ('f', 0xbf80_0000), random(0)], 0x7bff_0000),
        op("cvt.rs.bf16x2.f32", 'r', &[quarter, quarter, random(0x7fff_8000)], 0x3f80_3f81),
        op("cvt.rs.satfinite.bf16x2.f32", 'r', &[('f', 0x7f80_0000), quarter, random(0)], 0x7f7f_3f80),
        op("cvt.rs.relu.bf16x2.f32", 'r', &[('f', 0xbf80_8000), quarter, random(0xffff_ffff)], 0x3f81),
        op("cvt.rs.relu.satfinite.bf16x2.f32", 'r', &[('f', 0x7f80_0000), ('f', 0xbf80_0000), random(0)], 0x7f7f_0000),
    ];
    // Between one and the number behind it; with `.relu` the first of the four is negative.
    for (format, middle, expected, clamped) in [
        ("e4m3x4", "3F88", 0x3839_3938, 0x0039_3938),
        ("e5m2x4", "3F90", 0x3c3d_3d3c, 0x003d_3d3c),
        ("e2m3x4", "3F88", 0x0809_0908, 0x0009_0908),
        ("e3m2x4", "3F90", 0x0c0d_0d0c, 0x000d_0d0c),
        ("e2m1x4", "3FA0", 0x2332, 0x0332),
    ] {
        let (to, end) = if format == "e2m1x4" { ("%h0", "cvt.u32.u16 %r0, %h0;") } else { ("%r0", "") };
        let row = |mods: &str, first: &str, expected| {
            one(
                &format!(
                    "mov.b32 %f1, 0f{middle}0000; {first} mov.b32 %r1, 0x7f80ff00;\n\
                     cvt.rs.{mods}satfinite.{format}.f32 {to}, {{%f2, %f1, %f1, %f1}}, %r1;\n{end}"
                ),
                expected,
            )
        };
        rows.push(row("", "mov.b32 %f2, %f1;", expected));
        rows.push(row("relu.", "neg.f32 %f2, %f1;", clamped));
    }
    rows
}

#[test]
fn values() {
    check(&rows());
}
