//! The shared-memory matrix descriptor of `tcgen05`, and where it says that an operand's elements lie.

use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::tensor_map::Swizzle;

/// What is wrong with a descriptor: what was found, and what is allowed.
pub type BadDescriptor = (String, String);

/// How the elements of an operand fill the 16-byte chunks that shared memory is read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Elements {
    /// Bits of an element's place, as a power of two: 2 (4 bits) to 5 (32 bits). FP6 and FP4 that are padded take 8.
    pub log_bits: u32,
    /// Bytes of a chunk that hold data: all, or as many as padding leaves of it.
    pub data: u32,
}

impl Default for Elements {
    fn default() -> Elements {
        Elements::B16
    }
}

impl Elements {
    pub const B4: Elements = Elements { log_bits: 2, data: 16 };
    pub const B8: Elements = Elements { log_bits: 3, data: 16 };
    pub const B16: Elements = Elements { log_bits: 4, data: 16 };
    pub const B32: Elements = Elements { log_bits: 5, data: 16 };
    /// Sixteen elements of 6 bits, then 4 bytes of padding (PTX ISA 5.5.1.1, `.b6x16_p32`).
    pub const B6_PADDED: Elements = Elements { log_bits: 3, data: 12 };
    /// Sixteen elements of 4 bits, then 8 bytes of padding (PTX ISA 5.5.1.1, `.b4x16_p64`).
    pub const B4_PADDED: Elements = Elements { log_bits: 3, data: 8 };

    /// Elements of a chunk.
    pub fn of_chunk(self) -> u32 {
        128 >> self.log_bits
    }

    /// Elements of the 32 bytes that an MMA takes of each row.
    pub fn depth(self) -> u32 {
        256 >> self.log_bits
    }
}

/// A shared-memory matrix descriptor (PTX ISA 9.7.16.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SharedDescriptor {
    /// Offset in the CTA's shared window.
    pub start: u32,
    /// Leading-dimension byte offset.
    pub leading: u32,
    /// Stride-dimension byte offset.
    pub stride: u32,
    /// Bytes of the swizzle pattern's row: 0, 32, 64, 128.
    pub swizzle: u32,
    /// The swizzle moves 32 bytes at a time, not 16.
    pub wide: bool,
    /// What it is a descriptor of.
    pub elements: Elements,
}

/// Whether bits 46–48 are zero, as in Hopper's descriptors: read like the others (assumption `descriptor-without-constant`).
fn lacks_constant(bits: u64) -> bool {
    bits >> 46 & 7 == 0
}

impl Cluster<'_> {
    /// What is said of a descriptor of `which` that is read, but not written as the ISA has it: once, for a kernel writes all of its own alike.
    pub fn note_descriptor(&mut self, site: u32, which: &str, bits: u64) {
        if !lacks_constant(bits) || self.findings.has_note("matrix-descriptor") {
            return;
        }
        let mut note = self.problem(
            "matrix-descriptor",
            site,
            format!("the matrix descriptor of {which}, {bits:#018x}, has 0b000 in bits 46–48"),
            "Blackwell's descriptors hold the constant 0b001 there, Hopper's do not (PTX ISA 9.7.16.4.1). Triton wrote 0b000 up to release \
             3.5, and Mosaic GPU does in JAX 0.10.2; kernels of both run on B200s: it is read all the same.",
            "Add 1 << 46 to the descriptor.".into(),
        );
        note.severity = Severity::Note;
        self.findings.add(note);
    }
}

/// The swizzle's bytes, and whether its atoms are of 32 bytes; `None`: there is no such code (PTX ISA 9.7.16.4.1).
fn swizzle(bits: u64) -> Option<(u32, bool)> {
    match bits >> 61 {
        0 => Some((0, false)),
        1 => Some((128, true)),
        2 => Some((128, false)),
        4 => Some((64, false)),
        6 => Some((32, false)),
        _ => None,
    }
}

impl SharedDescriptor {
    pub fn decode(bits: u64, elements: Elements) -> Result<SharedDescriptor, BadDescriptor> {
        let field = |low: u32, width: u32| (bits >> low & ((1 << width) - 1)) as u32;
        let Some((swizzle, wide)) = swizzle(bits) else {
            return Err((
                format!("the matrix descriptor {bits:#018x} has swizzle code {} in bits 61–63", field(61, 3)),
                "0 (none), 1 (128 bytes, in atoms of 32), 2 (128 bytes), 4 (64 bytes), 6 (32 bytes)".into(),
            ));
        };
        if field(46, 3) != 0b001 && !lacks_constant(bits) {
            return Err((
                format!("the matrix descriptor {bits:#018x} has {:#05b} in bits 46–48", field(46, 3)),
                "Blackwell descriptors hold the constant 0b001 there; Hopper's do not".into(),
            ));
        }
        if field(53, 8) != 0 {
            return Err((
                format!("the matrix descriptor {bits:#018x} has {:#x} in bits 53–60", field(53, 8)),
                "these bits are 0".into(),
            ));
        }
        if field(52, 1) != 0 {
            return Err((
                format!(
                    "the matrix descriptor {bits:#018x} has bit 52 set: its leading dimension is an absolute address"
                ),
                "bit 52 is 0, a relative offset; the other mode is of sm_103a alone, for K of 48 bytes".into(),
            ));
        }
        // Without swizzle there is no pattern whose place it could tell: assumption `base-offset-without-swizzle`. Where the operand begins elsewhere than
        // its pattern, it is not modelled: [`SharedDescriptor::base_offset`].
        if swizzle != 0 && field(49, 3) != 0 {
            let period = 8 * swizzle;
            return Err((
                format!(
                    "the matrix descriptor {bits:#018x} has a base offset of {}, and begins at a multiple of {period}",
                    field(49, 3)
                ),
                format!(
                    "base offset 0 (bits 49–51): the pattern begins where the operand does, at a multiple of {period} bytes"
                ),
            ));
        }
        Ok(SharedDescriptor { swizzle, wide, elements, ..SharedDescriptor::places(bits) })
    }

    /// The base offset of an operand that does not begin where a pattern of its swizzle may begin, and in which row of such a pattern it does: which phase of the
    /// pattern it then has at its start is described too loosely to be modelled (PTX ISA 9.7.16.4.1).
    pub fn base_offset(bits: u64) -> Option<(u64, u32)> {
        let (bytes, _) = swizzle(bits).filter(|&(bytes, _)| bytes != 0)?;
        let (offset, behind) = (bits >> 49 & 7, SharedDescriptor::places(bits).start % (8 * bytes));
        (offset != 0 && behind != 0).then_some((offset, behind / bytes))
    }

    /// Where the matrix lies, which all descriptors say alike.
    pub fn places(bits: u64) -> SharedDescriptor {
        let bytes = |low: u32| (bits >> low & 0x3fff) as u32 * 16;
        SharedDescriptor { start: bytes(0), leading: bytes(16), stride: bytes(32), ..SharedDescriptor::default() }
    }

    /// The swizzle that a tensor map names for it.
    pub fn mode(&self) -> Swizzle {
        match (self.swizzle, self.wide) {
            (32, _) => Swizzle::B32,
            (64, _) => Swizzle::B64,
            (128, false) => Swizzle::B128,
            (128, true) => Swizzle::B128Atom32,
            _ => Swizzle::None,
        }
    }

    /// The swizzle: an exclusive or of address bits 4–6 with bits 7–9, as many as the pattern has; of bits 5–6 with 7–8 where 32
    /// bytes are moved at a time.
    pub fn swizzled(&self, address: u32) -> u32 {
        match self.swizzle {
            32 => address ^ (address >> 7 & 1) << 4,
            64 => address ^ (address >> 7 & 3) << 4,
            128 if self.wide => address ^ (address >> 7 & 3) << 5,
            128 => address ^ (address >> 7 & 7) << 4,
            _ => address,
        }
    }

    /// Rows of depth that lie in one pattern of an MN-major operand.
    pub fn pattern(&self) -> u32 {
        if self.wide { 4 } else { 8 }
    }

    /// Where the 16 bytes at row (or column) `mn` and depth `k` of an operand lie: elements along k (K-major) or along mn (MN-major).
    /// PTX ISA 9.7.16.3.3 (canonical layouts); the swizzle is an exclusive or on the address.
    #[inline]
    pub fn chunk(&self, mn: u32, k: u32, mn_major: bool) -> u32 {
        let (w, log) = (self.swizzle, self.elements.log_bits);
        let offset = match (mn_major, w) {
            (false, 0) => mn % 8 * 16 + mn / 8 * self.stride + (k << log >> 7) * self.leading,
            (false, _) => mn % 8 * w + mn / 8 * self.stride + (k << log >> 3),
            (true, 0) => (mn << log >> 7) * self.stride + k % 8 * 16 + k / 8 * self.leading,
            (true, _) => {
                let (atom, pattern) = (w << 3 >> log, self.pattern());
                ((mn % atom) << log >> 3) + mn / atom * self.leading + k % pattern * w + k / pattern * self.stride
            }
        };
        self.swizzled(self.start.wrapping_add(offset))
    }
}

/// The 16-byte chunks of an operand of so many rows, 32 bytes of each: (mn, k) of the first element of each.
pub fn chunks(rows: u32, mn_major: bool, elements: Elements) -> impl Iterator<Item = (u32, u32)> {
    let (depth, few) = (elements.depth(), elements.of_chunk() as usize);
    let (outer, inner) = if mn_major { (depth, rows) } else { (rows, depth) };
    (0..outer).flat_map(move |o| (0..inner).step_by(few).map(move |i| if mn_major { (i, o) } else { (o, i) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PTX ISA 9.7.16.3.3: in rows of 128 bytes, the 16-byte chunk c of row r goes to chunk c ^ (r % 8).
    #[test]
    fn k_major_128_byte_swizzle_permutes_chunks_by_row() {
        let d = SharedDescriptor::decode(0x4000_4040_0000_0000 | 0x2000 >> 4, Elements::B16).unwrap();
        assert_eq!((d.start, d.stride, d.swizzle), (0x2000, 1024, 128));
        assert_eq!(d.chunk(3, 8, false), 0x2000 + 3 * 128 + (1 ^ 3) * 16);
        assert_eq!(d.chunk(9, 0, false), 0x2000 + 1024 + 128 + 16);
        // The descriptor of the second K = 16 slice starts 32 bytes on: the pattern stays with the address.
        let next = SharedDescriptor { start: d.start + 32, ..d };
        assert_eq!(next.chunk(3, 0, false), 0x2000 + 3 * 128 + 16, "chunk 2 of row 3 lies where 2 ^ 3 = 1 points");
    }

    /// A base offset says where a pattern begins: it is refused where there is one, and says nothing where there is none.
    #[test]
    fn base_offsets_belong_to_patterns() {
        let of = |swizzle: u64, base: u64| {
            SharedDescriptor::decode(swizzle << 61 | base << 49 | 0x4008 << 32 | 0x2200 >> 4, Elements::B8)
        };
        assert_eq!(of(0, 4), of(0, 0));
        assert!(of(0, 0).is_ok());
        for swizzle in [1, 2, 4, 6] {
            let refused = of(swizzle, 4).unwrap_err();
            assert!(refused.0.contains("base offset"), "{refused:?}");
        }
        // At 0x2200 a pattern of 512 bytes may begin, and none of 1024.
        let asked = |swizzle: u64| SharedDescriptor::base_offset(swizzle << 61 | 4 << 49 | 0x4008 << 32 | 0x2200 >> 4);
        assert_eq!([0, 1, 2, 4, 6].map(asked), [None, Some((4, 4)), Some((4, 4)), None, None]);
    }

    /// The same bytes, whatever the elements: 4, 8 and 16 bytes of depth are one chunk.
    #[test]
    fn k_major_chunks_are_the_same_for_all_elements() {
        for (swizzle, leading) in [(0, 4096), (32, 16), (64, 16), (128, 16)] {
            let d = SharedDescriptor { start: 0x2000, leading, stride: 1024, swizzle, ..Default::default() };
            let of = |elements| {
                let d = SharedDescriptor { elements, ..d };
                chunks(24, false, elements).map(|(mn, k)| d.chunk(mn, k, false)).collect::<Vec<_>>()
            };
            let halves = of(Elements::B16);
            assert_eq!(halves.len(), 48);
            for elements in [Elements::B4, Elements::B8, Elements::B32, Elements::B6_PADDED, Elements::B4_PADDED] {
                assert_eq!(of(elements), halves, "swizzle {swizzle}, {elements:?}");
            }
        }
    }

    /// TF32 along M (PTX ISA 9.7.16.10.6, 128-byte swizzling with 32-byte atoms): rows of depth hold 32 elements, and pairs of 16-byte
    /// chunks change places by the row's number modulo 4.
    #[test]
    fn mn_major_tf32_moves_pairs_of_chunks() {
        let bits = 1 << 61 | 1 << 46 | (512 >> 4) << 32 | (4096 >> 4) << 16 | 0x2000 >> 4;
        let d = SharedDescriptor::decode(bits, Elements::B32).unwrap();
        assert_eq!(d.chunk(4, 0, true), 0x2010);
        assert_eq!(d.chunk(4, 1, true), 0x2000 + 128 + 48, "chunk 1 is the second of pair 0, which goes to pair 1");
        assert_eq!(d.chunk(24, 3, true), 0x2000 + 3 * 128, "chunk 6: pair 3 goes to pair 0");
        assert_eq!(d.chunk(0, 4, true), 0x2000 + 512, "the next four rows of depth");
        assert_eq!(d.chunk(32, 0, true), 0x2000 + 4096, "the next 32 elements of M");
    }

    /// 8-bit elements along M: 16 of them in a chunk.
    #[test]
    fn mn_major_bytes_come_sixteen_at_a_time() {
        let d = SharedDescriptor {
            start: 0x2000,
            leading: 8192,
            stride: 512,
            swizzle: 64,
            elements: Elements::B8,
            ..Default::default()
        };
        assert_eq!(d.chunk(16, 0, true), 0x2010);
        assert_eq!(d.chunk(64, 0, true), 0x2000 + 8192);
        assert_eq!(d.chunk(0, 8, true), 0x2000 + 512);
        assert_eq!(
            d.chunk(16, 2, true),
            0x2000 + 2 * 64,
            "row 2 lies in the second line of 128 bytes: chunk 1 goes to chunk 0"
        );
        assert_eq!(chunks(64, true, Elements::B8).count(), 4 * 32);
    }
}
