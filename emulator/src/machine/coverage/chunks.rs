//! The 16-byte chunks of a tile that a copy stores, by the columns of a product that threads have stored to them: in the order of the columns, or in another one, as
//! where the index of a chunk goes into the wrong place of a swizzle.

use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};
use smallvec::SmallVec;

/// The chunks of a row, by their places: who stored them, and the columns that they hold, the first and how many.
pub type Order = SmallVec<[(u32, Option<(u32, u32)>); 8]>;

/// A row whose chunks hold the columns from a first one on, in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordered {
    store: u32,
    copy: u32,
    place: usize,
    /// The columns of that place, counted from the first of the row, and those that belong there.
    has: u32,
    belongs: u32,
    count: u32,
}

impl Reordered {
    pub fn of(order: &[(u32, Option<(u32, u32)>)], copy: u32) -> Option<Reordered> {
        let (_, count) = order.first()?.1?;
        let firsts: SmallVec<[u32; 8]> = order
            .iter()
            .map(|chunk| chunk.1.filter(|held| held.1 == count).map(|held| held.0))
            .collect::<Option<_>>()?;
        let low = *firsts.iter().min()?;
        let mut sorted = firsts.clone();
        sorted.sort_unstable();
        let belongs = |place: usize| low + place as u32 * count;
        if !sorted.iter().enumerate().all(|(place, &first)| first == belongs(place)) {
            return None;
        }
        let place = (0..firsts.len()).find(|&place| firsts[place] != belongs(place))?;
        let (has, belongs) = (firsts[place] - low, belongs(place) - low);
        Some(Reordered { store: order[place].0, copy, place, has, belongs, count })
    }

    pub fn said(&self, label: impl Fn(u32, String) -> Label) -> Diagnostic {
        let Reordered { store, copy, place, has, belongs, count } = *self;
        let text = format!("columns {has} to {} go to chunk {place} here", has + count - 1);
        Diagnostic {
            code: "box-mismatch",
            severity: Severity::Note,
            title: format!(
                "chunk {place} of the rows of a tile has columns {has} to {} of a product, and columns {belongs} to {} lie elsewhere in the row",
                has + count - 1,
                belongs + count - 1
            ),
            labels: vec![
                label(store, text).that_means(Meaning::BelongsElsewhere),
                label(copy, "the tile is stored from there, with the swizzle of its tensor map".into()),
            ],
            rule: "A copy takes the 16-byte chunks of a row from where its swizzle puts them (PTX ISA 5.5.7, swizzling modes); tcgen05.ld brings the columns of a row in \
                   the order of its registers (PTX ISA 9.7.16.8). Where the columns of D are to lie in another order, this is as it should be."
                .into(),
            help: "Let chunk c of each row hold the columns from c times those of a chunk on: what is exchanged with the bits of the row is the place of chunk c, and not its \
                   number."
                .into(),
            count: 1,
            confirmed: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_lie_in_the_order_of_their_columns() {
        let of = |firsts: &[u32]| {
            let order: Order = firsts.iter().map(|&first| (1, Some((first, 8)))).collect();
            Reordered::of(&order, 2).map(|told| (told.place, told.has, told.belongs))
        };
        assert_eq!(of(&[64, 72, 80, 88]), None);
        assert_eq!(of(&[72, 64, 88, 80]), Some((0, 8, 0)));
        assert_eq!(of(&[64, 80, 72, 88]), Some((1, 16, 8)));
        assert_eq!(of(&[64, 64, 72, 80]), None, "columns that lie twice");
        assert_eq!(of(&[64, 96, 72, 104]), None, "parts of other tiles between");
        assert_eq!(Reordered::of(&[(1, Some((0, 8))), (1, None)], 2), None);
    }
}
