//! TODOs 1.4 and 1.5: the MMAs' end arrives at the mbarrier, and every warp waits for it.

use super::milestones::{barrier_name, commits, finding, missing, not_reached, synchronising, wrong_or_cut};
use crate::diagnostics::Explanation;
use crate::observe::Observation;
use crate::steps::Seen;
use emulator::{Barrier, Event, EventKind};

const COVERS: &str = "A commit covers the MMAs that its own thread issued before it (PTX ISA 9.7.16.6.2.1.1).";
const PHASES: &str = "An mbarrier's phase is complete when as many arrivals have come as it was initialised for; then the \
                      next phase begins (PTX ISA 9.7.13.15.6).";
const PARITY: &str = "A fresh mbarrier is in phase 0: waiting for parity 0 waits for its first completion, waiting for \
                      parity 1 passes at once (PTX ISA 9.7.13.15.16).";
const AWAITED: &str = "An MMA runs on after it was issued; its result may be read after a wait for the commit that covers it \
                       (PTX ISA 9.7.16.6.2.1.1, 9.7.16.6.4.4).";

pub(super) fn committed(seen: &Observation) -> Seen {
    let mmas = seen.mmas();
    let Some((last, _)) = mmas.last() else {
        return not_reached("there is no MMA to commit yet");
    };
    let commits = commits(seen);
    let Some((commit, barrier, _)) = commits.last() else {
        let title = "the MMAs were not committed to an mbarrier";
        let help = "Call `t.commit(mma_done)` in the thread that issued the MMAs, after the last one.";
        let explanation = Explanation::new(title, COVERS, help);
        return missing(seen, explanation.at(&last.place, "no commit follows the last MMA"));
    };
    let covered: usize = commits.iter().map(|(_, _, covers)| *covers as usize).sum();
    if covered < mmas.len() {
        let title = format!("the commit covers {covered} of the {} MMAs", mmas.len());
        let help = "Call `t.commit(mma_done)` after the last MMA, in the thread that issued them.";
        return Seen::Wrong(
            Explanation::new(title, COVERS, help).at(&commit.place, "the commit").at(&last.place, "the last MMA"),
        );
    }
    // Arrivals of commits: more than the mbarrier's count, and a wait for the first phase passes before the last of them.
    let arrivals = commits.iter().filter(|(_, at, _)| at == barrier).count();
    let initialised = seen.report.trace.iter().rev().find_map(|event| match event.kind {
        EventKind::BarrierInit { barrier: at, count } if at == *barrier => Some((event, count)),
        _ => None,
    });
    let count = initialised.map_or(1, |(_, count)| count);
    if arrivals > count as usize {
        let phases = arrivals / count.max(1) as usize;
        // Behind the last MMA, each covers all of them: what goes wrong is the phase of a late waiter.
        let behind = commits.iter().filter(|(_, at, covers)| at == barrier && *covers > 0).count() == 1;
        let (harm, help) = if behind {
            ("a warp that waits late waits for a phase that is long over", "Delete all but one `t.commit(mma_done)`.")
        } else {
            (
                "a wait for the first does not wait for all MMAs",
                "Commit once, after the last MMA: `t.commit(mma_done)` behind the loop.",
            )
        };
        let title = format!(
            "{arrivals} commits arrive at {}: they complete {phases} phase{} of it (count {count}), and {harm}",
            barrier_name(seen, *barrier),
            if phases == 1 { "" } else { "s" },
        );
        let mut explanation = Explanation::new(title, PHASES, help);
        let mut lines: Vec<_> = Vec::new();
        for (event, at, _) in &commits {
            if at == barrier && !lines.contains(&event.place.source) {
                lines.push(event.place.source.clone());
                let here = commits.iter().filter(|(other, ..)| other.place.source == event.place.source).count();
                explanation = explanation
                    .at(&event.place, format!("{here} arrival{} from here", if here == 1 { "" } else { "s" }));
            }
        }
        return Seen::Wrong(match initialised {
            Some((init, _)) => explanation.at(
                &init.place,
                match count {
                    1 => "initialised for 1 arrival a phase".to_string(),
                    _ => format!("initialised for {count} arrivals a phase"),
                },
            ),
            None => explanation,
        });
    }
    // Something else arrives beside the commit.
    finding(seen, &["early-arrival"]).map_or(Seen::Done, Seen::Found)
}

/// Where warps read tensor memory, the emulator's memory model decides. Where they do not yet, each warp must have waited, or
/// have met one that has at a CTA barrier.
pub(super) fn awaited(seen: &Observation) -> Seen {
    let commits = commits(seen);
    let Some((commit, barrier, _)) = commits.last() else {
        return not_reached("no commit arrives at the mbarrier yet");
    };
    if let Some(found) = finding(seen, &["mma-not-awaited", "wrong-phase"]) {
        return Seen::Found(found);
    }
    // The phase that the commit's arrival counts for.
    let arrival = seen.report.trace.iter().rev().find_map(|event| match event.kind {
        EventKind::BarrierArrive { barrier: at, phase, .. } if at == *barrier => Some(phase),
        _ => None,
    });
    let waits = |warp: u32| waits(seen, warp, *barrier);
    let right = |phase: Option<u64>| phase.is_some_and(|phase| arrival.is_none_or(|arrival| phase >= arrival));
    let waited = |warp: u32| waits(warp).into_iter().find(|wait| right(wait.phase));
    let barriers: Vec<Vec<usize>> = (0..seen.warps()).map(|warp| synchronising(seen, warp)).collect();
    // The first CTA barrier, by its number, that a warp reaches after its wait.
    let told = (0..seen.warps()).filter_map(|warp| {
        let wait = waited(warp)?;
        barriers.get(warp as usize)?.iter().position(|at| *at > wait.at)
    });
    let told = told.min();
    for warp in 0..seen.warps() {
        let loads = seen.of_warp(warp).any(|(_, event)| matches!(event.kind, EventKind::TensorLoad { .. }));
        let met = told.is_some_and(|number| barriers.get(warp as usize).is_some_and(|own| own.len() > number));
        if loads || met || waited(warp).is_some() {
            continue;
        }
        if let Some(wait) = waits(warp).last() {
            let title = format!("warp {warp}'s wait passes before the MMAs are complete");
            let completes = match arrival {
                Some(phase) => format!("the commit completes phase {phase}"),
                None => "the commit".to_string(),
            };
            let explanation = Explanation::new(title, PARITY, "Wait for parity 0: `k.wait(mma_done, 0)`.")
                .at(&wait.event.place, format!("waits for parity {}", wait.parity))
                .at(&commit.place, completes);
            return Seen::Wrong(explanation);
        }
        let title = format!("warp {warp} does not wait for the MMAs");
        let help = "Let all threads wait: `k.wait(mma_done, 0)`.";
        return wrong_or_cut(seen, Explanation::new(title, AWAITED, help).at(&commit.place, "committed here"));
    }
    Seen::Done
}

struct Wait<'a> {
    /// Its place in the trace.
    at: usize,
    event: &'a Event,
    parity: u32,
    phase: Option<u64>,
}

fn waits(seen: &Observation, warp: u32, barrier: Barrier) -> Vec<Wait<'_>> {
    let mut waits = Vec::new();
    for (at, event) in seen.of_warp(warp) {
        match event.kind {
            EventKind::BarrierWait { barrier: of, parity, passed_phase } if of == barrier => {
                waits.push(Wait { at, event, parity, phase: passed_phase });
            }
            _ => {}
        }
    }
    waits
}
