//! What can be asked for.

use clap::{Parser, ValueEnum};
use emulator::Mode;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Runs a PTX kernel on the CPU and says what is wrong with it.
///
/// The exit status is 0 if nothing is wrong, 1 if there are findings or the run did not end, and 2 if it could not begin.
#[derive(Debug, Parser)]
#[command(
    name = "emulate",
    version,
    term_width = 100,
    override_usage = "emulate KERNEL.ptx --launch LAUNCH.json [OPTIONS]"
)]
pub struct Arguments {
    /// The PTX text
    #[arg(value_name = "KERNEL.ptx", required_unless_present_any = ["list_instructions", "assumptions", "rules"], requires = "launch")]
    kernel: Option<PathBuf>,
    /// What is launched, on what: docs/emulate.md describes the file
    #[arg(long, value_name = "LAUNCH.json", requires = "kernel")]
    launch: Option<PathBuf>,
    /// Run an adversarial schedule, which this number repeats
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = whole)]
    seed: Option<u64>,
    /// Run the schedules of the seeds from A to B, without B
    #[arg(long, value_name = "A..B", value_parser = range)]
    seeds: Option<Seeds>,
    /// Whether notes (rules broken that no machine code would show) are printed; they are counted in any case
    #[arg(long, value_enum, default_value_t = Notes::Show)]
    notes: Notes,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// End the run after so many warp instructions
    #[arg(long, value_name = "N", default_value_t = emulator::Options::default().max_instructions, value_parser = whole)]
    max_instructions: u64,
    /// Simulate the times of this GPU. Default: the one that the kernel's `.target` names
    #[arg(long, value_enum, value_name = "GPU")]
    gpu: Option<Gpu>,
    /// Write what happened when, for ui.perfetto.dev or chrome://tracing: one microsecond there is one simulated cycle
    #[arg(long, value_name = "FILE.json", conflicts_with = "seeds")]
    trace: Option<PathBuf>,
    /// Only simulate times: matrices are neither moved nor multiplied, and nothing is checked
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    timing_only: bool,
    /// Only compute results and times: no access is checked against the others, which is faster
    #[arg(long, conflicts_with = "timing_only")]
    results_only: bool,
    /// How the tensor core's sums are computed
    #[arg(long, value_enum, default_value_t = Numerics::Fast, conflicts_with = "timing_only")]
    numerics: Numerics,
    /// Use so many host threads. No result depends on it. Default: as many as the host runs at once
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<NonZeroUsize>,
    /// Print the instructions and special registers that are modelled
    #[arg(long)]
    pub list_instructions: bool,
    /// Print what the emulator assumes without being sure
    #[arg(long)]
    pub assumptions: bool,
    /// Print what orders accesses of memory, and what does not
    #[arg(long)]
    pub rules: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Findings as a compiler shows errors, then a summary
    Text,
    /// One JSON object
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Notes {
    Show,
    Hide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Gpu {
    B200,
    H200,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Numerics {
    /// In FP32, each term rounded to nearest: the last bits are not those of a tensor core
    Fast,
    /// Bit for bit as a model of the tensor core has it that was compared with a B200; half as fast
    Exact,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    from: u64,
    to: u64,
}

fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("give a whole number from 0 to {}", u64::MAX))
}

fn range(text: &str) -> Result<Seeds, String> {
    let parse = |number: &str| number.trim().parse::<u64>().ok();
    match text.split_once("..").map(|(from, to)| (parse(from), parse(to))) {
        Some((Some(from), Some(to))) if from < to => Ok(Seeds { from, to }),
        Some((Some(_), Some(_))) => Err("the range is empty: the second number must be larger, e.g. 0..50".into()),
        _ => Err("two whole numbers with `..` between, e.g. 0..50".into()),
    }
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let way_out = "give 1 or more, or leave it out for as many as the host runs at once";
    match text.parse::<usize>().map(NonZeroUsize::new) {
        Ok(Some(threads)) => Ok(threads),
        Ok(None) => Err(format!("no thread would run anything: {way_out}")),
        Err(_) => Err(format!("not a number of threads: {way_out}")),
    }
}

/// A kernel to run.
#[derive(Debug)]
pub struct Job {
    pub kernel: PathBuf,
    pub launch: PathBuf,
    pub schedules: Schedules,
    pub notes: Notes,
    pub format: Format,
    /// Where the timeline goes.
    pub trace: Option<PathBuf>,
    /// Beside the seed, which the schedules give.
    pub options: emulator::Options,
}

/// The schedules to run.
#[derive(Clone, Copy, Debug)]
pub enum Schedules {
    /// The one of the simulated clock.
    Default,
    One(u64),
    Seeds(Seeds),
}

impl Schedules {
    pub fn seeds(self) -> Box<dyn Iterator<Item = Option<u64>>> {
        match self {
            Schedules::Default => Box::new(std::iter::once(None)),
            Schedules::One(seed) => Box::new(std::iter::once(Some(seed))),
            Schedules::Seeds(Seeds { from, to }) => Box::new((from..to).map(Some)),
        }
    }
}

impl Arguments {
    /// What is to be run, if anything.
    pub fn job(self) -> Option<Job> {
        let (kernel, launch) = (self.kernel?, self.launch?);
        let schedules = match (self.seed, self.seeds) {
            (Some(seed), _) => Schedules::One(seed),
            (None, Some(seeds)) => Schedules::Seeds(seeds),
            (None, None) => Schedules::Default,
        };
        let gpu = self.gpu.map(|gpu| match gpu {
            Gpu::B200 => emulator::Gpu::B200,
            Gpu::H200 => emulator::Gpu::H200,
        });
        let options = emulator::Options {
            max_instructions: self.max_instructions,
            gpu,
            mode: match (self.timing_only, self.results_only) {
                (true, _) => Mode::Time,
                (false, true) => Mode::Compute,
                (false, false) => Mode::Judge,
            },
            trace: self.trace.is_some(),
            threads: self.threads,
            numerics: match self.numerics {
                Numerics::Fast => emulator::Numerics::Fast,
                Numerics::Exact => emulator::Numerics::Exact,
            },
            ..Default::default()
        };
        Some(Job { kernel, launch, schedules, notes: self.notes, format: self.format, trace: self.trace, options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_without_its_end() {
        assert_eq!(range("3..7"), Ok(Seeds { from: 3, to: 7 }));
        for bad in ["7..3", "3..3", "3", "..", "a..b", "-1..2", "1..=2"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
