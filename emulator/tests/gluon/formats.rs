//! Formats of elements, decoded as the OCP specifications of FP8 (1.0) and of microscaling formats (1.0) define them: nothing here is the emulator's.

use half::{bf16, f16};

/// What the bits of an element mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    F32,
    F16,
    Bf16,
    E4m3,
    E5m2,
    /// Two in a byte, the first in the low half.
    E2m1,
    /// A scale factor: a power of two.
    Ue8m0,
    I32,
    I8,
    U8,
}
use Format::*;

impl Format {
    /// By its name in a kernel's description.
    pub fn named(name: &str) -> Option<Format> {
        let all = ["f32", "f16", "bf16", "e4m3", "e5m2", "e2m1", "ue8m0", "i32", "i8", "u8"];
        let at = all.iter().position(|known| *known == name)?;
        Some([F32, F16, Bf16, E4m3, E5m2, E2m1, Ue8m0, I32, I8, U8][at])
    }

    pub fn bits(self) -> usize {
        match self {
            F32 | I32 => 32,
            F16 | Bf16 => 16,
            E4m3 | E5m2 | Ue8m0 | I8 | U8 => 8,
            E2m1 => 4,
        }
    }

    /// Bits of the exponent and of the fraction, and the bias, of the formats that are read here bit by bit.
    fn fields(self) -> Option<(u32, u32, i32)> {
        match self {
            E4m3 => Some((4, 3, 7)),
            E5m2 => Some((5, 2, 15)),
            E2m1 => Some((2, 1, 1)),
            _ => None,
        }
    }

    /// The largest finite code without sign, of the formats that are read here bit by bit.
    fn largest(self) -> u32 {
        match self {
            E4m3 => 0x7e,
            E5m2 => 0x7b,
            _ => 7,
        }
    }

    /// The value of a code.
    pub fn value(self, code: u32) -> f64 {
        if let Some((exponent, fraction, bias)) = self.fields() {
            let magnitude = code & ((1 << (exponent + fraction)) - 1);
            assert!(magnitude <= self.largest(), "{self:?} {code:#x} is not finite");
            let sign = if code >> (exponent + fraction) & 1 == 1 { -1.0 } else { 1.0 };
            let (field, low) = ((magnitude >> fraction) as i32, magnitude & ((1 << fraction) - 1));
            let significand = if field == 0 { low } else { low + (1 << fraction) };
            return sign * f64::from(significand) * 2f64.powi(field.max(1) - bias - fraction as i32);
        }
        match self {
            F32 => f64::from(f32::from_bits(code)),
            F16 => f16::from_bits(code as u16).to_f64(),
            Bf16 => bf16::from_bits(code as u16).to_f64(),
            Ue8m0 => {
                assert!(code < 255, "a scale factor of 255 is NaN");
                2f64.powi(code as i32 - 127)
            }
            I8 => f64::from(code as u8 as i8),
            _ => f64::from(code as i32),
        }
    }

    /// The code of the nearest value, of two the even one; of values beyond the largest, that one.
    pub fn nearest(self, value: f64) -> u32 {
        if let Some((exponent, fraction, _)) = self.fields() {
            let away = |code: u32| (self.value(code) - value.abs()).abs();
            let closer = |a: &u32, b: &u32| away(*a).total_cmp(&away(*b)).then((a & 1).cmp(&(b & 1)));
            let code = (0..=self.largest()).min_by(closer).unwrap_or(0);
            return code | u32::from(value.is_sign_negative()) << (exponent + fraction);
        }
        match self {
            F32 => (value as f32).to_bits(),
            // Not `from_f64`, which passes the last bits of FP32 over. Values here are exact in FP32.
            F16 => u32::from(f16::from_f32(value as f32).to_bits()),
            Bf16 => u32::from(bf16::from_f32(value as f32).to_bits()),
            Ue8m0 => (value.log2().round() as i32 + 127) as u32,
            _ => value as i32 as u32,
        }
    }

    /// The code of element `at`.
    pub fn code(self, bytes: &[u8], at: usize) -> u32 {
        match self.bits() {
            4 => u32::from(bytes[at / 2]) >> (4 * (at % 2)) & 15,
            bits => (0..bits / 8).map(|byte| u32::from(bytes[at * bits / 8 + byte]) << (8 * byte)).sum(),
        }
    }

    /// Codes side by side.
    pub fn pack(self, codes: impl IntoIterator<Item = u32>) -> Vec<u8> {
        let codes: Vec<u32> = codes.into_iter().collect();
        match self.bits() {
            4 => codes.chunks(2).map(|pair| (pair[0] | pair[1] << 4) as u8).collect(),
            bits => codes.iter().flat_map(|code| code.to_le_bytes().into_iter().take(bits / 8)).collect(),
        }
    }
}
