//! What a thread of MMAs hears of by waiting for loads: nothing of tensor memory that it has not done itself.

use super::super::flow;
use super::super::kernels::Kernel;
use super::super::text::{Statement, Text, number};
use super::super::{Mutant, What};

const AFTER: &str = "tcgen05.fence::after_thread_sync";
const BEFORE: &str = "tcgen05.fence::before_thread_sync";

/// A `tcgen05.fence::after_thread_sync` behind a wait for loads is missing, elsewhere, or the other fence. It would order what the thread
/// has synchronised with since the fence before it (PTX ISA 9.7.16.11.1). That are loads, and the thread that announced them; which has
/// touched no tensor memory since a barrier of all, and has heard of nothing but commits of MMAs that the waiting thread issued itself.
/// Those are in order by themselves (PTX ISA 9.7.16.6.2). A fence too many does no harm.
pub fn hears_of_loads_alone(kernel: &Kernel, mutant: &Mutant) -> bool {
    let text = &kernel.text;
    let is_after = |at: usize| text.statements[at].is(AFTER) && text.statements[at].guard().is_none();
    let fence = match &mutant.what {
        What::Deleted(at) => Some(*at),
        What::Changed(at, now) if now.starts_with(BEFORE) => Some(*at),
        What::Moved(at, across) => [*at, *across].into_iter().find(|one| is_after(*one)),
        _ => None,
    };
    let Some(fence) = fence.filter(|at| is_after(*at)) else { return false };
    let mut waits = Vec::new();
    let heard = before(text, fence, |at| {
        let s = &text.statements[at];
        if s.is("mbarrier.try_wait") {
            waits.push(at);
        }
        // The first barrier tells of allocations, and of no access.
        let first = meets(s) && !flow::repeats(text, at) && !text.statements[..at].iter().any(accesses);
        match s {
            _ if at != fence && is_after(at) || first => Way::Ends,
            _ if is_quiet(s) || s.is("tcgen05.mma") || s.is("tcgen05.commit") || at == fence => Way::GoesOn,
            _ => Way::Fails,
        }
    });
    let of_loads = |wait: &usize| {
        barrier(kernel, *wait)
            .is_some_and(|name| tells_of_loads(kernel, &name, fence) || commits_alone(kernel, &name, fence))
    };
    heard && !waits.is_empty() && waits.iter().all(of_loads)
}

/// Whether a phase of these mbarriers tells of nothing but loads, and of MMAs of the thread that executes the fence.
fn tells_of_loads(kernel: &Kernel, name: &str, fence: usize) -> bool {
    let text = &kernel.text;
    let Some(arrivals) = arrivals(kernel, name) else { return false };
    let announces = |at: usize| {
        let mut waits = Vec::new();
        let innocent = before(text, at, |before| {
            let s = &text.statements[before];
            if s.is("mbarrier.try_wait") {
                waits.push(before);
            }
            // There the thread with the fence was, too, and heard the same.
            match s {
                _ if meets(s) => Way::Ends,
                _ if is_quiet(s) => Way::GoesOn,
                _ => Way::Fails,
            }
        });
        innocent
            && waits.iter().all(|wait| barrier(kernel, *wait).is_some_and(|name| commits_alone(kernel, &name, fence)))
    };
    let loads = |at: usize| text.statements[at].is("cp.async.bulk.tensor");
    // A thread that announces its own loads tells itself nothing.
    let own =
        |at: usize| kernel.launch.cluster == [1; 3] && part(text, at).is_some() && part(text, at) == part(text, fence);
    let expects = |at: usize| text.statements[at].is("mbarrier.arrive.expect_tx") && (own(at) || announces(at));
    arrivals.iter().all(|at| loads(*at) || expects(*at))
}

/// Whether nothing arrives at these mbarriers but commits by the thread that executes the fence.
fn commits_alone(kernel: &Kernel, name: &str, fence: usize) -> bool {
    let text = &kernel.text;
    let alone = kernel.launch.cluster == [1; 3];
    // Of a pair, one CTA issues MMAs.
    let own = |at: &usize| {
        let s = &text.statements[*at];
        s.is("tcgen05.commit")
            && (alone || s.opcode().contains(".cta_group::2"))
            && part(text, *at) == part(text, fence)
    };
    part(text, fence).is_some() && arrivals(kernel, name).is_some_and(|all| all.iter().all(own))
}

/// The innermost part of one elected thread around a statement: its branch.
fn part(text: &Text, at: usize) -> Option<usize> {
    flow::guards(text, at).filter(|branch| *branch > 0 && text.statements[branch - 1].is("elect.sync")).last()
}

/// What arrives at the mbarriers of this name, and brings bytes to them. `None` where some statement's mbarrier is not known.
fn arrivals(kernel: &Kernel, name: &str) -> Option<Vec<usize>> {
    let arrives = |s: &Statement| {
        let load = s.is("cp.async.bulk.tensor") && s.opcode().contains("complete_tx");
        let other = s.is("mbarrier") && !["mbarrier.init", "mbarrier.try_wait"].iter().any(|opcode| s.is(opcode));
        load || other || s.is("tcgen05.commit")
    };
    let mut all = Vec::new();
    for at in kernel.text.find(arrives) {
        if barrier(kernel, at)? == name {
            all.push(at);
        }
    }
    Some(all)
}

/// The name of the mbarrier that a statement works on, without its place in a ring.
fn barrier(kernel: &Kernel, at: usize) -> Option<String> {
    let is_address = |operand: &&String| operand.starts_with('[') && !operand.contains('{');
    // A load names its destination first.
    let operand = kernel.text.statements[at].operands().iter().rfind(is_address)?;
    let offset = address(&kernel.text, operand.trim_matches(['[', ']']))?;
    let region = kernel.launch.regions.iter().find(|region| i64::from(region.offset) == offset)?;
    region.name.split('[').next().map(str::to_string)
}

/// Where an address begins in shared memory: `dynamic_shared+16`, or a register that is computed from such a one and the number of a stage.
fn address(text: &Text, operand: &str) -> Option<i64> {
    if let Some(rest) = operand.strip_prefix("dynamic_shared") {
        return if rest.is_empty() { Some(0) } else { number(rest.strip_prefix('+')?) };
    }
    // What stands in brackets is read.
    let writes = |at: &usize| text.statements[*at].operands().first().is_some_and(|to| !to.starts_with('['));
    let mut all = text.beginning(operand).iter().copied().filter(writes);
    let (Some(definition), None) = (all.next(), all.next()) else { return None };
    let definition = &text.statements[definition];
    match definition.operands() {
        [_, from] if definition.is("mov") => address(text, from),
        [_, from, _] if definition.is("mapa") => address(text, from),
        [_, _, bytes, base] if definition.is("mad.lo") && bytes == "8" => address(text, base),
        _ => None,
    }
}

/// Computes, branches, elects, reads shared memory, waits for an mbarrier, or loads and says so.
fn is_quiet(s: &Statement) -> bool {
    let quiet = [
        "mbarrier.try_wait",
        "mbarrier.arrive.expect_tx",
        "elect.sync",
        "fence.proxy",
        "ld.shared",
        "setmaxnreg",
        BEFORE,
    ];
    let load = s.is("cp.async.bulk.tensor") && s.opcode().contains("complete_tx");
    load || s.label().is_some() || s.target().is_some() || flow::is_pure(s) || quiet.iter().any(|opcode| s.is(opcode))
}

/// All threads of the CTA meet there.
fn meets(s: &Statement) -> bool {
    let all = s.is("bar.sync") && s.operands().len() == 1 || s.is("barrier.cluster.wait.acquire");
    all && s.guard().is_none()
}

/// Accesses tensor memory, or tells of MMAs.
fn accesses(s: &Statement) -> bool {
    ["tcgen05.ld", "tcgen05.st", "tcgen05.mma", "tcgen05.cp", "tcgen05.commit"].iter().any(|opcode| s.is(opcode))
}

/// What a statement is for a way that comes to it from behind.
#[derive(PartialEq, Eq)]
enum Way {
    GoesOn,
    Ends,
    Fails,
}

/// Follows all ways that lead to a statement, backwards, as far as they go on; whether none fails, by coming to the beginning either.
fn before(text: &Text, from: usize, mut of: impl FnMut(usize) -> Way) -> bool {
    let leads = |at: usize| {
        let label = text.statements[at].label();
        let branches = text.find(move |s| label.is_some() && s.target() == label).collect::<Vec<_>>();
        let falls = at.checked_sub(1).filter(|&before| {
            let s = &text.statements[before];
            let leaves = s.is("ret") || s.is("exit") || s.target().is_some();
            !(leaves && s.guard().is_none())
        });
        branches.into_iter().chain(falls).collect::<Vec<_>>()
    };
    let (mut open, mut seen) = (leads(from), vec![false; text.statements.len()]);
    if from == 0 {
        return false;
    }
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        match of(at) {
            Way::Ends => {}
            Way::GoesOn if at > 0 => open.extend(leads(at)),
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::tests::made;
    use super::*;

    /// The fences of a solution of which the rule says that nothing is lost without them, by their order in the text.
    fn proved(step: u8, from: &str, to: &str) -> Vec<usize> {
        let mut kernel = Kernel::new(step).unwrap();
        let text = kernel.built.ptx.replace(from, to);
        assert!(from.is_empty() || text != kernel.built.ptx, "step {step} has no {from}");
        kernel.text = Text::new(&text);
        let fences: Vec<usize> = kernel.text.find(|s| s.is(AFTER)).collect();
        let all = (0..fences.len()).filter(|n| hears_of_loads_alone(&kernel, &made(What::Deleted(fences[*n]))));
        all.collect()
    }

    #[test]
    fn a_fence_behind_a_wait_for_loads() {
        // The fences of step 7: behind the wait for a free accumulator, for loads, for the product.
        assert_eq!(proved(7, "", ""), [1]);
        assert_eq!(proved(8, "", ""), [1]);
        assert_eq!(proved(9, "", ""), [1]);
        assert_eq!(proved(10, "", ""), [] as [usize; 0], "two warps multiply, and both free what is loaded");
    }

    #[test]
    fn others_may_tell_of_tensor_memory() {
        let kernel = Kernel::new(7).unwrap();
        let text = &kernel.text;
        let place = |opcode: &str| {
            let at = text.find(|s| s.is(opcode)).next().unwrap();
            text.lines[text.statements[at].line].trim().to_string()
        };
        let expects = place("mbarrier.arrive.expect_tx");
        let with = |more: &str| format!("{more}\n{expects}");
        let none: [usize; 0] = [];
        assert_eq!(proved(7, &expects, &with("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%f1}, [%r3];")), none, "it reads");
        assert_eq!(proved(7, &expects, &with("bar.sync 1, 64;")), none, "it hears of some who may have read");
        let commit = place("tcgen05.commit");
        let arrives = "mbarrier.arrive.shared::cta.b64 _, [%r84];";
        assert_eq!(proved(7, &commit, arrives), none, "the stage is freed by a thread");
    }
}
