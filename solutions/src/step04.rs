//! Step 4: the copies are made by TMA. One thread asks for whole tiles, the engine brings them and counts their bytes
//! on an mbarrier; the way back goes through a swizzled tile of D. TMA knows the shape of the matrices, so that the
//! last tiles may be partial: what lies outside comes as zeros and is not written.

use ptx::prelude::*;

/// Rows of a tile of D and of A.
const BLK_M: u32 = 128;
const _: () =
    assert!(BLK_M == 128, "an MMA has 64 or 128 rows; with 128, row i of the tile is lane i of tensor memory");
/// Columns of a tile of D, rows of a tile of B.
const BLK_N: u32 = 128;
const _: () = assert!(BLK_N.is_power_of_two() && BLK_N >= 32, "tensor memory comes in 32, 64, 128, 256, 512 columns");
/// Columns of the tiles of A and B.
const BLK_K: u32 = 64;
const _: () = assert!(BLK_K * 2 == 128, "a row of a tile fills a row of the 128-byte swizzle");
/// Columns of A and B that one MMA takes.
const MMA_K: u32 = 16;
/// Columns of D that a thread reads from tensor memory at once, and that are stored at once.
const EPI_N: u32 = 64;
const _: () = assert!(EPI_N * 2 == 128, "a row of the tile of D fills a row of the 128-byte swizzle");
/// Threads of the CTA: four warps.
const THREADS: u32 = 128;
const _: () =
    assert!(THREADS == BLK_M, "each thread writes a row of the tile: a warp reads its own 32 lanes of the 128");
/// Elements in the 16 bytes that a thread moves at once.
const CHUNK: u32 = 8;

/// The kernel of step 4.
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.require(gemm.n.is_multiple_of(8) && gemm.k.is_multiple_of(8), "step 4 solves N and K that are multiples of 8");
    k.threads(THREADS);
    let a = k.tile("A", gemm.dtype, BLK_M, BLK_K, Swizzle::B128);
    let b = k.tile("B", gemm.dtype, BLK_N, BLK_K, Swizzle::B128);
    let d = k.tile_ring("D", BLK_N / EPI_N, gemm.dtype, BLK_M, EPI_N, Swizzle::B128);
    let tma2mma = TmaBarrier::new(k, "tma2mma");
    let mma_done = CommitBarrier::new(k, "mma_done");

    let tmem = k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(tma2mma, 1);
            t.barrier_init(mma_done, 1);
            t.fence_mbarrier_init();
        });
        w.tmem_alloc("accumulator", BLK_N)
    });
    k.sync();
    let accumulator = tmem.address(k);

    // The first row and column of this CTA's tile of D.
    let (m_start, n_start): (U32, U32) = (k.variable(0), k.variable(0));
    // TODO 4.1: Launch a CTA for each tile of D, and assign where its tile begins, as in step 3.
    // book: a grid of CTAs
    // ANCHOR: todo_4_1
    k.grid(gemm.tiles_m(BLK_M), gemm.tiles_n(BLK_N));
    let (tile_row, tile_column) = (k.cta_x(), k.cta_y());
    k.assign(m_start, tile_row * BLK_M);
    k.assign(n_start, tile_column * BLK_N);
    // ANCHOR_END: todo_4_1

    // One thread loads and multiplies; the others wait for it below.
    k.warp(0, |w| {
        w.elect_one(|t| {
            t.repeat(gemm.tiles_k(BLK_K), |t, round| {
                // TODO 4.2: Announce the bytes of both tiles to tma2mma, then ask TMA for them: the boxes begin at
                // the round's first column, in A at row `m_start`, in B at row `n_start`. book: TMA and tensor maps
                // ANCHOR: todo_4_2
                t.expect_tx(tma2mma, a.bytes() + b.bytes());
                t.tma_load(a, &gemm.a, (round * BLK_K, m_start), tma2mma);
                t.tma_load(b, &gemm.b, (round * BLK_K, n_start), tma2mma);
                // ANCHOR_END: todo_4_2
                // TODO 4.3: Wait until both tiles have come: each round is a phase. Keep the MMAs behind the wait (a
                // fence of tcgen05). book: TMA and tensor maps
                // ANCHOR: todo_4_3
                t.wait(tma2mma, round & 1);
                t.tcgen05_fence_after();
                // ANCHOR_END: todo_4_3
                // TODO 4.4: Multiply the tiles, commit, and wait for the end of the MMAs: the next round writes over
                // the tiles. As in step 3, but by this thread alone. book: a loop over K
                // ANCHOR: todo_4_4
                for slice in 0..BLK_K / MMA_K {
                    let accumulate = (round + slice).gt(0);
                    t.mma(accumulator, a.k_slice(slice * MMA_K), b.k_slice(slice * MMA_K), accumulate);
                }
                t.commit(mma_done);
                t.wait(mma_done, round & 1);
                // ANCHOR_END: todo_4_4
            });
        });
    });

    // TODO 4.5: Let all threads hear that the product is complete: a CTA barrier after the thread above has waited, and
    // the fences of tcgen05 on both sides of it. book: tensor memory
    // ANCHOR: todo_4_5
    k.tcgen05_fence_before();
    k.sync();
    k.tcgen05_fence_after();
    // ANCHOR_END: todo_4_5

    // TODO 4.6: Bring the sums to the tiles of D in shared memory, EPI_N columns to each: load the thread's row, wait,
    // round, and store 16 bytes at once where the swizzle puts them. book: the way back
    // ANCHOR: todo_4_6
    let row = k.thread_index();
    for part in 0..BLK_N / EPI_N {
        let sums = k.tmem_load::<{ EPI_N as usize }>(accumulator.columns(part * EPI_N, EPI_N).lane(row / 32 * 32));
        k.tmem_wait_load();
        for (chunk, column) in k.pack_chunks(gemm.dtype, &sums).into_iter().zip((0..).step_by(CHUNK as usize)) {
            k.store_shared_16(d.at(part).at(row, column), chunk);
        }
    }
    // ANCHOR_END: todo_4_6

    // TODO 4.7: Let TMA see what the threads stored, and let all threads meet; then one thread asks TMA to store both
    // tiles, makes a group of these stores, and waits until the engine has read the tiles (`bulk_commit`,
    // `bulk_wait_read`). book: the way back
    // ANCHOR: todo_4_7
    k.fence_proxy_async();
    k.sync();
    k.warp(0, |w| {
        w.elect_one(|t| {
            for part in 0..BLK_N / EPI_N {
                t.tma_store(d.at(part), &gemm.d, (n_start + part * EPI_N, m_start));
            }
            t.bulk_commit();
            t.bulk_wait_read(0);
        });
    });
    // ANCHOR_END: todo_4_7

    // TODO 4.8: Free tensor memory when no thread reads it any more, as in step 3. book: tensor memory
    // ANCHOR: todo_4_8
    k.tcgen05_fence_before();
    k.sync();
    k.warp(0, |w| w.tmem_dealloc(tmem));
    // ANCHOR_END: todo_4_8
}
