//! `Numerics::Exact` through whole kernels: random values, and every element of D bit for bit what a scalar model gives that
//! is written here from the documented rule alone.

#[path = "gluon/case.rs"]
mod case;

use case::formats::Format;
use case::{Case, case};
use emulator::{Numerics, Options};

/// A finite 16-bit number: significand as an integer, exponent, and the significand's fractional bits.
fn apart(bits: u16, bf: bool) -> (i128, i32, i32) {
    let (mantissa, bias) = if bf { (7, 127) } else { (10, 15) };
    let (field, fraction) = (i32::from(bits & 0x7fff) >> mantissa, i128::from(bits) & ((1 << mantissa) - 1));
    let sign = if bits >> 15 == 1 { -1 } else { 1 };
    match (field, fraction) {
        (0, 0) => (0, -126, mantissa),
        (0, _) => (sign * fraction, 1 - bias, mantissa),
        _ => (sign * (fraction + (1 << mantissa)), field - bias, mantissa),
    }
}

/// D + 16 products, in FP32: numbers that stay finite and normal.
fn step(a: &[u16], b: &[u16], bf: bool, d: f32) -> f32 {
    let mut terms = Vec::new();
    for (&x, &y) in a.iter().zip(b) {
        let ((s, e, m), (t, f, n)) = (apart(x, bf), apart(y, bf));
        terms.push((s * t, e + f, m + n));
    }
    let bits = d.to_bits();
    let field = (bits >> 23 & 0xff) as i32;
    assert!(field > 0 && field < 255 || bits << 1 == 0, "the model is for normal numbers: {d:e}");
    let magnitude = if field == 0 { 0 } else { i128::from(bits & 0x7f_ffff | 0x80_0000) };
    terms.push((if bits >> 31 == 1 { -magnitude } else { magnitude }, if field == 0 { -126 } else { field - 127 }, 23));
    let largest = terms.iter().map(|t| t.1).max().unwrap_or(0);
    // In units of 2^(largest − 25): the division cuts off towards zero.
    let sum: i128 = terms
        .iter()
        .map(|&(significand, exponent, fraction)| {
            let shift = 25 - fraction - (largest - exponent);
            if shift >= 0 {
                significand << shift
            } else {
                significand / 1i128.checked_shl(-shift as u32).unwrap_or(i128::MAX)
            }
        })
        .sum();
    // Cut off to 24 bits, towards zero.
    let spare = (128 - sum.unsigned_abs().leading_zeros()).saturating_sub(24);
    let kept = (sum.unsigned_abs() >> spare << spare) as f64 * 2f64.powi(largest - 25);
    (if sum < 0 { -kept } else { kept }) as f32
}

/// Values of all sizes that FP32 sums of products hold without overflow, zeros among them.
fn random(case: &Case, elements: usize, seed: u64) -> Vec<u16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let mut value = || {
        let scale = 2f32.powi((next() % 12) as i32 - 6);
        if next() % 16 == 0 { 0.0 } else { ((next() % 2001) as f32 / 1000.0 - 1.0) * scale }
    };
    (0..elements).map(|_| case.bits(value())).collect()
}

fn bit_for_bit(name: &str) {
    let mut case = case(name, None);
    let [m, n, k] = case.size;
    let (a, b) = (random(&case, m * k, 1), random(&case, n * k, 2));
    case.fill(0, a.iter().copied());
    case.fill(1, b.iter().copied());
    let program = emulator::load(&case.text).unwrap_or_else(|e| panic!("{name} does not load: {e:#?}"));
    let run = |numerics, seed| {
        let options = Options { numerics, seed, ..Options::default() };
        let report = emulator::run(&program, &case.launch, &options);
        assert!(report.is_clean(), "{name}, {numerics:?}, seed {seed:?}: {:#?}", report.findings);
        let d: Vec<u16> = report.buffers[2].bytes.as_chunks().0.iter().map(|&d| u16::from_le_bytes(d)).collect();
        d
    };
    let exact = run(Numerics::Exact, None);
    for (at, &got) in exact.iter().enumerate() {
        let (x, y) = (&a[at / n * k..][..k], &b[at % n * k..][..k]);
        let sum = x
            .chunks(16)
            .zip(y.chunks(16))
            .fold(0.0, |d, (x, y)| step(x, y, case.operands[0].format == Format::Bf16, d));
        let want = case.bits(sum);
        assert_eq!(got, want, "{name}, row {}, column {}: {} or {sum}", at / n, at % n, case.value(got));
    }
    assert!(run(Numerics::Exact, Some(3)) == exact, "{name}: the schedule changes the result");
    // The rule shows, even in the few bits that the epilogue leaves.
    assert!(run(Numerics::Fast, None) != exact, "{name}: Fast gives the same, so the values say nothing");
}

#[test]
fn a_pipeline_in_fp16() {
    bit_for_bit("ring3");
}

#[test]
fn a_pipeline_in_bf16() {
    bit_for_bit("ring3_bf16");
}

#[test]
fn a_persistent_kernel_on_pairs_of_ctas() {
    bit_for_bit("ws_two_cta");
}
