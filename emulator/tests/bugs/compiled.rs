//! Kernels of a compiler with one line changed, as somebody makes a mistake in a kernel for production: what is said of it, and that nothing is said
//! besides.

use super::case::told;
use super::common;
use emulator::{Diagnostic, Element, Param, Report, Severity};

#[path = "../gluon/case.rs"]
pub mod case;

/// A kernel with this line of its text changed.
pub fn changed(name: &str, line: usize, from: &str, to: &str) -> Report {
    let kernel = case::case(name, None);
    let mut lines: Vec<String> = kernel.text.lines().map(str::to_string).collect();
    assert!(lines[line - 1].contains(from), "line {line} of {name} is {}", lines[line - 1]);
    lines[line - 1] = lines[line - 1].replace(from, to);
    common::run(&common::load(&lines.join("\n")), &kernel.launch, None, 10_000_000)
}

/// The same without this line.
pub fn without(name: &str, line: usize, what: &str) -> Report {
    let kernel = case::case(name, None);
    let lines = kernel.text.lines().enumerate();
    let text: Vec<&str> = lines.map(|(n, text)| if n + 1 == line { "" } else { text }).collect();
    assert!(kernel.text.lines().nth(line - 1).is_some_and(|text| text.contains(what)), "line {line} of {name}");
    common::run(&common::load(&text.join("\n")), &kernel.launch, None, 10_000_000)
}

/// The only finding, which begins at this line.
#[track_caller]
pub fn only<'r>(report: &'r Report, code: &str, line: u32) -> &'r Diagnostic {
    assert_eq!(common::codes(report), [code], "{}", told(&report.findings));
    let found = &report.findings[0];
    assert_eq!(found.labels[0].place.line, line, "{}", told(&report.findings));
    found
}

#[track_caller]
fn has_label(found: &Diagnostic, line: u32, text: &str) {
    let is = found.labels.iter().any(|label| label.place.line == line && label.text == text);
    assert!(is, "{}", told(std::slice::from_ref(found)));
}

/// The commit of the first stage lacks, those of the others come, and cover its MMAs: the wait for that stage is the root, and no ring is drawn.
#[test]
fn one_stage_is_never_committed() {
    let report = without("ws_persistent", 700, "tcgen05.commit");
    let found = only(&report, "hang", 537);
    assert_eq!(found.title, "the wait for dynamic shared memory at byte 131248 never ends: nothing ever arrives at it");
    let late = "no tcgen05.commit follows this MMA before its thread waits for what it multiplies next";
    has_label(found, 697, late);
    assert!(found.help.starts_with("Behind the MMA (line 697), let its thread execute tcgen05.commit.cta_group::1."));
    let report = without("ws_two_cta", 755, "tcgen05.commit");
    has_label(only(&report, "hang", 829), 751, late);
    assert!(report.findings[0].help.contains("tcgen05.commit.cta_group::2."), "{}", told(&report.findings));
}

/// Who issues the MMAs waits for them itself, and nothing is ever committed: not the parity of the wait is wrong.
#[test]
fn nothing_is_ever_committed() {
    let report = without("ring3", 276, "tcgen05.commit");
    let found = only(&report, "hang", 179);
    has_label(found, 273, "no tcgen05.commit follows this MMA");
    assert!(found.help.starts_with("Behind the MMA (line 273), let its thread execute tcgen05.commit.cta_group::1."));
}

/// The stages are committed, and the product is not: it is the wait for the product that lacks a statement.
#[test]
fn the_product_is_never_committed() {
    let report = without("ws_two_cta", 571, "tcgen05.commit");
    let found = only(&report, "hang", 211);
    has_label(found, 751, "the last MMA: no tcgen05.commit behind it is to the mbarrier that is waited for");
    assert!(found.help.starts_with("No statement arrives at this mbarrier."), "{}", found.help);
    // Of the two that wait for each other, the one who multiplies has begun.
    let report = without("fp8_roles", 412, "tcgen05.commit");
    let found = only(&report, "hang", 728);
    assert_eq!(found.help, "Behind the last MMA, let its thread execute tcgen05.commit to this mbarrier.");
}

/// A commit that comes behind the hang is none that goes astray: somebody waits for what it tells.
#[test]
fn a_commit_for_others_is_not_astray() {
    let report = without("attention_roles", 321, "mbarrier.arrive");
    let found = only(&report, "hang", 805);
    assert!(!found.labels.iter().any(|label| label.text.starts_with("this arrives at")), "{}", told(&report.findings));
}

/// Both CTAs of a pair announce: what each should say, and not the sum.
#[test]
fn each_cta_announces_its_part() {
    let report = changed("two_cta", 145, "24576", "1024");
    let found = only(&report, "hang", 145);
    let each = "Announce 24576 bytes in each of the 2 announcements (2 CTAs announce), or let the copies of a phase bring 2048.";
    assert_eq!(found.help, each);
    let alone = changed("ring3", 114, "32768", "40000");
    let found = only(&alone, "hang", 114);
    assert_eq!(found.help, "Announce 32768 bytes, or let the copies of a phase bring 40000.");
}

/// Bytes that one phase leaves to the next make that one wrong, too, and what is multiplied is undefined: all that follows from the first.
#[test]
fn bytes_that_are_left_to_later_phases_are_told_once() {
    let report = changed("ring3", 114, "32768", "16384");
    let found = only(&report, "phase-completed-early", 114);
    assert_eq!(found.help, "Announce 32768 bytes, or let the copies of a phase bring 16384.");
    assert_eq!(found.severity, Severity::Finding);
    // It hangs in the end: that is said where the bytes are announced.
    let report = changed("mxf8", 175, "33792", "32768");
    let found = only(&report, "phase-completed-early", 175);
    assert_eq!(found.severity, Severity::Error, "the run does not end");
    assert_eq!(found.help, "Announce 33792 bytes, or let the copies of a phase bring 32768.");
    has_label(found, 175, "32768 bytes are announced here; a later phase, to which bytes are left so, never completes");
}

/// The scale factors of a stage are copied from another one: half a stage on, or always from the first.
#[test]
fn scale_factors_of_another_stage_are_named() {
    for (from, to) in [("%r6, 9", "%r6, 8"), ("%r6, 9", "%r6, 31")] {
        let report = changed("mxf8", 231, from, to);
        let found = &report.findings[0];
        let all = told(&report.findings);
        assert_eq!((found.code, found.labels[0].place.line), ("operand-not-ready", 240), "{all}");
        assert!(
            found.title.starts_with("a tcgen05.cp reads a tile of another stage than its thread has waited for"),
            "{all}"
        );
        has_label(
            found,
            226,
            "this wait is for dynamic shared memory at byte 100360, which tells of the tile in dynamic shared memory at byte 98816",
        );
        assert!(found.help.ends_with("the tile lies in dynamic shared memory at byte 98816."), "{all}");
    }
}

/// The maps of FP8 matrices have elements of a byte: an MMA that takes them for 16 bits each is noted, one that takes them as they are is not.
#[test]
fn elements_of_another_width_are_noted() {
    let widths = |report: &Report| -> Vec<Diagnostic> {
        report.notes.iter().filter(|note| note.code == "type-mismatch").cloned().collect()
    };
    let report = changed("fp8_e4m3", 226, "kind::f8f6f4", "kind::f16");
    let [note] = &widths(&report)[..] else { panic!("{}", told(&report.notes)) };
    let title = "an MMA takes A and B for elements of 2 bytes, which were loaded as elements of 1 byte";
    assert_eq!((note.title.as_str(), note.labels[0].place.line), (title, 226));
    has_label(note, 173, "the box of A is loaded here as elements of 1 byte");
    assert!(note.help.contains("kind::f8f6f4"), "{}", note.help);
    for right in ["fp8_e4m3", "mxf4", "nvf4", "tf32", "int8", "ring3"] {
        let kernel = case::case(right, None);
        let report = common::run(&common::load(&kernel.text), &kernel.launch, None, 10_000_000);
        assert!(widths(&report).is_empty(), "{right}: {}", told(&report.notes));
    }
}

/// FP4 that a map loads two to a byte, for an MMA of `kind::mxf8f6f4`, which reads sixteen of them in 16 bytes: found at the MMA. By a map that pads them it
/// is silent.
#[test]
fn packed_elements_are_no_padded_ones() {
    let mut kernel = case::case("mxf8f4", None);
    let mismatch = |kernel: &case::Case| -> Vec<Diagnostic> {
        let report = common::run(&common::load(&kernel.text), &kernel.launch, None, 10_000_000);
        report.findings.iter().chain(&report.notes).filter(|d| d.code == "type-mismatch").cloned().collect()
    };
    assert!(mismatch(&kernel).is_empty(), "{}", told(&mismatch(&kernel)));
    let maps = kernel.launch.params.iter_mut().filter_map(|param| match param {
        Param::TensorMap { map, .. } if map.element == Element::U4Align16 => Some(map),
        _ => None,
    });
    maps.for_each(|map| map.element = Element::U4Align8);
    let [found] = &mismatch(&kernel)[..] else { panic!("{}", told(&mismatch(&kernel))) };
    assert_eq!(found.severity, Severity::Finding);
    assert_eq!(found.title, "an MMA takes elements of B for padded ones, which were loaded side by side");
    assert!(found.help.contains("u4_align16"), "{}", found.help);
}

/// A kernel whose threads copy their tiles, with random numbers: by those it is known where chunks came from.
fn copied(edit: (usize, &str, &str)) -> Report {
    super::lines::broken(false, "cp_async", &[edit])
}

/// One MMA of four takes an operand that threads copied half a slice beside where it belongs: that cannot be meant, although all of the tile is read
/// in turn. Said once, of that MMA; half a tile further on, it may be meant.
#[test]
fn one_slice_of_a_copied_tile_lies_beside() {
    for (line, operand) in [(349, "A"), (351, "B")] {
        let report = copied((line, ", 4", ", 5"));
        let found = only(&report, "depth-mismatch", 354);
        assert!(found.title.contains(&format!("depths 40 to 55 of {operand}")), "{}", told(&report.findings));
        assert!(!found.labels[0].text.contains("another statement"), "{}", told(&report.findings));
        let report = copied((line, ", 4", ", 0"));
        assert!(common::codes(&report).is_empty(), "{}", told(&report.findings));
        let crosswise = report.notes.iter().filter(|d| d.code == "depth-mismatch");
        assert!(crosswise.count() > 0, "{}", told(&report.notes));
    }
    // The second of four, of which nothing is known yet when it comes.
    only(&copied((341, ", 2", ", 1")), "depth-mismatch", 347);
}

/// Threads copy to the chunk beside the right one, where others belong that their neighbours copy: the tile is stored wrongly, and that its stores meet
/// is no second mistake.
#[test]
fn a_chunk_is_stored_over_its_neighbour() {
    let report = copied((119, "[ %r17 + 0 ]", "[ %r17 + 16 ]"));
    only(&report, "swizzle-mismatch", 119);
}
