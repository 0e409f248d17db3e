//! How warps lay out the tiles that copies store: 16 bytes a lane, of a row each. A copy with the same swizzle finds them in one column of its box.

use super::slices::Tile;
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::memory::resolve::Target;
use crate::order::GRANULE;
use crate::tensor_map::Swizzle;
use smallvec::SmallVec;

const CHUNK: u32 = GRANULE as u32;
/// Lanes that store to as many rows: a swizzle repeats itself after eight.
const LANES: usize = 8;
/// Stores that are remembered of a CTA, and of a statement.
const MOST: usize = 16;
const EACH: usize = 2;

/// A place for each lane.
pub type Places = SmallVec<[u32; 32]>;

/// Where the lanes of a warp stored 16 bytes each.
#[derive(Debug)]
struct Rowwise {
    site: u32,
    places: Places,
}

/// The first stores of the statements of a CTA.
#[derive(Debug, Default)]
pub struct DrawnUp(Vec<Rowwise>);

/// By what rule a warp permuted the chunks of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Swizzle(Swizzle),
    /// The copy's swizzle, as if the tile began where the pattern does.
    Row,
}

impl By {
    pub fn all(tile: &Tile) -> impl Iterator<Item = By> {
        let others =
            [Swizzle::None, Swizzle::B128, Swizzle::B64, Swizzle::B32, Swizzle::B128Atom32, Swizzle::B128Atom64];
        let others = others.into_iter().filter(move |other| *other != tile.swizzle).map(By::Swizzle);
        std::iter::once(By::Row).filter(move |_| tile.swizzle != Swizzle::None).chain(others)
    }

    /// The row and the column of a box that lie at an address.
    fn place(self, tile: &Tile, at: u32) -> (u32, u32) {
        let offset = match self {
            By::Swizzle(swizzle) => swizzle.apply(at).wrapping_sub(tile.start),
            By::Row => tile.swizzle.apply(at - tile.start),
        };
        (offset / tile.pitch, offset % tile.pitch / CHUNK)
    }
}

/// Where in a CTA's shared memory lanes store, if all do.
pub fn places_in(cta: usize, targets: &[(usize, Target)]) -> Option<Places> {
    let place = |target: &(usize, Target)| match target.1 {
        Target::Shared(c, at) if c == cta => Some(at),
        _ => None,
    };
    targets.iter().map(place).collect()
}

/// Whether lanes store 16 bytes each to rows that follow each other, and to one column of a tile as a copy takes it.
pub fn are_rows_of(places: &[u32], tile: &Tile) -> bool {
    in_columns(places, tile, By::Swizzle(tile.swizzle)) == Some(true)
}

/// Lanes side by side that store to as many rows: whether to one column each time. `None`: they store otherwise.
pub fn in_columns(places: &[u32], tile: &Tile, by: By) -> Option<bool> {
    let mut all = true;
    let groups = places.chunks_exact(LANES);
    if groups.len() == 0 || !groups.remainder().is_empty() {
        return None;
    }
    for group in groups {
        let places: SmallVec<[(u32, u32); LANES]> = group.iter().map(|&at| by.place(tile, at)).collect();
        if places.windows(2).any(|two| two[1].0 != two[0].0 + 1) {
            return None;
        }
        all &= places.iter().all(|place| place.1 == places[0].1);
    }
    Some(all)
}

impl DrawnUp {
    /// Lanes of a warp store 16 bytes each to the CTA's shared memory.
    pub fn stored(&mut self, site: u32, cta: usize, targets: &[(usize, Target)]) {
        if self.0.len() == MOST || self.0.iter().filter(|stored| stored.site == site).count() == EACH {
            return;
        }
        if let Some(places) = places_in(cta, targets) {
            self.0.push(Rowwise { site, places });
        }
    }

    /// A store to a tile that goes to columns by another rule than the copy's, and of which it is the store that counts.
    fn otherwise(&self, tile: &Tile, counts: impl Fn(&Rowwise) -> bool) -> Option<(u32, Option<By>)> {
        let inside =
            |stored: &&Rowwise| stored.places.iter().all(|at| (tile.start..tile.start + tile.bytes).contains(at));
        let own = By::Swizzle(tile.swizzle);
        self.0.iter().filter(inside).find_map(|stored| {
            if in_columns(&stored.places, tile, own) != Some(false) || !counts(stored) {
                return None;
            }
            let by = By::all(tile).find(|by| in_columns(&stored.places, tile, *by) == Some(true));
            // Without a swizzle, lanes may take turns so that their banks differ.
            (by.is_some() || tile.swizzle != Swizzle::None).then_some((stored.site, by))
        })
    }
}

impl Cluster<'_> {
    /// A tensor copy stores a box of two dimensions.
    pub fn check_drawn_up(&mut self, cta: usize, tile: &Tile) {
        if tile.rows == 0 || !tile.pitch.is_multiple_of(CHUNK) {
            return;
        }
        let of = &self.ctas[cta];
        // Something else may have been stored there since.
        let last = |at: u32, site: u32| of.shared_shadow.writer(at.into()).is_some_and(|writer| writer.site == site);
        let counts = |stored: &Rowwise| stored.places.iter().all(|&at| last(at, stored.site));
        let Some((store, by)) = of.drawn_up.otherwise(tile, counts) else { return };
        let (at, copy) = (self.shared_name(tile.start), tile.swizzle.called());
        let pattern = 8 * tile.swizzle.span().unwrap_or(CHUNK);
        let (title, help) = match by {
            None => (
                format!("threads store the tile in {at} otherwise than with {copy}, by which the copy takes it"),
                format!("Let threads {}.", tile.swizzle.stored_how()),
            ),
            Some(By::Row) => (
                format!(
                    "a copy stores a tile with {copy} that begins at {:#x}, which is no multiple of {pattern}",
                    tile.start
                ),
                format!(
                    "Let the tile begin at a multiple of {pattern} bytes: .align {pattern} for a variable; in dynamic shared memory, round its address up."
                ),
            ),
            Some(By::Swizzle(swizzle)) => (
                format!("threads store the tile in {at} with {}, the copy takes it with {copy}", swizzle.called()),
                match swizzle {
                    Swizzle::None => {
                        format!("Let threads {}; or give the tensor map no swizzle.", tile.swizzle.stored_how())
                    }
                    _ => format!("Give the tensor map {}, or store as its own asks for.", swizzle.called()),
                },
            ),
        };
        let straight = match by {
            // What lanes store is of one column of a product: they take no turns.
            Some(By::Swizzle(Swizzle::None)) => self.kernel.loads_of_columns(store).is_some(),
            // And a product whose chunks are permuted in global memory would lie there in one piece.
            Some(By::Swizzle(_)) if tile.swizzle == Swizzle::None => {
                tile.is_beside_others() && self.kernel.stores_of_one_column(store)
            }
            // Nobody takes turns by two swizzles.
            Some(By::Row | By::Swizzle(_)) => true,
            None => false,
        };
        // One store may be for several copies.
        let mut diagnostic = self.problem(
            "swizzle-mismatch",
            store,
            title,
            match straight {
                true => "A copy with a swizzle takes the 16-byte chunks of a row from where the swizzle puts them, by bits of their addresses (PTX ISA 5.5.7, \
                         swizzling modes). Lanes that store 16 bytes of a row each mean them for one column: here the copy finds them in several.",
                false => "A copy with a swizzle takes the 16-byte chunks of a row from where the swizzle puts them, by bits of their addresses (PTX ISA 5.5.7, \
                          swizzling modes). Lanes that store 16 bytes of a row each mean them for one column, as a rule: here the copy finds them in several. Where lanes take turns, each with another column at a time, nothing is wrong.",
            },
            help,
        );
        diagnostic.severity = if straight { Severity::Finding } else { Severity::Note };
        diagnostic.labels[0].text = "threads store rows of the tile here".into();
        diagnostic.labels.push(self.label(tile.site, format!("taken from there with {copy}")));
        self.findings.add(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tma::bounding_box::Rows;

    fn tile(start: u32, swizzle: Swizzle) -> Tile {
        let rows = Rows { linear: 0, bytes: 128, pitch: 128, count: 32, inside: None };
        Tile::new(start, 4096, swizzle, 7, &[rows], true)
    }

    /// Lane r stores chunk c of row r, permuted by bits of `r + first`.
    fn stored(start: u32, c: u32, swizzled: bool, first: u32) -> DrawnUp {
        let place = |r: u32| start + r * 128 + (c ^ if swizzled { (r + first) % 8 } else { 0 }) * 16;
        let targets: Vec<_> = (0..32).map(|r| (r as usize, Target::Shared(0, place(r)))).collect();
        let mut drawn_up = DrawnUp::default();
        drawn_up.stored(9, 0, &targets);
        drawn_up
    }

    #[test]
    fn rows_are_found_by_the_rule_they_were_stored_by() {
        let by = |drawn_up: DrawnUp, tile| drawn_up.otherwise(&tile, |_| true).map(|found| found.1.unwrap());
        for c in 0..8 {
            assert_eq!(by(stored(1024, c, true, 0), tile(1024, Swizzle::B128)), None);
            assert_eq!(by(stored(1024, c, false, 0), tile(1024, Swizzle::None)), None);
            assert_eq!(by(stored(1024, c, false, 0), tile(1024, Swizzle::B128)), Some(By::Swizzle(Swizzle::None)));
            assert_eq!(by(stored(1024, c, true, 0), tile(1024, Swizzle::None)), Some(By::Swizzle(Swizzle::B128)));
            assert_eq!(by(stored(1152, c, true, 0), tile(1152, Swizzle::B128)), Some(By::Row));
            assert_eq!(by(stored(1152, c, true, 1), tile(1152, Swizzle::B128)), None, "by address");
        }
    }

    #[test]
    fn rows_that_are_permuted_by_no_swizzle_lie_otherwise() {
        let places = (0..32).map(|r| (r as usize, Target::Shared(0, 1024 + r * 128 + (r & 6) * 16)));
        let mut drawn_up = DrawnUp::default();
        drawn_up.stored(9, 0, &places.collect::<Vec<_>>());
        assert_eq!(drawn_up.otherwise(&tile(1024, Swizzle::B128), |_| true), Some((9, None)));
        assert_eq!(drawn_up.otherwise(&tile(1024, Swizzle::None), |_| true), None, "they may take turns");
    }

    #[test]
    fn other_stores_say_nothing() {
        let lanes = |place: fn(u32) -> u32| {
            let targets: Vec<_> = (0..32).map(|lane| (lane as usize, Target::Shared(0, 1024 + place(lane)))).collect();
            let mut drawn_up = DrawnUp::default();
            drawn_up.stored(9, 0, &targets);
            drawn_up
        };
        let tile = tile(1024, Swizzle::B128);
        assert_eq!(lanes(|lane| lane * 16).otherwise(&tile, |_| true), None, "a row by eight lanes");
        assert_eq!(lanes(|lane| lane / 2 * 128 + lane % 2 * 16).otherwise(&tile, |_| true), None, "a row by two");
    }
}
