//! Where tiles of a product are stored: D has as many rows as A's tensor and as many columns as B's, and then each row of A belongs to one row of D, each
//! column of B to one column. Tiles that are stored otherwise were computed by the coordinates of one tile and stored by those of another one, or are transposed.
//!
//! Of what threads store it is known which sum it is of where it is computed from registers of `tcgen05.ld` alone, and each lane stores 16 bytes of a row.

use super::box_origin::Origin;
use super::cluster::Cluster;
use super::drawn_up::{Places, are_rows_of, places_in};
use super::memory::Global;
use super::resolve::Target;
use super::slices::Tile;
use super::state::ActorKind;
use super::sums::{Line, Sum};
use super::tensor::{Halves, LANES};
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};
use crate::order::GRANULE;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The rows of A and the columns of B that a CTA's part of a sum is made of.
#[derive(Clone, Debug)]
struct Of {
    rows: Line,
    columns: SmallVec<[Line; 2]>,
    mma: u32,
}

/// What a warp has stored last by a statement: when, where, and what of.
#[derive(Debug)]
struct Stored {
    epoch: u32,
    places: Places,
    of: Option<Arc<Of>>,
}

/// A box that was stored.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    copy: u32,
    to: Origin,
    of: Of,
}

/// What is known of a cluster, and of all clusters.
#[derive(Debug, Default)]
pub struct Placed {
    /// What a warp has loaded last by a statement.
    loaded: FxHashMap<(usize, u32), Arc<Of>>,
    stored: FxHashMap<(usize, u32), Stored>,
    seen: Vec<Seen>,
}

/// So many boxes are remembered of a launch.
const MOST: usize = 1024;

/// How tiles of a tensor lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// The row is that of B, the column that of A: the operands are exchanged, or the coordinates of the store, or one of the two.
    Operands,
    Coordinates,
    Exchanged,
    /// One row of A, or one column of B, in two places.
    TwoPlaces,
}

/// The same are the same by whatever statement they were multiplied.
impl PartialEq for Of {
    fn eq(&self, other: &Of) -> bool {
        (self.rows, &self.columns) == (other.rows, &other.columns)
    }
}

impl Of {
    fn has_column(&self, at: i64) -> bool {
        self.columns.iter().any(|line| line.has(at))
    }
}

impl Seen {
    /// Where in D.
    fn row(&self) -> i64 {
        self.to.at[1]
    }

    fn column(&self) -> i64 {
        self.to.at[0]
    }

    fn is_straight(&self) -> bool {
        self.of.rows.has(self.row()) && self.of.has_column(self.column())
    }

    fn is_exchanged(&self) -> bool {
        self.of.has_column(self.row()) && self.of.rows.has(self.column())
    }

    /// Whether D has a row for each of A and a column for each of B.
    fn fits(&self) -> bool {
        let [columns, rows] = self.to.sizes;
        (self.of.rows.size, self.of.columns[0].size) == (rows as i64, columns as i64)
    }

    fn fits_exchanged(&self) -> bool {
        let [columns, rows] = self.to.sizes;
        (self.of.rows.size, self.of.columns[0].size) == (columns as i64, rows as i64)
    }

    fn is_of_one_tensor(&self) -> bool {
        self.of.rows.tensor == self.of.columns[0].tensor
    }

    /// Whether two tiles of the same rows of A are stored in rows, or those of the same columns of B in columns, that do not belong together.
    fn parts_from(&self, other: &Seen) -> bool {
        let [one, two] = [self, other];
        let rows = one.of.rows == two.of.rows && one.of.rows.has(one.row()) != two.of.rows.has(two.row());
        let columns =
            one.of.columns == two.of.columns && one.of.has_column(one.column()) != two.of.has_column(two.column());
        rows || columns
    }
}

/// What is wrong with boxes that one statement stores to one tensor, and the box that shows it.
fn wrong<'a>(boxes: &[&'a Seen]) -> Option<(Wrong, &'a Seen)> {
    let off: Vec<&Seen> = boxes.iter().copied().filter(|seen| !seen.is_straight()).collect();
    let first = *off.first()?;
    let differ = |what: &dyn Fn(&Seen) -> i64| off.iter().any(|seen| what(seen) != what(first));
    let exchanged = boxes.iter().all(|seen| seen.is_exchanged() && seen.fits_exchanged());
    // One row of tiles, or one column, may be of several products whose results lie one behind the other.
    if exchanged && differ(&|seen| seen.of.rows.first) && differ(&|seen| seen.of.columns[0].first) {
        return Some((if first.fits() { Wrong::Exchanged } else { Wrong::Operands }, first));
    }
    let apart = |seen: &&Seen| boxes.iter().any(|other| seen.parts_from(other));
    let fits = boxes.iter().all(|seen| seen.fits());
    let seen = off.iter().copied().find(apart).filter(|_| fits)?;
    let exchanged = off.iter().all(|seen| seen.is_exchanged());
    Some((if exchanged { Wrong::Coordinates } else { Wrong::TwoPlaces }, seen))
}

impl Placed {
    /// Takes over what a cluster has seen.
    pub fn join(&mut self, other: Placed) {
        other.seen.into_iter().for_each(|seen| self.add(seen));
    }

    fn add(&mut self, seen: Seen) {
        if self.seen.len() < MOST && !self.seen.contains(&seen) {
            self.seen.push(seen);
        }
    }

    /// Tiles that are stored elsewhere than they belong, at the end of a launch in which nothing else was found.
    pub fn judge(&self, global: &Global, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let what = |seen: &Seen| (seen.copy, seen.to.address, seen.to.plane, seen.to.sizes);
        let mut looked_at = vec![];
        let (how, seen, boxes) = self.seen.iter().find_map(|first| {
            if looked_at.contains(&what(first)) {
                return None;
            }
            looked_at.push(what(first));
            let boxes: Vec<&Seen> =
                self.seen.iter().filter(|seen| what(seen) == what(first) && !seen.is_of_one_tensor()).collect();
            wrong(&boxes).map(|(how, seen)| (how, seen, boxes))
        })?;
        let Of { rows, ref columns, mma } = seen.of;
        let b = columns[0];
        let product =
            format!("rows {} to {} of A and columns {} to {} of B", rows.first, rows.end() - 1, b.first, b.end() - 1);
        let out_of = |line: &Line| match global.find(line.tensor.0, 1) {
            Some((n, _)) => format!(", out of `{}`", global.buffers[n].name),
            None => String::new(),
        };
        let (row, column) = (seen.row(), seen.column());
        let off = boxes.iter().filter(|seen| !seen.is_straight()).count();
        let (also, help) = match how {
            Wrong::Operands => (
                ": A and B are exchanged",
                "Exchange the two descriptors: A is the first operand of the MMA, whose rows are the lanes of the accumulator, and B the second one.",
            ),
            Wrong::Coordinates => (
                ": its row and its column are exchanged",
                "Exchange the coordinates of the store: the first one is the column of D.",
            ),
            Wrong::Exchanged => (
                ": its row and its column are exchanged",
                "If the copies load A and B to where the descriptors of the MMA take them, exchange the coordinates of the store; else exchange the \
                 descriptors: A is the first operand, whose rows are the lanes of the accumulator.",
            ),
            Wrong::TwoPlaces => (
                ", where that of others belongs",
                "Let who stores a tile find its row and its column of D by the same rule as who loads it: the row is that of A's box, the column that of B's.",
            ),
        };
        let text = format!(
            "stored here, as {off} of {} boxes of this statement elsewhere than their product belongs",
            boxes.len()
        );
        let mut places = [
            label(seen.copy, text).that_means(Meaning::BelongsElsewhere),
            label(mma, format!("multiplied here: {product}")),
        ];
        if how == Wrong::Operands {
            places.reverse();
        }
        let [first, second] = places;
        Some(Diagnostic {
            code: "box-mismatch",
            severity: Severity::Finding,
            title: format!("the product of {product} is stored from row {row}, column {column} of D on{also}"),
            labels: vec![
                first,
                second,
                label(rows.load, format!("these rows are loaded here for A{}", out_of(&rows))),
                label(b.load, format!("these columns are loaded here for B{}", out_of(&b))),
            ],
            rule: "Row i of D is made of row i of A, column j of column j of B (PTX ISA, tcgen05.mma): a tile of D begins in the row in which its tile of A \
                   begins, and in the column in which that of B does. D has as many rows as one tensor here, and as many columns as the other one."
                .into(),
            help: help.into(),
            count: 1,
            confirmed: None,
        })
    }
}

impl Cluster<'_> {
    /// A warp loads an accumulator from tensor memory.
    pub fn note_load_of_sums(&mut self, w: usize, site: u32, (halves, column): (Halves, u32)) {
        let cta = self.warps[w].cta;
        let of = self.issued.last_of(cta, halves, column, 1).and_then(|mma| {
            // Where both CTAs of a pair hold the same half of an operand, that is told.
            let halves = |sum: &&Sum| sum.of.iter().all(|lines| lines.len() < 2 || lines[0] != lines[1]);
            let sum = self.sums.held(mma.ctas.0, mma.d.0).filter(halves)?;
            let rows = *sum.of[0].get(cta.checked_sub(mma.ctas.0)?)?;
            Some(Arc::new(Of { rows, columns: sum.of[1].clone(), mma: sum.mma }))
        });
        match of {
            Some(of) => self.placed.loaded.insert((w, site), of),
            None => self.placed.loaded.remove(&(w, site)),
        };
    }

    /// A warp stores 16 bytes a lane.
    pub fn note_store_of_sums(&mut self, w: usize, site: u32, targets: &[(usize, Target)]) {
        if self.placed.loaded.is_empty() {
            return;
        }
        let Some(loads) = self.kernel.loads_of_columns(site) else { return };
        let Some(places) = places_in(self.warps[w].cta, targets) else { return };
        let mut all = loads.iter().map(|load| self.placed.loaded.get(&(w, *load)));
        let first = all.next().flatten();
        let of = first.filter(|_| all.all(|of| of == first)).cloned();
        self.placed.stored.insert((w, site), Stored { epoch: self.warps[w].epoch, places, of });
    }

    /// A tensor copy stores a box of two dimensions.
    pub fn note_place_of_sums(&mut self, cta: usize, tile: &Tile) {
        let Some(to) = tile.origin.filter(|_| tile.rows > 0 && !self.placed.stored.is_empty()) else { return };
        let chunk = GRANULE as u32;
        let mut found: Option<&Arc<Of>> = None;
        // Each warp has 32 lanes of the accumulator.
        for row in (0..tile.rows).step_by(LANES as usize / 4) {
            for column in 0..tile.pitch / chunk {
                let at = tile.swizzle.apply(tile.start + row * tile.pitch + column * chunk);
                let Some(writer) = self.ctas[cta].shared_shadow.writer(at.into()) else { return };
                let Some(ActorKind::Warp(w)) = self.kind(writer) else { return };
                let stored = self.placed.stored.get(&(w as usize, writer.site));
                // By the same statement since then it may have stored something else.
                let Some(stored) = stored.filter(|stored| stored.epoch == writer.epoch) else { continue };
                let Some(of) = stored.of.as_ref().filter(|_| are_rows_of(&stored.places, tile)) else { return };
                match found {
                    Some(other) if other != of => return,
                    _ => found = Some(of),
                }
            }
        }
        let Some(of) = found.map(|of| Of::clone(of)) else { return };
        self.placed.add(Seen { copy: tile.site, to, of });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_map::Element;

    /// A tile of 128 rows of A and 128 columns of B, each out of so many, stored from this row and column of D on.
    fn seen([row, rows]: [i64; 2], [column, columns]: [i64; 2], at: [i64; 2], sizes: [u64; 2]) -> Seen {
        let line = |tensor, first, size| Line { tensor: (tensor, 0), first, rows: 128, size, mn_major: false, load: 0 };
        let of = Of { rows: line(1, row, rows), columns: SmallVec::from_slice(&[line(2, column, columns)]), mma: 0 };
        let to = Origin {
            element: Element::F16,
            at: [at[1], at[0]],
            sizes: [sizes[1], sizes[0]],
            address: 3,
            plane: 0,
            folded: None,
        };
        Seen { copy: 0, to, of }
    }

    fn how(all: &[Seen]) -> Option<Wrong> {
        wrong(&all.iter().collect::<Vec<_>>()).map(|(how, _)| how)
    }

    /// Of two by two tiles, where they are stored.
    fn square(at: impl Fn(i64, i64) -> [i64; 2]) -> Vec<Seen> {
        let tiles = [(0, 0), (0, 128), (128, 0), (128, 128)];
        tiles.map(|(i, j)| seen([i, 256], [j, 256], at(i, j), [256; 2])).to_vec()
    }

    #[test]
    fn a_product_whose_rows_or_columns_are_permuted_is_one() {
        assert_eq!(how(&square(|i, j| [i, j])), None);
        assert_eq!(how(&square(|i, j| [128 - i, 128 - j])), None);
        assert_eq!(how(&square(|i, j| [i, 128 - j])), None);
        assert_eq!(how(&square(|i, j| [j, i])), Some(Wrong::Exchanged));
        assert_eq!(how(&square(|i, j| [i, j ^ i])), Some(Wrong::TwoPlaces));
    }

    /// Four heads: A is multiplied with each part of B, and the results lie one below the other.
    #[test]
    fn results_of_several_heads_may_lie_one_below_the_other() {
        let heads = (0..4).map(|head| seen([0, 128], [128 * head, 512], [128 * head, 0], [512, 128]));
        assert_eq!(how(&heads.collect::<Vec<_>>()), None);
        let two = [(0, 0), (0, 128), (128, 0), (128, 128)].into_iter().flat_map(|(i, j)| {
            (0..2).map(move |head| seen([i, 256], [256 * head + j, 512], [256 * head + i, j], [512, 256]))
        });
        assert_eq!(how(&two.collect::<Vec<_>>()), None);
    }
}
