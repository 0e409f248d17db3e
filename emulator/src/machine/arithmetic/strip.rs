//! Some rows and columns of D that a product adds to, and how the loops take them.

use super::simd::{PAIR, WIDTH};
use smallvec::SmallVec;
use std::ops::Range;

/// Columns of B, and where their results lie in some rows: (row of A, cell of the first column).
pub struct Strip<'a> {
    pub rows: &'a [(usize, usize)],
    pub columns: Range<usize>,
}

/// A row of D: its row of A, and its first cell.
pub type Row = (usize, usize);

impl<'a> Strip<'a> {
    /// Panels of columns come in pairs; the second of the last may have no columns at all.
    pub fn pairs(&self) -> usize {
        self.columns.len().div_ceil(PAIR)
    }

    pub fn panels(&self) -> usize {
        2 * self.pairs()
    }

    /// Rows side by side in a panel of A, R at a time, and all others. R divides [`WIDTH`].
    #[inline(always)]
    pub fn blocks<const R: usize>(&self) -> Blocks<'a, R> {
        let mut blocks = Blocks { whole: SmallVec::new(), rest: SmallVec::new() };
        for part in self.parts::<R, R>() {
            match part {
                Part::Long(rows) | Part::Short(rows) => blocks.whole.push(rows),
                Part::One([row]) => blocks.rest.push(row),
            }
        }
        blocks
    }

    /// The same in parts of R rows, then of S, as a panel of A has them one below the other, and all others one by one.
    #[inline(always)]
    pub fn parts<const R: usize, const S: usize>(&self) -> SmallVec<[Part<'a, R, S>; 32]> {
        let mut parts = SmallVec::new();
        let mut rows = self.rows;
        while let Some((row, others)) = rows.split_first() {
            let place = row.0 % WIDTH;
            let (part, behind) = match (aligned::<R>(rows), aligned::<S>(rows)) {
                (Some((part, behind)), _) if place.is_multiple_of(R) && place + R <= WIDTH => {
                    (Part::Long(part), behind)
                }
                (_, Some((part, behind))) if S < R && place + S == WIDTH => (Part::Short(part), behind),
                _ => (Part::One(std::array::from_ref(row)), others),
            };
            parts.push(part);
            rows = behind;
        }
        parts
    }

    /// The columns of each panel.
    pub fn split(&self) -> impl Iterator<Item = Range<usize>> {
        let end = self.columns.end;
        (0..self.panels()).map(move |n| {
            let first = (self.columns.start + n * WIDTH).min(end);
            first..(first + WIDTH).min(end)
        })
    }
}

/// Rows that the loops over FP32 take together: side by side in a panel of A.
pub enum Part<'a, const R: usize, const S: usize> {
    Long(&'a [Row; R]),
    Short(&'a [Row; S]),
    One(&'a [Row; 1]),
}

impl<const R: usize, const S: usize> Part<'_, R, S> {
    /// The panel of A that they lie in.
    #[inline(always)]
    pub fn panel(&self) -> usize {
        self.rows()[0].0 / WIDTH
    }

    #[inline(always)]
    pub fn rows(&self) -> &[Row] {
        match *self {
            Part::Long(rows) => rows,
            Part::Short(rows) => rows,
            Part::One(rows) => rows,
        }
    }
}

/// The first N rows if each is A's next, and those behind them.
#[inline(always)]
fn aligned<const N: usize>(rows: &[Row]) -> Option<(&[Row; N], &[Row])> {
    rows.split_first_chunk::<N>().filter(|(first, _)| first.iter().zip(first[0].0..).all(|(row, n)| row.0 == n))
}

/// What [`Strip::blocks`] finds.
pub struct Blocks<'a, const R: usize> {
    pub whole: SmallVec<[&'a [Row; R]; 32]>,
    pub rest: SmallVec<[&'a Row; 16]>,
}
