//! The `workbook` command: what students type, and what keeps their files in step with the solutions.

mod bench;
mod bundle;
mod cargo;
pub(crate) mod carry;
mod changes;
#[cfg(feature = "solutions")]
pub mod clock;
#[cfg(feature = "solutions")]
mod corpus;
mod diff;
mod doctor;
#[cfg(feature = "solutions")]
mod edition;
mod files;
pub mod inspect;
mod kernel;
mod list;
pub mod pack;
mod patience;
mod remembered;
mod run;
mod timeline;
pub mod tokens;
mod trace;
pub mod whole;
mod workspace;

pub use cargo::{Binary, test_binary};
pub use carry::carry;
pub use changes::changes;
pub use doctor::{Machine, doctor};
#[cfg(feature = "solutions")]
pub use edition::student_edition;
pub use files::{check_all, reset, write_all};
pub use inspect::{assembler, leaks, listing, open_todos, summary};
pub use list::{Row, progress, render, rows};
pub use patience::Patience;
pub use workspace::{Workspace, name, number};

use crate::diagnostics::{self, Sources};
use crate::steps::hopper::HOPPER;
use crate::{BuildFailure, Emitted, InProcess, JudgeOptions, KernelSource, Problem, reference_kernels};
use clap::{Parser, Subcommand};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Learn to write Blackwell tensor-core kernels, one step at a time.
#[derive(Debug, Parser)]
#[command(name = "cargo workbook", bin_name = "cargo workbook")]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// All steps, and how far you are with each
    List {
        /// Judge all of them, also those that are as they were when they were judged last
        #[arg(long)]
        fresh: bool,
    },
    /// Build a step and run its test: the verdict
    Run {
        /// The step: step01, 01 or 1; or `hopper`: the kernel for an H100 or H200
        step: String,
        /// Passed on to the test, e.g. `--list`, or a part of a test's name
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// The PTX of a step, each instruction under the Rust line that wrote it
    Inspect {
        /// The step: step01, 01 or 1
        step: String,
        /// The problem: MxNxK, or MxNxK:bf16 (without it: the first size that the step is tested with)
        #[arg(long, value_name = "MxNxK", value_parser = self::size)]
        size: Option<Problem>,
        /// Write what happens when in place of it: a simulated timeline of warps and engines, for ui.perfetto.dev
        #[arg(long, value_name = "FILE.json")]
        timeline: Option<PathBuf>,
        /// Show the reference solution in place of your file
        #[cfg(feature = "solutions")]
        #[arg(long)]
        solution: bool,
    },
    /// What the warps and engines of a step do when, simulated: a page that opens in any browser, without a network
    Trace {
        /// The step: step01, 01 or 1; or `hopper`: the kernel for an H100 or H200
        step: String,
        /// The problem: MxNxK, or MxNxK:bf16 (without it: the first size that the step is tested with)
        #[arg(long, value_name = "MxNxK", value_parser = self::size)]
        size: Option<Problem>,
        /// The page (without it: one for each step, below target/trace)
        #[arg(long, short, value_name = "FILE.html")]
        out: Option<PathBuf>,
        /// Also write the timeline for ui.perfetto.dev
        #[arg(long, value_name = "FILE.json")]
        perfetto: Option<PathBuf>,
        /// CTAs that the page shows, made up to whole clusters
        #[arg(long, value_name = "CTAS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
        ctas: u32,
        /// Open the page in the browser
        #[arg(long)]
        open: bool,
        /// Show the reference solution in place of your file
        #[cfg(feature = "solutions")]
        #[arg(long)]
        solution: bool,
    },
    /// What changes from one step to another: launch, barriers, memory, instructions, source
    Diff {
        /// The step to begin with: step06, 06 or 6
        from: String,
        /// The step to compare it with
        to: String,
        /// The problem: MxNxK, or MxNxK:bf16 (without it: one that both steps take)
        #[arg(long, value_name = "MxNxK", value_parser = self::size)]
        size: Option<Problem>,
        /// Compare your own files in place of the solutions
        #[arg(long)]
        mine: bool,
    },
    /// Put a step's untouched file back; yours is kept under .workbook/backup
    Reset {
        /// The step: step01, 01 or 1
        step: String,
    },
    /// Copy your finished code of one step into the untouched TODOs of a later one, where it fits
    Carry {
        /// The step to take from: step04, 04 or 4
        from: String,
        /// The later step
        to: String,
        /// Also put code that must change there, as comments
        #[arg(long)]
        as_comments: bool,
    },
    /// Write the file that you hand in: the kernels of the steps that are done
    Pack {
        /// The file
        #[arg(long, short, value_name = "FILE", default_value = "handin.tar")]
        out: PathBuf,
        /// Only this step, done or not; may be given again
        #[arg(long = "step", value_name = "STEP")]
        steps: Vec<String>,
        /// Also kernels that do not compile
        #[arg(long)]
        anyway: bool,
    },
    /// What this machine can do, and what to do about what is missing
    Doctor,
    /// Time a kernel on this machine's GPU, beside cuBLAS
    Bench {
        /// The step, or `hopper`: the kernel for an H100 or H200
        kernel: String,
        /// The reference solution in place of your file
        #[cfg(feature = "solutions")]
        #[arg(long)]
        solution: bool,
        #[command(flatten)]
        options: bench::Options,
    },
    /// Write one file that checks and times your kernels on a GPU machine without Rust
    Bundle {
        /// The steps, e.g. 1,3,5; or `hopper`
        #[arg(value_delimiter = ',', required = true)]
        kernels: Vec<String>,
        /// The reference solutions in place of your files
        #[cfg(feature = "solutions")]
        #[arg(long)]
        solution: bool,
        /// The file
        #[arg(long, short, value_name = "FILE", default_value = "workbook-bundle")]
        out: PathBuf,
        /// Edges of the cubes that are timed (without it: those of the step)
        #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65536))]
        sizes: Vec<u32>,
        /// Streaming multiprocessors of the GPU (without it: 148, for `hopper` 132)
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
        sms: Option<u32>,
    },
    /// The emulator's times beside published ones of a B200
    #[cfg(feature = "solutions")]
    Clock {
        /// This step only: step04, 04 or 4
        #[arg(long)]
        step: Option<String>,
        /// Also points of other sources: other kernels than ours, beside the nearest step
        #[arg(long)]
        all: bool,
        /// How to print
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// What the emulator says of the solutions with one thing wrong
    #[cfg(feature = "solutions")]
    Corpus {
        #[command(flatten)]
        options: corpus::Options,
    },
    /// For authors: make the files in steps/ from the solutions
    #[cfg(feature = "solutions")]
    Skeletons {
        /// Change nothing; fail with the differences if there are any
        #[arg(long)]
        check: bool,
    },
    /// For teachers: write the tree that a course hands out, without solutions
    #[cfg(feature = "solutions")]
    StudentEdition {
        /// A folder that does not exist yet, or is empty
        dir: PathBuf,
    },
}

/// How to print.
#[cfg(feature = "solutions")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table
    Text,
    /// All numbers
    Json,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    // A mistake of ours must not reach a student as a backtrace.
    std::panic::set_hook(Box::new(|info| {
        eprintln!("error: the workbook itself has a mistake, please report it: {info}");
    }));
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(status) = crate::cuda::asked(&arguments) {
        return status;
    }
    let bundled = std::env::current_exe().map_or(Ok(None), |program| crate::bundle::read(&program));
    match bundled.and_then(|contents| contents.map(bundle::start).transpose()) {
        Ok(Some(status)) => return status,
        Ok(None) if cut_off() => {
            eprintln!(
                "error: this program is not named `workbook`, and carries no kernels: as a bundle it is cut off\n  \
                 try: Copy it again, as a binary file."
            );
            return ExitCode::FAILURE;
        }
        Ok(None) => {}
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    let cli = Cli::parse();
    let workspace = std::env::current_dir()
        .map_err(|error| format!("cannot tell the current folder: {error}"))
        .and_then(|folder| Workspace::find(&folder));
    match workspace.and_then(|workspace| act(&workspace, cli.action)) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether this program has the name of a bundle.
fn cut_off() -> bool {
    let named = std::env::current_exe().is_ok_and(|program| program.file_stem().is_some_and(|stem| stem == "workbook"));
    !named
}

fn act(workspace: &Workspace, action: Action) -> Result<ExitCode, String> {
    match action {
        Action::List { fresh } => {
            let options = JudgeOptions::from_env()?;
            print(&render(&rows(workspace, &options, fresh)));
        }
        #[cfg(feature = "solutions")]
        Action::Run { step, args } if step == kernel::HOPPER && args.is_empty() => return run::hopper(),
        Action::Run { step, args } => return run::step(workspace, workspace.named(&step)?, &args),
        Action::Inspect {
            step,
            size,
            timeline,
            #[cfg(feature = "solutions")]
            solution,
        } => {
            #[cfg(not(feature = "solutions"))]
            let solution = false;
            let step = step_or_hopper(workspace, &step)?;
            print(&inspect_step(workspace, step, size, timeline.as_deref(), solution)?);
        }
        Action::Trace {
            step,
            size,
            out,
            perfetto,
            ctas,
            open,
            #[cfg(feature = "solutions")]
            solution,
        } => {
            #[cfg(not(feature = "solutions"))]
            let solution = false;
            let step = step_or_hopper(workspace, &step)?;
            let options = trace::Options { out, perfetto, ctas, open, solution };
            let (problem, built) = built(workspace, step, size, solution)?;
            print(&trace::trace(workspace, step, problem, &built, &options)?);
        }
        Action::Diff { from, to, size, mine } => {
            let steps = [workspace.named(&from)?, workspace.named(&to)?];
            print(&changes(workspace, steps, size, mine, |step| binary(workspace, step))?);
        }
        Action::Reset { step } => print(&reset(workspace, workspace.named(&step)?)?),
        Action::Carry { from, to, as_comments } => {
            print(&carry(workspace, workspace.named(&from)?, workspace.named(&to)?, as_comments)?);
        }
        Action::Pack { out, steps, anyway } => {
            let mut steps = steps.iter().map(|step| workspace.named(step)).collect::<Result<Vec<u8>, _>>()?;
            steps.sort_unstable();
            steps.dedup();
            let compile = |step| {
                let _patience = Patience::new(format!("compiling {} …", name(step)));
                test_binary(workspace, step)
            };
            let compiled = if anyway { pack::Compiled::Anyway(&compile) } else { pack::Compiled::Must(&compile) };
            print(&pack::pack(workspace, &steps, &out, compiled)?);
        }
        Action::Doctor => print(&doctor(&Machine::look())),
        Action::Bench {
            kernel,
            #[cfg(feature = "solutions")]
            solution,
            options,
        } => {
            #[cfg(not(feature = "solutions"))]
            let solution = false;
            return bench::bench(workspace, &kernel, solution, &options);
        }
        Action::Bundle {
            kernels,
            #[cfg(feature = "solutions")]
            solution,
            out,
            sizes,
            sms,
        } => {
            #[cfg(not(feature = "solutions"))]
            let solution = false;
            print(&bundle::write(workspace, &kernels, solution, &out, &sizes, sms)?);
        }
        #[cfg(feature = "solutions")]
        Action::Clock { step, all, format } => {
            let step = step.map(|step| workspace.named(&step)).transpose()?;
            if format == Format::Json {
                print(&clock::json(&clock::rows(workspace, step, all, |_| ())?));
                return Ok(ExitCode::SUCCESS);
            }
            let mut begun = false;
            let rows = clock::rows(workspace, step, all, |row| {
                print(&(if begun { String::new() } else { clock::header() } + &clock::line(row)));
                begun = true;
            })?;
            print(&clock::summary(&rows));
        }
        #[cfg(feature = "solutions")]
        Action::Corpus { options } => return corpus::corpus(&options),
        #[cfg(feature = "solutions")]
        Action::Skeletons { check: true } => print(&check_all(workspace)?),
        #[cfg(feature = "solutions")]
        Action::StudentEdition { dir } => {
            let _patience = Patience::new("writing the student edition …");
            print(&student_edition(workspace, &dir)?);
        }
        #[cfg(feature = "solutions")]
        Action::Skeletons { check: false } => print(&write_all(workspace)?),
    }
    Ok(ExitCode::SUCCESS)
}

/// A problem. The value itself is in clap's message already.
fn size(text: &str) -> Result<Problem, String> {
    text.parse().map_err(|error: crate::problem::ProblemError| {
        let said = error.to_string();
        let said = said.strip_prefix(&format!("`{text}` is not a problem size: ")).unwrap_or(&said);
        said.strip_prefix(&format!("found `{text}`, ")).unwrap_or(said).to_string()
    })
}

/// Writes to stdout. A reader that went away (`| head`) is no error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// A step's test binary, or the compiler's errors.
fn binary(workspace: &Workspace, step: u8) -> Result<PathBuf, String> {
    let _patience = Patience::new(format!("building {} …", name(step)));
    match test_binary(workspace, step)? {
        Binary::Ready(path) => Ok(path),
        Binary::DoesNotCompile { rendered, .. } => {
            Err(format!("{} does not compile\n\n{}", name(step), rendered.trim_end()))
        }
    }
}

/// A step, or the kernel for Hopper, as a user names it.
fn step_or_hopper(workspace: &Workspace, text: &str) -> Result<u8, String> {
    if text == kernel::HOPPER { Ok(HOPPER) } else { workspace.named(text) }
}

/// The kernel of a step at a problem, without one at the first that it is tested with: the student's, or the solution.
fn built(
    workspace: &Workspace,
    step: u8,
    size: Option<Problem>,
    solution: bool,
) -> Result<(Problem, crate::Built), String> {
    let known = crate::step(step).ok_or_else(|| format!("{} is unknown to this program", name(step)))?;
    let first = known.sizes.first().copied().unwrap_or(Problem::f16(128, 128, 64));
    let problem = size.unwrap_or(first);
    let source: Box<dyn KernelSource> = if solution || step == HOPPER {
        let kernel = reference_kernels::solution(step);
        Box::new(InProcess(kernel.ok_or_else(|| format!("{} has no solution in this program", name(step)))?))
    } else {
        Box::new(Emitted::new(binary(workspace, step)?))
    };
    let sms = kernel::sms_for(&name(step));
    let built = source.build(&problem, sms).map_err(|failure| {
        let why = match &failure {
            BuildFailure::Rejected(errors) => {
                let sources = Sources::at(&workspace.root);
                diagnostics::first_few(errors.iter().map(|error| diagnostics::refused(error, &sources)).collect()).text
            }
            other => other.to_string(),
        };
        format!("there is no kernel to show\n\n{}", crate::report::paint(why.trim_end()).trim_end())
    })?;
    Ok((problem, built))
}

/// Lines of files of the workspace, each file read once.
fn source_lines(workspace: &Workspace) -> impl FnMut(&str, u32) -> Option<String> {
    let mut files: HashMap<String, Vec<String>> = HashMap::new();
    let root = workspace.root.clone();
    move |file: &str, number: u32| {
        let lines = files.entry(file.to_string()).or_insert_with(|| {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            text.lines().map(str::to_string).collect()
        });
        lines.get(usize::try_from(number).ok()?.checked_sub(1)?).cloned()
    }
}

fn inspect_step(
    workspace: &Workspace,
    step: u8,
    size: Option<Problem>,
    timeline: Option<&Path>,
    solution: bool,
) -> Result<String, String> {
    let (problem, built) = built(workspace, step, size, solution)?;
    if let Some(path) = timeline {
        return timeline::write(path, &built, problem, step);
    }
    let mut line = source_lines(workspace);
    let whose = if solution { "the solution of " } else { "" };
    let mut text = format!("{whose}{} for {problem}\n\n", name(step));
    text.push_str(&listing(&built, &mut line));
    text.push('\n');
    text.push_str(&summary(&built));
    text.push_str(&assembler(&crate::ptxas::assemble(&built.ptx)));
    text.push_str(&open_todos(&built));
    text.push_str(&leaks(&built));
    Ok(text)
}
