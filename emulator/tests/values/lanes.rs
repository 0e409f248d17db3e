//! What the lanes of a warp tell each other.

use crate::row::{Row, check, each, one};

pub fn rows() -> Vec<Row> {
    vec![
        // `c` is the clamp in bits 0–4 and the segment mask in bits 8–12.
        each(32, "shfl.sync.idx.b32 %r0, %r98, 5, 0x1f, 0xffffffff;", |_| 5),
        each(32, "shfl.sync.up.b32 %r0, %r98, 3, 0, 0xffffffff;", |n| if n < 3 { n } else { n - 3 }),
        each(32, "shfl.sync.down.b32 %r0, %r98, 3, 0x1f, 0xffffffff;", |n| if n > 28 { n } else { n + 3 }),
        each(32, "shfl.sync.bfly.b32 %r0, %r98, 6, 0x1f, 0xffffffff;", |n| n ^ 6),
        // A sum over 8 lanes. Lanes 4 to 7 get what lanes that are not here hold, and pass it on to nobody who counts.
        each(
            32,
            "setp.lt.u32 %p1, %r98, 8; mov.u32 %r0, 7; mov.u32 %r1, %r98;
             @%p1 shfl.sync.down.b32 %r2, %r1, 4, 0x1f, 0xff; @%p1 add.u32 %r1, %r1, %r2;
             @%p1 shfl.sync.down.b32 %r2, %r1, 2, 0x1f, 0xff; @%p1 add.u32 %r1, %r1, %r2;
             @%p1 shfl.sync.down.b32 %r2, %r1, 1, 0x1f, 0xff; @%p1 add.u32 %r1, %r1, %r2;
             @%p1 shfl.sync.idx.b32 %r0, %r1, 0, 0x1f, 0xff;",
            |n| if n < 8 { 28 } else { 7 },
        )
        .with("%r1, 0, 0x1f", "%r1, 1, 0x1f", "undefined-value-stored"),
        // Segments of 8 lanes: mask 0x18; the predicate says whether the source lies in the segment.
        each(32, "shfl.sync.down.b32 %r0|%p1, %r98, 2, 0x181f, 0xffffffff; @!%p1 mov.u32 %r0, 99;", |n| {
            if n % 8 < 6 { n + 2 } else { 99 }
        }),
        each(32, "shfl.sync.up.b32 %r0|%p1, %r98, 2, 0x1800, 0xffffffff; @!%p1 mov.u32 %r0, 99;", |n| {
            if n % 8 >= 2 { n - 2 } else { 99 }
        }),
        each(32, "shfl.sync.idx.b32 %r0|%p1, %r98, 2, 0x181f, 0xffffffff;", |n| n / 8 * 8 + 2),
        // Half of a warp.
        each(
            32,
            "setp.lt.u32 %p1, %r98, 16; mov.u32 %r0, 7; @%p1 shfl.sync.bfly.b32 %r0, %r98, 1, 0x1f, 0xffff;",
            |n| if n < 16 { n ^ 1 } else { 7 },
        )
        .with("0x1f, 0xffff;", "0x1f, 0xffffffff;", "lanes-missing"),
        // Tiles of 16 and of 4 lanes execute one instruction with a mask each, as cooperative groups do.
        each(32, &tile(16, "shfl.sync.bfly.b32 %r0, %r98, 8, 0x101f, %r3;"), |n| n ^ 8),
        each(32, &tile(4, "shfl.sync.idx.b32 %r0, %r98, 1, 0x1c1f, %r3;"), |n| n / 4 * 4 + 1),
        each(32, &tile(4, "setp.eq.u32 %p1, %r98, 9; vote.sync.ballot.b32 %r0, %p1, %r3;"), |n| {
            if n / 4 == 2 { 1 << 9 } else { 0 }
        }),
        // One lane of a tile does not come, and masks of which some leave out who has them.
        each(32, &tile(4, "redux.sync.add.u32 %r0, %r98, %r3;"), |n| n / 4 * 16 + 6)
            .with("redux", "setp.ne.u32 %p1, %r98, 20;\n@%p1 redux", "lanes-missing")
            .with("and.b32 %r3, %r98, 28;", "and.b32 %r3, %r98, 24;", "lanes-missing"),
        each(32, &tile(8, "shr.u32 %r4, %r98, 1; match.any.sync.b32 %r0, %r4, %r3;"), |n| 3 << (n & !1)),
        each(32, &tile(8, "elect.sync %r0|%p1, %r3;"), |n| n & !7),
        each(32, "setp.lt.u32 %p1, %r98, 5; vote.sync.ballot.b32 %r0, %p1, 0xffffffff;", |_| 0b11111),
        each(32, "setp.lt.u32 %p1, %r98, 5; vote.sync.ballot.b32 %r0, !%p1, 0xffffffff;", |_| 0xffff_ffe0),
        each(32, "setp.lt.u32 %p1, %r98, 5; vote.sync.any.pred %p2, %p1, 0xffffffff; selp.b32 %r0, 1, 0, %p2;", |_| 1),
        each(32, "setp.lt.u32 %p1, %r98, 5; vote.sync.all.pred %p2, %p1, 0xffffffff; selp.b32 %r0, 1, 0, %p2;", |_| 0),
        each(32, "setp.lt.u32 %p1, %r98, 5; vote.sync.uni.pred %p2, %p1, 0xffffffff; selp.b32 %r0, 1, 0, %p2;", |_| 0),
        each(32, "setp.gt.u32 %p1, %r98, 99; vote.sync.uni.pred %p2, %p1, 0xffffffff; selp.b32 %r0, 1, 0, %p2;", |_| 1),
        each(
            32,
            "setp.lt.u32 %p1, %r98, 5; mov.u32 %r0, 3; @%p1 activemask.b32 %r0;",
            |n| if n < 5 { 0b11111 } else { 3 },
        ),
        // One lane, known to all, and the same again for the same mask.
        each(
            32,
            "elect.sync %r1|%p1, 0xffffffff; vote.sync.ballot.b32 %r2, %p1, 0xffffffff; popc.b32 %r3, %r2; shl.b32 %r4, 1, %r1; setp.eq.u32 %p2, %r2, %r4; elect.sync _|%p3, -1; and.pred %p2, %p2, %p2; vote.sync.ballot.b32 %r5, %p3, -1; setp.eq.and.u32 %p2, %r5, %r2, %p2; selp.b32 %r0, %r3, 0, %p2;",
            |_| 1,
        ),
        // One value of all lanes' values.
        each(32, "redux.sync.add.u32 %r0, %r98, 0xffffffff;", |_| 496),
        each(32, "sub.s32 %r1, %r98, 40; redux.sync.add.s32 %r1, %r1, 0xffffffff; neg.s32 %r0, %r1;", |_| 784),
        each(32, "sub.s32 %r1, %r98, 4; redux.sync.min.s32 %r0, %r1, 0xffffffff;", |_| 0xffff_fffc),
        each(32, "sub.s32 %r1, %r98, 4; redux.sync.max.s32 %r0, %r1, 0xffffffff;", |_| 27),
        each(32, "sub.s32 %r1, %r98, 4; redux.sync.min.u32 %r0, %r1, 0xffffffff;", |_| 0),
        each(32, "sub.s32 %r1, %r98, 4; redux.sync.max.u32 %r0, %r1, 0xffffffff;", |_| 0xffff_ffff),
        each(32, "or.b32 %r1, %r98, 0x60; redux.sync.and.b32 %r0, %r1, 0xffffffff;", |_| 0x60),
        each(32, "redux.sync.or.b32 %r0, %r98, 0xffffffff;", |_| 31),
        // −4 … 27 as FP32, and NaN in lane 0 in the second half: it counts only with .NaN.
        each(32, &floats("redux.sync.min.f32 %f0, %f1, -1;"), |_| 0xc040_0000),
        each(32, &floats("redux.sync.max.f32 %f0, %f1, -1;"), |_| 0x41d8_0000),
        each(32, &floats("redux.sync.min.abs.f32 %f0, %f1, -1;"), |_| 0),
        each(32, &floats("redux.sync.max.abs.f32 %f0, %f1, -1;"), |_| 0x41d8_0000),
        each(32, &floats("redux.sync.min.NaN.f32 %f0, %f1, -1;"), |_| 0x7fff_ffff),
        each(32, &floats("redux.sync.max.abs.NaN.f32 %f0, %f1, -1;"), |_| 0x7fff_ffff),
        // Of NaN alone, and of zeros: that with a sign is less.
        each(1, "mov.b32 %f1, 0f7F800001; redux.sync.min.f32 %f0, %f1, 1; mov.b32 %r0, %f0;", |_| 0x7fff_ffff),
        each(2, "shl.b32 %r1, %r98, 31; mov.b32 %f1, %r1; redux.sync.max.f32 %f0, %f1, 3; mov.b32 %r0, %f0;", |_| 0),
        each(2, "shl.b32 %r1, %r98, 31; mov.b32 %f1, %r1; redux.sync.min.f32 %f0, %f1, 3; mov.b32 %r0, %f0;", |_| {
            0x8000_0000
        }),
        each(32, "shl.b32 %r1, 1, %r98; redux.sync.xor.b32 %r0, %r1, 0xffffffff;", |_| 0xffff_ffff),
        // Half of a warp: the other lanes' values do not count.
        each(32, "setp.lt.u32 %p1, %r98, 16; mov.u32 %r0, 7; @%p1 redux.sync.add.u32 %r0, %r98, 0xffff;", |n| {
            if n < 16 { 120 } else { 7 }
        })
        .with("%r98, 0xffff;", "%r98, 0xffffffff;", "lanes-missing"),
        // Which lanes hold what this one holds; or whether all hold the same.
        each(32, "and.b32 %r1, %r98, 3; match.any.sync.b32 %r0, %r1, 0xffffffff;", |n| 0x1111_1111 << (n & 3)),
        each(
            32,
            "and.b32 %r1, %r98, 1; cvt.u64.u32 %d1, %r1; shl.b64 %d1, %d1, 40; match.any.sync.b64 %r0, %d1, 0xffffffff;",
            |n| 0x5555_5555 << (n & 1),
        ),
        each(32, "mov.u32 %r1, 5; match.all.sync.b32 %r2|%p1, %r1, 0xffffffff; selp.b32 %r0, %r2, 3, %p1;", |_| {
            0xffff_ffff
        }),
        each(32, "match.all.sync.b32 %r2|%p1, %r98, 0xffffffff; selp.b32 %r1, 1, 8, %p1; or.b32 %r0, %r1, %r2;", |_| 8),
        each(32, "mov.b64 %d1, 5; match.all.sync.b64 %r0, %d1, 0xffffffff;", |_| 0xffff_ffff),
        // Where a lane stands.
        each(64, "mov.u32 %r1, %laneid; mov.u32 %r2, %warpid; mad.lo.u32 %r0, %r2, 32, %r1;", |n| n),
        each(
            32,
            "mov.u32 %r1, %lanemask_lt; popc.b32 %r1, %r1; mov.u32 %r2, %lanemask_ge; popc.b32 %r2, %r2; shl.b32 %r2, %r2, 8; or.b32 %r0, %r1, %r2;",
            |n| (32 - n) << 8 | n,
        ),
        each(
            32,
            "mov.u32 %r1, %lanemask_le; mov.u32 %r2, %lanemask_gt; xor.b32 %r1, %r1, %r2; mov.u32 %r2, %lanemask_eq; xor.b32 %r0, %r1, %r2;",
            |n| 0xffff_ffff ^ 1 << n,
        ),
        // Numbers that warps of an SM may have, whatever the CTA has (PTX ISA 10.6: the maximum): 64 on an H200.
        each(96, "mov.u32 %r0, %nwarpid;", |_| 64).ctas(2, 2),
        one("mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ntid.x; shl.b32 %r2, %r2, 8; or.b32 %r0, %r1, %r2;", 0x101),
    ]
}

/// %r3 is the mask of this lane's tile.
fn tile(lanes: u32, body: &str) -> String {
    format!("and.b32 %r3, %r98, {}; shl.b32 %r3, {:#x}, %r3; {body}", 32 - lanes, (1u32 << lanes) - 1)
}

/// Lane n holds n − 4, lane 0 a NaN.
fn floats(body: &str) -> String {
    format!(
        "sub.s32 %r1, %r98, 4; cvt.rn.f32.s32 %f1, %r1; setp.eq.u32 %p1, %r98, 0; @%p1 mov.b32 %f1, 0f7FC00000;\n{body}\nmov.b32 %r0, %f0;"
    )
}

#[test]
fn values() {
    check(&rows());
}
