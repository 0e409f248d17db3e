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

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{
mov.u32 %r1, 0;
$wait:
mbarrier.try_wait.parity.b64 %p1, [%r1], 0;
@!%p1 bra $wait;
bar.sync 0;
@%p1 bra $end;
elect.sync _|%p2, 0xffffffff;
$end:
}";

    /// The text of each mutant, with its mistake, from the line that differs to the end.
    fn made(mistake: &str) -> Vec<String> {
        let text = Text::new(TEXT);
        let of = mutants(&text).into_iter().filter(|mutant| mutant.mistake == mistake);
        let changed = of.map(|mutant| match &mutant.change {
            Change::Lines(lines) => text.with(lines),
            Change::Map(..) => String::new(),
        });
        changed.inspect(|changed| assert_eq!(changed.lines().count(), TEXT.lines().count(), "{changed}")).collect()
    }

    #[test]
    fn deleted_and_doubled() {
        let wait = "mbarrier.try_wait.parity.b64 %p1, [%r1], 0;";
        let deleted = TEXT.replace(wait, "").replace("@!%p1 bra $wait;", "") + "\n";
        let without = |code: &str| TEXT.replace(code, "") + "\n";
        assert_eq!(made("delete"), [deleted, without("bar.sync 0;"), without("elect.sync _|%p2, 0xffffffff;")]);
        let twice = TEXT.replace("bar.sync 0;", "bar.sync 0; bar.sync 0;") + "\n";
        assert!(made("double").contains(&twice));
    }

    #[test]
    fn moved_and_unguarded() {
        let up = TEXT.replace(
            "mov.u32 %r1, 0;\n$wait:\nmbarrier.try_wait.parity.b64 %p1, [%r1], 0;\n@!%p1 bra $wait;",
            "$wait:\nmbarrier.try_wait.parity.b64 %p1, [%r1], 0;\n@!%p1 bra $wait;\nmov.u32 %r1, 0;",
        );
        assert!(made("move up").contains(&(up + "\n")), "a wait moves as a whole: {:#?}", made("move up"));
        let down = TEXT.replace("elect.sync _|%p2, 0xffffffff;\n$end:", "$end:\nelect.sync _|%p2, 0xffffffff;");
        assert!(made("move down").contains(&(down + "\n")));
        assert_eq!(made("drop guard"), [TEXT.replace("@%p1 bra $end;", "") + "\n"]);
    }
}
