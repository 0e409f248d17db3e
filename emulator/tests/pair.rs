//! A GEMM by pairs of CTAs, written by hand in PTX: TMA loads and stores, remote barriers, `cta_group::2`, multicast commits.

mod common;

use common::pair::{TEXT, WAIT_FOR_LATE_COPY, d, late_copy, launch, product, with_another_barrier};
use common::{load, schedules};
use emulator::{Deadlock, Param, Severity, Swizzle};

#[test]
fn right_and_clean() {
    for (m, k) in [(256, 64), (512, 320), (200, 200)] {
        let (launch, right) = (launch(m, k), product(m, k));
        for seed in schedules(6) {
            let report = common::run(&load(TEXT), &launch, seed, 10_000_000);
            assert!(report.is_clean(), "{m} x {k}, seed {seed:?}: {:#?}", report.findings);
            assert_eq!(report.deadlock, Deadlock::Impossible);
            assert!(report.notes.is_empty(), "{:#?}", report.notes);
            assert!(d(&report) == right, "{m} x {k}, seed {seed:?}: D is wrong");
        }
    }
}

const MEET: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// Two CTAs of two warps that allocate together and free: with this before the allocation, and between the two.
#[track_caller]
fn pair_allocates(before: &str, between: &str, codes: &[&str]) {
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n.reqnctapercluster 2, 1, 1\n{{\n\
         .shared .align 4 .b32 slot;\n.reg .pred %p<8>;\n.reg .b32 %r<16>;\n\
         mov.u32 %r0, %tid.x;\nsetp.lt.u32 %p0, %r0, 32;\nmov.u32 %r1, %cluster_ctarank;\n{before}\
         @!%p0 bra OVER;\ntcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64;\nOVER:\nbar.sync 0;\n\
         ld.shared.b32 %r2, [slot];\n{between}@!%p0 bra END;\ntcgen05.dealloc.cta_group::2.sync.aligned.b32 %r2, 64;\nEND:\nret;\n}}\n"
    );
    let mut launch = common::launch("k", 64, vec![]);
    (launch.grid, launch.cluster) = ([2, 1, 1], [2, 1, 1]);
    for seed in schedules(8) {
        let report = common::run(&load(&text), &launch, seed, 100_000);
        assert!(report.completed, "{report:#?}");
        let said: Vec<_> = report.findings.iter().chain(&report.notes).map(|said| said.code).collect();
        assert_eq!(said, codes, "seed {seed:?}: {before} {between}\n{:#?}{:#?}", report.findings, report.notes);
    }
}

/// The peer of an allocation must be known to have started, and to have got its columns before one frees: on every schedule.
#[test]
fn a_pair_meets_before_it_allocates_and_before_it_frees() {
    let relaxed = MEET.replace("arrive", "arrive.relaxed");
    pair_allocates(MEET, MEET, &[]);
    pair_allocates(&relaxed, &relaxed, &[]);
    pair_allocates("", MEET, &["cta-not-started"]);
    pair_allocates("bar.sync 0;\n", MEET, &["cta-not-started"]);
    pair_allocates(MEET, "", &["pair-freed-early"]);
    pair_allocates(MEET, "bar.sync 0;\n", &["pair-freed-early"]);
}

/// Warps 1 arrive at the cluster barrier twice without a wait, as the other roles of Triton do: warp 0, which has waited, tells them that the
/// first phase is complete. Without that the second arrival may count for the first phase.
#[test]
fn who_knows_of_a_phase_arrives_again_without_a_wait() {
    let run = |told: &str| {
        let arrive = "barrier.cluster.arrive.relaxed.aligned;\n";
        let text = format!(
            ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n.reqnctapercluster 2, 1, 1\n{{\n\
             .reg .pred %p<8>;\n.reg .b32 %r<16>;\nmov.u32 %r0, %tid.x;\nsetp.lt.u32 %p0, %r0, 32;\n\
             @!%p0 bra OTHER;\n{MEET}{told}{MEET}bra END;\nOTHER:\n{arrive}{told}{arrive}END:\nret;\n}}\n"
        );
        let mut launch = common::launch("k", 64, vec![]);
        (launch.grid, launch.cluster) = ([2, 1, 1], [2, 1, 1]);
        let said = |seed| {
            let report = common::run(&load(&text), &launch, seed, 100_000);
            (report.findings.iter().map(|found| found.code).collect::<Vec<_>>(), report.deadlock)
        };
        schedules(8).map(said).collect::<Vec<_>>()
    };
    assert!(run("bar.sync 0;\n").iter().all(|said| *said == (vec![], Deadlock::Impossible)));
    assert!(run("").iter().all(|(codes, _)| codes == &["cluster-barrier"]));
}

/// CTA 1 copies its tile to CTA 0 and overwrites it when a commit of CTA 0 says so. A commit tells of MMAs alone, but one that is issued behind the
/// wait for the bytes comes after the copy has read them: a note. In front of that wait it says nothing of the copy.
#[test]
fn a_copy_has_read_its_source_when_its_bytes_are_there() {
    let run = |cta_0: &str| {
        let wait = |at: &str| {
            format!("WAIT_{at}:\nmbarrier.try_wait.parity.shared.b64 %p2, [{at}], 0;\n@!%p2 bra WAIT_{at};\n")
        };
        let commit =
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h0;\n";
        let cta_0 = cta_0.replace("WAIT", &wait("full")).replace("COMMIT", commit);
        let (meet, done) = (MEET.replace(".aligned", ""), wait("done"));
        let text = format!(
            ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n.reqnctapercluster 2, 1, 1\n{{\n\
             .shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 full;\n.shared .align 8 .b64 done;\n\
             .reg .pred %p<8>;\n.reg .b16 %h<2>;\n.reg .b32 %r<16>;\nmov.u32 %r0, %tid.x;\nsetp.ne.u32 %p0, %r0, 0;\nmov.u16 %h0, 2;\n\
             @%p0 bra MADE;\nmbarrier.init.shared.b64 [full], 1;\nmbarrier.init.shared.b64 [done], 1;\nfence.mbarrier_init.release.cluster;\n\
             MADE:\n{meet}@%p0 bra END;\nmov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra ONE;\n\
             mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;\n{cta_0}bra END;\n\
             ONE:\nmov.u32 %r2, tile;\nmapa.shared::cluster.u32 %r2, %r2, 0;\nmov.u32 %r3, full;\nmapa.shared::cluster.u32 %r3, %r3, 0;\n\
             cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2], [tile], 256, [%r3];\n{done}\
             st.shared.b32 [tile], 7;\nEND:\n{meet}ret;\n}}\n"
        );
        let mut launch = common::launch("k", 32, vec![]);
        (launch.grid, launch.cluster) = ([2, 1, 1], [2, 1, 1]);
        let report = common::run(&load(&text), &launch, None, 100_000);
        let said = |all: &[emulator::Diagnostic]| all.iter().map(|said| said.code).collect::<Vec<_>>();
        (said(&report.findings), said(&report.notes))
    };
    assert_eq!(run("WAITCOMMIT"), (vec![], vec!["race-shared"]));
    assert!(run("COMMITWAIT").0.contains(&"race-shared"));
}

/// Memory of another CTA, before anything says that it has started.
#[test]
fn a_use_of_a_cta_that_may_not_have_started() {
    for (begin, code) in [("", Some("cta-not-started")), (MEET, None)] {
        for one in ["st.shared::cluster.u32 [%r2], 7;", "red.relaxed.cluster.shared::cluster.add.u32 [%r2], 1;"] {
            let text = format!(
                ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n.reqnctapercluster 2, 1, 1\n{{\n\
                 .shared .align 8 .b32 tile[64];\n.reg .pred %p<8>;\n.reg .b32 %r<16>;\n\
                 mov.u32 %r0, %tid.x;\nmov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p0, %r0, 0;\n\
                 setp.eq.and.u32 %p1, %r1, 1, %p0;\nmov.u32 %r2, tile;\nmapa.shared::cluster.u32 %r2, %r2, 0;\n\
                 {begin}@%p1 {one}\n{MEET}ret;\n}}\n"
            );
            let mut launch = common::launch("k", 64, vec![]);
            (launch.grid, launch.cluster) = ([2, 1, 1], [2, 1, 1]);
            for seed in schedules(2) {
                let report = common::run(&load(&text), &launch, seed, 100_000);
                // What an atomic adds to was never written: that is not asked here.
                let codes: Vec<_> = common::codes(&report).into_iter().filter(|code| code.starts_with("cta")).collect();
                assert_eq!(codes, Vec::from_iter(code), "seed {seed:?}: {one}\n{:#?}", report.findings);
            }
        }
    }
}

/// The odd CTA has waited for the MMAs that read a stage, not for the load before them: what they read was there. So it may fill the
/// stage again, on whatever mbarrier; without that wait it may not.
#[test]
fn a_stage_may_be_filled_again_by_who_waited_for_its_mmas() {
    let barrier = "barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n    @!%p0 bra FREED;";
    let mut launch = launch(256, 192);
    launch.dynamic_shared += 8;
    for stage in [0, 32768] {
        let end = format!("{}{WAIT_FOR_LATE_COPY}{MEET}@!%p0 bra FREED;", late_copy(stage));
        let text = with_another_barrier(TEXT).replace(barrier, &end);
        let hasty = text.replace("DONE_WAIT:\n", "@!%p1 bra GO;\nDONE_WAIT:\n");
        let hasty = hasty.replace("@!%p4 bra DONE_WAIT;", "@!%p4 bra DONE_WAIT;\nGO:");
        for seed in schedules(4) {
            let report = common::run(&load(&text), &launch, seed, 10_000_000);
            assert!(report.is_clean(), "stage at {stage}, seed {seed:?}: {:#?}", report.findings);
            assert_eq!(report.deadlock, Deadlock::Impossible);
            let report = common::run(&common::load(&hasty), &launch, seed, 10_000_000);
            let overwrites = |found: &emulator::Diagnostic| found.labels[0].place.text.contains("[%r48]");
            assert!(report.findings.iter().any(overwrites), "stage at {stage}, seed {seed:?}: {:#?}", report.findings);
        }
    }
}

/// What was loaded by one swizzle is read by another: found, and said of which tile.
#[test]
fn a_tile_that_was_loaded_by_another_swizzle() {
    for (swizzle, severity) in [(Swizzle::B64, Severity::Finding), (Swizzle::None, Severity::Note)] {
        let mut launch = launch(256, 64);
        let Param::TensorMap { map, .. } = &mut launch.params[1] else { panic!("parameter 1 is the map of B") };
        // Rows of 64 bytes at most; the box has as many bytes as before.
        map.swizzle = swizzle;
        map.box_dims = if swizzle == Swizzle::None { vec![64, 128] } else { vec![32, 256] };
        let report = common::run(&load(TEXT), &launch, None, 1_000_000);
        let all: Vec<_> = report.findings.iter().chain(&report.notes).collect();
        let found =
            all.iter().find(|d| d.code == "swizzle-mismatch").unwrap_or_else(|| panic!("{swizzle:?}: {all:#?}"));
        assert_eq!(found.severity, severity);
        assert!(found.title.contains("operand B"), "{}", found.title);
        assert!(found.labels[0].place.text.starts_with("tcgen05.mma"), "{:?}", found.labels);
        assert!(found.labels[1].place.text.starts_with("cp.async.bulk.tensor"), "{:?}", found.labels);
    }
}

/// The descriptor of A is not advanced, then neither is: other depths are a finding, and that the rest of them is left out; the same product again is a
/// note, since the result is defined.
#[test]
fn a_slice_that_is_added_twice() {
    let advance = ["add.s64 %rd2, %rd2, 2;", "add.s64 %rd3, %rd3, 2;"];
    let launch = launch(256, 128);
    for (removed, expected) in [(0, false), (1, false), (2, true)] {
        let text = advance[..removed].iter().fold(TEXT.to_string(), |text, line| text.replace(line, ""));
        let report = common::run(&load(&text), &launch, None, 1_000_000);
        let found: &[&str] = [&[][..], &["depth-mismatch"], &["loaded-never-read"]][removed];
        assert_eq!(common::codes(&report), found, "{:#?}", report.findings);
        let codes: Vec<_> = report.notes.iter().map(|d| d.code).collect();
        assert_eq!(codes.contains(&"product-added-twice"), expected, "{removed} lines removed: {codes:?}");
    }
}
