//! Large problems: the whole kernel runs, for order and hazards, and some clusters also compute; their part of D is checked.
//!
//! Inputs are small integers that a seed gives for any element by itself, so that no matrix needs to be held here. Whether
//! every element of D was written is checked everywhere.

use crate::inputs::{Random, decode, encode, integer_bound};
use crate::launch;
use crate::mismatch::{Example, TILE};
use crate::observe;
use crate::problem::Problem;
use crate::source::{Built, Matrix};
use crate::steps::Shape;
use emulator::{Content, Distribution, Memory, NumberType, Options, Program, Report, Values};
use matrices::gemm;
use ptx::Dtype;

/// Blocks of D of 128 × 128 elements that are checked at most.
const BLOCKS: usize = 24;
/// Clusters that compute beside those of the corners.
const MORE: usize = 2;

/// What came of a run of which a sample was computed.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// The problem.
    pub problem: Problem,
    /// The run.
    pub report: Report,
    /// Blocks of D (128 × 128) that were checked, of how many.
    pub checked: (usize, usize),
    /// Elements that are not right: how many of those that were checked, and the first of them.
    pub wrong: (usize, Option<Example>),
    /// Elements that were never written, of all of D, and row and column of the first.
    pub unwritten: (usize, Option<(usize, usize)>),
    /// A matrix of A and B that holds something else after the run, in the rows that were looked at.
    pub overwritten: Option<Matrix>,
}

impl Sampled {
    /// Runs a kernel; `sms` is what it was built for.
    pub fn new(
        built: &Built,
        program: &Program,
        problem: Problem,
        shape: &Shape,
        sms: u32,
        seed: u64,
        options: &Options,
    ) -> Sampled {
        let bound = integer_bound(problem);
        let inputs =
            Integers { bound, seeds: [seed.wrapping_mul(2).wrapping_add(1), seed.wrapping_mul(2).wrapping_add(2)] };
        let content = |seed: u64, rows: u32| {
            Content::Random(emulator::Random {
                seed,
                count: u64::from(rows) * u64::from(problem.k),
                number: match problem.dtype {
                    Dtype::F16 => NumberType::F16,
                    Dtype::Bf16 => NumberType::Bf16,
                },
                distribution: Distribution::Integers { low: -bound, high: bound },
            })
        };
        let a = content(inputs.seeds[0], problem.m);
        let b = content(inputs.seeds[1], problem.n);
        let launch = launch::launch_on(built, &problem, a, b);
        let clusters = clusters(built, &problem, shape, sms, seed);
        let options =
            Options { values: Values::OfClusters(clusters), trace: false, keep_ctas: false, ..options.clone() };
        let report = observe::run(program, launch, &options);
        let nothing = Memory::default();
        let d = report.buffers.get(launch::buffer(Matrix::D)).unwrap_or(&nothing);
        let unwritten = unwritten(d, &problem);
        let (checked, wrong) = inputs.check(d, &problem, seed, options.tensor_load_factor);
        let overwritten = inputs.overwritten(&report, &problem, seed);
        Sampled { problem, checked, wrong, unwritten, overwritten, report }
    }

    /// All that was looked at is right.
    pub fn is_right(&self) -> bool {
        let written = self.unwritten.0 == 0 && self.overwritten.is_none();
        self.report.completed && self.wrong.0 == 0 && written && self.checked.0 > 0
    }

    /// What is wrong with D, in a sentence; `None` when nothing that was looked at is.
    pub fn title(&self) -> Option<String> {
        let problem = &self.problem;
        if let Some(matrix) = self.overwritten {
            return Some(format!("{} at {problem}", observe::overwrites(matrix)));
        }
        if let (count @ 1.., Some((row, column))) = self.unwritten {
            let all = u64::from(problem.m) * u64::from(problem.n);
            return Some(format!(
                "{count} of {all} elements of D are never written at {problem}: the first is row {row}, column {column}"
            ));
        }
        if let (count @ 1.., Some(first)) = &self.wrong {
            return Some(format!(
                "D is wrong at {problem}: {count} of the elements that were checked, the first at row {}, column {}: {}, not {}",
                first.row,
                first.column,
                first.found.map_or("undefined".to_string(), |found| found.to_string()),
                first.expected,
            ));
        }
        (self.report.completed && self.checked.0 == 0).then(|| format!("no element of D could be checked at {problem}"))
    }
}

/// The clusters that compute: those of D's corners, as the step deals out its tiles, and some more that the seed chooses.
fn clusters(built: &Built, problem: &Problem, shape: &Shape, sms: u32, seed: u64) -> Vec<u32> {
    let [rows, columns] = shape.tiles(problem);
    let all = built.grid.iter().product::<u32>() / built.cluster.iter().product::<u32>().max(1);
    let workers = (sms / shape.ctas).max(1);
    let order = ptx::TileScheduler::new(rows, columns, workers);
    let corners = [(0, 0), (rows - 1, 0), (0, columns - 1), (rows - 1, columns - 1)];
    let corner = |(row, column): (u32, u32)| match shape.persistent {
        true => order.number(row, column) % workers,
        false => row + column * rows,
    };
    let mut random = Random::new(seed);
    let more = (0..MORE).map(|_| random.below(u64::from(all.max(1))) as u32);
    let mut chosen: Vec<u32> = corners.map(corner).into_iter().chain(more).filter(|cluster| *cluster < all).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Elements that were never written, and the first of them.
fn unwritten(d: &Memory, problem: &Problem) -> (usize, Option<(usize, usize)>) {
    let (columns, bytes) = (problem.n as usize, problem.m as usize * problem.n as usize * 2);
    let words = bytes.div_ceil(64);
    let (mut missing, mut first) = (0, None);
    for word in 0..words {
        let wanted = if word + 1 == words && !bytes.is_multiple_of(64) { (1u64 << (bytes % 64)) - 1 } else { u64::MAX };
        let lacks = wanted & !d.defined.get(word).copied().unwrap_or(0);
        if lacks != 0 {
            missing += lacks.count_ones() as usize;
            let element = (64 * word + lacks.trailing_zeros() as usize) / 2;
            first = first.or(Some((element / columns, element % columns)));
        }
    }
    // An element of which one byte is missing is missing.
    (missing.div_ceil(2), first)
}

/// Elements of A and B, by their place: what [`emulator::Random`] gives for the same seeds.
struct Integers {
    bound: i64,
    seeds: [u64; 2],
}

impl Integers {
    /// Rows of a matrix from `row` on.
    fn rows(&self, which: usize, row: usize, rows: usize, k: usize) -> Vec<f64> {
        let mut random = Random::at(self.seeds[which], (row * k) as u64);
        (0..rows * k).map(|_| random.integer(self.bound) as f64).collect()
    }

    /// A matrix of which some rows, the first and the last of them, are not what they were.
    fn overwritten(&self, report: &Report, problem: &Problem, seed: u64) -> Option<Matrix> {
        const ROWS: usize = 64;
        let k = problem.k as usize;
        let mut random = Random::new(seed);
        let mut changed = |(which, matrix, rows): (usize, Matrix, u32)| {
            let held = report.buffers.get(launch::buffer(matrix))?;
            let drawn = (0..ROWS).map(|_| random.below(rows.into()) as usize);
            let mut looked_at = [0, rows as usize - 1].into_iter().chain(drawn);
            let differs = |row: usize| {
                let was = self.rows(which, row, 1, k);
                let is = held.bytes[2 * row * k..][..2 * k].as_chunks().0;
                is.iter().zip(was).any(|(&bits, was)| f64::from(decode(problem.dtype, u16::from_le_bytes(bits))) != was)
            };
            looked_at.any(differs).then_some(matrix)
        };
        [(0, Matrix::A, problem.m), (1, Matrix::B, problem.n)].into_iter().find_map(&mut changed)
    }

    /// Checks blocks of D, so many times the product, whose elements were all computed, the first and the last of them and others that the seed
    /// chooses.
    #[allow(clippy::type_complexity)]
    fn check(
        &self,
        d: &Memory,
        problem: &Problem,
        seed: u64,
        factor: f32,
    ) -> ((usize, usize), (usize, Option<Example>)) {
        let (m, n, k) = (problem.m as usize, problem.n as usize, problem.k as usize);
        let blocks: Vec<(usize, usize)> =
            (0..m.div_ceil(TILE)).flat_map(|row| (0..n.div_ceil(TILE)).map(move |column| (row, column))).collect();
        let computed = |&&(row, column): &&(usize, usize)| {
            let rows = row * TILE..((row + 1) * TILE).min(m);
            let columns = column * TILE..((column + 1) * TILE).min(n);
            // The corners of the block, and its diagonal.
            rows.clone().enumerate().all(|(index, row)| {
                let at = |column: usize| 2 * (row * n + column.min(columns.end - 1));
                [columns.start, columns.start + index, columns.end - 1]
                    .into_iter()
                    .all(|column| d.is_defined(at(column)) && !d.is_blank(at(column)))
            })
        };
        let mut candidates: Vec<(usize, usize)> = blocks.iter().filter(computed).copied().collect();
        let mut random = Random::new(seed);
        while candidates.len() > BLOCKS {
            // The first and the last are corners of D if these were computed.
            let out = 1 + random.below(candidates.len() as u64 - 2) as usize;
            candidates.remove(out);
        }
        let (mut wrong, mut first) = (0, None);
        for &(row, column) in &candidates {
            let (top, left) = (row * TILE, column * TILE);
            let (rows, columns) = (TILE.min(m - top), TILE.min(n - left));
            let (a, b) = (self.rows(0, top, rows, k), self.rows(1, left, columns, k));
            let sums = gemm::product(&a, &b, rows, columns, k);
            for (index, expected) in sums.into_iter().enumerate() {
                let (row, column) = (top + index / columns, left + index % columns);
                let byte = 2 * (row * n + column);
                let known = d.is_defined(byte) && d.is_defined(byte + 1) && !d.is_blank(byte);
                let bits = match d.bytes.get(byte..byte + 2) {
                    Some(&[low, high]) if known => Some(u16::from_le_bytes([low, high])),
                    _ => None,
                };
                let found = bits.map(|bits| decode(problem.dtype, bits));
                let expected = f64::from(factor) * expected;
                let rounded = decode(problem.dtype, encode(problem.dtype, expected as f32));
                if found != Some(rounded) {
                    wrong += 1;
                    first = first.or(Some(Example { row, column, expected, found }));
                }
            }
        }
        ((candidates.len(), blocks.len()), (wrong, first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_those_that_the_emulator_draws() {
        let integers = Integers { bound: 7, seeds: [11, 12] };
        let random = emulator::Random {
            seed: 12,
            count: 6 * 40,
            number: NumberType::F16,
            distribution: Distribution::Integers { low: -7, high: 7 },
        };
        let bytes = random.bytes();
        let drawn: Vec<f64> = (bytes.chunks(2))
            .map(|pair| f64::from(decode(Dtype::F16, u16::from_le_bytes([pair[0], pair[1]]))))
            .collect();
        assert_eq!(integers.rows(1, 2, 3, 40), drawn[80..200]);
    }
}
