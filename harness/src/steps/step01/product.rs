//! TODO 1.3: the product, in tensor memory.

use super::MMA_K;
use super::milestones::{allocation, missing, not_reached, wrong_or_cut};
use crate::diagnostics::Explanation;
use crate::observe::Observation;
use crate::source::Matrix;
use crate::steps::Seen;
use crate::steps::tile::Tile;
use emulator::{Event, Mma, OperandRead};

const SLICES: &str = "K slice i of a K-major tile with the 128-byte swizzle begins 32 · i bytes from the tile's start \
                      (PTX ISA 9.7.16.3.3): 16 columns of 2 bytes.";
const OPERANDS: &str = "D = A · Bᵀ: the rows of the first operand are rows of D, those of the second its columns \
                        (PTX ISA 9.7.16.10.9.1).";
const ACCUMULATE: &str = "An MMA with enable-input-d adds to what the accumulator holds, without it overwrites it \
                          (PTX ISA 9.7.16.10.9.1); newly allocated tensor memory holds nothing that is known (9.7.16.7.1).";
const DESCRIPTOR: &str = "The descriptor's swizzle must be the one that the tile was stored with (PTX ISA 9.7.16.4.1).";
const ONE_ACCUMULATOR: &str = "An MMA has K = 16 for 16-bit types (PTX ISA 9.7.16.2.1); longer sums take several MMAs into one \
                               accumulator.";

pub(super) fn product_in_tensor_memory(seen: &Observation) -> Seen {
    let mmas = seen.mmas();
    let expected = (seen.inputs.problem.k / MMA_K) as usize;
    let Some((first, _)) = mmas.first() else {
        let help =
            "Call `t.mma(accumulator, a.k_slice(…), b.k_slice(…), …)` in the elected thread, once for each K slice.";
        let explanation = Explanation::new("no MMA was issued", ONE_ACCUMULATOR, help);
        return missing(
            seen,
            match allocation(seen) {
                Some(alloc) => explanation.at(&alloc.place, "no MMA writes to this tensor memory"),
                None => explanation,
            },
        );
    };
    if mmas.len() != expected {
        return wrong_count(seen, first, mmas.len(), expected);
    }
    let (Some(a), Some(b)) = (Tile::find(seen, Matrix::A), Tile::find(seen, Matrix::B)) else {
        return not_reached("there are no tiles for A and B");
    };
    if a.is_empty() || b.is_empty() {
        return not_reached("A and B have to arrive in shared memory first");
    }
    let mut slices = Vec::new();
    for (number, (event, mma)) in mmas.iter().enumerate() {
        match slice_of(number, event, mma, &a, &b) {
            Ok(slice) => slices.push(slice),
            Err(explanation) => return Seen::Wrong(explanation),
        }
    }
    if let Some(lost) = (0..expected).find(|slice| !slices.contains(slice)) {
        let read: Vec<String> = slices.iter().map(usize::to_string).collect();
        let title =
            format!("no MMA reads K slice {lost}: MMAs 0 to {} read the slices {}", expected - 1, read.join(", "));
        let help = "Let MMA i read K slice i: `k_slice(i * 16)`.";
        return Seen::Wrong(Explanation::new(title, SLICES, help).at(&first.place, "the MMAs"));
    }
    if a.wrong(seen, Matrix::A).is_some() || b.wrong(seen, Matrix::B).is_some() {
        return not_reached("A and B have to arrive in shared memory first");
    }
    match accumulator(seen) {
        Some(held) if near_product(seen, &held) => Seen::Done,
        Some(_) => Seen::Wrong(
            Explanation::new(
                "tensor memory does not hold A·Bᵀ at the end, though each MMA read the right operands",
                ONE_ACCUMULATOR,
                "Look for what else writes to these columns.",
            )
            .at(&first.place, "the first MMA"),
        ),
        None => Seen::Cut,
    }
}

fn wrong_count(seen: &Observation, first: &Event, count: usize, expected: usize) -> Seen {
    let were = if count == 1 { "MMA was" } else { "MMAs were" };
    let title = format!("{count} {were} issued; K = {} takes {expected} of depth {MMA_K}", seen.inputs.problem.k);
    let (rule, help) = if count == expected * 32 {
        (
            "Each thread that executes tcgen05.mma starts one (PTX ISA 9.7.16.5).",
            "Let one thread issue them: `w.elect_one(|t| …)`.",
        )
    } else {
        (ONE_ACCUMULATOR, "Issue one MMA for each 16 columns of K.")
    };
    let text = if count == 1 { "this one" } else { "the first of them" };
    wrong_or_cut(seen, Explanation::new(title, rule, help).at(&first.place, text))
}

/// The K slice that an MMA multiplies, or what it does instead. MMAs and slices count from 0.
fn slice_of(number: usize, event: &Event, mma: &Mma, a: &Tile<'_>, b: &Tile<'_>) -> Result<usize, Explanation> {
    let wrong = |title: String, rule: &str, help: &str| {
        Err(Explanation::new(title, rule, help).at(&event.place, format!("MMA {number}")))
    };
    for (tile, operand, matrix) in [(a, &mma.a, Matrix::A), (b, &mma.b, Matrix::B)] {
        if operand.swizzle != tile.swizzle {
            let title = format!(
                "the descriptor of {matrix} says a swizzle of {} bytes; the tile `{}` has one of {}",
                operand.swizzle, tile.region.name, tile.swizzle
            );
            return wrong(
                title,
                DESCRIPTOR,
                "Make the descriptor from the tile (`k_slice`), or give it the same swizzle.",
            );
        }
    }
    let order = "Give `t.mma` a slice of A's tile first, then the same slice of B's.";
    let (left, right) = (slice(a, &mma.a.elements), slice(b, &mma.b.elements));
    let crossed = (slice(b, &mma.a.elements), slice(a, &mma.b.elements));
    let (left, right) = match (left, right, crossed) {
        (Some(left), Some(right), _) => (left, right),
        (None, None, (Some(_), Some(_))) => {
            let title = format!("MMA {number} has its operands the other way round: first B's tile, then A's");
            return wrong(title, OPERANDS, order);
        }
        (None, _, (Some(_), _)) => {
            return wrong(format!("the first operand of MMA {number} is B's tile, not A's"), OPERANDS, order);
        }
        (_, None, (_, Some(_))) => {
            return wrong(format!("the second operand of MMA {number} is A's tile, not B's"), OPERANDS, order);
        }
        (left, _, _) => {
            let (matrix, tile, operand) = if left.is_none() { (Matrix::A, a, &mma.a) } else { (Matrix::B, b, &mma.b) };
            let title = format!(
                "MMA {number} reads something else than a K slice of {matrix}'s tile{}",
                begins(tile, operand).unwrap_or_default()
            );
            return wrong(
                title,
                SLICES,
                "Take the operands from the tiles: `k_slice(column)` with column 0, 16, 32 and 48.",
            );
        }
    };
    if left != right {
        let title = format!("MMA {number} multiplies K slice {left} of A with K slice {right} of B");
        return wrong(title, OPERANDS, "Step both operands by the same number of columns.");
    }
    match (mma.accumulate, number) {
        (true, 0) => wrong(
            "the first MMA adds to what tensor memory held before: that was never written".to_string(),
            ACCUMULATE,
            "Let the first MMA not accumulate: `step > 0` as its last argument.",
        ),
        (false, 1..) => wrong(
            format!("MMA {number} does not accumulate: what the MMAs before it summed is lost"),
            ACCUMULATE,
            "Let every MMA but the first accumulate: `step > 0` as its last argument.",
        ),
        _ => Ok(left),
    }
}

/// Where an operand begins, if that is in the tile and not at a slice.
fn begins(tile: &Tile<'_>, operand: &OperandRead) -> Option<String> {
    const SLICE: i64 = 2 * MMA_K as i64;
    let offset = i64::from(operand.offset) - i64::from(tile.region.offset);
    let inside = 0 < offset && offset < i64::from(tile.region.bytes);
    (inside && (offset % SLICE != 0 || offset >= i64::from(tile.swizzle)))
        .then(|| format!(": its first byte is byte {offset} of the tile"))
}

/// The K slice of the tile that an operand is.
fn slice(tile: &Tile<'_>, elements: &[u16]) -> Option<usize> {
    let depth = MMA_K as usize;
    if elements.len() != tile.rows * depth {
        return None;
    }
    (0..tile.columns / depth).find(|slice| {
        (elements.iter().enumerate()).all(|(index, element)| {
            // What was never written reads as poison, and says nothing.
            tile.element(index / depth, slice * depth + index % depth).is_none_or(|held| held == *element)
        })
    })
}

/// Tensor memory under the accumulator, row after row of D; `None` for what was never written.
pub(super) fn accumulator(seen: &Observation) -> Option<Vec<Option<f32>>> {
    const COLUMNS: usize = 512;
    let column = seen.mmas().first()?.1.column as usize;
    let memory = &seen.report.ctas.first()?.tensor;
    let element = |row: usize, n: usize| {
        let byte = 4 * (row * COLUMNS + column + n);
        let bytes: [u8; 4] = memory.bytes.get(byte..byte + 4)?.try_into().ok()?;
        (byte..byte + 4).all(|byte| memory.is_defined(byte)).then(|| f32::from_le_bytes(bytes))
    };
    let (rows, columns) = (seen.inputs.problem.m as usize, seen.inputs.problem.n as usize);
    Some((0..rows * columns).map(|index| element(index / columns, index % columns)).collect())
}

/// Sums of 64 products in FP32, in whatever order, are much nearer than this to those in FP64.
pub(super) fn near_product(seen: &Observation, held: &[Option<f32>]) -> bool {
    held.len() == seen.reference.values.len() && held.iter().zip(&seen.reference.values).all(near)
}

/// The same for B · Aᵀ: a kernel may take its operands the other way round, and turn the result when it stores it.
pub(super) fn near_turned_product(seen: &Observation, held: &[Option<f32>]) -> bool {
    let (rows, columns) = (seen.inputs.problem.m as usize, seen.inputs.problem.n as usize);
    let turned = |index: usize| held.get(index % columns * rows + index / columns).unwrap_or(&None);
    held.len() == seen.reference.values.len()
        && seen.reference.values.iter().enumerate().all(|(index, expected)| near((turned(index), expected)))
}

fn near((held, expected): (&Option<f32>, &f64)) -> bool {
    held.is_some_and(|held| (f64::from(held) - expected).abs() <= 1e-3 * (1.0 + expected.abs()))
}
