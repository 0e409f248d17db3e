//! How a function of one lane becomes one of many, and what numbers registers stand for.
//!
//! Integer types narrower than 32 bits live zero-extended in 32-bit registers.

use half::{bf16, f16};

/// A lane-wise function, of as many lanes as there are results, from a closure over one lane.
macro_rules! lanes {
    (U32 $f:expr) => { lanes!(@U32 $f, u32, a: u32) };
    (B32 $f:expr) => { lanes!(@B32 $f, u32, a: u32, b: u32) };
    (T32 $f:expr) => { lanes!(@T32 $f, u32, a: u32, b: u32, c: u32) };
    (U64 $f:expr) => { lanes!(@U64 $f, u64, a: u64) };
    (B64 $f:expr) => { lanes!(@B64 $f, u64, a: u64, b: u64) };
    (T64 $f:expr) => { lanes!(@T64 $f, u64, a: u64, b: u64, c: u64) };
    (Widen $f:expr) => { lanes!(@Widen $f, u64, a: u32) };
    (Narrow $f:expr) => { lanes!(@Narrow $f, u32, a: u64) };
    (Wide2 $f:expr) => { lanes!(@Wide2 $f, u64, a: u32, b: u32) };
    (Wide3 $f:expr) => { lanes!(@Wide3 $f, u64, a: u32, b: u32, c: u64) };
    (Shift64 $f:expr) => { lanes!(@Shift64 $f, u64, a: u64, b: u32) };
    (Field64 $f:expr) => { lanes!(@Field64 $f, u64, a: u64, b: u32, c: u32) };
    (Compare32 $f:expr) => { lanes!(@Compare32 $f, u32) };
    (Compare64 $f:expr) => { lanes!(@Compare64 $f, u64) };
    (@$compare:ident $f:expr, $t:ty) => {{
        fn g(a: &[$t], b: &[$t]) -> u32 {
            let lanes = a.iter().zip(b).enumerate();
            lanes.fold(0, |mask, (i, (&a, &b))| mask | (($f)(a, b) as u32) << i)
        }
        $crate::program::op::Alu::$compare(g)
    }};
    (@$kind:ident $f:expr, $d:ty, $($x:ident: $t:ty),+) => {{
        fn g(d: &mut [$d], $($x: &[$t]),+) {
            // As long as the results: then the loop needs no checks, and becomes vector code.
            $(let $x = &$x[..d.len()];)+
            for i in 0..d.len() {
                d[i] = ($f)($($x[i]),+);
            }
        }
        $crate::program::op::Alu::$kind(g)
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
/// Bits of an FP64 result. A NaN is that of the first of these operands that is one, made quiet: FP64 keeps payloads (PTX ISA 9.7.3).
/// Of a + b, a − b, a · b, max and min that is b, then a; of a · b + c it is b, then c, then a; of a / b it is a, then b. One that
/// comes of no NaN is 0xFFF8… (both as an H200 gives them: silicon/float/f64_nan).
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
