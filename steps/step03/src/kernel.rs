// Your file for step 3. Each `todo("3.n")` below waits for your code: the comment above it says what it does
// and what to read in the book. Delete the `todo` when the code stands.
//
//     cargo test -p step03           says what is done, what is wrong, and what comes next
//     cargo workbook inspect step03  shows the PTX that each line here writes
//     cargo workbook reset step03    starts again, and keeps a copy of your file
//     cargo doc -p ptx --open        all that you can call on `k`, `w` and `t`, and on tiles and matrices

//! Step 3: a grid of CTAs. Each CTA computes one tile of D, as in step 2; which one follows from its place in the grid.

use ptx::prelude::*;

/// Rows of a tile of D and of A.
const BLK_M: u32 = 128;
const _: () = assert!(BLK_M == 128, "an MMA has 64 or 128 rows; with 128, row i of D is lane i of tensor memory");
/// Columns of a tile of D, rows of a tile of B.
const BLK_N: u32 = 128;
const _: () = assert!(BLK_N.is_power_of_two() && BLK_N >= 32, "tensor memory comes in 32, 64, 128, 256, 512 columns");
const _: () = assert!(BLK_N == BLK_M, "the tiles of A and B have one shape here, so that one loop can copy both");
/// Columns of the tiles of A and B.
const BLK_K: u32 = 64;
const _: () = assert!(BLK_K * 2 == 128, "a row of a tile fills a row of the 128-byte swizzle");
/// Columns of A and B that one MMA takes.
const MMA_K: u32 = 16;
/// Threads of the CTA: four warps.
const THREADS: u32 = 128;
const _: () =
    assert!(THREADS == BLK_M, "each thread stores a row of the tile: a warp reads its own 32 lanes of the 128");
/// Elements in the 16 bytes that a thread moves at once.
const CHUNK: u32 = 8;
const CHUNKS_OF_ROW: u32 = BLK_K / CHUNK;
/// Rows of a tile that the CTA copies at once.
const ROWS_AT_ONCE: u32 = THREADS / CHUNKS_OF_ROW;

/// The kernel of step 3.
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    let whole_tiles = gemm.m.is_multiple_of(BLK_M) && gemm.n.is_multiple_of(BLK_N) && gemm.k.is_multiple_of(BLK_K);
    k.require(whole_tiles, "step 3 solves whole tiles: M and N multiples of 128, K of 64");
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

    // The first row and column of this CTA's tile of D.
    let (m_start, n_start): (U32, U32) = (k.variable(0), k.variable(0));
    // TODO 3.1: Launch a CTA for each tile of D (`k.grid`): as many in x as D has tile rows, in y as it has tile
    // columns. From the CTA's place in that grid (`k.cta_x()`, `k.cta_y()`) assign both numbers (`k.assign`).
    // book: a grid of CTAs
    k.todo("3.1");

    k.repeat(gemm.tiles_k(BLK_K), |k, round| {
        // TODO 3.2: Copy the tiles of this round to shared memory, as in step 2: rows of A from `m_start` on, rows of B
        // from `n_start` on. Let the tensor core see them, and all threads meet. book: a grid of CTAs
        k.todo("3.2");

        k.warp(0, |w| {
            w.elect_one(|t| {
                // TODO 3.3: Multiply the tiles and commit, as in step 2. book: a loop over K
                t.todo("3.3");
            });
        });

        // TODO 3.4: Let all threads wait for this round's MMAs, as in step 2. book: mbarriers and phases
        k.todo("3.4");
    });

    // TODO 3.5: Bring the sums to D, as in step 2: now to the CTA's own tile. book: a grid of CTAs
    k.todo("3.5");

    // TODO 3.6: Free tensor memory when no thread reads it any more, as in step 2. book: tensor memory
    k.todo("3.6");
}
