//! The vectors of x86-64: AVX-512, and AVX2.

use super::*;
use std::arch::x86_64::*;
use std::mem::transmute;

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
pub fn avx512(work: impl Work) {
    work.run::<Avx512, 8, 8, 2, 4>();
}

#[target_feature(enable = "avx2,fma,f16c")]
pub fn avx2(work: impl Work) {
    work.run::<Avx2, 6, 4, 1, 1>();
}

/// Asks for the cache line of a place, as far as the second-level cache: most of what is asked for is more than the first level holds.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    // SAFETY: every x86-64 CPU has the instruction, which reads nothing that the program sees, wherever the place is.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(place.cast()) }
}

/// Rows become columns: neighbours of 16, 32 and 64 bits are put side by side, then the halves of vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(r: [__m256i; 16]) -> [__m256i; 16] {
    macro_rules! zip {
        ($low:ident, $high:ident, $v:ident: $(($a:literal, $b:literal)),*) => {
            [$($low($v[$a], $v[$b]), $high($v[$a], $v[$b])),*]
        };
    }
    // Of rows 0 to 3, then 4 to 7, 8 to 11, 12 to 15: columns 0 to 3 (and 8 to 11 in the upper half), then 4 to 7.
    let r = zip!(_mm256_unpacklo_epi16, _mm256_unpackhi_epi16, r:
        (0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15));
    // Two columns each.
    let r = zip!(_mm256_unpacklo_epi32, _mm256_unpackhi_epi32, r:
        (0, 2), (1, 3), (4, 6), (5, 7), (8, 10), (9, 11), (12, 14), (13, 15));
    // Columns 0 to 7 of rows 0 to 7, then of rows 8 to 15.
    let r = zip!(_mm256_unpacklo_epi64, _mm256_unpackhi_epi64, r:
        (0, 4), (1, 5), (2, 6), (3, 7), (8, 12), (9, 13), (10, 14), (11, 15));
    macro_rules! halves {
        ($($n:literal),*) => {
            [
                $(_mm256_permute2x128_si256::<0x20>(r[$n], r[$n + 8]),)*
                $(_mm256_permute2x128_si256::<0x31>(r[$n], r[$n + 8]),)*
            ]
        };
    }
    halves!(0, 1, 2, 3, 4, 5, 6, 7)
}

/// As [`super::each`], for bodies that call an intrinsic.
macro_rules! each {
    ($(fn $name:ident $(<const $n:ident: $kind:ty>)? ($($arg:ident: $type:ty),*) -> $result:ty { $body:expr })*) => {
        $(
            #[inline(always)]
            fn $name $(<const $n: $kind>)? ($($arg: $type),*) -> $result {
                // SAFETY: only the function above that is compiled for these features names the type, so that the CPU
                // has them. Vectors and arrays that are transmuted have the same size, and any bits are valid in both.
                unsafe { $body }
            }
        )*
    };
}

/// Named in [`avx512`] alone.
struct Avx512;

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn cut_sum_8(a: __m256i, b: __m256i, scale: __m256, odd: bool) -> __m256 {
    let sum = _mm512_add_pd(_mm512_cvtepi32_pd(a), _mm512_cvtepi32_pd(b));
    let exact = _mm512_castpd_si512(_mm512_mul_pd(sum, _mm512_cvtps_pd(scale)));
    let mask = _mm512_set1_epi64((1 << 29) - 1);
    let mut cut = _mm512_andnot_si512(mask, exact);
    if odd {
        let last = _mm512_test_epi64_mask(mask, exact);
        cut = _mm512_mask_or_epi64(cut, last, cut, _mm512_set1_epi64(1 << 29));
    }
    _mm512_cvtpd_ps(_mm512_castsi512_pd(cut))
}

impl Lanes for Avx512 {
    type Floats = __m512;
    type Ints = __m512i;
    type Shorts = __m512i;

    each! {
        fn load(from: &[u32; WIDTH]) -> __m512i { transmute(*from) }
        fn store(values: __m512i) -> [u32; WIDTH] { transmute(values) }
        fn load_floats(from: &[f32; WIDTH]) -> __m512 { transmute(*from) }
        fn store_floats(values: __m512) -> [f32; WIDTH] { transmute(values) }
        fn load_shorts(from: &[i16; PAIR]) -> __m512i { transmute(*from) }
        fn splat(value: u32) -> __m512i { _mm512_set1_epi32(value as i32) }
        fn splat_float(value: f32) -> __m512 { _mm512_set1_ps(value) }
        fn splat_shorts(halves: u32) -> __m512i { _mm512_set1_epi32(halves as i32) }
        fn floats(bits: __m512i) -> __m512 { _mm512_castsi512_ps(bits) }
        fn bits(values: __m512) -> __m512i { _mm512_castps_si512(values) }
        fn widen_first(values: __m512i) -> __m512i { _mm512_cvtepi16_epi32(_mm512_castsi512_si256(values)) }
        fn widen_second(values: __m512i) -> __m512i {
            _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64::<1>(values))
        }
        fn f16(from: &[u16; WIDTH]) -> __m512 { _mm512_cvtph_ps(transmute::<[u16; WIDTH], __m256i>(*from)) }
        fn bf16(from: &[u16; WIDTH]) -> __m512 {{
            let wide = _mm512_cvtepu16_epi32(transmute::<[u16; WIDTH], __m256i>(*from));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }}
        fn transpose(rows: &[[u16; 16]; WIDTH]) -> [[u16; WIDTH]; 16] {
            transmute(transpose(transmute::<[[u16; 16]; WIDTH], [__m256i; 16]>(*rows)))
        }
        fn truncate(values: __m512) -> __m512i { _mm512_cvttps_epi32(values) }
        fn add_floats(a: __m512, b: __m512) -> __m512 { _mm512_add_ps(a, b) }
        fn mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn add_shorts(a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi16(a, b) }
        fn max_shorts(a: __m512i, b: __m512i) -> __m512i { _mm512_max_epi16(a, b) }
        fn add(a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi32(a, b) }
        fn sub(a: __m512i, b: __m512i) -> __m512i { _mm512_sub_epi32(a, b) }
        fn max(a: __m512i, b: __m512i) -> __m512i { _mm512_max_epi32(a, b) }
        fn max_unsigned(a: __m512i, b: __m512i) -> __m512i { _mm512_max_epu32(a, b) }
        fn and(a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        fn or(a: __m512i, b: __m512i) -> __m512i { _mm512_or_si512(a, b) }
        fn left<const N: u32>(a: __m512i) -> __m512i { _mm512_slli_epi32::<N>(a) }
        fn right<const N: u32>(a: __m512i) -> __m512i { _mm512_srli_epi32::<N>(a) }
        fn if_greater(a: __m512i, b: __m512i, then: __m512i, other: __m512i) -> __m512i {
            _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(a, b), other, then)
        }
        fn all_within(a: __m512i, low: i32, high: i32) -> bool {{
            let low = _mm512_cmplt_epi32_mask(a, _mm512_set1_epi32(low));
            low | _mm512_cmpgt_epi32_mask(a, _mm512_set1_epi32(high)) == 0
        }}
        fn special(a: __m512) -> u32 {{
            const SUBNORMAL_OR_NAN: i32 = 0x20 | 0x80 | 0x01;
            _mm512_fpclass_ps_mask::<SUBNORMAL_OR_NAN>(a).into()
        }}
        fn any_nan<const C: usize>(rows: &[[__m512; C]]) -> bool {{
            let mut any = 0;
            for pair in rows.as_flattened().chunks(2) {
                // Of two numbers that have no order one is a NaN.
                any |= _mm512_cmpunord_ps_mask(pair[0], pair[pair.len() - 1]);
            }
            any != 0
        }}
        fn cut_sum(a: __m512i, b: __m512i, scale: __m512, odd: bool) -> __m512 {{
            let sum = _mm512_add_epi32(a, b);
            let over = _mm512_and_si512(_mm512_xor_si512(a, sum), _mm512_xor_si512(b, sum));
            if _mm512_movepi32_mask(over) == 0 {
                // 32 bits hold the sum: one conversion, towards zero, cuts it off.
                const CUT: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
                let cut = _mm512_cvt_roundepi32_ps::<CUT>(sum);
                if !odd {
                    return _mm512_mul_ps(cut, scale);
                }
                let rest = _mm512_cmpneq_epi32_mask(_mm512_cvttps_epi32(cut), sum);
                let bits = _mm512_castps_si512(cut);
                let bits = _mm512_mask_or_epi32(bits, rest, bits, _mm512_set1_epi32(1));
                return _mm512_mul_ps(_mm512_castsi512_ps(bits), scale);
            }
            let [a, b] = [a, b].map(|v| transmute::<__m512i, [__m256i; 2]>(v));
            let scale: [__m256; 2] = transmute(scale);
            transmute::<[__m256; 2], __m512>([
                cut_sum_8(a[0], b[0], scale[0], odd),
                cut_sum_8(a[1], b[1], scale[1], odd),
            ])
        }}
    }
}

/// Named in [`avx2`] alone.
struct Avx2;

/// An operation on both halves. (A closure would not be compiled for AVX2: each intrinsic in it becomes a call.)
macro_rules! both {
    ($operation:ident, $a:ident, $b:ident) => {
        [$operation($a[0], $b[0]), $operation($a[1], $b[1])]
    };
}

/// For each lane a bit: it holds a subnormal number or a NaN.
#[inline]
#[target_feature(enable = "avx2")]
fn special_8(a: __m256) -> u32 {
    let magnitude = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(i32::MAX));
    // 1 to 2^23 - 1, which are 0 to 2^23 - 2 above 1; 0 is far above them.
    let above = _mm256_sub_epi32(magnitude, _mm256_set1_epi32(1));
    let subnormal = _mm256_cmpeq_epi32(above, _mm256_min_epu32(above, _mm256_set1_epi32((1 << 23) - 2)));
    let nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f80_0000));
    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_or_si256(subnormal, nan))) as u32
}

#[inline]
#[target_feature(enable = "avx2")]
fn cut_sum_4(a: __m128i, b: __m128i, scale: __m128, odd: bool) -> __m128 {
    let sum = _mm256_add_pd(_mm256_cvtepi32_pd(a), _mm256_cvtepi32_pd(b));
    let exact = _mm256_castpd_si256(_mm256_mul_pd(sum, _mm256_cvtps_pd(scale)));
    let mask = _mm256_set1_epi64x((1 << 29) - 1);
    let mut cut = _mm256_andnot_si256(mask, exact);
    if odd {
        let none = _mm256_cmpeq_epi64(_mm256_and_si256(mask, exact), _mm256_setzero_si256());
        cut = _mm256_or_si256(cut, _mm256_andnot_si256(none, _mm256_set1_epi64x(1 << 29)));
    }
    _mm256_cvtpd_ps(_mm256_castsi256_pd(cut))
}

impl Lanes for Avx2 {
    type Floats = [__m256; 2];
    type Ints = [__m256i; 2];
    type Shorts = [__m256i; 2];

    each! {
        fn load(from: &[u32; WIDTH]) -> [__m256i; 2] { transmute(*from) }
        fn store(values: [__m256i; 2]) -> [u32; WIDTH] { transmute(values) }
        fn load_floats(from: &[f32; WIDTH]) -> [__m256; 2] { transmute(*from) }
        fn store_floats(values: [__m256; 2]) -> [f32; WIDTH] { transmute(values) }
        fn load_shorts(from: &[i16; PAIR]) -> [__m256i; 2] { transmute(*from) }
        fn splat(value: u32) -> [__m256i; 2] { [_mm256_set1_epi32(value as i32); 2] }
        fn splat_float(value: f32) -> [__m256; 2] { [_mm256_set1_ps(value); 2] }
        fn splat_shorts(halves: u32) -> [__m256i; 2] { [_mm256_set1_epi32(halves as i32); 2] }
        fn floats(bits: [__m256i; 2]) -> [__m256; 2] { transmute(bits) }
        fn bits(values: [__m256; 2]) -> [__m256i; 2] { transmute(values) }
        fn widen_first(values: [__m256i; 2]) -> [__m256i; 2] {{
            let [low, high]: [__m128i; 2] = transmute(values[0]);
            [_mm256_cvtepi16_epi32(low), _mm256_cvtepi16_epi32(high)]
        }}
        fn widen_second(values: [__m256i; 2]) -> [__m256i; 2] {{
            let [low, high]: [__m128i; 2] = transmute(values[1]);
            [_mm256_cvtepi16_epi32(low), _mm256_cvtepi16_epi32(high)]
        }}
        fn f16(from: &[u16; WIDTH]) -> [__m256; 2] {{
            let [low, high]: [__m128i; 2] = transmute(*from);
            [_mm256_cvtph_ps(low), _mm256_cvtph_ps(high)]
        }}
        fn bf16(from: &[u16; WIDTH]) -> [__m256; 2] {{
            let [low, high]: [__m128i; 2] = transmute(*from);
            transmute([
                _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(low)),
                _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(high)),
            ])
        }}
        fn transpose(rows: &[[u16; 16]; WIDTH]) -> [[u16; WIDTH]; 16] {
            transmute(transpose(transmute::<[[u16; 16]; WIDTH], [__m256i; 16]>(*rows)))
        }
        fn truncate(values: [__m256; 2]) -> [__m256i; 2] {
            [_mm256_cvttps_epi32(values[0]), _mm256_cvttps_epi32(values[1])]
        }
        fn add_floats(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] { both!(_mm256_add_ps, a, b) }
        fn mul(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] { both!(_mm256_mul_ps, a, b) }
        fn mul_add(a: [__m256; 2], b: [__m256; 2], c: [__m256; 2]) -> [__m256; 2] {
            [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])]
        }
        fn add_shorts(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] { both!(_mm256_add_epi16, a, b) }
        fn max_shorts(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] { both!(_mm256_max_epi16, a, b) }
        fn add(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] { both!(_mm256_add_epi32, a, b) }
        fn sub(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] { both!(_mm256_sub_epi32, a, b) }
        fn max(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] { both!(_mm256_max_epi32, a, b) }
        fn max_unsigned(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] { both!(_mm256_max_epu32, a, b) }
        fn and(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] { both!(_mm256_and_si256, a, b) }
        fn or(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] { both!(_mm256_or_si256, a, b) }
        fn left<const N: u32>(a: [__m256i; 2]) -> [__m256i; 2] {{
            let by = _mm_cvtsi32_si128(N as i32);
            [_mm256_sll_epi32(a[0], by), _mm256_sll_epi32(a[1], by)]
        }}
        fn right<const N: u32>(a: [__m256i; 2]) -> [__m256i; 2] {{
            let by = _mm_cvtsi32_si128(N as i32);
            [_mm256_srl_epi32(a[0], by), _mm256_srl_epi32(a[1], by)]
        }}
        fn if_greater(a: [__m256i; 2], b: [__m256i; 2], then: [__m256i; 2], other: [__m256i; 2]) -> [__m256i; 2] {{
            let mask = both!(_mm256_cmpgt_epi32, a, b);
            [
                _mm256_blendv_epi8(other[0], then[0], mask[0]),
                _mm256_blendv_epi8(other[1], then[1], mask[1]),
            ]
        }}
        fn all_within(a: [__m256i; 2], low: i32, high: i32) -> bool {{
            let (low, high) = (_mm256_set1_epi32(low), _mm256_set1_epi32(high));
            let below = _mm256_or_si256(_mm256_cmpgt_epi32(low, a[0]), _mm256_cmpgt_epi32(low, a[1]));
            let above = _mm256_or_si256(_mm256_cmpgt_epi32(a[0], high), _mm256_cmpgt_epi32(a[1], high));
            _mm256_movemask_epi8(_mm256_or_si256(below, above)) == 0
        }}
        fn special(a: [__m256; 2]) -> u32 { special_8(a[0]) | special_8(a[1]) << 8 }
        fn any_nan<const C: usize>(rows: &[[[__m256; 2]; C]]) -> bool {{
            let mut any = _mm256_setzero_ps();
            for [low, high] in rows.as_flattened() {
                // Of two numbers that have no order one is a NaN.
                any = _mm256_or_ps(any, _mm256_cmp_ps::<_CMP_UNORD_Q>(*low, *high));
            }
            _mm256_movemask_ps(any) != 0
        }}
        fn cut_sum(a: [__m256i; 2], b: [__m256i; 2], scale: [__m256; 2], odd: bool) -> [__m256; 2] {{
            let [a, b] = [a, b].map(|v| transmute::<[__m256i; 2], [__m128i; 4]>(v));
            let scale: [__m128; 4] = transmute(scale);
            transmute::<[__m128; 4], [__m256; 2]>([
                cut_sum_4(a[0], b[0], scale[0], odd),
                cut_sum_4(a[1], b[1], scale[1], odd),
                cut_sum_4(a[2], b[2], scale[2], odd),
                cut_sum_4(a[3], b[3], scale[3], odd),
            ])
        }}
    }
}
