//! Kernels of this folder with one wrong column, scale-factor id or stride: what tensor memory holds for MMAs is not what they read.

use super::case::case;
use emulator::{Diagnostic, Options, Report};

/// A kernel with one text in place of another, at its own size.
fn run(kernel: &str, right: &str, wrong: &str) -> Report {
    let mut case = case(kernel, None);
    case.fill_with_small_integers(1);
    assert_eq!(case.text.matches(right).count(), 1, "{kernel}: {right}");
    let program = emulator::load(&case.text.replace(right, wrong)).unwrap_or_else(|e| panic!("{kernel}: {e:#?}"));
    emulator::run(&program, &case.launch, &Options::default())
}

/// The diagnostics of this code: there is one, at such a statement, and says so.
fn one<'a>(of: &'a [Diagnostic], code: &str, place: &str, says: &str) -> &'a Diagnostic {
    let found: Vec<&Diagnostic> = of.iter().filter(|d| d.code == code).collect();
    let all: Vec<&str> = of.iter().map(|d| d.title.as_str()).collect();
    let &[d] = &found[..] else { panic!("{code} {} times: {all:?}", found.len()) };
    let label = &d.labels[0];
    assert!(label.place.text.contains(place), "{}", label.place.text);
    assert!(d.title.contains(says) || label.text.contains(says), "{}: {}", d.title, label.text);
    d
}

/// Nothing is found, and this is noted.
fn noted(kernel: &str, (right, wrong): (&str, &str), code: &str, place: &str, says: &str) {
    let report = run(kernel, right, wrong);
    assert!(report.findings.is_empty(), "{kernel}: {:?}", report.findings.first());
    one(&report.notes, code, place, says);
    assert!(run(kernel, right, right).notes.iter().all(|note| note.code != code), "{kernel} itself");
}

const FACTORS: &str = "[ %r61 + 0 ], [ %r62 + 0 ], %p38;";

#[test]
fn scale_factors_of_b_begin_among_those_of_a() {
    let report = run("mxf8", "add.s32 \t%r62, %r215, 132;", "add.s32 \t%r62, %r215, 130;");
    let says = "columns 128 to 131 for the 128 rows of A, and columns 130 to 133 for the 128 columns of B";
    one(&report.findings, "operand-overlap", "tcgen05.mma", says);
    let apart = run("mxf8", "add.s32 \t%r62, %r215, 132;", "add.s32 \t%r62, %r215, 136;");
    assert!(apart.findings.is_empty());
}

#[test]
fn scale_factors_of_b_are_copied_over_others_of_a() {
    let edit = ("add.s32 \t%r66, %r215, 136;", "add.s32 \t%r66, %r215, 132;");
    noted("nvf4", edit, "loaded-never-read", "tcgen05.cp", "no MMA reads what is copied to");
}

#[test]
fn the_second_mma_takes_the_factors_of_the_first() {
    let report = run("nvf4", "[ %r67 + 0 ], [ %r68 + 0 ], %p40;", "[ %r65 + 0 ], [ %r66 + 0 ], %p40;");
    assert!(report.findings.is_empty());
    let never: Vec<_> = report.notes.iter().filter(|note| note.code == "loaded-never-read").collect();
    assert_eq!(never.len(), 2, "{never:?}");
}

#[test]
fn the_factors_of_another_step() {
    let edit = ("mov.b32 \t%r63, 681574416;", "mov.b32 \t%r63, 144703488;");
    let report = run("mxf8", edit.0, edit.1);
    assert!(report.findings.is_empty());
    let never: Vec<_> = report.notes.iter().filter(|note| note.code == "loaded-never-read").collect();
    assert_eq!(never.len(), 2, "of A and of B: {never:?}");
    assert!(never.iter().all(|note| note.title.contains("byte 1 of each column")), "{never:?}");
}

#[test]
fn factors_of_a_from_the_columns_of_b() {
    let edit = (FACTORS, "[ %r61 + 4 ], [ %r62 + 0 ], %p38;");
    noted("mxf8", edit, "loaded-never-read", "tcgen05.cp", "byte 0 of each column");
}

#[test]
fn rows_of_scale_factors_that_overlap() {
    let edit = ("mov.b32 \t%r55, 16392;", "mov.b32 \t%r55, 16385;");
    let report = run("mxf8", edit.0, edit.1);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    let overlaps: Vec<_> = report.notes.iter().filter(|note| note.code == "operand-overlap").collect();
    assert_eq!(overlaps.len(), 2, "of A and of B: {:#?}", report.notes);
    assert!(overlaps.iter().all(|note| note.labels[0].text.contains("are the same bytes")), "{overlaps:#?}");
}

#[test]
fn a_step_of_a_in_tensor_memory_is_left_out() {
    let edit = ("[ %r76 + 8 ]", "[ %r76 + 16 ]");
    noted("a_in_tmem", edit, "loaded-never-read", "tcgen05.st", "columns 8 to 15 of what is stored");
}
