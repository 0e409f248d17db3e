//! `cvt.rs`: rounding by random bits that the program brings (PTX ISA, cvt, `.rs`). They are added to the bits that are cut off, the highest of
//! them to the highest, and a carry makes the result larger. Which of them each number takes is in a figure of the ISA for pairs; authors of
//! QuACK compared pairs of FP16 and BF16 and FP8 with a B200, bit by bit. Of FP6 and FP4 see the assumption `random-bits-of-narrow`.

use super::lanes::f;
use super::narrow::{E2M1, E2M3, E3M2, E4M3, E5M2, Format};
use crate::program::op::Alu;

const F16: Format =
    Format { fraction: 10, bias: 15, greatest: 0x7bff, infinity: Some(0x7c00), nan: Some(0x7fff), sign: 0x8000 };
const BF16: Format =
    Format { fraction: 7, bias: 127, greatest: 0x7f7f, infinity: Some(0x7f80), nan: Some(0x7fff), sign: 0x8000 };

/// What numbers become, how many random bits each takes, the distance of these bits, and that of the results.
const KINDS: [(&str, Format, [u32; 3]); 7] = [
    ("f16x2", F16, [13, 16, 16]),
    ("bf16x2", BF16, [16, 16, 16]),
    ("e4m3x4", E4M3, [8, 8, 8]),
    ("e5m2x4", E5M2, [8, 8, 8]),
    ("e2m3x4", E2M3, [8, 8, 8]),
    ("e3m2x4", E3M2, [8, 8, 8]),
    ("e2m1x4", E2M1, [8, 8, 4]),
];

/// Two of the numbers, of four the lower ones or the `HIGH` ones: the first to the high part.
fn pair<const KIND: usize, const RELU: bool, const FINITE: bool, const HIGH: bool>(
    d: &mut [u32],
    a: &[u32],
    b: &[u32],
    random: &[u32],
) {
    let (_, format, [count, apart, wide]) = KINDS[KIND];
    for (((d, &a), &b), random) in d.iter_mut().zip(a).zip(b).zip(random) {
        let random = if HIGH { random >> 16 } else { *random };
        let one = |x: u32, random: u32| format.stochastic(f(x).into(), (random, count), RELU, FINITE);
        *d = one(a, random >> apart) << wide | one(b, random);
    }
}

/// The functions of both pairs of `cvt.rs.mods.to.f32`, of two numbers the same twice. `None`: there is no such conversion.
pub fn convert(mods: &[&str], to: &str) -> Option<[Alu; 2]> {
    let (relu, finite) = match mods {
        ["rs"] => (false, false),
        ["rs", "relu"] => (true, false),
        ["rs", "satfinite"] => (false, true),
        ["rs", "relu", "satfinite"] | ["rs", "satfinite", "relu"] => (true, true),
        _ => return None,
    };
    macro_rules! halves {
        ($kind:literal, $relu:literal, $finite:literal) => {
            [Alu::T32(pair::<$kind, $relu, $finite, false>), Alu::T32(pair::<$kind, $relu, $finite, true>)]
        };
        ($kind:literal) => {
            match (relu, finite) {
                (false, false) => halves!($kind, false, false),
                (true, false) => halves!($kind, true, false),
                (false, true) => halves!($kind, false, true),
                (true, true) => halves!($kind, true, true),
            }
        };
    }
    Some(match KINDS.iter().position(|(name, ..)| *name == to)? {
        0 => halves!(0),
        1 => halves!(1),
        // What these cannot hold is clamped, and it must be said.
        _ if !finite => return None,
        2 => halves!(2),
        3 => halves!(3),
        4 => halves!(4),
        5 => halves!(5),
        _ => halves!(6),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of all random bits as many round away from zero as the distance says, and those that do are the greatest.
    #[test]
    fn random_bits_round_as_often_as_the_rest_is_large() {
        for (name, format, [count, ..]) in KINDS {
            for bits in [0, 1, format.greatest / 3, format.greatest - 1] {
                let (x, next) = (format.value(bits), format.value(bits + 1));
                for part in [0, 1, 77, 255] {
                    let middle = x + (next - x) * f64::from(part) / 256.0;
                    let least = (1u32 << count) - (part << (count - 8));
                    for random in [0, least.saturating_sub(1), least, (1 << count) - 1] {
                        let random = random & ((1 << count) - 1);
                        let up = part > 0 && random >= least;
                        let found = format.stochastic(middle, (random, count), false, true);
                        assert_eq!(found, bits + u32::from(up), "{name}: {part}/256 behind {bits:#x}, {random:#x}");
                        assert_eq!(
                            format.stochastic(-middle, (random, count), false, true),
                            found | format.sign,
                            "{name}"
                        );
                    }
                }
            }
            assert_eq!(format.stochastic(f64::INFINITY, (0, count), false, true), format.greatest, "{name}");
            assert_eq!(
                format.stochastic(f64::NAN, (0, count), true, true),
                format.nan.unwrap_or(format.greatest),
                "{name}"
            );
            assert_eq!(format.stochastic(-1.0, (0, count), true, true), 0, "{name}");
        }
        // Without `.satfinite` a carry out of the greatest number is infinity.
        assert_eq!(F16.stochastic(65519.0, (0x1fff, 13), false, false), 0x7c00);
        assert_eq!(F16.stochastic(65519.0, (0, 13), false, false), 0x7bff);
    }

    /// BF16 is the upper half of FP32, whose bits and the random ones add up.
    #[test]
    fn bf16_is_a_sum_of_bits() {
        for x in [0x3f80_0001u32, 0x0000_8000, 0x0001_ffff, 0x7f7f_1234, 0xc2f6_e979, 0x8000_0001] {
            for random in [0u32, 1, 0x7fff, 0x8000, 0xfedc, 0xffff] {
                let wanted = (x + random) >> 16;
                assert_eq!(BF16.stochastic(f(x).into(), (random, 16), false, false), wanted, "{x:#x} {random:#x}");
            }
        }
    }
}
