//! The kernels that the figures of the book are recorded from, and the recordings.
//!
//! Where this program holds the solutions they are built when they are asked for; the student edition has them as recipes, like the
//! [reference kernels](crate::reference_kernels). No figure holds a number that a run did not give.

use crate::problem::Problem;
use crate::recording::{self, Recording};
use crate::reference_kernels::{self, Recipe};
use crate::{launch, source::Built};
use emulator::{EventKind, Mode, Options, Report};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

/// A kernel that is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// What pages and figures call it.
    pub name: String,
    /// The kernel, its problem, and for how many SMs it was built.
    pub recipe: Recipe,
}

/// What the student edition holds for the figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The kernels.
    pub kernels: Vec<Recorded>,
    /// Published times, and the emulator's.
    pub ladder: Value,
}

/// The file with them, beside the recipes of the steps.
const FILE: &str = "figures.json.gz";

/// One tile with so many rounds that a ring of eight stages goes round twice.
#[cfg(feature = "solutions")]
const DEEP: Problem = Problem::f16(128, 64, 1024);
/// Two tiles for one CTA.
#[cfg(feature = "solutions")]
const TWO_TILES: Problem = Problem::f16(256, 128, 320);
/// A few rounds.
#[cfg(feature = "solutions")]
const ROUNDS: Problem = Problem::f16(128, 128, 192);
/// Several turns for each SM of a B200, one round each.
#[cfg(feature = "solutions")]
const MANY_TILES: Problem = Problem::f16(4096, 2048, 64);
/// Kernels of which only the order of tiles is recorded begin so.
const ORDER: &str = "order_";

/// Name, step, problem and SMs of those that are solutions.
#[cfg(feature = "solutions")]
fn solutions() -> Vec<(String, u8, Problem, u32)> {
    let mut all = Vec::new();
    let sms = crate::JudgeOptions::default().sms;
    for step in 1..=10 {
        // Those that the pages of the steps speak of; from step 6 on most CTAs have two tiles or more.
        let problem = match step {
            1 => Problem::f16(128, 128, 64),
            2 => Problem::f16(128, 128, 512),
            3..=5 => Problem::f16(256, 256, 512),
            6..=8 => Problem::f16(2048, 2304, 512),
            _ => Problem::f16(4096, 4608, 512),
        };
        all.push((format!("step{step:02}"), step, problem, sms));
    }
    all.push(("bytes_right".to_string(), 4, ROUNDS, 1));
    all.push(("protocol_right".to_string(), 7, TWO_TILES, 1));
    for step in [5, 6, 9] {
        all.push((format!("{ORDER}step{step:02}"), step, MANY_TILES, sms));
    }
    all
}

/// All kernels that are recorded.
///
/// # Errors
/// When one cannot be built, or the student edition's file of them cannot be read.
#[cfg(feature = "solutions")]
pub fn kernels() -> Result<Vec<Recorded>, String> {
    use crate::source::{InProcess, KernelSource};
    let mut all = Vec::new();
    let mut add = |name: String, kernel: ptx::KernelFn, problem: Problem, sms: u32| {
        let built = InProcess(kernel).build(&problem, sms);
        let built = built.map_err(|failure| format!("{name} does not build for {problem}: {failure}"))?;
        let kernel = reference_kernels::bare(built);
        all.push(Recorded { name, recipe: Recipe { problem, sms, kernel } });
        Ok::<(), String>(())
    };
    for (name, step, problem, sms) in solutions() {
        let kernel = reference_kernels::solution(step).ok_or_else(|| format!("step {step} has no solution here"))?;
        add(name, kernel, problem, sms)?;
    }
    for (name, step, kernel) in variants::ALL {
        let problem = match (step, name.contains("depth")) {
            (_, true) => DEEP,
            (4, _) => ROUNDS,
            _ => TWO_TILES,
        };
        add((*name).to_string(), *kernel, problem, 1)?;
    }
    Ok(all)
}

/// All kernels that are recorded.
///
/// # Errors
/// When the file of them cannot be read.
#[cfg(not(feature = "solutions"))]
pub fn kernels() -> Result<Vec<Recorded>, String> {
    held(&reference_kernels::folder()).map(|held| held.kernels)
}

/// What the student edition holds.
///
/// # Errors
/// When the file cannot be read.
pub fn held(folder: &Path) -> Result<Held, String> {
    reference_kernels::read_packed(&folder.join(FILE))
}

/// Writes what the student edition holds to the folder of the recipes.
///
/// # Errors
/// When a kernel cannot be built, a time not be simulated, or the file not be written.
#[cfg(feature = "solutions")]
pub fn write(folder: &Path, root: &Path) -> Result<usize, String> {
    let held = Held { kernels: kernels()?, ladder: ladder(root)? };
    reference_kernels::write_packed(&folder.join(FILE), &held)?;
    Ok(held.kernels.len())
}

fn simulate(kernel: &Built, problem: Problem, options: &Options) -> Result<(Report, emulator::Launch), String> {
    let program = emulator::load(&kernel.ptx).map_err(|errors| {
        errors.first().map_or("it does not load".to_string(), |error| format!("it does not load: {}", error.title))
    })?;
    let launch = launch::times_only(kernel, problem).map_err(|refused| refused.to_string())?;
    let report = emulator::run(&program, &launch, options);
    Ok((report, launch))
}

/// Whether a kernel is one of those of which only the order of tiles is recorded.
pub fn is_order(kernel: &Recorded) -> bool {
    kernel.name.starts_with(ORDER)
}

/// Whether a kernel is a step's, at the size that its page speaks of: it runs for its times, as `cargo workbook trace` does.
fn is_step(kernel: &Recorded) -> bool {
    kernel.name.strip_prefix("step").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
}

/// Runs a kernel and records the first two CTAs.
///
/// # Errors
/// When it does not run.
pub fn record(kernel: &Recorded) -> Result<Recording, String> {
    let Recipe { problem, kernel: built, sms } = &kernel.recipe;
    let failed = |why: String| format!("{} cannot be recorded: {why}", kernel.name);
    let (report, launch) = if is_step(kernel) {
        let options = Options { trace: true, mode: Mode::Time, ..Options::default() };
        simulate(built, *problem, &options).map_err(failed)?
    } else {
        // With all rules, since some are wrong; and as behind a launch of its own kind: the first loads take what later ones take.
        let options = Options { trace: true, warm_l2: true, ..Options::default() };
        let program = emulator::load(&built.ptx).map_err(|_| failed("its text does not load".to_string()))?;
        let inputs = crate::Inputs::new(*problem, crate::InputKind::Normal, 0);
        let launch = launch::launch(built, &inputs).map_err(|refused| failed(refused.to_string()))?;
        (emulator::run(&program, &launch, &options), launch)
    };
    let plural = if *sms == 1 { "" } else { "s" };
    let title = format!("{} for {problem}, built for {sms} SM{plural}", kernel.name);
    Ok(recording::record(&title, &report, &launch, 2, usize::MAX))
}

/// Which CTA loads which rows when, of a kernel with many tiles: `[begin, CTA, matrix, first row, bytes]`.
///
/// # Errors
/// When it does not run.
pub fn order(kernel: &Recorded) -> Result<Value, String> {
    let Recipe { problem, kernel: built, sms } = &kernel.recipe;
    let options = Options { trace: true, mode: Mode::Time, ..Options::default() };
    let (report, launch) = simulate(built, *problem, &options)?;
    if !report.completed {
        return Err(format!("{} does not come to its end", kernel.name));
    }
    let mut loads = Vec::new();
    let mut stores = Vec::new();
    for event in &report.trace {
        if let EventKind::Copy(copy) = &event.kind
            && let (Some(buffer), [column, row]) = (copy.buffer, copy.coordinates.as_slice())
        {
            if copy.kind == emulator::CopyKind::Load {
                loads.push(json!([event.start, event.cta, buffer, row, copy.bytes]));
            } else {
                stores.push(json!([event.start, event.cta, row, column]));
            }
        }
    }
    Ok(json!({
        "title": format!("{} for {problem}, {sms} SMs", kernel.name), "cycles": report.cycles, "m": problem.m, "n": problem.n,
        "k": problem.k, "cluster": launch.cluster, "loads": loads, "stores": stores,
    }))
}

/// Published times of a B200, and beside them what the emulator's clock says of the solutions where it is asked.
///
/// # Errors
/// When the table cannot be read, or a solution does not run.
#[cfg(feature = "solutions")]
pub fn ladder(root: &Path) -> Result<Value, String> {
    use crate::workbook::clock;
    /// One edge is enough to see the ladder; larger ones take the emulator a minute.
    const EDGE: u32 = 2048;
    let path = root.join(clock::DATA);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut points = clock::points(&text)?;
    points.sort_by_key(|point| (point.source.clone(), point.problem.m, point.step));
    let mut emulated = Vec::new();
    for step in clock::FIRST..=10 {
        let (cycles, tflops) = clock::tflops(step, Problem::f16(EDGE, EDGE, EDGE))?;
        emulated.push(json!({"step": step, "size": [EDGE, EDGE, EDGE], "cycles": cycles, "tflops": tflops}));
    }
    let published = points.iter().map(|point| {
        let Problem { m, n, k, dtype } = point.problem;
        json!({
            "source": point.source, "kernel": point.kernel, "step": point.step, "size": [m, n, k],
            "dtype": if dtype == ptx::Dtype::F16 { "fp16" } else { "bf16" }, "tflops": point.tflops, "by_elements": point.by_elements(),
        })
    });
    Ok(json!({"published": published.collect::<Vec<Value>>(), "emulator": emulated, "assumptions": clock::ASSUMPTIONS}))
}

/// Published times of a B200, and the emulator's.
///
/// # Errors
/// When the file of them cannot be read.
#[cfg(not(feature = "solutions"))]
pub fn ladder(_root: &Path) -> Result<Value, String> {
    held(&reference_kernels::folder()).map(|held| held.ladder)
}
