//! The process that works on the GPU: it reads what is asked, and writes each answer when it has it.

use super::verify;
use super::work::{Bench, Check, Checked, Reply, Work};
use super::{CudaFailure, TIMEOUT, leave_with_the_parent, prepare, refused, run_for, run_marked, timed};
use crate::bench::{BATCH, Round, median};
use crate::inputs::{InputKind, Inputs, to_bytes};
use crate::launch;
use crate::problem::Problem;
use crate::source::{Built, Matrix};
use crate::waits;
use device::nvml::{Nvml, State};
use device::{Choice, Cublas, Event, Gpu, Product, Type, Unavailable};
use ptx::Dtype;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The argument that makes a program of ours this process: `--on-gpu FOLDER`.
pub(super) const ARGUMENT: &str = "--on-gpu";

/// The exit status when nothing can be run: the request is none, there is no GPU.
pub(super) const CANNOT: i32 = 1;

/// What is asked: `request.json` in the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// The GPU.
    pub(super) uuid: String,
    /// The work, in order.
    pub(super) work: Vec<Work>,
}

/// The file of an answer.
pub(super) fn file(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("reply{index}.json"))
}

/// The file that is there while the kernel of a [`Check`] runs.
pub(super) fn mark(folder: &Path) -> PathBuf {
    folder.join("running")
}

/// The file of the request.
pub(super) fn request(folder: &Path) -> PathBuf {
    folder.join("request.json")
}

/// For the main of every program that judges: if these are the arguments of the process that works on the GPU, does that and
/// gives the exit status.
pub fn asked(arguments: &[OsString]) -> Option<ExitCode> {
    let [first, folder] = arguments else { return None };
    if first.to_str() != Some(ARGUMENT) {
        return None;
    }
    Some(match answer(Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(CANNOT as u8)
        }
    })
}

/// Answers the request in a folder. A kernel that hangs or takes the context with it ends the process, behind its answer.
fn answer(folder: &Path) -> Result<(), String> {
    let path = request(folder);
    let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let request: Request =
        serde_json::from_str(&text).map_err(|error| format!("{} is no request: {error}", path.display()))?;
    leave_with_the_parent();
    let gpu = Gpu::open(&Choice::Uuid(request.uuid)).map_err(|why| why.to_string())?;
    // A GPU without cuBLAS judges all the same; the answers say what was held against what.
    let cublas = Cublas::open(&gpu);
    for (index, work) in request.work.iter().enumerate() {
        let reply = one(&gpu, cublas.as_ref(), work, folder);
        let text = serde_json::to_string(&reply).map_err(|error| error.to_string())?;
        let path = file(folder, index);
        let beside = path.with_extension("part");
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &path));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        if gpu.is_dead() {
            device::leave(0);
        }
        if reply.ends_a_batch() {
            break;
        }
    }
    Ok(())
}

/// One piece of work.
fn one(gpu: &Gpu, cublas: Result<&Cublas, &Unavailable>, work: &Work, folder: &Path) -> Reply {
    let said = cublas.map_err(ToString::to_string);
    let done = match work {
        Work::Check(check) => checked(gpu, cublas, check, &mark(folder)),
        Work::Time(time) => timed::timed(gpu, said, time),
        Work::Bench(bench) => benched(gpu, said, bench).map(Reply::Benched),
        Work::Tell(check) => told(gpu, check).map(Reply::Told),
    };
    done.unwrap_or_else(|failure| match failure {
        CudaFailure::Hung { .. } => Reply::Hung { why: failure.to_string() },
        failure if failure.is_of_the_machine() => Reply::Unable { why: failure.to_string() },
        failure => Reply::Failed { why: failure.to_string() },
    })
}

pub(super) fn described(built: &Built, inputs: &Inputs) -> Result<emulator::Launch, CudaFailure> {
    launch::launch(built, inputs).map_err(|why| refused("launch", format!("is refused: {}", why.title)))
}

fn checked(gpu: &Gpu, cublas: Result<&Cublas, &Unavailable>, check: &Check, mark: &Path) -> Result<Reply, CudaFailure> {
    let inputs = Inputs::new(check.problem, check.kind, check.seed);
    let described = described(&check.built, &inputs)?;
    let mut outputs = run_marked(gpu, &check.built.ptx, &described, TIMEOUT, Some(mark))?;
    let kept = |matrix, before: &[u16]| outputs.buffers[launch::buffer(matrix)] == to_bytes(before);
    let changed = [(Matrix::A, &inputs.a), (Matrix::B, &inputs.b)];
    let overwritten = changed.into_iter().filter(|(matrix, before)| !kept(*matrix, before)).map(|(matrix, _)| matrix);
    let overwritten = overwritten.collect();
    let d = std::mem::take(&mut outputs.buffers[launch::buffer(Matrix::D)]);
    let product = match cublas {
        _ if !verify::is_large(&check.problem) => Err(String::new()),
        // Where it was looked for is the doctor's to tell.
        Err(Unavailable::NoCublas { .. }) => Err("there is no cuBLAS".to_string()),
        Err(why) => Err(why.to_string()),
        Ok(cublas) => multiply(gpu, cublas, &inputs).map_err(|failure| {
            settle(gpu);
            failure.to_string()
        }),
    };
    let found = verify::verify(&inputs, &d, product.as_deref().map_err(String::as_str));
    let checked = Checked {
        overwritten,
        touched: outputs.touched.iter().map(ToString::to_string).collect(),
        milliseconds: outputs.milliseconds,
        d: (found.wrong.0 > 0 && !verify::is_large(&check.problem)).then_some(d),
        ..found
    };
    match product {
        // The kernel had ended, and samples show nothing wrong: the yardstick took the context with it, and nothing more runs here.
        Err(why) if gpu.is_dead() && checked.is_right() => {
            Ok(Reply::Unable { why: format!("the kernel ended, and then what it is held against failed: {why}") })
        }
        _ => Ok(Reply::Checked(checked)),
    }
}

/// How long a kernel that hangs is given to tell: its waits do so well within a second.
const TELLING: Duration = Duration::from_secs(4);

/// What the threads of a kernel that hangs wait for.
fn told(gpu: &Gpu, check: &Check) -> Result<String, CudaFailure> {
    let inputs = Inputs::new(check.problem, check.kind, check.seed);
    let telling = waits::telling(&check.built.ptx, &check.built.name).map_err(|why| refused("ptx", why))?;
    let product = |extents: [u32; 3]| extents.iter().fold(1usize, |all, &extent| all.saturating_mul(extent as usize));
    let threads = product(check.built.block);
    let bytes = product(check.built.grid).saturating_mul(threads).saturating_mul(waits::RECORD);
    let records = gpu.visible(bytes)?;
    let mut described = described(&check.built, &inputs)?;
    described.params.push(emulator::Param::U64(records.address()));
    match run_for(gpu, &telling.ptx, &described, TELLING) {
        Err(CudaFailure::Hung { .. }) | Ok(_) => {}
        Err(other) => return Err(other),
    }
    let mut text = waits::summary(&waits::told(&telling, &records.now(), threads as u32), &check.built);
    if !telling.silent.is_empty() {
        text += &format!("  {} waits of another form do not tell\n", telling.silent.len());
    }
    Ok(text)
}

pub(super) fn element(problem: &Problem) -> Type {
    match problem.dtype {
        Dtype::F16 => Type::F16,
        Dtype::Bf16 => Type::Bf16,
    }
}

/// D as cuBLAS computes it. After a failure, [`Gpu::is_dead`] says whether it took the context with it.
fn multiply(gpu: &Gpu, cublas: &Cublas, inputs: &Inputs) -> Result<Vec<u8>, CudaFailure> {
    let Problem { m, n, k, .. } = inputs.problem;
    let matrix = |name, values: &[u16]| -> Result<device::Buffer, device::Error> {
        let buffer = gpu.buffer(name, 2 * values.len() as u64)?;
        buffer.write(&to_bytes(values))?;
        Ok(buffer)
    };
    let (a, b) = (matrix("A", &inputs.a)?, matrix("B", &inputs.b)?);
    let d = gpu.buffer("D", 2 * u64::from(m) * u64::from(n))?;
    let product = Product { element: element(&inputs.problem), m, n, k, a: &a, b: &b, d: &d };
    // A product of the workbook's sizes takes milliseconds: the time is for a GPU that does not answer any more.
    span_of(gpu, &(gpu.event()?, gpu.event()?), "the product that D is held against", 1, &|| {
        cublas.multiply(&product, true)
    })?;
    Ok(d.read()?)
}

/// Waits for what was launched before something failed: an error of it must not show in what comes next.
pub(super) fn settle(gpu: &Gpu) {
    if let (false, Ok(event)) = (gpu.is_dead(), gpu.event()) {
        // What it finds, `is_dead` tells.
        let _ = event.record();
        let _ = gpu.wait("what ran before", &event, TIMEOUT);
    }
}

/// What is timed, for a hang in it.
pub(super) const TIMES_OWN: &str = "timing the kernel";
pub(super) const TIMES_REFERENCE: &str = "timing the reference kernel";
pub(super) const TIMES_CUBLAS: &str = "timing cuBLAS's kernel";

/// Something that is launched and not waited for.
pub(super) type Run<'a> = &'a dyn Fn() -> Result<(), device::Error>;

/// Rounds before those that count: code is loaded, clocks go up and settle.
const WARM_UP: Duration = Duration::from_secs(10);
/// They end earlier when the median of so long is that of as long before, up to [`STEADY`]: at its power limit a GPU takes seconds.
const WINDOW: Duration = Duration::from_millis(500);
const STEADY: f64 = 0.005;
/// No fewer rounds than this warm up, however long they take.
const WARM_ROUNDS: usize = 2;

/// Rounds of one launch each, L2 overwritten before; in turns who comes first. As many pairs of them as [`BATCH`] seconds
/// take, and at least one: who asks goes on where this ends.
fn benched(gpu: &Gpu, cublas: Result<&Cublas, String>, bench: &Bench) -> Result<Vec<Round>, CudaFailure> {
    let cublas = cublas.map_err(|why| refused("cublas", format!("is needed: {why}")))?;
    let inputs = Inputs::new(bench.problem, InputKind::Normal, 0);
    let own = prepare(gpu, &bench.built.ptx, &described(&bench.built, &inputs)?)?;
    let Problem { m, n, k, .. } = bench.problem;
    let [a, b, d] = launch::BUFFERS.map(|matrix| &own.buffers[launch::buffer(matrix)]);
    let product = Product { element: element(&bench.problem), m, n, k, a, b, d };
    let (flusher, events) = (gpu.flusher()?, (gpu.event()?, gpu.event()?));
    let prepared = gpu.prepare(&own.kernel, &own.launch)?;
    let watch = Watch::begin(gpu.about().uuid.clone());
    let kernel = || -> Result<f64, CudaFailure> {
        flusher.fill(0)?;
        span(gpu, &events, 1, &|| prepared.launch())
    };
    let other = || -> Result<f64, CudaFailure> {
        flusher.fill(0)?;
        span(gpu, &events, 1, &|| cublas.multiply(&product, false))
    };
    let round = |n: usize| -> Result<(f64, f64), CudaFailure> {
        if n.is_multiple_of(2) {
            let first = kernel()?;
            Ok((first, other()?))
        } else {
            let first = other()?;
            Ok((kernel()?, first))
        }
    };
    let (begin, mut before) = (Instant::now(), f64::INFINITY);
    loop {
        let (window, mut times) = (Instant::now(), Vec::new());
        while times.len() < WARM_ROUNDS || window.elapsed() < WINDOW {
            times.push(round(times.len())?.1);
        }
        let now = median(&times);
        if (now / before - 1.0).abs() < STEADY || begin.elapsed() > WARM_UP {
            break;
        }
        before = now;
    }
    let (begin, mut rounds) = (Instant::now(), Vec::new());
    // A pair is never parted: its rounds are counted together.
    while rounds.len() < bench.rounds as usize && (rounds.len() % 2 == 1 || begin.elapsed().as_secs() < BATCH) {
        let (kernel_us, cublas_us) = round(rounds.len())?;
        rounds.push(Round { kernel_us, cublas_us, ..watch.now() });
    }
    Ok(rounds)
}

/// How often NVML is read. Beside the rounds: between them, the GPU would stand still for it, and its clock and power change.
const READING: Duration = Duration::from_millis(20);
/// A reading of longer ago says nothing of a round.
const STALE: Duration = Duration::from_secs(1);

/// A thread that reads how the GPU is.
struct Watch {
    /// When it was read last, and what.
    last: Arc<Mutex<Option<(Instant, State)>>>,
    /// Nobody asks any more.
    ended: Arc<AtomicBool>,
}

impl Watch {
    fn begin(uuid: String) -> Watch {
        let watch = Watch { last: Arc::default(), ended: Arc::default() };
        let (last, ended) = (Arc::clone(&watch.last), Arc::clone(&watch.ended));
        // Not waited for at the end: behind a GPU that hangs, a call may not come back.
        thread::spawn(move || {
            let Some(gpu) = Nvml::get().ok().and_then(|nvml| nvml.device(&uuid)) else { return };
            while !ended.load(Ordering::Relaxed) {
                let state = gpu.state();
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), state));
                thread::sleep(READING);
            }
        });
        watch
    }

    /// How the GPU is, as a round without times.
    fn now(&self) -> Round {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.filter(|(at, _)| at.elapsed() < STALE).map_or_else(Round::default, |(_, state)| described_by(&state))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// What NVML said, as a round without times. When it said nothing at all, nobody watched.
fn described_by(state: &State) -> Round {
    Round {
        clock_mhz: state.clock,
        power_w: state.power,
        temperature_c: state.temperature,
        slowed_by: (*state != State::default())
            .then(|| state.slowed_by.iter().map(|reason| reason.to_string()).collect()),
        ..Round::default()
    }
}

/// Microseconds that so many runs take, one right behind the other.
fn span(
    gpu: &Gpu,
    events: &(Event, Event),
    count: u32,
    run: &dyn Fn() -> Result<(), device::Error>,
) -> Result<f64, CudaFailure> {
    span_of(gpu, events, "timing", count, run)
}

/// The same; `what` names what runs, for a hang or an error in it.
pub(super) fn span_of(
    gpu: &Gpu,
    (begin, end): &(Event, Event),
    what: &str,
    count: u32,
    run: Run,
) -> Result<f64, CudaFailure> {
    begin.record()?;
    for _ in 0..count {
        run()?;
    }
    end.record()?;
    gpu.wait(what, end, TIMEOUT)?;
    Ok(begin.milliseconds_to(end)? * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NVML that is there and answers nothing watches nothing.
    #[test]
    fn nobody_watched_where_nothing_was_said() {
        assert_eq!(described_by(&State::default()), Round::default());
        let read = State { clock: Some(1980), slowed_by: vec!["the power cap"], ..State::default() };
        let round = described_by(&read);
        assert_eq!((round.clock_mhz, round.slowed_by), (Some(1980), Some(vec!["the power cap".to_string()])));
        assert_eq!(described_by(&State { power: Some(90.0), ..State::default() }).slowed_by, Some(Vec::new()));
        assert_eq!(Watch::begin("no GPU".into()).now(), Round::default());
    }

    #[test]
    fn other_arguments_are_not_for_the_gpu() {
        let asks = |arguments: &[&str]| asked(&arguments.iter().map(OsString::from).collect::<Vec<_>>()).is_some();
        assert!(
            !asks(&[]) && !asks(&["--emit", "a"]) && !asks(&["--on-gpu"]) && asks(&["--on-gpu", "/no/such/folder"])
        );
    }
}
