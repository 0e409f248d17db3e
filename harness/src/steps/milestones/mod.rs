//! What the milestones of steps 2 to 10 look for in a run.
//!
//! They look at the first cluster: the tiles that it computes, in the order of [`Shape::tile_of`]. A half-done kernel often
//! breaks off (a barrier that nobody arrives at yet), so each check asks for no more than what its own TODO can show.

mod fill;
mod multiply;
mod wait;
mod write_back;

pub(super) use super::step01::freed;
pub(super) use fill::{loads, loads_go_on, tiles_copied};
pub(super) use multiply::{committed, mmas};
pub(super) use wait::{all_meet, awaited, every_round_awaited};
pub(super) use write_back::{accumulator_handed_back, d_right, d_staged};

use super::{BLK_K, Seen, Shape};
use crate::diagnostics::Explanation;
use crate::observe::Observation;
use emulator::{Barrier, EventKind};
use ptx::RegionKind;

/// Rows of the tiles of A and B that a CTA loads.
const ROWS: u32 = 128;

const INIT: &str = "A phase of an mbarrier takes as many arrivals as it was initialised for (PTX ISA 9.7.13.15.9).";
const GRID: &str = "A launch has as many CTAs as its grid says (PTX ISA 2.2.3).";

/// How many rounds of the first tile a run must show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::steps) enum Rounds {
    /// One.
    First,
    /// As many as there are stages.
    Stages,
    /// All.
    All,
}

impl Rounds {
    fn count(self, run: &Observation, shape: &Shape) -> usize {
        let all = rounds(run);
        match self {
            Rounds::First => all.min(1),
            Rounds::Stages => all.min(shape.depth as usize),
            Rounds::All => all,
        }
    }
}

/// Who must wait.
#[derive(Clone, Copy)]
pub(in crate::steps) enum Who {
    /// Some warp of the first CTA.
    Issuer,
    /// These warps of the first CTA.
    Warps(&'static [u32]),
    /// The warpgroups that write back: the first ones, one for each consumer.
    WriteBack(&'static Shape),
}

/// Tiles of K.
fn rounds(run: &Observation) -> usize {
    run.inputs.problem.k.div_ceil(BLK_K) as usize
}

/// The first that is not done.
pub(in crate::steps) fn all<const N: usize>(checks: [Seen; N]) -> Seen {
    checks.into_iter().find(|seen| *seen != Seen::Done).unwrap_or(Seen::Done)
}

/// Something is missing: if the run broke off, that may be why.
fn missing(run: &Observation, explanation: Explanation) -> Seen {
    if run.report.completed { Seen::Wrong(explanation) } else { Seen::Cut }
}

/// The name that the kernel gave to a barrier, and its stage.
fn named(run: &Observation, barrier: Barrier) -> Option<(&str, Option<u32>)> {
    let here = |region: &&ptx::Region| {
        region.kind == RegionKind::Barrier && i64::from(region.offset) == i64::from(barrier.offset)
    };
    run.built.regions.iter().find(here).map(|region| (region.name.as_str(), region.stage))
}

/// A barrier in a sentence.
fn barrier_name(run: &Observation, barrier: Barrier) -> String {
    match named(run, barrier) {
        Some((name, Some(stage))) => format!("`{name}[{stage}]`"),
        Some((name, None)) => format!("`{name}`"),
        None => "an mbarrier".to_string(),
    }
}

fn is_named(run: &Observation, barrier: &Barrier, name: &str) -> bool {
    named(run, *barrier).is_some_and(|(found, _)| found == name)
}

/// The grid that the step asks for.
pub(in crate::steps) fn grid(run: &Observation, shape: &Shape) -> Seen {
    let [x, y] = shape.grid(&run.inputs.problem, run.sms);
    let [found_x, found_y, _] = run.built.grid;
    if run.built.grid == [x, y, 1] {
        return Seen::Done;
    }
    let title = format!("the grid has {found_x} x {found_y} CTAs; this problem takes {x} x {y}");
    let help = if shape.persistent {
        "Call `k.grid(gemm.sms, 1)`.".to_string()
    } else {
        "Call `k.grid(gemm.tiles_m(BLK_M), gemm.tiles_n(BLK_N))`.".to_string()
    };
    Seen::Wrong(Explanation::new(title, GRID, help))
}

/// As many stages of A as the step has.
pub(in crate::steps) fn ring(run: &Observation, shape: &Shape) -> Seen {
    let stages = run.built.regions.iter().filter(|region| region.name == "A").count() as u32;
    if stages == shape.depth {
        return Seen::Done;
    }
    let title = format!("the ring of A has {stages} stages; this step's has {}", shape.depth);
    let help = "Make all rings, of tiles and of barriers, as deep as that: set `depth` before them.";
    Seen::Wrong(Explanation::new(title, "", help))
}

/// The arrivals that each barrier of a kernel with roles is made for.
pub(in crate::steps) fn barriers(run: &Observation, shape: &Shape) -> Seen {
    let wanted = [("tma2mma", 1), ("mma2tma", shape.consumers), ("mma2ld", 1), ("ld2mma", 128 * shape.ctas)];
    for (name, count) in wanted {
        let regions: Vec<_> = run.built.regions.iter().filter(|region| region.name == name).collect();
        if regions.is_empty() {
            let help = "Keep the barriers' names: what happens at them is read off by name.";
            return Seen::Wrong(Explanation::new(format!("there is no barrier `{name}`"), INIT, help));
        }
        for region in regions {
            let made = run.report.trace.iter().find_map(|event| match event.kind {
                EventKind::BarrierInit { barrier, count }
                    if event.cta == 0 && i64::from(barrier.offset) == i64::from(region.offset) =>
                {
                    Some((event, count))
                }
                _ => None,
            });
            let stage = region.stage.map(|stage| format!("[{stage}]")).unwrap_or_default();
            match made {
                Some((_, found)) if found == count => {}
                Some((event, found)) => {
                    let title = format!("`{name}{stage}` is made for {found} arrivals; a phase of it has {count}");
                    let help = format!("Call `t.barrier_init({name}, …)` with {count}.");
                    return Seen::Wrong(Explanation::new(title, INIT, help).at(&event.place, "made here"));
                }
                None => {
                    let help = format!("Call `t.barrier_init({name}, …)`: it makes all stages of a ring.");
                    return missing(run, Explanation::new(format!("`{name}{stage}` is never made"), INIT, help));
                }
            }
        }
    }
    Seen::Done
}
