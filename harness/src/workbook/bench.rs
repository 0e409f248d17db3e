//! `cargo workbook bench`, `cargo workbook bundle`, and what a bundle does where it is started.

use super::workspace::{Workspace, name};
use super::{Patience, binary, print};
use crate::bench::{self, Benchmark, Judged, Machine, Series};
use crate::bundle::{self, Carried, Contents};
use crate::cuda::{Card, Runner};
use crate::problem::Problem;
use crate::reference_kernels;
use crate::source::{Built, KernelSource};
use crate::{Emitted, InProcess, JudgeOptions};
use clap::{Args, Parser};
use device::{Choice, Gpu, Target};
use ptx::Dtype;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The kernel beside the ladder.
pub(super) const HOPPER: &str = "hopper";

/// What is timed, and what becomes of it.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Edges of the cubes that are timed, e.g. 1024,4096
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65536))]
    sizes: Vec<u32>,
    /// Rounds at each size, each with one launch of the kernel and one of cuBLAS (without it: 40, for small sizes 200)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10000))]
    rounds: Option<u32>,
    /// Show samples that were taken before (--json), in place of new ones
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Also what the emulator predicts; it takes minutes for the largest sizes
    #[arg(long)]
    predict: bool,
    /// Write all samples to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a picture to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// A kernel by its name: a step of the checkout, or a solution.
fn source(workspace: &Workspace, kernel: &str, solution: bool) -> Result<(String, Box<dyn KernelSource>), String> {
    if kernel == HOPPER {
        let found = reference_kernels::hopper()
            .ok_or("the Hopper kernel is one of the solutions, and this program has none")?;
        return Ok((HOPPER.to_string(), Box::new(InProcess(found))));
    }
    let step =
        workspace.named(kernel).map_err(|error| format!("{error}\n  `{HOPPER}` is the kernel for an H100 or H200."))?;
    if solution {
        let kernel = reference_kernels::solution(step);
        let kernel = kernel.ok_or_else(|| format!("{} has no solution in this program", name(step)))?;
        return Ok((format!("{}, the solution", name(step)), Box::new(InProcess(kernel))));
    }
    Ok((name(step), Box::new(Emitted::new(binary(workspace, step)?))))
}

fn build(source: &dyn KernelSource, name: &str, problem: &Problem, sms: u32) -> Result<Built, String> {
    let built =
        source.build(problem, sms).map_err(|failure| format!("{name} does not build for {problem}: {failure}"))?;
    match built.todos.first() {
        Some(todo) => Err(format!("{name} is not done yet: TODO {} is open ({})", todo.id, todo.place)),
        None => Ok(built),
    }
}

/// The GPU that runs this PTX.
fn card(ptx: &str) -> Result<Card, String> {
    let choice = Target::of(ptx).map_or(Choice::Any, Choice::Runs);
    let about = Gpu::choose(&choice).map_err(|why| {
        format!(
            "{why}\n  try: {} Or carry the kernels to a machine that has one: cargo workbook bundle.",
            why.way_out()
        )
    })?;
    Ok(Card::new(about))
}

/// Streaming multiprocessors that a kernel is built for where no GPU says it: those of the GPU that runs its PTX.
fn sms_for(kernel: &str) -> u32 {
    if kernel == HOPPER { crate::steps::hopper::SMS } else { JudgeOptions::default().sms }
}

fn cubes(edges: &[u32]) -> Vec<Problem> {
    let edges = if edges.is_empty() { &bench::SIZES[..] } else { edges };
    edges.iter().map(|&n| Problem { m: n, n, k: n, dtype: Dtype::F16 }).collect()
}

/// Times a kernel on this machine's GPU.
pub fn bench(workspace: &Workspace, kernel: &str, solution: bool, options: &Options) -> Result<ExitCode, String> {
    let (name, source) = source(workspace, kernel, solution)?;
    if let Some(path) = &options.samples {
        return shown(&*source, &name, path, options);
    }
    let problems = cubes(&options.sizes);
    let first = build(&*source, &name, &problems[0], sms_for(kernel))?;
    let card = card(&first.ptx)?;
    let sms = card.about().sms;
    let builds = problems.into_iter().map(|problem| Ok((problem, build(&*source, &name, &problem, sms)?)));
    timed(&card, &name, builds, options, bench::series)
}

/// Samples that were taken before, of this kernel.
fn shown(source: &dyn KernelSource, name: &str, path: &Path, options: &Options) -> Result<ExitCode, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{} holds no samples: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut benchmark: Benchmark = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    if benchmark.kernel != name {
        return Err(failed(&format!("they are of {}, not of {name}", benchmark.kernel)));
    }
    let asked = |series: &Series| options.sizes.is_empty() || options.sizes.contains(&series.problem.m);
    benchmark.series.retain(asked);
    let machine = benchmark.machine.clone();
    print(&bench::header());
    for series in &mut benchmark.series {
        if options.predict {
            let built = build(source, name, &series.problem, machine.sms)?;
            let _patience = Patience::new(format!("predicting {} …", series.problem));
            series.predicted_us = bench::predicted(&machine, &built, series.problem)?;
        }
        print(&bench::line(series, machine.peak()));
    }
    print(&bench::summary(&benchmark));
    keep(&benchmark, options)?;
    Ok(ExitCode::SUCCESS)
}

/// How a size is timed: checked before, or not.
type Time = fn(&dyn Runner, &Built, Problem, u32) -> Result<Series, String>;

/// Times builds of a kernel, and writes what is asked for.
fn timed(
    card: &Card,
    name: &str,
    builds: impl Iterator<Item = Result<(Problem, Built), String>>,
    options: &Options,
    time: Time,
) -> Result<ExitCode, String> {
    let mut benchmark = bench::begin(name, Machine::of(card));
    let (mut begun, mut sure) = (false, true);
    for build in builds {
        let (problem, built) = build?;
        let mut series = {
            let _patience = Patience::new(format!("timing {name} at {problem} …"));
            time(card, &built, problem, options.rounds.unwrap_or_else(|| bench::rounds(&problem)))?
        };
        if options.predict {
            let _patience = Patience::new(format!("predicting {problem} …"));
            series.predicted_us = bench::predicted(&benchmark.machine, &built, problem)?;
        }
        sure &= series.judged() == Judged::Sure;
        print(&(if begun { String::new() } else { bench::header() } + &bench::line(&series, benchmark.machine.peak())));
        begun = true;
        benchmark.series.push(series);
    }
    print(&bench::summary(&benchmark));
    keep(&benchmark, options)?;
    Ok(if sure { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

/// Writes a bundle of these kernels: `1,3,5`, `hopper`.
pub fn write_bundle(
    workspace: &Workspace,
    kernels: &[String],
    out: &Path,
    edges: &[u32],
    sms: Option<u32>,
) -> Result<String, String> {
    let mut carried = Vec::new();
    for kernel in kernels {
        let (name, source) = source(workspace, kernel, false)?;
        let sms = sms.unwrap_or_else(|| sms_for(kernel));
        let step = workspace.named(kernel).ok().and_then(crate::step);
        // Sizes of the step's own table, and what bites; cubes are timed where the step takes them.
        let (checked, timed): (Vec<Problem>, Vec<Problem>) = match step {
            Some(step) => {
                let cases = step.cases.iter().filter(|case| case.sms.is_none()).map(|case| case.problem);
                let timed = if edges.is_empty() { step.sizes.to_vec() } else { cubes(edges) };
                (cases.collect(), timed)
            }
            None => (vec![Problem::f16(520, 264, 200)], cubes(edges)),
        };
        let _patience = Patience::new(format!("building {name} …"));
        let all = |problems: Vec<Problem>| -> Result<Vec<(Problem, Built)>, String> {
            problems.into_iter().map(|problem| Ok((problem, build(&*source, &name, &problem, sms)?))).collect()
        };
        carried.push(Carried { sms, timed: all(timed)?, checked: all(checked)?, name });
    }
    let program = program(workspace)?;
    let version = env!("CARGO_PKG_VERSION").to_string();
    bundle::write(&program, &Contents { version, kernels: carried }, out)?;
    let mib = std::fs::metadata(out).map_or(0.0, |about| about.len() as f64 / f64::from(1 << 20));
    let file = out.display();
    Ok(format!(
        "{file}: {} in {mib:.1} MiB\n  try: Copy it to a Linux machine with a GPU (scp {file} gpu:), and start it there: ./{}\n",
        kernels.join(", "),
        out.file_name().unwrap_or_default().to_string_lossy()
    ))
}

/// This program, optimised: D is checked on the CPU there.
fn program(workspace: &Workspace) -> Result<PathBuf, String> {
    let _patience = Patience::new("building the program that the bundle is …");
    let output = Command::new(super::cargo::cargo())
        .args(["build", "--release", "--quiet", "-p", "harness", "--bin", "workbook", "--message-format=json"])
        .current_dir(&workspace.root)
        .output()
        .map_err(|error| format!("cannot start cargo: {error}\n  try: Install Rust from https://rustup.rs."))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable =
        messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).find_map(|message| {
            let is_ours = message["target"]["name"] == "workbook";
            message["executable"].as_str().filter(|_| is_ours).map(PathBuf::from)
        });
    executable.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("cargo gave no program ({}); it said:\n{}", output.status, said.trim_end())
    })
}

/// Kernels of a workbook, to be checked and timed on this machine's GPU.
#[derive(Debug, Parser)]
#[command(name = "bundle")]
struct Bundle {
    /// These kernels only: step03, hopper
    kernels: Vec<String>,
    /// Check the results, and take no times
    #[arg(long)]
    check_only: bool,
    #[command(flatten)]
    options: Options,
}

/// What a bundle does: every kernel checked at all its sizes, then timed.
pub fn start(contents: Contents) -> Result<ExitCode, String> {
    let Bundle { kernels: wanted, check_only, options } = Bundle::parse();
    let names: Vec<&str> = contents.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    if let Some(missing) = wanted.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("this bundle has no `{missing}`\n  try: Name one of {}.", names.join(", ")));
    }
    let chosen = contents.kernels.iter().filter(|kernel| wanted.is_empty() || wanted.contains(&kernel.name));
    let mut status = ExitCode::SUCCESS;
    for kernel in chosen {
        let Some((_, first)) = kernel.timed.first() else { continue };
        let card = card(&first.ptx)?;
        if card.about().sms != kernel.sms {
            let (there, here) = (kernel.sms, card.about().sms);
            print(&format!(
                "note: {} was built for {there} SMs, and this GPU has {here}: give `--sms {here}` to `cargo workbook bundle`\n",
                kernel.name
            ));
        }
        for (problem, built) in kernel.checked.iter().chain(&kernel.timed) {
            let against = bench::checked(&card, built, *problem)?;
            print(&format!("{} at {problem}: right ({against})\n", kernel.name));
        }
        if !check_only {
            let asked = |problem: &Problem| options.sizes.is_empty() || options.sizes.contains(&problem.m);
            let builds = kernel.timed.iter().filter(|(problem, _)| asked(problem)).cloned().map(Ok);
            if timed(&card, &kernel.name, builds, &options, bench::times)? != ExitCode::SUCCESS {
                status = ExitCode::FAILURE;
            }
        }
    }
    Ok(status)
}
