//! Sums whose depths come from two tiles: some from rows of A, or columns of B, and others from other ones.
//!
//! Who multiplies another number of tiles along K than are loaded for a sum, or changes the other coordinate within one, begins the next sum too early or too
//! late. It is known from what the sums are made of; a right kernel adds other rows only where its tensors do not have as many depths.

use super::sums::{Line, Range, Sum, Sums};
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};

/// An accumulator that adds some depths of rows of A, or columns of B, and others of other ones.
#[derive(Clone, Copy, Debug)]
pub struct Mixed {
    /// A, or B.
    which: usize,
    /// What is multiplied of two tiles, the later one behind.
    lines: [Line; 2],
    depths: [Range; 2],
    mma: u32,
}

impl Line {
    /// Rows of the same tensor, none of them the same.
    fn is_apart_from(&self, other: &Line) -> bool {
        (self.tensor, self.mn_major) == (other.tensor, other.mn_major) && !self.meets(other)
    }
}

impl Sum {
    /// Whether another part of the same accumulator has depths that this does not have, of other rows of A and the same columns of B, or the other way round:
    /// of which operand. Both tensors have as many depths, and each is multiplied with the same.
    fn goes_on_elsewhere(&self, other: &Sum) -> Option<usize> {
        let straight = |sum: &Sum| sum.distance == 0 && !sum.with_others && sum.size.is_some();
        let apart = |n: usize| self.of[n].iter().all(|one| other.of[n].iter().all(|two| one.is_apart_from(two)));
        let once = || !self.depths.iter().any(|one| other.depths.iter().any(|two| one.0 < two.1 && two.0 < one.1));
        let which = (0..2).find(|&n| self.of[1 - n] == other.of[1 - n] && apart(n))?;
        (straight(self) && straight(other) && self.size == other.size && once()).then_some(which)
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
        let Some(which) = first.goes_on_elsewhere(second) else { return };
        let (Some(&one), Some(&two)) = (first.of[which].first(), second.of[which].first()) else { return };
        self.mixed =
            Some(Mixed { which, lines: [one, two], depths: [first.depths[0], second.depths[0]], mma: second.mma });
    }
}

impl Mixed {
    /// What is told of it, at the end of a launch in which nothing else was found.
    pub fn judge(self, label: impl Fn(u32, String) -> Label) -> Diagnostic {
        let Mixed { which, lines, depths, mma } = self;
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
}
