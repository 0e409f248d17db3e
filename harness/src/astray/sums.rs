//! Which products are summed.

use super::multiplied::Factors;
use super::{Astray, DEPTH, Stage, astray, box_of, boxes, rounds, source};
use crate::diagnostics::Explanation;
use crate::launch;
use crate::observe::Observation;
use crate::source::Matrix;
use emulator::{Copy, CopyKind, Event};
use std::collections::{BTreeSet, HashMap};

const SUM: &str = "With enable-input-d (of wgmma: scale-d) an MMA adds to its accumulator, without it begins a new sum (PTX ISA, tcgen05.mma, \
                   wgmma.mma_async).";

/// A tile of D, by its first row and column.
type Tile = (usize, usize);

/// What has been multiplied of a tile: at which columns, and by which MMA last.
#[derive(Default)]
struct Begun<'a> {
    depths: BTreeSet<usize>,
    last: Option<&'a Event>,
}

/// An MMA that begins anew in the middle of a sum, or goes on with that of another tile.
pub(super) fn find(run: &Observation, factors: &[Factors]) -> Option<Astray> {
    let mut order: Vec<&Factors> = factors.iter().collect();
    order.sort_by_key(|factors| factors.mma.event.start);
    // What the accumulators in tensor memory hold; and the tiles that have been begun.
    let mut held: HashMap<(&[u32], u32), Tile> = HashMap::new();
    let mut begun: HashMap<Tile, Begun> = HashMap::new();
    for of_mma @ Factors { mma, rows, columns, depth } in order {
        let tile = (*rows.first()?, *columns.first()?);
        let wrong = match (mma.accumulate, mma.columns) {
            (true, Some((column, _))) => match held.get(&(mma.ctas, column)) {
                Some(other) if *other != tile => Some((
                    format!(
                        "an MMA for the tile at row {}, column {} adds to that at row {}, column {}",
                        tile.0, tile.1, other.0, other.1
                    ),
                    *other,
                )),
                _ => None,
            },
            (false, _) if begun.contains_key(&tile) => {
                let title = format!("an MMA begins the sum of the tile at row {}, column {} anew", tile.0, tile.1);
                Some((title, tile))
            }
            _ => None,
        };
        if let Some((title, of)) = wrong {
            return Some(tell(run, title, of_mma, (of, of == tile), &begun.remove(&of).unwrap_or_default()));
        }
        let of_tile = begun.entry(tile).or_default();
        of_tile.depths.insert(*depth);
        of_tile.last = Some(mma.event);
        if let Some((column, _)) = mma.columns {
            held.insert((mma.ctas, column), tile);
        }
    }
    None
}

/// What is told of such an MMA: where rounds are at fault, which loop; else, that it accumulates or does not.
fn tell(run: &Observation, title: String, of: &Factors, (tile, same): (Tile, bool), begun: &Begun) -> Astray {
    let event = of.mma.event;
    let missing = (0..run.inputs.problem.k as usize).step_by(DEPTH).find(|depth| !begun.depths.contains(depth));
    let left = begun.last.and_then(|last| rounds::left(run, event, last.issued..=event.issued));
    let ahead = format!("columns {} and on", missing.unwrap_or_default());
    let explain = |help: &str| Explanation::new(title.clone(), SUM, help).at(&event.place, "this MMA");
    let explanation = match (missing, left) {
        // It went on to the next tile by itself.
        (None, Some(false)) if !same => {
            let explanation = explain("Let this loop end when all of K is multiplied.");
            rounds::inner(run, explanation, &event.place, "this loop goes on here, with all columns of that tile multiplied")
        }
        (Some(_), Some(true)) if same && of.depth > 0 => {
            let explanation = explain("Let this loop go on until all of K is multiplied.");
            rounds::inner(run, explanation, &event.place, &format!("this loop ends here, with {ahead} to come"))
        }
        (Some(missing), Some(false)) if !same => match (skipped(run, event, tile.0, missing), source(run, event, of.mma.operands[0])) {
            (Some((load, copy)), _) => explain("Let the MMAs take the stages in the order in which the loads fill them: both go through a ring of the same depth.")
                .at(&load.place, format!("{} is loaded here before, which no MMA takes", box_of(copy))),
            (None, Some(load)) => {
                let explanation = explain("Let the loads bring all columns of a tile before those of the next one.");
                let explanation = explanation.at(&load.place, "A of it is loaded here");
                rounds::inner(run, explanation, &load.place, &format!("this loop ends here, with {ahead} to come"))
            }
            (None, None) => explain(FIRST),
        },
        _ => explain(FIRST),
    };
    astray(Stage::Sum, explanation)
}

/// The load of columns of A that an MMA should have taken before this one, and did not.
fn skipped<'a>(run: &'a Observation, mma: &Event, row: usize, column: usize) -> Option<(&'a Event, &'a Copy)> {
    let holds = |from: i32, extent: u32, at: usize| {
        let (from, at) = (i64::from(from), at as i64);
        (from..from + i64::from(extent)).contains(&at)
    };
    boxes(run, CopyKind::Load).find(|(event, copy)| {
        let of_a = copy.buffer == Some(launch::buffer(Matrix::A)) && event.end <= mma.start;
        of_a && holds(copy.coordinates[0], copy.extents[0], column) && holds(copy.coordinates[1], copy.extents[1], row)
    })
}

const FIRST: &str = "Let only the very first MMA of a tile not accumulate: `(round + slice).gt(0)`.";
