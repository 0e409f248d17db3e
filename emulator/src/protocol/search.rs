//! Looks for an interleaving that gets stuck, where the proof fails.

use super::certificate::Certificate;
use super::clusters;
use super::doubt::{Doubt, Why};
use super::machine::{End, Graph, Machine, Shape};
use super::record::{Record, Step, What};
use std::cell::Cell;

/// Steps that may be looked at in all, so that a search ends soon.
const MOST: usize = 20_000_000;

/// Random interleavings beside those that a doubt suggests.
const RANDOM: u64 = 64;

/// An interleaving that gets stuck.
#[derive(Debug)]
pub struct Stuck {
    /// What was held back, or came first: the doubt that led there. `None`: a random interleaving.
    pub by: Option<Doubt>,
    /// More arrive with this step than its phase takes.
    pub overflow: Option<Waiting>,
    /// What waits for ever.
    pub waiting: Vec<Waiting>,
}

/// A step that waits for ever.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub warp: u16,
    pub site: u32,
    pub what: What,
    /// Phases of its mbarrier that are complete.
    pub phase: u32,
}

/// Whether the recorded run comes to its end on the machine, as it did: else the machine is no judge of it.
pub fn replays(record: &Record, certificate: &Certificate, shape: &Shape) -> bool {
    let graph = Graph::new(record, &certificate.before);
    let mut all = usize::MAX;
    Machine::new(&graph, *shape).run(&mut all, |n, _| n.into()) == End::Completed
}

/// An interleaving that gets stuck. Says of each doubt on the way whether the interleaving that it suggests shows it.
pub fn find(record: &Record, certificate: &mut Certificate, shape: &Shape) -> Option<Stuck> {
    let Certificate { doubts, before } = certificate;
    let graph = Graph::new(record, before);
    if let Some(doubt) = clusters::doubt(doubts)
        && let Some(waiting) = clusters::stuck(&graph, shape)
    {
        return Some(Stuck { by: Some(doubt), overflow: None, waiting });
    }
    let mut left = MOST;
    // Also tells for which phase the doubted step counts.
    let counted = Cell::new(None);
    let mut run = |by: Option<Doubt>, rank: &mut dyn FnMut(u32, &Step) -> u64| -> Option<Option<Stuck>> {
        let mut machine = Machine::new(&graph, *shape);
        machine.watched = by.map(|doubt| doubt.step);
        let end = machine.run(&mut left, rank);
        counted.set(machine.counted);
        let waiting = |n: u32| {
            let Step { warp, site, what, .. } = graph.steps[n as usize];
            let barrier = match what {
                What::Wait { barrier, .. } | What::Arrive { barrier, .. } | What::Done { barrier, .. } => Some(barrier),
                _ => None,
            };
            let phase = barrier.and_then(|b| machine.mbarrier(b)).map_or(0, |b| b.phase);
            Waiting { warp, site, what, phase }
        };
        Some(match end {
            End::Unknown => return None,
            End::Completed => None,
            End::Stuck if machine.asks() => None,
            End::Stuck => {
                let mut ready = machine.ready.clone();
                ready.sort_unstable();
                Some(Stuck { by, overflow: None, waiting: ready.into_iter().map(waiting).collect() })
            }
            End::Overflow(n) => Some(Stuck { by, overflow: Some(waiting(n)), waiting: Vec::new() }),
        })
    };
    for known in doubts.iter_mut() {
        let doubt = *known;
        // As late as can be, as early as can be, and with all of its lanes or its statement.
        let Step { warp, lanes, .. } = record.steps[doubt.step as usize];
        let by = Some(doubt);
        let late = |n: u32| u64::from(n) | u64::from(n == doubt.step) << 40;
        let slow = |n: u32, step: &Step| {
            u64::from(n) | u64::from(n >= doubt.step && step.warp == warp && step.lanes & lanes != 0) << 40
        };
        let early = |n: u32, step: &Step| {
            u64::from(n) | u64::from(!(n <= doubt.step && step.warp == warp && step.lanes & lanes != 0)) << 40
        };
        let stuck = match doubt.why {
            Why::CountsEarly { .. } | Why::NamedEarly { .. } | Why::BeforeInit { .. } => {
                let stuck = run(by, &mut |n, step| early(n, step))?;
                if let Why::CountsEarly { phase, sure, .. } = &mut known.why {
                    *sure = counted.get().is_some_and(|counted| counted < *phase);
                }
                let stuck = stuck.or(run(by, &mut |n, step| slow(n, step))?);
                // Who comes to a barrier for the second time may find there somebody missing who was to come the first time.
                let missing = match doubt.why {
                    Why::NamedEarly { .. } if stuck.is_none() => met_before(record, doubt.step),
                    _ => None,
                };
                match missing {
                    Some((first, other)) => {
                        run(by, &mut |n, step| u64::from(n) | u64::from(n >= first && step.warp == other) << 40)?
                    }
                    None => stuck,
                }
            }
            _ => run(by, &mut |n, _| late(n))?.or(run(by, &mut |n, step| slow(n, step))?),
        };
        if stuck.is_some() {
            return stuck;
        }
    }
    for seed in 0..RANDOM {
        // Sequences have priorities of their own, which change now and then.
        let mut rank = |n: u32, step: &Step| {
            let engine = u64::from(matches!(step.what, What::Done { .. }));
            let sequence = u64::from(step.warp) << 33 | u64::from(step.lanes & step.lanes.wrapping_neg()) << 1 | engine;
            let stretch = if seed % 2 == 0 { 0 } else { u64::from(n) / 64 };
            mix(sequence ^ seed << 48 ^ stretch << 56)
        };
        if let Some(stuck) = run(None, &mut rank)? {
            return Some(stuck);
        }
    }
    None
}

/// The step by which the last other warp came to this one's barrier the time before, and that warp: it may not be there yet.
fn met_before(record: &Record, step: u32) -> Option<(u32, u16)> {
    let (this, before) = record.steps.get(..=step as usize)?.split_last()?;
    let barrier = |step: &Step| match step.what {
        What::Named { cta, id, .. } => Some((cta, id)),
        _ => None,
    };
    let (cta, id) = barrier(this)?;
    let comes = |step: &Step| barrier(step) == Some((cta, id));
    let own = before.iter().rposition(|step| comes(step) && step.warp == this.warp)?;
    let done = own + before[own..].iter().position(|step| step.what == What::NamedDone { cta, id })?;
    let last = before[..done].iter().rposition(|step| comes(step) && step.warp != this.warp)?;
    Some((last as u32, before[last].warp))
}

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}
