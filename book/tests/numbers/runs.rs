//! Runs of kernels, for their times.

use emulator::{Actor, CopyKind, Event, EventKind, Mode, Options, Report};
use harness::{InProcess, KernelSource, Problem, launch, ptxas};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock};

/// SMs of a B200, as the commands on the pages have them.
const SMS: u32 = 148;
/// Of runs with a larger K the pages tell the cycles alone: their traces would cost time, and fill the memory.
const LARGEST_TRACED_K: u32 = 512;

/// A report, once its run has ended.
type Awaited = Arc<OnceLock<Arc<Report>>>;

/// Reports by kernel and size: each is run once, whoever asks for it at the same time.
#[derive(Default)]
pub struct Runs(Mutex<BTreeMap<(String, [u32; 3]), Awaited>>);

/// A step's solution by its number, or an answer's kernel by its name in `solutions/variants/table.rs`.
fn kernel(name: &str) -> ptx::KernelFn {
    if let Ok(step) = name.parse::<u8>() {
        return solutions::ALL.iter().find(|(number, _)| *number == step).expect("a solution").1;
    }
    let answer = variants::ANSWERS.iter().find(|(known, _, _)| *known == name);
    answer.unwrap_or_else(|| panic!("solutions/variants/table.rs has no answer `{name}`")).2
}

fn built(name: &str, size: [u32; 3]) -> (harness::Built, Problem) {
    let problem = Problem::f16(size[0], size[1], size[2]);
    let built = InProcess(kernel(name)).build(&problem, SMS);
    (built.unwrap_or_else(|error| panic!("`{name}` at {problem}: {error}")), problem)
}

/// The PTX of a kernel.
pub fn text(name: &str, size: [u32; 3]) -> String {
    built(name, size).0.ptx
}

/// Bytes of shared memory of a CTA, as the head of its PTX says.
pub fn shared_bytes(name: &str, size: [u32; 3]) -> u64 {
    let text = text(name, size);
    let said = text.split("// Bytes of dynamic shared memory: ").nth(1).and_then(|rest| rest.split('.').next());
    said.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("`{name}`: the head says no bytes"))
}

/// Where the barriers of a name begin in shared memory, as the head of the PTX says: one, or those of a ring.
pub fn barriers(name: &str, size: [u32; 3], barrier: &str) -> Vec<i32> {
    let text = built(name, size).0.ptx;
    let lines = text.lines().filter_map(|line| line.strip_prefix("// ")?.split_once(": mbarrier"));
    let named = lines.filter_map(|(place, _)| {
        let mut words = place.split_whitespace();
        let (offset, own) = (words.next()?, words.last()?);
        (own.split('[').next() == Some(barrier)).then(|| offset.parse().ok())?
    });
    let found: Vec<i32> = named.collect();
    assert!(!found.is_empty(), "`{name}` has no mbarrier `{barrier}`");
    found
}

impl Runs {
    /// As `cargo workbook inspect --timeline` runs it; its trace is that of a small K.
    fn run(&self, name: &str, size: [u32; 3]) -> Arc<Report> {
        let run = self.0.lock().expect("no panic").entry((name.to_string(), size)).or_default().clone();
        let computed = || {
            let (built, problem) = built(name, size);
            let program = emulator::load(&built.ptx).unwrap_or_else(|all| panic!("`{name}` does not load: {all:?}"));
            let launch = launch::times_only(&built, problem).unwrap_or_else(|why| panic!("`{name}`: {why}"));
            let options = Options {
                mode: Mode::Time,
                // Runs go side by side.
                threads: Some(NonZeroUsize::MIN),
                trace: size[2] <= LARGEST_TRACED_K,
                max_instructions: 1 << 34,
                ..Options::default()
            };
            let mut report = emulator::run(&program, &launch, &options);
            assert!(report.completed && report.findings.is_empty(), "`{name}` at {problem}: {:?}", report.findings);
            // Of a hundred runs all matrices would be kept.
            report.buffers = Vec::new();
            Arc::new(report)
        };
        run.get_or_init(computed).clone()
    }

    /// With all events.
    pub fn report(&self, name: &str, size: [u32; 3]) -> Arc<Report> {
        let report = self.run(name, size);
        assert!(!report.trace.is_empty(), "`{name}` at {size:?} has no trace: its K is above {LARGEST_TRACED_K}");
        report
    }

    pub fn cycles(&self, name: &str, size: [u32; 3]) -> u64 {
        self.run(name, size).cycles
    }

    /// How many CTAs there were.
    pub fn ctas(&self, name: &str, size: [u32; 3]) -> u64 {
        let report = self.report(name, size);
        report.trace.iter().map(|event| event.cta).collect::<std::collections::BTreeSet<_>>().len() as u64
    }

    /// What CTA 0 and its engines did.
    pub fn events(&self, name: &str, size: [u32; 3]) -> Vec<Event> {
        self.report(name, size).trace.iter().filter(|event| event.cta == 0).cloned().collect()
    }
}

/// Registers of a thread and bytes of shared memory, as the part resources tells them; none without an assembler.
pub fn registers(name: &str, size: [u32; 3]) -> Option<u32> {
    match ptxas::assemble(&built(name, size).0.ptx) {
        Ok(usage) => Some(usage.registers),
        Err(ptxas::Failure::Unavailable(_) | ptxas::Failure::TookTooLong(_) | ptxas::Failure::Here(_)) => None,
        Err(ptxas::Failure::Refused(errors)) => panic!("`{name}`: {errors:#?}"),
    }
}

/// From when to when.
pub type Span = (u64, u64);

/// From when to when each event of a kind was, in their order.
pub fn spans(events: &[Event], of: impl Fn(&EventKind) -> bool) -> Vec<Span> {
    let mut spans: Vec<Span> = events.iter().filter(|event| of(&event.kind)).map(|e| (e.start, e.end)).collect();
    spans.sort_unstable();
    spans
}

/// The MMAs, from begin to end of each.
pub fn mmas(events: &[Event]) -> Vec<Span> {
    spans(events, |kind| matches!(kind, EventKind::Mma(_)))
}

/// The MMAs of each group of so many, from the begin of the first to the end of the last.
pub fn products(events: &[Event], mmas_each: usize) -> Vec<Span> {
    let mmas = mmas(events);
    let whole = |group: &[Span]| (group[0].0, group.iter().map(|mma| mma.1).max().unwrap_or_default());
    mmas.chunks(mmas_each).map(whole).collect()
}

/// The loads by TMA.
pub fn loads(events: &[Event]) -> Vec<Span> {
    spans(events, |kind| matches!(kind, EventKind::Copy(copy) if copy.kind == CopyKind::Load))
}

/// The stores by TMA.
pub fn stores(events: &[Event]) -> Vec<Span> {
    spans(events, |kind| matches!(kind, EventKind::Copy(copy) if copy.kind == CopyKind::Store))
}

/// The loads from tensor memory.
pub fn tensor_loads(events: &[Event]) -> Vec<Span> {
    spans(events, |kind| matches!(kind, EventKind::TensorLoad { .. }))
}

/// The spans joined where they touch.
fn joined(spans: &[Span]) -> Vec<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for (start, end) in sorted {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// In how many cycles at least one of them is under way.
pub fn busy(spans: &[Span]) -> u64 {
    joined(spans).iter().map(|(start, end)| end - start).sum()
}

/// In how many cycles both are under way.
pub fn both(left: &[Span], right: &[Span]) -> u64 {
    busy(left) + busy(right) - busy(&[left, right].concat())
}

/// Mean distance from one round's first MMA to the next one's, rounded.
pub fn from_round_to_round(events: &[Event], mmas_each: usize) -> u64 {
    let rounds = products(events, mmas_each);
    let (first, last) = (rounds[0].0, rounds[rounds.len() - 1].0);
    let steps = rounds.len() as u64 - 1;
    (last - first + steps / 2) / steps
}

/// How long a warp's waits lasted for the barrier for which it waits so many times.
pub fn waits_of_each(events: &[Event], warp: u32, times: usize) -> Vec<u64> {
    let mut by_barrier: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.actor == Actor::Warp(warp)) {
        if let EventKind::BarrierWait { barrier, .. } = event.kind {
            by_barrier.entry(barrier.offset).or_default().push(event.end - event.start);
        }
    }
    let found: Vec<Vec<u64>> = by_barrier.into_values().filter(|waits| waits.len() == times).collect();
    assert_eq!(found.len(), 1, "warp {warp} waits {times} times for one barrier");
    found[0].clone()
}

/// When the first commit arrived at each of the barriers to which so many are made, in the order of the barriers.
pub fn commits_of_each(events: &[Event], times: usize) -> Vec<u64> {
    let mut by_barrier: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
    for event in events {
        if let EventKind::Commit { barriers, .. } = &event.kind {
            by_barrier.entry(barriers[0].offset).or_default().push(event.end);
        }
    }
    by_barrier.into_values().filter(|commits| commits.len() == times).map(|commits| commits[0]).collect()
}
