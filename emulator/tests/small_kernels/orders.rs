//! What comes before what: phases of mbarriers, arrivals, strong accesses.

use super::{clean, common, finds, run};

/// A wait for the wrong parity is found also where this schedule lets the waiter come so late that it does no harm.
#[test]
fn a_wait_on_a_phase_that_may_not_have_begun() {
    let body = |parity: u32| {
        format!(
            "
    setp.ne.u32 %p3, %r0, 0;
    @!%p3 mbarrier.init.shared::cta.b64 [bar_a], 1;
    bar.sync 0;
    mov.u32 %r9, tile;
    setp.ge.u32 %p0, %r0, 32;
    @%p0 bra LATE;
    @!%p3 st.shared.b32 [%r9], 5;
    @!%p3 mbarrier.arrive.shared::cta.b64 _, [bar_a];
    @!%p3 mbarrier.arrive.shared::cta.b64 _, [bar_a];
    bra DONE;
LATE:
    mov.u32 %r5, 0;
SLOW:
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 3000;
    @%p1 bra SLOW;
FIRST:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], {parity};
    @!%p2 bra FIRST;
SECOND:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 1;
    @!%p2 bra SECOND;
    ld.shared.b32 %r6, [%r9];
    st.global.b32 [%rd0], %r6;
DONE:"
        )
    };
    finds(&body(1), 64, "race-shared");
    let right =
        body(0).replace("    @!%p3 mbarrier.arrive.shared::cta.b64 _, [bar_a];\n    bra DONE;", "    bra DONE;");
    let right = right
        .replace("SECOND:\n    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 1;\n    @!%p2 bra SECOND;\n", "");
    clean(&right, 64, |n| if n < 32 { 0 } else { 5 });
}

/// A location may hold one mbarrier after another; what was known of the first is not taken for the second.
#[test]
fn mbarriers_that_are_initialised_again_and_again() {
    let body = "
    setp.ne.u32 %p3, %r0, 0;
    @%p3 bra DONE;
    mov.u32 %r5, 0;
AGAIN:
    mbarrier.init.shared::cta.b64 [bar_a], 1;
    mbarrier.arrive.shared::cta.b64 _, [bar_a];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
    @!%p2 bra WAIT;
    mbarrier.inval.shared::cta.b64 [bar_a];
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 20000;
    @%p1 bra AGAIN;
DONE:
    st.global.b32 [%rd0], 1;";
    clean(body, 32, |_| 1);
    finds(&body.replace("    mbarrier.inval.shared::cta.b64 [bar_a];\n", ""), 32, "mbarrier-reinitialised");
}

/// A store behind an arrival is no part of what the arrival tells (PTX ISA 9.7.13.1, barrier.cluster).
#[test]
fn what_follows_an_arrival_is_not_before_it() {
    let store = "shl.b32 %r3, %r0, 2; mov.u32 %r4, tile; add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], 7;";
    let named = format!(
        "setp.ge.u32 %p2, %r0, 32;\n@%p2 bra OTHER;\nbar.arrive 1, 64;\n{store}\nbra END;\n\
         OTHER:\nbar.sync 1, 64;\nld.shared.u32 %r5, [tile];\nEND:"
    );
    let cluster = format!(
        "setp.ge.u32 %p2, %r0, 32;\nbarrier.cluster.arrive;\n@%p2 bra WAIT;\n{store}\n\
         WAIT:\nbarrier.cluster.wait;\n@!%p2 bra END;\nld.shared.u32 %r5, [tile];\nEND:"
    );
    for body in [named, cluster] {
        finds(&body, 64, "race-shared");
    }
}

/// A strong read after a weak one of the same place does not make the weak one strong.
#[test]
fn a_strong_read_hides_no_weak_one() {
    for (weak, code) in [("ld.global.u32 %r4, [%rd2];", Some("race-global")), ("", None)] {
        let body = format!(
            "setp.ge.u32 %p2, %r0, 32;\nld.param.u64 %rd2, [out];\n@%p2 bra OTHER;\n{weak}\nld.relaxed.gpu.global.u32 %r5, [%rd2];\n\
             bra END;\nOTHER:\nst.relaxed.gpu.global.u32 [%rd2], 7;\nEND:"
        );
        let codes = common::codes(&run(&body, 64, None)).contains(&"race-global");
        assert_eq!(codes, code.is_some(), "{body}");
    }
}

/// Nor does a strong write after a weak access: others that are strong race with the weak one alone.
#[test]
fn a_strong_write_hides_no_weak_access() {
    let strong =
        ["st.relaxed.gpu.global.u32 [%rd2], 7;", "st.volatile.global.u32 [%rd2], 7;", "red.global.add.u32 [%rd2], 1;"];
    let other = ["ld.relaxed.gpu.global.u32 %r5, [%rd2];", "st.release.gpu.global.u32 [%rd2], 8;"];
    for (weak, races) in [("st.global.u32 [%rd2], 7;", true), ("ld.global.u32 %r4, [%rd2];", true), ("", false)] {
        for (strong, other) in strong.iter().flat_map(|strong| other.map(|other| (strong, other))) {
            let body = format!(
                "setp.ge.u32 %p2, %r0, 32;\nld.param.u64 %rd2, [out];\n@%p2 bra OTHER;\n{weak}\n{strong}\nbra END;\n\
                 OTHER:\n{other}\nEND:"
            );
            let reads_only = weak.starts_with("ld") && other.starts_with("ld");
            let found = common::codes(&run(&body, 64, None)).contains(&"race-global");
            assert_eq!(found, races && !reads_only, "{body}");
        }
    }
}

/// Who waits for a phase that completes without a copy's bytes reads too early, however many phases pass before they come
/// (PTX ISA 9.7.13.15.6).
#[test]
fn phases_that_complete_before_the_bytes_come() {
    let wait = "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra W;";
    let init = "setp.ne.u32 %p2, %r0, 0;\n@%p2 bra END;\nst.shared.v4.u32 [tile], {0, 0, 0, 0};\n\
                mbarrier.init.shared::cta.b64 [bar_a], 1;\nfence.proxy.async;";
    let copy = "add.u64 %rd3, %rd0, 1024;\n\
                cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3], 16, [bar_a];";
    let request =
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [bar_a];";
    let arrive = "mbarrier.arrive.shared::cta.b64 _, [bar_a];";
    for (asked, more) in [(copy, ""), (copy, arrive), (request, "")] {
        let body = format!("{init}\n{asked}\n{arrive}\n{wait}\n{more}\nld.shared.u32 %r5, [tile];\nEND:");
        let codes = common::codes(&run(&body, 32, None)).contains(&"phase-completed-early");
        assert!(codes, "{body}");
    }
}

/// One fence behind the store cures all that read it: one thing is told, and the readers are its labels.
#[test]
fn two_copies_read_what_one_statement_stores_without_a_fence() {
    let body = "
    mov.u32 %r1, tile;
    shl.b32 %r2, %r0, 2;
    add.u32 %r2, %r2, %r1;
    st.shared.b32 [%r2], %r0;
    FENCE
    bar.sync 0;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra DONE;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 64;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0+64], [%r1+64], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
DONE:";
    clean(&body.replace("FENCE", "fence.proxy.async.shared::cta;"), 32, |n| n as u32);
    let report = run(&body.replace("FENCE", ""), 32, None);
    assert_eq!(common::codes(&report), ["missing-proxy-fence"]);
    let copies = report.findings[0].labels.iter().filter(|label| label.place.text.contains("cp.async.bulk.global"));
    assert_eq!(copies.count(), 2, "{:#?}", report.findings);
}

/// What one statement initialises in each CTA of a cluster lacks one fence: who uses it where stands in one finding.
#[test]
fn one_statement_initialises_in_two_ctas_and_each_uses_it_elsewhere() {
    let body = "
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
    barrier.cluster.arrive.relaxed.aligned;
    barrier.cluster.wait.acquire.aligned;
    mov.u32 %r1, %cluster_ctarank;
    setp.ne.u32 %p1, %r0, 32;
    @%p1 bra DONE;
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra FIRST;
    mbarrier.arrive.shared::cta.b64 _, [bar_a];
    bra DONE;
FIRST:
    mbarrier.arrive.release.cta.shared::cta.b64 _, [bar_a];
DONE:";
    let launch = emulator::Launch {
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        ..common::launch("k", 64, vec![common::zeroes("out", 4096)])
    };
    let report = common::run(&common::load(&super::kernel(body)), &launch, None, 5_000_000);
    assert_eq!(common::codes(&report), ["mbarrier-init-unordered"], "{:#?}", report.findings);
    let uses = report.findings[0].labels.iter().filter(|label| label.place.text.starts_with("mbarrier.arrive"));
    assert_eq!(uses.count(), 2, "{:#?}", report.findings);
}

/// A value that differs on another schedule confirms a race, but where the kernel reads a clock: there it may differ without one.
#[test]
fn what_is_computed_of_a_clock_confirms_nothing() {
    let race = "setp.lt.u32 %p1, %r0, 32;\n@%p1 st.shared.u32 [tile], 9;\n@!%p1 ld.shared.u32 %r1, [tile];\n\
                @!%p1 st.global.u32 [%rd0], %r1;\n";
    for (clock, confirmed) in [("", true), ("mov.u64 %rd5, %clock64;\n", false)] {
        let program = common::load(&super::kernel(&format!("st.shared.u32 [tile], 7;\nbar.sync 0;\n{clock}{race}")));
        let launch = common::launch("k", 64, vec![common::zeroes("out", 4096)]);
        let mut report = common::run(&program, &launch, None, 100_000);
        emulator::confirm(&program, &launch, &Default::default(), &mut report, 0..8);
        let found = report.findings.iter().find(|found| found.code == "race-shared");
        assert_eq!(found.map(|found| found.confirmed.is_some()), Some(confirmed), "{clock}: {:#?}", report.findings);
    }
}

/// Two groups of warps that meet at one barrier, which counts the threads of a group: whoever comes is counted.
#[test]
fn two_groups_at_one_barrier() {
    let body = |barrier: &str| {
        format!(
            "setp.lt.u32 %p0, %r0, 64;\n@%p0 bra FIRST;\nbarrier.sync {barrier}, 64;\nbra END;\nFIRST:\nbarrier.sync 1, 64;\nEND:\n\
             st.global.u32 [%rd0], 7;"
        )
    };
    clean(&body("2"), 128, |_| 7);
    finds(&body("1"), 128, "named-barrier");
    // One after the other, it is one barrier for both.
    let ordered = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra WAIT;";
    let body = format!(
        "setp.ne.u32 %p2, %r0, 0;\n@!%p2 mbarrier.init.shared::cta.b64 [bar_a], 64;\nbar.sync 0;\nsetp.lt.u32 %p0, %r0, 64;\n@%p0 bra FIRST;\n\
         WAIT:\n{ordered}\nbarrier.sync 1, 64;\nbra END;\nFIRST:\nbarrier.sync 1, 64;\nmbarrier.arrive.shared::cta.b64 _, [bar_a];\nEND:\n\
         st.global.u32 [%rd0], 7;"
    );
    clean(&body, 128, |_| 7);
}

/// Two statements of a loop race, whichever comes first: one finding, which counts both ways, and one of two loads in a row. Behind a barrier that orders the
/// first load, another one races for a reason of its own.
#[test]
fn a_pair_that_races_both_ways_is_told_once() {
    let body = |second: &str, third: &str| {
        format!(
            "setp.eq.u32 %p0, %r0, 0;
             setp.ge.u32 %p1, %r0, 32;
             mov.u32 %r1, 0;
             @%p0 st.shared.b32 [slot], 0;
             bar.sync 0;
        AGAIN:
             @%p0 st.shared.b32 [slot], %r1;
             nanosleep.u32 20;
             @%p1 {second};
             {third}
             add.u32 %r1, %r1, 1;
             setp.lt.u32 %p2, %r1, 4;
             @%p2 bra AGAIN;"
        )
    };
    for (second, third, findings) in [
        ("ld.shared.b32 %r2, [slot]", "", 1),
        ("st.shared.b32 [slot], 77", "", 1),
        ("ld.shared.b32 %r2, [slot]", "@%p1 ld.shared.b32 %r3, [slot];", 1),
        ("ld.shared.b32 %r2, [slot]", "bar.sync 0;\n@%p1 ld.shared.b32 %r3, [slot];", 2),
        ("ld.shared.b32 %r2, [slot]", "bar.sync 0;", 1),
    ] {
        // Which come first is a matter of the schedule.
        for seed in common::schedules(if findings == 1 { 8 } else { 0 }) {
            let report = run(&body(second, third), 64, seed);
            let told = &report.findings;
            assert_eq!(told.len(), findings, "seed {seed:?}: {}", common::rendered(&report));
            assert!(told.iter().all(|d| d.code == "race-shared" && d.labels.len() >= 2), "seed {seed:?}: {told:#?}");
        }
    }
    let report = run(&body("ld.shared.b32 %r2, [slot]", ""), 64, None);
    let found = &report.findings[0];
    assert!(found.count > 4, "both ways count: {found:#?}");
    assert!(found.labels[0].text.ends_with("they came in both orders"), "{found:#?}");
    assert!(found.help.contains("before the next time"), "{found:#?}");
    // One barrier between the two leaves one way.
    let one = run(&body("ld.shared.b32 %r2, [slot]", "bar.sync 0;"), 64, None);
    assert!(!one.findings[0].labels[0].text.contains("both orders"), "{:#?}", one.findings);
}

/// A GPU keeps one of the values that lanes store to one place by one instruction, and says not which. One lane, the same value of all, a place for each, in
/// whatever order, and an atomic operation are right.
#[test]
fn lanes_that_store_different_values_to_one_place() {
    let body = |store: &str| {
        format!(
            "mov.u32 %r9, tile;\nshr.u32 %r5, %r0, 1;\nxor.b32 %r6, %r0, 5;\nshl.b32 %r5, %r5, 2;\nshl.b32 %r6, %r6, 2;\nadd.u32 %r5, %r5, %r9;\n\
             add.u32 %r6, %r6, %r9;\nsetp.eq.u32 %p0, %r0, 0;\n{store}\nst.global.b32 [%rd0], 1;"
        )
    };
    for store in ["st.shared.b32 [slot], %r0;", "st.shared.b32 [%r5], %r0;", "st.shared.b8 [%r5+1], %r0;"] {
        finds(&body(store), 32, "race-shared");
    }
    for store in [
        "@%p0 st.shared.b32 [slot], %r0;",
        "st.shared.b32 [slot], 7;",
        "st.shared.b32 [%r6], %r0;",
        "@%p0 st.shared.b32 [slot], 0;\nbar.sync 0;\nred.shared.add.u32 [slot], %r0;",
    ] {
        clean(&body(store), 32, |_| 1);
    }
}

/// A wait takes the state of an arrival at the same mbarrier, in its current phase or the one before.
#[test]
fn waits_by_the_state_of_an_arrival() {
    let body = |between: &str, waits_for: &str| {
        format!(
            "setp.ne.u32 %p3, %r0, 0;\n@%p3 bra DONE;\nmbarrier.init.shared::cta.b64 [bar_a], 1;\nmbarrier.init.shared::cta.b64 [bar_b], 1;\n\
             mbarrier.arrive.shared::cta.b64 _, [bar_b];\nmbarrier.arrive.shared::cta.b64 %rd2, [bar_a];\n{between}\n\
             WAIT:\nmbarrier.try_wait.shared::cta.b64 %p2, [{waits_for}], %rd2;\n@!%p2 bra WAIT;\nDONE:\nst.global.b32 [%rd0], 1;"
        )
    };
    let arrives = "mbarrier.arrive.shared::cta.b64 _, [bar_a];\n";
    clean(&body("", "bar_a"), 32, |_| 1);
    clean(&body(&arrives.replace(" _,", " %rd2,"), "bar_a"), 32, |_| 1);
    for (between, waits_for, says) in [
        (arrives.repeat(2).as_str(), "bar_a", "of its phase 0, and 3 phases are complete since that began"),
        ("", "bar_b", "of an arrival at `bar_a`"),
        ("mov.b64 %rd2, 0;", "bar_a", "0x0, which no arrival has given"),
    ] {
        for seed in common::schedules(8) {
            let report = run(&body(between, waits_for), 32, seed);
            let shown = common::rendered(&report);
            assert_eq!(common::codes(&report), ["mbarrier-parity"], "seed {seed:?}: {shown}");
            assert!(shown.contains(says), "seed {seed:?}: `{says}` is not in\n{shown}");
        }
    }
}

/// Each warp has waited for its own stores; who frees has waited for nobody.
#[test]
fn freed_before_another_warp_is_done() {
    let body = |barrier: &str| {
        format!(
            "setp.lt.u32 %p5, %r0, 32;\n@%p5 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\nbar.sync 0;\nld.shared.b32 %r2, [slot];\n\
             shr.u32 %r1, %r0, 5;\nshl.b32 %r3, %r1, 21;\nadd.u32 %r3, %r3, %r2;\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {{%r0}};\n\
             tcgen05.wait::st.sync.aligned;\n{barrier}\n@%p5 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;\nst.global.b32 [%rd0], 1;"
        )
    };
    clean(&body("bar.sync 0;"), 64, |_| 1);
    // On others the store comes behind it.
    for seed in common::schedules(8) {
        assert_eq!(common::codes(&run(&body(""), 64, seed)), ["tensor-freed-in-use"], "seed {seed:?}");
    }
    let shown = common::rendered(&run(&body(""), 64, None));
    for says in [
        "no CTA barrier stands between the two",
        "stores to it here, and warp 0 does not wait for that",
        "tcgen05.wait::st and then a CTA barrier",
    ] {
        assert!(shown.contains(says), "`{says}` is not in\n{shown}");
    }
}
