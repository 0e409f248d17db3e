//! What the pages on hangs and on wrong results quote, in tables and between them: each quote is said of a kernel that has this mistake.

use super::{at_all_sizes, closely, missing, page, said};
use harness::mismatch::{Cause, Moves, Slice};
use harness::verdict::{Outcome, Part, Verdict};
use ptx::Dtype;
use std::collections::BTreeMap;

/// Page, how a quote on it begins, and the kernel in `solutions/edited/shown_elsewhere.rs` of which it is said.
const QUOTES: &[(&str, &str, &str)] = &[
    ("hangs.md", "(only lane 0)", "load_begins_with_0_7"),
    ("hangs.md", "this would arrive, but was never executed", "commit_never_executed_1"),
    ("hangs.md", "warp 7 arrives here, 20 times", "rounds_differ_7"),
    ("hangs.md", "never ends: nothing ever arrives", "no_commit_1"),
    ("hangs.md", "nothing ever arrives at it, only at that of CTA 0", "stages_of_one_9"),
    ("hangs.md", "it waits for 128 arrivals", "one_arrives_7"),
    ("hangs.md", "65536 bytes are announced", "bytes_of_both_5"),
    ("hangs.md", "waits for `tma2mma[0]` in round 21", "rounds_differ_7"),
    ("hangs.md", "and left out phase 0", "parity_of_the_round_5"),
    ("hangs.md", "8 phases were complete", "comes_late_4"),
    ("hangs.md", "1 arrival from here", "one_arrives_7"),
    ("hangs.md", "CTA 1 alone", "mask_is_the_count_9"),
    ("hangs.md", "warp 5 waits at CTA barrier 0", "load_begins_with_0_7"),
    ("hangs.md", "it waits for 2 arrivals", "count_of_2_1"),
    ("wrong-results.md", "a part of D that is 4 of 6 tiles", "column_of_the_tile_3"),
    ("wrong-results.md", "was never written", "half_of_the_columns_1"),
    ("wrong-results.md", "Also, …", "column_of_the_tile_3"),
    ("wrong-results.md", "98285 of 98304", "column_of_the_tile_3"),
    ("wrong-results.md", "Inputs: random normal numbers", "column_of_the_tile_3"),
    ("wrong-results.md", "the part of D in rows 32 to 63", "warp_1_elsewhere_1"),
    ("wrong-results.md", "the part of D in rows 32 to 63 (the 32 rows of warp 1) holds", "no_meeting_6"),
    ("wrong-results.md", "the part of D in rows 32 to 127", "one_waits_1"),
    ("wrong-results.md", "the stripe of 64 columns", "told_after_the_first_7"),
    ("wrong-results.md", "the tile of D at row 128", "last_tile_3"),
    ("wrong-results.md", "a part of D that is 2 of 6", "column_of_the_tile_3"),
    ("wrong-results.md", "row 127 of D", "no_row_127_1"),
    ("wrong-results.md", "column 7 of D", "column_7_off_1"),
    ("wrong-results.md", "the block of D in rows 32 to 63", "warp_1_in_part_1"),
    ("wrong-results.md", "a part of D, scattered", "swizzle_by_hand_1"),
    ("wrong-results.md", "all of D fits", "none_adds_1"),
    ("wrong-results.md", "all of D", "groups_of_8_1"),
    ("wrong-results.md", "holds values that were never computed", "parity_1_1"),
    ("wrong-results.md", "is NaN", "times_nan_1"),
    ("wrong-results.md", "is zero", "nothing_of_the_sums_1"),
    ("wrong-results.md", "is constant", "one_number_1"),
    ("wrong-results.md", "holds numbers that are right in bf16", "packed_as_bf16_1"),
    ("wrong-results.md", "is transposed", "operands_exchanged_1"),
    ("wrong-results.md", "is transposed tile by tile", "operands_exchanged_5"),
    ("wrong-results.md", "holds the right numbers, permuted", "d_row_after_row_4"),
    ("wrong-results.md", "holds what belongs in the tile", "same_rows_9"),
    ("wrong-results.md", "holds the right rows", "rows_in_pairs_1"),
    ("wrong-results.md", "holds neighbouring columns", "two_sums_exchanged_1"),
    ("wrong-results.md", "holds what belongs 64 columns", "first_columns_4"),
    ("wrong-results.md", "holds the right columns", "four_sums_reversed_1"),
    ("wrong-results.md", "holds its groups of 8", "groups_of_8_1"),
    ("wrong-results.md", "fits a product for which A was stored", "without_swizzle_1"),
    ("wrong-results.md", "fits a product whose K columns 448", "last_wait_passes_4"),
    ("wrong-results.md", "fits a sum in which K columns 16", "one_mma_more_1"),
    ("wrong-results.md", "fits a sum in which K columns 0", "each_round_anew_2"),
    ("wrong-results.md", "fits a sum in which K columns 512", "eight_rounds_5"),
    ("wrong-results.md", "is near the right result", "rounded_on_the_way_1"),
    ("wrong-results.md", "fits the right result", "adds_to_the_tile_before_8"),
    ("wrong-results.md", "is wrong", "swizzle_by_hand_1"),
    ("wrong-results.md", "K columns 0 to 63 count twice", "stage_0_of_both_5"),
];

/// What stands between quotation marks, outside of the reports.
fn quotes(page: &str) -> Vec<String> {
    let text: String = page.split("```").step_by(2).collect::<Vec<_>>().join(" ");
    // A figure's attributes are no quotes.
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('<')).collect();
    lines.join("\n").split('"').skip(1).step_by(2).map(super::dense).collect()
}

/// The kernel of a quote: of entries that fit it the longest.
fn kernel_of(name: &str, quote: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let fits = QUOTES.iter().filter(|(page, begins, _)| *page == name && quote.starts_with(begins));
    fits.max_by_key(|(_, begins, _)| begins.len())
}

#[test]
fn what_two_pages_quote_is_said_of_a_kernel() {
    let (mut wrong, mut of_kernel) = (Vec::new(), BTreeMap::<&str, Vec<(&str, String)>>::new());
    let mut used = Vec::new();
    for name in ["hangs.md", "wrong-results.md"] {
        for quote in quotes(&page(name)) {
            match kernel_of(name, &quote) {
                Some(entry) => {
                    used.push(entry);
                    of_kernel.entry(entry.2).or_default().push((name, quote));
                }
                None => wrong.push(format!("book/src/{name}: of no kernel is said \"{quote}\"")),
            }
        }
    }
    let idle = QUOTES.iter().filter(|entry| !used.contains(entry));
    wrong.extend(idle.map(|(name, begins, _)| format!("book/src/{name} quotes nothing that begins with \"{begins}\"")));
    for (kernel, quotes) in of_kernel {
        let unsaid = |verdict: &Verdict| -> Vec<String> {
            let text = said(verdict);
            let says = |quote: &String| missing(&format!("\"{quote}\""), &text, false).is_empty();
            quotes
                .iter()
                .filter(|(_, quote)| !says(quote))
                .map(|(name, quote)| format!("book/src/{name}, of {kernel}: \"{quote}\""))
                .collect()
        };
        let left = unsaid(&closely(kernel));
        if !left.is_empty() {
            let verdict = at_all_sizes(kernel);
            let left = unsaid(&verdict);
            if !left.is_empty() {
                wrong.extend(left);
                wrong.push(format!(
                    "said is, closely: {}\nor, at all sizes: {}",
                    said(&closely(kernel)),
                    said(&verdict)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The cause behind this one in a list of all; the compiler asks for a new one here.
fn next(cause: &Cause) -> Option<Cause> {
    let moved = |pattern| Some(Cause::ColumnsMoved { column: 1, holds: 0, pattern });
    match cause {
        Cause::NeverWritten => Some(Cause::Undefined),
        Cause::Undefined => Some(Cause::NotANumber),
        Cause::NotANumber => Some(Cause::Zero),
        Cause::Zero => Some(Cause::Constant(1.5)),
        Cause::Constant(_) => Some(Cause::OtherType(Dtype::Bf16)),
        Cause::OtherType(_) => Some(Cause::Transposed { by_tiles: false }),
        Cause::Transposed { by_tiles: false } => Some(Cause::Transposed { by_tiles: true }),
        Cause::Transposed { by_tiles: true } => Some(Cause::SwizzledD),
        Cause::SwizzledD => Some(Cause::OtherTile { row: 0, column: 0 }),
        Cause::OtherTile { .. } => Some(Cause::RowsMoved { row: 0, holds: 1 }),
        Cause::RowsMoved { .. } => moved(Moves::Pairs),
        Cause::ColumnsMoved { pattern: Moves::Pairs, .. } => moved(Moves::Shift),
        Cause::ColumnsMoved { pattern: Moves::Shift, .. } => moved(Moves::Groups),
        Cause::ColumnsMoved { pattern: Moves::Groups, .. } => moved(Moves::Any),
        Cause::ColumnsMoved { pattern: Moves::Any, .. } => Some(Cause::Swizzle { a: true, b: false }),
        Cause::Swizzle { .. } => Some(Cause::Stale { columns: (0, 63), stages: 2, of: None }),
        Cause::Stale { .. } => Some(Cause::Slices(vec![Slice { first: 0, last: 15, times: 2 }])),
        Cause::Slices(_) => Some(Cause::EndOfK(0, 63)),
        Cause::EndOfK(..) => Some(Cause::Imprecise),
        Cause::Imprecise => Some(Cause::Added),
        Cause::Added => Some(Cause::Unexplained),
        Cause::Unexplained => None,
    }
}

/// A text with `#` for each number.
fn without_numbers(text: &str) -> String {
    let mut bare = String::new();
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if bare.ends_with('#') => {}
            true => bare.push('#'),
            false => bare.push(letter),
        }
    }
    bare
}

/// All that a report can say of the cause is on the page.
#[test]
fn every_cause_has_its_row() {
    let rows: Vec<String> = quotes(&page("wrong-results.md")).iter().map(|quote| without_numbers(quote)).collect();
    let causes: Vec<String> = std::iter::successors(Some(Cause::NeverWritten), next)
        .map(|cause| without_numbers(&cause.to_string()))
        .collect();
    assert!(causes.len() >= 22, "{causes:?}");
    let lacks = |cause: &&String| !rows.iter().any(|row| cause.starts_with(row.as_str()));
    let lacking: Vec<&String> = causes.iter().filter(lacks).collect();
    assert!(lacking.is_empty(), "book/src/wrong-results.md has no row for {lacking:#?}");
    assert_eq!(without_numbers("K columns 16 to 127, 6"), "K columns # to #, #");
}

/// The second exercise on hangs: what it says of three kernels.
#[test]
fn two_commits_are_two_arrivals() {
    for (part, outcome) in &at_all_sizes("two_arrive_1").parts {
        assert!(!matches!(outcome, Outcome::Failed { .. }), "{part}: {outcome:?}");
    }
    let text = said(&closely("two_commits_2"));
    assert!(text.contains("[early-arrival]"), "{text}");
    let hangs = closely("count_of_2_1");
    assert!(!hangs.part(Part::Correct).passed() && said(&hangs).contains("[hang]"), "{}", said(&hangs));
}

/// A quote without a kernel is seen, and no report is taken for quotes.
#[test]
fn a_quote_without_a_kernel_is_seen() {
    let text = "It says \"row 127\n of D\".\n\n```text\n\"no\"\n```\n<div data-x=\"no\">\n| \"is zero\" |";
    assert_eq!(quotes(text), ["row 127 of D", "is zero"]);
    assert!(kernel_of("wrong-results.md", "is one").is_none());
    assert_eq!(kernel_of("wrong-results.md", "all of D fits a sum").map(|entry| entry.2), Some("none_adds_1"));
}
