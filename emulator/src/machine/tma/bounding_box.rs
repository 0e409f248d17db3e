//! The box of a tensor that a copy moves: its rows, and the part of each that lies within the tensor (PTX ISA, tensor bounding box
//! and out-of-bounds).

use crate::machine::cluster::{Cluster, Stop};
use crate::machine::memory::{Global, Runs};
use crate::report::Memory;
use crate::tensor_map::TensorMap;
use smallvec::{SmallVec, smallvec};

/// Rows of a box that lie one behind the other in shared memory and at equal distances in global memory.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Offset of the first in the box, before the swizzle.
    pub linear: u32,
    /// Bytes of a row, and from one to the next: a row that is narrower than the swizzle's pattern takes a whole row of the pattern
    /// (measured on an H200).
    pub bytes: u32,
    pub pitch: u32,
    pub count: u32,
    /// Of each, the part that lies within the tensor: where in the row it begins, and what it is in global memory.
    pub inside: Option<(u32, Runs)>,
}

impl Rows {
    /// Each row in pieces of so many bytes, which take 16 bytes of shared memory each. A row lies within the tensor or does not.
    fn padded(self, packed: u32) -> impl Iterator<Item = Rows> {
        let inside = self.inside.map(|(_, runs)| runs).filter(|runs| runs.bytes == self.bytes);
        (0..self.count).map(move |n| Rows {
            linear: self.linear + n * self.pitch,
            bytes: packed,
            pitch: 16,
            count: self.bytes / packed,
            inside: inside.map(|runs| {
                let first = runs.first + u64::from(n) * runs.pitch;
                (0, Runs { first, bytes: packed, count: self.bytes / packed, pitch: packed.into(), ..runs })
            }),
        })
    }

    /// Bytes that lie side by side, in global memory or not.
    pub fn plain(bytes: u32, place: Option<(usize, u64)>) -> Rows {
        let inside = place.map(|(buffer, at)| (0, Runs::one(buffer, at, bytes)));
        Rows { linear: 0, bytes, pitch: bytes, count: 1, inside }
    }

    /// Of each 16 bytes those whose bit is set. `place`: the first of them all.
    pub fn masked(bytes: u32, mask: u16, (buffer, at): (usize, u64)) -> SmallVec<[Rows; 1]> {
        if mask == u16::MAX {
            return smallvec![Rows::plain(bytes, Some((buffer, at)))];
        }
        let (mut left, mut rows) = (u32::from(mask), SmallVec::new());
        while left != 0 {
            let linear = left.trailing_zeros();
            let width = (left >> linear).trailing_ones();
            left &= !(((1 << width) - 1) << linear);
            let first = at + u64::from(linear - mask.trailing_zeros());
            let (count, pitch) = (bytes / 16, 16);
            let runs = Runs { buffer, first, bytes: width, count, pitch: pitch.into() };
            rows.push(Rows { linear, bytes: width, pitch, count, inside: Some((0, runs)) });
        }
        rows
    }

    /// Whether some of it lies outside of the tensor.
    pub fn hangs_over(&self) -> bool {
        self.inside.is_none_or(|(_, runs)| runs.bytes != self.bytes)
    }

    /// Whether rows lie one behind the other without a gap.
    pub fn dense(&self) -> bool {
        self.bytes == self.pitch
    }

    /// Where each row begins in the box, before the swizzle.
    pub fn starts(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |n| self.linear + n * self.pitch)
    }

    /// For each row, where its part within the tensor begins in the box, and in global memory.
    pub fn parts(self) -> impl Iterator<Item = (u32, u64)> {
        let Rows { linear, pitch, count, inside, .. } = self;
        let first = move |begin| (0..count).map(move |n| linear + n * pitch + begin);
        inside.into_iter().flat_map(move |(begin, runs)| first(begin).zip(runs.starts()))
    }
}

impl Cluster<'_> {
    /// The rows of a box.
    pub fn box_rows(&self, site: u32, map: &TensorMap, coordinates: &[i32]) -> Result<SmallVec<[Rows; 1]>, Stop> {
        let rank = map.dims.len();
        let (element, padded) = (map.element, map.element.padded());
        let bytes = element.bytes_of(map.box_elements(0));
        let shared_pitch = map.row_pitch();
        let c0 = i64::from(coordinates[0]);
        let (low, high) = (c0.max(0), (c0 + i64::from(map.box_elements(0))).min(map.dims[0] as i64));
        // Dimension 1 in runs; the others one index after the other.
        let (n1, c1, stride) = match rank {
            1 => (1, 0, 1),
            _ => (map.box_elements(1), i64::from(coordinates[1]), i64::from(map.element_stride(1))),
        };
        let (size1, pitch) = match rank {
            1 => (1, 0),
            _ => (map.dims[1] as i64, map.strides[0].wrapping_mul(stride as u64)),
        };
        let first_inside = (-c1).max(0).div_euclid(stride) + i64::from((-c1).max(0) % stride != 0);
        let first_inside = first_inside.min(i64::from(n1));
        let end_inside = (size1 - c1 + stride - 1).div_euclid(stride).clamp(first_inside, i64::from(n1));
        let outer: u32 = (2..rank).map(|d| map.box_elements(d)).product();
        let mut list = SmallVec::new();
        for slice in 0..outer {
            let (mut rest, mut inside, mut address) = (slice, high > low, map.address);
            for (d, &coordinate) in coordinates.iter().enumerate().take(rank).skip(2) {
                let n = map.box_elements(d);
                let index = i64::from(coordinate) + i64::from(rest % n) * i64::from(map.element_stride(d));
                rest /= n;
                inside &= (0..map.dims[d] as i64).contains(&index);
                address = address.wrapping_add((index as u64).wrapping_mul(map.strides[d - 1]));
            }
            let (from, to) = if inside { (first_inside as u32, end_inside as u32) } else { (0, 0) };
            for (begin, end, within) in [(0, from, false), (from, to, true), (to, n1, false)] {
                if begin == end {
                    continue;
                }
                let linear = (slice * n1 + begin) * shared_pitch;
                let count = end - begin;
                let mut rows = Rows { linear, bytes, pitch: shared_pitch, count, inside: None };
                if within {
                    let index = (c1 + i64::from(begin) * stride) as u64;
                    let row = if rank > 1 { index.wrapping_mul(map.strides[0]) } else { 0 };
                    let first = address.wrapping_add(row).wrapping_add(low as u64 * u64::from(element.bits()) / 8);
                    let len = element.bytes_of((high - low) as u32);
                    let runs = self.place_rows(first, len, count, pitch);
                    let runs = runs.map_err(|bad| self.leads_outside(site, map, bad, len))?;
                    rows.inside = Some((element.bytes_of((low - c0) as u32), runs));
                }
                match padded {
                    Some(packed) => list.extend(rows.padded(packed)),
                    None => list.push(rows),
                }
            }
        }
        Ok(list)
    }

    /// Rows of a box in global memory; `Err`: the first that does not lie there.
    fn place_rows(&self, first: u64, len: u32, count: u32, pitch: u64) -> Result<Runs, u64> {
        let last = first.wrapping_add(u64::from(count - 1).wrapping_mul(pitch));
        let end = |at: u64| self.global.find(at, len.into());
        if let (Some((buffer, offset)), Some((same, _))) = (end(first), end(last))
            && buffer == same
            && last >= first
        {
            return Ok(Runs { buffer, first: offset, bytes: len, count, pitch });
        }
        let starts = (0..u64::from(count)).map(|n| first.wrapping_add(n.wrapping_mul(pitch)));
        Err(starts.into_iter().find(|&at| end(at).is_none()).unwrap_or(last))
    }

    /// What is said of a map that leads to these bytes. A map may say more than there is, as long as no box
    /// has it: those of Triton for ragged tensors have dimensions of 2^30.
    fn leads_outside(&self, site: u32, map: &TensorMap, bad: u64, len: u32) -> Stop {
        let mut diagnostic = self.problem(
            "out-of-bounds",
            site,
            format!(
                "the tensor map leads to {len} bytes at {bad:#x}, outside of global memory: {}",
                self.global.nearest(bad)
            ),
            "A copy accesses the bytes to which its tensor map's address, sizes and strides lead: these lie within one allocation. Only what lies \
             outside of the map's sizes is filled, or left out (PTX ISA 5.5.3.1, bounding box).",
            "Check the arguments of cuTensorMapEncodeTiled.".into(),
        );
        let (reach, place) = (map.reach(), self.global.find(map.address, 1));
        let rest = place
            .map(|(buffer, offset)| (buffer, offset, self.global.buffers[buffer].memory.bytes.len() as u64 - offset));
        if let Some((buffer, offset, rest)) = rest.filter(|(.., rest)| *rest < reach) {
            let buffer = &self.global.buffers[buffer];
            let from = if offset == 0 { format!("`{}`", buffer.name) } else { buffer.describe(offset) };
            let strides =
                if map.strides.is_empty() { String::new() } else { format!(" and strides of {:?} bytes", map.strides) };
            diagnostic.labels[0].text = format!(
                "its map has sizes of {:?} elements of {} bits{strides}: {reach} bytes from its address on, and there are {rest} from {from} on",
                map.dims,
                map.element.bits()
            );
            diagnostic.help = "Give the map the sizes and the strides of what lies in the buffer (cuTensorMapEncodeTiled: globalDim in elements, globalStrides \
                               in bytes), or allocate as much."
                .into();
        }
        Some(Box::new(diagnostic))
    }
}

/// Copies what lies within the tensor into a dense box.
pub fn read_rows(rows: &Rows, global: &Global, outbox: &crate::machine::chip::outbox::Outbox, into: &mut Memory) {
    let Some((_, runs)) = rows.inside else { return };
    for (to, at) in rows.parts() {
        outbox.copy(global, runs.buffer, at, runs.bytes as usize, into, to as usize);
    }
}
