//! One instruction each: what its text says.

use super::{instruction, show_all};

/// Text, opcode, operands.
const TABLE: &[(&str, &str, &str)] = &[
    // Names and numbers.
    ("ret;", "ret", ""),
    ("mov.u32 %r1, %tid.x;", "mov.u32", "%r1, %tid.x"),
    ("mov.u32 %r1, v.y;", "mov.u32", "%r1, v.y"),
    ("bra.uni $L__BB0_1;", "bra.uni", "$L__BB0_1"),
    ("mov .u32 %r1, 1;", "mov.u32", "%r1, 1"),
    ("mov.u32%r1,1;", "mov.u32", "%r1, 1"),
    ("mov.b32 a, 42; ", "mov.b32", "a, 42"),
    ("mov.b32 a, -42;", "mov.b32", "a, -42"),
    ("mov.b32 a, - 42;", "mov.b32", "a, -42"),
    ("mov.b32 a, 0;", "mov.b32", "a, 0"),
    ("mov.b32 a, 0x1fU;", "mov.b32", "a, 31"),
    ("mov.b32 a, 0XFF;", "mov.b32", "a, 255"),
    ("mov.b32 a, 017;", "mov.b32", "a, 15"),
    ("mov.b32 a, 0b101;", "mov.b32", "a, 5"),
    ("mov.b32 a, 42U;", "mov.b32", "a, 42"),
    ("mov.b64 a, 18446744073709551615;", "mov.b64", "a, -1"),
    ("mov.b64 a, 0x8000000000000000;", "mov.b64", "a, -9223372036854775808"),
    ("mov.b32 a, 0f3F800000;", "mov.b32", "a, f32:3f800000"),
    ("mov.b32 a, 0Fbf800000;", "mov.b32", "a, f32:bf800000"),
    ("mov.b64 a, 0d3FF8000000000000;", "mov.b64", "a, f64:1.5"),
    ("mov.f32 a, 1.5;", "mov.f32", "a, f64:1.5"),
    ("mov.f32 a, -1.5E+3;", "mov.f32", "a, f64:-1500.0"),
    ("mov.f32 a, .5;", "mov.f32", "a, f64:0.5"),
    ("mov.f32 a, 1.;", "mov.f32", "a, f64:1.0"),
    ("mov.f32 a, 1e5;", "mov.f32", "a, f64:100000.0"),
    // Constant expressions: signed unless a `U` or the size says otherwise.
    ("mov.b32 a, (3+4)*2;", "mov.b32", "a, 14"),
    ("mov.b32 a, 1<<4|3;", "mov.b32", "a, 19"),
    ("mov.b32 a, 10-4-3;", "mov.b32", "a, 3"),
    ("mov.b32 a, ~0;", "mov.b32", "a, -1"),
    ("mov.b32 a, --4;", "mov.b32", "a, 4"),
    ("mov.b32 a, -7 / 2;", "mov.b32", "a, -3"),
    ("mov.b32 a, 7 % 4;", "mov.b32", "a, 3"),
    ("mov.b32 a, -1 > 0 ? 5 : 6;", "mov.b32", "a, 6"),
    ("mov.b32 a, (.u64)-1 > 0 ? 5 : 6;", "mov.b32", "a, 5"),
    ("mov.b64 a, -1U >> 63;", "mov.b64", "a, 1"),
    ("mov.b64 a, -1 >> 99;", "mov.b64", "a, -1"),
    ("mov.b64 a, 1 << 64;", "mov.b64", "a, 0"),
    ("mov.b32 a, !3 == 0 && 2 <= 2;", "mov.b32", "a, 1"),
    // Addresses.
    ("ld.shared.b32 a, [b];", "ld.shared.b32", "a, [b + 0]"),
    ("ld.shared.b32 a, [b+4];", "ld.shared.b32", "a, [b + 4]"),
    ("ld.shared.b32 a, [b + -4];", "ld.shared.b32", "a, [b + -4]"),
    ("ld.shared.b32 a, [b+4+8];", "ld.shared.b32", "a, [b + 12]"),
    ("ld.shared.b32 a, [b+(2*4)];", "ld.shared.b32", "a, [b + 8]"),
    ("ld.local.b32 a, [0x10];", "ld.local.b32", "a, [16 + 0]"),
    ("mov.u32 a, sym+32;", "mov.u32", "a, sym + 32"),
    ("mov.u32 a, sym+-32;", "mov.u32", "a, sym + -32"),
    (
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, -8}], [bar+8];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "[%r1 + 0], [%rd1 + 0; {%r2, -8}], [bar + 8]",
    ),
    ("tex.2d.v4.f32.f32 {a, b, c, d}|p, [t, s, {x, y}];", "tex.2d.v4.f32.f32", "{a, b, c, d}|p, [t + 0; s, {x, y}]"),
    // Vectors, sinks, predicates.
    (
        "tcgen05.ld.sync.aligned.32x32b.x2.b32{%r1,%r2}, [%r3];",
        "tcgen05.ld.sync.aligned.32x32b.x2.b32",
        "{%r1, %r2}, [%r3 + 0]",
    ),
    ("prefetch.tensormap[%rd1];", "prefetch.tensormap", "[%rd1 + 0]"),
    ("mov.b64 {%r1, _}, %rd1;", "mov.b64", "{%r1, _}, %rd1"),
    ("elect.sync _|%p1, -1;", "elect.sync", "_|%p1, -1"),
    ("elect.sync %r1 | %p1, 0xFFFFFFFF;", "elect.sync", "%r1|%p1, 4294967295"),
    ("setp.eq.and.b32 %p1|_, %r1, 2, !%p2;", "setp.eq.and.b32", "%p1|_, %r1, 2, !%p2"),
    ("setp.eq.and.b32 %p1, %r1, 2, !1;", "setp.eq.and.b32", "%p1, %r1, 2, 0"),
    (
        "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, {%r3, %r4}, 1;",
        "tcgen05.mma.cta_group::1.kind::f16",
        "[%r1 + 0], %rd1, %rd2, %r2, {%r3, %r4}, 1",
    ),
    // Calls, where parentheses are lists.
    ("call.uni f;", "call.uni", "f"),
    ("call f, ();", "call", "f, ()"),
    ("call (r), f, (a, 5);", "call", "(r), f, (a, 5)"),
    ("call.uni (r), %rd1, (a, b), proto;", "call.uni", "(r), %rd1, (a, b), proto"),
];

#[test]
fn instructions_say_what_they_say() {
    for &(text, opcode, operands) in TABLE {
        let parsed = instruction(text);
        assert_eq!((parsed.opcode.as_str(), show_all(&parsed.operands).as_str()), (opcode, operands), "{text}");
    }
}

#[test]
fn guards() {
    assert_eq!(instruction("ret;").guard, None);
    assert_eq!(instruction("@p ret;").guard, Some((false, "p".into())));
    assert_eq!(instruction("@!%p1 ret;").guard, Some((true, "%p1".into())));
    assert_eq!(instruction("@ ! %p1 ret;").guard, Some((true, "%p1".into())));
}

#[test]
fn the_span_of_an_instruction_is_from_its_guard_to_before_its_semicolon() {
    let text = "  @p mov.u32\n    a, /* here */ 5 ;";
    let span = instruction(text).span;
    // The header and `.entry` are on lines 1 and 2.
    assert_eq!((span.line, span.column), (3, 3));
    let length = "@p mov.u32\n    a, /* here */ 5".len() as u32;
    assert_eq!(span.end - span.start, length);
}
