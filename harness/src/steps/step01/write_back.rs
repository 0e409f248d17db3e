//! TODOs 1.6 and 1.7: the sums reach D, and tensor memory is freed.

use super::completion::awaited;
use super::milestones::{allocation, commits, missing, not_reached, wrong_or_cut};
use super::product::{accumulator, near_product};
use super::{BLK_M, BLK_N};
use crate::diagnostics::Explanation;
use crate::inputs::encode;
use crate::mismatch;
use crate::observe::Observation;
use crate::source::Matrix;
use crate::steps::Seen;
use emulator::{Event, EventKind};

const LANES: &str = "Warp w of a warpgroup reaches lanes 32 · w to 32 · w + 31 of tensor memory (PTX ISA 9.7.16.8.1); with \
                     128 rows, row i of D is lane i (9.7.16.10.5).";
const WAIT_LOAD: &str = "tcgen05.ld is asynchronous, and tcgen05.wait::ld is what waits for it (PTX ISA 9.7.16.8.5).";
const FREE: &str = "All tensor memory must be freed before the kernel ends (PTX ISA 9.7.16.7.1).";

fn tensor_memory_read(seen: &Observation) -> Seen {
    let column = |event: &Event| match event.kind {
        EventKind::TensorAlloc { column, .. } => Some(column),
        _ => None,
    };
    let base = seen.mmas().first().map(|(_, mma)| mma.column).or_else(|| allocation(seen).and_then(column));
    let Some(base) = base else {
        return not_reached("no tensor memory is allocated");
    };
    let is_load = |event: &&Event| matches!(event.kind, EventKind::TensorLoad { .. });
    let Some(first) = seen.report.trace.iter().find(is_load) else {
        let help = "Let each warp load its 32 lanes: `k.tmem_load::<128>(accumulator.lane(…))`.";
        return missing(seen, after_the_mmas(seen, Explanation::new("tensor memory is not read", LANES, help)));
    };
    if let Some(title) = unread(seen, base) {
        let help = "Let all four warps load, each its own lanes (`accumulator.lane(row / 32 * 32)`), all 128 columns.";
        return wrong_or_cut(seen, Explanation::new(title, LANES, help).at(&first.place, "the first load"));
    }
    for warp in 0..seen.warps() {
        let last = seen.of_warp(warp).filter(|(_, event)| matches!(event.kind, EventKind::TensorLoad { .. })).last();
        let Some((last, load)) = last else { continue };
        let waits = |(at, event): (usize, &Event)| at > last && event.kind == EventKind::TensorWaitLoad;
        if !seen.of_warp(warp).any(waits) {
            let title = format!("warp {warp} does not wait for its loads from tensor memory");
            let help = "Call `k.tmem_wait_load()` before the registers are used.";
            return wrong_or_cut(seen, Explanation::new(title, WAIT_LOAD, help).at(&load.place, "its last load"));
        }
    }
    Seen::Done
}

/// The last thing that comes before: where the write-back is missing.
fn after_the_mmas(seen: &Observation, explanation: Explanation) -> Explanation {
    let commit = commits(seen).last().map(|(event, ..)| *event);
    match commit.or_else(|| allocation(seen)) {
        Some(event) => explanation.at(&event.place, "nothing after this reads what comes into tensor memory"),
        None => explanation,
    }
}

/// What of the accumulator at this column no warp loads, in a sentence.
pub(super) fn unread(seen: &Observation, base: u32) -> Option<String> {
    let (lanes, columns) = (BLK_M as usize, BLK_N as usize);
    let mut read = vec![false; lanes * columns];
    for event in &seen.report.trace {
        if let EventKind::TensorLoad { column, columns: count, lane, lanes: rows } = event.kind {
            for row in lane..lane.saturating_add(rows) {
                for at in column..column.saturating_add(count) {
                    let at = at.checked_sub(base).map(|at| (row as usize, at as usize));
                    if let Some((row, at)) = at.filter(|(row, at)| *row < lanes && *at < columns) {
                        read[row * columns + at] = true;
                    }
                }
            }
        }
    }
    let first = read.iter().position(|read| !read)?;
    let count = read.iter().filter(|read| !**read).count();
    Some(format!(
        "{count} of {} elements of the accumulator are not read: the first at lane {}, column {}",
        read.len(),
        first / columns,
        first % columns
    ))
}

pub(super) fn d_written(seen: &Observation) -> Seen {
    if seen.comparison.is_right() {
        return Seen::Done;
    }
    let Some(store) = seen.first_store_to_matrix(Matrix::D) else {
        let help = "Store each thread's row, 16 bytes at once: `k.store_global_16(gemm.d.at(row, column), chunk)`.";
        let explanation = Explanation::new("nothing is stored to D", "", help);
        let load = seen.report.trace.iter().rfind(|event| matches!(event.kind, EventKind::TensorLoad { .. }));
        let explanation = match load {
            Some(load) => explanation.at(&load.place, "loaded from tensor memory here, and stored nowhere"),
            None => after_the_mmas(seen, explanation),
        };
        return missing(seen, explanation);
    };
    let Some(held) = accumulator(seen).filter(|held| held.iter().all(Option::is_some)) else {
        return not_reached("tensor memory has to hold the product first");
    };
    // D may be right in itself even where the product is not.
    let dtype = seen.inputs.problem.dtype;
    let copied = held
        .iter()
        .zip(&seen.comparison.found)
        .all(|(held, found)| held.is_some_and(|held| encode(dtype, held) == encode(dtype, *found)));
    if copied {
        return Seen::Done;
    }
    if awaited(seen) != Seen::Done {
        return not_reached("the loads from tensor memory have to wait for the MMAs first");
    }
    let read = tensor_memory_read(seen);
    if read != Seen::Done {
        return read;
    }
    if !near_product(seen, &held) {
        return not_reached("tensor memory has to hold the product first");
    }
    let Some(mismatch) = mismatch::classify(&seen.reference, &seen.comparison) else { return Seen::Done };
    let mismatch = seen.told(mismatch);
    let help = mismatch.help().unwrap_or("Thread i has row i: lane and warp of the load, and row of the stores to D.");
    let rule = "Thread i of the warpgroup loads lane i of tensor memory, which is row i of D (PTX ISA 9.7.16.10.5).";
    wrong_or_cut(seen, Explanation::new(mismatch.title(), rule, help).at(&store.place, "the first store to D"))
}

pub(in crate::steps) fn freed(seen: &Observation) -> Seen {
    let (mut held, mut first) = (0u64, None);
    for event in &seen.report.trace {
        match event.kind {
            EventKind::TensorAlloc { columns, .. } => {
                held += u64::from(columns);
                first = first.or(Some(event));
            }
            EventKind::TensorFree { columns, .. } => held = held.saturating_sub(u64::from(columns)),
            _ => {}
        }
    }
    match first {
        None => not_reached("no tensor memory is allocated"),
        Some(_) if held == 0 => Seen::Done,
        Some(alloc) => {
            let title = format!("{held} columns of tensor memory are still held when the CTA ends");
            let help =
                "Free it in the warp that took it, behind a CTA barrier after the last load: `w.tmem_dealloc(tmem)`.";
            wrong_or_cut(seen, Explanation::new(title, FREE, help).at(&alloc.place, "allocated here"))
        }
    }
}
