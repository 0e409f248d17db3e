//! Depths that are loaded and never multiplied, and an operand that begins in the other one's tile, where the tiles of a ring begin within a KiB: as those of
//! CuTe DSL, which has 256 bytes of barriers in front of them. A kernel that is right stands beside each.

use super::case::{Base::Ring, Result, run, says, told};
use emulator::{Diagnostic, Launch, Report};

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
