//! What the milestones of steps 2 to 10 look for in a run.
//!
//! They look at the first cluster: the tiles that it computes, in the order of [`Shape::tile_of`]. A half-done kernel often
//! breaks off (a barrier that nobody arrives at yet), so each check asks for no more than what its own TODO can show.

use super::step01;
use super::tile::{self, Tile};
use super::{BLK_K, Copies, Seen, Shape};
use crate::diagnostics::Explanation;
use crate::launch;
use crate::mismatch;
use crate::observe::Observation;
use crate::source::Matrix;
use emulator::{Barrier, Copy, CopyKind, Event, EventKind, Mma, OperandRead, RegionKind};

pub(super) use step01::freed;

/// Columns of K that one MMA takes.
const MMA_K: u32 = 16;
/// MMAs of a round.
const SLICES: usize = (BLK_K / MMA_K) as usize;
/// Rows of the tiles of A and B that a CTA loads.
const ROWS: u32 = 128;
/// Columns of D that are staged at once in the solutions.
const STAGED_COLUMNS: u32 = 64;

const BYTES: &str = "A phase of an mbarrier is complete when all arrivals have come, and all bytes that were announced: no \
                     more and no less (PTX ISA 9.7.13.15.5).";
const OPERANDS: &str = "D = A · Bᵀ: MMA i of a tile multiplies columns 16 · i to 16 · i + 15 of A's rows and of B's rows \
                        (PTX ISA 9.7.16.10.9.1).";
const ACCUMULATE: &str = "An MMA with enable-input-d adds to what the accumulator holds, without it overwrites it \
                          (PTX ISA 9.7.16.10.9.1).";
const COVERS: &str = "A commit covers the MMAs that its own thread issued before it (PTX ISA 9.7.16.6.2.1.1).";
const PARITY: &str = "A fresh mbarrier is in phase 0: waiting for parity 0 waits for its first completion, waiting for \
                      parity 1 passes at once (PTX ISA 9.7.13.15.16).";
const INIT: &str = "A phase of an mbarrier takes as many arrivals as it was initialised for (PTX ISA 9.7.13.15.9).";
const GRID: &str = "A launch has as many CTAs as its grid says (PTX ISA 2.2.3).";
const MEET: &str = "What one thread has waited for, the others know after a barrier (PTX ISA 9.7.16.6.4.4).";
const STAGED: &str = "TMA reads a tile as its tensor map says: with the 128-byte swizzle, chunk c of row r lies at chunk \
                      c ^ (r % 8) (PTX ISA 5.5.6).";

/// How many rounds of the first tile a run must show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounds {
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
pub(super) enum Who {
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
pub(super) fn all<const N: usize>(checks: [Seen; N]) -> Seen {
    checks.into_iter().find(|seen| *seen != Seen::Done).unwrap_or(Seen::Done)
}

/// Something is missing: if the run broke off, that may be why.
fn missing(run: &Observation, explanation: Explanation) -> Seen {
    if run.report.completed { Seen::Wrong(explanation) } else { Seen::Cut }
}

/// The name that the kernel gave to a barrier, and its stage.
fn named(run: &Observation, barrier: Barrier) -> Option<(&str, Option<u32>)> {
    let here = |region: &&emulator::Region| {
        region.kind == RegionKind::Barrier && i64::from(region.offset) == i64::from(barrier.offset)
    };
    run.built.regions.iter().find(here).map(|region| (region.name.as_str(), region.stage))
}

fn is_named(run: &Observation, barrier: &Barrier, name: &str) -> bool {
    named(run, *barrier).is_some_and(|(found, _)| found == name)
}

/// The grid that the step asks for.
pub(super) fn grid(run: &Observation, shape: &Shape) -> Seen {
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

/// The arrivals that each barrier of a kernel with roles is made for.
pub(super) fn barriers(run: &Observation, shape: &Shape) -> Seen {
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

/// The tiles of A and B that threads copy: in every CTA the last round's are there, and what was stored is fenced.
pub(super) fn tiles_copied(run: &Observation, shape: &Shape) -> Seen {
    let column = (rounds(run) - 1) * BLK_K as usize;
    let [rows, _] = shape.tiles(&run.inputs.problem);
    for cta in 0..run.report.ctas.len() {
        let (tile_row, tile_column) = (cta as u32 % rows.max(1), cta as u32 / rows.max(1));
        for (matrix, row) in [(Matrix::A, tile_row * shape.tile[0]), (Matrix::B, tile_column * shape.tile[1])] {
            let Some(tile) = Tile::find_in(run, matrix, cta, (row as usize, column)) else {
                return Seen::NotReached(format!("there is no tile for {matrix}"));
            };
            if tile.is_empty() {
                let title = format!("nothing is stored to the tile of {matrix} in shared memory");
                let help = format!(
                    "Store what is loaded from {matrix}, 16 bytes at once: `k.store_shared_16(tile.at(row, column), chunk)`."
                );
                return missing(run, Explanation::new(title, "", help));
            }
            if let Some(wrong) = tile.wrong(run, matrix) {
                let wrong = || tile::of_earlier_round(run, matrix, cta, row as usize).unwrap_or(wrong);
                return if run.report.completed { Seen::Wrong(wrong()) } else { Seen::Cut };
            }
        }
    }
    step01::stores_are_fenced(run)
}

/// Loads of the first cluster, in the order of issue.
fn tma_loads<'a>(run: &'a Observation, shape: &Shape, cta: u32) -> Vec<(&'a Event, &'a Copy)> {
    debug_assert!(cta < shape.ctas);
    let mut loads: Vec<_> =
        run.copies().filter(|(event, copy)| copy.kind == CopyKind::Load && event.issuer.cta == cta).collect();
    loads.sort_by_key(|(event, _)| event.issued);
    loads
}

/// TMA loads: in each round the right boxes of A and B, on one barrier that was told of their bytes.
pub(super) fn loads(run: &Observation, shape: &Shape, wanted: Rounds) -> Seen {
    let (problem, per_round) = (&run.inputs.problem, shape.consumers as usize + 1);
    let help = "Announce the bytes of all tiles of the round (`t.expect_tx`), then ask TMA for them (`t.tma_load`).";
    for cta in 0..shape.ctas {
        let loads = tma_loads(run, shape, cta);
        // What a kernel without the rest of the loop does after these rounds says nothing.
        let seen = if wanted == Rounds::All { usize::MAX } else { wanted.count(run, shape) };
        let wanted = wanted.count(run, shape);
        for (index, round) in loads.chunks(per_round).enumerate().take(seen) {
            let Some([tile_row, tile_column]) = shape.tile_of(problem, run.sms, 0, index / rounds(run)) else { break };
            let column = (index % rounds(run)) as u32 * BLK_K;
            let mut boxes: Vec<(Matrix, u32)> = (0..shape.consumers)
                .map(|consumer| (Matrix::A, tile_row * shape.tile[0] + consumer * shape.ctas * ROWS + cta * ROWS))
                .collect();
            boxes.push((Matrix::B, tile_column * shape.tile[1] + cta * ROWS));
            for (event, copy) in round {
                let matrix = copy.buffer.and_then(|buffer| launch::BUFFERS.get(buffer)).copied();
                let at = copy.coordinates.as_slice();
                let found = boxes
                    .iter()
                    .position(|(wanted, row)| Some(*wanted) == matrix && at == [column as i32, *row as i32]);
                let Some(found) = found else {
                    if round.len() < per_round {
                        return Seen::Cut;
                    }
                    let name = matrix.map_or("what lies outside".to_string(), |matrix| matrix.to_string());
                    let wanted: Vec<String> =
                        boxes.iter().map(|(matrix, row)| format!("{matrix} at column {column}, row {row}")).collect();
                    let title = format!(
                        "round {index} of CTA {cta} loads the box of {name} at column {}, row {}; it needs {}",
                        at.first().copied().unwrap_or(0),
                        at.get(1).copied().unwrap_or(0),
                        wanted.join(" and "),
                    );
                    let explanation = Explanation::new(title, "", "Coordinates are (column, row), both in elements.");
                    return Seen::Wrong(explanation.at(&event.place, "this load"));
                };
                boxes.remove(found);
            }
        }
        if loads.len() < wanted * per_round {
            let title = match loads.len() {
                0 => "TMA is not asked for any tile".to_string(),
                some => format!("CTA {cta} loads {} of the {wanted} rounds that can be seen here", some / per_round),
            };
            let explanation = Explanation::new(title, BYTES, help);
            return match loads.last() {
                Some((event, _)) => missing(run, explanation.at(&event.place, "the last load")),
                None => missing(run, explanation),
            };
        }
    }
    let first = tma_loads(run, shape, 0);
    let Some((event, copy)) = first.first() else { return Seen::Cut };
    let bytes: u32 = first.iter().take(per_round).map(|(_, copy)| copy.bytes).sum::<u32>() * shape.ctas;
    let announced = run.report.trace.iter().find_map(|event| match event.kind {
        EventKind::BarrierArrive { barrier, announced, .. } | EventKind::BarrierExpect { barrier, announced }
            if announced > 0 && copy.barriers.contains(&barrier) =>
        {
            Some((event, announced))
        }
        _ => None,
    });
    match announced {
        Some((_, announced)) if announced == bytes => Seen::Done,
        Some((at, announced)) => {
            let title = format!("{announced} bytes are announced; the loads of a round bring {bytes}");
            let help = "Announce the bytes of all tiles that are loaded on this barrier, in all CTAs that tell it.";
            Seen::Wrong(
                Explanation::new(title, BYTES, help).at(&at.place, "announced here").at(&event.place, "the first load"),
            )
        }
        None => {
            let title = "no bytes are announced to the barrier of the first load";
            Seen::Wrong(Explanation::new(title, BYTES, help).at(&event.place, "the first load"))
        }
    }
}

/// MMAs of the first CTA, those of each issuing warp in the order of issue.
fn issued_mmas(run: &Observation) -> Vec<Vec<(&Event, &Mma)>> {
    let mut all: Vec<(&Event, &Mma)> = run.mmas().into_iter().filter(|(event, _)| event.issuer.cta == 0).collect();
    all.sort_by_key(|(event, _)| (event.issuer.warp, event.issued));
    all.chunk_by(|(a, _), (b, _)| a.issuer.warp == b.issuer.warp).map(<[_]>::to_vec).collect()
}

/// The MMAs of the first tiles: the right operands, and one accumulator, which only the first of a tile does not read.
pub(super) fn mmas(run: &Observation, shape: &Shape, wanted: Rounds) -> Seen {
    let problem = &run.inputs.problem;
    let issued = issued_mmas(run);
    if issued.len() < shape.consumers as usize {
        let title = match issued.len() {
            0 => "no MMA was issued".to_string(),
            some => format!("{some} warp issues MMAs; there are {} consumers", shape.consumers),
        };
        let help = "Call `t.mma(accumulator, a.k_slice(…), b.k_slice(…), …)` once for each 16 columns of K.";
        return missing(run, Explanation::new(title, OPERANDS, help));
    }
    for (consumer, all) in issued.iter().enumerate() {
        let (seen, wanted) = (wanted, wanted.count(run, shape) * SLICES);
        for (number, (event, mma)) in all.iter().enumerate() {
            let (round, slice) = (number / SLICES % rounds(run), number % SLICES);
            let first = round == 0 && slice == 0;
            let this = |title: String, rule: &str, help: &str| {
                Seen::Wrong(Explanation::new(title, rule, help).at(&event.place, format!("MMA {number}")))
            };
            if mma.accumulate == first {
                let help = "Let all MMAs of a tile but its very first accumulate: `(round + slice).gt(0)`.";
                let what = if first { "adds to what the accumulator held before" } else { "does not accumulate" };
                return this(format!("MMA {number} (round {round}, slice {slice}) {what}"), ACCUMULATE, help);
            }
            // Later operands may already be written over where nobody waits yet.
            if number >= wanted {
                continue;
            }
            let Some([tile_row, tile_column]) = shape.tile_of(problem, run.sms, 0, number / SLICES / rounds(run))
            else {
                break;
            };
            let column = (round * SLICES + slice) * MMA_K as usize;
            let row_a = tile_row * shape.tile[0] + consumer as u32 * shape.ctas * ROWS;
            let row_b = tile_column * shape.tile[1];
            for (matrix, operand, row) in [(Matrix::A, &mma.a, row_a), (Matrix::B, &mma.b, row_b)] {
                // Where nobody waits for the MMAs yet, the next round is stored over what they read.
                let there = seen == Rounds::First && lies_at(run, matrix, operand, slice);
                if !there && !is_slice(run, matrix, &operand.elements, row as usize, column) {
                    let title = format!(
                        "MMA {number} (round {round}, slice {slice}) does not read rows {row} and on, columns {column} to {} \
                         of {matrix}",
                        column + MMA_K as usize - 1
                    );
                    let help = "Take both operands from the tiles of this round's stage: `k_slice(slice * MMA_K)`.";
                    return this(title, OPERANDS, help);
                }
            }
        }
        if all.len() < wanted {
            let title = format!("{} MMAs were issued where {wanted} can be seen", all.len());
            let help = "Issue one MMA for each 16 columns of a tile, in every round.";
            let last = &all[all.len() - 1].0.place;
            return missing(run, Explanation::new(title, OPERANDS, help).at(last, "the last MMA"));
        }
    }
    Seen::Done
}

/// Whether an operand is read where this K slice of the matrix's only tile lies.
fn lies_at(run: &Observation, matrix: Matrix, operand: &OperandRead, slice: usize) -> bool {
    let name = matrix.to_string();
    let start = 2 * slice as i64 * i64::from(MMA_K);
    (run.built.regions.iter()).any(|region| {
        region.name == name && region.stage.is_none() && i64::from(operand.offset) == i64::from(region.offset) + start
    })
}

/// Whether an operand is these rows and this K slice of a matrix.
fn is_slice(run: &Observation, matrix: Matrix, elements: &[u16], row: usize, column: usize) -> bool {
    let (depth, k) = (MMA_K as usize, run.inputs.problem.k as usize);
    let held = if matrix == Matrix::A { &run.inputs.a } else { &run.inputs.b };
    let rows = held.chunks(k).skip(row);
    !elements.is_empty()
        && elements.len().div_ceil(depth) <= rows.len()
        && elements.chunks(depth).zip(rows).all(|(found, expected)| expected.get(column..column + depth) == Some(found))
}

pub(super) fn committed(run: &Observation, shape: &Shape, name: &str) -> Seen {
    if issued_mmas(run).is_empty() {
        return Seen::NotReached("there is no MMA to commit yet".to_string());
    }
    for issued in issued_mmas(run) {
        let (first, last) = (issued[0].0, issued[issued.len() - 1].0);
        let commits: Vec<(&Event, &Vec<Barrier>, u32)> = (run.report.trace.iter())
            .filter_map(|event| match &event.kind {
                EventKind::Commit { barriers, covers } if event.issuer == first.issuer => {
                    Some((event, barriers, *covers))
                }
                _ => None,
            })
            .collect();
        let to = commits.iter().find(|(_, barriers, _)| barriers.iter().any(|barrier| is_named(run, barrier, name)));
        let Some((commit, barriers, _)) = to else {
            let title = format!("warp {} commits nothing to `{name}`", first.issuer.warp);
            let help = format!("Call `t.commit({name})` in the thread that issued the MMAs, after the last of them.");
            return missing(run, Explanation::new(title, COVERS, help).at(&last.place, "the last MMA"));
        };
        if barriers.len() < shape.ctas as usize {
            let title = format!("the commit reaches `{name}` of {} CTA; both of the pair wait for it", barriers.len());
            let help = format!("Call `t.commit_multicast({name}, BOTH)`.");
            return Seen::Wrong(Explanation::new(title, COVERS, help).at(&commit.place, "the commit"));
        }
    }
    Seen::Done
}

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
pub(super) fn awaited(run: &Observation, name: &str, who: Who) -> Seen {
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

/// Every warp waits for every round, each in its own phase.
pub(super) fn every_round_awaited(run: &Observation, shape: &Shape, name: &str) -> Seen {
    for warp in 0..shape.threads / 32 {
        let phases: Vec<Option<u64>> =
            waits(run, name).filter(|(waiting, ..)| *waiting == warp).map(|(.., phase)| phase).collect();
        let right = (0..rounds(run) as u64).all(|round| phases.get(round as usize) == Some(&Some(round)));
        if right {
            continue;
        }
        let wrong = phases.iter().zip(0..).position(|(phase, round)| *phase != Some(round)).unwrap_or(phases.len());
        let title = format!("warp {warp}'s wait number {wrong} for `{name}` does not wait for phase {wrong}");
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
pub(super) fn all_meet(run: &Observation) -> Seen {
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

/// When the first tile's last MMA ends: the one before the second that does not accumulate.
fn first_tile_end(run: &Observation) -> Option<u64> {
    let all = issued_mmas(run);
    let first = all.first()?;
    let next = first.iter().skip(1).position(|(_, mma)| !mma.accumulate).map_or(first.len(), |at| at + 1);
    first[..next].iter().map(|(event, _)| event.end).max()
}

/// The sums of the first CTA's last tile are in the tiles of D in shared memory.
pub(super) fn d_staged(run: &Observation, shape: &Shape) -> Seen {
    debug_assert_eq!(shape.copies, Copies::Tma);
    if !run.report.trace.iter().any(|event| matches!(event.kind, EventKind::TensorLoad { .. })) {
        let help = "Load the columns of the warp's own 32 lanes: `tmem_load::<64>(columns.lane(row / 32 * 32))`.";
        return missing(run, Explanation::new("tensor memory is not read", STAGED, help));
    }
    let problem = &run.inputs.problem;
    let Some([tile_row, tile_column]) = shape.last_tile(problem, run.sms, 0) else { return Seen::Cut };
    let tiles: Vec<_> = (run.built.regions.iter())
        .filter(|region| region.name == "D" && matches!(region.kind, RegionKind::Tile { .. }))
        .collect();
    // Another layout than the solution's (two tiles in turns, tiles that are wider): what is where is the kernel's own.
    let parts = if shape.specialised { shape.consumers } else { shape.tile[1].div_ceil(STAGED_COLUMNS) };
    let usual = |region: &&emulator::Region| {
        matches!(region.kind, RegionKind::Tile { rows: ROWS, columns: STAGED_COLUMNS, .. })
    };
    if tiles.len() != parts as usize || !tiles.iter().all(usual) {
        let stored = tiles.iter().filter_map(|region| Tile::at(run, region, 0, (0, 0))).any(|tile| !tile.is_empty());
        return if stored { Seen::Done } else { Seen::Cut };
    }
    for (index, region) in tiles.iter().enumerate() {
        let Some(tile) = Tile::at(run, region, 0, (0, 0)) else { return Seen::Cut };
        let columns = tile.columns as u32;
        // Without roles each part of the tile has a place of its own; with roles the last chunk is left, of each consumer.
        let (row, column) = if shape.specialised {
            (index as u32 * shape.ctas * ROWS, shape.tile[1].saturating_sub(columns))
        } else {
            (0, index as u32 * columns)
        };
        let (row, column) = (tile_row * shape.tile[0] + row, tile_column * shape.tile[1] + column);
        if tile.is_empty() {
            let help = "Store the rounded sums of the thread's row, 16 bytes at once: `store_shared_16(d.at(row, column), chunk)`.";
            let title = "nothing is stored to the tile of D in shared memory";
            return missing(run, Explanation::new(title, STAGED, help));
        }
        for at in 0..tile.rows * tile.columns {
            let (r, c) = (at / tile.columns, at % tile.columns);
            let expected = run.reference.at(row as usize + r, column as usize + c);
            let found = tile.element(r, c).map(|bits| crate::inputs::decode(problem.dtype, bits));
            if !found.is_some_and(|found| run.reference.accepts(expected, found)) {
                let found = found.map_or("nothing".to_string(), |found| found.to_string());
                let title = format!(
                    "row {r}, column {c} of `{}` in shared memory holds {found}; D has {} there (row {}, column {})",
                    region.name,
                    mismatch::rounded(expected),
                    row as usize + r,
                    column as usize + c,
                );
                let help =
                    "Thread i has row i: give the tile its row and column, and it knows where the swizzle puts them.";
                let explanation = Explanation::new(title, STAGED, help);
                return match run.first_store_to(region) {
                    Some(event) => missing(run, explanation.at(&event.place, "the tile's first store")),
                    None => missing(run, explanation),
                };
            }
        }
    }
    Seen::Done
}

/// All threads of the write-back arrive at the barrier that tells of a free accumulator.
pub(super) fn accumulator_handed_back(run: &Observation, shape: &Shape) -> Seen {
    let wanted = 128 * shape.ctas;
    for consumer in 0..shape.consumers {
        let mine = |barrier: &Barrier| {
            named(run, *barrier).is_some_and(|(name, stage)| name == "ld2mma" && stage.unwrap_or(0) == consumer)
                && barrier.cta == 0
        };
        let arrived: u32 = (run.report.trace.iter())
            .map(|event| match &event.kind {
                EventKind::BarrierArrive { barrier, phase: 0, count, .. } if mine(barrier) => *count,
                _ => 0,
            })
            .sum();
        if arrived != wanted {
            let title = format!("{arrived} threads arrive at `ld2mma` for the first tile; a phase takes {wanted}");
            let help =
                "Behind the last chunk's `tmem_wait_load`, let every thread of the warpgroup arrive: `wg.arrive(…)`.";
            return missing(run, Explanation::new(title, INIT, help));
        }
    }
    Seen::Done
}

/// D is right.
pub(super) fn d_right(run: &Observation) -> Seen {
    let Some(wrong) = mismatch::classify(&run.reference, &run.comparison) else { return Seen::Done };
    let wrong = run.told(wrong);
    let help = wrong.help().unwrap_or("Look at the rows and columns of the first elements that are not right.");
    let explanation = Explanation::new(wrong.title(), "", help);
    let store = run.first_store_to_matrix(Matrix::D);
    match store {
        Some(event) => missing(run, explanation.at(&event.place, "the first store to D")),
        None => missing(run, explanation),
    }
}
