//! TODOs 1.1 and 1.2: A and B arrive in shared memory, and the tensor core may see it.

use super::milestones::{finding, is, missing, not_reached, synchronising, warps, wrong_or_cut};
use crate::diagnostics::Explanation;
use crate::observe::{Observation, is_store_to};
use crate::ptxas;
use crate::source::Matrix;
use crate::steps::Seen;
use crate::steps::tile::Tile;
use emulator::{Event, EventKind, Label, Place, Severity, Source};
use ptx::Region;

pub(super) fn tiles_arrive(seen: &Observation) -> Seen {
    let (Some(a), Some(b)) = (Tile::find(seen, Matrix::A), Tile::find(seen, Matrix::B)) else {
        return missing(
            seen,
            Explanation::new(
                "there are no tiles for A and B in shared memory",
                "",
                "Keep the two tiles of the skeleton: 128 rows of 64 elements, with `Swizzle::B128`.",
            ),
        );
    };
    if !seen.report.completed && a.is_empty() && b.is_empty() {
        return Seen::Cut;
    }
    // A run that an error ended may have ended in the copy: then the error says more than what is missing.
    let cut = !seen.report.completed
        && seen.report.findings.iter().any(|found| found.severity == Severity::Error && found.code != "hang");
    for (tile, matrix) in [(a, Matrix::A), (b, Matrix::B)] {
        match tile.wrong(seen, matrix) {
            Some(_) if cut && !tile.is_full() => return Seen::Cut,
            Some(explanation) => return Seen::Wrong(explanation),
            None => {}
        }
    }
    Seen::Done
}

/// The way that the TODO asks for. Others order the same, and are as good.
const RULE: &str = "Stores go through the generic proxy, the tensor core reads through the asynchronous proxy: between the \
                    two, the same bytes need a `fence.proxy.async` (PTX ISA 8.6, 9.7.16.6.5), and stores of other threads \
                    a barrier before the MMAs (8.9.4, 8.9.5).";

/// With MMAs that read the tiles, the emulator's memory model decides. Without, the fence and the barrier are looked for,
/// in both orders that it accepts: each thread fences before the barrier, or an issuing thread fences behind it.
pub(in crate::steps) fn stores_are_fenced(seen: &Observation) -> Seen {
    let tiles = [Tile::find(seen, Matrix::A), Tile::find(seen, Matrix::B)];
    let regions: Vec<&Region> = tiles.iter().flatten().map(|tile| tile.region).collect();
    let is_store = |event: &Event| regions.iter().any(|region| is_store_to(event, region));
    let last_store = |warp: u32| seen.of_warp(warp).filter(|(_, event)| is_store(event)).last();
    let stores: Vec<(u32, usize, &Event)> =
        (0..seen.warps()).filter_map(|warp| last_store(warp).map(|(at, event)| (warp, at, event))).collect();
    if stores.is_empty() {
        return not_reached("nothing is stored to the tiles yet");
    }
    let reads = |region: &&Region| {
        let (start, end) = (i64::from(region.offset), i64::from(region.offset) + i64::from(region.bytes));
        let of = |operand: &emulator::OperandRead| i64::from(operand.offset) < end && start < i64::from(operand.end);
        seen.mmas().iter().any(|(_, mma)| of(&mma.a) || of(&mma.b))
    };
    // In a loop over K an MMA that comes too early may as well be one that nobody waited for before the next round's copy.
    let one_round = seen.inputs.problem.k <= crate::steps::BLK_K;
    let codes = if one_round { &["missing-proxy-fence", "operand-not-ready"][..] } else { &["missing-proxy-fence"] };
    if regions.iter().any(reads) && (one_round || finding(seen, codes).is_some()) {
        return match finding(seen, codes) {
            Some(mut found) => {
                if found.code == "missing-proxy-fence" && !found.labels.iter().any(|label| label.text.contains("fence"))
                {
                    found.labels.extend(other_fence(seen, &stores));
                }
                Seen::Found(found)
            }
            None => Seen::Done,
        };
    }

    let barriers: Vec<Vec<usize>> = (0..seen.warps()).map(|warp| synchronising(seen, warp)).collect();
    let of = |warp: u32| barriers.get(warp as usize).map_or(&[][..], Vec::as_slice);
    let fences = |warp: u32| seen.of_warp(warp).filter(|(_, event)| is(event, &EventKind::ProxyFence));
    // The first barrier after a warp's stores, by its number among the CTA's.
    let met = |warp: u32, store: usize| of(warp).iter().position(|at| *at > store);
    let before = |warp: u32, store: usize| {
        fences(warp).any(|(fence, _)| fence > store && of(warp).iter().any(|barrier| *barrier > fence))
    };
    let behind = |warp: u32, store: usize| {
        met(warp, store).is_some_and(|number| {
            (0..seen.warps()).any(|issuing| {
                of(issuing).get(number).is_some_and(|barrier| fences(issuing).any(|(fence, _)| fence > *barrier))
            })
        })
    };
    let unmet: Vec<u32> =
        stores.iter().filter(|(warp, store, _)| met(*warp, *store).is_none()).map(|(warp, ..)| *warp).collect();
    let unfenced: Vec<u32> = (stores.iter())
        .filter(|(warp, store, _)| met(*warp, *store).is_some() && !before(*warp, *store) && !behind(*warp, *store))
        .map(|(warp, ..)| *warp)
        .collect();
    let event_of = |warp: u32| stores.iter().find(|(other, ..)| *other == warp);
    if let Some((warp, store, event)) = unfenced.first().and_then(|warp| event_of(*warp)) {
        let (who, verb) = warps(&unfenced);
        let help = "Call `k.fence_proxy_async()` after the last store and before `k.sync()`.";
        let early = fences(*warp).filter(|(fence, _)| fence < store).last();
        let title = match early {
            Some(_) => format!("the proxy fence of {who} stands before the last store, not after it"),
            None => format!("no proxy fence follows the stores of {who} to the tiles"),
        };
        let mut explanation =
            Explanation::new(title, RULE, help).at(&event.place, format!("{who} {verb} the last time here"));
        explanation.labels.extend(early.map(|(_, fence)| label(&fence.place, "the fence")));
        if early.is_none() {
            explanation.labels.extend(other_fence(seen, &stores));
        }
        return wrong_or_cut(seen, explanation);
    }
    if let Some((warp, store, event)) = unmet.first().and_then(|warp| event_of(*warp)) {
        let (who, verb) = warps(&unmet);
        let help = "Call `k.sync()` after the stores and their fence, before the MMAs: then the issuing thread knows of all \
                    threads' stores.";
        let title = format!("no CTA barrier follows the stores of {who} to the tiles");
        let mut explanation =
            Explanation::new(title, RULE, help).at(&event.place, format!("{who} {verb} the last time here"));
        let fence = fences(*warp).find(|(fence, _)| fence > store);
        explanation
            .labels
            .extend(fence.map(|(_, fence)| label(&fence.place, "the fence; no CTA barrier comes after it")));
        let before = of(*warp).iter().rfind(|at| *at < store).and_then(|at| seen.report.trace.get(*at));
        explanation.labels.extend(before.map(|barrier| label(&barrier.place, "the last CTA barrier: it comes before")));
        return wrong_or_cut(seen, explanation);
    }
    Seen::Done
}

fn label(place: &Place, text: &str) -> Label {
    Label::new(place.clone(), text)
}

/// A fence of another kind that stands where the proxy fence belongs: after the stores, before what comes next.
fn other_fence(seen: &Observation, stores: &[(u32, usize, &Event)]) -> Option<Label> {
    const NEXT: &[&str] = &["tcgen05.mma", "tcgen05.ld", "tcgen05.dealloc", "try_wait"];
    let last = stores.iter().map(|(_, _, event)| event.place.line).max()?;
    let mut lines = (1..).zip(seen.built.ptx.lines()).skip_while(|(line, _)| *line <= last);
    let mut found = None;
    for (line, text) in lines.by_ref() {
        if NEXT.iter().any(|next| text.contains(next)) {
            break;
        }
        let instruction = text.trim().trim_end_matches(';');
        if instruction.contains("fence") && !instruction.contains("fence.proxy.async") && !instruction.starts_with('.')
        {
            found = found.or(Some((line, instruction)));
        }
    }
    let (line, text) = found?;
    let source = ptxas::source(&seen.built.ptx, line).map(|place| Source {
        file: place.file,
        line: place.line,
        column: place.column,
    });
    let place = Place { line, column: 1, text: text.to_string(), source };
    Some(Label::new(place, "this fence is of another kind: it does not reach the asynchronous proxy"))
}
