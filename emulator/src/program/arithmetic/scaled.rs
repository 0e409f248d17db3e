//! `cvt` of the narrow formats to BF16, and to numbers of fixed point, with scale factors or without (PTX ISA 5.2.4, cvt). Where these are
//! clamped: assumption `scaled-conversions-clamp-last`.

use super::lanes::{f, lanes};
use super::narrow::{E2M1, E2M3, E3M2, E4M3, E5M2};
use super::packed::in_32_bits;
use crate::program::op::Alu;
use half::bf16;

/// Two factors of 1, where none are named.
const ONES: u32 = 0x7f7f;

/// A factor of eight bits, a power of two.
fn factor(bits: u32) -> f64 {
    match bits & 0xff {
        0xff => f64::NAN,
        exponent => 2f64.powi(exponent as i32 - 127),
    }
}

/// To nearest even. A product of such a number and a power of two is exact here, so it is rounded once.
fn bf16_of(x: f64, relu: bool, satfinite: bool) -> u32 {
    if x.is_nan() {
        return 0x7fff;
    }
    if relu && x.is_sign_negative() {
        return 0;
    }
    let nearest = bf16::from_f64(in_32_bits(x));
    let clamped = if satfinite { nearest.clamp(bf16::MIN, bf16::MAX) } else { nearest };
    clamped.to_bits().into()
}

/// A number of two bits before the point and six behind it.
fn fixed(bits: u32) -> f64 {
    f64::from(bits as u8 as i8) / 64.0
}

/// To the nearest such number, to the even one of two as near; what lies beyond becomes the outermost, a NaN the greatest.
fn fixed_of(x: f64, relu: bool) -> u32 {
    match x {
        _ if x.is_nan() => 0x7f,
        _ if relu && x.is_sign_negative() => 0,
        _ => (x * 64.0).round_ties_even().clamp(-128.0, 127.0) as i8 as u8 as u32,
    }
}

/// `cvt.mods.to.from`. `None`: there is no such conversion.
pub fn convert(mods: &[&str], to: &str, from: &str) -> Option<Alu> {
    let (first, others) = mods.split_first()?;
    let has = |word: &str| others.contains(&word);
    let (relu, satfinite, scaled) = (has("relu"), has("satfinite"), has("scaled::n2::ue8m0"));
    if *first != "rn" || others.len() != [relu, satfinite, scaled].into_iter().filter(|has| *has).count() {
        return None;
    }
    if to == "s2f6x2" {
        return if satfinite { to_fixed(from, relu, scaled) } else { None };
    }
    macro_rules! pair {
        ($value:expr, $bits:literal, $relu:literal, $sat:literal) => {{
            fn both(a: u32, factors: u32) -> u32 {
                let half = |a: u32, by: u32| bf16_of($value(a) * factor(by), $relu, $sat);
                half(a >> $bits, factors >> 8) << 16 | half(a, factors)
            }
            if scaled { lanes!(B32 both) } else { lanes!(U32 |a: u32| both(a, ONES)) }
        }};
        ($value:expr, $bits:literal) => {
            match (relu, satfinite) {
                (false, false) => pair!($value, $bits, false, false),
                (false, true) => pair!($value, $bits, false, true),
                (true, false) => pair!($value, $bits, true, false),
                (true, true) => pair!($value, $bits, true, true),
            }
        };
    }
    if to != "bf16x2" {
        return None;
    }
    Some(match from {
        "e4m3x2" => pair!(|x| E4M3.value(x), 8),
        "e5m2x2" => pair!(|x| E5M2.value(x), 8),
        "e2m3x2" => pair!(|x| E2M3.value(x), 8),
        "e3m2x2" => pair!(|x| E3M2.value(x), 8),
        "e2m1x2" => pair!(|x| E2M1.value(x), 4),
        "s2f6x2" => pair!(fixed, 8),
        _ => return None,
    })
}

/// Each number is divided by its factor first.
fn to_fixed(from: &str, relu: bool, scaled: bool) -> Option<Alu> {
    macro_rules! pair {
        ($relu:literal) => {{
            fn both(high: f32, low: f32, factors: u32) -> u32 {
                let part = |x: f32, by: u32| fixed_of(f64::from(x) / factor(by), $relu);
                part(high, factors >> 8) << 8 | part(low, factors)
            }
            match (from, scaled) {
                ("f32", true) => lanes!(T32 |a: u32, b: u32, factors: u32| both(f(a), f(b), factors)),
                ("f32", false) => lanes!(B32 |a: u32, b: u32| both(f(a), f(b), ONES)),
                ("bf16x2", true) => {
                    lanes!(B32 |a: u32, factors: u32| both(f(a & 0xffff_0000), f(a << 16), factors))
                }
                ("bf16x2", false) => lanes!(U32 |a: u32| both(f(a & 0xffff_0000), f(a << 16), ONES)),
                _ => return None,
            }
        }};
    }
    Some(if relu { pair!(true) } else { pair!(false) })
}
