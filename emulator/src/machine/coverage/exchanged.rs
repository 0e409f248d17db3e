//! Boxes of one product that copies store in each other's places: the columns of an accumulator lie in D in another order, box by box.

use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The rows of D that a CTA stores a product to: the CTA, the last MMA of the product in its queue, where D lies, and the first row.
pub type Rows = (usize, u32, (u64, i64), i64);

/// A box of them: the column of D from which on it is stored, that of the accumulator, how many, and who stores and multiplies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub at: i64,
    pub column: u32,
    pub columns: u32,
    pub copy: u32,
    pub mma: u32,
}

/// So many products are remembered of a cluster.
const MOST: usize = 256;

#[derive(Debug, Default)]
pub struct Pieces(FxHashMap<Rows, SmallVec<[Piece; 8]>>);

/// A box that lies where another one belongs: from which column of D on, its first column of the product, and the one that belongs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchanged {
    piece: Piece,
    has: u32,
    belongs: u32,
}

impl Pieces {
    pub fn add(&mut self, rows: Rows, piece: Piece) {
        if self.0.len() >= MOST && !self.0.contains_key(&rows) {
            return;
        }
        let pieces = self.0.entry(rows).or_default();
        if !pieces.contains(&piece) {
            pieces.push(piece);
        }
    }

    /// A product whose boxes lie side by side in D, and side by side in the accumulator, and not in the same order.
    pub fn exchanged(&self) -> Option<Exchanged> {
        self.0.values().filter_map(|pieces| of(pieces)).min_by_key(|found| (found.piece.copy, found.piece.at))
    }
}

fn of(pieces: &[Piece]) -> Option<Exchanged> {
    let at = |piece: &Piece| piece.at;
    let (first, low) = (pieces.iter().map(at).min()?, pieces.iter().map(|piece| piece.column).min()?);
    let there = |piece: &Piece| piece.at - first;
    let here = |piece: &Piece| i64::from(piece.column - low);
    let sorted = |offset: &dyn Fn(&Piece) -> i64| {
        let mut offsets: SmallVec<[i64; 8]> = pieces.iter().map(offset).collect();
        offsets.sort_unstable();
        offsets
    };
    if sorted(&there) != sorted(&here) {
        return None;
    }
    let off = pieces.iter().filter(|piece| there(piece) != here(piece)).min_by_key(|piece| piece.at)?;
    Some(Exchanged { piece: *off, has: off.column - low, belongs: there(off) as u32 })
}

impl Exchanged {
    pub fn said(&self, label: impl Fn(u32, String) -> Label) -> Diagnostic {
        let Exchanged { piece: Piece { at, columns, copy, mma, .. }, has, belongs } = *self;
        let end = has + columns - 1;
        Diagnostic {
            code: "box-mismatch",
            severity: Severity::Note,
            title: format!(
                "columns {has} to {end} of a product are stored from column {at} of D on, where its columns {belongs} to {} belong, and those lie elsewhere",
                belongs + columns - 1
            ),
            labels: vec![
                label(copy, format!("columns {has} to {end} of the product are stored here")).that_means(Meaning::BelongsElsewhere),
                label(mma, "multiplied here".into()),
            ],
            rule: "The columns of an accumulator are those of D, in the order of the rows of B (PTX ISA 9.7.16.10.5). Where D is to have them in another order, \
                   this is as it should be."
                .into(),
            help: "Let the column that a box is stored to, and the columns of tensor memory that are loaded for it, go by the same number.".into(),
            count: 1,
            confirmed: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pieces: &[(i64, u32)]) -> Option<(i64, u32, u32)> {
        let piece = |&(at, column)| Piece { at, column, columns: 32, copy: 1, mma: 2 };
        of(&pieces.iter().map(piece).collect::<Vec<_>>()).map(|found| (found.piece.at, found.has, found.belongs))
    }

    #[test]
    fn boxes_lie_in_the_order_of_their_columns() {
        assert_eq!(found(&[(256, 64), (288, 96)]), None);
        assert_eq!(found(&[(288, 96), (256, 64)]), None, "in whatever order they are stored");
        assert_eq!(found(&[(256, 96), (288, 64)]), Some((256, 32, 0)));
        assert_eq!(found(&[(0, 64), (128, 32), (32, 0)]), None, "not side by side");
        assert_eq!(found(&[(0, 64)]), None);
    }
}
