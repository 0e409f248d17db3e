//! Whether the MMAs of a kernel multiply what its product takes: read off their operands, as the hardware read them.

use super::structure::at;
use crate::inputs::Inputs;
use crate::observe::Observation;
use emulator::{Event, Mma};
use matrices::slices::{DEPTH as SLICE, Slices};
use std::collections::{HashMap, HashSet};

/// Rows that a tile in shared memory has: an operand of a pair of CTAs lies in two.
const ROWS: usize = 128;

/// Where the blocks of an operand lie in the matrix; `None`: they are not of this matrix.
fn blocks(operand: &[u16], matrix: &[u16], k: usize, places: &Slices) -> Option<Blocks> {
    let place = |block: &[u16]| {
        let (row, column) = places.find(block.get(..SLICE)?)?;
        let same = |(index, line): (usize, &[u16])| {
            let from = (row + index) * k + column;
            matrix.get(from..from + SLICE) == Some(line)
        };
        block.chunks(SLICE).enumerate().all(same).then_some((row, column))
    };
    operand.chunks(ROWS * SLICE).map(place).collect()
}

/// When the first MMA begins for each part of D, which `part` gives for a row and a column.
pub(super) fn begins(products: &[Factors], part: impl Fn(u32, u32) -> [u32; 2]) -> HashMap<[u32; 2], u64> {
    let mut begins: HashMap<[u32; 2], u64> = HashMap::new();
    for (event, factors) in products {
        let Some((of_a, of_b)) = factors else { continue };
        let (Some((row, _)), Some((column, _))) = (of_a.first(), of_b.first()) else { continue };
        let begin = begins.entry(part(*row as u32, *column as u32)).or_insert(event.start);
        *begin = event.start.min(*begin);
    }
    begins
}

type Blocks = Vec<(usize, usize)>;

/// An MMA, and where the blocks of its operands lie in A and in B; `None`: they are not of these matrices.
pub(super) type Factors<'a> = (&'a Event, Option<(Blocks, Blocks)>);

/// What each MMA multiplies.
pub(super) fn of(run: &Observation) -> Vec<Factors<'_>> {
    let (inputs, k) = (&run.inputs, run.inputs.problem.k as usize);
    let (in_a, in_b) = (Slices::new(&inputs.a, k), Slices::new(&inputs.b, k));
    run.mmas().into_iter().map(|(event, mma)| (event, factors(mma, inputs, &in_a, &in_b))).collect()
}

/// Where the blocks of an MMA's operands lie in A and in B. D is as good when it is computed as its transpose.
fn factors(mma: &Mma, inputs: &Inputs, in_a: &Slices, in_b: &Slices) -> Option<(Blocks, Blocks)> {
    let (first, second, k) = (&mma.a.elements, &mma.b.elements, inputs.problem.k as usize);
    let as_written = blocks(first, &inputs.a, k, in_a).zip(blocks(second, &inputs.b, k, in_b));
    as_written.or_else(|| blocks(second, &inputs.a, k, in_a).zip(blocks(first, &inputs.b, k, in_b)))
}

/// What is otherwise, if every MMA should multiply 16 columns of rows of A with the same of rows of B, and no two the same.
pub(super) fn otherwise(products: &[Factors]) -> Option<String> {
    let mut seen: HashSet<(usize, usize, usize)> = HashSet::new();
    for (event, factors) in products {
        let Some((of_a, of_b)) = factors else {
            return Some(told("multiplies something else", event));
        };
        for (row_a, column_a) in of_a {
            for (row_b, column_b) in of_b {
                if column_a != column_b {
                    return Some(told(&format!("multiplies columns {column_a} of A and {column_b} of B"), event));
                }
                if !seen.insert((*row_a, *row_b, *column_a)) {
                    let again = format!("multiplies rows {row_a} of A and {row_b} of B at column {column_a} once more");
                    return Some(told(&again, event));
                }
            }
        }
    }
    None
}

fn told(what: &str, event: &Event) -> String {
    format!(
        "each MMA multiplies 16 columns of rows of A with the same columns of rows of B, no two of them the same; in this kernel one \
         {what} ({})",
        at(event)
    )
}
