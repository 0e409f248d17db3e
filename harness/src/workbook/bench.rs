//! `cargo workbook bench`: a kernel timed on this machine's GPU, beside cuBLAS; samples that are kept, and shown again.

use super::kernel::{Kernel, list, sms_for};
use super::workspace::Workspace;
use super::{Patience, print};
use crate::bench::{self, Benchmark, Judged, Machine, Series};
use crate::cuda::{Card, Runner};
use crate::problem::Problem;
use crate::source::Built;
use clap::Args;
use device::{Choice, Gpu, Target};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is timed, and what becomes of it.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Edges of the cubes that are timed, e.g. 1024,4096 (without it: 1024 to 16384; a step of one tile at its own sizes)
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(super) sizes: Vec<u32>,
    /// Rounds at each size, each with one launch of the kernel and one of cuBLAS (without it: 40, for small sizes 200)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10000))]
    rounds: Option<u32>,
    /// Show samples that were taken before (--json), in place of new ones
    #[arg(long, value_name = "FILE")]
    pub(super) samples: Option<PathBuf>,
    /// Also what the emulator predicts; it takes minutes for the largest sizes
    #[arg(long)]
    predict: bool,
    /// Write all samples to this file, as JSON, after each size
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Write a picture to this file, after each size
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

impl Options {
    /// What asks for times, by its name.
    pub(super) fn of_times(&self) -> [(&'static str, bool); 4] {
        [
            ("--rounds", self.rounds.is_some()),
            ("--predict", self.predict),
            ("--json", self.json.is_some()),
            ("--svg", self.svg.is_some()),
        ]
    }

    /// The same, for one of several kernels: `out.step07.json` in place of `out.json`.
    pub(super) fn of(&self, kernel: &str) -> Options {
        let named = |path: &PathBuf| match path.extension() {
            Some(ending) => path.with_extension(format!("{kernel}.{}", ending.to_string_lossy())),
            None => path.with_extension(kernel),
        };
        Options { json: self.json.as_ref().map(named), svg: self.svg.as_ref().map(named), ..self.clone() }
    }

    pub(super) fn asks_for(&self, problem: &Problem) -> bool {
        self.sizes.is_empty() || self.sizes.contains(&problem.m)
    }

    /// Edges that are asked for, and that none of these problems has.
    pub(super) fn missing<'a>(&self, problems: impl Iterator<Item = &'a Problem> + Clone) -> Vec<u32> {
        self.sizes.iter().copied().filter(|edge| problems.clone().all(|problem| problem.m != *edge)).collect()
    }
}

/// What else to do where there is no GPU.
const OR_BUNDLE: &str = " Or carry the kernels to a machine that has one: cargo workbook bundle.";

/// The GPU that runs this PTX; without one, the error says what `else_try` says, too.
pub(super) fn card(ptx: &str, else_try: &str) -> Result<Card, String> {
    let choice = Target::of(ptx).map_or(Choice::Any, Choice::Runs);
    let about = Gpu::choose(&choice).map_err(|why| format!("{why}\n  try: {}{else_try}", why.way_out()))?;
    Ok(Card::new(about))
}

/// Times a kernel on this machine's GPU.
pub fn bench(workspace: &Workspace, kernel: &str, solution: bool, options: &Options) -> Result<ExitCode, String> {
    let kernel = Kernel::named(workspace, kernel, solution)?;
    if let Some(path) = &options.samples {
        return shown(&kernel, path, options);
    }
    let problems = kernel.sizes(&options.sizes);
    let first = problems.first().ok_or_else(|| format!("{} has no size to be timed at", kernel.name))?;
    let first = kernel.build(first, sms_for(&kernel.name))?;
    let card = card(&first.ptx, OR_BUNDLE)?;
    let sms = card.about().sms;
    let builds = problems.into_iter().map(|problem| Ok((problem, kernel.build(&problem, sms)?)));
    timed(&card, bench::begin(&kernel.name, Machine::of(&card)), builds, options, bench::series)
}

/// Samples that were taken before, of this kernel.
fn shown(kernel: &Kernel, path: &Path, options: &Options) -> Result<ExitCode, String> {
    let name = &kernel.name;
    let failed = |error: &dyn std::fmt::Display| format!("{} holds no samples: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut benchmark: Benchmark = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    if benchmark.kernel != *name {
        return Err(failed(&format!("they are of {}, not of {name}", benchmark.kernel)));
    }
    if options.rounds.is_some() {
        return Err(
            "`--rounds` asks for new times, and `--samples` for old ones\n  try: Leave one of them out.".to_string()
        );
    }
    if options.json.as_deref() == Some(path) {
        return Err(format!(
            "`--json {0}` would write what is shown over the samples in {0}\n  try: Give `--json` another file.",
            path.display()
        ));
    }
    let missing = options.missing(benchmark.series.iter().map(|series| &series.problem));
    if !missing.is_empty() {
        let there = list(benchmark.series.iter().map(|series| series.problem.m));
        let file = path.display();
        return Err(format!("{file} has no size {}\n  try: Give `--sizes` one that it has: {there}.", list(missing)));
    }
    benchmark.series.retain(|series| options.asks_for(&series.problem));
    let machine = benchmark.machine.clone();
    print(&bench::header());
    for series in &mut benchmark.series {
        if options.predict {
            let built = kernel.build(&series.problem, machine.sms)?;
            let _patience = Patience::new(format!("predicting {} …", series.problem));
            series.predicted_us = bench::predicted(&machine, &built, series.problem)?;
        }
        print(&bench::line(series, machine.peak()));
    }
    below(&benchmark, options);
    keep(&benchmark, options)?;
    Ok(status(&benchmark))
}

/// What stands below the rows.
fn below(benchmark: &Benchmark, options: &Options) {
    print(&bench::summary(benchmark));
    if options.predict && !benchmark.machine.is_modelled() {
        print("prediction: not known for this GPU, which the emulator has no model of\n");
    }
}

/// Failure when a ratio is inconclusive, whenever it was taken.
fn status(benchmark: &Benchmark) -> ExitCode {
    let sure = benchmark.series.iter().all(|series| series.judged() == Judged::Sure);
    if sure { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How a size is timed: checked before, or not.
type Time = fn(&dyn Runner, &Built, Problem, u32) -> Result<Series, String>;

/// Times builds of a kernel, and writes what is asked for after each: what fails later takes none of it away.
pub(super) fn timed(
    card: &dyn Runner,
    mut benchmark: Benchmark,
    builds: impl Iterator<Item = Result<(Problem, Built), String>>,
    options: &Options,
    time: Time,
) -> Result<ExitCode, String> {
    let mut failed = None;
    for build in builds {
        if let Err(why) = build.and_then(|build| timed_once(card, &mut benchmark, build, options, time)) {
            failed = Some(why);
            break;
        }
    }
    if !benchmark.series.is_empty() {
        below(&benchmark, options);
    }
    match failed {
        Some(why) => Err(why),
        None => Ok(status(&benchmark)),
    }
}

/// One size more.
fn timed_once(
    card: &dyn Runner,
    benchmark: &mut Benchmark,
    (problem, built): (Problem, Built),
    options: &Options,
    time: Time,
) -> Result<(), String> {
    let series = {
        let _patience = Patience::new(format!("timing {} at {problem} …", benchmark.kernel));
        time(card, &built, problem, options.rounds.unwrap_or_else(|| bench::rounds(&problem)))?
    };
    benchmark.series.push(series);
    // Before the prediction, which takes minutes. What cannot be written is shown all the same.
    let mut ended = keep(benchmark, options);
    if options.predict && ended.is_ok() {
        let _patience = Patience::new(format!("predicting {problem} …"));
        match (bench::predicted(&benchmark.machine, &built, problem), benchmark.series.last_mut()) {
            (Ok(us), Some(series)) => series.predicted_us = us,
            (Err(why), _) => ended = Err(why),
            (Ok(_), None) => {}
        }
        ended = ended.and_then(|()| keep(benchmark, options));
    }
    if let Some(series) = benchmark.series.last() {
        let header = if benchmark.series.len() == 1 { bench::header() } else { String::new() };
        print(&(header + &bench::line(series, benchmark.machine.peak())));
    }
    ended
}

fn keep(benchmark: &Benchmark, options: &Options) -> Result<(), String> {
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(benchmark).map_err(|error| format!("cannot write JSON: {error}"))?;
        write(path, &(text + "\n"))?;
    }
    if let Some(path) = &options.svg {
        write(path, &bench::svg(benchmark))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Round;
    use crate::cuda::work::{Reply, Work};
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    #[derive(Debug)]
    struct FailsAt(u32);

    impl Runner for FailsAt {
        fn name(&self) -> String {
            "fake".to_string()
        }

        fn run(&self, work: &[Work]) -> Result<Vec<Reply>, String> {
            let reply = match work {
                [Work::Bench(bench)] if bench.problem.m < self.0 => {
                    let round = Round { kernel_us: 1.0, cublas_us: 1.0, ..Round::default() };
                    Reply::Benched(vec![round; bench.rounds as usize])
                }
                _ => Reply::Failed { why: "the kernel met an error".into() },
            };
            Ok(vec![reply])
        }
    }

    /// What fails at a late size takes no sample of the earlier ones away.
    #[test]
    fn samples_are_written_after_each_size() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let file = scratch.path().join("out.json");
        let line = ["bench", "--rounds", "20", "--json"].map(PathBuf::from);
        let options = Typed::try_parse_from(line.into_iter().chain([file.clone()])).expect("options").options;
        let machine = Machine { gpu: "NVIDIA H200".into(), uuid: "GPU-1".into(), driver: "1".into(), sms: 132 };
        let builds = [1024, 2048, 4096].map(|n| Ok((Problem::f16(n, n, n), Built::default())));
        let begun = bench::begin("step07", machine);
        let ended = timed(&FailsAt(4096), begun, builds.into_iter(), &options, bench::times);
        assert_eq!(ended.map(|_| ()), Err("4096x4096x4096 f16: the kernel met an error".to_string()));
        let kept: Benchmark = serde_json::from_str(&std::fs::read_to_string(&file).expect("there")).expect("samples");
        let sizes: Vec<(u32, usize)> =
            kept.series.iter().map(|series| (series.problem.m, series.rounds.len())).collect();
        assert_eq!(sizes, [(1024, 20), (2048, 20)]);
        let kernel = Kernel::of_step(7, |_, _| ());
        // What is shown is not written over what was kept.
        let options = Options { samples: Some(file.clone()), rounds: None, sizes: vec![1024], ..options };
        let error = shown(&kernel, &file, &options).expect_err("the same file");
        assert!(error.contains("would write what is shown over the samples"), "{error}");
        let options = Options { json: None, sizes: vec![1024, 3000], ..options };
        let error = shown(&kernel, &file, &options).expect_err("no such size");
        assert!(error.ends_with("has no size 3000\n  try: Give `--sizes` one that it has: 1024, 2048."), "{error}");
    }
}
