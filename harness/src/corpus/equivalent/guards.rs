//! Parts that more threads execute than before.

use super::super::flow;
use super::super::text::{Statement, Text};
use super::super::{Mutant, What};
use std::ops::Range;

/// A part, or a statement, that waits for groups of the thread's own, and that more threads execute now.
pub fn only_waits_for_groups(text: &Text, mutant: &Mutant) -> bool {
    match mutant.what {
        What::Unguarded(at) => waits_only(text, at),
        // Behind a label come also those who branch to it; before a branch also those who take it. None who has groups may come to where
        // it stood by another way than past where it stands now.
        What::Moved(at, across) => {
            let (moved, other) = (&text.statements[at], &text.statements[across]);
            let more = match across > at {
                true => other.label().is_some() && !flow::is_left(text, at..across + 1),
                false => {
                    let entries = || flow::entries(text, across + 1..at + 1);
                    other.target().is_some() && entries().all(|branch| has_no_groups(text, branch))
                }
            };
            moved.is("cp.async.bulk.wait_group") && more
        }
        _ => false,
    }
}

/// Who comes to a branch has committed nothing: all commits stand behind it, and no way leads back from them.
fn has_no_groups(text: &Text, branch: usize) -> bool {
    let first = text.find(|s| s.is("cp.async.bulk.commit_group")).next();
    let leads_back = |from: usize, at: usize| at >= from && text.target(at).is_some_and(|to| to <= branch);
    first.is_none_or(|first| first > branch && !text.find(|s| s.target().is_some()).any(|at| leads_back(first, at)))
}

/// The last wait for a thread's groups, moved down, still before the thread's end. Behind it nothing writes to shared memory, from which the
/// groups may read until then.
pub fn waits_before_its_end(text: &Text, mutant: &Mutant) -> bool {
    let What::Moved(at, across) = mutant.what else { return false };
    let harmless = |s: &Statement| {
        let opcodes = ["bar.sync", "barrier.cluster", "cp.async.bulk.wait_group", "elect.sync", "ld.shared", "ret"];
        let frees = ["tcgen05.dealloc", "tcgen05.fence"].iter().any(|opcode| s.is(opcode));
        frees
            || opcodes.iter().any(|opcode| s.is(opcode))
            || s.label().is_some()
            || s.target().is_some()
            || flow::is_pure(s)
    };
    let other = &text.statements[across];
    let all_come = across > at && other.target().is_none() && !other.is("ret");
    let waits = text.statements[at].is("cp.async.bulk.wait_group") && !flow::repeats(text, at);
    waits && all_come && text.statements[at..].iter().all(harmless)
}

/// A part holds such waits, elects, and computes registers that nobody reads outside.
fn waits_only(text: &Text, at: usize) -> bool {
    let Some(end) = text.target(at) else { return false };
    let part = at + 1..end;
    let inside = |s: &Statement| {
        let branches = s.target().and_then(|label| text.label(label)).is_some_and(|to| part.contains(&to));
        s.label().is_some() || s.is("cp.async.bulk.wait_group") || s.is("elect.sync") || flow::is_pure(s) || branches
    };
    text.statements[part.clone()].iter().all(inside) && computes_for_itself(text, &part)
}

/// No register that a part computes stands outside of it.
fn computes_for_itself(text: &Text, part: &Range<usize>) -> bool {
    let computes = |s: &&Statement| flow::is_pure(s) || s.is("elect.sync");
    let mut written = text.statements[part.clone()].iter().filter(computes).flat_map(flow::written);
    let outside = |register: &str| text.touching(register).iter().any(|at| !part.contains(at));
    !written.any(outside)
}

/// A part for a group of warps, in which parts for some of these warps are all that does more than compute registers.
pub fn guarded_again_inside(text: &Text, mutant: &Mutant) -> bool {
    let What::Unguarded(at) = mutant.what else { return false };
    let (Some(outer), Some(end)) = (flow::group(text, at), text.target(at)) else { return false };
    let mut next = at + 1;
    while next < end {
        let statement = &text.statements[next];
        let inner = flow::group(text, next).filter(|inner| inner.is_part_of(outer));
        next = match (inner, text.target(next)) {
            (Some(_), Some(to)) if (next..=end).contains(&to) => to,
            _ if statement.label().is_some() || flow::is_pure(statement) => next + 1,
            _ => return false,
        };
    }
    computes_for_itself(text, &(at + 1..end))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, made, text};
    use super::*;

    const KERNEL: &str = "mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 7;
setp.ne.u32 %p1, %r2, 1;
@%p1 bra $group_end;
mov.u32 %r3, %tid.x;
shr.u32 %r4, %r3, 5;
setp.ne.u32 %p2, %r4, 4;
@%p2 bra $warp_end;
elect.sync _|%p3, 0xffffffff;
@!%p3 bra $elected_end;
cp.async.bulk.wait_group.read 0;
$elected_end:
$warp_end:
$group_end:
ret;";

    fn unguarded(text: &Text, code: &str) -> Mutant {
        made(What::Unguarded(at(text, code)))
    }

    #[test]
    fn waits_for_groups() {
        let kernel = text(KERNEL);
        assert!(only_waits_for_groups(&kernel, &unguarded(&kernel, "@!%p3")));
        assert!(only_waits_for_groups(&kernel, &made(What::Moved(at(&kernel, "cp"), at(&kernel, "$elected_end")))));
        assert!(only_waits_for_groups(&kernel, &made(What::Moved(at(&kernel, "cp"), at(&kernel, "@!%p3")))));
        // Who takes %p1 would not wait any more.
        let loops = "cp.async.bulk.commit_group;\n@%p1 bra $skip;\n$loop:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 4;\n@%p2 bra $loop;\n$skip:\n\
                     cp.async.bulk.wait_group.read 0;\nst.shared.b32 [%r2], %r3;\nret;";
        let kernel_of_loops = text(loops);
        let moved = made(What::Moved(at(&kernel_of_loops, "cp.async.bulk.wait"), at(&kernel_of_loops, "@%p2")));
        assert!(!only_waits_for_groups(&kernel_of_loops, &moved));
        // Who commits behind the branch only has nothing to wait for where it is taken.
        let kernel_of_loops = text(
            &loops
                .replace("cp.async.bulk.commit_group;\n", "")
                .replace("$loop:", "$loop:\ncp.async.bulk.commit_group;"),
        );
        let moved = made(What::Moved(at(&kernel_of_loops, "cp.async.bulk.wait"), at(&kernel_of_loops, "@%p2")));
        assert!(only_waits_for_groups(&kernel_of_loops, &moved));
        let other = text(&KERNEL.replace("wait_group.read 0", "commit_group"));
        assert!(!only_waits_for_groups(&other, &unguarded(&other, "@!%p3")));
        let outside = text(&KERNEL.replace("ret;", "@%p3 bra $warp_end;"));
        assert!(!only_waits_for_groups(&outside, &unguarded(&outside, "@%p2")), "it computes a predicate for others");
    }

    #[test]
    fn the_last_wait_for_groups() {
        let lines =
            "cp.async.bulk.wait_group.read 0;\nbar.sync 0;\n@%p1 bra $end;\ntcgen05.dealloc.x %r1, 128;\n$end:\nret;";
        let moved = |text: &Text, across: &str| made(What::Moved(0, at(text, across)));
        let last = text(lines);
        assert!(waits_before_its_end(&last, &moved(&last, "bar.sync")));
        assert!(!waits_before_its_end(&last, &moved(&last, "@%p1")), "some do not come there");
        assert!(!waits_before_its_end(&last, &moved(&last, "ret")));
        let stores = text(&lines.replace("tcgen05.dealloc.x %r1, 128", "st.shared.b32 [%r1], %r2"));
        assert!(!waits_before_its_end(&stores, &moved(&stores, "bar.sync")), "the buffer is written again");
    }

    #[test]
    fn guards_inside() {
        let kernel = text(KERNEL);
        assert!(guarded_again_inside(&kernel, &unguarded(&kernel, "@%p1")));
        let other = text(&KERNEL.replace("%r4, 4", "%r4, 3"));
        assert!(!guarded_again_inside(&other, &unguarded(&other, "@%p1")), "warp 3 is of another warpgroup");
        let more = text(&KERNEL.replace("$warp_end:\n", "$warp_end:\nbar.sync 1, 128;\n"));
        assert!(!guarded_again_inside(&more, &unguarded(&more, "@%p1")));
    }
}
