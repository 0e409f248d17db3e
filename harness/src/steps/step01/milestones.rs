//! What the milestones of step 1 have in common: how a run is asked.

use crate::diagnostics::Explanation;
use crate::observe::Observation;
use crate::steps::Seen;
use emulator::{Barrier, Diagnostic, Event, EventKind};
use ptx::RegionKind;

pub(super) fn not_reached(what: &str) -> Seen {
    Seen::NotReached(what.to_string())
}

/// Nothing of it was seen: the run broke off, or the kernel does not do it.
pub(super) fn missing(seen: &Observation, explanation: Explanation) -> Seen {
    wrong_or_cut(seen, explanation)
}

/// Something is missing in a run: if it broke off, that may be why.
pub(super) fn wrong_or_cut(seen: &Observation, explanation: Explanation) -> Seen {
    if seen.report.completed { Seen::Wrong(explanation) } else { Seen::Cut }
}

/// What the emulator found that has one of these codes.
pub(super) fn finding(seen: &Observation, codes: &[&str]) -> Option<Box<Diagnostic>> {
    seen.report.findings.iter().find(|found| codes.contains(&found.code)).map(|found| Box::new(found.clone()))
}

pub(super) fn is(event: &Event, kind: &EventKind) -> bool {
    event.kind == *kind
}

/// The CTA barriers of a warp, by their place in the trace. The one before tensor memory is freed is left out: it belongs to
/// that, and orders nothing that comes earlier.
pub(super) fn synchronising(seen: &Observation, warp: u32) -> Vec<usize> {
    let barriers = |warp: u32| -> Vec<usize> {
        let all = seen.of_warp(warp).filter(|(_, event)| matches!(event.kind, EventKind::CtaBarrier { .. }));
        all.map(|(at, _)| at).collect()
    };
    let free = seen.events().find(|(_, event)| event.cta == 0 && matches!(event.kind, EventKind::TensorFree { .. }));
    // By its number: all warps meet at the same barriers.
    let last = free.and_then(|(free, event)| match event.actor {
        emulator::Actor::Warp(freeing) => barriers(freeing).iter().rposition(|at| *at < free),
        _ => None,
    });
    let mut barriers = barriers(warp);
    if let Some(last) = last {
        barriers.truncate(last);
    }
    barriers
}

/// Warps as the subject of a sentence, and its verb.
pub(super) fn warps(warps: &[u32]) -> (String, &'static str) {
    match warps {
        [one] => (format!("warp {one}"), "stores"),
        [first, .., last] if (*last - *first) as usize + 1 == warps.len() => {
            (format!("warps {first} to {last}"), "store")
        }
        several => {
            let names: Vec<String> = several.iter().map(u32::to_string).collect();
            (format!("warps {}", names.join(", ")), "store")
        }
    }
}

/// The name that the kernel gave to an mbarrier.
pub(super) fn barrier_name(seen: &Observation, barrier: Barrier) -> String {
    let is = |region: &&ptx::Region| {
        region.kind == RegionKind::Barrier && i64::from(region.offset) == i64::from(barrier.offset)
    };
    seen.built.regions.iter().find(is).map_or_else(|| "the mbarrier".to_string(), |region| format!("`{}`", region.name))
}

/// Commits, in the order of issue: the event, the mbarrier that hears of it, the MMAs that it covers.
pub(super) fn commits(seen: &Observation) -> Vec<(&Event, Barrier, u32)> {
    let mut commits = Vec::new();
    for event in &seen.report.trace {
        if let EventKind::Commit { barriers, covers } = &event.kind {
            commits.extend(barriers.iter().map(|barrier| (event, *barrier, *covers)));
        }
    }
    commits
}

/// Where tensor memory was allocated.
pub(super) fn allocation(seen: &Observation) -> Option<&Event> {
    seen.report.trace.iter().find(|event| matches!(event.kind, EventKind::TensorAlloc { .. }))
}
