//! CTAs that end while another one of their cluster may still use their memory: a finding on every schedule; and the same with what
//! makes it right: nothing.

mod common;

use common::pair::{TEXT, WAIT_FOR_LATE_COPY, late_copy, launch, with_another_barrier};
use common::{load, schedules, zeroes};

const CODE: &str = "remote-use-outlives-cta";

/// `kernels/pair.ptx` with one more mbarrier, behind the others, with this before its end instead of the cluster barrier; and this
/// behind its last commit.
#[track_caller]
fn pair_gives(end: &str, commit: &str, code: Option<&str>) -> Vec<emulator::Diagnostic> {
    let barrier = "barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n    @!%p0 bra FREED;";
    assert_eq!(TEXT.matches(barrier).count(), 1);
    let text = with_another_barrier(TEXT)
        .replace(barrier, &format!("{end}\n    @!%p0 bra FREED;"))
        .replace("EPILOGUE:\n", &format!("{commit}\nEPILOGUE:\n"));
    let mut launch = launch(256, 192);
    launch.dynamic_shared += 1024 + 16384;
    let program = load(&text);
    let mut found = vec![];
    for seed in schedules(2) {
        let report = common::run(&program, &launch, seed, 10_000_000);
        assert_eq!(
            common::codes(&report),
            Vec::from_iter(code),
            "seed {seed:?}: {end} {commit}\n{:#?}",
            report.findings
        );
        assert!(report.completed);
        found = report.findings;
    }
    found
}

/// A thread of the odd CTA arrives at a barrier of the even one.
const ARRIVE: &str = "setp.ne.u32 %p12, %r0, 0;\nadd.u32 %r45, %r4, 48;\n@%p1 bra OVER;\n@%p12 bra OVER;\n\
                      mapa.shared::cluster.u32 %r46, %r45, 0;\n\
                      mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r46];\nOVER:\n";

#[test]
fn an_arrival_at_a_cta_that_may_have_ended() {
    for end in [
        "",
        "bar.sync 0;",
        "bar.sync 0;\nbarrier.cluster.arrive.aligned;",
        "bar.sync 0;\nbarrier.cluster.arrive.relaxed.aligned;",
    ] {
        // All warps must have read tensor memory before one frees it.
        let end = if end.is_empty() { "@!%p0 bra APART;\nAPART:\nbar.sync 2, 128;" } else { end };
        let found = pair_gives(&format!("{ARRIVE}{end}"), "", Some(CODE));
        assert!(found[0].labels[0].place.text.contains("mbarrier.arrive.release.cluster"), "{found:#?}");
        assert!(found[0].title.contains("CTA 0 may end before CTA 1"), "{found:#?}");
    }
}

#[test]
fn arrivals_that_a_cluster_barrier_follows() {
    for arrive in ["arrive", "arrive.release", "arrive.relaxed"] {
        let end = format!("{ARRIVE}bar.sync 0;\nbarrier.cluster.{arrive}.aligned;\nbarrier.cluster.wait.aligned;");
        pair_gives(&end, "", None);
    }
    // One that comes before the use says nothing.
    let early =
        format!("bar.sync 0;\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n{ARRIVE}");
    pair_gives(&early, "", Some(CODE));
    let between =
        format!("bar.sync 0;\nbarrier.cluster.arrive.relaxed.aligned;\n{ARRIVE}barrier.cluster.wait.aligned;");
    pair_gives(&between, "", Some(CODE));
}

#[test]
fn an_arrival_that_its_owner_waits_for() {
    for (arrive, wait) in [("release", "acquire"), ("release", "relaxed"), ("relaxed", "relaxed")] {
        let wait = format!(
            "@!%p1 bra WAITED;\nWAIT_OWN:\nmbarrier.try_wait.parity.{wait}.cluster.shared::cta.b64 %p13, [%r45], 0;\n\
             @!%p13 bra WAIT_OWN;\nWAITED:\nbar.sync 0;"
        );
        pair_gives(&format!("{}{wait}", ARRIVE.replace("release", arrive)), "", None);
    }
}

/// Without a use at the end, nothing is wrong: all that the CTAs do to each other has been waited for.
#[test]
fn uses_that_were_all_waited_for() {
    pair_gives("bar.sync 0;", "", None);
}

/// The last commit to the ring needs no wait of its own, since a later one is awaited; behind that one it does.
#[test]
fn a_commit_that_nobody_in_the_other_cta_waits_for() {
    let commit = "add.u32 %r45, %r4, 48;\n\
                  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r45], %h0;";
    let both = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;";
    let found = pair_gives(both, commit, Some(CODE));
    assert!(found[0].labels[0].place.text.contains("tcgen05.commit"), "{found:#?}");
    // To the own CTA only: not asked for here.
    let own = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r4+48];";
    pair_gives(both, own, None);
}

/// Loads, stores, atomics and announcements of bytes, by CTA 1 in CTA 0.
#[test]
fn plain_uses_of_another_ctas_memory() {
    let uses = [
        "st.shared::cluster.u32 [%r2], 7;",
        "ld.shared::cluster.u32 %r3, [%r2];",
        "red.relaxed.cluster.shared::cluster.add.u32 [%r2], 1;",
        "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r4], 16;",
    ];
    let meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;";
    let relaxed = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;";
    for one in uses {
        for (end, code) in [("", Some(CODE)), ("bar.sync 0;", Some(CODE)), (meet, None), (relaxed, None)] {
            let text = format!(
                ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n.reqnctapercluster 2, 1, 1\n{{\n\
                 .shared .align 8 .b32 tile[64];\n.shared .align 8 .b64 bar;\n.reg .pred %p<8>;\n.reg .b32 %r<16>;\n\
                 mov.u32 %r0, %tid.x;\nmov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p0, %r0, 0;\n\
                 setp.eq.and.u32 %p1, %r1, 1, %p0;\n@%p0 st.shared.u32 [tile], 0;\n\
                 @%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n{meet}\n\
                 mov.u32 %r2, tile;\nmapa.shared::cluster.u32 %r2, %r2, 0;\nmov.u32 %r4, bar;\n\
                 mapa.shared::cluster.u32 %r4, %r4, 0;\n@%p1 {one}\n{end}\nret;\n}}\n"
            );
            let mut launch = common::launch("k", 64, vec![zeroes("out", 64)]);
            (launch.grid, launch.cluster) = ([2, 1, 1], [2, 1, 1]);
            for seed in schedules(2) {
                let report = common::run(&load(&text), &launch, seed, 100_000);
                let codes = common::codes(&report);
                assert_eq!(codes, Vec::from_iter(code), "seed {seed:?}: {one} {end}\n{:#?}", report.findings);
            }
        }
    }
}

/// Copies and asynchronous stores of CTA 1 to CTA 0, which ends without having waited for their bytes; or waits for them.
#[test]
fn copies_into_a_cta_that_may_have_ended() {
    let copies = [
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r2], {7, 7, 7, 7}, [%r4];",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2], [source], 16, [%r4];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 16, [%r4];",
    ];
    let wait =
        "@!%p2 bra OVER;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\nOVER:";
    let meet = "barrier.cluster.arrive;\nbarrier.cluster.wait;";
    for copy in copies {
        for (end, code) in [("", Some("load-outlives-cta")), ("bar.sync 0;", Some("load-outlives-cta")), (wait, None)] {
            let text = format!(
                ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n.reqnctapercluster 2, 1, 1\n{{\n\
                 .shared .align 16 .b8 tile[16];\n.shared .align 16 .b8 source[16];\n.shared .align 8 .b64 bar;\n.reg .pred %p<8>;\n\
                 .reg .b32 %r<8>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd0, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %cluster_ctarank;\n\
                 setp.eq.u32 %p0, %r0, 0;\nsetp.eq.and.u32 %p1, %r1, 1, %p0;\nsetp.eq.and.u32 %p2, %r1, 0, %p0;\n\
                 @%p0 st.shared.v2.b64 [source], {{1, 2}};\n@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async;\n{meet}\n\
                 mov.u32 %r2, tile;\nmapa.shared::cluster.u32 %r2, %r2, 0;\nmov.u32 %r4, bar;\nmapa.shared::cluster.u32 %r4, %r4, 0;\n\
                 @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n@%p1 {copy}\n{end}\nret;\n}}\n"
            );
            let mut launch = common::launch("k", 64, vec![zeroes("out", 64)]);
            (launch.grid, launch.cluster) = ([2, 1, 1], [2, 1, 1]);
            for seed in schedules(2) {
                let report = common::run(&load(&text), &launch, seed, 100_000);
                let codes = common::codes(&report);
                assert_eq!(codes, Vec::from_iter(code), "seed {seed:?}: {copy} {end}\n{:#?}", report.findings);
            }
        }
    }
}

/// Both warps of CTA 1 arrive in CTA 0, by one statement, each at an mbarrier of its own. CTA 0 waits for what `wait` says.
fn two_warps_arrive(wait: &str, seed: Option<u64>) -> emulator::Report {
    let meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;";
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n.reqnctapercluster 2, 1, 1\n{{\n\
         .shared .align 8 .b64 bar[2];\n.reg .pred %p<8>;\n.reg .b32 %r<16>;\n\
         mov.u32 %r0, %tid.x;\nmov.u32 %r1, %cluster_ctarank;\nsetp.ne.u32 %p0, %r0, 0;\nsetp.eq.u32 %p1, %r1, 0;\nmov.u32 %r3, bar;\n\
         @%p0 bra MEET;\nmbarrier.init.shared::cta.b64 [%r3], 32;\nmbarrier.init.shared::cta.b64 [%r3+8], 32;\nMEET:\n{meet}\n\
         @%p1 bra WAITS;\nshr.u32 %r2, %r0, 5;\nmad.lo.u32 %r2, %r2, 8, %r3;\nmapa.shared::cluster.u32 %r2, %r2, 0;\n\
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];\nbra END;\nWAITS:\n{wait}\nEND:\nret;\n}}\n"
    );
    let mut launch = common::launch("k", 64, vec![]);
    (launch.grid, launch.cluster) = ([2, 1, 1], [2, 1, 1]);
    common::run(&load(&text), &launch, seed, 100_000)
}

/// That two warps arrive by the same statement says nothing: neither has been heard. Who has heard the last word of one ends behind the other,
/// but for a few instructions.
#[test]
fn the_last_word_of_another_warp() {
    let wait = "WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3+8], 0;\n@!%p3 bra WAIT;";
    for (wait, expected) in [("", [vec![CODE], vec![]]), (wait, [vec![], vec![CODE]])] {
        for seed in schedules(2) {
            let report = two_warps_arrive(wait, seed);
            let codes = [&report.findings, &report.notes].map(|all| all.iter().map(|one| one.code).collect::<Vec<_>>());
            assert_eq!(codes, expected, "seed {seed:?}: {wait}\n{:#?}", report.findings);
            assert!(report.completed);
        }
    }
}

/// A copy that counts its bytes in the other CTA: noted as one that the CTA which gets them, and issued it, may not outlive.
#[test]
fn a_copy_that_counts_its_bytes_in_the_other_cta() {
    let (copy, wait) = (late_copy(82944), WAIT_FOR_LATE_COPY);
    let both = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;";
    pair_gives(&format!("{copy}{both}"), "", None);
    pair_gives(&format!("{copy}{wait}{both}"), "", None);
}
