//! Arithmetic, logic and comparison: which opcode is which lane-wise function.
//!
//! One row per opcode and type; conversions are in `convert`, packed and approximate arithmetic in `packed`.

use super::lanes::{bh, bits, bits_z, canonical, d, f, fmax, fmin, h, i, l, lanes, of_operands, s16, z};
use super::{packed, rare, rounding};
use crate::program::op::Alu;

/// Shifts clamp the amount at the register's width (PTX ISA 9.7.8.8, 9.7.8.9).
fn shl32(a: u32, n: u32) -> u32 {
    if n > 31 { 0 } else { a << n }
}
fn bfe(a: u32, b: u32, c: u32) -> u32 {
    let (pos, len) = (b & 0xff, c & 0xff);
    if len == 0 || pos > 31 {
        return 0;
    }
    let shifted = a >> pos;
    if len >= 32 { shifted } else { shifted & ((1 << len) - 1) }
}
/// The field, extended with its topmost bit, which is bit 31 where the field runs past it (PTX ISA, bfe).
fn bfe_signed(a: u32, b: u32, c: u32) -> u32 {
    let (pos, len) = (b & 0xff, c & 0xff);
    if len == 0 {
        return 0;
    }
    let sign = a >> (pos + len - 1).min(31) & 1 == 1;
    (0..32).fold(0, |r, n| {
        let bit = if n < len && pos + n < 32 { a >> (pos + n) & 1 == 1 } else { sign };
        r | u32::from(bit) << n
    })
}

/// `bfind`: the place of the highest set bit of so many, or its distance from the top; without one, all ones.
fn found(a: u64, bits: u32, distance: bool) -> u32 {
    match a.checked_ilog2() {
        None => u32::MAX,
        Some(place) if distance => bits - 1 - place,
        Some(place) => place,
    }
}

fn prmt(a: u32, b: u32, sel: u32) -> u32 {
    let bytes = (u64::from(b) << 32) | u64::from(a);
    (0..4).fold(0, |r, n| {
        let s = sel >> (4 * n) & 0xf;
        let byte = (bytes >> (8 * (s & 7))) as u32 & 0xff;
        let byte = if s & 8 != 0 { if byte & 0x80 != 0 { 0xff } else { 0 } } else { byte };
        r | byte << (8 * n)
    })
}
fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
/// `lop3.b32`: bit n of the table is the result where the bits of a, b and c make up n.
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    (0..8).fold(0, |r, n| {
        if table >> n & 1 == 0 {
            return r;
        }
        let pick = |x: u32, bit: u8| if n & bit != 0 { x } else { !x };
        r | (pick(a, 4) & pick(b, 2) & pick(c, 1))
    })
}
/// The selectors of `prmt`'s modes: the low two bits of c say which bytes, the mode says how (PTX ISA, prmt).
fn prmt_mode(a: u32, b: u32, c: u32, selectors: [u32; 4]) -> u32 {
    prmt(a, b, selectors[(c & 3) as usize])
}
/// On each half.
fn halves(a: u32, b: u32, f: fn(u32, u32) -> u32) -> u32 {
    f(a & 0xffff, b & 0xffff) & 0xffff | f(a >> 16, b >> 16) << 16
}
/// `max` or `min` with `.xorsign.abs`: of the magnitudes, negative if one operand alone is; a NaN keeps no sign (PTX ISA, min).
fn with_signs(a: u32, b: u32, extreme: impl Fn(u32, u32) -> u32) -> u32 {
    let r = extreme(a & 0x7fff_ffff, b & 0x7fff_ffff);
    if f32::from_bits(r).is_nan() { r } else { r | (a ^ b) & 0x8000_0000 }
}
/// With `.NaN`: a NaN if one of them is.
fn either_nan(a: f32, b: f32, extreme: fn(f32, f32) -> f32) -> u32 {
    if a.is_nan() || b.is_nan() { 0x7fff_ffff } else { extreme(a, b).to_bits() }
}
/// `max` or `min`; −0 is less than +0, and a NaN operand loses (PTX ISA, max). Of two it is as in [`of_operands`].
pub fn extreme64(a: u64, b: u64, max: bool) -> u64 {
    let (x, y) = (d(a), d(b));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => of_operands(x, &[b, a]),
        (true, false) => b,
        (false, true) => a,
        _ => {
            let less = x < y || (x == y && x.is_sign_negative());
            if less == max { b } else { a }
        }
    }
}
/// `bfi` of so many bits: nothing is inserted beyond the register, and nothing of no length (PTX ISA, bfi).
pub fn bfi(a: u64, b: u64, position: u32, count: u32, bits: u32) -> u64 {
    let (position, count) = (position & 0xff, count & 0xff);
    if count == 0 || position >= bits {
        return b;
    }
    let field = (u64::MAX >> 64u32.saturating_sub(count).min(63)) << position & u64::MAX >> (64 - bits);
    b & !field | a << position & field
}
fn bfe64(a: u64, b: u32, c: u32, signed: bool) -> u64 {
    let (pos, len) = (b & 0xff, c & 0xff);
    if len == 0 {
        return 0;
    }
    let sign = signed && a >> (pos + len - 1).min(63) & 1 == 1;
    (0..64).fold(0, |r, n| {
        let bit = if n < len && pos + n < 64 { a >> (pos + n) & 1 == 1 } else { sign };
        r | u64::from(bit) << n
    })
}

/// An opcode's base and modifiers (without the type) and type → its function. `None`: not modelled.
pub fn alu(base: &str, mods: &[&str], ty: &str) -> Option<Alu> {
    Some(match (base, mods, ty) {
        ("add", [], "s32" | "u32") => lanes!(B32 u32::wrapping_add),
        ("sub", [], "s32" | "u32") => lanes!(B32 u32::wrapping_sub),
        ("add", [], "s64" | "u64") => lanes!(B64 u64::wrapping_add),
        ("sub", [], "s64" | "u64") => lanes!(B64 u64::wrapping_sub),
        ("add", [], "s16" | "u16") => lanes!(B32 |a: u32, b: u32| a.wrapping_add(b) & 0xffff),
        ("sub", [], "s16" | "u16") => lanes!(B32 |a: u32, b: u32| a.wrapping_sub(b) & 0xffff),
        ("mul", ["lo"], "s32" | "u32") => lanes!(B32 u32::wrapping_mul),
        ("mul", ["lo"], "s64" | "u64") => lanes!(B64 u64::wrapping_mul),
        ("mul", ["lo"], "s16" | "u16") => lanes!(B32 |a: u32, b: u32| a.wrapping_mul(b) & 0xffff),
        ("mul", ["hi"], "u32") => lanes!(B32 |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        ("mul", ["hi"], "s32") => lanes!(B32 |a: u32, b: u32| ((i64::from(i(a)) * i64::from(i(b))) >> 32) as u32),
        ("mul", ["hi"], "u64") => lanes!(B64 |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64),
        ("mul", ["hi"], "s64") => lanes!(B64 |a: u64, b: u64| ((i128::from(l(a)) * i128::from(l(b))) >> 64) as u64),
        ("mul", ["wide"], "u32") => lanes!(Wide2 |a: u32, b: u32| u64::from(a) * u64::from(b)),
        ("mul", ["wide"], "s32") => lanes!(Wide2 |a: u32, b: u32| (i64::from(i(a)) * i64::from(i(b))) as u64),
        ("mul", ["wide"], "u16") => lanes!(B32 |a: u32, b: u32| (a & 0xffff) * (b & 0xffff)),
        ("mul", ["wide"], "s16") => lanes!(B32 |a: u32, b: u32| (s16(a) * s16(b)) as u32),
        ("mad", ["lo"], "s32" | "u32") => lanes!(T32 |a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c)),
        ("mad", ["lo"], "s64" | "u64") => lanes!(T64 |a: u64, b: u64, c: u64| a.wrapping_mul(b).wrapping_add(c)),
        ("mad", ["lo"], "s16" | "u16") => {
            lanes!(T32 |a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c) & 0xffff)
        }
        ("mad", ["wide"], "u32") => {
            lanes!(Wide3 |a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c))
        }
        ("mad", ["wide"], "s32") => {
            lanes!(Wide3 |a: u32, b: u32, c: u64| ((i64::from(i(a)) * i64::from(i(b))) as u64).wrapping_add(c))
        }
        ("mad", ["wide"], "u16") => lanes!(T32 |a: u32, b: u32, c: u32| ((a & 0xffff) * (b & 0xffff)).wrapping_add(c)),
        ("mad", ["wide"], "s16") => lanes!(T32 |a: u32, b: u32, c: u32| ((s16(a) * s16(b)) as u32).wrapping_add(c)),
        // Division by zero gives an unspecified value (PTX ISA 9.7.1.8): all ones on an H200, and the remainder, too (32 bits, measured,
        // silicon/integer/division; the other widths are taken to be alike).
        ("div", [], "u32") => lanes!(B32 |a: u32, b: u32| a.checked_div(b).unwrap_or(u32::MAX)),
        ("div", [], "s32") => {
            lanes!(B32 |a: u32, b: u32| if b == 0 { u32::MAX } else { i(a).wrapping_div(i(b)) as u32 })
        }
        ("div", [], "u64") => lanes!(B64 |a: u64, b: u64| a.checked_div(b).unwrap_or(u64::MAX)),
        ("div", [], "s64") => {
            lanes!(B64 |a: u64, b: u64| if b == 0 { u64::MAX } else { l(a).wrapping_div(l(b)) as u64 })
        }
        ("div", [], "u16") => lanes!(B32 |a: u32, b: u32| (a & 0xffff).checked_div(b & 0xffff).unwrap_or(0xffff)),
        ("div", [], "s16") => {
            lanes!(B32 |a: u32, b: u32| if s16(b) == 0 { 0xffff } else { s16(a).wrapping_div(s16(b)) as u32 & 0xffff })
        }
        ("rem", [], "u32") => lanes!(B32 |a: u32, b: u32| a.checked_rem(b).unwrap_or(u32::MAX)),
        ("rem", [], "s32") => {
            lanes!(B32 |a: u32, b: u32| if b == 0 { u32::MAX } else { i(a).wrapping_rem(i(b)) as u32 })
        }
        ("rem", [], "u64") => lanes!(B64 |a: u64, b: u64| a.checked_rem(b).unwrap_or(u64::MAX)),
        ("rem", [], "s64") => {
            lanes!(B64 |a: u64, b: u64| if b == 0 { u64::MAX } else { l(a).wrapping_rem(l(b)) as u64 })
        }
        ("rem", [], "u16") => lanes!(B32 |a: u32, b: u32| (a & 0xffff).checked_rem(b & 0xffff).unwrap_or(0xffff)),
        ("neg", [], "s32") => lanes!(U32 |a: u32| a.wrapping_neg()),
        ("neg", [], "s64") => lanes!(U64 |a: u64| a.wrapping_neg()),
        ("neg", [], "s16") => lanes!(U32 |a: u32| a.wrapping_neg() & 0xffff),
        ("abs", [], "s32") => lanes!(U32 |a: u32| i(a).wrapping_abs() as u32),
        ("abs", [], "s64") => lanes!(U64 |a: u64| l(a).wrapping_abs() as u64),
        ("abs", [], "s16") => lanes!(U32 |a: u32| s16(a).wrapping_abs() as u32 & 0xffff),
        ("rem", [], "s16") => {
            lanes!(B32 |a: u32, b: u32| if s16(b) == 0 { 0xffff } else { (s16(a) % s16(b)) as u32 & 0xffff })
        }
        ("mul", ["hi"], "u16") => lanes!(B32 |a: u32, b: u32| ((a & 0xffff) * (b & 0xffff)) >> 16),
        ("mul", ["hi"], "s16") => lanes!(B32 |a: u32, b: u32| (s16(a) * s16(b)) as u32 >> 16),
        ("mad", ["hi"], "u32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c))
        }
        ("mad", ["hi"], "s32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| (((i64::from(i(a)) * i64::from(i(b))) >> 32) as u32).wrapping_add(c))
        }
        ("min", [], "u16") => lanes!(B32 |a: u32, b: u32| (a & 0xffff).min(b & 0xffff)),
        ("max", [], "u16") => lanes!(B32 |a: u32, b: u32| (a & 0xffff).max(b & 0xffff)),
        ("min", [], "s16") => lanes!(B32 |a: u32, b: u32| s16(a).min(s16(b)) as u32 & 0xffff),
        ("max", [], "s16") => lanes!(B32 |a: u32, b: u32| s16(a).max(s16(b)) as u32 & 0xffff),
        ("min", [], "u32") => lanes!(B32 |a: u32, b: u32| a.min(b)),
        ("max", [], "u32") => lanes!(B32 |a: u32, b: u32| a.max(b)),
        ("min", [], "s32") => lanes!(B32 |a: u32, b: u32| i(a).min(i(b)) as u32),
        ("max", [], "s32") => lanes!(B32 |a: u32, b: u32| i(a).max(i(b)) as u32),
        ("min", [], "u64") => lanes!(B64 |a: u64, b: u64| a.min(b)),
        ("max", [], "u64") => lanes!(B64 |a: u64, b: u64| a.max(b)),
        ("min", [], "s64") => lanes!(B64 |a: u64, b: u64| l(a).min(l(b)) as u64),
        ("max", [], "s64") => lanes!(B64 |a: u64, b: u64| l(a).max(l(b)) as u64),
        ("and", [], "b32" | "b16") => lanes!(B32 |a: u32, b: u32| a & b),
        ("or", [], "b32" | "b16") => lanes!(B32 |a: u32, b: u32| a | b),
        ("xor", [], "b32" | "b16") => lanes!(B32 |a: u32, b: u32| a ^ b),
        ("not", [], "b32") => lanes!(U32 |a: u32| !a),
        ("not", [], "b16") => lanes!(U32 |a: u32| !a & 0xffff),
        ("and", [], "b64") => lanes!(B64 |a: u64, b: u64| a & b),
        ("or", [], "b64") => lanes!(B64 |a: u64, b: u64| a | b),
        ("xor", [], "b64") => lanes!(B64 |a: u64, b: u64| a ^ b),
        ("not", [], "b64") => lanes!(U64 |a: u64| !a),
        ("shl", [], "b32") => lanes!(B32 shl32),
        ("shl", [], "b16") => lanes!(B32 |a: u32, n: u32| shl32(a & 0xffff, n) & 0xffff),
        ("shl", [], "b64") => lanes!(Shift64 |a: u64, n: u32| if n > 63 { 0 } else { a << n }),
        ("shr", [], "u32" | "b32") => lanes!(B32 |a: u32, n: u32| if n > 31 { 0 } else { a >> n }),
        ("shr", [], "s32") => lanes!(B32 |a: u32, n: u32| (i(a) >> n.min(31)) as u32),
        ("shr", [], "u16" | "b16") => lanes!(B32 |a: u32, n: u32| if n > 15 { 0 } else { (a & 0xffff) >> n }),
        ("shr", [], "s16") => lanes!(B32 |a: u32, n: u32| (s16(a) >> n.min(15)) as u32 & 0xffff),
        ("shr", [], "u64" | "b64") => lanes!(Shift64 |a: u64, n: u32| if n > 63 { 0 } else { a >> n }),
        ("shr", [], "s64") => lanes!(Shift64 |a: u64, n: u32| (l(a) >> n.min(63)) as u64),
        ("add", ["sat"], "s32") => lanes!(B32 |a: u32, b: u32| i(a).saturating_add(i(b)) as u32),
        ("sub", ["sat"], "s32") => lanes!(B32 |a: u32, b: u32| i(a).saturating_sub(i(b)) as u32),
        ("add", [], "u16x2" | "s16x2") => lanes!(B32 |a: u32, b: u32| halves(a, b, u32::wrapping_add)),
        ("min", [], "u16x2") => lanes!(B32 |a: u32, b: u32| halves(a, b, u32::min)),
        ("max", [], "u16x2") => lanes!(B32 |a: u32, b: u32| halves(a, b, u32::max)),
        ("min", [], "s16x2") => lanes!(B32 |a: u32, b: u32| halves(a, b, |x, y| s16(x).min(s16(y)) as u32)),
        ("max", [], "s16x2") => lanes!(B32 |a: u32, b: u32| halves(a, b, |x, y| s16(x).max(s16(y)) as u32)),
        ("min", ["relu"], "s16x2") => {
            lanes!(B32 |a: u32, b: u32| halves(a, b, |x, y| s16(x).min(s16(y)).max(0) as u32))
        }
        ("max", ["relu"], "s16x2") => {
            lanes!(B32 |a: u32, b: u32| halves(a, b, |x, y| s16(x).max(s16(y)).max(0) as u32))
        }
        ("min", ["relu"], "s32") => lanes!(B32 |a: u32, b: u32| i(a).min(i(b)).max(0) as u32),
        ("max", ["relu"], "s32") => lanes!(B32 |a: u32, b: u32| i(a).max(i(b)).max(0) as u32),
        ("mad", ["hi", "sat"], "s32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| (((i64::from(i(a)) * i64::from(i(b))) >> 32) as i32).saturating_add(i(c)) as u32)
        }
        ("mad", ["hi"], "u16") => {
            lanes!(T32 |a: u32, b: u32, c: u32| (((a & 0xffff) * (b & 0xffff)) >> 16).wrapping_add(c) & 0xffff)
        }
        ("mad", ["hi"], "s16") => {
            lanes!(T32 |a: u32, b: u32, c: u32| ((s16(a) * s16(b)) as u32 >> 16).wrapping_add(c) & 0xffff)
        }
        ("mad", ["hi"], "u64") => {
            lanes!(T64 |a: u64, b: u64, c: u64| (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c))
        }
        ("mad", ["hi"], "s64") => {
            lanes!(T64 |a: u64, b: u64, c: u64| (((i128::from(l(a)) * i128::from(l(b))) >> 64) as u64).wrapping_add(c))
        }
        ("prmt", ["f4e"], "b32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| prmt_mode(a, b, c, [0x3210, 0x4321, 0x5432, 0x6543]))
        }
        ("prmt", ["b4e"], "b32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| prmt_mode(a, b, c, [0x5670, 0x6701, 0x7012, 0x0123]))
        }
        ("prmt", ["rc8"], "b32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| prmt_mode(a, b, c, [0x0000, 0x1111, 0x2222, 0x3333]))
        }
        ("prmt", ["ecl"], "b32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| prmt_mode(a, b, c, [0x3210, 0x3211, 0x3222, 0x3333]))
        }
        ("prmt", ["ecr"], "b32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| prmt_mode(a, b, c, [0x0000, 0x1110, 0x2210, 0x3210]))
        }
        ("prmt", ["rc16"], "b32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| prmt_mode(a, b, c, [0x1010, 0x3232, 0x1010, 0x3232]))
        }
        ("bfe", [], "u64") => lanes!(Field64 |a: u64, b: u32, c: u32| bfe64(a, b, c, false)),
        ("bfe", [], "s64") => lanes!(Field64 |a: u64, b: u32, c: u32| bfe64(a, b, c, true)),
        ("max", [], "f64") => lanes!(B64 |a: u64, b: u64| extreme64(a, b, true)),
        ("min", [], "f64") => lanes!(B64 |a: u64, b: u64| extreme64(a, b, false)),
        ("bfe", [], "u32") => lanes!(T32 bfe),
        ("bfe", [], "s32") => lanes!(T32 bfe_signed),
        ("prmt", [], "b32") => lanes!(T32 prmt),
        ("popc", [], "b32") => lanes!(U32 |a: u32| a.count_ones()),
        ("clz", [], "b32") => lanes!(U32 |a: u32| a.leading_zeros()),
        ("brev", [], "b32") => lanes!(U32 |a: u32| a.reverse_bits()),
        ("popc", [], "b64") => lanes!(Narrow |a: u64| a.count_ones()),
        // The place of the highest bit that is not the sign; with .shiftamt, how far it is from the top (PTX ISA, bfind).
        ("bfind", [], "u32") => lanes!(U32 |a: u32| found(a.into(), 32, false)),
        ("bfind", [], "s32") => lanes!(U32 |a: u32| found((a ^ (a as i32 >> 31) as u32).into(), 32, false)),
        ("bfind", ["shiftamt"], "u32") => lanes!(U32 |a: u32| found(a.into(), 32, true)),
        ("bfind", ["shiftamt"], "s32") => lanes!(U32 |a: u32| found((a ^ (a as i32 >> 31) as u32).into(), 32, true)),
        ("bfind", [], "u64") => lanes!(Narrow |a: u64| found(a, 64, false)),
        ("bfind", [], "s64") => lanes!(Narrow |a: u64| found(a ^ (a as i64 >> 63) as u64, 64, false)),
        ("bfind", ["shiftamt"], "u64") => lanes!(Narrow |a: u64| found(a, 64, true)),
        ("bfind", ["shiftamt"], "s64") => lanes!(Narrow |a: u64| found(a ^ (a as i64 >> 63) as u64, 64, true)),
        ("clz", [], "b64") => lanes!(Narrow |a: u64| a.leading_zeros()),
        ("brev", [], "b64") => lanes!(U64 |a: u64| a.reverse_bits()),
        // `.l` gives the high half of b:a shifted left, `.r` the low half of b:a shifted right (PTX ISA, shf).
        ("shf", ["l", "wrap"], "b32") => lanes!(T32 |a: u32, b: u32, n: u32| (pair(a, b) << (n & 31) >> 32) as u32),
        ("shf", ["l", "clamp"], "b32") => lanes!(T32 |a: u32, b: u32, n: u32| (pair(a, b) << n.min(32) >> 32) as u32),
        ("shf", ["r", "wrap"], "b32") => lanes!(T32 |a: u32, b: u32, n: u32| (pair(a, b) >> (n & 31)) as u32),
        ("shf", ["r", "clamp"], "b32") => lanes!(T32 |a: u32, b: u32, n: u32| (pair(a, b) >> n.min(32)) as u32),

        ("add", [] | ["rn"], "f32") => lanes!(B32 |a: u32, b: u32| bits(f(a) + f(b))),
        ("sub", [] | ["rn"], "f32") => lanes!(B32 |a: u32, b: u32| bits(f(a) - f(b))),
        ("mul", [] | ["rn"], "f32") => lanes!(B32 |a: u32, b: u32| bits(f(a) * f(b))),
        ("fma", ["rn"], "f32") => lanes!(T32 |a: u32, b: u32, c: u32| bits(f(a).mul_add(f(b), f(c)))),
        ("add", ["ftz"] | ["rn", "ftz"], "f32") => lanes!(B32 |a: u32, b: u32| bits_z(z(a) + z(b))),
        ("sub", ["ftz"] | ["rn", "ftz"], "f32") => lanes!(B32 |a: u32, b: u32| bits_z(z(a) - z(b))),
        ("mul", ["ftz"] | ["rn", "ftz"], "f32") => lanes!(B32 |a: u32, b: u32| bits_z(z(a) * z(b))),
        ("fma", ["rn", "ftz"], "f32") => lanes!(T32 |a: u32, b: u32, c: u32| bits_z(z(a).mul_add(z(b), z(c)))),
        ("neg", [], "f32") => lanes!(U32 |a: u32| canonical(a ^ 0x8000_0000)),
        ("abs", [], "f32") => lanes!(U32 |a: u32| canonical(a & 0x7fff_ffff)),
        ("max", [], "f32") => lanes!(B32 |a: u32, b: u32| bits(fmax(f(a), f(b)))),
        ("min", [], "f32") => lanes!(B32 |a: u32, b: u32| bits(fmin(f(a), f(b)))),
        ("neg", ["ftz"], "f32") => lanes!(U32 |a: u32| canonical(z(a).to_bits() ^ 0x8000_0000)),
        ("abs", ["ftz"], "f32") => lanes!(U32 |a: u32| canonical(z(a).to_bits() & 0x7fff_ffff)),
        ("max", ["ftz"], "f32") => lanes!(B32 |a: u32, b: u32| bits(fmax(z(a), z(b)))),
        ("min", ["ftz"], "f32") => lanes!(B32 |a: u32, b: u32| bits(fmin(z(a), z(b)))),
        ("max", ["NaN"], "f32") => lanes!(B32 |a: u32, b: u32| either_nan(f(a), f(b), fmax)),
        ("min", ["NaN"], "f32") => lanes!(B32 |a: u32, b: u32| either_nan(f(a), f(b), fmin)),
        ("max", ["ftz", "NaN"], "f32") => lanes!(B32 |a: u32, b: u32| either_nan(z(a), z(b), fmax)),
        ("min", ["ftz", "NaN"], "f32") => lanes!(B32 |a: u32, b: u32| either_nan(z(a), z(b), fmin)),
        ("max", ["xorsign", "abs"], "f32") => {
            lanes!(B32 |a: u32, b: u32| with_signs(a, b, |a, b| bits(fmax(f(a), f(b)))))
        }
        ("min", ["xorsign", "abs"], "f32") => {
            lanes!(B32 |a: u32, b: u32| with_signs(a, b, |a, b| bits(fmin(f(a), f(b)))))
        }
        ("max", ["ftz", "xorsign", "abs"], "f32") => {
            lanes!(B32 |a: u32, b: u32| with_signs(a, b, |a, b| bits(fmax(z(a), z(b)))))
        }
        ("min", ["ftz", "xorsign", "abs"], "f32") => {
            lanes!(B32 |a: u32, b: u32| with_signs(a, b, |a, b| bits(fmin(z(a), z(b)))))
        }
        // A magnitude that is a NaN loses only without `.NaN`.
        ("max", ["NaN", "xorsign", "abs"], "f32") => {
            lanes!(B32 |a: u32, b: u32| with_signs(a, b, |a, b| either_nan(f(a), f(b), fmax)))
        }
        ("min", ["NaN", "xorsign", "abs"], "f32") => {
            lanes!(B32 |a: u32, b: u32| with_signs(a, b, |a, b| either_nan(f(a), f(b), fmin)))
        }
        ("max", ["ftz", "NaN", "xorsign", "abs"], "f32") => {
            lanes!(B32 |a: u32, b: u32| with_signs(a, b, |a, b| either_nan(z(a), z(b), fmax)))
        }
        ("min", ["ftz", "NaN", "xorsign", "abs"], "f32") => {
            lanes!(B32 |a: u32, b: u32| with_signs(a, b, |a, b| either_nan(z(a), z(b), fmin)))
        }
        ("mad", ["rn"], "f32") => alu("fma", mods, ty)?,
        ("mad", ["rn"], "f64") => alu("fma", mods, ty)?,
        ("div", ["rn"], "f32") => lanes!(B32 |a: u32, b: u32| bits(f(a) / f(b))),
        ("add", [] | ["rn"], "f64") => lanes!(B64 |a: u64, b: u64| of_operands(d(a) + d(b), &[b, a])),
        ("sub", [] | ["rn"], "f64") => lanes!(B64 |a: u64, b: u64| of_operands(d(a) - d(b), &[b, a])),
        ("mul", [] | ["rn"], "f64") => lanes!(B64 |a: u64, b: u64| of_operands(d(a) * d(b), &[b, a])),
        ("fma", ["rn"], "f64") => {
            lanes!(T64 |a: u64, b: u64, c: u64| of_operands(d(a).mul_add(d(b), d(c)), &[b, c, a]))
        }
        ("div", ["rn"], "f64") => lanes!(B64 |a: u64, b: u64| of_operands(d(a) / d(b), &[a, b])),
        ("abs", [], "f64") => lanes!(U64 |a: u64| a & !(1 << 63)),
        ("neg", [], "f64") => lanes!(U64 |a: u64| a ^ 1 << 63),

        ("mov", [], "b32" | "u32" | "s32" | "f32" | "b16" | "u16" | "s16" | "f16" | "bf16" | "b8") => {
            lanes!(U32 |a: u32| a)
        }
        ("mov", [], "b64" | "u64" | "s64" | "f64") => lanes!(U64 |a: u64| a),
        _ => {
            return packed::alu(base, mods, ty)
                .or_else(|| rounding::alu(base, mods, ty))
                .or_else(|| rare::alu(base, mods, ty));
        }
    })
}

/// `setp.op.type`
pub fn compare(op: &str, ftz: bool, ty: &str) -> Option<Alu> {
    macro_rules! ordered {
        ($kind:ident, $conv:expr) => {
            match op {
                "eq" => lanes!($kind | a, b | ($conv)(a) == ($conv)(b)),
                "ne" => lanes!($kind | a, b | ($conv)(a) != ($conv)(b)),
                "lt" | "lo" => lanes!($kind | a, b | ($conv)(a) < ($conv)(b)),
                "le" | "ls" => lanes!($kind | a, b | ($conv)(a) <= ($conv)(b)),
                "gt" | "hi" => lanes!($kind | a, b | ($conv)(a) > ($conv)(b)),
                "ge" | "hs" => lanes!($kind | a, b | ($conv)(a) >= ($conv)(b)),
                _ => return None,
            }
        };
    }
    macro_rules! floating {
        ($kind:ident, $conv:expr) => {
            match op {
                // Without `u`, a NaN operand makes the comparison false (PTX ISA 9.3.1.2), `ne` included.
                "ne" => lanes!($kind | a, b | ($conv)(a) < ($conv)(b) || ($conv)(a) > ($conv)(b)),
                "equ" => lanes!($kind | a, b | !(($conv)(a) < ($conv)(b) || ($conv)(a) > ($conv)(b))),
                "neu" => lanes!($kind | a, b | ($conv)(a) != ($conv)(b)),
                "ltu" => lanes!($kind | a, b | ($conv)(a).is_nan() || ($conv)(b).is_nan() || ($conv)(a) < ($conv)(b)),
                "leu" => lanes!($kind | a, b | ($conv)(a).is_nan() || ($conv)(b).is_nan() || ($conv)(a) <= ($conv)(b)),
                "gtu" => lanes!($kind | a, b | ($conv)(a).is_nan() || ($conv)(b).is_nan() || ($conv)(a) > ($conv)(b)),
                "geu" => lanes!($kind | a, b | ($conv)(a).is_nan() || ($conv)(b).is_nan() || ($conv)(a) >= ($conv)(b)),
                "num" => lanes!($kind | a, b | !($conv)(a).is_nan() && !($conv)(b).is_nan()),
                "nan" => lanes!($kind | a, b | ($conv)(a).is_nan() || ($conv)(b).is_nan()),
                // The unsigned names mean nothing to floats.
                "lo" | "ls" | "hi" | "hs" => return None,
                _ => ordered!($kind, $conv),
            }
        };
    }
    if ftz && !matches!(ty, "f32" | "f16") {
        return None;
    }
    Some(match ty {
        "u32" => ordered!(Compare32, |x: u32| x),
        "s32" => ordered!(Compare32, i),
        "u16" => ordered!(Compare32, |x: u32| x & 0xffff),
        "s16" => ordered!(Compare32, s16),
        "u64" => ordered!(Compare64, |x: u64| x),
        "s64" => ordered!(Compare64, l),
        "b32" if matches!(op, "eq" | "ne") => ordered!(Compare32, |x: u32| x),
        "b16" if matches!(op, "eq" | "ne") => ordered!(Compare32, |x: u32| x & 0xffff),
        "b64" if matches!(op, "eq" | "ne") => ordered!(Compare64, |x: u64| x),
        "f32" if ftz => floating!(Compare32, z),
        "f32" => floating!(Compare32, f),
        "f16" if ftz => floating!(Compare32, |x: u32| h(packed::flush16(x))),
        "f16" => floating!(Compare32, h),
        "bf16" => floating!(Compare32, bh),
        "f64" => floating!(Compare64, d),
        _ => return None,
    })
}
