//! A GEMM for Hopper, written by hand in PTX: a ring of TMA loads with multicast, two warpgroups of `wgmma`, TMA stores. It must run
//! right on every schedule, and each way to break it must be explained at the right line.

mod common;

use common::hopper::{TEXT, launch, product};
use common::pair::d;
use common::{load, schedules};
use emulator::{Deadlock, Diagnostic, EventKind, Mode, Options, Report};

fn run(text: &str, k: usize, seed: Option<u64>) -> Report {
    common::run(&load(text), &launch(256, 128, k), seed, 10_000_000)
}

#[test]
fn right_and_clean() {
    for (m, n, k, seeds) in [(256, 128, 448, 20), (512, 256, 64, 3), (200, 136, 104, 3)] {
        let (launch, right) = (launch(m, n, k), product(m, n, k));
        for seed in schedules(seeds) {
            let report = common::run(&load(TEXT), &launch, seed, 10_000_000);
            assert!(report.is_clean(), "{m} x {n} x {k}, seed {seed:?}: {:#?}", report.findings);
            assert_eq!(report.deadlock, Deadlock::Impossible);
            assert!(report.notes.is_empty(), "{:#?}", report.notes);
            assert!(d(&report) == right, "{m} x {n} x {k}, seed {seed:?}: D is wrong");
        }
    }
}

/// The text with one passage replaced; the passage must occur so many times.
fn edited_all(text: &str, from: &str, to: &str, times: usize) -> String {
    assert_eq!(text.matches(from).count(), times, "`{from}`");
    text.replace(from, to)
}

fn edited(from: &str, to: &str) -> String {
    edited_all(TEXT, from, to, 1)
}

/// The first finding of an edited kernel, the same on all schedules.
fn explained(text: &str, k: usize) -> Diagnostic {
    let mut first: Option<Diagnostic> = None;
    for seed in schedules(6) {
        let report = run(text, k, seed);
        let found = report.findings.first().unwrap_or_else(|| panic!("seed {seed:?}: nothing found")).clone();
        // The same mistake may concern two copies.
        let others: Vec<_> =
            report.findings.iter().filter(|d| d.code != found.code).map(|d| (d.code, &d.title)).collect();
        assert!(others.is_empty(), "seed {seed:?}: `{}` has one root cause, but also: {others:?}", found.code);
        let known = first.get_or_insert(found.clone());
        assert_eq!(known.code, found.code, "seed {seed:?}: {found:#?}");
    }
    first.unwrap_or_else(|| panic!("no run"))
}

#[track_caller]
fn expect(text: &str, code: &str, primary: &str, title: &str) {
    expect_with(text, 448, code, primary, title);
}

#[track_caller]
fn expect_with(text: &str, k: usize, code: &str, primary: &str, title: &str) {
    let d = explained(text, k);
    let place = d.labels.first().map(|l| l.place.text.clone()).unwrap_or_default();
    assert!(
        d.code == code && place.starts_with(primary) && d.title.contains(title),
        "expected `{code}` at `{primary}`, saying `{title}`; found {d:#?}"
    );
    assert!(emulator::CODES.iter().any(|(known, _)| *known == d.code), "`{}` is not in CODES", d.code);
}

#[test]
fn missing_wgmma_fence() {
    expect(&edited("    wgmma.fence.sync.aligned;\n", ""), "missing-wgmma-fence", "wgmma.mma_async", "first wgmma");
}

/// The first MMAs are fenced; those of the next tile come after a read of the accumulator.
#[test]
fn missing_wgmma_fence_after_a_read_of_the_accumulator() {
    let text = edited("    @%p7 bra TILE;\n", "    add.f32 %f0, %f0, %f1;\n    @%p7 bra TILE;\n");
    let late = edited_all(
        &text,
        "    wgmma.fence.sync.aligned;\n",
        "    setp.ne.u32 %p10, %r24, 0;\n    @%p10 bra FENCED;\n    wgmma.fence.sync.aligned;\nFENCED:\n",
        1,
    );
    for seed in schedules(3) {
        let report = run(&late, 448, seed);
        // ptxas adds the fence: no finding, but a note.
        assert!(report.is_clean(), "seed {seed:?}: {:#?}", report.findings);
        let note = report.notes.first().unwrap_or_else(|| panic!("seed {seed:?}: nothing is noted"));
        assert!(
            note.code == "missing-wgmma-fence" && note.title.contains("the accumulator"),
            "seed {seed:?}: {note:#?}"
        );
        assert!(note.labels[0].place.text.starts_with("wgmma.mma_async"), "seed {seed:?}: {note:#?}");
    }
    for seed in schedules(3) {
        let report = run(&text, 448, seed);
        assert!(report.is_clean(), "seed {seed:?}: {:#?}", report.findings);
    }
}

#[test]
fn missing_wait_before_the_accumulator_is_read() {
    let text = edited("    wgmma.wait_group.sync.aligned 0;\n", "");
    let title = "a register of the accumulator of a wgmma is read before the MMA is known to be complete";
    expect_with(&text, 64, "wgmma-not-awaited", "cvt.rn.f16x2.f32", title);
}

/// Released one stage too early: the wait leaves the MMAs of the stage under way.
#[test]
fn a_wait_that_leaves_the_stage_in_use() {
    let text = edited("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;");
    let text = edited_all(&text, "    // D in FP16,", "    wgmma.wait_group.sync.aligned 0;\n    // D in FP16,", 1);
    for seed in schedules(6) {
        // On some schedules, warps come too late to see a phase at all, and more is found.
        let first = run(&text, 448, seed).findings.remove(0);
        assert_eq!(first.code, "operand-overwritten", "seed {seed:?}: {first:#?}");
        assert!(first.labels[0].place.text.starts_with("cp.async.bulk.tensor.2d.shared::cluster"), "{first:#?}");
        assert!(first.labels[1].place.text.starts_with("wgmma.mma_async"), "{first:#?}");
        assert!(first.help.contains("wgmma.wait_group"), "{first:#?}");
    }
}

/// Four warpgroups release a stage, and its mbarrier counts three: the copies come before the last of them, and no wait_group helps.
#[test]
fn a_stage_that_counts_too_few_releases() {
    let found = explained(
        &edited("mbarrier.init.shared::cta.b64 [%r12+32], 4;", "mbarrier.init.shared::cta.b64 [%r12+32], 3;"),
        512,
    );
    assert_eq!(found.code, "operand-overwritten", "{found:#?}");
    assert!(found.labels[0].text.contains("is initialised for 3 arrivals a phase here"), "{found:#?}");
    assert!(found.help.contains("4 arrive in a round, and it counts 3"), "{found:#?}");
}

#[test]
fn missing_proxy_fence_before_the_store() {
    expect(
        &edited("    fence.proxy.async.shared::cta;\n", ""),
        "missing-proxy-fence",
        "cp.async.bulk.tensor.2d.global",
        "no proxy fence follows the stores",
    );
}

#[test]
fn wrong_bytes() {
    expect(&edited("[%r16], 32768;", "[%r16], 32784;"), "hang", "mbarrier.", "bytes");
    let early = run(&edited("[%r16], 32768;", "[%r16], 16384;"), 448, None);
    assert!(!early.is_clean() && !early.findings.is_empty(), "{early:#?}");
}

#[test]
fn a_release_to_only_one_cta_of_the_multicast() {
    expect(
        &edited("setp.lt.u32 %p8, %r2, 2;", "setp.eq.u32 %p8, %r2, %r3;"),
        "hang",
        // The wait that lacks them: all mbarriers of the ring are made for as many.
        "mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r17], %r12",
        "waits for 4 arrivals and gets 2",
    );
}

/// As CUTLASS releases: the wait leaves the latest group under way, and the stage before is free. One thread a warpgroup arrives in
/// each CTA; another warp's thread in the other.
#[test]
fn the_stage_before_is_released_while_the_next_is_multiplied() {
    let release = "    wgmma.wait_group.sync.aligned 0;\n    @%p8 mapa.shared::cluster.u32 %r26, %r17, %r2;\n    @%p8 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r26];\n";
    let pipelined = "    wgmma.wait_group.sync.aligned 1;\n    setp.ne.and.u32 %p11, %r10, 0, %p8;\n    shr.u32 %r50, %r2, 5;\n\
                     @%p11 mapa.shared::cluster.u32 %r26, %r51, %r50;\n    @%p11 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r26];\n    mov.u32 %r51, %r17;\n";
    let text = edited(release, pipelined);
    // Lane 0 of warps 0 and 1.
    let text = edited_all(
        &text,
        "setp.lt.u32 %p8, %r2, 2;",
        "and.b32 %r52, %r2, 0xffffffdf;\n    setp.eq.u32 %p8, %r52, 0;\n    mov.u32 %r51, 0;",
        1,
    );
    let text = edited_all(
        &text,
        "    // D in FP16,",
        "    wgmma.wait_group.sync.aligned 0;\n    @%p8 mapa.shared::cluster.u32 %r26, %r51, %r50;\n    @%p8 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r26];\n    // D in FP16,",
        1,
    );
    let right = product(256, 128, 448);
    for seed in schedules(20) {
        let report = run(&text, 448, seed);
        assert!(report.is_clean(), "seed {seed:?}: {:#?}", report.findings);
        assert!(d(&report) == right, "seed {seed:?}: D is wrong");
    }
    // The stage itself, instead of the one before.
    let hasty = edited_all(&text, "%r26, %r51, %r50;\n    @%p11", "%r26, %r17, %r50;\n    @%p11", 1);
    let hasty = hasty.replace("setp.ne.and.u32 %p11, %r10, 0, %p8;", "setp.ge.and.u32 %p11, %r10, 0, %p8;");
    let found = run(&hasty, 448, Some(1)).findings;
    assert!(found.iter().any(|d| d.code == "operand-overwritten"), "{found:#?}");
}

/// What a timeline needs: who issued each MMA, when the tensor cores worked on it, what a wait covered; and the tensor cores do one
/// after the other.
#[test]
fn the_trace_shows_mmas_groups_and_waits() {
    let options = Options { trace: true, ..Default::default() };
    let report = emulator::run(&load(TEXT), &launch(256, 128, 128), &options);
    let mut mmas: Vec<_> =
        report.trace.iter().filter(|e| matches!(e.kind, EventKind::Wgmma(_)) && e.cta == 0).collect();
    assert_eq!(mmas.len(), 2 * 2 * 4, "two warpgroups, two stages, four slices");
    assert!(
        mmas.iter().all(|e| matches!(e.issuer.warp, 4 | 8) && e.issued <= e.start && e.end - e.start == 64),
        "{mmas:#?}"
    );
    mmas.sort_by_key(|e| e.start);
    assert!(mmas.windows(2).all(|two| two[0].end <= two[1].start), "{mmas:#?}");
    let EventKind::Wgmma(first) = &mmas[0].kind else { panic!() };
    assert_eq!((first.shape, first.accumulate), ([64, 128, 16], false));
    let covers: Vec<u32> = (report.trace.iter())
        .filter_map(|e| if let EventKind::WgmmaWait { covers } = e.kind { Some(covers) } else { None })
        .collect();
    assert_eq!(covers, vec![4; 2 * 8 * 2], "each of sixteen warps waits twice for four MMAs");
}

/// Two warpgroups keep the tensor cores busy: with a long K, 64 cycles for each of the MMAs.
#[test]
fn time_is_that_of_the_tensor_cores() {
    let k = 4096;
    let options = Options { mode: Mode::Time, warm_l2: true, ..Default::default() };
    let cycles = emulator::run(&load(TEXT), &launch(256, 128, k), &options).cycles;
    let busy = 2 * (k as u64 / 16) * 64;
    assert!(cycles > busy && cycles < busy * 3 / 2, "{cycles} cycles, of which the tensor cores need {busy}");
}

/// Clusters that compute no values take the same time, and break no rule; the others are right.
#[test]
fn a_sample_of_clusters() {
    let (launch, right) = (launch(512, 256, 192), product(512, 256, 192));
    let whole = emulator::run(&load(TEXT), &launch, &Options::default());
    let options = Options { values: emulator::Values::OfClusters(vec![0]), ..Default::default() };
    let sample = emulator::run(&load(TEXT), &launch, &options);
    assert!(whole.is_clean() && sample.is_clean(), "{:#?} {:?}", sample.findings, sample.incomplete);
    assert_eq!(whole.cycles, sample.cycles);
    let (found, computed) = (d(&sample), |at: usize| at / 256 < 256 && at % 256 < 128);
    assert!((0..512 * 256).all(|at| !computed(at) || found[at] == right[at]));
    assert!(sample.buffers[2].is_blank(300 * 512));
}
