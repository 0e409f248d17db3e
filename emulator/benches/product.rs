//! How fast an MMA is computed: `cargo bench -p emulator --bench product`.
//!
//! One 128 × 256 × 16 MMA on one core, its operands converted each time; the median of the batches. `Fast` by each path
//! that this CPU has: in the tiles of AMX, and in vectors.

use emulator::{MmaStep, Numerics};
use half::{bf16, f16};
use std::hint::black_box;
use std::time::Instant;

const M: usize = 128;
const N: usize = 256;
const K: usize = 16;

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

/// GFLOP/s of a piece of work that is one MMA.
fn rate(mut work: impl FnMut()) -> f64 {
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
    (2 * M * N * K) as f64 / times[times.len() / 2] / 1e9
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
        let a: Vec<u16> = (0..M * K).map(|_| element(bf)).collect();
        let b: Vec<u16> = (0..N * K).map(|_| element(bf)).collect();
        let step = MmaStep { a_bf16: bf, b_bf16: bf, d_f32, accumulate: true, ..MmaStep::default() };
        let mut d = vec![0u32; M * N];
        let plain = rate(|| naive(black_box(&a), black_box(&b), bf, black_box(&mut d)));
        let ratio = |rate: f64| format!("{rate:6.1} ({:.1}x)", rate / plain);
        print!("{name}   plain {plain:5.1}");
        if step.runs_in_tiles(Numerics::Fast) {
            d.fill(0);
            let tiles = rate(|| {
                step.run(Numerics::Fast, black_box(&a), black_box(&b), black_box(&mut d)).expect("the sizes fit")
            });
            print!("   Fast, AMX {}", ratio(tiles));
        }
        for (name, numerics) in [("Fast, vectors", Numerics::Fast), ("Exact", Numerics::Exact)] {
            d.fill(0);
            let mut work = || step.run_in_vectors(numerics, black_box(&a), black_box(&b), black_box(&mut d));
            print!("   {name} {}", ratio(rate(|| work().expect("the sizes fit"))));
        }
        println!();
    }
}
