//! Which part of D is wrong, from the pattern of its wrong elements.

use super::{TILE, Tile};
use crate::compare::{Comparison, Element};
use std::fmt;

/// Which part of D is wrong. Rows and columns count from 0 in D; ranges include their end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Everything,
    /// Whole tiles of 128 × 128: the first, and how many.
    Tiles {
        /// First row of the first one.
        row: usize,
        /// First column of the first one.
        column: usize,
        /// How many.
        count: usize,
        /// Of how many.
        of: usize,
    },
    /// The 32 rows of some warps.
    Warps {
        /// The warps of the tile's warpgroup.
        warps: Vec<usize>,
        /// Their rows.
        rows: Vec<(usize, usize)>,
    },
    /// Some rows.
    Rows {
        /// First.
        first: usize,
        /// Last.
        last: usize,
    },
    /// A stripe of columns.
    Columns {
        /// First.
        first: usize,
        /// Last.
        last: usize,
    },
    /// A block of rows and columns.
    Block {
        /// First and last row.
        rows: (usize, usize),
        /// First and last column.
        columns: (usize, usize),
    },
    /// Elements here and there.
    Scattered {
        /// First and last row.
        rows: (usize, usize),
        /// First and last column.
        columns: (usize, usize),
    },
}

/// Rows of a warp of the write-back.
const WARP_ROWS: usize = 32;

/// How much of a rectangle must be wrong to call all of it wrong: by chance an element of it may be right.
const FILLED: f64 = 0.5;

/// The extent of the elements of these sorts. `tile` is the first tile that has one.
pub(super) fn find(comparison: &Comparison, tile: Tile, sort: fn(Element) -> bool) -> Extent {
    let wrong = |row: usize, column: usize| sort(comparison.at(row, column));
    let columns_of = tile.column..tile.column + tile.columns;
    let rows_of = tile.row..tile.row + tile.rows;
    let rows: Vec<usize> = rows_of.clone().filter(|row| columns_of.clone().any(|column| wrong(*row, column))).collect();
    let columns: Vec<usize> = columns_of.filter(|column| rows_of.clone().any(|row| wrong(row, *column))).collect();
    let count = rows.iter().map(|row| columns.iter().filter(|column| wrong(*row, **column)).count()).sum::<usize>();
    let ends = |list: &[usize]| (list.first().copied().unwrap_or(0), list.last().copied().unwrap_or(0));
    let (row_ends, column_ends) = (ends(&rows), ends(&columns));
    let scattered = Extent::Scattered { rows: row_ends, columns: column_ends };
    if (count as f64) < FILLED * (rows.len() * columns.len()) as f64 {
        return scattered;
    }
    let contiguous = |list: &[usize], (first, last): (usize, usize)| list.len() == last - first + 1;
    let (all_rows, all_columns) = (rows.len() == tile.rows, columns.len() == tile.columns);
    if all_rows && all_columns {
        return tiles(comparison, tile, sort);
    }
    if all_columns {
        if let Some(warps) = whole_warps(&rows, tile) {
            let range = |warp: &usize| {
                let first = tile.row + warp * WARP_ROWS;
                (first, (first + WARP_ROWS).min(tile.row + tile.rows) - 1)
            };
            let rows = warps.iter().map(range).collect();
            return Extent::Warps { warps, rows };
        }
        if contiguous(&rows, row_ends) {
            return Extent::Rows { first: row_ends.0, last: row_ends.1 };
        }
    } else if contiguous(&columns, column_ends) {
        if all_rows {
            return Extent::Columns { first: column_ends.0, last: column_ends.1 };
        }
        if contiguous(&rows, row_ends) {
            return Extent::Block { rows: row_ends, columns: column_ends };
        }
    }
    scattered
}

/// The warps whose rows these are, if they are whole warps' rows.
fn whole_warps(rows: &[usize], tile: Tile) -> Option<Vec<usize>> {
    let mut warps = Vec::new();
    for warp in 0..tile.rows.div_ceil(WARP_ROWS) {
        let first = tile.row + warp * WARP_ROWS;
        let size = WARP_ROWS.min(tile.row + tile.rows - first);
        match rows.iter().filter(|row| (first..first + size).contains(row)).count() {
            0 => {}
            count if count == size => warps.push(warp),
            _ => return None,
        }
    }
    Some(warps)
}

/// How many tiles are wrong, when the first wrong one is wrong all over.
fn tiles(comparison: &Comparison, tile: Tile, sort: fn(Element) -> bool) -> Extent {
    let across = comparison.columns.div_ceil(TILE);
    let of = across * comparison.rows.div_ceil(TILE);
    let mut bad = vec![false; of];
    for (index, element) in comparison.elements.iter().enumerate() {
        if sort(*element) {
            bad[index / comparison.columns / TILE * across + index % comparison.columns / TILE] = true;
        }
    }
    let count = bad.iter().filter(|bad| **bad).count();
    if count == of { Extent::Everything } else { Extent::Tiles { row: tile.row, column: tile.column, count, of } }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |(first, last): (usize, usize)| {
            if first == last { format!("{first}") } else { format!("{first} to {last}") }
        };
        match self {
            Extent::Everything => f.write_str("all of D"),
            Extent::Tiles { row, column, count: 1, of } => write!(
                f,
                "the tile of D at row {row}, column {column} (one of {of} tiles of {TILE}x{TILE}; the others are right)"
            ),
            Extent::Tiles { row, column, count, of } => write!(
                f,
                "a part of D that is {count} of {of} tiles of {TILE}x{TILE}, the first at row {row}, column {column},"
            ),
            Extent::Warps { warps, rows } => {
                let mut joined: Vec<(usize, usize)> = Vec::new();
                for (first, last) in rows {
                    match joined.last_mut() {
                        Some(before) if before.1 + 1 == *first => before.1 = *last,
                        _ => joined.push((*first, *last)),
                    }
                }
                let rows: Vec<String> = joined.into_iter().map(range).collect();
                let warps: Vec<String> = warps.iter().map(usize::to_string).collect();
                let of = if warps.len() == 1 { "the 32 rows of warp" } else { "those of warps" };
                write!(f, "the part of D in rows {} ({of} {})", rows.join(", "), warps.join(", "))
            }
            Extent::Rows { first, last } if first == last => write!(f, "row {first} of D"),
            Extent::Rows { first, last } => write!(f, "the part of D in rows {first} to {last}"),
            Extent::Columns { first, last } if first == last => write!(f, "column {first} of D"),
            Extent::Columns { first, last } => {
                write!(f, "the stripe of {} columns, {first} to {last}, of D", last - first + 1)
            }
            Extent::Block { rows, columns } => {
                write!(f, "the block of D in rows {}, columns {}", range(*rows), range(*columns))
            }
            Extent::Scattered { rows, columns } => {
                write!(f, "a part of D, scattered over rows {} and columns {},", range(*rows), range(*columns))
            }
        }
    }
}
