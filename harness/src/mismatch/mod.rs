//! What kind of wrong a D is: a mismatch is classified, not only counted.
//!
//! *Where* is read off the pattern of wrong elements ([`Extent`]); *why* is found by trying hypotheses ([`Cause`]): what D
//! would be if a K slice were missing, an operand permuted, a tile transposed. A cause is named only when it explains
//! every wrong element.

mod cause;
mod extent;
mod hypotheses;

pub use cause::{Cause, Moves, Slice};
pub use extent::Extent;

use crate::compare::{Comparison, Element};
use crate::reference::Reference;
use std::fmt::Write;

/// Rows and columns of an output tile.
pub const TILE: usize = 128;

/// Findings of the emulator after which D may hold what was never computed.
const UNDEFINED: &[&str] = &[
    "early-arrival",
    "missing-proxy-fence",
    "missing-wait-ld",
    "mma-not-awaited",
    "mma-not-committed",
    "operand-not-ready",
    "undefined-operand",
    "undefined-value-stored",
    "wrong-phase",
];

/// A wrong D, classified.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Which part of D is wrong.
    pub extent: Extent,
    /// What explains it.
    pub cause: Cause,
    /// If this is what was never written: what is wrong with the rest, where.
    pub rest: Option<(Extent, Cause)>,
    /// Elements that are not right, of how many.
    pub wrong: (usize, usize),
    /// Of these: never written.
    pub unwritten: usize,
    /// Of these: not a number.
    pub not_a_number: usize,
    /// A few of them.
    pub examples: Vec<Example>,
}

/// An element that is not right.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Row of D.
    pub row: usize,
    /// Column of D.
    pub column: usize,
    /// What it must be.
    pub expected: f64,
    /// What it is; `None`: never written.
    pub found: Option<f32>,
}

/// The part of D that is looked at: the first tile with a wrong element.
#[derive(Clone, Copy, Debug)]
struct Tile {
    row: usize,
    column: usize,
    rows: usize,
    columns: usize,
}

/// Classifies what is wrong with D; `None` when nothing is.
pub fn classify(reference: &Reference, comparison: &Comparison) -> Option<Mismatch> {
    let wrong = |index: usize| comparison.elements[index] != Element::Right;
    let all: Vec<usize> = (0..comparison.elements.len()).filter(|index| wrong(*index)).collect();
    let first = *all.first()?;
    let tile = |first: usize| {
        let (row, column) = (first / comparison.columns / TILE * TILE, first % comparison.columns / TILE * TILE);
        Tile { row, column, rows: TILE.min(comparison.rows - row), columns: TILE.min(comparison.columns - column) }
    };
    let find = |first: usize, sort: fn(Element) -> bool| {
        let tile = tile(first);
        (extent::find(comparison, tile, sort), hypotheses::find(reference, comparison, tile))
    };
    let is_missing = |index: &&usize| comparison.elements[**index] == Element::Unwritten;
    let (missing, written) = (all.iter().find(is_missing), all.iter().find(|index| !is_missing(index)));
    let ((extent, cause), rest) = match (missing, written) {
        // What was left out and what is wrong have each its own pattern.
        (Some(missing), Some(written)) => {
            let extent = extent::find(comparison, tile(*missing), |element| element == Element::Unwritten);
            let is_wrong = |element| matches!(element, Element::Wrong | Element::NotANumber);
            ((extent, Cause::NeverWritten), Some(find(*written, is_wrong)))
        }
        _ => (find(first, |element| element != Element::Right), None),
    };
    // The first ones, and one from the middle and the end: neighbours are often wrong in the same way.
    let mut chosen: Vec<usize> = all.iter().copied().take(2).collect();
    chosen.extend([all[all.len() / 2], all[all.len() - 1]]);
    chosen.dedup();
    let example = |index: usize| Example {
        row: index / comparison.columns,
        column: index % comparison.columns,
        expected: reference.values[index],
        found: (comparison.elements[index] != Element::Unwritten).then_some(comparison.found[index]),
    };
    Some(Mismatch {
        extent,
        cause,
        rest,
        wrong: (all.len(), comparison.elements.len()),
        unwritten: comparison.count(Element::Unwritten),
        not_a_number: comparison.count(Element::NotANumber),
        examples: chosen.into_iter().map(example).collect(),
    })
}

impl Mismatch {
    /// What is wrong, in one sentence without a full stop.
    pub fn title(&self) -> String {
        match self.cause {
            // That nothing explains it is said once, in the text.
            Cause::Unexplained => format!("{} is wrong", self.extent),
            _ => sentence(&self.extent, &self.cause),
        }
    }

    /// Its cause says by itself what the kernel does with the product: more than the first step at which its data are not what
    /// they should be.
    pub(crate) fn is_telling(&self) -> bool {
        self.rest.is_none() && matches!(self.cause, Cause::EndOfK(..) | Cause::Constant(_))
    }

    /// The mismatch of a run in which the kernel stored so many bytes to D, and broke rules of these codes: what was
    /// stored, but is not defined, was not left out.
    pub fn stored(mut self, bytes: u64, broken: impl IntoIterator<Item = &'static str>) -> Mismatch {
        let defined = 2 * (self.wrong.1 - self.unwritten) as u64;
        let undefined = broken.into_iter().any(|code| UNDEFINED.contains(&code));
        if undefined && self.cause == Cause::NeverWritten && bytes > defined {
            self.cause = Cause::Undefined;
        }
        self
    }

    /// What is wrong, with coordinates and numbers.
    pub fn text(&self) -> String {
        format!("{}.\n{}", sentence(&self.extent, &self.cause), self.numbers())
    }

    /// The same, beside something else that explains it.
    pub fn summary(&self) -> String {
        format!("{}.\n{}", self.title(), self.numbers())
    }

    /// What else is wrong, how many elements are, and a few of them.
    pub fn numbers(&self) -> String {
        let (wrong, of) = self.wrong;
        let mut text = match &self.rest {
            Some((extent, Cause::Unexplained)) => format!("Also, {extent} is wrong.\n"),
            Some((extent, cause)) => format!("Also, {}.\n", sentence(extent, cause)),
            None => String::new(),
        };
        // Writing to a string does not fail.
        let _ = write!(text, "{wrong} of {of} elements are not right");
        let missing = if self.cause == Cause::Undefined { "undefined" } else { "never written" };
        if self.unwritten > 0 && self.unwritten < wrong {
            let _ = write!(text, "; {} of them were {missing}", self.unwritten);
        }
        if self.not_a_number > 0 && self.not_a_number < wrong {
            let _ = write!(text, "; {} of them are NaN", self.not_a_number);
        }
        text.push_str(":\n");
        for example in &self.examples {
            let found = match example.found {
                Some(value) => format!("{value}"),
                None => missing.to_string(),
            };
            let _ = writeln!(
                text,
                "  D[{}][{}]: expected {}, found {found}",
                example.row,
                example.column,
                rounded(example.expected)
            );
        }
        text
    }

    /// One thing to try; `None` when nothing explains the mismatch.
    pub fn help(&self) -> Option<&'static str> {
        self.cause.help(&self.extent)
    }
}

fn sentence(extent: &Extent, cause: &Cause) -> String {
    match (extent, cause) {
        // Where a permutation shows is a pattern of its own, and says no more than the cause does.
        (Extent::Scattered { .. }, Cause::Swizzle { .. } | Cause::SwizzledD) => format!("D {cause}"),
        // Of one tile alone it is said that it is one.
        (Extent::Tiles { count: 1, .. }, Cause::Transposed { .. }) => {
            format!("{extent} {}", Cause::Transposed { by_tiles: false })
        }
        (extent, cause) => format!("{extent} {cause}"),
    }
}

/// A number as one reads it: five digits after the point at most.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

#[cfg(test)]
mod tests;
