//! `cvt`: which pair of types is which lane-wise function.

use super::lanes::{bh, bits, bits64, d, f, h, i, lanes, s16, to_bf16, to_f16};
use super::op::Alu;

/// `cvt.mods.to.from`; `mods` is the rounding and saturation as written.
pub fn convert(mods: &[&str], to: &str, from: &str) -> Option<Alu> {
    Some(match (mods, to, from) {
        // A result narrower than its register is extended to the register's width by its own type (PTX ISA 9.7.9.21).
        ([], "s16", "u64" | "s64") => lanes!(Narrow |a: u64| s16(a as u32) as u32),
        ([], "s16", "u32" | "s32" | "u16" | "s16") => lanes!(U32 |a: u32| s16(a) as u32),
        ([], "s8", "u32" | "s32" | "u16" | "s16" | "u8" | "s8") => lanes!(U32 |a: u32| i32::from(a as i8) as u32),
        ([], "s16", "s8") => lanes!(U32 |a: u32| i32::from(a as i8) as u32),
        ([], "u32" | "s32", "u32" | "s32") => lanes!(U32 |a: u32| a),
        ([], "u64" | "s64", "u64" | "s64") => lanes!(U64 |a: u64| a),
        ([], "u64" | "s64", "u32") => lanes!(Widen |a: u32| u64::from(a)),
        ([], "u64" | "s64", "s32") => lanes!(Widen |a: u32| i(a) as i64 as u64),
        ([], "u64" | "s64", "u16") => lanes!(Widen |a: u32| u64::from(a & 0xffff)),
        ([], "u64" | "s64", "s16") => lanes!(Widen |a: u32| s16(a) as i64 as u64),
        ([], "u32" | "s32", "u64" | "s64") => lanes!(Narrow |a: u64| a as u32),
        ([], "u16", "u64" | "s64") => lanes!(Narrow |a: u64| a as u32 & 0xffff),
        ([], "u32" | "s32", "u16") => lanes!(U32 |a: u32| a & 0xffff),
        ([], "u32" | "s32", "s16") => lanes!(U32 |a: u32| s16(a) as u32),
        ([], "u32" | "s32", "u8") => lanes!(U32 |a: u32| a & 0xff),
        ([], "u32" | "s32", "s8") => lanes!(U32 |a: u32| i32::from(a as i8) as u32),
        ([], "u16", "u32" | "s32" | "u16" | "s16") => lanes!(U32 |a: u32| a & 0xffff),
        ([], "u16" | "s16", "u8") => lanes!(U32 |a: u32| a & 0xff),
        ([], "u16", "s8") => lanes!(U32 |a: u32| i32::from(a as i8) as u32 & 0xffff),
        ([], "u8", "u32" | "s32" | "u16" | "s16" | "u8" | "s8") => lanes!(U32 |a: u32| a & 0xff),
        ([], "f32", "f16") => lanes!(U32 |a: u32| bits(h(a))),
        ([], "f32", "bf16") => lanes!(U32 |a: u32| bits(bh(a))),
        (["rn"], "f16", "f32") => lanes!(U32 to_f16),
        (["rn"], "bf16", "f32") => lanes!(U32 to_bf16),
        // `cvt.rn.f16x2.f32 d, a, b`: a goes to the high half (PTX ISA 9.7.9.21).
        (["rn"], "f16x2", "f32") => lanes!(B32 |a: u32, b: u32| to_f16(a) << 16 | to_f16(b)),
        (["rn"], "bf16x2", "f32") => lanes!(B32 |a: u32, b: u32| to_bf16(a) << 16 | to_bf16(b)),
        (["rn"], "f32", "u32") => lanes!(U32 |a: u32| bits(a as f32)),
        (["rn"], "f32", "s32") => lanes!(U32 |a: u32| bits(i(a) as f32)),
        (["rn"], "f32", "u8") => lanes!(U32 |a: u32| bits((a & 0xff) as f32)),
        (["rn"], "f32", "s8") => lanes!(U32 |a: u32| bits(f32::from(a as i8))),
        (["rn"], "f32", "u16") => lanes!(U32 |a: u32| bits((a & 0xffff) as f32)),
        (["rn"], "f32", "s16") => lanes!(U32 |a: u32| bits(s16(a) as f32)),
        (["rn"], "f32", "s64") => lanes!(Narrow |a: u64| bits(a as i64 as f32)),
        ([], "u64" | "s64", "u8") => lanes!(Widen |a: u32| u64::from(a & 0xff)),
        ([], "u64" | "s64", "s8") => lanes!(Widen |a: u32| i64::from(a as i8) as u64),
        ([], "u8", "u64" | "s64") => lanes!(Narrow |a: u64| a as u32 & 0xff),
        ([], "s8", "u64" | "s64") => lanes!(Narrow |a: u64| i32::from(a as i8) as u32),
        // Towards zero, to nearest even, down, up; out of range is clamped, NaN gives 0.
        (["rni"], "s32", "f32") => lanes!(U32 |a: u32| (f(a).round_ties_even() as i32) as u32),
        (["rmi"], "s32", "f32") => lanes!(U32 |a: u32| (f(a).floor() as i32) as u32),
        (["rpi"], "s32", "f32") => lanes!(U32 |a: u32| (f(a).ceil() as i32) as u32),
        (["rni"], "u32", "f32") => lanes!(U32 |a: u32| f(a).round_ties_even() as u32),
        (["rmi"], "u32", "f32") => lanes!(U32 |a: u32| f(a).floor() as u32),
        (["rpi"], "u32", "f32") => lanes!(U32 |a: u32| f(a).ceil() as u32),
        (["rzi"], "f32", "f32") => lanes!(U32 |a: u32| bits(f(a).trunc())),
        (["rni"], "f32", "f32") => lanes!(U32 |a: u32| bits(f(a).round_ties_even())),
        (["rmi"], "f32", "f32") => lanes!(U32 |a: u32| bits(f(a).floor())),
        (["rpi"], "f32", "f32") => lanes!(U32 |a: u32| bits(f(a).ceil())),
        (["rn", "relu"], "f16x2", "f32") => lanes!(B32 |a: u32, b: u32| relu(to_f16(a)) << 16 | relu(to_f16(b))),
        (["rn", "relu"], "bf16x2", "f32") => lanes!(B32 |a: u32, b: u32| relu(to_bf16(a)) << 16 | relu(to_bf16(b))),
        (["rn"], "f32", "u64") => lanes!(Narrow |a: u64| bits(a as f32)),
        (["rzi"], "u32", "f32") => lanes!(U32 |a: u32| f(a) as u32),
        (["rzi"], "s32", "f32") => lanes!(U32 |a: u32| (f(a) as i32) as u32),
        ([], "f64", "f32") => lanes!(Widen |a: u32| bits64(f64::from(f(a)))),
        (["rn"], "f32", "f64") => lanes!(Narrow |a: u64| bits(d(a) as f32)),
        _ => return None,
    })
}

/// Negative values become +0; NaN stays (it is positive here).
fn relu(half: u32) -> u32 {
    if half & 0x8000 != 0 { 0 } else { half }
}
