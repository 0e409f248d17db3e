// Your file for step 5. Each `todo("5.n")` below waits for your code: the comment above it says what it does
// and what to read in the book. Delete the `todo` when the code stands.
//
//     cargo test -p step05           says what is done, what is wrong, and what comes next
//     cargo workbook inspect step05  shows the PTX that each line here writes
//     cargo workbook reset step05    starts again, and keeps a copy of your file
//     cargo doc -p ptx --open        all that you can call on `k`, `w` and `t`, and on tiles and matrices

//! Step 5: a software pipeline. Two stages of tiles, each with a barrier of its own: while the tensor core multiplies
//! one, TMA fills the other.

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

/// The kernel of step 5.
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.require(gemm.n.is_multiple_of(8) && gemm.k.is_multiple_of(8), "step 5 solves N and K that are multiples of 8");
    k.threads(THREADS);
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

    // The first row and column of this CTA's tile of D.
    let (m_start, n_start): (U32, U32) = (k.variable(0), k.variable(0));
    // TODO 5.1: Launch a CTA for each tile of D, and assign where its tile begins, as in step 3.
    // book: a grid of CTAs
    k.todo("5.1");

    // One thread loads and multiplies; the others wait for it below.
    let k_tiles = gemm.tiles_k(BLK_K);
    k.warp(0, |w| {
        w.elect_one(|t| {
            // TODO 5.2: Fill the stages before the loop: the first PIPE_DEPTH pairs of tiles, or all if there are
            // fewer. Announce the bytes of stage `i` (`stage_bytes` of both rings) to its own barrier, and ask TMA for
            // its tiles. book: a software pipeline
            t.todo("5.2");

            // The stage that is next, and the phase of its barrier.
            let at = PipelineState::consumer(t, PIPE_DEPTH);
            t.repeat(k_tiles, |t, round| {
                // TODO 5.3: Wait until the tiles of this stage have come: its barrier, in the phase that `at` knows.
                // Keep the MMAs behind the wait, as in step 4. book: a software pipeline
                t.todo("5.3");
                // TODO 5.4: Multiply the tiles of this stage, commit, and wait for the end of the MMAs, as in step 4.
                // book: a software pipeline
                t.todo("5.4");
                // TODO 5.5: The stage is free again: fill it with the tiles of the round PIPE_DEPTH later, if there is
                // one (`t.when`). Then go on to the next stage (`at.advance(t)`). book: a software pipeline
                t.todo("5.5");
            });
        });
    });

    // TODO 5.6: Let all threads hear that the product is complete, as in step 4. book: tensor memory
    k.todo("5.6");

    // TODO 5.7: Bring the sums to the tiles of D in shared memory, and let one thread store them by TMA, as in step 4.
    // book: the way back
    k.todo("5.7");

    // TODO 5.8: Free tensor memory when no thread reads it any more, as in step 3. book: tensor memory
    k.todo("5.8");
}
