//! Calls of the builder, one idea between two anchors: the pages show them, and the instructions that each writes.
//!
//! The kernels compute nothing of use. They build, assemble, and hold no instruction that the emulator does not know.

use ptx::prelude::*;

/// Tiles and threads of one CTA.
pub fn of_one_cta(k: &mut Cta, gemm: &Gemm) {
    // ANCHOR: require
    k.require(gemm.n.is_multiple_of(8), "this kernel solves N that are multiples of 8");
    // ANCHOR_END: require
    // ANCHOR: launch
    k.threads(256);
    k.grid(gemm.tiles_m(128), gemm.tiles_n(128));
    // ANCHOR_END: launch
    // ANCHOR: tiles
    let a = k.tile_ring("A", 2, gemm.dtype, 128, 64, Swizzle::B128);
    let b = k.tile_ring("B", 2, gemm.dtype, 128, 64, Swizzle::B128);
    let d = k.tile("D", gemm.dtype, 128, 64, Swizzle::B128);
    // ANCHOR_END: tiles
    // ANCHOR: barriers
    let full = TmaBarrier::ring(k, "full", 2);
    let free = CommitBarrier::ring(k, "free", 2);
    let taken = ThreadBarrier::new(k, "taken");
    // ANCHOR_END: barriers
    let (k_tiles, cta) = (gemm.tiles_k(64), k.cta_x());

    let tmem = k.warp(0, |w| {
        // ANCHOR: elect_one
        w.elect_one(|t| {
            t.barrier_init(free, 1);
        });
        // ANCHOR_END: elect_one
        w.elect_one(|t| {
            // ANCHOR: barrier_init
            t.barrier_init(full, 1);
            t.barrier_init(taken, 128);
            // ANCHOR_END: barrier_init
            // ANCHOR: fence_mbarrier_init
            t.fence_mbarrier_init();
            // ANCHOR_END: fence_mbarrier_init
        });
        // ANCHOR: tmem_alloc
        let tmem = w.tmem_alloc("accumulator", 128);
        // ANCHOR_END: tmem_alloc
        // ANCHOR: tmem_relinquish
        w.tmem_relinquish();
        // ANCHOR_END: tmem_relinquish
        tmem
    });
    // ANCHOR: sync
    k.sync();
    // ANCHOR_END: sync
    // ANCHOR: tmem_address
    let accumulator = tmem.address(k);
    // ANCHOR_END: tmem_address

    // ANCHOR: roles
    k.warpgroup(1, |wg| {
        wg.warp(3, |w| {
            w.elect_one(|t| t.arrive(taken));
        });
    });
    // ANCHOR_END: roles

    k.warpgroup(1, |wg| {
        wg.warp(0, |w| {
            w.elect_one(|t| {
                // ANCHOR: state
                let at = PipelineState::producer(t, 2);
                // ANCHOR_END: state
                // ANCHOR: repeat
                t.repeat(k_tiles, |t, _| {
                    t.wait(free.at(at.stage()), at.phase());
                    at.advance(t);
                });
                // ANCHOR_END: repeat
                // ANCHOR: expect_tx
                t.expect_tx(full.at(0), a.stage_bytes() + b.stage_bytes());
                // ANCHOR_END: expect_tx
                // ANCHOR: tma_load
                t.tma_load(b.at(0), &gemm.b, (64, 0), full.at(0));
                // ANCHOR_END: tma_load
            });
        });
        wg.warp(1, |w| {
            w.elect_one(|t| {
                // ANCHOR: wait
                t.wait(full.at(0), 0);
                // ANCHOR_END: wait
                // ANCHOR: tcgen05_fence_after
                t.tcgen05_fence_after();
                // ANCHOR_END: tcgen05_fence_after
                // ANCHOR: mma
                t.mma(accumulator, a.at(0).k_slice(16), b.at(0).k_slice(16), true);
                // ANCHOR_END: mma
                // ANCHOR: commit
                t.commit(free.at(0));
                // ANCHOR_END: commit
            });
        });
    });

    // ANCHOR: each
    let tiles = TileScheduler::new(gemm.tiles_m(128), gemm.tiles_n(128), gemm.sms);
    tiles.each(k, cta, |k, tile_row, _| {
        k.when_uniform(tile_row.gt(0), |k| k.sync());
    });
    // ANCHOR_END: each

    k.warpgroup(0, |wg| {
        // ANCHOR: thread_index
        let row = wg.thread_index();
        // ANCHOR_END: thread_index
        // ANCHOR: load_global
        let chunk = wg.load_global_16(gemm.a.at(row, 0));
        // ANCHOR_END: load_global
        // ANCHOR: store_shared
        wg.store_shared_16(d.at(row, 0), chunk);
        // ANCHOR_END: store_shared
        // ANCHOR: fence_proxy_async
        wg.fence_proxy_async();
        // ANCHOR_END: fence_proxy_async
        // ANCHOR: sync_warpgroup
        wg.sync_warpgroup(1);
        // ANCHOR_END: sync_warpgroup
        wg.warp(0, |w| {
            // ANCHOR: sync_warp
            w.sync_warp();
            // ANCHOR_END: sync_warp
            w.elect_one(|t| {
                // ANCHOR: tma_store
                t.tma_store(d, &gemm.d, (64, 0));
                // ANCHOR_END: tma_store
                // ANCHOR: bulk_commit
                t.bulk_commit();
                // ANCHOR_END: bulk_commit
                // ANCHOR: bulk_wait_read
                t.bulk_wait_read(0);
                // ANCHOR_END: bulk_wait_read
                // ANCHOR: bulk_wait
                t.bulk_wait(0);
                // ANCHOR_END: bulk_wait
            });
        });
        // ANCHOR: tmem_load
        let sums = wg.tmem_load::<8>(accumulator.columns(0, 8).lane(row / 32 * 32));
        // ANCHOR_END: tmem_load
        // ANCHOR: tmem_wait_load
        wg.tmem_wait_load();
        // ANCHOR_END: tmem_wait_load
        // ANCHOR: tcgen05_fence_before
        wg.tcgen05_fence_before();
        // ANCHOR_END: tcgen05_fence_before
        // ANCHOR: arrive
        wg.arrive(taken);
        // ANCHOR_END: arrive
        // ANCHOR: pack_chunks
        let chunks = wg.pack_chunks(gemm.dtype, &sums);
        // ANCHOR_END: pack_chunks
        // ANCHOR: when
        wg.when(row.lt(gemm.m), |threads| {
            threads.store_global_16(gemm.d.at(row, 8), chunks[0]);
        });
        // ANCHOR_END: when
        // ANCHOR: store_global
        wg.store_global_16(gemm.d.at(row, 0), chunks[0]);
        // ANCHOR_END: store_global
        // ANCHOR: variable
        let phase: U32 = wg.variable(0);
        wg.assign(phase, phase ^ 1);
        // ANCHOR_END: variable
        // ANCHOR: raw
        let clock: U32 = wg.register();
        wg.raw("mov.u32", &[&clock, &"%clock"]);
        // ANCHOR_END: raw
    });
    k.sync();
    // ANCHOR: tmem_dealloc
    k.warp(0, |w| w.tmem_dealloc(tmem));
    // ANCHOR_END: tmem_dealloc
}

/// What a pair of CTAs does otherwise.
pub fn of_a_pair(k: &mut Cta, gemm: &Gemm) {
    // ANCHOR: cta_pair
    k.threads(128);
    k.cta_pair();
    k.grid(gemm.sms / 2 * 2, 1);
    // ANCHOR_END: cta_pair
    let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
    let b = k.tile("B", gemm.dtype, 64, 64, Swizzle::B128);
    let full = TmaBarrier::new(k, "full");
    let free = CommitBarrier::new(k, "free");
    let taken = ThreadBarrier::new(k, "taken");
    k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(full, 1);
            t.barrier_init(free, 1);
            t.barrier_init(taken, 256);
            t.fence_mbarrier_init();
        });
    });
    // ANCHOR: cluster_sync
    k.cluster_sync();
    // ANCHOR_END: cluster_sync
    // ANCHOR: pair_alloc
    let tmem = k.warp(0, |w| w.tmem_alloc("accumulator", 128));
    // ANCHOR_END: pair_alloc
    k.sync();
    let accumulator = tmem.address(k);
    // ANCHOR: cluster_rank
    let rank = k.cluster_rank();
    // ANCHOR_END: cluster_rank
    k.warp(1, |w| {
        w.elect_one(|t| {
            // ANCHOR: pair_expect
            t.when(rank.eq(0), |t| t.expect_tx(full, 2 * (a.bytes() + b.bytes())));
            // ANCHOR_END: pair_expect
            // ANCHOR: of_cta
            let leaders = full.of_cta(0);
            // ANCHOR_END: of_cta
            // ANCHOR: pair_load
            t.tma_load(a, &gemm.a, (0, rank * 128), leaders);
            // ANCHOR_END: pair_load
        });
        // ANCHOR: pair_leads
        w.when_uniform(rank.eq(0), |w| {
            w.elect_one(|t| {
                t.mma(accumulator, a.k_slice(0), b.k_slice(0), false);
            });
        });
        // ANCHOR_END: pair_leads
        w.elect_one(|t| {
            // ANCHOR: commit_multicast
            t.commit_multicast(free, 0b11);
            // ANCHOR_END: commit_multicast
        });
    });
    // ANCHOR: pair_arrive
    k.arrive(taken.of_cta(0));
    // ANCHOR_END: pair_arrive
    k.cluster_sync();
    k.warp(0, |w| w.tmem_dealloc(tmem));
}

/// The kernel for Hopper, and what it shares.
pub fn of_hopper(k: &mut Cta, gemm: &Gemm) {
    // ANCHOR: hopper
    k.hopper();
    k.threads(256);
    // ANCHOR_END: hopper
    // ANCHOR: cluster
    k.cluster(2);
    k.grid(gemm.sms / 2 * 2, 1);
    // ANCHOR_END: cluster
    let a = k.tile("A", gemm.dtype, 64, 64, Swizzle::B128);
    let b = k.tile("B", gemm.dtype, 64, 64, Swizzle::B128);
    let full = TmaBarrier::new(k, "full");
    k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(full, 1);
            t.fence_mbarrier_init();
        });
    });
    k.cluster_sync();
    k.warpgroup(0, |wg| {
        // ANCHOR: give_registers
        wg.give_registers(40);
        // ANCHOR_END: give_registers
        wg.warp(0, |w| {
            w.elect_one(|t| {
                // ANCHOR: tma_load_multicast
                t.tma_load_multicast(a, &gemm.a, (0, 0), full, 0b11);
                // ANCHOR_END: tma_load_multicast
            });
        });
    });
    k.warpgroup(1, |wg| {
        // ANCHOR: take_registers
        wg.take_registers(232);
        // ANCHOR_END: take_registers
        // ANCHOR: wgmma
        let sums = wg.fragment(64);
        wg.wgmma_fence();
        wg.wgmma(&sums, a.k_slice(0), b.k_slice(0), false);
        wg.wgmma_commit();
        wg.wgmma_wait(0);
        // ANCHOR_END: wgmma
    });
    k.cluster_sync();
}

/// Instructions that the builder does not wrap.
pub fn of_other_instructions(k: &mut Cta, _: &Gemm) {
    k.threads(32);
    let response = k.tile("response", Dtype::F16, 1, 8, Swizzle::None);
    let told = TmaBarrier::new(k, "told");
    k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(told, 1);
            t.fence_mbarrier_init();
            // ANCHOR: try_cancel
            t.expect_tx(told, 16);
            t.raw(
                "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128",
                &[&response.at(0, 0), &told],
            );
            t.wait(told, 0);
            // ANCHOR_END: try_cancel
        });
    });
    // ANCHOR: griddep
    k.raw("griddepcontrol.wait", &[]);
    k.raw("griddepcontrol.launch_dependents", &[]);
    // ANCHOR_END: griddep
}

/// Rust values and registers side by side.
pub fn of_values(k: &mut Cta, gemm: &Gemm) {
    k.threads(128);
    // ANCHOR: arithmetic
    let thread = k.thread_index(); // a U32
    let row = thread / 8;
    let column = thread % 8 * 8;
    let pitch = gemm.k * 2; // a u32: nothing is written, Rust knows the number
    // ANCHOR_END: arithmetic
    k.require(pitch > 0, "this kernel solves K from 1 on");
    let chunk = k.load_global_16(gemm.a.at(row, column));
    // ANCHOR: condition
    k.when(thread.lt(64), |s| {
        s.store_global_16(gemm.d.at(thread, 0), chunk); // executed by threads 0 to 63
    });
    // ANCHOR_END: condition
    // ANCHOR: rust_loop
    let mut sum = thread;
    for factor in 2..6 {
        sum = sum + thread * factor; // a u32: each of the four multiplications has another constant
    }
    // ANCHOR_END: rust_loop
    // ANCHOR: gpu_loop
    let total: U32 = k.variable(0);
    k.repeat(gemm.k / 64, |k, round| {
        k.assign(total, total + round); // `round` is a U32
    });
    // ANCHOR_END: gpu_loop
    k.when(total.eq(sum), |s| s.store_global_16(gemm.d.at(thread, 8), chunk));
}
