//! How one sees on a run that a TODO of step 1 is done.

use super::{BLK_M, BLK_N, MMA_K};
use crate::diagnostics::Explanation;
use crate::inputs::encode;
use crate::mismatch;
use crate::observe::{Observation, is_store_to};
use crate::source::Matrix;
use crate::steps::Seen;
use crate::steps::tile::Tile;
use emulator::{Barrier, Event, EventKind};

fn not_reached(what: &str) -> Seen {
    Seen::NotReached(what.to_string())
}

/// Nothing of it was seen: the run broke off, or the kernel does not do it.
fn missing(seen: &Observation, title: &str, help: &str) -> Seen {
    if seen.report.completed { Seen::Wrong(Explanation::new(title, "", help)) } else { Seen::Cut }
}

pub(super) fn tiles_arrive(seen: &Observation) -> Seen {
    let (Some(a), Some(b)) = (Tile::find(seen, Matrix::A), Tile::find(seen, Matrix::B)) else {
        return missing(
            seen,
            "there are no tiles for A and B in shared memory",
            "keep the two tiles of the skeleton: 128 rows of 64 elements, with the 128-byte swizzle",
        );
    };
    if !seen.report.completed && a.is_empty() && b.is_empty() {
        return Seen::Cut;
    }
    for (tile, matrix) in [(a, Matrix::A), (b, Matrix::B)] {
        if let Some(explanation) = tile.wrong(seen, matrix) {
            return Seen::Wrong(explanation);
        }
    }
    Seen::Done
}

pub(super) fn stores_are_fenced(seen: &Observation) -> Seen {
    let tiles = [Tile::find(seen, Matrix::A), Tile::find(seen, Matrix::B)];
    let stores = |event: &Event| tiles.iter().flatten().any(|tile| is_store_to(event, tile.region));
    let first_mma = seen.mmas().first().map(|(event, _)| event.start);
    let mut any = false;
    for warp in 0..seen.warps() {
        let Some((last, store)) = seen.of_warp(warp).filter(|(_, event)| stores(event)).last() else { continue };
        any = true;
        // What comes after the MMAs orders nothing before them.
        let in_time = |event: &Event| first_mma.is_none_or(|start| event.end <= start);
        let after = |from: usize, is: fn(&EventKind) -> bool| {
            let mut later = seen.of_warp(warp).filter(|(at, event)| *at > from && in_time(event));
            later.find(|(_, event)| is(&event.kind)).map(|(at, _)| at)
        };
        let rule = "what a thread stored is visible to the tensor core after that thread's `fence.proxy.async` and a \
                    barrier that the issuing thread passes too";
        let Some(fence) = after(last, |kind| matches!(kind, EventKind::ProxyFence)) else {
            let title = format!("warp {warp} does not fence its stores to shared memory");
            let help = "call the proxy fence after the last store, in every thread";
            return wrong_or_cut(seen, Explanation::new(title, rule, help).at(&store.place, "its last store"));
        };
        if after(fence, |kind| matches!(kind, EventKind::CtaBarrier { .. })).is_none() {
            let title = format!("warp {warp} passes no CTA barrier between its stores and the MMAs");
            let help = "put the CTA barrier after the fence: then the issuing thread knows of all threads' stores";
            return wrong_or_cut(seen, Explanation::new(title, rule, help).at(&store.place, "its last store"));
        }
    }
    if any { Seen::Done } else { not_reached("nothing is stored to the tiles yet") }
}

/// Something is missing in a run: if it broke off, that may be why.
fn wrong_or_cut(seen: &Observation, explanation: Explanation) -> Seen {
    if seen.report.completed { Seen::Wrong(explanation) } else { Seen::Cut }
}

pub(super) fn product_in_tensor_memory(seen: &Observation) -> Seen {
    let mmas = seen.mmas();
    let expected = (seen.inputs.problem.k / MMA_K) as usize;
    let Some((first, _)) = mmas.first() else {
        return missing(seen, "no MMA was issued", "let one elected thread issue the four MMAs");
    };
    if mmas.len() != expected {
        let title =
            format!("{} MMAs were issued; K = {} takes {expected} of depth {MMA_K}", mmas.len(), seen.inputs.problem.k);
        let help = if mmas.len() == expected * 32 {
            "every lane of the warp issued them: elect one thread"
        } else {
            "issue one MMA for each 16 columns of K"
        };
        return wrong_or_cut(seen, Explanation::new(title, "", help).at(&first.place, "the first of them"));
    }
    let (Some(a), Some(b)) = (Tile::find(seen, Matrix::A), Tile::find(seen, Matrix::B)) else {
        return not_reached("there are no tiles for A and B");
    };
    if a.is_empty() || b.is_empty() {
        return not_reached("A and B have to arrive in shared memory first");
    }
    let mut slices = Vec::new();
    for (number, (event, mma)) in mmas.iter().enumerate() {
        let number = number + 1;
        for (tile, operand, matrix) in [(&a, &mma.a, Matrix::A), (&b, &mma.b, Matrix::B)] {
            if operand.swizzle != tile.swizzle {
                let title = format!(
                    "the descriptor of {matrix} says a swizzle of {} bytes; the tile `{}` has one of {}",
                    operand.swizzle, tile.region.name, tile.swizzle
                );
                let help = "make the descriptor from the tile, or give it the same swizzle";
                return Seen::Wrong(Explanation::new(title, "", help).at(&event.place, "this MMA"));
            }
        }
        let (left, right) = (slice(&a, &mma.a.elements), slice(&b, &mma.b.elements));
        let (Some(left), Some(right)) = (left, right) else {
            let matrix = if left.is_none() { Matrix::A } else { Matrix::B };
            let title = format!("MMA {number} reads something else than a K slice of {matrix}'s tile");
            let rule =
                "K slice i of a K-major tile with the 128-byte swizzle begins 32 · i bytes from the tile's start";
            let help = "step the descriptor's address by 32 bytes from one MMA to the next";
            return Seen::Wrong(Explanation::new(title, rule, help).at(&event.place, "this MMA"));
        };
        if left != right {
            let title = format!("MMA {number} multiplies K slice {left} of A with K slice {right} of B");
            let help = "step both descriptors by the same number of columns";
            return Seen::Wrong(Explanation::new(title, "", help).at(&event.place, "this MMA"));
        }
        slices.push(left);
        let accumulates_rightly = mma.accumulate == (number > 1);
        if !accumulates_rightly {
            let (title, help) = if mma.accumulate {
                (
                    "the first MMA adds to what tensor memory held before: that was never written".to_string(),
                    "switch accumulation off for the first MMA",
                )
            } else {
                (
                    format!("MMA {number} does not accumulate: what the MMAs before it summed is lost"),
                    "switch accumulation on for every MMA but the first",
                )
            };
            return Seen::Wrong(Explanation::new(title, "", help).at(&event.place, "this MMA"));
        }
    }
    if let Some(lost) = (0..expected).find(|slice| !slices.contains(slice)) {
        let title = format!("no MMA reads K slice {lost}; the MMAs read the slices {slices:?}");
        let help = "let MMA i read K slice i";
        return Seen::Wrong(Explanation::new(title, "", help).at(&first.place, "the first MMA"));
    }
    if a.wrong(seen, Matrix::A).is_some() || b.wrong(seen, Matrix::B).is_some() {
        return not_reached("A and B have to arrive in shared memory first");
    }
    match accumulator(seen) {
        Some(held) if near_product(seen, &held) => Seen::Done,
        Some(_) => Seen::Wrong(
            Explanation::new(
                "tensor memory does not hold A·Bᵀ at the end, though each MMA read the right operands",
                "",
                "look for what else writes to these columns, and for the size of the MMA in its instruction descriptor",
            )
            .at(&first.place, "the first MMA"),
        ),
        None => Seen::Cut,
    }
}

/// The K slice of the tile that an operand is.
fn slice(tile: &Tile<'_>, elements: &[u16]) -> Option<usize> {
    let depth = MMA_K as usize;
    if elements.len() != tile.rows * depth {
        return None;
    }
    (0..tile.columns / depth).find(|slice| {
        (elements.iter().enumerate()).all(|(index, element)| {
            // What was never written reads as poison, and says nothing.
            tile.element(index / depth, slice * depth + index % depth).is_none_or(|held| held == *element)
        })
    })
}

/// Tensor memory under the accumulator, row after row of D; `None` for what was never written.
pub(super) fn accumulator(seen: &Observation) -> Option<Vec<Option<f32>>> {
    const COLUMNS: usize = 512;
    let column = seen.mmas().first()?.1.column as usize;
    let memory = &seen.report.ctas.first()?.tensor;
    let element = |row: usize, n: usize| {
        let byte = 4 * (row * COLUMNS + column + n);
        let bytes: [u8; 4] = memory.bytes.get(byte..byte + 4)?.try_into().ok()?;
        (byte..byte + 4).all(|byte| memory.is_defined(byte)).then(|| f32::from_le_bytes(bytes))
    };
    let (rows, columns) = (seen.inputs.problem.m as usize, seen.inputs.problem.n as usize);
    Some((0..rows * columns).map(|index| element(index / columns, index % columns)).collect())
}

/// Sums of 64 products in FP32, in whatever order, are much nearer than this to those in FP64.
pub(super) fn near_product(seen: &Observation, held: &[Option<f32>]) -> bool {
    held.len() == seen.reference.values.len() && held.iter().zip(&seen.reference.values).all(near)
}

/// The same for B · Aᵀ: a kernel may take its operands the other way round, and turn the result when it stores it.
pub(super) fn near_turned_product(seen: &Observation, held: &[Option<f32>]) -> bool {
    let (rows, columns) = (seen.inputs.problem.m as usize, seen.inputs.problem.n as usize);
    let turned = |index: usize| held.get(index % columns * rows + index / columns).unwrap_or(&None);
    held.len() == seen.reference.values.len()
        && seen.reference.values.iter().enumerate().all(|(index, expected)| near((turned(index), expected)))
}

fn near((held, expected): (&Option<f32>, &f64)) -> bool {
    held.is_some_and(|held| (f64::from(held) - expected).abs() <= 1e-3 * (1.0 + expected.abs()))
}

fn commits(seen: &Observation) -> Vec<(&Event, Barrier, u32)> {
    let mut commits = Vec::new();
    for event in &seen.report.trace {
        if let EventKind::Commit { barrier, covers } = event.kind {
            commits.push((event, barrier, covers));
        }
    }
    commits
}

pub(super) fn committed(seen: &Observation) -> Seen {
    let mmas = seen.mmas();
    let Some((last, _)) = mmas.last() else {
        return not_reached("there is no MMA to commit yet");
    };
    let commits = commits(seen);
    let Some((commit, ..)) = commits.last() else {
        return missing(
            seen,
            "the MMAs were not committed to an mbarrier",
            "let the thread that issued the MMAs commit them, after the last one",
        );
    };
    let covered: usize = commits.iter().map(|(_, _, covers)| *covers as usize).sum();
    if covered < mmas.len() {
        let title = format!("the commit covers {covered} of the {} MMAs", mmas.len());
        let rule = "a commit covers the MMAs that its own thread issued before it";
        let help = "commit after the last MMA, in the thread that issued them";
        return Seen::Wrong(
            Explanation::new(title, rule, help).at(&commit.place, "the commit").at(&last.place, "the last MMA"),
        );
    }
    Seen::Done
}

pub(super) fn awaited(seen: &Observation) -> Seen {
    let commits = commits(seen);
    let Some((commit, barrier, _)) = commits.last() else {
        return not_reached("no commit arrives at the mbarrier yet");
    };
    // The phase that the commit's arrival counts for.
    let arrival = seen.report.trace.iter().rev().find_map(|event| match event.kind {
        EventKind::BarrierArrive { barrier: at, phase, .. } if at == *barrier => Some(phase),
        _ => None,
    });
    for warp in 0..seen.warps() {
        let waits = seen.of_warp(warp).filter_map(|(_, event)| match event.kind {
            EventKind::BarrierWait { barrier: at, parity, passed_phase } if at == *barrier => {
                Some((event, parity, passed_phase))
            }
            _ => None,
        });
        match waits.last() {
            Some((_, _, Some(phase))) if arrival.is_none_or(|arrival| phase == arrival) => {}
            Some((wait, parity, _)) => {
                let title = format!("warp {warp}'s wait passes before the MMAs are complete");
                let rule = "a fresh mbarrier is in phase 0: waiting for parity 0 waits for its first completion, waiting \
                            for parity 1 passes at once";
                let help = "wait for parity 0";
                let explanation = Explanation::new(title, rule, help)
                    .at(&wait.place, format!("waits for parity {parity}"))
                    .at(&commit.place, "the commit completes phase 0");
                return Seen::Wrong(explanation);
            }
            None => {
                let title = format!("warp {warp} does not wait for the MMAs");
                let rule = "an MMA runs on after it was issued; its result may be read after a wait for its commit";
                let help = "let every thread wait on the mbarrier";
                return wrong_or_cut(seen, Explanation::new(title, rule, help).at(&commit.place, "committed here"));
            }
        }
    }
    Seen::Done
}

fn tensor_memory_read(seen: &Observation) -> Seen {
    let base = match seen.mmas().first() {
        Some((_, mma)) => mma.column,
        None => match seen.report.trace.iter().find_map(|event| match event.kind {
            EventKind::TensorAlloc { column, .. } => Some(column),
            _ => None,
        }) {
            Some(column) => column,
            None => return not_reached("no tensor memory is allocated"),
        },
    };
    let is_load = |event: &&Event| matches!(event.kind, EventKind::TensorLoad { .. });
    let Some(first) = seen.report.trace.iter().find(is_load) else {
        return missing(seen, "tensor memory is not read", "let each warp load its 32 lanes with tcgen05.ld");
    };
    if let Some(title) = unread(seen, base) {
        let rule = "warp w of a warpgroup reads lanes 32 · w to 32 · w + 31; 128 columns hold a row of D";
        let help = "let all four warps load, each its own lanes, all 128 columns";
        return wrong_or_cut(seen, Explanation::new(title, rule, help).at(&first.place, "the first load"));
    }
    for warp in 0..seen.warps() {
        let last = seen.of_warp(warp).filter(|(_, event)| matches!(event.kind, EventKind::TensorLoad { .. })).last();
        let Some((last, load)) = last else { continue };
        let waits = |(at, event): (usize, &Event)| at > last && event.kind == EventKind::TensorWaitLoad;
        if !seen.of_warp(warp).any(waits) {
            let title = format!("warp {warp} does not wait for its loads from tensor memory");
            let rule = "the registers of a tcgen05.ld hold its result after tcgen05.wait::ld";
            let help = "wait for the loads before the registers are used";
            return wrong_or_cut(seen, Explanation::new(title, rule, help).at(&load.place, "its last load"));
        }
    }
    Seen::Done
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
        return missing(seen, "nothing is stored to D", "store each thread's row to D");
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
    let title = mismatch::classify(&seen.reference, &seen.comparison)
        .map_or_else(|| "D is wrong".to_string(), |mismatch| mismatch.title());
    let help = "thread t owns row t: lane and warp of the load from tensor memory, row of the stores to D";
    wrong_or_cut(seen, Explanation::new(title, "", help).at(&store.place, "the first store to D"))
}

pub(super) fn freed(seen: &Observation) -> Seen {
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
            let rule = "a CTA frees all tensor memory that it allocated before it ends";
            let help = "free it in one warp, after a CTA barrier that comes after the last load";
            wrong_or_cut(seen, Explanation::new(title, rule, help).at(&alloc.place, "allocated here"))
        }
    }
}
