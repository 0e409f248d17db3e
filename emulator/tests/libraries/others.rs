//! What kernels compute that are no plain GEMM: elements of their results that are wrong.

use crate::{Bf16, Element, F16, F32};
use emulator::Report;

/// By name.
pub const OTHERS: &[(&str, fn(&Report) -> usize)] =
    &[("cute_dsl_fmha", attention), ("deep_gemm_bf16_grouped", grouped), ("deep_gemm_hc_prenorm", with_squares)];

/// A buffer's numbers.
fn numbers(report: &Report, buffer: usize, element: Element) -> Vec<f64> {
    report.buffers[buffer].bytes.chunks_exact(element.bytes()).map(|bytes| f64::from(element.read(bytes))).collect()
}

fn dot<'a>(a: impl IntoIterator<Item = &'a f64>, b: impl IntoIterator<Item = &'a f64>) -> f64 {
    a.into_iter().zip(b).map(|(x, y)| x * y).sum()
}

/// `O = softmax(Q Kᵀ / 8) V`: 256 queries and 384 keys of 64 FP16 each.
fn attention(report: &Report) -> usize {
    const DEPTH: usize = 64;
    let [q, k, v, o] = [0, 1, 2, 3].map(|buffer| numbers(report, buffer, F16));
    let mut wrong = 0;
    for (q, o) in q.chunks_exact(DEPTH).zip(o.chunks_exact(DEPTH)) {
        let weights: Vec<f64> = k.chunks_exact(DEPTH).map(|k| (dot(q, k) / 8.0).exp()).collect();
        let sum: f64 = weights.iter().sum();
        // Weights are rounded to FP16 before the second product: 11 bits of numbers up to 2, and once more at the end.
        let is_wrong =
            |&(n, o): &(usize, &f64)| (dot(&weights, v[n..].iter().step_by(DEPTH)) / sum - o).abs() > 1.0 / 512.0;
        wrong += o.iter().enumerate().filter(is_wrong).count();
    }
    wrong
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
