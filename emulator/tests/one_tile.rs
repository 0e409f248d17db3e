//! A tile of a GEMM, written by hand in PTX: it must run right on every schedule, and each way to break it must be explained
//! at the right line. The edits are made in the text: what the emulator knows, it knows from there.

mod common;

use common::one_tile::{TEXT, launch_of, operand};
use common::{load, schedules};
use emulator::{Diagnostic, Report};
use half::f16;

fn run(text: &str, seed: Option<u64>) -> Report {
    common::run(&load(text), &launch_of(&operand(1), &operand(2)), seed, 1_000_000)
}

/// Elements of D that differ from the exact product.
fn wrong(report: &Report) -> usize {
    let (a, b) = (operand(1), operand(2));
    let d = &report.buffers[2].bytes;
    let differs = |n: &usize| {
        let (row, column) = (n / 128, n % 128);
        let sum: i32 = (0..64).map(|k| a[row * 64 + k] * b[column * 64 + k]).sum();
        f16::from_bits(u16::from_le_bytes([d[2 * n], d[2 * n + 1]])) != f16::from_f32(sum as f32)
    };
    (0..128 * 128).filter(differs).count()
}

#[test]
fn right_and_clean_on_the_default_schedule_and_fifty_adversarial_ones() {
    for seed in schedules(50) {
        let report = run(TEXT, seed);
        assert!(report.is_clean(), "seed {seed:?}: {:#?}", report.findings);
        assert!(report.notes.is_empty(), "seed {seed:?}: {:#?}", report.notes);
        assert_eq!(wrong(&report), 0, "seed {seed:?}");
    }
}

/// `mbarrier.inval` while the commit may still arrive, and behind the wait for it.
#[test]
fn an_mbarrier_outlives_the_commit_that_arrives_at_it() {
    let inval = "mbarrier.inval.shared::cta.b64 [mma_done];\n";
    let early = edited("ISSUED:\n", &format!("{inval}ISSUED:\n"));
    let late = edited(
        "    tcgen05.fence::after_thread_sync;\n",
        &format!("tcgen05.fence::after_thread_sync;\nbar.sync 0;\nsetp.eq.u32 %p4, %r0, 0;\n@%p4 {inval}"),
    );
    // A commit that covers no new MMA arrives whenever it does, too: of two of a thread, a wait for the later one is enough. Behind a wait for the earlier one, which
    // tells that the MMAs are complete, the later one is over in time: a note.
    let commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64";
    let two = |first: &str, second: &str, behind: &str| {
        edited(
            "    .shared .align 8 .b64 mma_done;\n",
            ".shared .align 8 .b64 mma_done;\n.shared .align 8 .b64 other;\n",
        )
        .replace("    fence.mbarrier_init", "    mbarrier.init.shared::cta.b64 [other], 1;\n    fence.mbarrier_init")
        .replace(&format!("    {commit} [mma_done];\n"), &format!("{commit} [{first}];\n{commit} [{second}];\n"))
        .replace(
            "    tcgen05.fence::after_thread_sync;\n",
            &format!("tcgen05.fence::after_thread_sync;\nsetp.eq.u32 %p4, %r0, 0;\n{behind}"),
        )
    };
    let inval = "@%p4 mbarrier.inval.shared::cta.b64 [other];\n";
    let not_awaited = two("mma_done", "other", inval);
    let again = two("other", "mma_done", &format!("@%p4 {commit} [other];\n{inval}"));
    let in_order = two("other", "mma_done", inval);
    for seed in schedules(10) {
        let codes = common::codes(&run(&again, seed));
        assert!(codes.contains(&"mbarrier-invalidated-early"), "seed {seed:?}: {codes:?}");
        let report = run(&not_awaited, seed);
        let noted = report.notes.iter().any(|note| note.code == "mbarrier-invalidated-early");
        assert!(report.is_clean() && noted, "seed {seed:?}: {:#?}", report.findings);
        let report = run(&in_order, seed);
        assert!(report.is_clean(), "seed {seed:?}: {:#?}", report.findings);
        let report = run(&early, seed);
        let found = report.findings.iter().find(|f| f.code == "mbarrier-invalidated-early");
        let found = found.unwrap_or_else(|| panic!("seed {seed:?}: {:#?}", report.findings));
        assert!(found.labels[1].place.text.contains("tcgen05.commit"), "seed {seed:?}: {found:#?}");
        assert!(run(&late, seed).is_clean(), "seed {seed:?}");
    }
}

/// MMAs are computed late, but from what they read in time: operands that are overwritten when the MMAs have arrived do not
/// matter; overwritten before, they do.
#[test]
fn operands_are_read_before_the_commit_arrives_and_not_when_issued() {
    let overwrite = "st.shared.v4.b32 [%r8+-2048], {%r10, %r10, %r10, %r10};\n";
    let behind =
        edited("    tcgen05.fence::after_thread_sync;\n", &format!("tcgen05.fence::after_thread_sync;\n{overwrite}"));
    let ahead = edited("ISSUED:\n", &format!("ISSUED:\n{overwrite}"));
    let mut spoilt = 0;
    for seed in std::iter::once(None).chain((0..20).map(Some)) {
        let report = run(&behind, seed);
        assert!(report.is_clean(), "seed {seed:?}: {:#?}", report.findings);
        assert_eq!(wrong(&report), 0, "seed {seed:?}");
        let report = run(&ahead, seed);
        assert!(!report.findings.is_empty(), "seed {seed:?}: the race is not found");
        spoilt += u32::from(wrong(&report) > 0);
    }
    assert!(spoilt > 3, "operands that were overwritten too early spoilt {spoilt} results of 21");
}

#[test]
fn a_seed_repeats_its_run() {
    let (first, second) = (run(TEXT, Some(7)), run(TEXT, Some(7)));
    assert_eq!((first.cycles, first.instructions), (second.cycles, second.instructions));
    assert_ne!(first.cycles, run(TEXT, Some(8)).cycles, "seeds perturb the schedule");
}

/// All lanes of a warp issue a `tcgen05.cp`: that is told alone, and not that nobody waits for those of the others, as if they were the MMA behind them.
#[test]
fn copies_of_many_lanes_are_told_once() {
    let copy = "    // MMA, by one thread.\n@%p0 bra COPIED;\nmov.u32 %r19, tile_a;\nshr.u32 %r19, %r19, 4;\ncvt.u64.u32 %rd3, %r19;\n\
                or.b64 %rd3, %rd3, 0x0000400800080000;\nadd.u32 %r20, %r2, 128;\n\
                tcgen05.cp.cta_group::1.32x128b.warpx4 [%r20], %rd3;\nCOPIED:\n";
    let text = edited("    // MMA, by one thread.\n", copy)
        .replace("[slot], 128", "[slot], 256")
        .replace("%r2, 128;\nFREED", "%r2, 256;\nFREED");
    for seed in schedules(4) {
        let codes = common::codes(&run(&text, seed));
        assert_eq!(codes, ["issued-by-many-lanes"], "seed {seed:?}");
    }
}

/// Eight rows of A lie in the bytes of the eight before, at the first MMA and at all others, which another statement issues: that is one mistake.
#[test]
fn a_descriptor_is_told_once_however_many_statements_use_it() {
    let text = edited("or.b64 %rd3, %rd3, 0x4000404000000000;", "or.b64 %rd3, %rd3, 0x4000400800000000;").replace(
        "    setp.ne.u32 %p3, %r21, 0;\n    tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08200010, %p3;\n",
        "    setp.ne.u32 %p3, %r21, 0;\n    setp.ne.u32 %p7, %r21, %r21;\n\
             @!%p3 tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08200010, %p7;\n\
             @%p3 tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08200010, %p3;\n",
    );
    let report = run(&text, None);
    let told = report.findings.iter().filter(|found| found.code == "operand-overlap");
    let places: Vec<usize> = told.map(|found| found.labels.len()).collect();
    assert_eq!(places, [2], "{:#?}", report.findings);
}

/// The text with one passage replaced; the passage must occur exactly once.
fn edited(from: &str, to: &str) -> String {
    assert_eq!(TEXT.matches(from).count(), 1, "`{from}` must occur once");
    TEXT.replace(from, to)
}

/// The first finding of the edited kernel: its code, the PTX of its primary place, and every place it names. It must be the
/// same on all schedules.
fn explained(text: &str) -> Diagnostic {
    let mut first: Option<Diagnostic> = None;
    for seed in schedules(8) {
        let report = run(text, seed);
        let found = report.findings.first().unwrap_or_else(|| panic!("seed {seed:?}: nothing found"));
        let others: Vec<_> = report.findings.iter().skip(1).map(|d| (d.code, &d.title)).collect();
        assert!(others.is_empty(), "seed {seed:?}: `{}` has one root cause, but also: {others:?}", found.code);
        match &first {
            None => first = Some(found.clone()),
            Some(known) => assert_eq!(known.code, found.code, "seed {seed:?}: {found:#?}"),
        }
    }
    first.unwrap_or_else(|| panic!("no run"))
}

#[track_caller]
fn expect(text: &str, code: &str, primary: &str, title: &str) {
    let d = explained(text);
    let place = d.labels.first().map(|l| l.place.text.clone()).unwrap_or_default();
    assert!(
        d.code == code && place.starts_with(primary) && d.title.contains(title),
        "expected `{code}` at `{primary}`, saying `{title}`; found {d:#?}"
    );
    assert!(emulator::CODES.iter().any(|(known, _)| *known == d.code), "`{}` is not in CODES", d.code);
}

#[test]
fn missing_proxy_fence() {
    let text = edited("    fence.proxy.async.shared::cta;\n", "");
    expect(&text, "missing-proxy-fence", "tcgen05.mma", "the MMA reads `tile_a` and `tile_b`");
}

#[test]
fn missing_cta_barrier_before_the_mma() {
    let text = edited("shared::cta;\n    bar.sync 0;\n", "shared::cta;\n");
    expect(&text, "operand-not-ready", "tcgen05.mma", "the MMA may read `tile_a` and `tile_b` before");
}

/// A fence by the issuing thread behind the barrier covers what happened before it: production kernels do this.
#[test]
fn a_fence_behind_the_barrier_by_the_issuing_thread_is_enough() {
    let text = edited("    fence.proxy.async.shared::cta;\n", "");
    let text =
        text.replace("    mov.u32 %r19, tile_a;\n", "    fence.proxy.async.shared::cta;\n    mov.u32 %r19, tile_a;\n");
    let report = run(&text, None);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(wrong(&report), 0);
}

#[test]
fn no_wait_for_the_mma() {
    let text = edited("    mbarrier.try_wait.parity.shared::cta.b64 %p5, [mma_done], 0;\n    @!%p5 bra WAIT;\n", "");
    expect(&text, "mma-not-awaited", "tcgen05.ld", "without waiting for the MMA");
}

#[test]
fn no_commit_of_the_mma() {
    let text = edited("    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mma_done];\n", "");
    expect(&text, "hang", "mbarrier.try_wait", "nothing ever arrives");
}

#[test]
fn commit_in_the_loop() {
    let commit = "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mma_done];\n";
    let text =
        edited(commit, "").replace("    add.s64 %rd3, %rd3, 2;\n", &format!("{commit}    add.s64 %rd3, %rd3, 2;\n"));
    let codes: Vec<_> = schedules(8).flat_map(|seed| run(&text, seed).findings).map(|d| (d.code, d.help)).collect();
    let one = "Let one arrival complete one phase for each wait: a single tcgen05.commit, after the last MMA.";
    assert!(!codes.is_empty() && codes.iter().all(|(_, help)| help == one), "{codes:#?}");
}

#[test]
fn commit_twice() {
    let commit = "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mma_done];\n";
    let text = edited(commit, &commit.repeat(2));
    for seed in schedules(8) {
        let found = run(&text, seed).findings;
        assert!(matches!(found[0].code, "phase-overtaken" | "hang"), "seed {seed:?}: {found:#?}");
    }
}

#[test]
fn every_thread_arrives() {
    let text = edited("ISSUED:\n", "ISSUED:\n    mbarrier.arrive.shared::cta.b64 _, [mma_done];\n");
    let found = run(&text, None).findings;
    assert!(matches!(found[0].code, "mbarrier-split" | "early-arrival" | "hang"), "{found:#?}");
    assert!(found[0].labels.iter().any(|l| l.place.text.starts_with("mbarrier.arrive")), "{found:#?}");
}

#[test]
fn wrong_phase() {
    let text = edited("%p5, [mma_done], 0;", "%p5, [mma_done], 1;");
    expect(&text, "wrong-phase", "mbarrier.try_wait", "the wait for parity 1 of `mma_done` passes before");
}

#[test]
fn a_wait_that_is_not_looped() {
    let text = edited("    @!%p5 bra WAIT;\n", "");
    // It orders nothing, also where it comes late enough.
    expect(&text, "wait-result-unread", "mbarrier.try_wait", "its wait for `mma_done` may not have passed");
}

#[test]
fn barrier_count_two() {
    let text = edited("[mma_done], 1;\n    fence", "[mma_done], 2;\n    fence");
    expect(&text, "hang", "mbarrier.init", "it waits for 2 arrivals and gets 1");
}

#[test]
fn thirty_two_lanes_issue_the_mma() {
    let text = edited("    @!%p1 bra ISSUED;\n", "");
    expect(&text, "issued-by-many-lanes", "tcgen05.mma", "32 lanes of warp 0");
}

#[test]
fn alloc_under_one_lane() {
    let text = edited("    @!%p1 bra INIT_DONE;\n", "    @!%p1 bra SETUP_DONE;\n");
    expect(&text, "aligned-lanes-missing", "tcgen05.alloc", "lane");
}

#[test]
fn tensor_memory_never_freed() {
    let text = edited("    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 128;\n", "");
    expect(&text, "tensor-memory-leak", "tcgen05.alloc", "128 columns of tensor memory");
}

#[test]
fn freed_before_the_other_warps_have_read() {
    let text = edited("    tcgen05.fence::before_thread_sync;\n    bar.sync 0;\n", "");
    expect(
        &text,
        "tensor-freed-in-use",
        "tcgen05.dealloc",
        "still be reading it: no CTA barrier stands between the two",
    );
    let found = explained(&text);
    assert_eq!(found.labels[0].text, "warp 0 frees it here", "{found:#?}");
    assert!(found.labels[1].text.ends_with("reads it here, and warp 0 does not wait for that"), "{found:#?}");
    assert!(found.help.contains("CTA barrier (bar.sync 0)"), "{found:#?}");
}

/// An address in tensor memory is told as lane and column, too: here thread `n` of the last warp gives lane 96 + `n`.
#[test]
fn each_thread_gives_its_own_lane() {
    let text = edited(
        "    add.u32 %r23, %r2, %r22;\n",
        "    max.u32 %r23, %r0, 96;\n    sub.u32 %r23, %r23, 96;\n    shl.b32 %r23, %r23, 16;\n    add.u32 %r22, %r22, %r23;\n    \
         add.u32 %r23, %r2, %r22;\n",
    );
    let title = "warp 3 accesses tensor memory at 0x600000 (lane 96, column 0): the lanes of the warp give different addresses, its \
                 thread 1 gives 0x610000 (lane 97, column 0)";
    expect(&text, "tensor-address", "tcgen05.ld", title);
}

#[test]
fn accumulate_on_for_the_first_mma() {
    let text = edited("0x08200010, %p3;", "0x08200010, 1;");
    expect(&text, "undefined-value-stored", "tcgen05.mma", "a value that was never computed");
}

/// The registers are used before anyone is told, and that waits for the load, too: a note.
#[test]
fn no_wait_for_the_load() {
    let text = edited("    tcgen05.wait::ld.sync.aligned;\n", "");
    for seed in schedules(8) {
        let report = run(&text, seed);
        assert!(report.is_clean(), "seed {seed:?}: {:#?}", report.findings);
        let said =
            report.notes.iter().any(|note| note.code == "missing-wait-ld" && note.title.contains("is freed after"));
        assert!(said, "seed {seed:?}: {:#?}", report.notes);
    }
}

#[test]
fn barrier_never_initialised() {
    let text = edited("    mbarrier.init.shared::cta.b64 [mma_done], 1;\n", "");
    expect(&text, "mbarrier-not-initialised", "", "`mma_done` is");
}

#[test]
fn no_barrier_behind_the_set_up() {
    let text = edited("SETUP_DONE:\n    bar.sync 0;\n", "SETUP_DONE:\n");
    let codes: Vec<_> = run(&text, None).findings.iter().map(|d| d.code).collect();
    assert!(
        codes.iter().any(|c| matches!(*c, "race-shared" | "undefined-operand" | "mbarrier-not-initialised")),
        "{codes:?}"
    );
}

#[test]
fn copy_past_the_end() {
    let text = edited("setp.lt.u32 %p2, %r10, 8;", "setp.lt.u32 %p2, %r10, 9;");
    expect(&text, "out-of-bounds", "ld.global.v4.b32", "past the end of `A` (16384 bytes)");
}

#[test]
fn misaligned_vector() {
    let text = edited("mul.wide.u32 %rd2, %r0, 16;", "mul.wide.u32 %rd2, %r0, 8;");
    expect(&text, "misaligned-address", "ld.global.v4.b32", "not a multiple of 16");
}

#[test]
fn illegal_shape() {
    let text = edited("0x08200010", "0x08420010");
    expect(&text, "instruction-descriptor", "tcgen05.mma", "N = 264");
}

#[test]
fn hopper_descriptor() {
    let text = TEXT.replace("0x4000404000000000", "0x4000804000000000");
    expect(&text, "matrix-descriptor", "tcgen05.mma", "in bits 46–48");
}

/// Assumption `descriptor-without-constant`.
#[test]
fn a_descriptor_without_its_constant_is_a_note() {
    let report = run(&TEXT.replace("0x4000404000000000", "0x4000004000000000"), None);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(wrong(&report), 0);
    let notes: Vec<_> = report.notes.iter().map(|d| d.code).collect();
    assert_eq!(notes, ["matrix-descriptor"], "{:#?}", report.notes);
    assert!(report.notes[0].title.contains("0b000"), "{:#?}", report.notes);
}

/// Hardware was seen to ignore the upper bits of the lane (lane 0 of all warps; lanes from 128 on, of the odd CTA of a pair), the ISA leaves
/// the result undefined: a note. Nobody was seen to name lanes from 256 on.
#[test]
fn a_warp_addresses_lanes_of_another() {
    for lane in ["    mov.b32 %r22, 0;\n", "    shl.b32 %r22, %r22, 21;\n    add.u32 %r22, %r22, 0x800000;\n"] {
        let report = run(&edited("    shl.b32 %r22, %r22, 21;\n", lane), None);
        assert!(report.is_clean(), "{lane}: {:#?}", report.findings);
        assert_eq!(wrong(&report), 0, "{lane}");
        let codes: Vec<_> = report.notes.iter().map(|d| (d.code, &d.labels[0].place)).collect();
        assert!(matches!(codes[..], [("tensor-lane-quarter", place)] if place.line >= 104), "{lane}: {codes:#?}");
    }
    let beyond = run(&edited("    shl.b32 %r22, %r22, 21;\n", "    mov.b32 %r22, 0x1000000;\n"), None);
    assert_eq!(
        beyond.findings.iter().map(|d| d.code).collect::<Vec<_>>(),
        ["tensor-address"],
        "{:#?}",
        beyond.findings
    );
}

/// A lane whose bit of disable-output-lane is 1 is not written: taken for the lanes that are wanted, the finding names the mask.
#[test]
fn a_mask_that_disables_the_lanes_that_are_read() {
    let mma = "tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08200010, %p3;";
    for (lanes, mask) in [(128, "{%m, %m, %m, %m}"), (32, "{%z, %z, %m, %z}"), (0, "{%z, %z, %z, %z}")] {
        let masked = mma.replace("%p3", &format!("{mask}, %p3"));
        let text = edited(mma, &format!("{{.reg .b32 %m, %z;\nmov.b32 %m, -1;\nmov.b32 %z, 0;\n{masked}\n}}"));
        let report = run(&text, None);
        if lanes == 0 {
            assert!(report.is_clean() && wrong(&report) == 0, "{:#?}", report.findings);
            continue;
        }
        let [found] = &report.findings[..] else { panic!("{mask}: {:#?}", report.findings) };
        assert_eq!(found.code, "undefined-value-stored", "{mask}");
        let label = found.labels.iter().find(|l| l.place.text.contains("tcgen05.mma"));
        let said = label.unwrap_or_else(|| panic!("{mask}: {found:#?}")).text.as_str();
        assert!(
            said.contains(&format!("{lanes} of the 128 lanes")) && said.contains("disable-output-lane"),
            "{mask}: {said}"
        );
    }
}

/// A missing tcgen05 fence makes no difference to the machine code: a note, not a finding.
#[test]
fn missing_tensor_fence_is_a_note() {
    let report = run(&edited("    tcgen05.fence::after_thread_sync;\n", ""), None);
    assert!(report.is_clean(), "{:#?}", report.findings);
    let notes: Vec<_> = report.notes.iter().map(|d| (d.code, d.labels[0].place.line)).collect();
    assert_eq!(notes, [("missing-tensor-fence", 103)], "{:#?}", report.notes);
}

#[test]
fn a_loop_that_never_ends_is_reported() {
    let text = edited("setp.lt.u32 %p2, %r10, 8;", "setp.lt.u32 %p2, 0, 8;")
        .replace("add.s64 %rd0, %rd0, 2048;", "add.s64 %rd0, %rd0, 0;");
    let text = text
        .replace("add.s64 %rd1, %rd1, 2048;", "")
        .replace("add.u32 %r8, %r8, 2048;", "")
        .replace("add.u32 %r9, %r9, 2048;", "");
    let report = run(&text, None);
    assert_eq!(report.findings.first().map(|d| d.code), Some("hang"));
    assert!(!report.completed);
}

/// Opcodes that are unknown or not modelled are errors with line and column before anything runs.
#[test]
fn unknown_instructions_are_refused() {
    for (from, to, code, says) in [
        ("    ret;\n}", "    frobnicate.b32 %r1;\n}", "ptx-syntax", "list-instructions"),
        ("tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::xy.sync.aligned;", "ptx-syntax", "tcgen05.wait"),
        ("    ret;\n}", "    add.s32 %r1, %r2;\n}", "ptx-semantics", "operands"),
        ("    ret;\n}", "    mov.u32 %r99, 1;\n}", "ptx-semantics", "declare more"),
        ("    ret;\n}", "    mov.u32 %r1 1;\n}", "ptx-syntax", ""),
    ] {
        let errors = emulator::load(&edited(from, to)).expect_err(to);
        let d = &errors[0];
        let place = &d.labels[0].place;
        assert!(d.code == code && place.line > 0 && place.column > 0 && d.help.contains(says), "{to}: {d:#?}");
    }
}
