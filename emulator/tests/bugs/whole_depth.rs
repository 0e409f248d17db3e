//! Depths that are loaded and never multiplied, and an operand that begins in the other one's tile, where the tiles of a ring begin within a KiB: as those of
//! CuTe DSL, which has 256 bytes of barriers in front of them. A kernel that is right stands beside each.

use super::case::Base::{OneTile, Pair, Ring};
use super::case::{Result, run, says, told};
use emulator::{Content, Diagnostic, Launch, Report};

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
/// The last one is left out: a stage may be loaded that nobody needs.
const LAST_SKIPPED: &[(&str, &str)] = &[SECOND_SKIPPED[0], SECOND_SKIPPED[1], ("@which", "setp.eq.u32 %p10, %r14, 2;")];

/// What lies in these depths of A is zero.
fn without_second(launch: &mut Launch) {
    let Content::Bytes(bytes) = &mut launch.buffers[0].content else { return };
    let mut zeroed = bytes.to_vec();
    zeroed.chunks_mut(384).for_each(|row| row[128..256].fill(0));
    *bytes = zeroed.into();
}

/// Where both operands of depths in the middle are loaded and hold data, they are missing in the product. What is zero, or stands at the end, may be left out.
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
    for (edits, launch) in [(SECOND_SKIPPED, without_second as fn(&mut Launch)), (LAST_SKIPPED, |_: &mut Launch| {})] {
        let report = of(&[edits], launch);
        assert!(report.findings.is_empty(), "{}", told(&report.findings));
        assert!(report.notes.iter().any(|note| note.code == "loaded-never-read"), "{}", told(&report.notes));
    }
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
            ("4;", "box-mismatch", "Let the descriptors of A and B go on by 32 bytes for each MMA along K"),
        ] {
            // Of what threads copied it is not known where a box ends.
            if base == OneTile && step == "4;" {
                continue;
            }
            let [to_a, to_b] = [a, b].map(|from| from.replace("2;", step));
            let report = run(base, &[(a, to_a.as_str()), (b, to_b.as_str())], |_| {}, 1_000_000);
            let Some(first) = report.findings.first() else { panic!("{}", told(&all(&report))) };
            assert_eq!(first.code, code, "{}", told(&all(&report)));
            says(first, &[what]);
        }
    }
}
