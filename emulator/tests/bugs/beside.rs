//! Loads of the epilogue that begin beside their columns, and scale factors that are left out in one round: D is wrong, and no access lacks an order.

use super::case::told;
use super::lines::broken;
use emulator::{Report, Severity};

/// The only finding: its code, where it begins, and what it says.
#[track_caller]
fn only(report: &Report, (code, line): (&str, u32), says: &[&str]) {
    let text = told(&report.findings);
    let [found] = &report.findings[..] else {
        panic!("{} findings:\n{text}\n{}", report.findings.len(), told(&report.notes))
    };
    assert_eq!((found.code, found.labels[0].place.line, found.severity), (code, line, Severity::Finding), "{text}");
    says.iter().for_each(|part| assert!(text.contains(part), "`{part}` is not in\n{text}"));
}

/// One of four loads, by a column or more: into those of the next load, or where another product lies for which nobody has waited, or nothing at all.
#[test]
fn a_load_begins_beside_its_columns() {
    let further = |line, address: &str, columns: u32| {
        (line, address.to_string(), format!("{}+{columns}]", address.trim_end_matches(']')))
    };
    for (kernel, edit, says) in [
        (
            "cutlass_one_sm",
            further(2599, "[%r596]", 1),
            ["reads columns 1 to 32 of the product", "leave columns 0 to 31 to it"],
        ),
        (
            "cutlass_one_sm",
            further(2599, "[%r596]", 32),
            ["reads columns 32 to 63 of the product", "begin at column 0 of the product"],
        ),
        (
            "cutlass_one_sm",
            further(3061, "[%r799]", 2),
            ["reads columns 34 to 65 of the product", "begins 2 columns further on"],
        ),
        (
            "cutlass_one_sm",
            further(3979, "[%r1205]", 1),
            ["reads columns 97 to 128 of the product", "leave columns 96 to 127 to it"],
        ),
        (
            "cute_dsl_persistent",
            further(1307, "[%r845]", 1),
            ["reads columns 97 to 128 of the product", "begins 1 column further on"],
        ),
        (
            "mosaic_gpu",
            further(592, "[%r140]", 2),
            ["reads columns 2 to 33 of the product", "in lanes 0 to 15 of each 32"],
        ),
    ] {
        let (line, from, to) = &edit;
        only(&broken(true, kernel, &[(*line, from, to)]), ("product-never-read", *line as u32), &says);
    }
}

/// Columns at the end may be nobody's: the last load is drawn back from them, and some are read twice.
#[test]
fn the_last_load_is_drawn_back() {
    let report = broken(true, "cutlass_one_sm", &[(3979, "[%r1205]", "[%r1205+-4]")]);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    let notes: Vec<&str> = report.notes.iter().map(|note| note.code).collect();
    assert!(notes.contains(&"product-never-read"), "{notes:?}");
}

/// The copy of a round's factors is left out: a predicate keeps it from it. As many MMAs again multiply by those of the round before.
#[test]
fn scale_factors_of_one_round_are_left_out() {
    let except = |line, own: &'static str, of: &'static str, round: u32| {
        let predicate = format!("{{ .reg .pred %q; setp.ne.s32 %q, %r439, {round}; and.pred %q, %q, {own}; @%q");
        [(line, format!("@{own}"), predicate), (line, format!("{of};"), format!("{of}; }}"))]
    };
    for (edits, line) in [(except(240, "%p33", "%rd10", 2), 240), (except(249, "%p34", "%rd11", 4), 249)] {
        let edits: Vec<(usize, &str, &str)> =
            edits.iter().map(|(line, from, to)| (*line, &from[..], &to[..])).collect();
        let says = [
            "in 1 of 2 rounds, no tcgen05.cp takes the scale factors",
            "by the same factors as those of the round before",
        ];
        only(&broken(false, "mxf8", &edits), ("loaded-never-read", line), &says);
    }
    // A round that has no factors of its own, and no MMAs: nothing is missing.
    let [predicate, end] = except(249, "%p34", "%rd11", 9);
    let report = broken(false, "mxf8", &[(249, &predicate.1, &predicate.2), (249, &end.1, &end.2)]);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
}

/// A thread ends, and its last wait has left a group open: that wait is named. Without any, the store is.
#[test]
fn the_last_wait_leaves_a_group_open() {
    let outlives = |edit: (usize, &str, &str)| {
        let report = broken(false, "a_in_tmem", &[edit]);
        let note = report.notes.iter().find(|note| note.code == "bulk-store-outlives-thread").cloned();
        note.unwrap_or_else(|| panic!("no such note:\n{}", told(&report.notes)))
    };
    let lines = |note: &emulator::Diagnostic| note.labels.iter().map(|label| label.place.line).collect::<Vec<_>>();
    let left = outlives((466, "0;", "1;"));
    assert_eq!(lines(&left), [463, 466]);
    assert_eq!(
        left.labels[1].text,
        "its last wait: it leaves the newest group open, and the copy is in one that is left"
    );
    assert!(left.help.starts_with("Let the last wait of the thread leave no group open"), "{}", left.help);
    let never = outlives((466, "cp.async.bulk.wait_group.read", "// "));
    assert_eq!(lines(&never), [463]);
    assert!(never.help.starts_with("Commit the store"), "{}", never.help);
}
