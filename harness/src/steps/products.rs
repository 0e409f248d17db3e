//! Whether the MMAs of a kernel multiply what its product takes: read off their operands, as the hardware read them.

use super::structure::at;
use crate::observe::Observation;
use emulator::{Event, Mma};
use std::collections::{HashMap, HashSet};

/// Columns of A and B that one MMA takes.
const SLICE: usize = 16;
/// Rows that a tile in shared memory has: an operand of a pair of CTAs lies in two.
const ROWS: usize = 128;

/// The places of a matrix's blocks: by the first row of a block, its row and its first column.
type Places<'a> = HashMap<&'a [u16], (usize, usize)>;

fn places(matrix: &[u16], k: usize) -> Places<'_> {
    let rows = matrix.chunks_exact(k).enumerate();
    let slices = |row, line: &'_ [u16]| -> Vec<(usize, usize)> {
        (0..line.len() / SLICE).map(move |slice| (row, slice * SLICE)).collect()
    };
    rows.flat_map(|(row, line)| slices(row, line))
        .map(|(row, column)| (&matrix[row * k + column..][..SLICE], (row, column)))
        .collect()
}

/// Where the blocks of an operand lie in the matrix; `None`: they are not of this matrix.
fn blocks(operand: &[u16], matrix: &[u16], k: usize, places: &Places) -> Option<Vec<(usize, usize)>> {
    let place = |block: &[u16]| {
        let &(row, column) = places.get(block.get(..SLICE)?)?;
        let same = |(index, line): (usize, &[u16])| {
            let from = (row + index) * k + column;
            matrix.get(from..from + SLICE) == Some(line)
        };
        block.chunks(SLICE).enumerate().all(same).then_some((row, column))
    };
    operand.chunks(ROWS * SLICE).map(place).collect()
}

/// What is otherwise, if every MMA should multiply 16 columns of rows of A with the same of rows of B, and no two the same.
pub(super) fn otherwise(run: &Observation) -> Option<String> {
    let (inputs, k) = (&run.inputs, run.inputs.problem.k as usize);
    let (in_a, in_b) = (places(&inputs.a, k), places(&inputs.b, k));
    let mut seen: HashSet<(usize, usize, usize)> = HashSet::new();
    // D is as good when it is computed as its transpose.
    let factors = |mma: &Mma| {
        let (first, second) = (&mma.a.elements, &mma.b.elements);
        let as_written = blocks(first, &inputs.a, k, &in_a).zip(blocks(second, &inputs.b, k, &in_b));
        as_written.or_else(|| blocks(second, &inputs.a, k, &in_a).zip(blocks(first, &inputs.b, k, &in_b)))
    };
    for (event, mma) in run.mmas() {
        let Some((of_a, of_b)) = factors(mma) else {
            return Some(told("multiplies something else", event));
        };
        for (row_a, column_a) in &of_a {
            for (row_b, column_b) in &of_b {
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
