//! Addresses that are wrong and bits that turn a tile, in kernels that were right: where an operand, an accumulator or a copy begins is told as that, and
//! not as an order that lacks; and one mistake is told once.

use super::case::{Base, run, told};
use Base::{OneTile, Pair, Ring, Small};
use emulator::{Launch, Report};

/// What is found on the default schedule is one thing: its code, the statement that it points at, and what it says.
fn one_of(report: &Report, code: &str, at: &str, says: &[&str]) {
    let text = told(&report.findings);
    assert_eq!(report.findings.iter().map(|d| d.code).collect::<Vec<_>>(), [code], "{text}");
    first_of(report, code, at, says);
}

/// The same of the first thing that is found.
fn first_of(report: &Report, code: &str, at: &str, says: &[&str]) {
    let text = told(&report.findings);
    let first = report.findings.first().unwrap_or_else(|| panic!("nothing is found"));
    assert_eq!(first.code, code, "{text}");
    let place = first.labels.first().map_or("", |label| &label.place.text);
    assert!(place.contains(at), "told at `{place}`:\n{text}");
    says.iter().for_each(|part| assert!(text.contains(part), "`{part}` is not in\n{text}"));
}

fn ran(base: Base, edits: &[(&str, &str)]) -> Report {
    run(base, edits, |_| {}, 400_000)
}

fn one(base: Base, edits: &[(&str, &str)], code: &str, at: &str, says: &[&str]) {
    one_of(&ran(base, edits), code, at, says);
}

/// Bits 15 and 16 of the instruction descriptor, of tiles that threads copied and of boxes; and of one that is so narrow that its elements overlap nowhere.
#[test]
fn the_bit_of_a_major_ness_is_wrong() {
    let a = ["bit 15 of the instruction descriptor", "to 0", "go along K"];
    let b = ["bit 16 of the instruction descriptor", "to 0", "go along K"];
    one(OneTile, &[("0x08200010", "0x08208010")], "instruction-descriptor", "tcgen05.mma", &a);
    one(OneTile, &[("0x08200010", "0x08210010")], "instruction-descriptor", "tcgen05.mma", &b);
    one(Ring, &[("0x08100010", "0x08108010")], "instruction-descriptor", "tcgen05.mma", &a);
    one(Ring, &[("0x08100010", "0x08110010")], "instruction-descriptor", "tcgen05.mma", &b);
    let says = ["bit 15 of the instruction descriptor"];
    let unknown = run(OneTile, &[("0x08200010", "0x08208010")], without_rows, 400_000);
    one_of(&unknown, "instruction-descriptor", "tcgen05.mma", &says);
}

/// The launch does not say how long the rows of the buffers are.
fn without_rows(launch: &mut Launch) {
    launch.buffers.iter_mut().for_each(|buffer| buffer.row_bytes = None);
}

#[test]
fn an_operand_begins_in_the_others_tile() {
    let edits = [("    add.s64 %rd3, %rd2, 1024;", "    add.s64 %rd3, %rd2, 512;")];
    let says = ["Let B begin in the first row of its tile", "start address", "B begins in row 64 of the 128"];
    one(Pair, &edits, "operand-overlap", "tcgen05.mma", &says);
}

#[test]
fn an_address_is_not_shifted_and_nobody_knows_the_rows() {
    let edits = [("    shr.u32 %r19, %r19, 4;\n", "")];
    let report = run(OneTile, &edits, without_rows, 400_000);
    one_of(&report, "matrix-descriptor", "tcgen05.mma", &["holds an address as it is", "right by 4"]);
}

/// Threads stored a tile by another swizzle than its descriptor has, and made more rows than an MMA takes: also where the launch does not say how long the
/// rows of their buffers are.
#[test]
fn what_threads_stored_is_known_without_the_length_of_rows() {
    const A: &str = "or.b64 %rd3, %rd3, 0x4000404000000000;";
    for (edit, promised) in
        [("0x0000404000000000", "promises none"), ("0x8000404000000000", "promises the 64-byte swizzle")]
    {
        let edit = format!("or.b64 %rd3, %rd3, {edit};");
        let report = run(OneTile, &[(A, &edit)], without_rows, 400_000);
        let says = ["A was stored with the 128-byte swizzle", promised, "bits 61 to 63 of the descriptor to 2"];
        one_of(&report, "swizzle-mismatch", "tcgen05.mma", &says);
    }
    let fewer = [("    and.b32 %r4, %r3, 7;", "    and.b32 %r4, %r3, 3;")];
    let report = run(OneTile, &fewer, without_rows, 400_000);
    one_of(&report, "swizzle-mismatch", "tcgen05.mma", &["xor (r mod 8)"]);
    let narrow = run(OneTile, &[("0x08200010", "0x08100010")], without_rows, 400_000);
    one_of(&narrow, "instruction-descriptor", "tcgen05.mma", &["this MMA has N = 64", "its N is 64"]);
    assert!(run(OneTile, &[], without_rows, 400_000).is_clean());
}

/// The stride is right, and the operand begins 16 bytes too far.
#[test]
fn an_operand_begins_in_the_middle_of_its_part_of_a_row() {
    let report = ran(Ring, &[("@descriptor_b", "    add.s64 %rd3, %rd2, 1025;")]);
    first_of(&report, "box-mismatch", "tcgen05.mma", &["check the start address of its descriptor"]);
    let told_of_depths = report.findings.iter().any(|d| d.code == "depth-mismatch");
    assert!(!told_of_depths, "{}", told(&report.findings));
}

/// Whoever reads the other accumulator, or one of two always, has waited for something else.
#[test]
fn another_accumulator_is_read_than_was_waited_for() {
    let says = ["tells of another accumulator", "go on together", "the product lies in tensor memory column 64"];
    let always = [("@acc_out", "    mov.u32 %r23, 0;")];
    one(Ring, &always, "mma-not-awaited", "tcgen05.ld", &says);
    let other = [("@acc_out", "    xor.b32 %r23, %r20, 1;\n    shl.b32 %r23, %r23, 6;")];
    let report = ran(Ring, &other);
    first_of(&report, "mma-not-awaited", "tcgen05.ld", &["tells of another accumulator", "go on together"]);
}

#[test]
fn columns_are_freed_before_a_phase_that_nobody_waits_for() {
    let fewer = "OUT:\n    add.u32 %r90, %r10, 1;\n    setp.ge.u32 %p3, %r90, %r5;";
    let says = [
        "nobody has waited for phase 1",
        "its commit completes phase 1",
        "passed on phase 0",
        "as often as it is committed to",
    ];
    one(Ring, &[("OUT:\n    setp.ge.u32 %p3, %r10, %r5;", fewer)], "tensor-freed-in-use", "tcgen05.dealloc", &says);
}

#[test]
fn columns_are_freed_by_a_warp_that_is_not_told() {
    let edits = [
        ("    // Wait for the MMAs.\n", "    @!%p0 bra FREE;\n"),
        ("    tcgen05.fence::after_thread_sync;\n", "    bra FREED;\n"),
        ("    @%p0 bra FREED;\n", "FREE:\n"),
    ];
    let says =
        ["warp 0 has not waited for `mma_done`", "waits for that phase here, and warp 0 is not told", "parity 0"];
    one(OneTile, &edits, "tensor-freed-in-use", "tcgen05.dealloc", &says);
}

#[test]
fn a_copy_stores_a_box_of_an_operand() {
    let edits = [("    add.u32 %r44, %r3, 65536;", "    add.u32 %r44, %r3, 49152;")];
    let says = ["Check the source address of the copy", "from which no copy takes anything"];
    one(Pair, &edits, "race-shared", "cp.async.bulk.tensor.2d.global", &says);
}

#[test]
fn two_stores_of_a_thread_overlap() {
    let edits = [("{%r28, %r27}], [%r44]", "{%r27, %r28}], [%r44]")];
    let says = ["they overlap", "check the coordinates, or the address, of the second one"];
    one(Pair, &edits, "race-global", "cp.async.bulk.tensor.2d.global", &says);
}

#[test]
fn every_warp_or_every_lane_issues_the_mmas() {
    let all_warps = [("    // MMA, by one thread.\n    @%p0 bra ISSUED;\n", "")];
    let says = ["4 warps each issue", "Choose one warp before elect.sync"];
    one(OneTile, &all_warps, "issued-by-many-lanes", "tcgen05.mma", &says);
    // The same of operands that are computed: of these it is not known from where they came.
    let computed = "    xor.b32 %r11, %r11, %r10;\n    xor.b32 %r11, %r11, %r10;\n    st.shared.v4.b32 [%r8], {%r11";
    let edits = [all_warps[0], ("    st.shared.v4.b32 [%r8], {%r11", computed)];
    one(OneTile, &edits, "issued-by-many-lanes", "tcgen05.mma", &says);
    let all_lanes = [("    elect.sync _|%p1, 0xffffffff;\n    @!%p1 bra ISSUED;\n", "")];
    let report = ran(OneTile, &all_lanes);
    one_of(&report, "issued-by-many-lanes", "tcgen05.mma", &["32 lanes", "one elected lane"]);
    let noted: Vec<_> = report.notes.iter().map(|note| note.code).collect();
    assert!(!noted.contains(&"product-added-twice"), "{noted:?}");
}

/// What warps 0 and 1 do in each of six rounds: wait for the commit of the round before, and multiply one of three slices.
const TURN: &str = "
    and.b32 %r40, %r21, 1;
    mov.u32 %r41, turns;
    mad.lo.u32 %r42, %r40, 8, %r41;
    setp.ne.u32 %p7, %r40, %r1;
    @%p7 bra NEXT;
    @!%p3 bra FIRST;
    xor.b32 %r43, %r42, 8;
    sub.u32 %r44, %r21, 1;
    shr.u32 %r44, %r44, 1;
    and.b32 %r44, %r44, 1;
TURN:
    mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r43], %r44;
    @!%p7 bra TURN;
FIRST:
    tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08200010, %p3;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r42];
NEXT:
    setp.ne.u32 %p7, %r21, 2;
    @%p7 bra ON;
    sub.s64 %rd3, %rd3, 6;
    sub.s64 %rd4, %rd4, 6;
ON:";

/// Two warps take turns at the MMAs of a loop, and come to a slice that the other has had in a round of their own: none is issued twice. Where each waits
/// for the commit of the one before, all is in order.
#[test]
fn two_warps_take_turns_at_the_mmas() {
    let computed = "    xor.b32 %r11, %r11, %r10;\n    xor.b32 %r11, %r11, %r10;\n    st.shared.v4.b32 [%r8], {%r11";
    let init = "[mma_done], 2;\n    mbarrier.init.shared::cta.b64 [turns], 1;\n    mbarrier.init.shared::cta.b64 [turns+8], 1;";
    let edits = [
        ("    .shared .align 8 .b64 mma_done;", "{}\n    .shared .align 16 .b64 turns[2];"),
        ("[mma_done], 1;", init),
        ("    st.shared.v4.b32 [%r8], {%r11", computed),
        ("    // MMA, by one thread.\n    @%p0 bra ISSUED;\n", "    setp.gt.u32 %p7, %r1, 1;\n    @%p7 bra ISSUED;\n"),
        ("    tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08200010, %p3;", TURN),
        ("    setp.lt.u32 %p4, %r21, 4;", "    setp.lt.u32 %p4, %r21, 6;"),
    ];
    let report = ran(OneTile, &edits);
    assert!(report.is_clean(), "{}", told(&report.findings));
    let wait = "TURN:\n    mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r43], %r44;\n    @!%p7 bra TURN;\n";
    let without = [&edits[..], &[(wait, "")]].concat();
    let says = ["warp 0 and warp 1 issue MMAs", "in turns", "Let one thread issue all MMAs of an accumulator"];
    one(OneTile, &without, "race-tensor", "tcgen05.mma", &says);
    // Nobody need wait for the MMAs themselves: they run as a pipeline where the one warp knows that the other has issued its own.
    let arrives = [
        (
            "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r42];",
            "    tcgen05.fence::before_thread_sync;\n    mbarrier.arrive.shared::cta.b64 %rd20, [%r42];",
        ),
        ("    @!%p7 bra TURN;\n", "{}    tcgen05.fence::after_thread_sync;\n"),
    ];
    let report = ran(OneTile, &[&edits[..], &arrives].concat());
    assert!(report.is_clean(), "{}", told(&report.findings));
}

#[test]
fn one_cta_of_a_pair_frees_its_columns() {
    let edits = [(
        "    @!%p0 bra FREED;\n    tcgen05.dealloc",
        "    and.pred %p12, %p0, %p1;\n    @!%p12 bra FREED;\n    tcgen05.dealloc",
    )];
    let says = ["CTA 0 frees its columns here, and CTA 1 does not", "one warp of both CTAs"];
    one(Pair, &edits, "tensor-memory-leak", "tcgen05.alloc", &says);
}

/// Two stores overwrite what one copy may still be reading: a wait that lacks, told once, with both.
const OVERWRITES_TWICE: &str = "
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r0, 16, %r3;
    st.shared.v4.b32 [%r4], {%r0, %r0, %r0, %r0};
    st.shared.v4.b32 [%r4+512], {%r0, %r0, %r0, %r0};
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    @!%p0 bra STORED;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 1024;
    cp.async.bulk.commit_group;
STORED:
    st.shared.v4.b32 [%r4], {%r1, %r1, %r1, %r1};
    st.shared.v4.b32 [%r4+512], {%r1, %r1, %r1, %r1};
    @!%p0 bra DONE;
    cp.async.bulk.wait_group 0;
DONE:
";

#[test]
fn stores_that_lack_one_wait_are_told_together() {
    let report = ran(Small(1, 32, OVERWRITES_TWICE), &[]);
    one_of(&report, "race-shared", "st.shared.v4.b32 [%r4], {%r1", &["wait_group.read 0"]);
    let places: Vec<_> = report.findings[0].labels.iter().map(|label| label.place.text.as_str()).collect();
    assert!(places.iter().any(|text| text.contains("[%r4+512], {%r1")), "{places:?}");
}

#[test]
fn accumulators_that_overlap_are_told_once() {
    let mma = "tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08200010, %p3;";
    let two = "tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08100010, %p3;\n    add.s64 %rd7, %rd4, 512;\n    \
               add.u32 %r40, %r2, 32;\n    tcgen05.mma.cta_group::1.kind::f16 [%r40], %rd3, %rd7, 0x08100010, %p3;";
    let report = ran(OneTile, &[(mma, two)]);
    let says = ["these begin 32 columns from each other, and the first takes 64"];
    first_of(&report, "race-tensor", "tcgen05.mma", &says);
    let count = report.findings.iter().filter(|d| d.code == "race-tensor").count();
    assert_eq!(count, 1, "{}", told(&report.findings));
}

/// Who is told of a product too early says too early that its columns are free.
#[test]
fn a_product_that_is_told_of_too_early_is_the_cause_of_what_overwrites_it() {
    let commit = "{}\n    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r22+32];";
    let report = ran(Ring, &[("@commit_empty", commit), ("@commit_acc", "")]);
    first_of(&report, "early-arrival", "tcgen05.commit", &[]);
    let overwritten = report.findings.iter().any(|d| d.code == "accumulator-overwritten");
    assert!(!overwritten, "{}", told(&report.findings));
}
