//! Step 2: a loop over K. The same tile of D, for any depth: every round copies the next tiles of A and B, and its MMAs
//! add to what the rounds before have summed. The mbarrier is used again each round, in its next phase.

use ptx::prelude::*;

/// Rows of D and of a tile of A.
const BLK_M: u32 = 128;
const _: () = assert!(BLK_M == 128, "an MMA has 64 or 128 rows; with 128, row i of D is lane i of tensor memory");
/// Columns of D, rows of a tile of B.
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
const _: () = assert!(THREADS == BLK_M, "each thread stores a row of D: a warp reads its own 32 lanes of the 128");
/// Elements in the 16 bytes that a thread moves at once.
const CHUNK: u32 = 8;
const CHUNKS_OF_ROW: u32 = BLK_K / CHUNK;
/// Rows of a tile that the CTA copies at once.
const ROWS_AT_ONCE: u32 = THREADS / CHUNKS_OF_ROW;

/// The kernel of step 2.
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    let solved = gemm.m == BLK_M && gemm.n == BLK_N && gemm.k.is_multiple_of(BLK_K);
    k.require(solved, "step 2 solves 128x128 with K a multiple of 64");
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

    k.repeat(gemm.tiles_k(BLK_K), |k, round| {
        // TODO 2.1: Copy the tiles of this round to shared memory: as in step 1, but each round takes the next BLK_K
        // columns. Let the tensor core see them, and all threads meet. book: a loop over K
        // ANCHOR: todo_2_1
        let thread = k.thread_index();
        let (first_row, column) = (thread / CHUNKS_OF_ROW, thread % CHUNKS_OF_ROW * CHUNK);
        let k_start = round * BLK_K;
        for pass in 0..BLK_M / ROWS_AT_ONCE {
            let row = first_row + pass * ROWS_AT_ONCE;
            let from_a = k.load_global_16(gemm.a.at(row, k_start + column));
            let from_b = k.load_global_16(gemm.b.at(row, k_start + column));
            k.store_shared_16(a.at(row, column), from_a);
            k.store_shared_16(b.at(row, column), from_b);
        }
        k.fence_proxy_async();
        k.sync();
        // ANCHOR_END: todo_2_1

        k.warp(0, |w| {
            w.elect_one(|t| {
                // TODO 2.2: Multiply the tiles. Of all MMAs of all rounds only the very first must not add to what the
                // accumulator holds: a condition that the GPU computes. book: a loop over K
                // ANCHOR: todo_2_2
                for slice in 0..BLK_K / MMA_K {
                    let accumulate = (round + slice).gt(0);
                    t.mma(accumulator, a.k_slice(slice * MMA_K), b.k_slice(slice * MMA_K), accumulate);
                }
                // ANCHOR_END: todo_2_2
                // TODO 2.3: Let mma_done hear of the end of this round's MMAs. book: mbarriers and phases
                // ANCHOR: todo_2_3
                t.commit(mma_done);
                // ANCHOR_END: todo_2_3
            });
        });

        // TODO 2.4: Let all threads wait for this round's MMAs: the next round writes over the tiles that they read.
        // Each round completes one phase, and phases have parity 0, 1, 0, 1, … book: mbarriers and phases
        // ANCHOR: todo_2_4
        k.wait(mma_done, round & 1);
        // ANCHOR_END: todo_2_4
    });

    // TODO 2.5: Bring the sums to D, as in step 1: keep the loads behind the last wait, load the thread's row, round
    // it, store 16 bytes at once. book: tensor memory
    // ANCHOR: todo_2_5
    k.tcgen05_fence_after();
    let row = k.thread_index();
    let sums = k.tmem_load::<{ BLK_N as usize }>(accumulator.lane(row / 32 * 32));
    k.tmem_wait_load();
    for (chunk, column) in k.pack_chunks(gemm.dtype, &sums).into_iter().zip((0..).step_by(CHUNK as usize)) {
        k.store_global_16(gemm.d.at(row, column), chunk);
    }
    // ANCHOR_END: todo_2_5

    // TODO 2.6: Free tensor memory when no thread reads it any more, as in step 1. book: tensor memory
    // ANCHOR: todo_2_6
    k.tcgen05_fence_before();
    k.sync();
    k.warp(0, |w| w.tmem_dealloc(tmem));
    // ANCHOR_END: todo_2_6
}
