//! Tiles of A and B in shared memory: copied by threads, or asked of TMA.

use super::super::{
    BLK_K, Seen, Shape, step01,
    tile::{self, Tile},
};
use super::{ROWS, Rounds, barrier_name, missing, rounds};
use crate::diagnostics::Explanation;
use crate::launch;
use crate::observe::Observation;
use crate::source::Matrix;
use emulator::{Barrier, Copy, CopyKind, Event, EventKind};

const BYTES: &str = "A phase of an mbarrier is complete when all arrivals have come, and all bytes that were announced: no \
                     more and no less (PTX ISA 9.7.13.15.5).";
const LEADERS: &str = "A thread can wait for an mbarrier of its own CTA only; the loads of a pair may tell one of either CTA \
                       (PTX ISA 9.7.13.15.16; cp.async.bulk.tensor, .cta_group::2).";

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

/// All loads of the first tile are issued; what is wrong with those of the first rounds is another TODO's.
pub(in crate::steps) fn loads_go_on(run: &Observation, shape: &Shape) -> Seen {
    match loads(run, shape, Rounds::All) {
        Seen::Wrong(_) if run.report.completed => Seen::NotReached("the loads come first".to_string()),
        seen => seen,
    }
}

/// TMA loads: in each round the right boxes of A and B, on one barrier that was told of their bytes.
pub(in crate::steps) fn loads(run: &Observation, shape: &Shape, wanted: Rounds) -> Seen {
    let (problem, per_round) = (&run.inputs.problem, shape.consumers as usize + 1);
    let help = "Announce the bytes of all tiles of the round (`t.expect_tx`), then ask TMA for them (`t.tma_load`).";
    for cta in 0..shape.ctas {
        let loads = tma_loads(run, shape, cta);
        // What a kernel without the rest of the loop does after these rounds says nothing. A role has its loop to itself, and with one
        // stage all loads stand in one place.
        let all = wanted == Rounds::All || shape.specialised || shape.depth == 1;
        let seen = if all { usize::MAX } else { wanted.count(run, shape) };
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
                    let of_it = boxes.iter().find(|(wanted, _)| Some(*wanted) == matrix).map(|(_, row)| [column, *row]);
                    let explanation = Explanation::new(title, "", where_to_look(at, of_it, shape.ctas));
                    return Seen::Wrong(explanation.at(&event.place, "this load"));
                };
                boxes.remove(found);
                if let Some(wrong) = told_elsewhere(run, event, copy, cta) {
                    return Seen::Wrong(wrong);
                }
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
    announced(run, shape, event, copy, bytes)
}

/// What to look at in a load of another box than `wanted`, the one of the same matrix that is still to come.
fn where_to_look(at: &[i32], wanted: Option<[u32; 2]>, ctas: u32) -> &'static str {
    let Some(wanted) = wanted else { return "Load each box of the round once." };
    let [column, row] = wanted.map(|coordinate| coordinate as i32);
    match *at {
        [first, second] if [second, first] == [column, row] => "Coordinates are (column, row), both in elements.",
        [_, second] if second == row => {
            "Look at the first coordinate, the column in elements: it goes on by a tile's columns in each round."
        }
        [first, _] if first == column && ctas > 1 => {
            "Look at the second coordinate, the row: the tile of D says where the pair's rows begin, and the rank which of them this CTA loads."
        }
        [first, _] if first == column => {
            "Look at the second coordinate, the row in elements: the tile of D says where it begins."
        }
        _ => "Look at both coordinates, in elements: the round says which column, the tile of D which row.",
    }
}

/// A pair's loads all tell the leader's barrier: only there does somebody wait.
fn told_elsewhere(run: &Observation, event: &Event, copy: &Copy, cta: u32) -> Option<Explanation> {
    let barrier = copy.barriers.iter().find(|barrier| barrier.cta != 0)?;
    let name = barrier_name(run, *barrier);
    let title =
        format!("a load of CTA {cta} tells {name} of CTA {}; the MMAs' thread waits at that of CTA 0", barrier.cta);
    let help = "Let the loads of both CTAs tell the leader's barrier: `tma2mma.at(s).of_cta(LEADER)`.";
    Some(Explanation::new(title, LEADERS, help).at(&event.place, "this load"))
}

/// The bytes of the first round are announced to the barrier of its loads, all of them, and nowhere else.
fn announced(run: &Observation, shape: &Shape, event: &Event, copy: &Copy, bytes: u32) -> Seen {
    let told = |barrier: &Barrier| copy.barriers.contains(barrier);
    let announcements = || {
        run.report.trace.iter().filter_map(|event| match event.kind {
            EventKind::BarrierArrive { barrier, announced, phase, .. } if announced > 0 => {
                Some((event, barrier, announced, Some(phase)))
            }
            EventKind::BarrierExpect { barrier, announced } => Some((event, barrier, announced, None)),
            _ => None,
        })
    };
    // In a pair somebody else may announce where nobody waits.
    let twin = |barrier: &Barrier| {
        barrier.cta != 0 && barrier.cta < shape.ctas && copy.barriers.iter().any(|told| told.offset == barrier.offset)
    };
    if let Some((at, barrier, ..)) = announcements().find(|(_, barrier, ..)| twin(barrier)) {
        let (name, cta) = (barrier_name(run, barrier), barrier.cta);
        let title = format!(
            "bytes are announced to {name} of CTA {cta}, where nobody waits; the leader's counts those of both"
        );
        let help = "Let the leader announce alone, the bytes of both CTAs: `t.when(rank.eq(LEADER), |t| …)`.";
        return Seen::Wrong(
            Explanation::new(title, LEADERS, help).at(&at.place, "announced here").at(&event.place, "the first load"),
        );
    }
    let first: Vec<_> = announcements().filter(|(_, barrier, ..)| told(barrier)).collect();
    // Announced with the arrival, or by itself before it.
    let arrived = first.iter().find(|(.., phase)| *phase == Some(0)).map(|(at, ..)| at.start);
    let of_phase = |at: &Event, phase: Option<u64>| match phase {
        Some(phase) => phase == 0,
        None => arrived.is_none_or(|arrived| at.start <= arrived),
    };
    let sum: u32 = first.iter().filter(|(at, .., phase)| of_phase(at, *phase)).map(|(_, _, bytes, _)| *bytes).sum();
    match first.first() {
        Some(_) if sum == bytes => Seen::Done,
        Some((at, ..)) => {
            let title = format!("{sum} bytes are announced; the loads of a round bring {bytes}");
            let help = "Announce the bytes of all tiles that are loaded on this barrier, in all CTAs that tell it.";
            Seen::Wrong(
                Explanation::new(title, BYTES, help).at(&at.place, "announced here").at(&event.place, "the first load"),
            )
        }
        None => {
            let help =
                "Announce the bytes of all tiles of the round (`t.expect_tx`), then ask TMA for them (`t.tma_load`).";
            let title = "no bytes are announced to the barrier of the first load";
            Seen::Wrong(Explanation::new(title, BYTES, help).at(&event.place, "the first load"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::where_to_look;

    /// That coordinates are exchanged is said of those that are, and of no others.
    #[test]
    fn what_to_look_at_is_the_coordinate_that_is_wrong() {
        let exchanged = "Coordinates are (column, row)";
        for (at, wanted, ctas, begins) in [
            ([128, 64], Some([64, 128]), 1, exchanged),
            ([128, 0], Some([64, 0]), 1, "Look at the first coordinate"),
            ([64, 0], Some([64, 128]), 1, "Look at the second coordinate, the row in elements"),
            (
                [64, 0],
                Some([64, 128]),
                2,
                "Look at the second coordinate, the row: the tile of D says where the pair's",
            ),
            ([0, 0], Some([64, 128]), 1, "Look at both"),
            ([0, 0], None, 2, "Load each box"),
        ] {
            let said = where_to_look(&at, wanted, ctas);
            assert!(said.starts_with(begins), "{at:?} for {wanted:?}: {said}");
        }
    }
}
