//! Tensor maps: what `cuTensorMapEncodeTiled` takes, the 128-byte object that it gives, and the box that a copy moves.
//!
//! The layout of the object is not documented by NVIDIA. The one here was worked out by others from what the driver writes; a
//! driver for CUDA 13.0 writes the same for all maps of `tests/tensor_maps.txt`. It is the assumption `tensor-map-object`.

mod cure;
mod element;
mod field;
mod padded;

pub use element::Element;
pub use field::{Field, FieldKind};
use serde::{Deserialize, Serialize};

/// A tiled tensor map, as `cuTensorMapEncodeTiled` takes it (CUDA driver API, tensor map object management).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorMap {
    /// Address of element 0 in global memory. In a launch file it may be below zero, and is then so much in front of the buffer.
    #[serde(default, deserialize_with = "address_or_distance")]
    pub address: u64,
    /// Type of the elements.
    pub element: Element,
    /// Size of each dimension in elements, innermost first; as many as the rank.
    pub dims: Vec<u64>,
    /// Bytes from one index to the next, of each dimension but the innermost.
    pub strides: Vec<u64>,
    /// Elements of the box in each dimension.
    pub box_dims: Vec<u32>,
    /// Distance of the elements taken, in each dimension. 1: all.
    #[serde(default)]
    pub element_strides: Vec<u32>,
    /// Swizzle of the box in shared memory.
    #[serde(default)]
    pub swizzle: Swizzle,
    /// What elements outside of the tensor read as: NaN instead of zero.
    #[serde(default)]
    pub fill_nan: bool,
}

/// A number of 64 bits with or without a sign, as its bits.
fn address_or_distance<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Address(u64),
        InFront(i64),
    }
    Ok(match Number::deserialize(from)? {
        Number::Address(address) => address,
        Number::InFront(distance) => distance as u64,
    })
}

/// Swizzle modes of a tensor map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Swizzle {
    /// None.
    #[default]
    None,
    /// 16-byte chunks within 32 bytes.
    B32,
    /// 16-byte chunks within 64 bytes.
    B64,
    /// 16-byte chunks within 128 bytes.
    B128,
    /// 32-byte chunks within 128 bytes.
    B128Atom32,
    /// 32-byte chunks within 128 bytes, the 8-byte halves of odd rows swapped. Loads only.
    B128Atom32Flip8,
    /// 64-byte chunks within 128 bytes.
    B128Atom64,
}

impl Swizzle {
    pub(crate) const ALL: [Swizzle; 7] = [
        Swizzle::None,
        Swizzle::B32,
        Swizzle::B64,
        Swizzle::B128,
        Swizzle::B128Atom32,
        Swizzle::B128Atom32Flip8,
        Swizzle::B128Atom64,
    ];

    /// (mode, atomicity) in the object.
    fn codes(self) -> (u32, u32) {
        match self {
            Swizzle::None => (0, 0),
            Swizzle::B32 => (1, 0),
            Swizzle::B64 => (2, 0),
            Swizzle::B128 => (3, 0),
            Swizzle::B128Atom32 => (3, 1),
            Swizzle::B128Atom32Flip8 => (3, 2),
            Swizzle::B128Atom64 => (3, 3),
        }
    }

    /// How messages call it.
    pub(crate) fn called(self) -> &'static str {
        match self {
            Swizzle::None => "no swizzle",
            Swizzle::B32 => "the 32-byte swizzle",
            Swizzle::B64 => "the 64-byte swizzle",
            Swizzle::B128 => "the 128-byte swizzle",
            Swizzle::B128Atom32 => "the 128-byte swizzle of 32-byte chunks",
            Swizzle::B128Atom32Flip8 => "the 128-byte swizzle of 32-byte chunks, halves swapped",
            Swizzle::B128Atom64 => "the 128-byte swizzle of 64-byte chunks",
        }
    }

    /// Where threads store the chunks of a tile that is read with it.
    pub(crate) fn stored_how(self) -> &'static str {
        match self {
            Swizzle::None => "store chunk c of row r of the tile at chunk c",
            Swizzle::B32 => "store chunk c of row r of a tile with the 32-byte swizzle at chunk c xor (r / 4 mod 2)",
            Swizzle::B64 => "store chunk c of row r of a tile with the 64-byte swizzle at chunk c xor (r / 2 mod 4)",
            Swizzle::B128 => "store chunk c of row r of a tile with the 128-byte swizzle at chunk c xor (r mod 8)",
            Swizzle::B128Atom32 | Swizzle::B128Atom32Flip8 => {
                "store the 32-byte chunk c of row r of a tile with the 128-byte swizzle of 32-byte chunks at chunk c xor (r mod 4)"
            }
            Swizzle::B128Atom64 => {
                "store the 64-byte chunk c of row r of a tile with the 128-byte swizzle of 64-byte chunks at chunk c xor (r mod 2)"
            }
        }
    }

    /// Bytes of a row of the pattern, `None` without swizzle.
    pub fn span(self) -> Option<u32> {
        match self {
            Swizzle::None => None,
            Swizzle::B32 => Some(32),
            Swizzle::B64 => Some(64),
            _ => Some(128),
        }
    }

    /// Where a byte goes: an exclusive or of its shared address (PTX ISA, tensor swizzling modes).
    pub fn apply(self, a: u32) -> u32 {
        match self {
            Swizzle::None => a,
            Swizzle::B32 => a ^ (((a >> 7) & 1) << 4),
            Swizzle::B64 => a ^ (((a >> 7) & 3) << 4),
            Swizzle::B128 => a ^ (((a >> 7) & 7) << 4),
            Swizzle::B128Atom32 => a ^ (((a >> 7) & 3) << 5),
            Swizzle::B128Atom32Flip8 => a ^ (((a >> 7) & 3) << 5) ^ (((a >> 7) & 1) << 3),
            Swizzle::B128Atom64 => a ^ (((a >> 7) & 1) << 6),
        }
    }
}

impl TensorMap {
    /// How indices of a dimension share bytes, if they do. A stride of 0 repeats what lies below on purpose; and no tensor has so many indices as a dimension
    /// that only shifts another one, so that a box ends at any row (maps of ragged tensors).
    pub(crate) fn overlaps(&self) -> Option<String> {
        /// Indices of each dimension that are looked at: what shares bytes does so early on.
        const FIRST: u64 = 8;
        const SHIFTS: u64 = 1 << 30;
        let inner = self.dims.first()? * u64::from(self.element.bits()) / 8;
        let mut places = vec![0u64];
        // Dimensions may lie in any order in memory.
        for (&stride, dimension) in self.strides.iter().zip(1..) {
            let size = self.dims.get(dimension).copied().unwrap_or(1);
            let (shifts, size) = (size >= SHIFTS, size.min(FIRST));
            if stride > 0 && !shifts {
                places = places.iter().flat_map(|&at| (0..size).map(move |n| at.saturating_add(n * stride))).collect();
            }
        }
        places.sort_unstable();
        let near = places.windows(2).find(|two| two[1] - two[0] < inner)?;
        let apart = near[1] - near[0];
        Some(match apart {
            0 => "two indices lead to the same row of dimension 0".into(),
            _ => format!(
                "a row of dimension 0 has {inner} bytes, and another one begins {apart} bytes behind its beginning"
            ),
        })
    }

    /// The dimension whose size would fit where that of dimension 0 stands, if that one does not: indices of dimension 1 are as far apart as so
    /// many elements are large.
    pub(crate) fn exchanged(&self) -> Option<usize> {
        let apart = *self.strides.first()?;
        let fits = |size: u64| (size * u64::from(self.element.bits())).div_ceil(8).next_multiple_of(16) == apart;
        let inner = *self.dims.first()?;
        (1..self.dims.len()).find(|&other| fits(self.dims[other]) && !fits(inner))
    }

    /// The 128-byte object, as 32 words.
    ///
    /// # Errors
    /// What `cuTensorMapEncodeTiled` refuses: the value found, and the values allowed.
    pub fn encode(&self) -> Result<[u8; 128], String> {
        self.check().map_err(|(_, why)| why)?;
        let rank = self.dims.len();
        let mut w = [0u32; 32];
        w[0] = self.address as u32;
        w[1] = (self.address >> 32) as u32;
        let (mode, atomicity) = self.swizzle.codes();
        let (code, tf32) = self.element.codes();
        w[2] = ((rank as u32 - 1) << 4)
            | (code << 7)
            | (tf32 << 16)
            | (mode << 13)
            | (u32::from(self.fill_nan) << 15)
            | (atomicity << 19);
        for (n, &stride) in self.strides.iter().enumerate() {
            w[3 + n] = (stride / 16) as u32;
            w[7] |= (((stride / 16) >> 32) as u32 & 0xf) << (4 * n);
        }
        for (n, &dim) in self.dims.iter().enumerate() {
            w[8 + n] = (dim - 1) as u32;
        }
        let mut tile = self.element.bytes();
        for n in 0..rank {
            let step = self.element_stride(n);
            w[13] |= (step - 1) << (3 * n);
            tile = tile.saturating_mul(self.box_dims[n] / step);
            match n {
                0 => w[13] |= (self.box_dims[0] - 1) << 24,
                _ => w[14] |= (self.box_dims[n] - 1) << (8 * (n - 1)),
            }
        }
        // Zero for packed elements, as others saw the driver write it.
        w[16] = if self.element.is_packed() { 0 } else { tile };
        w[18] = match self.swizzle {
            Swizzle::None => 0x10,
            Swizzle::B32 => 0x100,
            Swizzle::B64 => 0x200,
            _ => 0x400,
        };
        let mut bytes = [0; 128];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(w) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        Ok(bytes)
    }

    /// The tensor map that a 128-byte object holds.
    ///
    /// # Errors
    /// What is wrong with the object: hardware would raise an illegal instruction when a copy uses it.
    pub fn decode(bytes: &[u8; 128]) -> Result<TensorMap, String> {
        let mut w = [0u32; 32];
        for (word, chunk) in w.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        // What CuTe DSL encodes for Blackwell itself has 2 there.
        if ![0, 2].contains(&(w[2] & 0xf)) {
            return Err(format!("its mode is {} (0 and 2 are tiled; im2col is not modelled)", w[2] & 0xf));
        }
        let rank = (w[2] >> 4 & 7) as usize + 1;
        let (code, tf32) = (w[2] >> 7 & 0xf, w[2] >> 16 & 1);
        // Of other types than FP32 the bit says nothing.
        let named = |of: u32| Element::ALL.into_iter().find(|e| e.codes() == (code, of));
        let element = named(tf32).or_else(|| named(0));
        let element = element.ok_or_else(|| format!("its element type has code {code} (0 to 13 are modelled)"))?;
        if rank > 5 {
            return Err(format!("its rank is {rank} (1 to 5)"));
        }
        if w[2] >> 11 & 3 != 0 {
            return Err("it is interleaved, which is not modelled".into());
        }
        let codes = (w[2] >> 13 & 3, w[2] >> 19 & 3);
        let swizzle = Swizzle::ALL.into_iter().find(|s| s.codes() == codes);
        let swizzle = swizzle.ok_or_else(|| format!("its swizzle has mode {} and atomicity {}", codes.0, codes.1))?;
        let map = TensorMap {
            address: u64::from(w[0]) | u64::from(w[1]) << 32,
            element,
            dims: (0..rank).map(|n| u64::from(w[8 + n]) + 1).collect(),
            strides: (0..rank - 1)
                .map(|n| (u64::from(w[3 + n]) | u64::from(w[7] >> (4 * n) & 0xf) << 32) * 16)
                .collect(),
            box_dims: (0..rank).map(|n| 1 + if n == 0 { w[13] >> 24 } else { w[14] >> (8 * (n - 1)) & 0xff }).collect(),
            element_strides: (0..rank).map(|n| 1 + (w[13] >> (3 * n) & 7)).collect(),
            swizzle,
            fill_nan: w[2] >> 15 & 1 == 1,
        };
        map.check().map_err(|(_, why)| why)?;
        Ok(map)
    }

    /// Bytes from its address to the end of its last element.
    pub(crate) fn reach(&self) -> u64 {
        let indices = self.dims.iter().skip(1).zip(&self.strides);
        let last = indices.fold(0u64, |at, (size, stride)| at.saturating_add((size - 1).saturating_mul(*stride)));
        let bits = self.dims.first().map_or(0, |size| size.saturating_mul(self.element.bits().into()));
        last.saturating_add(bits / 8)
    }

    /// The distance of the elements taken in a dimension.
    pub fn element_stride(&self, n: usize) -> u32 {
        self.element_strides.get(n).copied().unwrap_or(1)
    }

    /// Elements that a box brings in a dimension: rounded up, and the innermost has no stride, whatever the map says (measured on
    /// an H200).
    pub fn box_elements(&self, n: usize) -> u32 {
        let stride = if n == 0 { 1 } else { self.element_stride(n) };
        self.box_dims.get(n).map_or(1, |b| b.div_ceil(stride))
    }

    /// Bytes from a row of a box to the next one in shared memory: a row that is narrower than the swizzle's pattern takes a whole row of
    /// the pattern (measured on an H200).
    pub(crate) fn row_pitch(&self) -> u32 {
        let bytes = self.element.bytes_of(self.box_elements(0));
        let width = self.element.padded().map_or(bytes, |packed| bytes / packed * 16);
        self.swizzle.span().unwrap_or(width).max(width)
    }

    /// Bytes of a whole box, which is what a load counts on its mbarrier, also where it hangs over the tensor's edge; padding does not
    /// count (assumption `padded-box-bytes`).
    pub fn box_bytes(&self) -> u32 {
        self.element.bytes_of((0..self.dims.len()).map(|n| self.box_elements(n)).product::<u32>())
    }

    /// The rules of `cuTensorMapEncodeTiled` (CUDA driver API). `Err`: the field that breaks one, and how.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        let rank = self.dims.len();
        let fail = |field: String, is: String| {
            let why = format!("`{field}` {is}");
            Err((field, why))
        };
        let count = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        if !(1..=5).contains(&rank) {
            return fail("dims".into(), format!("has {} (allowed: 1 to 5)", count(rank, "number")));
        }
        for (field, has, needs) in [
            ("box_dims", self.box_dims.len(), rank),
            ("strides", self.strides.len(), rank - 1),
            ("element_strides", self.element_strides.len(), if self.element_strides.is_empty() { 0 } else { rank }),
        ] {
            if has != needs {
                let is = format!("has {}; for {} it has {needs}", count(has, "number"), count(rank, "dimension"));
                return fail(field.into(), is);
            }
        }
        if !self.address.is_multiple_of(16) {
            return fail("address".into(), format!("is {:#x} (allowed: multiples of 16)", self.address));
        }
        for n in 0..rank {
            if !(1..=1 << 32).contains(&self.dims[n]) {
                return fail(format!("dims[{n}]"), format!("is {} (allowed: 1 to 2^32)", self.dims[n]));
            }
            if !(1..=256).contains(&self.box_dims[n]) {
                return fail(format!("box_dims[{n}]"), format!("is {} (allowed: 1 to 256)", self.box_dims[n]));
            }
            if !(1..=8).contains(&self.element_stride(n)) {
                return fail(
                    format!("element_strides[{n}]"),
                    format!("is {} (allowed: 1 to 8)", self.element_stride(n)),
                );
            }
        }
        for (n, &stride) in self.strides.iter().enumerate() {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                let is = format!("is {stride} bytes (allowed: multiples of 16 below 2^40)");
                return fail(format!("strides[{n}]"), is);
            }
        }
        if let Some(packed) = self.element.padded() {
            return self.check_padded(packed).map_err(|(field, is)| {
                let why = format!("`{field}` {is}");
                (field, why)
            });
        }
        if self.element.is_packed() && !self.dims[0].is_multiple_of(2) {
            return fail(
                "dims[0]".into(),
                format!("is {} (allowed with elements of 4 bits: multiples of 2)", self.dims[0]),
            );
        }
        let inner = self.element.bytes_of(self.box_dims[0]);
        if self.element.is_packed() && !self.box_dims[0].is_multiple_of(32) {
            let is = format!(
                "is {} (allowed with elements of 4 bits: multiples of 32, which are 16 bytes)",
                self.box_dims[0]
            );
            return fail("box_dims[0]".into(), is);
        }
        let rows = format!(
            "is {}, which makes rows of {inner} bytes with elements of {}",
            self.box_dims[0],
            count(self.element.bytes() as usize, "byte")
        );
        if !inner.is_multiple_of(16) {
            return fail("box_dims[0]".into(), format!("{rows} (allowed: multiples of 16 bytes)"));
        }
        if let Some(span) = self.swizzle.span().filter(|&s| inner > s) {
            return fail("box_dims[0]".into(), format!("{rows} (allowed with this swizzle: up to {span} bytes)"));
        }
        if self.fill_nan && !self.element.is_float() {
            return fail("fill_nan".into(), "is true, but the elements are integers (allowed: false)".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8; 128]) -> Vec<u32> {
        bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
    }

    fn f16_16x16() -> TensorMap {
        TensorMap {
            address: 0,
            element: Element::F16,
            dims: vec![16, 16],
            strides: vec![32],
            box_dims: vec![16, 8],
            element_strides: vec![1, 1],
            swizzle: Swizzle::None,
            fill_nan: false,
        }
    }

    /// Rows of a part of a ragged tensor, in front of which another dimension shifts the box; two dimensions of the same rows; rows that are too near.
    #[test]
    fn rows_may_be_shifted_and_share_no_bytes() {
        let of = |dims: [u64; 3], strides: [u64; 2]| {
            TensorMap { dims: dims.to_vec(), strides: strides.to_vec(), box_dims: vec![16, 8, 1], ..f16_16x16() }
                .overlaps()
        };
        assert_eq!(of([256, 1 << 30, (1 << 31) - 1], [512, 512]), None);
        assert_eq!(of([256, 128, 4], [512, 128 * 512]), None);
        assert!(of([256, 128, 4], [512, 512]).is_some_and(|what| what.starts_with("two indices lead to the same row")));
        assert!(
            of([256, 128, 4], [256, 128 * 512])
                .is_some_and(|what| what.ends_with("begins 256 bytes behind its beginning"))
        );
    }

    /// What the driver was seen to write for this map.
    #[test]
    fn the_object_is_the_drivers() {
        let w = words(&f16_16x16().encode().unwrap());
        assert_eq!((w[2], w[3], w[8], w[9]), (0x310, 2, 0xf, 0xf));
        assert_eq!((w[13], w[14], w[16], w[18]), (0x0f00_0000, 7, 0x100, 0x10));
        let bf16 = TensorMap { element: Element::Bf16, ..f16_16x16() };
        assert_eq!(words(&bf16.encode().unwrap())[2], 0x510);
    }

    /// Every map that a driver was recorded to encode.
    #[test]
    fn a_recorded_driver_writes_the_same() {
        let mut count = 0;
        for line in include_str!("../tests/tensor_maps.txt").lines().filter(|line| !line.starts_with('#')) {
            let (arguments, object) = line.split_once(" | ").expect(line);
            let mut fields = arguments.split(' ');
            let mut next = || fields.next().expect(line);
            let (element, swizzle, fill) = (next(), next(), next());
            let mut value = || next().split_once('=').expect(line).1;
            let l2: u32 = value().parse().expect(line);
            let address = u64::from_str_radix(value().trim_start_matches("0x"), 16).expect(line);
            let mut list = || match value() {
                "-" => vec![],
                numbers => numbers.split(',').map(|n| n.parse::<u64>().expect(line)).collect(),
            };
            let (dims, strides, box_dims, steps) = (list(), list(), list(), list());
            let map = TensorMap {
                address,
                element: serde_json::from_value(element.into()).expect(line),
                dims,
                strides,
                box_dims: box_dims.into_iter().map(|n| n as u32).collect(),
                element_strides: steps.into_iter().map(|n| n as u32).collect(),
                swizzle: serde_json::from_value(swizzle.into()).expect(line),
                fill_nan: fill == "nan",
            };
            let mut recorded = [0; 32];
            for word in object.split(' ') {
                let (n, bits) = word.split_once(':').expect(line);
                recorded[n.parse::<usize>().expect(line)] = u32::from_str_radix(bits, 16).expect(line);
            }
            let bytes: Vec<u8> = recorded.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(TensorMap::decode(&bytes.try_into().expect(line)).as_ref(), Ok(&map), "{line}");
            // Promotion in L2 is no argument here: it changes no result.
            recorded[2] &= !(l2 << 17);
            assert_eq!(words(&map.encode().expect(line)), recorded, "{line}");
            count += 1;
        }
        assert_eq!(count, 78);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let map = TensorMap {
            address: 0x7f12_3456_7890,
            element: Element::F32,
            dims: vec![1 << 32, 3, 5, 7, 11],
            strides: vec![1 << 36, 1 << 39, 4096, 16],
            box_dims: vec![8, 2, 3, 4, 256],
            element_strides: vec![1, 2, 3, 8, 1],
            swizzle: Swizzle::B128Atom32,
            fill_nan: true,
        };
        assert_eq!(TensorMap::decode(&map.encode().unwrap()).unwrap(), map);
        assert_eq!(map.box_bytes(), 8 * 256 * 4, "2 of 2, 3 of 3 and 4 of 8 elements are one each");
        let inner = TensorMap { element_strides: vec![2, 2, 3, 8, 1], ..map.clone() };
        assert_eq!(inner.box_bytes(), map.box_bytes(), "the innermost dimension has no stride");
    }

    #[test]
    fn what_the_driver_refuses_is_refused() {
        for (map, says) in [
            (TensorMap { box_dims: vec![257, 8], ..f16_16x16() }, "`box_dims[0]` is 257"),
            (TensorMap { box_dims: vec![4, 8], ..f16_16x16() }, "rows of 8 bytes"),
            (TensorMap { strides: vec![24], ..f16_16x16() }, "`strides[0]` is 24 bytes"),
            (TensorMap { address: 8, ..f16_16x16() }, "`address` is 0x8"),
            (
                TensorMap { box_dims: vec![32, 8], swizzle: Swizzle::B32, ..f16_16x16() },
                "with this swizzle: up to 32 bytes",
            ),
            (TensorMap { strides: vec![], ..f16_16x16() }, "`strides` has 0 numbers; for 2 dimensions it has 1"),
        ] {
            let error = map.encode().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
