//! Bugs that people reported of kernels for Blackwell and Hopper, each as a small kernel that is right but for one edit: what is found,
//! and at which line. The expectations were written down from the PTX ISA and the reports before the emulator had seen the kernels.

mod common;

#[path = "bugs/case.rs"]
mod case;
#[path = "bugs/rows_01_10.rs"]
mod rows_01_10;
#[path = "bugs/rows_11_20.rs"]
mod rows_11_20;
#[path = "bugs/rows_21_30.rs"]
mod rows_21_30;
#[path = "bugs/rows_31_40.rs"]
mod rows_31_40;

/// Cases that are not judged as they should be, and what is said instead. A case that begins to be judged as it should must leave.
const MISSES: &[(&str, &str)] = &[];

/// Adversarial schedules on which the kernels without bugs must be clean.
const SCHEDULES: u64 = 8;

fn judge(cases: &[case::Case]) {
    let misses: Vec<_> = MISSES.iter().copied().filter(|(row, _)| cases.iter().any(|case| case.row == *row)).collect();
    case::judge(cases, &misses, SCHEDULES);
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

/// Every row of the list of bugs has a case, or a reason why it has none; every miss is one of a case.
#[test]
fn no_row_is_left_out() {
    let cases = [rows_01_10::cases(), rows_11_20::cases(), rows_21_30::cases(), rows_31_40::cases()].concat_rows();
    let number = |row: &str| row.trim_end_matches(char::is_alphabetic).parse::<u32>().unwrap_or(0);
    let mut numbers: Vec<u32> =
        cases.iter().copied().chain(rows_31_40::NOT_IN_PTX.iter().map(|(row, _)| *row)).map(number).collect();
    numbers.dedup();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
    for (row, instead) in MISSES {
        assert!(cases.contains(row) && !instead.is_empty(), "`{row}`");
    }
}

trait Rows {
    fn concat_rows(self) -> Vec<&'static str>;
}

impl<const N: usize> Rows for [Vec<case::Case>; N] {
    fn concat_rows(self) -> Vec<&'static str> {
        self.into_iter().flatten().map(|case| case.row).collect()
    }
}
