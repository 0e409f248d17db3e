//! Functions of integers and bits that few kernels use, and what is made of comparisons: `set`, `slct`, `testp`.

use crate::comparisons::OF_NUMBERS;
use crate::row::{Row, check, one, op, same};

const ALL: u64 = 0xffff_ffff;

pub fn rows() -> Vec<Row> {
    let mut rows = bits();
    rows.extend(sums());
    rows.extend(floats());
    rows.extend(sets());
    rows.extend(choices());
    rows
}

fn bits() -> Vec<Row> {
    let mut rows = vec![
        // The ISA's own example is the second.
        same("bmsk.clamp.b32", 'r', &[4, 8], 0xff0),
        same("bmsk.wrap.b32", 'r', &[1, 2], 6),
        same("bmsk.clamp.b32", 'r', &[28, 8], 0xf000_0000),
        same("bmsk.clamp.b32", 'r', &[32, 4], 0),
        same("bmsk.clamp.b32", 'r', &[0, 32], ALL),
        same("bmsk.wrap.b32", 'r', &[33, 2], 6),
        same("bmsk.wrap.b32", 'r', &[0, 32], 0),
        // The ISA's own example is the first.
        same("szext.wrap.u32", 'r', &[ALL, 0], 0),
        same("szext.clamp.s32", 'r', &[0xf8, 8], 0xffff_fff8),
        same("szext.clamp.u32", 'r', &[0xabcd, 8], 0xcd),
        same("szext.wrap.s32", 'r', &[0x1f, 36], ALL),
        same("szext.clamp.s32", 'r', &[0x1234_5678, 32], 0x1234_5678),
        same("cnot.b16", 'h', &[0], 1),
        same("cnot.b32", 'r', &[5], 0),
        same("cnot.b64", 'd', &[0], 1),
    ];
    // Ones at 2, 4, 5 and 7: the second from 0 on, the first from 6 downwards, the place itself, and none.
    for (from, offset, found) in [(0, 2, 4), (6, ALL, 5), (2, 0, 2), (3, 0, ALL), (0, 5, ALL), (40, 1, ALL)] {
        rows.push(same("fns.b32", 'r', &[0b1011_0100, from, offset], found));
    }
    rows
}

fn sums() -> Vec<Row> {
    vec![
        same("sad.u16", 'h', &[5, 9, 100], 104),
        same("sad.s16", 'h', &[0xfffd, 4, 10], 17),
        same("sad.u32", 'r', &[ALL, 0, 1], 0),
        same("sad.s32", 'r', &[0xffff_fffb, 7, 1], 13),
        same("sad.u64", 'd', &[1 << 40, 1, 0], (1 << 40) - 1),
        same("sad.s64", 'd', &[u64::MAX, 1, 5], 7),
        // Of each operand 24 bits count: 0x800000 squared is 2^46.
        same("mul24.lo.u32", 'r', &[0xff00_0002, 3], 6),
        same("mul24.hi.u32", 'r', &[0x80_0000, 0x80_0000], 1 << 30),
        same("mul24.lo.s32", 'r', &[0xff_ffff, 5], 0xffff_fffb),
        same("mul24.hi.s32", 'r', &[0xff_ffff, 0x40_0000], 0xffff_ffc0),
        same("mad24.lo.u32", 'r', &[2, 3, 4], 10),
        same("mad24.hi.u32", 'r', &[0x80_0000, 0x80_0000, 1], (1 << 30) + 1),
        same("mad24.lo.s32", 'r', &[0xff_ffff, 5, 6], 1),
        same("mad24.hi.s32", 'r', &[0xff_ffff, 0x40_0000, 65], 1),
        same("mad24.hi.sat.s32", 'r', &[0x7f_ffff, 0x7f_ffff, 0x7fff_ffff], 0x7fff_ffff),
        // 1 + 2 + 3 + 4 + 10; −1 · 5; 255 · −1; −1 · −1 beyond the largest number.
        same("dp4a.u32.u32", 'r', &[0x0403_0201, 0x0101_0101, 10], 20),
        same("dp4a.s32.u32", 'r', &[0xff, 5, 0], 0xffff_fffb),
        same("dp4a.u32.s32", 'r', &[0xff, 0xff, 0], 0xffff_ff01),
        same("dp4a.s32.s32", 'r', &[0xff, 0xff, 0x7fff_ffff], 0x8000_0000),
        // 3 · 1 + 2 · 2 + 1 with the low bytes, 3 · 3 + 2 · 4 + 1 with the high ones.
        same("dp2a.lo.u32.u32", 'r', &[0x0002_0003, 0x0403_0201, 1], 8),
        same("dp2a.hi.u32.u32", 'r', &[0x0002_0003, 0x0403_0201, 1], 18),
        same("dp2a.lo.s32.u32", 'r', &[0xffff_0001, 0x0201, 0], ALL),
        same("dp2a.lo.u32.s32", 'r', &[0x0001_0002, 0x00ff, 0], 0xffff_fffe),
        same("dp2a.hi.s32.s32", 'r', &[ALL, 0xff02_0000, 0], ALL),
        // Of bytes 255 and 1 are 254 apart, 0 and 128 are 128, 5 and 7 are 2, 9 and 9 are none: 384 in all. Of halves 0xff00 and
        // 0x0180 are 0xfd80 apart, 0x0509 and 0x0709 are 0x0200. The last operand counts where it is added to their sum.
        same("vabsdiff4.u32.u32.u32", 'r', &[0xff00_0509, 0x0180_0709, 1000], 0xfe80_0200),
        same("vabsdiff4.u32.u32.u32.add", 'r', &[0xff00_0509, 0x0180_0709, 1000], 1384),
        same("vabsdiff4.u32.u32.u32.add", 'r', &[0, ALL, ALL], 1019),
        same("vabsdiff2.u32.u32.u32", 'r', &[0xff00_0509, 0x0180_0709, 1000], 0xfd80_0200),
        same("vabsdiff2.u32.u32.u32.add", 'r', &[0xff00_0509, 0x0180_0709, 1], 0xff81),
        same("vabsdiff2.u32.u32.u32.add", 'r', &[0, ALL, 2], 0x2_0000),
    ]
}

fn floats() -> Vec<Row> {
    let mut rows = vec![
        same("copysign.f32", 'f', &[0xbf80_0000, 0x4000_0000], 0xc000_0000),
        same("copysign.f64", 'e', &[0x3ff0 << 48, 0xc000 << 48], 0x4000 << 48),
        // π/2 and π in FP32; a subnormal number is flushed.
        same("sin.approx.f32", 'f', &[0x3fc9_0fdb], 0x3f80_0000),
        same("sin.approx.f32", 'f', &[1], 1),
        same("sin.approx.ftz.f32", 'f', &[1], 0),
        same("cos.approx.f32", 'f', &[0x4049_0fdb], 0xbf80_0000),
        same("cos.approx.ftz.f32", 'f', &[0x8000_0001], 0x3f80_0000),
    ];
    // 1.5 in both types, and 2.
    for (ty, half) in [("f16", 0x3e00), ("bf16", 0x3fc0)] {
        let sources = [('h', half), ('f', 0x4000_0000)];
        rows.extend([
            op(&format!("add.f32.{ty}"), 'f', &sources, 0x4060_0000),
            op(&format!("sub.f32.{ty}"), 'f', &sources, 0xbf00_0000),
            op(&format!("add.sat.f32.{ty}"), 'f', &sources, 0x3f80_0000),
            op(&format!("fma.rn.f32.{ty}"), 'f', &[('h', half), ('h', half), ('f', 0x4000_0000)], 0x4088_0000),
            op(&format!("fma.rz.sat.f32.{ty}"), 'f', &[('h', half), ('h', half), ('f', 0x4000_0000)], 0x3f80_0000),
        ]);
    }
    // 1 + 2^-24 and 1 · 1 + 2^-24 lie half way: up, or down to the even one.
    for (way, sum) in [("rn", 0x3f80_0000), ("rz", 0x3f80_0000), ("rm", 0x3f80_0000), ("rp", 0x3f80_0001)] {
        let tiny = ('f', 0x3380_0000);
        rows.push(op(&format!("add.{way}.f32.f16"), 'f', &[('h', 0x3c00), tiny], sum));
        rows.push(op(&format!("fma.{way}.f32.f16"), 'f', &[('h', 0x3c00), ('h', 0x3c00), tiny], sum));
    }
    // Infinity, a number, a subnormal one, zero and NaN, of both types.
    let numbers = [0x7f80_0000, 0x4000_0000, 1, 0x8000_0000, 0x7fc0_0000];
    let wide = [0x7ff0 << 48, 0x4000 << 48, 1, 1 << 63, 0x7ff8 << 48];
    for (what, holds) in [
        ("finite", [0, 1, 1, 1, 0]),
        ("infinite", [1, 0, 0, 0, 0]),
        ("number", [1, 1, 1, 1, 0]),
        ("notanumber", [0, 0, 0, 0, 1]),
        ("normal", [0, 1, 0, 1, 0]),
        ("subnormal", [0, 0, 1, 0, 0]),
    ] {
        for n in 0..5 {
            rows.push(op(&format!("testp.{what}.f32"), 'p', &[('f', numbers[n])], holds[n]));
            rows.push(op(&format!("testp.{what}.f64"), 'p', &[('e', wide[n])], holds[n]));
        }
    }
    rows
}

/// What stands for true in a type, and where it is held.
const TRUTHS: [(&str, char, u64); 5] =
    [("u32", 'r', ALL), ("s32", 'r', ALL), ("f32", 'f', 0x3f80_0000), ("f16", 'h', 0x3c00), ("bf16", 'h', 0x3f80)];

fn sets() -> Vec<Row> {
    let mut rows = Vec::new();
    // −1 and 1: less if signed, greater if not.
    for (n, (op_name, signed, unsigned)) in
        [("eq", 0, 0), ("ne", 1, 1), ("lt", 1, 0), ("le", 1, 0), ("gt", 0, 1), ("ge", 0, 1)].into_iter().enumerate()
    {
        let (to, class, truth) = TRUTHS[n % 5];
        for (ty, from, minus) in [("16", 'h', 0xffff), ("32", 'r', ALL), ("64", 'd', u64::MAX)] {
            let sources = [(from, minus), (from, 1)];
            rows.push(op(&format!("set.{op_name}.{to}.s{ty}"), class, &sources, signed * truth));
            rows.push(op(&format!("set.{op_name}.{to}.u{ty}"), class, &sources, unsigned * truth));
        }
    }
    for (n, (op_name, holds)) in [("lo", 0), ("ls", 0), ("hi", 1), ("hs", 1)].into_iter().enumerate() {
        for (ty, from, minus) in [("u16", 'h', 0xffff), ("u32", 'r', ALL), ("u64", 'd', u64::MAX)] {
            let (to, class, truth) = TRUTHS[(n + 1) % 5];
            rows.push(op(&format!("set.{op_name}.{to}.{ty}"), class, &[(from, minus), (from, 1)], holds * truth));
        }
    }
    rows.push(op("set.lo.u32.u32", 'r', &[('r', 1), ('r', ALL)], ALL));
    for (to, class, truth) in TRUTHS {
        for (ty, from) in [("b16", 'h'), ("b32", 'r'), ("b64", 'd')] {
            rows.push(op(&format!("set.eq.{to}.{ty}"), class, &[(from, 7), (from, 7)], truth));
            rows.push(op(&format!("set.ne.{to}.{ty}"), class, &[(from, 7), (from, 7)], 0));
        }
    }
    // A predicate joins in: 7 = 7, and true, or false.
    for (logic, with_true, with_false) in [("and", 1, 0), ("or", 1, 1), ("xor", 0, 1)] {
        for (c, holds) in [(1, with_true), (0, with_false)] {
            for (ty, from, seven) in [
                ("s32", 'r', 7),
                ("u32", 'r', 7),
                ("b32", 'r', 7),
                ("f32", 'f', 7),
                ("f16", 'h', 7),
                ("f64", 'e', 7),
                ("bf16", 'h', 7),
            ] {
                let sources = [(from, seven), (from, seven), ('p', c)];
                rows.push(op(&format!("set.eq.{logic}.u32.{ty}"), 'r', &sources, holds * ALL));
            }
            rows.push(op(&format!("set.hs.{logic}.u32.u32"), 'r', &[('r', 7), ('r', 7), ('p', c)], holds * ALL));
            rows.push(op(&format!("set.eq.{logic}.bf16.f32"), 'h', &[('f', 7), ('f', 7), ('p', c)], holds * 0x3f80));
            for (from, to) in [("f16", "u16"), ("f16", "s16"), ("bf16", "u16"), ("bf16", "s16")] {
                let sources = [('h', 7), ('h', 7), ('p', c)];
                rows.push(op(&format!("set.eq.{logic}.{to}.{from}"), 'h', &sources, holds * 0xffff));
            }
            // Pairs: the low halves are equal, the high ones are not.
            let high = if logic == "and" { 0 } else { c };
            for (from, to, truth) in [
                ("f16x2", "f16x2", 0x3c00),
                ("f16x2", "u32", 0xffff),
                ("f16x2", "s32", 0xffff),
                ("bf16x2", "bf16x2", 0x3f80),
                ("bf16x2", "u32", 0xffff),
                ("bf16x2", "s32", 0xffff),
            ] {
                let sources = [('r', 0x0707_0007), ('r', 0x0708_0007), ('p', c)];
                rows.push(op(&format!("set.eq.{logic}.{to}.{from}"), 'r', &sources, (high << 16 | holds) * truth));
            }
            // A negated predicate, and one that is set by itself where the guard lets it.
            let body = format!(
                "setp.eq.u32 %p1, {c}, 0; setp.eq.u32 %p2, 0, 1; mov.b32 %r1, 0x07070007; mov.b32 %r2, 0x07080007;\n\
                 set.eq.{logic}.f16x2.f16x2 %r0, %r1, %r2, !%p1;\n@%p2 set.eq.{logic}.f16x2.f16x2 %r0, %r1, %r1, %p2;"
            );
            rows.push(one(&body, (high << 16 | holds) * 0x3c00));
        }
    }
    rows.extend(float_sets());
    rows
}

/// 1 and 2, and 1 and NaN.
fn float_sets() -> Vec<Row> {
    let mut rows = Vec::new();
    for (n, (op_name, less, nan)) in OF_NUMBERS.into_iter().enumerate() {
        for (from, class, [one, two, not]) in [
            ("f16", 'h', [0x3c00, 0x4000, 0x7e00]),
            ("bf16", 'h', [0x3f80, 0x4000, 0x7fc0]),
            ("f32", 'f', [0x3f80_0000, 0x4000_0000, 0x7fc0_0000]),
            ("f64", 'e', [0x3ff0 << 48, 0x4000 << 48, 0x7ff8 << 48]),
        ] {
            let takes: &[usize] = match from {
                "f16" => &[0, 1, 3, 4],
                "bf16" => &[0, 1, 4],
                _ => &[0, 1, 2, 3, 4],
            };
            let (to, held, truth) = TRUTHS[takes[n % takes.len()]];
            rows.push(op(&format!("set.{op_name}.{to}.{from}"), held, &[(class, one), (class, two)], less * truth));
            rows.push(op(&format!("set.{op_name}.{to}.{from}"), held, &[(class, one), (class, not)], nan * truth));
            rows.push(op(&format!("set.{op_name}.u32.{from}"), 'r', &[(class, one), (class, two)], less * ALL));
        }
        // Pairs: the low halves one and two, the high ones one and NaN.
        for (from, [one, two, not], truth) in
            [("f16x2", [0x3c00, 0x4000, 0x7e00], 0x3c00), ("bf16x2", [0x3f80, 0x4000, 0x7fc0], 0x3f80)]
        {
            let sources = [('r', one << 16 | one), ('r', not << 16 | two)];
            let both = nan << 16 | less;
            rows.push(op(&format!("set.{op_name}.{from}.{from}"), 'r', &sources, both * truth));
            let to = ["u32", "s32"][n % 2];
            rows.push(op(&format!("set.{op_name}.{to}.{from}"), 'r', &sources, both * 0xffff));
        }
        // BF16 of FP16 and of FP32.
        rows.push(op(&format!("set.{op_name}.bf16.f16"), 'h', &[('h', 0x3c00), ('h', 0x4000)], less * 0x3f80));
        rows.push(op(
            &format!("set.{op_name}.bf16.f32"),
            'h',
            &[('f', 0x3f80_0000), ('f', 0x4000_0000)],
            less * 0x3f80,
        ));
    }
    // Subnormal numbers are zero.
    rows.push(op("set.eq.ftz.u32.f32", 'r', &[('f', 1), ('f', 2)], ALL));
    rows.push(op("set.eq.u32.f32", 'r', &[('f', 1), ('f', 2)], 0));
    rows.push(op("set.eq.ftz.u32.f16", 'r', &[('h', 1), ('h', 2)], ALL));
    rows.push(op("set.eq.ftz.u16.f16", 'h', &[('h', 1), ('h', 2)], 0xffff));
    rows.push(op("set.eq.ftz.f16x2.f16x2", 'r', &[('r', 0x3c00_0001), ('r', 0x3c01_8002)], 0x3c00));
    rows.push(op("set.eq.ftz.u32.f16x2", 'r', &[('r', 0x0001_3c00), ('r', 0x0002_3c01)], 0xffff_0000));
    rows
}

/// The first if the third is not negative; a NaN chooses the second.
fn choices() -> Vec<Row> {
    let mut rows = Vec::new();
    for (ty, class) in [
        ("b16", 'h'),
        ("u16", 'h'),
        ("s16", 'h'),
        ("b32", 'r'),
        ("u32", 'r'),
        ("s32", 'r'),
        ("f32", 'f'),
        ("b64", 'd'),
        ("u64", 'd'),
        ("s64", 'd'),
        ("f64", 'e'),
    ] {
        let by = |c| [(class, 5), (class, 6), c];
        rows.push(op(&format!("slct.{ty}.s32"), class, &by(('r', 0)), 5));
        rows.push(op(&format!("slct.{ty}.s32"), class, &by(('r', 0x8000_0000)), 6));
        rows.push(op(&format!("slct.{ty}.f32"), class, &by(('f', 0x8000_0000)), 5));
        rows.push(op(&format!("slct.{ty}.f32"), class, &by(('f', 0x7fc0_0000)), 6));
        rows.push(op(&format!("slct.ftz.{ty}.f32"), class, &by(('f', 0x8000_0001)), 5));
    }
    rows.push(op("slct.b32.f32", 'r', &[('r', 5), ('r', 6), ('f', 0x8000_0001)], 6));
    rows
}

#[test]
fn values() {
    check(&rows());
}
