//! Across what a synchronising instruction must move, to come to another place for anybody.
//!
//! Most synchronising instructions stand beside one that computes registers: the two changed for each other are the same program. So what
//! does not show on which side of it an instruction stands moves along, up to the first statement that may: one that accesses memory,
//! synchronises, or parts threads. A wait is one statement.

use super::equivalent::tells_of_initialisations;
use super::flow;
use super::kernels::Kernel;
use super::text::{Statement, Text, registers};
use std::ops::Range;

/// The statement up to which an instruction, or a whole wait, moves up.
pub fn above(kernel: &Kernel, whole: &Range<usize>) -> Option<usize> {
    let text = &kernel.text;
    let mut at = whole.start;
    loop {
        at = at.checked_sub(1)?;
        // The branch back of a wait: above it is its question.
        let wait = at.checked_sub(1).and_then(|ask| text.wait_loop(ask));
        let step = wait.unwrap_or(at..at + 1);
        if !shows_nothing(kernel, whole, &step) {
            return Some(step.start);
        }
        at = step.start;
    }
}

/// The statement up to which one moves down.
pub fn below(kernel: &Kernel, whole: &Range<usize>) -> Option<usize> {
    let text = &kernel.text;
    let mut at = whole.end;
    loop {
        // A wait begins with its label.
        let step = text.wait_loop(at + 1).unwrap_or(at..at + 1);
        if step.end > text.statements.len() {
            return None;
        }
        if !shows_nothing(kernel, whole, &step) {
            return Some(step.end - 1);
        }
        at = step.end;
    }
}

/// Whether two neighbours may change places, and nobody can tell.
fn shows_nothing(kernel: &Kernel, one: &Range<usize>, other: &Range<usize>) -> bool {
    let text = &kernel.text;
    let (ones, others) = (&text.statements[one.clone()], &text.statements[other.clone()]);
    let up = other.start < one.start;
    if waits_for_groups(ones) && up || commits_a_group(ones) && !up {
        return others.iter().enumerate().all(|(n, s)| is_no_copy_and_no_loop(text, s, other.start + n));
    }
    let [neighbour] = others else {
        return is_election(ones) && !others.iter().any(|s| shares(text, ones, s));
    };
    if neighbour.label().is_some() || neighbour.target().is_some() {
        return for_the_same(text, one, other.start);
    }
    // It orders registers of a `wgmma`, which a wait for an mbarrier does not touch.
    if neighbour.is("wgmma.fence") && text.wait_loop(one.start + 1).as_ref() == Some(one) {
        return true;
    }
    if let [statement] = ones
        && (of_two_barriers(statement, neighbour) || is_told_later(kernel, statement, other.start))
    {
        return true;
    }
    let quiet = flow::is_pure(neighbour) || neighbour.is("elect.sync") || is_election(ones);
    quiet && !neighbour.is("ret") && !neighbour.is("exit") && !shares(text, ones, neighbour)
}

/// Whether on the other side of a branch or a label an instruction does the same. An election does as long as whole warps come: nobody
/// asks who is elected in the others. A wait for groups does where threads more come to it, which have groups of their own.
fn for_the_same(text: &Text, one: &Range<usize>, at: usize) -> bool {
    let place = &text.statements[at];
    let branches = branches(text, at);
    let ones = &text.statements[one.clone()];
    if is_election(ones) {
        return branches.iter().all(|branch| flow::is_of_whole_warps(text, *branch)) && !shares(text, ones, place);
    }
    let outwards = waits_for_groups(ones) && place.label().is_some();
    branches.is_empty() || outwards && branches.iter().all(|branch| is_forward(text, *branch))
}

/// The branch that a statement is, and those that lead to it.
fn branches(text: &Text, at: usize) -> Vec<usize> {
    match text.statements[at].label() {
        Some(label) => text.find(|s| s.target() == Some(label)).collect(),
        None => Some(at).filter(|_| text.statements[at].target().is_some()).into_iter().collect(),
    }
}

fn is_forward(text: &Text, branch: usize) -> bool {
    text.target(branch).is_some_and(|to| to > branch)
}

/// A wait for groups that moves up shows nothing up to the groups it waits for: a thread that waits earlier does all that follows later. A
/// commit that moves down shows nothing up to the wait, or the next copy.
fn is_no_copy_and_no_loop(text: &Text, statement: &Statement, at: usize) -> bool {
    let copies = statement.is("cp.async.bulk") || statement.is("cp.reduce.async.bulk");
    let whole_wait = at.checked_sub(1).is_some_and(|ask| text.wait_loop(ask).is_some());
    let in_a_wait = whole_wait || text.wait_loop(at + 1).is_some();
    let ends = statement.is("ret") || statement.is("exit");
    !copies && !ends && (in_a_wait || branches(text, at).iter().all(|branch| is_forward(text, *branch)))
}

fn commits_a_group(statements: &[Statement]) -> bool {
    matches!(statements, [statement] if statement.is("cp.async.bulk.commit_group"))
}

fn waits_for_groups(statements: &[Statement]) -> bool {
    matches!(statements, [statement] if statement.is("cp.async.bulk.wait_group"))
}

/// An initialisation and the fence behind it, where a barrier tells of both in any case.
fn is_told_later(kernel: &Kernel, one: &Statement, other: usize) -> bool {
    let is_fence = kernel.text.statements[other].is("fence.mbarrier_init");
    one.is("mbarrier.init") && is_fence && tells_of_initialisations(kernel, other)
}

fn is_election(statements: &[Statement]) -> bool {
    matches!(statements, [statement] if statement.is("elect.sync"))
}

/// Two initialisations of different mbarriers: who could see one without the other is not ordered behind them.
fn of_two_barriers(one: &Statement, other: &Statement) -> bool {
    let address = |s: &Statement| s.operands().first().filter(|_| s.is("mbarrier.init")).cloned();
    let is_constant = |address: &String| !address.contains('%');
    match (address(one), address(other)) {
        (Some(one), Some(other)) => one != other && is_constant(&one) && is_constant(&other),
        _ => false,
    }
}

/// Whether one of two writes a register that the other one reads or writes. The loads that `tcgen05.wait::ld` waits for write registers
/// until then: the neighbour may read them, which waits for the value by itself (PTX ISA 9.7.16.6.4.5), and must not write them;
/// registers of a `wgmma` it must not touch at all.
fn shares(text: &Text, ones: &[Statement], neighbour: &Statement) -> bool {
    let writes = |s: &Statement| flow::is_pure(s) || s.is("elect.sync") || s.is("mbarrier.try_wait");
    let written = |s: &Statement| if writes(s) { owned(flow::written(s)) } else { Vec::new() };
    let (theirs, touched) = (written(neighbour), owned(flow::touched(neighbour)));
    // Of a `wgmma`, what stands in braces: descriptors and predicates it reads at once.
    let of = |opcode: &str, register: &String| {
        let holds = |operand: &String| operand.starts_with('{') && registers(operand).any(|one| one == register);
        text.find(|s| s.is(opcode) && s.operands().iter().any(holds)).next().is_some()
    };
    ones.iter().any(|s| {
        let open = match s {
            _ if s.is("tcgen05.wait") => theirs.iter().any(|register| of("tcgen05.ld", register)),
            _ if s.is("wgmma") => touched.iter().any(|register| of("wgmma.mma_async", register)),
            _ => false,
        };
        let both = |registers: &[String], others: &[String]| registers.iter().any(|one| others.contains(one));
        open || both(&theirs, &owned(flow::touched(s))) || both(&written(s), &touched)
    })
}

fn owned(registers: Vec<&str>) -> Vec<String> {
    registers.into_iter().map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::super::equivalent::tests::{at, text};
    use super::*;

    /// Some kernel, with this text.
    fn kernel(lines: &str) -> Kernel {
        Kernel { text: text(lines), ..Kernel::new(1).unwrap() }
    }

    /// What stands where the first statement that begins so would move to: up, and down.
    fn to(kernel: &Kernel, code: &str) -> [Option<String>; 2] {
        let text = &kernel.text;
        let at = at(text, code);
        let whole = text.wait_loop(at).unwrap_or(at..at + 1);
        [above(kernel, &whole), below(kernel, &whole)].map(|to| to.map(|to| text.statements[to].code()))
    }

    fn places(up: &str, down: &str) -> [Option<String>; 2] {
        [up, down].map(|code| Some(code.to_string()).filter(|code| !code.is_empty()))
    }

    #[test]
    fn registers_show_nothing() {
        let text = kernel(
            "st.shared.b32 [%r8], %r9;\nmov.u32 %r1, 0;\nmbarrier.arrive.b64 _, [%r2];\nmov.u32 %r3, 1;\n$nobody:\nld.shared.b32 %r4, [%r5];\nadd.u32 %r6, %r4, 1;\nmbarrier.arrive.b64 _, [%r6+8];\nret;",
        );
        assert_eq!(
            to(&text, "mbarrier.arrive.b64 _, [%r2]"),
            places("st.shared.b32 [%r8], %r9;", "ld.shared.b32 %r4, [%r5];")
        );
        assert_eq!(to(&text, "mbarrier.arrive.b64 _, [%r6+8]"), places("add.u32 %r6, %r4, 1;", "ret;"));
    }

    #[test]
    fn a_load_waits_for_itself_and_a_wait_is_one() {
        let text = kernel(
            "tcgen05.ld.x1.b32 {%f1}, [%r9];\ntcgen05.wait::ld.sync.aligned;\ncvt.rn.f16x2.f32 %r1, %f1, %f1;\nmov.f32 %f1, %f2;\n$w:\nmbarrier.try_wait.parity.b64 %p1, [%r3], 0;\n@!%p1 bra $w;\nfence.proxy.async;",
        );
        assert_eq!(to(&text, "tcgen05.wait"), places("tcgen05.ld.x1.b32 {%f1}, [%r9];", "mov.f32 %f1, %f2;"));
        assert_eq!(to(&text, "fence"), places("$w:", ""));
        assert_eq!(to(&text, "mbarrier.try_wait"), places("tcgen05.wait::ld.sync.aligned;", "fence.proxy.async;"));
    }

    #[test]
    fn initialisations_in_any_order() {
        let text = kernel(
            "@!%p1 bra $end;\nmbarrier.init.b64 [s+8], 1;\nmbarrier.init.b64 [s+16], 2;\nmbarrier.init.b64 [%r1], 2;\n$end:\nbar.sync 0;",
        );
        assert_eq!(to(&text, "mbarrier.init.b64 [s+8]"), places("@!%p1 bra $end;", "mbarrier.init.b64 [%r1], 2;"));
        assert_eq!(to(&text, "mbarrier.init.b64 [s+16]"), places("@!%p1 bra $end;", "mbarrier.init.b64 [%r1], 2;"));
        assert_eq!(to(&text, "mbarrier.init.b64 [%r1]"), places("mbarrier.init.b64 [s+16], 2;", "$end:"));
    }

    #[test]
    fn an_election_moves_to_where_others_elect() {
        let text = kernel(
            "$before:\nbar.sync 0;\nmov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 5;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra $end;\nelect.sync _|%p2, 0xffffffff;\n@!%p2 bra $end;\n@%p3 bra $before;\n$end:",
        );
        assert_eq!(to(&text, "elect"), places("$before:", "@!%p2 bra $end;"));
        assert_eq!(to(&text, "bar.sync"), places("$before:", "@%p1 bra $end;"));
    }
    #[test]
    fn an_election_passes_whole_warps_and_no_part_of_one() {
        let text = kernel(
            "mov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 5;\nelect.sync _|%p3, 0xffffffff;\n@!%p3 bra $elected_end;\nfence.proxy.async;\n$elected_end:\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra $end;\nbar.sync 0;\n$end:\nelect.sync _|%p2, 0xffffffff;\n@!%p2 bra $other;\n$other:\nret;",
        );
        assert_eq!(to(&text, "elect.sync _|%p2"), places("$elected_end:", "@!%p2 bra $other;"));
    }

    #[test]
    fn waits_for_groups_move_to_their_groups_and_to_where_others_rely_on_them() {
        let text = kernel(
            "cp.async.bulk.commit_group;\nbar.sync 1, 128;\n@%p1 bra $end;\ncp.async.bulk.wait_group.read 0;\n$end:\nbar.sync 2, 128;\nret;",
        );
        assert_eq!(to(&text, "cp.async.bulk.wait"), places("cp.async.bulk.commit_group;", "bar.sync 2, 128;"));
        assert_eq!(to(&text, "cp.async.bulk.commit"), places("", "cp.async.bulk.wait_group.read 0;"));
        let text = kernel("$tile:\nbar.sync 1, 128;\ncp.async.bulk.wait_group.read 0;\n@%p1 bra $tile;\nret;");
        assert_eq!(to(&text, "cp.async"), places("$tile:", "@%p1 bra $tile;"));
    }

    #[test]
    fn an_initialisation_passes_a_fence_that_is_not_needed() {
        let kernel = Kernel::new(1).unwrap();
        assert!(to(&kernel, "mbarrier.init")[1].as_ref().is_some_and(|to| to.starts_with("$elected_end")));
    }
}
