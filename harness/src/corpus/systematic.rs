//! Every synchronising instruction deleted, doubled, and moved across its neighbour; every guard dropped.
//!
//! A neighbour is the next statement that shows on which side of it the instruction stands: `neighbour`. And where two in a row are
//! one by the ISA, the double stands where it is one more: a wait's waits for the next phase, as a call does that flips the phase; that of
//! an election elects among those who are left behind the first one's branch.

use super::kernels::Kernel;
use super::neighbour::{above, below};
use super::operands::{REGISTER, declared};
use super::text::{Body, Text, number};
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
pub fn mutants(kernel: &Kernel) -> Vec<Mutant> {
    let text = &kernel.text;
    let mut all = Vec::new();
    for at in text.find(|statement| SYNCHRONISE.iter().any(|opcode| statement.is(opcode))) {
        let whole = text.wait_loop(at).unwrap_or(at..at + 1);
        all.push(deleted(text, at));
        all.extend(doubled(text, at));
        let up = above(kernel, &whole).map(|to| moved(text, at, to..whole.start, whole.clone(), to));
        let down = below(kernel, &whole).map(|to| moved(text, at, whole.clone(), whole.end..to + 1, to));
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

/// Twice, where that is more than once.
fn doubled(text: &Text, at: usize) -> Option<Mutant> {
    let statement = &text.statements[at];
    if text.wait_loop(at).is_some() {
        return next_phase(text, at);
    }
    let code = statement.code();
    let behind = if is_branched_on(text, at) { at + 1 } else { at };
    let line = text.statements[behind].line;
    let twice = text.in_line(line, &format!("{} {code}", text.statements[behind].code()));
    let what = if behind == at { What::Doubled(at) } else { What::Other };
    Some(lines(what, "double", vec![(line, twice)]))
}

/// An election, and behind it the branch of those who are not elected.
fn is_branched_on(text: &Text, at: usize) -> bool {
    let guard = text.statements.get(at + 1).filter(|next| next.target().is_some()).and_then(|next| next.guard());
    let elects = |predicate: &String| guard.is_some_and(|guard| predicate.ends_with(&guard.register));
    text.statements[at].is("elect.sync") && text.statements[at].operands().first().is_some_and(elects)
}

/// A wait, and one more for the phase behind.
fn next_phase(text: &Text, at: usize) -> Option<Mutant> {
    /// A label that no kernel of the builder has.
    const LABEL: &str = "$mutant";
    let (ask, back) = (&text.statements[at], &text.statements[at + 1]);
    let parity = ask.operands().get(2)?;
    let mut changes = Vec::new();
    let (flip, other) = match number(parity) {
        Some(parity) => (String::new(), (1 - parity).to_string()),
        None => {
            changes.push(declared(text)?);
            (format!("xor.b32 {REGISTER}, {parity}, 1; "), REGISTER.to_string())
        }
    };
    let again = format!("{flip}{LABEL}: {} {}", ask.with_operand(2, other).code(), back.with_operand(0, LABEL).code());
    changes.push((back.line, text.in_line(back.line, &format!("{} {again}", back.code()))));
    Some(lines(What::Other, "double", changes).at(ask.line + 1))
}

/// An instruction, and what lies up to its neighbour, change places; the lines that they stood on are filled in the new order.
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
st.shared.b32 [%r2], %r3;
mov.u32 %r4, 0;
$wait:
mbarrier.try_wait.parity.b64 %p1, [%r1], 0;
@!%p1 bra $wait;
bar.sync 0;
@%p1 bra $end;
elect.sync _|%p2, 0xffffffff;
@!%p2 bra $end;
$end:
}";

    /// The text of each mutant, with its mistake, from the line that differs to the end.
    fn made(mistake: &str) -> Vec<String> {
        let kernel = Kernel { text: Text::new(TEXT), ..Kernel::new(1).unwrap() };
        let text = &kernel.text;
        let of = mutants(&kernel).into_iter().filter(|mutant| mutant.mistake == mistake);
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
        let next = "@!%p1 bra $wait; $mutant: mbarrier.try_wait.parity.b64 %p1, [%r1], 1; @!%p1 bra $mutant;";
        let elect = "elect.sync _|%p2, 0xffffffff;";
        assert_eq!(
            made("double"),
            [
                TEXT.replace("@!%p1 bra $wait;", next) + "\n",
                TEXT.replace("bar.sync 0;", "bar.sync 0; bar.sync 0;") + "\n",
                TEXT.replace("@!%p2 bra $end;", &format!("@!%p2 bra $end; {elect}")) + "\n",
            ]
        );
    }

    #[test]
    fn moved_and_unguarded() {
        let between = "st.shared.b32 [%r2], %r3;\nmov.u32 %r4, 0;\n";
        let up = TEXT.replace(between, "").replace("@!%p1 bra $wait;\n", &format!("@!%p1 bra $wait;\n{between}"));
        let ups = made("move up");
        assert_eq!(ups[0], up + "\n", "a wait moves as a whole, and across what shows it");
        let down = TEXT.replace("bar.sync 0;\n@%p1 bra $end;", "@%p1 bra $end;\nbar.sync 0;");
        assert!(made("move down").contains(&(down + "\n")));
        assert_eq!(made("drop guard").len(), 2);
    }
}
