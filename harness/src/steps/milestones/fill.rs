//! Tiles of A and B in shared memory: copied by threads, or asked of TMA.

use super::super::{
    BLK_K, Seen, Shape, step01,
    tile::{self, Tile},
};
use super::{ROWS, Rounds, missing, rounds};
use crate::diagnostics::Explanation;
use crate::launch;
use crate::observe::Observation;
use crate::source::Matrix;
use emulator::{Copy, CopyKind, Event, EventKind};

const BYTES: &str = "A phase of an mbarrier is complete when all arrivals have come, and all bytes that were announced: no \
                     more and no less (PTX ISA 9.7.13.15.5).";

/// The tiles of A and B that threads copy: in every CTA the last round's are there, and what was stored is fenced.
pub(in crate::steps) fn tiles_copied(run: &Observation, shape: &Shape) -> Seen {
    let column = (rounds(run) - 1) * BLK_K as usize;
    let [rows, _] = shape.tiles(&run.inputs.problem);
    for cta in 0..run.report.ctas.len() {
        let (tile_row, tile_column) = (cta as u32 % rows.max(1), cta as u32 / rows.max(1));
        for (matrix, row) in [(Matrix::A, tile_row * shape.tile[0]), (Matrix::B, tile_column * shape.tile[1])] {
            let Some(tile) = Tile::find_in(run, matrix, cta, (row as usize, column)) else {
                return Seen::NotReached(format!("there is no tile for {matrix}"));
            };
            if tile.is_empty() {
                let title = format!("nothing is stored to the tile of {matrix} in shared memory");
                let help = format!(
                    "Store what is loaded from {matrix}, 16 bytes at once: `k.store_shared_16(tile.at(row, column), chunk)`."
                );
                return missing(run, Explanation::new(title, "", help));
            }
            if let Some(wrong) = tile.wrong(run, matrix) {
                let wrong = || tile::of_earlier_round(run, matrix, cta, row as usize).unwrap_or(wrong);
                return if run.report.completed { Seen::Wrong(wrong()) } else { Seen::Cut };
            }
        }
    }
    step01::stores_are_fenced(run)
}

/// Loads of the first cluster, in the order of issue.
fn tma_loads<'a>(run: &'a Observation, shape: &Shape, cta: u32) -> Vec<(&'a Event, &'a Copy)> {
    debug_assert!(cta < shape.ctas);
    let mut loads: Vec<_> =
        run.copies().filter(|(event, copy)| copy.kind == CopyKind::Load && event.issuer.cta == cta).collect();
    loads.sort_by_key(|(event, _)| event.issued);
    loads
}

/// TMA loads: in each round the right boxes of A and B, on one barrier that was told of their bytes.
pub(in crate::steps) fn loads(run: &Observation, shape: &Shape, wanted: Rounds) -> Seen {
    let (problem, per_round) = (&run.inputs.problem, shape.consumers as usize + 1);
    let help = "Announce the bytes of all tiles of the round (`t.expect_tx`), then ask TMA for them (`t.tma_load`).";
    for cta in 0..shape.ctas {
        let loads = tma_loads(run, shape, cta);
        // What a kernel without the rest of the loop does after these rounds says nothing.
        let seen = if wanted == Rounds::All { usize::MAX } else { wanted.count(run, shape) };
        let wanted = wanted.count(run, shape);
        for (index, round) in loads.chunks(per_round).enumerate().take(seen) {
            let Some([tile_row, tile_column]) = shape.tile_of(problem, run.sms, 0, index / rounds(run)) else { break };
            let column = (index % rounds(run)) as u32 * BLK_K;
            let mut boxes: Vec<(Matrix, u32)> = (0..shape.consumers)
                .map(|consumer| (Matrix::A, tile_row * shape.tile[0] + consumer * shape.ctas * ROWS + cta * ROWS))
                .collect();
            boxes.push((Matrix::B, tile_column * shape.tile[1] + cta * ROWS));
            for (event, copy) in round {
                let matrix = copy.buffer.and_then(|buffer| launch::BUFFERS.get(buffer)).copied();
                let at = copy.coordinates.as_slice();
                let found = boxes
                    .iter()
                    .position(|(wanted, row)| Some(*wanted) == matrix && at == [column as i32, *row as i32]);
                let Some(found) = found else {
                    if round.len() < per_round {
                        return Seen::Cut;
                    }
                    let name = matrix.map_or("what lies outside".to_string(), |matrix| matrix.to_string());
                    let wanted: Vec<String> =
                        boxes.iter().map(|(matrix, row)| format!("{matrix} at column {column}, row {row}")).collect();
                    let title = format!(
                        "round {index} of CTA {cta} loads the box of {name} at column {}, row {}; it needs {}",
                        at.first().copied().unwrap_or(0),
                        at.get(1).copied().unwrap_or(0),
                        wanted.join(" and "),
                    );
                    let explanation = Explanation::new(title, "", "Coordinates are (column, row), both in elements.");
                    return Seen::Wrong(explanation.at(&event.place, "this load"));
                };
                boxes.remove(found);
            }
        }
        if loads.len() < wanted * per_round {
            let title = match loads.len() {
                0 => "TMA is not asked for any tile".to_string(),
                some => format!("CTA {cta} loads {} of the {wanted} rounds that can be seen here", some / per_round),
            };
            let explanation = Explanation::new(title, BYTES, help);
            return match loads.last() {
                Some((event, _)) => missing(run, explanation.at(&event.place, "the last load")),
                None => missing(run, explanation),
            };
        }
    }
    let first = tma_loads(run, shape, 0);
    let Some((event, copy)) = first.first() else { return Seen::Cut };
    let bytes: u32 = first.iter().take(per_round).map(|(_, copy)| copy.bytes).sum::<u32>() * shape.ctas;
    let announced = run.report.trace.iter().find_map(|event| match event.kind {
        EventKind::BarrierArrive { barrier, announced, .. } | EventKind::BarrierExpect { barrier, announced }
            if announced > 0 && copy.barriers.contains(&barrier) =>
        {
            Some((event, announced))
        }
        _ => None,
    });
    match announced {
        Some((_, announced)) if announced == bytes => Seen::Done,
        Some((at, announced)) => {
            let title = format!("{announced} bytes are announced; the loads of a round bring {bytes}");
            let help = "Announce the bytes of all tiles that are loaded on this barrier, in all CTAs that tell it.";
            Seen::Wrong(
                Explanation::new(title, BYTES, help).at(&at.place, "announced here").at(&event.place, "the first load"),
            )
        }
        None => {
            let title = "no bytes are announced to the barrier of the first load";
            Seen::Wrong(Explanation::new(title, BYTES, help).at(&event.place, "the first load"))
        }
    }
}
