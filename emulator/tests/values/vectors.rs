//! Atomic operations on vectors, which are operations on each element; and what is done to lines of L2.

use crate::row::{Row, check, one};

const ORDERS: &[&str] =
    &["", ".relaxed.gpu", ".relaxed.sys", ".acquire.cta", ".release.cta", ".release.cluster", ".acq_rel.sys"];

pub fn rows() -> Vec<Row> {
    let mut rows = floats();
    rows.extend(halves());
    rows.extend(eight_narrow());
    rows.extend(lines());
    rows
}

/// Whether `red`, which acquires nothing, has the order.
fn of_red(order: &str) -> bool {
    !order.contains("acq")
}

/// 1, 2, 3 and 4 are added twice; or once, and the old value of the last is seen.
fn floats() -> Vec<Row> {
    let mut rows = Vec::new();
    let set = "mov.b32 %f1, 0f3F800000; mov.b32 %f2, 0f40000000; mov.b32 %f3, 0f40400000; mov.b32 %f4, 0f40800000;\n\
               st.global.v4.b32 [%d8+64], {0x3f800000, 0x40000000, 0x40400000, 0x40800000};\n";
    for order in ORDERS {
        for space in ["", ".global"] {
            for (lanes, list, to, words) in [
                (2, "%f1, %f2", "%f5, %f6", [0x4080_0000_4000_0000, 0x4080_0000_4040_0000]),
                (4, "%f1, %f2, %f3, %f4", "_, %f6, _, _", [0x4080_0000_4000_0000, 0x4100_0000_40c0_0000]),
            ] {
                let atom =
                    format!("atom{order}{space}.add.v{lanes}.f32 {{{to}}}, [%d8+64], {{{list}}};\nmov.b32 %r0, %f6;");
                rows.push(one(&atom, 0x4000_0000).around(set, "").gives(8, &words));
                if of_red(order) {
                    let red = format!("red{order}{space}.add.v{lanes}.f32 [%d8+64], {{{list}}};\nmov.u32 %r0, 1;");
                    rows.push(one(&red, 1).around(set, "").gives(8, &words).with(
                        &format!("add.v{lanes}.f32 [%d8+64]"),
                        &format!("add.v{lanes}.f32 [%d8+68]"),
                        "misaligned-address",
                    ));
                }
            }
        }
    }
    // A subnormal number is flushed in global memory, as without a vector; the end of the buffer lies within the vector.
    rows.push(
        one("red.global.add.v2.f32 [%d8+64], {0f00000001, 0f80000001};\nmov.u32 %r0, 1;", 1).gives(8, &[0]).with(
            "[%d8+64]",
            "[%d8+0x40000]",
            "out-of-bounds",
        ),
    );
    rows
}

/// Halves of 1, with 2: the type, 1, 2 and 3.
fn halves() -> Vec<Row> {
    let mut rows = Vec::new();
    for (ty, one_, two, three) in [
        ("f16", 0x3c00u64, 0x4000u64, 0x4200u64),
        ("bf16", 0x3f80, 0x4000, 0x4040),
        ("f16x2", 0x3c00, 0x4000, 0x4200),
        ("bf16x2", 0x3f80, 0x4000, 0x4040),
    ] {
        let pair = ty.ends_with("x2");
        let four = |x: u64| x * 0x1_0001_0001_0001;
        let (class, set) = if pair {
            ('r', format!("mov.b32 %r1, {:#x};", two * 0x1_0001))
        } else {
            ('h', format!("mov.b16 %h1, {two:#x};"))
        };
        let set = format!("{set}\nst.global.v2.b64 [%d8+64], {{{0:#x}, {0:#x}}};\n", four(one_));
        for (n, order) in ORDERS.iter().enumerate() {
            for (what, new) in [("add", three), ("min", one_), ("max", two)] {
                for lanes in [2usize, 4, 8].into_iter().filter(|&lanes| lanes < 8 || !pair) {
                    let space = if (n + lanes) % 3 == 0 { "" } else { ".global" };
                    let bytes = lanes * if pair { 4 } else { 2 };
                    let low = |bytes: usize| {
                        if bytes == 4 { four(new) & 0xffff_ffff | four(one_) & !0xffff_ffff } else { four(new) }
                    };
                    let words = [low(bytes), if bytes == 16 { four(new) } else { four(one_) }];
                    let list = vec![format!("%{class}1"); lanes].join(", ");
                    let mut to = vec!["_".to_string(); lanes];
                    to[lanes - 1] = format!("%{class}2");
                    let get = if pair { "mov.b32 %r0, %r2;" } else { "cvt.u32.u16 %r0, %h2;" };
                    let old = if pair { one_ * 0x1_0001 } else { one_ };
                    let to = to.join(", ");
                    let atom =
                        format!("atom{order}{space}.{what}.noftz.v{lanes}.{ty} {{{to}}}, [%d8+64], {{{list}}};\n{get}");
                    rows.push(one(&atom, old).around(&set, "").gives(8, &words));
                    if of_red(order) {
                        let red = format!(
                            "red{order}{space}.{what}.noftz.v{lanes}.{ty} [%d8+64], {{{list}}};\nmov.u32 %r0, 1;"
                        );
                        rows.push(one(&red, 1).around(&set, "").gives(8, &words));
                    }
                }
            }
        }
    }
    rows
}

/// Eight narrow elements, of which ptxas makes stores though the ISA has `.v8` for those of 32 bits: each is stored where it belongs, and
/// the last one is loaded again. ptxas falls over such loads.
fn eight_narrow() -> Vec<Row> {
    let list = (1..=8).map(|n| format!("%r{n}")).collect::<Vec<_>>().join(", ");
    let set: String = (1..=8).map(|n| format!("mov.b32 %r{n}, {:#x};\n", 0x55aa_80f0u32 + n)).collect();
    let mut rows = Vec::new();
    for (ty, bytes, last) in
        [("b8", 1, 0xf8), ("u8", 1, 0xf8), ("s8", 1, 0xf8), ("b16", 2, 0x80f8), ("u16", 2, 0x80f8), ("s16", 2, 0x80f8)]
    {
        for (space, base, at) in
            [("", "%d8", 64), (".global", "%d8", 64), (".shared", "smem", 0), (".local", "frame", 0)]
        {
            let store = format!("st{space}.v8.{ty} [{base}");
            let body =
                format!("{store}+{at}], {{{list}}};\nld{space}.u{} %r0, [{base}+{}];", 8 * bytes, at + 7 * bytes);
            let other = format!("{store}+{}]", at + 4);
            let row = one(&body, last).around(&set, "").with(&format!("{store}+{at}]"), &other, "misaligned-address");
            let words: &[u64] = match bytes {
                1 => &[0xf8f7_f6f5_f4f3_f2f1],
                _ => &[0x80f4_80f3_80f2_80f1, 0x80f8_80f7_80f6_80f5],
            };
            rows.push(if base == "%d8" { row.gives(8, words) } else { row });
        }
    }
    rows
}

fn lines() -> Vec<Row> {
    let written = "st.global.b32 [%d8+128], 8;\n";
    let mut rows: Vec<Row> = ["discard.global.L2", "discard.L2"]
        .into_iter()
        .map(|discard| {
            let body = format!(
                "st.global.b32 [%d8+128], 7;\n{discard} [%d8+128], 128;\n{written}ld.global.b32 %r0, [%d8+128];"
            );
            // What was there is gone; a line is aligned, and is global memory.
            one(&body, 8)
                .without(written, "undefined-value-stored")
                .with(&format!("{discard} [%d8+128]"), &format!("{discard} [%d8+64]"), "misaligned-address")
                .with(&format!("{discard} [%d8+128]"), &format!("{discard} [%d8+0x40000]"), "out-of-bounds")
        })
        .collect();
    rows.push(one(
        "applypriority.global.L2::evict_normal [%d8], 128; applypriority.L2::evict_normal [%d8], 128;\n\
         prefetch.global.L2::evict_last [%d8]; prefetch.L2::evict_last [%d8]; prefetch.global.L2::evict_normal [%d8]; prefetchu.L1 [%d8];\n\
         fence.proxy.alias; membar.proxy.alias; mov.u32 %r0, 1;",
        1,
    ));
    // Hints of loads and stores, in the orders that are written.
    rows.push(one(
        "createpolicy.fractional.L2::evict_first.b64 %d1, 1.0;\nst.global.L1::no_allocate.L2::evict_first.v8.b32 [%d8+64], {1, 2, 3, 4, 5, 6, 7, 8};\n\
         ld.global.L1::evict_last.L2::evict_first.v8.b32 {_, _, %r1, _, _, _, _, _}, [%d8+64];\n\
         ld.global.nc.L1::no_allocate.L2::cache_hint.L2::128B.v8.f32 {_, _, _, _, _, _, %f1, _}, [%d7], %d1;\n\
         ld.global.L2::evict_last.v4.b64 {_, _, _, %d2}, [%d8+64];\nld.global.nc.L1::no_allocate.L2::256B.v4.b32 {%r2, _, _, _}, [%d7];\n\
         st.global.L2::cache_hint.v8.f32 [%d8+128], {%f1, %f1, %f1, %f1, %f1, %f1, %f1, %f1}, %d1;\n\
         cvt.u32.u64 %r3, %d2; add.u32 %r0, %r1, %r3; add.u32 %r0, %r0, %r2;",
        3 + 7 + 0x0403_0201,
    ).input((1..=32).collect()).gives(16, &[0x1c1b_1a19_1c1b_1a19]));
    rows
}

#[test]
fn values() {
    check(&rows());
}
