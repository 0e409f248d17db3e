//! Tensor memory, and where an accumulator lies in it.

pub mod alloc;
pub mod cells;
pub mod copy;
pub mod load;
pub mod scale_factors;
pub mod store;
pub mod supplies;

use crate::machine::arithmetic::product::Line;
use crate::machine::arithmetic::simd;
pub use crate::machine::mma::instruction_descriptor::InstructionDescriptor;
pub use crate::machine::mma::matrix_descriptor::{SharedDescriptor, chunks};
use crate::report::Memory;

/// Columns of 32-bit cells.
pub const COLUMNS: u32 = 512;
/// Lanes.
pub const LANES: u32 = 128;
/// Columns that an allocation is a multiple of: the allocator's bitmap has 16 slots.
pub const SLOT: u32 = 32;
/// Cells from one lane to the next: a cache line more than there are columns. At a distance that is a power of two, lanes would lie in few of a
/// cache's sets.
const PITCH: u32 = COLUMNS + 16;

/// An address, and what it means: the lane is in bits 16 to 31, the column in bits 0 to 15 (PTX ISA 9.7.16.1.2).
pub fn place(address: u32) -> String {
    format!("{address:#x} (lane {}, column {})", address >> 16, address & 0xffff)
}

/// A CTA's tensor memory.
#[derive(Debug, PartialEq)]
pub struct TensorMemory {
    /// Lane after lane, in cache lines: accumulators are read and written in vectors.
    lines: Vec<Line<[u32; 16]>>,
    /// For each column and lane quarter, the lanes that hold a defined value.
    defined: Vec<u32>,
    /// Why a column holds none (index into the run's origins), if it is known.
    origins: Vec<u32>,
    /// For each slot of 32 columns, the first column of the allocation that holds it and the statement.
    slots: [Option<Allocation>; (COLUMNS / SLOT) as usize],
    /// For each slot, the statement that freed it last.
    freed: [Option<u32>; (COLUMNS / SLOT) as usize],
    /// The slots that were allocated at any time: only their cells are ever written.
    used: [bool; (COLUMNS / SLOT) as usize],
    /// The slots whose cells still hold what a CTA before has left. They read as never written.
    stale: [bool; (COLUMNS / SLOT) as usize],
    /// Columns held at most.
    pub most: u32,
}

impl Default for TensorMemory {
    fn default() -> Self {
        TensorMemory::new()
    }
}

/// One cell of the shadow of tensor memory stands for a column of a lane quarter.
pub const CELL: u64 = 16;

/// What `tcgen05.alloc` gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub column: u32,
    pub columns: u32,
    pub site: u32,
}

impl TensorMemory {
    /// Of its cells.
    pub const BYTES: usize = (LANES * PITCH * 4) as usize;

    pub fn new() -> TensorMemory {
        TensorMemory {
            lines: vec![Line([u32::MAX; 16]); (LANES * PITCH / 16) as usize],
            defined: vec![0; 4 * COLUMNS as usize],
            origins: vec![0; COLUMNS as usize],
            slots: [None; (COLUMNS / SLOT) as usize],
            freed: [None; (COLUMNS / SLOT) as usize],
            used: [false; (COLUMNS / SLOT) as usize],
            stale: [false; (COLUMNS / SLOT) as usize],
            most: 0,
        }
    }

    /// As it was when it was new.
    pub fn forget(&mut self) {
        for (stale, used) in self.stale.iter_mut().zip(&self.used) {
            *stale |= used;
        }
        self.defined.fill(0);
        self.origins.fill(0);
        (self.slots, self.freed, self.used, self.most) = ([None; _], [None; _], [false; _], 0);
    }

    /// Some columns are about to be read or written: what was left there is gone. Not those that are `overwritten`, in all lanes.
    pub fn refresh(&mut self, column: u32, columns: u32, overwritten: bool) {
        const LINES: usize = (PITCH / 16) as usize;
        let end = (column + columns).min(COLUMNS);
        for slot in column / SLOT..end.div_ceil(SLOT) {
            if !std::mem::take(&mut self.stale[slot as usize]) {
                continue;
            }
            let (first, behind) = (slot * SLOT, (slot + 1) * SLOT);
            if overwritten && column <= first && behind <= end {
                continue;
            }
            for lane in self.lines.as_chunks_mut::<LINES>().0 {
                lane[first as usize / 16..behind as usize / 16].fill(Line([u32::MAX; 16]));
            }
        }
    }

    /// The first of some columns that no allocation holds, or that there is not.
    pub fn unallocated(&self, column: u32, columns: u32) -> Option<u32> {
        let end = column.saturating_add(columns);
        let mut next = column;
        while next < end {
            if next >= COLUMNS || self.slots[(next / SLOT) as usize].is_none() {
                return Some(next);
            }
            next = next / SLOT * SLOT + SLOT;
        }
        None
    }

    /// The first columns that are free, aligned to their number; in `other` too, if given. `None`: there is no room now.
    pub fn fit(&self, columns: u32, other: Option<&TensorMemory>) -> Option<u32> {
        let slots = (columns / SLOT) as usize;
        let free = |t: &TensorMemory, s: usize| t.slots[s..s + slots].iter().all(Option::is_none);
        let mut starts = (0..self.slots.len()).step_by(slots);
        let first = starts.find(|&s| free(self, s) && other.is_none_or(|t| free(t, s)))?;
        Some(first as u32 * SLOT)
    }

    /// Takes columns that are free.
    pub fn allocate(&mut self, column: u32, columns: u32, site: u32) -> Allocation {
        let allocation = Allocation { column, columns, site };
        let (first, slots) = ((column / SLOT) as usize, (columns / SLOT) as usize);
        self.slots[first..first + slots].fill(Some(allocation));
        self.used[first..first + slots].fill(true);
        // The PTX ISA promises nothing about what newly allocated columns hold (9.7.16.7.1).
        for c in column..column + columns {
            for quarter in 0..4 {
                self.defined[(c * 4 + quarter) as usize] = 0;
            }
            self.origins[c as usize] = 0;
        }
        let held = self.slots.iter().flatten().count() as u32 * SLOT;
        self.most = self.most.max(held);
        allocation
    }

    /// The allocation that holds a column.
    pub fn allocation(&self, column: u32) -> Option<Allocation> {
        *self.slots.get((column / SLOT) as usize)?
    }

    /// The statement that freed the allocation which held a column last.
    pub fn freed(&self, column: u32) -> Option<u32> {
        *self.freed.get((column / SLOT) as usize)?
    }

    pub fn free(&mut self, allocation: Allocation, site: u32) {
        for (slot, freed) in self.slots.iter_mut().zip(&mut self.freed) {
            if *slot == Some(allocation) {
                *slot = None;
                *freed = Some(site);
            }
        }
    }

    /// Allocations that are held.
    pub fn held(&self) -> Vec<Allocation> {
        let mut list: Vec<Allocation> = self.slots.iter().flatten().copied().collect();
        list.dedup();
        list
    }

    pub fn get(&self, lane: u32, column: u32) -> (u32, bool) {
        let defined = self.defined[(column * 4 + lane / 32) as usize] >> (lane % 32) & 1 == 1;
        let stale = self.stale[(column / SLOT) as usize];
        (if stale { u32::MAX } else { self.cells()[Self::index(lane, column)] }, defined)
    }

    pub fn set(&mut self, lane: u32, column: u32, value: u32, defined: bool) {
        self.refresh(column, 1, false);
        self.cells_mut()[Self::index(lane, column)] = value;
        let d = &mut self.defined[(column * 4 + lane / 32) as usize];
        *d = *d & !(1 << (lane % 32)) | u32::from(defined) << (lane % 32);
    }

    /// A lane's cells from a column on, which have been refreshed.
    pub fn row(&self, lane: u32, column: u32) -> &[u32] {
        &self.cells()[Self::index(lane, column)..Self::index(lane, COLUMNS)]
    }

    /// The lanes of a quarter in which a column holds a defined value.
    pub fn defined_quarter(&self, column: u32, quarter: u32) -> u32 {
        self.defined[(column * 4 + quarter) as usize]
    }

    /// Whether all lanes of some columns hold defined values.
    pub fn all_defined(&self, column: u32, columns: u32) -> bool {
        let quarters = &self.defined[column as usize * 4..(column + columns) as usize * 4];
        quarters.iter().fold(u32::MAX, |all, quarter| all & quarter) == u32::MAX
    }

    /// Sets a column of a quarter to defined values.
    pub fn set_column(&mut self, quarter: u32, column: u32, values: &[u32; 32]) {
        self.refresh(column, 1, false);
        let cells = self.cells_mut();
        for (lane, &value) in (quarter * 32..).zip(values) {
            cells[Self::index(lane, column)] = value;
        }
        self.defined[(column * 4 + quarter) as usize] = u32::MAX;
    }

    /// Where the cell of a lane and column lies in [`TensorMemory::cells_mut`].
    pub fn index(lane: u32, column: u32) -> usize {
        (lane * PITCH + column) as usize
    }

    /// Lane after lane, all columns; those that are used have been refreshed.
    pub fn cells_mut(&mut self) -> &mut [u32] {
        simd::flat_mut(&mut self.lines)
    }

    fn cells(&self) -> &[u32] {
        simd::flat(&self.lines)
    }

    /// The lanes of a column that hold a defined value.
    pub fn defined_lanes(&self, column: u32) -> u128 {
        let quarters = &self.defined[column as usize * 4..column as usize * 4 + 4];
        quarters.iter().rev().fold(0, |lanes, &quarter| lanes << 32 | u128::from(quarter))
    }

    /// Of the lanes of a column that are `written`, those in `defined` hold a defined value now.
    pub fn define_lanes(&mut self, column: u32, written: u128, defined: u128) {
        for (n, quarter) in self.defined[column as usize * 4..column as usize * 4 + 4].iter_mut().enumerate() {
            let (written, defined) = ((written >> (32 * n)) as u32, (defined >> (32 * n)) as u32);
            *quarter = *quarter & !written | defined & written;
        }
    }

    pub fn origin(&self, column: u32) -> u32 {
        self.origins[column as usize]
    }

    pub fn set_origin(&mut self, column: u32, origin: u32) {
        self.origins[column as usize] = origin;
    }

    /// All cells, as the report gives them.
    pub fn snapshot(&self) -> Memory {
        let mut memory = Memory::undefined((LANES * COLUMNS * 4) as usize);
        for lane in 0..LANES {
            for column in 0..COLUMNS {
                let (value, defined) = self.get(lane, column);
                if defined {
                    memory.store((lane * COLUMNS + column) as usize * 4, 4, value.into(), true);
                }
            }
        }
        memory
    }
}

/// Of each quarter of 32 lanes: the first 16, the others, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    Lower,
    Upper,
    Both,
}

impl Halves {
    /// Those of so many lanes from this one on.
    pub fn of(lane: u32, lanes: u32) -> Halves {
        match (lanes, lane % 32 / 16) {
            (32, _) => Halves::Both,
            (_, 0) => Halves::Lower,
            _ => Halves::Upper,
        }
    }

    /// Whether these are lanes of the upper, or of the lower half.
    pub fn has(self, upper: bool) -> bool {
        self == Halves::Both || upper == (self == Halves::Upper)
    }
}

/// Where the elements of an accumulator lie in a CTA's tensor memory (PTX ISA, tcgen05 data path layouts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A lane for each row: layouts A (M = 256 of a pair, each CTA its half) and D (M = 128 of one CTA).
    Full,
    /// M = 128 of a pair: 64 rows a CTA, the right half of the columns in lanes 64 and up (layout B).
    Halves,
    /// M = 64 of one CTA: 16 lanes of each quarter, from lane 0 or 16 of it on (layout F).
    Quarters { first: u32 },
    /// M = 32 with `.ws`: each quarter of the lanes has all rows, and its own fourth of the columns (layout G). M = 64 with `.ws` lies as
    /// [`Layout::Halves`] (layout E).
    Fourths,
}

impl Layout {
    /// The layout of an accumulator of M rows, computed by so many CTAs, that begins at this lane.
    pub fn of(m: u32, ctas: usize, first: u32) -> Layout {
        match (m, ctas) {
            (64, _) => Layout::Quarters { first },
            (128, 2) => Layout::Halves,
            _ => Layout::Full,
        }
    }

    /// Which half of each quarter of the lanes it has.
    pub fn halves(self) -> Halves {
        match self {
            Layout::Quarters { first: 0 } => Halves::Lower,
            Layout::Quarters { .. } => Halves::Upper,
            _ => Halves::Both,
        }
    }

    /// Columns that N columns of the accumulator take.
    pub fn columns(self, n: u32) -> u32 {
        n / self.parts()
    }

    /// Parts of the columns that lie in lanes of their own.
    fn parts(self) -> u32 {
        match self {
            Layout::Halves => 2,
            Layout::Fourths => 4,
            _ => 1,
        }
    }

    /// How many rows of A an MMA reads in tensor memory, if D has so many, and where they lie. Where parts of the columns lie in lanes of their
    /// own, each part is computed with the A of those lanes: CUTLASS writes A there once for each (`TmemAllocMode::Duplicated`), FlashMLA
    /// two halves of its depths.
    pub fn a_in_tensor(self, rows: u32) -> (u32, Layout) {
        if self.parts() > 1 { (LANES, Layout::Full) } else { (rows, self) }
    }

    /// Lane and column of an element.
    pub fn cell(self, row: u32, column: u32, n: u32) -> (u32, u32) {
        match self {
            Layout::Full => (row, column),
            Layout::Quarters { first } => (first + row % 16 + 32 * (row / 16), column),
            Layout::Halves | Layout::Fourths => {
                let each = self.columns(n).max(1);
                (LANES / self.parts() * (column / each) + row, column % each)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a CTA has left, the next one never sees: neither cell by cell, nor in a row, nor beside what it writes itself.
    #[test]
    fn what_was_left_reads_as_never_written() {
        let left = || {
            let mut memory = TensorMemory::new();
            memory.allocate(0, 128, 0);
            (0..128).for_each(|column| memory.set_column(1, column, &[7; 32]));
            memory.forget();
            memory.allocate(0, 128, 1);
            memory
        };
        let mut memory = left();
        assert_eq!(memory.get(40, 100), (u32::MAX, false));
        memory.set(40, 33, 5, true);
        assert_eq!(
            [33, 34, 64].map(|column| memory.get(40, column)),
            [(5, true), (u32::MAX, false), (u32::MAX, false)]
        );
        memory.refresh(64, 32, false);
        assert_eq!(memory.row(40, 64)[..32], [u32::MAX; 32]);
        // Of 40 columns that are all overwritten, 8 lie in a slot with others.
        let mut memory = left();
        memory.refresh(32, 40, true);
        memory.cells_mut()[TensorMemory::index(40, 32)] = 9;
        assert_eq!([32, 80].map(|column| memory.get(40, column)), [(9, false), (u32::MAX, false)]);
    }

    #[test]
    fn the_first_column_that_nobody_holds_is_found() {
        let mut memory = TensorMemory::new();
        memory.allocate(64, 64, 0);
        memory.allocate(128, 32, 0);
        for column in 0..520 {
            for columns in [0, 1, 31, 32, 33, 100] {
                let held = |n| (64..160).contains(&n);
                let expected = (column..column + columns).find(|&n| !held(n));
                assert_eq!(memory.unallocated(column, columns), expected, "{columns} from {column}");
            }
        }
    }

    #[test]
    fn tensor_memory_that_was_used_is_new_again() {
        let mut tensor = TensorMemory::new();
        tensor.allocate(32, 64, 3);
        tensor.set(40, 33, 5, true);
        tensor.set_origin(40, 2);
        tensor.free(Allocation { column: 32, columns: 64, site: 3 }, 9);
        tensor.allocate(0, 32, 4);
        let free = [(0, 32), (16, 16), (16, 17), (64, 1), (511, 2), (600, 4)].map(|(c, n)| tensor.unallocated(c, n));
        assert_eq!(free, [None, None, Some(32), Some(64), Some(511), Some(600)]);
        tensor.forget();
        assert!((0..COLUMNS).all(|column| tensor.get(40, column) == (u32::MAX, false)), "what was left is seen");
        tensor.refresh(0, COLUMNS, false);
        assert!(tensor == TensorMemory::new(), "something else is not as it was");
    }
}
