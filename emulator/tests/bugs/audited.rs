//! What an audit with mutants of GEMMs found to be told of no statement, or of the wrong one: sums that end early or go over to another tile, operands of another
//! type, copies that every lane starts, offsets of tiles without a swizzle, waits for more groups than is needed. A kernel that is right stands beside each.

use super::case::Base::{OneTile, Ring, Small};
use super::case::{ring_launch, run, says, told};
use emulator::{Content, Diagnostic, Distribution, Launch, NumberType, Param, Random, Report};

fn all(report: &Report) -> Vec<Diagnostic> {
    report.findings.iter().chain(&report.notes).cloned().collect()
}

/// The only finding.
#[track_caller]
fn only(report: &Report, code: &str, parts: &[&str]) {
    let [found] = &report.findings[..] else { panic!("{}", told(&all(report))) };
    assert_eq!(found.code, code, "{}", told(&all(report)));
    says(found, parts);
}

#[track_caller]
fn silent(report: &Report) {
    assert!(all(report).is_empty(), "{}", told(&all(report)));
}

/// Five tiles along K, and a CTA for each tile of D.
fn five(launch: &mut Launch) {
    *launch = Launch { grid: [3, 1, 1], ..ring_launch(384, 320) };
}

/// The same where the last 64 columns of A are zeros.
fn five_less(launch: &mut Launch) {
    five(launch);
    let Content::Bytes(bytes) = &mut launch.buffers[0].content else { return };
    let mut zeroed = bytes.to_vec();
    zeroed.chunks_mut(640).for_each(|row| row[512..].fill(0));
    *bytes = zeroed.into();
}

/// What the loop that multiplies leaves out at its end, or at its beginning, is missing in the product, if it is not zero.
#[test]
fn sums_end_with_the_last_tile_along_k() {
    silent(&run(Ring, &[], five, 400_000));
    for bound in ["setp.lt.u32 %p6, %r14, 4;", "sub.u32 %r90, %r4, 1;\n    setp.lt.u32 %p6, %r14, %r90;"] {
        let report = run(Ring, &[("@multiplier_more", bound)], five, 400_000);
        let title = "depths 256 to 319 of A and of B are loaded and never multiplied, at the end of a sum";
        only(
            &report,
            "loaded-never-read",
            &[title, "tcgen05.mma", "[%r16], [%rd0, ", "[%r17], [%rd1, ", "as the loop that loads"],
        );
        let report = run(Ring, &[("@multiplier_more", bound)], five_less, 400_000);
        assert!(report.findings.is_empty(), "{}", told(&report.findings));
    }
    // A stage is waited for and handed back, and not multiplied.
    let skipped = [
        ("@descriptor_b", "{}\n    setp.eq.u32 %p10, %r14, 0;\n    @%p10 bra SKIPPED;"),
        ("@first", "sub.u32 %r19, %r14, 1;\n    or.b32 %r19, %r19, %r18;"),
        ("@commit_empty", "SKIPPED:\n{}"),
    ];
    let report = run(Ring, &skipped, five, 400_000);
    only(&report, "loaded-never-read", &["depths 0 to 63 of A and of B", "at the beginning of a sum"]);
}

/// A launch for a part of K whose loads run two tiles ahead: what another launch multiplies is no edge of a tensor.
#[test]
fn loads_ahead_need_not_come_to_the_end() {
    let part = [("@multiplier_more", "setp.lt.u32 %p6, %r14, 3;"), ("@producer_more", "setp.lt.u32 %p6, %r14, 4;")];
    let report = run(Ring, &part, five, 400_000);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
}

/// The rows of A go on to the next tile before the sum is complete.
#[test]
fn rows_stay_the_same_within_a_sum() {
    let rows = |when: &str| {
        let column = format!(
            "{{}}\n    setp.ge.u32 %p10, %r14, {when};\n    add.u32 %r90, %r13, 128;\n    selp.b32 %r90, %r90, %r13, %p10;"
        );
        run(Ring, &[("@column", column.as_str()), ("[%rd0, {%r18, %r13}]", "[%rd0, {%r18, %r90}]")], |_| {}, 400_000)
    };
    silent(&rows("3"));
    let parts = [
        "a sum is made of depths 0 to 127 of rows 0 to 127 of A, and of depths 128 to 191 of rows 128 to 255 of A",
        "with the same columns of B",
        "[%r16], [%rd0, ",
    ];
    only(&rows("2"), "box-mismatch", &parts);
}

/// All depths of two tiles of A may be added up.
#[test]
fn sums_of_two_tiles_may_be_meant() {
    const BOTH: &[(&str, &str)] = &[
        (
            "@column",
            "    shr.u32 %r91, %r14, 1;\n    shl.b32 %r18, %r91, 6;\n    and.b32 %r90, %r14, 1;\n    shl.b32 %r90, %r90, 7;\n    add.u32 %r90, %r90, %r13;",
        ),
        ("[%rd0, {%r18, %r13}]", "[%rd0, {%r18, %r90}]"),
    ];
    let twice = |launch: &mut Launch| {
        *launch = ring_launch(384, 192);
        (launch.params[3], launch.params[4]) = (Param::U32(6), Param::U32(2));
    };
    let report = run(Ring, BOTH, twice, 400_000);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
}

const AS_BF16: (&str, &str) = ("0x08100010", "0x08100490");

/// Tensor maps of FP16 say what the operands are, unless the launch gives numbers of another type.
#[test]
fn a_map_says_which_type_its_elements_have() {
    let report = run(Ring, &[AS_BF16], |_| {}, 400_000);
    only(
        &report,
        "type-mismatch",
        &["takes A and B for BF16, which are FP16", "[%r16], [%rd0", "Give both the type FP16."],
    );
    let as_bytes = |launch: &mut Launch| {
        for (n, buffer) in launch.buffers[..2].iter_mut().enumerate() {
            let distribution = Distribution::Integers { low: -2, high: 2 };
            let count = buffer.content.size().unwrap_or_default() / 2;
            buffer.content = Content::Random(Random { seed: n as u64, count, number: NumberType::Bf16, distribution });
        }
    };
    silent(&run(Ring, &[AS_BF16], as_bytes, 400_000));
}

/// Threads copy both tiles without a swizzle: 2048 bytes from 16 bytes of depth to the next, 128 from eight rows to the next.
const FLAT: &[(&str, &str)] = &[
    ("xor.b32 %r6, %r4, %r5;\n    shl.b32 %r6, %r6, 4;", "mul.lo.u32 %r6, %r5, 2048;"),
    ("mad.lo.u32 %r7, %r3, 128, %r6;", "mad.lo.u32 %r7, %r3, 16, %r6;"),
    ("add.u32 %r8, %r8, 2048;", "add.u32 %r8, %r8, 256;"),
    ("add.u32 %r9, %r9, 2048;", "add.u32 %r9, %r9, 256;"),
    ("add.s64 %rd3, %rd3, 2;", "add.s64 %rd3, %rd3, 256;"),
    ("add.s64 %rd4, %rd4, 2;", "add.s64 %rd4, %rd4, 256;"),
    ("or.b64 %rd4, %rd4, 0x4000404000000000;", "or.b64 %rd4, %rd4, 0x0000400800800000;"),
];

/// The field that is wrong is named, with what it is and what would fit the tile.
#[test]
fn an_offset_is_told_by_its_field() {
    let of = |edits: &[(&str, &str)], descriptor: &str| {
        let a = format!("or.b64 %rd3, %rd3, {descriptor};");
        let edits = [edits, &[("or.b64 %rd3, %rd3, 0x4000404000000000;", a.as_str())]].concat();
        run(OneTile, &edits, |_| {}, 400_000)
    };
    silent(&of(FLAT, "0x0000400800800000"));
    let leading = |found: u32| {
        format!(
            "Set the leading offset (bits 16 to 29 of the matrix descriptor, in units of 16 bytes) to 2048 bytes, 128 in its field: so far behind the first lie depths 8 to 15 of A in shared memory. It is {found} bytes now."
        )
    };
    let stride = |right: u32, found: u32| {
        format!(
            "Set the stride offset (bits 32 to 45 of the matrix descriptor, in units of 16 bytes) to {right} bytes, {} in its field: so far behind the first lie rows 8 to 15 of A in shared memory. It is {found} bytes now.",
            right / 16
        )
    };
    for (edits, descriptor, code, help) in [
        (FLAT, "0x0000400800400000", "operand-overlap", leading(1024)),
        (FLAT, "0x0000400800080000", "operand-overlap", leading(128)),
        (FLAT, "0x0000400801000000", "box-mismatch", leading(4096)),
        (FLAT, "0x0000401000800000", "operand-overlap", stride(128, 256)),
        (FLAT, "0x0000400400800000", "operand-overlap", stride(128, 64)),
        (FLAT, "0x0000408000080000", "out-of-bounds", stride(128, 2048)),
        (&[], "0x4000402000000000", "operand-overlap", stride(1024, 512)),
        (&[], "0x4000408000000000", "operand-overlap", stride(1024, 2048)),
        (&[], "0x4000400400000000", "operand-overlap", stride(1024, 64)),
    ] {
        only(&of(edits, descriptor), code, &[&help]);
    }
    // Of boxes, of which the ring has several: what is read beyond them follows.
    let report = run(Ring, &[("@descriptor", "or.b64 %rd2, %rd2, 0x4000408000000000;")], |_| {}, 400_000);
    let first = report.findings.first().unwrap_or_else(|| panic!("{}", told(&all(&report))));
    assert_eq!(first.code, "box-mismatch", "{}", told(&report.findings));
    says(first, &[&stride(1024, 2048)]);
}

/// Every lane of the producer loads, and one announces the bytes of one.
#[test]
fn every_lane_starts_the_same_copy() {
    let unguarded = [
        ("    @!%p2 bra END; // @one_producer", ""),
        ("@expect", "    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 24576;"),
    ];
    let parts = [
        "32 lanes of warp 4 each start this copy",
        "32 times its bytes come to its mbarrier",
        "24576 bytes are announced here",
        "[%r17], [%rd1",
        "elect.sync",
    ];
    only(&run(Ring, &unguarded, |_| {}, 400_000), "issued-by-many-lanes", &parts);
    // Those of A alone.
    let of_a = [unguarded[0], unguarded[1], ("@load_b", "@%p2 {}")];
    only(&run(Ring, &of_a, |_| {}, 400_000), "issued-by-many-lanes", &parts[..2]);
    // Where the bytes of all are announced it is a note.
    let report = run(
        Ring,
        &[unguarded[0], ("@expect", "    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 786432;")],
        |_| {},
        4_000_000,
    );
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    assert!(report.notes.iter().any(|note| note.code == "issued-by-many-lanes"), "{}", told(&report.notes));
}

/// Two buffers in turn, written by both warps and stored by a copy. A line that begins with `@wait` is the wait for the last copy but one.
const IN_TURN: &str = "\
mov.u32 %r4, 0;
mov.u32 %r9, tile;
shl.b32 %r8, %r0, 4;
LOOP:
and.b32 %r5, %r4, 1;
shl.b32 %r5, %r5, 10;
add.u32 %r5, %r5, %r9;
add.u32 %r6, %r8, %r5;
cp.async.bulk.wait_group.read 1; // @wait
bar.sync 0;
st.shared.v4.b32 [%r6], {%r4, %r4, %r4, %r4};
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p0 bra NEXT;
mul.wide.u32 %rd5, %r4, 1024;
add.s64 %rd5, %rd5, %rd0;
cp.async.bulk.global.shared::cta.bulk_group [%rd5], [%r5], 1024;
cp.async.bulk.commit_group;
NEXT:
add.u32 %r4, %r4, 1;
setp.lt.u32 %p1, %r4, 8;
@%p1 bra LOOP;
cp.async.bulk.wait_group 0;";

#[test]
fn a_wait_leaves_the_groups_behind_the_one_that_it_is_for() {
    silent(&run(Small(1, 64, IN_TURN), &[], |_| {}, 400_000));
    let report = run(Small(1, 64, IN_TURN), &[("@wait", "")], |_| {}, 400_000);
    let first = report.findings.first().unwrap_or_else(|| panic!("{}", told(&all(&report))));
    assert_eq!(first.code, "race-shared");
    let help = ["execute cp.async.bulk.wait_group.read 1", "It may leave the group committed behind the copy's."];
    says(first, &help);
    assert!(!told(&report.findings).contains("wait_group.read 0."), "{}", told(&report.findings));
}

/// A warp adds to the other CTA's word, which that has set to zero before the cluster's barrier.
const ADDS_AFAR: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 128;
st.shared.b32 [tile], 0;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
barrier.cluster.arrive.release.aligned; // @arrive
barrier.cluster.wait.acquire.aligned;
xor.b32 %r5, %r2, 1;
mov.u32 %r6, tile;
mov.u32 %r7, bar_a;
mapa.shared::cluster.u32 %r8, %r6, %r5;
mapa.shared::cluster.u32 %r9, %r7, %r5;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], %r5, [%r9]; // @add
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar_a], 0;
@!%p1 bra WAIT;
ld.shared.b32 %r10, [tile];
shl.b32 %r11, %r2, 2;
cvt.u64.u32 %rd5, %r11;
add.s64 %rd5, %rd5, %rd0;
@%p0 st.global.b32 [%rd5], %r10;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;";

#[test]
fn a_relaxed_arrival_tells_nothing_of_what_engines_store_behind_it() {
    let base = Small(2, 32, ADDS_AFAR);
    let report = run(base, &[], |_| {}, 400_000);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    let report = run(base, &[("@arrive", "barrier.cluster.arrive.relaxed.aligned;")], |_| {}, 400_000);
    only(
        &report,
        "race-shared",
        &["red.async.relaxed.cluster", "relaxed: this orders none of the accesses before it", "leave .relaxed out"],
    );
}

/// A goes to tensor memory by registers, 16 bytes of each row at a time, and B to shared memory.
const BY_REGISTERS: &[(&str, &str)] = &[
    ("[slot], 128;", "[slot], 256;"),
    ("%r2, 128;", "%r2, 256;"),
    ("    ld.global.v4.b32 {%r11, %r12, %r13, %r14}, [%rd0];\n", ""),
    ("    st.shared.v4.b32 [%r8], {%r11, %r12, %r13, %r14};\n", ""),
    (
        "    // MMA, by one thread.\n",
        "    ld.param.u64 %rd5, [a];\n    mul.wide.u32 %rd6, %r0, 128;\n    add.s64 %rd5, %rd5, %rd6;\n    shr.u32 %r41, %r0, 5;\n    shl.b32 %r41, %r41, 21;\n    \
         add.u32 %r41, %r41, %r2;\n    add.u32 %r41, %r41, 128;\n    mov.u32 %r42, 0;\nCHUNK:\n    ld.global.v4.b32 {%r11, %r12, %r13, %r14}, [%rd5];\n    \
         tcgen05.st.sync.aligned.32x32b.x4.b32 [%r41], {%r11, %r12, %r13, %r14};\n    add.s64 %rd5, %rd5, 16;\n    add.u32 %r41, %r41, 4;\n    \
         add.u32 %r42, %r42, 1;\n    // next\n    setp.lt.u32 %p5, %r42, 8;\n    @%p5 bra CHUNK;\n    tcgen05.wait::st.sync.aligned;\n    \
         tcgen05.fence::before_thread_sync;\n    bar.sync 0;\n    tcgen05.fence::after_thread_sync;\n    add.u32 %r43, %r2, 128;\n",
    ),
    ("[%r2], %rd3, %rd4,", "[%r2], [%r43], %rd4,"),
    ("    add.s64 %rd3, %rd3, 2;\n", "    add.u32 %r43, %r43, 8;\n"),
];

#[test]
fn what_goes_to_tensor_memory_by_registers_is_copied() {
    let report = run(OneTile, BY_REGISTERS, |_| {}, 400_000);
    silent(&report);
    let again = ("    // next\n", "    setp.eq.u32 %p6, %r42, 7;\n    @%p6 sub.s64 %rd5, %rd5, 16;\n");
    let report = run(OneTile, &[BY_REGISTERS, &[again]].concat(), |_| {}, 400_000);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    let [note] = &report.notes[..] else { panic!("{}", told(&report.notes)) };
    assert_eq!(note.code, "input-not-loaded");
    says(note, &["2048 of the 16384 bytes of `A` are never copied to tensor or shared memory", "tcgen05.st"]);
}
