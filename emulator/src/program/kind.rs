//! The kinds of `tcgen05.mma` (PTX ISA 9.7.16.2.1, 9.7.16.10), and the types of elements and accumulators. What `wgmma` and `mma.sync`
//! multiply goes by the same names.

/// `.kind::…`: which types A and B have, and how deep one MMA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// FP16 and BF16.
    F16,
    /// FP32 numbers of which 19 bits count.
    Tf32,
    /// FP8, FP6 and FP4 in any combination.
    F8f6f4,
    /// 8-bit integers.
    I8,
    /// FP8, FP6 and FP4, with a scale factor for 32 elements.
    Mxf8f6f4,
    /// FP4, with a scale factor for 32 elements.
    Mxf4,
    /// FP4, with a scale factor for 32 or for 16 elements.
    Mxf4nvf4,
}

impl Kind {
    /// The kind that a modifier names.
    pub fn named(modifier: &str) -> Option<Kind> {
        Some(match modifier {
            "kind::f16" => Kind::F16,
            "kind::tf32" => Kind::Tf32,
            "kind::f8f6f4" => Kind::F8f6f4,
            "kind::i8" => Kind::I8,
            "kind::mxf8f6f4" => Kind::Mxf8f6f4,
            "kind::mxf4" => Kind::Mxf4,
            "kind::mxf4nvf4" => Kind::Mxf4nvf4,
            _ => return None,
        })
    }

    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::F16 => "kind::f16",
            Kind::Tf32 => "kind::tf32",
            Kind::F8f6f4 => "kind::f8f6f4",
            Kind::I8 => "kind::i8",
            Kind::Mxf8f6f4 => "kind::mxf8f6f4",
            Kind::Mxf4 => "kind::mxf4",
            Kind::Mxf4nvf4 => "kind::mxf4nvf4",
        }
    }

    /// K of a dense MMA: 32 bytes of each row.
    pub fn depth(self) -> u32 {
        match self {
            Kind::Tf32 => 8,
            Kind::F16 => 16,
            Kind::F8f6f4 | Kind::I8 | Kind::Mxf8f6f4 => 32,
            Kind::Mxf4 | Kind::Mxf4nvf4 => 64,
        }
    }

    /// Whether A and B have scale factors.
    pub fn is_scaled(self) -> bool {
        matches!(self, Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4)
    }

    /// Whether D can be divided by a power of two first (`scale-input-d`).
    pub fn scales_input(self) -> bool {
        matches!(self, Kind::F16 | Kind::Tf32)
    }

    /// Scale factors of a row of A, and of a column of B, that modifiers behind `.block_scale` ask for (PTX ISA, valid combinations
    /// of `.scale_vectorsize`).
    pub fn factors(self, vector: &[&str]) -> Option<u32> {
        match (self, vector) {
            (Kind::Mxf8f6f4, [] | ["scale_vec::1X"] | ["block32"]) => Some(1),
            (Kind::Mxf4, [] | ["scale_vec::2X"] | ["block32"]) => Some(2),
            (Kind::Mxf4nvf4, ["scale_vec::2X"] | ["block32"]) => Some(2),
            (Kind::Mxf4nvf4, ["scale_vec::4X"] | ["block16"]) => Some(4),
            _ => None,
        }
    }
}

/// The format of the elements of A or of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    E2m3,
    E3m2,
    E2m1,
    U8,
    S8,
}

/// The format of an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulator {
    F16,
    F32,
    S32,
}

impl Format {
    /// The format that PTX has a type for in `mma.sync` and `wgmma.mma_async`.
    pub fn named(ty: &str) -> Option<Format> {
        Some(match ty {
            "f16" => Format::F16,
            "bf16" => Format::Bf16,
            "tf32" => Format::Tf32,
            "e4m3" => Format::E4m3,
            "e5m2" => Format::E5m2,
            "u8" => Format::U8,
            "s8" => Format::S8,
            _ => return None,
        })
    }
}

impl Accumulator {
    /// The type of D.
    pub fn named(ty: &str) -> Option<Accumulator> {
        Some(match ty {
            "f16" => Accumulator::F16,
            "f32" => Accumulator::F32,
            "s32" => Accumulator::S32,
            _ => return None,
        })
    }
}

/// What `wgmma.mma_async` or `mma.sync` multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// The kind of `tcgen05.mma` that multiplies the same.
    pub kind: Kind,
    /// The accumulator.
    pub d: Accumulator,
    /// The elements of A.
    pub a: Format,
    /// The elements of B.
    pub b: Format,
    /// `.satfinite`: sums of integers end at the largest and the smallest.
    pub saturate: bool,
}

impl Types {
    /// The types that an opcode names in the order of `wgmma.mma_async`, without `.satfinite`.
    pub fn named(d: &str, a: &str, b: &str) -> Option<Types> {
        let (d, a, b) = (Accumulator::named(d)?, Format::named(a)?, Format::named(b)?);
        let kind = match (d, a, b) {
            (Accumulator::F16 | Accumulator::F32, Format::F16, Format::F16) => Kind::F16,
            (Accumulator::F32, Format::Bf16, Format::Bf16) => Kind::F16,
            (Accumulator::F32, Format::Tf32, Format::Tf32) => Kind::Tf32,
            (Accumulator::F16 | Accumulator::F32, Format::E4m3 | Format::E5m2, Format::E4m3 | Format::E5m2) => {
                Kind::F8f6f4
            }
            (Accumulator::S32, Format::U8 | Format::S8, Format::U8 | Format::S8) => Kind::I8,
            _ => return None,
        };
        Some(Types { kind, d, a, b, saturate: false })
    }

    /// An element of D fills a register; else two FP16 numbers do.
    pub fn wide_d(&self) -> bool {
        self.d != Accumulator::F16
    }
}
