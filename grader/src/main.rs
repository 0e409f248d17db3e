//! The `grader` command: grades the reference solutions, or a hand-in.

use clap::{Args, Parser, Subcommand, ValueEnum};
use grader::handin::{self, Kernel};
use grader::sandbox::{self, Cage};
use grader::scratch::{self, ScratchError, TimeLimits};
use grader::toolchain::Toolchain;
use grader::{Grade, Graded, json, table};
use harness::workbook::{Patience, Workspace, name};
use harness::{BuildFailure, Built, Device, InProcess, JudgeOptions, KernelSource, Problem, judge};
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Grades kernels in five parts: correct, race-free, structure, resources, fast.
///
/// The exit status is 0 only if everything that was asked for passed, 1 if not, and 2 if it could not be graded.
#[derive(Debug, Parser)]
#[command(name = "grader")]
struct Cli {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// The reference solutions
    Solutions,
    /// What was handed in: a folder, or the archive that `cargo workbook pack` writes
    Grade {
        /// Holds steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs or step01.rs
        hand_in: PathBuf,
        #[command(flatten)]
        trust: Trust,
    },
    /// What is enforced when a hand-in runs on this machine
    Sandbox,
}

#[derive(Clone, Copy, Debug, Args)]
struct Trust {
    /// Run hand-ins without a sandbox, with all rights of this account
    #[arg(long)]
    trust: bool,
}

impl Trust {
    /// Where hand-ins run.
    fn cage(self) -> Result<Cage, String> {
        if self.trust {
            return Ok(Cage::Open);
        }
        let here = std::env::current_exe().map_err(|error| format!("cannot tell where this program lies: {error}"))?;
        Cage::locked(&here)
    }
}

#[derive(Debug, Args)]
struct Asked {
    /// What is printed
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Pass although a part could not be checked here (e.g. without ptxas)
    #[arg(long, global = true)]
    allow_unchecked: bool,
    /// Seed of the inputs
    #[arg(long, global = true, value_name = "N")]
    seed: Option<u64>,
    /// Only this step; may be given again (without it: all that there are)
    #[arg(long = "step", global = true, value_name = "N", value_parser = step_number)]
    steps: Vec<u8>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A table, then what did not pass
    Text,
    /// One JSON object; docs/grader.md describes it
    Json,
}

/// A step: `1`, `01` or `step01`.
fn step_number(text: &str) -> Result<u8, String> {
    let number = harness::workbook::number(text.strip_prefix("step").unwrap_or(text));
    number.ok_or_else(|| "a step is a number from 1 to 99, such as 1, 01 or step01".to_string())
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(status) = sandbox::asked(&arguments).or_else(|| harness::cuda::asked(&arguments)) {
        return status;
    }
    let cli = Cli::parse();
    match act(&cli) {
        Ok(passed) => ExitCode::from(u8::from(!passed)),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn act(cli: &Cli) -> Result<bool, String> {
    if let Action::Sandbox = cli.action {
        let cage = Trust { trust: false }.cage()?;
        match cli.asked.format {
            Format::Text => println!("{cage}"),
            Format::Json => {
                println!("{}", serde_json::to_string_pretty(&cage.enforced()).map_err(|error| error.to_string())?);
            }
        }
        return Ok(true);
    }
    let mut options = JudgeOptions { device: Device::from_env(harness::steps::TARGET)?, ..JudgeOptions::default() };
    if let Some(seed) = cli.asked.seed {
        options.input_seed = seed;
    }
    let steps = match &cli.action {
        Action::Solutions => solutions(&cli.asked.steps, &options)?,
        Action::Grade { hand_in, trust } => self::hand_in(hand_in, *trust, &cli.asked.steps, &options)?,
        Action::Sandbox => Vec::new(),
    };
    let grade = Grade { steps, allow_unchecked: cli.asked.allow_unchecked, seed: cli.asked.seed };
    let text = match cli.asked.format {
        Format::Text => table::render(&grade),
        Format::Json => json::render(&grade)?,
    };
    // A reader that went away is no error of the grade.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(grade.passed())
}

fn solutions(wanted: &[u8], options: &JudgeOptions) -> Result<Vec<Graded>, String> {
    if let Some(step) = wanted.iter().find(|step| !solutions::ALL.iter().any(|(number, _)| number == *step)) {
        let all: Vec<String> = solutions::ALL.iter().map(|(number, _)| number.to_string()).collect();
        return Err(format!(
            "there is no solution of step {step}\n  try: Name one that has a solution: {}.",
            all.join(", ")
        ));
    }
    let asked = |number: &u8| wanted.is_empty() || wanted.contains(number);
    let chosen: Vec<_> = solutions::ALL.iter().copied().filter(|(number, _)| asked(number)).collect();
    // Steps side by side, each on one thread, use the cores better than one step after the other on all of them. The last
    // steps take longest, so they come first.
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(chosen.len()).max(1);
    let options = match chosen.len() {
        1 => options.clone(),
        _ => JudgeOptions { threads: Some(NonZeroUsize::MIN), ..options.clone() },
    };
    let (next, graded) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((number, kernel)) = chosen.iter().rev().nth(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = verdict(*number, None, &InProcess(*kernel), &options);
                    graded.lock().unwrap_or_else(PoisonError::into_inner).push((*number, one));
                }
            });
        }
    });
    let mut graded = graded.into_inner().unwrap_or_else(PoisonError::into_inner);
    graded.sort_by_key(|(number, _)| *number);
    graded.into_iter().map(|(_, one)| one).collect()
}

fn hand_in(folder: &Path, trust: Trust, wanted: &[u8], options: &JudgeOptions) -> Result<Vec<Graded>, String> {
    let workspace = workspace()?;
    let existing = workspace.steps();
    let kernels = handin::find(folder, &existing, wanted)?;
    for note in handin::ignored(folder, &existing) {
        eprintln!("note: {note}");
    }
    let cage = trust.cage()?;
    eprintln!("{cage}");
    let toolchain = {
        let _patience = Patience::new("compiling what all hand-ins use …".to_string());
        Toolchain::prepare(&workspace.root)?
    };
    kernels.iter().map(|kernel| one(&toolchain, &cage, kernel, options)).collect()
}

fn one(toolchain: &Toolchain, cage: &Cage, kernel: &Kernel, options: &JudgeOptions) -> Result<Graded, String> {
    let file = Some(kernel.path.display().to_string());
    let _patience = Patience::new(format!("building and judging {} …", name(kernel.step)));
    match scratch::build(toolchain, cage, kernel, TimeLimits::default()) {
        Ok(built) => {
            // Not this checkout's file of the same name.
            let options = JudgeOptions { sources: built.sources(), ..options.clone() };
            verdict(kernel.step, file, &built.source(), &options)
        }
        Err(ScratchError::HandIn(failure)) => verdict(kernel.step, file, &NoKernel(failure), options),
        Err(ScratchError::Here(error)) => Err(error),
    }
}

/// A hand-in that gave no program.
struct NoKernel(BuildFailure);

impl KernelSource for NoKernel {
    fn build(&self, _: &Problem, _: u32) -> Result<Built, BuildFailure> {
        Err(self.0.clone())
    }
}

fn verdict(
    number: u8,
    file: Option<String>,
    source: &dyn KernelSource,
    options: &JudgeOptions,
) -> Result<Graded, String> {
    let step = harness::step(number).ok_or_else(|| format!("step {number} is unknown to this program"))?;
    Ok(Graded { file, verdict: judge(step, source, options) })
}

/// The checkout that the grader is run in, or else the one that it was built from.
fn workspace() -> Result<Workspace, String> {
    let here = std::env::current_dir().map_err(|error| format!("cannot tell the current folder: {error}"))?;
    Workspace::find(&here).or_else(|error| Workspace::find(Path::new(env!("CARGO_MANIFEST_DIR"))).map_err(|_| error))
}
