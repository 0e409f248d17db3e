//! Instructions that let threads wait, under a guard that holds in some lanes of a warp: those wait, for what they have done themselves, and the others go on.

use super::case::{Base::Small, run, says, told};
use emulator::{Deadlock, Report};

fn of(body: &'static str, edits: &[(&str, &str)]) -> Report {
    run(Small(1, 32, body), edits, |_| {}, 100_000)
}

fn is_silent(body: &'static str, edits: &[(&str, &str)]) {
    let report = of(body, edits);
    assert!(
        report.is_clean() && report.notes.is_empty(),
        "{edits:?}: {}{}",
        told(&report.findings),
        told(&report.notes)
    );
    assert_eq!(report.deadlock, Deadlock::Impossible, "{edits:?}");
}

#[track_caller]
fn finds(body: &'static str, edits: &[(&str, &str)], code: &str, what: &[&str]) {
    let report = of(body, edits);
    let Some(first) = report.findings.first() else { panic!("{edits:?}: nothing is found, {}", told(&report.notes)) };
    assert_eq!(first.code, code, "{}", told(&report.findings));
    says(first, what);
}

/// Lane 1 arrives behind the wait of lane 0, which the others do not execute.
const WAIT: &str = "
    @%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
    bar.warp.sync 0xffffffff;
    setp.eq.u32 %p1, %r0, 1;
    setp.ne.u32 %p2, %r0, 0;
AGAIN:
    @%p0 mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
    @!%p2 bra AGAIN;
    @%p1 mbarrier.arrive.shared::cta.b64 _, [bar_a];
    bar.warp.sync 0xffffffff;";

#[test]
fn who_does_not_wait_for_an_mbarrier_goes_on() {
    is_silent(WAIT, &[]);
    // It waits for lane 0.
    let meets_before = ("    @%p1 mbarrier.arrive", "    bar.warp.sync 0xffffffff;\n    @%p1 mbarrier.arrive");
    finds(WAIT, &[meets_before], "hang", &["mbarrier.try_wait"]);
}

/// Each lane copies 16 bytes, and reads what its neighbour has copied.
const COPIES: &str = "
    @%p0 mbarrier.init.shared::cta.b64 [bar_a], 32;
    setp.lt.u32 %p1, %r0, 16;
    mov.u32 %r3, tile;
    shl.b32 %r4, %r0, 4;
    add.u32 %r5, %r3, %r4;
    cvt.u64.u32 %rd3, %r4;
    add.s64 %rd3, %rd3, %rd1;
    bar.warp.sync 0xffffffff;
    cp.async.cg.shared.global [%r5], [%rd3], 16;
    cp.async.commit_group; // @commit
    cp.async.wait_group 0; // @wait
    bar.warp.sync 0xffffffff;
    xor.b32 %r6, %r5, 256;
    ld.shared.u32 %r7, [%r6];
    cvt.u64.u32 %rd4, %r4;
    add.s64 %rd4, %rd4, %rd0;
    st.global.u32 [%rd4], %r7;";
const ARRIVES: &[(&str, &str)] = &[
    ("@commit", "    cp.async.mbarrier.arrive.noinc.shared.b64 [bar_a];"),
    ("@wait", "AGAIN:\n    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;\n    @!%p2 bra AGAIN;"),
];

#[test]
fn lanes_wait_for_their_own_copies() {
    is_silent(COPIES, &[]);
    // Both halves of the warp, each by itself.
    is_silent(COPIES, &[("@wait", "    @%p1 cp.async.wait_group 0;\n    @!%p1 cp.async.wait_group 0;")]);
    is_silent(COPIES, &[("@wait", "    @%p1 cp.async.wait_all;\n    @!%p1 cp.async.wait_all;")]);
    is_silent(COPIES, ARRIVES);
    let copy = "cp.async.cg.shared.global [%r5], [%rd3], 16";
    finds(COPIES, &[("@wait", "    @%p1 cp.async.wait_group 0;")], "race-shared", &[copy]);
    finds(COPIES, &[("@wait", "    @%p1 cp.async.wait_all;")], "race-shared", &[copy]);
    finds(COPIES, &[("@commit", "    @%p1 cp.async.commit_group;")], "race-shared", &[copy]);
    // An mbarrier that counts one arrival of a lane for all.
    let one =
        [("[bar_a], 32;", "[bar_a], 1;"), ("cp.async.mbarrier.arrive.noinc", "@%p0 cp.async.mbarrier.arrive.noinc")];
    finds(COPIES, &[ARRIVES, &one[..]].concat(), "race-shared", &[copy]);
}

/// Lanes 0 and 1 store 128 bytes each, and write to them again.
const STORES: &str = "
    setp.lt.u32 %p1, %r0, 2;
    mov.u32 %r3, tile;
    shl.b32 %r4, %r0, 3;
    add.u32 %r4, %r4, %r3;
    st.shared.v2.b32 [%r4], {%r0, %r0};
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    shl.b32 %r5, %r0, 7;
    cvt.u64.u32 %rd3, %r5;
    add.s64 %rd3, %rd3, %rd0;
    add.u32 %r5, %r5, %r3;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r5], 128;
    @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group.read 0; // @wait
    bar.warp.sync 0xffffffff;
    st.shared.v2.b32 [%r4], {%r0, %r0};";

#[test]
fn lanes_wait_for_their_own_stores() {
    is_silent(STORES, &[]);
    finds(STORES, &[("@wait", "    @%p0 cp.async.bulk.wait_group.read 0;")], "race-shared", &["cp.async.bulk.global"]);
}

/// What all lanes of a warp execute together, and what none has to.
#[test]
fn what_is_for_the_whole_warp_has_no_guard() {
    for (together, code) in [
        ("bar.sync 0;", "aligned-lanes-missing"),
        ("barrier.cluster.arrive.aligned;", "aligned-lanes-missing"),
        ("tcgen05.wait::ld.sync.aligned;", "aligned-lanes-missing"),
        ("tcgen05.wait::st.sync.aligned;", "aligned-lanes-missing"),
        ("elect.sync _|%p2, 0xffffffff;", "lanes-missing"),
        ("shfl.sync.idx.b32 %r3, %r0, 0, 31, 0xffffffff;", "lanes-missing"),
        ("vote.sync.any.pred %p2, %p0, 0xffffffff;", "lanes-missing"),
    ] {
        let body: &'static str = Box::leak(format!("    {together} // @it").into_boxed_str());
        let behind = if together.starts_with("barrier.cluster") { "\n    barrier.cluster.wait.aligned;" } else { "" };
        is_silent(body, &[("@it", &format!("    {together}{behind}"))]);
        finds(
            body,
            &[("@it", &format!("    @%p0 {together}{behind}"))],
            code,
            &[together.split([' ', ';']).next().unwrap_or_default()],
        );
    }
    is_silent("    griddepcontrol.wait; // @it", &[("@it", "    @%p0 griddepcontrol.wait;")]);
    // Not aligned: who is kept away does not keep the others.
    is_silent(
        "    barrier.sync 1, 32; // @it",
        &[("@it", "    @%p0 barrier.sync 1, 32;\n    @!%p0 barrier.sync 1, 32;")],
    );
}
