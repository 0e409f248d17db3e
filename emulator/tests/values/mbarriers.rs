//! mbarriers: phases, counts, bytes before they are announced, parities and states.

use crate::common::{codes, load, timed};
use crate::row::{Row, bare, check, each, one};

/// Waits for a phase, in a loop.
fn wait(label: &str, form: &str, parity: u32) -> String {
    format!("{label}:\n{form} %p9, [bar], {parity};\n@!%p9 bra {label};\n")
}

/// Whether the phase of this parity is complete, as a bit of `%r0`.
fn ask(parity: u32, bit: u32) -> String {
    format!(
        "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], {parity};\nselp.b32 %r1, {}, 0, %p1;\nor.b32 %r0, %r0, %r1;\n",
        1 << bit
    )
}

pub fn rows() -> Vec<Row> {
    let mut rows = sequences();
    rows.extend(forms());
    rows.extend(remote());
    rows
}

/// One thread does everything: what `test_wait` says at each point follows from the counts.
fn sequences() -> Vec<Row> {
    let start = "mov.u32 %r0, 0;\nmbarrier.init.shared::cta.b64 [bar], 2;\n";
    vec![
        // Fresh: the phase before, of parity 1, counts as complete; phase 0 does not.
        one(&format!("{start}{}{}", ask(0, 0), ask(1, 1)), 0b10),
        // Two arrivals complete phase 0, and phase 1 begins.
        one(
            &format!("{start}mbarrier.arrive.shared::cta.b64 _, [bar];\n{}mbarrier.arrive.shared::cta.b64 _, [bar];\n{}{}", ask(0, 0), ask(0, 1), ask(1, 2)),
            0b010,
        ),
        // An arrival of two, twice: parity 0 is complete, then parity 1.
        one(
            &format!("{start}mbarrier.arrive.shared::cta.b64 _, [bar], 2;\n{}mbarrier.arrive.shared::cta.b64 _, [bar], 2;\n{}{}", ask(0, 0), ask(1, 1), ask(0, 2)),
            0b011,
        ),
        // Bytes hold a phase up whose arrivals are all there.
        one(
            &format!("{start}mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\nmbarrier.arrive.shared::cta.b64 _, [bar];\n{}{}{}", ask(0, 0), copy(), wait("W", "mbarrier.try_wait.parity.shared::cta.b64", 0) + &ask(0, 1)),
            0b10,
        )
        .input(vec![7; 16]),
        // The bytes come before they are announced: the count is negative, and the phase waits for its arrivals.
        one(
            &format!("{start}{}mbarrier.arrive.shared::cta.b64 _, [bar];\n{SLOW}{}mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n{}", copy(), ask(0, 0), wait("W", "mbarrier.try_wait.parity.shared::cta.b64", 0) + &ask(0, 1)),
            0b10,
        )
        .input(vec![7; 16]),
        // More bytes than announced keep the phase open when all arrivals are there; the announcement closes it. (A copy might bring its bytes
        // behind the arrivals, which then complete the phase.)
        one(
            &format!("{start}mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;\nmbarrier.arrive.shared::cta.b64 _, [bar], 2;\n{}mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;\n{}", ask(0, 0), wait("W", "mbarrier.try_wait.parity.shared::cta.b64", 0) + &ask(0, 1)),
            0b10,
        ),
        // Invalid, the location is memory again, and may hold another one.
        one(
            &format!("{start}mbarrier.inval.shared::cta.b64 [bar];\nst.shared.b64 [bar], 5;\nld.shared.b64 %d1, [bar];\nmbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.arrive.shared::cta.b64 _, [bar];\n{}cvt.u32.u64 %r2, %d1;\nadd.u32 %r0, %r0, %r2;", ask(0, 0)),
            6,
        )
        .without("mbarrier.inval.shared::cta.b64 [bar];\n", "mbarrier-overwritten"),
    ]
}

/// Long enough for a copy to be complete.
const SLOW: &str = "mov.u32 %r5, 0;\nSLOW:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 5000;\n@%p2 bra SLOW;\n";

/// 16 bytes from `in`, counted on the barrier.
fn copy() -> &'static str {
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem], [%d7], 16, [bar];\n"
}

/// Thread 32 stores and arrives, thread 0 waits and loads: each form of both.
fn hand_over(init: &str, arrive: &str, wait: &str) -> Row {
    let body = format!(
        "setp.eq.u32 %p1, %r98, 0;\n@%p1 mov.u64 %d1, bar;\n@%p1 cvta.shared.u64 %d1, %d1;\n@%p1 {init}\nbar.sync 0;\n\
         mov.u64 %d1, bar; cvta.shared.u64 %d1, %d1; mov.u32 %r20, bar;\n\
         setp.eq.u32 %p2, %r98, 32;\n@!%p2 bra OTHER;\nst.shared.b32 [smem], 77;\n{arrive}\nbra END;\n\
         OTHER:\n@!%p1 bra END;\nWAIT:\n{wait}\n@!%p9 bra WAIT;\nld.shared.b32 %r0, [smem];\nst.global.b32 [%d8], %r0;\nEND:"
    );
    bare(64, &body).gives(0, &[77])
}

fn forms() -> Vec<Row> {
    let mut rows = Vec::new();
    let (init, arrive) = ("mbarrier.init.b64 [%d1], 1;", "mbarrier.arrive.b64 _, [%d1];");
    let wait = "mbarrier.try_wait.parity.b64 %p9, [%d1], 0;";
    rows.push(hand_over(init, arrive, wait).without(arrive, "hang"));
    for space in [".shared", ".shared::cta"] {
        let init = format!("mbarrier.init{space}.b64 [bar], 1;");
        for order in ["", ".acquire.cta", ".acquire.cluster"] {
            for kind in ["try_wait", "test_wait"] {
                let wait = format!("mbarrier.{kind}.parity{order}{space}.b64 %p9, [bar], 0;");
                let arrive = format!("mbarrier.arrive{space}.b64 _, [bar];");
                rows.push(hand_over(&init, &arrive, &wait));
            }
        }
        for order in ["", ".release.cta", ".release.cluster"] {
            let arrive = format!("mbarrier.arrive{order}{space}.b64 _, [bar];");
            rows.push(hand_over(&init, &arrive, wait));
            // Bytes are announced and come.
            let arrive = format!(
                "mbarrier.arrive.expect_tx{order}{space}.b64 _, [bar], 16;\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem+1024], [%d7], 16, [bar];"
            );
            rows.push(hand_over(&init, &arrive, wait).input(vec![1; 16]).with(
                "_, [bar], 16;",
                "_, [bar], 32;",
                "hang",
            ));
        }
        for scope in ["cta", "cluster"] {
            // Relaxed, the arrival orders nothing by itself, nor does the wait, of which ptxas makes no other instruction.
            let arrive = format!("fence.acq_rel.{scope};\nmbarrier.arrive.relaxed.{scope}{space}.b64 _, [bar];");
            rows.push(hand_over(&init, &arrive, wait).without(&format!("fence.acq_rel.{scope};\n"), "race-shared"));
            let arrive = format!("mbarrier.arrive{space}.b64 _, [bar];");
            for kind in ["try_wait", "test_wait"] {
                let wait = format!("mbarrier.{kind}.parity.relaxed.{scope}{space}.b64 %p9, [bar], 0;");
                let fenced = format!("@!%p9 bra WAIT;\nfence.acq_rel.{scope};");
                rows.push(
                    hand_over(&init, &arrive, &wait)
                        .replaced("@!%p9 bra WAIT;", &fenced)
                        .without(&format!("fence.acq_rel.{scope};"), "missing-acquire"),
                );
            }
            let arrive = format!(
                "mbarrier.expect_tx.relaxed.{scope}{space}.b64 [bar], 16;\nmbarrier.arrive{space}.b64 _, [bar];\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem+1024], [%d7], 16, [bar];"
            );
            rows.push(hand_over(&init, &arrive, wait).input(vec![1; 16]));
            let arrive =
                format!("fence.acq_rel.{scope};\nmbarrier.arrive.expect_tx.relaxed.{scope}{space}.b64 _, [bar], 0;");
            rows.push(hand_over(&init, &arrive, wait));
        }
        let inval = format!("mbarrier.init{space}.b64 [bar], 7;\n@%p1 mbarrier.inval{space}.b64 [bar];\n@%p1 {init}");
        rows.push(hand_over(&inval, &format!("mbarrier.arrive{space}.b64 _, [bar];"), wait));
    }
    rows.push(hand_over(
        "mbarrier.init.b64 [%d1], 7;\n@%p1 mbarrier.inval.b64 [%d1];\n@%p1 mbarrier.init.b64 [%d1], 1;",
        arrive,
        wait,
    ));
    rows.push(hand_over(
        init,
        "mbarrier.expect_tx.relaxed.cta.b64 [%d1], 0;\nmbarrier.arrive.expect_tx.b64 _, [%d1], 0;",
        wait,
    ));
    rows.push(hand_over(
        init,
        "mbarrier.expect_tx.b64 [%d1], 0;\nmbarrier.arrive.b64 _, [%d1];",
        "mbarrier.test_wait.parity.b64 %p9, [%d1], 0;",
    ));
    // The state of an arrival names its phase: it is complete after the second arrival, and stays so in the next phase.
    for kind in ["try_wait", "test_wait"] {
        for order in ["", ".acquire.cta", ".acquire.cluster", ".relaxed.cta", ".relaxed.cluster"] {
            for space in ["", ".shared", ".shared::cta"] {
                let at = if space.is_empty() { "%d5" } else { "bar" };
                let body = format!(
                    "mov.u64 %d5, bar; cvta.shared.u64 %d5, %d5; mbarrier.init.shared.b64 [bar], 2;\nmbarrier.arrive{space}.b64 %d1, [{at}];\n\
                     mbarrier.test_wait{space}.b64 %p1, [{at}], %d1;\nselp.b32 %r1, 1, 0, %p1;\nmbarrier.arrive{space}.b64 %d2, [{at}];\n\
                     A:\nmbarrier.{kind}{order}{space}.b64 %p2, [{at}], %d1;\n@!%p2 bra A;\nmbarrier.arrive{space}.b64 %d2, [{at}];\n\
                     mbarrier.test_wait{space}.b64 %p3, [{at}], %d2;\nselp.b32 %r2, 2, 0, %p3;\nadd.u32 %r0, %r1, %r2;\nadd.u32 %r0, %r0, 4;"
                );
                rows.push(one(&body, 4).around("", ""));
            }
        }
    }
    rows
}

/// CTA 1 arrives at the barrier of CTA 0, which waits.
fn remote() -> Vec<Row> {
    let mut rows = Vec::new();
    // What an arrival that is relaxed or at .cta scope tells another CTA.
    let fence = "fence.acq_rel.cluster;";
    for (arrive, kept) in [
        ("mbarrier.arrive.shared::cluster.b64 _, [%r21];", fence),
        ("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r21];", fence),
        ("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21], 1;", ""),
        ("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r21], 0;", fence),
        ("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r21], 0;", ""),
        ("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r21];", fence),
        ("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r21], 0;", fence),
        (
            "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r21], 0;\nmbarrier.arrive.shared::cluster.b64 _, [%r21];",
            fence,
        ),
    ] {
        let body = format!(
            "mov.u32 %r20, bar;\nmapa.shared::cluster.u32 %r21, %r20, 0;\nmov.u32 %r22, smem;\nmapa.shared::cluster.u32 %r23, %r22, 0;\n\
             setp.eq.u32 %p1, %r97, 0;\n@!%p1 bra FAR;\nWAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p9, [bar], 0;\n@!%p9 bra WAIT;\n\
             ld.shared.b32 %r0, [smem];\nst.global.b32 [%d8], %r0;\nbra END;\nFAR:\nst.shared::cluster.b32 [%r23], 77;\n{kept}\n{arrive}\nEND:"
        );
        let row = bare(1, &body).ctas(2, 2).gives(0, &[77]).around(
            "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;",
            "barrier.cluster.arrive; barrier.cluster.wait;",
        );
        let last = arrive.lines().last().unwrap_or("");
        rows.push(row.without(last, "hang"));
    }
    rows
}

/// A wait ends by a time limit of the system, whether the phase is complete or not (PTX ISA, mbarrier.try_wait): who asks once, or so many
/// times, goes on with false. Who asks until it passes does not: that is a hang, and told at once.
#[test]
fn a_try_wait_has_a_time_limit_and_a_loop_around_it_has_none() {
    let init = "mbarrier.init.shared::cta.b64 [bar], 1;\n";
    let asks = "mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 0;";
    let once = format!("{init}{asks}\nselp.b32 %r0, 7, 5, %p9;");
    let five = format!(
        "{init}mov.u32 %r0, 0;\nAGAIN:\n{asks}\n@%p9 bra OVER;\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p1, %r0, 5;\n@%p1 bra AGAIN;\nOVER:"
    );
    // Both ask before the second warp arrives, in whatever order they run: it arrives when the first one has given up.
    let given_up = format!(
        "setp.eq.u32 %p1, %r98, 0;\n@%p1 {init}bar.sync 0;\nsetp.ge.u32 %p2, %r98, 32;\n@%p2 bra LAST;\n{asks}\nLAST:\nbar.sync 1;\n\
         setp.eq.u32 %p3, %r98, 32;\n@%p3 mbarrier.arrive.shared::cta.b64 _, [bar];\n{}mov.u32 %r0, 5;",
        wait("PASS", "mbarrier.try_wait.parity.shared::cta.b64", 0)
    );
    check(&[one(&once, 5), one(&five, 5), each(64, &given_up, |_| 5)]);
    let report = |body: &str| {
        let row = one(body, 0);
        timed::run(&load(&row.text()), &row.launch(), 2_000_000)
    };
    let (spins, took) =
        report(&format!("{init}mov.u32 %r0, 0;\n{}", wait("W", "mbarrier.try_wait.parity.shared::cta.b64", 0)));
    assert_eq!(codes(&spins), ["hang"]);
    assert!(took.as_secs() < 2, "{took:?}");
    // The loop does something that others see: it is no plain wait, and never ends either.
    let (busy, took) =
        report(&format!("{init}mov.u32 %r0, 0;\nAGAIN:\n{asks}\nst.global.b32 [%d9], %r0;\n@!%p9 bra AGAIN;"));
    assert_eq!(codes(&busy), ["hang"]);
    assert!(took.as_secs() < 2, "{took:?}");
}

#[test]
fn values() {
    check(&rows());
}
