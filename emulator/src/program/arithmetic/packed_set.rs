//! `set` of pairs of FP16 or BF16: each half says of its own numbers whether they compare so.

use super::lanes::lanes;
use super::packed::flush16;
use crate::program::op::Alu;
use half::{bf16, f16};

/// What a half gets where the comparison holds (PTX ISA, set): 1.0 of its type, or all ones where the result is an integer.
const ONE_F16: u16 = 0x3c00;
const ONE_BF16: u16 = 0x3f80;
const ALL: u16 = 0xffff;

/// The numbers of a half: FP16, the same without subnormals, or BF16.
const F16: u8 = 0;
const F16_FLUSHED: u8 = 1;
const BF16: u8 = 2;

fn number<const OF: u8>(bits: u32) -> f32 {
    match OF {
        F16 => f16::from_bits(bits as u16).to_f32(),
        F16_FLUSHED => f16::from_bits(flush16(bits & 0xffff) as u16).to_f32(),
        _ => bf16::from_bits(bits as u16).to_f32(),
    }
}

/// The comparisons, in the order of their names in [`NAMES`]. Without `u`, a NaN makes one false (PTX ISA 9.3.1.2), `ne` included.
fn holds<const OP: usize>(a: f32, b: f32) -> bool {
    let nan = a.is_nan() || b.is_nan();
    match OP {
        0 => a == b,
        1 => !nan && a != b,
        2 => a < b,
        3 => a <= b,
        4 => a > b,
        5 => a >= b,
        6 => nan || a == b,
        7 => nan || a != b,
        8 => nan || a < b,
        9 => nan || a <= b,
        10 => nan || a > b,
        11 => nan || a >= b,
        12 => !nan,
        _ => nan,
    }
}

const NAMES: [&str; 14] = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];

fn both<const OP: usize, const OF: u8, const YES: u16>(a: u32, b: u32) -> u32 {
    let half = |shift: u32| {
        let holds = holds::<OP>(number::<OF>(a >> shift), number::<OF>(b >> shift));
        u32::from(if holds { YES } else { 0 }) << shift
    };
    half(0) | half(16)
}

/// What a pair of this type is where both halves hold.
pub fn both_hold(to: &str) -> u32 {
    let half = match to {
        "f16x2" => ONE_F16,
        "bf16x2" => ONE_BF16,
        _ => ALL,
    };
    u32::from(half) << 16 | u32::from(half)
}

/// `set.op{.ftz}.to.from` of pairs. `None`: there is no such form.
pub fn alu(op: &str, flags: &[&str], to: &str, from: &str) -> Option<Alu> {
    macro_rules! by_name {
        ($of:expr, $yes:expr, $($n:literal)*) => {
            match NAMES.iter().position(|name| *name == op)? {
                $($n => lanes!(B32 | a, b | both::<$n, { $of }, { $yes }>(a, b)),)*
                _ => return None,
            }
        };
        ($of:expr, $yes:expr) => { by_name!($of, $yes, 0 1 2 3 4 5 6 7 8 9 10 11 12 13) };
    }
    Some(match (to, from, flags) {
        ("f16x2", "f16x2", []) => by_name!(F16, ONE_F16),
        ("u32" | "s32", "f16x2", []) => by_name!(F16, ALL),
        ("f16x2", "f16x2", ["ftz"]) => by_name!(F16_FLUSHED, ONE_F16),
        ("u32" | "s32", "f16x2", ["ftz"]) => by_name!(F16_FLUSHED, ALL),
        ("bf16x2", "bf16x2", []) => by_name!(BF16, ONE_BF16),
        ("u32" | "s32", "bf16x2", []) => by_name!(BF16, ALL),
        _ => return None,
    })
}
