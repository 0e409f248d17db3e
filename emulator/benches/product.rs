//! How fast an MMA is computed: `cargo bench -p emulator --bench product`.
//!
//! 128 × 256 × 16 MMAs on one core, their operands converted each time: one by one, and eight together as in a pipeline;
//! medians. `Fast` by each path that this CPU has: in the tiles of AMX, and in vectors.

use emulator::{MmaStep, Numerics};
use half::{bf16, f16};
use std::hint::black_box;
use std::time::Instant;

const M: usize = 128;
const N: usize = 256;
/// Of one MMA.
const K: usize = 16;
/// MMAs that are computed together.
const STEPS: usize = 8;

/// What the ratios refer to.
fn naive(a: &[u16], b: &[u16], bf: bool, d: &mut [u32]) {
    let value = |bits: u16| if bf { bf16::from_bits(bits).to_f32() } else { f16::from_bits(bits).to_f32() };
    let a: Vec<f32> = a.iter().map(|&x| value(x)).collect();
    let b: Vec<f32> = b.iter().map(|&x| value(x)).collect();
    for row in 0..M {
        for column in 0..N {
            let mut sum = f32::from_bits(d[row * N + column]);
            for k in 0..K {
                sum += a[row * K + k] * b[column * K + k];
            }
            d[row * N + column] = sum.to_bits();
        }
    }
}

/// GFLOP/s of a piece of work that is so many MMAs.
fn rate(steps: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..21)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..40 {
                work();
            }
            start.elapsed().as_secs_f64() / 40.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (2 * M * N * K * steps) as f64 / times[times.len() / 2] / 1e9
}

fn main() {
    let mut state = 1u32;
    // Numbers in [-2, 2): sign, exponent field and fraction at random, as activations and weights are.
    let mut element = |bf: bool| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = (state >> 8) as f32 / (1 << 22) as f32 - 2.0;
        if bf { bf16::from_f32(value).to_bits() } else { f16::from_f32(value).to_bits() }
    };
    println!("{M} × {N} × {K}, one core, GFLOP/s (and the ratio to the plain triple loop)");
    for (name, bf, d_f32) in
        [("FP16 -> FP32", false, true), ("BF16 -> FP32", true, true), ("FP16 -> FP16", false, false)]
    {
        let a: Vec<u16> = (0..STEPS * M * K).map(|_| element(bf)).collect();
        let b: Vec<u16> = (0..STEPS * N * K).map(|_| element(bf)).collect();
        let step = MmaStep { a_bf16: bf, b_bf16: bf, d_f32, accumulate: true, ..MmaStep::default() };
        let mut d = vec![0u32; M * N];
        let plain = rate(1, || naive(black_box(&a[..M * K]), black_box(&b[..N * K]), bf, black_box(&mut d)));
        println!("{name}   plain {plain:5.1}");
        for (path, numerics, tiles) in [
            ("Fast, AMX", Numerics::Fast, true),
            ("Fast, vectors", Numerics::Fast, false),
            ("Exact", Numerics::Exact, false),
        ] {
            if tiles && !step.has_tiles(numerics) {
                continue;
            }
            let [one, eight] = [1, STEPS].map(|steps| {
                d.fill(0);
                let (a, b) = (&a[..steps * M * K], &b[..steps * N * K]);
                rate(steps, || {
                    let done = step.run_batch(numerics, tiles, steps, black_box(a), black_box(b), black_box(&mut d));
                    done.expect("the sizes fit");
                })
            });
            let (one_ratio, ratio) = (one / plain, eight / plain);
            println!("    {path:13}   one {one:6.1} ({one_ratio:.1}x)   eight {eight:6.1} ({ratio:.1}x)");
        }
    }
}
