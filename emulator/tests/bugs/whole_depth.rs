//! Depths that are loaded and never multiplied, and an operand that begins in the other one's tile, where the tiles of a ring begin within a KiB: as those of
//! CuTe DSL, which has 256 bytes of barriers in front of them. A kernel that is right stands beside each.

use super::case::Base::{OneTile, Pair, Ring};
use super::case::{Result, run, says, told};
use emulator::{Content, Diagnostic, Launch, Param, Report};

/// All tiles of the ring lie 256 bytes further on; rows of D are permuted by their addresses.
const BEHIND_256: &[(&str, &str)] = &[
    ("@pool", "{}\n    add.u32 %r2, %r2, 256;"),
    ("    and.b32 %r26, %r0, 7;\n", "    add.u32 %r26, %r0, 2;\n    and.b32 %r26, %r26, 7;\n"),
];
const HALF: &[(&str, &str)] = &[("setp.lt.u32 %p8, %r18, 4;", "setp.lt.u32 %p8, %r18, 2;")];
const B_AT_A: &[(&str, &str)] = &[("@descriptor_b", "mov.b64 %rd3, %rd2;")];

fn more(launch: &mut Launch) {
    launch.dynamic_shared += 256;
}

fn of(edits: &[&[(&str, &str)]], launch: fn(&mut Launch)) -> Report {
    run(Ring, &edits.concat(), launch, 400_000)
}

fn all(report: &Report) -> Vec<Diagnostic> {
    report.findings.iter().chain(&report.notes).cloned().collect()
}

fn is_silent(edits: &[&[(&str, &str)]], launch: fn(&mut Launch)) {
    let report = of(edits, launch);
    let mut launched = Ring.launch();
    launch(&mut launched);
    assert!(all(&report).is_empty(), "{}", told(&all(&report)));
    assert!(Ring.result(&launched, &report) == Result::Right);
}

#[test]
fn tiles_within_a_kib_are_watched() {
    is_silent(&[BEHIND_256], more);
    for (edit, code, what) in [
        (HALF, "loaded-never-read", "bytes 64 to 127 of the 128 bytes of each row of A and of B are never multiplied"),
        (B_AT_A, "operand-overlap", "both for A and for B"),
    ] {
        let report = of(&[BEHIND_256, edit], more);
        let first = report.findings.first();
        assert!(first.is_some_and(|d| d.code == code), "{}", told(&all(&report)));
        says(&report.findings[0], &[what]);
    }
}

/// The MMAs of one tile along K are left out.
const SECOND_SKIPPED: &[(&str, &str)] = &[
    ("@descriptor_b", "{}\n    setp.eq.u32 %p10, %r14, 1; // @which\n    @%p10 bra SKIPPED;"),
    ("@commit_empty", "SKIPPED:\n{}"),
];
/// The last one is.
const LAST_SKIPPED: &[(&str, &str)] = &[SECOND_SKIPPED[0], SECOND_SKIPPED[1], ("@which", "setp.eq.u32 %p10, %r14, 2;")];

/// What lies in these depths of A is zero.
fn without_second(launch: &mut Launch) {
    let Content::Bytes(bytes) = &mut launch.buffers[0].content else { return };
    let mut zeroed = bytes.to_vec();
    zeroed.chunks_mut(384).for_each(|row| row[128..256].fill(0));
    *bytes = zeroed.into();
}

/// Where both operands of depths in the middle, or at the end, are loaded and hold data, they are missing in the product. What is zero may be left out.
#[test]
fn depths_in_the_middle_are_missed() {
    let report = of(&[SECOND_SKIPPED], |_| {});
    let [found] = &report.findings[..] else { panic!("{}", told(&all(&report))) };
    assert_eq!(found.code, "loaded-never-read");
    says(
        found,
        &[
            "depths 64 to 127 of A and of B are loaded and never multiplied, in the middle of a sum",
            "line 198: this MMA adds those",
            "[%r16], [%rd0",
            "[%r17], [%rd1",
        ],
    );
    assert!(!report.notes.iter().any(|note| note.code == "loaded-never-read"), "{}", told(&report.notes));
    let report = of(&[SECOND_SKIPPED], without_second);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    assert!(report.notes.iter().any(|note| note.code == "loaded-never-read"), "{}", told(&report.notes));
    let report = of(&[LAST_SKIPPED], |_| {});
    let [found] = &report.findings[..] else { panic!("{}", told(&all(&report))) };
    assert_eq!(found.code, "loaded-never-read");
    says(found, &["depths 128 to 191 of A and of B are loaded and never multiplied, at the end of a sum"]);
}

/// A mask says which tiles along K count: of a parameter, of memory, or of a parameter by way of a branch.
const MASKS: [&str; 3] = [
    "ld.param.u32 %r91, [tiles];\n    add.u32 %r91, %r91, 2;\n    shr.u32 %r91, %r91, %r14;\n    and.b32 %r91, %r91, 1;\n    setp.eq.u32 %p10, %r91, 0;",
    "ld.shared.b32 %r91, [%r3+64];\n    add.u32 %r91, %r91, 5;\n    shr.u32 %r91, %r91, %r14;\n    and.b32 %r91, %r91, 1;\n    setp.eq.u32 %p10, %r91, 0;",
    "mov.u32 %r91, 0;\n    and.b32 %r92, %r14, %r5;\n    setp.ne.u32 %p11, %r92, 1;\n    @%p11 bra KEPT;\n    mov.u32 %r91, 1;\nKEPT:\n    setp.ne.u32 %p10, %r91, 0;",
];

/// What a mask leaves out, or another launch adds, may be meant to be missing: that is a note.
#[test]
fn depths_that_are_masked_are_not_missed() {
    for mask in MASKS {
        let report = of(&[SECOND_SKIPPED, &[("@which", mask)]], |_| {});
        assert!(report.findings.is_empty(), "{}", told(&report.findings));
        let [note] = &report.notes[..] else { panic!("{}", told(&report.notes)) };
        says(note, &["depths 64 to 127 of A and of B are loaded and never multiplied", "what another launch adds"]);
    }
}

/// Maps that cut up the depths into pieces of 64, one of which each copy brings.
#[test]
fn depths_go_on_in_another_dimension() {
    const PIECES: &[(&str, &str)] = &[
        ("    mov.u32 %r14, 0; // @producer_k", "    mov.u32 %r14, 0;\n    mov.u32 %r90, 0;"),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r16], [%rd0, {%r18, %r13}]",
            "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r16], [%rd0, {%r90, %r13, %r14}]",
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r17], [%rd1, {%r18, %r19}]",
            "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r17], [%rd1, {%r90, %r19, %r14}]",
        ),
    ];
    let cut = |launch: &mut Launch| {
        for param in &mut launch.params[..2] {
            let Param::TensorMap { map, .. } = param else { panic!("a map") };
            (map.dims, map.strides) = (vec![64, map.dims[1], 3], vec![map.strides[0], 128]);
            map.box_dims.push(1);
        }
    };
    is_silent(&[PIECES], cut);
    let report = of(&[PIECES, SECOND_SKIPPED], cut);
    let [found] = &report.findings[..] else { panic!("{}", told(&all(&report))) };
    says(found, &["depths 64 to 127 of A and of B are loaded and never multiplied, in the middle of a sum"]);
}

/// Tensors of twice as many columns, of which each tile of A and of B has one box, and the half of that belongs to another matrix: no depth of these is missing.
#[test]
fn the_columns_beside_may_be_another_matrix() {
    let one_box = |launch: &mut Launch| *launch = super::case::ring_launch(384, 64);
    let report = of(&[HALF], one_box);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    assert!(report.notes.iter().any(|note| note.code == "loaded-never-read"), "{}", told(&report.notes));
}

/// A descriptor counts in units of 16 bytes, and an MMA takes two: one of them is too few, four are too many. Both are told of the MMA, whatever they lead to.
#[test]
fn steps_along_k_are_two_units_of_16_bytes() {
    for (base, [a, b]) in [
        (Ring, ["add.s64 %rd2, %rd2, 2;", "add.s64 %rd3, %rd3, 2;"]),
        (Pair, ["add.s64 %rd2, %rd2, 2;", "add.s64 %rd3, %rd3, 2;"]),
        (OneTile, ["add.s64 %rd3, %rd3, 2;", "add.s64 %rd4, %rd4, 2;"]),
    ] {
        for (step, code, what) in [
            (
                "1;",
                "product-added-twice",
                "depths 8 to 23 of A and of B, and one before it that of depths 0 to 15 of A and of B",
            ),
            (
                "4;",
                "box-mismatch",
                "Let the descriptors of A and B go on by 32 bytes for each MMA along K, 2 in their start addresses",
            ),
        ] {
            let [to_a, to_b] = [a, b].map(|from| from.replace("2;", step));
            let report = run(base, &[(a, to_a.as_str()), (b, to_b.as_str())], |_| {}, 1_000_000);
            let Some(first) = report.findings.first() else { panic!("{}", told(&all(&report))) };
            assert_eq!(first.code, code, "{}", told(&all(&report)));
            says(first, &[what]);
        }
    }
}

/// N that is twice that of the tiles: whatever it leads to, the instruction descriptor is told.
#[test]
fn an_mma_that_is_wider_than_its_tiles_is_told() {
    let wide: [&[(&str, &str)]; 3] = [
        &[("0x08100010", "0x08200010")],
        // The accumulators overlap.
        &[("0x08100010", "0x08200010"), ("@acc_mma", "    shl.b32 %r23, %r20, 5;")],
        // All lies within the columns: it reads the stage behind B, and writes to the other accumulator.
        &[("0x08100010", "0x08200010"), ("[%r3+64], 128;", "[%r3+64], 256;"), ("%r6, 128;", "%r6, 256;")],
    ];
    for edits in wide {
        let report = of(&[edits], |_| {});
        let [found] = &report.findings[..] else { panic!("{}", told(&all(&report))) };
        assert_eq!(found.code, "instruction-descriptor", "{}", told(&all(&report)));
        says(
            found,
            &[
                "says N = 128, although the tile of B has 64 rows",
                "of B it takes 128 rows",
                "[%r17], [%rd1, ",
                "Let N of the MMA be 64 (128 now)",
            ],
        );
    }
    let columns = [("[slot], 128;", "[slot], 256;"), ("%r2, 128;", "%r2, 256;")];
    for edits in [&[("0x08200010", "0x08400010")][..], &[("0x08200010", "0x08400010"), columns[0], columns[1]]] {
        let report = run(OneTile, edits, |_| {}, 400_000);
        let [found] = &report.findings[..] else { panic!("{}", told(&all(&report))) };
        assert_eq!(found.code, "instruction-descriptor", "{}", told(&all(&report)));
        says(found, &["says N = 256, although the tile of B has 128 rows", "threads store the 128 rows of B here"]);
    }
    // Behind B lies what is loaded for A of the next stage: a missing wait is told as that.
    let report = of(&[&[("@loop_full", "")]], |_| {});
    assert!(report.findings.first().is_some_and(|d| d.code != "instruction-descriptor"), "{}", told(&all(&report)));
}

/// The depths of A go round by one tile, those of B do not; or both do. Each depth of the one is multiplied with one of the other.
#[test]
fn depths_of_both_are_the_same_ones() {
    const ROUND: &str = "    add.u32 %r90, %r14, 1;\n    rem.u32 %r90, %r90, %r4;\n    shl.b32 %r90, %r90, 6;\n    shl.b32 %r18, %r14, 6;";
    const A: (&str, &str) = ("[%r16], [%rd0, {%r18, %r13}]", "[%r16], [%rd0, {%r90, %r13}]");
    const B: (&str, &str) = ("[%r17], [%rd1, {%r18, %r19}]", "[%r17], [%rd1, {%r90, %r19}]");
    is_silent(&[&[("@column", ROUND), A, B]], |_| {});
    let report = of(&[&[("@column", ROUND), A]], |_| {});
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    let [note] = &report.notes[..] else { panic!("{}", told(&report.notes)) };
    assert_eq!(note.code, "depth-mismatch");
    says(note, &["depths 64 to 191 of A are multiplied with depths 0 to 127 of B", "[%r16], [%rd0", "[%r17], [%rd1"]);
}

/// A product of rows 0 to 127 of a tensor with its rows 96 to 159, which two copies bring: parts of the same tile for both operands. B begins at the same place
/// in a tile of another tensor, and that is a mistake.
#[test]
fn windows_of_one_tensor_may_overlap() {
    const WINDOW: &[(&str, &str)] = &[
        ("    mov.u32 %r19, 0; // row of B", "    add.u32 %r19, %r13, 128;"),
        ("@descriptor_b", "    add.s64 %rd3, %rd2, 768;"),
    ];
    let of_a = |launch: &mut Launch| launch.params[1] = super::common::pair::map(0, 384, 192, 64);
    let report = of(&[WINDOW], of_a);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    let report = of(&[&WINDOW[1..]], |_| {});
    assert!(report.findings.first().is_some_and(|d| d.code == "operand-overlap"), "{}", told(&all(&report)));
}
