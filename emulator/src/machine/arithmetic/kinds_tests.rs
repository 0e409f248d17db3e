//! One element of D at a time, with values worked out by hand.

use super::*;
use crate::machine::arithmetic::simd;

/// What one element of D becomes.
pub struct Case {
    pub kind: Kind,
    /// Bits of the instruction descriptor beside M and N.
    pub bits: u32,
    pub a: [u8; 32],
    pub b: [u8; 32],
    pub scales: ([u8; 4], [u8; 4]),
    /// D before, if it counts.
    pub d: Option<u32>,
}

impl Case {
    pub fn run(&self, numerics: Numerics) -> u32 {
        let factors = match (self.kind.is_scaled(), self.bits >> 23 & 1) {
            (false, _) => 0,
            (true, _) if self.kind == Kind::Mxf8f6f4 => 1,
            (true, 0) => 4,
            (true, _) if self.kind == Kind::Mxf4 => 2,
            (true, _) => 4,
        };
        // M = 128, in either place of the field.
        let shape = 1 << 27 | 8 << 17;
        let descriptor = InstructionDescriptor::decode(shape | self.bits, (self.kind, false), factors, 1).unwrap();
        let row =
            |bytes: &[u8; 32]| -> Row { std::array::from_fn(|n| u16::from_le_bytes([bytes[2 * n], bytes[2 * n + 1]])) };
        let mut cells = [self.d.unwrap_or(0x1234)];
        simd::run(Product {
            numerics,
            precision: Precision::FULL,
            descriptor: &descriptor,
            accumulate: self.d.is_some(),
            scale: 0,
            a: &[row(&self.a)],
            b: &[row(&self.b)],
            scales: &ScaleFactors { a: vec![self.scales.0], b: vec![self.scales.1] },
            strips: &[Strip { rows: &[(0, 0)], columns: 0..1 }],
            factors: &mut Factors::default(),
            cells: &mut cells,
            prefetches: Default::default(),
        });
        cells[0]
    }

    /// Both ways give this.
    #[track_caller]
    fn gives(&self, expected: u32, why: &str) {
        for numerics in [Numerics::Fast, Numerics::Exact] {
            let found = self.run(numerics);
            assert_eq!(found, expected, "{why}, {numerics:?}: {found:#x}, expected {expected:#x}");
        }
    }
}

const F32: u32 = 1 << 4;

/// The first bytes, and zeros.
fn bytes_of(first: &[u8]) -> [u8; 32] {
    std::array::from_fn(|n| first.get(n).copied().unwrap_or(0))
}

fn float(x: f32) -> u32 {
    x.to_bits()
}

#[test]
fn eight_six_and_four_bits() {
    let case = |codes: (u32, u32), a: &[u8], b: &[u8], d| Case {
        kind: Kind::F8f6f4,
        bits: F32 | codes.0 << 7 | codes.1 << 10,
        a: bytes_of(a),
        b: bytes_of(b),
        scales: Default::default(),
        d,
    };
    let (e4m3, e5m2, e2m3, e3m2, e2m1) = (0, 1, 3, 4, 5);
    case((e4m3, e4m3), &[0x38; 32], &[0x40; 32], None).gives(float(64.0), "32 times 1 × 2");
    case((e4m3, e4m3), &[0x7e; 32], &[0xfe; 32], Some(float(1.0)))
        .gives(float(1.0 - 6_422_528.0), "32 times 448 × -448, and 1");
    case((e4m3, e4m3), &[1], &[0x81], None).gives(float(-(2f32.powi(-18))), "subnormal: 2^-9 × -2^-9");
    case((e4m3, e4m3), &[0x7f], &[0], None).gives(0x7fff_ffff, "NaN × 0");
    case((e4m3, e4m3), &[0xff], &[0x38], None).gives(0x7fff_ffff, "-NaN × 1");
    case((e5m2, e5m2), &[0x7c], &[0xbc], None).gives(float(f32::NEG_INFINITY), "∞ × -1");
    case((e5m2, e5m2), &[0x7c], &[0], None).gives(0x7fff_ffff, "∞ × 0");
    case((e5m2, e5m2), &[0x7c, 0x7c], &[0x3c, 0xbc], None).gives(0x7fff_ffff, "∞ - ∞");
    case((e5m2, e5m2), &[0x7d], &[0x3c], None).gives(0x7fff_ffff, "NaN");
    case((e5m2, e4m3), &[0x7c], &[0x38], Some(0xff80_0000)).gives(0x7fff_ffff, "∞ and a D of -∞");
    case((e5m2, e4m3), &[1], &[0x7e], None).gives(float(2f32.powi(-16) * 448.0), "subnormal: 2^-16 × 448");
    case((e2m3, e3m2), &[0x1f], &[0x1f], None).gives(float(7.5 * 28.0), "the largest of both");
    case((e2m3, e3m2), &[0x21], &[1], None).gives(float(-0.125 * 0.0625), "the smallest of both");
    case((e2m3, e2m3), &[0xdf], &[8], None).gives(float(7.5), "bits 6 and 7 of a container do not count");
    case((e2m1, e4m3), &[7 << 2, 0xf << 2, 1 << 2], &[0x38, 0x30, 0x38], None).gives(float(3.5), "6 - 6/2 + 0.5");
    case((e2m1, e2m1), &[0b1101_1011], &[2 << 2], None).gives(float(4.0), "bits 0, 1, 6 and 7 do not count: 4 × 1");
}

#[test]
fn sums_in_fp16() {
    let case = |a: &[u8], b: &[u8], d| Case {
        kind: Kind::F8f6f4,
        bits: 0,
        a: bytes_of(a),
        b: bytes_of(b),
        scales: Default::default(),
        d: Some(d),
    };
    case(&[0x38; 32], &[0x40; 32], 0x3c00).gives(0x5410, "64 + 1");
    // Between two FP16 numbers, 2048 and 2050: once, at the end, to even.
    case(&[0x38], &[0x38], 0x6800).gives(0x6800, "2048 + 1");
    case(&[0x38; 3], &[0x38; 3], 0x6800).gives(0x6802, "2048 + 3 × 1: 2052, not rounded in between");
    case(&[0x7e; 32], &[0x7e; 32], 0).gives(0x7c00, "too large");
    case(&[0x7f], &[0x38], 0).gives(0x7fff, "NaN");
}

#[test]
fn tf32_cuts_thirteen_bits_off() {
    let case = |a: &[u32], b: &[u32], d| {
        let bytes = |words: &[u32]| bytes_of(&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>());
        Case { kind: Kind::Tf32, bits: F32 | 2 << 7 | 2 << 10, a: bytes(a), b: bytes(b), scales: Default::default(), d }
    };
    let one = 0x3f80_0000;
    case(&[one | 0x1fff; 8], &[one + 0x80_0000; 8], None).gives(float(16.0), "eight times 1 × 2");
    case(&[one | 0x2000], &[one], None).gives(0x3f80_2000, "the last bit that counts");
    case(&[0x7f80_1fff], &[one], None).gives(0x7f80_0000, "a NaN whose bits are cut off: ∞");
    case(&[0x7f80_2000], &[one], None).gives(0x7fff_ffff, "a NaN of which a bit is left");
    case(&[0x7f80_0000], &[one], Some(one)).gives(0x7f80_0000, "∞");
    case(&[0x1fff], &[0x7f7f_ffff], Some(one)).gives(one, "subnormal and cut to zero");
    case(&[0x0000_2000], &[one], None).gives(0x0000_2000, "the smallest: 2^-136");
}

#[test]
fn integers_go_round_or_saturate() {
    let case = |bits: u32, a: &[u8], b: &[u8], d: i32| Case {
        kind: Kind::I8,
        bits: 2 << 4 | bits,
        a: bytes_of(a),
        b: bytes_of(b),
        scales: Default::default(),
        d: Some(d as u32),
    };
    let (a_signed, b_signed, saturate) = (1 << 7, 1 << 10, 1 << 3);
    case(0, &[0xff; 32], &[0xff; 32], 1).gives(32 * 255 * 255 + 1, "unsigned");
    case(a_signed, &[0x80; 32], &[0xff; 32], 0).gives((-128 * 255 * 32i32) as u32, "-128 × 255");
    case(a_signed | b_signed, &[0x80, 0x7f], &[0x80, 0xff], 5).gives(128 * 128 - 127 + 5, "signed");
    case(0, &[1], &[1], i32::MAX).gives(0x8000_0000, "goes round");
    case(saturate, &[1], &[1], i32::MAX).gives(0x7fff_ffff, "saturates");
    case(saturate | a_signed, &[0xff], &[2], i32::MIN + 1).gives(0x8000_0000, "saturates below");
}

#[test]
fn scale_factors_multiply_their_blocks() {
    let powers = 1 << 23;
    let eights = |a: &[u8], b: &[u8], scales: (u8, u8), d| Case {
        kind: Kind::Mxf8f6f4,
        bits: powers,
        a: bytes_of(a),
        b: bytes_of(b),
        scales: ([scales.0, 9, 9, 9], [scales.1, 9, 9, 9]),
        d,
    };
    eights(&[0x38; 32], &[0x38; 32], (128, 130), Some(float(1.0))).gives(float(513.0), "32 × 2 × 8 + 1");
    eights(&[0x38], &[0x38], (254, 0), None).gives(float(1.0), "2^127 × 2^-127");
    eights(&[0x7e], &[0x38], (254, 27), None)
        .gives(float(448.0 * 2f32.powi(27)), "448 · 2^127 is beyond FP32, the product is not");
    eights(&[0], &[0], (255, 127), None).gives(0x7fff_ffff, "a scale factor that is NaN");
    let fours = |kind, bits: u32, a: &[u8], b: &[u8], scales, d| Case {
        kind,
        bits: bits | 1 << 7 | 1 << 10,
        a: bytes_of(a),
        b: bytes_of(b),
        scales,
        d,
    };
    // Bytes 0x22: two times 1.
    let two_blocks = ([128, 127, 0, 0], [127, 129, 0, 0]);
    fours(Kind::Mxf4, powers, &[0x22; 32], &[0x22; 32], two_blocks, None).gives(float(64.0 + 128.0), "32 × 2 + 32 × 4");
    // The low half of a byte is the even element: 6 × 0.5 in block 0, -1.5 × 2 in block 3.
    let mut a = [0; 32];
    let mut b = [0; 32];
    (a[0], b[0], a[31], b[31]) = (0x07, 0x11, 0xb0, 0x44);
    let four_blocks = ([0x3c, 0, 0, 0x30], [0x40, 0, 0, 0x38]);
    fours(Kind::Mxf4nvf4, 0, &a, &b, four_blocks, None)
        .gives(float(3.0 * 1.5 * 2.0 - 3.0 * 0.5), "1.5 × 2 and 0.5 × 1");
    let small = ([1, 0, 0, 0], [1, 0, 0, 0]);
    fours(Kind::Mxf4nvf4, 0, &[2], &[2], small, None).gives(float(2f32.powi(-18)), "subnormal scale factors");
    let nan = ([0x38; 4], [0x38, 0x7f, 0x38, 0x38]);
    fours(Kind::Mxf4nvf4, 0, &[0], &[0], nan, None).gives(0x7fff_ffff, "a scale factor that is NaN");
    let powers_of_sixteen = ([128, 127, 127, 127], [127, 127, 127, 130]);
    fours(Kind::Mxf4nvf4, powers, &[0x22; 32], &[0x22; 32], powers_of_sixteen, None)
        .gives(float(32.0 + 16.0 + 16.0 + 128.0), "UE8M0 for 16 elements");
}

/// Terms are cut off below 2^(top − 25), those of 4-bit kinds below 2^(top − 35); then the sum is cut off to FP32.
#[test]
fn exact_sums_are_cut_off_where_the_model_says() {
    let case = |kind, bits: u32, a: &[u8], b: &[u8], scales, d| {
        Case { kind, bits, a: bytes_of(a), b: bytes_of(b), scales, d }.run(Numerics::Exact)
    };
    let with = |first: u8| {
        let mut bytes = [1; 32];
        bytes[0] = first;
        bytes
    };
    let ones = with(0x38);
    // 31 products of 2^-18 beside one of 128, or of 256.
    let eight = |first| case(Kind::F8f6f4, F32, &with(first), &ones, Default::default(), None);
    assert_eq!(eight(0x70), 0x4300_0007, "units of 2^-18: 128 + 7 · 2^-16, of 7.75");
    assert_eq!(eight(0x78), 0x4380_0000, "units of 2^-17: nothing is left of them");
    // The scale moves all products, and none against the others.
    let scaled = |first| case(Kind::Mxf8f6f4, 1 << 23, &with(first), &ones, ([130, 0, 0, 0], [127, 0, 0, 0]), None);
    assert_eq!((scaled(0x70), scaled(0x78)), (0x4480_0007, 0x4500_0000));
    // 2^n − 2^n beside a quarter.
    let quarter = |n: i32| {
        let mut a = [0; 32];
        (a[0], a[31]) = (0x02, 0x10);
        let mut b = [0; 32];
        (b[0], b[31]) = (0x02, 0x10);
        let scales = ([(127 + n) as u8, 127, 0, 0], [127; 4]);
        case(Kind::Mxf4, 1 << 23 | 1 << 7 | 1 << 10, &a, &b, scales, Some(float(-(2f32.powi(n)))))
    };
    assert_eq!(quarter(30), float(0.25), "units of 2^-5");
    assert_eq!(quarter(33), float(0.25), "units of 2^-2");
    assert_eq!(quarter(34), 0, "units of 2^-1");
}
