//! Loads and stores: types, vectors, spaces, addresses, hints.

use crate::row::{Row, bare, check, each, one};

pub fn rows() -> Vec<Row> {
    let mut rows = types();
    rows.extend(vectors());
    rows.extend(spaces());
    rows.extend(orders());
    rows.extend(hints());
    rows.extend(fills());
    rows.extend(side_by_side());
    rows
}

/// What lanes load side by side, which is read at once: from global memory just after it was stored there, with signs, and where one lane's is undefined.
fn side_by_side() -> Vec<Row> {
    let own = "shl.b32 %r1, %r98, 2; mov.u32 %r2, smem; add.u32 %r1, %r1, %r2;";
    vec![
        each(32, "st.global.v2.b32 [%d9], {%r98, 7};\nld.global.v2.b32 {%r1, %r2}, [%d9]; add.s32 %r0, %r1, %r2;", |lane| lane + 7),
        each(32, &format!("{own}\nneg.s32 %r3, %r98; st.shared.v2.b16 [%r1], {{%r3, 1}};\nld.shared.v2.s16 {{%r0, %r4}}, [%r1];"), |lane| {
            u64::from((lane as u32).wrapping_neg())
        }),
        each(
            32,
            &format!("{own}\nsetp.ne.u32 %p1, %r98, 5; @%p1 st.shared.b32 [%r1], %r98;\nld.shared.b32 %r0, [%r1];\n@!%p1 mov.u32 %r0, 0;"),
            |lane| if lane == 5 { 0 } else { lane },
        )
        .without("@!%p1 mov.u32 %r0, 0;", "undefined-value-stored"),
    ]
}

/// 16 bytes become zero, and those behind them stay.
fn fills() -> Vec<Row> {
    let begin = "mov.u32 %r80, smem; mov.u64 %d14, smem; cvta.shared.u64 %d14, %d14; mov.u64 %d3, 16; mov.u64 %d1, 0x0707070707070707;\n\
                 st.shared.v2.b64 [smem], {%d1, %d1}; st.shared.b64 [smem+16], %d1;\n";
    let mut rows = Vec::new();
    for weak in ["", ".weak"] {
        for (space, at) in [("", "[%d14]"), (".shared::cta", "[%r80]"), (".shared::cta", "[%r80+0]")] {
            for size in ["16", "%d3"] {
                let body = format!(
                    "st.bulk{weak}{space} {at}, {size}, 0;\nld.shared.b64 %d4, [smem]; ld.shared.b64 %d5, [smem+8]; ld.shared.b64 %d6, [smem+16];\n\
                     add.s64 %d0, %d4, %d5; add.s64 %d0, %d0, %d6;"
                );
                rows.push(one(&body, 0x0707_0707_0707_0707).around(begin, ""));
            }
        }
    }
    rows
}

/// A negative number of each type, stored and loaded: what is narrower than its register is extended by its type.
fn types() -> Vec<Row> {
    let mut rows = Vec::new();
    for (ty, bits) in [
        ("b8", 8),
        ("u8", 8),
        ("s8", 8),
        ("b16", 16),
        ("u16", 16),
        ("s16", 16),
        ("b32", 32),
        ("u32", 32),
        ("s32", 32),
        ("f32", 32),
        ("b64", 64),
        ("u64", 64),
        ("s64", 64),
        ("f64", 64),
    ] {
        let wide = u64::MAX - 0x7b; // −124, 0x…84
        let kept = if bits == 64 { wide } else { wide & ((1 << bits) - 1) };
        let extended = if ty.starts_with('s') && bits < 32 { wide & 0xffff_ffff } else { kept };
        let (source, into) = match ty {
            "f32" => ("%f1", "%f0"),
            "f64" => ("%e1", "%e0"),
            _ if bits == 64 => ("%d1", "%d0"),
            _ => ("%r1", "%r0"),
        };
        let set = match ty {
            "f32" => "mov.b32 %f1, 0fFFFFFF84;".to_string(),
            "f64" => format!("mov.b64 %e1, 0d{wide:016X};"),
            _ if bits == 64 => format!("mov.b64 %d1, {wide:#x};"),
            _ => format!("mov.b32 %r1, {:#x};", wide & 0xffff_ffff),
        };
        let get = match ty {
            "f32" => "mov.b32 %r0, %f0;",
            "f64" => "mov.b64 %d0, %e0;",
            _ => "",
        };
        rows.push(one(
            &format!("{set}\nst.shared.{ty} [smem+8], {source};\nld.shared.{ty} {into}, [smem+8];\n{get}"),
            extended,
        ));
        // Eight bytes around it keep what they hold.
        let around = 0x1111_1111_1111_1111;
        let both = around & !(if bits == 64 { u64::MAX } else { (1 << bits) - 1 }) | kept;
        rows.push(one(&format!("{set}\nst.global.b64 [%d8+64], {around};\nst.global.{ty} [%d8+64], {source};\nld.global.b64 %d0, [%d8+64];"), both));
    }
    rows.push(one("mov.b64 %d1, 3; mov.b64 %d2, 4; mov.b128 %q0, {%d1, %d2}; st.shared.b128 [smem], %q0; ld.shared.b64 %d0, [smem+8];", 4));
    // Of a register that was put together of four bytes, three without a value, the lowest is stored.
    let of_bytes =
        "mov.f32 %f1, 0f40000000; cvt.rn.satfinite.e2m1x2.f32 %b1, %f1, %f1; mov.b32 %r1, {%b1, %b2, %b2, %b2};";
    rows.push(one(&format!("{of_bytes} st.shared.b8 [smem], %r1; ld.shared.u8 %r0, [smem];"), 0x44).with(
        "b8 [smem], %r1; ld.shared.u8",
        "b16 [smem], %r1; ld.shared.u16",
        "undefined-value-stored",
    ));
    rows.push(one("st.shared.v2.b64 [smem], {5, 6}; ld.shared.b128 %q0, [smem]; mov.b128 {%d1, %d0}, %q0;", 6));
    // A narrow store takes the low bits of a wider register.
    rows.push(one(
        "mov.b64 %d1, 0x1122334455667788; st.shared.b32 [smem], %d1; ld.shared.b32 %r0, [smem];",
        0x5566_7788,
    ));
    rows
}

fn vectors() -> Vec<Row> {
    vec![
        one("st.shared.v2.b8 [smem], {1, 2}; ld.shared.b16 %h0, [smem]; cvt.u32.u16 %r0, %h0;", 0x0201),
        one("st.global.v2.b16 [%d8+64], {3, 4}; ld.global.b32 %r0, [%d8+64];", 0x0004_0003),
        one("st.local.v2.b32 [frame+8], {5, 6}; ld.local.b32 %r0, [frame+12];", 6),
        one(
            "st.shared.v4.f32 [smem], {0f3F800000, 0f40000000, 0f40400000, 0f40800000}; ld.shared.v2.b32 {%r1, %r0}, [smem+8];",
            0x4080_0000,
        ),
        one("st.global.v4.b64 [%d8+64], {1, 2, 3, 4}; ld.global.v4.b64 {%d1, %d2, %d3, %d0}, [%d8+64];", 4),
        one(
            "st.global.v8.b32 [%d8+64], {1, 2, 3, 4, 5, 6, 7, 8}; ld.global.v8.b32 {_, _, _, _, _, _, %r0, _}, [%d8+64];",
            7,
        ),
        one("st.b32 [%d8+64], 9; ld.v4.b32 {%r0, _, _, _}, [%d8+64];", 9),
        // What is not named is not written (PTX ISA, st), and the vector lies as all of it asks for.
        one(
            "st.global.v8.b32 [%d8+64], {1, 1, 1, 1, 1, 1, 1, 1}; mov.b32 %r1, 7;\n\
             st.global.v8.b32 [%d8+64], {_, 2, %r1, _, 4, 5, 6, _}; ld.global.b32 %r0, [%d8+72];",
            7,
        )
        .gives(8, &[0x2_0000_0001, 0x1_0000_0007, 0x5_0000_0004, 0x1_0000_0006])
        .with("[%d8+64], {_", "[%d8+80], {_", "misaligned-address")
        .with("[%d8+64], {_", "[%d8+68], {_", "misaligned-address"),
        one("st.v4.b64 [%d8+64], {1, 2, 3, 4}; st.relaxed.cta.global.L1::no_allocate.v4.b64 [%d8+64], {_, 8, _, _}; ld.b32 %r0, [%d8+72];", 8)
            .gives(8, &[1, 8, 3, 4]),
        // Under a guard all of it.
        one(
            "st.global.v8.b32 [%d8+64], {1, 1, 1, 1, 1, 1, 1, 1}; setp.eq.u32 %p1, 1, 2;\n\
             @%p1 st.global.v8.f32 [%d8+64], {0f3F800000, _, 0f3F800000, _, _, _, _, _}; ld.global.b32 %r0, [%d8+64];",
            1,
        )
        .gives(8, &[0x1_0000_0001, 0x1_0000_0001]),
    ]
}

fn spaces() -> Vec<Row> {
    vec![
        one("mov.b64 %d1, frame; cvta.local.u64 %d1, %d1; st.b32 [%d1+4], 9; ld.local.b32 %r0, [frame+4];", 9),
        one(
            "mov.b64 %d1, frame; cvta.local.u64 %d1, %d1; cvta.to.local.u64 %d1, %d1; st.local.b32 [%d1], 8; ld.local.u32 %r0, [frame];",
            8,
        ),
        one("mov.u64 %d1, smem; cvta.shared.u64 %d1, %d1; st.b32 [%d1+4], 7; ld.shared.b32 %r0, [smem+4];", 7),
        one(
            "mov.u64 %d1, smem; cvta.shared::cta.u64 %d1, %d1; cvta.to.shared::cta.u64 %d1, %d1; st.shared.b32 [%d1], 6; ld.shared::cta.b32 %r0, [smem];",
            6,
        ),
        one(
            "mov.u64 %d1, smem; cvta.shared::cluster.u64 %d1, %d1; cvta.to.shared::cluster.u64 %d1, %d1; st.shared::cluster.b32 [%d1], 5; ld.shared::cluster.b32 %r0, [%d1];",
            5,
        ),
        one(
            "mov.u64 %d1, smem; cvta.shared.u64 %d1, %d1; cvta.to.shared.u64 %d1, %d1; st.shared::cta.b32 [%d1], 4; ld.shared.b32 %r0, [smem];",
            4,
        ),
        one("mov.u64 %d1, table; cvta.global.u64 %d1, %d1; ld.b32 %r0, [%d1];", 10),
        one("mov.u64 %d1, table; cvta.to.global.u64 %d1, %d1; ld.global.nc.b32 %r0, [%d1];", 10),
        one("ld.global.b64 %d1, [at_table]; ld.b32 %r0, [%d1];", 0x30),
        one("ld.const.f32 %f0, [half+4]; mov.b32 %r0, %f0;", 0x4020_0000),
        one(
            "mov.u64 %d1, half; cvta.const.u64 %d1, %d1; cvta.to.const.u64 %d1, %d1; ld.const.b32 %r0, [%d1+12];",
            0x4100_0000,
        ),
        one("ld.global.b32 %r0, [counter];", 0),
        // The third parameter lies behind two of 8 bytes, aligned to 64.
        one("mov.b32 %r1, in; mov.b32 %r2, map; shl.b32 %r2, %r2, 8; or.b32 %r0, %r1, %r2;", 64 << 8 | 8),
        one("mov.b64 %d1, out; cvta.param.u64 %d1, %d1; ld.b64 %d2, [%d1]; sub.s64 %d0, %d2, %d8;", 0),
        one(
            "mov.b64 %d1, out; cvta.param.u64 %d1, %d1; cvta.to.param.u64 %d1, %d1; ld.param.b64 %d2, [%d1]; sub.s64 %d0, %d2, %d8;",
            0,
        ),
        // As Mojo writes it, and its counterpart in a call.
        one(
            "mov.b64 %d1, out; cvta.param::entry.u64 %d1, %d1; ld.param::entry.b64 %d2, [out]; ld.b64 %d1, [%d1]; sub.s64 %d0, %d2, %d1;",
            0,
        ),
        one(".param .b32 own; st.param::func.b32 [own], 7; ld.param::func.b32 %r0, [own];", 7),
        one("ld.param.v2.b32 {%r1, %r2}, [out]; mov.b64 %d1, {%r1, %r2}; sub.s64 %d0, %d1, %d8;", 0),
        // Constants are not written.
        bare(1, "").with(
            "ret;\n}",
            "mov.u64 %d1, half; red.global.add.f32 [%d1], 0f3F800000;\nret;\n}",
            "out-of-bounds",
        ),
        // Each thread has a frame of its own.
        each(64, "mov.u32 %r1, %tid.x; st.local.b32 [frame], %r1; bar.warp.sync -1; ld.local.b32 %r0, [frame];", |n| n),
    ]
}

/// Each order and scope, by one thread: what it has stored, it loads. That they order is in `barriers` and `atomics`.
fn orders() -> Vec<Row> {
    let mut rows = vec![
        one("st.weak.global.b32 [%d8+64], 3; ld.weak.global.b32 %r0, [%d8+64];", 3),
        one("st.volatile.global.b32 [%d8+64], 4; ld.volatile.global.b32 %r0, [%d8+64];", 4),
    ];
    for scope in ["cta", "cluster", "gpu", "sys"] {
        for (store, load) in [("relaxed", "relaxed"), ("release", "acquire")] {
            let body =
                format!("st.{store}.{scope}.global.b32 [%d8+64], 5; ld.{load}.{scope}.global.b32 %r0, [%d8+64];");
            rows.push(one(&body, 5));
        }
    }
    // Two CTAs, each with a value and a flag: where the other's flag is seen, so is its value, stored before the release and
    // loaded behind the acquire.
    let flag = |store: &str, load: &str| {
        format!(
            "mul.wide.u32 %d1, %r96, 64;\nadd.s64 %d1, %d1, %d8;\nxor.b32 %r3, %r96, 1;\nmul.wide.u32 %d2, %r3, 64;\n\
             add.s64 %d2, %d2, %d8;\nst.global.b32 [%d1+64], 77;\n{store} [%d1+72], 1;\n{load} %r1, [%d2+72];\n\
             setp.eq.u32 %p2, %r1, 0;\n@%p2 bra END;\nld.global.b32 %r2, [%d2+64];\nst.global.b32 [%d8], %r2;\nEND:"
        )
    };
    rows.push(
        bare(1, &flag("st.release.gpu.global.b32", "ld.acquire.gpu.global.b32"))
            .ctas(2, 1)
            .gives(0, &[77])
            .with("st.release.gpu", "st.relaxed.gpu", "race-global")
            .with("ld.acquire.gpu", "ld.relaxed.gpu", "race-global")
            .with("st.release.gpu", "st.release.cta", "race-global"),
    );
    rows
}

/// Hints change no value.
fn hints() -> Vec<Row> {
    vec![
        one(
            "st.relaxed.cta.global.L1::no_allocate.v8.b32 [%d8+64], {1, 2, 3, 4, 5, 6, 7, 8}; ld.acquire.gpu.global.b32 %r0, [%d8+92];",
            8,
        ),
        one(
            "createpolicy.fractional.L2::evict_first.b64 %d1, 1.0; ld.global.L1::no_allocate.L2::cache_hint.b32 %r0, [table], %d1;",
            10,
        ),
        one(
            "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d1, 0.5; st.global.L2::cache_hint.b32 [%d8+64], 3, %d1; ld.global.L2::128B.b32 %r0, [%d8+64];",
            3,
        ),
        one(
            "createpolicy.fractional.L2::evict_normal.b64 %d1; createpolicy.fractional.L2::evict_unchanged.L2::evict_first.b64 %d2, 0.25; ld.global.L2::cache_hint.b32 %r0, [table+8], %d2;",
            0x30,
        ),
        one(
            "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d1, [%d8], 0x1000, 0x2000; createpolicy.range.L2::evict_first.b64 %d2, [%d8], 64, 128; ld.global.L2::cache_hint.b32 %r0, [table], %d1;",
            10,
        ),
        one(
            "createpolicy.range.L2::evict_normal.L2::evict_first.b64 %d1, [%d8+8], 64, 64; createpolicy.range.L2::evict_unchanged.b64 %d2, [%d8], 8, 8; createpolicy.cvt.L2.b64 %d3, %d2; ld.global.L2::cache_hint.b32 %r0, [table+8], %d3;",
            0x30,
        ),
        // 32 bytes at a generic address, too; and evicted from L2 as the program says.
        one(
            "st.L2::evict_first.v8.b32 [%d8+64], {1, 2, 3, 4, 5, 6, 7, 8}; ld.L1::evict_last.L2::evict_last.L2::128B.v4.b64 {%d1, %d2, %d3, %d4}, [%d8+64]; cvt.u32.u64 %r0, %d4;",
            7,
        ),
        one(
            "prefetch.global.L1 [%d8]; prefetch.global.L2 [%d8+64]; prefetch.L2 [%d8]; prefetch.local.L1 [frame]; mov.u32 %r0, 1;",
            1,
        ),
        one(
            "prefetch.tensormap [%d6]; prefetch.param.tensormap [map]; prefetch.const.tensormap [half]; mov.u32 %r0, 1;",
            1,
        ),
    ]
}

#[test]
fn values() {
    check(&rows());
}

/// ptxas reads modifiers in any order, and so does the emulator; no form has these.
#[test]
fn modifiers_stand_in_any_order() {
    check(&[one(
        "st.global.gpu.b32.relaxed [%d8+64], 9; ld.v2.global.b32.L1::no_allocate {%r1, %r2}, [%d8+64]; \
         mad.lo.s32 %r3, %r1, 2, %r2; add.f32.rn %f1, 1.0, 2.0; mov.b32 %r4, %f1; add.u32 %r0, %r3, %r4;",
        18 + 0x4040_0000,
    )]);
}
