// Your file for step 7. Each `todo("7.n")` below waits for your code: the comment above it says what it does
// and what to read in the book. Delete the `todo` when the code stands.
//
//     cargo test -p step07           says what is done, what is wrong, and what comes next
//     cargo workbook inspect step07  shows the PTX that each line here writes
//     cargo workbook reset step07    starts again, and keeps a copy of your file
//     cargo doc -p ptx --open        all that you can call on `k`, `w` and `t`, and on tiles and matrices

//! Step 7: warp specialisation. One warp loads, one multiplies, a warpgroup writes back, all at the same time, each
//! with its own loop over the tiles; four kinds of barriers tell them of each other.
//!
//! | barrier | tells | arrivals of a phase |
//! |---|---|---|
//! | `tma2mma[stage]` | the tiles of a stage have come | 1, and the bytes |
//! | `mma2tma[stage]` | the tiles of a stage are no longer read | 1, a commit |
//! | `mma2ld` | the product is complete | 1, a commit |
//! | `ld2mma` | the product is in registers: the accumulator is free | 128 threads |

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
const _: () = assert!(PIPE_DEPTH * (BLK_M + BLK_N) * BLK_K * 2 <= 192 * 1024, "stages and the tile of D share 227 KB");
/// Columns of D that are written back at once.
const EPI_N: u32 = 64;
const _: () = assert!(EPI_N * 2 == 128, "a row of the tile of D fills a row of the 128-byte swizzle");
const EPI_CHUNKS: u32 = BLK_N / EPI_N;
/// Threads of a warpgroup, and of the CTA: two warpgroups.
const WARPGROUP: u32 = 128;
const THREADS: u32 = 2 * WARPGROUP;
const _: () =
    assert!(WARPGROUP == BLK_M, "each thread writes a row of the tile: a warp reads its own 32 lanes of the 128");
/// Warps of warpgroup 1.
const MMA_WARP: u32 = 0;
const TMA_WARP: u32 = 3;
/// Elements in the 16 bytes that a thread stores at once.
const CHUNK: u32 = 8;

/// The kernel of step 7.
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.require(gemm.n.is_multiple_of(8) && gemm.k.is_multiple_of(8), "step 7 solves N and K that are multiples of 8");
    k.threads(THREADS);
    // TODO 7.1: Launch a CTA for each SM, as in step 6. book: persistent kernels
    k.todo("7.1");
    let a = k.tile_ring("A", PIPE_DEPTH, gemm.dtype, BLK_M, BLK_K, Swizzle::B128);
    let b = k.tile_ring("B", PIPE_DEPTH, gemm.dtype, BLK_N, BLK_K, Swizzle::B128);
    let d = k.tile("D", gemm.dtype, BLK_M, EPI_N, Swizzle::B128);
    let tma2mma = TmaBarrier::ring(k, "tma2mma", PIPE_DEPTH);
    let mma2tma = CommitBarrier::ring(k, "mma2tma", PIPE_DEPTH);
    let mma2ld = CommitBarrier::new(k, "mma2ld");
    let ld2mma = ThreadBarrier::new(k, "ld2mma");

    let tmem = k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(tma2mma, 1);
            // TODO 7.2: Make the other barriers, each with the arrivals of a phase (the table above).
            // book: warp specialisation
            t.todo("7.2");
            t.fence_mbarrier_init();
        });
        w.tmem_alloc("accumulator", BLK_N)
    });
    k.sync();
    let accumulator = tmem.address(k);
    let k_tiles = gemm.tiles_k(BLK_K);
    let tiles = TileScheduler::new(gemm.tiles_m(BLK_M), gemm.tiles_n(BLK_N), gemm.sms);
    let cta = k.cta_x();

    k.warpgroup(1, |wg| {
        wg.warp(TMA_WARP, |w| {
            w.elect_one(|t| {
                let at = PipelineState::producer(t, PIPE_DEPTH);
                tiles.each(t, cta, |t, tile_row, tile_column| {
                    t.repeat(k_tiles, |t, round| {
                        // TODO 7.3: Wait until the stage is free, announce its bytes, load both tiles, and go on to the
                        // next stage. The first wait for each stage must pass: `at` begins with parity 1.
                        // book: warp specialisation
                        t.todo("7.3");
                    });
                });
            });
        });
        wg.warp(MMA_WARP, |w| {
            w.elect_one(|t| {
                let at = PipelineState::consumer(t, PIPE_DEPTH);
                let free = PipelineState::producer(t, 1);
                tiles.each(t, cta, |t, _, _| {
                    // TODO 7.4: Wait until the accumulator is free: its sums of the tile before are in registers. The
                    // first wait must pass: `free` begins with parity 1. Keep the MMAs behind the wait
                    // (`tcgen05_fence_after`), and let `free` go on. Then multiply all rounds (`t.repeat`). In each:
                    // wait until the tiles of the stage have come, keep the MMAs behind this wait, too, multiply them,
                    // let mma2tma hear when they are no longer read, and go on to the next stage. Behind the last, let
                    // mma2ld hear when the product is complete. book: warp specialisation
                    t.todo("7.4");
                });
            });
        });
    });

    k.warpgroup(0, |wg| {
        let full = PipelineState::consumer(wg, 1);
        let row = wg.thread_index();
        tiles.each(wg, cta, |wg, tile_row, tile_column| {
            // TODO 7.5: Wait until the product is complete, keep the loads from tensor memory behind the wait, and let
            // `full` go on.
            // book: warp specialisation
            wg.todo("7.5");
            for chunk in 0..EPI_CHUNKS {
                // TODO 7.6: Load this chunk's columns of the thread's row and wait for them. After the last chunk's
                // load let every thread tell ld2mma (behind a fence of tcgen05): the next product can begin while this
                // one is stored. Then store the row to `d`, when TMA no longer reads what was there before: the thread
                // that stores below waits for that (`bulk_wait_read`), and the warpgroup meets.
                // book: warp specialisation
                wg.todo("7.6");
                // TODO 7.7: Let TMA see what the threads stored, let the warpgroup meet, and let one thread store the
                // tile, as a group of its own (`bulk_commit`). book: the way back
                wg.todo("7.7");
            }
        });
    });

    // TODO 7.8: Shared memory must last until TMA has read the last tile: the thread that stores waits for that. Then
    // free tensor memory, when no thread uses it any more. book: warp specialisation
    k.todo("7.8");
}
