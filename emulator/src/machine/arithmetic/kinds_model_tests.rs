//! `Numerics::Exact` of each kind against a second model, written from the documented rule alone in exact integers: one element of D at a
//! time, random numbers of all sizes, subnormal ones, infinities and NaN among them.
//!
//! The rule: every product is a term, and so is D. A term's exponent is the sum of its factors' exponents, as encoded (a subnormal has
//! the smallest); zero has that of FP32's smallest. All terms are cut off 25 bits below the largest exponent, added without error, and
//! cut off to FP32, or rounded to FP16. Scale factors of 8-bit kinds move their products. Of 4-bit kinds, sixteen products and their two
//! scale factors are one term, which has the scale factors' exponent, and 35 bits count. Integers are added without error.

use super::tests::Case;
use super::*;
use crate::machine::arithmetic::exact::tests::Random;

/// significand · 2^lsb, with the exponent as it is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Finite { significand: i128, lsb: i32, exponent: i32 },
    Infinite(bool),
    Nan,
}

use Value::{Finite, Infinite, Nan};

const ZERO: Value = Finite { significand: 0, lsb: 0, exponent: -126 };

/// What the field of the largest exponent holds beside numbers.
#[derive(Clone, Copy, PartialEq)]
enum Top {
    Numbers,
    /// NaN where all bits are set.
    OneNan,
    /// As in IEEE 754: infinity, and NaN.
    Both,
}

/// A format: bits of its exponent and fraction, and what its largest exponent stands for.
#[derive(Clone, Copy)]
struct Coding {
    code: u32,
    exponent: u32,
    fraction: u32,
    top: Top,
    /// The bit of the container that its lowest bit is.
    at: u32,
}

const fn coding(code: u32, exponent: u32, fraction: u32, top: Top, at: u32) -> Coding {
    Coding { code, exponent, fraction, top, at }
}

const E4M3: Coding = coding(0, 4, 3, Top::OneNan, 0);
const E5M2: Coding = coding(1, 5, 2, Top::Both, 0);
const E2M3: Coding = coding(3, 2, 3, Top::Numbers, 0);
const E3M2: Coding = coding(4, 3, 2, Top::Numbers, 0);
const E2M1: Coding = coding(5, 2, 1, Top::Numbers, 2);
const TF32: Coding = coding(2, 8, 10, Top::Both, 13);
const FP32: Coding = coding(1, 8, 23, Top::Both, 0);
const FP16: Coding = coding(0, 5, 10, Top::Both, 0);

impl Coding {
    fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    /// The largest finite number.
    fn largest(self) -> u32 {
        let all = (1 << (self.bits() - 1)) - 1;
        match self.top {
            Top::Numbers => all,
            Top::OneNan => all - 1,
            Top::Both => all - (1 << self.fraction),
        }
    }

    fn value(self, container: u32) -> Value {
        let bits = container >> self.at & (u64::MAX >> (64 - self.bits())) as u32;
        let fraction = i128::from(bits & ((1 << self.fraction) - 1));
        let (most, bias) = ((1 << self.exponent) - 1, (1 << (self.exponent - 1)) - 1);
        let field = (bits >> self.fraction & most) as i32;
        let negative = bits >> (self.bits() - 1) == 1;
        let last = field == most as i32;
        match self.top {
            Top::Both if last && fraction == 0 => return Infinite(negative),
            Top::Both if last => return Nan,
            Top::OneNan if last && fraction == (1 << self.fraction) - 1 => return Nan,
            _ => {}
        }
        let exponent = field.max(1) - bias;
        let magnitude = if field == 0 { fraction } else { fraction + (1 << self.fraction) };
        if magnitude == 0 {
            return ZERO;
        }
        let significand = if negative { -magnitude } else { magnitude };
        Finite { significand, lsb: exponent - self.fraction as i32, exponent }
    }
}

fn times(a: Value, b: Value, moved: i32) -> Value {
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinite(x), Infinite(y)) => Infinite(x != y),
        (Infinite(x), Finite { significand, .. }) | (Finite { significand, .. }, Infinite(x)) => match significand {
            0 => Nan,
            s => Infinite(x != (s < 0)),
        },
        (Finite { significand: s, lsb, exponent }, Finite { significand: t, lsb: m, exponent: f }) if s * t != 0 => {
            Finite { significand: s * t, lsb: lsb + m + moved, exponent: exponent + f + moved }
        }
        _ => ZERO,
    }
}

fn negated(value: Value, negate: bool) -> Value {
    match value {
        Finite { significand, lsb, exponent } if negate => Finite { significand: -significand, lsb, exponent },
        Infinite(sign) if negate => Infinite(!sign),
        other => other,
    }
}

/// Adds terms, of which so many bits below the largest exponent count, in FP32 or FP16.
fn sum(terms: &[Value], below: i32, half: bool) -> u32 {
    let (nan, infinity, sign) = if half { (0x7fff, 0x7c00, 0x8000) } else { (0x7fff_ffff, 0x7f80_0000, 0x8000_0000) };
    let has = |wanted: Value| terms.contains(&wanted);
    match (has(Infinite(false)), has(Infinite(true))) {
        _ if has(Nan) => return nan,
        (true, true) => return nan,
        (true, false) => return infinity,
        (false, true) => return infinity | sign,
        _ => {}
    }
    let exponents = terms.iter().filter_map(|t| if let Finite { exponent, .. } = t { Some(*exponent) } else { None });
    let unit = exponents.max().expect("a term") - below;
    let mut total = 0i128;
    for term in terms {
        let &Finite { significand, lsb, .. } = term else { continue };
        // Zero may be of any unit.
        if significand == 0 {
            continue;
        }
        total += match lsb - unit {
            up @ 0.. => significand << up,
            // A division cuts off towards zero.
            down => significand / 1i128.checked_shl(down.unsigned_abs()).filter(|by| *by > 0).unwrap_or(i128::MAX),
        };
    }
    if total == 0 {
        return 0;
    }
    let magnitude = total.unsigned_abs();
    let highest = unit + 127 - magnitude.leading_zeros() as i32;
    // The result's unit: that of its fraction, or of subnormal numbers.
    let (fraction, smallest, largest) = if half { (10, -24, 15) } else { (23, -149, 127) };
    let last = (highest - fraction).max(smallest);
    let mut kept = match last - unit {
        drop @ 1..=127 => {
            let (kept, rest, tie) = (magnitude >> drop, magnitude & ((1 << drop) - 1), 1 << (drop - 1));
            kept + u128::from(half && (rest > tie || rest == tie && kept & 1 == 1))
        }
        128.. => 0,
        grow => magnitude << -grow,
    };
    let mut last = last;
    if kept >> (fraction + 1) == 1 {
        (kept, last) = (kept >> 1, last + 1);
    }
    if kept == 0 {
        return 0;
    }
    let field = if kept >> fraction == 1 { last + fraction + largest } else { 0 };
    let bits =
        if field > 2 * largest { infinity } else { (field as u32) << fraction | kept as u32 & ((1 << fraction) - 1) };
    bits | if total < 0 { sign } else { 0 }
}

fn below(random: &mut Random, n: u64) -> u64 {
    random.next() % n
}

/// What the elements of one product are like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Finite, any of them.
    Any,
    /// Zeros, and a few others.
    Sparse,
    /// Zero, the smallest and the largest numbers, of either sign.
    Ends,
    /// One of them, or D, may be infinite or NaN.
    Special,
}

const MODES: [Mode; 4] = [Mode::Any, Mode::Sparse, Mode::Ends, Mode::Special];

/// An element's container; bits that belong to no element are set at random.
fn element(coding: Coding, mode: Mode, random: &mut Random) -> u32 {
    let mask = (u64::MAX >> (64 - coding.bits())) as u32;
    loop {
        let noise = random.next() as u32;
        let sign = (random.next() as u32 & 1) << (coding.bits() - 1);
        let finite = |bits: u32| matches!(coding.value(bits << coding.at), Finite { .. });
        let bits = match (mode, below(random, 8)) {
            (Mode::Sparse, 1..) | (Mode::Ends, 0) => sign,
            (Mode::Ends, 1..4) => sign | (1 + below(random, 2) as u32),
            (Mode::Ends, 4..7) => sign | coding.largest(),
            // Exponents of 32-bit numbers near each other, so that terms meet.
            (Mode::Any | Mode::Special, 0..6) if coding.exponent == 8 => {
                sign | (110 + below(random, 34) as u32) << coding.fraction | noise & ((1 << coding.fraction) - 1)
            }
            _ => noise & mask,
        };
        if finite(bits) {
            return noise & !(mask << coding.at) | bits << coding.at;
        }
    }
}

/// One that is no number, where the format has one.
fn special(coding: Coding, random: &mut Random) -> Option<u32> {
    let mask = (u64::MAX >> (64 - coding.bits())) as u32;
    (coding.top != Top::Numbers).then(|| {
        (0..)
            .map(|_| random.next() as u32 | (mask >> 1 & !3) << coding.at)
            .find(|bits| !matches!(coding.value(*bits), Finite { .. }))
    })?
}

/// How many of the results were what.
#[derive(Debug, Default)]
struct Seen {
    all: usize,
    nan: usize,
    infinite: usize,
    subnormal: usize,
    zero: usize,
    not_as_fast: usize,
}

/// Random products of a kind against the model: `rounds` of each mode, with each way to come by a D.
fn compare(kind: Kind, formats: [Coding; 2], half: bool, rounds: usize, random: &mut Random, seen: &mut Seen) {
    let bytes = |containers: &[u32]| -> [u8; 32] {
        let all: Vec<u8> = match kind {
            Kind::Tf32 => containers.iter().flat_map(|c| c.to_le_bytes()).collect(),
            Kind::Mxf4 | Kind::Mxf4nvf4 => containers.chunks(2).map(|c| (c[0] & 15 | c[1] << 4) as u8).collect(),
            _ => containers.iter().map(|&c| c as u8).collect(),
        };
        all.try_into().expect("32 bytes a row")
    };
    let depth = kind.depth() as usize;
    for (mode, round) in MODES.into_iter().flat_map(|mode| (0..rounds).map(move |round| (mode, round))) {
        let mut sides = formats.map(|f| (0..depth).map(|_| element(f, mode, random)).collect::<Vec<u32>>());
        let side = below(random, 2) as usize;
        if let (Mode::Special, Some(bits)) = (mode, special(formats[side], random)) {
            sides[side][below(random, depth as u64) as usize] = bits;
        }
        let ue4m3 = kind == Kind::Mxf4nvf4 && round % 2 == 0;
        // Of all sizes, or such that results are about the smallest of FP32.
        let limit = if below(random, 3) == 0 { 66 } else { 255 };
        let scales: [[u8; 4]; 2] = std::array::from_fn(|_| {
            std::array::from_fn(|_| match (ue4m3, mode) {
                _ if mode == Mode::Special && below(random, 40) == 0 => {
                    if ue4m3 {
                        0x7f
                    } else {
                        0xff
                    }
                }
                (true, _) => below(random, 0x7f) as u8,
                (_, Mode::Ends) => below(random, limit) as u8,
                _ => 117 + below(random, 20) as u8,
            })
        });
        let negate = [below(random, 4) == 0, below(random, 4) == 0];
        let codes = if kind == Kind::Mxf4 || kind == Kind::Mxf4nvf4 { [1, 1] } else { formats.map(|f| f.code) };
        let flag = |on: bool, at: u32| u32::from(on) << at;
        let d_type = if kind.is_scaled() { flag(!ue4m3, 23) } else { flag(!half, 4) };
        let bits = d_type | codes[0] << 7 | codes[1] << 10 | flag(negate[0], 13) | flag(negate[1], 14);
        let mut case =
            Case { kind, bits, a: bytes(&sides[0]), b: bytes(&sides[1]), scales: (scales[0], scales[1]), d: None };
        let d_coding = if half { FP16 } else { FP32 };
        let alone = case.run(Numerics::Exact);
        let ds = [
            None,
            // What takes most of the sum away, or all of it.
            Some(alone ^ 1 << (d_coding.bits() - 1)),
            Some(alone.wrapping_add(below(random, 5) as u32)),
            Some(element(d_coding, mode, random) & (u64::MAX >> (64 - d_coding.bits())) as u32),
            Some(element(d_coding, Mode::Ends, random) & (u64::MAX >> (64 - d_coding.bits())) as u32),
        ];
        for d in ds {
            case.d = d;
            let (found, fast) = (case.run(Numerics::Exact), case.run(Numerics::Fast));
            let want = model(kind, formats, &sides, negate, (scales, ue4m3), d.map(|d| d_coding.value(d)), half);
            assert_eq!(
                found, want,
                "{kind:?}, codes {codes:?}, half {half}, {mode:?}: {found:#x}, the model gives {want:#x}\nA {:x?}\nB {:x?}\nscales {scales:x?}, ue4m3 {ue4m3}, negate {negate:?}, D {d:x?}",
                sides[0], sides[1]
            );
            seen.all += 1;
            match d_coding.value(found) {
                Nan => seen.nan += 1,
                Infinite(_) => seen.infinite += 1,
                Finite { significand: 0, .. } => seen.zero += 1,
                Finite { significand, .. } => {
                    seen.subnormal += usize::from(significand.unsigned_abs() < 1 << d_coding.fraction)
                }
            }
            seen.not_as_fast += usize::from(found != fast);
        }
    }
}

/// What the rule gives.
fn model(
    kind: Kind,
    formats: [Coding; 2],
    sides: &[Vec<u32>; 2],
    negate: [bool; 2],
    (scales, ue4m3): ([[u8; 4]; 2], bool),
    d: Option<Value>,
    half: bool,
) -> u32 {
    let fours = matches!(kind, Kind::Mxf4 | Kind::Mxf4nvf4);
    let value = |which: usize, k: usize| {
        let coding = if fours { Coding { at: 0, ..E2M1 } } else { formats[which] };
        negated(coding.value(sides[which][k]), negate[which])
    };
    let scale = |which: usize, n: usize| match (scales[which][n], ue4m3) {
        (0xff, false) | (0x7f, true) => Nan,
        (bits, false) => Finite { significand: 1, lsb: i32::from(bits) - 127, exponent: i32::from(bits) - 127 },
        // A scale factor of zero has the exponent of a subnormal one.
        (bits, true) => match E4M3.value(bits.into()) {
            ZERO => Finite { significand: 0, lsb: -9, exponent: -6 },
            other => other,
        },
    };
    let mut terms = vec![d.unwrap_or(ZERO)];
    let depth = sides[0].len();
    if !fours {
        let moved = if kind == Kind::Mxf8f6f4 {
            match (scale(0, 0), scale(1, 0)) {
                (Finite { exponent: e, .. }, Finite { exponent: f, .. }) => Some(e + f),
                _ => None,
            }
        } else {
            Some(0)
        };
        let product = |k| moved.map_or(Nan, |moved| times(value(0, k), value(1, k), moved));
        terms.extend((0..depth).map(product));
        return sum(&terms, 25, half);
    }
    let factors = if kind == Kind::Mxf4 { 2 } else { 4 };
    for group in 0..depth / 16 {
        // In quarters.
        let products: i128 = (16 * group..16 * (group + 1))
            .map(|k| match times(value(0, k), value(1, k), 0) {
                Finite { significand, lsb, .. } => significand << (lsb + 2),
                other => panic!("{other:?} of 4 bits"),
            })
            .sum();
        let n = group * factors / (depth / 16);
        terms.push(match (scale(0, n), scale(1, n)) {
            (Finite { significand: s, lsb, exponent }, Finite { significand: t, lsb: m, exponent: f }) => {
                Finite { significand: products * s * t, lsb: lsb + m - 2, exponent: exponent + f }
            }
            _ => Nan,
        });
    }
    sum(&terms, 35, false)
}

const FLOATS: [Coding; 5] = [E4M3, E5M2, E2M3, E3M2, E2M1];

#[test]
fn tf32_is_as_the_model() {
    let (mut random, mut seen) = (Random(32), Seen::default());
    compare(Kind::Tf32, [TF32; 2], false, 250, &mut random, &mut seen);
    let Seen { all, nan, infinite, subnormal, zero, not_as_fast } = seen;
    assert!(all >= 4000 && nan > 100 && infinite > 100 && subnormal > 50 && zero > 50 && not_as_fast > 500, "{seen:?}");
}

#[test]
fn eight_six_and_four_bits_are_as_the_model() {
    for (kind, halves) in [(Kind::F8f6f4, &[false, true][..]), (Kind::Mxf8f6f4, &[false])] {
        let (mut random, mut seen) = (Random(864), Seen::default());
        for formats in FLOATS.into_iter().flat_map(|a| FLOATS.map(|b| [a, b])) {
            for &half in halves {
                compare(kind, formats, half, 12, &mut random, &mut seen);
            }
        }
        let Seen { all, nan, infinite, subnormal, zero, not_as_fast } = seen;
        assert!(all >= 5000 && nan > 300 && infinite > 30 && zero > 100 && not_as_fast > 500, "{kind:?}: {seen:?}");
        assert!(subnormal > 50, "{kind:?}: {seen:?}");
    }
}

#[test]
fn scaled_four_bits_are_as_the_model() {
    for kind in [Kind::Mxf4, Kind::Mxf4nvf4] {
        let (mut random, mut seen) = (Random(4), Seen::default());
        compare(kind, [E2M1; 2], false, 600, &mut random, &mut seen);
        let Seen { all, nan, infinite, subnormal, not_as_fast, .. } = seen;
        assert!(all >= 10_000 && nan > 50 && infinite > 5 && subnormal > 20 && not_as_fast > 100, "{kind:?}: {seen:?}");
    }
}

/// Sums of integers, in wider ones: modulo 2^32, or as near as FP32's neighbours of 32 bits come.
#[test]
fn integers_are_as_the_model() {
    let mut random = Random(8);
    let (mut all, mut beyond) = (0, 0);
    for round in 0..2000u32 {
        let (a_signed, b_signed, saturate) = (round & 1 == 1, round & 2 == 2, round & 4 == 4);
        let rows: [[u8; 32]; 2] = std::array::from_fn(|_| {
            let ends = below(&mut random, 3) == 0;
            std::array::from_fn(|_| {
                if ends { [0, 1, 0x7f, 0x80, 0xff][below(&mut random, 5) as usize] } else { random.next() as u8 }
            })
        });
        let d = match below(&mut random, 4) {
            0 => None,
            1 => Some(i32::MAX - below(&mut random, 1 << 18) as i32),
            2 => Some(i32::MIN + below(&mut random, 1 << 18) as i32),
            _ => Some(random.next() as i32),
        };
        let value = |byte: u8, signed: bool| if signed { i64::from(byte as i8) } else { i64::from(byte) };
        let products = rows[0].iter().zip(&rows[1]).map(|(&a, &b)| value(a, a_signed) * value(b, b_signed));
        let sum = i64::from(d.unwrap_or(0)) + products.sum::<i64>();
        let clamped = sum.clamp(i32::MIN.into(), i32::MAX.into());
        let want = if saturate { clamped } else { sum } as u32;
        let flag = |on: bool, at: u32| u32::from(on) << at;
        let bits = 2 << 4 | flag(saturate, 3) | flag(a_signed, 7) | flag(b_signed, 10);
        let case =
            Case { kind: Kind::I8, bits, a: rows[0], b: rows[1], scales: Default::default(), d: d.map(|d| d as u32) };
        for numerics in [Numerics::Fast, Numerics::Exact] {
            let found = case.run(numerics);
            assert_eq!(found, want, "{numerics:?}: {bits:#x}, A {:x?}, B {:x?}, D {d:x?}", rows[0], rows[1]);
        }
        (all, beyond) = (all + 1, beyond + usize::from(sum != clamped));
    }
    assert!(all >= 1000 && beyond > 100, "{beyond} of {all} sums do not fit into 32 bits");
}
