//! Bulk copies: loads and stores of boxes and of plain bytes, reductions, multicast, groups.

use crate::row::{Row, bare, check, each};
use crate::tma_layout::{dump, load, map, numbered, word};
use emulator::{Element, Swizzle, TensorMap};

pub fn rows() -> Vec<Row> {
    let mut rows = loads();
    rows.extend(stores());
    rows.extend(reductions());
    rows.extend(plain_reductions());
    rows.extend(plain());
    rows.extend(clusters());
    rows
}

/// Rows of 8 elements and so many dimensions of 2 behind them.
fn blocks(rank: usize) -> (TensorMap, String) {
    let mut dims = vec![8u64];
    dims.extend(vec![2; rank - 1]);
    let mut extent = vec![8u32];
    extent.extend(vec![1; rank - 1]);
    (map(Element::F16, &dims, &extent, Swizzle::None), vec!["0"; rank].join(", "))
}

const POLICY: &str = "createpolicy.fractional.L2::evict_first.b64 %d5, 1.0;\n";

/// Each way to write a load of the first row: 1 … 8.
fn loads() -> Vec<Row> {
    let form =
        "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [smem], [%d6, {0}], [bar];";
    let expected = [word([1, 2, 3, 4]), word([5, 6, 7, 8])];
    let mut rows = Vec::new();
    for rank in 1..=5 {
        let (map, at) = blocks(rank);
        for written in [
            format!(
                "cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%d6, {{{at}}}], [%r21];"
            ),
            format!(
                "cp.async.bulk.tensor.{rank}d.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [smem], [%d6, {{{at}}}], [bar], %d5;"
            ),
            format!(
                "cp.async.bulk.tensor.{rank}d.shared::cta.global.tile.mbarrier::complete_tx::bytes.cta_group::1 [smem], [%d6, {{{at}}}], [bar];"
            ),
            format!(
                "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::1 [%r20], [%d6, {{{at}}}], [%r21];"
            ),
            format!(
                "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [%d6, {{{at}}}];\ncp.async.bulk.prefetch.tensor.{rank}d.L2.global.L2::cache_hint [%d6, {{{at}}}], %d5;\n{}",
                form.replace("1d", &format!("{rank}d")).replace("{0}", &format!("{{{at}}}"))
            ),
        ] {
            rows.push(
                load(1, "0", 16, 2)
                    .replaced(form, &written)
                    .around(&format!("{POLICY}mov.u32 %r20, smem; mov.u32 %r21, bar;"), "")
                    .input(numbered(8 << (rank - 1)))
                    .map(map.clone(), false)
                    .gives(0, &expected),
            );
        }
    }
    rows
}

/// 16 bytes of shared memory: 1 … 8 as 16-bit elements.
const FILL: &str = "st.shared.v4.b32 [smem], {0x20001, 0x40003, 0x60005, 0x80007};\nfence.proxy.async.shared::cta;\n";
const DONE: &str = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";

fn stores() -> Vec<Row> {
    let mut rows = Vec::new();
    let expected = [word([1, 2, 3, 4]), word([5, 6, 7, 8])];
    for rank in 1..=5 {
        let (map, _) = blocks(rank);
        // The last row of the tensor.
        let at: Vec<&str> = (0..rank).map(|d| if d == 0 { "0" } else { "1" }).collect();
        let at = at.join(", ");
        for written in [
            format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%d6, {{{at}}}], [smem];\n"),
            format!(
                "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group.L2::cache_hint [%d6, {{{at}}}], [smem], %d5;\n"
            ),
        ] {
            rows.push(
                bare(1, &format!("{POLICY}{FILL}{written}{DONE}"))
                    .map(map.clone(), true)
                    .gives(2 * ((1 << (rank - 1)) - 1), &expected),
            );
        }
    }
    // What lies outside is not written: the box hangs over the last row.
    let over = map(Element::F16, &[8, 2], &[8, 2], Swizzle::None);
    let fill = "st.shared.v4.b32 [smem+16], {-1, -1, -1, -1};\nst.global.v2.b64 [%d8+32], {5, 6};\n";
    rows.push(
        bare(1, &format!("{fill}{FILL}cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d6, {{0, 1}}], [smem];\n{DONE}"))
            .map(over, true)
            .gives(2, &[expected[0], expected[1], 5, 6]),
    );
    // Swizzled, a store takes the chunks from where a load puts them: the second line's first chunk is the other one.
    let swizzled = map(Element::F16, &[16, 8], &[16, 8], Swizzle::B32);
    let second = "st.shared.v4.b32 [%r20+128], {1, 1, 1, 1};\nst.shared.v4.b32 [%r20+144], {2, 2, 2, 2};\n";
    let clear = "mov.u32 %r20, smem; mov.u32 %r21, 0;\nCLEAR:\nst.shared.b64 [%r20], 0; add.u32 %r20, %r20, 8; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, 32; @%p1 bra CLEAR;\nmov.u32 %r20, smem;\n";
    rows.push(
        bare(1, &format!("{clear}{second}fence.proxy.async.shared::cta;\ncp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d6, {{0, 0}}], [smem];\n{DONE}"))
            .map(swizzled, true)
            .gives(16, &[0x2_0000_0002, 0x2_0000_0002, 0x1_0000_0001, 0x1_0000_0001]),
    );
    // With `.read`, only the source is free again: it may be written, and the destination is complete at the end.
    let read = format!(
        "{FILL}cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d6, {{0}}], [smem];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\nst.shared.b32 [smem], 9;"
    );
    rows.push(
        bare(1, &read)
            .map(blocks(1).0, true)
            .gives(0, &expected)
            .without("cp.async.bulk.wait_group.read 0;\n", "race-shared"),
    );
    // The result itself is read only behind a wait for all of it.
    let see = format!(
        "{FILL}cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d6, {{0}}], [smem];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nld.global.b64 %d0, [%d8];\nst.global.b64 [%d8+64], %d0;"
    );
    rows.push(
        bare(1, &see)
            .map(blocks(1).0, true)
            .gives(8, &expected[..1])
            .with("wait_group 0", "wait_group 1", "race-global")
            .without("cp.async.bulk.commit_group;\n", "race-global"),
    );
    rows
}

/// What is in memory, what the kernel adds, and what is there then.
fn reductions() -> Vec<Row> {
    let minus = |n: u64| 0u64.wrapping_sub(n) & 0xffff_ffff;
    let list: &[(&str, Element, u64, u64, u64)] = &[
        ("add", Element::U32, 5, 7, 12),
        ("add", Element::S32, minus(5), 3, minus(2)),
        ("add", Element::U64, 1 << 40, 1, (1 << 40) + 1),
        ("add", Element::F32, 0x3f80_0000, 0x4000_0000, 0x4040_0000),
        // Sums of TF32 are not rounded to it.
        ("add", Element::Tf32, 0x3f80_0001, 0x3f80_0001, 0x4000_0001),
        ("add", Element::Tf32Ftz, 0x3f80_0001, 0x3f80_0001, 0x4000_0001),
        ("add", Element::F16, 0x3c00, 0x4000, 0x4200),
        ("add", Element::Bf16, 0x3f80, 0x4000, 0x4040),
        ("min", Element::U32, minus(1), 7, 7),
        ("min", Element::S32, minus(1), 7, minus(1)),
        ("min", Element::F16, 0x3c00, 0xbc00, 0xbc00),
        ("min", Element::S64, u64::MAX, 3, u64::MAX),
        ("max", Element::U32, minus(1), 7, minus(1)),
        ("max", Element::S32, minus(1), 7, 7),
        ("max", Element::U64, u64::MAX, 3, u64::MAX),
        ("max", Element::Bf16, 0x3f80, 0xbf80, 0x3f80),
        ("inc", Element::U32, 7, 7, 0),
        ("inc", Element::U32, 5, 7, 6),
        ("dec", Element::U32, 0, 7, 7),
        ("and", Element::U32, 0b1100, 0b1010, 0b1000),
        ("or", Element::U64, 0b1100, 0b1010, 0b1110),
        ("xor", Element::U32, 0b1100, 0b1010, 0b0110),
    ];
    let mut rows = Vec::new();
    for (n, &(what, element, old, add, new)) in list.iter().enumerate() {
        let rank = 1 + n % 5;
        let bits = 8 * element.bytes();
        let count = 128 / bits;
        // Every element of the 16 bytes is the same.
        let fill = |value: u64| (0..64 / bits).fold(0, |w, i| w | value << (bits * i));
        let mut dims = vec![u64::from(count)];
        dims.extend(vec![1; rank - 1]);
        let mut map = map(element, &dims, &vec![1; rank], Swizzle::None);
        map.box_dims[0] = count;
        let at = vec!["0"; rank].join(", ");
        let (tile, hint, policy) = [("", "", ""), (".tile", "", ""), (".tile", ".L2::cache_hint", ", %d5")][n % 3];
        let body = format!(
            "{POLICY}st.global.v2.b64 [%d8], {{{0:#x}, {0:#x}}};\nst.shared.v2.b64 [smem], {{{1:#x}, {1:#x}}};\nfence.proxy.async;\n\
             cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{what}{tile}.bulk_group{hint} [%d6, {{{at}}}], [smem]{policy};\n{DONE}",
            fill(old),
            fill(add)
        );
        let row = bare(1, &body).map(map, true).gives(0, &[fill(new), fill(new)]);
        // With another operation an illegal instruction.
        let refused = match (what, element) {
            ("add", Element::F32 | Element::Tf32 | Element::Tf32Ftz) => Some(".min"),
            ("add", Element::F16 | Element::Bf16) => Some(".or"),
            ("min" | "max", Element::S64) => Some(".add"),
            ("add", Element::S32 | Element::U64) => Some(".inc"),
            _ => None,
        };
        rows.push(match refused {
            Some(other) => row.with(&format!("cta.{what}"), &format!("cta{other}"), "tensor-map"),
            None => row,
        });
    }
    rows
}

/// The same without a tensor map: 16 bytes of elements that are all alike.
fn plain_reductions() -> Vec<Row> {
    let minus = |n: u64| 0u64.wrapping_sub(n);
    let low = |n: u64| n & 0xffff_ffff;
    let list = [
        ("add.u32", 32, 5, 7, 12),
        ("add.s32", 32, low(minus(5)), 3, low(minus(2))),
        ("add.u64", 64, 1 << 40, 1, (1 << 40) + 1),
        // 2^-149 + 2^-149 and 1 + 2.
        ("add.f32", 32, 1, 1, 2),
        ("add.f64", 64, 1.0f64.to_bits(), 2.0f64.to_bits(), 3.0f64.to_bits()),
        ("add.noftz.f16", 16, 0x3c00, 0x4000, 0x4200),
        ("add.noftz.bf16", 16, 0x0001, 0x0001, 0x0002),
        ("min.u32", 32, 9, 7, 7),
        ("min.s32", 32, 9, low(minus(7)), low(minus(7))),
        ("min.u64", 64, minus(1), 3, 3),
        ("min.s64", 64, minus(1), 3, minus(1)),
        ("min.f16", 16, 0, 0x8000, 0x8000),
        ("min.bf16", 16, 0x3f80, 0xbf80, 0xbf80),
        ("max.u32", 32, 9, 7, 9),
        ("max.s32", 32, 9, low(minus(7)), 9),
        ("max.u64", 64, minus(1), 3, minus(1)),
        ("max.s64", 64, minus(1), 3, 3),
        ("max.f16", 16, 0x3c00, 0x7e00, 0x3c00),
        ("max.bf16", 16, 0x8000, 0, 0),
        ("inc.u32", 32, 5, 7, 6),
        ("dec.u32", 32, 0, 7, 7),
        ("and.b32", 32, 0b1100, 0b1010, 0b1000),
        ("and.b64", 64, minus(1), 1 << 40, 1 << 40),
        ("or.b32", 32, 0b1100, 0b1010, 0b1110),
        ("or.b64", 64, 1, 1 << 40, 1 << 40 | 1),
        ("xor.b32", 32, 0b1100, 0b1010, 0b0110),
        ("xor.b64", 64, minus(1), minus(1), 0),
    ];
    let rows = list.into_iter().enumerate().map(|(n, (what, bits, old, add, new))| {
        let fill = |value: u64| (0..64 / bits).fold(0, |w, i| w | value << (bits * i));
        let (hint, policy) = [("", ""), (".L2::cache_hint", ", %d5")][n % 2];
        let body = format!(
            "{POLICY}st.global.v2.b64 [%d8], {{{0:#x}, {0:#x}}};\nst.shared.v2.b64 [smem], {{{1:#x}, {1:#x}}};\nfence.proxy.async;\n\
             cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}.{what} [%d8], [smem], 16{policy};\n{DONE}",
            fill(old),
            fill(add)
        );
        bare(1, &body)
            .gives(0, &[fill(new), fill(new)])
            .without("cp.async.bulk.wait_group 0;\n", "bulk-store-outlives-thread")
    });
    rows.collect()
}

fn plain() -> Vec<Row> {
    let input: Vec<u8> = (0..64).collect();
    let expected = [0x1716_1514_1312_1110, 0x1f1e_1d1c_1b1a_1918, 0x2726_2524_2322_2120];
    let load = |form: &str| {
        let body = format!(
            "{POLICY}mov.u32 %r20, smem; mov.u32 %r21, bar; add.s64 %d4, %d7, 16;\nmbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;\n{form}\n\
             WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra WAIT;"
        );
        bare(1, &body).around("", &dump(3)).input(input.clone()).gives(0, &expected)
    };
    let store = |form: &str| {
        let body = format!("{POLICY}{FILL}{form}\n{DONE}");
        bare(1, &body)
            .gives(0, &[word([1, 2, 3, 4]), word([5, 6, 7, 8])])
            .without("cp.async.bulk.wait_group 0;\n", "bulk-store-outlives-thread")
    };
    // Bytes whose bit is not set stay 0; of both 16, the same.
    let masked = |form: &str, mask: u16, bytes: u64| {
        let kept =
            |word: u64, mask: u16| word & (0..8).fold(0, |all, n| all | (0xff * u64::from(mask >> n & 1)) << (8 * n));
        let words = [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [5, 6, 7, 8]].map(word);
        let expected: Vec<u64> =
            words.iter().zip([mask, mask >> 8].iter().cycle()).map(|(&w, &mask)| kept(w, mask)).collect();
        let expected = &expected[..bytes as usize / 8];
        let again = format!("st.shared.v2.b64 [smem+16], {{{:#x}, {:#x}}};\n", words[0], words[1]);
        let body = format!("{POLICY}{again}{FILL}mov.b16 %h1, {mask:#x};\n{form}\n{DONE}");
        bare(1, &body).gives(0, expected).without("cp.async.bulk.wait_group 0;\n", "bulk-store-outlives-thread")
    };
    // The last bytes of the source are not there, or the first ones are not wanted.
    let ignoring = |form: &str| {
        let body = format!(
            "{POLICY}mov.u32 %r20, 8; add.s64 %d4, %d7, 16;\nmbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;\n{form}\n\
             WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra WAIT;\n"
        );
        bare(1, &body).around("", &dump(3)).input(input[..40].to_vec()).gives(0, &expected)
    };
    vec![
        masked("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d8], [smem], 16, %h1;", 0xa00f, 16),
        masked("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d8], [smem], 32, %h1;", 0x7ffe, 32),
        masked("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [%d8], [smem], 16, %d5, %h1;", 0xffff, 16),
        masked("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d8], [smem], 16, %h1;", 0, 16),
        ignoring("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [smem], [%d4], 32, 0, 8, [bar];")
            .with("32, 0, 8", "32, 0, 7", "out-of-bounds")
            .with("32, 0, 8", "32, 1, 8", "undefined-value-stored")
            .with("32, 0, 8", "32, 0, 9", "undefined-value-stored"),
        ignoring(
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint.ignore_oob [smem], [%d4], 32, 0, %r20, [bar], %d5;",
        )
        .with("mov.u32 %r20, 8;", "mov.u32 %r20, 16;", "bulk-size"),
        load("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem], [%d4], 32, [bar];"),
        load(
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [smem], [%d4], 32, [bar], %d5;",
        ),
        load("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%d4], 32, [%r21];"),
        load(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r20], [%d4], 32, [%r21], %d5;",
        ),
        load(
            "cp.async.bulk.prefetch.L2.global [%d7], 64;\ncp.async.bulk.prefetch.L2.global.L2::cache_hint [%d7], 64, %d5;\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem], [%d4], 32, [bar];",
        ),
        store("cp.async.bulk.global.shared::cta.bulk_group [%d8], [smem], 16;"),
        store("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%d8], [smem], 16, %d5;"),
    ]
}

const MEET: &str = "barrier.cluster.arrive; barrier.cluster.wait;";

fn clusters() -> Vec<Row> {
    let init = format!(
        "mov.u32 %r20, smem; mov.u32 %r21, bar;\nmbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\n{MEET}"
    );
    let wait = "WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra WAIT;\nld.shared.b64 %d0, [smem];\n\
                st.global.b64 [%d9], %d0;";
    let first = word([1, 2, 3, 4]);
    let mut rows = Vec::new();
    // Rank 1 loads for ranks 0 and 2, at the same offset, and each one's own barrier gets the bytes.
    for rank in 1..=5 {
        let (map, at) = blocks(rank);
        for (form, policy) in [("", ""), (".L2::cache_hint", ", %d5")] {
            let body = format!(
                "{POLICY}setp.eq.u32 %p2, %r97, 1;\nsetp.ne.u32 %p3, %r97, 1;\n@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\nmov.b16 %h1, 5;\n\
                 @%p2 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster{form} [%r20], [%d6, {{{at}}}], [%r21], %h1{policy};\n\
                 @%p2 bra END;\n{wait}\nEND:"
            );
            rows.push(
                bare(1, &body)
                    .ctas(3, 3)
                    .map(map.clone(), false)
                    .input(numbered(8 << (rank - 1)))
                    .gives(0, &[first, 0, first])
                    .around(&init, MEET)
                    .with("mov.b16 %h1, 5;", "mov.b16 %h1, 8;", "multicast-mask"),
            );
        }
        // A pair: both load, and the bytes of both count on the even CTA's barrier.
        for (space, form, end) in [
            ("cluster", ".cta_group::2", ""),
            ("cluster", ".cta_group::2.L2::cache_hint", ", %d5"),
            ("cta", ".cta_group::2", ""),
        ] {
            let body = format!(
                "{POLICY}setp.eq.u32 %p2, %r97, 0;\n@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;\nand.b32 %r21, %r21, 0xfeffffff;\n\
                 cp.async.bulk.tensor.{rank}d.shared::{space}.global.tile.mbarrier::complete_tx::bytes{form} [%r20], [%d6, {{{at}}}], [%r21]{end};\n\
                 @!%p2 bra END;\n{wait}\nEND:"
            );
            rows.push(
                bare(1, &body)
                    .ctas(2, 2)
                    .map(map.clone(), false)
                    .input(numbered(8 << (rank - 1)))
                    .gives(0, &[first])
                    .around(&init, MEET)
                    .with("_, [bar], 32", "_, [bar], 48", "hang"),
            );
        }
    }
    // Plain bytes to all of a mask, and from one CTA's shared memory to another's.
    for (form, policy) in [("", ""), (".L2::cache_hint", ", %d5")] {
        let body = format!(
            "{POLICY}mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\nsetp.eq.u32 %p2, %r97, 0;\nmov.b16 %h1, 3;\n\
             @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster{form} [%r20], [%d7], 16, [%r21], %h1{policy};\n{wait}"
        );
        rows.push(bare(1, &body).ctas(2, 2).input(numbered(8)).gives(0, &[first, first]).around(&init, MEET));
    }
    let body = format!(
        "setp.eq.u32 %p2, %r97, 1;\n@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n@%p2 bra WAIT;\n\
         st.shared.v4.b32 [smem+64], {{0x20001, 0x40003, 0x60005, 0x80007}};\nfence.proxy.async.shared::cta;\n\
         mapa.shared::cluster.u32 %r22, %r20, 1;\nmapa.shared::cluster.u32 %r23, %r21, 1;\n\
         cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r22], [smem+64], 16, [%r23];\nbra END;\n{wait}\nEND:"
    );
    rows.push(bare(1, &body).ctas(2, 2).gives(1, &[first]).around(&init, MEET).with(
        "[smem+64], 16, [%r23]",
        "[smem+64], 32, [%r23]",
        "hang",
    ));
    // Each of 32 lanes that executes a copy makes one: 32 times the bytes.
    rows.push(
        each(32, "setp.eq.u32 %p2, %r98, 0;\n@%p2 mbarrier.init.shared::cta.b64 [bar], 1;\nbar.warp.sync -1;\n@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\nbar.warp.sync -1;\n\
                  shl.b32 %r20, %r98, 4;\nmov.u32 %r21, smem;\nadd.u32 %r20, %r20, %r21;\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r20], [%d7], 16, [bar];\n\
                  WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra WAIT;\nld.shared.b32 %r0, [%r20+4];", |_| 0x40003)
            .input(numbered(8)),
    );
    rows
}

#[test]
fn values() {
    check(&rows());
}
