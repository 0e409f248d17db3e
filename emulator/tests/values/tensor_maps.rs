//! Tensor maps that a kernel makes: each field, each place where a map can lie, and the fences.

use crate::row::{Row, bare, check};
use crate::tma_layout::{map, numbered};
use emulator::{Element, Swizzle};

/// Thread 0 is `%p1`; the first 128 bytes of shared memory are zero, `%r21` is their address; `%d10` points to zeroes in `out`.
const BEGIN: &str = "setp.eq.u32 %p1, %r98, 0;\nshl.b32 %r20, %r98, 2; mov.u32 %r21, smem; add.u32 %r20, %r20, %r21; st.shared.b32 [%r20], 0;\n\
                     @%p1 mbarrier.init.shared::cta.b64 [bar], 1;\nadd.s64 %d10, %d8, 0x20000;\nmov.u64 %d11, smem; cvta.shared.u64 %d11, %d11;\nbar.warp.sync 0xffffffff;\n";

/// The fields of a map of `in`: 16 columns and 4 rows of 16-bit numbers, in boxes of 8 columns and 2 rows, each second row.
const FIELDS: &[(&str, &str)] = &[
    ("global_address", "%d7"),
    ("rank", "1"),
    ("global_dim", "0, 16"),
    ("global_dim", "1, %r1"),
    ("global_stride", "0, 32"),
    ("box_dim", "0, 8"),
    ("box_dim", "1, 4"),
    ("element_stride", "0, 1"),
    ("element_stride", "1, 2"),
    ("elemtype", "6"),
    ("interleave_layout", "0"),
    ("swizzle_mode", "0"),
    ("swizzle_atomicity", "0"),
    ("fill_mode", "1"),
];

/// Thread 0 writes these fields.
fn replaced(space: &str, address: &str, fields: &[(&str, &str)]) -> String {
    let mut text = "mov.u32 %r1, 4;\n".to_string();
    for (field, value) in fields {
        let ty = if matches!(*field, "global_address" | "global_stride") { "b64" } else { "b32" };
        text += &format!("@%p1 tensormap.replace.tile.{field}{space}.b1024.{ty} [{address}], {value};\n");
    }
    text + "bar.warp.sync 0xffffffff;\n"
}

fn publish(scope: &str) -> String {
    format!(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned [%d10], [%r21], 128;\n"
    )
}

fn acquire(scope: &str) -> String {
    format!("fence.proxy.tensormap::generic.acquire.{scope} [%d10], 128;\n")
}

/// Thread 0 loads so many bytes of a box through the map at `%d10`, and leaves the first four words of it in `out`.
fn used(at: &str, bytes: u32) -> String {
    format!(
        "@!%p1 bra END;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};\n\
         cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [smem+1024], [%d10, {{{at}}}], [bar];\n\
         WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n\
         ld.shared.v2.b64 {{%d0, %d1}}, [smem+1024]; ld.shared.v2.b64 {{%d2, %d3}}, [smem+1040];\n\
         st.global.v2.b64 [%d8], {{%d0, %d1}}; st.global.v2.b64 [%d8+16], {{%d2, %d3}};\nEND:\n"
    )
}

/// Rows 0 and 2, columns 8 to 15: `in` counts from 1.
fn expected() -> [u64; 4] {
    let word = |first: u64| (0..4).fold(0, |word, n| word | (first + n) << (16 * n));
    [word(9), word(13), word(41), word(45)]
}

fn row(make: &str, used: &str) -> Row {
    bare(32, make).around(BEGIN, used).input(numbered(64))
}

pub fn rows() -> Vec<Row> {
    let shared = || replaced(".shared::cta", "smem", FIELDS);
    let mut rows: Vec<Row> = ["cta", "cluster", "gpu", "sys"]
        .into_iter()
        .map(|scope| {
            let text = format!("{}{}{}", shared(), publish(scope), acquire(scope));
            row(&text, &used("8, 0", 32)).gives(0, &expected()).without(&acquire(scope), "tensor-map-not-acquired")
        })
        .collect();
    // In global memory, and at generic addresses of both.
    for (space, scope) in [(".global", "gpu"), ("", "cta"), ("", "cluster"), ("", "sys")] {
        let release = format!("fence.proxy.tensormap::generic.release.{scope};\n");
        let text = format!("{}{release}{}", replaced(space, "%d10", FIELDS), acquire("gpu"));
        let row = row(&text, &used("8, 0", 32)).gives(0, &expected());
        rows.push(row.without(&release, "tensor-map-not-acquired").without(&acquire("gpu"), "tensor-map-not-acquired"));
    }
    let text = format!("{}{}{}", replaced("", "%d11", FIELDS), publish("gpu"), acquire("gpu"));
    rows.push(row(&text, &used("8, 0", 32)).gives(0, &expected()));
    // One field of a map that the host has made: its rows 2 and 3, with a swizzle of 32 bytes and NaN outside.
    let host = map(Element::F16, &[16, 4], &[8, 2], Swizzle::None);
    let copied = "mov.u32 %r20, smem; mov.u32 %r22, 0;\nCOPY:\ncvt.u64.u32 %d12, %r22; add.s64 %d12, %d6, %d12; ld.b32 %r23, [%d12]; add.u32 %r24, %r20, %r22; \
                  @%p1 st.shared.b32 [%r24], %r23; add.u32 %r22, %r22, 4; setp.lt.u32 %p3, %r22, 128; @%p3 bra COPY;\nbar.warp.sync 0xffffffff;\n";
    let word = |first: u64| (0..4).fold(0, |word, n| word | (first + n) << (16 * n));
    let moved = "add.s64 %d7, %d7, 64;\n@%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [smem], %d7;\nbar.warp.sync 0xffffffff;\n";
    let text = format!("{moved}{}{}", publish("gpu"), acquire("gpu"));
    rows.push(
        bare(32, &text)
            .around(copied, &used("8, 0", 32))
            .around(BEGIN, "")
            .input(numbered(64))
            .map(host.clone(), false)
            .gives(0, &[word(41), word(45), word(57), word(61)]),
    );
    // The first half of such a map is all that a copy looks at: nothing writes the other.
    let half = copied.replace("%r22, 128", "%r22, 64");
    rows.push(
        bare(32, &text)
            .around(&half, &used("8, 0", 32))
            .around(&BEGIN.replace("st.shared.b32 [%r20], 0;", ""), "")
            .input(numbered(64))
            .map(host.clone(), false)
            .gives(0, &[word(41), word(45), word(57), word(61)]),
    );
    rows.extend(findings());
    rows
}

/// What is wrong with a map is found at the copy that uses it; what a field has no room for, where it is written.
fn findings() -> Vec<Row> {
    let whole = format!("{}{}{}", replaced(".shared::cta", "smem", FIELDS), publish("gpu"), acquire("gpu"));
    let row = row(&whole, &used("8, 0", 32)).gives(0, &expected());
    vec![
        row.clone()
            // Half a map.
            .without("st.shared.b32 [%r20], 0;", "tensor-map")
            // No map in global memory at all.
            .without(&publish("gpu"), "tensor-map")
            // Another rank than the copy's, a box that is no multiple of 16 bytes, an address and an interleave that there are not.
            .with("rank.shared::cta.b1024.b32 [smem], 1", "rank.shared::cta.b1024.b32 [smem], 2", "tensor-map")
            .with("[smem], 0, 8;", "[smem], 0, 4;", "tensor-map")
            .with(
                "interleave_layout.shared::cta.b1024.b32 [smem], 0",
                "interleave_layout.shared::cta.b1024.b32 [smem], 1",
                "tensor-map",
            )
            .with("[smem], %d7", "[smem], 24", "tensor-map")
            .with("[smem], 1, 2;", "[smem], 1, 9;", "tensor-map")
            .with(
                "global_stride.shared::cta.b1024.b64 [smem], 0, 32",
                "global_stride.shared::cta.b1024.b64 [smem], 0, 24",
                "tensor-map",
            )
            .with("rank.shared::cta.b1024.b32 [smem], 1", "rank.shared::cta.b1024.b32 [smem], 7", "tensor-map")
            // Outside of shared memory, misaligned, in a parameter.
            .with(
                "interleave_layout.shared::cta.b1024.b32 [smem]",
                "interleave_layout.shared::cta.b1024.b32 [smem+65536]",
                "out-of-bounds",
            )
            .with(
                "interleave_layout.shared::cta.b1024.b32 [smem]",
                "interleave_layout.shared::cta.b1024.b32 [smem+32]",
                "misaligned-address",
            )
            .with("[%d10], [%r21], 128", "[%d10+16], [%r21], 128", "misaligned-address")
            .with("interleave_layout.shared::cta.b1024.b32 [smem]", "interleave_layout.b1024.b32 [%d6]", "tensor-map")
            // One lane alone, or each its own map.
            .with("tensormap.cp_fenceproxy", "@%p1 tensormap.cp_fenceproxy", "aligned-lanes-missing")
            .with(
                "fence.proxy.tensormap::generic.acquire.gpu [%d10]",
                "fence.proxy.tensormap::generic.acquire.gpu [%d6]",
                "tensor-map",
            )
            .with(
                "fence.proxy.tensormap::generic.acquire.gpu [%d10]",
                "fence.proxy.tensormap::generic.acquire.gpu [%d8]",
                "tensor-map-not-acquired",
            )
            // Another warp's lanes, of which nothing tells.
            .with(
                "@%p1 tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [smem], 1;",
                "@%p1 mov.u32 %r1, %r50;\n@%p1 tensormap.replace.tile.rank.shared::cta.b1024.b32 [smem], %r1;",
                "undefined-operand",
            ),
    ]
}

#[test]
fn values() {
    check(&rows());
}
