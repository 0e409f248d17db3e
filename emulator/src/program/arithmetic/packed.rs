//! Arithmetic of FP16 and BF16, alone and in pairs, of pairs of FP32, and the approximate functions.

use super::lanes::{bits, bits_z, d, f, lanes, of_operands, z};
use crate::program::op::Alu;
use half::{bf16, f16};

/// An opcode on packed or half-width types, or an approximate one. `None`: not modelled.
pub fn alu(base: &str, mods: &[&str], ty: &str) -> Option<Alu> {
    match ty {
        "f32x2" => return pairs(base, mods),
        "f32" => return approximate(base, mods),
        "f64" => return approximate64(base, mods),
        _ => {}
    }
    // FP16 may flush subnormals, but not where it is approximate.
    let without = without_ftz(mods).filter(|_| ty.starts_with("f16"));
    if without.is_some() && matches!(base, "ex2" | "tanh") {
        return None;
    }
    let flushes = without.is_some();
    let mods = without.as_deref().unwrap_or(mods);
    // BF16's `ex2` is written with `.ftz`, and takes no other way (PTX ISA, ex2).
    let mods = match (base, mods, ty) {
        ("ex2", ["approx", "ftz"], "bf16" | "bf16x2") => &["approx"],
        ("ex2", _, "bf16" | "bf16x2") => return None,
        _ => mods,
    };
    macro_rules! half_width {
        ($ty:ident, $each:ident) => {
            match (base, mods) {
                ("add", [] | ["rn"]) => lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::sum(x, y))),
                ("sub", [] | ["rn"]) => lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::sum(x, y ^ 0x8000))),
                ("mul", [] | ["rn"]) => lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::product(x, y))),
                ("fma", ["rn"]) => lanes!(T32 | a, b, c | $each(a, b, c, |x, y, w| $ty::fused(x, y, w, false))),
                ("fma", ["rn", "relu"]) => lanes!(T32 | a, b, c | $each(a, b, c, |x, y, w| $ty::fused(x, y, w, true))),
                ("max", []) => lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::extreme(x, y, true, false))),
                ("min", []) => lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::extreme(x, y, false, false))),
                ("max", ["NaN"]) => lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::extreme(x, y, true, true))),
                ("min", ["NaN"]) => lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::extreme(x, y, false, true))),
                ("max", ["xorsign", "abs"]) => {
                    lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::with_signs(x, y, true, false)))
                }
                ("min", ["xorsign", "abs"]) => {
                    lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::with_signs(x, y, false, false)))
                }
                ("max", ["NaN", "xorsign", "abs"]) => {
                    lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::with_signs(x, y, true, true)))
                }
                ("min", ["NaN", "xorsign", "abs"]) => {
                    lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::with_signs(x, y, false, true)))
                }
                ("add", ["sat"] | ["rn", "sat"]) => {
                    lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::saturated($ty::sum(x, y))))
                }
                ("sub", ["sat"] | ["rn", "sat"]) => {
                    lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::saturated($ty::sum(x, y ^ 0x8000))))
                }
                ("mul", ["sat"] | ["rn", "sat"]) => {
                    lanes!(B32 | a, b | $each(a, b, 0, |x, y, _| $ty::saturated($ty::product(x, y))))
                }
                ("fma", ["rn", "sat"]) => {
                    lanes!(T32 | a, b, c | $each(a, b, c, |x, y, w| $ty::saturated($ty::fused(x, y, w, false))))
                }
                ("ex2", ["approx"]) => lanes!(U32 | a | $each(a, 0, 0, |x, _, _| $ty::function(x, f64::exp2))),
                ("tanh", ["approx"]) => lanes!(U32 | a | $each(a, 0, 0, |x, _, _| $ty::function(x, f64::tanh))),
                ("neg", []) => lanes!(U32 | a | $each(a, 0, 0, |x, _, _| $ty::canonical(x ^ 0x8000))),
                ("abs", []) => lanes!(U32 | a | $each(a, 0, 0, |x, _, _| $ty::canonical(x & 0x7fff))),
                _ => return None,
            }
        };
    }
    Some(match ty {
        "f16" if flushes => half_width!(flushed, one),
        "f16x2" if flushes => half_width!(flushed, both),
        "f16" => half_width!(fp16, one),
        "f16x2" => half_width!(fp16, both),
        "bf16" => half_width!(brain, one),
        "bf16x2" => half_width!(brain, both),
        _ => return None,
    })
}

/// The modifiers without `.ftz`, if it is among them.
fn without_ftz<'a>(mods: &[&'a str]) -> Option<Vec<&'a str>> {
    mods.contains(&"ftz").then(|| mods.iter().copied().filter(|m| *m != "ftz").collect())
}

/// FP16 operations with `.ftz`: subnormal numbers are zeros, on the way in and on the way out.
mod flushed {
    // Of results that are flushed already; and of functions that have no `.ftz`.
    pub use super::fp16::{function, saturated};
    use super::{flush16, fp16};

    fn low(x: u16) -> u16 {
        flush16(x.into()) as u16
    }
    pub fn canonical(x: u16) -> u16 {
        fp16::canonical(low(x))
    }
    pub fn sum(a: u16, b: u16) -> u16 {
        low(fp16::sum(low(a), low(b)))
    }
    pub fn product(a: u16, b: u16) -> u16 {
        low(fp16::product(low(a), low(b)))
    }
    pub fn fused(a: u16, b: u16, c: u16, relu: bool) -> u16 {
        low(fp16::fused(low(a), low(b), low(c), relu))
    }
    pub fn extreme(a: u16, b: u16, max: bool, nan: bool) -> u16 {
        fp16::extreme(low(a), low(b), max, nan)
    }
    pub fn with_signs(a: u16, b: u16, max: bool, nan: bool) -> u16 {
        fp16::with_signs(low(a), low(b), max, nan)
    }
}

/// On the low half only.
fn one(a: u32, b: u32, c: u32, f: fn(u16, u16, u16) -> u16) -> u32 {
    f(a as u16, b as u16, c as u16).into()
}

/// On each half.
fn both(a: u32, b: u32, c: u32, f: fn(u16, u16, u16) -> u16) -> u32 {
    one(a, b, c, f) | one(a >> 16, b >> 16, c >> 16, f) << 16
}

macro_rules! half_type {
    ($name:ident, $ty:ident) => {
        /// One value of this type, by its bits. Each result is rounded once, to nearest even; a NaN is 0x7FFF.
        pub mod $name {
            use super::{in_32_bits, odd_sum, $ty};

            fn wide(x: u16) -> f64 {
                $ty::from_bits(x).to_f64()
            }
            fn round(x: f64) -> u16 {
                if x.is_nan() { 0x7fff } else { $ty::from_f64(in_32_bits(x)).to_bits() }
            }
            /// After `neg` and `abs`, too, a NaN is that one (measured on an H200, silicon/float).
            pub fn canonical(x: u16) -> u16 {
                if wide(x).is_nan() { 0x7fff } else { x }
            }
            pub fn sum(a: u16, b: u16) -> u16 {
                round(odd_sum(wide(a), wide(b)))
            }
            pub fn product(a: u16, b: u16) -> u16 {
                round(wide(a) * wide(b))
            }
            pub fn fused(a: u16, b: u16, c: u16, relu: bool) -> u16 {
                let r = odd_sum(wide(a) * wide(b), wide(c));
                // `.relu` clamps negative results to +0 and keeps NaN (PTX ISA, fma).
                if relu && r <= 0.0 { 0 } else { round(r) }
            }
            /// `.sat`: clamped to 0 … 1, NaN becomes +0.
            pub fn saturated(x: u16) -> u16 {
                let value = wide(x);
                if value > 0.0 { round(value.min(1.0)) } else { 0 }
            }
            pub fn function(x: u16, f: fn(f64) -> f64) -> u16 {
                round(f(wide(x)))
            }
            /// With `.xorsign.abs`: of the magnitudes, negative if one operand alone is; a NaN keeps no sign (PTX ISA, min).
            pub fn with_signs(a: u16, b: u16, max: bool, nan: bool) -> u16 {
                let r = extreme(a & 0x7fff, b & 0x7fff, max, nan);
                if wide(r).is_nan() { r } else { r | (a ^ b) & 0x8000 }
            }
            /// `max` or `min`; −0 is less than +0. Without `.NaN`, a NaN operand loses.
            pub fn extreme(a: u16, b: u16, max: bool, nan: bool) -> u16 {
                let (x, y) = (wide(a), wide(b));
                match (x.is_nan(), y.is_nan()) {
                    (true, true) => 0x7fff,
                    (true, false) | (false, true) if nan => 0x7fff,
                    (true, false) => b,
                    (false, true) => a,
                    _ => {
                        let less = x < y || (x == y && x.is_sign_negative());
                        if less == max { b } else { a }
                    }
                }
            }
        }
    };
}

half_type!(fp16, f16);
half_type!(brain, bf16);

/// A subnormal FP16 number becomes zero (`.ftz`).
pub fn flush16(x: u32) -> u32 {
    if x & 0x7c00 == 0 { x & 0x8000 } else { x }
}

/// A value of FP64, rounded to odd in the upper half of its bits: `half` makes 16 bits of these alone, or rounds to FP32 on the way.
pub fn in_32_bits(x: f64) -> f64 {
    let (high, low) = (x.to_bits() >> 32, x.to_bits() as u32);
    if x.is_finite() { f64::from_bits((high | u64::from(low != 0)) << 32) } else { x }
}

/// A sum in FP64, rounded to odd: rounding it again to a narrower type gives what one rounding would have given.
pub fn odd_sum(a: f64, b: f64) -> f64 {
    let s = a + b;
    if !s.is_finite() {
        return s;
    }
    let t = s - a;
    let error = (a - (s - t)) + (b - t);
    if error == 0.0 || s.to_bits() & 1 == 1 {
        return s;
    }
    // The true sum lies between s and its neighbour on the error's side: the odd one of the two.
    let away = (error > 0.0) == (s > 0.0);
    f64::from_bits(if away { s.to_bits() + 1 } else { s.to_bits() - 1 })
}

/// Two FP32 values in a 64-bit register, the first in the low half.
fn pairs(base: &str, mods: &[&str]) -> Option<Alu> {
    fn each(a: u64, b: u64, c: u64, f: fn(u32, u32, u32) -> u32) -> u64 {
        let low = f(a as u32, b as u32, c as u32);
        let high = f((a >> 32) as u32, (b >> 32) as u32, (c >> 32) as u32);
        u64::from(high) << 32 | u64::from(low)
    }
    Some(match (base, mods) {
        ("add", [] | ["rn"]) => lanes!(B64 | a, b | each(a, b, 0, |x, y, _| bits(f(x) + f(y)))),
        ("sub", [] | ["rn"]) => lanes!(B64 | a, b | each(a, b, 0, |x, y, _| bits(f(x) - f(y)))),
        ("mul", [] | ["rn"]) => lanes!(B64 | a, b | each(a, b, 0, |x, y, _| bits(f(x) * f(y)))),
        ("fma", ["rn"]) => lanes!(T64 | a, b, c | each(a, b, c, |x, y, w| bits(f(x).mul_add(f(y), f(w))))),
        ("add", ["ftz"] | ["rn", "ftz"]) => lanes!(B64 | a, b | each(a, b, 0, |x, y, _| bits_z(z(x) + z(y)))),
        ("sub", ["ftz"] | ["rn", "ftz"]) => lanes!(B64 | a, b | each(a, b, 0, |x, y, _| bits_z(z(x) - z(y)))),
        ("mul", ["ftz"] | ["rn", "ftz"]) => lanes!(B64 | a, b | each(a, b, 0, |x, y, _| bits_z(z(x) * z(y)))),
        ("fma", ["rn", "ftz"]) => lanes!(T64 | a, b, c | each(a, b, c, |x, y, w| bits_z(z(x).mul_add(z(y), z(w))))),
        ("mul", ["rz"]) => lanes!(B64 | a, b | each(a, b, 0, |x, y, _| bits(product_towards_zero(f(x), f(y))))),
        ("mul", ["rz", "ftz"]) => {
            lanes!(B64 | a, b | each(a, b, 0, |x, y, _| bits_z(product_towards_zero(z(x), z(y)))))
        }
        _ => return None,
    })
}

/// The product has at most 48 bits, so FP64 holds it exactly before it is cut.
fn product_towards_zero(a: f32, b: f32) -> f32 {
    let exact = f64::from(a) * f64::from(b);
    let nearest = exact as f32;
    if exact.is_finite() && f64::from(nearest).abs() > exact.abs() {
        f32::from_bits(nearest.to_bits() - 1)
    } else {
        nearest
    }
}

/// Functions that hardware approximates within bounds that the ISA states (9.7.3): here, the result rounded to nearest,
/// which lies within all of them. The last bits of hardware may differ.
fn approximate(base: &str, mods: &[&str]) -> Option<Alu> {
    fn wide(x: f32, f: fn(f64) -> f64) -> f32 {
        f(f64::from(x)) as f32
    }
    /// Without `.ftz`, too, `ex2` and its like take and give subnormals; `div.full` and `div.approx` scale their operands.
    fn quotient(a: f32, b: f32) -> f32 {
        a / b
    }
    Some(match (base, mods) {
        ("mul", ["rz"]) => lanes!(B32 | a, b | bits(product_towards_zero(f(a), f(b)))),
        ("mul", ["rz", "ftz"]) => lanes!(B32 | a, b | bits_z(product_towards_zero(z(a), z(b)))),
        ("div", ["full" | "approx"]) => lanes!(B32 | a, b | bits(quotient(f(a), f(b)))),
        ("div", ["full" | "approx" | "rn", "ftz"]) => lanes!(B32 | a, b | bits_z(quotient(z(a), z(b)))),
        ("ex2", ["approx"]) => lanes!(U32 | a | bits(wide(f(a), f64::exp2))),
        ("ex2", ["approx", "ftz"]) => lanes!(U32 | a | bits_z(wide(z(a), f64::exp2))),
        ("lg2", ["approx"]) => lanes!(U32 | a | bits(wide(f(a), f64::log2))),
        ("lg2", ["approx", "ftz"]) => lanes!(U32 | a | bits_z(wide(z(a), f64::log2))),
        ("rcp", ["approx" | "rn"]) => lanes!(U32 | a | bits(1.0 / f(a))),
        ("rcp", ["approx" | "rn", "ftz"]) => lanes!(U32 | a | bits_z(1.0 / z(a))),
        ("sqrt", ["approx" | "rn"]) => lanes!(U32 | a | bits(f(a).sqrt())),
        ("sqrt", ["approx" | "rn", "ftz"]) => lanes!(U32 | a | bits_z(z(a).sqrt())),
        ("rsqrt", ["approx"]) => lanes!(U32 | a | bits(wide(f(a), |x| 1.0 / x.sqrt()))),
        ("rsqrt", ["approx", "ftz"]) => lanes!(U32 | a | bits_z(wide(z(a), |x| 1.0 / x.sqrt()))),
        ("tanh", ["approx"]) => lanes!(U32 | a | bits(wide(f(a), f64::tanh))),
        _ => return None,
    })
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64` look at the upper 32 bits, and give so many (PTX ISA, rcp.approx.ftz.f64); `rsqrt.approx.f64`
/// is a whole function. See [`approximate`].
fn approximate64(base: &str, mods: &[&str]) -> Option<Alu> {
    const UPPER: u64 = 0xffff_ffff << 32;
    fn upper(bits: u64, of: fn(f64) -> f64) -> u64 {
        let x = f64::from_bits(bits & UPPER);
        let y = of(if x.is_subnormal() { 0f64.copysign(x) } else { x });
        match y {
            _ if y.is_nan() => 0x7fff_ffff << 32,
            _ if y.is_subnormal() => 0f64.copysign(y).to_bits(),
            // An infinity stays one: its fraction is zero.
            _ => (y.to_bits() + (1 << 31)) & UPPER,
        }
    }
    fn root(x: f64) -> f64 {
        1.0 / x.sqrt()
    }
    Some(match (base, mods) {
        ("rcp", ["approx", "ftz"]) => lanes!(U64 | a | upper(a, |x| 1.0 / x)),
        ("rsqrt", ["approx", "ftz"]) => lanes!(U64 | a | upper(a, root)),
        ("rsqrt", ["approx"]) => lanes!(U64 | a | of_operands(root(d(a)), &[a])),
        _ => return None,
    })
}
