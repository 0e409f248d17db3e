//! What kernels compute that are no plain GEMM: elements of their results that are wrong.

use crate::formats::Format;
use crate::{Bf16, Element, F16, F32};
use emulator::{Content, Launch, Report};

/// Counts the elements that are wrong.
type Check = fn(&Report) -> usize;

/// By name.
pub const OTHERS: &[(&str, Check)] = &[
    ("cute_dsl_grouped_shared", products),
    ("cute_dsl_grouped_global", products),
    ("cute_dsl_fmha", |report| FMHA.wrong(report)),
    ("flash_attention_pairs", |report| Attention { keys: 320, ..FLASH_ATTENTION }.wrong(report)),
    ("flash_attention_causal", |report| Attention { causal: true, ..FLASH_ATTENTION }.wrong(report)),
    ("tilelang_attention", |report| Attention { causal: true, element: Bf16, ..FMHA }.wrong(report)),
    ("cutlass_blockwise", by_blocks),
    ("cutlass_mixed", mixed),
    ("cute_dsl_mixed", with_factors),
    ("flashinfer_fp4_pair", narrow_weights),
    ("deep_gemm_bf16_grouped", grouped),
    ("quack_gathered", gathered),
    ("deep_gemm_hc_prenorm", with_squares),
    ("transformer_engine_hadamard", transformed),
    ("cub_scan", scanned),
    ("quack_layer_norm", normalised),
    ("quack_topk", greatest),
    ("iree_attention", |report| Attention { keys: 256, ..FMHA }.wrong(report)),
];

/// A buffer's numbers.
fn numbers(report: &Report, buffer: usize, element: Element) -> Vec<f64> {
    report.buffers[buffer].bytes.chunks_exact(element.bytes()).map(|bytes| f64::from(element.read(bytes))).collect()
}

fn dot<'a>(a: impl IntoIterator<Item = &'a f64>, b: impl IntoIterator<Item = &'a f64>) -> f64 {
    a.into_iter().zip(b).map(|(x, y)| x * y).sum()
}

/// NaN differs from everything.
fn differs(a: f64, b: f64, near: f64) -> bool {
    let apart = (a - b).abs();
    apart.is_nan() || apart > near
}

/// `O = softmax(Q Kᵀ / 8) V`, and the logarithms of the sums of the exponentials behind it in some.
struct Attention {
    keys: usize,
    depth: usize,
    element: Element,
    /// A query sees the keys up to its own number.
    causal: bool,
    logarithms: bool,
}

const FMHA: Attention = Attention { keys: 384, depth: 64, element: F16, causal: false, logarithms: false };
const FLASH_ATTENTION: Attention = Attention { depth: 128, element: Bf16, logarithms: true, ..FMHA };

impl Attention {
    fn wrong(&self, report: &Report) -> usize {
        let [q, k, v, o] = [0, 1, 2, 3].map(|buffer| numbers(report, buffer, self.element));
        let logarithms = if self.logarithms { numbers(report, 4, F32) } else { vec![] };
        // Weights are rounded before the second product, and O once more: 11 or 8 bits of numbers up to 2.
        let near = if self.element == F16 { 1.0 / 512.0 } else { 1.0 / 64.0 };
        let mut wrong = 0;
        for (row, (q, o)) in q.chunks_exact(self.depth).zip(o.chunks_exact(self.depth)).enumerate() {
            let seen = if self.causal { row + 1 } else { self.keys };
            let weights: Vec<f64> = k.chunks_exact(self.depth).take(seen).map(|k| (dot(q, k) / 8.0).exp()).collect();
            let sum: f64 = weights.iter().sum();
            let right = |n: usize| dot(&weights, v[n..].iter().step_by(self.depth)) / sum;
            wrong += (0..self.depth).filter(|&n| differs(right(n), o[n], near)).count();
            wrong += logarithms.get(row).map_or(0, |log| usize::from(differs(sum.ln(), *log, 1e-3)));
        }
        wrong
    }
}

/// Signed 4-bit integers, the first of two in the low half of a byte.
fn nibbles(report: &Report, buffer: usize) -> Vec<f64> {
    let signed = |byte: &u8| [f64::from((byte << 4) as i8 >> 4), f64::from(*byte as i8 >> 4)];
    report.buffers[buffer].bytes.iter().flat_map(signed).collect()
}

/// Elements of `D = A Bᵀ` in BF16, all by rows, that are wrong.
fn wrong_products([a, b, d]: [&[f64]; 3], k: usize) -> usize {
    let right = a.chunks_exact(k).flat_map(|a| b.chunks_exact(k).map(move |b| f64::from(Bf16.round(dot(a, b) as f32))));
    d.iter().zip(right).filter(|(d, right)| **d != *right).count()
}

/// `D = A Bᵀ`, B of 4-bit integers.
fn mixed(report: &Report) -> usize {
    let [a, d] = [0, 2].map(|buffer| numbers(report, buffer, Bf16));
    wrong_products([&a, &nibbles(report, 1), &d], 1024)
}

/// `D = A Bᵀ`, A of 4-bit integers with a factor for 128 of a row; the inner two of each four elements change places.
fn with_factors(report: &Report) -> usize {
    const SIZE: usize = 128;
    const K: usize = 2 * SIZE;
    let [factors, b, d] = [1, 2, 3].map(|buffer| numbers(report, buffer, Bf16));
    let stored = nibbles(report, 0);
    let element = |n: usize| {
        let (row, k) = (n / K, n % K);
        stored[n / 4 * 4 + [0, 2, 1, 3][n % 4]] * factors[k / SIZE * SIZE + row]
    };
    let a: Vec<f64> = (0..SIZE * K).map(element).collect();
    wrong_products([&a, &b, &d], K)
}

/// `D = A Bᵀ / 2`, B of FP4 with a factor for 16 of a row.
fn narrow_weights(report: &Report) -> usize {
    const DEPTHS: usize = 512;
    let (a, d) = (numbers(report, 0, Bf16), numbers(report, 4, Bf16));
    let code = |format: Format, buffer: usize, at: usize| format.value(format.code(&report.buffers[buffer].bytes, at));
    let weight = |at: usize| code(Format::E2m1, 1, at) * code(Format::E4m3, 2, at / 16) / 2.0;
    let b: Vec<f64> = (0..report.buffers[1].bytes.len() * 2).map(weight).collect();
    wrong_products([&a, &b, &d], DEPTHS)
}

/// `D = A H` of each 16 tokens of a column, rounded to BF16, then to E2M1 by the factor of those 16, in E4M3, and by one of all: its largest sum can be 168.
fn transformed(report: &Report) -> usize {
    const COLUMNS: usize = 128;
    let (a, h) = (numbers(report, 0, Bf16), numbers(report, 1, Bf16));
    let [d, factors] = [2, 3].map(|buffer| &report.buffers[buffer].bytes);
    let encode = 448.0 * 6.0 / numbers(report, 4, F32)[0] as f32;
    let tokens = a.len() / COLUMNS;
    let mut wrong = 0;
    for (block, &factor) in factors.iter().enumerate() {
        let (column, first) = (block / (tokens / 16), block % (tokens / 16) * 16);
        let a: Vec<f64> = (first..first + 16).map(|token| a[token * COLUMNS + column]).collect();
        let sums: Vec<f32> = (0..16).map(|n| Bf16.round(dot(&a, h[n..].iter().step_by(16)) as f32)).collect();
        let most = sums.iter().fold(0.0f32, |most, sum| most.max(sum.abs()));
        let right = Format::E4m3.nearest((most * (encode * (1.0 / 6.0f32))).into());
        let scale = 1.0 / (Format::E4m3.value(right) as f32 * (1.0 / encode));
        wrong += usize::from(u32::from(factor) != right);
        for (n, sum) in sums.iter().enumerate() {
            let code = Format::E2m1.code(d, column * tokens + first + n);
            wrong += usize::from(code != Format::E2m1.nearest((sum * scale).into()));
        }
    }
    wrong
}

/// The greatest of -1000 and all of A before, from the fourth element of A on; D begins with its second, and has one more behind: those stay.
fn scanned(report: &Report) -> usize {
    let (a, d) = (numbers(report, 0, F32), numbers(report, 1, F32));
    let kept = f64::from(f32::from_le_bytes([66; 4]));
    let greatest = a[3..].iter().scan(-1000.0f64, |most, &a| Some(std::mem::replace(most, most.max(a))));
    let right: Vec<f64> = std::iter::once(kept).chain(greatest).chain([kept, kept]).collect();
    assert_eq!(right.len(), d.len());
    d.iter().zip(right).filter(|(d, right)| **d != *right).count()
}

/// `Y = (X - mean) rstd W + B`, and rstd and mean of each row.
fn normalised(report: &Report) -> usize {
    const COLUMNS: usize = 4096;
    let [x, w, b, y, rstd, mean] = [0, 1, 2, 3, 4, 5].map(|buffer| numbers(report, buffer, F32));
    let mut wrong = 0;
    for (row, (x, y)) in x.chunks_exact(COLUMNS).zip(y.chunks_exact(COLUMNS)).enumerate() {
        let middle = x.iter().sum::<f64>() / COLUMNS as f64;
        let square = x.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / COLUMNS as f64;
        let factor = 1.0 / (square + 1e-6).sqrt();
        wrong += usize::from(differs(mean[row], middle, 1e-5)) + usize::from(differs(rstd[row], factor, 1e-5));
        wrong += (0..COLUMNS).filter(|&n| differs(y[n], (x[n] - middle) * factor * w[n] + b[n], 1e-4)).count();
    }
    wrong
}

/// The softmax of the 16 greatest of a row, and their places. While they are sorted their low 10 bits are other ones: numbers that differ by no more may change places.
fn greatest(report: &Report) -> usize {
    let (x, values) = (numbers(report, 0, F32), numbers(report, 1, F32));
    let places: Vec<usize> = report.buffers[2]
        .bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize)
        .collect();
    let mut wrong = 0;
    for ((x, values), places) in x.chunks_exact(1024).zip(values.chunks_exact(16)).zip(places.chunks_exact(16)) {
        let mut sorted = x.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let sum: f64 = sorted[..16].iter().map(|x| x.exp()).sum();
        for (n, (value, &place)) in values.iter().zip(places).enumerate() {
            let near = sorted[n].abs() / 4096.0;
            wrong += usize::from(differs(*value, sorted[n].exp() / sum, 1e-3));
            wrong += usize::from(places[..n].contains(&place));
            wrong += x.get(place).map_or(1, |x| usize::from(differs(*x, sorted[n], near)));
        }
    }
    wrong
}

/// Rows of `cute_dsl_fmha` whose maximum rises by more than 8, as a power of 2, from one block of 128 keys to a later one.
pub fn rising(launch: &Launch) -> usize {
    let numbers = |buffer: usize| -> Vec<f64> {
        let Content::Random(random) = &launch.buffers[buffer].content else { panic!("Q and K are random") };
        random.bytes().chunks_exact(2).map(|bytes| F16.read(bytes).into()).collect()
    };
    let (q, k) = (numbers(0), numbers(1));
    let rises = |q: &&[f64]| {
        let power = |k: &[f64]| dot(*q, k) / 8.0 * std::f64::consts::LOG2_E;
        let mut blocks = k
            .chunks_exact(128 * FMHA.depth)
            .map(|block| block.chunks_exact(FMHA.depth).map(power).fold(f64::MIN, f64::max));
        let mut kept = blocks.next().expect("keys");
        blocks.any(|most| {
            let risen = most - kept > 8.0;
            kept = kept.max(most);
            risen
        })
    };
    q.chunks_exact(FMHA.depth).filter(rises).count()
}

/// `D = A Bᵀ` of several sizes, which lie one behind the other in each buffer.
fn products(report: &Report) -> usize {
    let [a, b, d] = [0, 1, 2].map(|buffer| numbers(report, buffer, F16));
    let (mut a, mut b, mut d) = (&a[..], &b[..], &d[..]);
    let mut wrong = 0;
    for [m, n, k] in [[256, 128, 128], [128, 256, 192], [200, 136, 72]] {
        let right = |at: usize| F16.round(dot(&a[at / n * k..][..k], &b[at % n * k..][..k]) as f32);
        wrong += (0..m * n).filter(|&at| d[at] != f64::from(right(at))).count();
        (a, b, d) = (&a[m * k..], &b[n * k..], &d[m * n..]);
    }
    assert!(d.is_empty());
    wrong
}

/// `D = A Bᵀ` of E4M3, D by columns. Blocks of 128 × 128 of A and of B have a factor each, which lie by columns, too.
fn by_blocks(report: &Report) -> usize {
    const M: usize = 512;
    const N: usize = 256;
    const K: usize = 512;
    let codes = |buffer: usize| -> Vec<f64> {
        report.buffers[buffer].bytes.iter().map(|&code| Format::E4m3.value(code.into())).collect()
    };
    let [a, b, d] = [0, 1, 3].map(codes);
    let [of_a, of_b] = [4, 5].map(|buffer| numbers(report, buffer, F32));
    let is_wrong = |&at: &usize| {
        let (row, column) = (at % M, at / M);
        let block = |k: usize| {
            let factor = of_a[k / 128 * (M / 128) + row / 128] * of_b[k / 128 * (N / 128) + column / 128];
            factor * dot(&a[row * K + k..][..128], &b[column * K + k..][..128])
        };
        let right: f64 = (0..K).step_by(128).map(block).sum();
        // FP32 holds the sum: every order of additions gives it.
        assert_eq!(right, f64::from(right as f32));
        d[at] != Format::E4m3.value(Format::E4m3.nearest(right))
    };
    (0..M * N).filter(is_wrong).count()
}

/// Rows of A are multiplied by the B of their group, whose number a list gives: `D = A B`, B by rows of N.
fn grouped(report: &Report) -> usize {
    const N: usize = 256;
    const K: usize = 256;
    let [a, b, d] = [0, 1, 3].map(|buffer| numbers(report, buffer, Bf16));
    let groups = report.buffers[2].bytes.chunks_exact(4).map(|bytes| usize::from(bytes[0]));
    let rows = a.chunks_exact(K).zip(d.chunks_exact(N)).zip(groups);
    let wrong = rows.map(|((a, d), group)| {
        let right = |n: usize| dot(a, b[group * K * N + n..].iter().step_by(N).take(K));
        (0..N).filter(|&n| d[n] != f64::from(Bf16.round(right(n) as f32))).count()
    });
    wrong.sum()
}

/// `D = A Bᵀ` of groups of rows that lie anywhere in A, each with a B of its own.
fn gathered(report: &Report) -> usize {
    const N: usize = 256;
    const K: usize = 256;
    let [a, b, d] = [0, 1, 2].map(|buffer| numbers(report, buffer, Bf16));
    let words = |buffer: usize| -> Vec<usize> {
        let chunks = report.buffers[buffer].bytes.chunks_exact(4);
        chunks.map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize).collect()
    };
    let (ends, rows) = (words(3), words(4));
    let wrong = rows.iter().zip(d.chunks_exact(N)).enumerate().map(|(row, (from, d))| {
        let group = ends.iter().filter(|&&end| end <= row).count() - 1;
        let right = |n: usize| dot(&a[from * K..][..K], &b[(group * N + n) * K..][..K]);
        (0..N).filter(|&n| d[n] != f64::from(Bf16.round(right(n) as f32))).count()
    });
    wrong.sum()
}

/// `D = A Bᵀ` in TF32, A of 100 rows in BF16, and the sums of squares of A's rows; each in two halves of K.
fn with_squares(report: &Report) -> usize {
    const N: usize = 24;
    const K: usize = 1024;
    let a = numbers(report, 0, Bf16);
    let [b, d, squares] = [1, 2, 3].map(|buffer| numbers(report, buffer, F32));
    let rows = a.len() / K;
    let mut wrong = 0;
    for half in 0..2 {
        let part = half * K / 2..(half + 1) * K / 2;
        for (row, a) in a.chunks_exact(K).enumerate() {
            let a = &a[part.clone()];
            wrong += usize::from(squares[half * rows + row] != dot(a, a));
            let right = |n: usize| dot(a, &b[n * K..][part.clone()]);
            wrong += (0..N).filter(|&n| d[(half * rows + row) * N + n] != right(n)).count();
        }
    }
    wrong
}
