//! Waits at mbarriers, and the meeting of the threads behind them.

use super::super::{Seen, Shape};
use super::write_back::first_tile_end;
use super::{Who, is_named, missing, rounds};
use crate::diagnostics::Explanation;
use crate::observe::Observation;
use emulator::{Event, EventKind};

const PARITY: &str = "A fresh mbarrier is in phase 0: waiting for parity 0 waits for its first completion, waiting for \
                      parity 1 passes at once (PTX ISA 9.7.13.15.16).";
const MEET: &str = "What one thread has waited for, the others know after a barrier (PTX ISA 9.7.16.6.4.4).";

/// Waits of the first CTA for barriers of this name: warp, event, parity, phase.
fn waits<'a>(run: &'a Observation, name: &'a str) -> impl Iterator<Item = (u32, &'a Event, u32, Option<u64>)> {
    run.report.trace.iter().filter_map(move |event| match event.kind {
        EventKind::BarrierWait { barrier, parity, passed_phase }
            if event.issuer.cta == 0 && is_named(run, &barrier, name) =>
        {
            Some((event.issuer.warp, event, parity, passed_phase))
        }
        _ => None,
    })
}

/// Somebody waits at the barrier of this name, for a phase that somebody else completes.
pub(in crate::steps) fn awaited(run: &Observation, name: &str, who: Who) -> Seen {
    let warps: Vec<Option<u32>> = match who {
        Who::Issuer => vec![None],
        Who::Warps(warps) => warps.iter().copied().map(Some).collect(),
        Who::WriteBack(shape) => (0..4 * shape.consumers).map(Some).collect(),
    };
    for warp in warps {
        let Some((_, event, parity, phase)) =
            waits(run, name).find(|(waiting, ..)| warp.is_none_or(|warp| warp == *waiting))
        else {
            let title = match warp {
                Some(warp) => format!("warp {warp} does not come past a wait for `{name}`"),
                None => format!("no warp comes past a wait for `{name}`"),
            };
            let help = format!("Call `wait` with `{name}` and the parity of the phase that comes next.");
            return missing(run, Explanation::new(title, PARITY, help));
        };
        // The one wait that must pass at once is that for a free accumulator.
        if phase.is_none() && name != "ld2mma" {
            let title = format!("the first wait for `{name}` passes before anything has come");
            let help = "Begin with parity 0: `PipelineState::consumer`, or `round & 1`.";
            let waits = format!("waits for parity {parity}");
            return Seen::Wrong(Explanation::new(title, PARITY, help).at(&event.place, waits));
        }
    }
    Seen::Done
}

/// Counted as people do: the first wait is that for phase 0.
fn nth_wait(index: usize) -> String {
    const WORDS: [&str; 8] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
    match WORDS.get(index) {
        Some(word) => format!("{word} wait"),
        None => format!("wait {} (counted from 1)", index + 1),
    }
}

/// Every warp waits for every round, each in its own phase.
pub(in crate::steps) fn every_round_awaited(run: &Observation, shape: &Shape, name: &str) -> Seen {
    for warp in 0..shape.threads / 32 {
        let phases: Vec<Option<u64>> =
            waits(run, name).filter(|(waiting, ..)| *waiting == warp).map(|(.., phase)| phase).collect();
        let right = (0..rounds(run) as u64).all(|round| phases.get(round as usize) == Some(&Some(round)));
        if right {
            continue;
        }
        let wrong = phases.iter().zip(0..).position(|(phase, round)| *phase != Some(round)).unwrap_or(phases.len());
        let title = format!("warp {warp}'s {} for `{name}` does not wait for phase {wrong}", nth_wait(wrong));
        let explanation =
            Explanation::new(title, PARITY, format!("Wait for parity `round & 1`: `k.wait({name}, round & 1)`."));
        let event = waits(run, name).filter(|(waiting, ..)| *waiting == warp).nth(wrong).map(|(_, event, ..)| event);
        return match event {
            Some(event) => Seen::Wrong(explanation.at(&event.place, "this wait")),
            None => missing(run, explanation),
        };
    }
    Seen::Done
}

/// Behind the last MMA of the first tile, all warps of the first CTA meet before tensor memory is read.
pub(in crate::steps) fn all_meet(run: &Observation) -> Seen {
    let Some(done) = run.mmas().iter().filter(|(event, _)| event.issuer.cta == 0).map(|(event, _)| event.end).max()
    else {
        return Seen::NotReached("there is no MMA to wait for yet".to_string());
    };
    let done = if run.report.completed { done.min(first_tile_end(run).unwrap_or(done)) } else { done };
    let loads = |warp: u32| {
        run.of_warp(warp)
            .find(|(_, event)| matches!(event.kind, EventKind::TensorLoad { .. }))
            .map(|(_, event)| event.start)
    };
    for warp in 0..run.warps() {
        let met = run
            .of_warp(warp)
            .find(|(_, event)| matches!(event.kind, EventKind::CtaBarrier { .. }) && event.end >= done);
        let early = |met: &Event| loads(warp).is_some_and(|load| load < met.end);
        match met {
            Some((_, met)) if !early(met) => {}
            _ => {
                let title = format!(
                    "warp {warp} does not meet the others between the last MMA and the loads from tensor memory"
                );
                let help =
                    "Call `k.sync()` behind the scope of the thread that waits, between the two fences of tcgen05.";
                return missing(run, Explanation::new(title, MEET, help));
            }
        }
    }
    Seen::Done
}
