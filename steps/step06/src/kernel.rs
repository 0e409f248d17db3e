// Your file for step 6. Each `todo("6.n")` below waits for your code: the comment above it says what it does
// and what to read in the book. Delete the `todo` when the code stands.
//
//     cargo test -p step06           says what is done, what is wrong, and what comes next
//     cargo workbook inspect step06  shows the PTX that each line here writes
//     cargo workbook reset step06    starts again, and keeps a copy of your file
//     cargo doc -p ptx --open        all that you can call on `k`, `w` and `t`, and on tiles and matrices

//! Step 6: a persistent kernel. As many CTAs as the GPU has SMs, whatever the size; each computes one tile of D after
//! the other, in an order that keeps the tiles of A and B in the L2 cache. Barriers live on from tile to tile, and so
//! do their phases.

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
/// Stages of the pipeline: pairs of tiles of A and B that are in shared memory at the same time.
const PIPE_DEPTH: u32 = 2;
const _: () = assert!(PIPE_DEPTH * (BLK_M + BLK_N) * BLK_K * 2 <= 192 * 1024, "stages and the tiles of D share 227 KB");
/// Columns of D that a thread reads from tensor memory at once, and that are stored at once.
const EPI_N: u32 = 64;
const _: () = assert!(EPI_N * 2 == 128, "a row of the tile of D fills a row of the 128-byte swizzle");
/// Threads of the CTA: four warps.
const THREADS: u32 = 128;
const _: () =
    assert!(THREADS == BLK_M, "each thread writes a row of the tile: a warp reads its own 32 lanes of the 128");
/// Elements in the 16 bytes that a thread moves at once.
const CHUNK: u32 = 8;

/// The kernel of step 6.
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.require(gemm.n.is_multiple_of(8) && gemm.k.is_multiple_of(8), "step 6 solves N and K that are multiples of 8");
    k.threads(THREADS);
    // TODO 6.1: Launch a CTA for each SM of the GPU. book: persistent kernels
    k.todo("6.1");
    let a = k.tile_ring("A", PIPE_DEPTH, gemm.dtype, BLK_M, BLK_K, Swizzle::B128);
    let b = k.tile_ring("B", PIPE_DEPTH, gemm.dtype, BLK_N, BLK_K, Swizzle::B128);
    let d = k.tile_ring("D", BLK_N / EPI_N, gemm.dtype, BLK_M, EPI_N, Swizzle::B128);
    let tma2mma = TmaBarrier::ring(k, "tma2mma", PIPE_DEPTH);
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

    // Which stage is next to be filled, which to be multiplied, and the phases of their barriers: they go on from tile
    // to tile, as the barriers do.
    let fill = PipelineState::producer(k, PIPE_DEPTH);
    let at = PipelineState::consumer(k, PIPE_DEPTH);
    let done = PipelineState::consumer(k, 1);
    let k_tiles = gemm.tiles_k(BLK_K);
    let tiles = TileScheduler::new(gemm.tiles_m(BLK_M), gemm.tiles_n(BLK_N), gemm.sms);
    let cta = k.cta_x();
    tiles.each(k, cta, |k, tile_row, tile_column| {
        let (m_start, n_start) = (tile_row * BLK_M, tile_column * BLK_N);

        // One thread loads and multiplies; the others wait for it below.
        k.warp(0, |w| {
            w.elect_one(|t| {
                // TODO 6.2: Fill the stages before the loop over K, as in step 5; but a tile of D begins at the stage
                // where the one before it ended: `fill` walks through the stages. book: persistent kernels
                t.todo("6.2");

                t.repeat(k_tiles, |t, round| {
                    // TODO 6.3: Wait until the tiles of this stage have come, multiply them, commit, and wait for the
                    // end of the MMAs. The phases of mma_done go on from tile to tile, too: `done` knows them.
                    // book: persistent kernels
                    t.todo("6.3");
                    // TODO 6.4: The stage is free again: fill it with the tiles of the round PIPE_DEPTH later, if there
                    // is one. Then go on to the next stage. book: a software pipeline
                    t.todo("6.4");
                });
            });
        });

        // TODO 6.5: Let all threads hear that the product is complete, as in step 4. book: tensor memory
        k.todo("6.5");

        // TODO 6.6: Bring the sums to the tiles of D in shared memory, and let one thread store them by TMA, as in step
        // 4. Here the next tile of D follows: its MMAs write over these sums, and its sums go to the same tiles in
        // shared memory. So let all threads tell that they have read the sums (a fence of tcgen05) before they meet.
        // book: persistent kernels
        k.todo("6.6");
    });

    // TODO 6.7: Free tensor memory when no thread reads it any more, as in step 3. book: tensor memory
    k.todo("6.7");
}
