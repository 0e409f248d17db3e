//! Arithmetic of FP32 and of pairs of FP32 that is not rounded to nearest, or that saturates. Of FP64 see [`rounding64`].
//!
//! FP32 results are computed in FP64 and rounded to odd there: rounding such a value once more, in any direction, gives
//! what one rounding of the exact result would have given.

use super::lanes::{f, z};
use super::packed::odd_sum;
use super::rounding64::{self, Round};
use crate::program::op::Alu;

/// To nearest even, towards zero, down, up.
const RN: u8 = 0;
const RZ: u8 = 1;
const RM: u8 = 2;
const RP: u8 = 3;

/// What the modifiers of an opcode say.
#[derive(Clone, Copy)]
struct Flags {
    round: u8,
    ftz: bool,
    sat: bool,
}

/// `always`: how it is rounded must be said (PTX ISA, fma, mad, div, rcp, sqrt).
fn flags(mods: &[&str], always: bool) -> Option<Flags> {
    let mut flags = Flags { round: RN, ftz: false, sat: false };
    let mut said = 0;
    for m in mods {
        let round = match *m {
            "rn" => RN,
            "rz" => RZ,
            "rm" => RM,
            "rp" => RP,
            "ftz" => {
                flags.ftz = true;
                continue;
            }
            "sat" => {
                flags.sat = true;
                continue;
            }
            _ => return None,
        };
        flags.round = round;
        said += 1;
    }
    (said == 1 || said == 0 && !always).then_some(flags)
}

/// A function of the rounding, `.ftz` and `.sat`, for the flags at hand.
macro_rules! pick {
    ($flags:expr, $kind:ident, $g:ident) => {{
        macro_rules! rounded {
            ($ftz:literal, $sat:literal) => {
                match $flags.round {
                    RN => Alu::$kind($g::<RN, $ftz, $sat>),
                    RZ => Alu::$kind($g::<RZ, $ftz, $sat>),
                    RM => Alu::$kind($g::<RM, $ftz, $sat>),
                    _ => Alu::$kind($g::<RP, $ftz, $sat>),
                }
            };
        }
        match ($flags.ftz, $flags.sat) {
            (false, false) => rounded!(false, false),
            (true, false) => rounded!(true, false),
            (false, true) => rounded!(false, true),
            (true, true) => rounded!(true, true),
        }
    }};
}

/// An opcode with the modifiers of its type. `None`: not modelled.
pub fn alu(base: &str, mods: &[&str], ty: &str) -> Option<Alu> {
    let flags = flags(mods, !matches!(base, "add" | "sub" | "mul"))?;
    // The type's width and what it is made of; `.sat` and `.ftz` are FP32's, `.ftz` that of pairs, too.
    Some(match (base, ty) {
        ("add", "f32") => pick!(flags, B32, add),
        ("sub", "f32") => pick!(flags, B32, sub),
        ("mul", "f32") => pick!(flags, B32, mul),
        ("fma" | "mad", "f32") => pick!(flags, T32, fma),
        ("div", "f32") if !flags.sat => pick!(flags, B32, div),
        ("rcp", "f32") if !flags.sat => pick!(flags, U32, rcp),
        ("sqrt", "f32") if !flags.sat => pick!(flags, U32, sqrt),
        ("add", "f32x2") if !flags.sat => pick!(flags, B64, add2),
        ("sub", "f32x2") if !flags.sat => pick!(flags, B64, sub2),
        ("mul", "f32x2") if !flags.sat => pick!(flags, B64, mul2),
        ("fma", "f32x2") if !flags.sat => pick!(flags, T64, fma2),
        (_, "f64") if flags.ftz || flags.sat => return None,
        (_, "f64") => {
            return rounding64::alu(
                base,
                [Round::Nearest, Round::Zero, Round::Down, Round::Up][usize::from(flags.round)],
            );
        }
        _ => return None,
    })
}

fn input<const FTZ: bool>(x: u32) -> f64 {
    f64::from(if FTZ { z(x) } else { f(x) })
}

/// An exact value, or one rounded to odd, as FP32.
pub fn narrow(x: f64, round: u8) -> f32 {
    let n = x as f32;
    let (wide, up) = (f64::from(n), round == RP || (round == RZ && x < 0.0));
    match round {
        _ if x.is_nan() || x.is_infinite() || round == RN || wide == x => n,
        _ if up && wide < x => n.next_up(),
        _ if !up && wide > x => n.next_down(),
        _ => n,
    }
}

fn output<const R: u8, const FTZ: bool, const SAT: bool>(x: f64) -> u32 {
    let n = narrow(x, R);
    let n = if FTZ && n.is_subnormal() { 0.0_f32.copysign(n) } else { n };
    // `.sat` clamps to 0 … 1, and NaN becomes 0.
    match n {
        _ if SAT => (if n > 0.0 { n.min(1.0) } else { 0.0 }).to_bits(),
        _ if n.is_nan() => 0x7fff_ffff,
        _ => n.to_bits(),
    }
}

/// Rounded to odd. A sum of opposites is −0 when rounded down.
fn sum<const R: u8>(a: f64, b: f64) -> f64 {
    let s = odd_sum(a, b);
    if R == RM && s == 0.0 && a == -b && !(a == 0.0 && a.is_sign_positive() && b.is_sign_positive()) { -0.0 } else { s }
}

/// A value and the sign of what it lacks, rounded to odd.
fn odd(value: f64, lacks: f64) -> f64 {
    if lacks == 0.0 || lacks.is_nan() || !value.is_finite() || value.to_bits() & 1 == 1 {
        value
    } else if lacks > 0.0 {
        value.next_up()
    } else {
        value.next_down()
    }
}

fn quotient(a: f64, b: f64) -> f64 {
    let q = a / b;
    let rest = (-q).mul_add(b, a);
    odd(q, if b < 0.0 { -rest } else { rest })
}

fn root(a: f64) -> f64 {
    let q = a.sqrt();
    odd(q, (-q).mul_add(q, a))
}

macro_rules! lanewise32 {
    ($name:ident, $value:ident, |$($x:ident),+| $e:expr) => {
        fn $value<const R: u8, const FTZ: bool, const SAT: bool>($($x: u32),+) -> u32 {
            $(let $x = input::<FTZ>($x);)+
            output::<R, FTZ, SAT>($e)
        }
        fn $name<const R: u8, const FTZ: bool, const SAT: bool>(out: &mut [u32], $($x: &[u32]),+) {
            for i in 0..out.len() {
                out[i] = $value::<R, FTZ, SAT>($($x[i]),+);
            }
        }
    };
}

lanewise32!(add, add_one, |a, b| sum::<R>(a, b));
lanewise32!(sub, sub_one, |a, b| sum::<R>(a, -b));
lanewise32!(mul, mul_one, |a, b| a * b);
lanewise32!(fma, fma_one, |a, b, c| sum::<R>(a * b, c));
lanewise32!(div, div_one, |a, b| quotient(a, b));
lanewise32!(rcp, rcp_one, |a| quotient(1.0, a));
lanewise32!(sqrt, sqrt_one, |a| root(a));

macro_rules! lanewise_pairs {
    ($name:ident, $value:ident, $($x:ident),+) => {
        fn $name<const R: u8, const FTZ: bool, const SAT: bool>(out: &mut [u64], $($x: &[u64]),+) {
            for i in 0..out.len() {
                let low = $value::<R, FTZ, SAT>($($x[i] as u32),+);
                let high = $value::<R, FTZ, SAT>($(($x[i] >> 32) as u32),+);
                out[i] = u64::from(high) << 32 | u64::from(low);
            }
        }
    };
}

lanewise_pairs!(add2, add_one, a, b);
lanewise_pairs!(sub2, sub_one, a, b);
lanewise_pairs!(mul2, mul_one, a, b);
lanewise_pairs!(fma2, fma_one, a, b, c);
