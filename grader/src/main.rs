//! The `grader` command: grades the reference solutions, a hand-in, or a folder of them.

mod arguments;
mod class;
mod moments;

use arguments::step_number;
use clap::{Args, Parser, Subcommand};
use grader::ahead::Ahead;
use grader::batch::seed;
use grader::bounds::bounded;
use grader::folder::Named;
use grader::formats::not_graded::{self, NotGraded};
use grader::formats::{self, Format};
use grader::handin::{HandIn, Kernel};
use grader::json::{self, About, Sandbox};
use grader::memory;
use grader::rubric::{Moment, Rubric};
use grader::sandbox::{self, Cage};
use grader::scratch::{self, ScratchError, TimeLimits};
use grader::stopped::{self, Stopped};
use grader::toolchain::Toolchain;
use grader::verdicts::{Same, Verdicts};
use grader::versions::{Versions, WORKBOOK};
use grader::{Grade, Graded};
use harness::answers::plain;
use harness::workbook::{Patience, Workspace, name};
use harness::{BuildFailure, Built, Device, InProcess, JudgeOptions, KernelSource, Problem, Step, judge};
use std::collections::{BTreeMap, BTreeSet};
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
#[command(name = "grader", version = WORKBOOK)]
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
        /// When it was handed in, for a rubric with a due date: 2026-11-30T23:59:59+01:00
        #[arg(long, value_name = "MOMENT", value_parser = Moment::parse)]
        handed_in: Option<Moment>,
        /// Says when it was handed in: Gradescope's submission_metadata.json
        #[arg(long, value_name = "FILE", conflicts_with = "handed_in")]
        metadata: Option<PathBuf>,
        /// Where a batch keeps verdicts on kernels, and finds them again
        #[arg(long, value_name = "FOLDER", hide = true)]
        verdicts: Option<PathBuf>,
        #[command(flatten)]
        trust: Trust,
    },
    /// What is enforced when a hand-in runs on this machine
    Sandbox,
    /// The rubric, as a file to begin with
    Rubric,
    #[command(flatten)]
    Class(class::Action),
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Trust {
    /// Run hand-ins without a sandbox, with all rights of this account
    #[arg(long)]
    pub(crate) trust: bool,
}

impl Trust {
    /// Where hand-ins run.
    pub(crate) fn cage(self) -> Result<Cage, String> {
        if self.trust {
            return Ok(Cage::Open);
        }
        let here = std::env::current_exe().map_err(|error| format!("cannot tell where this program lies: {error}"))?;
        Cage::locked(&here)
    }
}

#[derive(Debug, Args)]
struct Asked {
    /// What is printed, by `grade`, `solutions` and `sandbox` (that: text or json)
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Pass although a part could not be checked here (e.g. without ptxas)
    #[arg(long, global = true)]
    allow_unchecked: bool,
    /// Seed of the inputs (without it: one that is drawn, and told afterwards; 0 for `solutions`)
    #[arg(long, global = true, value_name = "N", value_parser = class::seed, allow_negative_numbers = true)]
    seed: Option<class::Seed>,
    /// What gives points, as TOML (without it: what `grader rubric` prints)
    #[arg(long, global = true, value_name = "FILE")]
    rubric: Option<PathBuf>,
    /// Only this step; may be given again (without it: all that there are)
    #[arg(long = "step", global = true, value_name = "N", value_parser = step_number, allow_negative_numbers = true)]
    steps: Vec<u8>,
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(status) = sandbox::asked(&arguments).or_else(|| harness::cuda::asked(&arguments)) {
        return status;
    }
    let mut cli = Cli::parse();
    // A step that is named twice is graded once, and counts once.
    let mut seen = BTreeSet::new();
    cli.asked.steps.retain(|step| seen.insert(*step));
    match act(&cli) {
        Ok(passed) => ExitCode::from(u8::from(!passed)),
        Err(why) => {
            // First, so that where both streams are one, what a system reads is at the end.
            let reason: Vec<String> = why.reason.lines().map(plain).collect();
            eprintln!("error: {}", reason.join("\n"));
            if let Action::Grade { .. } = cli.action {
                let steps = match cli.asked.steps.as_slice() {
                    [] => workspace().map(|workspace| workspace.steps()).unwrap_or_default(),
                    wanted => wanted.to_vec(),
                };
                let written = not_graded::render(cli.asked.format, &why, &steps);
                if let Err(error) = written.and_then(|text| print(&text)) {
                    eprintln!("error: {error}");
                }
            }
            ExitCode::from(2)
        }
    }
}

fn act(cli: &Cli) -> Result<bool, NotGraded> {
    arguments::all_used(&cli.action, &cli.asked)?;
    let rubric = cli.asked.rubric.as_deref().map(Rubric::read).transpose()?.unwrap_or_default();
    if let (Action::Grade { trust: Trust { trust: false }, .. }, Some(rubric)) = (&cli.action, &cli.asked.rubric) {
        sandbox::hidden("the rubric", rubric)?;
    }
    match &cli.action {
        Action::Rubric => {
            print(&rubric.to_toml())?;
            Ok(true)
        }
        Action::Solutions => grade(cli, rubric, None, |options| {
            Ok(Judged {
                steps: solutions(&cli.asked.steps, options)?,
                sandbox: None,
                versions: None,
                named: BTreeMap::new(),
            })
        }),
        Action::Grade { hand_in, handed_in, metadata, verdicts, trust } => {
            let created = metadata.as_deref().map(gradescope_moment).transpose()?;
            // Gradescope's file is there for each assignment, whether it has a due date or not.
            if rubric.late.is_none() && handed_in.is_some() {
                eprintln!("note: {}", grader::rubric::NOT_DUE);
            }
            grade(cli, rubric, handed_in.clone().or(created), |options| {
                self::hand_in(hand_in, *trust, verdicts.as_deref(), &cli.asked.steps, options)
            })
        }
        Action::Sandbox => Ok(sandboxed(cli.asked.format)?),
        Action::Class(action) => Ok(action.act(&cli.asked, rubric)?),
    }
}

/// When Gradescope says that a submission came.
fn gradescope_moment(path: &Path) -> Result<Moment, String> {
    const TRY: &str =
        "try: Name Gradescope's file, /autograder/submission_metadata.json, or give the moment with --handed-in.";
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}\n  {TRY}"))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("{shown}:{}: {error}\n  {TRY}", error.line()))?;
    let created = metadata.get("created_at").and_then(serde_json::Value::as_str);
    let found = || match metadata.get("created_at") {
        None => "not there".to_string(),
        Some(serde_json::Value::Array(_)) => "a list".to_string(),
        Some(serde_json::Value::Object(_)) => "a table".to_string(),
        Some(other) => other.to_string(),
    };
    let created = created.ok_or_else(|| format!("{shown}: `created_at` is {}; allowed is a text\n  {TRY}", found()))?;
    let allowed = "allowed is date, time and offset from UTC, such as 2026-11-30T23:59:59.5-08:00";
    Moment::parse(created).map_err(|_| format!("{shown}: `created_at` is {created:?}; {allowed}\n  {TRY}"))
}

/// What is enforced here.
fn sandboxed(format: Format) -> Result<bool, String> {
    let cage = Trust { trust: false }.cage()?;
    match format {
        Format::Text => print(&format!("{cage}\n"))?,
        Format::Json => {
            let enforced = serde_json::to_string_pretty(&cage.enforced()).map_err(|error| error.to_string())?;
            print(&format!("{enforced}\n"))?;
        }
        _ => return Err("`grader sandbox` prints text or JSON\n  try: --format text, or --format json.".to_string()),
    }
    Ok(true)
}

/// Prints, and does not mind a reader that went away.
///
/// # Errors
/// When it cannot be written: a disk is full. A grade that is cut off must not look like one.
fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the output: {error}\n  try: Make room where it is sent to."))
        }
        _ => Ok(()),
    }
}

/// Verdicts, and how they came about.
struct Judged {
    steps: Vec<Graded>,
    /// What was enforced while a hand-in ran.
    sandbox: Option<Sandbox>,
    /// What judged, where that was asked already.
    versions: Option<Versions>,
    /// What the kernels of steps name.
    named: BTreeMap<u8, Vec<Stopped>>,
}

/// Judges, gives points by the rubric, and prints. Gives whether everything passed.
fn grade(
    cli: &Cli,
    rubric: Rubric,
    handed_in: Option<Moment>,
    judge: impl FnOnce(&JudgeOptions) -> Result<Judged, NotGraded>,
) -> Result<bool, NotGraded> {
    let asked = &cli.asked;
    if rubric.late.is_some() && handed_in.is_none() && matches!(cli.action, Action::Grade { .. }) {
        eprintln!(
            "note: the rubric says when hand-ins are due, and nothing says when this one came (--handed-in, --metadata)"
        );
    }
    let mut options = JudgeOptions {
        device: Device::from_env(harness::steps::TARGET)?,
        demands: rubric.demands(),
        ..JudgeOptions::default()
    };
    let given = asked.seed.map(class::Seed::number).transpose()?;
    // Who knows the inputs knows D, and needs no kernel.
    let drawn = match (&cli.action, given) {
        (Action::Grade { .. }, None) => Some(seed::draw()?),
        _ => None,
    };
    let seed = given.or(drawn);
    if let Some(seed) = seed {
        options.input_seed = seed;
    }
    let judged = judge(&options)?;
    if let Some(seed) = drawn {
        // Before the grade, so that where both streams are one, what a system reads is at the end. Whoever reads may be gone.
        let _ = writeln!(
            std::io::stderr(),
            "note: the inputs were of the seed {seed}, which was drawn now; --seed {seed} gives the same again"
        );
    }
    let mut grade = Grade { steps: judged.steps, allow_unchecked: asked.allow_unchecked, seed };
    rubric.give_points(&mut grade);
    // The tools are asked only where someone reads the answer.
    let versions = match judged.versions {
        None if asked.format != Format::Text => Some(Versions::here(&workspace()?.root)),
        known => known,
    };
    let all_steps = matches!(cli.action, Action::Grade { .. }) && asked.steps.is_empty();
    let about = About { rubric, handed_in, versions, sandbox: judged.sandbox, all_steps, named: judged.named };
    print(&formats::render(asked.format, &grade, &json::report(&grade, &about))?)?;
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
                    let one = step(*number).and_then(|step| verdict(step, None, &InProcess(*kernel), &options));
                    graded.lock().unwrap_or_else(PoisonError::into_inner).push((*number, one));
                }
            });
        }
    });
    let mut graded = graded.into_inner().unwrap_or_else(PoisonError::into_inner);
    graded.sort_by_key(|(number, _)| *number);
    graded.into_iter().map(|(_, one)| one).collect()
}

fn hand_in(
    folder: &Path,
    trust: Trust,
    verdicts: Option<&Path>,
    wanted: &[u8],
    options: &JudgeOptions,
) -> Result<Judged, NotGraded> {
    let workspace = workspace()?;
    let existing = workspace.steps();
    if !trust.trust {
        sandbox::hidden("the hand-in", folder)?;
    }
    let hand_in = HandIn::open(folder, Named::ByPerson)?;
    let kernels = hand_in.find(&existing, wanted)?;
    for note in hand_in.ignored(&existing) {
        eprintln!("note: {}", plain(&note));
    }
    if matches!(options.device, Device::Emulator) {
        memory::bound();
    }
    let cage = trust.cage()?;
    eprintln!("{cage}");
    let sandbox = Sandbox::of(&cage)?;
    let tools = || Versions::here(&workspace.root);
    let known = verdicts.and_then(|folder| Verdicts::of(folder, &sandbox, options, tools));
    let mut toolchain = None;
    let (mut steps, mut found) = (Vec::new(), Vec::new());
    for kernel in &kernels {
        let text = Same::text(&kernel.text);
        if let Some(verdict) = known.as_ref().and_then(|known| known.find(kernel.step, &text, options)) {
            steps.push(Graded { file: file(kernel), verdict });
            continue;
        }
        // Not before it is needed: where all verdicts are known, nothing is compiled.
        let toolchain = match &toolchain {
            Some(ready) => ready,
            None => {
                let _patience = Patience::new("compiling what all hand-ins use …".to_string());
                toolchain.insert(Toolchain::prepare(&workspace.root)?)
            }
        };
        let (graded, built) = one(toolchain, &cage, kernel, options, known.as_ref())?;
        found.extend([Some(text), built].into_iter().flatten().map(|same| (same, graded.verdict.clone())));
        steps.push(graded);
    }
    let mut versions = known.as_ref().map(|known| known.tools.clone());
    if let (Some(known), false) = (&known, found.is_empty()) {
        // What changed meanwhile may have judged some of them.
        let now = tools();
        if now.decide_as(&known.tools) {
            for (same, verdict) in &found {
                if let Err(error) = known.keep(same, options, verdict) {
                    eprintln!("note: {error}: who hands in the same is judged anew");
                }
            }
        }
        versions = Some(now);
    }
    let named = kernels.iter().map(|kernel| (kernel.step, stopped::named(&kernel.text))).collect();
    Ok(Judged { steps, sandbox: Some(sandbox), versions, named })
}

/// The file of a kernel, as a grade names it.
fn file(kernel: &Kernel) -> Option<String> {
    Some(kernel.path.display().to_string())
}

/// The verdict on a kernel, and what others have in common with it that are built alike.
fn one(
    toolchain: &Toolchain,
    cage: &Cage,
    kernel: &Kernel,
    options: &JudgeOptions,
    known: Option<&Verdicts>,
) -> Result<(Graded, Option<Same>), String> {
    let (file, step) = (file(kernel), step(kernel.step)?);
    let _patience = Patience::new(format!("building and judging {} …", name(kernel.step)));
    let built = match scratch::build(toolchain, cage, kernel, TimeLimits::default()) {
        Ok(built) => built,
        Err(ScratchError::HandIn(failure)) => return Ok((verdict(step, file, &NoKernel(failure), options)?, None)),
        Err(ScratchError::Here(error)) => return Err(error),
    };
    // Not this checkout's file of the same name.
    let options = &JudgeOptions { sources: built.sources(), ..options.clone() };
    let source = built.source();
    let Some(known) = known else { return Ok((verdict(step, file, &source, options)?, None)) };
    let ahead = Ahead::of(&source, step, options);
    let same = ahead.same().cloned();
    if let Some(verdict) = same.as_ref().and_then(|same| known.find(step.number, same, options))
        && ahead.is_same_again()
    {
        return Ok((Graded { file, verdict }, None));
    }
    Ok((verdict(step, file, &ahead, options)?, same))
}

/// A hand-in that gave no program.
struct NoKernel(BuildFailure);

impl KernelSource for NoKernel {
    fn build(&self, _: &Problem, _: u32) -> Result<Built, BuildFailure> {
        Err(self.0.clone())
    }
}

/// A step that this program knows.
fn step(number: u8) -> Result<&'static Step, String> {
    harness::step(number).ok_or_else(|| format!("step {number} is unknown to this program"))
}

fn verdict(
    step: &Step,
    file: Option<String>,
    source: &dyn KernelSource,
    options: &JudgeOptions,
) -> Result<Graded, String> {
    let verdict = bounded(judge(step, source, options));
    match &verdict.here {
        // Nobody gets points, or none, for that.
        Some(why) => Err(format!("this machine failed while {} was graded: {why}", name(step.number))),
        None => Ok(Graded { file, verdict }),
    }
}

/// The checkout that the grader is run in, or else the one that it was built from.
fn workspace() -> Result<Workspace, String> {
    let here = std::env::current_dir().map_err(|error| format!("cannot tell the current folder: {error}"))?;
    Workspace::find(&here).or_else(|error| Workspace::find(Path::new(env!("CARGO_MANIFEST_DIR"))).map_err(|_| error))
}
