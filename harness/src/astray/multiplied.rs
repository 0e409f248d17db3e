//! What the MMAs multiply.

use super::{Astray, DEPTH, OUTSIDE, Stage, astray, rounds, with_source};
use crate::diagnostics::Explanation;
use crate::observe::Observation;
use emulator::{Event, EventKind, OperandRead};
use matrices::slices::{Computed, Slices};
use ptx::Dtype;

/// An MMA with both operands in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Mma<'a> {
    pub event: &'a Event,
    pub operands: [&'a OperandRead; 2],
    pub accumulate: bool,
    /// First column of its accumulator, and how many in each CTA; of a warpgroup's MMA it lies in registers.
    pub columns: Option<(u32, u32)>,
    /// The CTAs that hold its accumulator.
    pub ctas: &'a [u32],
}

/// An MMA, and which rows of A and of B it multiplies, at which columns.
pub(super) struct Factors<'a> {
    pub mma: Mma<'a>,
    /// Rows of D and columns of D that its product belongs to.
    pub rows: Vec<usize>,
    pub columns: Vec<usize>,
    /// The first of its columns of A and B.
    pub depth: usize,
}

const FIELDS: &str = "The instruction descriptor of tcgen05.mma says what its operands are taken for: types in bits 7 to 12, signs in bits 13 and \
                      14, which dimension is contiguous in bits 15 and 16 (PTX ISA 9.7.16.4.2); wgmma.mma_async has all that as operands and \
                      qualifiers.";
const OPERAND: &str = "An MMA reads its operands where the descriptors say, with their swizzle and their strides (PTX ISA 9.7.16.4.1); 32 bytes of a row \
                       of it are 16 columns of a row of the matrix.";
const PRODUCT: &str = "D = A·Bᵀ: each row of A is multiplied by each row of B, column by column, each pair once.";

pub(super) fn all<'a>(run: &'a Observation) -> Vec<Mma<'a>> {
    let mma = |event: &'a Event| match &event.kind {
        EventKind::Mma(mma) if mma.shape[2] as usize == DEPTH => Some(Mma {
            event,
            operands: [&mma.a, &mma.b],
            accumulate: mma.accumulate,
            columns: Some((mma.column, mma.accumulator_columns())),
            ctas: &mma.ctas,
        }),
        EventKind::Wgmma(mma) if mma.shape[2] as usize == DEPTH => Some(Mma {
            event,
            operands: [mma.a.as_ref()?, mma.b.as_ref()?],
            accumulate: mma.accumulate,
            columns: None,
            ctas: std::slice::from_ref(&event.cta),
        }),
        _ => None,
    };
    run.report.trace.iter().filter_map(mma).collect()
}

/// An MMA that takes an operand for what it is not.
pub(super) fn as_what(run: &Observation, mmas: &[Mma]) -> Option<Astray> {
    let of_problem = if run.inputs.problem.dtype == Dtype::F16 { "FP16" } else { "BF16" };
    for Mma { event, operands: [a, b], .. } in mmas {
        if a.negated != b.negated {
            let name = if a.negated { "A" } else { "B" };
            let title = format!("an MMA multiplies by −{name}: its product is subtracted from the sum");
            let help =
                "Leave bits 13 and 14 of the instruction descriptor 0 (of wgmma: imm-scale-a and imm-scale-b 1).";
            return Some(astray(Stage::Descriptor, Explanation::new(title, FIELDS, help).at(&event.place, "this MMA")));
        }
        for (name, operand) in [("A", a), ("B", b)] {
            if operand.format != of_problem {
                let title = format!("an MMA takes {name} for {}, which is {of_problem}", operand.format);
                let help = format!("Make the descriptor for {of_problem}: `gemm.dtype`.");
                let explanation = Explanation::new(title, FIELDS, help).at(&event.place, "this MMA");
                return Some(astray(Stage::Descriptor, with_source(run, explanation, event, operand, name)));
            }
        }
    }
    None
}

/// Which rows each MMA multiplies.
pub(super) fn factors<'a>(run: &Observation, mmas: &[Mma<'a>]) -> Result<Vec<Factors<'a>>, Astray> {
    let k = run.inputs.problem.k as usize;
    let of = [Slices::new(&run.inputs.a, k), Slices::new(&run.inputs.b, k)];
    // D may as well be computed as its transpose.
    let is_in = |places: &Slices| mmas.iter().any(|mma| places.has_any_of(&mma.operands[0].elements));
    let swapped = !is_in(&of[0]) && is_in(&of[1]);
    let (names, places) = if swapped { (["B", "A"], [&of[1], &of[0]]) } else { (["A", "B"], [&of[0], &of[1]]) };
    let mut all = Vec::with_capacity(mmas.len());
    for mma in mmas {
        let mut found = Vec::with_capacity(2);
        for ((operand, name), places) in mma.operands.into_iter().zip(names).zip(places) {
            let rows = places.find_all(&operand.elements);
            if let Some(row) = rows.iter().position(Option::is_none) {
                return Err(no_row(run, mma, operand, (name, row)));
            }
            let rows: Vec<(usize, usize)> = rows.into_iter().flatten().collect();
            let depth = rows.first().map_or(0, |(_, depth)| *depth);
            if let Some((row, (_, other))) = rows.iter().enumerate().find(|(_, (_, other))| *other != depth) {
                let title = format!(
                    "row 0 of an operand is columns {} of {name}, its row {row} columns {}",
                    span(depth),
                    span(*other)
                );
                let help = "Check the strides of the matrix descriptor, and its swizzle, against how the tile lies.";
                let explanation = Explanation::new(title, OPERAND, help).at(&mma.event.place, "this MMA");
                return Err(astray(Stage::Operand, with_source(run, explanation, mma.event, operand, name)));
            }
            found.push((rows.into_iter().map(|(row, _)| row).collect::<Vec<_>>(), depth));
        }
        let (Some((second, depth_b)), Some((first, depth_a))) = (found.pop(), found.pop()) else { continue };
        if depth_a != depth_b {
            let title = format!(
                "an MMA multiplies columns {} of {} by columns {} of {}",
                span(depth_a),
                names[0],
                span(depth_b),
                names[1]
            );
            let help = "Give the loads of both tiles the same coordinate along K, and both descriptors the same step.";
            let mut explanation = Explanation::new(title, PRODUCT, help).at(&mma.event.place, "this MMA");
            for (operand, name) in mma.operands.into_iter().zip(names) {
                explanation = with_source(run, explanation, mma.event, operand, name);
            }
            return Err(astray(Stage::Product, explanation));
        }
        let (rows, columns) = if swapped { (second, first) } else { (first, second) };
        all.push(Factors { mma: *mma, rows, columns, depth: depth_a });
    }
    Ok(all)
}

/// A row of an operand that is none of its matrix.
fn no_row(run: &Observation, mma: &Mma, operand: &OperandRead, (name, row): (&str, usize)) -> Astray {
    let elements = operand.elements.chunks(DEPTH).nth(row).unwrap_or_default();
    let place = |title: String, rule: &str, help: String| {
        let explanation = Explanation::new(title, rule, help).at(&mma.event.place, "this MMA");
        with_source(run, explanation, mma.event, operand, name)
    };
    if elements.iter().all(|element| *element == 0) {
        let title = format!("row {row} of an MMA's operand is zero, and should be 16 columns of a row of {name}");
        let help = format!("Check the coordinates of the box, and the extents of the tensor map of {name}.");
        return astray(Stage::Operand, place(title, OUTSIDE, help));
    }
    if operand.mn_major {
        let title = format!("an MMA takes columns of the tile of {name} for its rows");
        let bit = if name == "A" { 15 } else { 16 };
        let help = format!(
            "{name} lies row by row, K-major: clear bit {bit} of the instruction descriptor (of wgmma: imm-trans of {name} 0)."
        );
        return astray(Stage::Descriptor, place(title, FIELDS, help));
    }
    let swizzle = match operand.swizzle {
        0 => "no swizzle".to_string(),
        bytes => format!("a swizzle of {bytes} bytes"),
    };
    let title = format!("row {row} of an MMA's operand is no 16 columns of a row of {name}");
    let help = format!(
        "The descriptor reads with {swizzle}: check it, its strides and its start (steps of 32 bytes along K) against how the tile was \
         brought to shared memory."
    );
    astray(Stage::Operand, place(title, OPERAND, help))
}

fn none_computed(run: &Observation) -> Computed {
    let problem = &run.inputs.problem;
    Computed::new(problem.m as usize, problem.n as usize, problem.k as usize)
}

/// A product that is computed twice.
pub(super) fn again(run: &Observation, factors: &[Factors]) -> Option<Astray> {
    let mut computed = none_computed(run);
    for (number, Factors { mma, rows, columns, depth }) in (1..).zip(factors) {
        if let Some((row, column, by)) = computed.add(number, rows, columns, *depth) {
            let before = factors.get(by as usize - 1)?;
            return Some(once_more(run, (row, column, *depth), mma, &before.mma));
        }
    }
    None
}

/// A product that is not computed at all.
pub(super) fn missing(run: &Observation, factors: &[Factors]) -> Option<Astray> {
    let mut computed = none_computed(run);
    for (number, Factors { rows, columns, depth, .. }) in (1..).zip(factors) {
        computed.add(number, rows, columns, *depth);
    }
    let (row, column, depth) = computed.missing()?;
    let title = format!("no MMA multiplies row {row} of A by row {column} of B at columns {}", span(depth));
    let help = "Check how many rounds over K and how many tiles there are, and which the loads bring.";
    let last = factors.iter().max_by_key(|factors| factors.mma.event.start)?;
    let explanation = Explanation::new(title, PRODUCT, help);
    // Of its tile, all that comes before it along K, or nothing.
    let tile = computed.of(row, column);
    let begun = tile.iter().rposition(|by| *by > 0);
    let of_tile = begun.and_then(|slice| factors.get(tile[slice] as usize - 1));
    let explanation = match (begun, of_tile) {
        (Some(slice), Some(of_tile)) if slice * DEPTH < depth => {
            let place = &of_tile.mma.event.place;
            let ends = format!("this loop ends here, behind column {}", (slice + 1) * DEPTH - 1);
            rounds::inner(run, explanation.at(place, "the last MMA of its tile"), place, &ends)
        }
        (None, _) => {
            let place = &last.mma.event.place;
            let explanation = explanation.at(place, "the last MMA");
            rounds::outer(run, explanation, place, "this loop ends here, and that tile is left out")
        }
        _ => explanation.at(&last.mma.event.place, "the last MMA"),
    };
    Some(astray(Stage::Product, explanation))
}

/// A product that another MMA has computed.
fn once_more(run: &Observation, (row, column, depth): (usize, usize, usize), mma: &Mma, before: &Mma) -> Astray {
    let title = format!("an MMA multiplies row {row} of A by row {column} of B once more, at columns {}", span(depth));
    let help = "Check the coordinates of both loads and where the descriptors begin: which tile of D this is for, and which columns.";
    let mut explanation = Explanation::new(title, PRODUCT, help).at(&mma.event.place, "this MMA");
    if mma.event.place.line != before.event.place.line {
        explanation = explanation.at(&before.event.place, "another has multiplied them");
    }
    for (operand, name) in mma.operands.into_iter().zip(["A", "B"]) {
        explanation = with_source(run, explanation, mma.event, operand, name);
    }
    astray(Stage::Product, explanation)
}

/// The columns of an MMA from this one on.
fn span(depth: usize) -> String {
    format!("{depth} to {}", depth + DEPTH - 1)
}
