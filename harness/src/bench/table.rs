//! A benchmark as a table.

use super::{Benchmark, Interval, Judged, RATIO, Series};
use std::fmt::Write;

/// NVML averages power over about so many microseconds (nvmlDeviceGetPowerUsage); what a shorter series drew, it cannot say.
const AVERAGED: f64 = 100_000.0;

/// The line above the rows.
pub fn header() -> String {
    format!(
        "{:>16} {:>12} {:>6} {:>12} {:>6}  {:<22} {:>9}  {}\n",
        "size", "kernel", "TF", "cuBLAS", "TF", "ratio to cuBLAS", "of peak", "clock, power"
    )
}

/// A row. `peak` is in TFLOP/s.
pub fn line(series: &Series, peak: Option<f64>) -> String {
    let (size, all) = (series.problem.extents(), series.rounds.len());
    let (kernel, cublas) = (series.kernel_us(), series.cublas_us());
    let (kernel_tf, cublas_tf) = (series.tflops(kernel), series.tflops(cublas));
    let Interval { median, low, high } = series.ratio();
    let share = peak.map_or("not known".to_string(), |peak| format!("{:.1} %", kernel_tf / peak * 100.0));
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let long = series.rounds.iter().map(|round| round.kernel_us + round.cublas_us).sum::<f64>() >= AVERAGED;
    let clocks: Vec<f64> = series.rounds.iter().filter_map(|round| round.clock_mhz).map(f64::from).collect();
    let powers: Vec<f64> = series.rounds.iter().filter_map(|round| round.power_w).collect();
    let clock = if clocks.is_empty() || !long { "-".to_string() } else { format!("{:.0} MHz", mean(clocks)) };
    let power = if powers.is_empty() || !long { "-".to_string() } else { format!("{:.0} W", mean(powers)) };
    let mut text = format!(
        "{size:>16} {kernel:>9.1} us {kernel_tf:>6.0} {cublas:>9.1} us {cublas_tf:>6.0}  {:<22} {share:>9}  {clock}, {power}",
        // One round is no pair: there is no ratio.
        if all < 2 { "-".to_string() } else { format!("{median:.3} [{low:.3}, {high:.3}]") }
    );
    // Writing to a String cannot fail.
    for (reason, rounds) in series.slowed_by() {
        let _ = match reason {
            "the power cap" => write!(text, "; at its power limit in {rounds} of {all} rounds"),
            other => write!(text, "; slowed down by {other} in {rounds} of {all} rounds"),
        };
    }
    match series.watched() {
        0 => text.push_str("; throttling was not watched"),
        watched if watched < all => {
            let _ = write!(text, "; throttling was watched in {watched} of {all} rounds");
        }
        _ => {}
    }
    if let Some(predicted) = series.predicted_us {
        let _ = write!(text, "; predicted {predicted:.1} us, {:+.1} %", (predicted / kernel - 1.0) * 100.0);
    }
    if let Judged::Inconclusive(why) = series.judged() {
        let _ = write!(text, "\n{:>16} inconclusive, run again: {why}", "");
    }
    text.push('\n');
    text
}

/// What stands below the rows: where and how it was measured, and how far the emulator's predictions are off.
pub fn summary(benchmark: &Benchmark) -> String {
    let machine = &benchmark.machine;
    let mut text = format!(
        "\n{} on {} ({}), driver {}, {}\n",
        benchmark.kernel, machine.gpu, machine.uuid, machine.driver, benchmark.date
    );
    let errors: Vec<f64> = (benchmark.series.iter())
        .filter_map(|series| Some((series.predicted_us? / series.kernel_us() - 1.0).abs()))
        .collect();
    if !errors.is_empty() {
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let _ = writeln!(
            text,
            "the emulator's predictions are off by {:.1} % on the mean of {}",
            mean * 100.0,
            errors.len()
        );
    }
    match machine.peak() {
        Some(peak) => {
            let _ = writeln!(text, "peak: {peak} TFLOP/s, dense, as its data sheet says");
        }
        None => text.push_str("peak: not known for this GPU\n"),
    }
    // Old samples have a sentence on their ratio, too; it is computed anew.
    for sentence in
        benchmark.protocol.iter().map(String::as_str).filter(|text| !text.starts_with("ratio:")).chain(RATIO)
    {
        text.push_str(sentence);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Machine, PROTOCOL, Round};
    use super::*;
    use crate::Problem;
    use expect_test::expect;

    /// Samples of before there was a watch, and of another protocol, are shown as what they are.
    #[test]
    fn old_samples_are_shown_as_they_were_taken() {
        let text = r#"{"kernel": "hopper", "machine": {"gpu": "NVIDIA H200 NVL", "uuid": "GPU-1", "driver": "1", "sms": 132},
            "date": "d", "protocol": ["as of old", "ratio: the median over all rounds"],
            "series": [{"problem": "1024x1024x1024 f16", "predicted_us": null,
                "rounds": [{"kernel_us": 2.0, "cublas_us": 2.0, "clock_mhz": null, "power_w": null, "temperature_c": null}]}]}"#;
        let benchmark: Benchmark = serde_json::from_str(text).expect("samples");
        assert_eq!(benchmark.machine.peak(), None, "not an H200's");
        let text = line(&benchmark.series[0], benchmark.machine.peak()) + &summary(&benchmark);
        expect![[r#"
                       1024³       2.0 us   1074       2.0 us   1074  -                      not known  -, -; throttling was not watched
                             inconclusive, run again: 20 rounds are the fewest, and here are 1

            hopper on NVIDIA H200 NVL (GPU-1), driver 1, d
            peak: not known for this GPU
            as of old
            ratio: cuBLAS's time divided by the kernel's, the geometric mean of two rounds behind each other, in which each comes first once;
            the median of these pairs, with the 95 % interval of 2000 bootstrap samples
        "#]].assert_eq(&text);
    }

    #[test]
    fn a_benchmark_as_text() {
        let round = |n: usize| Round {
            kernel_us: 180.0 + (n % 20) as f64 / 10.0,
            cublas_us: 181.0,
            clock_mhz: Some(1700 + n as u32 % 20),
            power_w: n.is_multiple_of(2).then_some(650.0),
            temperature_c: None,
            slowed_by: Some(if n < 5 { vec!["the power cap".into()] } else { Vec::new() }),
        };
        let series = |edge: u32, rounds: usize, predicted_us: Option<f64>| Series {
            problem: Problem::f16(edge, 4096, 4096),
            rounds: (0..rounds).map(round).collect(),
            predicted_us,
        };
        let mut unwatched = series(4096, 3, None);
        unwatched.rounds[0].slowed_by = Some(vec!["its temperature (software)".into()]);
        unwatched.rounds[1].slowed_by = None;
        let benchmark = Benchmark {
            kernel: "hopper".into(),
            machine: Machine { gpu: "NVIDIA H200".into(), uuid: "GPU-1".into(), driver: "580.1".into(), sms: 132 },
            date: "2026-11-22T14:00:00Z".into(),
            protocol: PROTOCOL.map(String::from).to_vec(),
            series: vec![series(4096, 400, Some(170.0)), series(8192, 20, None), unwatched],
        };
        let mut text = header();
        for series in &benchmark.series {
            text += &line(series, benchmark.machine.peak());
        }
        text += &summary(&benchmark);
        expect![[r#"
                        size       kernel     TF       cuBLAS     TF  ratio to cuBLAS          of peak  clock, power
                       4096³     180.9 us    760     181.0 us    759  1.000 [1.000, 1.001]      76.8 %  1710 MHz, 650 W; at its power limit in 5 of 400 rounds; predicted 170.0 us, -6.1 %
              8192x4096x4096     180.9 us   1519     181.0 us   1519  1.000 [0.998, 1.003]     153.5 %  -, -; at its power limit in 5 of 20 rounds
                       4096³     180.1 us    763     181.0 us    759  1.005 [1.005, 1.005]      77.1 %  -, -; slowed down by its temperature (software) in 1 of 3 rounds; at its power limit in 1 of 3 rounds; throttling was watched in 2 of 3 rounds
                             inconclusive, run again: 20 rounds are the fewest, and here are 3

            hopper on NVIDIA H200 (GPU-1), driver 580.1, 2026-11-22T14:00:00Z
            the emulator's predictions are off by 6.1 % on the mean of 1
            peak: 989.4 TFLOP/s, dense, as its data sheet says
            each round times the kernel and cuBLAS once, by events, in turns who comes first; L2 is overwritten before each launch
            such rounds go before those that count, 1 to 10 s, until times stand still, again for every 20 s of rounds; NVML is read beside the rounds, every 20 ms
            A and B are random normal numbers; cuBLAS is cublasGemmEx, FP16 or BF16 in and out, sums in FP32, a workspace of 32 MiB
            ratio: cuBLAS's time divided by the kernel's, the geometric mean of two rounds behind each other, in which each comes first once;
            the median of these pairs, with the 95 % interval of 2000 bootstrap samples
        "#]].assert_eq(&text);
    }
}
