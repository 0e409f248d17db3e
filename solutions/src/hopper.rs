//! Beside the ladder: a GEMM for Hopper (`sm_90a`), whose tensor core is `wgmma`. The same warp roles, rings and phases
//! as in steps 7 to 10, on a GPU that people own: it proves the builder, the launch and the measurements on silicon.
//!
//! Two CTAs of a cluster compute 256 × 256: each its own 128 rows, both the same columns. So each loads half of B, for
//! both (multicast). In a CTA two warpgroups multiply, 64 rows each; their sums lie in their registers.
//!
//! | barrier | tells | arrivals of a phase |
//! |---|---|---|
//! | `full[stage]` | the tiles of a stage have come: A by this CTA, B by both | 1, and the bytes |
//! | `empty[stage]` | the tiles of a stage are no longer read, in both CTAs | 1 of each warp that multiplies, 16 |

use ptx::prelude::*;

/// CTAs of a cluster.
const CTAS: u32 = 2;
const BOTH: u32 = 0b11;
/// Rows of a CTA's tile of A and of D.
const BLK_M: u32 = 128;
/// Rows of the tile of B, columns of the tile of D.
const BLK_N: u32 = 256;
/// Columns of the tiles of A and B.
const BLK_K: u32 = 64;
const _: () = assert!(BLK_K * 2 == 128, "a row of a tile fills a row of the 128-byte swizzle");
/// Columns of A and B that one MMA takes.
const MMA_K: u32 = 16;
/// Stages of the pipeline.
const PIPE_DEPTH: u32 = 4;
/// Warpgroups that multiply, each 64 rows; one more loads.
const CONSUMERS: u32 = 2;
const ROWS: u32 = 64;
const WARPS: u32 = 4;
const _: () = assert!(CONSUMERS * ROWS == BLK_M, "a `wgmma` has 64 rows");
const WARPGROUP: u32 = 128;
const THREADS: u32 = (1 + CONSUMERS) * WARPGROUP;
/// Registers of a thread: those of the warpgroup that loads go to the others.
const FEW: u32 = 40;
const MANY: u32 = 232;
const _: () = assert!((FEW + CONSUMERS * MANY) * WARPGROUP <= 65536, "an SM has 65536 registers");
/// Columns of D that are written back at once, and how many such tiles each warpgroup has in shared memory.
const EPI_N: u32 = 64;
const EPI_CHUNKS: u32 = BLK_N / EPI_N;
const BUFFERS: u32 = 2;

/// The kernel for Hopper.
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.hopper();
    k.require(gemm.n.is_multiple_of(8) && gemm.k.is_multiple_of(8), "it solves N and K that are multiples of 8");
    k.require(gemm.sms >= CTAS, "it needs 2 SMs");
    k.threads(THREADS);
    k.cluster(CTAS);
    let clusters = gemm.sms / CTAS;
    k.grid(clusters * CTAS, 1);
    let a = k.tile_ring("A", PIPE_DEPTH, gemm.dtype, BLK_M, BLK_K, Swizzle::B128);
    let b = k.tile_ring("B", PIPE_DEPTH, gemm.dtype, BLK_N, BLK_K, Swizzle::B128);
    let d = k.tile_ring("D", CONSUMERS * BUFFERS, gemm.dtype, ROWS, EPI_N, Swizzle::B128);
    let full = TmaBarrier::ring(k, "full", PIPE_DEPTH);
    let empty = ThreadBarrier::ring(k, "empty", PIPE_DEPTH);

    k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(full, 1);
            t.barrier_init(empty, CTAS * CONSUMERS * WARPS);
            t.fence_mbarrier_init();
        });
    });
    k.cluster_sync();
    let k_tiles = gemm.tiles_k(BLK_K);
    let tiles = TileScheduler::new(gemm.tiles_m(CTAS * BLK_M), gemm.tiles_n(BLK_N), clusters);
    let (cluster, rank) = (k.cluster_x(), k.cluster_rank());

    k.warpgroup(CONSUMERS, |wg| {
        wg.give_registers(FEW);
        wg.warp(0, |w| {
            w.elect_one(|t| {
                let at = PipelineState::producer(t, PIPE_DEPTH);
                tiles.each(t, cluster, |t, tile_row, tile_column| {
                    let (row_a, row_b) = (tile_row * (CTAS * BLK_M) + rank * BLK_M, rank * (BLK_N / CTAS));
                    t.repeat(k_tiles, |t, round| {
                        let s = at.stage();
                        t.wait(empty.at(s), at.phase());
                        t.expect_tx(full.at(s), a.stage_bytes() + b.stage_bytes());
                        t.tma_load(a.at(s), &gemm.a, (round * BLK_K, row_a), full.at(s));
                        let half = b.at(s).rows(row_b, BLK_N / CTAS);
                        let rows = tile_column * BLK_N + row_b;
                        t.tma_load_multicast(half, &gemm.b, (round * BLK_K, rows), full.at(s), BOTH);
                        at.advance(t);
                    });
                });
            });
        });
    });

    for consumer in 0..CONSUMERS {
        k.warpgroup(consumer, |wg| {
            wg.take_registers(MANY);
            let at = PipelineState::consumer(wg, PIPE_DEPTH);
            // The stage before: its MMAs are complete one round later.
            let before = PipelineState::consumer(wg, PIPE_DEPTH);
            let (warp, lane) = (wg.warp_index(), wg.lane_index());
            // Of each warp, which knows of its own MMAs only, a thread tells the first CTA and a thread the second.
            let tells = lane.lt(CTAS);
            // Where a thread's addresses of 8 x 8 blocks begin.
            let (row, column) = (warp * 16 + lane % 16, lane / 16 * 8);
            let sums = wg.fragment(BLK_N);
            tiles.each(wg, cluster, |wg, tile_row, tile_column| {
                wg.repeat(k_tiles, |wg, round| {
                    let s = at.stage();
                    wg.wait(full.at(s), at.phase());
                    wg.wgmma_fence();
                    for slice in 0..BLK_K / MMA_K {
                        let rows = a.at(s).rows(consumer * ROWS, ROWS);
                        let (a, b) = (rows.k_slice(slice * MMA_K), b.at(s).k_slice(slice * MMA_K));
                        wg.wgmma(&sums, a, b, (round + slice).gt(0));
                    }
                    wg.wgmma_commit();
                    wg.wgmma_wait(1);
                    wg.when_uniform(round.gt(0), |wg| {
                        wg.when(tells, |t| t.arrive(empty.at(before.stage()).of_cta(lane)));
                        before.advance(wg);
                    });
                    at.advance(wg);
                });
                wg.wgmma_wait(0);
                wg.when(tells, |t| t.arrive(empty.at(before.stage()).of_cta(lane)));
                before.advance(wg);

                for chunk in 0..EPI_CHUNKS {
                    let tile = d.at(consumer * BUFFERS + chunk % BUFFERS);
                    // TMA has read what was in this tile.
                    wg.warp(0, |w| w.elect_one(|t| t.bulk_wait_read(BUFFERS - 1)));
                    wg.sync_warpgroup(1 + consumer);
                    for pair in 0..EPI_N / 16 {
                        let block = chunk * (EPI_N / 8) + 2 * pair;
                        let [left, right] = [block, block + 1].map(|block| sums.block(block));
                        let blocks =
                            [[left[0], left[1]], [left[2], left[3]], [right[0], right[1]], [right[2], right[3]]];
                        let blocks = blocks.map(|[low, high]| wg.pack(gemm.dtype, low, high));
                        wg.store_blocks(tile.at(row, column + 16 * pair), blocks);
                    }
                    wg.fence_proxy_async();
                    wg.sync_warpgroup(1 + consumer);
                    wg.warp(0, |w| {
                        w.elect_one(|t| {
                            let m_start = tile_row * (CTAS * BLK_M) + rank * BLK_M + consumer * ROWS;
                            t.tma_store(tile, &gemm.d, (tile_column * BLK_N + chunk * EPI_N, m_start));
                            t.bulk_commit();
                        });
                    });
                }
            });
            wg.warp(0, |w| w.elect_one(|t| t.bulk_wait_read(0)));
        });
    }
    // The other CTA must be there until its stages and barriers are no longer used.
    k.cluster_sync();
}
