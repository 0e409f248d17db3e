//! Mistakes of a design, as a person makes them: several lines, or one that means more than its number says.

use super::flow;
use super::kernels::Kernel;
use super::text::{Statement, Text, further, number};
use super::{Change, Kind, Mutant, What, mutant};
use std::ops::Range;

/// All of a kernel.
pub fn mutants(kernel: &Kernel) -> Vec<Mutant> {
    let text = &kernel.text;
    let mut all = phases(text);
    all.extend(rings(text));
    all.extend(rounds(text));
    all.extend(initialised(text));
    all.extend(released(text));
    all.extend(told_early(text));
    all.extend(reused(text));
    all.extend(shared_barrier(text));
    all.extend(masks(text));
    all.extend(ends(text));
    let warps = kernel.launch.block.iter().product::<u32>() / 32;
    all.retain(|mutant| mutant.mistake != BY_IDLE || warps > IDLE);
    all
}

fn lines(mistake: &'static str, lines: Vec<(usize, String)>) -> Mutant {
    mutant(mistake, Kind::Protocol, What::Other, Change::Lines(lines))
}

/// One line with something else in it.
fn line(text: &Text, at: usize, mistake: &'static str, code: &str) -> Mutant {
    let line = text.statements[at].line;
    lines(mistake, vec![(line, text.in_line(line, code))])
}

/// Registers that hold a phase are flipped somewhere: they begin with the other one, are reset for every tile, and never flipped.
fn phases(text: &Text) -> Vec<Mutant> {
    let mut all = Vec::new();
    let flips = |s: &Statement| {
        s.is("xor.b32") && s.operands().get(2).is_some_and(|by| by == "1") && s.operands()[0] == s.operands()[1]
    };
    for flip in text.find(flips) {
        let register = &text.statements[flip].operands()[0];
        let begins = |s: &Statement| s.is("mov") && s.guard().is_none() && &s.operands()[0] == register;
        let Some(begin) = (0..flip).rev().find(|at| begins(&text.statements[*at])) else { continue };
        let Some(value) = text.statements[begin].operands().get(1).and_then(|value| number(value)) else { continue };
        let of = |mutant: Mutant| Mutant { what: What::Register(register.clone()), ..mutant };
        let other = text.statements[begin].with_operand(1, (1 - value).to_string());
        all.push(of(line(text, begin, "first phase", &other.code())));
        all.push(of(line(text, flip, "phase never flipped", "")));
        // The outermost loop around the flip: that over tiles, or over rounds.
        let loops = |back: &usize| text.target(*back).is_some_and(|label| (begin..flip).contains(&label));
        let back = (flip..text.statements.len()).rfind(loops);
        if let Some(label) = back.and_then(|back| text.target(back)) {
            let reset = format!("{} {}", text.statements[label].code(), text.statements[begin].code());
            all.push(of(line(text, label, "phase reset", &reset)));
        }
    }
    all
}

/// `setp.eq.u32 %p8, %r9, 4` before `@%p8 mov.u32 %r9, 0`: a ring of one stage more, and of one less.
fn rings(text: &Text) -> Vec<Mutant> {
    let wraps = |at: &usize| {
        let (set, next) = (&text.statements[*at], text.statements.get(at + 1));
        set.is("setp.eq")
            && next.is_some_and(|next| {
                next.guard().is_some_and(|guard| guard.register == set.operands()[0]) && next.is("mov")
            })
    };
    let mut all = Vec::new();
    for at in (0..text.statements.len()).filter(wraps) {
        let statement = &text.statements[at];
        let Some(depth) = number(&statement.operands()[2]) else { continue };
        for other in [depth + 1, depth - 1] {
            all.push(line(text, at, "ring depth", &statement.with_operand(2, other.to_string()).code()));
        }
        all.push(line(text, at + 1, "ring without end", ""));
    }
    all
}

/// One round more and one less of a loop that counts to a number.
fn rounds(text: &Text) -> Vec<Mutant> {
    let ends = |at: &usize| text.statements[*at].is("setp.lt") && text.target(at + 1).is_some_and(|label| label < *at);
    let mut all = Vec::new();
    for at in (0..text.statements.len()).filter(ends) {
        let statement = &text.statements[at];
        let Some(rounds) = statement.operands().get(2).and_then(|rounds| number(rounds)) else { continue };
        for other in [rounds + 1, rounds - 1] {
            all.push(line(text, at, "rounds", &statement.with_operand(2, other.to_string()).code()));
        }
    }
    all
}

/// The part of an elected thread in which barriers are initialised: two threads do, or none.
fn initialised(text: &Text) -> Vec<Mutant> {
    let mut all = Vec::new();
    for elect in text.find(|s| s.is("elect.sync")) {
        let Some(end) = text.target(elect + 1) else { continue };
        if !text.statements[elect + 1..end].iter().any(|s| s.is("mbarrier.init")) {
            continue;
        }
        let predicate = text.statements[elect].operands()[0].trim_start_matches("_|");
        let Some(declared) = super::operands::declared(text) else { continue };
        let register = super::operands::REGISTER;
        let code = format!("mov.u32 {register}, %laneid; setp.lt.u32 {predicate}, {register}, 2;");
        let at = text.statements[elect].line;
        all.push(lines("initialised by two", vec![declared, (at, text.in_line(at, &code))]).at(at + 1));
        let target = text.statements[elect + 1].target().unwrap_or_default();
        all.push(line(text, elect + 1, "initialised by none", &format!("bra {target};")));
    }
    all
}

/// An arrival behind a `tcgen05.wait::ld` comes before it, and before the load.
fn released(text: &Text) -> Vec<Mutant> {
    let mut all = Vec::new();
    for wait in text.find(|s| s.is("tcgen05.wait::ld")) {
        let arrives = |at: &usize| text.statements[*at].is("mbarrier.arrive");
        let Some(arrive) = (wait..text.statements.len().min(wait + 8)).find(arrives) else { continue };
        all.push(moved(text, "released before the wait", wait..wait + 1, wait + 1..arrive + 1));
        all.push(moved(text, "released before the load", wait - 1..wait + 1, wait + 1..arrive + 1));
    }
    all
}

/// A commit comes before the last MMA in front of it: the stage that this one reads is free, or its product told, one MMA early.
fn told_early(text: &Text) -> Vec<Mutant> {
    let mut all = Vec::new();
    for commit in text.find(|s| s.is("tcgen05.commit")) {
        let mma = (0..commit).rev().take(8).find(|at| text.statements[*at].is("tcgen05.mma"));
        // What lies between computes where it arrives.
        let pure = |mma: &usize| text.statements[mma + 1..commit].iter().all(flow::is_pure);
        if let Some(mma) = mma.filter(pure) {
            all.push(moved(text, "told before the last MMA", mma..mma + 1, mma + 1..commit + 1));
        }
    }
    all
}

/// Two neighbouring parts change places.
fn moved(text: &Text, mistake: &'static str, first: Range<usize>, second: Range<usize>) -> Mutant {
    lines(mistake, exchanged(text, first, second))
}

/// The lines of two neighbouring parts that change places.
fn exchanged(text: &Text, first: Range<usize>, second: Range<usize>) -> Vec<(usize, String)> {
    let slots = first.start..second.end;
    let place = |(slot, from): (usize, usize)| {
        let line = text.statements[slot].line;
        (line, text.in_line(line, &text.statements[from].code()))
    };
    slots.zip(second.chain(first)).map(place).collect()
}

/// The buffer of a store is reused before the wait for its reading: threads meet first, then one of them waits.
fn reused(text: &Text) -> Vec<Mutant> {
    let mut all = Vec::new();
    for wait in text.find(|s| s.is("cp.async.bulk.wait_group")) {
        let part = (0..wait)
            .rev()
            .take(8)
            .find(|at| text.statements[*at].operands().get(1).is_some_and(|from| from == "%tid.x"));
        let meet = (wait..text.statements.len()).take(4).find(|at| text.statements[*at].is("bar.sync"));
        // At the end of a kernel nothing is stored any more.
        let stores = |meet: usize| {
            let next = text.statements[meet + 1..].iter().find(|s| s.label().is_none() && !flow::is_pure(s));
            next.is_some_and(|s| s.is("st.shared") || s.is("stmatrix"))
        };
        if let (Some(part), Some(meet)) = (part, meet.filter(|meet| stores(*meet))) {
            all.push(moved(text, "reused before the wait", part..meet, meet..meet + 1));
        }
    }
    all
}

/// Every `bar.sync` of one number with that of another warpgroup.
fn shared_barrier(text: &Text) -> Vec<Mutant> {
    let named = |s: &Statement| s.is("bar.sync") && s.operands().len() == 2;
    let mut numbers: Vec<String> = text.find(named).map(|at| text.statements[at].operands()[0].clone()).collect();
    numbers.sort();
    numbers.dedup();
    let [first, second, ..] = numbers.as_slice() else { return Vec::new() };
    let to = |at: usize| {
        (
            text.statements[at].line,
            text.in_line(text.statements[at].line, &text.statements[at].with_operand(0, first).code()),
        )
    };
    vec![lines("barrier shared", text.find(|s| named(s) && &s.operands()[0] == second).map(to).collect())]
}

/// A mask of both CTAs names one of them; an address in a CTA of the cluster, the other CTA.
fn masks(text: &Text) -> Vec<Mutant> {
    let mut all = Vec::new();
    for (at, statement) in text.statements.iter().enumerate() {
        if statement.is("mov.b16") {
            all.extend(["1", "2"].map(|mask| line(text, at, "one CTA", &statement.with_operand(1, mask).code())));
        } else if statement.is("mapa") {
            all.extend(["0", "1"].map(|rank| line(text, at, "wrong CTA", &statement.with_operand(2, rank).code())));
        } else if statement.is("cp.async.bulk.tensor") && statement.opcode().contains("complete_tx") {
            // The next stage of a ring of tiles.
            let next = further(&statement.operands()[0], 16384);
            all.extend(next.map(|next| line(text, at, "stage too early", &statement.with_operand(0, next).code())));
        }
    }
    all
}

/// A warp of the kernels in roles that has none.
const IDLE: u32 = 5;
const BY_IDLE: &str = "freed before the last MMA";

/// How a kernel ends: without the last barrier, with one of the CTA alone, or with tensor memory freed before it.
fn ends(text: &Text) -> Vec<Mutant> {
    let mut all = Vec::new();
    let meets = |s: &Statement| s.is("barrier.cluster") || s.is("bar.sync") && s.operands().len() == 1;
    let Some(last) = text.find(meets).last() else { return all };
    let first = if text.statements[last].is("barrier.cluster") { last - 1 } else { last };
    let blank = |at: usize| (text.statements[at].line, String::new());
    all.push(lines("no last barrier", (first..last + 1).map(blank).collect()));
    if first < last {
        let alone = (text.statements[first].line, text.in_line(text.statements[first].line, "bar.sync 0;"));
        all.push(lines("CTA ends alone", vec![alone, blank(last)]));
        let arrive = text.statements[first].with_opcode("barrier.cluster.arrive.relaxed.aligned").code();
        all.push(line(text, first, "relaxed end", &arrive));
    }
    let freed = text.find(|s| s.is("tcgen05.dealloc")).last().filter(|freed| *freed > last);
    let end = freed.and_then(|freed| (freed..text.statements.len()).find(|at| text.statements[*at].label().is_some()));
    all.extend(end.map(|end| {
        let what = What::Moved(last, end);
        Mutant { what, ..moved(text, "freed before the barrier", first..last + 1, last + 1..end + 1) }
    }));
    // By a warp that has no part in the work, and waits for none: the MMAs of its CTA, and of the other one, are on their way.
    let warp_0 = |at: &usize| {
        let s = &text.statements[*at];
        s.is("setp.ne") && s.operands().get(2).is_some_and(|number| number == "0") && text.target(at + 1) == end
    };
    if let (Some(end), Some(guard)) = (end, (last..text.statements.len()).find(warp_0)) {
        let mut changed = exchanged(text, first..last + 1, last + 1..end + 1);
        let code = text.statements[guard].code();
        let other = text.statements[guard].with_operand(2, IDLE.to_string()).code();
        changed.iter_mut().for_each(|(_, line)| *line = line.replace(&code, &other));
        all.push(lines(BY_IDLE, changed));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{
mov.u32 %r1, 0;
mov.u32 %r2, 1;
$tile:
$repeat:
mad.lo.u32 %r4, %r1, 8, %r3;
add.u32 %r1, %r1, 1;
setp.eq.u32 %p1, %r1, 4;
@%p1 mov.u32 %r1, 0;
@%p1 xor.b32 %r2, %r2, 1;
setp.lt.u32 %p2, %r5, 16;
@%p2 bra $repeat;
setp.lt.u32 %p3, %r6, 8;
@%p3 bra $tile;
tcgen05.ld.x {%f1}, [%r7];
tcgen05.wait::ld.sync.aligned;
mbarrier.arrive.b64 _, [%r8];
bar.sync 1, 128;
bar.sync 2, 128;
mov.b16 %rs1, 3;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
ret;
}";

    /// What differs.
    fn shown(mutants: Vec<Mutant>) -> Vec<String> {
        let text = Text::new(TEXT);
        mutants.iter().map(|mutant| format!("{}: {}", mutant.mistake, mutant.diff(&text))).collect()
    }

    #[test]
    fn phases_rings_and_rounds() {
        let text = Text::new(TEXT);
        assert_eq!(
            shown(phases(&text)),
            [
                "first phase: 3: mov.u32 %r2, 1; -> mov.u32 %r2, 0;",
                "phase never flipped: 10: @%p1 xor.b32 %r2, %r2, 1; -> (nothing)",
                "phase reset: 4: $tile: -> $tile: mov.u32 %r2, 1;",
            ]
        );
        assert_eq!(
            shown(rings(&text)),
            [
                "ring depth: 8: setp.eq.u32 %p1, %r1, 4; -> setp.eq.u32 %p1, %r1, 5;",
                "ring depth: 8: setp.eq.u32 %p1, %r1, 4; -> setp.eq.u32 %p1, %r1, 3;",
                "ring without end: 9: @%p1 mov.u32 %r1, 0; -> (nothing)",
            ]
        );
        assert_eq!(shown(rounds(&text))[0], "rounds: 11: setp.lt.u32 %p2, %r5, 16; -> setp.lt.u32 %p2, %r5, 17;");
    }

    #[test]
    fn parts_that_come_too_early() {
        let text = Text::new(TEXT);
        assert_eq!(
            shown(released(&text)),
            [
                "released before the wait: line 16 moved behind line 17: tcgen05.wait::ld.sync.aligned;",
                "released before the load: line 17 moved in front of line 15: mbarrier.arrive.b64 _, [%r8];",
            ]
        );
        assert_eq!(shown(shared_barrier(&text)), ["barrier shared: 19: bar.sync 2, 128; -> bar.sync 1, 128;"]);
        assert_eq!(shown(masks(&text))[1], "one CTA: 20: mov.b16 %rs1, 3; -> mov.b16 %rs1, 2;");
        assert_eq!(
            shown(ends(&text)),
            [
                "no last barrier: 21: barrier.cluster.arrive.release.aligned; -> (nothing) | 22: barrier.cluster.wait.acquire.aligned; -> (nothing)",
                "CTA ends alone: 21: barrier.cluster.arrive.release.aligned; -> bar.sync 0; | 22: barrier.cluster.wait.acquire.aligned; -> (nothing)",
                "relaxed end: 21: barrier.cluster.arrive.release.aligned; -> barrier.cluster.arrive.relaxed.aligned;",
            ]
        );
    }

    #[test]
    fn of_a_kernel() {
        let kernel = Kernel::new(8).unwrap();
        let all = mutants(&kernel);
        for mistake in [
            "initialised by two",
            "initialised by none",
            "reused before the wait",
            "freed before the barrier",
            BY_IDLE,
            "told before the last MMA",
            "stage too early",
        ] {
            assert!(all.iter().any(|mutant| mutant.mistake == mistake), "{mistake}");
        }
    }
}
