//! Lanes that part and meet again.

use super::{clean, run};

/// Lanes that end do not keep the others from meeting: neither a check that traps, nor an early return.
#[test]
fn lanes_meet_again_behind_code_that_traps_or_returns() {
    for check in ["@%p2 bra FINE;\n trap;\nFINE:", "@!%p2 trap;", "@!%p2 ret;", "@%p2 bra FINE;\n ret;\nFINE:"] {
        let body = format!(
            "setp.lt.u32 %p1, %r0, 4;
             setp.lt.u32 %p2, %r0, 1000;
             mov.u32 %r1, 0;
             @!%p1 bra MEET;
             {check}
             mov.u32 %r1, 7;
        MEET:
             bar.warp.sync 0xffffffff;
             shfl.sync.idx.b32 %r2, %r1, 1, 31, 0xffffffff;
             bar.sync 0;
             st.global.b32 [%rd0], %r2;"
        );
        clean(&body, 32, |_| 7);
    }
}

/// A loop that only a guarded return leaves: lanes that part in it meet in it.
#[test]
fn lanes_meet_in_a_loop_that_only_a_return_leaves() {
    let body = "mov.u32 %r1, 0;
             mov.u32 %r2, 0;
    AGAIN:
             setp.eq.u32 %p2, %r1, 3;
             @%p2 st.global.b32 [%rd0], %r2;
             @%p2 ret;
             setp.lt.u32 %p1, %r0, 4;
             @%p1 bra MEET;
             add.u32 %r2, %r2, 1;
    MEET:
             shfl.sync.idx.b32 %r3, %r0, 9, 31, 0xffffffff;
             add.u32 %r2, %r2, %r3;
             add.u32 %r1, %r1, 1;
             bra AGAIN;";
    clean(body, 32, |n| 27 + if n < 4 { 0 } else { 3 });
}

/// Lanes that wait on the clock see it advance, wherever the others are.
#[test]
fn the_clock_advances_for_lanes_that_part() {
    for part in ["@%p0 bra SPIN; bra DONE;", "@!%p0 bra DONE; bra SPIN;"] {
        let body = format!(
            "setp.eq.u32 %p0, %r0, 9;
             mov.u32 %r5, %clock;
             {part}
        SPIN:
             mov.u32 %r6, %clock;
             sub.u32 %r6, %r6, %r5;
             setp.lt.u32 %p1, %r6, 5000;
             @%p1 bra SPIN;
        DONE:
             st.global.b32 [%rd0], 4;"
        );
        clean(&body, 32, |_| 4);
    }
}

/// One lane is elsewhere while the others part and meet again and again: memory and time stay bounded.
#[test]
fn parting_often_beside_a_lane_that_waits() {
    let body = "
    setp.ne.u32 %p3, %r0, 0;
    @!%p3 mbarrier.init.shared::cta.b64 [bar_a], 1;
    bar.sync 0;
    @%p3 bra WORK;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
    @!%p2 bra WAIT;
    bra DONE;
WORK:
    mov.u32 %r5, 0;
    setp.lt.u32 %p4, %r0, 16;
    setp.eq.u32 %p5, %r0, 1;
LOOP:
    @%p4 bra MEET;
    xor.b32 %r6, %r5, 1;
MEET:
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 100000;
    @%p1 bra LOOP;
    @%p5 mbarrier.arrive.shared::cta.b64 _, [bar_a];
DONE:
    st.global.b32 [%rd0], 4;";
    let started = std::time::Instant::now();
    let report = run(body, 32, None);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

/// Half of each warp comes to a barrier that is not `.aligned`: `%p1` of the first 16 lanes, `%p3` of the second warp.
fn halves(body: &str) -> String {
    format!(
        "and.b32 %r1, %r0, 31;
         setp.lt.u32 %p1, %r1, 16;
         setp.ge.u32 %p3, %r0, 32;
         mov.u32 %r9, 7;
         @!%p1 st.relaxed.cta.shared.b32 [slot], 0;
         bar.sync 0;
         {body}
         END:
         st.global.b32 [%rd0], %r9;"
    )
}

/// A barrier that is not `.aligned` waits for the other lanes of the warp to come, wherever, or to end: they go on where the guard keeps them
/// away, or where they would wait for those that wait for them. An H200 runs them all.
#[test]
fn a_part_of_a_warp_waits_for_the_rest_which_goes_on() {
    // The warp, and in all the lanes that the barrier waits for.
    let both = "@%p1 barrier.sync 1;\n@!%p1 barrier.sync 1;\n";
    for body in [
        "@%p1 barrier.sync 1;",
        "@%p1 barrier.sync 1;\n@%p1 barrier.sync 1;",
        "@%p1 barrier.sync 1, 0;",
        "@%p1 bar.warp.sync 0xffff;\n@%p1 barrier.sync 1, 64;",
        "@!%p1 bra END;\nbarrier.sync 1;",
        "mov.u32 %r5, 0;\nAGAIN:\n@!%p1 bra OVER;\nbarrier.sync 1;\nOVER:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p4, %r5, 3;\n@%p4 bra AGAIN;",
        "@!%p1 bra OVER;\nbarrier.sync 1;\nOVER:\nadd.u32 %r9, %r9, 0;\n@!%p1 bra END;\nbarrier.sync 2;",
        &format!("{both}bar.sync 0;"),
        &format!("{both}bar.warp.sync 0xffffffff;"),
        "@%p1 bar.warp.sync 0xffffffff;\n@!%p1 bar.warp.sync 0xffffffff;\nbar.sync 0;",
        "@%p1 barrier.cluster.arrive;\n@%p1 barrier.cluster.wait;",
        // The second warp comes only once the lanes that are kept away have said so.
        "@%p3 bra SECOND;\n@%p1 barrier.sync 1, 64;\n@!%p1 st.relaxed.cta.shared.b32 [slot], 1;\nbra END;\n\
         SECOND:\nld.relaxed.cta.shared.b32 %r5, [slot];\nsetp.eq.u32 %p4, %r5, 0;\n@%p4 bra SECOND;\nbarrier.sync 1, 64;",
        "@%p3 bra SECOND;\n@%p1 barrier.arrive 1, 64;\nbra END;\nSECOND:\nbarrier.sync 1, 64;",
    ] {
        clean(&halves(body), 64, |_| 7);
    }
    let votes = "@%p1 barrier.red.popc.u32 %r9, 1, %p1;";
    clean(&halves(votes), 64, |n| if n % 32 < 16 { 32 } else { 7 });
    let shuffle = format!("{both}shfl.sync.bfly.b32 %r9, %r0, 16, 31, 0xffffffff;");
    clean(&halves(&shuffle), 64, |n| n as u32 ^ 16);
}

/// The same, where the rest of the warp neither comes nor ends.
#[test]
fn a_part_of_a_warp_waits_for_the_rest_in_vain() {
    for (body, code) in [
        ("@%p1 barrier.sync 1;\nbar.sync 0;", "aligned-lanes-missing"),
        ("@%p1 barrier.sync 1;\nshfl.sync.bfly.b32 %r9, %r0, 16, 31, 0xffffffff;", "lanes-missing"),
        ("@%p1 bar.sync 1;", "aligned-lanes-missing"),
        ("@%p1 barrier.sync.aligned 1;", "aligned-lanes-missing"),
        ("@%p1 bar.warp.sync 0xffffffff;\n@!%p1 barrier.sync 1;", "hang"),
        (
            "@%p3 bra SECOND;\n@%p1 barrier.sync 1, 64;\n@%p1 bra END;\n\
             SPIN:\nld.relaxed.cta.shared.b32 %r5, [slot];\nsetp.eq.u32 %p4, %r5, 0;\n@%p4 bra SPIN;\nbra END;\n\
             SECOND:\nbarrier.sync 1, 64;\nst.relaxed.cta.shared.b32 [slot], 1;",
            "hang",
        ),
    ] {
        super::finds(&halves(body), 64, code);
    }
}
