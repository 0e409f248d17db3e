//! Where tiles of a product are stored: D has as many rows as A's tensor and as many columns as B's, and then each row of A belongs to one row of D, each
//! column of B to one column. Tiles that are stored otherwise were computed by the coordinates of one tile and stored by those of another one, or are transposed.
//!
//! [`super::stored`] finds out what is stored where.

use super::chunks::Reordered;
use super::exchanged::{Exchanged, Pieces};
use super::lanes::Changed;
use super::order;
use super::sums::Line;
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};
use crate::machine::layout::drawn_up::Places;
use crate::machine::memory::Global;
use crate::machine::tma::box_origin::Origin;
use crate::program::Kernel;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// The rows of A and the columns of B that a CTA's part of a sum is made of.
#[derive(Clone, Debug)]
pub(super) struct Of {
    pub(super) rows: Line,
    pub(super) columns: SmallVec<[Line; 2]>,
    pub(super) mma: u32,
    /// The row of A that the first lane of the warp has: it is known where each lane has a row of A of its own.
    pub(super) row: Option<i64>,
    /// The last MMA of the sum, in its queue.
    pub(super) epoch: u32,
}

/// Rows of A, out of those of one tile, that are stored in D as others are not.
#[derive(Clone, Debug)]
pub(super) struct Permuted {
    store: u32,
    of: Of,
    /// Where in D they lie, and which rows of A would lie there, by the first rows that were stored.
    at: i64,
    straight: i64,
}

/// What a warp has stored last by a statement: when, where, and what of.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) epoch: u32,
    pub(super) places: Places,
    pub(super) of: Option<Arc<Of>>,
    /// The columns of tensor memory that it stores, if they are one behind the other: the first, and how many.
    pub(super) columns: Option<(u32, u32)>,
}

/// A box that was stored, or rows of a tile that a warp did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) copy: u32,
    pub(super) to: Origin,
    pub(super) of: Of,
    /// Threads store rows of it, each by itself.
    pub(super) by_threads: bool,
}

/// What is known of a cluster, and of all clusters.
#[derive(Debug, Default)]
pub struct Placed {
    /// What a warp has loaded last by a statement, and from which column on.
    pub(super) loaded: FxHashMap<(usize, u32), (Arc<Of>, u32)>,
    /// Chunks of a tile that hold other columns than their place says.
    pub(super) chunks: Option<Reordered>,
    /// Boxes of products, and one that lies where another one belongs.
    pub(super) pieces: Pieces,
    exchanged: Option<Exchanged>,
    pub(super) stored: FxHashMap<(usize, u32), Stored>,
    /// The last product that a warp has stored to global memory by a statement.
    pub(super) direct: FxHashMap<(usize, u32), Arc<Of>>,
    /// How many rows further on in D than in A the first rows of a tile are stored: by the statement, where D lies, and the last MMA.
    pub(super) shifts: FxHashMap<(u32, u64, u32), i64>,
    pub(super) permuted: Option<Permuted>,
    pub(super) seen: Vec<Seen>,
    /// Statements that have stored what is computed from columns of products, for each quarter of the lanes of tensor memory: each stores rows of its own.
    pub(super) stores: FxHashSet<(u32, u32)>,
    /// Lanes that store each other's rows.
    pub(super) lanes: Option<Changed>,
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

    /// Whether two tiles of the same rows of A, or of most of the same, are stored in rows, or those of the same columns of B in columns, that do not belong
    /// together.
    fn parts_from(&self, other: &Seen) -> bool {
        let [one, two] = [self, other];
        let rows = one.of.rows.has_most_of(&two.of.rows) && one.of.rows.has(one.row()) != two.of.rows.has(two.row());
        let same = |columns: &Line| two.of.columns.iter().any(|other| columns.has_most_of(other));
        let columns = one.of.columns.len() == two.of.columns.len()
            && one.of.columns.iter().all(same)
            && one.of.has_column(one.column()) != two.of.has_column(two.column());
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
        self.stores.extend(other.stores);
        self.lanes = self.lanes.map(|own| own.or(other.lanes)).or(other.lanes);
        self.permuted = self.permuted.take().or(other.permuted);
        self.chunks = self.chunks.or(other.chunks);
        self.exchanged = self.exchanged.or(other.pieces.exchanged());
    }

    /// A warp's rows of a product are stored from this row of D on.
    pub(super) fn stored_from(&mut self, store: u32, of: &Of, (address, at): (u64, i64)) {
        let Some(row) = of.row.filter(|_| self.permuted.is_none() && self.shifts.len() < MOST) else { return };
        let first = *self.shifts.entry((store, address, of.epoch)).or_insert(at - row);
        if first != at - row {
            self.permuted = Some(Permuted { store, of: of.clone(), at, straight: at - first });
        }
    }

    /// Whether a warp has stored what it had loaded of a product by this statement.
    pub fn is_of_products(&self, w: usize, site: u32) -> bool {
        self.stored.get(&(w, site)).is_some_and(|stored| stored.of.is_some())
    }

    /// What is said of columns that change places on their way from a load to a store, at the end of a launch in which nothing else was found.
    pub fn judge_columns(&self, kernel: &Kernel, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let fits = !self.seen.is_empty() && self.seen.iter().all(Seen::fits);
        let executed = self.stores.iter().map(|&(_, site)| site).collect();
        order::judge(kernel, &executed, fits, label)
    }

    /// The same of rows that lanes store in each other's places.
    pub fn judge_lanes(&self, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        Some(self.lanes?.said(label))
    }

    /// The same of 16-byte chunks of a tile that a copy stores.
    pub fn judge_chunks(&self, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        Some(self.chunks?.said(label))
    }

    /// The same of whole boxes.
    pub fn judge_boxes(&self, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        Some(self.exchanged?.said(label))
    }

    pub(super) fn note_lanes(&mut self, rows: &[u32], straight: bool, store: u32, copy: Option<u32>) {
        if let Some(changed) = Changed::of(rows, straight, store, copy) {
            self.lanes = Some(changed.or(self.lanes));
        }
    }

    /// What is said of rows that change places within a tile, at the end of a launch in which nothing else was found.
    pub fn judge_rows(&self, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let Permuted { store, of, at, straight } = self.permuted.as_ref()?;
        let row = of.row?;
        Some(Diagnostic {
            code: "box-mismatch",
            severity: Severity::Note,
            title: format!("rows {row} to {} of a product are stored from row {at} of D on, as if they were rows {straight} to {} of A, by those of another warp", row + 31, straight + 31),
            labels: vec![
                label(*store, "stored here".into()),
                label(of.mma, "multiplied here".into()),
                label(of.rows.load, "these rows are loaded here for A, in one box".into()),
            ],
            rule: "A warp reaches the 32 lanes of tensor memory from 32 times its number modulo 4 on, and the lanes of an accumulator are rows of A (PTX ISA 9.7.16.8, \
                   9.7.16.10.5). Where the rows of D are to lie in another order, this is as it should be."
                .into(),
            help: "Let the row that a warp stores to, and the lanes that it loads, go by the same number: that of the warp modulo 4."
                .into(),
            count: 1,
            confirmed: None,
        })
    }

    pub(super) fn add(&mut self, seen: Seen) {
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
        let Of { rows, ref columns, mma, .. } = seen.of;
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
            Wrong::Coordinates if seen.by_threads => (
                ": its row and its column are exchanged",
                "Let threads compute the address from the row and the column of D: the row times the bytes of a row, and the column behind that.",
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
        let what = if seen.by_threads { "parts of tiles" } else { "boxes" };
        let text = format!(
            "stored here, as {off} of {} {what} of this statement elsewhere than their product belongs",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_map::Element;

    /// A tile of 128 rows of A and 128 columns of B, each out of so many, stored from this row and column of D on.
    fn seen([row, rows]: [i64; 2], [column, columns]: [i64; 2], at: [i64; 2], sizes: [u64; 2]) -> Seen {
        let line = |tensor, first, size| Line {
            tensor: (tensor, 0),
            first,
            rows: 128,
            size,
            mn_major: false,
            whole: true,
            load: 0,
        };
        let of = Of {
            rows: line(1, row, rows),
            columns: SmallVec::from_slice(&[line(2, column, columns)]),
            mma: 0,
            row: None,
            epoch: 0,
        };
        let to = Origin {
            element: Element::F16,
            at: [at[1], at[0]],
            sizes: [sizes[1], sizes[0]],
            address: 3,
            plane: 0,
            folded: None,
        };
        Seen { copy: 0, to, of, by_threads: false }
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
