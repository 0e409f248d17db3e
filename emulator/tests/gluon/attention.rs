//! Attention, forward: O and the logarithm of each row's sum, against the definition in FP64.

use super::case::{Case, case};
use super::gemms::random;
use super::on_every_schedule;
use emulator::{Content, Report};

pub const NAMES: &[&str] = &["attention", "attention_causal", "attention_eight", "attention_roles", "attention_small"];

/// What one row gives: each element of O, how far it may be off, and log2 of the sum.
struct Row {
    out: Vec<(f64, f64)>,
    sum: f64,
}

fn numbers(case: &Case, name: &str) -> Vec<f64> {
    let buffer = case.buffer(name);
    let (operand, content) = (&case.operands[buffer], &case.launch.buffers[buffer].content);
    let Content::Bytes(bytes) = content else { panic!("{name}: {content:?}") };
    (0..operand.elements()).map(|at| operand.format.value(operand.format.code(bytes, at))).collect()
}

/// The definition. P and O are rounded to FP16 (a relative 2^-11 each, or, of P below 2^-14 of the largest so far, 2^-25), all else is of
/// FP32: S is exact, its product with the scale is below 64 and rounded once, `ex2.approx` has a relative error of 2^-22 (PTX ISA, ex2),
/// which the largest of a row suffers once for each block of keys. Together they stay below 2^-17 of what they are added to.
fn rows(case: &Case, causal: bool) -> Vec<Row> {
    let [queries, keys, dim] = case.size;
    let (q, k, v) = (numbers(case, "Q"), numbers(case, "K"), numbers(case, "V"));
    let scale = std::f64::consts::LOG2_E / (dim as f64).sqrt();
    let row = |at: usize| {
        let (head, query) = (at / queries, at % queries);
        let seen = if causal { query + 1 } else { keys };
        let vector = |of: &[f64], key: usize| of[(head * keys + key) * dim..][..dim].to_vec();
        let q = &q[at * dim..][..dim];
        let scores: Vec<f64> =
            (0..seen).map(|key| scale * q.iter().zip(vector(&k, key)).map(|(x, y)| x * y).sum::<f64>()).collect();
        let largest = scores.iter().copied().fold(f64::MIN, f64::max);
        assert!(scores.iter().all(|s| s.abs() < 64.0), "the bound is for scores below 64");
        let p: Vec<f64> = scores.iter().map(|s| (s - largest).exp2()).collect();
        let total: f64 = p.iter().sum();
        let mut out = vec![(0.0, 0.0); dim];
        for (key, p) in p.iter().enumerate() {
            for ((out, off), v) in out.iter_mut().zip(vector(&v, key)) {
                *out += p * v / total;
                *off += ((2f64.powi(-11) + 2f64.powi(-17)) * p).max(2f64.powi(-25)) * v.abs() / total;
            }
        }
        out.iter_mut().for_each(|(out, off)| *off += out.abs() * 2f64.powi(-11) + 2f64.powi(-25));
        Row { out, sum: largest + total.log2() }
    };
    (0..q.len() / dim).map(row).collect()
}

fn judge(case: &Case, rows: &[Row], report: &Report) -> Result<(), String> {
    let read = |name: &str, at: usize| {
        let buffer = case.buffer(name);
        let format = case.operands[buffer].format;
        format.value(format.code(&report.buffers[buffer].bytes, at))
    };
    let dim = case.size[2];
    for (row, want) in rows.iter().enumerate() {
        for (column, &(out, off)) in want.out.iter().enumerate() {
            let got = read("O", row * dim + column);
            if (got - out).abs() > off || got.is_nan() {
                return Err(format!("row {row}, column {column} of O is {got}, not {out} ± {off}"));
            }
        }
        let got = read("L", row);
        if (got - want.sum).abs() > 2f64.powi(-16) || got.is_nan() {
            return Err(format!("row {row} of L is {got}, not {} ± 2^-16", want.sum));
        }
    }
    Ok(())
}

fn runs(name: &str) {
    let mut case = case(name, None);
    for name in ["Q", "K", "V"] {
        let buffer = case.buffer(name);
        let mut next = random(buffer as u64 + 1);
        let format = case.operands[buffer].format;
        let elements = case.operands[buffer].elements();
        // Eighths from -2 to 2: every element of Q Kᵀ is exact.
        let codes: Vec<u32> = (0..elements).map(|_| format.nearest(f64::from(next(0, 32) as i32 - 16) / 8.0)).collect();
        case.set(buffer, codes);
    }
    let rows = rows(&case, ["attention_causal", "attention_eight"].contains(&name));
    on_every_schedule(name, &case, |report| judge(&case, &rows, report));
}

#[test]
fn attention() {
    runs("attention");
}

#[test]
fn attention_causal() {
    runs("attention_causal");
}

#[test]
fn attention_eight() {
    runs("attention_eight");
}

#[test]
fn attention_small() {
    runs("attention_small");
}

#[test]
fn attention_roles() {
    runs("attention_roles");
}
