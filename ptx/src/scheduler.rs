//! Which tiles of D a persistent CTA or cluster computes, and in which order.

use crate::control::next_round;
use crate::kernel::Place;
use crate::level::Level;
use crate::register::{Operand, Pred, U32, Value, dummy};
use crate::scope::Scope;
use crate::state::{State, with, with_at};

/// Tile rows that are walked together: their tiles of A and B stay in the L2 cache while they are needed.
const BAND: u32 = 8;

/// Deals the tiles of D out to workers (CTAs or clusters) that stay for the whole launch: worker `w` of `n` takes the
/// tiles `w`, `w + n`, `w + 2n`, …, and none if there are too few.
///
/// Tiles are numbered in bands of 8 tile rows: down the band first, then across, so that the tiles that are worked on
/// at the same time share their rows of A and of B. The last band may be lower.
///
/// ```text
///      n →  0   1   2
/// m    0    0   8  16 …
/// ↓    1    1   9  17
///      …
///      7    7  15  23
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TileScheduler {
    rows: u32,
    columns: u32,
    workers: u32,
}

impl TileScheduler {
    /// For `rows` × `columns` tiles and this many workers. No instruction.
    #[track_caller]
    pub fn new(rows: u32, columns: u32, workers: u32) -> TileScheduler {
        let tiles = u64::from(rows) * u64::from(columns);
        // So that the number of a tile plus the number of workers has 32 bits.
        if tiles > 0 && workers > 0 && tiles <= u64::from(u32::MAX - workers) {
            return TileScheduler { rows, columns, workers };
        }
        with(|s| {
            s.error(
                format!("{rows} x {columns} tiles cannot be dealt out to {workers} workers"),
                format!("use 1 or more of each, tiles and workers together at most {}", u32::MAX),
            );
        });
        TileScheduler { rows: 1, columns: 1, workers: 1 }
    }

    /// Row and column of the tile with this number, in the order in which tiles are dealt out: what
    /// [`TileScheduler::each`] computes on the GPU.
    ///
    /// ```
    /// let tiles = ptx::TileScheduler::new(20, 3, 148);
    /// assert_eq!((tiles.tile(7), tiles.tile(8), tiles.tile(24)), ((7, 0), (0, 1), (8, 0)));
    /// assert_eq!(tiles.tile(59), (19, 2));
    /// ```
    pub const fn tile(&self, number: u32) -> (u32, u32) {
        let in_band = self.height(0) * self.columns;
        // Neither this nor `number` panics for what is no tile.
        let (first, within) = ((number / in_band).saturating_mul(BAND), number % in_band);
        let height = self.height(first);
        (first.saturating_add(within % height), within / height)
    }

    /// The number of the tile at this row and column.
    pub const fn number(&self, row: u32, column: u32) -> u32 {
        let first = row / BAND * BAND;
        let before = first.wrapping_mul(self.columns);
        before.wrapping_add(column.wrapping_mul(self.height(first))).wrapping_add(row - first)
    }

    /// Rows of the band that begins at this row.
    const fn height(&self, first: u32) -> u32 {
        match self.rows.saturating_sub(first) {
            0 => 1,
            left if left < BAND => left,
            _ => BAND,
        }
    }

    /// A loop of the GPU over the tiles of one worker: the body gets the tile's row and column, counted in tiles. Every
    /// role of a kernel runs this loop for itself, and all see the same tiles in the same order.
    ///
    /// Executed by every thread of the scope, all with the same worker, a number below that of the workers. PTX:
    /// `mov.u32`, `setp.ge.u32` and a `bra` to the end; for each tile `div.u32` and `rem.u32`, by constants where all
    /// bands are alike, else by the height of the tile's band (`min.u32`); after the body `add.u32`, `setp.lt.u32` and
    /// `bra`.
    #[track_caller]
    pub fn each<L: Level, R>(
        &self,
        scope: &mut Scope<L>,
        worker: impl Operand<U32>,
        body: impl FnOnce(&mut Scope<L>, U32, U32) -> R,
    ) -> R {
        let (place, worker) = (Place::caller(), worker.value());
        let begun = with_at(place, |s| {
            let tiles = u64::from(self.rows) * u64::from(self.columns);
            if let Value::Unsigned(number) = worker
                && number >= u64::from(self.workers)
            {
                s.error(
                    format!("worker {number} does not exist: tiles are dealt out to {}", self.workers),
                    format!("use a worker from 0 to {}", self.workers - 1),
                );
            }
            s.open(&format!("{} x {} tiles, dealt out to {} workers", self.rows, self.columns, self.workers));
            s.open_repeat();
            let tile: U32 = s.fresh();
            let (name, again, end) = (s.name(tile), s.new_label("tile"), s.new_label("tiles_end"));
            let first = s.text(worker);
            s.instruction(format!("mov.u32 {name}, {first}"));
            let none: Pred = s.binary("setp.ge.u32", Value::of(tile), Value::Unsigned(tiles));
            let none = s.name(none);
            s.instruction(format!("@{none} bra {end}"));
            s.label(&again);
            let (row, column) = self.position(s, tile);
            (tile, row, column, tiles, again, end)
        });
        let (row, column) = begun.as_ref().map_or((dummy(), dummy()), |(_, row, column, ..)| (*row, *column));
        let result = body(&mut scope.same(), row, column);
        with_at(place, |s| {
            let Some((tile, _, _, tiles, again, end)) = begun else { return };
            next_round(s, (tile, self.workers), Value::Unsigned(tiles), &again, &end);
        });
        result
    }

    /// Row and column of a tile, by its number.
    fn position(&self, s: &mut State, tile: U32) -> (U32, U32) {
        let by = |number: u32| Value::Unsigned(u64::from(number));
        let tile = Value::of(tile);
        if self.rows <= BAND {
            return (s.binary("rem.u32", tile, by(self.rows)), s.binary("div.u32", tile, by(self.rows)));
        }
        // No more than there are tiles.
        let in_band = by(self.columns * BAND);
        let band: U32 = s.binary("div.u32", tile, in_band);
        let within: U32 = s.binary("rem.u32", tile, in_band);
        let first: U32 = s.binary("mul.lo.u32", Value::of(band), by(BAND));
        let height = if self.rows.is_multiple_of(BAND) {
            by(BAND)
        } else {
            // The last band is lower.
            let left: U32 = s.binary("sub.u32", by(self.rows), Value::of(first));
            let height: U32 = s.binary("min.u32", Value::of(left), by(BAND));
            Value::of(height)
        };
        let down: U32 = s.binary("rem.u32", Value::of(within), height);
        let column: U32 = s.binary("div.u32", Value::of(within), height);
        (s.binary("add.u32", Value::of(first), Value::of(down)), column)
    }
}
