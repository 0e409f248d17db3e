//! The way of the sums from tensor memory to D.

use super::super::{Copies, Seen, Shape, tile::Tile};
use super::multiply::issued_mmas;
use super::{INIT, ROWS, missing, named};
use crate::astray;
use crate::diagnostics::Explanation;
use crate::mismatch;
use crate::observe::Observation;
use crate::source::Matrix;
use emulator::{Barrier, EventKind};
use ptx::RegionKind;

/// Columns of D that are staged at once in the solutions.
const STAGED_COLUMNS: u32 = 64;
const STAGED: &str = "TMA reads a tile as its tensor map says: with the 128-byte swizzle, chunk c of row r lies at chunk \
                      c ^ (r % 8) (PTX ISA 5.5.7).";

/// When the first tile's last MMA ends: the one before the second that does not accumulate.
pub(super) fn first_tile_end(run: &Observation) -> Option<u64> {
    let all = issued_mmas(run);
    let first = all.first()?;
    let next = first.iter().skip(1).position(|(_, mma)| !mma.accumulate).map_or(first.len(), |at| at + 1);
    first[..next].iter().map(|(event, _)| event.end).max()
}

/// The sums of the first CTA's last tile are in the tiles of D in shared memory.
pub(in crate::steps) fn d_staged(run: &Observation, shape: &Shape) -> Seen {
    debug_assert_eq!(shape.copies, Copies::Tma);
    if !run.report.trace.iter().any(|event| matches!(event.kind, EventKind::TensorLoad { .. })) {
        let help = "Load the columns of the warp's own 32 lanes: `tmem_load::<64>(columns.lane(row / 32 * 32))`.";
        return missing(run, Explanation::new("tensor memory is not read", STAGED, help));
    }
    let problem = &run.inputs.problem;
    let Some([tile_row, tile_column]) = shape.last_tile(problem, run.sms, 0) else { return Seen::Cut };
    let tiles: Vec<_> = (run.built.regions.iter())
        .filter(|region| region.name == "D" && matches!(region.kind, RegionKind::Tile { .. }))
        .collect();
    // Another layout than the solution's (two tiles in turns, tiles that are wider): what is where is the kernel's own.
    let parts = if shape.specialised { shape.consumers } else { shape.tile[1].div_ceil(STAGED_COLUMNS) };
    let usual =
        |region: &&ptx::Region| matches!(region.kind, RegionKind::Tile { rows: ROWS, columns: STAGED_COLUMNS, .. });
    if tiles.len() != parts as usize || !tiles.iter().all(usual) {
        let stored = tiles.iter().filter_map(|region| Tile::at(run, region, 0, (0, 0))).any(|tile| !tile.is_empty());
        return if stored { Seen::Done } else { Seen::Cut };
    }
    for (index, region) in tiles.iter().enumerate() {
        let Some(tile) = Tile::at(run, region, 0, (0, 0)) else { return Seen::Cut };
        let columns = tile.columns as u32;
        // Without roles each part of the tile has a place of its own; with roles the last chunk is left, of each consumer.
        let (row, column) = if shape.specialised {
            (index as u32 * shape.ctas * ROWS, shape.tile[1].saturating_sub(columns))
        } else {
            (0, index as u32 * columns)
        };
        let (row, column) = (tile_row * shape.tile[0] + row, tile_column * shape.tile[1] + column);
        if tile.is_empty() {
            let help = "Store the rounded sums of the thread's row, 16 bytes at once: `store_shared_16(d.at(row, column), chunk)`.";
            let title = "nothing is stored to the tile of D in shared memory";
            return missing(run, Explanation::new(title, STAGED, help));
        }
        for at in 0..tile.rows * tile.columns {
            let (r, c) = (at / tile.columns, at % tile.columns);
            let expected = run.reference.at(row as usize + r, column as usize + c);
            let found = tile.element(r, c).map(|bits| crate::inputs::decode(problem.dtype, bits));
            if !found.is_some_and(|found| run.reference.accepts(expected, found)) {
                let found = found.map_or("nothing".to_string(), |found| found.to_string());
                if let Some(found) = astray::read_out(run) {
                    return missing(run, found);
                }
                let title = format!(
                    "the tile `{}` in shared memory holds {found} at row {r}, column {c}; what belongs there, row {}, column {} of D, is {}",
                    region.name,
                    row as usize + r,
                    column as usize + c,
                    mismatch::rounded(expected),
                );
                let help =
                    "Thread i has row i: give the tile its row and column, and it knows where the swizzle puts them.";
                let explanation = Explanation::new(title, STAGED, help);
                return match run.first_store_to(region) {
                    Some(event) => missing(run, explanation.at(&event.place, "the tile's first store")),
                    None => missing(run, explanation),
                };
            }
        }
    }
    Seen::Done
}

/// All threads of the write-back arrive at the barrier that tells of a free accumulator.
pub(in crate::steps) fn accumulator_handed_back(run: &Observation, shape: &Shape) -> Seen {
    let wanted = 128 * shape.ctas;
    for consumer in 0..shape.consumers {
        let mine = |barrier: &Barrier| {
            named(run, *barrier).is_some_and(|(name, stage)| name == "ld2mma" && stage.unwrap_or(0) == consumer)
                && barrier.cta == 0
        };
        let arrived: u32 = (run.report.trace.iter())
            .map(|event| match &event.kind {
                EventKind::BarrierArrive { barrier, phase: 0, count, .. } if mine(barrier) => *count,
                _ => 0,
            })
            .sum();
        if arrived != wanted {
            let title = format!("{arrived} threads arrive at `ld2mma` for the first tile; a phase takes {wanted}");
            let help = match shape.ctas {
                1 => {
                    "Behind the last chunk's `tmem_wait_load`, let every thread of the warpgroup arrive: `wg.arrive(…)`."
                }
                _ => {
                    "Behind the last chunk's `tmem_wait_load`, let every thread of both CTAs arrive at the leader's: \
                     `wg.arrive(….of_cta(LEADER))`."
                }
            };
            return missing(run, Explanation::new(title, INIT, help));
        }
    }
    Seen::Done
}

/// D is right.
pub(in crate::steps) fn d_right(run: &Observation) -> Seen {
    let Some(wrong) = mismatch::classify(&run.reference, &run.comparison) else { return Seen::Done };
    if let Some(found) = astray::read_out(run) {
        return missing(run, found);
    }
    let wrong = run.told(wrong);
    let help = wrong.help().unwrap_or("Look at the rows and columns of the first elements that are not right.");
    let explanation = Explanation::new(wrong.title(), "", help);
    let store = run.first_store_to_matrix(Matrix::D);
    match store {
        Some(event) => missing(run, explanation.at(&event.place, "the first store to D")),
        None => missing(run, explanation),
    }
}
