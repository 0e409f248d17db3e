//! Sixteen numbers at once, with the vectors that this CPU has. The only module with `unsafe`.
//!
//! Loops are written once, over [`Lanes`]; [`run`] compiles them for each kind of vector and chooses when it runs. All
//! kinds give the same bits: each operation is one of IEEE 754 or of integers, and the compiler fuses none with another.

#![allow(unsafe_code)]

use super::product::{Line, f16_value};
use std::array::from_fn;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use amx::Tiles;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use no_tiles::Tiles;

/// Where there is no AMX, or no way to ask for it.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod no_tiles {
    use crate::machine::arithmetic::product::Line;
    use crate::machine::arithmetic::tiles::Form;

    pub enum Tiles {}

    impl Tiles {
        pub fn new(_: Form) -> Option<Tiles> {
            None
        }

        pub fn add(
            &mut self,
            _: usize,
            _: (&[Line<[u32; 16]>], usize),
            _: ([&[Line<[u32; 16]>]; 2], usize),
            _: (&mut [u32], [usize; 2], usize),
        ) {
            match *self {}
        }
    }
}

/// Lanes of a vector.
pub const WIDTH: usize = 16;
/// 16-bit integers in a vector: those of two panels.
pub const PAIR: usize = 2 * WIDTH;

/// Loops over vectors.
pub trait Work {
    /// Does it, in blocks of sizes that suit the vectors: R × C of FP32 sums, and S × C where that is what R leaves of [`WIDTH`] (else S is R);
    /// E × 2 of exact ones. E divides [`WIDTH`], C is 1 or 2.
    fn run<L: Lanes, const R: usize, const S: usize, const C: usize, const E: usize>(self);
}

/// Operations on sixteen lanes.
pub trait Lanes {
    /// FP32.
    type Floats: Copy;
    /// 32-bit integers.
    type Ints: Copy;
    /// 16-bit integers.
    type Shorts: Copy;

    fn load(from: &[u32; WIDTH]) -> Self::Ints;
    fn store(values: Self::Ints) -> [u32; WIDTH];
    fn load_floats(from: &[f32; WIDTH]) -> Self::Floats;
    fn store_floats(values: Self::Floats) -> [f32; WIDTH];
    fn load_shorts(from: &[i16; PAIR]) -> Self::Shorts;
    fn splat(value: u32) -> Self::Ints;
    fn splat_float(value: f32) -> Self::Floats;
    /// The halves of a word, again and again.
    fn splat_shorts(halves: u32) -> Self::Shorts;
    /// The same bits.
    fn floats(bits: Self::Ints) -> Self::Floats;
    fn bits(values: Self::Floats) -> Self::Ints;
    /// Signed; the first panel's.
    fn widen_first(values: Self::Shorts) -> Self::Ints;
    /// Signed; the second panel's.
    fn widen_second(values: Self::Shorts) -> Self::Ints;
    /// FP16 or BF16 numbers as FP32.
    fn f16(from: &[u16; WIDTH]) -> Self::Floats;
    fn bf16(from: &[u16; WIDTH]) -> Self::Floats;
    /// Rows become columns.
    fn transpose(rows: &[[u16; 16]; WIDTH]) -> [[u16; WIDTH]; 16];
    /// Cut off towards zero; within 31 bits.
    fn truncate(values: Self::Floats) -> Self::Ints;

    fn add_floats(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a · b + c, rounded once. a and b have at most 11 significant bits.
    fn mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    fn add_shorts(a: Self::Shorts, b: Self::Shorts) -> Self::Shorts;
    fn max_shorts(a: Self::Shorts, b: Self::Shorts) -> Self::Shorts;
    fn add(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    fn sub(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Signed.
    fn max(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    fn max_unsigned(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    fn and(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    fn or(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    fn left<const N: u32>(a: Self::Ints) -> Self::Ints;
    /// Zeros come in.
    fn right<const N: u32>(a: Self::Ints) -> Self::Ints;
    /// `then` where a > b, signed; else `other`.
    fn if_greater(a: Self::Ints, b: Self::Ints, then: Self::Ints, other: Self::Ints) -> Self::Ints;
    /// Every lane lies in low ..= high, signed.
    fn all_within(a: Self::Ints, low: i32, high: i32) -> bool;
    /// For each lane a bit, in whatever order: it holds a subnormal number or a NaN.
    fn special(a: Self::Floats) -> u32;
    /// Some lane of some vector holds a NaN.
    fn any_nan<const C: usize>(rows: &[[Self::Floats; C]]) -> bool;
    /// (a + b) · scale, computed without error, then cut off to 24 bits; if `odd`, the last bit is set where bits were
    /// cut off.
    fn cut_sum(a: Self::Ints, b: Self::Ints, scale: Self::Floats, odd: bool) -> Self::Floats;
}

/// What lies in cache lines, one after the other.
pub fn flat(lines: &[Line<[u32; WIDTH]>]) -> &[u32] {
    // SAFETY: a line is as long as it is aligned, 64 bytes, so that the words of all lie side by side.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * WIDTH) }
}

/// The same, to be written.
pub fn flat_mut(lines: &mut [Line<[u32; WIDTH]>]) -> &mut [u32] {
    // SAFETY: as in `flat`; and nobody else holds the lines.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * WIDTH) }
}

/// Asks for the cache lines of these values: they come while other work is done.
#[inline(always)]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        let first = values.as_ptr();
        let end = if values.is_empty() { 0 } else { first.addr() % 64 + size_of_val(values) };
        (0..end).step_by(64).for_each(|line| x86::prefetch(first.wrapping_byte_add(line)));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// Asks for the cache line of a cell, and for those behind it: N in all, which is one too few where the first doesn't lie at the beginning of its line.
#[inline(always)]
pub fn prefetch_lines<const N: usize>(cells: &[u32], first: usize) {
    #[cfg(target_arch = "x86_64")]
    (0..N).for_each(|n| x86::prefetch(cells.as_ptr().wrapping_add(first + n * WIDTH)));
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (cells, first);
}

/// Does it with the widest vectors that this CPU has.
pub fn run(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let avx2 = avx2 && is_x86_feature_detected!("f16c");
        if avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the CPU has the features that the function is compiled for.
            return unsafe { x86::avx512(work) };
        }
        if avx2 {
            // SAFETY: the CPU has the features that the function is compiled for.
            return unsafe { x86::avx2(work) };
        }
    }
    work.run::<Plain, 2, 2, 1, 1>();
}

/// Arrays; the compiler makes vectors of them as the target has them (SSE2, NEON).
pub struct Plain;

/// The operations of a [`Lanes`], each inlined; in tests each a call: they ask for blocks so large that the compiler would take half a minute to inline
/// the loops over all lanes into them.
macro_rules! each {
    ($(fn $name:ident $(<const $n:ident: $kind:ty>)? ($($arg:ident: $type:ty),*) -> $result:ty { $body:expr })*) => {
        $(
            #[cfg_attr(not(test), inline(always))]
            #[cfg_attr(test, inline(never))]
            fn $name $(<const $n: $kind>)? ($($arg: $type),*) -> $result {
                $body
            }
        )*
    };
}

/// a · b + c, rounded once. Where the CPU has no such instruction, the product is rounded first if FP32 holds it anyway: 11
/// bits times 11, between the smallest normal number and the largest.
#[inline(always)]
fn fused(a: [f32; WIDTH], b: [f32; WIDTH], c: [f32; WIDTH]) -> [f32; WIDTH] {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        return from_fn(|j| a[j].mul_add(b[j], c[j]));
    }
    let products: [f32; WIDTH] = from_fn(|j| a[j] * b[j]);
    let magnitude = |x: f32| (x.to_bits() & 0x7fff_ffff).wrapping_sub(0x0080_0000);
    if products.iter().fold(true, |all, &x| all & (magnitude(x) < 0x7f00_0000)) {
        return from_fn(|j| products[j] + c[j]);
    }
    fused_wide(a, b, c)
}

/// The same in FP64, which holds every such product. That two roundings are as good as one: where FP64 cannot hold the sum,
/// one summand is more than 2^28 times the other. FP32 holds the larger one or calls it infinite, and the smaller one does
/// not reach half the distance to a neighbour.
#[cold]
fn fused_wide(a: [f32; WIDTH], b: [f32; WIDTH], c: [f32; WIDTH]) -> [f32; WIDTH] {
    from_fn(|j| (f64::from(a[j]) * f64::from(b[j]) + f64::from(c[j])) as f32)
}

impl Lanes for Plain {
    type Floats = [f32; WIDTH];
    type Ints = [u32; WIDTH];
    type Shorts = [i16; PAIR];

    each! {
        fn load(from: &[u32; WIDTH]) -> [u32; WIDTH] { *from }
        fn store(values: [u32; WIDTH]) -> [u32; WIDTH] { values }
        fn load_floats(from: &[f32; WIDTH]) -> [f32; WIDTH] { *from }
        fn store_floats(values: [f32; WIDTH]) -> [f32; WIDTH] { values }
        fn load_shorts(from: &[i16; PAIR]) -> [i16; PAIR] { *from }
        fn splat(value: u32) -> [u32; WIDTH] { [value; WIDTH] }
        fn splat_float(value: f32) -> [f32; WIDTH] { [value; WIDTH] }
        fn splat_shorts(halves: u32) -> [i16; PAIR] { from_fn(|j| (halves >> (j % 2 * 16)) as i16) }
        fn floats(bits: [u32; WIDTH]) -> [f32; WIDTH] { bits.map(f32::from_bits) }
        fn bits(values: [f32; WIDTH]) -> [u32; WIDTH] { values.map(f32::to_bits) }
        fn widen_first(values: [i16; PAIR]) -> [u32; WIDTH] { from_fn(|j| i32::from(values[j]) as u32) }
        fn widen_second(values: [i16; PAIR]) -> [u32; WIDTH] { from_fn(|j| i32::from(values[WIDTH + j]) as u32) }
        fn f16(from: &[u16; WIDTH]) -> [f32; WIDTH] { from_fn(|j| f16_value(from[j])) }
        fn bf16(from: &[u16; WIDTH]) -> [f32; WIDTH] { from_fn(|j| f32::from_bits(u32::from(from[j]) << 16)) }
        fn transpose(rows: &[[u16; 16]; WIDTH]) -> [[u16; WIDTH]; 16] { from_fn(|k| from_fn(|j| rows[j][k])) }
        fn truncate(values: [f32; WIDTH]) -> [u32; WIDTH] { values.map(|v| v as i32 as u32) }
        fn add_floats(a: [f32; WIDTH], b: [f32; WIDTH]) -> [f32; WIDTH] { from_fn(|j| a[j] + b[j]) }
        fn mul(a: [f32; WIDTH], b: [f32; WIDTH]) -> [f32; WIDTH] { from_fn(|j| a[j] * b[j]) }
        fn mul_add(a: [f32; WIDTH], b: [f32; WIDTH], c: [f32; WIDTH]) -> [f32; WIDTH] {
            fused(a, b, c)
        }
        fn add_shorts(a: [i16; PAIR], b: [i16; PAIR]) -> [i16; PAIR] { from_fn(|j| a[j].wrapping_add(b[j])) }
        fn max_shorts(a: [i16; PAIR], b: [i16; PAIR]) -> [i16; PAIR] { from_fn(|j| a[j].max(b[j])) }
        fn add(a: [u32; WIDTH], b: [u32; WIDTH]) -> [u32; WIDTH] { from_fn(|j| a[j].wrapping_add(b[j])) }
        fn sub(a: [u32; WIDTH], b: [u32; WIDTH]) -> [u32; WIDTH] { from_fn(|j| a[j].wrapping_sub(b[j])) }
        fn max(a: [u32; WIDTH], b: [u32; WIDTH]) -> [u32; WIDTH] { from_fn(|j| (a[j] as i32).max(b[j] as i32) as u32) }
        fn max_unsigned(a: [u32; WIDTH], b: [u32; WIDTH]) -> [u32; WIDTH] { from_fn(|j| a[j].max(b[j])) }
        fn and(a: [u32; WIDTH], b: [u32; WIDTH]) -> [u32; WIDTH] { from_fn(|j| a[j] & b[j]) }
        fn or(a: [u32; WIDTH], b: [u32; WIDTH]) -> [u32; WIDTH] { from_fn(|j| a[j] | b[j]) }
        fn left<const N: u32>(a: [u32; WIDTH]) -> [u32; WIDTH] { a.map(|a| a << N) }
        fn right<const N: u32>(a: [u32; WIDTH]) -> [u32; WIDTH] { a.map(|a| a >> N) }
        fn if_greater(a: [u32; WIDTH], b: [u32; WIDTH], then: [u32; WIDTH], other: [u32; WIDTH]) -> [u32; WIDTH] {
            from_fn(|j| if a[j] as i32 > b[j] as i32 { then[j] } else { other[j] })
        }
        fn all_within(a: [u32; WIDTH], low: i32, high: i32) -> bool {
            a.iter().all(|&a| (low..=high).contains(&(a as i32)))
        }
        fn special(a: [f32; WIDTH]) -> u32 {
            a.iter().fold(0, |all, a| all << 1 | u32::from(a.is_subnormal() || a.is_nan()))
        }
        fn any_nan<const C: usize>(rows: &[[[f32; WIDTH]; C]]) -> bool {
            rows.as_flattened().as_flattened().iter().fold(false, |any, x| any | x.is_nan())
        }
        fn cut_sum(a: [u32; WIDTH], b: [u32; WIDTH], scale: [f32; WIDTH], odd: bool) -> [f32; WIDTH] {
            from_fn(|j| {
                let sum = f64::from(a[j] as i32) + f64::from(b[j] as i32);
                let bits = (sum * f64::from(scale[j])).to_bits();
                let last = u64::from(odd && bits << 35 != 0) << 29;
                f64::from_bits(bits >> 29 << 29 | last) as f32
            })
        }
    }
}

#[cfg(test)]
mod tests;
