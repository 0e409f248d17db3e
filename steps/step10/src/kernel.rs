// Your file for step 10. Each `todo("10.n")` below waits for your code: the comment above it says what it does
// and what to read in the book. Delete the `todo` when the code stands.
//
//     cargo test -p step10           says what is done, what is wrong, and what comes next
//     cargo workbook inspect step10  shows the PTX that each line here writes
//     cargo workbook reset step10    starts again, and keeps a copy of your file
//     cargo doc -p ptx --open        all that you can call on `k`, `w` and `t`, and on tiles and matrices

//! Step 10: two consumers. A cluster computes a tile of 512 × 256: two warps of the leader multiply, each its own 256
//! rows of A with the same columns of B, so that each tile of B is used twice. Two warpgroups write back.
//!
//! | barrier | tells | arrivals of a phase |
//! |---|---|---|
//! | `tma2mma[stage]`, the leader's | the tiles of a stage have come, in both CTAs | 1, and the bytes of both |
//! | `mma2tma[stage]`, of each CTA | the tiles of a stage are no longer read | 2, a commit of each consumer |
//! | `mma2ld[consumer]`, of each CTA | the consumer's product is complete | 1, a commit to both |
//! | `ld2mma[consumer]`, the leader's | the consumer's product is in registers, in both CTAs | 256 threads |

use ptx::prelude::*;

/// CTAs of a cluster; the one of rank 0 is the leader.
const CTAS: u32 = 2;
const LEADER: u32 = 0;
/// Both CTAs, as the mask of a commit.
const BOTH: u32 = 0b11;
/// Warps that multiply, each for its own rows of the tile of D, and warpgroups that write back.
const CONSUMERS: u32 = 2;
/// Rows of a CTA's tile of A for one consumer, and of its part of the consumer's tile of D.
const BLK_M: u32 = 128;
/// Rows of a CTA's tile of B.
const BLK_N: u32 = 128;
/// Rows and columns of an MMA: a consumer's part of the cluster's tile of D.
const MMA_M: u32 = CTAS * BLK_M;
const _: () = assert!(MMA_M == 256, "with 256 rows, row i of a CTA's part is lane i of its tensor memory");
const MMA_N: u32 = CTAS * BLK_N;
const _: () = assert!(MMA_N <= 256, "an MMA has up to 256 columns");
/// Rows of the cluster's tile of D.
const CLUSTER_M: u32 = CONSUMERS * MMA_M;
/// Columns of tensor memory: an accumulator for each consumer.
const TMEM_COLUMNS: u32 = 512;
const _: () = assert!(CONSUMERS * MMA_N <= TMEM_COLUMNS, "an SM has 512 columns of tensor memory");
/// Columns of the tiles of A and B.
const BLK_K: u32 = 64;
const _: () = assert!(BLK_K * 2 == 128, "a row of a tile fills a row of the 128-byte swizzle");
/// Columns of A and B that one MMA takes.
const MMA_K: u32 = 16;
/// Stages of the pipeline: tiles of A and B that are in shared memory at the same time.
const PIPE_DEPTH: u32 = 4;
const _: () = assert!(
    PIPE_DEPTH * (CONSUMERS * BLK_M + BLK_N) * BLK_K * 2 <= 192 * 1024,
    "stages and the tiles of D share 227 KB"
);
/// Columns of D that are written back at once.
const EPI_N: u32 = 64;
const _: () = assert!(EPI_N * 2 == 128, "a row of the tile of D fills a row of the 128-byte swizzle");
const EPI_CHUNKS: u32 = MMA_N / EPI_N;
/// Threads of a warpgroup, and of the CTA: one warpgroup for each consumer, and one that loads and multiplies.
const WARPGROUP: u32 = 128;
const THREADS: u32 = (CONSUMERS + 1) * WARPGROUP;
const _: () =
    assert!(WARPGROUP == BLK_M, "each thread writes a row of the CTA's part: a warp reads its own 32 lanes of the 128");
/// Of the last warpgroup, warps 0 and 1 multiply and warp 3 loads.
const TMA_WARP: u32 = 3;
/// Elements in the 16 bytes that a thread stores at once.
const CHUNK: u32 = 8;

/// The kernel of step 10.
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.require(gemm.n.is_multiple_of(8) && gemm.k.is_multiple_of(8), "step 10 solves N and K that are multiples of 8");
    k.require(gemm.sms >= CTAS, "step 10 needs 2 SMs");
    k.threads(THREADS);
    k.cta_pair();
    let clusters = gemm.sms / CTAS;
    k.grid(clusters * CTAS, 1);
    let a = ["A0", "A1"].map(|name| k.tile_ring(name, PIPE_DEPTH, gemm.dtype, BLK_M, BLK_K, Swizzle::B128));
    let b = k.tile_ring("B", PIPE_DEPTH, gemm.dtype, BLK_N, BLK_K, Swizzle::B128);
    let d = k.tile_ring("D", CONSUMERS, gemm.dtype, BLK_M, EPI_N, Swizzle::B128);
    let tma2mma = TmaBarrier::ring(k, "tma2mma", PIPE_DEPTH);
    let mma2tma = CommitBarrier::ring(k, "mma2tma", PIPE_DEPTH);
    let mma2ld = CommitBarrier::ring(k, "mma2ld", CONSUMERS);
    let ld2mma = ThreadBarrier::ring(k, "ld2mma", CONSUMERS);

    k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(tma2mma, 1);
            // TODO 10.1: Make the other barriers, each with the arrivals of a phase (the table above).
            // book: pairs of CTAs
            t.todo("10.1");
            t.fence_mbarrier_init();
        });
    });
    // After the barrier of the cluster the other CTA may use the barriers, and is there to allocate with.
    k.cluster_sync();
    let tmem = k.warp(0, |w| w.tmem_alloc("accumulators", TMEM_COLUMNS));
    k.sync();
    let accumulators = tmem.address(k);
    let k_tiles = gemm.tiles_k(BLK_K);
    let tiles = TileScheduler::new(gemm.tiles_m(CLUSTER_M), gemm.tiles_n(MMA_N), clusters);
    let (cluster, rank) = (k.cluster_x(), k.cluster_rank());

    k.warpgroup(CONSUMERS, |wg| {
        wg.warp(TMA_WARP, |w| {
            w.elect_one(|t| {
                let at = PipelineState::producer(t, PIPE_DEPTH);
                // TODO 10.2: For each tile of D (`tiles.each`), for each round (`t.repeat`): wait until the stage is
                // free. The leader announces the bytes of both CTAs to its barrier (`t.when`); both load their own two
                // tiles of A and one of B, and let the leader's barrier count them (`of_cta`). Then go on to the next
                // stage. Behind all tiles wait for each stage once more: this CTA may not end before the last commits
                // to its barriers have come. book: pairs of CTAs
                t.todo("10.2");
            });
        });
        for consumer in 0..CONSUMERS {
            let accumulator = accumulators.columns(consumer * MMA_N, MMA_N);
            wg.warp(consumer, |w| {
                // The leader multiplies for both.
                let leads = rank.eq(LEADER);
                w.when_uniform(leads, |w| {
                    w.elect_one(|t| {
                        let at = PipelineState::consumer(t, PIPE_DEPTH);
                        let free = PipelineState::producer(t, 1);
                        tiles.each(t, cluster, |t, _, _| {
                            // TODO 10.3: Wait until the consumer's accumulators of both CTAs are free: their sums of
                            // the tile before are in registers. Keep the MMAs behind the wait (`tcgen05_fence_after`),
                            // and let `free` go on. Then multiply all rounds (`t.repeat`). In each: wait until the
                            // tiles of the stage have come, keep the MMAs behind this wait, too, multiply them, let
                            // mma2tma of both CTAs hear when they are no longer read, and go on to the next stage.
                            // Behind the last, let mma2ld of both CTAs hear when the product is complete.
                            // book: pairs of CTAs
                            t.todo("10.3");
                        });
                    })
                });
            });
        }
    });

    for consumer in 0..CONSUMERS {
        // Barrier 0 is that of the CTA; each warpgroup has one of its own.
        let named = consumer + 1;
        k.warpgroup(consumer, |wg| {
            let full = PipelineState::consumer(wg, 1);
            let row = wg.thread_index();
            let (accumulator, d) = (accumulators.columns(consumer * MMA_N, MMA_N), d.at(consumer));
            tiles.each(wg, cluster, |wg, tile_row, tile_column| {
                let m_start = tile_row * CLUSTER_M + consumer * MMA_M;
                // TODO 10.4: Wait until the product is complete, keep the loads from tensor memory behind the wait, and
                // let `full` go on.
                // book: pairs of CTAs
                wg.todo("10.4");
                for chunk in 0..EPI_CHUNKS {
                    // TODO 10.5: Load this chunk's columns of the thread's row and wait for them. After the last
                    // chunk's load let every thread tell the leader's ld2mma (behind a fence of tcgen05): the next
                    // product can begin while this one is stored. Then store the row to `d`, when TMA no longer reads
                    // what was there before: the thread that stores below waits for that (`bulk_wait_read`), and the
                    // warpgroup meets. book: pairs of CTAs
                    wg.todo("10.5");
                    // TODO 10.6: Let TMA see what the threads stored, let the warpgroup meet, and let one thread store
                    // the tile, as a group of its own (`bulk_commit`). book: the way back
                    wg.todo("10.6");
                }
            });
        });
    }

    // TODO 10.7: Shared memory must last until TMA has read the last tile: the threads that store, one in each
    // write-back warpgroup, wait for that. Then free tensor memory, when no thread of either CTA uses it, or the
    // barriers of the other CTA, any more. book: pairs of CTAs
    k.todo("10.7");
}
