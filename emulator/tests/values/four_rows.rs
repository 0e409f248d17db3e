//! Copies of four rows that are no neighbours: `.tile::gather4`, `.tile::scatter4` (PTX ISA 5.5.3.4).

use crate::row::{Row, bare, check};
use crate::tma_layout::{load, map, numbered, word};
use emulator::{Element, Swizzle};

const POLICY: &str = "createpolicy.fractional.L2::evict_first.b64 %d5, 1.0;\n";
const MEET: &str = "barrier.cluster.arrive; barrier.cluster.wait;";

/// Row `n` of a matrix of 8 columns whose elements number themselves from 1.
fn row(n: u64) -> [u64; 2] {
    [0, 4].map(|half| word([1, 2, 3, 4].map(|e| 8 * n + half + e)))
}

pub fn rows() -> Vec<Row> {
    let mut rows = gathered();
    rows.extend(in_clusters());
    rows.extend(scattered());
    rows
}

/// Rows 3, 0, one beyond the matrix, which is filled with zeros, and 3 again.
fn gathered() -> Vec<Row> {
    let matrix = map(Element::F16, &[8, 6], &[8, 1], Swizzle::None);
    let expected = [row(3), row(0), [0, 0], row(3)].concat();
    let tile = "global.tile.mbarrier::complete_tx::bytes [smem], [%d6, {0, 3, 0, 9, 3}], [bar];";
    let mut rows = Vec::new();
    for (before, form, end) in [
        ("", "", ""),
        ("", ".cta_group::1", ""),
        ("", ".L2::cache_hint", ", %d5"),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%d6, {0, 3, 0, 9, 3}];\n", "", ""),
        (
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4.L2::cache_hint [%d6, {0, 3, 0, 9, 3}], %d5;\n",
            "",
            "",
        ),
    ] {
        let written = format!(
            "global.tile::gather4.mbarrier::complete_tx::bytes{form} [smem], [%d6, {{0, 3, 0, 9, 3}}], [bar]{end};"
        );
        rows.push(
            load(2, "0, 3, 0, 9, 3", 64, 8)
                .replaced(tile, &written)
                .around(&format!("{POLICY}{before}"), "")
                .replaced("cp.async.bulk.tensor", &format!("{before}cp.async.bulk.tensor"))
                .input(numbered(48))
                .map(matrix.clone(), false)
                .gives(0, &expected)
                .with("_, [bar], 64", "_, [bar], 80", "hang"),
        );
    }
    // In the second line of 128 bytes, the two chunks of each row of 32 bytes are exchanged.
    let swizzled = map(Element::F16, &[16, 4], &[16, 1], Swizzle::B32);
    let exchanged: Vec<u64> = [2, 1, 0, 3].into_iter().flat_map(|n| [row(2 * n + 1), row(2 * n)].concat()).collect();
    rows.push(
        load(2, "0, 2, 1, 0, 3", 128, 32)
            .replaced("global.tile.", "global.tile::gather4.")
            .replaced("[smem]", "[smem+128]")
            .around("mov.u32 %r20, smem; mov.u32 %r21, 0;\nCLEAR:\nst.shared.b64 [%r20], 0; add.u32 %r20, %r20, 8; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, 16; @%p1 bra CLEAR;\n", "")
            .input(numbered(64))
            .map(swizzled, false)
            .gives(16, &exchanged),
    );
    rows
}

fn in_clusters() -> Vec<Row> {
    let matrix = map(Element::F16, &[8, 6], &[8, 1], Swizzle::None);
    let init = format!(
        "mov.u32 %r20, smem; mov.u32 %r21, bar;\nmbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\n{MEET}"
    );
    let wait = "WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra WAIT;\nld.shared.b64 %d0, [smem+16];\n\
                st.global.b64 [%d9], %d0;";
    let copy = "cp.async.bulk.tensor.2d.shared";
    let gather = "global.tile::gather4.mbarrier::complete_tx::bytes";
    let mut rows = Vec::new();
    // Of one CTA, by either name of its group.
    for form in ["", ".cta_group::1"] {
        let body = format!(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;\n{copy}::cluster.{gather}{form} [%r20], [%d6, {{0, 3, 5, 0, 3}}], [%r21];\n{wait}"
        );
        rows.push(
            bare(1, &body).map(matrix.clone(), false).input(numbered(48)).gives(0, &row(5)[..1]).around(&init, ""),
        );
    }
    // Rank 1 loads for ranks 0 and 2.
    for (form, policy) in [("", ""), (".L2::cache_hint", ", %d5")] {
        let body = format!(
            "{POLICY}setp.eq.u32 %p2, %r97, 1;\nsetp.ne.u32 %p3, %r97, 1;\n@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;\nmov.b16 %h1, 5;\n\
             @%p2 {copy}::cluster.{gather}.multicast::cluster{form} [%r20], [%d6, {{0, 3, 5, 0, 3}}], [%r21], %h1{policy};\n\
             @%p2 bra END;\n{wait}\nEND:"
        );
        rows.push(
            bare(1, &body)
                .ctas(3, 3)
                .map(matrix.clone(), false)
                .input(numbered(48))
                .gives(0, &[row(5)[0], 0, row(5)[0]])
                .around(&init, MEET),
        );
    }
    // A pair: both load, and the bytes of both count on the even CTA's barrier.
    for (space, form, end) in [("cluster", "", ""), ("cta", "", ""), ("cluster", ".L2::cache_hint", ", %d5")] {
        let body = format!(
            "{POLICY}setp.eq.u32 %p2, %r97, 0;\n@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;\nand.b32 %r21, %r21, 0xfeffffff;\n\
             {copy}::{space}.{gather}.cta_group::2{form} [%r20], [%d6, {{0, 3, 5, 0, 3}}], [%r21]{end};\n\
             @!%p2 bra END;\n{wait}\nEND:"
        );
        rows.push(
            bare(1, &body)
                .ctas(2, 2)
                .map(matrix.clone(), false)
                .input(numbered(48))
                .gives(0, &row(5)[..1])
                .around(&init, MEET),
        );
    }
    rows
}

/// To rows 5, 0, one beyond the matrix, which goes nowhere, and 2.
fn scattered() -> Vec<Row> {
    let matrix = map(Element::F16, &[8, 6], &[8, 1], Swizzle::None);
    let fill: String = (0..8)
        .map(|n| format!("mov.b64 %d0, {:#x};\nst.shared.b64 [smem+{}], %d0;\n", row(n / 2)[n as usize % 2], 8 * n))
        .collect();
    let mut rows = Vec::new();
    for (form, policy) in [("", ""), (".L2::cache_hint", ", %d5")] {
        let body = format!(
            "{POLICY}{fill}fence.proxy.async.shared::cta;\n\
             cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group{form} [%d6, {{0, 5, 0, 7, 2}}], [smem]{policy};\n\
             cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
        );
        rows.push(
            bare(1, &body)
                .map(matrix.clone(), true)
                .gives(0, &[row(1), [0, 0], row(3), [0, 0], [0, 0], row(0), [0, 0], [0, 0]].concat())
                .with("{0, 5, 0, 7, 2}", "{0, 5, 0, 7, -2}", "tensor-coordinate")
                .without("fence.proxy.async.shared::cta;\n", "missing-proxy-fence"),
        );
    }
    rows
}

#[test]
fn values() {
    check(&rows());
}
