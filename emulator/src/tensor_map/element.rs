//! Types of elements that a tensor map can have.

use serde::{Deserialize, Serialize};

/// Type of a tensor's elements: the codes are those of the 128-byte object, but for TF32, which has the codes of FP32 and a bit of its own.
/// `tensormap.replace` has the same up to 10 (PTX ISA, tensormap.replace).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Element {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    S32 = 3,
    U64 = 4,
    S64 = 5,
    F16 = 6,
    F32 = 7,
    F32Ftz = 8,
    F64 = 9,
    Bf16 = 10,
    /// Elements of 4 bits, side by side (`CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B`, `.b4x16`).
    U4Align8 = 11,
    /// Elements of 4 bits: in shared memory 16 of them, then 8 bytes that nobody writes (`…_16U4_ALIGN16B`, `.b4x16_p64`).
    U4Align16 = 12,
    /// Elements of 6 bits: in shared memory 16 of them, then 4 bytes that nobody writes (`…_16U6_ALIGN16B`, `.b6x16_p32`).
    U6Align16 = 13,
    /// FP32 in memory, and FP32 with ten bits of fraction in shared memory: a load rounds to nearest even. A store and a sum change nothing.
    Tf32,
    /// The same. What it flushes to zero is not documented; a load of an H100 keeps subnormal numbers.
    Tf32Ftz,
}

impl Element {
    pub(super) const ALL: [Element; 16] = [
        Element::U8,
        Element::U16,
        Element::U32,
        Element::S32,
        Element::U64,
        Element::S64,
        Element::F16,
        Element::F32,
        Element::F32Ftz,
        Element::F64,
        Element::Bf16,
        Element::U4Align8,
        Element::U4Align16,
        Element::U6Align16,
        Element::Tf32,
        Element::Tf32Ftz,
    ];

    /// Its code in the object, and whether the bit of TF32 is set there (as a driver for CUDA 13.0 writes both).
    pub(super) fn codes(self) -> (u32, u32) {
        match self {
            Element::Tf32 => (Element::F32 as u32, 1),
            Element::Tf32Ftz => (Element::F32Ftz as u32, 1),
            other => (other as u32, 0),
        }
    }

    /// Its name in a launch file.
    pub fn name(self) -> &'static str {
        match self {
            Element::U8 => "u8",
            Element::U16 => "u16",
            Element::U32 => "u32",
            Element::S32 => "s32",
            Element::U64 => "u64",
            Element::S64 => "s64",
            Element::F16 => "f16",
            Element::F32 => "f32",
            Element::F32Ftz => "f32_ftz",
            Element::F64 => "f64",
            Element::Bf16 => "bf16",
            Element::U4Align8 => "u4_align8",
            Element::U4Align16 => "u4_align16",
            Element::U6Align16 => "u6_align16",
            Element::Tf32 => "tf32",
            Element::Tf32Ftz => "tf32_ftz",
        }
    }

    /// Bytes of an element; of fewer than 8 bits, 1.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            Element::U4Align8 | Element::U4Align16 => 4,
            Element::U6Align16 => 6,
            Element::U8 => 8,
            Element::U16 | Element::F16 | Element::Bf16 => 16,
            Element::U32 | Element::S32 | Element::F32 | Element::F32Ftz | Element::Tf32 | Element::Tf32Ftz => 32,
            Element::U64 | Element::S64 | Element::F64 => 64,
        }
    }

    /// Bytes that so many elements take in global memory.
    pub fn bytes_of(self, elements: u32) -> u32 {
        elements * self.bits() / 8
    }

    /// Bytes of global memory that 16 bytes of shared memory hold, where padding follows them.
    pub fn padded(self) -> Option<u32> {
        match self {
            Element::U4Align16 => Some(8),
            Element::U6Align16 => Some(12),
            _ => None,
        }
    }

    /// Whether it has fewer than 8 bits.
    pub fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// Whether NaN can fill it.
    pub fn is_float(self) -> bool {
        use Element::{Bf16, F16, F32, F32Ftz, F64};
        matches!(self, F16 | Bf16 | F32 | F32Ftz | F64) || self.is_rounded()
    }

    /// Whether a load rounds it.
    pub fn is_rounded(self) -> bool {
        matches!(self, Element::Tf32 | Element::Tf32Ftz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_launch_files() {
        for element in Element::ALL {
            assert_eq!(serde_json::to_value(element).ok(), Some(element.name().into()), "{element:?}");
        }
    }
}
