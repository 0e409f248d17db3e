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
use std::collections::BTreeSet;
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
    /// Write all samples to this file, as JSON, after each size
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a picture to this file, after each size
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Options {
    /// What asks for times, by its name.
    fn of_times(&self) -> [(&'static str, bool); 4] {
        [
            ("--rounds", self.rounds.is_some()),
            ("--predict", self.predict),
            ("--json", self.json.is_some()),
            ("--svg", self.svg.is_some()),
        ]
    }

    /// The same, for one of several kernels: `out.step07.json` in place of `out.json`.
    fn of(&self, kernel: &str) -> Options {
        let named = |path: &PathBuf| match path.extension() {
            Some(ending) => path.with_extension(format!("{kernel}.{}", ending.to_string_lossy())),
            None => path.with_extension(kernel),
        };
        Options { json: self.json.as_ref().map(named), svg: self.svg.as_ref().map(named), ..self.clone() }
    }

    fn asks_for(&self, problem: &Problem) -> bool {
        self.sizes.is_empty() || self.sizes.contains(&problem.m)
    }

    /// Edges that are asked for, and that none of these problems has.
    fn missing<'a>(&self, problems: impl Iterator<Item = &'a Problem> + Clone) -> Vec<u32> {
        self.sizes.iter().copied().filter(|edge| problems.clone().all(|problem| problem.m != *edge)).collect()
    }
}

/// `1024, 2048`.
fn list<T: std::fmt::Display>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
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
        Some(todo) => Err(format!(
            "{name} is not done yet: TODO {} is open ({})\n  try: Finish it first, or take `--solution` where the solutions are.",
            todo.id, todo.place
        )),
        None => Ok(built),
    }
}

/// What else to do where there is no GPU.
const OR_BUNDLE: &str = " Or carry the kernels to a machine that has one: cargo workbook bundle.";

/// The GPU that runs this PTX; without one, the error says what `else_try` says, too.
fn card(ptx: &str, else_try: &str) -> Result<Card, String> {
    let choice = Target::of(ptx).map_or(Choice::Any, Choice::Runs);
    let about = Gpu::choose(&choice).map_err(|why| format!("{why}\n  try: {}{else_try}", why.way_out()))?;
    Ok(Card::new(about))
}

/// Streaming multiprocessors that a kernel is built for where no GPU says it: those of the GPU that runs its PTX.
pub(super) fn sms_for(kernel: &str) -> u32 {
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
    let card = card(&first.ptx, OR_BUNDLE)?;
    let sms = card.about().sms;
    let builds = problems.into_iter().map(|problem| Ok((problem, build(&*source, &name, &problem, sms)?)));
    timed(&card, bench::begin(&name, Machine::of(&card)), builds, options, bench::series)
}

/// Samples that were taken before, of this kernel.
fn shown(source: &dyn KernelSource, name: &str, path: &Path, options: &Options) -> Result<ExitCode, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{} holds no samples: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut benchmark: Benchmark = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    if benchmark.kernel != name {
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
            let built = build(source, name, &series.problem, machine.sms)?;
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
fn timed(
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

/// Writes a bundle of these kernels: `1,3,5`, `hopper`.
pub fn write_bundle(
    workspace: &Workspace,
    kernels: &[String],
    solution: bool,
    out: &Path,
    edges: &[u32],
    sms: Option<u32>,
) -> Result<String, String> {
    may_be_written(out)?;
    let mut carried = Vec::new();
    for kernel in kernels {
        let (name, source) = source(workspace, kernel, solution)?;
        // It is typed, and part of a file's name.
        let name = name.replace(", the ", "-");
        // `7,step07`: once.
        if carried.iter().any(|before: &Carried| before.name == name) {
            continue;
        }
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

/// A bundle takes the place of a bundle, and of no other file.
fn may_be_written(out: &Path) -> Result<(), String> {
    let file = out.display();
    if out.is_dir() {
        return Err(format!("{file} is a folder\n  try: Name a file: -o {}", out.join("bundle").display()));
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(format!("there is no folder {}\n  try: Make it first, or name another file.", folder.display()));
    }
    // A damaged one may go.
    if out.exists() && matches!(bundle::read(out), Ok(None)) {
        return Err(format!("{file} is there, and is no bundle\n  try: Name another file: -o FILE."));
    }
    Ok(())
}

/// This program, optimised: D is checked on the CPU there.
fn program(workspace: &Workspace) -> Result<PathBuf, String> {
    let _patience =
        Patience::new("building the program that the bundle is, optimised; the first time that takes minutes …");
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
///
/// Of several kernels, each has files of its own: `--json out.json` writes out.step07.json and out.step08.json.
#[derive(Debug, Parser)]
#[command(name = "bundle", mut_arg("samples", |samples| samples.hide(true)))]
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
    let asked = Bundle::parse();
    let chosen = chosen(&contents, &asked)?;
    let Bundle { check_only, options, .. } = asked;
    let several = chosen.len() > 1;
    let mut status = ExitCode::SUCCESS;
    for kernel in chosen {
        let missing = options.missing(kernel.timed.iter().map(|(problem, _)| problem));
        if !missing.is_empty() {
            print(&format!("note: {} has no size {} here\n", kernel.name, list(missing)));
        }
        let builds: Vec<(Problem, Built)> =
            kernel.timed.iter().filter(|(problem, _)| options.asks_for(problem)).cloned().collect();
        let Some((_, first)) = builds.first() else { continue };
        let card = card(&first.ptx, "")?;
        if card.about().sms != kernel.sms {
            let (there, here) = (kernel.sms, card.about().sms);
            print(&format!(
                "note: {} was built for {there} SMs, and this GPU has {here}: give `--sms {here}` to `cargo workbook bundle`\n",
                kernel.name
            ));
        }
        for (problem, built) in kernel.checked.iter().chain(&builds) {
            let against = bench::checked(&card, built, *problem)?;
            print(&format!("{} at {problem}: right ({against})\n", kernel.name));
        }
        if !check_only {
            let options = if several { options.of(&kernel.name) } else { options.clone() };
            let benchmark = bench::begin(&kernel.name, Machine::of(&card));
            if timed(&card, benchmark, builds.into_iter().map(Ok), &options, bench::times)? != ExitCode::SUCCESS {
                status = ExitCode::FAILURE;
            }
        }
    }
    Ok(status)
}

/// The kernels that are asked for. What a bundle cannot do is refused before anything runs.
fn chosen<'a>(contents: &'a Contents, asked: &Bundle) -> Result<Vec<&'a Carried>, String> {
    let Bundle { kernels: wanted, check_only, options } = asked;
    let names: Vec<&str> = contents.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    if let Some(missing) = wanted.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("this bundle has no `{missing}`\n  try: Name one of {}.", names.join(", ")));
    }
    if let Some(path) = &options.samples {
        return Err(format!(
            "a bundle takes new times and shows no old ones: `--samples {0}`\n  try: In the checkout, \
             cargo workbook bench KERNEL --samples {0}.",
            path.display()
        ));
    }
    if let Some((option, _)) = options.of_times().iter().find(|(_, given)| *check_only && *given) {
        return Err(format!(
            "`--check-only` takes no times, and `{option}` is about times\n  try: Leave one of them out."
        ));
    }
    let chosen: Vec<&Carried> =
        contents.kernels.iter().filter(|kernel| wanted.is_empty() || wanted.contains(&kernel.name)).collect();
    let sizes = chosen.iter().flat_map(|kernel| kernel.timed.iter().map(|(problem, _)| problem));
    let missing = options.missing(sizes.clone());
    if !missing.is_empty() {
        let there: BTreeSet<u32> = sizes.map(|problem| problem.m).collect();
        return Err(format!(
            "no kernel here has the size {}\n  try: Give `--sizes` some of {}, or `cargo workbook bundle` others.",
            list(missing),
            list(there)
        ));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Round;
    use crate::cuda::work::{Reply, Work};
    use expect_test::expect;

    fn carried(name: &str, edges: &[u32]) -> Carried {
        let timed = edges.iter().map(|&n| (Problem::f16(n, n, n), Built::default())).collect();
        Carried { name: name.into(), sms: 132, timed, checked: Vec::new() }
    }

    /// What a bundle is asked for and cannot do is refused, with a way out.
    #[test]
    fn a_bundle_refuses_what_it_does_not_honour() {
        let kernels = vec![carried("step01", &[1024]), carried("step07", &[1024, 4096])];
        let contents = Contents { version: "1".into(), kernels };
        let asked = |line: &str| {
            let bundle = Bundle::try_parse_from(line.split(' ')).expect(line);
            chosen(&contents, &bundle).map(|chosen| list(chosen.iter().map(|kernel| &kernel.name)))
        };
        assert_eq!(asked("bundle --sizes 4096 --json out.json").as_deref(), Ok("step01, step07"));
        assert_eq!(asked("bundle step07 --check-only --sizes 1024").as_deref(), Ok("step07"));
        let refused: String = [
            "bundle step02",
            "bundle --samples out.json",
            "bundle --check-only --json out.json",
            "bundle --sizes 1024,3000",
            "bundle step01 --sizes 4096",
        ]
        .iter()
        .map(|line| asked(line).expect_err(line) + "\n")
        .collect();
        expect![[r#"
            this bundle has no `step02`
              try: Name one of step01, step07.
            a bundle takes new times and shows no old ones: `--samples out.json`
              try: In the checkout, cargo workbook bench KERNEL --samples out.json.
            `--check-only` takes no times, and `--json` is about times
              try: Leave one of them out.
            no kernel here has the size 3000
              try: Give `--sizes` some of 1024, 4096, or `cargo workbook bundle` others.
            no kernel here has the size 4096
              try: Give `--sizes` some of 1024, or `cargo workbook bundle` others.
        "#]]
        .assert_eq(&refused);
    }

    #[test]
    fn each_of_several_kernels_has_its_files() {
        let bundle = Bundle::try_parse_from(["bundle", "--json", "a/out.json", "--svg", "out"]).expect("options");
        let options = bundle.options.of("step07");
        assert_eq!(options.json.as_deref(), Some(Path::new("a/out.step07.json")));
        assert_eq!(options.svg.as_deref(), Some(Path::new("out.step07")));
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
        let line = ["bundle", "--rounds", "20", "--json"].map(PathBuf::from);
        let options = Bundle::try_parse_from(line.into_iter().chain([file.clone()])).expect("options").options;
        let machine = Machine { gpu: "NVIDIA H200".into(), uuid: "GPU-1".into(), driver: "1".into(), sms: 132 };
        let builds = [1024, 2048, 4096].map(|n| Ok((Problem::f16(n, n, n), Built::default())));
        let begun = bench::begin("step07", machine);
        let ended = timed(&FailsAt(4096), begun, builds.into_iter(), &options, bench::times);
        assert_eq!(ended.map(|_| ()), Err("4096x4096x4096 f16: the kernel met an error".to_string()));
        let kept: Benchmark = serde_json::from_str(&std::fs::read_to_string(&file).expect("there")).expect("samples");
        let sizes: Vec<(u32, usize)> =
            kept.series.iter().map(|series| (series.problem.m, series.rounds.len())).collect();
        assert_eq!(sizes, [(1024, 20), (2048, 20)]);
        // What is shown is not written over what was kept.
        let options = Options { samples: Some(file.clone()), rounds: None, sizes: vec![1024], ..options };
        let error = shown(&InProcess(|_, _| ()), "step07", &file, &options).expect_err("the same file");
        assert!(error.contains("would write what is shown over the samples"), "{error}");
        let options = Options { json: None, sizes: vec![1024, 3000], ..options };
        let error = shown(&InProcess(|_, _| ()), "step07", &file, &options).expect_err("no such size");
        assert!(error.ends_with("has no size 3000\n  try: Give `--sizes` one that it has: 1024, 2048."), "{error}");
    }
}
