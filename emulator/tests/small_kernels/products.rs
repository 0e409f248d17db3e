//! A product of zeroes: what its commit waits for, and which fences make its operands visible.

use super::{clean, finds, run};

/// Zeroes the tile, allocates 32 columns (`%r2`), initialises `bar_a` and `bar_b`, and makes all that visible.
const SET_UP: &str = "
    shr.u32 %r1, %r0, 5;
    setp.ne.u32 %p0, %r1, 0;
    shl.b32 %r3, %r0, 4;
    mov.u32 %r4, tile;
    add.u32 %r3, %r3, %r4;
    mov.u32 %r5, 0;
ZERO:
    st.shared.v4.b32 [%r3], {0, 0, 0, 0};
    add.u32 %r3, %r3, 2048;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 16;
    @%p1 bra ZERO;
    fence.proxy.async.shared::cta;
    @%p0 bra SETUP;
    elect.sync _|%p1, 0xffffffff;
    @%p1 mbarrier.init.shared::cta.b64 [bar_a], 1;
    @%p1 mbarrier.init.shared::cta.b64 [bar_b], 1;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
SETUP:
    bar.sync 0;
    ld.shared.b32 %r2, [slot];
    shr.u32 %r4, %r4, 4;
    cvt.u64.u32 %rd2, %r4;
    or.b64 %rd2, %rd2, 0x4000404000000000;";

/// Reads a word of tensor memory of each thread's lane, stores it, and frees.
const TEAR_DOWN: &str = "
    tcgen05.fence::after_thread_sync;
    shl.b32 %r6, %r1, 21;
    add.u32 %r6, %r6, %r2;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r7}, [%r6];
    tcgen05.wait::ld.sync.aligned;
    st.global.b32 [%rd0], %r7;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    @%p0 bra FREED;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;
FREED:";

const MMA: &str = "tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd2, %rd2, 0x08080010, 0;";

/// A second commit arrives when the MMAs are complete, too: the first one has not waited for them.
#[test]
fn two_commits_in_a_row_both_wait_for_the_mmas() {
    let body = format!(
        "{SET_UP}
    @%p0 bra WAIT;
    elect.sync _|%p1, 0xffffffff;
    @!%p1 bra WAIT;
    {MMA}
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a];
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_b];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], 0;
    @!%p2 bra WAIT;
    {TEAR_DOWN}"
    );
    clean(&body, 128, |_| 0);
}

/// The same mask elects the same lane each time (PTX ISA 9.7.13.14), so the commit is the MMA's thread's.
#[test]
fn elect_is_stable_for_a_mask() {
    let body = format!(
        "{SET_UP}
    @%p0 bra WAIT;
    elect.sync _|%p1, 0xffffffff;
    @%p1 {MMA}
    elect.sync _|%p3, 0xffffffff;
    @%p3 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
    @!%p2 bra WAIT;
    {TEAR_DOWN}"
    );
    clean(&body, 128, |_| 0);
}

/// `SET_UP` and a product of the zeroed tile with something in place of the proxy fence, and a wait for it.
fn product(fence: &str) -> String {
    let set_up = SET_UP.replace("fence.proxy.async.shared::cta;", fence);
    format!(
        "{set_up}
    @%p0 bra WAIT;
    elect.sync _|%p1, 0xffffffff;
    @!%p1 bra WAIT;
    {MMA}
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
    @!%p2 bra WAIT;
    {TEAR_DOWN}"
    )
}

/// A proxy fence orders the accesses of the thread that executes it, and what that thread has synchronised with.
#[test]
fn a_proxy_fence_by_one_lane_covers_the_others_only_past_a_warp_barrier() {
    let lane = "mov.u32 %r8, %laneid; setp.eq.u32 %p3, %r8, 0;";
    let fence = "@%p3 fence.proxy.async.shared::cta;";
    finds(&product(&format!("{lane} {fence}")), 128, "missing-proxy-fence");
    finds(
        &product(&format!("{fence} bar.warp.sync 0xffffffff;").replace("@%p3", &format!("{lane} @%p3"))),
        128,
        "missing-proxy-fence",
    );
    clean(&product(&format!("{lane} bar.warp.sync 0xffffffff; {fence}")), 128, |_| 0);
    clean(&product(&format!("{lane} bar.sync 0; {fence}")), 128, |_| 0);
}

#[test]
fn a_proxy_fence_of_global_memory_does_not_cover_shared_memory() {
    finds(&product("fence.proxy.async.global;"), 128, "missing-proxy-fence");
    clean(&product("fence.proxy.async;"), 128, |_| 0);
}

/// All threads arrive, one waits and fences for all (a production idiom).
#[test]
fn a_proxy_fence_by_the_thread_that_waited_for_all() {
    let body = product("").replace("[bar_b], 1;", "[bar_b], 128;").replace(MMA, &format!(
        "NOT_YET:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], 0;
    @!%p2 bra NOT_YET;
    fence.proxy.async.shared::cta;
    {MMA}"
    )).replace("SETUP:\n    bar.sync 0;", "SETUP:\n    bar.sync 0;\n    st.shared.v4.b32 [%r3+-2048], {0, 0, 0, 0};\n    mbarrier.arrive.shared::cta.b64 _, [bar_b];");
    clean(&body, 128, |_| 0);
    finds(&body.replace("fence.proxy.async.shared::cta;", ""), 128, "missing-proxy-fence");
}

/// Two accumulators of 16 columns, of which the second begins at `%r12` and nothing but the first one's commit is waited for before.
fn two_products(distance: u32) -> String {
    let mma = MMA.replace("0x08080010", "0x08040010");
    let read = TEAR_DOWN.replace("[%r6];", "[%r6+8];").replace(
        "    st.global",
        "SECOND:\n    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], 0;\n    @!%p2 bra SECOND;\n    st.global",
    );
    format!(
        "{SET_UP}
    add.u32 %r12, %r2, {distance};
    @%p0 bra WAIT;
    elect.sync _|%p1, 0xffffffff;
    @!%p1 bra WAIT;
    {mma}
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
    @!%p2 bra WAIT;
    @%p0 bra READ;
    elect.sync _|%p1, 0xffffffff;
    @!%p1 bra READ;
    {}
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_b];
READ:{read}",
        mma.replace("[%r2]", "[%r12]")
    )
}

/// A ring of accumulators that are nearer to each other than they are wide: that is told, and not who waits for whom.
#[test]
fn accumulators_that_lie_too_close_together() {
    clean(&two_products(16), 128, |_| 0);
    let report = run(&two_products(8), 128, None);
    let found = report.findings.iter().find(|d| d.code == "accumulator-overwritten");
    let help = found.map_or("", |d| d.help.as_str());
    assert_eq!(
        help, "Keep accumulators apart (with FP32, 16 columns each): these begin 8 columns from each other.",
        "{:#?}",
        report.findings
    );
}
