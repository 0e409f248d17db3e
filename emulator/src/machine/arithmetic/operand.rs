//! Operands of an MMA, read out of shared or tensor memory: 32 bytes of each row, which are 16 elements of 16 bits, or more or fewer of
//! other sizes.

use super::formats::unpack;
use crate::machine::mma::matrix_descriptor::Elements;
use crate::machine::tensor_memory::{Layout, SharedDescriptor, TensorMemory, chunks};
use crate::report::Memory;

/// One operand: rows × 32 bytes.
#[derive(Debug, Default)]
pub struct Operand {
    /// Row after row.
    pub bits: Vec<[u16; 16]>,
    /// For each row, whether all of it was defined; empty when all rows are.
    pub defined: Vec<bool>,
}

impl Operand {
    pub fn clear(&mut self) {
        self.bits.clear();
        self.defined.clear();
    }

    /// Whether all of a row was defined.
    pub fn is_defined(&self, row: usize) -> bool {
        self.defined.get(row).is_none_or(|&defined| defined)
    }

    /// Says the same of some rows behind so many.
    fn define(&mut self, before: usize, rows: impl Iterator<Item = bool>) {
        self.defined.resize(before, true);
        self.defined.extend(rows);
    }

    /// Says of rows in shared memory, which follow so many others, whether they are defined.
    pub fn look(&mut self, before: usize, shared: &Memory, d: &SharedDescriptor, rows: u32, mn_major: bool) {
        if mn_major {
            return self.look_turned(before, shared, d, rows);
        }
        let ([_, second], place, data) = (pitches(d), |row| place(d, row), d.elements.data as usize);
        let (low, high) = (place(0) & !127, (place(rows - 1).wrapping_add(second + 16)).next_multiple_of(128));
        let high = (high as usize).min(shared.bytes.len());
        let all = low as usize <= high && shared.all_defined(low as usize, high - low as usize);
        if !all || !self.defined.is_empty() {
            let whole = |row| {
                let [a, b] = [0, second].map(|more| d.swizzled(place(row).wrapping_add(more)) as usize);
                shared.all_defined(a, data) && shared.all_defined(b, data)
            };
            self.define(before, (0..rows).map(whole));
        }
    }

    /// The same of MN-major ones.
    fn look_turned(&mut self, before: usize, shared: &Memory, d: &SharedDescriptor, rows: u32) {
        let (few, data) = (d.elements.of_chunk() as usize, d.elements.data as usize);
        let all = || chunks(rows, true, d.elements);
        let whole = all().all(|(mn, k)| shared.all_defined(d.chunk(mn, k, true) as usize, data));
        if whole && self.defined.is_empty() {
            return;
        }
        let mut defined = vec![true; rows as usize];
        for (mn, k) in all() {
            let at = d.chunk(mn, k, true) as usize;
            let whole = shared.all_defined(at, data);
            for row in &mut defined[mn as usize..mn as usize + few] {
                *row &= whole;
            }
        }
        self.define(before, defined.into_iter());
    }

    /// Appends rows out of shared memory.
    pub fn read(&mut self, shared: &Memory, d: &SharedDescriptor, rows: u32, mn_major: bool) {
        self.look(self.bits.len(), shared, d, rows, mn_major);
        if mn_major && d.elements == Elements::B16 {
            return self.read_turned(shared, d, rows);
        }
        if mn_major {
            return self.read_turned_bytes(shared, d, rows);
        }
        let first = self.bits.len();
        self.read_rows(shared, d, rows);
        if d.elements.data < 16 {
            let groups = self.bits[first..].as_flattened_mut().as_chunks_mut::<8>().0;
            groups.iter_mut().for_each(|group| *group = words(unpack(bytes(*group), d.elements)));
        }
    }

    /// Appends rows of a K-major operand, byte by byte as they lie there.
    fn read_rows(&mut self, shared: &Memory, d: &SharedDescriptor, rows: u32) {
        let ([pitch, second], place) = (pitches(d), |row| place(d, row));
        let bytes = &shared.bytes[..];
        let patterns = d.swizzle == 128 && !d.wide && d.start % 1024 <= 96 && d.stride.is_multiple_of(1024);
        let end = d.start as usize / 1024 * 1024 + (rows as usize / 8).saturating_sub(1) * d.stride as usize + 1024;
        if patterns && rows.is_multiple_of(8) && end <= bytes.len() {
            return self.read_lines(bytes, d, rows);
        }
        self.bits.reserve(rows as usize);
        for group in 0..rows.div_ceil(8) {
            let (start, mut eight) = (place(group * 8), [[0; 16]; 8]);
            let eight = &mut eight[..(rows - group * 8).min(8) as usize];
            for (row, r) in eight.iter_mut().zip(0..) {
                let at = start.wrapping_add(r * pitch);
                let (a, b) = (d.swizzled(at), d.swizzled(at.wrapping_add(second)));
                let halves = row.as_chunks_mut::<8>().0;
                halves[0] = elements(bytes, a as usize);
                halves[1] = elements(bytes, b as usize);
            }
            self.bits.extend_from_slice(eight);
        }
    }

    /// Rows in lines of 128 bytes, eight of which make up the swizzle's pattern.
    fn read_lines(&mut self, bytes: &[u8], d: &SharedDescriptor, rows: u32) {
        let chunk = d.start as usize % 128 / 16;
        self.bits.reserve(rows as usize);
        for group in 0..rows / 8 {
            let start = (d.start / 1024 * 1024 + group * d.stride) as usize;
            let Some(pattern) = bytes[start..].first_chunk::<1024>() else { return };
            let lines = pattern.as_chunks::<16>().0.as_chunks::<8>().0;
            let mut eight = [[0; 16]; 8];
            for (row, (line, r)) in eight.iter_mut().zip(lines.iter().zip(0..)) {
                let halves = row.as_chunks_mut::<8>().0;
                halves[0] = words(line[(chunk ^ r) % 8]);
                halves[1] = words(line[((chunk + 1) ^ r) % 8]);
            }
            self.bits.extend_from_slice(&eight);
        }
    }

    /// The same of MN-major ones: a chunk holds eight rows at one depth.
    fn read_turned(&mut self, shared: &Memory, d: &SharedDescriptor, rows: u32) {
        let first = self.bits.len();
        self.bits.resize(first + rows as usize, [0; 16]);
        for (mn, k) in chunks(rows, true, Elements::B16) {
            let at = d.chunk(mn, k, true) as usize;
            let eight = elements(&shared.bytes, at);
            let rows = &mut self.bits[first + mn as usize..];
            for (row, bits) in rows.iter_mut().zip(eight) {
                row[k as usize] = bits;
            }
        }
    }

    /// The same of elements of 8 or of 32 bits.
    fn read_turned_bytes(&mut self, shared: &Memory, d: &SharedDescriptor, rows: u32) {
        let (first, size) = (self.bits.len(), 16 / d.elements.of_chunk() as usize);
        self.bits.resize(first + rows as usize, [0; 16]);
        for (mn, k) in chunks(rows, true, d.elements) {
            let chunk = bytes(elements(&shared.bytes, d.chunk(mn, k, true) as usize));
            let rows = &mut self.bits[first + mn as usize..];
            for (row, element) in rows.iter_mut().zip(chunk.chunks_exact(size)) {
                for (n, &byte) in (k as usize * size..).zip(element) {
                    row[n / 2] |= u16::from(byte) << (n % 2 * 8);
                }
            }
        }
    }

    /// Says of the rows of A in tensor memory, which follow so many others, whether they are defined.
    pub fn look_at_tensor(&mut self, before: usize, tensor: &TensorMemory, column: u32, rows: u32, layout: Layout) {
        let cells = |row: u32| cells(tensor, column, row, layout);
        if !self.defined.is_empty() || (0..rows).any(|row| cells(row).any(|(_, defined)| !defined)) {
            self.define(before, (0..rows).map(|row| cells(row).all(|(_, defined)| defined)));
        }
    }

    /// Appends the rows of A out of tensor memory: a row a lane, four bytes a column.
    pub fn read_tensor(&mut self, tensor: &TensorMemory, column: u32, rows: u32, layout: Layout) {
        self.look_at_tensor(self.bits.len(), tensor, column, rows, layout);
        let cells = |row: u32| cells(tensor, column, row, layout);
        for row in 0..rows {
            let mut bits = [0; 16];
            for (two, (value, _)) in bits.as_chunks_mut::<2>().0.iter_mut().zip(cells(row)) {
                *two = [value as u16, (value >> 16) as u16];
            }
            self.bits.push(bits);
        }
    }
}

/// Where the first of the two chunks of a row of a K-major operand begins, before the swizzle: eight rows lie side by side.
fn place(d: &SharedDescriptor, row: u32) -> u32 {
    d.start.wrapping_add(row / 8 * d.stride + row % 8 * pitches(d)[0])
}

/// From one of these rows to the next, and from its first chunk to its second, which lies in the same 128 bytes unless there is no
/// swizzle.
fn pitches(d: &SharedDescriptor) -> [u32; 2] {
    if d.swizzle == 0 { [16, d.leading] } else { [d.swizzle, 16] }
}

/// The cells of tensor memory that hold a row of A, four bytes each. The rows lie in the lanes of the same rows of D; for a pair's
/// 64 rows, in lanes 0 to 63.
fn cells(tensor: &TensorMemory, column: u32, row: u32, layout: Layout) -> impl Iterator<Item = (u32, bool)> {
    let lane = layout.cell(row, 0, 2).0;
    (0..8).map(move |c| tensor.get(lane, column + c))
}

/// The eight 16-bit elements of a chunk.
#[inline(always)]
fn elements(bytes: &[u8], at: usize) -> [u16; 8] {
    let Some(chunk) = bytes[at..].first_chunk::<16>() else { return [0; 8] };
    std::array::from_fn(|n| u16::from_le_bytes([chunk[2 * n], chunk[2 * n + 1]]))
}

/// A chunk byte by byte.
pub fn bytes(words: [u16; 8]) -> [u8; 16] {
    std::array::from_fn(|n| words[n / 2].to_le_bytes()[n % 2])
}

fn words(bytes: [u8; 16]) -> [u16; 8] {
    std::array::from_fn(|n| u16::from_le_bytes([bytes[2 * n], bytes[2 * n + 1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::arithmetic::exact::tests::Random;

    /// Every layout, with holes and without: element by element what [`SharedDescriptor::chunk`] says.
    #[test]
    fn operands_are_what_the_descriptor_says() {
        let mut random = Random(3);
        for case in 0..400u32 {
            let mn_major = case % 2 == 1;
            let swizzle = [0, 32, 64, 128][case as usize / 2 % 4];
            let mut any = |n: u64| (random.next() % n) as u32 * 16;
            let mut d = SharedDescriptor {
                start: 4096 + any(64),
                leading: any(70),
                stride: any(70),
                swizzle,
                ..Default::default()
            };
            if case % 5 == 0 {
                // As tiles of whole patterns lie.
                (d.start, d.stride) = (4096 + d.start % 128, d.stride / 512 * 1024 + 1024);
            }
            let rows = [8, 64, 128, 48][case as usize / 8 % 4];
            let mut shared = Memory::from_bytes((0..1 << 16).map(|_| random.next() as u8).collect::<Vec<u8>>());
            if case % 3 != 0 {
                for _ in 0..case % 3 * 400 {
                    shared.store((random.next() % 0xffff) as usize, 1, 0x55, false);
                }
            }
            let mut got = Operand::default();
            for part in 0..2 {
                got.read(&shared, &SharedDescriptor { start: d.start + part * 2048, ..d }, rows, mn_major);
            }
            for part in 0..2 {
                let d = SharedDescriptor { start: d.start + part * 2048, ..d };
                let (mut bits, mut defined) = (vec![[0; 16]; rows as usize], vec![true; rows as usize]);
                for (mn, k) in chunks(rows, mn_major, Elements::B16) {
                    let (value, whole) = shared.load(d.chunk(mn, k, mn_major) as usize, 16);
                    for n in 0..8 {
                        let (row, depth) = if mn_major { (mn + n, k) } else { (mn, k + n) };
                        bits[row as usize][depth as usize] = (value >> (16 * n)) as u16;
                        defined[row as usize] &= whole;
                    }
                }
                for row in 0..rows as usize {
                    let at = (part * rows) as usize + row;
                    assert_eq!(got.bits[at], bits[row], "case {case}, part {part}, row {row}: {d:?}");
                    assert_eq!(got.is_defined(at), defined[row], "case {case}, part {part}, row {row}: {d:?}");
                }
            }
        }
    }
}
