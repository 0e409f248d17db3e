//! Lanes that store the rows of a product, one each, in another order than their own.
//!
//! Lane n of a warp holds row n of the 32 that the warp reaches (PTX ISA 9.7.16.2.3.1, `.32x32b`). Rows may be meant for other places, where a layout takes rows of
//! several heads together; that permutes bits of their numbers. Two rows that change places, and pairs that do, are no such layout.

use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};
use crate::machine::memory::resolve::Target;
use crate::machine::tensor_memory::LANES;
use smallvec::SmallVec;

/// Lanes of a warp.
const WARP: usize = LANES as usize / 4;

/// Where the lanes of a warp store their rows: by number, of as many rows that follow each other.
pub type Rows = SmallVec<[u32; WARP]>;

/// How rows change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Most do not.
    Few,
    /// Row n lies where row n xor this belongs.
    Pairs,
}

/// Rows that change places: by which store, and which copy takes them from there.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    how: How,
    store: u32,
    copy: Option<u32>,
    lane: usize,
    row: u32,
    count: usize,
}

/// Rows one behind the other in memory, of lanes that store to these places.
pub fn rows_of(targets: &[(usize, Target)]) -> Option<Rows> {
    let whose = |target: &Target| match *target {
        Target::Global { buffer, .. } => Some(buffer),
        _ => None,
    };
    let first = whose(&targets.first()?.1)?;
    let offsets: SmallVec<[u64; WARP]> = targets
        .iter()
        .map(|(_, target)| (whose(target) == Some(first)).then(|| target.offset()))
        .collect::<Option<_>>()?;
    let mut sorted = offsets.clone();
    sorted.sort_unstable();
    let (low, pitch) = (*sorted.first()?, sorted.get(1)?.checked_sub(sorted[0]).filter(|&pitch| pitch > 0)?);
    let even = sorted.windows(2).all(|two| two[1] - two[0] == pitch);
    even.then(|| offsets.iter().map(|at| ((at - low) / pitch) as u32).collect())
}

impl Changed {
    /// Of rows that this statement stores; `straight`: the rows of A are known to lie one behind the other in its tile, so that who exchanges pairs here does not
    /// put them back.
    pub fn of(rows: &[u32], straight: bool, store: u32, copy: Option<u32>) -> Option<Changed> {
        let low = *rows.iter().min()?;
        let row = |lane: usize| (rows[lane] - low) as usize;
        let mut seen = [false; WARP];
        // At the edge of a matrix only some lanes store.
        let permuted = rows.len() == WARP
            && (0..WARP).all(|lane| row(lane) < WARP && !std::mem::replace(&mut seen[row(lane)], true));
        if !permuted {
            return None;
        }
        let off = || (0..WARP).filter(|&lane| row(lane) != lane);
        let lane = off().next()?;
        let how = match off().count() {
            count if 2 * count < WARP => How::Few,
            _ if straight && (0..WARP).all(|lane| row(lane) ^ lane == row(0)) => How::Pairs,
            _ => return None,
        };
        Some(Changed { how, store, copy, lane, row: row(lane) as u32, count: off().count() })
    }

    pub fn said(&self, label: impl Fn(u32, String) -> Label) -> Diagnostic {
        let Changed { how, store, copy, lane, row, count } = *self;
        let rule = match how {
            How::Few => {
                "Lane n of a warp has row n of the 32 that the warp reaches (PTX ISA 9.7.16.2.3.1, .32x32b). Layouts permute rows by bits of their numbers; that most stay \
                 where they are, and a few change places, is none. Where an index says where each row goes, it is as it should be."
            }
            How::Pairs => {
                "Lane n of a warp has row n of the 32 that the warp reaches (PTX ISA 9.7.16.2.3.1, .32x32b). Where the rows of D are to lie in another order, this is as it \
                 should be."
            }
        };
        let mut labels = vec![
            label(store, format!("{count} lanes of a warp store rows of other ones here"))
                .that_means(Meaning::BelongsElsewhere),
        ];
        labels.extend(copy.map(|copy| label(copy, "copied from there".into())));
        Diagnostic {
            code: "box-mismatch",
            severity: Severity::Note,
            title: format!("lane {lane} of a warp stores its row of a product as row {row} of 32, whose lane stores another one"),
            labels,
            rule: rule.into(),
            help: "Let each lane store to the row of its own number: of thread t the row is t modulo the rows of the tile.".into(),
            count: 1,
            confirmed: None,
        }
    }

    /// What most rows do not do is no layout: that is told, if there is any.
    pub fn or(self, other: Option<Changed>) -> Changed {
        other.filter(|other| other.how == How::Few && self.how != How::Few).unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(row: impl Fn(u32) -> u32) -> Option<How> {
        let rows: Rows = (0..WARP as u32).map(&row).collect();
        let of = |straight| Changed::of(&rows, straight, 0, None).map(|changed| changed.how);
        assert_eq!(of(false), of(true).filter(|how| *how == How::Few), "A may have been gathered");
        of(true)
    }

    #[test]
    fn rows_that_change_places() {
        assert_eq!(how(|lane| lane), None);
        assert_eq!(how(|lane| lane + 64), None, "those of another warp");
        assert_eq!(how(|lane| lane ^ 1), Some(How::Pairs));
        assert_eq!(how(|lane| if lane < 2 { lane ^ 1 } else { lane }), Some(How::Few));
        assert_eq!(how(|lane| lane % 4 * 8 + lane / 4), None, "eight rows of four heads");
        assert_eq!(how(|lane| lane / 2), None, "two store to each");
    }

    /// Eight rows are left of a matrix whose last tile is ragged.
    #[test]
    fn a_warp_of_which_few_lanes_store_says_nothing() {
        let rows: Rows = (0..8).collect();
        assert!(Changed::of(&rows, true, 0, None).is_none());
        assert!(Changed::of(&rows[..1], true, 0, None).is_none());
    }
}
