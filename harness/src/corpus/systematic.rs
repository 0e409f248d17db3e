//! Every synchronising instruction deleted, doubled, and moved by one instruction; every guard dropped.

use super::text::{Body, Text};
use super::{Change, Kind, Mutant, What, mutant};
use std::ops::Range;

/// Instructions that synchronise, or that say who does.
const SYNCHRONISE: [&str; 22] = [
    "bar",
    "barrier",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group",
    "cp.async.commit_group",
    "cp.async.wait_all",
    "cp.async.wait_group",
    "elect.sync",
    "fence",
    "griddepcontrol",
    "mbarrier",
    "membar",
    "setmaxnreg",
    "tcgen05.alloc",
    "tcgen05.commit",
    "tcgen05.dealloc",
    "tcgen05.fence",
    "tcgen05.relinquish_alloc_permit",
    "tcgen05.wait",
    "wgmma.commit_group",
    "wgmma.fence",
    "wgmma.wait_group",
];

/// All of a kernel.
pub fn mutants(text: &Text) -> Vec<Mutant> {
    let mut all = Vec::new();
    for at in text.find(|statement| SYNCHRONISE.iter().any(|opcode| statement.is(opcode))) {
        let whole = text.wait_loop(at).unwrap_or(at..at + 1);
        all.push(deleted(text, at));
        all.push(doubled(text, at));
        // A neighbour is a label or an instruction; the last instruction of a kernel has one.
        let up = whole.start.checked_sub(1).map(|above| moved(text, at, above..above + 1, whole.clone(), above));
        let below = whole.end;
        let down = (below < text.statements.len()).then(|| moved(text, at, whole, below..below + 1, below));
        all.extend(up.into_iter().chain(down));
    }
    all.extend(text.find(|statement| statement.target().is_some()).filter_map(|at| unguarded(text, at)));
    all
}

fn lines(what: What, mistake: &'static str, lines: Vec<(usize, String)>) -> Mutant {
    mutant(mistake, Kind::Systematic, what, Change::Lines(lines))
}

/// Without it. Of a wait, the question and the branch back go: it falls through.
fn deleted(text: &Text, at: usize) -> Mutant {
    let gone = text.wait_loop(at).map_or(at..at + 1, |whole| at..whole.end);
    let blank = |at: usize| (text.statements[at].line, String::new());
    lines(What::Deleted(at), "delete", gone.map(blank).collect())
}

/// Twice, on one line.
fn doubled(text: &Text, at: usize) -> Mutant {
    let statement = &text.statements[at];
    let code = statement.code();
    let twice = text.in_line(statement.line, &format!("{code} {code}"));
    lines(What::Doubled(at), "double", vec![(statement.line, twice)])
}

/// Two neighbours change places; the lines that they stood on are filled in the new order.
fn moved(text: &Text, at: usize, first: Range<usize>, second: Range<usize>, across: usize) -> Mutant {
    let slots = first.start..second.end;
    let order = second.chain(first);
    let place = |(slot, from): (usize, usize)| {
        let line = text.statements[slot].line;
        (line, text.in_line(line, &text.statements[from].code()))
    };
    let mistake = if across < at { "move up" } else { "move down" };
    lines(What::Moved(at, across), mistake, slots.zip(order).map(place).collect())
}

/// The branch around a part that not all threads execute is gone: all execute it.
fn unguarded(text: &Text, at: usize) -> Option<Mutant> {
    let statement = &text.statements[at];
    let forward = text.target(at)? > at;
    let Body::Instruction { guard: Some(_), .. } = &statement.body else { return None };
    forward.then(|| lines(What::Unguarded(at), "drop guard", vec![(statement.line, String::new())]))
}
