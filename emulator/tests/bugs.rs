//! Bugs that people reported of kernels for Blackwell and Hopper, each as a small kernel that is right but for one edit: what is found,
//! and at which line. The expectations were written down from the PTX ISA and the reports before the emulator had seen the kernels.

mod common;

use std::collections::BTreeSet;

#[path = "bugs/afar.rs"]
mod afar;
#[path = "bugs/asked.rs"]
mod asked;
#[path = "bugs/audited.rs"]
mod audited;
#[path = "bugs/beside.rs"]
mod beside;
#[path = "bugs/by_hand.rs"]
mod by_hand;
#[path = "bugs/by_hand_columns.rs"]
mod by_hand_columns;
#[path = "bugs/by_hand_engines.rs"]
mod by_hand_engines;
#[path = "bugs/case.rs"]
mod case;
#[path = "bugs/causes.rs"]
mod causes;
#[path = "bugs/compiled.rs"]
mod compiled;
#[path = "bugs/descriptors.rs"]
mod descriptors;
#[path = "bugs/eight_bits.rs"]
mod eight_bits;
#[path = "bugs/engines.rs"]
mod engines;
#[path = "bugs/engines_kernels.rs"]
mod engines_kernels;
#[path = "bugs/factors_left.rs"]
mod factors_left;
#[path = "bugs/foreign.rs"]
mod foreign;
#[path = "bugs/guards.rs"]
mod guards;
#[path = "bugs/hidden.rs"]
mod hidden;
#[path = "bugs/hunted.rs"]
mod hunted;
#[path = "bugs/hunted_more.rs"]
mod hunted_more;
#[path = "bugs/hunted_rounds.rs"]
mod hunted_rounds;
#[path = "bugs/judged.rs"]
mod judged;
#[path = "bugs/lines.rs"]
mod lines;
#[path = "bugs/made_maps.rs"]
mod made_maps;
#[path = "bugs/missed.rs"]
mod missed;
#[path = "bugs/newcomers.rs"]
mod newcomers;
#[path = "bugs/offsets.rs"]
mod offsets;
#[path = "bugs/one_root.rs"]
mod one_root;
#[path = "bugs/own.rs"]
mod own;
#[path = "bugs/places.rs"]
mod places;
#[path = "bugs/reviewed.rs"]
mod reviewed;
#[path = "bugs/roles.rs"]
mod roles;
#[path = "bugs/rows_01_10.rs"]
mod rows_01_10;
#[path = "bugs/rows_11_20.rs"]
mod rows_11_20;
#[path = "bugs/rows_21_30.rs"]
mod rows_21_30;
#[path = "bugs/rows_31_40.rs"]
mod rows_31_40;
#[path = "bugs/several.rs"]
mod several;
#[path = "bugs/steps.rs"]
mod steps;
#[path = "bugs/synced.rs"]
mod synced;
#[path = "bugs/tile_order.rs"]
mod tile_order;
#[path = "bugs/tiles.rs"]
mod tiles;
#[path = "bugs/tiles_silent.rs"]
mod tiles_silent;
#[path = "bugs/tried.rs"]
mod tried;
#[path = "bugs/tried_kernels.rs"]
mod tried_kernels;
#[path = "bugs/tried_more.rs"]
mod tried_more;
#[path = "bugs/tried_more_kernels.rs"]
mod tried_more_kernels;
#[path = "bugs/untried.rs"]
mod untried;
#[path = "bugs/untried_exchange.rs"]
mod untried_exchange;
#[path = "bugs/untried_kernels.rs"]
mod untried_kernels;
#[path = "bugs/untried_maps.rs"]
mod untried_maps;
#[path = "bugs/waited.rs"]
mod waited;
#[path = "bugs/whole_depth.rs"]
mod whole_depth;
#[path = "bugs/words.rs"]
mod words;

/// Cases that are not judged as they should be, and what is said instead. A case that begins to be judged as it should must leave.
const MISSES: &[(&str, &str)] =
    &[("10a", "nothing: shared addresses are swizzled as they are, in the TMA engine and in the tensor core")];

/// Adversarial schedules on which the kernels without bugs must be clean.
const SCHEDULES: u64 = 8;

fn judge(cases: &[case::Case]) {
    let misses: Vec<_> = MISSES.iter().copied().filter(|(row, _)| cases.iter().any(|case| case.row == *row)).collect();
    case::judge_all(cases, &misses);
    let mut bases: Vec<case::Base> = vec![];
    for case in cases {
        if bases.contains(&case.base) {
            continue;
        }
        bases.push(case.base);
        let (program, launch) = (common::load(&case.base.text()), case.base.launch());
        for seed in common::schedules(SCHEDULES) {
            let report = common::run(&program, &launch, seed, 1_000_000);
            let result = case.base.result(&launch, &report);
            let found = case::told(&report.findings);
            let good = report.is_clean() && result == case::Result::Right;
            assert!(good, "{} without the bug, seed {seed:?}: {result:?}\n{found}", case.row);
        }
    }
}

#[test]
fn rows_1_to_10() {
    judge(&rows_01_10::cases());
}

#[test]
fn rows_11_to_20() {
    judge(&rows_11_20::cases());
}

#[test]
fn rows_21_to_30() {
    judge(&rows_21_30::cases());
}

#[test]
fn rows_31_to_40() {
    judge(&rows_31_40::cases());
}

#[test]
fn mistakes_of_examples() {
    judge(&afar::cases());
}

#[test]
fn own_inventions() {
    judge(&own::cases());
}

#[test]
fn what_something_else_hid() {
    judge(&hidden::cases());
}

#[test]
fn several_statements() {
    judge(&several::cases());
}

#[test]
fn what_judges_tried() {
    judge(&judged::cases());
}

#[test]
fn what_judges_tried_next() {
    judge(&tried::cases());
}

#[test]
fn what_judges_tried_after_that() {
    judge(&tried_more::cases());
}

#[test]
fn what_nobody_had_tried() {
    judge(&untried::cases());
}

#[test]
fn what_was_missed() {
    judge(&missed::cases());
}

#[test]
fn tiles_of_a_newcomer() {
    judge(&tiles::cases());
}

#[test]
fn words_between_warps() {
    judge(&words::cases());
}

#[test]
fn what_nobody_had_tried_next() {
    judge(&hunted::cases());
    judge(&hunted_more::cases());
    judge(&hunted_rounds::cases());
    judge(&engines::cases());
}

#[test]
fn what_has_one_root() {
    judge(&one_root::cases());
}

/// Every row of the list of bugs has a case, or a reason why it has none; every miss is one of a case.
#[test]
fn no_row_is_left_out() {
    let cases = [rows_01_10::cases(), rows_11_20::cases(), rows_21_30::cases(), rows_31_40::cases()];
    let own: Vec<case::Case> = [
        own::cases(),
        several::cases(),
        hidden::cases(),
        words::cases(),
        judged::cases(),
        tried::cases(),
        tried_more::cases(),
        untried::cases(),
        missed::cases(),
        hunted::cases(),
        hunted_more::cases(),
        hunted_rounds::cases(),
        engines::cases(),
        tiles::cases(),
        one_root::cases(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut rows: Vec<&str> = cases.iter().flatten().map(|case| case.row).collect();
    rows.extend(rows_31_40::NOT_IN_PTX.iter().map(|(row, _)| *row));
    let number = |row: &&str| row.trim_end_matches(char::is_alphabetic).parse().unwrap_or(0);
    let numbers: BTreeSet<u32> = rows.iter().map(number).collect();
    assert!(numbers.into_iter().eq(1..=40));
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len(), "a row stands twice in {rows:?}");
    rows.extend(own.iter().map(|case| case.row));
    for (row, instead) in MISSES {
        assert!(rows.contains(row) && !instead.is_empty(), "`{row}`");
    }
}
