//! Results that go nowhere (`_`), predicates that are negated where they are read, and constants in fragments.

use crate::row::{Row, bare, check, each, one};

const ALL: &str = "0xffffffff";

fn lanes() -> Vec<Row> {
    vec![
        each(32, &format!("shfl.sync.idx.b32 %r0|_, %r98, 5, 0x1f, {ALL};"), |_| 5),
        each(32, &format!("mov.u32 %r1, 5; match.all.sync.b32 %r0|_, %r1, {ALL};"), |_| 0xffff_ffff),
        each(32, &format!("match.all.sync.b32 _|%p1, %r98, {ALL}; selp.b32 %r0, 1, 8, %p1;"), |_| 8),
        each(32, &format!("mov.b64 %d1, 5; match.all.sync.b64 _|%p1, %d1, {ALL}; selp.b32 %r0, 1, 8, %p1;"), |_| 1),
        each(32, &format!("match.all.sync.b32 _, %r98, {ALL}; mov.u32 %r0, %r98;"), |n| n),
    ]
}

fn predicates() -> Vec<Row> {
    let select = "selp.b32 %r0, 1, 2, !%p1;";
    vec![
        one(&format!("setp.eq.u32 %p1, 1, 1; {select}"), 2),
        one(&format!("setp.eq.u32 %p1, 1, 2; {select}"), 1),
        one("setp.eq.u32 %p1, 1, 2; selp.b64 %d0, 7, 9, !%p1;", 7),
        one("setp.eq.u32 %p1, 1, 2; mov.pred %p2, !%p1; selp.b32 %r0, 1, 2, %p2;", 1),
        one("setp.eq.u32 %p1, 1, 1; and.pred %p2, %p1, !%p1; selp.b32 %r0, 1, 2, %p2;", 2),
        one("setp.eq.u32 %p1, 1, 1; or.pred %p2, !%p1, !%p1; selp.b32 %r0, 1, 2, %p2;", 2),
        one("setp.eq.u32 %p1, 1, 1; xor.pred %p2, !%p1, !%p1; selp.b32 %r0, 1, 2, %p2;", 2),
        one("setp.eq.u32 %p1, 1, 1; not.pred %p2, !%p1; selp.b32 %r0, 1, 2, %p2;", 1),
        // What decides alone does not need the other, which may have no value.
        one("setp.eq.u32 %p1, 1, 1; or.pred %p2, %p1, %p3; selp.b32 %r0, 1, 2, %p2;", 1)
            .with("or.pred", "and.pred", "undefined-value-stored")
            .with("or.pred", "xor.pred", "undefined-value-stored"),
        one("setp.eq.u32 %p1, 1, 2; and.pred %p2, %p3, %p1; selp.b32 %r0, 1, 2, %p2;", 2).with(
            "and.pred",
            "or.pred",
            "undefined-value-stored",
        ),
        one("setp.eq.u32 %p1, 1, 1; setp.lt.or.s32 %p2, %r5, 0, %p1; selp.b32 %r0, 1, 2, %p2;", 1).with(
            ".or.s32",
            ".and.s32",
            "undefined-value-stored",
        ),
        one("setp.eq.u32 %p1, 1, 1; setp.lt.and.s32 %p2, %r5, 0, !%p1; selp.b32 %r0, 1, 2, %p2;", 2).with(
            "!%p1",
            "%p1",
            "undefined-value-stored",
        ),
        // Of two predicates that a comparison gives, one.
        one("setp.eq.u32 _|%p1, 1, 2; selp.b32 %r0, 1, 2, %p1;", 1),
        one("mov.b16 %h1, 0x3c00; setp.eq.f16 %p1|_, %h1, %h1; selp.b32 %r0, 1, 2, %p1;", 1),
        one("setp.eq.u32 _, 1, 2; mov.u32 %r0, 3;", 3),
    ]
}

fn memory() -> Vec<Row> {
    let fill = "shl.b32 %r1, %r98, 2; add.u32 %r2, %r1, 1; add.u32 %r3, %r1, 2; add.u32 %r4, %r1, 3;\n\
                mov.u32 %r5, smem; mad.lo.u32 %r6, %r98, 16, %r5;\n\
                st.shared.v4.b32 [%r6], {%r1, %r2, %r3, %r4};\nbar.warp.sync -1;\n\
                and.b32 %r7, %r98, 15; mad.lo.u32 %r7, %r7, 16, %r5;\n";
    // A predicate that says that nothing is read: zeros are written.
    let copy = |p: u32, expected: u64| {
        let begin =
            format!("setp.eq.u32 %p1, {p}, 1; mov.u32 %r5, smem; st.shared.v4.b32 [%r5], {{%r98, %r98, %r98, %r98}};");
        let copy = "cp.async.ca.shared.global [%r5], [%d7], 4, !%p1; cp.async.wait_all; ld.shared.b32 %r0, [%r5];";
        one(&format!("{begin}\n{copy}"), expected).input(7u32.to_le_bytes().to_vec())
    };
    vec![
        // The second matrix has rows 8 to 15, of four words each.
        each(32, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {_, %r0}, [%r7];", |t| 32 + t).around(fill, ""),
        each(32, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, _}, [%r7];", |t| t).around(fill, ""),
        bare(1, "atom.global.add.v4.f32 _, [%d8+64], {1.0, 2.0, 3.0, 4.0};")
            .gives(8, &[0x4000_0000_3f80_0000, 0x4080_0000_4040_0000]),
        bare(1, "mov.b16 %h1, 0x3c00; atom.global.add.noftz.v2.f16 _, [%d8+64], {%h1, %h1};").gives(8, &[0x3c00_3c00]),
        copy(1, 7),
        copy(0, 0),
    ]
}

/// All of A and B is 1, but for what the constants in their fragments say; one element of C is the bits of 2.
fn fragments() -> Vec<Row> {
    let ones = (0..6).map(|n| format!("mov.b32 %x{n}, 0x3c003c00;")).collect::<Vec<_>>().join(" ");
    let zeros = (6..10).map(|n| format!("mov.b32 %x{n}, 0;")).collect::<Vec<_>>().join(" ");
    let mma = |a: &str, b: &str, c: &str, element: usize, expected: f32| {
        let d: Vec<&str> = (0..4).map(|n| if n == element { "%r0" } else { "_" }).collect();
        let body = format!("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{}}}, {a}, {b}, {c};", d.join(", "));
        each(32, &body, move |_| expected.to_bits().into()).around(&format!("{ones}\n{zeros}\n"), "")
    };
    let (a, b, c) = ("{%x0, %x1, %x2, %x3}", "{%x4, %x5}", "{%x6, %x7, %x8, %x9}");
    vec![
        mma(a, b, c, 0, 16.0),
        mma(a, "{%x4, 0}", c, 0, 8.0),
        // The third register of A has the right half of the upper rows.
        mma("{%x0, %x1, 0, %x3}", b, c, 0, 8.0),
        mma("{%x0, %x1, 0, %x3}", b, c, 3, 16.0),
        mma("{%x0, 0x3c003c00, 0, 0}", "{0x3c003c00, %x5}", "{%x6, 0, 0, 0x40000000}", 3, 10.0),
    ]
}

/// Halves of pairs that hold no value, as LLVM leaves them where it makes one pair of single numbers: the other halves do.
fn halves() -> Vec<Row> {
    let pair = "mov.b32 %r1, 0x3f800000; mov.b64 %d1, {%r1, %r2}; mov.b64 %d2, {%r1, %r1};";
    vec![
        one(
            &format!("{pair} add.f32x2 %d3, %d1, %d2; add.f32x2 %d3, %d2, %d3; mov.b64 {{%r0, %r3}}, %d3;"),
            0x4040_0000,
        ),
        one(&format!("{pair} fma.rn.f32x2 %d3, %d1, %d2, %d2; mov.b64 {{%r0, %r3}}, %d3;"), 0x4000_0000),
        one(
            "mov.b16 %h1, 0x3c00; mov.b32 %r1, {%h2, %h1}; add.f16x2 %r2, %r1, %r1; mov.b32 {%h3, %h4}, %r2; cvt.u32.u16 %r0, %h4;",
            0x4000,
        ),
        // What is chosen has its own halves, and the other one does not matter.
        one(
            &format!("{pair} setp.eq.u32 %p1, 1, 1; selp.b64 %d3, %d1, %d4, %p1; mov.b64 {{%r0, %r3}}, %d3;"),
            0x3f80_0000,
        )
        .with("{%r0, %r3}", "{%r3, %r0}", "undefined-value-stored")
        .with("%p1, 1, 1", "%p1, 1, 2", "undefined-value-stored")
        .with("%p1, 1, 1", "%p2, 1, 1", "undefined-value-stored"),
        one(
            "mov.b16 %h1, 0x3c00; mov.b32 %r1, {%h2, %h1}; setp.eq.u32 %p1, 1, 2; selp.b32 %r2, %r1, %r1, !%p1; \
             mov.b32 {%h3, %h4}, %r2; cvt.u32.u16 %r0, %h4;",
            0x3c00,
        )
        .with("%r0, %h4", "%r0, %h3", "undefined-value-stored"),
        // A chain of choices that fills one pair half by half, as it is made of `x if lane == n else y`.
        one(
            &format!(
                "{pair} mov.b32 %r4, 7; setp.eq.u32 %p1, 1, 1; selp.b64 %d3, %d1, %d2, %p1; mov.b64 {{%r5, _}}, %d3;\n\
                 mov.b64 %d3, {{%r5, %r4}}; selp.b64 %d3, %d3, %d2, %p1; mov.b64 {{_, %r0}}, %d3;"
            ),
            7,
        ),
    ]
}

pub fn rows() -> Vec<Row> {
    [lanes(), predicates(), memory(), fragments(), halves()].concat()
}

#[test]
fn values() {
    check(&rows());
}
