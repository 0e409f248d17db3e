//! Where what was computed is stored.

use super::multiplied::Factors;
use super::{Astray, Stage, astray, box_of, boxes};
use crate::compare::Element;
use crate::diagnostics::Explanation;
use crate::launch;
use crate::mismatch::Mismatch;
use crate::observe::Observation;
use crate::source::Matrix;
use emulator::{Copy, CopyKind, Event, EventKind};
use std::collections::{BTreeMap, BTreeSet};

const BOXES: &str = "A box is stored from its coordinates on: (column, row), both in elements; what hangs over the tensor is left out (PTX ISA, \
                     cp.async.bulk.tensor).";
const WAY: &str = "D holds what is stored there: the columns of an accumulator, converted, in their order.";

/// Rows and columns of D.
type Part = (BTreeSet<usize>, BTreeSet<usize>);

/// Boxes of D that are stored twice, or elsewhere, or not at all.
pub(super) fn find(run: &Observation, factors: &[Factors]) -> Option<Astray> {
    let stores: Vec<(&Event, &Copy)> = boxes(run, CopyKind::Store)
        .filter(|(_, copy)| copy.buffer.is_none_or(|buffer| buffer == launch::buffer(Matrix::D)))
        .collect();
    if stores.is_empty() {
        return None;
    }
    elsewhere(&stores, factors).or_else(|| covered(run, &stores))
}

/// A CTA that stores a part of D of which it has computed another.
fn elsewhere(stores: &[(&Event, &Copy)], factors: &[Factors]) -> Option<Astray> {
    let mut computed: BTreeMap<u32, (Part, &Event)> = BTreeMap::new();
    for Factors { mma, rows, columns, .. } in factors {
        let each = rows.len() / mma.ctas.len().max(1);
        for (n, cta) in mma.ctas.iter().enumerate() {
            // Of a pair, each CTA holds half of the rows.
            let ((all_rows, all_columns), _) =
                computed.entry(*cta).or_insert_with(|| ((BTreeSet::new(), BTreeSet::new()), mma.event));
            all_rows.extend(rows.iter().skip(n * each).take(each));
            all_columns.extend(columns);
        }
    }
    for (event, copy) in stores {
        let ([column, row], [columns, rows]) = (copy.coordinates.as_slice(), copy.extents.as_slice()) else { continue };
        let Some(((of_rows, of_columns), mma)) = computed.get(&event.issuer.cta) else { continue };
        let (row, column, rows, columns) = (*row as usize, *column as usize, *rows as usize, *columns as usize);
        let outside =
            |range: std::ops::Range<usize>, part: &BTreeSet<usize>| range.into_iter().find(|at| !part.contains(at));
        let wrong = match (outside(row..row + rows, of_rows), outside(column..column + columns, of_columns)) {
            (Some(row), _) => format!("a CTA stores row {row} of D, and multiplies no such row of A"),
            (_, Some(column)) => format!("a CTA stores column {column} of D, and multiplies no such row of B"),
            _ => continue,
        };
        let help = "Give the store the row and the column of the tile whose operands were loaded: coordinates are (column, row).";
        let explanation = Explanation::new(wrong, BOXES, help)
            .at(&event.place, format!("{} is stored here", box_of(copy)))
            .at(&mma.place, "the CTA's first MMA");
        return Some(astray(Stage::Store, explanation));
    }
    None
}

/// Whether the boxes cover D, each element once.
fn covered(run: &Observation, stores: &[(&Event, &Copy)]) -> Option<Astray> {
    let (rows, columns) = (run.comparison.rows, run.comparison.columns);
    // The store that has it, from 1.
    let mut by = vec![0usize; rows * columns];
    let tell = |title: String, help: &str, stores: &[&(&Event, &Copy)]| {
        let labelled = stores.iter().fold(Explanation::new(title, BOXES, help), |explanation, (event, copy)| {
            explanation.at(&event.place, format!("{} is stored here", box_of(copy)))
        });
        Some(astray(Stage::Store, labelled))
    };
    for (number, store) in (1..).zip(stores) {
        let ([column, row], [wide, high]) = (store.1.coordinates.as_slice(), store.1.extents.as_slice()) else {
            continue;
        };
        for at_row in (*row as usize..*row as usize + *high as usize).take_while(|row| *row < rows) {
            for at_column in
                (*column as usize..*column as usize + *wide as usize).take_while(|column| *column < columns)
            {
                let by = &mut by[at_row * columns + at_column];
                if let Some(before) = by.checked_sub(1).and_then(|before| stores.get(before)) {
                    let title = format!("row {at_row}, column {at_column} of D is stored twice");
                    let help =
                        "Check the coordinates of each store, and the box of D's tensor map: no two may overlap.";
                    return tell(title, help, &[store, before]);
                }
                *by = number;
            }
        }
    }
    let last = stores.last()?;
    if let Some(at) = by.iter().position(|by| *by == 0) {
        let title = format!("row {}, column {} of D is never stored", at / columns, at % columns);
        return tell(
            title,
            "Check how many boxes are stored, their coordinates, and the box of D's tensor map.",
            &[last],
        );
    }
    let lost = (0..rows * columns).find(|&at| run.comparison.at(at / columns, at % columns) == Element::Unwritten)?;
    let title = format!(
        "row {}, column {} of D is left out, though a box that is stored has it",
        lost / columns,
        lost % columns
    );
    tell(title, "Check the extents of D's tensor map: those of D, columns first.", &[last])
}

/// All that was computed is right, and D is not.
pub(super) fn epilogue(run: &Observation, mismatch: Option<&Mismatch>) -> Option<Astray> {
    let what = mismatch.map_or_else(|| "D is wrong".to_string(), Mismatch::title);
    let title = format!("the products are right, and lost on their way to D: {what}");
    let help =
        mismatch.and_then(Mismatch::help).unwrap_or("Follow one element from its column of the accumulator to D.");
    let first = |sort: fn(&EventKind) -> bool| run.report.trace.iter().find(|event| sort(&event.kind));
    let read = first(|kind| matches!(kind, EventKind::TensorLoad { .. }));
    let mut explanation = Explanation::new(title, WAY, help);
    if let Some(event) = run.first_store_to_matrix(Matrix::D) {
        explanation = explanation.at(&event.place, "the first store to D");
    }
    if let Some(event) = read {
        explanation = explanation.at(&event.place, "the first load of the accumulator");
        let staged = (run.report.trace.iter()).find(|later| {
            matches!(later.kind, EventKind::SharedStore { .. }) && later.start > event.start && later.cta == event.cta
        });
        if let Some(staged) = staged {
            explanation = explanation.at(&staged.place, "the first store to shared memory behind it");
        }
    }
    Some(astray(Stage::Epilogue, explanation))
}
