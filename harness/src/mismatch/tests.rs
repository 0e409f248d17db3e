//! Each class from made-up data, and a near twin that must not be taken for it.

use super::*;
use crate::inputs::{InputKind, Inputs, decode, encode, to_bytes};
use crate::problem::Problem;
use emulator::Memory;
use ptx::Dtype;

struct Case {
    reference: Reference,
    /// D, and whether it was written.
    d: Vec<(f64, bool)>,
}

impl Case {
    fn new(m: u32, n: u32, k: u32) -> Case {
        let reference = Reference::new(&Inputs::new(Problem::f16(m, n, k), InputKind::Normal, 1));
        let d = reference.values.iter().map(|value| (*value, true)).collect();
        Case { reference, d }
    }

    fn step1() -> Case {
        Case::new(128, 128, 64)
    }

    fn columns(&self) -> usize {
        self.reference.problem.n as usize
    }

    /// Replaces elements of D.
    fn set(mut self, change: impl Fn(&Reference, usize, usize, f64) -> f64) -> Case {
        let columns = self.columns();
        for (index, (value, _)) in self.d.iter_mut().enumerate() {
            *value = change(&self.reference, index / columns, index % columns, *value);
        }
        self
    }

    /// Leaves elements out.
    fn unwritten(mut self, which: impl Fn(usize, usize) -> bool) -> Case {
        let columns = self.columns();
        for (index, (_, written)) in self.d.iter_mut().enumerate() {
            *written = !which(index / columns, index % columns);
        }
        self
    }

    fn classify(&self) -> Option<Mismatch> {
        let bits: Vec<u16> = self.d.iter().map(|(value, _)| encode(Dtype::F16, *value as f32)).collect();
        let mut defined = vec![0u64; (2 * bits.len()).div_ceil(64)];
        for (index, (_, written)) in self.d.iter().enumerate() {
            if *written {
                defined[2 * index / 64] |= 0b11 << (2 * index % 64);
            }
        }
        let comparison =
            Comparison::new(&self.reference, &Memory { bytes: to_bytes(&bits).into(), defined, blank: vec![] });
        classify(&self.reference, &comparison)
    }

    fn title(&self) -> String {
        self.classify().map_or("right".to_string(), |mismatch| mismatch.title())
    }

    /// Σ over K of A·B, each term with a weight; the operands' elements may come from other columns.
    fn sum(
        &self,
        a: impl Fn(usize, usize) -> usize,
        b: impl Fn(usize, usize) -> usize,
        w: impl Fn(usize) -> f64,
    ) -> Case {
        let k = self.reference.problem.k as usize;
        let mut case = Case { reference: self.reference.clone(), d: self.d.clone() };
        let columns = self.columns();
        for (index, (value, _)) in case.d.iter_mut().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let operands = &self.reference.operands;
            *value =
                (0..k).map(|i| w(i) * operands.a[row * k + a(row, i)] * operands.b[column * k + b(column, i)]).sum();
        }
        case
    }
}

fn same(_: usize, i: usize) -> usize {
    i
}

fn swizzled(row: usize, i: usize) -> usize {
    i ^ (row % 8 * 8)
}

#[test]
fn right_is_no_mismatch() {
    assert_eq!(Case::step1().classify(), None);
}

#[test]
fn what_was_never_written_is_named_by_its_place() {
    let title = |which: fn(usize, usize) -> bool| Case::step1().unwritten(which).title();
    assert_eq!(title(|_, _| true), "all of D was never written");
    assert_eq!(
        title(|row, _| row / 32 == 1),
        "the part of D in rows 32 to 63 (the 32 rows of warp 1) was never written"
    );
    assert_eq!(title(|row, _| row == 5), "row 5 of D was never written");
    assert_eq!(title(|row, _| (32..60).contains(&row)), "the part of D in rows 32 to 59 was never written");
    assert_eq!(title(|_, column| column >= 64), "the stripe of 64 columns, 64 to 127, of D was never written");
    let scattered = title(|row, column| row % 9 == 0 && (column + row) % 7 == 0);
    assert!(scattered.starts_with("a part of D, scattered over rows 0 to 126"), "{scattered}");
    assert_eq!(
        Case::new(256, 256, 16).unwritten(|row, column| row >= 128 && column < 128).title(),
        "the tile of D at row 128, column 0 (one of 4 tiles of 128x128; the others are right) was never written"
    );
}

#[test]
fn what_was_stored_but_is_undefined_was_not_left_out() {
    let half = Case::step1().unwritten(|row, _| row < 64).classify().expect("half of it is missing");
    let size = 128 * 128 * 2;
    assert_eq!(half.clone().stored(size / 2, ["wrong-phase"]).cause, Cause::NeverWritten);
    // Stored twice to the same place: the other place was left out all the same.
    assert_eq!(half.clone().stored(size, ["race-global"]).cause, Cause::NeverWritten);
    let stored = half.stored(size, ["wrong-phase"]);
    assert!(stored.title().ends_with("holds values that were never computed"), "{}", stored.title());
    assert!(stored.text().contains("found undefined"), "{}", stored.text());
}

/// D of 256 x 128 whose tile at row 128 was multiplied with what stages held before, as `from` says for a round: first row and
/// column of the tile of D, and the K tile.
fn stale(k: u32, from: impl Fn(usize) -> (usize, usize, usize)) -> String {
    Case::new(256, 256, k)
        .set(|reference, row, column, value| {
            if row < 128 || column >= 128 {
                return value;
            }
            let (k, operands) = (k as usize, &reference.operands);
            let part = |round: usize| {
                let (first_row, first_column, tile) = from(round);
                let at = |line: usize| line * k + tile * 64..line * k + (tile + 1) * 64;
                let (a, b) = (&operands.a[at(row % 128 + first_row)], &operands.b[at(column % 128 + first_column)]);
                a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()
            };
            (0..k / 64).map(part).sum()
        })
        .title()
}

#[test]
fn a_stale_stage_is_named() {
    let tile = "the tile of D at row 128, column 0 (one of 4 tiles of 128x128; the others are right)";
    let fits = |rest: &str| format!("{tile} fits a product whose K columns {rest}");
    // Round 3 of 4 reads what its stage held two rounds earlier.
    let within = stale(256, |round| (128, 0, if round == 3 { 1 } else { round }));
    assert_eq!(within, fits("192 to 255 were read from a stale stage: it held what was loaded 2 rounds earlier"));
    // The first two rounds of four read what is left of the tile before.
    let before = stale(256, |round| if round < 2 { (0, 128, round + 2) } else { (128, 0, round) });
    let other = "0 to 127 were read from a stale stage: it held what was loaded 2 rounds earlier, for the tile at row 0, column 128";
    assert_eq!(before, fits(other));
    // Every round of a long sum, one stage.
    let all = stale(1024, |round| (128, 0, round.max(1) - 1));
    assert_eq!(all, fits("64 to 1023 were read from a stale stage: it held what was loaded 1 round earlier"));
    // A tile of K that comes later is in no stage yet.
    let later = stale(256, |round| (128, 0, if round == 1 { 3 } else { round }));
    assert!(!later.contains("stale"), "{later}");
}

#[test]
fn k_slices_are_counted() {
    let with = |times: [f64; 4]| Case::step1().sum(same, same, |i| times[i / 16]).title();
    assert_eq!(with([1., 1., 1., 1.]), "right");
    assert_eq!(with([1., 0., 1., 1.]), "all of D fits a sum in which K columns 16 to 31 are missing");
    // Whole K tiles at the end are what a loop that ends early leaves out; less than that are MMAs.
    let end = |k: u32, from: usize| Case::new(128, 128, k).sum(same, same, |i| if i < from { 1. } else { 0. });
    let cause = |case: Case| case.classify().map(|mismatch| mismatch.cause);
    assert_eq!(cause(end(136, 128)), Some(Cause::EndOfK(128, 135)));
    assert_eq!(cause(end(64, 32)), Some(Cause::Slices(vec![Slice { first: 32, last: 63, times: 0 }])));
    assert_eq!(end(136, 128).title(), "all of D fits a sum in which K columns 128 to 135 are missing");
    assert_eq!(with([1., 1., 1., 2.]), "all of D fits a sum in which K columns 48 to 63 count twice");
    assert_eq!(with([0., 0., 0., 1.]), "all of D fits a sum in which K columns 0 to 47 are missing");
    assert_eq!(
        with([4., 0., 0., 0.]),
        "all of D fits a sum in which K columns 0 to 15 count 4 times, and K columns 16 to 63 are missing"
    );
    // Half a slice is no whole number of slices.
    assert_eq!(with([1., 0.5, 1., 1.]), "all of D is wrong");
    // K tiles of a long sum, in one warp's rows.
    let long = Case::new(128, 128, 512);
    let missing = long.sum(same, same, |i| if (64..128).contains(&i) { 0. } else { 1. });
    let right = Case::new(128, 128, 512);
    let missing = Case {
        d: (right.d.iter().zip(&missing.d).enumerate())
            .map(|(index, (right, missing))| if index / 128 / 32 == 2 { *missing } else { *right })
            .collect(),
        ..right
    };
    assert_eq!(
        missing.title(),
        "the part of D in rows 64 to 95 (the 32 rows of warp 2) fits a sum in which K columns 64 to 127 are missing"
    );
}

#[test]
fn a_missing_swizzle_is_told_by_its_operand() {
    let case = Case::step1();
    let cause = |case: Case| case.classify().map(|mismatch| mismatch.cause);
    assert_eq!(cause(case.sum(same, swizzled, |_| 1.)), Some(Cause::Swizzle { a: false, b: true }));
    assert_eq!(cause(case.sum(swizzled, same, |_| 1.)), Some(Cause::Swizzle { a: true, b: false }));
    // Both alike: rows and columns of the same residue meet again.
    assert_eq!(cause(case.sum(swizzled, swizzled, |_| 1.)), Some(Cause::Swizzle { a: true, b: true }));
    // Another permutation is not the swizzle's.
    assert_eq!(cause(case.sum(same, |row, i| i ^ (row % 4 * 8), |_| 1.)), Some(Cause::Unexplained));
    assert_eq!(
        case.sum(same, swizzled, |_| 1.).title(),
        "D fits a product for which B was stored without the 128-byte swizzle that the descriptor promises (or the \
         other way round)"
    );
}

#[test]
fn results_in_other_places() {
    let title = |change: fn(&Reference, usize, usize, f64) -> f64| Case::step1().set(change).title();
    assert_eq!(
        title(|right, row, column, _| right.at(column, row)),
        "all of D is transposed: it holds at (i, j) what belongs at (j, i)"
    );
    // Of several tiles: D as a whole, each of them by itself, and one alone.
    let large = |rows, columns, change: fn(&Reference, usize, usize, f64) -> f64| {
        Case::new(rows, columns, 16).set(change).title()
    };
    assert_eq!(
        large(256, 256, |right, row, column, _| right.at(column, row)),
        "all of D is transposed: it holds at (i, j) what belongs at (j, i)"
    );
    fn by_tiles(right: &Reference, row: usize, column: usize, _: f64) -> f64 {
        right.at(row / 128 * 128 + column % 128, column / 128 * 128 + row % 128)
    }
    for (rows, columns) in [(256, 384), (256, 256)] {
        assert_eq!(
            large(rows, columns, by_tiles),
            "all of D is transposed tile by tile: each holds at its (i, j) what belongs at its (j, i)"
        );
    }
    let one = large(256, 128, |right, row, column, value| if row < 128 { right.at(column, row) } else { value });
    assert!(one.ends_with("is transposed: it holds at (i, j) what belongs at (j, i)"), "{one}");
    let swizzled = title(|right, row, column, _| right.at(row, column ^ (row % 8 * 8)));
    assert!(
        swizzled.ends_with("holds the right numbers, permuted within each row by the 128-byte swizzle"),
        "{swizzled}"
    );
    assert_eq!(
        title(|right, row, column, _| right.at(row ^ 32, column)),
        "all of D holds the right rows in other places: row 0 holds what belongs in row 32"
    );
    let tiles = Case::new(256, 128, 16).set(|right, row, column, _| right.at(row % 128, column));
    assert!(tiles.title().ends_with("holds what belongs in the tile at row 0, column 0"), "{}", tiles.title());
}

#[test]
fn results_with_something_else() {
    let title = |change: fn(&Reference, usize, usize, f64) -> f64| Case::step1().set(change).title();
    assert_eq!(title(|_, _, _, _| 0.0), "all of D is zero");
    assert_eq!(title(|_, _, _, _| -1.5), "all of D is constant: -1.5 everywhere");
    let upper = title(|_, row, _, value| if row < 64 { 1.0 } else { value });
    assert_eq!(
        upper, "the part of D in rows 0 to 63 (those of warps 0, 1) is wrong",
        "half of it may be a constant product"
    );
    assert_eq!(title(|_, _, _, _| f64::NAN), "all of D is NaN: something that was never written went into the sum");
    let garbage = |row: usize, column: usize| ((row * 37 + column * 101) % 61) as f64 - 30.0;
    let added = Case::step1().set(|_, row, column, value| value + garbage(row, column));
    assert_eq!(added.classify().map(|m| m.cause), Some(Cause::Added));
    // Garbage alone is not the result with garbage added.
    let alone = Case::step1().set(|_, row, column, _| garbage(row, column));
    assert_eq!(alone.classify().map(|m| m.cause), Some(Cause::Unexplained));
    let rough = Case::step1().set(|_, row, column, value| value + 0.02 * (garbage(row, column) / 30.0 + 1.5));
    assert_eq!(rough.classify().map(|m| m.cause), Some(Cause::Imprecise));
}

#[test]
fn the_text_has_coordinates_and_numbers() {
    let case = Case::step1().unwritten(|row, _| row >= 96).set(|_, _, _, value| value);
    let text = case.classify().map(|mismatch| mismatch.text()).unwrap_or_default();
    let expected = rounded(case.reference.at(96, 0));
    assert!(text.contains(&format!("D[96][0]: expected {expected}, found never written")), "{text}");
    assert!(text.contains("4096 of 16384 elements are not right:"), "{text}");
    let wrong = Case::step1().set(|_, row, column, value| if (row, column) == (3, 7) { 1000.0 } else { value });
    let mismatch = wrong.classify().expect("one element is wrong");
    assert_eq!(mismatch.cause, Cause::Unexplained);
    assert!(mismatch.text().contains(&format!("found {}", decode(Dtype::F16, encode(Dtype::F16, 1000.0)))));
}

#[test]
fn what_was_left_out_and_what_is_wrong_have_each_their_pattern() {
    // Four loads of 32 columns, each stored to the first 32.
    let case = Case::step1().unwritten(|_, column| column >= 32);
    let case = case.set(|right, row, column, value| if column < 32 { right.at(row, column + 96) } else { value });
    let mismatch = case.classify().expect("most of it is missing");
    assert_eq!(mismatch.title(), "the stripe of 96 columns, 32 to 127, of D was never written");
    let also = "Also, the stripe of 32 columns, 0 to 31, of D holds what belongs 96 columns further right: column 0 holds what \
                belongs in column 96.";
    assert!(mismatch.text().contains(also), "{}", mismatch.text());
    assert!(mismatch.help().is_some_and(|help| help.starts_with("Check the column of each store")));
    // The row is the lane's number: what comes last stays.
    let case = Case::step1().unwritten(|row, _| row >= 32);
    let case = case.set(|right, row, column, value| if row < 32 { right.at(row + 96, column) } else { value });
    let mismatch = case.classify().expect("most of it is missing");
    assert_eq!(mismatch.title(), "the part of D in rows 32 to 127 (those of warps 1, 2, 3) was never written");
    assert!(mismatch.text().contains("row 0 holds what belongs in row 96"), "{}", mismatch.text());
    assert!(mismatch.help().is_some_and(|help| help.starts_with("Check the row of each thread's stores")));
}

#[test]
fn columns_in_other_places_are_told_apart() {
    let moved = |from: fn(usize) -> usize| {
        Case::step1().set(move |right, row, column, _| right.at(row, from(column))).classify().map(|m| m.cause)
    };
    let cause = |column, holds, pattern| Some(Cause::ColumnsMoved { column, holds, pattern });
    assert_eq!(moved(|column| column ^ 1), cause(0, 1, Moves::Pairs));
    assert_eq!(moved(|column| 120 - column / 8 * 8 + column % 8), cause(0, 120, Moves::Groups));
    assert_eq!(moved(|column| 127 - column), cause(0, 127, Moves::Any));
}

#[test]
fn numbers_of_the_other_type_are_recognised() {
    let inputs = |dtype| Inputs::new(Problem { dtype, ..Problem::f16(128, 128, 64) }, InputKind::Normal, 1);
    for (own, other) in [(Dtype::F16, Dtype::Bf16), (Dtype::Bf16, Dtype::F16)] {
        let reference = Reference::new(&inputs(own));
        let bits: Vec<u16> = reference.values.iter().map(|value| encode(other, *value as f32)).collect();
        let memory = Memory {
            defined: vec![u64::MAX; (2 * bits.len()).div_ceil(64)],
            bytes: to_bytes(&bits).into(),
            blank: vec![],
        };
        let comparison = Comparison::new(&reference, &memory);
        let mismatch = classify(&reference, &comparison).expect("all is wrong");
        assert_eq!(mismatch.cause, Cause::OtherType(other));
        let right: Vec<u16> = reference.values.iter().map(|value| encode(own, *value as f32)).collect();
        let memory = Memory { bytes: to_bytes(&right).into(), ..memory };
        assert_eq!(classify(&reference, &Comparison::new(&reference, &memory)), None);
    }
}

#[test]
fn what_nothing_explains_is_said_once() {
    let wrong = Case::step1().set(|_, row, column, value| if (row, column) == (3, 7) { 1000.0 } else { value });
    let mismatch = wrong.classify().expect("one element is wrong");
    let whole = format!("{}\n{}", mismatch.title(), mismatch.text());
    assert_eq!(whole.matches("fits no mistake that we know").count(), 1, "{whole}");
    assert!(!mismatch.summary().contains("fits no mistake"), "{}", mismatch.summary());
}
