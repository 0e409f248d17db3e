//! Which products are summed.

use super::multiplied::Factors;
use super::{Astray, Stage, astray};
use crate::diagnostics::Explanation;
use std::collections::{HashMap, HashSet};

const SUM: &str = "With enable-input-d (of wgmma: scale-d) an MMA adds to its accumulator, without it begins a new sum (PTX ISA, tcgen05.mma, \
                   wgmma.mma_async).";

/// An MMA that begins anew in the middle of a sum, or goes on with that of another tile.
pub(super) fn find(factors: &[Factors]) -> Option<Astray> {
    let mut order: Vec<&Factors> = factors.iter().collect();
    order.sort_by_key(|factors| factors.mma.event.start);
    // What the accumulators in tensor memory hold; and the tiles that have been begun.
    let mut held: HashMap<(&[u32], u32), (usize, usize)> = HashMap::new();
    let mut begun: HashSet<(usize, usize)> = HashSet::new();
    for Factors { mma, rows, columns, .. } in order {
        let tile = (*rows.first()?, *columns.first()?);
        let wrong = match (mma.accumulate, mma.columns) {
            (true, Some((column, _))) => match held.get(&(mma.ctas, column)) {
                Some(other) if *other != tile => Some(format!(
                    "an MMA for the tile at row {}, column {} adds to that at row {}, column {}",
                    tile.0, tile.1, other.0, other.1
                )),
                _ => None,
            },
            (false, _) if begun.contains(&tile) => {
                Some(format!("an MMA begins the sum of the tile at row {}, column {} anew", tile.0, tile.1))
            }
            _ => None,
        };
        if let Some(title) = wrong {
            let help = "Let only the very first MMA of a tile not accumulate: `(round + slice).gt(0)`.";
            let explanation = Explanation::new(title, SUM, help).at(&mma.event.place, "this MMA");
            return Some(astray(Stage::Sum, explanation));
        }
        begun.insert(tile);
        if let Some((column, _)) = mma.columns {
            held.insert((mma.ctas, column), tile);
        }
    }
    None
}
