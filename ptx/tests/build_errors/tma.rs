//! TMA, tiles that are dealt out, problems without elements.

use super::check;
use expect_test::expect;
use ptx::prelude::*;

#[test]
fn tiles_dealt_out() {
    check(
        |k, _| {
            k.threads(128);
            for tiles in [
                TileScheduler::new(0, 4, 4),
                TileScheduler::new(4, 0, 4),
                TileScheduler::new(4, 4, 0),
                TileScheduler::new(u32::MAX, u32::MAX, u32::MAX),
                TileScheduler::new(1 << 16, 1 << 16, 1),
                TileScheduler::new(1, 1, u32::MAX),
            ] {
                tiles.each(k, 0, |k, _, _| k.sync());
            }
            TileScheduler::new(2, 2, 4).each(k, 4, |k, _, _| k.sync());
        },
        expect![[r#"
            +4: 0 x 4 tiles cannot be dealt out to 4 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +5: 4 x 0 tiles cannot be dealt out to 4 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +6: 4 x 4 tiles cannot be dealt out to 0 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +7: 4294967295 x 4294967295 tiles cannot be dealt out to 4294967295 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +8: 65536 x 65536 tiles cannot be dealt out to 1 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +9: 1 x 1 tiles cannot be dealt out to 4294967295 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +13: worker 4 does not exist: tiles are dealt out to 4
                Use a worker from 0 to 3.
        "#]],
    );
}

#[test]
fn tma() {
    let unaligned = Gemm::new(128, 128, 60, Dtype::F16, 148);
    let long = Gemm::new((1 << 31) + 8, 128, 64, Dtype::F16, 148);
    check(
        |k, gemm| {
            k.threads(128);
            let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
            let other = k.tile("other", Dtype::Bf16, 128, 64, Swizzle::B128);
            let tall = k.tile("tall", gemm.dtype, 264, 64, Swizzle::B128);
            let wide = k.tile("wide", gemm.dtype, 8, 264, Swizzle::None);
            let full = TmaBarrier::new(k, "full");
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.tma_load(other, &gemm.a, (0, 0), full);
                    t.tma_load(a, &unaligned.a, (0, 0), full);
                    t.tma_store(tall, &gemm.d, (0, 0));
                    t.tma_store(wide, &gemm.d, (0, 0));
                    t.tma_load(a, &gemm.a, (4, 0), full);
                    t.tma_store(a, &gemm.d, (0, 1 << 31));
                    t.tma_load(a, &long.a, (0, 0), full);
                    t.expect_tx(full, 0);
                });
            });
        },
        expect![[r#"
            +10: tile "other" holds bf16, and matrix A f16
                Make the tile of the matrix's type.
            +11: rows of matrix A have 120 bytes: a tensor map needs a multiple of 16
                Use a multiple of 8 columns.
            +12: tile "tall" has 264 x 64 elements: a box of TMA has at most 256 in each direction
                Move it in several boxes, or use a smaller tile.
            +13: tile "wide" has 8 x 264 elements: a box of TMA has at most 256 in each direction
                Move it in several boxes, or use a smaller tile.
            +14: a box of TMA cannot begin at column 4 of matrix A: byte 8, not a multiple of 16
                Use a multiple of 8 columns.
            +15: TMA has no row 2147483648: it counts in signed 32-bit integers
                Use a row of matrix D.
            +16: matrix A has 2147483656 rows: TMA counts in signed 32-bit integers
                Use at most 2147483648 rows.
            +17: a phase of an mbarrier cannot expect 0 bytes
                Use the bytes that the copies of the phase bring, from 1 to 1048575.
        "#]],
    );
}

/// Refused before the kernel's function is run: it need not think of it.
#[test]
fn empty_problems() {
    for (m, n, k, sms) in [(0, 128, 64, 148), (128, 0, 64, 148), (128, 128, 0, 148), (128, 128, 64, 0)] {
        let gemm = Gemm::new(m, n, k, Dtype::F16, sms);
        let line = line!() + 1;
        let errors = ptx::build("kernel", &gemm, |_, _| unreachable!()).expect_err("it is refused");
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        assert_eq!((error.place.file, error.place.line), (file!(), line));
        let problem = format!("there is nothing to compute in a problem of {m}x{n}x{k} f16 on {sms} SMs");
        assert_eq!(
            (error.message.as_str(), error.help.as_str()),
            (&*problem, "Use 1 or more for M, N, K and the SMs.")
        );
    }
}
