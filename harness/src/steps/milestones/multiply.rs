//! MMAs, and the commits that follow them.

use super::super::{BLK_K, Seen, Shape};
use super::{ROWS, Rounds, is_named, missing, rounds};
use crate::diagnostics::Explanation;
use crate::observe::Observation;
use crate::source::Matrix;
use emulator::{Barrier, Event, EventKind, Mma, OperandRead};

/// Columns of K that one MMA takes.
const MMA_K: u32 = 16;
/// MMAs of a round.
const SLICES: usize = (BLK_K / MMA_K) as usize;
const OPERANDS: &str = "D = A · Bᵀ: MMA i of a tile multiplies columns 16 · i to 16 · i + 15 of A's rows and of B's rows \
                        (PTX ISA 9.7.16.10.9.1).";
const ACCUMULATE: &str = "An MMA with enable-input-d adds to what the accumulator holds, without it overwrites it \
                          (PTX ISA 9.7.16.10.9.1).";
const ARRIVES: &str = "A commit arrives at one mbarrier; with .multicast::cluster it arrives at the same offset in each CTA of its \
                       mask (PTX ISA, tcgen05.commit).";
const COVERS: &str = "A commit covers the MMAs that its own thread issued before it (PTX ISA 9.7.16.6.2.1.1).";

/// MMAs of the first CTA, those of each issuing warp in the order of issue.
pub(super) fn issued_mmas(run: &Observation) -> Vec<Vec<(&Event, &Mma)>> {
    let mut all: Vec<(&Event, &Mma)> = run.mmas().into_iter().filter(|(event, _)| event.issuer.cta == 0).collect();
    all.sort_by_key(|(event, _)| (event.issuer.warp, event.issued));
    all.chunk_by(|(a, _), (b, _)| a.issuer.warp == b.issuer.warp).map(<[_]>::to_vec).collect()
}

/// The MMAs of the first tiles: the right operands, and one accumulator, which only the first of a tile does not read.
pub(in crate::steps) fn mmas(run: &Observation, shape: &Shape, wanted: Rounds) -> Seen {
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
            let are = |a: &OperandRead, b: &OperandRead| {
                is_slice(run, Matrix::A, &a.elements, row_a as usize, column)
                    && is_slice(run, Matrix::B, &b.elements, row_b as usize, column)
            };
            if are(&mma.b, &mma.a) && !are(&mma.a, &mma.b) {
                let title = format!(
                    "MMA {number} (round {round}, slice {slice}) has its operands the other way round: first B's tile, then A's"
                );
                let help = "Give `t.mma` a slice of A's tile first, then the same slice of B's.";
                return this(title, OPERANDS, help);
            }
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

/// The MMAs are committed to the barriers of this name, in all CTAs that share them.
pub(in crate::steps) fn committed(run: &Observation, shape: &Shape, name: &str) -> Seen {
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
            let call =
                if shape.ctas == 1 { format!("t.commit({name})") } else { format!("t.commit_multicast({name}, BOTH)") };
            let help = format!("Call `{call}` in the thread that issued the MMAs, after the last of them.");
            return missing(run, Explanation::new(title, COVERS, help).at(&last.place, "the last MMA"));
        };
        if barriers.len() < shape.ctas as usize {
            let title = format!("the commit reaches `{name}` of {} CTA; both of the pair wait for it", barriers.len());
            let help = format!("Call `t.commit_multicast({name}, BOTH)`.");
            return Seen::Wrong(Explanation::new(title, ARRIVES, help).at(&commit.place, "the commit"));
        }
    }
    Seen::Done
}
