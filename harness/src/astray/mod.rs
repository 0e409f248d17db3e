//! Where a product goes astray: of a kernel that breaks no rule and leaves a wrong D, the first place of its data's way that is not what
//! D = A·Bᵀ takes, read off a traced run.
//!
//! The way is followed from its beginning: what each MMA multiplies, and as what (`multiplied`); which products are summed
//! (`sums`); what is read out of tensor memory (`read_out`); where it is stored (`stored`). Rows of A and B are known by their values:
//! the elements of the inputs are random, so that 16 of them are found at one place only. What is said is therefore observed, and not
//! guessed from the pattern of wrong elements, as [`crate::mismatch`] has to.

mod multiplied;
mod read_out;
mod rounds;
mod stored;
mod sums;

use crate::diagnostics::Explanation;
use crate::inputs::InputKind;
use crate::mismatch::Mismatch;
use crate::observe::Observation;
use emulator::{Copy, CopyKind, Event, EventKind, OperandRead};
use matrices::slices::DEPTH;

const OUTSIDE: &str = "What a box has outside of its tensor is filled with zeros (PTX ISA, tensors: bounding box).";

/// A stage of the way from A and B to D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// What an MMA takes its operands for.
    Descriptor,
    /// What an MMA finds where its operands should be.
    Operand,
    /// Which products there are.
    Product,
    /// Which of them are summed.
    Sum,
    /// What is read out of tensor memory.
    ReadOut,
    /// Where it is stored.
    Store,
    /// Between tensor memory and D, somewhere.
    Epilogue,
}

impl Stage {
    /// A word for tables.
    pub fn code(self) -> &'static str {
        match self {
            Stage::Descriptor => "astray: descriptor",
            Stage::Operand => "astray: operand",
            Stage::Product => "astray: product",
            Stage::Sum => "astray: sum",
            Stage::ReadOut => "astray: read-out",
            Stage::Store => "astray: store",
            Stage::Epilogue => "astray: epilogue",
        }
    }
}

/// What went astray, and where.
#[derive(Clone, Debug)]
pub struct Astray {
    /// The stage.
    pub stage: Stage,
    /// In words.
    pub explanation: Explanation,
}

/// A place of the way that is not as it should be.
fn astray(stage: Stage, explanation: Explanation) -> Astray {
    Astray { stage, explanation }
}

/// Follows the product of a run, of one that broke off as far as it came; it has to be traced with its operands ([`emulator::Options::keep_operands`]). `None`: the run does
/// not show it, since its inputs are not random, or tiles hang over, or its MMAs are not those of 16-bit types.
pub fn find(run: &Observation, mismatch: Option<&Mismatch>) -> Option<Astray> {
    let problem = &run.inputs.problem;
    let whole = problem.m.is_multiple_of(128) && problem.n.is_multiple_of(128) && problem.k.is_multiple_of(64);
    if run.inputs.kind != InputKind::Normal || !whole {
        return None;
    }
    let mmas = multiplied::all(run);
    if mmas.is_empty() && run.report.completed {
        return None;
    }
    if let Some(found) = multiplied::as_what(run, &mmas) {
        return Some(found);
    }
    let factors = match multiplied::factors(run, &mmas) {
        Ok(factors) => factors,
        Err(found) => return Some(found),
    };
    let begun = multiplied::again(run, &factors).or_else(|| sums::find(run, &factors));
    if !run.report.completed {
        // What is missing is missing because it broke off: only what there is tells.
        return begun.or_else(|| outside(run));
    }
    begun
        .or_else(|| multiplied::missing(run, &factors))
        .or_else(|| read_out::find(run, &factors))
        .or_else(|| stored::find(run, &factors))
        .or_else(|| stored::epilogue(run, mismatch))
}

/// What is read out of tensor memory wrongly, if that is the first place that is astray: the way behind it may be right.
pub(crate) fn read_out(run: &Observation) -> Option<Explanation> {
    let found = if run.report.completed { find(run, None) } else { None };
    found.filter(|found| found.stage == Stage::ReadOut).map(|found| found.explanation)
}

/// A load beyond the last column of A and B, of which there are whole tiles.
fn outside(run: &Observation) -> Option<Astray> {
    let k = run.inputs.problem.k;
    let beyond = |copy: &Copy| copy.coordinates.first().is_some_and(|column| i64::from(*column) >= i64::from(k));
    let (event, copy) = boxes(run, CopyKind::Load).find(|(_, copy)| copy.buffer.is_none() && beyond(copy))?;
    let title = format!("a box is loaded from column {} on, and A and B have {k}", copy.coordinates[0]);
    let help = "Load as many tiles along K as there are: K divided by the depth of a tile, rounded up.";
    let explanation =
        Explanation::new(title, OUTSIDE, help).at(&event.place, format!("{} is loaded here", box_of(copy)));
    let explanation = rounds::inner(run, explanation, &event.place, "this loop goes on here, beyond the last column");
    Some(astray(Stage::Operand, explanation))
}

/// Copies of boxes, in the order of time.
fn boxes(run: &Observation, kind: CopyKind) -> impl Iterator<Item = (&Event, &Copy)> {
    run.copies().filter(move |(_, copy)| copy.kind == kind && copy.extents.len() == 2 && copy.coordinates.len() == 2)
}

/// Where a box begins, and how large it is.
fn box_of(copy: &Copy) -> String {
    match (copy.coordinates.as_slice(), copy.extents.as_slice()) {
        ([column, row], [columns, rows]) => {
            format!("a box of {rows} rows and {columns} columns from row {row}, column {column} on")
        }
        _ => "a box".to_string(),
    }
}

/// With what brought an operand to shared memory.
fn with_source(
    run: &Observation,
    explanation: Explanation,
    mma: &Event,
    operand: &OperandRead,
    name: &str,
) -> Explanation {
    match source(run, mma, operand) {
        Some(Event { kind: EventKind::Copy(copy), place, .. }) => {
            let explanation = explanation.at(place, format!("{name} of it is loaded here: {}", box_of(copy)));
            let beyond = copy.buffer.is_none()
                && copy.coordinates.first().is_some_and(|column| i64::from(*column) >= i64::from(run.inputs.problem.k));
            match beyond {
                true => rounds::inner(run, explanation, place, "this loop goes on here, beyond the last column"),
                false => explanation,
            }
        }
        Some(event) => explanation.at(&event.place, format!("{name} of it is stored here")),
        None => explanation,
    }
}

/// What brought an operand to shared memory.
fn source<'a>(run: &'a Observation, mma: &Event, operand: &OperandRead) -> Option<&'a Event> {
    let overlaps = |from: i32, bytes: u32| from < operand.end && operand.offset < from.saturating_add(bytes as i32);
    let brought = |event: &&Event| match &event.kind {
        EventKind::Copy(copy) => {
            copy.kind == CopyKind::Load && copy.ctas.contains(&mma.cta) && overlaps(copy.shared, copy.bytes)
        }
        EventKind::SharedStore { offset, bytes } => event.cta == mma.cta && overlaps(*offset, *bytes),
        _ => false,
    };
    run.report.trace.iter().filter(|event| event.end <= mma.start).filter(brought).max_by_key(|event| event.end)
}
