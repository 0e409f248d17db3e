//! Hypotheses on a wrong D, each tried against every wrong element.

use super::cause::{Cause, Moves, Slice};
use super::{TILE, Tile};
use crate::compare::{Comparison, Element};
use crate::inputs::{SLICE, decode, encode};
use crate::reference::{Reference, tolerance};
use matrices::gemm;
use ptx::Dtype;

/// Fewer wrong elements than this are no evidence for a hypothesis.
const EVIDENCE: usize = 16;
/// A count that is so near a whole number is that number.
const NEAR: f64 = 0.05;

/// Finds the most specific cause that explains every wrong element of the tile.
pub(super) fn find(reference: &Reference, comparison: &Comparison, tile: Tile) -> Cause {
    let view = View { reference, comparison, tile };
    let all = |sort: Element| {
        view.elements().all(|(row, column)| {
            let element = comparison.at(row, column);
            element == Element::Right || element == sort
        })
    };
    if all(Element::Unwritten) {
        return Cause::NeverWritten;
    }
    let wrong = view.wrong();
    if wrong.len() < EVIDENCE {
        return if wrong.is_empty() { Cause::NotANumber } else { Cause::Unexplained };
    }
    if wrong.iter().all(|(row, column)| view.found(*row, *column) == 0.0) {
        return Cause::Zero;
    }
    if let Some(value) = constant(&view, &wrong) {
        return Cause::Constant(value);
    }
    type Hypothesis = fn(&View, &[(usize, usize)]) -> Option<Cause>;
    // From the most specific to the least: the last two fit many mistakes.
    let hypotheses: [Hypothesis; 11] = [
        other_type,
        transposed,
        swizzled_d,
        other_tile,
        rows_moved,
        columns_moved,
        swizzled,
        stale,
        slices,
        imprecise,
        added,
    ];
    hypotheses.iter().find_map(|hypothesis| hypothesis(&view, &wrong)).unwrap_or(Cause::Unexplained)
}

/// The number that all elements of the tile are; those that happen to be right may be near it.
fn constant(view: &View, wrong: &[(usize, usize)]) -> Option<f32> {
    let (row, column) = *wrong.first()?;
    let value = view.found(row, column);
    let same = |(row, column): &(usize, usize)| view.found(*row, *column) == value;
    // Half of the tile at least: a row of a product may be constant by itself.
    (2 * wrong.len() > view.tile.rows * view.tile.columns && wrong.iter().all(same)).then_some(value)
}

struct View<'a> {
    reference: &'a Reference,
    comparison: &'a Comparison,
    tile: Tile,
}

/// Bytes of the swizzle's pattern are eight chunks of eight elements.
const CHUNK: usize = 8;
const GROUP: usize = 64;

/// The column that a 128-byte swizzle puts in the place of `column`, in this row of the tile.
fn swizzle(row: usize, column: usize) -> usize {
    let chunk = column % GROUP / CHUNK;
    column / GROUP * GROUP + (chunk ^ (row % CHUNK)) * CHUNK + column % CHUNK
}

impl View<'_> {
    /// Rows and columns of D that lie in the tile.
    fn elements(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let Tile { row, column, rows, columns } = self.tile;
        (row..row + rows).flat_map(move |row| (column..column + columns).map(move |column| (row, column)))
    }

    /// Its elements that are numbers, but wrong ones.
    fn wrong(&self) -> Vec<(usize, usize)> {
        self.elements().filter(|(row, column)| self.comparison.at(*row, *column) == Element::Wrong).collect()
    }

    fn found(&self, row: usize, column: usize) -> f32 {
        self.comparison.found[row * self.comparison.columns + column]
    }

    fn accepts(&self, expected: f64, (row, column): (usize, usize)) -> bool {
        self.reference.accepts(expected, self.found(row, column))
    }

    /// Whether these numbers (of the tile, row after row) are what was found wherever D is wrong.
    fn explained_by(&self, values: &[f64], wrong: &[(usize, usize)]) -> bool {
        wrong.iter().all(|(row, column)| {
            let index = (row - self.tile.row) * self.tile.columns + (column - self.tile.column);
            self.accepts(values[index], (*row, *column))
        })
    }

    fn depth(&self) -> usize {
        self.reference.problem.k as usize
    }

    /// The tile's rows of A (or of B), each element replaced by `change(row in tile, column, row's elements)`.
    fn operand(&self, a: bool, change: impl Fn(usize, usize, &[f64]) -> f64) -> Vec<f64> {
        let k = self.depth();
        let (matrix, first, count) = if a {
            (&self.reference.operands.a, self.tile.row, self.tile.rows)
        } else {
            (&self.reference.operands.b, self.tile.column, self.tile.columns)
        };
        let rows = matrix[first * k..(first + count) * k].chunks_exact(k);
        rows.enumerate().flat_map(|(row, line)| (0..k).map(|i| change(row, i, line)).collect::<Vec<_>>()).collect()
    }

    fn product(&self, a: &[f64], b: &[f64]) -> Vec<f64> {
        gemm::product(a, b, self.tile.rows, self.tile.columns, self.depth())
    }
}

fn transposed(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let tile = view.tile;
    if tile.rows != tile.columns {
        return None;
    }
    let mirrored =
        |row: usize, column: usize| view.reference.at(tile.row + column - tile.column, tile.column + row - tile.row);
    if !wrong.iter().all(|at| view.accepts(mirrored(at.0, at.1), *at)) {
        return None;
    }
    // A tile on the diagonal looks the same in a D that is transposed as a whole.
    let comparison = view.comparison;
    let whole = comparison.rows == comparison.columns
        && (0..comparison.rows).all(|row| {
            (0..comparison.columns).all(|column| {
                comparison.at(row, column) != Element::Wrong
                    || view.accepts(view.reference.at(column, row), (row, column))
            })
        });
    Some(Cause::Transposed { by_tiles: !whole })
}

fn swizzled_d(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let tile = view.tile;
    let holds = |at: &(usize, usize)| {
        let column = tile.column + swizzle(at.0 - tile.row, at.1 - tile.column);
        column < tile.column + tile.columns && view.accepts(view.reference.at(at.0, column), *at)
    };
    wrong.iter().all(holds).then_some(Cause::SwizzledD)
}

fn other_tile(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let tile = view.tile;
    let (rows, columns) = (view.comparison.rows, view.comparison.columns);
    for row in (0..rows).step_by(TILE) {
        for column in (0..columns).step_by(TILE) {
            let holds = |at: &(usize, usize)| {
                let (r, c) = (at.0 - tile.row + row, at.1 - tile.column + column);
                r < rows && c < columns && view.accepts(view.reference.at(r, c), *at)
            };
            if (row, column) != (tile.row, tile.column) && wrong.iter().all(holds) {
                return Some(Cause::OtherTile { row, column });
            }
        }
    }
    None
}

fn rows_moved(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let tile = view.tile;
    let mut first = None;
    for row in tile.row..tile.row + tile.rows {
        let columns: Vec<usize> = wrong.iter().filter(|at| at.0 == row).map(|at| at.1).collect();
        if columns.is_empty() {
            continue;
        }
        let holds = |other: &usize| {
            columns.len() >= EVIDENCE
                && columns.iter().all(|column| view.accepts(view.reference.at(*other, *column), (row, *column)))
        };
        let other = (tile.row..tile.row + tile.rows).find(holds)?;
        first.get_or_insert((row, other));
    }
    first.map(|(row, holds)| Cause::RowsMoved { row, holds })
}

/// As [`rows_moved`], for columns.
fn columns_moved(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let tile = view.tile;
    let mut moves = Vec::new();
    for column in tile.column..tile.column + tile.columns {
        let rows: Vec<usize> = wrong.iter().filter(|at| at.1 == column).map(|at| at.0).collect();
        if rows.is_empty() {
            continue;
        }
        let holds = |other: &usize| {
            rows.len() >= EVIDENCE
                && rows.iter().all(|row| view.accepts(view.reference.at(*row, *other), (*row, column)))
        };
        moves.push((column, (tile.column..tile.column + tile.columns).find(holds)?));
    }
    let (column, holds) = *moves.first()?;
    let all = |is: fn(usize, usize) -> bool| moves.iter().all(|(column, holds)| is(*column, *holds));
    let pattern = if all(|column, holds| holds == column ^ 1) {
        Moves::Pairs
    } else if moves.iter().all(|(at, from)| at + holds == from + column) {
        Moves::Shift
    } else if all(|column, holds| column % CHUNK == holds % CHUNK) {
        Moves::Groups
    } else {
        Moves::Any
    };
    Some(Cause::ColumnsMoved { column, holds, pattern })
}

fn other_type(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let own = view.reference.problem.dtype;
    let other = match own {
        Dtype::F16 => Dtype::Bf16,
        Dtype::Bf16 => Dtype::F16,
    };
    let near = |(row, column): &(usize, usize)| {
        let (expected, bits) = (view.reference.at(*row, *column), encode(own, view.found(*row, *column)));
        // BF16 is the coarser of the two.
        (f64::from(decode(other, bits)) - expected).abs() <= tolerance(Dtype::Bf16, expected)
    };
    wrong.iter().all(near).then_some(Cause::OtherType(other))
}

fn swizzled(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let plain = |_: usize, i: usize, line: &[f64]| line[i];
    let permuted = |row: usize, i: usize, line: &[f64]| line.get(swizzle(row, i)).copied().unwrap_or(0.0);
    for (a, b) in [(false, true), (true, false), (true, true)] {
        let left = if a { view.operand(true, permuted) } else { view.operand(true, plain) };
        let right = if b { view.operand(false, permuted) } else { view.operand(false, plain) };
        if view.explained_by(&view.product(&left, &right), wrong) {
            return Some(Cause::Swizzle { a, b });
        }
    }
    None
}

/// Some K tiles are those that the stage of a pipeline held before: of this tile of D, or, in its first rounds, of another one.
fn stale(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    const DEEPEST: usize = 6;
    const MOST_TILES: usize = 256;
    let rounds = view.depth().div_ceil(GROUP);
    if rounds > 64 {
        return None;
    }
    let (rows, columns) = (view.comparison.rows, view.comparison.columns);
    let others = (0..rows).step_by(TILE).flat_map(|row| (0..columns).step_by(TILE).map(move |column| (row, column)));
    let others = others.filter(|other| *other != (view.tile.row, view.tile.column)).take(MOST_TILES);
    let tiles: Vec<Option<(usize, usize)>> = std::iter::once(None).chain(others.map(Some)).collect();
    // A sum does not say in which round a K tile was multiplied: the fewest rounds are the likeliest.
    let depths = |of: &Option<(usize, usize)>| {
        let found = (1..=DEEPEST).filter_map(|stages| stale_by(view, wrong, rounds, stages, *of));
        found.min_by_key(|(count, _)| *count).map(|(_, cause)| cause)
    };
    tiles.iter().find_map(depths)
}

/// The same for so many stages, and what was loaded for this tile of D before; and how many rounds are stale.
fn stale_by(
    view: &View,
    wrong: &[(usize, usize)],
    rounds: usize,
    stages: usize,
    of: Option<(usize, usize)>,
) -> Option<(usize, Cause)> {
    let (k, operands, tile) = (view.depth(), &view.reference.operands, view.tile);
    let part = |row: usize, column: usize, round: usize| -> f64 {
        let range = |line: usize| line * k + round * GROUP..line * k + ((round + 1) * GROUP).min(k);
        let (a, b) = (operands.a.get(range(row)), operands.b.get(range(column)));
        a.zip(b).map_or(0.0, |(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum())
    };
    // What the stage of a round held before; `None`: something that is not looked for.
    let before = |(row, column): (usize, usize), round: usize| match (round.checked_sub(stages), of) {
        (Some(earlier), _) => Some(part(row, column, earlier)),
        (None, Some((first_row, first_column))) => {
            let earlier = (rounds + round).checked_sub(stages)?;
            Some(part(row - tile.row + first_row, column - tile.column + first_column, earlier))
        }
        (None, None) => None,
    };
    // By how much each round changes an element if it is stale.
    let changes = |at: (usize, usize)| -> Vec<f64> {
        (0..rounds).map(|round| before(at, round).map_or(0.0, |before| before - part(at.0, at.1, round))).collect()
    };
    // With another tile of D only the first rounds, if there are many: each candidate is a column of the system below.
    const FEW: usize = 8;
    let candidate = |round: &usize| if of.is_some() { *round < stages || rounds <= FEW } else { *round >= stages };
    let candidates: Vec<usize> = (0..rounds).filter(candidate).collect();
    if candidates.is_empty() || stages > rounds {
        return None;
    }
    let count = candidates.len();
    let sample = 2 * count + 32;
    let rows = wrong.iter().step_by((wrong.len() / sample).max(1)).map(|at| {
        let changes = changes(*at);
        let off = f64::from(view.found(at.0, at.1)) - view.reference.at(at.0, at.1);
        (candidates.iter().map(|round| changes[*round]).collect(), off)
    });
    let times = least_squares(rows, count)?;
    let is_stale = |times: &f64| match times.round() {
        near if (times - near).abs() > NEAR => None,
        0.0 => Some(false),
        1.0 => Some(true),
        _ => None,
    };
    let which = times.iter().map(is_stale).collect::<Option<Vec<bool>>>()?;
    let stale: Vec<usize> = candidates.iter().zip(which).filter_map(|(round, stale)| stale.then_some(*round)).collect();
    let (first, last) = (*stale.first()?, *stale.last()?);
    // One after the other, and if another tile of D is named, it is needed.
    if last - first + 1 != stale.len() || (of.is_some() && first >= stages) {
        return None;
    }
    let holds = |at: &(usize, usize)| {
        let changes = changes(*at);
        let off: f64 = stale.iter().map(|round| changes[*round]).sum();
        view.accepts(view.reference.at(at.0, at.1) + off, *at)
    };
    let columns = (first * GROUP, ((last + 1) * GROUP).min(k) - 1);
    wrong.iter().all(holds).then_some((stale.len(), Cause::Stale { columns, stages, of }))
}

/// How often each K slice counts in D, by least squares, then tried against every wrong element.
fn slices(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let k = view.depth();
    let units: &[usize] = match k {
        0..=256 => &[SLICE],
        257..=1024 => &[GROUP, SLICE],
        _ => &[GROUP],
    };
    units.iter().find_map(|unit| {
        let times = how_often(view, wrong, *unit)?;
        let counted = |_: usize, i: usize, line: &[f64]| line[i] * f64::from(times[i / unit]);
        let plain = |_: usize, i: usize, line: &[f64]| line[i];
        let values = view.product(&view.operand(true, counted), &view.operand(false, plain));
        if !view.explained_by(&values, wrong) {
            return None;
        }
        let mut found: Vec<Slice> = Vec::new();
        for (index, times) in times.iter().enumerate().filter(|(_, times)| **times != 1) {
            let (first, last) = (index * unit, ((index + 1) * unit).min(k) - 1);
            match found.last_mut() {
                Some(slice) if slice.times == *times && slice.last + 1 == first => slice.last = last,
                _ => found.push(Slice { first, last, times: *times }),
            }
        }
        Some(match found.as_slice() {
            [Slice { first, last, times: 0 }] if last + 1 == k && first.is_multiple_of(GROUP) => {
                Cause::EndOfK(*first, *last)
            }
            _ => Cause::Slices(found),
        })
    })
}

/// Solves `found = Σ times[s] · partial product of slice s` over a sample of the wrong elements; `None` unless all come
/// out near whole numbers.
fn how_often(view: &View, wrong: &[(usize, usize)], unit: usize) -> Option<Vec<u32>> {
    const MOST: f64 = 8.0;
    let k = view.depth();
    let count = k.div_ceil(unit);
    let sample = 4 * count + 64;
    let step = (wrong.len() / sample).max(1);
    let operands = &view.reference.operands;
    let rows = wrong.iter().step_by(step).map(|(row, column)| {
        let (a, b) = (&operands.a[row * k..(row + 1) * k], &operands.b[column * k..(column + 1) * k]);
        let partial: Vec<f64> =
            (a.chunks(unit).zip(b.chunks(unit))).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum()).collect();
        (partial, f64::from(view.found(*row, *column)))
    });
    let times = least_squares(rows, count)?;
    let whole = |value: &f64| {
        let near = value.round();
        ((value - near).abs() <= NEAR && (0.0..=MOST).contains(&near)).then_some(near as u32)
    };
    times.iter().map(whole).collect()
}

/// How often each term counts, if the sums of rows of so many terms should be these: by least squares.
fn least_squares(rows: impl Iterator<Item = (Vec<f64>, f64)>, count: usize) -> Option<Vec<f64>> {
    // Normal equations, with the right-hand side as the last column.
    let mut system = vec![vec![0.0; count + 1]; count];
    for (terms, sum) in rows {
        for (equation, left) in system.iter_mut().zip(&terms) {
            for (value, right) in equation.iter_mut().zip(terms.iter().chain([&sum])) {
                *value += left * right;
            }
        }
    }
    solve(system)
}

/// Gaussian elimination with pivoting; `None` when the system is (nearly) singular.
fn solve(mut system: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = system.len();
    let scale = system.iter().flatten().fold(0.0, |most: f64, value| most.max(value.abs()));
    for at in 0..size {
        let pivot = (at..size).max_by(|x, y| system[*x][at].abs().total_cmp(&system[*y][at].abs()))?;
        system.swap(at, pivot);
        if system[at][at].abs() <= 1e-9 * scale {
            return None;
        }
        let top = system[at].clone();
        for row in system.iter_mut().skip(at + 1) {
            let factor = row[at] / top[at];
            for (value, above) in row.iter_mut().zip(&top).skip(at) {
                *value -= factor * above;
            }
        }
    }
    let mut result = vec![0.0; size];
    for at in (0..size).rev() {
        let known: f64 = (at + 1..size).map(|i| system[at][i] * result[i]).sum();
        result[at] = (system[at][size] - known) / system[at][at];
    }
    Some(result)
}

/// Least squares of `found = slope · expected + rest`: the slope, its standard error, and rest against expected (rms).
fn regression(view: &View, wrong: &[(usize, usize)]) -> (f64, f64, f64) {
    let pairs =
        wrong.iter().map(|(row, column)| (view.reference.at(*row, *column), f64::from(view.found(*row, *column))));
    let (xx, xy, yy) = pairs.fold((0.0, 0.0, 0.0), |(xx, xy, yy), (x, y)| (xx + x * x, xy + x * y, yy + y * y));
    let slope = xy / xx;
    let rest = (yy - slope * xy).max(0.0);
    (slope, (rest / xx / wrong.len() as f64).sqrt(), (rest / xx).sqrt())
}

fn imprecise(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let (slope, _, rest) = regression(view, wrong);
    ((slope - 1.0).abs() < 0.01 && rest < 0.05).then_some(Cause::Imprecise)
}

fn added(view: &View, wrong: &[(usize, usize)]) -> Option<Cause> {
    let (slope, error, _) = regression(view, wrong);
    ((slope - 1.0).abs() < 0.1 && error < 0.03).then_some(Cause::Added)
}
