//! MN-major operands whose descriptor has the right offsets, and the same with wrong ones that stay within the tile.

use super::case::{Base, edited, run, told};
use super::common;
use Base::{OneTile, Ring};
use emulator::{Launch, Param, Report};
use half::f16;

/// B of `one_tile` lies as rows of depth, and is copied so: 64 rows of 256 bytes, in two halves of 128.
pub const ROWS_OF_DEPTH: &[(&str, &str)] = &[
    (
        "    add.u32 %r9, %r9, %r7;",
        "    shr.u32 %r40, %r0, 4;\n    and.b32 %r41, %r0, 7;\n    xor.b32 %r41, %r41, %r40;\n    shl.b32 %r41, %r41, 4;\n    \
         mad.lo.u32 %r41, %r40, 128, %r41;\n    and.b32 %r42, %r0, 8;\n    shl.b32 %r42, %r42, 10;\n    add.u32 %r41, %r41, %r42;\n    \
         add.u32 %r9, %r9, %r41;",
    ),
    ("add.u32 %r9, %r9, 2048;", "add.u32 %r9, %r9, 1024;"),
    ("or.b64 %rd4, %rd4, 0x4000404000000000;", "or.b64 %rd4, %rd4, 0x4000404002000000;"),
    ("add.s64 %rd4, %rd4, 2;", "add.s64 %rd4, %rd4, 128;"),
    ("0x08200010", "0x08210010"),
];

/// A of the ring lies as rows of depth, and each half of such a row is a box.
const IN_TWO_BOXES: &[(&str, &str)] = &[
    (
        "@load_a",
        "    add.u32 %r60, %r16, 8192;\n    add.u32 %r61, %r13, 64;\n    \
         cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r16], [%rd0, {%r13, %r18}], [%r15];\n    \
         cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r60], [%rd0, {%r61, %r18}], [%r15];",
    ),
    ("@descriptor_b", "{}\n    and.b64 %rd2, %rd2, 0x3fff;\n    or.b64 %rd2, %rd2, 0x4000404002000000;"),
    ("@step_a", "add.s64 %rd2, %rd2, 128;"),
    ("0x08100010", "0x08108010"),
];

/// The same by one box of three dimensions.
const IN_ONE_BOX: &[(&str, &str)] = &[
    (
        "@load_a",
        "    mov.u32 %r60, 0;\n    shr.u32 %r61, %r13, 6;\n    \
         cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r16], [%rd0, {%r60, %r18, %r61}], [%r15];",
    ),
    IN_TWO_BOXES[1],
    IN_TWO_BOXES[2],
    IN_TWO_BOXES[3],
];

fn b_of_rows(launch: &mut Launch) {
    launch.buffers[1].row_bytes = Some(256);
}

fn change_a(launch: &mut Launch, dims: &[u64], strides: &[u64], box_dims: &[u32]) {
    launch.buffers[0].row_bytes = Some(768);
    if let Param::TensorMap { map, .. } = &mut launch.params[0] {
        (map.dims, map.strides, map.box_dims) = (dims.into(), strides.into(), box_dims.into());
    }
}

fn two_boxes(launch: &mut Launch) {
    change_a(launch, &[384, 192], &[768], &[64, 64]);
}

fn one_box(launch: &mut Launch) {
    change_a(launch, &[64, 192, 6], &[768, 128], &[64, 64, 2]);
}

type Kernel = (Base, &'static [(&'static str, &'static str)], fn(&mut Launch));
const KERNELS: [Kernel; 3] =
    [(OneTile, ROWS_OF_DEPTH, b_of_rows), (Ring, IN_TWO_BOXES, two_boxes), (Ring, IN_ONE_BOX, one_box)];

/// What is said of each of the kernels with other offsets.
#[track_caller]
fn said(offsets: &str, expected: &[(&str, &[&str])]) {
    for ((base, edits, change), (code, parts)) in KERNELS.into_iter().zip(expected) {
        let right = edited(&base.text(), edits);
        assert_eq!(right.matches("0x4000404002000000").count(), 1);
        let wrong = right.replace("0x4000404002000000", offsets);
        let mut launch = base.launch();
        change(&mut launch);
        let report = common::run(&common::load(&wrong), &launch, None, 400_000);
        let all = told(&report.notes);
        let codes: Vec<&str> = report.notes.iter().map(|note| note.code).collect();
        assert!(report.is_clean() && codes == [*code], "{}{all}", told(&report.findings));
        parts.iter().for_each(|part| assert!(all.contains(part), "`{part}` is not in\n{all}"));
    }
}

#[test]
fn exchanged_offsets_are_told() {
    let of = |lines: &str, which: &str| {
        format!(
            "an MMA takes {lines} 64 to 127 of {which} from 8 rows further on in their tensor, and depths 8 to 15 from beside"
        )
    };
    let help = "leading offset (bits 16 to 29) 8192 bytes, stride offset (bits 32 to 45) 1024 bytes";
    let (a, b) = (of("rows", "A"), of("columns", "B"));
    let told = |title| ("depth-mismatch", [title, help]);
    let (a, b) = (told(&*a), told(&*b));
    said("0x4000420000400000", &[(b.0, &b.1), (a.0, &a.1), (a.0, &a.1)]);
}

#[test]
fn half_an_offset_is_told_of_what_nobody_reads() {
    let help = "8192 bytes behind them: let the leading offset (bits 16 to 29 of the matrix descriptor) lead there";
    let astray = "from 4096 bytes behind its first 64 (leading offset)";
    let of = |what| ("loaded-never-read", [what, astray, help]);
    let (copied, boxes, one) = (
        of("4096 bytes that threads copy to `tile_b` are never read"),
        of("4096 of the 8192 bytes of a box"),
        of("4096 of the 16384 bytes of a box"),
    );
    said("0x4000404001000000", &[(copied.0, &copied.1), (boxes.0, &boxes.1), (one.0, &one.1)]);
}

/// D of the ring is right, and nothing is said. (`tiles_silent.rs` says so of `one_tile`.)
#[test]
fn right_offsets_stay_silent() {
    let (a, b) = (common::matrix(192, 384, 1, 2), common::matrix(64, 192, 2, 2));
    let sum = |at: usize| -> i32 { (0..192).map(|k| a[k * 384 + at / 64] * b[at % 64 * 192 + k]).sum() };
    for (base, edits, change) in &KERNELS[1..] {
        let report: Report = run(*base, edits, *change, 400_000);
        let silent = report.findings.is_empty() && report.notes.is_empty();
        assert!(silent, "{}{}", told(&report.findings), told(&report.notes));
        let d = common::pair::d(&report);
        assert!((0..384 * 64).all(|at| d[at] == f16::from_f32(sum(at) as f32).to_f32()));
    }
}

/// The boxes of A are rows of depth, and all else is as if they were rows of A: what is told is the bit.
#[test]
fn boxes_of_depths_that_are_read_as_rows_are_told_by_the_bit() {
    let report = run(Ring, &IN_TWO_BOXES[..1], two_boxes, 400_000);
    let [found] = report.findings.as_slice() else { panic!("{}", told(&report.findings)) };
    assert_eq!(found.code, "depth-mismatch");
    let parts =
        ["reads A as a tile whose rows go along K", "go along M", "set bit 15 of the instruction descriptor to 1"];
    parts.iter().for_each(|part| assert!(told(&report.findings).contains(part), "{}", told(&report.findings)));
}
