//! `setp`, `selp` and `mov`.

use crate::row::{Row, check, one, op};

/// Which comparisons hold for a < b, a = b and a > b; ordered floats, and unordered ones where a NaN is in it.
const HOLDS: &[(&str, [bool; 3])] = &[
    ("eq", [false, true, false]),
    ("ne", [true, false, true]),
    ("lt", [true, false, false]),
    ("le", [true, true, false]),
    ("gt", [false, false, true]),
    ("ge", [false, true, true]),
];

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    // −1 and 1: unsigned, −1 is the greatest.
    for (ty, class, minus) in [
        ("s16", 'h', 0xffff),
        ("u16", 'h', 0xffff),
        ("s32", 'r', 0xffff_ffff),
        ("u32", 'r', 0xffff_ffff),
        ("s64", 'd', u64::MAX),
        ("u64", 'd', u64::MAX),
    ] {
        let order = if ty.starts_with('s') { 0 } else { 2 };
        for (name, holds) in HOLDS {
            rows.push(compare(name, ty, class, minus, 1, holds[order]));
            rows.push(compare(name, ty, class, minus, minus, holds[1]));
        }
        if ty.starts_with('u') {
            for (name, like) in [("lo", 2), ("ls", 3), ("hi", 4), ("hs", 5)] {
                rows.push(compare(name, ty, class, minus, 1, HOLDS[like].1[2]));
                rows.push(compare(name, ty, class, 1, 1, HOLDS[like].1[1]));
            }
        }
    }
    for (ty, class) in [("b16", 'h'), ("b32", 'r'), ("b64", 'd')] {
        rows.push(compare("eq", ty, class, 7, 7, true));
        rows.push(compare("ne", ty, class, 7, 8, true));
    }
    rows.extend(floats());
    rows.extend(logic());
    rows.extend(pairs());
    rows.extend(selections());
    rows.extend(moves());
    rows
}

fn compare(name: &str, ty: &str, class: char, a: u64, b: u64, holds: bool) -> Row {
    op(&format!("setp.{name}.{ty}"), 'p', &[(class, a), (class, b)], holds.into())
}

fn floats() -> Vec<Row> {
    let mut rows = Vec::new();
    // −1, 2 and NaN.
    for (ty, class, low, high, nan) in [
        ("f16", 'h', 0xbc00, 0x4000, 0x7e00),
        ("bf16", 'h', 0xbf80, 0x4000, 0x7fc0),
        ("f32", 'f', 0xbf80_0000, 0x4000_0000, 0x7fc0_0000),
        ("f64", 'e', 0xbff0 << 48, 0x4000 << 48, 0x7ff8 << 48),
    ] {
        for (name, holds) in HOLDS {
            for (n, (a, b)) in [(low, high), (low, low), (high, low)].into_iter().enumerate() {
                rows.push(compare(name, ty, class, a, b, holds[n]));
                rows.push(compare(&format!("{name}u"), ty, class, a, b, holds[n]));
            }
            // With a NaN, what is ordered does not hold, and what is unordered does.
            rows.push(compare(name, ty, class, nan, high, false));
            rows.push(compare(&format!("{name}u"), ty, class, low, nan, true));
        }
        rows.push(compare("num", ty, class, low, high, true));
        rows.push(compare("num", ty, class, low, nan, false));
        rows.push(compare("nan", ty, class, low, nan, true));
        rows.push(compare("nan", ty, class, low, high, false));
    }
    // A subnormal number and zero.
    rows.push(compare("ne", "f32", 'f', 1, 0, true));
    rows.push(compare("ne.ftz", "f32", 'f', 1, 0, false));
    rows.push(compare("eq.ftz", "f16", 'h', 1, 0x8000, true));
    rows
}

/// What comparisons of numbers say of 1 and 2, and of 1 and NaN.
pub const OF_NUMBERS: [(&str, u64, u64); 14] = [
    ("eq", 0, 0),
    ("ne", 1, 0),
    ("lt", 1, 0),
    ("le", 1, 0),
    ("gt", 0, 0),
    ("ge", 0, 0),
    ("equ", 0, 1),
    ("neu", 1, 1),
    ("ltu", 1, 1),
    ("leu", 1, 1),
    ("gtu", 0, 1),
    ("geu", 0, 1),
    ("num", 1, 0),
    ("nan", 0, 1),
];

/// Of two halves `p` says it of the low ones, `q` of the high ones (PTX ISA 9.7.7.2). The low halves are 1 and 2, the high ones 1 and NaN.
fn pairs() -> Vec<Row> {
    let mut rows = Vec::new();
    for (ty, one_, two, nan) in [("f16x2", 0x3c00, 0x4000, 0x7e00), ("bf16x2", 0x3f80, 0x4000, 0x7fc0)] {
        let set = |a: [u32; 2], b: [u32; 2]| {
            format!("mov.b32 %r1, {:#x}; mov.b32 %r2, {:#x};\n", a[1] << 16 | a[0], b[1] << 16 | b[0])
        };
        let get = "selp.b32 %r3, 1, 0, %p1; selp.b32 %r0, 2, 0, %p2; or.b32 %r0, %r0, %r3;";
        for (name, less, with_nan) in OF_NUMBERS {
            let set = set([one_, one_], [two, nan]);
            rows.push(one(&format!("{set}setp.{name}.{ty} %p1|%p2, %r1, %r2;\n{get}"), less | with_nan << 1));
        }
        // The low halves are equal, the high ones are not; and the other way round.
        let (low, high) = (set([one_, one_], [one_, two]), set([one_, one_], [two, one_]));
        for (name, f) in [("and", (|a, b| a & b) as fn(u64, u64) -> u64), ("or", |a, b| a | b), ("xor", |a, b| a ^ b)] {
            for c in [0, 1] {
                for (set, [p, q]) in [(&low, [f(1, c), f(0, c)]), (&high, [f(0, c), f(1, c)])] {
                    let with = |third: u64| format!("{set}setp.eq.u32 %p3, {third}, 1;\n");
                    let op = format!("setp.eq.{name}.{ty}");
                    rows.push(one(&format!("{}{op} %p1|%p2, %r1, %r2, %p3;\n{get}", with(c)), p | q << 1));
                    rows.push(one(&format!("{}{op} %p1|%p2, %r1, %r2, !%p3;\n{get}", with(1 - c)), p | q << 1));
                    // Both read the third before one of them is written to it.
                    rows.push(one(
                        &format!("{}{op} %p3|%p2, %r1, %r2, %p3;\n{}", with(c), get.replace("%p1", "%p3")),
                        p | q << 1,
                    ));
                    rows.push(one(
                        &format!("{}{op} %p1|%p3, %r1, %r2, %p3;\n{}", with(c), get.replace("%p2", "%p3")),
                        p | q << 1,
                    ));
                }
            }
        }
        // One of them alone; none where the guard is false.
        for (both, expected) in [("%p1|_", 1), ("%p1", 1), ("_|%p2", 0)] {
            let before = "setp.eq.u32 %p1, 0, 1; setp.eq.u32 %p2, 0, 1;\n";
            rows.push(one(&format!("{low}{before}setp.eq.{ty} {both}, %r1, %r2;\n{get}"), expected));
        }
        let before = "setp.eq.u32 %p1, 0, 1; setp.eq.u32 %p2, 1, 1; setp.eq.u32 %p3, 0, 1;\n";
        rows.push(one(&format!("{low}{before}@%p3 setp.eq.{ty} %p1|%p2, %r1, %r2;\n{get}"), 2));
    }
    // With `.ftz`, subnormal numbers are zero: the low halves are two of them.
    let body = "mov.b32 %r1, 0x3c000001; mov.b32 %r2, 0x3c018002;\nsetp.eq.ftz.f16x2 %p1|%p2, %r1, %r2;\nselp.b32 %r3, 1, 0, %p1; selp.b32 %r0, 2, 0, %p2; or.b32 %r0, %r0, %r3;";
    rows.push(one(body, 1));
    rows.push(one(&body.replace(".ftz", ""), 0));
    rows
}

/// `p|q`: q is the negated comparison, combined in the same way.
fn logic() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, f) in [("and", (|a, b| a & b) as fn(u64, u64) -> u64), ("or", |a, b| a | b), ("xor", |a, b| a ^ b)] {
        for ty in ["s32", "u32", "f32", "f16", "bf16", "f64", "u16", "b32"] {
            for third in [0, 1] {
                let one_ = match ty {
                    "f32" => "0f3F800000",
                    "f64" => "0d3FF0000000000000",
                    "f16" | "bf16" | "u16" => "%h1",
                    _ => "1",
                };
                // FP16 and BF16 comparisons give one predicate; the other is found by comparing again.
                let both = if matches!(ty, "f16" | "bf16") {
                    format!(
                        "setp.eq.{name}.{ty} %p1, {one_}, {one_}, %p3; setp.ne.{name}.{ty} %p2, {one_}, {one_}, %p3;"
                    )
                } else {
                    format!("setp.eq.{name}.{ty} %p1|%p2, {one_}, {one_}, %p3;")
                };
                let body = format!(
                    "mov.b16 %h1, 0x3c00; setp.eq.u32 %p3, {third}, 1; {both}\n\
                     selp.b32 %r1, 2, 0, %p1; selp.b32 %r0, 1, 0, %p2; or.b32 %r0, %r0, %r1;"
                );
                rows.push(one(&body, (f(1, third) << 1) | f(0, third)));
            }
        }
        let body = format!("setp.eq.u32 %p3, 1, 1; setp.lo.{name}.u32 %p1, 1, 2, !%p3; selp.b32 %r0, 1, 0, %p1;");
        rows.push(one(&body, f(1, 0)));
    }
    // `_` stands for either.
    rows.push(one("setp.lt.u32 _|%p1, 1, 2; selp.b32 %r0, 1, 0, %p1;", 0));
    rows.push(one("setp.lt.u32 %p1|_, 1, 2; selp.b32 %r0, 1, 0, %p1;", 1));
    rows
}

fn selections() -> Vec<Row> {
    let mut rows = Vec::new();
    for (types, class) in [
        (&["b16", "u16", "s16"][..], 'h'),
        (&["b32", "u32", "s32"], 'r'),
        (&["b64", "u64", "s64"], 'd'),
        (&["f32"], 'f'),
        (&["f64"], 'e'),
    ] {
        for ty in types {
            rows.push(op(&format!("selp.{ty}"), class, &[(class, 0x1234), (class, 0x5678), ('p', 1)], 0x1234));
            rows.push(op(&format!("selp.{ty}"), class, &[(class, 0x1234), (class, 0x5678), ('p', 0)], 0x5678));
        }
    }
    rows
}

fn moves() -> Vec<Row> {
    let mut rows = Vec::new();
    for (types, class, value) in [
        (&["b16", "u16", "s16"][..], 'h', 0xfedc),
        (&["b32", "u32", "s32"], 'r', 0xfedc_ba98),
        (&["b64", "u64", "s64"], 'd', 0xfedc_ba98_7654_3210),
        (&["f32"], 'f', 0x7f80_0001),
        (&["f64"], 'e', 0x7ff0_0000_0000_0001),
        (&["pred"], 'p', 1),
    ] {
        for ty in types {
            rows.push(op(&format!("mov.{ty}"), class, &[(class, value)], value));
        }
    }
    rows.extend([
        // Parts, low first.
        one("mov.b16 %h1, 0x1111; mov.b16 %h2, 0x2222; mov.b32 %r0, {%h1, %h2};", 0x2222_1111),
        one("mov.b32 %r1, 0x22221111; mov.b32 {%h1, %h2}, %r1; cvt.u32.u16 %r0, %h2;", 0x2222),
        one("mov.b32 %r1, 1; mov.b32 %r2, 2; mov.b64 %d0, {%r1, %r2};", 0x2_0000_0001),
        one("mov.b64 %d1, 0x0004000300020001; mov.b64 {_, %h1, _, %h2}, %d1; mov.b32 %r0, {%h1, %h2};", 0x0004_0002),
        one(
            "mov.b64 %d1, 7; mov.b64 %d2, 5; mov.b128 %q0, {%d1, %d2}; mov.b128 %q1, %q0; mov.b128 {%d3, %d0}, %q1;",
            5,
        ),
        // A part that was never written does not spoil the others.
        one("mov.b32 %r1, 7; mov.b64 %d1, {%r1, %r2}; mov.b64 {%r0, _}, %d1;", 7).with(
            "{%r0, _}",
            "{_, %r0}",
            "undefined-value-stored",
        ),
        one("mov.b16 %h1, 7; mov.b32 %r1, {%h2, %h1}; mov.b64 %d1, {%r1, %r2}; mov.b64 {_, %h3, _, _}, %d1; cvt.u32.u16 %r0, %h3;", 7)
            .with("{_, %h3, _, _}", "{%h3, _, _, _}", "undefined-value-stored"),
        // Addresses: the second word of a variable lies 4 bytes behind the first.
        one("mov.u32 %r1, smem; mov.u32 %r2, smem+4; sub.u32 %r0, %r2, %r1;", 4),
        one("mov.u64 %d1, table+4; ld.global.b32 %r0, [%d1];", 0xffff_ffff),
        one("mov.u32 %r0, WARP_SZ;", 32),
    ]);
    rows
}

#[test]
fn values() {
    check(&rows());
}
