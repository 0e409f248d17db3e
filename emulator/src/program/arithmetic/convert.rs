//! `cvt`: which conversions there are, and what they give.
//!
//! The frequent ones are functions of many lanes; [`Conversion`] does every pair of types, a lane at a time.

use super::lanes::{bits, h, i, lanes, s16};
use super::packed::in_32_bits;
use super::to_halves::{to_bf16, to_f16, to_f16x2};
use crate::program::op::Alu;
use half::{bf16, f16};

/// `cvt.mods.to.from` as one function; `mods` is the rounding and saturation as written.
pub fn convert(mods: &[&str], to: &str, from: &str) -> Option<Alu> {
    Some(match (mods, to, from) {
        ([], "s16", "u32" | "s32" | "u16" | "s16") => lanes!(U32 |a: u32| s16(a) as u32),
        ([], "u32" | "s32", "u32" | "s32") => lanes!(U32 |a: u32| a),
        ([], "u64" | "s64", "u64" | "s64") => lanes!(U64 |a: u64| a),
        ([], "u64" | "s64", "u32") => lanes!(Widen |a: u32| u64::from(a)),
        ([], "u64" | "s64", "s32") => lanes!(Widen |a: u32| i(a) as i64 as u64),
        ([], "u32" | "s32", "u64" | "s64") => lanes!(Narrow |a: u64| a as u32),
        ([], "u32" | "s32", "u16") => lanes!(U32 |a: u32| a & 0xffff),
        ([], "u32" | "s32", "s16") => lanes!(U32 |a: u32| s16(a) as u32),
        ([], "u16", "u32" | "s32" | "u16" | "s16") => lanes!(U32 |a: u32| a & 0xffff),
        ([], "f32", "f16") => lanes!(U32 |a: u32| bits(h(a))),
        ([], "f32", "bf16") => lanes!(U32 |a: u32| a << 16),
        (["rn"], "f16", "f32") => Alu::U32(to_f16),
        (["rn"], "bf16", "f32") => lanes!(U32 to_bf16),
        // `cvt.rn.f16x2.f32 d, a, b`: a goes to the high half (PTX ISA 9.7.9.21).
        (["rn"], "f16x2", "f32") => Alu::B32(to_f16x2),
        (["rn"], "bf16x2", "f32") => lanes!(B32 |a: u32, b: u32| to_bf16(a) << 16 | to_bf16(b)),
        _ => return None,
    })
}

/// A number type of `cvt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Bytes.
    Unsigned(u8),
    /// Bytes.
    Signed(u8),
    /// FP16.
    F16,
    /// BF16.
    Bf16,
    /// FP32.
    F32,
    /// FP64.
    F64,
}

impl Type {
    fn of(name: &str) -> Option<Type> {
        Some(match name {
            "u8" => Type::Unsigned(1),
            "u16" => Type::Unsigned(2),
            "u32" => Type::Unsigned(4),
            "u64" => Type::Unsigned(8),
            "s8" => Type::Signed(1),
            "s16" => Type::Signed(2),
            "s32" => Type::Signed(4),
            "s64" => Type::Signed(8),
            "f16" => Type::F16,
            "bf16" => Type::Bf16,
            "f32" => Type::F32,
            "f64" => Type::F64,
            _ => return None,
        })
    }

    /// Bytes of a value.
    pub fn bytes(self) -> u8 {
        match self {
            Type::Unsigned(n) | Type::Signed(n) => n,
            Type::F16 | Type::Bf16 => 2,
            Type::F32 => 4,
            Type::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        !matches!(self, Type::Unsigned(_) | Type::Signed(_))
    }

    /// The least and the greatest integer.
    fn range(self) -> (i128, i128) {
        let bits = 8 * u32::from(self.bytes());
        match self {
            Type::Signed(_) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ => (0, (1 << bits) - 1),
        }
    }

    /// The value of a float; FP64 holds all of them.
    fn real(self, raw: u64, ftz: bool) -> f64 {
        let value = match self {
            Type::F16 => f16::from_bits(raw as u16).to_f64(),
            Type::Bf16 => bf16::from_bits(raw as u16).to_f64(),
            Type::F32 => f64::from(f32::from_bits(raw as u32)),
            _ => f64::from_bits(raw),
        };
        // `.ftz` is about subnormal FP32 numbers only.
        if ftz && self == Type::F32 && f32::from_bits(raw as u32).is_subnormal() { value * 0.0 } else { value }
    }

    /// The value of an integer.
    fn whole(self, raw: u64) -> i128 {
        let shift = 64 - 8 * u32::from(self.bytes());
        match self {
            Type::Signed(_) => (((raw << shift) as i64) >> shift) as i128,
            _ => (raw << shift >> shift).into(),
        }
    }

    /// Bits of the significand, the leading one included, and the least exponent.
    fn precision(self) -> (i32, i32) {
        match self {
            Type::F16 => (11, -14),
            Type::Bf16 => (8, -126),
            Type::F32 => (24, -126),
            _ => (53, -1022),
        }
    }

    /// The greatest finite number.
    fn greatest(self) -> f64 {
        match self {
            Type::F16 => f16::MAX.to_f64(),
            Type::Bf16 => bf16::MAX.to_f64(),
            Type::F32 => f32::MAX.into(),
            _ => f64::MAX,
        }
    }

    /// The bits of a value that the type holds; a NaN has one form (PTX ISA 9.7.3).
    fn encode(self, value: f64) -> u64 {
        let nan = value.is_nan();
        match self {
            Type::F16 if nan => 0x7fff,
            Type::Bf16 if nan => 0x7fff,
            Type::F32 if nan => 0x7fff_ffff,
            Type::F16 => f16::from_f64(in_32_bits(value)).to_bits().into(),
            Type::Bf16 => bf16::from_f64(in_32_bits(value)).to_bits().into(),
            Type::F32 => (value as f32).to_bits().into(),
            _ if nan => 0x7fff_ffff_ffff_ffff,
            _ => value.to_bits(),
        }
    }
}

/// Where a result lies that its type does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// At the nearest value, or the even one.
    Nearest,
    /// At the nearest value, or the one away from zero.
    Away,
    /// Towards zero.
    Zero,
    /// Below.
    Down,
    /// Above.
    Up,
}

impl Rounding {
    fn whole(self, x: f64) -> f64 {
        match self {
            Rounding::Nearest => x.round_ties_even(),
            Rounding::Away => x.round(),
            Rounding::Zero => x.trunc(),
            Rounding::Down => x.floor(),
            Rounding::Up => x.ceil(),
        }
    }
}

/// `cvt` from any number type to any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The result's type.
    pub to: Type,
    /// The source's type.
    pub from: Type,
    rounding: Rounding,
    /// `.rni` and its like: to a whole number.
    to_whole: bool,
    ftz: bool,
    sat: bool,
    satfinite: bool,
    relu: bool,
}

impl Conversion {
    /// From the modifiers as written; `None`: there is no such conversion.
    pub fn of(mods: &[&str], to: &str, from: &str) -> Option<Conversion> {
        let (to, from) = (Type::of(to)?, Type::of(from)?);
        let (mut rounding, mut to_whole) = (None, false);
        let (mut ftz, mut sat, mut satfinite, mut relu) = (false, false, false, false);
        for m in mods {
            let (way, whole) = match *m {
                "rn" => (Rounding::Nearest, false),
                "rna" => (Rounding::Away, false),
                "rz" => (Rounding::Zero, false),
                "rm" => (Rounding::Down, false),
                "rp" => (Rounding::Up, false),
                "rni" => (Rounding::Nearest, true),
                "rzi" => (Rounding::Zero, true),
                "rmi" => (Rounding::Down, true),
                "rpi" => (Rounding::Up, true),
                "ftz" => {
                    ftz = true;
                    continue;
                }
                "sat" => {
                    sat = true;
                    continue;
                }
                "satfinite" => {
                    satfinite = true;
                    continue;
                }
                "relu" => {
                    relu = true;
                    continue;
                }
                _ => return None,
            };
            if rounding.replace(way).is_some() {
                return None;
            }
            to_whole = whole;
        }
        // Which rounding a pair of types takes (PTX ISA, cvt): a conversion that may be inexact says how it rounds.
        let narrows = to.is_float() && from.is_float() && to.bytes() <= from.bytes() && to != from;
        let fits = match (from.is_float(), to.is_float()) {
            (false, false) => rounding.is_none() && !ftz,
            (true, false) => to_whole,
            (false, true) => rounding.is_some() && !to_whole && rounding != Some(Rounding::Away),
            // Only `.ftz` and `.sat` do anything.
            (true, true) if to == from => to_whole || rounding.is_none(),
            // Between FP16 and BF16 ptxas takes none as `.rn`, which Triton 3.4 writes.
            (true, true) if narrows && to.bytes() == from.bytes() => !to_whole,
            (true, true) if narrows => rounding.is_some() && !to_whole,
            // Exact: ptxas takes a way to round it all the same.
            (true, true) if from == Type::Bf16 => !to_whole,
            (true, true) => rounding.is_none(),
        };
        // `.sat` stands only where something can be cut off, and BF16 has no conversions from or to 8 bits.
        let contained = !from.is_float() && !to.is_float() && {
            let ((least, greatest), (low, high)) = (from.range(), to.range());
            least >= low && greatest <= high
        };
        let tiny = |t: Type| !t.is_float() && t.bytes() == 1;
        if sat && (contained || to == Type::Bf16)
            || (to == Type::Bf16 && tiny(from))
            || (from == Type::Bf16 && tiny(to))
        {
            return None;
        }
        let half = matches!(to, Type::F16 | Type::Bf16) && from == Type::F32;
        let flags = ((!relu && !satfinite) || half) && (!ftz || from == Type::F32 || to == Type::F32);
        let away = rounding != Some(Rounding::Away);
        let rounding = rounding.unwrap_or(Rounding::Nearest);
        (fits && flags && away).then_some(Conversion { to, from, rounding, to_whole, ftz, sat, satfinite, relu })
    }

    /// The bits of the result, extended by its own sign to its register (PTX ISA 9.7.9.21).
    pub fn apply(&self, raw: u64) -> u64 {
        let Conversion { to, from, .. } = *self;
        if from.is_float() {
            let x = from.real(raw, self.ftz);
            let x = if self.to_whole { self.rounding.whole(x) } else { x };
            if to.is_float() {
                return self.kept_nan(raw, x).unwrap_or_else(|| self.float(x));
            }
            // Out of range is clamped. NaN is 0, but from FP64 or to 64 bits the sign bit alone (PTX ISA, cvt).
            let (least, greatest) = to.range();
            if x.is_nan() {
                let zero = from != Type::F64 && to.bytes() < 8;
                return if zero { 0 } else { extended(to, 1 << (8 * u32::from(to.bytes()) - 1)) };
            }
            return extended(to, (x as i128).clamp(least, greatest));
        }
        let whole = from.whole(raw);
        if to.is_float() {
            let x = self.exactly(whole);
            return self.float(x);
        }
        let (least, greatest) = to.range();
        extended(to, if self.sat { whole.clamp(least, greatest) } else { whole })
    }

    /// A NaN that keeps its sign and payload; others become the canonical one. BF16 to FP32 moves bits. To and from FP64, the upper bits of
    /// the payload stay, and the NaN becomes quiet (measured on an H200, silicon/convert: FP16 to FP64 of five NaNs, FP64 to
    /// FP32 and FP16 of one).
    fn kept_nan(&self, raw: u64, x: f64) -> Option<u64> {
        let Conversion { to, from, .. } = *self;
        if !x.is_nan() || self.sat || self.relu || self.satfinite {
            return None;
        }
        if (from, to) == (Type::Bf16, Type::F32) {
            return Some(raw << 16 & 0xffff_ffff);
        }
        if from != Type::F64 && to != Type::F64 {
            return None;
        }
        let digits = |of: Type| of.precision().0 as u32 - 1;
        let bits = 8 * u32::from(from.bytes());
        let payload = (raw & ((1 << digits(from)) - 1)) << (52 - digits(from)) | 1 << 51;
        let sign = raw >> (bits - 1) & 1;
        let bits = 8 * u32::from(to.bytes());
        let exponent = ((1u64 << (bits - 1)) - 1) >> digits(to) << digits(to);
        Some(sign << (bits - 1) | exponent | payload >> (52 - digits(to)))
    }

    /// An integer as FP64; one of more than 53 bits is rounded to odd, so that another rounding does not go wrong.
    fn exactly(&self, whole: i128) -> f64 {
        let magnitude = whole.unsigned_abs();
        let extra = (128 - magnitude.leading_zeros()).saturating_sub(if self.to == Type::F64 { 64 } else { 53 });
        if self.to == Type::F64 {
            return self.whole_to_f64(whole);
        }
        let kept = magnitude >> extra;
        let lost = magnitude != kept << extra;
        let value = ((kept | u128::from(lost)) << extra) as f64;
        if whole < 0 { -value } else { value }
    }

    fn whole_to_f64(&self, whole: i128) -> f64 {
        let near = whole as f64;
        let back = near as i128;
        match self.rounding {
            Rounding::Zero if back.unsigned_abs() > whole.unsigned_abs() && whole > 0 => near.next_down(),
            Rounding::Zero if back.unsigned_abs() > whole.unsigned_abs() => near.next_up(),
            Rounding::Down if back > whole => near.next_down(),
            Rounding::Up if back < whole => near.next_up(),
            _ => near,
        }
    }

    /// A float of the result's type: rounded, then clamped.
    fn float(&self, x: f64) -> u64 {
        let to = self.to;
        let (digits, least) = to.precision();
        let mut y = x;
        if to != Type::F64 && x.is_finite() && x != 0.0 {
            // One unit in the last place of the result, a power of two.
            let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(least);
            let unit = 2f64.powi(exponent - (digits - 1));
            y = (self.rounding.whole(x / unit) * unit).copysign(x);
            if y.abs() > to.greatest() {
                let away = match self.rounding {
                    Rounding::Zero => false,
                    Rounding::Down => x < 0.0,
                    Rounding::Up => x > 0.0,
                    _ => true,
                };
                y = if away { f64::INFINITY } else { to.greatest() }.copysign(x);
            }
        }
        if self.ftz && to == Type::F32 && (y as f32).is_subnormal() {
            y = 0f64.copysign(y);
        }
        if self.sat {
            y = if y > 0.0 { y.min(1.0) } else { 0.0 };
        }
        if self.relu && y <= 0.0 {
            y = 0.0;
        }
        if self.satfinite && !y.is_nan() {
            y = y.clamp(-to.greatest(), to.greatest());
        }
        to.encode(y)
    }
}

/// An integer in its register.
fn extended(to: Type, whole: i128) -> u64 {
    let cut = to.whole(whole as u64);
    match to {
        // Signed 8- and 16-bit results fill 32 bits; registers of 64 bits hold only 64-bit ones.
        Type::Signed(8) => cut as u64,
        _ => (cut as u64) & if to.bytes() == 8 { u64::MAX } else { 0xffff_ffff },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a conversion is both a function of many lanes and general, they agree.
    #[test]
    fn the_functions_and_the_general_conversion_agree() {
        let values =
            [0u32, 1, 0x7f, 0x80, 0xff, 0x180, 0x7fff, 0x8000, 0xffff, 0x1_0001, 0x7fff_ffff, 0x8000_0000, u32::MAX];
        let floats = [0f32, -0.0, 1.0, -2.5, 65504.0, 65519.9, 65520.0, 1e-8, 1e-40, 3e38, f32::INFINITY, f32::NAN];
        for (mods, to, from) in [
            (&[][..], "s16", "u32"),
            (&[], "u32", "u16"),
            (&[], "s32", "s16"),
            (&[], "u16", "s32"),
            (&[], "f32", "f16"),
            (&[], "f32", "bf16"),
            (&["rn"], "f16", "f32"),
            (&["rn"], "bf16", "f32"),
        ] {
            let Some(Alu::U32(g)) = convert(mods, to, from) else { panic!("{to} from {from}") };
            let general = Conversion::of(mods, to, from).expect(to);
            for x in values.into_iter().chain(floats.map(f32::to_bits)) {
                let mut out = [0; 32];
                g(&mut out, &[x; 32]);
                assert_eq!(u64::from(out[0]), general.apply(x.into()), "cvt {mods:?} {to} {from} of {x:#x}");
            }
        }
    }
}
