//! The instruction descriptor of `tcgen05.mma` (PTX ISA 9.7.16.4.2), of each kind.

use super::matrix_descriptor::BadDescriptor;
use crate::machine::arithmetic::formats::{Format, ScaleFormat};
use crate::machine::tensor_memory::Layout;
use crate::numerics::MmaStep;
pub use crate::program::kind::Accumulator;
use crate::program::kind::{Kind, Types};

/// What the scale factors of A and B are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaling {
    pub format: ScaleFormat,
    /// Scale factors of a row of A, or of a column of B: 1, 2 or 4.
    pub factors: u32,
    /// The byte of a 32-bit cell that the first of them is, for A and for B.
    pub first: [u32; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionDescriptor {
    pub kind: Kind,
    /// Of an MMA with `.ws`.
    pub stationary: bool,
    pub m: u32,
    pub n: u32,
    pub d: Accumulator,
    pub a: Format,
    pub b: Format,
    pub negate_a: bool,
    pub negate_b: bool,
    /// MN-major instead of K-major.
    pub a_mn_major: bool,
    pub b_mn_major: bool,
    /// Sums of integers end at the largest and the smallest instead of going round.
    pub saturate: bool,
    /// Of kinds that have scale factors.
    pub scaling: Option<Scaling>,
}

impl Types {
    /// The descriptor of a `tcgen05.mma` that would multiply the same, K-major.
    pub fn descriptor(&self, m: u32, n: u32) -> InstructionDescriptor {
        let Types { kind, d, a, b, saturate } = *self;
        InstructionDescriptor {
            kind,
            stationary: false,
            m,
            n,
            d,
            a,
            b,
            negate_a: false,
            negate_b: false,
            a_mn_major: false,
            b_mn_major: false,
            saturate,
            scaling: None,
        }
    }
}

/// Whether bit 12 is set where the ISA has zero, and it is read all the same: assumption `sparsity-version-of-dense`.
pub fn has_sparsity_version(bits: u32, kind: Kind) -> bool {
    matches!(kind, Kind::Mxf4 | Kind::Mxf4nvf4) && bits >> 12 & 1 == 1
}

/// The fields of a descriptor.
#[derive(Clone, Copy)]
struct Fields {
    bits: u32,
    kind: Kind,
    stationary: bool,
}

impl Fields {
    fn get(self, low: u32, width: u32) -> u32 {
        self.bits >> low & ((1 << width) - 1)
    }

    fn bad<T>(self, found: String, allowed: impl Into<String>) -> Result<T, BadDescriptor> {
        Err((format!("the instruction descriptor {:#010x} {found}", self.bits), allowed.into()))
    }

    /// Bits that are zero in a dense MMA of this kind.
    fn reserved(self) -> Result<(), BadDescriptor> {
        let name = self.kind.name();
        let (mask, which) = match self.kind {
            Kind::F16 | Kind::Tf32 | Kind::F8f6f4 => {
                (0b1111 | 1 << 6 | 1 << 23 | 1 << 29 | 0b11 << 30, "0–3, 6, 23 and 29–31")
            }
            Kind::I8 => (
                0b111 | 1 << 6 | 0b11 << 13 | 1 << 23 | 1 << 29 | 0b11 << 30,
                "0–2, 6, 13–14 (integers are not negated), 23 and 29–31",
            ),
            Kind::Mxf8f6f4 => (0b1111 | 1 << 6 | 0b111 << 24 | 1 << 31, "0–3, 6, 24–26 and 31"),
            Kind::Mxf4 | Kind::Mxf4nvf4 => (
                0b1111 | 1 << 6 | 0b11 << 15 | 0b111 << 24 | 1 << 31,
                "0–3, 6, 15–16 (4-bit operands are K-major), 24–26 and 31 (K = 96, which is of sm_103a and not modelled)",
            ),
        };
        if self.bits & mask != 0 {
            let allowed = format!("bits {which} are zero in a dense {name} MMA");
            return self.bad(format!("sets bits that are zero for {name}: {:#x}", self.bits & mask), allowed);
        }
        Ok(())
    }

    /// M and N, for an MMA of so many CTAs (PTX ISA 9.7.16.2.1).
    fn shape(self, ctas: u32) -> Result<(u32, u32), BadDescriptor> {
        let scaled = self.kind.is_scaled();
        let (n, m) = (self.get(17, 6) * 8, if scaled { self.get(27, 2) * 128 } else { self.get(24, 5) * 16 });
        if self.stationary {
            if ![32, 64, 128].contains(&m) || ![64, 128, 256].contains(&n) {
                return self.bad(format!("says M = {m}, N = {n}"), "with .ws, M is 32, 64 or 128 and N 64, 128 or 256");
            }
            return Ok((m, n));
        }
        let (rows, allowed): (&[u32], _) = match (ctas, scaled) {
            (1, false) => (&[64, 128], "M is 64 or 128"),
            (1, true) => (&[128], "M is 128"),
            _ => (&[128, 256], "M is 128 or 256"),
        };
        let (fits, columns) = match (self.kind, ctas) {
            (Kind::I8, 1) => (n <= 32 || n.is_multiple_of(16), "N 8, 16, 24, 32, or a multiple of 16 up to 256"),
            (Kind::I8, _) => (n.is_multiple_of(32), "N a multiple of 32 up to 256"),
            (_, 1) => (true, "N a multiple of 8 up to 256"),
            _ => (n.is_multiple_of(16), "N a multiple of 16 up to 256"),
        };
        if !rows.contains(&m) || n == 0 || n > 256 || !fits {
            let allowed = format!("with cta_group::{ctas}, {allowed} and {columns}");
            return self.bad(format!("says M = {m}, N = {n}"), allowed);
        }
        Ok((m, n))
    }

    /// The formats of D, A and B.
    fn formats(self) -> Result<(Accumulator, Format, Format), BadDescriptor> {
        let name = self.kind.name();
        // Where B is of 4 bits anyway, its field has two bits.
        let wide = if matches!(self.kind, Kind::Mxf4 | Kind::Mxf4nvf4) { 2 } else { 3 };
        let (d, a, b) = (self.get(4, 2), self.get(7, 3), self.get(10, wide));
        let accumulator = match (self.kind, d) {
            (Kind::F16 | Kind::F8f6f4, 0) => Some(Accumulator::F16),
            (Kind::F16 | Kind::F8f6f4 | Kind::Tf32, 1) => Some(Accumulator::F32),
            (Kind::I8, 2) => Some(Accumulator::S32),
            // The bits hold something else.
            (Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4, _) => Some(Accumulator::F32),
            _ => None,
        };
        let (Some(accumulator), Some(a_format), Some(b_format)) =
            (accumulator, Format::of(self.kind, a), Format::of(self.kind, b))
        else {
            let (found, d) = match self.kind {
                Kind::F16 | Kind::F8f6f4 => {
                    (format!("has formats D = {d}, A = {a}, B = {b}"), "D 0 (FP16) or 1 (FP32), ")
                }
                Kind::Tf32 => (format!("has formats D = {d}, A = {a}, B = {b}"), "D 1 (FP32), "),
                Kind::I8 => (format!("has formats D = {d}, A = {a}, B = {b}"), "D 2 (S32), "),
                _ => (format!("has formats A = {a}, B = {b}"), ""),
            };
            return self.bad(found, format!("for {name}: {d}A and B {}", Format::codes(self.kind)));
        };
        if accumulator == Accumulator::F16 && [a_format, b_format].contains(&Format::Bf16) {
            return self.bad("accumulates BF16 products in FP16".into(), "an FP16 accumulator takes FP16 operands");
        }
        Ok((accumulator, a_format, b_format))
    }

    /// What bits say of scale factors, of which each row has so many.
    fn scaling(self, factors: u32) -> Result<Scaling, BadDescriptor> {
        let (first, name) = ([self.get(29, 2), self.get(4, 2)], self.kind.name());
        let (ids, fits): (_, fn(u32) -> bool) = match factors {
            1 => ("0 to 3", |_| true),
            2 => ("0 or 2", |id| id % 2 == 0),
            _ => ("0", |id| id == 0),
        };
        if !first.into_iter().all(fits) {
            let found = format!("selects scale factors from byte {} of a cell for A, {} for B", first[0], first[1]);
            let allowed = format!("with {factors} scale factors a row: bits 29–30 (A) and 4–5 (B) {ids}");
            return self.bad(found, allowed);
        }
        let format = if self.get(23, 1) == 1 { ScaleFormat::Ue8m0 } else { ScaleFormat::Ue4m3 };
        if format == ScaleFormat::Ue4m3 && (self.kind, factors) != (Kind::Mxf4nvf4, 4) {
            let allowed = "bit 23 is 1 (UE8M0); 0 (UE4M3) is for kind::mxf4nvf4 with a scale factor for 16 elements";
            return self.bad(format!("has scale factors of type 0 (UE4M3) for {name} with {factors} a row"), allowed);
        }
        Ok(Scaling { format, factors, first })
    }
}

impl InstructionDescriptor {
    /// The fields, for an MMA of this kind, with `.ws` or without, and of this many CTAs; with so many scale factors of each row.
    pub fn decode(
        bits: u32,
        (kind, stationary): (Kind, bool),
        factors: u32,
        ctas: u32,
    ) -> Result<InstructionDescriptor, BadDescriptor> {
        let fields = Fields { bits, kind, stationary };
        fields.reserved()?;
        let (m, n) = fields.shape(ctas)?;
        let (d, a, b) = fields.formats()?;
        let flag = |at| fields.get(at, 1) == 1;
        let new = InstructionDescriptor {
            kind,
            stationary,
            m,
            n,
            d,
            a,
            b,
            negate_a: flag(13),
            negate_b: flag(14),
            a_mn_major: flag(15),
            b_mn_major: flag(16),
            saturate: kind == Kind::I8 && flag(3),
            scaling: if kind.is_scaled() { Some(fields.scaling(factors)?) } else { None },
        };
        for (which, at, format, mn_major) in [("A", 15, a, new.a_mn_major), ("B", 16, b, new.b_mn_major)] {
            if mn_major && matches!(format, Format::E2m3 | Format::E3m2 | Format::E2m1) {
                let found = format!("says MN-major (bit {at}) for {which} in {}", format.name());
                return fields.bad(found, format!("bit {at} is 0: operands of 6 and 4 bits are K-major"));
            }
        }
        let step = 16 * ctas;
        if new.b_mn_major && b.elements(kind).log_bits == 3 && !n.is_multiple_of(step) {
            let found = format!("says N = {n} for an MN-major B of 8-bit elements");
            return fields.bad(found, format!("with cta_group::{ctas}, N is then a multiple of {step}"));
        }
        Ok(new)
    }

    /// Where its accumulator lies, if so many CTAs compute it and it begins at this lane.
    pub fn layout(&self, ctas: usize, first: u32) -> Layout {
        match (self.stationary, self.m) {
            (true, 32) => Layout::Fourths,
            (true, 64) => Layout::Halves,
            _ => Layout::of(self.m, ctas, first),
        }
    }

    /// What an MMA of `kind::f16` with it computes.
    pub fn step(&self, accumulate: bool, scale: u32) -> MmaStep {
        let InstructionDescriptor { negate_a, negate_b, .. } = *self;
        let (a_bf16, b_bf16) = (self.a == Format::Bf16, self.b == Format::Bf16);
        MmaStep { a_bf16, b_bf16, d_f32: self.d == Accumulator::F32, negate_a, negate_b, accumulate, scale }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bits: u32, kind: Kind, ctas: u32) -> Result<InstructionDescriptor, BadDescriptor> {
        let factors = match kind {
            Kind::Mxf8f6f4 => 1,
            Kind::Mxf4 => 2,
            _ => 4,
        };
        InstructionDescriptor::decode(bits, (kind, false), factors, ctas)
    }

    #[test]
    fn instruction_descriptors_decode_to_the_isa_examples() {
        let i = decode(0x0820_0010, Kind::F16, 1).unwrap();
        assert_eq!((i.m, i.n, i.d, i.a), (128, 128, Accumulator::F32, Format::F16));
        let i = decode(0x0840_0490, Kind::F16, 1).unwrap();
        assert_eq!((i.m, i.n, i.a, i.b), (128, 256, Format::Bf16, Format::Bf16));
        // 256 rows need a pair of CTAs.
        assert!(decode(0x1040_0490, Kind::F16, 1).is_err());
        assert_eq!(decode(0x1040_0490, Kind::F16, 2).unwrap().m, 256);
    }

    /// Field by field, as the tables of the ISA place them.
    #[test]
    fn every_kind_has_its_fields() {
        let i = decode(0x1040_0010, Kind::F8f6f4, 2).unwrap();
        assert_eq!((i.m, i.n, i.d, i.a, i.b), (256, 256, Accumulator::F32, Format::E4m3, Format::E4m3));
        let i = decode(8 << 24 | 8 << 17 | 5 << 10 | 3 << 7, Kind::F8f6f4, 1).unwrap();
        assert_eq!((i.d, i.a, i.b), (Accumulator::F16, Format::E2m3, Format::E2m1));
        let i = decode(4 << 24 | 8 << 17 | 2 << 10 | 2 << 7 | 1 << 4 | 1 << 14 | 1 << 15, Kind::Tf32, 1).unwrap();
        assert_eq!((i.m, i.a, i.negate_a, i.negate_b, i.a_mn_major), (64, Format::Tf32, false, true, true));
        let i = decode(8 << 24 | 6 << 17 | 1 << 7 | 2 << 4 | 1 << 3, Kind::I8, 1).unwrap();
        assert_eq!((i.n, i.d, i.a, i.b, i.saturate), (48, Accumulator::S32, Format::S8, Format::U8, true));
        let i = decode(2 << 29 | 1 << 27 | 1 << 23 | 16 << 17 | 1 << 10 | 4 << 7 | 3 << 4, Kind::Mxf8f6f4, 1).unwrap();
        let scaling = Scaling { format: ScaleFormat::Ue8m0, factors: 1, first: [2, 3] };
        assert_eq!((i.m, i.a, i.b, i.scaling), (128, Format::E3m2, Format::E5m2, Some(scaling)));
        let i = decode(2 << 27 | 16 << 17 | 1 << 10 | 1 << 7, Kind::Mxf4nvf4, 2).unwrap();
        let scaling = Scaling { format: ScaleFormat::Ue4m3, factors: 4, first: [0, 0] };
        assert_eq!((i.m, i.a, i.b, i.scaling), (256, Format::E2m1, Format::E2m1, Some(scaling)));
    }

    /// CuTe DSL sets bit 12 of its descriptors for 4-bit operands.
    #[test]
    fn the_sparsity_version_of_a_dense_mma_does_not_count() {
        let bits = 2 << 27 | 16 << 17 | 1 << 10 | 1 << 7;
        for (kind, ctas) in [(Kind::Mxf4nvf4, 2), (Kind::Mxf4, 2)] {
            let bits = bits | u32::from(kind == Kind::Mxf4) << 23;
            assert_eq!(decode(bits | 1 << 12, kind, ctas).unwrap(), decode(bits, kind, ctas).unwrap());
            assert!(has_sparsity_version(bits | 1 << 12, kind) && !has_sparsity_version(bits, kind));
        }
        // Elsewhere it is a bit of B's format.
        assert!(!has_sparsity_version(1 << 12, Kind::Mxf8f6f4));
    }

    /// What no kind, or not this one, has: the message says the value found and the values allowed.
    #[test]
    fn wrong_fields_are_refused() {
        let shape = 8 << 24 | 8 << 17;
        let tf32 = shape | 2 << 10 | 2 << 7 | 1 << 4;
        let scaled = 1 << 27 | 16 << 17 | 1 << 23;
        let fours = 1 << 10 | 1 << 7;
        for (bits, kind, ctas, found, allowed) in [
            (tf32 & !(1 << 4), Kind::Tf32, 1, "D = 0, A = 2, B = 2", "D 1 (FP32), A and B 2 (TF32)"),
            (tf32 & !(2 << 7), Kind::Tf32, 1, "A = 0", "A and B 2 (TF32)"),
            (tf32 | 1 << 2, Kind::Tf32, 1, "kind::tf32: 0x4", "bits 0–3, 6, 23 and 29–31 are zero"),
            (
                shape | 2 << 7,
                Kind::F8f6f4,
                1,
                "D = 0, A = 2, B = 0",
                "0 (E4M3), 1 (E5M2), 3 (E2M3), 4 (E3M2) or 5 (E2M1)",
            ),
            (shape | 1 << 4 | 1 << 15 | 3 << 7, Kind::F8f6f4, 1, "MN-major (bit 15) for A in E2M3", "bit 15 is 0"),
            (shape | 1 << 4 | 1 << 16 | 5 << 10, Kind::F8f6f4, 1, "MN-major (bit 16) for B in E2M1", "bit 16 is 0"),
            (8 << 24 | 3 << 17 | 1 << 16, Kind::F8f6f4, 1, "N = 24 for an MN-major B", "a multiple of 16"),
            (16 << 24 | 6 << 17 | 1 << 16, Kind::F8f6f4, 2, "N = 48 for an MN-major B", "a multiple of 32"),
            (shape | 1 << 4, Kind::I8, 1, "D = 1", "D 2 (S32), A and B 0 (unsigned) or 1 (signed)"),
            (shape | 2 << 4 | 1 << 13, Kind::I8, 1, "0x2000", "integers are not negated"),
            (8 << 24 | 5 << 17 | 2 << 4, Kind::I8, 1, "N = 40", "8, 16, 24, 32, or a multiple of 16"),
            (16 << 24 | 6 << 17 | 2 << 4, Kind::I8, 2, "N = 48", "a multiple of 32"),
            (2 << 27 | 16 << 17 | 1 << 23, Kind::Mxf8f6f4, 1, "M = 256", "M is 128 and"),
            (scaled & !(1 << 23), Kind::Mxf8f6f4, 1, "type 0 (UE4M3)", "bit 23 is 1 (UE8M0)"),
            (scaled | fours | 1 << 29, Kind::Mxf4, 1, "from byte 1 of a cell for A, 0 for B", "0 or 2"),
            (scaled | fours | 2 << 4, Kind::Mxf4nvf4, 1, "from byte 0 of a cell for A, 2 for B", "(B) 0"),
            (scaled | fours | 1 << 15, Kind::Mxf4, 1, "0x8000", "4-bit operands are K-major"),
            (scaled | fours | 1 << 31, Kind::Mxf4, 1, "0x80000000", "sm_103a"),
            (scaled | 1 << 7 | 2 << 10, Kind::Mxf4, 1, "A = 1, B = 2", "A and B 1 (E2M1)"),
            (scaled | 5 << 7 | 1 << 10, Kind::Mxf4, 1, "A = 5, B = 1", "A and B 1 (E2M1)"),
        ] {
            let (said, way) = decode(bits, kind, ctas).expect_err(found);
            assert!(said.contains(found) && said.contains(&format!("{bits:#010x}")), "{said}, expected {found}");
            assert!(way.contains(allowed), "{way}, expected {allowed}");
        }
    }
}
