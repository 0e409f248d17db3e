//! Times on a GPU that can be believed: a kernel and cuBLAS, round by round in one process, and what may be said of them.

mod plot;
mod run;
mod statistics;
mod table;

pub use plot::svg;
pub use run::{BATCH, SIZES, begin, checked, predicted, rounds, series, times};
pub use statistics::{Interval, Judged, median, pairs};
pub use table::{header, line, summary};

use crate::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the times are taken, in words: kept with the samples.
pub const PROTOCOL: [&str; 3] = [
    "each round times the kernel and cuBLAS once, by events, in turns who comes first; L2 is overwritten before each launch",
    "such rounds go before those that count, 1 to 10 s, until times stand still, again for every 20 s of rounds; NVML is read beside the rounds, every 20 ms",
    "A and B are random normal numbers; cuBLAS is cublasGemmEx, FP16 or BF16 in and out, sums in FP32, a workspace of 32 MiB",
];

/// What is made of the times, in words: of recorded ones, too.
pub const RATIO: [&str; 2] = [
    "ratio: cuBLAS's time divided by the kernel's, the geometric mean of two rounds behind each other, in which each comes first once;",
    "the median of these pairs, with the 95 % interval of 2000 bootstrap samples",
];

/// The GPU that times were taken on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name, as the driver says it.
    pub gpu: String,
    /// Its UUID.
    pub uuid: String,
    /// The driver's version.
    pub driver: String,
    /// Streaming multiprocessors.
    pub sms: u32,
}

impl Machine {
    /// Dense FP16 and BF16 with sums in FP32, in TFLOP/s, as NVIDIA's data sheets say; `None` for a GPU that is not in
    /// this table.
    pub fn peak(&self) -> Option<f64> {
        // "H100 SXM5": 989.4; the H200 has the same chip. "B200": 2250 of 4500 sparse.
        // Whole names: an "NVIDIA H200 NVL" or an "NVIDIA GB200" is another product, with other numbers.
        const PEAKS: [(&str, f64); 3] =
            [("NVIDIA H100 80GB HBM3", 989.4), ("NVIDIA H200", 989.4), ("NVIDIA B200", 2250.0)];
        PEAKS.iter().find(|(name, _)| self.gpu == *name).map(|(_, peak)| *peak)
    }
}

/// One round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The kernel's time, in microseconds.
    pub kernel_us: f64,
    /// That of cuBLAS.
    pub cublas_us: f64,
    /// The clock of the SMs, as last read, in MHz.
    pub clock_mhz: Option<u32>,
    /// Power, in watts.
    pub power_w: Option<f64>,
    /// Temperature of the GPU, in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// What slowed the GPU down, in words; `None`: nobody watched.
    #[serde(default)]
    pub slowed_by: Option<Vec<String>>,
}

/// All rounds of a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The problem.
    pub problem: Problem,
    /// The rounds, without those that warmed up.
    pub rounds: Vec<Round>,
    /// What the emulator predicts for the kernel on this GPU, in microseconds.
    pub predicted_us: Option<f64>,
}

/// A benchmark: what `--json` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Benchmark {
    /// The kernel.
    pub kernel: String,
    /// Where it ran.
    pub machine: Machine,
    /// When, in UTC: `2026-11-22T14:00:00Z`.
    pub date: String,
    /// How.
    pub protocol: Vec<String>,
    /// A series for each size.
    pub series: Vec<Series>,
}

impl Series {
    fn times(&self, of: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(of).collect()
    }

    /// The kernel's median time, in microseconds.
    pub fn kernel_us(&self) -> f64 {
        statistics::median(&self.times(|round| round.kernel_us))
    }

    /// That of cuBLAS.
    pub fn cublas_us(&self) -> f64 {
        statistics::median(&self.times(|round| round.cublas_us))
    }

    /// TFLOP/s at a time in microseconds.
    pub fn tflops(&self, us: f64) -> f64 {
        2.0 * self.problem.products() as f64 / us / 1e6
    }

    /// The kernel's times, or those of cuBLAS, in pairs of rounds.
    fn pairs(&self, of: impl Fn(&Round) -> f64) -> Vec<f64> {
        statistics::pairs(&self.times(of))
    }

    /// How many times as fast as cuBLAS the kernel is.
    pub fn ratio(&self) -> Interval {
        statistics::bootstrap(&self.pairs(|round| round.cublas_us / round.kernel_us))
    }

    /// Rounds in which this slowed the GPU down, for each reason.
    pub fn slowed_by(&self) -> BTreeMap<&str, usize> {
        let mut rounds = BTreeMap::new();
        for reason in self.rounds.iter().filter_map(|round| round.slowed_by.as_ref()).flatten() {
            *rounds.entry(reason.as_str()).or_default() += 1;
        }
        rounds
    }

    /// Rounds in which somebody watched what slows the GPU down.
    pub fn watched(&self) -> usize {
        self.rounds.iter().filter(|round| round.slowed_by.is_some()).count()
    }

    /// What may be said of the ratio.
    pub fn judged(&self) -> Judged {
        statistics::judge(self)
    }
}
