// Your file for step 1. Each `todo("1.n")` below waits for your code: the comment above it says what it does
// and what to read in the book. Delete the `todo` when the code stands.
//
//     cargo test -p step01           says what is done, what is wrong, and what comes next
//     cargo workbook inspect step01  shows the PTX that each line here writes
//     cargo workbook reset step01    starts again, and keeps a copy of your file
//     cargo doc -p ptx --open        all that you can call on `k`, `w` and `t`, and on tiles and matrices

//! Step 1: one tile. D = A · Bᵀ for one 128 × 128 tile of D and a depth of 64, by one CTA of one warpgroup.
//! Global memory → swizzled tiles in shared memory → four MMAs → sums in tensor memory → registers → global memory.

use ptx::prelude::*;

/// Rows of D and of the tile of A.
const BLK_M: u32 = 128;
const _: () = assert!(BLK_M == 128, "an MMA has 64 or 128 rows; with 128, row i of D is lane i of tensor memory");
/// Columns of D, rows of the tile of B.
const BLK_N: u32 = 128;
const _: () = assert!(BLK_N <= 256, "an MMA of one CTA has up to 256 columns, in steps of 8");
const _: () = assert!(BLK_N.is_power_of_two() && BLK_N >= 32, "tensor memory comes in 32, 64, 128, 256, 512 columns");
const _: () = assert!(BLK_N == BLK_M, "the tiles of A and B have one shape here, so that one loop can copy both");
/// Columns of the tiles of A and B.
const BLK_K: u32 = 64;
const _: () = assert!(BLK_K * 2 == 128, "a row of a tile fills a row of the 128-byte swizzle");
/// Columns of A and B that one MMA takes.
const MMA_K: u32 = 16;
const _: () = assert!(BLK_K.is_multiple_of(MMA_K), "whole MMAs cover the tile");
/// Threads of the CTA: four warps.
const THREADS: u32 = 128;
const _: () = assert!(THREADS == BLK_M, "each thread stores a row of D: a warp reads its own 32 lanes of the 128");
/// Elements in the 16 bytes that a thread moves at once.
const CHUNK: u32 = 8;
const CHUNKS_OF_ROW: u32 = BLK_K / CHUNK;
/// Rows of a tile that the CTA copies at once.
const ROWS_AT_ONCE: u32 = THREADS / CHUNKS_OF_ROW;
const _: () = assert!(BLK_M.is_multiple_of(ROWS_AT_ONCE), "whole passes cover the tile");

/// The kernel of step 1.
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.require(gemm.m == BLK_M && gemm.n == BLK_N && gemm.k == BLK_K, "step 1 solves 128x128x64");
    k.threads(THREADS);
    let a = k.tile("A", gemm.dtype, BLK_M, BLK_K, Swizzle::B128);
    let b = k.tile("B", gemm.dtype, BLK_N, BLK_K, Swizzle::B128);
    let mma_done = k.barrier("mma_done");

    // Warp 0 sets up. The other warps may use the barrier and the address in shared memory after the CTA barrier.
    let tmem = k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(mma_done, 1);
            t.fence_mbarrier_init();
        });
        w.tmem_alloc("accumulator", BLK_N)
    });
    k.sync();
    let accumulator = tmem.address(k);

    // TODO 1.1: Copy A and B to their tiles with all threads, 16 bytes at once: 8 neighbouring threads take a row, the
    // CTA 16 rows. The tensor core expects an element where the swizzle puts it. book: shared memory and swizzles
    k.todo("1.1");

    // TODO 1.2: The tensor core reads shared memory by another path than threads write it. Let it see what each thread
    // stored, and let all threads meet before one of them goes on. book: proxies and fences
    k.todo("1.2");

    k.warp(0, |w| {
        w.elect_one(|t| {
            // TODO 1.3: Multiply the tiles: one MMA for each 16 columns of K, all into the same accumulator. What it
            // holds before the first is undefined, so the first must not add to it. book: the tensor core
            t.todo("1.3");
            // TODO 1.4: MMAs go on by themselves. Let mma_done hear of their end. book: mbarriers and phases
            t.todo("1.4");
        });
    });

    // TODO 1.5: Let all threads wait for mma_done's first phase, and keep loads behind it. book: mbarriers and phases
    k.todo("1.5");

    // TODO 1.6: Bring the sums to D. Thread i has row i: lane i of tensor memory, and a warp reads its own 32 lanes.
    // Load the lane's columns, wait for the load, round to the type of D, store 16 bytes at once. book: tensor memory
    k.todo("1.6");

    // TODO 1.7: Free tensor memory, by the warp that took it, when no thread reads it any more: keep each thread's
    // loads before the CTA barrier (a fence of tcgen05), let all threads meet, then free. book: tensor memory
    k.todo("1.7");
}
