//! What a newcomer gets wrong between warps: parities, counts, bytes, rounds and stages. Each has one cause, and one finding that names it; what it
//! leads to is left out.

use super::case::{Base, first, run, says, told};
use super::compiled::{changed, only};
use super::newcomers::one;
use Base::{Pair, Ring};

/// The parity of who multiplies stays: it takes the phase that it has seen for the next one.
#[test]
fn the_parity_of_the_consumer_never_flips() {
    const FLIPS: &str = "    @%p5 xor.b32 %r11, %r11, 1;\n    setp.lt.u32 %p6, %r9, %r5;\n    @%p6 bra TILE;";
    let stays = FLIPS.split_once('\n').map_or("", |(_, rest)| rest);
    let parts = ["a second time", "Let the mbarrier and the parity of this wait go on from round to round"];
    one(Pair, &[(FLIPS, stays)], "operand-not-ready", "tcgen05.mma", &parts);
}

/// B of a stage lies where A of the next one does.
#[test]
fn a_stage_begins_before_the_last_one_ends() {
    const STAGE: &str = "    shl.b32 %r16, %r10, 15;\n    add.u32 %r17, %r3, %r16;\n    add.u32 %r18, %r17, 16384;";
    let near = STAGE.replace("15;", "14;");
    let parts = ["belongs to two stages", "Give each stage bytes of its own"];
    one(Pair, &[(STAGE, &near)], "race-shared", "[%r17], [%rd0", &parts);
}

/// All of A lies before all of B.
const APART: &[(&str, &str)] = &[
    ("@stage_producer", "    mul.lo.u32 %r16, %r11, 16384;\n    add.u32 %r16, %r16, %r2;"),
    ("@tile_b", "    mul.lo.u32 %r17, %r11, 8192;\n    add.u32 %r17, %r17, %r2;\n    add.u32 %r17, %r17, 32768;"),
    ("@stage_multiplier", "    mul.lo.u32 %r16, %r11, 16384;\n    add.u32 %r16, %r16, %r2;"),
    (
        "@descriptor_b",
        "    mul.lo.u32 %r50, %r11, 8192;\n    add.u32 %r50, %r50, %r2;\n    add.u32 %r50, %r50, 32768;\n    bfe.u32 %r50, %r50, 4, 14;\n    \
         cvt.u64.u32 %rd3, %r50;\n    or.b64 %rd3, %rd3, 0x4000404000000000;",
    ),
];

/// The third stage of A is the first one of B, and its mbarrier says which stages are free.
#[test]
fn the_stage_of_the_producer_runs_past_the_last() {
    assert!(run(Ring, APART, |_| {}, 400_000).is_clean(), "the ring is right so");
    let three = "    add.u32 %r11, %r11, 1;\n    setp.eq.u32 %p5, %r11, 3;\n    @%p5 mov.u32 %r11, 0;";
    let found = first(Ring, &[APART, &[("@next_stage_producer", three)]].concat(), |_| {});
    assert_eq!(found.code, "race-shared", "{}", told(std::slice::from_ref(&found)));
    says(&found, &["belongs to two stages", "Let the stage begin at 0 again behind the last one"]);
}

/// A wait behind the last mbarrier of a ring, at what is none.
#[test]
fn the_stage_of_a_wait_runs_past_all_mbarriers() {
    const TWO: &str = "
    .shared .align 8 .b8 bars[32];
    mov.u32 %r3, bars;
    @!%p0 bra READY;
    mbarrier.init.shared::cta.b64 [%r3], 1;
    mbarrier.init.shared::cta.b64 [%r3+8], 1;
READY:
    bar.sync 0;
    @!%p0 ret;
    mov.u32 %r4, 0;
NEXT:
    shl.b32 %r5, %r4, 3;
    add.u32 %r5, %r5, %r3;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r5], 1;
    @!%p4 bra WAIT;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p5, %r4, 2;
    @%p5 bra NEXT;
";
    let found = first(Base::Small(1, 32, TWO), &[("%r4, 2;", "%r4, 3;")], |_| {});
    assert_eq!(found.code, "mbarrier-not-initialised");
    says(&found, &["This statement has gone through the 2 mbarriers", "let the stage begin at 0 again there"]);
}

/// Who waits goes round once more than who arrives.
#[test]
fn loops_of_two_sides_go_round_unequally_often() {
    let parts = ["in round", "is through after", "go round equally often"];
    let fewer = "    setp.lt.u32 %p6, %r14, 2;";
    one(Ring, &[("@producer_more", fewer)], "hang", "[%r15], %r12", &parts);
    one(Ring, &[("@multiplier_more", fewer)], "hang", "[%r15+16], %r12", &parts);
}

/// The launch gives a few bytes too little for what the kernel lays out.
#[test]
fn the_launch_gives_too_little_shared_memory() {
    let found = first(Ring, &[], |launch| launch.dynamic_shared = 65600);
    assert_eq!(found.code, "out-of-bounds");
    says(&found, &["gives the kernel 65600 bytes of dynamic shared memory, and this needs 65604 at least"]);
    let found = first(Pair, &[], |launch| launch.dynamic_shared = 81920);
    assert_eq!(found.code, "mbarrier-address");
    says(&found, &["gives the kernel 81920 bytes of dynamic shared memory, and this needs 81928 at least"]);
}

/// Each stage is freed by the commits of two CTAs, and one completes the phase.
#[test]
fn an_mbarrier_counts_the_commit_of_one_cta_of_two() {
    let report = changed("multicast", 80, "], 2;", "], 1;");
    let found = only(&report, "operand-overwritten", 80);
    says(found, &["2 warps commit MMAs to it", "for as many arrivals as there are commits in a phase, 2"]);
}

/// Half the bytes are announced: the stage is freed too early, and phases go by, as a consequence.
#[test]
fn half_the_bytes_of_a_pair_are_announced() {
    one(Pair, &[("[%r13], 65536;", "[%r13], 32768;")], "phase-completed-early", "32768", &["Announce 65536 bytes"]);
    let report = changed("multicast", 139, "32768", "16384");
    says(only(&report, "phase-completed-early", 139), &["Announce 32768 bytes"]);
}

/// All threads arrive where one is counted: the product is handed back by the first.
#[test]
fn an_mbarrier_counts_one_thread_of_all() {
    let one_thread = "    mbarrier.init.shared::cta.b64 [%r3+48], 1;";
    let other = "    mbarrier.init.shared::cta.b64 [%r3+56], 1;";
    let edits = [("@init_acc_empty_0", one_thread), ("@init_acc_empty_1", other)];
    let report = run(Ring, &edits, |_| {}, 400_000);
    let codes: Vec<&str> = report.findings.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["mbarrier-split"], "{}", told(&report.findings));
}

/// The accumulator that is read stays, and the mbarrier that is waited for goes on.
#[test]
fn another_product_is_read_than_was_waited_for() {
    let report = run(Ring, &[("@acc_out", "    mov.u32 %r23, 0;")], |_| {}, 400_000);
    let codes: Vec<&str> = report.findings.iter().map(|d| d.code).collect();
    assert_eq!(codes.first(), Some(&"mma-not-awaited"), "{}", told(&report.findings));
    assert!(!codes.contains(&"accumulator-overwritten"), "{}", told(&report.findings));
}

/// Who reads waits for the phase before: what it hands back too early by that is no mistake of its own.
#[test]
fn a_product_is_read_in_the_wrong_phase() {
    let report = run(Ring, &[("    mov.u32 %r21, 0; // its parity", "    mov.u32 %r21, 1;")], |_| {}, 400_000);
    let codes: Vec<&str> = report.findings.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["wrong-phase"], "{}", told(&report.findings));
}
