//! Work that nobody does, and what a missing wait leads to: the guard, the count or the wait is told, and no consequence of it beside.

use super::case::{Base, first, run, says};
use Base::{Pair, Ring, Small};

/// A role's branch asks for a warp that the CTA does not have.
#[test]
fn a_role_of_a_warp_that_does_not_exist() {
    let edits = [("setp.eq.u32 %p3, %r1, 5;", "setp.eq.u32 %p3, %r1, 6;")];
    let found = first(Ring, &edits, |_| {});
    says(
        &found,
        &[
            "this would arrive, but was never executed",
            "warps 0 to 3, 5 come here, and none goes on to it: `setp.eq.u32 %p3, %r1, 6` compares 0 to 3, 5 with 6",
            "check which warp, lane or CTA it asks for",
        ],
    );
    assert!(found.labels.iter().any(|label| label.place.text.contains("bra MULTIPLIER")), "{found:#?}");
}

/// Within the branch of one warp a thread of another one is asked for.
#[test]
fn a_thread_of_another_warp_is_asked_for() {
    for (line, values) in [("@one_producer", "128 to 159 with 0"), ("@one_multiplier", "160 to 191 with 0")] {
        let found = first(Ring, &[(line, "setp.eq.u32 %p2, %r0, 0;\n@!%p2 bra END;")], |_| {});
        says(&found, &["and none goes on to it: `setp.eq.u32 %p2, %r0, 0` compares", values]);
    }
}

/// An arrival is guarded by itself; a loop's end, which its place does not decide, is no role.
#[test]
fn an_arrival_under_a_guard_that_never_holds() {
    let arrive = "mbarrier.arrive.shared::cta.b64 _, [%r22+48];";
    let guarded = format!("setp.eq.u32 %p12, %r1, 7;\n@%p12 {arrive}");
    let found = first(Ring, &[("@arrive_acc_empty", guarded.as_str())], |_| {});
    says(&found, &["but was never executed; warps 0 to 3 come here, and none executes it", "compares 0 to 3 with 7"]);
    let by_loop = format!("setp.eq.u32 %p12, %r10, 77;\n@%p12 {arrive}");
    let found = first(Ring, &[("@arrive_acc_empty", by_loop.as_str())], |_| {});
    assert!(!found.labels.iter().any(|label| label.text.contains("compares")), "{found:#?}");
}

/// Some arrivals of a phase come, and those of another role do not; the same of a CTA barrier.
#[test]
fn some_come_and_a_role_does_not() {
    let two = "setp.eq.u32 %p12, %r0, 0;\n@%p12 mbarrier.arrive.shared::cta.b64 _, [%r22+48];\nsetp.eq.u32 %p13, %r1, 4;\n\
               @!%p13 bra PAST;\nmbarrier.arrive.shared::cta.b64 _, [%r22+48];\nPAST:";
    let edits = [
        ("@init_acc_empty_0", "mbarrier.init.shared::cta.b64 [%r3+48], 2;"),
        ("@init_acc_empty_1", "mbarrier.init.shared::cta.b64 [%r3+56], 2;"),
        ("@arrive_acc_empty", two),
    ];
    let found = first(Ring, &edits, |_| {});
    says(
        &found,
        &[
            "it waits for 2 arrivals and gets 1",
            "none goes on to it: `setp.eq.u32 %p13, %r1, 4` compares 0 to 3 with 4",
        ],
    );
    let bar =
        "setp.eq.u32 %p13, %r1, 7;\n@%p13 bra OTHER;\nbar.sync 1, 160;\nbra BOTH;\nOTHER:\nbar.sync 1, 160;\nBOTH:";
    let found = first(Ring, &[("@tile_written", bar)], |_| {});
    says(
        &found,
        &["CTA barrier 1 waits for 160 threads and gets 128", "others would come to it here", "compares 0 to 3 with 7"],
    );
}

/// A copy under a guard that nobody of a CTA, or nobody at all, passes.
#[test]
fn a_copy_that_nobody_issues() {
    let found = first(Ring, &[("@load_b", "@%p0 bra PAST;\n{}\nPAST:")], |_| {});
    says(&found, &["this would bring bytes, but was never executed", "`setp.ne.u32 %p0, %r1, 0` compares 4 with 0"]);
    let rank = "    @!%p0 bra EPILOGUE;\n    setp.ne.u32 %p12, %r2, 0;\n    @%p12 bra EPILOGUE;\n    elect.sync";
    let found = first(Pair, &[("    @!%p0 bra EPILOGUE;\n    elect.sync", rank)], |_| {});
    says(&found, &["warp 0 of CTA 1 comes here, and none goes on to it: `setp.ne.u32 %p12, %r2, 0` compares 1 with 0"]);
}

/// CTA 0 loads for both CTAs of its cluster.
const MULTICAST: &str = "mov.u32 %r3, bar_a;\nmov.u32 %r4, tile;\nmov.u32 %r5, 0;\nmov.b16 %h0, 3;
    @%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
    setp.eq.u32 %p1, %r2, 0;
    and.pred %p1, %p1, %p0;
    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r4], [%rd2, {%r5, %r5}], [%r3], %h0;
    WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;\n@!%p2 bra WAIT;
    barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;";

#[test]
fn a_multicast_that_does_not_come() {
    let base = Small(2, 32, MULTICAST);
    assert!(run(base, &[], |_| {}, 400_000).findings.is_empty());
    let found = first(base, &[("setp.eq.u32 %p1, %r2, 0;", "setp.eq.u32 %p1, %r2, 2;")], |_| {});
    says(&found, &["this would bring bytes, but was never executed", "compares 0 to 1 with 2"]);
    let found = first(base, &[(".multicast::cluster [", " ["), ("[%r3], %h0;", "[%r3];")], |_| {});
    says(
        &found,
        &[
            "has no .multicast::cluster: it goes to CTA 0 alone",
            "If CTA 1 is to get these bytes, too, write .multicast::cluster",
        ],
    );
}

/// Of 128 threads that arrive in a round, 64 are counted.
#[test]
fn half_of_the_threads_are_counted() {
    let edits = [
        ("@init_acc_empty_0", "mbarrier.init.shared::cta.b64 [%r3+48], 64;"),
        ("@init_acc_empty_1", "mbarrier.init.shared::cta.b64 [%r3+56], 64;"),
    ];
    let found = first(Ring, &edits, |_| {});
    says(&found, &["128 arrive in a round, and it counts 64", "is initialised for 64 arrivals a phase here"]);
    assert!(found.labels[0].place.text.starts_with("mbarrier.init"), "{found:#?}");
}

/// The wait of the MMAs for their accumulator is missing: that a phase may be overtaken is no finding of its own.
#[test]
fn an_accumulator_that_is_not_waited_for_is_one_finding() {
    let report = run(Ring, &[("@wait_acc_empty", ""), ("@loop_acc_empty", "")], |_| {}, 400_000);
    let codes: Vec<&str> = report.findings.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["accumulator-overwritten"], "{:#?}", report.findings);
}

/// Who should wait at a barrier arrives there by `bar.arrive`.
#[test]
fn who_reads_arrives_and_does_not_wait() {
    let body = "shl.b32 %r3, %r0, 2;\nmov.u32 %r4, tile;\nadd.u32 %r4, %r4, %r3;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra READER;\n\
                st.shared.b32 [%r4], %r0;\nbar.sync 1, 64;\nbra DONE;\nREADER:\nbar.arrive 1, 64;\n\
                ld.shared.b32 %r5, [%r4+-128];\nred.global.add.u32 [%rd0], %r5;\nDONE:";
    let found = first(Small(1, 64, body), &[], |_| {});
    says(
        &found,
        &["warp 1 arrives at barrier 1 here, and does not wait for warp 0", "bar.sync in place of bar.arrive"],
    );
    let meets = [("bar.arrive 1, 64;", "bar.sync 1, 64;")];
    assert!(run(Small(1, 64, body), &meets, |_| {}, 400_000).findings.iter().all(|d| d.code != "race-shared"));
}
