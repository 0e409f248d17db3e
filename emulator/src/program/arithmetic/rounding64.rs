//! FP64 rounded towards zero, down or up: what the host's own arithmetic, which rounds to nearest, does not give.
//!
//! A finite result is an integer times a power of two. Where it is not exact, the integer has at least two bits more than the 53 of a result, of
//! which the lowest stands for all that is cut off: rounding it gives what one rounding of the exact result would have given.

use super::lanes::{d, of_operands};
use crate::program::op::Alu;

/// In which direction a result is rounded that is not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// `.rn`
    Nearest,
    /// `.rz`
    Zero,
    /// `.rm`
    Down,
    /// `.rp`
    Up,
}

impl Round {
    /// A modifier's direction, if it is one.
    pub fn of(modifier: &str) -> Option<Round> {
        Some(match modifier {
            "rn" => Round::Nearest,
            "rz" => Round::Zero,
            "rm" => Round::Down,
            "rp" => Round::Up,
            _ => return None,
        })
    }
}

/// (−1)^`negative` · `magnitude` · 2^`exponent`
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    magnitude: u128,
    exponent: i32,
}

impl Exact {
    /// Of a finite number.
    fn of(x: f64) -> Exact {
        let (fraction, biased) = (x.to_bits() & ((1 << 52) - 1), (x.to_bits() >> 52 & 0x7ff) as i32);
        let magnitude = if biased == 0 { fraction } else { fraction | 1 << 52 };
        Exact { negative: x.is_sign_negative(), magnitude: magnitude.into(), exponent: biased.max(1) - 1075 }
    }

    /// The same number; its highest bit is this one.
    fn with_top(self, top: u32) -> Exact {
        let shift = top as i32 - (127 - self.magnitude.leading_zeros() as i32);
        Exact { magnitude: self.magnitude << shift, exponent: self.exponent - shift, ..self }
    }

    fn product(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            magnitude: self.magnitude * other.magnitude,
            exponent: self.exponent + other.exponent,
        }
    }

    /// `round` says which zero the sum of opposites is.
    fn sum(self, other: Exact, round: Round) -> Exact {
        match (self.magnitude, other.magnitude) {
            (0, 0) => {
                let negative = if self.negative == other.negative { self.negative } else { round == Round::Down };
                return Exact { negative, ..self };
            }
            (0, _) => return other,
            (_, 0) => return self,
            _ => {}
        }
        let (a, b) = (self.with_top(126), other.with_top(126));
        let (large, small) = if (a.exponent, a.magnitude) < (b.exponent, b.magnitude) { (b, a) } else { (a, b) };
        // Of a product's 106 bits none is cut off where the difference may need them: more than one bit of it vanishes only where the
        // exponents are one apart at most.
        let distance = (large.exponent - small.exponent).min(127) as u32;
        let cut = u128::from(small.magnitude & ((1 << distance) - 1) != 0);
        let aligned = small.magnitude >> distance | cut;
        if large.negative == small.negative {
            return Exact { magnitude: large.magnitude + aligned, ..large };
        }
        let magnitude = large.magnitude - aligned;
        Exact { magnitude, negative: if magnitude == 0 { round == Round::Down } else { large.negative }, ..large }
    }

    /// Neither is zero.
    fn quotient(self, other: Exact) -> Exact {
        let (a, b) = (self.with_top(126), other.with_top(52));
        let whole = a.magnitude / b.magnitude;
        let rest = u128::from(a.magnitude % b.magnitude != 0);
        Exact { negative: a.negative != b.negative, magnitude: whole | rest, exponent: a.exponent - b.exponent }
    }

    /// Of a positive number.
    fn root(self) -> Exact {
        let top = self.with_top(126);
        let even = if top.exponent % 2 == 0 { top } else { self.with_top(125) };
        let whole = even.magnitude.isqrt();
        let rest = u128::from(whole * whole != even.magnitude);
        Exact { magnitude: whole | rest, exponent: even.exponent / 2, ..even }
    }

    fn rounded(self, round: Round) -> f64 {
        const LARGEST: u64 = 0x7fef_ffff_ffff_ffff;
        let sign = u64::from(self.negative) << 63;
        if self.magnitude == 0 {
            return f64::from_bits(sign);
        }
        let top = 127 - self.magnitude.leading_zeros() as i32;
        // What a unit in the last place stands for; subnormal numbers have that of the smallest.
        let unit = (self.exponent + top - 52).max(-1074);
        let drop = unit - self.exponent;
        let (kept, rest, half) = match drop {
            ..=0 => (self.magnitude << -drop, 0, 1),
            1..=127 => (self.magnitude >> drop, self.magnitude & ((1 << drop) - 1), 1 << (drop - 1)),
            _ => (0, 1, 2),
        };
        let up = match round {
            Round::Nearest => rest > half || rest == half && kept & 1 == 1,
            Round::Zero => false,
            Round::Down => self.negative && rest != 0,
            Round::Up => !self.negative && rest != 0,
        };
        // The unit's exponent and the 53 bits make the number; a carry goes into the exponent by itself.
        let bits = ((unit + 1074) as u64).saturating_mul(1 << 52).saturating_add(kept as u64 + u64::from(up));
        let to_infinity = match round {
            Round::Nearest => true,
            Round::Zero => false,
            Round::Down => self.negative,
            Round::Up => !self.negative,
        };
        let magnitude = match bits {
            ..=LARGEST => bits,
            _ if to_infinity => LARGEST + 1,
            _ => LARGEST,
        };
        f64::from_bits(sign | magnitude)
    }
}

/// Of operands that are not all finite, or whose result is no number, no rounding comes in: what rounding to nearest gives. Otherwise
/// what `exact` makes of them.
fn result(nearest: f64, operands: &[u64], round: Round, exact: impl FnOnce() -> Exact) -> u64 {
    if round == Round::Nearest || nearest.is_nan() || operands.iter().any(|&x| !d(x).is_finite()) {
        return of_operands(nearest, operands);
    }
    exact().rounded(round).to_bits()
}

/// `add`
pub fn add(a: u64, b: u64, round: Round) -> u64 {
    result(d(a) + d(b), &[b, a], round, || Exact::of(d(a)).sum(Exact::of(d(b)), round))
}

/// `sub`
pub fn sub(a: u64, b: u64, round: Round) -> u64 {
    result(d(a) - d(b), &[b, a], round, || Exact::of(d(a)).sum(Exact::of(-d(b)), round))
}

/// `mul`
pub fn mul(a: u64, b: u64, round: Round) -> u64 {
    result(d(a) * d(b), &[b, a], round, || Exact::of(d(a)).product(Exact::of(d(b))))
}

/// `fma`, `mad`
pub fn fma(a: u64, b: u64, c: u64, round: Round) -> u64 {
    result(d(a).mul_add(d(b), d(c)), &[b, c, a], round, || {
        Exact::of(d(a)).product(Exact::of(d(b))).sum(Exact::of(d(c)), round)
    })
}

/// `div`
pub fn div(a: u64, b: u64, round: Round) -> u64 {
    quotient(d(a), d(b), &[a, b], round)
}

/// `rcp`
pub fn rcp(a: u64, round: Round) -> u64 {
    quotient(1.0, d(a), &[a], round)
}

fn quotient(a: f64, b: f64, operands: &[u64], round: Round) -> u64 {
    // A quotient of zero, or by zero, is exact.
    let round = if a == 0.0 || b == 0.0 { Round::Nearest } else { round };
    result(a / b, operands, round, || Exact::of(a).quotient(Exact::of(b)))
}

/// `sqrt`
pub fn sqrt(a: u64, round: Round) -> u64 {
    let round = if d(a) == 0.0 { Round::Nearest } else { round };
    result(d(a).sqrt(), &[a], round, || Exact::of(d(a)).root())
}

/// An opcode that is rounded so. `None`: not modelled.
pub fn alu(base: &str, round: Round) -> Option<Alu> {
    macro_rules! lanewise {
        ($kind:ident, $value:ident, $round:ident, $($x:ident),+) => {
            Alu::$kind(|out: &mut [u64], $($x: &[u64]),+| {
                for i in 0..out.len() {
                    out[i] = $value($($x[i]),+, Round::$round);
                }
            })
        };
    }
    macro_rules! rounded {
        ($kind:ident, $value:ident, $($x:ident),+) => {
            match round {
                Round::Nearest => lanewise!($kind, $value, Nearest, $($x),+),
                Round::Zero => lanewise!($kind, $value, Zero, $($x),+),
                Round::Down => lanewise!($kind, $value, Down, $($x),+),
                Round::Up => lanewise!($kind, $value, Up, $($x),+),
            }
        };
    }
    Some(match base {
        "add" => rounded!(B64, add, a, b),
        "sub" => rounded!(B64, sub, a, b),
        "mul" => rounded!(B64, mul, a, b),
        "fma" | "mad" => rounded!(T64, fma, a, b, c),
        "div" => rounded!(B64, div, a, b),
        "rcp" => rounded!(U64, rcp, a),
        "sqrt" => rounded!(U64, sqrt, a),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Round::{Down, Nearest, Up, Zero};

    /// Numbers of all sizes, and those next to where something begins or ends.
    fn numbers() -> Vec<f64> {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let any = (0..200).map(|_| f64::from_bits(next())).collect::<Vec<_>>();
        let near_one = (0..60).map(|_| f64::from_bits(next() & ((1 << 54) - 1) | 0x3fc << 52)).collect::<Vec<_>>();
        let (tiny, min) = (f64::from_bits(1), f64::MIN_POSITIVE);
        let ends = [0.0, tiny, 3.0 * tiny, min, min - tiny, 1.0, 1.0 + f64::EPSILON, 1.5, f64::MAX, f64::MAX / 2.0];
        let all = ends.into_iter().chain(any).chain(near_one).filter(|x| x.is_finite());
        all.flat_map(|x| [x, -x]).collect()
    }

    /// The same machinery rounded to nearest is what the host computes.
    #[test]
    fn to_nearest_it_is_the_hosts_arithmetic() {
        let all = numbers();
        let mut at = 1;
        for &a in &all {
            for &b in &all {
                at = (at * 31 + 7) % all.len();
                let (c, of) = (all[at], Exact::of);
                let check = |what: &str, exact: Exact, host: f64| {
                    let here = exact.rounded(Nearest);
                    assert_eq!(here.to_bits(), host.to_bits(), "{what} of {a:e}, {b:e}, {c:e}: {here:e}, not {host:e}");
                };
                check("a + b", of(a).sum(of(b), Nearest), a + b);
                check("a b", of(a).product(of(b)), a * b);
                check("a b + c", of(a).product(of(b)).sum(of(c), Nearest), a.mul_add(b, c));
                // What all but cancels.
                let back = -(a * b);
                if back.is_finite() {
                    check("a b - ab", of(a).product(of(b)).sum(of(back), Nearest), a.mul_add(b, back));
                }
                if a != 0.0 && b != 0.0 {
                    check("a / b", of(a).quotient(of(b)), a / b);
                }
                if a > 0.0 {
                    check("root of a", of(a).root(), a.sqrt());
                }
            }
        }
    }

    /// A name, the results towards zero, down and up, and what gives them.
    type Line<'a> = (&'a str, [u64; 3], &'a dyn Fn(Round) -> u64);

    /// Worked out by hand.
    #[test]
    fn each_direction() {
        const TINY: u64 = 1;
        const MAX: u64 = 0x7fef_ffff_ffff_ffff;
        const INF: u64 = 0x7ff0_0000_0000_0000;
        const ONE: u64 = 0x3ff0_0000_0000_0000;
        const SIGN: u64 = 1 << 63;
        let two = f64::to_bits(2.0);
        let three = f64::to_bits(3.0);
        // 2^-600: its square lies far below the smallest number.
        let small = (1023 - 600) << 52;
        let table: &[Line] = &[
            // 1 + 2^-1074 lies between 1 and the next number, -1 - 2^-1074 between -1 and the one before.
            ("1 + tiny", [ONE, ONE, ONE + 1], &|r| add(ONE, TINY, r)),
            ("-1 - tiny", [ONE | SIGN, (ONE + 1) | SIGN, ONE | SIGN], &|r| sub(ONE | SIGN, TINY, r)),
            // 1 - 2^-1074 lies between the number before 1 and 1.
            ("1 - tiny", [ONE - 1, ONE - 1, ONE], &|r| sub(ONE, TINY, r)),
            ("1 - 1", [0, SIGN, 0], &|r| sub(ONE, ONE, r)),
            ("-0 + -0", [SIGN, SIGN, SIGN], &|r| add(SIGN, SIGN, r)),
            ("0 - 0", [0, SIGN, 0], &|r| sub(0, 0, r)),
            ("max + max", [MAX, MAX, INF], &|r| add(MAX, MAX, r)),
            ("-max - max", [MAX | SIGN, INF | SIGN, MAX | SIGN], &|r| sub(MAX | SIGN, MAX, r)),
            ("1 + 2", [0x4008 << 48; 3], &|r| add(ONE, f64::to_bits(2.0), r)),
            ("small small", [0, 0, TINY], &|r| mul(small, small, r)),
            ("-small small", [SIGN, TINY | SIGN, SIGN], &|r| mul(small | SIGN, small, r)),
            ("max max", [MAX, MAX, INF], &|r| mul(MAX, MAX, r)),
            // 1/3 = 0.0101…: 53 bits from the first 1 on end with 01 before 01….
            ("1 / 3", [0x3fd5_5555_5555_5555, 0x3fd5_5555_5555_5555, 0x3fd5_5555_5555_5556], &|r| rcp(three, r)),
            ("-1 / 3", [0xbfd5_5555_5555_5555, 0xbfd5_5555_5555_5556, 0xbfd5_5555_5555_5555], &|r| {
                div(ONE | SIGN, three, r)
            }),
            ("tiny / 2", [0, 0, TINY], &|r| div(TINY, two, r)),
            ("max / tiny", [MAX, MAX, INF], &|r| div(MAX, TINY, r)),
            // The root of 2 is 1.6A09E667F3BCC 9…, in hexadecimal.
            ("root of 2", [0x3ff6_a09e_667f_3bcc, 0x3ff6_a09e_667f_3bcc, 0x3ff6_a09e_667f_3bcd], &|r| sqrt(two, r)),
            // The root of 2^-1074 is 2^-537.
            ("root of tiny", [(1023 - 537) << 52; 3], &|r| sqrt(TINY, r)),
            // (1 + 2^-52)^2 = 1 + 2^-51 + 2^-104.
            ("next next", [ONE + 2, ONE + 2, ONE + 3], &|r| mul(ONE + 1, ONE + 1, r)),
            // What is left of it is 2^-104.
            ("next next - it", [(1023 - 104) << 52; 3], &|r| fma(ONE + 1, ONE + 1, (ONE + 2) | SIGN, r)),
            ("1 1 - 1", [0, SIGN, 0], &|r| fma(ONE, ONE, ONE | SIGN, r)),
            ("1 1 + tiny", [ONE, ONE, ONE + 1], &|r| fma(ONE, ONE, TINY, r)),
            ("small small + 1", [ONE, ONE, ONE + 1], &|r| fma(small, small, ONE, r)),
            ("small small - 1", [(ONE - 1) | SIGN, ONE | SIGN, (ONE - 1) | SIGN], &|r| {
                fma(small, small, ONE | SIGN, r)
            }),
            ("small small + 0", [0, 0, TINY], &|r| fma(small, small, 0, r)),
            // Infinities and what is no number know no direction.
            ("inf - inf", [0xfff8 << 48; 3], &|r| sub(INF, INF, r)),
            ("1 / 0", [INF; 3], &|r| div(ONE, 0, r)),
            ("root of -1", [0xfff8 << 48; 3], &|r| sqrt(ONE | SIGN, r)),
            ("root of -0", [SIGN; 3], &|r| sqrt(SIGN, r)),
        ];
        for (what, expected, of) in table {
            let here = [Zero, Down, Up].map(of);
            assert_eq!(here, *expected, "{what}: {here:x?}, not {expected:x?}");
        }
    }

    /// Down and up are neighbours, or the same; nearest and towards zero are one of them.
    #[test]
    fn directions_enclose_the_result() {
        let all = numbers();
        for (n, &a) in all.iter().enumerate() {
            for (&b, &c) in all.iter().zip(all.iter().cycle().skip(n)) {
                let of = |r| f64::from_bits(fma(a.to_bits(), b.to_bits(), c.to_bits(), r));
                let [down, up, zero, near] = [Down, Up, Zero, Nearest].map(of);
                assert!(down == up || down.next_up() == up, "{a:e} {b:e} {c:e}: {down:e}, {up:e}");
                assert_eq!(zero, if near.is_sign_negative() { up } else { down }, "{a:e} {b:e} {c:e}");
                assert!(near == down || near == up, "{a:e} {b:e} {c:e}");
            }
        }
    }
}
