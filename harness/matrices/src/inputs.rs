//! Seeded inputs: random matrices that a kernel multiplies.

use crate::problem::Problem;
use half::{bf16, f16};
use ptx::Dtype;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::thread;

/// What the elements of A and B are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// Standard normal. D is held against an FP64 product, with a tolerance.
    Normal,
    /// Small integers, so that every sum is exact in FP32. D is held bit for bit against the exact sum, rounded once.
    Integers,
    /// A is zero outside of one K slice of 16 columns: a K slice that is dropped or taken twice shows at once.
    OneHot,
}

impl InputKind {
    /// All kinds; tests take them in turn.
    pub const ALL: [InputKind; 3] = [InputKind::Normal, InputKind::Integers, InputKind::OneHot];

    /// Whether D must be exact.
    pub fn is_exact(self) -> bool {
        self != InputKind::Normal
    }
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputKind::Normal => "random normal numbers",
            InputKind::Integers => "small integers",
            InputKind::OneHot => "one-hot K slices",
        })
    }
}

/// A and B of a problem.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The problem.
    pub problem: Problem,
    /// What the elements are.
    pub kind: InputKind,
    /// The seed that repeats them.
    pub seed: u64,
    /// A, m × k, as bits of the type.
    pub a: Vec<u16>,
    /// B, n × k, as bits of the type.
    pub b: Vec<u16>,
}

impl Inputs {
    /// The inputs of this seed.
    pub fn new(problem: Problem, kind: InputKind, seed: u64) -> Inputs {
        let (m, n, k) = (problem.m as usize, problem.n as usize, problem.k as usize);
        let begin = seed ^ (kind as u64).wrapping_mul(0xA076_1D64_78BD_642F);
        let mut random = Random::new(begin);
        let encode = |value: f32| encode(problem.dtype, value);
        let (a, b) = match kind {
            InputKind::Normal => {
                let draw = |random: &mut Random| encode(random.normal());
                // Each takes two numbers.
                (
                    drawn(m * k, |i| Random::at(begin, 2 * i), draw),
                    drawn(n * k, |i| Random::at(begin, 2 * ((m * k) as u64 + i)), draw),
                )
            }
            InputKind::Integers => {
                let bound = integer_bound(problem);
                let draw = |random: &mut Random| encode(random.integer(bound) as f32);
                (
                    drawn(m * k, |i| Random::at(begin, i), draw),
                    drawn(n * k, |i| Random::at(begin, (m * k) as u64 + i), draw),
                )
            }
            InputKind::OneHot => {
                // Every row of A has a one in one column of the slice, so that D picks columns of B.
                let slices = k.div_ceil(SLICE);
                let slice = random.below(slices as u64) as usize;
                let width = SLICE.min(k - slice * SLICE);
                let mut a = vec![0u16; m * k];
                for row in 0..m {
                    let column = slice * SLICE + random.below(width as u64) as usize;
                    a[row * k + column] = encode(1.0);
                }
                // Integers of 8 bits or less are exact in both types.
                let b = (0..n * k).map(|_| encode(random.integer(127) as f32)).collect();
                (a, b)
            }
        };
        Inputs { problem, kind, seed, a, b }
    }

    /// A as numbers.
    pub fn a_values(&self) -> Vec<f32> {
        decode_all(self.problem.dtype, &self.a)
    }

    /// B as numbers.
    pub fn b_values(&self) -> Vec<f32> {
        decode_all(self.problem.dtype, &self.b)
    }
}

/// Elements, drawn in order, on all cores if they are many; `at` gives the generator as it is before the element of an index.
fn drawn(count: usize, at: impl Fn(u64) -> Random + Sync, draw: impl Fn(&mut Random) -> u16 + Sync) -> Vec<u16> {
    const FEW: usize = 1 << 20;
    let cores = if count < FEW { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    let mut elements = vec![0; count];
    let each = count.div_ceil(cores).max(1);
    let fill = |n: usize, part: &mut [u16]| {
        let mut random = at((n * each) as u64);
        part.fill_with(|| draw(&mut random));
    };
    if cores == 1 {
        fill(0, &mut elements);
        return elements;
    }
    thread::scope(|scope| {
        for (n, part) in elements.chunks_mut(each).enumerate() {
            let fill = &fill;
            scope.spawn(move || fill(n, part));
        }
    });
    elements
}

/// Columns of A that one MMA takes.
pub const SLICE: usize = 16;

/// The largest integer input: every |sum| stays below 2²⁴ (exact in FP32) and at 65504 or less (finite in FP16).
pub fn integer_bound(problem: Problem) -> i64 {
    const LARGEST_SUM: i64 = 65_504;
    let k = i64::from(problem.k);
    // Integers up to 2^8 are exact in BF16, up to 2^11 in FP16; 15 is enough to tell elements apart.
    (1..=15).rev().find(|bound| bound * bound * k <= LARGEST_SUM).unwrap_or(1)
}

/// A number in the type's bits, rounded to nearest even.
pub fn encode(dtype: Dtype, value: f32) -> u16 {
    match dtype {
        Dtype::F16 => f16::from_f32(value).to_bits(),
        Dtype::Bf16 => bf16::from_f32(value).to_bits(),
    }
}

/// A number from the type's bits.
pub fn decode(dtype: Dtype, bits: u16) -> f32 {
    match dtype {
        Dtype::F16 => f16::from_bits(bits).to_f32(),
        Dtype::Bf16 => bf16::from_bits(bits).to_f32(),
    }
}

/// Numbers from the type's bits.
pub fn decode_all(dtype: Dtype, bits: &[u16]) -> Vec<f32> {
    bits.iter().map(|bits| decode(dtype, *bits)).collect()
}

/// The bytes of a matrix in memory.
pub fn to_bytes(bits: &[u16]) -> Vec<u8> {
    bits.iter().flat_map(|bits| bits.to_le_bytes()).collect()
}

/// What the state of SplitMix64 grows by with each number.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A small generator of our own (SplitMix64), so that a seed means the same inputs for ever.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The generator of this seed, after so many numbers.
    pub fn at(seed: u64, numbers: u64) -> Random {
        Random { state: seed.wrapping_add(numbers.wrapping_mul(GAMMA)) }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound` (which is not 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An integer from `-bound` to `bound`.
    pub fn integer(&mut self, bound: i64) -> i64 {
        self.below(2 * bound as u64 + 1) as i64 - bound
    }

    /// A standard normal number (Box–Muller).
    pub fn normal(&mut self) -> f32 {
        let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (u, v) = (unit(self.bits()), unit(self.bits()));
        ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_another_differs() {
        for kind in InputKind::ALL {
            let inputs = |seed| Inputs::new(Problem::f16(128, 128, 64), kind, seed);
            assert_eq!((inputs(3).a, inputs(3).b), (inputs(3).a, inputs(3).b));
            assert_ne!(inputs(3).a, inputs(4).a, "{kind}");
        }
    }

    /// However many cores draw: the same as one generator in order.
    #[test]
    fn large_matrices_are_drawn_as_small_ones_are() {
        for kind in [InputKind::Normal, InputKind::Integers] {
            let problem = Problem::f16(1024, 8, 1032);
            let inputs = Inputs::new(problem, kind, 5);
            let mut random = Random::new(5 ^ (kind as u64).wrapping_mul(0xA076_1D64_78BD_642F));
            let mut next = || {
                let value = match kind {
                    InputKind::Normal => random.normal(),
                    _ => random.integer(integer_bound(problem)) as f32,
                };
                encode(Dtype::F16, value)
            };
            assert!(inputs.a.iter().chain(&inputs.b).all(|element| *element == next()), "{kind}");
        }
    }

    #[test]
    fn normal_is_standard_normal() {
        let inputs = Inputs::new(Problem::f16(256, 8, 256), InputKind::Normal, 1);
        let values = inputs.a_values();
        let count = values.len() as f64;
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
        let variance = values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / count - mean * mean;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "mean {mean}, variance {variance}");
    }

    #[test]
    fn integer_sums_stay_exact_for_every_k() {
        for k in [8, 64, 1024, 4096, 8192, 16384, 65504] {
            let bound = integer_bound(Problem::f16(8, 8, k));
            assert!(bound >= 1 && bound * bound * i64::from(k) <= 65504, "k = {k}: bound {bound}");
        }
        let inputs = Inputs::new(Problem::f16(128, 128, 64), InputKind::Integers, 7);
        assert!(inputs.a_values().contains(&15.0) && inputs.a_values().iter().all(|v| v.abs() <= 15.0));
    }

    #[test]
    fn one_hot_has_one_one_a_row_in_one_slice() {
        let mut slices = std::collections::BTreeSet::new();
        for seed in 0..32 {
            let inputs = Inputs::new(Problem::f16(128, 128, 64), InputKind::OneHot, seed);
            let place = |row: &[f32]| row.iter().position(|value| *value == 1.0).expect("a one") / SLICE;
            let rows: Vec<Vec<f32>> = inputs.a_values().chunks(64).map(<[f32]>::to_vec).collect();
            assert!(
                rows.iter().all(|row| row.iter().sum::<f32>() == 1.0 && place(row) == place(&rows[0])),
                "seed {seed}"
            );
            slices.insert(place(&rows[0]));
        }
        assert_eq!(slices.len(), 4, "each slice in its turn");
    }

    #[test]
    fn halves_round_to_nearest_even() {
        // 2049 lies halfway between 2048 and 2050 in FP16.
        assert_eq!(decode(Dtype::F16, encode(Dtype::F16, 2049.0)), 2048.0);
        assert_eq!(decode(Dtype::F16, encode(Dtype::F16, 2051.0)), 2052.0);
        assert_eq!(decode(Dtype::Bf16, encode(Dtype::Bf16, 257.0)), 256.0);
    }
}
