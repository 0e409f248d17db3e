//! Descriptors and addresses of the tensor core that are wrong in kernels of Gluon and of libraries: told once, as what they are, and not by what comes of it.

use super::case::{Base, ring_launch, told};
use super::lines::broken;
use emulator::{Param, Report, Severity, Swizzle};

/// This is found first, so often, at this line, and says this.
#[track_caller]
fn first(report: &Report, (code, line): (&str, u32), says: &[&str]) {
    let text = told(&report.findings);
    let found = report.findings.first().unwrap_or_else(|| panic!("nothing is found:\n{}", told(&report.notes)));
    assert_eq!((found.code, found.labels[0].place.line), (code, line), "{text}");
    let text = told(std::slice::from_ref(found));
    says.iter().for_each(|part| assert!(text.contains(part), "`{part}` is not in\n{text}"));
}

/// The same, and nothing else is found.
#[track_caller]
fn only(report: &Report, at: (&str, u32), says: &[&str]) {
    assert_eq!(report.findings.len(), 1, "{}", told(&report.findings));
    first(report, at, says);
}

const RING3: [(usize, [&str; 2]); 4] =
    [(251, ["%rd4", "%rd5"]), (259, ["%rd6", "%rd7"]), (266, ["%rd8", "%rd9"]), (273, ["%rd10", "%rd11"])];

/// 64 bytes in place of 32: from the third MMA on, operands begin in the next row.
#[test]
fn a_step_along_k_is_too_long() {
    let steps = [(253, ", 2;", ", 4;"), (255, ", 2;", ", 4;"), (261, ", 4;", ", 8;"), (263, ", 4;", ", 8;")];
    let last = [(268, ", 6;", ", 12;"), (270, ", 6;", ", 12;")];
    let report = broken(false, "ring3", &[&steps[..], &last].concat());
    let says = [
        "begins in row 1 of the box",
        "by 32 bytes for each MMA along K",
        "the same at another statement, in line 273",
    ];
    only(&report, ("box-mismatch", 266), &says);
}

/// Of each box, two of four slices.
#[test]
fn half_of_the_depths_is_left_out() {
    let leave = [(266, "@%p35 tcgen05", "// tcgen05"), (273, "@%p35 tcgen05", "// tcgen05")];
    let says = ["bytes 64 to 127 of the 128 bytes of each row of A and of B are never multiplied", "4 for each box"];
    only(&broken(false, "ring3", &leave), ("loaded-never-read", 259), &says);
    // Of boxes of three dimensions, that have one matrix.
    let leave = [1645, 1674].map(|line| (line, "tcgen05.mma", "// "));
    only(&broken(true, "cutlass_one_sm", &leave), ("loaded-never-read", 1616), &["bytes 64 to 127"]);
    // Of one operand alone: it may hold more than is multiplied.
    let report = broken(false, "ring3", &[(263, ", 4;", ", 0;"), (270, ", 6;", ", 2;")]);
    assert!(report.findings.iter().all(|found| found.code != "loaded-never-read"), "{}", told(&report.findings));
}

#[test]
fn the_descriptor_of_one_operand_is_given_for_both() {
    let nobody = "nobody reads anything of what is loaded here";
    for (keep, line) in [(0, 123), (1, 131)] {
        let edits = RING3.map(|(line, operands)| (line, operands[1 - keep], operands[keep]));
        let report = broken(false, "ring3", &edits);
        only(&report, ("operand-overlap", 251), &["both for A and for B", nobody, "at 3 other statements"]);
        assert_eq!(report.findings[0].labels[1].place.line, line, "what is read twice");
    }
}

/// 64 columns and 128 rows of a pair: each operand begins in the box of the other.
#[test]
fn the_descriptors_are_exchanged() {
    let edits = [(265, "%rd4, %rd5", "%rd5, %rd4"), (281, "%rd24, %rd23", "%rd23, %rd24")];
    let more = [(297, "%rd26, %rd25", "%rd25, %rd26"), (313, "%rd28, %rd27", "%rd27, %rd28")];
    let report = broken(true, "cute_dsl_plain", &[&edits[..], &more].concat());
    first(
        &report,
        ("box-mismatch", 265),
        &["a box of 64 rows for A, of which it has 128", "Exchange the two descriptors"],
    );
}

/// The MMA that says so is told, and not who reads what it leaves out.
#[test]
fn an_instruction_descriptor_says_too_little() {
    let narrow = broken(false, "ring3", &[(249, "136314896", "135266320")]);
    only(&narrow, ("instruction-descriptor", 273), &["says N = 64, although the tile of B has more rows"]);
    let flat = broken(false, "ring3", &[(249, "136314896", "69206032")]);
    only(&flat, ("instruction-descriptor", 273), &["says M = 64, although the tile of A has more rows"]);
}

/// Each of four loads begins where the first does.
#[test]
fn the_epilogue_reads_the_same_columns_again() {
    let same = [(733, ", 32;", ", 0;"), (815, ", 64;", ", 0;"), (897, ", 96;", ", 0;")];
    let report = broken(true, "cute_dsl_plain", &same);
    only(
        &report,
        ("product-never-read", 898),
        &["columns 0 to 31 are read 4 times", "goes on by 32 columns each time"],
    );
    // Two passes over one half may be meant.
    let half = broken(true, "cute_dsl_plain", &[(815, ", 64;", ", 0;"), (897, ", 96;", ", 32;")]);
    assert!(half.findings.is_empty(), "{}", told(&half.findings));
}

/// Without a swizzle: rows of a matrix that go on beside the box lie there as a matrix does. In one piece, they may be permuted there.
#[test]
fn a_map_has_no_swizzle() {
    let severity = |k: usize| {
        let mut launch = ring_launch(256, k);
        for param in &mut launch.params[..2] {
            let Param::TensorMap { map, .. } = param else { panic!("no map") };
            map.swizzle = Swizzle::None;
        }
        let program = emulator::load(&Base::Ring.text()).expect("it loads");
        let report =
            emulator::run(&program, &launch, &emulator::Options { max_instructions: 400_000, ..Default::default() });
        let all: Vec<_> = report.findings.into_iter().chain(report.notes).collect();
        all.iter().find(|d| d.code == "swizzle-mismatch").unwrap_or_else(|| panic!("{k}: {}", told(&all))).severity
    };
    assert_eq!([256, 64].map(severity), [Severity::Finding, Severity::Note]);
}
