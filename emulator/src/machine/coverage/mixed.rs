//! Sums whose depths come from two tiles: some from rows of A, or columns of B, and others from other ones, or with A and B exchanged.
//!
//! Who multiplies another number of tiles along K than are loaded for a sum, or changes the other coordinate within one, begins the next sum too early or too
//! late. It is known from what the sums are made of; a right kernel adds other rows only where its tensors do not have as many depths. One that adds B times A
//! to A times B multiplies each depth both ways.

use super::sums::{Line, Range, Sum, Sums};
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};

/// An accumulator that adds some depths of rows of A, or columns of B, and others of other ones.
#[derive(Clone, Copy, Debug)]
pub struct Mixed {
    how: How,
    /// What is multiplied of two tiles, the later one behind; of A and of B, where they are exchanged in the later ones of these depths.
    lines: [Line; 2],
    depths: [Range; 2],
    mma: u32,
}

/// What of the operands comes from two tiles.
#[derive(Clone, Copy, Debug)]
enum How {
    /// A (0) or B (1).
    One(usize),
    /// Each takes the other one's tile.
    Exchanged,
}

impl Line {
    /// Rows of the same tensor, none of them the same.
    fn is_apart_from(&self, other: &Line) -> bool {
        (self.tensor, self.mn_major) == (other.tensor, other.mn_major) && !self.meets(other)
    }
}

impl Sum {
    /// Whether another part of the same accumulator has depths that this does not have, of other rows of A and the same columns of B, or the other way round, or
    /// of the rows of B and the columns of A. Both tensors have as many depths, and each is multiplied with the same.
    fn goes_on_elsewhere(&self, other: &Sum) -> Option<How> {
        let straight = |sum: &Sum| sum.distance == 0 && !sum.with_others && sum.size.is_some();
        let apart = |n: usize| self.of[n].iter().all(|one| other.of[n].iter().all(|two| one.is_apart_from(two)));
        let once = || !self.depths.iter().any(|one| other.depths.iter().any(|two| one.0 < two.1 && two.0 < one.1));
        let same = |one: usize, two: usize| self.of[one] == other.of[two];
        let how = match (0..2).find(|&n| same(1 - n, 1 - n) && apart(n)) {
            Some(n) => How::One(n),
            None if same(0, 1) && same(1, 0) => How::Exchanged,
            None => return None,
        };
        (straight(self) && straight(other) && self.size == other.size && once()).then_some(how)
    }
}

impl Sums {
    /// Of what an accumulator holds: whether its depths come from different rows of A, or columns of B.
    pub fn look_at_rows(&mut self, cta: usize, accumulator: u32) {
        if self.mixed.is_some() {
            return;
        }
        let mut all = self.open.iter().filter(|sum| sum.is_of(cta, accumulator));
        let (Some(first), Some(second), None) = (all.next(), all.next(), all.next()) else { return };
        let Some(how) = first.goes_on_elsewhere(second) else { return };
        let count = |sum: &Sum| sum.depths.iter().map(|(from, to)| to - from).sum::<i64>();
        let (more, less, lines) = match how {
            How::One(n) => (first, second, first.of[n].first().zip(second.of[n].first())),
            // What most of the sum is, is meant.
            How::Exchanged => {
                let (more, less) = if count(first) < count(second) { (second, first) } else { (first, second) };
                (more, less, more.of[0].first().zip(more.of[1].first()))
            }
        };
        let Some((&one, &two)) = lines else { return };
        self.mixed = Some(Mixed { how, lines: [one, two], depths: [more.depths[0], less.depths[0]], mma: less.mma });
    }
}

impl Mixed {
    /// What is told of it, at the end of a launch in which nothing else was found.
    pub fn judge(self, label: impl Fn(u32, String) -> Label) -> Diagnostic {
        let Mixed { how, lines, depths, mma } = self;
        let How::One(which) = how else { return self.judge_exchanged(label) };
        let (name, rows, other) = [("A", "rows", "columns of B"), ("B", "columns", "rows of A")][which];
        let [one, two] = [0, 1].map(|n| {
            let (Line { first, rows: count, .. }, (from, to)) = (lines[n], depths[n]);
            format!("depths {from} to {} of {rows} {first} to {} of {name}", to - 1, first + count - 1)
        });
        let added = label(mma, format!("both are multiplied with the same {other}, and added up"));
        let mut labels = vec![added.that_means(Meaning::BelongsElsewhere)];
        labels.push(label(lines[0].load, format!("{name} is loaded here")));
        if lines[1].load != lines[0].load {
            labels.push(label(lines[1].load, format!("the other {rows} of {name} are loaded here")));
        }
        Diagnostic {
            code: "box-mismatch",
            severity: Severity::Finding,
            title: format!("a sum is made of {one}, and of {two}"),
            labels,
            rule: "An element of D is the sum over all depths of one row of A and one column of B (PTX ISA, tcgen05.mma, wgmma.mma_async): an accumulator adds the \
                   depths of one tile of each. These are other depths of another tile."
                .into(),
            help: format!(
                "Let the coordinate of {name} that is not K stay as it is from the first tile along K of a sum to the last one, and let the loop that multiplies \
                 take as many tiles for a sum as are loaded for it."
            ),
            count: 1,
            confirmed: None,
        }
    }

    fn judge_exchanged(self, label: impl Fn(u32, String) -> Label) -> Diagnostic {
        let Mixed { lines: [a, b], depths: [_, (from, to)], mma, .. } = self;
        let mut labels = vec![
            label(mma, "here A is what the other MMAs of the sum take for B, and B what they take for A".into())
                .that_means(Meaning::BelongsElsewhere),
            label(a.load, "the others' A is loaded here".into()),
        ];
        if b.load != a.load {
            labels.push(label(b.load, "the others' B is loaded here".into()));
        }
        Diagnostic {
            code: "box-mismatch",
            severity: Severity::Finding,
            title: format!("depths {from} to {} of a sum are multiplied with A and B exchanged", to - 1),
            labels,
            rule: "Element (i, j) of D is the sum over all depths of row i of A and column j of B (PTX ISA, tcgen05.mma, wgmma.mma_async): these depths add \
                   the element (j, i) of the product of the same tiles."
                .into(),
            help: "Give this MMA its descriptors in the order of the others: A's first, then B's.".into(),
            count: 1,
            confirmed: None,
        }
    }
}
