//! Tiles that are stored, described or multiplied in an unusual way and are right, or of which too little is known: nothing is found.

use super::case::{Base, Result, edited, run, told};
use super::common;
use super::tiles::{A_STAYS, LOOKS_AHEAD, without_rows};
use Base::{OneTile, Ring};
use emulator::{Content, Diagnostic, Launch};

/// Adversarial schedules on which what is right stays silent.
const SEEDS: u64 = 3;

/// Slices in another order, both operands in the same; a tile at any multiple of its pattern; no tile is taken for another one's.
#[test]
fn what_is_right_stays_silent() {
    const BACKWARDS: &[(&str, &str)] = &[
        (
            "or.b64 %rd3, %rd3, 0x4000404000000000;",
            "or.b64 %rd3, %rd3, 0x4000404000000000;\n    add.s64 %rd3, %rd3, 6;",
        ),
        (
            "or.b64 %rd4, %rd4, 0x4000404000000000;",
            "or.b64 %rd4, %rd4, 0x4000404000000000;\n    add.s64 %rd4, %rd4, 6;",
        ),
        ("add.s64 %rd3, %rd3, 2;", "sub.s64 %rd3, %rd3, 2;"),
        ("add.s64 %rd4, %rd4, 2;", "sub.s64 %rd4, %rd4, 2;"),
    ];
    const ELSEWHERE: &[(&str, &str)] = &[(
        ".shared .align 1024 .b8 tile_a[16384];",
        ".shared .align 1024 .b8 pad[3072];\n    .shared .align 1024 .b8 tile_a[16384];",
    )];
    let silent = |edits: &[(&str, &str)], change: fn(&mut Launch)| {
        let mut launch = OneTile.launch();
        change(&mut launch);
        let program = common::load(&edited(&OneTile.text(), edits));
        for seed in common::schedules(SEEDS) {
            let report = common::run(&program, &launch, seed, 400_000);
            let all: Vec<Diagnostic> = report.findings.iter().chain(&report.notes).cloned().collect();
            assert!(all.is_empty() && OneTile.result(&launch, &report) == Result::Right, "{seed:?}: {}", told(&all));
        }
    };
    silent(&[], |_| {});
    silent(BACKWARDS, |_| {});
    silent(ELSEWHERE, |_| {});
    silent(GATHERED, |_| {});
}

/// Rows of A that are gathered, each two exchanged, in a tile whose descriptor holds the address of B's tile.
const GATHERED: &[(&str, &str)] = &[
    (
        "    .shared .align 1024 .b8 tile_a[16384];\n    .shared .align 1024 .b8 tile_b[16384];",
        "    .shared .align 1024 .b8 pad[1024];\n    .shared .align 1024 .b8 tile_b[16384];\n    .shared .align 1024 .b8 more[14336];\n    \
         .shared .align 1024 .b8 tile_a[16384];",
    ),
    ("add.s64 %rd0, %rd0, %rd2;", "xor.b64 %rd20, %rd2, 128;\n    add.s64 %rd0, %rd0, %rd20;"),
    ("mul.wide.u32 %rd6, %r0, 256;", "xor.b32 %r40, %r0, 1;\n    mul.wide.u32 %rd6, %r40, 256;"),
];

/// B lies as rows of depth, and is copied so: 64 rows of 256 bytes, in two halves of 128.
#[test]
fn copied_rows_of_depth_stay_silent() {
    let report = run(OneTile, super::offsets::ROWS_OF_DEPTH, |launch| launch.buffers[1].row_bytes = Some(256), 400_000);
    let all: Vec<Diagnostic> = report.findings.iter().chain(&report.notes).cloned().collect();
    assert!(all.is_empty(), "{}", told(&all));
    let (a, b) = (common::matrix(128, 64, 1, 2), common::matrix(128, 64, 2, 2));
    let sum = |at: usize| -> i32 { (0..64).map(|k| a[at / 128 * 64 + k] * b[k * 128 + at % 128]).sum() };
    assert!(common::pair::d(&report).iter().enumerate().all(|(at, &d)| d == sum(at) as f32));
}

/// Two halves of each row are multiplied crosswise: no depth is left out, and it can be meant.
#[test]
fn halves_of_a_row_can_be_meant_for_each_other() {
    const CROSSWISE: &[(&str, &str)] = &[
        (
            "add.s64 %rd4, %rd4, 2;",
            "add.s64 %rd4, %rd4, 2;\n    setp.eq.u32 %p6, %r21, 1;\n    @%p6 sub.s64 %rd3, %rd3, 4;\n    \
         setp.eq.u32 %p6, %r21, 3;\n    @%p6 sub.s64 %rd4, %rd4, 8;",
        ),
        ("setp.lt.u32 %p4, %r21, 4;", "setp.lt.u32 %p4, %r21, 6;"),
    ];
    let report = run(OneTile, CROSSWISE, |_| {}, 400_000);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    let notes: Vec<&str> = report.notes.iter().map(|note| note.code).collect();
    assert_eq!(notes, ["depth-mismatch"], "{}", told(&report.notes));
}

/// Rings whose rows end within a box, or that look ahead.
#[test]
fn rings_that_are_right_stay_silent() {
    /// B is a part of a wider matrix: its depths begin at column 64.
    const PART: &[(&str, &str)] = &[
        ("[%r17], [%rd1, {%r18, %r19}]", "[%r17], [%rd1, {%r50, %r19}]"),
        ("@column", "{}\n    add.u32 %r50, %r18, 64;"),
    ];
    let of_a_part = |launch: &mut Launch| {
        let mut new = super::case::ring_launch(384, 72);
        let b = common::matrix(64, 72, 2, 2);
        let at = |row: usize, k: usize| if (64..136).contains(&k) { b[row * 72 + k - 64] as f32 } else { 1.0 };
        let wide = (0..64 * 192).flat_map(|n| half::f16::from_f32(at(n / 192, n % 192)).to_bits().to_le_bytes());
        new.buffers[1].content = Content::Bytes(wide.collect::<Vec<u8>>().into());
        new.buffers[1].row_bytes = Some(384);
        new.params[1] = common::pair::map(1, 64, 192, 64);
        *launch = new;
    };
    for (edits, change, noted) in
        [(LOOKS_AHEAD, (|_| {}) as fn(&mut Launch), &[][..]), (PART, of_a_part, &["input-not-loaded"])]
    {
        let mut launch = Ring.launch();
        change(&mut launch);
        let program = common::load(&edited(&Ring.text(), edits));
        for seed in common::schedules(SEEDS) {
            let report = common::run(&program, &launch, seed, 400_000);
            let all: Vec<Diagnostic> = report.findings.iter().chain(&report.notes).cloned().collect();
            let codes: Vec<&str> = all.iter().map(|d| d.code).collect();
            let right = Ring.result(&launch, &report) == Result::Right;
            assert!(codes == noted && right, "{seed:?}: {}", told(&all));
        }
    }
}

/// Who looks ahead has waited for another stage last: that is not why a stage is overwritten.
#[test]
fn a_stage_that_is_not_waited_for_is_told_of_its_copy() {
    let edits = [LOOKS_AHEAD, &[("@commit_empty", "mbarrier.arrive.shared::cta.b64 _, [%r15+16];")]].concat();
    let report = run(Ring, &edits, |_| {}, 400_000);
    assert!(report.findings.first().is_some_and(|d| d.code == "operand-overwritten"), "{}", told(&report.findings));
    assert!(!told(&report.findings).contains("another stage"), "{}", told(&report.findings));
}

/// What the tiles themselves show of the rows of buffers is worth a note; of elements of one byte, which may be packed, no depth is known.
#[test]
fn depths_that_are_not_said_are_no_finding() {
    let bytes = |launch: &mut Launch| launch.buffers.iter_mut().for_each(|buffer| buffer.element_bytes = Some(1));
    for (change, noted) in [(without_rows as fn(&mut Launch), true), (bytes, false)] {
        let report = run(OneTile, A_STAYS, change, 400_000);
        let note = report.notes.iter().any(|note| note.code == "depth-mismatch");
        let (findings, notes) = (told(&report.findings), told(&report.notes));
        assert!(report.findings.is_empty() && note == noted, "{findings}{notes}");
    }
}
