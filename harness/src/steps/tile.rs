//! Tiles of A and B in shared memory: what is there, against what should be.

use super::BLK_K;
use crate::diagnostics::Explanation;
use crate::observe::Observation;
use crate::ptxas;
use crate::source::Matrix;
use ptx::{Region, RegionKind, Space};

/// A tile of A or B in the dynamic shared memory of the first CTA, after a run.
#[derive(Clone, Debug)]
pub struct Tile<'a> {
    /// The region that the kernel gave it.
    pub region: &'a Region,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Bytes of the swizzle's pattern.
    pub swizzle: u32,
    /// Elements in the order of their addresses; `None`: never written.
    pub elements: Vec<Option<u16>>,
    /// Row and column of the matrix that belong at the tile's start.
    origin: (usize, usize),
}

/// How a tile's elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Swizzled,
    RowMajor,
    Transposed,
}

/// Elements of a 16-byte chunk.
const CHUNK: usize = 8;

impl<'a> Tile<'a> {
    /// The tile of this matrix: the one whose name begins like the matrix's, else the first (A) or second (B).
    pub fn find(seen: &'a Observation, matrix: Matrix) -> Option<Tile<'a>> {
        Tile::find_in(seen, matrix, 0, (0, 0))
    }

    /// The same in this CTA, for the tile of the matrix that begins at this row and column.
    pub fn find_in(seen: &'a Observation, matrix: Matrix, cta: usize, origin: (usize, usize)) -> Option<Tile<'a>> {
        let tiles: Vec<&Region> = (seen.built.regions.iter())
            .filter(|region| region.space == Space::DynamicShared)
            .filter(|region| matches!(region.kind, RegionKind::Tile { element_bytes: 2, .. }))
            .collect();
        let (letter, index) = match matrix {
            Matrix::A => ('a', 0),
            Matrix::B => ('b', 1),
            Matrix::D => ('d', 2),
        };
        let named = |region: &&&Region| region.name.to_ascii_lowercase().starts_with(letter);
        let region = tiles.iter().find(named).or(tiles.get(index)).copied()?;
        Tile::at(seen, region, cta, origin)
    }

    /// What lies in this region of a CTA.
    pub fn at(seen: &'a Observation, region: &'a Region, cta: usize, origin: (usize, usize)) -> Option<Tile<'a>> {
        let RegionKind::Tile { rows, columns, swizzle, .. } = region.kind else { return None };
        let memory = &seen.report.ctas.get(cta)?.dynamic_shared;
        let element = |index: usize| {
            let byte = region.offset as usize + 2 * index;
            match memory.bytes.get(byte..byte + 2) {
                Some(&[low, high]) if memory.is_defined(byte) && memory.is_defined(byte + 1) => {
                    Some(u16::from_le_bytes([low, high]))
                }
                _ => None,
            }
        };
        let (rows, columns) = (rows as usize, columns as usize);
        if columns == 0 {
            return None;
        }
        // A tile's extents come from the kernel; no tile is larger than shared memory.
        let count = rows.checked_mul(columns).filter(|count| *count <= memory.bytes.len())?;
        Some(Tile { region, rows, columns, swizzle, elements: (0..count).map(element).collect(), origin })
    }

    /// Where element (row, column) lies, in elements from the start of the tile.
    fn index(&self, layout: Layout, row: usize, column: usize) -> usize {
        match layout {
            Layout::RowMajor => row * self.columns + column,
            Layout::Transposed => column * self.rows + row,
            Layout::Swizzled => {
                // The pattern repeats every eight rows of `swizzle` bytes: the chunk's low bits are flipped by the row's.
                let linear = row * self.columns + column;
                let line = linear * 2 / 128;
                let mask = (self.swizzle as usize / 16).saturating_sub(1);
                let flip = match self.swizzle {
                    128 => line % 8,
                    64 => line / 2 % 4,
                    32 => line / 4 % 2,
                    _ => 0,
                };
                linear ^ ((flip & mask) * CHUNK)
            }
        }
    }

    /// Element (row, column) as an MMA reads it through the swizzle.
    pub fn element(&self, row: usize, column: usize) -> Option<u16> {
        self.elements.get(self.index(Layout::Swizzled, row, column)).copied().flatten()
    }

    /// Whether all of the tile was never written.
    pub fn is_empty(&self) -> bool {
        self.elements.iter().all(Option::is_none)
    }

    /// Whether all of the tile was written.
    pub fn is_full(&self) -> bool {
        self.elements.iter().all(Option::is_some)
    }

    /// Row and column, as an MMA reads them, of the element at this place.
    fn place(&self, index: usize) -> (usize, usize) {
        // The swizzle is its own inverse: it keeps the row and flips bits of the chunk.
        let linear = self.index(Layout::Swizzled, index / self.columns, index % self.columns);
        (linear / self.columns, linear % self.columns)
    }

    /// Whether the tile of a matrix lies here in this layout.
    fn holds(&self, layout: Layout, matrix: &[u16], width: usize) -> bool {
        let (top, left) = self.origin;
        (top + self.rows) * width <= matrix.len()
            && left + self.columns <= width
            && (0..self.rows).all(|row| {
                (0..self.columns).all(|column| {
                    self.elements.get(self.index(layout, row, column)).copied().flatten()
                        == Some(matrix[(top + row) * width + left + column])
                })
            })
    }

    /// What is wrong with the tile, if it must hold its tile of `matrix`; `None` when nothing is.
    pub fn wrong(&self, seen: &Observation, matrix: Matrix) -> Option<Explanation> {
        let inputs = &seen.inputs;
        let width = inputs.problem.k as usize;
        let (own, (other, others)) = match matrix {
            Matrix::B => (&inputs.b, (Matrix::A, &inputs.a)),
            _ => (&inputs.a, (Matrix::B, &inputs.b)),
        };
        if self.holds(Layout::Swizzled, own, width) {
            return None;
        }
        let stored = |explanation: Explanation, text: &str| match seen.first_store_to(self.region) {
            Some(event) => explanation.at(&event.place, text),
            None => explanation,
        };
        // The MMAs that read this tile: their descriptor is the promise.
        let read = |explanation: Explanation| {
            let reads = |mma: &&(&emulator::Event, &emulator::Mma)| {
                let operand = if matrix == Matrix::B { &mma.1.b } else { &mma.1.a };
                let (first, last) =
                    (i64::from(self.region.offset), i64::from(self.region.offset) + i64::from(self.region.bytes));
                i64::from(operand.offset) < last && first < i64::from(operand.end)
            };
            match seen.mmas().iter().find(reads) {
                Some((event, _)) => {
                    explanation.at(&event.place, format!("read here as a tile with the {}-byte swizzle", self.swizzle))
                }
                None => explanation,
            }
        };
        let name = &self.region.name;
        let swizzle_rule = format!(
            "In a tile with the {}-byte swizzle, the 16-byte chunk c of row r lies at chunk c ^ (r % 8) of that row (PTX ISA \
             9.7.16.3.3).",
            self.swizzle
        );
        let swizzle_help = "Let the tile compute the address of each 16-byte store: `tile.at(row, column)`.";
        if self.holds(Layout::RowMajor, own, width) {
            let laid_out = format!("{matrix} in shared memory is laid out row after row");
            // Two flips cancel out: what is left is no swizzle.
            if seen.first_store_to(self.region).is_some_and(|event| flips(seen, event)) {
                let title = format!("{laid_out}: the {}-byte swizzle was applied twice", self.swizzle);
                let help = "Give `tile.at(row, column)` the plain row and column: it applies the swizzle itself.";
                let explanation = Explanation::new(title, swizzle_rule, help);
                return Some(read(stored(explanation, "stored here, to an address that was swizzled twice")));
            }
            let title = format!("{laid_out} without the {}-byte swizzle that its descriptor promises", self.swizzle);
            let explanation = Explanation::new(title, swizzle_rule, swizzle_help);
            return Some(read(stored(explanation, "stored here without the swizzle")));
        }
        if self.holds(Layout::Transposed, own, width) {
            let title = format!("{matrix} in shared memory is transposed: its columns lie one after the other");
            let rule = "Both operands are K-major: a row of the tile is 64 neighbouring elements of a row of the matrix (PTX ISA \
                        9.7.16.3.3).";
            let help = "Swap row and column in the address of the store.";
            return Some(read(stored(Explanation::new(title, rule, help), "stored here")));
        }
        if self.holds(Layout::Swizzled, others, width) || self.holds(Layout::RowMajor, others, width) {
            let title = format!("the tile of {matrix} in shared memory (`{name}`) holds {other}");
            let help =
                format!("Load what is stored to this tile from {matrix}: `gemm.{}.at(row, column)`.", lower(matrix));
            return Some(stored(Explanation::new(title, "", help), "stored here"));
        }
        let missing = self.elements.iter().filter(|element| element.is_none()).count();
        if missing > 0 {
            let index = self.elements.iter().position(Option::is_none).unwrap_or(0);
            let (row, column) = self.place(index);
            let title = format!(
                "{missing} of {} elements of {matrix}'s tile in shared memory (`{name}`) were never written: the first is row \
                 {row}, chunk {} (columns {} to {})",
                self.elements.len(),
                column / CHUNK,
                column / CHUNK * CHUNK,
                column / CHUNK * CHUNK + CHUNK - 1,
            );
            let rule = "An MMA reads every element of its operands (PTX ISA 9.7.16.10.9.1).";
            let help = "Let the 128 threads together store every row of the tile and all of its 16-byte chunks: `tile.at` \
                        takes a row and a column, both in elements.";
            return Some(stored(Explanation::new(title, rule, help), "the tile's first store"));
        }
        let differs = |index: &usize| {
            let (row, column) = (index / self.columns, index % self.columns);
            let (top, left) = self.origin;
            self.element(row, column) != own.get((top + row) * width + left + column).copied()
        };
        let all: Vec<usize> = (0..self.elements.len()).filter(differs).collect();
        let first = all.first().copied().unwrap_or(0);
        let (row, column) = (first / self.columns, first % self.columns);
        let title = format!(
            "{matrix}'s tile in shared memory (`{name}`) holds other elements than {matrix}: {} of {} differ, the first at \
             row {row}, column {column}",
            all.len(),
            self.elements.len(),
        );
        Some(read(stored(Explanation::new(title, swizzle_rule, swizzle_help), "the tile's first store")))
    }
}

/// What is wrong with a loop over K that ends too early: the tile of a CTA whose rows begin at `row` holds an earlier round's
/// columns at the end.
pub(super) fn of_earlier_round(seen: &Observation, matrix: Matrix, cta: usize, row: usize) -> Option<Explanation> {
    let k = seen.inputs.problem.k as usize;
    let width = BLK_K as usize;
    let rounds = k.div_ceil(width);
    let holds = |round: &usize| {
        let tile = Tile::find_in(seen, matrix, cta, (row, round * width));
        tile.is_some_and(|tile| tile.wrong(seen, matrix).is_none())
    };
    let held = (0..rounds - 1).rev().find(holds)?;
    let title = format!(
        "the tile of {matrix} in shared memory holds columns {} to {} at the end; the last round is that of columns {} to {}",
        held * width,
        (held + 1) * width - 1,
        (rounds - 1) * width,
        k - 1
    );
    let rule = "A round copies 64 columns of A and B, and D is the sum of all rounds.";
    let explanation = Explanation::new(title, rule, "Let the loop over K take `gemm.tiles_k(BLK_K)` rounds.");
    let tile = Tile::find_in(seen, matrix, cta, (row, held * width))?;
    Some(match seen.first_store_to(tile.region) {
        Some(event) => explanation.at(&event.place, "the tile's first store"),
        None => explanation,
    })
}

/// The matrix as a field of the problem.
fn lower(matrix: Matrix) -> &'static str {
    match matrix {
        Matrix::A => "a",
        Matrix::B => "b",
        Matrix::D => "d",
    }
}

/// Whether the line of Rust that stores flips bits of an address: that of a store without any swizzle does not.
fn flips(seen: &Observation, store: &emulator::Event) -> bool {
    let Some(source) = &store.place.source else { return false };
    let mut loc = None;
    (1..).zip(seen.built.ptx.lines()).any(|(line, text)| {
        let mut words = text.split_whitespace();
        match words.next() {
            Some(".loc") => loc = words.nth(1).and_then(|number| number.parse().ok()),
            Some("xor.b32") if loc == Some(source.line) => {
                return ptxas::source(&seen.built.ptx, line).is_some_and(|place| place.file == source.file);
            }
            _ => {}
        }
        false
    })
}
