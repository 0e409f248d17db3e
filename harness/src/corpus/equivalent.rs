//! Which mutants cannot behave otherwise than the solution, and why: rules that are proofs.
//!
//! A rule holds of a kernel without findings, whose waits no interleaving lets hang: [`super::run`] asks for both before anything
//! is changed. Where a rule says "asks for more", the mutant allows a part of what the solution allows, and can hang no more.

use super::flow::{self, Together, together};
use super::kernels::Kernel;
use super::text::{Body, Statement, Text, number};
use super::{Mutant, What};

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Why nothing that anyone can observe changes.
    pub because: &'static str,
    applies: fn(&Text, &Mutant) -> bool,
}

/// All of them.
pub const RULES: &[Rule] = &[
    Rule {
        name: "doubled-without-effect",
        because: "behind itself it has nothing left to do: a fence, a wait for groups or for tensor memory, an election",
        applies: doubled_without_effect,
    },
    Rule {
        name: "asked-twice",
        because: "a phase that could complete between the two questions could, in the solution, complete before the first one, which would be a hang",
        applies: asked_twice,
    },
    Rule {
        name: "across-registers",
        because: "its neighbour computes registers that it does not touch",
        applies: across_registers,
    },
    Rule {
        name: "initialised-in-another-order",
        because: "one thread initialises two barriers, and tells nobody between",
        applies: initialised_in_another_order,
    },
    Rule {
        name: "across-a-label-that-nobody-names",
        because: "no branch leads to the label",
        applies: across_an_unused_label,
    },
    Rule {
        name: "asks-for-more",
        because: "it waits for more groups, or for their writes too, which complete by themselves; or orders more memory",
        applies: asks_for_more,
    },
    Rule {
        name: "said-explicitly",
        because: "it is the default, written out, or left out",
        applies: said_explicitly,
    },
    Rule {
        name: "a-group-of-nothing",
        because: "the second group is empty, so that a wait that allows so many groups waits for more of the others",
        applies: a_group_of_nothing,
    },
    Rule {
        name: "meets-twice",
        because: "the same threads come to it each time, all together: whoever passes the first comes to the second",
        applies: meets_twice,
    },
    Rule {
        name: "another-free-barrier",
        because: "the same threads come to it each time, all together, and nobody else uses that number",
        applies: another_free_barrier,
    },
    Rule {
        name: "only-waits-for-groups",
        because: "the part holds waits for one's own groups: a thread without groups passes, one with some waits for more",
        applies: only_waits_for_groups,
    },
];

/// The first rule that proves a mutant to be no bug.
pub fn rule(kernel: &Kernel, mutant: &Mutant) -> Option<&'static Rule> {
    RULES.iter().find(|rule| (rule.applies)(&kernel.text, mutant))
}

/// Instructions of which the second of two in a row has nothing left to do. Fences order what came before: the second orders the
/// same. Waits for groups and tensor memory: what they wait for is complete. `elect.sync`: the same lane is elected for the same
/// mask (PTX ISA, elect.sync). `griddepcontrol`: the second time it is a no-op (PTX ISA, griddepcontrol).
const IDEMPOTENT: [&str; 9] = [
    "cp.async.bulk.wait_group",
    "cp.async.wait_all",
    "cp.async.wait_group",
    "elect.sync",
    "fence",
    "griddepcontrol",
    "tcgen05.fence",
    "tcgen05.wait",
    "wgmma",
];

fn doubled_without_effect(text: &Text, mutant: &Mutant) -> bool {
    let What::Doubled(at) = mutant.what else { return false };
    let statement = &text.statements[at];
    let waits = statement.is("wgmma.fence") || statement.is("wgmma.wait_group");
    IDEMPOTENT.iter().any(|opcode| statement.is(opcode)) && (waits || !statement.is("wgmma"))
}

/// A wait asks twice in a row. In between only a phase of the barrier may complete. If one could, without anything that this thread
/// does behind the wait, it could do so before the first question: the solution would wait for a phase that is gone.
fn asked_twice(text: &Text, mutant: &Mutant) -> bool {
    let What::Doubled(at) = mutant.what else { return false };
    text.wait_loop(at).is_some()
}

/// A synchronising instruction and one that computes registers change places. The other one reads no memory, and nobody else sees
/// registers. `tcgen05.wait::ld` and `wgmma` waits decide when loaded registers may be read: no register of a load may stand in the
/// neighbour. `elect.sync`, and a wait's question, write a register themselves.
fn across_registers(text: &Text, mutant: &Mutant) -> bool {
    let What::Moved(at, across) = mutant.what else { return false };
    let (moved, neighbour) = (&text.statements[at], &text.statements[across]);
    if !flow::is_pure(neighbour) {
        return false;
    }
    let theirs = flow::touched(neighbour);
    let writes = flow::written(neighbour);
    let whole = text.wait_loop(at).unwrap_or(at..at + 1);
    let mine = |statement: &Statement| {
        let reads = flow::read(statement);
        let sets = if statement.is("elect.sync") || statement.is("mbarrier.try_wait") { flow::written(statement) } else { Vec::new() };
        reads.iter().any(|one| writes.contains(one)) || sets.iter().any(|one| theirs.contains(one))
    };
    let loaded = |register: &&str| {
        let loads = |s: &Statement| (s.is("tcgen05.ld") || s.is("wgmma.mma_async")) && flow::touched(s).contains(register);
        text.find(loads).next().is_some()
    };
    let waits = moved.is("tcgen05.wait") || moved.is("wgmma");
    !whole.clone().any(|at| mine(&text.statements[at])) && !(waits && theirs.iter().any(|one| loaded(&one)))
}

/// Two initialisations of different barriers by the same thread. Somebody who could see one without the other would not be ordered
/// behind them.
fn initialised_in_another_order(text: &Text, mutant: &Mutant) -> bool {
    let What::Moved(at, across) = mutant.what else { return false };
    let (one, two) = (&text.statements[at], &text.statements[across]);
    let address = |s: &Statement| s.operands().first().filter(|_| s.is("mbarrier.init")).cloned();
    let constant = |address: &String| !address.contains('%');
    match (address(one), address(two)) {
        (Some(one), Some(two)) => one != two && constant(&one) && constant(&two),
        _ => false,
    }
}

fn across_an_unused_label(text: &Text, mutant: &Mutant) -> bool {
    let What::Moved(_, across) = mutant.what else { return false };
    let Some(label) = text.statements[across].label() else { return false };
    text.find(|s| s.operands().iter().any(|operand| operand == label)).next().is_none()
}

/// The changed instruction, read again.
fn now(mutant: &Mutant) -> Option<(usize, Statement)> {
    let What::Changed(at, code) = &mutant.what else { return None };
    let text = Text::new(&format!("{{\n{code}\n}}"));
    text.statements.into_iter().next().map(|statement| (*at, statement))
}

/// Waits for groups that complete by themselves, and fences. More of them, or of memory, takes no behaviour that was not allowed.
fn asks_for_more(text: &Text, mutant: &Mutant) -> bool {
    let Some((at, now)) = now(mutant) else { return false };
    let was = &text.statements[at];
    let groups = |s: &Statement| s.operands().first().and_then(|operand| number(operand));
    let fewer = matches!((groups(was), groups(&now)), (Some(was), Some(now)) if now <= was);
    match was.opcode() {
        "cp.async.bulk.wait_group.read" => fewer && now.is("cp.async.bulk.wait_group"),
        "cp.async.bulk.wait_group" | "wgmma.wait_group.sync.aligned" => fewer && now.opcode() == was.opcode(),
        "fence.proxy.async.shared::cta" | "fence.proxy.async.global" => now.opcode() == "fence.proxy.async",
        _ => false,
    }
}

/// `.release`, `.acquire` and `.cta` where nothing is said (PTX ISA 9.7.13.15.13, 9.7.13.15.16, barrier.cluster); a wider scope.
fn said_explicitly(text: &Text, mutant: &Mutant) -> bool {
    let Some((at, now)) = now(mutant) else { return false };
    let was = &text.statements[at];
    if was.operands() != now.operands() {
        return false;
    }
    let plain = |opcode: &str| {
        let mut plain = opcode.to_string();
        if opcode.starts_with("mbarrier.") {
            for word in [".release.cta", ".release.cluster", ".acquire.cta", ".acquire.cluster"] {
                plain = plain.replacen(word, "", 1);
            }
        } else if opcode.starts_with("barrier.cluster.arrive") {
            plain = plain.replacen(".release", "", 1);
        } else if opcode.starts_with("barrier.cluster.wait") {
            plain = plain.replacen(".acquire", "", 1);
        }
        plain
    };
    was.opcode() == plain(now.opcode()) || plain(was.opcode()) == now.opcode()
}

fn a_group_of_nothing(text: &Text, mutant: &Mutant) -> bool {
    let What::Doubled(at) = mutant.what else { return false };
    let commits = ["cp.async.bulk.commit_group", "cp.async.commit_group", "wgmma.commit_group"];
    commits.iter().any(|opcode| text.statements[at].is(opcode))
}

/// A `bar.sync` to which the same threads come each time, all together, as many as it counts.
fn meeting(text: &Text, at: usize) -> Option<Together> {
    let statement = &text.statements[at];
    let together = together(text, at)?;
    let threads = statement.operands().get(1).map(|threads| number(threads));
    let fits = match (together, threads) {
        (Together::Cta, None) => true,
        (Together::Group(group), Some(threads)) => threads == 1i64.checked_shl(group.shift),
        _ => false,
    };
    (statement.is("bar.sync") && fits).then_some(together)
}

/// All other uses of the number are meetings of the same threads, so that each use is one of a row that all of them go through.
fn meets_twice(text: &Text, mutant: &Mutant) -> bool {
    let What::Doubled(at) = mutant.what else { return false };
    let Some(who) = meeting(text, at) else { return false };
    uses(text, &text.statements[at].operands()[0]).all(|other| meeting(text, other) == Some(who))
}

fn another_free_barrier(text: &Text, mutant: &Mutant) -> bool {
    let Some((at, now)) = now(mutant) else { return false };
    let was = &text.statements[at];
    let same_count = was.operands().get(1) == now.operands().get(1) && now.is("bar.sync");
    let Some(who) = meeting(text, at).filter(|_| same_count) else { return false };
    let free = number(&now.operands()[0]).is_some_and(|number| (0..16).contains(&number));
    free && uses(text, &now.operands()[0]).next().is_none()
        && uses(text, &was.operands()[0]).all(|other| meeting(text, other) == Some(who))
}

/// Instructions that use a CTA barrier of this number, or of one that is not a constant.
fn uses<'a>(text: &'a Text, barrier: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.find(move |s| {
        let is = s.is("bar") && !s.is("bar.warp") || s.is("barrier") && !s.is("barrier.cluster");
        is && s.operands().iter().any(|operand| operand == barrier || operand.starts_with('%'))
    })
}

/// A part that now all execute. It waits for groups of the thread's own, elects, and computes registers that nobody reads outside.
fn only_waits_for_groups(text: &Text, mutant: &Mutant) -> bool {
    let What::Unguarded(at) = mutant.what else { return false };
    let Some(end) = text.target(at) else { return false };
    let part = at + 1..end;
    let inside = |statement: &Statement| match &statement.body {
        Body::Label(_) => true,
        Body::Instruction { .. } => {
            let waits = statement.is("cp.async.bulk.wait_group") || statement.is("elect.sync");
            waits || flow::is_pure(statement) || statement.target().is_some_and(|label| text.label(label).is_some_and(|to| part.contains(&to)))
        }
    };
    let computed = |s: &&Statement| flow::is_pure(s) || s.is("elect.sync");
    let mut written = text.statements[part.clone()].iter().filter(computed).flat_map(flow::written);
    let outside = |register: &str| {
        let touches = |(at, s): (usize, &Statement)| !part.contains(&at) && flow::touched(s).contains(&register);
        text.statements.iter().enumerate().any(touches)
    };
    text.statements[part.clone()].iter().all(inside) && !written.any(outside)
}
