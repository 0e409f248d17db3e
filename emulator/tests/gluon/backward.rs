//! Attention, backward: the gradients of Q, K and V against their definition in FP64.

use super::case::{Case, case};
use super::gemms::random;
use super::on_every_schedule;
use emulator::{Content, Report};

pub const NAME: &str = "attention_backward";

/// A gradient: its elements, and how far each may be off.
type Gradient = Vec<(f64, f64)>;

fn numbers(case: &Case, name: &str) -> Vec<f64> {
    let buffer = case.buffer(name);
    let (operand, content) = (&case.operands[buffer], &case.launch.buffers[buffer].content);
    let Content::Bytes(bytes) = content else { panic!("{name}: {content:?}") };
    (0..operand.elements()).map(|at| operand.format.value(operand.format.code(bytes, at))).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// log2 of the sum of each row's exponentials, and the product of each row of dO with what attention gives.
fn sums(case: &Case, scale: f64) -> (Vec<f64>, Vec<f64>) {
    let dim = case.size[2];
    let [q, k, v, out] = ["Q", "K", "V", "dO"].map(|name| numbers(case, name));
    let row = |(q, out): (&[f64], &[f64])| {
        let p: Vec<f64> = k.chunks(dim).map(|k| (scale * dot(q, k)).exp2()).collect();
        let total: f64 = p.iter().sum();
        let delta = p.iter().zip(v.chunks(dim)).map(|(p, v)| p * dot(out, v)).sum::<f64>() / total;
        (total.log2(), delta)
    };
    q.chunks(dim).zip(out.chunks(dim)).map(row).unzip()
}

/// dQ, dK, dV by their definition. P and dS are rounded to FP16 (a relative 2^-11, or 2^-25 of small ones); what comes before is of FP32:
/// exponents below 64, rounded a few times, leave P a relative 2^-16, and dS 2^-16 of the numbers that it is the difference of.
fn gradients(case: &Case, scale: f64) -> [Gradient; 3] {
    let [queries, keys, dim] = case.size;
    let [q, k, v, out, lse, delta] = ["Q", "K", "V", "dO", "lse", "delta"].map(|name| numbers(case, name));
    let [mut dq, mut dk, mut dv] = [queries, keys, keys].map(|rows| vec![(0.0, 0.0); rows * dim]);
    for (m, (q, out)) in q.chunks(dim).zip(out.chunks(dim)).enumerate() {
        for (n, (k, v)) in k.chunks(dim).zip(v.chunks(dim)).enumerate() {
            let p = (scale * dot(q, k) - lse[m]).exp2();
            let dp = dot(out, v);
            let ds = p * (dp - delta[m]);
            let p_off = p * (2f64.powi(-11) + 2f64.powi(-16)) + 2f64.powi(-25);
            let ds_off = ds.abs() * 2f64.powi(-11) + p * (dp.abs() + delta[m].abs()) * 2f64.powi(-16) + 2f64.powi(-25);
            let add = |to: &mut Gradient, row: usize, (by, off): (f64, f64), vector: &[f64]| {
                for ((sum, bound), x) in to[row * dim..].iter_mut().zip(vector) {
                    *sum += by * x;
                    // Sums of FP32 on the way.
                    *bound += off * x.abs() + (by * x).abs() * 2f64.powi(-18);
                }
            };
            add(&mut dv, n, (p, p_off), out);
            add(&mut dk, n, (ds, ds_off), q);
            add(&mut dq, m, (ds, ds_off), k);
        }
    }
    [dq, dk, dv]
}

fn judge(case: &Case, want: &[Gradient; 3], report: &Report) -> Result<(), String> {
    for (name, want) in ["dQ", "dK", "dV"].into_iter().zip(want) {
        let buffer = case.buffer(name);
        let format = case.operands[buffer].format;
        for (at, &(value, off)) in want.iter().enumerate() {
            let got = format.value(format.code(&report.buffers[buffer].bytes, at));
            if (got - value).abs() > off || got.is_nan() {
                return Err(format!("element {at} of {name} is {got}, not {value} ± {off}"));
            }
        }
    }
    Ok(())
}

#[test]
fn attention_backward() {
    let mut case = case(NAME, None);
    let scale = std::f64::consts::LOG2_E / (case.size[2] as f64).sqrt();
    for name in ["Q", "K", "V", "dO"] {
        let buffer = case.buffer(name);
        let mut next = random(buffer as u64 + 1);
        let (format, elements) = (case.operands[buffer].format, case.operands[buffer].elements());
        let codes: Vec<u32> = (0..elements).map(|_| format.nearest(f64::from(next(0, 32) as i32 - 16) / 8.0)).collect();
        case.set(buffer, codes);
    }
    let (lse, delta) = sums(&case, scale);
    for (name, values) in [("lse", lse), ("delta", delta)] {
        let buffer = case.buffer(name);
        let format = case.operands[buffer].format;
        case.set(buffer, values.into_iter().map(|value| format.nearest(value)));
    }
    let want = gradients(&case, scale);
    on_every_schedule(NAME, &case, |report| judge(&case, &want, report));
}
