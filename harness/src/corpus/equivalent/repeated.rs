//! Instructions that stand there twice, or ask for more than before.

use super::super::flow;
use super::super::text::{Statement, Text, number};
use super::super::{Mutant, What};
use super::now;

/// Instructions of which the second of two in a row has nothing left to do. Fences order what came before: the second orders the
/// same. Waits for groups and tensor memory: what they wait for is complete. `elect.sync`: the same lane is elected for the same
/// mask (PTX ISA, elect.sync). `griddepcontrol`: what it waits for has happened, what it launches is launched.
const IDEMPOTENT: [&str; 10] = [
    "cp.async.bulk.wait_group",
    "cp.async.wait_all",
    "cp.async.wait_group",
    "elect.sync",
    "fence",
    "griddepcontrol",
    "tcgen05.fence",
    "tcgen05.wait",
    "wgmma.fence",
    "wgmma.wait_group",
];

/// One that is idempotent stands there twice.
pub fn doubled_without_effect(text: &Text, mutant: &Mutant) -> bool {
    let What::Doubled(at) = mutant.what else { return false };
    IDEMPOTENT.iter().any(|opcode| text.statements[at].is(opcode))
}

/// A group is committed twice, or behind a label, where other threads come to it, too. What is more are groups without copies. A wait
/// that leaves the last N groups open leaves fewer of the others open.
pub fn a_group_of_nothing(text: &Text, mutant: &Mutant) -> bool {
    let commits = |statement: &Statement| {
        ["cp.async.bulk.commit_group", "cp.async.commit_group", "wgmma.commit_group"]
            .iter()
            .any(|opcode| statement.is(opcode))
    };
    match mutant.what {
        What::Doubled(at) => commits(&text.statements[at]),
        // `wgmma` takes whole warps.
        What::Moved(at, across) => {
            let commit = &text.statements[at];
            let behind =
                across > at && text.statements[across].label().is_some() && !flow::is_left(text, at..across + 1);
            behind && commits(commit) && !commit.is("wgmma")
        }
        _ => false,
    }
}

/// Waits for groups that end by themselves, and fences: for more of them, or of more memory, nothing is allowed that was not.
pub fn asks_for_more(text: &Text, mutant: &Mutant) -> bool {
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

/// `.release`, `.acquire` and `.cta` where nothing is said (PTX ISA 9.7.13.15.13, 9.7.13.15.16, barrier.cluster), or a wider scope than
/// that; `.aligned`, a promise of the program, where it is left out.
pub fn said_explicitly(text: &Text, mutant: &Mutant) -> bool {
    let Some((at, now)) = now(mutant) else { return false };
    let was = &text.statements[at];
    let plain =
        |opcode: &str, words: &[&str]| words.iter().fold(opcode.to_string(), |plain, word| plain.replacen(word, "", 1));
    // What is the default, and what is that or more.
    let (default, more): (&[&str], &[&str]) = match was {
        _ if was.is("mbarrier") => (
            &[".release.cta", ".acquire.cta"],
            &[".release.cta", ".release.cluster", ".acquire.cta", ".acquire.cluster"],
        ),
        _ if was.is("barrier.cluster.arrive") => (&[".release"], &[".release"]),
        _ if was.is("barrier.cluster.wait") => (&[".acquire"], &[".acquire"]),
        _ => return false,
    };
    let same = now.opcode() == plain(was.opcode(), default) || was.opcode() == plain(now.opcode(), more);
    let promises = was.is("barrier.cluster") && now.opcode() == plain(was.opcode(), &[".aligned"]);
    was.operands() == now.operands() && (promises || same)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, made, text};
    use super::*;

    fn changed(text: &Text, code: &str, to: &str) -> Mutant {
        made(What::Changed(at(text, code), to.to_string()))
    }

    #[test]
    fn twice() {
        let text = text("fence.proxy.async;\nbar.sync 0;\ncp.async.bulk.commit_group;\nmbarrier.arrive.b64 _, [%r1];");
        let doubled = |code: &str| made(What::Doubled(at(&text, code)));
        assert!(doubled_without_effect(&text, &doubled("fence")));
        assert!(!doubled_without_effect(&text, &doubled("bar.sync")));
        assert!(a_group_of_nothing(&text, &doubled("cp.async.bulk.commit_group")));
        assert!(!a_group_of_nothing(&text, &doubled("mbarrier.arrive")));
    }

    #[test]
    fn more_and_less() {
        let text =
            text("cp.async.bulk.wait_group.read 1;\nfence.proxy.async.shared::cta;\nwgmma.wait_group.sync.aligned 1;");
        for (code, to, more) in [
            ("cp.async", "cp.async.bulk.wait_group 1;", true),
            ("cp.async", "cp.async.bulk.wait_group.read 0;", true),
            ("cp.async", "cp.async.bulk.wait_group.read 2;", false),
            ("cp.async", "cp.async.bulk.wait_group 2;", false),
            ("fence", "fence.proxy.async;", true),
            ("fence", "fence.proxy.async.global;", false),
            ("wgmma", "wgmma.wait_group.sync.aligned 0;", true),
            ("wgmma", "wgmma.wait_group.sync.aligned 2;", false),
        ] {
            assert_eq!(asks_for_more(&text, &changed(&text, code, to)), more, "{to}");
        }
    }

    #[test]
    fn defaults() {
        let text = text(
            "mbarrier.arrive.shared::cta.b64 _, [%r1];\nbarrier.cluster.arrive.release.aligned;\nmbarrier.try_wait.acquire.cluster.b64 %p1, [%r1], 0;",
        );
        for (code, to, same) in [
            ("mbarrier", "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1];", true),
            ("mbarrier", "mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%r1];", false),
            ("mbarrier", "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1+8];", false),
            ("mbarrier.try_wait", "mbarrier.try_wait.b64 %p1, [%r1], 0;", false),
            ("barrier", "barrier.cluster.arrive.aligned;", true),
            ("barrier", "barrier.cluster.arrive.release;", true),
            ("barrier", "barrier.cluster.arrive.relaxed.aligned;", false),
        ] {
            assert_eq!(said_explicitly(&text, &changed(&text, code, to)), same, "{to}");
        }
    }
}
