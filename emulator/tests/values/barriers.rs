//! Barriers of a CTA and of a warp, and fences. Each row passes a value from one thread to another; what carries it is left out
//! then, and the race is found.

use crate::row::{Row, bare, check, each};

/// The last thread stores, then something, then the first loads.
fn passes(threads: u32, by: &str) -> Row {
    let last = threads - 1;
    let body = format!(
        "setp.eq.u32 %p1, %r98, {last};\n@%p1 st.shared.b32 [smem], 77;\n{by}\nsetp.eq.u32 %p2, %r98, 0;\n\
         @%p2 ld.shared.b32 %r0, [smem];\n@%p2 st.global.b32 [%d8], %r0;"
    );
    bare(threads, &body).gives(0, &[77])
}

pub fn rows() -> Vec<Row> {
    let mut rows = vec![
        each(64, "bar.warp.sync 0xffffffff; mov.u32 %r0, 1;", |_| 1),
        // The lanes that the mask names, and no others.
        each(32, "setp.lt.u32 %p1, %r98, 8; @%p1 bar.warp.sync 0xff; mov.u32 %r0, 1;", |_| 1).with(
            "bar.warp.sync 0xff;",
            "bar.warp.sync 0xff00;",
            "lanes-missing",
        ),
    ];
    // Tiles of 16 lanes, each with a mask of its own.
    rows.push(
        each(
            32,
            "shl.b32 %r1, %r98, 2; mov.u32 %r2, smem; add.u32 %r1, %r1, %r2; st.shared.b32 [%r1], %r98;
             and.b32 %r3, %r98, 16; shl.b32 %r3, 0xffff, %r3; bar.warp.sync %r3; xor.b32 %r1, %r1, 32; ld.shared.b32 %r0, [%r1];",
            |n| n ^ 8,
        )
        .without("bar.warp.sync %r3;", "missing-warp-sync")
        .with("bar.warp.sync %r3;", "bar.warp.sync 0xffff;", "lanes-missing"),
    );
    for by in [
        "bar.sync 0;",
        "bar.cta.sync 1;",
        "bar.sync 2, 64;",
        "barrier.sync 0;",
        "barrier.cta.sync 3, 64;",
        "barrier.sync.aligned 4, 64;",
        "barrier.cta.sync.aligned 0;",
    ] {
        rows.push(passes(64, by).without(by, "race-shared"));
    }
    // They order as much, and say of how many threads a predicate holds. %p1 is that of one thread, %p3 of all.
    for (by, holds) in [
        ("bar.red.and.pred %p4, 0, %p3;", true),
        ("bar.cta.red.and.pred %p4, 1, 64, %p1;", false),
        ("bar.red.or.pred %p4, 2, !%p3;", false),
        ("bar.cta.red.or.pred %p4, 0, %p1;", true),
        ("barrier.red.and.pred %p4, 0, !%p1;", false),
        ("barrier.cta.red.and.aligned.pred %p4, 0, %p3;", true),
        ("barrier.red.or.aligned.pred %p4, 0, 64, %p1;", true),
        ("barrier.cta.red.or.pred %p4, 0, !%p3;", false),
        ("bar.red.popc.u32 %r5, 0, %p1; setp.eq.u32 %p4, %r5, 1;", true),
        ("bar.cta.red.popc.u32 %r5, 3, !%p1; setp.eq.u32 %p4, %r5, 63;", true),
        ("barrier.red.popc.u32 %r5, 0, 64, %p3; setp.eq.u32 %p4, %r5, 64;", true),
        ("barrier.cta.red.popc.aligned.u32 %r5, 0, !%p3; setp.eq.u32 %p4, %r5, 0;", true),
    ] {
        let all = format!("setp.lt.u32 %p3, %r98, 99;\n{by}\nselp.b32 %r6, 1, 0, %p4;\nst.global.b32 [%d9+64], %r6;");
        let red = by.split_inclusive(';').next().unwrap_or(by);
        let instead = "setp.lt.u32 %p4, %r98, 9; mov.u32 %r5, 2;";
        rows.push(passes(64, &all).gives(8, &[u64::from(holds)]).gives(71, &[u64::from(holds)]).with(
            red,
            instead,
            "race-shared",
        ));
    }
    // What some threads only wait at is no place to vote.
    let mixed = "setp.lt.u32 %p3, %r98, 32;\n@%p3 bra FIRST;\nbar.red.or.pred %p4, 0, %p1;\nbra MET;\nFIRST:\nbar.red.or.pred %p4, 0, %p1;\nMET:";
    rows.push(passes(64, mixed).with("FIRST:\nbar.red.or.pred %p4, 0, %p1;", "FIRST:\nbar.sync 0;", "named-barrier"));
    // The second warp arrives and goes on, the first waits.
    for (arrive, wait) in [
        ("bar.arrive 1, 64;", "bar.sync 1, 64;"),
        ("bar.cta.arrive 1, 64;", "bar.cta.sync 1, 64;"),
        ("barrier.arrive 1, 64;", "barrier.sync 1, 64;"),
        ("barrier.cta.arrive 1, 64;", "barrier.cta.sync 1, 64;"),
        ("barrier.arrive.aligned 1, 64;", "barrier.sync.aligned 1, 64;"),
        ("barrier.cta.arrive.aligned 1, 64;", "barrier.cta.sync.aligned 1, 64;"),
    ] {
        let by = format!("setp.lt.u32 %p3, %r98, 32;\n@%p3 bra FIRST;\n{arrive}\nbra MET;\nFIRST:\n{wait}\nMET:");
        rows.push(passes(64, &by).without(arrive, "hang"));
    }
    rows.push(
        each(32, "setp.lt.u32 %p1, %r98, 8; @%p1 bra OVER; barrier.sync 1, 32; mov.u32 %r0, 1; bra MET;\nOVER:\nbarrier.sync 1, 32; mov.u32 %r0, 1;\nMET:", |_| 1)
            .with("@%p1 bra OVER; barrier.sync 1, 32;", "@%p1 bra OVER; bar.sync 1, 32;", "aligned-lanes-missing"),
    );
    rows.extend(fences());
    rows
}

/// Two CTAs store and count themselves, relaxed; the one that comes second loads what the other has stored. A fence on each
/// side orders it.
fn flag(fence: &str) -> Row {
    flag_between(fence, fence)
}

fn flag_between(release: &str, acquire: &str) -> Row {
    let body = format!(
        "mul.wide.u32 %d1, %r96, 8;\nadd.s64 %d1, %d1, %d8;\nst.global.b32 [%d1+64], 77;\n{release}\n\
         atom.relaxed.gpu.global.add.u32 %r1, [counter], 1;\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 bra END;\n{acquire}\n\
         xor.b32 %r3, %r96, 1;\nmul.wide.u32 %d1, %r3, 8;\nadd.s64 %d1, %d1, %d8;\n\
         ld.global.b32 %r2, [%d1+64];\nst.global.b32 [%d8], %r2;\nEND:"
    );
    bare(1, &body).ctas(2, 1).gives(0, &[77])
}

/// The same between the two warps of a CTA, in shared memory.
fn near_flag(fence: &str) -> Row {
    near_flag_between(fence, fence)
}

fn near_flag_between(release: &str, acquire: &str) -> Row {
    let body = format!(
        "setp.ge.u32 %p1, %r98, 32;\n@%p1 bra SEE;\nsetp.ne.u32 %p3, %r98, 0;\n@%p3 bra END;\nst.shared.b32 [smem+64], 77;\n{release}\n\
         st.relaxed.cta.shared.b32 [slot], 1;\nbra END;\n\
         SEE:\nld.relaxed.cta.shared.b32 %r1, [slot];\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 bra SEE;\n{acquire}\n\
         ld.shared.b32 %r2, [smem+64];\nst.global.b32 [%d9], %r2;\nEND:"
    );
    let zeroed = "st.shared.b32 [slot], 0;\nbar.sync 0;";
    bare(64, &body).around(&format!("setp.eq.u32 %p4, %r98, 0;\n@%p4 {zeroed}"), "").gives(32, &[77, 77])
}

fn fences() -> Vec<Row> {
    let mut rows = Vec::new();
    for fence in
        ["fence.acq_rel.gpu;", "fence.acq_rel.sys;", "fence.sc.gpu;", "fence.sc.sys;", "membar.gl;", "membar.sys;"]
    {
        rows.push(flag(fence).without(fence, "race-global"));
    }
    for fence in ["fence.acq_rel.cta;", "fence.acq_rel.cluster;", "fence.sc.cta;", "fence.sc.cluster;", "membar.cta;"] {
        rows.push(near_flag(fence).without(fence, "race-shared"));
        // Not enough for another CTA.
        rows.push(flag("fence.acq_rel.gpu;").with("fence.acq_rel.gpu;", fence, "race-global"));
    }
    for fence in ["fence.gpu;", "fence.sys;"] {
        rows.push(flag(fence).without(fence, "race-global"));
    }
    for fence in ["fence.cta;", "fence.cluster;"] {
        rows.push(near_flag(fence).without(fence, "race-shared"));
    }
    // One direction is enough on each side, and the other one is not.
    for scope in ["gpu", "sys"] {
        let (release, acquire) = (&format!("fence.release.{scope};"), &format!("fence.acquire.{scope};"));
        let row = flag_between(release, acquire);
        rows.push(row.with(release, acquire, "race-global").with(acquire, release, "race-global"));
    }
    for scope in ["cta", "cluster"] {
        let (release, acquire) = (&format!("fence.release.{scope};"), &format!("fence.acquire.{scope};"));
        let row = near_flag_between(release, acquire);
        rows.push(row.with(release, acquire, "race-shared").with(acquire, release, "race-shared"));
    }
    let (release, acquire) =
        ("fence.release.sync_restrict::shared::cta.cluster;", "fence.acquire.sync_restrict::shared::cluster.cluster;");
    let row = near_flag_between(release, acquire);
    rows.push(row.with(release, acquire, "race-shared").with(acquire, release, "race-shared"));
    // Generic stores that the TMA engine reads: a proxy fence between.
    for fence in [
        "fence.proxy.async;",
        "fence.proxy.async.shared::cta;",
        "fence.proxy.async.shared::cluster;",
        "membar.proxy.async;",
    ] {
        let body = format!(
            "st.shared.v2.b64 [smem], {{41, 42}};\n{fence}\ncp.async.bulk.global.shared::cta.bulk_group [%d8], [smem], 16;\n\
             cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
        );
        rows.push(bare(1, &body).gives(0, &[41, 42]).without(fence, "missing-proxy-fence").with(
            fence,
            "fence.proxy.async.global;",
            "missing-proxy-fence",
        ));
    }
    // Its halves: the acquiring one alone is none.
    let release = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;";
    let acquire = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;";
    let body = format!(
        "st.shared.v2.b64 [smem], {{41, 42}};\n{release}\n{acquire}\ncp.async.bulk.global.shared::cta.bulk_group [%d8], [smem], 16;\n\
         cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
    );
    rows.push(bare(1, &body).gives(0, &[41, 42]).without(release, "missing-proxy-fence"));
    // One for global memory does not do the work of the other.
    let both = "fence.proxy.async.global;\nfence.proxy.async.shared::cta;\n";
    let body = format!(
        "st.shared.v2.b64 [smem], {{41, 42}};\n{both}cp.async.bulk.global.shared::cta.bulk_group [%d8], [smem], 16;\n\
         cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
    );
    rows.push(bare(1, &body).gives(0, &[41, 42]).without("fence.proxy.async.shared::cta;\n", "missing-proxy-fence"));
    rows.push(global_fence("fence.proxy.async;"));
    rows
}

/// Stored plainly to global memory, then read by the TMA engine.
fn global_fence(fence: &str) -> Row {
    let body = format!(
        "mbarrier.init.shared.b64 [bar], 1;\nst.global.v2.b64 [%d8+64], {{41, 42}};\n{fence}\n\
         mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\nadd.s64 %d1, %d8, 64;\n\
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem], [%d1], 16, [bar];\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n@!%p1 bra WAIT;\nld.shared.b64 %d0, [smem+8];\nst.global.b64 [%d8], %d0;"
    );
    bare(1, &body).gives(0, &[42]).without(fence, "missing-proxy-fence")
}

#[test]
fn a_proxy_fence_of_global_memory() {
    let fence = "fence.proxy.async.global;";
    check(&[global_fence(fence).with(fence, "fence.proxy.async.shared::cta;", "missing-proxy-fence")]);
}

#[test]
fn values() {
    check(&rows());
}
