//! Numbers of 8, 6 and 4 bits, and scale factors: what `cvt` makes of them (PTX ISA 5.2.3, cvt). TF32, too, which is FP32 cut short.

use super::lanes::{f, lanes};
use super::scaled;
use crate::program::op::Alu;
use half::f16;

/// A format of up to 16 bits: its bits of fraction, the bias of its exponent, its greatest number and its NaN.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub(super) fraction: u32,
    pub(super) bias: i32,
    pub(super) greatest: u32,
    pub(super) infinity: Option<u32>,
    /// `None`: the format has none, and a NaN becomes its greatest number (PTX ISA, cvt, `.satfinite`).
    pub(super) nan: Option<u32>,
    pub(super) sign: u32,
}

pub const E4M3: Format = Format { fraction: 3, bias: 7, greatest: 0x7e, infinity: None, nan: Some(0x7f), sign: 0x80 };
pub const E5M2: Format =
    Format { fraction: 2, bias: 15, greatest: 0x7b, infinity: Some(0x7c), nan: Some(0x7f), sign: 0x80 };
pub const E2M3: Format = Format { fraction: 3, bias: 1, greatest: 0x1f, infinity: None, nan: None, sign: 0x20 };
pub const E3M2: Format = Format { fraction: 2, bias: 3, greatest: 0x1f, infinity: None, nan: None, sign: 0x20 };
pub const E2M1: Format = Format { fraction: 1, bias: 1, greatest: 0x7, infinity: None, nan: None, sign: 0x8 };

impl Format {
    /// The number that these bits stand for; bits above the format's do not count.
    pub fn value(self, bits: u32) -> f64 {
        let magnitude = bits & (self.sign - 1);
        let (exponent, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        let one = f64::from(1 << self.fraction);
        let value = match exponent {
            _ if self.infinity == Some(magnitude) => f64::INFINITY,
            _ if magnitude > self.greatest => f64::NAN,
            0 => f64::from(fraction) / one * 2f64.powi(1 - self.bias),
            _ => (1.0 + f64::from(fraction) / one) * 2f64.powi(exponent as i32 - self.bias),
        };
        if bits & self.sign != 0 { -value } else { value }
    }

    /// The exponent of a number's significand as the format writes it: of a subnormal one, the least.
    pub fn exponent(self, bits: u32) -> i32 {
        let field = (bits & (self.sign - 1)) >> self.fraction;
        field.max(1) as i32 - self.bias
    }

    /// To nearest even; what is larger than the greatest number becomes that one.
    pub fn nearest(self, x: f64, relu: bool) -> u32 {
        if x.is_nan() {
            return self.nan.unwrap_or(self.greatest);
        }
        if relu && x.is_sign_negative() {
            return 0;
        }
        let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(1 - self.bias);
        let unit = 2f64.powi(exponent - self.fraction as i32);
        let steps = (x.abs() / unit).round_ties_even();
        // From the least normal exponent on, the steps carry the leading one: they and the exponent add up to the bits.
        let bits =
            (f64::from(exponent - 1 + self.bias) * f64::from(1 << self.fraction) + steps).min(self.greatest.into());
        bits as u32 | if x.is_sign_negative() { self.sign } else { 0 }
    }

    /// Away from zero if the bits that are cut off and the random ones, of which there are so many, carry; else towards it.
    pub(super) fn stochastic(self, x: f64, (random, count): (u32, u32), relu: bool, satfinite: bool) -> u32 {
        if x.is_nan() {
            return self.nan.unwrap_or(self.greatest);
        }
        if relu && x.is_sign_negative() {
            return 0;
        }
        let most = if satfinite { self.greatest } else { self.infinity.unwrap_or(self.greatest) };
        let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(1 - self.bias);
        let steps = x.abs() / 2f64.powi(exponent - self.fraction as i32);
        let all = f64::from(1 << count);
        let cut = (steps.fract() * all).floor();
        let carry = cut + f64::from(random & ((1 << count) - 1)) >= all;
        let steps = steps.floor() + f64::from(u8::from(carry));
        let bits = (f64::from(exponent - 1 + self.bias) * f64::from(1 << self.fraction) + steps).min(most.into());
        bits as u32 | if x.is_sign_negative() { self.sign } else { 0 }
    }
}

fn half_of(x: f64, relu: bool) -> u32 {
    match x {
        _ if x.is_nan() => 0x7fff,
        _ if relu && x.is_sign_negative() => 0,
        _ => f16::from_f64(x).to_bits().into(),
    }
}

fn halves(x: u32) -> (f64, f64) {
    (f16::from_bits((x >> 16) as u16).to_f64(), f16::from_bits(x as u16).to_f64())
}

/// The sign is dropped; what is below the least power of two becomes that one. NaN, and infinity unless it is clamped, is 0xff.
fn scale(x: f32, up: bool, satfinite: bool) -> u32 {
    let magnitude = x.to_bits() & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return 0xff;
    }
    let (exponent, fraction) = (magnitude >> 23, magnitude & 0x7f_ffff);
    // 2^-127 is the FP32 number 0x00400000.
    let beyond = if exponent == 0 { magnitude > 0x40_0000 } else { fraction != 0 };
    (exponent + u32::from(up && beyond)).min(if satfinite { 0xfe } else { 0xff })
}

/// A scale factor as BF16: a power of two, of which the least is subnormal there.
fn unscaled(x: u32) -> u32 {
    match x & 0xff {
        0 => 0x40,
        0xff => 0x7fff,
        exponent => exponent << 7,
    }
}

/// How TF32 is rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tie {
    Even,
    Away,
    Cut,
}

/// FP32 with ten bits of fraction; the bits below are zero.
fn tf32(x: u32, tie: Tie, relu: bool, satfinite: bool) -> u32 {
    let sign = x & 0x8000_0000;
    let magnitude = x & 0x7fff_ffff;
    if tie == Tie::Away {
        // The assembler makes integer operations of it, for NaNs, too: an H200 cuts them off, which makes an infinity of 0xff800001, and
        // with `.satfinite` it makes 0x7fbfe000 of 0x7fc00000 (silicon/convert/to_tf32). The ISA does not say what becomes of them.
        if magnitude > 0x7f80_0000 && !satfinite {
            return x & !0x1fff;
        }
        let rounded = x.wrapping_add(0x1000) & !0x1fff;
        let special = satfinite && rounded >> 23 & 0xff == 0xff;
        return if special { rounded - 0x2000 } else { rounded };
    }
    if magnitude > 0x7f80_0000 {
        // As an H200 gives it (silicon/convert/to_tf32): the bits below are zero here, too.
        return 0x7fff_e000;
    }
    let added = match tie {
        Tie::Even => 0xfff + (magnitude >> 13 & 1),
        Tie::Away | Tie::Cut => 0,
    };
    let most = if satfinite { 0x7f7f_e000 } else { 0x7f80_0000 };
    let rounded = if magnitude == 0x7f80_0000 { magnitude } else { (magnitude + added) & !0x1fff };
    if relu && sign != 0 { 0 } else { sign | rounded.min(most) }
}

/// FP32 rounded to the nearest TF32, to the even one of two that are as near.
pub fn nearest_tf32(x: u32) -> u32 {
    tf32(x, Tie::Even, false, false)
}

/// `cvt.mods.to.from` of these formats. `None`: there is no such conversion, or it is not modelled.
pub fn convert(mods: &[&str], to: &str, from: &str) -> Option<Alu> {
    if let Some(f) = scaled::convert(mods, to, from) {
        return Some(f);
    }
    if (mods, to, from) == (&["rn"], "bf16x2", "ue8m0x2") {
        return Some(lanes!(U32 |a: u32| unscaled(a >> 8) << 16 | unscaled(a)));
    }
    let rounding = *mods.first()?;
    let (relu, satfinite) = (mods.contains(&"relu"), mods.contains(&"satfinite"));
    if mods.len() != 1 + usize::from(relu) + usize::from(satfinite) {
        return None;
    }
    if to == "tf32" && from == "f32" {
        return to_tf32(rounding, relu, satfinite);
    }
    if to == "ue8m0x2" && !relu {
        return to_scale(rounding, satfinite, from);
    }
    if rounding != "rn" {
        return None;
    }
    macro_rules! pair {
        ($format:expr, $bits:literal, $relu:literal) => {
            match (from, to) {
                // The first source goes to the high part.
                ("f32", _) => lanes!(B32 |a: u32, b: u32| {
                    $format.nearest(f(a).into(), $relu) << $bits | $format.nearest(f(b).into(), $relu)
                }),
                ("f16x2", _) => lanes!(U32 |a: u32| {
                    let (high, low) = halves(a);
                    $format.nearest(high, $relu) << $bits | $format.nearest(low, $relu)
                }),
                ("bf16x2", _) => lanes!(U32 |a: u32| {
                    let (high, low) = (f(a & 0xffff_0000), f(a << 16));
                    $format.nearest(high.into(), $relu) << $bits | $format.nearest(low.into(), $relu)
                }),
                (_, "f16x2") => lanes!(U32 |a: u32| {
                    half_of($format.value(a >> $bits), $relu) << 16 | half_of($format.value(a), $relu)
                }),
                _ => return None,
            }
        };
        ($format:expr, $bits:literal) => {
            if relu { pair!($format, $bits, true) } else { pair!($format, $bits, false) }
        };
    }
    // To these formats results are clamped, and it must be said; from them nothing is.
    let wider = to == "f16x2";
    let format = if wider { from } else { to };
    if satfinite == wider || to == from {
        return None;
    }
    Some(match format {
        "e4m3x2" => pair!(E4M3, 8),
        "e5m2x2" => pair!(E5M2, 8),
        "e2m3x2" => pair!(E2M3, 8),
        "e3m2x2" => pair!(E3M2, 8),
        "e2m1x2" => pair!(E2M1, 4),
        _ => return None,
    })
}

/// `.rn`, `.rz` and `.rna`, of which the last has no `.relu`.
fn to_tf32(rounding: &str, relu: bool, satfinite: bool) -> Option<Alu> {
    macro_rules! flags {
        ($tie:expr) => {
            match (relu, satfinite) {
                (false, false) => lanes!(U32 |a: u32| tf32(a, $tie, false, false)),
                (false, true) => lanes!(U32 |a: u32| tf32(a, $tie, false, true)),
                (true, false) => lanes!(U32 |a: u32| tf32(a, $tie, true, false)),
                (true, true) => lanes!(U32 |a: u32| tf32(a, $tie, true, true)),
            }
        };
    }
    Some(match rounding {
        "rn" => flags!(Tie::Even),
        "rz" => flags!(Tie::Cut),
        "rna" if !relu => flags!(Tie::Away),
        _ => return None,
    })
}

fn to_scale(rounding: &str, satfinite: bool, from: &str) -> Option<Alu> {
    macro_rules! flags {
        ($up:literal, $sat:literal) => {
            match from {
                "f32" => lanes!(B32 |a: u32, b: u32| scale(f(a), $up, $sat) << 8 | scale(f(b), $up, $sat)),
                "bf16x2" => lanes!(U32 |a: u32| {
                    scale(f(a & 0xffff_0000), $up, $sat) << 8 | scale(f(a << 16), $up, $sat)
                }),
                _ => return None,
            }
        };
    }
    Some(match (rounding, satfinite) {
        ("rz", false) => flags!(false, false),
        ("rz", true) => flags!(false, true),
        ("rp", false) => flags!(true, false),
        ("rp", true) => flags!(true, true),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Greatest and least numbers as the PTX ISA and the OCP specification of microscaling formats give them.
    #[test]
    fn formats_have_the_range_of_their_specification() {
        for (format, greatest, normal, subnormal) in [
            (E4M3, 448.0, 2f64.powi(-6), 2f64.powi(-9)),
            (E5M2, 57344.0, 2f64.powi(-14), 2f64.powi(-16)),
            (E2M3, 7.5, 1.0, 0.125),
            (E3M2, 28.0, 0.25, 0.0625),
            (E2M1, 6.0, 1.0, 0.5),
        ] {
            assert_eq!(format.value(format.greatest), greatest, "{format:?}");
            assert_eq!(format.value(1 << format.fraction), normal, "{format:?}");
            assert_eq!(format.value(1), subnormal, "{format:?}");
        }
    }

    /// Each number is its own nearest, and the middle between two goes to the even one.
    #[test]
    fn nearest_is_the_nearest() {
        for format in [E4M3, E5M2, E2M3, E3M2, E2M1] {
            for bits in 0..format.greatest {
                let (x, next) = (format.value(bits), format.value(bits + 1));
                assert!(x < next, "{format:?} {bits:#x}");
                assert_eq!(format.nearest(x, false), bits, "{format:?} {bits:#x}");
                assert_eq!(format.nearest(-x, false), bits | format.sign, "{format:?} −{bits:#x}");
                let middle = x / 2.0 + next / 2.0;
                assert_eq!(format.nearest(middle, false), bits + (bits & 1), "{format:?} behind {bits:#x}");
                assert_eq!(format.nearest(middle.next_up(), false), bits + 1, "{format:?} behind {bits:#x}");
                assert_eq!(format.nearest(middle.next_down(), false), bits, "{format:?} behind {bits:#x}");
            }
            assert_eq!(format.nearest(f64::INFINITY, false), format.greatest);
            assert_eq!(format.nearest(f64::NEG_INFINITY, true), 0);
        }
    }
}
