//! mbarriers, rings, named barriers, CTA pairs.

use super::check;
use expect_test::expect;
use ptx::prelude::*;

#[test]
fn barriers() {
    check(
        |k, _| {
            k.threads(128);
            let full = k.barrier("full");
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.barrier_init(full, 0);
                    t.barrier_init(full, 1 << 20);
                    t.expect_tx(full, 1 << 20);
                });
            });
            k.wait(full, 2);
        },
        expect![[r#"
            +6: an mbarrier cannot count 0 arrivals
                Use the number of arrivals of a phase, from 1 to 1048575.
            +7: an mbarrier cannot count 1048576 arrivals
                Use the number of arrivals of a phase, from 1 to 1048575.
            +8: a phase of an mbarrier cannot expect 1048576 bytes
                Use the bytes that the copies of the phase bring, from 1 to 1048575.
            +11: 2 is not a parity
                Use 0 for the first, third, fifth phase, 1 for the others.
        "#]],
    );
}

/// The scope of the CTA used inside of a closure of its own: the compiler lets these two through, so that the build can say why not.
#[test]
fn barriers_of_all_among_some() {
    check(
        |k, _| {
            k.threads(256);
            k.sync();
            k.warpgroup(1, |_| k.sync());
            k.warpgroup(0, |wg| {
                wg.sync_warpgroup(1);
                wg.warp(1, |w| {
                    k.sync();
                    w.elect_one(|_| k.cluster_sync());
                });
            });
            k.repeat(2, |k, _| k.sync());
            k.cluster_sync();
        },
        expect![[r#"
            +4: the barrier of the CTA is executed by warpgroup 1 alone: the other threads never come to it
                Call `k.sync()` behind this closure, where all threads come by; the 128 threads of the warpgroup meet at `wg.sync_warpgroup(1)`.
            +8: the barrier of the CTA is executed by warp 1 alone: the other threads never come to it
                Call `k.sync()` behind this closure, where all threads come by.
            +9: the barrier of the cluster is executed by one elected thread alone: the other threads never come to it
                Call `k.cluster_sync()` behind this closure, where all threads come by.
        "#]],
    );
}

/// A scope picks its threads only where no other that it has picked is open: else nobody would come, or a part of those that elect.
#[test]
fn scopes_picked_by_a_closed_one() {
    check(
        |k, _| {
            k.threads(256);
            k.warpgroup(0, |_| k.warpgroup(1, |_| {}));
            k.warp(0, |w| {
                k.warp(1, |_| {});
                w.elect_one(|_| w.elect_one(|_| {}));
            });
            k.warpgroup(0, |wg| wg.warp(1, |w| w.elect_one(|_| wg.warp(2, |_| {}))));
            k.repeat(2, |k, _| k.warpgroup(1, |wg| wg.repeat(2, |wg, _| wg.warp(3, |w| w.elect_one(|_| {})))));
        },
        expect![[r#"
            +3: warpgroup 1 is picked by a scope that is closed here: the closure around it is for warpgroup 0 alone
                Use the scope that this closure is given, or write it behind the closure.
            +5: warp 1 is picked by a scope that is closed here: the closure around it is for warp 0 alone
                Use the scope that this closure is given, or write it behind the closure.
            +6: one elected thread is picked by a scope that is closed here: the closure around it is for one elected thread alone
                Use the scope that this closure is given, or write it behind the closure.
            +8: warp 2 is picked by a scope that is closed here: the closure around it is for warp 1 alone
                Use the scope that this closure is given, or write it behind the closure.
        "#]],
    );
}

#[test]
fn rings() {
    check(
        |k, gemm| {
            k.threads(128);
            let tiles = k.tile_ring("A", 3, gemm.dtype, 128, 64, Swizzle::B128);
            let full = TmaBarrier::ring(k, "full", 3);
            let _ = tiles.at(3).k_slice(0);
            let stage = k.thread_index();
            let _ = tiles.at(stage).k_slice(64);
            k.wait(full.at(7), 0);
            k.tile_ring("B", 13, gemm.dtype, 128, 64, Swizzle::B128);
            k.barrier_ring("A", 2);
            let _ = PipelineState::consumer(k, 0);
        },
        expect![[r#"
            +5: stage 3 of "A" does not exist: it has 3 stages
                Use a stage from 0 to 2.
            +7: tile "A" has no 16 columns that an MMA can take from column 64 on: it has 64 columns
                Use a multiple of 16, up to 48.
            +8: stage 7 of "full" does not exist: it has 3 stages
                Use a stage from 0 to 2.
            +9: tile "B" of 128 x 64 f16 (13 stages) needs 212992 bytes of shared memory, and 182272 of the CTA's 232448 are left
                Use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024.
            +10: the name "A" is used twice, first at +3
                Give every tile, barrier, scalar and allocation a name of its own: messages go by them.
            +11: a ring of 0 stages
                Use 1 stage or more.
        "#]],
    );
}

/// Whatever is done with a ring that was refused, for any number of stages.
#[test]
fn refused_rings() {
    check(
        |k, gemm| {
            k.threads(128);
            let none = k.tile_ring("none", 0, gemm.dtype, 128, 64, Swizzle::B128);
            let many = k.tile_ring("many", u32::MAX, gemm.dtype, 128, 64, Swizzle::B128);
            let huge = k.tile_ring("huge", 2, gemm.dtype, u32::MAX - 7, 64, Swizzle::B128);
            let barriers = k.barrier_ring("barriers", u32::MAX);
            let commits = CommitBarrier::ring(k, "commits", 0);
            let stage: U32 = k.variable(0);
            for ring in [none, many, huge] {
                let _ = (ring.at(0).at(0, 0), ring.at(u32::MAX - 1).k_slice(0), ring.at(stage).at(stage, 0));
                for stage in 0..ring.stages() {
                    let _ = ring.at(stage);
                }
            }
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.barrier_init(barriers, 1);
                    t.barrier_init(commits, 1);
                    t.commit(commits.at(u32::MAX));
                    t.tma_load(many.at(5), &gemm.a, (0, 0), barriers.at(5));
                    t.tma_store(huge.at(stage), &gemm.a, (0, 0));
                });
            });
            k.wait(barriers.at(stage), 0);
        },
        expect![[r#"
            +3: tile "none" of 128 x 64 f16 has 0 stages
                Use 1 stage or more.
            +4: tile "many" of 128 x 64 f16 (4294967295 stages) needs 70368744161280 bytes of shared memory, and 232448 of the CTA's 232448 are left
                Use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024.
            +5: tile "huge" of 4294967288 x 64 f16 (2 stages) needs 1099511625728 bytes of shared memory, and 232448 of the CTA's 232448 are left
                Use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024.
            +6: barrier "barriers" (4294967295 stages) needs 34359738360 bytes of shared memory, and 232448 of the CTA's 232448 are left
                Use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024.
            +7: barrier "commits" has 0 stages
                Use 1 stage or more.
        "#]],
    );
}

#[test]
fn barrier_of_a_warpgroup() {
    check(
        |k, _| {
            k.threads(128);
            k.warpgroup(0, |wg| {
                wg.sync_warpgroup(0);
                wg.sync_warpgroup(16);
            });
        },
        expect![[r#"
            +4: a warpgroup cannot meet at barrier 0
                Use a number from 1 to 15, another one for each warpgroup.
            +5: a warpgroup cannot meet at barrier 16
                Use a number from 1 to 15, another one for each warpgroup.
        "#]],
    );
}

#[test]
fn pairs_of_ctas() {
    check(
        |k, _| {
            k.threads(128);
            let done = k.barrier("done");
            k.wait(done, 0);
            k.cta_pair();
            k.grid(3, 2);
        },
        expect![[r#"
            +5: the CTA pair is asked for after the first instruction
                Call `cta_pair` at the start of the kernel: waits, arrivals and MMAs differ in a pair.
            +6: a grid of 3 x 2 CTAs is not made of pairs
                Give `k.grid` a multiple of 2 in x.
        "#]],
    );
    check(
        |k, _| {
            k.threads(128);
            k.cta_pair();
            k.cta_pair();
        },
        expect![[r#"
            +4: the CTA pair is asked for twice
                Call `cta_pair` once, at the start of the kernel.
            +2: a grid of 1 x 1 CTAs is not made of pairs
                Give `k.grid` a multiple of 2 in x.
        "#]],
    );
    check(
        |k, _| {
            k.threads(128);
            k.cta_pair();
            k.grid(0, 1);
        },
        expect![[r#"
            +4: a grid cannot have 0 x 1 CTAs
                Use 1 or more in both directions, and at most 65535 in y.
        "#]],
    );
    check(
        |k, gemm| {
            k.threads(128);
            let (full, done) = (TmaBarrier::new(k, "full"), k.barrier("done"));
            let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
            let theirs = full.of_cta(0);
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.tma_load(a, &gemm.a, (0, 0), theirs);
                    t.commit_multicast(done, 0b11);
                });
            });
        },
        expect![[r#"
            +5: this kernel has no clusters
                Make a pair of the CTAs: `k.cta_pair()`, or `k.cluster(2)`.
            +8: a load tells a barrier of another CTA, which only a CTA pair can
                Use the barrier of this CTA, `tma_load_multicast`, or `k.cta_pair()`.
            +9: the mask 0b11 does not name CTAs of the cluster
                Use a mask of the CTAs that the cluster has: 0b1 is all of them.
        "#]],
    );
    check(
        |k, gemm| {
            k.threads(128);
            k.cta_pair();
            k.grid(2, 1);
            let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
            let b = k.tile("B", gemm.dtype, 136, 64, Swizzle::B128);
            let done = CommitBarrier::new(k, "done");
            let refused = CommitBarrier::new(k, "done");
            let tmem = k.warp(0, |w| w.tmem_alloc("accumulator", 128));
            let sums = tmem.address(k);
            let theirs = done.of_cta(1);
            k.wait(theirs, 0);
            let _ = done.of_cta(2);
            let _ = refused.of_cta(1);
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.barrier_init(theirs, 1);
                    t.commit_multicast(done, 0);
                    t.commit_multicast(done, 0b100);
                    t.mma(sums, b.k_slice(0), a.k_slice(0), false);
                    t.mma(sums, a.k_slice(0), b.k_slice(0), false);
                    t.mma(sums, a.k_slice(0), a.k_slice(0), false);
                });
                w.tmem_dealloc(tmem);
            });
        },
        expect![[r#"
            +8: the name "done" is used twice, first at +7
                Give every tile, barrier, scalar and allocation a name of its own: messages go by them.
            +12: this waits for a barrier of another CTA
                Use the barrier of this CTA, without `of_cta`: its own CTA makes a barrier and waits for it.
            +13: a pair has no CTA of rank 2
                Use rank 0, the leader's, or 1.
            +17: this makes a barrier of another CTA
                Use the barrier of this CTA, without `of_cta`: its own CTA makes a barrier and waits for it.
            +18: the mask 0b0 does not name CTAs of the cluster
                Use a mask of the CTAs that the cluster has: 0b11 is all of them.
            +19: the mask 0b100 does not name CTAs of the cluster
                Use a mask of the CTAs that the cluster has: 0b11 is all of them.
            +20: an MMA cannot have M = 272, twice the rows of A's tile
                Use a tile of 64 or 128 rows.
            +21: an MMA with M = 256 cannot have N = 272, twice the rows of B's tile
                Use a multiple of 8 rows, up to 128.
            +22: an MMA with N = 256 needs 256 columns, and the accumulator has 128
                Give it 256 columns of tensor memory.
        "#]],
    );
}
