//! Functions of integers and bits that GEMM kernels have little use for, as the ISA's own pseudocode says (PTX ISA 9.7.1, 9.7.3), and
//! sine and cosine.

use super::lanes::{bits, bits_z, f, i, l, lanes, s16, z};
use crate::program::op::Alu;

/// `None`: not modelled.
pub fn alu(base: &str, mods: &[&str], ty: &str) -> Option<Alu> {
    Some(match (base, mods, ty) {
        ("bmsk", ["clamp"], "b32") => lanes!(B32 |a: u32, b: u32| mask(a, b, true)),
        ("bmsk", ["wrap"], "b32") => lanes!(B32 |a: u32, b: u32| mask(a, b, false)),
        ("szext", ["clamp"], "u32") => lanes!(B32 |a: u32, n: u32| extended(a, n, true, false)),
        ("szext", ["clamp"], "s32") => lanes!(B32 |a: u32, n: u32| extended(a, n, true, true)),
        ("szext", ["wrap"], "u32") => lanes!(B32 |a: u32, n: u32| extended(a, n, false, false)),
        ("szext", ["wrap"], "s32") => lanes!(B32 |a: u32, n: u32| extended(a, n, false, true)),
        ("cvt", ["pack", "sat", "u16"], "s32") => lanes!(B32 |a: u32, b: u32| packed::<16>(a, b, 0, false)),
        ("cvt", ["pack", "sat", "s16"], "s32") => lanes!(B32 |a: u32, b: u32| packed::<16>(a, b, 0, true)),
        ("cvt", ["pack", "sat", "u8", "s32"], "b32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| packed::<8>(a, b, c, false))
        }
        ("cvt", ["pack", "sat", "s8", "s32"], "b32") => lanes!(T32 |a: u32, b: u32, c: u32| packed::<8>(a, b, c, true)),
        ("cvt", ["pack", "sat", "u4", "s32"], "b32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| packed::<4>(a, b, c, false))
        }
        ("cvt", ["pack", "sat", "s4", "s32"], "b32") => lanes!(T32 |a: u32, b: u32, c: u32| packed::<4>(a, b, c, true)),
        ("cvt", ["pack", "sat", "u2", "s32"], "b32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| packed::<2>(a, b, c, false))
        }
        ("cvt", ["pack", "sat", "s2", "s32"], "b32") => lanes!(T32 |a: u32, b: u32, c: u32| packed::<2>(a, b, c, true)),
        ("fns", [], "b32") => lanes!(T32 nth_bit),
        ("cnot", [], "b16") => lanes!(U32 |a: u32| u32::from(a & 0xffff == 0)),
        ("cnot", [], "b32") => lanes!(U32 |a: u32| u32::from(a == 0)),
        ("cnot", [], "b64") => lanes!(U64 |a: u64| u64::from(a == 0)),
        ("sad", [], "u16") => {
            lanes!(T32 |a: u32, b: u32, c: u32| (a & 0xffff).abs_diff(b & 0xffff).wrapping_add(c) & 0xffff)
        }
        ("sad", [], "s16") => lanes!(T32 |a: u32, b: u32, c: u32| s16(a).abs_diff(s16(b)).wrapping_add(c) & 0xffff),
        ("sad", [], "u32") => lanes!(T32 |a: u32, b: u32, c: u32| a.abs_diff(b).wrapping_add(c)),
        ("sad", [], "s32") => lanes!(T32 |a: u32, b: u32, c: u32| i(a).abs_diff(i(b)).wrapping_add(c)),
        ("sad", [], "u64") => lanes!(T64 |a: u64, b: u64, c: u64| a.abs_diff(b).wrapping_add(c)),
        ("sad", [], "s64") => lanes!(T64 |a: u64, b: u64, c: u64| l(a).abs_diff(l(b)).wrapping_add(c)),
        ("mul24", ["lo"], "u32") => lanes!(B32 |a: u32, b: u32| product24(a, b, false) as u32),
        ("mul24", ["hi"], "u32") => lanes!(B32 |a: u32, b: u32| (product24(a, b, false) >> 16) as u32),
        ("mul24", ["lo"], "s32") => lanes!(B32 |a: u32, b: u32| product24(a, b, true) as u32),
        ("mul24", ["hi"], "s32") => lanes!(B32 |a: u32, b: u32| (product24(a, b, true) >> 16) as u32),
        ("mad24", ["lo"], "u32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| (product24(a, b, false) as u32).wrapping_add(c))
        }
        ("mad24", ["hi"], "u32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| ((product24(a, b, false) >> 16) as u32).wrapping_add(c))
        }
        ("mad24", ["lo"], "s32") => lanes!(T32 |a: u32, b: u32, c: u32| (product24(a, b, true) as u32).wrapping_add(c)),
        ("mad24", ["hi"], "s32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| ((product24(a, b, true) >> 16) as u32).wrapping_add(c))
        }
        ("mad24", ["hi", "sat"], "s32") => {
            lanes!(T32 |a: u32, b: u32, c: u32| ((product24(a, b, true) >> 16) as i32).saturating_add(i(c)) as u32)
        }
        // What CUDA's headers still write, of all parts in their places: the third operand is of no account, or added to the sum of all.
        ("vabsdiff2", ["u32", "u32"], "u32") => lanes!(T32 |a: u32, b: u32, _c: u32| differences::<2>(a, b).0),
        ("vabsdiff4", ["u32", "u32"], "u32") => lanes!(T32 |a: u32, b: u32, _c: u32| differences::<4>(a, b).0),
        ("vabsdiff2", ["u32", "u32", "u32"], "add") => {
            lanes!(T32 |a: u32, b: u32, c: u32| differences::<2>(a, b).1.wrapping_add(c))
        }
        ("vabsdiff4", ["u32", "u32", "u32"], "add") => {
            lanes!(T32 |a: u32, b: u32, c: u32| differences::<4>(a, b).1.wrapping_add(c))
        }
        ("dp4a", ["u32"], "u32") => lanes!(T32 |a: u32, b: u32, c: u32| dot4(a, b, c, false, false)),
        ("dp4a", ["u32"], "s32") => lanes!(T32 |a: u32, b: u32, c: u32| dot4(a, b, c, false, true)),
        ("dp4a", ["s32"], "u32") => lanes!(T32 |a: u32, b: u32, c: u32| dot4(a, b, c, true, false)),
        ("dp4a", ["s32"], "s32") => lanes!(T32 |a: u32, b: u32, c: u32| dot4(a, b, c, true, true)),
        ("dp2a", ["lo", "u32"], "u32") => lanes!(T32 |a: u32, b: u32, c: u32| dot2(a, b, c, false, false)),
        ("dp2a", ["lo", "u32"], "s32") => lanes!(T32 |a: u32, b: u32, c: u32| dot2(a, b, c, false, true)),
        ("dp2a", ["lo", "s32"], "u32") => lanes!(T32 |a: u32, b: u32, c: u32| dot2(a, b, c, true, false)),
        ("dp2a", ["lo", "s32"], "s32") => lanes!(T32 |a: u32, b: u32, c: u32| dot2(a, b, c, true, true)),
        ("dp2a", ["hi", "u32"], "u32") => lanes!(T32 |a: u32, b: u32, c: u32| dot2(a, b >> 16, c, false, false)),
        ("dp2a", ["hi", "u32"], "s32") => lanes!(T32 |a: u32, b: u32, c: u32| dot2(a, b >> 16, c, false, true)),
        ("dp2a", ["hi", "s32"], "u32") => lanes!(T32 |a: u32, b: u32, c: u32| dot2(a, b >> 16, c, true, false)),
        ("dp2a", ["hi", "s32"], "s32") => lanes!(T32 |a: u32, b: u32, c: u32| dot2(a, b >> 16, c, true, true)),
        ("copysign", [], "f32") => lanes!(B32 |a: u32, b: u32| a & 0x8000_0000 | b & 0x7fff_ffff),
        ("copysign", [], "f64") => lanes!(B64 |a: u64, b: u64| a & 1 << 63 | b & !(1 << 63)),
        // Hardware approximates them (an absolute error of 2^-20.5 within −π … π): here, the number next to the result.
        ("sin", ["approx"], "f32") => lanes!(U32 |a: u32| bits(f64::from(f(a)).sin() as f32)),
        ("sin", ["approx", "ftz"], "f32") => lanes!(U32 |a: u32| bits_z(f64::from(z(a)).sin() as f32)),
        ("cos", ["approx"], "f32") => lanes!(U32 |a: u32| bits(f64::from(f(a)).cos() as f32)),
        ("cos", ["approx", "ftz"], "f32") => lanes!(U32 |a: u32| bits_z(f64::from(z(a)).cos() as f32)),
        _ => return None,
    })
}

/// `cvt.pack`: two numbers in the lowest bits, each cut off to so many, and what was there further up.
fn packed<const BITS: u32>(a: u32, b: u32, c: u32, signed: bool) -> u32 {
    let ones = (1 << BITS) - 1;
    let (least, greatest) = if signed { (-(1 << (BITS - 1)), ones >> 1) } else { (0, ones) };
    let cut = |x: u32| (i(x).clamp(least, greatest) & ones) as u32;
    c.checked_shl(2 * BITS).unwrap_or(0) | cut(a) << BITS | cut(b)
}

/// `bmsk`: so many ones from a bit on.
fn mask(position: u32, count: u32, clamp: bool) -> u32 {
    if clamp && position > 31 {
        return 0;
    }
    let (first, ones) = (position & 31, if clamp { count.min(32) } else { count & 31 });
    let all = (1u64 << ones) - 1;
    (all << first) as u32
}

/// `szext`: the low bits, and what they are extended with.
fn extended(a: u32, count: u32, clamp: bool, signed: bool) -> u32 {
    let n = count & 31;
    if clamp && count > 31 {
        return a;
    }
    if n == 0 {
        return 0;
    }
    if signed { (i(a << (32 - n)) >> (32 - n)) as u32 } else { a & ((1 << n) - 1) }
}

/// `fns`: the place of the n-th one from a bit on, upwards or downwards; all ones if there is none.
fn nth_bit(mask: u32, from: u32, offset: u32) -> u32 {
    let is_one = |at: i64| (0..32).contains(&at) && mask >> at & 1 == 1;
    let from = i64::from(from);
    let offset = i64::from(i(offset));
    let found = match offset {
        0 => Some(from).filter(|&at| is_one(at)),
        1.. => (from..32).filter(|&at| is_one(at)).nth(offset as usize - 1),
        _ => (0..=from.min(31)).rev().filter(|&at| is_one(at)).nth(offset.unsigned_abs() as usize - 1),
    };
    found.map_or(u32::MAX, |at| at as u32)
}

/// The 48 bits of the product of the low 24 of each.
fn product24(a: u32, b: u32, signed: bool) -> i64 {
    let part = |x: u32| if signed { i64::from(i(x << 8) >> 8) } else { i64::from(x & 0xff_ffff) };
    part(a) * part(b)
}

/// How far the parts of two words are from each other: in their places, and added up.
fn differences<const PARTS: u32>(a: u32, b: u32) -> (u32, u32) {
    let bits = 32 / PARTS;
    let part = |x: u32, n: u32| x >> (n * bits) & (u32::MAX >> (32 - bits));
    (0..PARTS).fold((0, 0), |(places, sum), n| {
        let apart = part(a, n).abs_diff(part(b, n));
        (places | apart << (n * bits), sum + apart)
    })
}

/// A byte of a word.
fn byte(x: u32, n: u32, signed: bool) -> i32 {
    let byte = (x >> (8 * n)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

/// `dp4a`: four products of bytes, and the third operand.
fn dot4(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    (0..4).fold(c, |sum, n| sum.wrapping_add(byte(a, n, a_signed).wrapping_mul(byte(b, n, b_signed)) as u32))
}

/// `dp2a`: two products of a half word and one of the two low bytes.
fn dot2(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let half = |n: u32| if a_signed { s16(a >> (16 * n)) } else { (a >> (16 * n) & 0xffff) as i32 };
    (0..2).fold(c, |sum, n| sum.wrapping_add(half(n).wrapping_mul(byte(b, n, b_signed)) as u32))
}
