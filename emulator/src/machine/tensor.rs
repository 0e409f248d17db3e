//! Tensor memory, the descriptors of `tcgen05.mma`, and the product itself.

use super::product::Line;
use super::simd;
use crate::numerics::MmaStep;
use crate::report::Memory;

/// Columns of 32-bit cells.
pub const COLUMNS: u32 = 512;
/// Lanes.
pub const LANES: u32 = 128;
/// Columns that an allocation is a multiple of: the allocator's bitmap has 16 slots.
pub const SLOT: u32 = 32;

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
    /// Columns held at most.
    pub most: u32,
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
    pub fn new() -> TensorMemory {
        TensorMemory {
            lines: vec![Line([u32::MAX; 16]); (LANES * COLUMNS / 16) as usize],
            defined: vec![0; 4 * COLUMNS as usize],
            origins: vec![0; COLUMNS as usize],
            slots: [None; (COLUMNS / SLOT) as usize],
            freed: [None; (COLUMNS / SLOT) as usize],
            most: 0,
        }
    }

    /// As it was when it was new.
    pub fn forget(&mut self) {
        self.lines.fill(Line([u32::MAX; 16]));
        self.defined.fill(0);
        self.origins.fill(0);
        (self.slots, self.freed, self.most) = ([None; _], [None; _], 0);
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
        (self.cells()[(lane * COLUMNS + column) as usize], defined)
    }

    pub fn set(&mut self, lane: u32, column: u32, value: u32, defined: bool) {
        self.cells_mut()[(lane * COLUMNS + column) as usize] = value;
        let d = &mut self.defined[(column * 4 + lane / 32) as usize];
        *d = *d & !(1 << (lane % 32)) | u32::from(defined) << (lane % 32);
    }

    /// A lane's cells from a column on.
    pub fn row(&self, lane: u32, column: u32) -> &[u32] {
        &self.cells()[(lane * COLUMNS + column) as usize..(lane as usize + 1) * COLUMNS as usize]
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
        let cells = self.cells_mut();
        for (lane, &value) in (quarter * 32..).zip(values) {
            cells[(lane * COLUMNS + column) as usize] = value;
        }
        self.defined[(column * 4 + quarter) as usize] = u32::MAX;
    }

    /// Where the cell of a lane and column lies in [`TensorMemory::cells_mut`].
    pub fn index(lane: u32, column: u32) -> usize {
        (lane * COLUMNS + column) as usize
    }

    /// Lane after lane, all columns.
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

/// The instruction descriptor of `kind::f16` (PTX ISA 9.7.16.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionDescriptor {
    pub m: u32,
    pub n: u32,
    /// FP32 accumulator; else FP16.
    pub d_f32: bool,
    pub a_bf16: bool,
    pub b_bf16: bool,
    pub negate_a: bool,
    pub negate_b: bool,
    /// MN-major instead of K-major.
    pub a_mn_major: bool,
    pub b_mn_major: bool,
}

/// What is wrong with a descriptor: what was found, and what is allowed.
pub type BadDescriptor = (String, String);

impl InstructionDescriptor {
    /// What an MMA with it computes.
    pub fn step(&self, accumulate: bool, scale: u32) -> MmaStep {
        let InstructionDescriptor { d_f32, a_bf16, b_bf16, negate_a, negate_b, .. } = *self;
        MmaStep { a_bf16, b_bf16, d_f32, negate_a, negate_b, accumulate, scale }
    }

    /// The fields, for an MMA of this many CTAs.
    pub fn decode(bits: u32, ctas: u32) -> Result<InstructionDescriptor, BadDescriptor> {
        let field = |low: u32, width: u32| bits >> low & ((1 << width) - 1);
        let (n, m) = (field(17, 6) * 8, field(24, 5) * 16);
        let bad = |found: String, allowed: &str| Err((found, allowed.to_string()));
        if bits & (0b111 | 1 << 3 | 1 << 6 | 1 << 23 | 1 << 29 | 0b11 << 30) != 0 {
            return bad(
                format!("the instruction descriptor {bits:#010x} sets bits that are zero for kind::f16"),
                "bits 0–3, 6, 23 and 29–31 are zero in a dense kind::f16 MMA",
            );
        }
        let (shapes, step) = if ctas == 1 { ([64, 128], 8) } else { ([128, 256], 16) };
        if !shapes.contains(&m) || n == 0 || n > 256 || !n.is_multiple_of(step) {
            let allowed = if ctas == 1 {
                "with cta_group::1, M is 64 or 128 and N a multiple of 8 up to 256"
            } else {
                "with cta_group::2, M is 128 or 256 and N a multiple of 16 up to 256"
            };
            return bad(format!("the instruction descriptor {bits:#010x} says M = {m}, N = {n}"), allowed);
        }
        let (d, a, b) = (field(4, 2), field(7, 3), field(10, 3));
        if d > 1 || a > 1 || b > 1 {
            return bad(
                format!("the instruction descriptor {bits:#010x} has formats D = {d}, A = {a}, B = {b}"),
                "for kind::f16: D 0 (FP16) or 1 (FP32), A and B 0 (FP16) or 1 (BF16)",
            );
        }
        if d == 0 && (a == 1 || b == 1) {
            return bad(
                format!("the instruction descriptor {bits:#010x} accumulates BF16 products in FP16"),
                "an FP16 accumulator takes FP16 operands",
            );
        }
        Ok(InstructionDescriptor {
            m,
            n,
            d_f32: d == 1,
            a_bf16: a == 1,
            b_bf16: b == 1,
            negate_a: field(13, 1) == 1,
            negate_b: field(14, 1) == 1,
            a_mn_major: field(15, 1) == 1,
            b_mn_major: field(16, 1) == 1,
        })
    }
}

/// A shared-memory matrix descriptor (PTX ISA 9.7.16.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedDescriptor {
    /// Offset in the CTA's shared window.
    pub start: u32,
    /// Leading-dimension byte offset.
    pub leading: u32,
    /// Stride-dimension byte offset.
    pub stride: u32,
    /// Bytes of the swizzle pattern's row: 0, 32, 64, 128.
    pub swizzle: u32,
}

impl SharedDescriptor {
    pub fn decode(bits: u64) -> Result<SharedDescriptor, BadDescriptor> {
        let field = |low: u32, width: u32| (bits >> low & ((1 << width) - 1)) as u32;
        let swizzle = match field(61, 3) {
            0 => 0,
            2 => 128,
            4 => 64,
            6 => 32,
            other => {
                return Err((
                    format!("the matrix descriptor {bits:#018x} has swizzle code {other} in bits 61–63"),
                    "for 16-bit operands: 0 (none), 2 (128 bytes), 4 (64 bytes), 6 (32 bytes)".into(),
                ));
            }
        };
        if field(46, 3) != 0b001 {
            return Err((
                format!("the matrix descriptor {bits:#018x} has {:#05b} in bits 46–48", field(46, 3)),
                "Blackwell descriptors hold the constant 0b001 there; Hopper's do not".into(),
            ));
        }
        if field(49, 3) != 0 || field(52, 1) != 0 {
            return Err((
                format!("the matrix descriptor {bits:#018x} has a base offset or an absolute leading dimension"),
                "base offset 0 (bits 49–51) and relative mode (bit 52 = 0) are modelled: align the tile to its swizzle \
                 pattern (1024, 512 or 256 bytes)"
                    .into(),
            ));
        }
        Ok(SharedDescriptor {
            start: field(0, 14) << 4,
            leading: field(16, 14) << 4,
            stride: field(32, 14) << 4,
            swizzle,
        })
    }

    /// Where the 16 bytes at row (or column) `mn` and depth `k` of a 16-bit operand lie: 8 elements along k (K-major)
    /// or along mn (MN-major). PTX ISA 9.7.16.3.3 (canonical layouts); the swizzle is an exclusive or on the address.
    pub fn chunk(&self, mn: u32, k: u32, mn_major: bool) -> u32 {
        let (w, mn_lead, mn_stride) = (self.swizzle, self.leading, self.stride);
        let offset = match (mn_major, w) {
            (false, 0) => mn % 8 * 16 + mn / 8 * self.stride + k / 8 * self.leading,
            (false, _) => mn % 8 * w + mn / 8 * self.stride + k * 2,
            (true, 0) => mn / 8 * mn_stride + k % 8 * 16 + k / 8 * mn_lead,
            (true, _) => {
                let atom = w / 2;
                mn % atom * 2 + mn / atom * self.leading + k % 8 * w + k / 8 * self.stride
            }
        };
        swizzle(self.start.wrapping_add(offset), w)
    }
}

/// The swizzle: an exclusive or of address bits 4–6 with bits 7–9, as many as the pattern has.
pub fn swizzle(address: u32, width: u32) -> u32 {
    match width {
        32 => address ^ (address >> 7 & 1) << 4,
        64 => address ^ (address >> 7 & 3) << 4,
        128 => address ^ (address >> 7 & 7) << 4,
        _ => address,
    }
}

/// The 16-byte chunks of a rows × 16 operand: (mn, k) of the first element of each.
pub fn chunks(rows: u32, mn_major: bool) -> impl Iterator<Item = (u32, u32)> {
    let (outer, inner, step_outer, step_inner) = if mn_major { (16, rows, 1, 8) } else { (rows, 16, 1, 8) };
    (0..outer)
        .step_by(step_outer)
        .flat_map(move |o| (0..inner).step_by(step_inner).map(move |i| if mn_major { (i, o) } else { (o, i) }))
}

/// Where the elements of an accumulator lie in a CTA's tensor memory (PTX ISA, tcgen05 data path layouts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A lane for each row: layouts A (M = 256 of a pair, each CTA its half) and D (M = 128 of one CTA).
    Full,
    /// M = 128 of a pair: 64 rows a CTA, the right half of the columns in lanes 64 and up (layout B).
    Halves,
    /// M = 64 of one CTA: 16 lanes of each quarter (layout F).
    Quarters,
}

impl Layout {
    /// The layout of an accumulator of M rows, computed by so many CTAs.
    pub fn of(m: u32, ctas: usize) -> Layout {
        match (m, ctas) {
            (64, _) => Layout::Quarters,
            (128, 2) => Layout::Halves,
            _ => Layout::Full,
        }
    }

    /// Columns that N columns of the accumulator take.
    pub fn columns(self, n: u32) -> u32 {
        if self == Layout::Halves { n / 2 } else { n }
    }

    /// Lane and column of an element.
    pub fn cell(self, row: u32, column: u32, n: u32) -> (u32, u32) {
        match self {
            Layout::Full => (row, column),
            Layout::Quarters => (row % 16 + 32 * (row / 16), column),
            Layout::Halves => {
                if column < n / 2 {
                    (row, column)
                } else {
                    (64 + row, column - n / 2)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PTX ISA 9.7.16.3.3: in rows of 128 bytes, the 16-byte chunk c of row r goes to chunk c ^ (r % 8).
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
    fn k_major_128_byte_swizzle_permutes_chunks_by_row() {
        let d = SharedDescriptor::decode(0x4000_4040_0000_0000 | 0x2000 >> 4).unwrap();
        assert_eq!((d.start, d.stride, d.swizzle), (0x2000, 1024, 128));
        assert_eq!(d.chunk(3, 8, false), 0x2000 + 3 * 128 + (1 ^ 3) * 16);
        assert_eq!(d.chunk(9, 0, false), 0x2000 + 1024 + 128 + 16);
        // The descriptor of the second K = 16 slice starts 32 bytes on: the pattern stays with the address.
        let next = SharedDescriptor { start: d.start + 32, ..d };
        assert_eq!(next.chunk(3, 0, false), 0x2000 + 3 * 128 + 16, "chunk 2 of row 3 lies where 2 ^ 3 = 1 points");
    }

    #[test]
    fn instruction_descriptors_decode_to_the_isa_examples() {
        let i = InstructionDescriptor::decode(0x0820_0010, 1).unwrap();
        assert_eq!((i.m, i.n, i.d_f32, i.a_bf16), (128, 128, true, false));
        let i = InstructionDescriptor::decode(0x0840_0490, 1).unwrap();
        assert_eq!((i.m, i.n, i.a_bf16, i.b_bf16), (128, 256, true, true));
        // 256 rows need a pair of CTAs.
        assert!(InstructionDescriptor::decode(0x1040_0490, 1).is_err());
        assert_eq!(InstructionDescriptor::decode(0x1040_0490, 2).unwrap().m, 256);
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
        assert_eq!(tensor, TensorMemory::new());
    }
}
