//! How a function of one lane becomes one of 32, and what numbers registers stand for.
//!
//! Integer types narrower than 32 bits live zero-extended in 32-bit registers.

use half::{bf16, f16};

/// A lane-wise function from a closure over one lane.
macro_rules! lanes {
    (U32 $f:expr) => {{
        fn g(d: &mut $crate::program::op::L32, a: &$crate::program::op::L32) {
            for i in 0..32 {
                d[i] = ($f)(a[i]);
            }
        }
        $crate::program::op::Alu::U32(g)
    }};
    (B32 $f:expr) => {{
        fn g(d: &mut $crate::program::op::L32, a: &$crate::program::op::L32, b: &$crate::program::op::L32) {
            for i in 0..32 {
                d[i] = ($f)(a[i], b[i]);
            }
        }
        $crate::program::op::Alu::B32(g)
    }};
    (T32 $f:expr) => {{
        fn g(
            d: &mut $crate::program::op::L32,
            a: &$crate::program::op::L32,
            b: &$crate::program::op::L32,
            c: &$crate::program::op::L32,
        ) {
            for i in 0..32 {
                d[i] = ($f)(a[i], b[i], c[i]);
            }
        }
        $crate::program::op::Alu::T32(g)
    }};
    (U64 $f:expr) => {{
        fn g(d: &mut $crate::program::op::L64, a: &$crate::program::op::L64) {
            for i in 0..32 {
                d[i] = ($f)(a[i]);
            }
        }
        $crate::program::op::Alu::U64(g)
    }};
    (B64 $f:expr) => {{
        fn g(d: &mut $crate::program::op::L64, a: &$crate::program::op::L64, b: &$crate::program::op::L64) {
            for i in 0..32 {
                d[i] = ($f)(a[i], b[i]);
            }
        }
        $crate::program::op::Alu::B64(g)
    }};
    (T64 $f:expr) => {{
        fn g(
            d: &mut $crate::program::op::L64,
            a: &$crate::program::op::L64,
            b: &$crate::program::op::L64,
            c: &$crate::program::op::L64,
        ) {
            for i in 0..32 {
                d[i] = ($f)(a[i], b[i], c[i]);
            }
        }
        $crate::program::op::Alu::T64(g)
    }};
    (Widen $f:expr) => {{
        fn g(d: &mut $crate::program::op::L64, a: &$crate::program::op::L32) {
            for i in 0..32 {
                d[i] = ($f)(a[i]);
            }
        }
        $crate::program::op::Alu::Widen(g)
    }};
    (Narrow $f:expr) => {{
        fn g(d: &mut $crate::program::op::L32, a: &$crate::program::op::L64) {
            for i in 0..32 {
                d[i] = ($f)(a[i]);
            }
        }
        $crate::program::op::Alu::Narrow(g)
    }};
    (Wide2 $f:expr) => {{
        fn g(d: &mut $crate::program::op::L64, a: &$crate::program::op::L32, b: &$crate::program::op::L32) {
            for i in 0..32 {
                d[i] = ($f)(a[i], b[i]);
            }
        }
        $crate::program::op::Alu::Wide2(g)
    }};
    (Wide3 $f:expr) => {{
        fn g(
            d: &mut $crate::program::op::L64,
            a: &$crate::program::op::L32,
            b: &$crate::program::op::L32,
            c: &$crate::program::op::L64,
        ) {
            for i in 0..32 {
                d[i] = ($f)(a[i], b[i], c[i]);
            }
        }
        $crate::program::op::Alu::Wide3(g)
    }};
    (Shift64 $f:expr) => {{
        fn g(d: &mut $crate::program::op::L64, a: &$crate::program::op::L64, b: &$crate::program::op::L32) {
            for i in 0..32 {
                d[i] = ($f)(a[i], b[i]);
            }
        }
        $crate::program::op::Alu::Shift64(g)
    }};
    (Field64 $f:expr) => {{
        fn g(
            d: &mut $crate::program::op::L64,
            a: &$crate::program::op::L64,
            b: &$crate::program::op::L32,
            c: &$crate::program::op::L32,
        ) {
            for i in 0..32 {
                d[i] = ($f)(a[i], b[i], c[i]);
            }
        }
        $crate::program::op::Alu::Field64(g)
    }};
    (Compare32 $f:expr) => {{
        fn g(a: &$crate::program::op::L32, b: &$crate::program::op::L32) -> u32 {
            let mut m = 0;
            for i in 0..32 {
                m |= (($f)(a[i], b[i]) as u32) << i;
            }
            m
        }
        $crate::program::op::Alu::Compare32(g)
    }};
    (Compare64 $f:expr) => {{
        fn g(a: &$crate::program::op::L64, b: &$crate::program::op::L64) -> u32 {
            let mut m = 0;
            for i in 0..32 {
                m |= (($f)(a[i], b[i]) as u32) << i;
            }
            m
        }
        $crate::program::op::Alu::Compare64(g)
    }};
}

pub(crate) use lanes;

/// Two values of lanes to one, in any order: what `redux.sync` does.
pub type Fold = fn(u32, u32) -> u32;

/// The operation of `redux.sync`. `None`: not modelled.
pub fn fold(what: &str, ty: &str) -> Option<Fold> {
    Some(match (what, ty) {
        ("add", "u32" | "s32") => u32::wrapping_add,
        ("min", "u32") => |a, b| a.min(b),
        ("max", "u32") => |a, b| a.max(b),
        ("min", "s32") => |a, b| i(a).min(i(b)) as u32,
        ("max", "s32") => |a, b| i(a).max(i(b)) as u32,
        ("and", "b32") => |a, b| a & b,
        ("or", "b32") => |a, b| a | b,
        ("xor", "b32") => |a, b| a ^ b,
        ("min", "f32") => |a, b| bits(fmin(f(a), f(b))),
        ("max", "f32") => |a, b| bits(fmax(f(a), f(b))),
        ("min.NaN", "f32") => |a, b| if f(a).is_nan() || f(b).is_nan() { 0x7fff_ffff } else { bits(fmin(f(a), f(b))) },
        ("max.NaN", "f32") => |a, b| if f(a).is_nan() || f(b).is_nan() { 0x7fff_ffff } else { bits(fmax(f(a), f(b))) },
        _ => return None,
    })
}

/// Bits as FP32.
pub fn f(x: u32) -> f32 {
    f32::from_bits(x)
}
/// Bits as FP64.
pub fn d(x: u64) -> f64 {
    f64::from_bits(x)
}
/// Flushes a subnormal to zero of the same sign (`.ftz`).
pub fn z(x: u32) -> f32 {
    let v = f(x);
    if v.is_subnormal() { f(x & 0x8000_0000) } else { v }
}
/// Bits of a result. The PTX ISA leaves open which NaN it is (9.7.3); NVIDIA GPUs give 0x7FFFFFFF.
pub fn bits(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}
/// Bits of a result under `.ftz`.
pub fn bits_z(x: f32) -> u32 {
    if x.is_subnormal() { x.to_bits() & 0x8000_0000 } else { bits(x) }
}
/// Bits of an FP64 result. A NaN is that of the first operand that is one, made quiet: FP64 keeps payloads (PTX ISA 9.7.3). One that
/// comes of no NaN is 0xFFF8…, as an H200 gives it (silicon/atomic/global_f64).
pub fn of_operands(x: f64, operands: &[u64]) -> u64 {
    if !x.is_nan() {
        return x.to_bits();
    }
    operands.iter().find(|&&x| d(x).is_nan()).map_or(0xfff8 << 48, |nan| nan | 1 << 51)
}
/// A NaN after `neg` or `abs` of FP32, which are additions to hardware: the canonical one (measured on an H200,
/// silicon/float/f32_min_max; the PTX ISA leaves it open).
pub fn canonical(x: u32) -> u32 {
    if x & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { x }
}
/// `max`/`min` without `.NaN`: a NaN operand loses.
pub fn fmax(a: f32, b: f32) -> f32 {
    if a == b && a == 0.0 { if a.is_sign_positive() { a } else { b } } else { a.max(b) }
}
/// See [`fmax`].
pub fn fmin(a: f32, b: f32) -> f32 {
    if a == b && a == 0.0 { if a.is_sign_negative() { a } else { b } } else { a.min(b) }
}
/// FP32 → FP16, to nearest even; NaN is canonical (0x7FFF). Without branches, so that 32 lanes become vector code.
#[inline(always)]
pub fn to_f16(x: u32) -> u32 {
    let magnitude = x & 0x7fff_ffff;
    // Next to 0.5, FP32 numbers are 2^-24 apart, as subnormal FP16 numbers are: the addition rounds.
    let small = bits(f(magnitude) + 0.5).wrapping_sub(bits(0.5));
    // The exponents' biases differ by 112; a carry goes into the exponent by itself.
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add((magnitude >> 13 & 1) + 0xfff) >> 13;
    let finite = if magnitude < 0x3880_0000 { small } else { normal };
    let finite = if magnitude > 0x477f_ffff { 0x7c00 } else { finite };
    if magnitude > 0x7f80_0000 { 0x7fff } else { finite | x >> 16 & 0x8000 }
}
/// FP32 → BF16, to nearest even; NaN is canonical (0x7FFF).
#[inline(always)]
pub fn to_bf16(x: u32) -> u32 {
    let rounded = x.wrapping_add((x >> 16 & 1) + 0x7fff) >> 16;
    if x & 0x7fff_ffff > 0x7f80_0000 { 0x7fff } else { rounded }
}
/// Bits as FP16, widened.
pub fn h(x: u32) -> f32 {
    f16::from_bits(x as u16).to_f32()
}
/// Bits as BF16, widened.
pub fn bh(x: u32) -> f32 {
    bf16::from_bits(x as u16).to_f32()
}
/// The low half, signed.
pub fn s16(x: u32) -> i32 {
    i32::from(x as i16)
}
/// Signed.
pub fn i(x: u32) -> i32 {
    x as i32
}
/// Signed.
pub fn l(x: u64) -> i64 {
    x as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FP32 numbers of all sizes, those next to FP16 and BF16 numbers and next to the ties between them.
    #[test]
    fn conversions_to_16_bits_are_those_of_the_half_crate() {
        let around = |bits: u32| [bits.wrapping_sub(1), bits, bits.wrapping_add(1)];
        let all = (0..=u32::MAX).step_by(0x7ff).chain((0..=u32::MAX).step_by(0x1000).flat_map(around));
        for x in all {
            let (value, nan) = (f(x), f(x).is_nan());
            let (want_f16, want_bf16) = (f16::from_f32(value).to_bits(), bf16::from_f32(value).to_bits());
            assert_eq!(to_f16(x), if nan { 0x7fff } else { want_f16.into() }, "{value:e} = {x:#010x} as FP16");
            assert_eq!(to_bf16(x), if nan { 0x7fff } else { want_bf16.into() }, "{value:e} = {x:#010x} as BF16");
        }
    }
}
