//! The formats of an MMA's elements and scale factors, and their values.

use crate::machine::mma::matrix_descriptor::Elements;
use crate::program::arithmetic::narrow::{self, E2M1, E2M3, E3M2, E4M3, E5M2};
pub use crate::program::kind::Format;
use crate::program::kind::Kind;

impl Format {
    /// The format that a code of the instruction descriptor stands for (PTX ISA 9.7.16.4.2).
    pub fn of(kind: Kind, code: u32) -> Option<Format> {
        Some(match (kind, code) {
            (Kind::F16, 0) => Format::F16,
            (Kind::F16, 1) => Format::Bf16,
            (Kind::Tf32, 2) => Format::Tf32,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 0) => Format::E4m3,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 1) => Format::E5m2,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 3) => Format::E2m3,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 4) => Format::E3m2,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 5) => Format::E2m1,
            (Kind::Mxf4 | Kind::Mxf4nvf4, 1) => Format::E2m1,
            (Kind::I8, 0) => Format::U8,
            (Kind::I8, 1) => Format::S8,
            _ => return None,
        })
    }

    /// The codes of a kind, for messages.
    pub fn codes(kind: Kind) -> &'static str {
        match kind {
            Kind::F16 => "0 (FP16) or 1 (BF16)",
            Kind::Tf32 => "2 (TF32)",
            Kind::F8f6f4 | Kind::Mxf8f6f4 => "0 (E4M3), 1 (E5M2), 3 (E2M3), 4 (E3M2) or 5 (E2M1)",
            Kind::I8 => "0 (unsigned) or 1 (signed)",
            Kind::Mxf4 | Kind::Mxf4nvf4 => "1 (E2M1)",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Format::F16 => "FP16",
            Format::Bf16 => "BF16",
            Format::Tf32 => "TF32",
            Format::E4m3 => "E4M3",
            Format::E5m2 => "E5M2",
            Format::E2m3 => "E2M3",
            Format::E3m2 => "E3M2",
            Format::E2m1 => "E2M1",
            Format::U8 => "U8",
            Format::S8 => "S8",
        }
    }

    /// How its elements lie in shared memory (PTX ISA 9.7.16.10.4).
    pub fn elements(self, kind: Kind) -> Elements {
        match self {
            Format::F16 | Format::Bf16 => Elements::B16,
            Format::Tf32 => Elements::B32,
            Format::E2m1 if matches!(kind, Kind::Mxf4 | Kind::Mxf4nvf4) => Elements::B4,
            Format::E2m1 => Elements::B4_PADDED,
            Format::E2m3 | Format::E3m2 => Elements::B6_PADDED,
            Format::E4m3 | Format::E5m2 | Format::U8 | Format::S8 => Elements::B8,
        }
    }

    /// Of 8, 6 and 4 bits.
    pub fn narrow(self) -> Option<narrow::Format> {
        Some(match self {
            Format::E4m3 => E4M3,
            Format::E5m2 => E5M2,
            Format::E2m3 => E2M3,
            Format::E3m2 => E3M2,
            Format::E2m1 => E2M1,
            _ => return None,
        })
    }
}

/// The format of scale factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleFormat {
    /// A power of two.
    Ue8m0,
    /// E4M3 without a sign.
    Ue4m3,
}

impl ScaleFormat {
    /// Its value; `None`: NaN.
    pub fn value(self, bits: u8) -> Option<f64> {
        match (self, bits) {
            (ScaleFormat::Ue8m0, 0xff) => None,
            (ScaleFormat::Ue8m0, bits) => Some(f64::from_bits((u64::from(bits) + 1023 - 127) << 52)),
            (ScaleFormat::Ue4m3, bits) => Some(E4M3.value((bits & 0x7f).into())).filter(|value| !value.is_nan()),
        }
    }

    /// The exponent of its significand as the format writes it. Of zero, -126: that of a term which is zero.
    pub fn exponent(self, bits: u8) -> i32 {
        match (self, bits & 0x7f) {
            (ScaleFormat::Ue8m0, _) => i32::from(bits) - 127,
            (ScaleFormat::Ue4m3, 0) => super::exact::ZERO,
            (ScaleFormat::Ue4m3, magnitude) => E4M3.exponent(magnitude.into()),
        }
    }
}

/// The containers of 8 bits that the tensor core has of 16 padded elements: FP4 in bits 2 to 5, FP6 in bits 0 to 5 (PTX ISA 9.7.16.9.1,
/// decompression; 9.7.16.10.4). What elements of 8 bits are, they stay.
pub fn unpack(chunk: [u8; 16], elements: Elements) -> [u8; 16] {
    let bits = u128::from_le_bytes(chunk);
    match elements {
        Elements::B6_PADDED => std::array::from_fn(|n| (bits >> (6 * n)) as u8 & 0x3f),
        Elements::B4_PADDED => std::array::from_fn(|n| ((bits >> (4 * n)) as u8 & 0xf) << 2),
        _ => chunk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_elements_get_containers_of_eight_bits() {
        let mut chunk = [0xff; 16];
        chunk[..8].copy_from_slice(&[0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe]);
        let fours: Vec<u8> = (0..16).map(|n| n << 2).collect();
        assert_eq!(unpack(chunk, Elements::B4_PADDED)[..], fours);
        // 1, 2, 3, 63 in six bits each, low ones first: 000001, 000010, 000011, 111111.
        chunk[..3].copy_from_slice(&[0b1000_0001, 0b0011_0000, 0b1111_1100]);
        assert_eq!(unpack(chunk, Elements::B6_PADDED)[..4], [1, 2, 3, 63]);
        assert_eq!(unpack(chunk, Elements::B8), chunk);
    }

    /// OCP's formats: the ends and the middle of each.
    #[test]
    fn scale_factors_have_the_values_of_their_formats() {
        let (powers, small) = (ScaleFormat::Ue8m0, ScaleFormat::Ue4m3);
        assert_eq!([0, 126, 127, 128, 254].map(|b| powers.value(b)), [-127, -1, 0, 1, 127].map(|e| Some(2f64.powi(e))));
        assert_eq!(powers.value(255), None);
        assert_eq!(small.value(0x38), Some(1.0));
        assert_eq!((small.value(0x7e), small.value(0x7f)), (Some(448.0), None));
        assert_eq!((small.value(1), small.exponent(1)), (Some(2f64.powi(-9)), -6));
        assert_eq!(small.value(0xb8), Some(1.0), "bit 7 is no sign");
        assert_eq!((small.exponent(0), small.exponent(0x38), powers.exponent(1)), (-126, 0, -126));
    }
}
