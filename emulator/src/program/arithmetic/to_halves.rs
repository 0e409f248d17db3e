//! FP32 to FP16 and BF16, to nearest even, of many lanes; a NaN is canonical (0x7FFF). What epilogues convert most.

use crate::machine::arithmetic::product::f16_bits;
use crate::machine::arithmetic::simd::{self, Lanes, WIDTH, Work};
use half::f16;

/// FP32 → FP16.
pub fn to_f16(d: &mut [u32], a: &[u32]) {
    convert::<false>(d, a, a);
}

/// The same of two numbers, into the high and the low half.
pub fn to_f16x2(d: &mut [u32], high: &[u32], low: &[u32]) {
    convert::<true>(d, high, low);
}

/// FP32 → BF16, of one lane.
#[inline(always)]
pub fn to_bf16(x: u32) -> u32 {
    let rounded = x.wrapping_add((x >> 16 & 1) + 0x7fff) >> 16;
    if x & 0x7fff_ffff > 0x7f80_0000 { 0x7fff } else { rounded }
}

/// Without a high half if not `BOTH`. Of lanes that do not make up a vector, one after the other.
fn convert<const BOTH: bool>(d: &mut [u32], high: &[u32], low: &[u32]) {
    let one = |x: u32| {
        let value = f32::from_bits(x);
        if value.is_nan() { 0x7fff } else { f16::from_f32(value).to_bits().into() }
    };
    let ((d, d_rest), (high, high_rest), (low, low_rest)) = (d.as_chunks_mut(), high.as_chunks(), low.as_chunks());
    if !d.is_empty() {
        simd::run(Vectors::<BOTH> { d, high, low });
    }
    for ((d, &high), &low) in d_rest.iter_mut().zip(high_rest).zip(low_rest) {
        *d = one(low) | if BOTH { one(high) << 16 } else { 0 };
    }
}

struct Vectors<'a, const BOTH: bool> {
    d: &'a mut [[u32; WIDTH]],
    high: &'a [[u32; WIDTH]],
    low: &'a [[u32; WIDTH]],
}

impl<const BOTH: bool> Work for Vectors<'_, BOTH> {
    #[inline(always)]
    fn run<L: Lanes, const R: usize, const S: usize, const C: usize, const E: usize>(self) {
        for ((d, high), low) in self.d.iter_mut().zip(self.high).zip(self.low) {
            let low = f16_bits::<L>(L::load(low));
            *d = L::store(if BOTH { L::or(low, L::left::<16>(f16_bits::<L>(L::load(high)))) } else { low });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    /// FP32 numbers of all sizes, those next to FP16 and BF16 numbers and next to the ties between them; as a vector and alone.
    #[test]
    fn conversions_to_16_bits_are_those_of_the_half_crate() {
        let around = |bits: u32| [bits.wrapping_sub(1), bits, bits.wrapping_add(1)];
        let all = (0..=u32::MAX).step_by(0x7ff).chain((0..=u32::MAX).step_by(0x1000).flat_map(around));
        let all: Vec<u32> = all.collect();
        for numbers in all.chunks(WIDTH + 1) {
            let low: Vec<u32> = numbers.iter().rev().copied().collect();
            let (mut one, mut two) = (vec![0; numbers.len()], vec![0; numbers.len()]);
            to_f16(&mut one, numbers);
            to_f16x2(&mut two, numbers, &low);
            for (n, &x) in numbers.iter().enumerate() {
                let (value, nan) = (f32::from_bits(x), f32::from_bits(x).is_nan());
                let (want_f16, want_bf16) = (f16::from_f32(value).to_bits(), bf16::from_f32(value).to_bits());
                let want = if nan { 0x7fff } else { want_f16.into() };
                let told = format!("lane {n}: {value:e} = {x:#010x}");
                assert_eq!(one[n], want, "{told} as FP16");
                assert_eq!((two[n] >> 16, two[numbers.len() - 1 - n] & 0xffff), (want, want), "{told} as a half");
                assert_eq!(to_bf16(x), if nan { 0x7fff } else { want_bf16.into() }, "{told} as BF16");
            }
        }
    }
}
