//! Barriers to which the same threads come each time, all together.

use super::super::flow::{self, Together, together};
use super::super::kernels::Kernel;
use super::super::text::{Statement, Text, number};
use super::super::{Mutant, What};
use super::{neighbours, now};

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

/// Instructions that use a CTA barrier of this number, or of one that is not a constant.
fn uses<'a>(text: &'a Text, barrier: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.find(move |s| {
        let is = s.is("bar") && !s.is("bar.warp") || s.is("barrier") && !s.is("barrier.cluster");
        is && s.operands().first().is_some_and(|operand| operand == barrier || operand.starts_with('%'))
    })
}

/// All uses of the number are meetings of the same threads, one behind the other in all of them: one more is one more of the row.
pub fn meets_twice(text: &Text, mutant: &Mutant) -> bool {
    let What::Doubled(at) = mutant.what else { return false };
    let Some(who) = meeting(text, at) else { return false };
    let apart = |other: usize| meeting(text, other) == Some(who) || at != other && apart(text, at, other);
    uses(text, &text.statements[at].operands()[0]).all(apart)
}

/// Two barriers are never used at the same time: to one of them come all threads of the CTA, once, and it stands before the other, which
/// nobody reaches who has not passed it.
fn apart(text: &Text, one: usize, other: usize) -> bool {
    let (first, second) = (one.min(other), one.max(other));
    let once = !flow::repeats(text, first) && meeting(text, first) == Some(Together::Cta);
    once && meeting(text, second).is_some()
}

/// Another number, which is used nowhere, or never at the same time; and those that had the same number can do without it.
pub fn another_free_barrier(text: &Text, mutant: &Mutant) -> bool {
    let Some((at, now)) = now(mutant) else { return false };
    let was = &text.statements[at];
    let same_count = was.operands().get(1) == now.operands().get(1) && now.is("bar.sync");
    let Some(who) = meeting(text, at).filter(|_| same_count) else { return false };
    let exists =
        now.operands().first().and_then(|barrier| number(barrier)).is_some_and(|number| (0..16).contains(&number));
    let without = |other: usize| meeting(text, other) == Some(who) || apart(text, at, other);
    exists
        && uses(text, &now.operands()[0]).all(|other| apart(text, at, other))
        && uses(text, &was.operands()[0]).all(without)
}

/// `fence.proxy.async` before a barrier, now behind it. All who meet execute it, then as now. Who has synchronised with the accesses of
/// others fences them, too (PTX ISA 8.9.5); whoever hears of them later hears it from one who has met and fenced.
pub fn fence_behind_the_barrier(text: &Text, mutant: &Mutant) -> bool {
    let Some((first, fence, second, _)) = neighbours(text, mutant) else { return false };
    let who = meeting(text, second);
    fence.is("fence.proxy.async") && who.is_some() && together(text, first) == who
}

/// What may stand between initialisations and the barrier that tells of them: nothing that uses an mbarrier, or tells somebody else.
fn is_quiet(statement: &Statement) -> bool {
    let quiet = ["mbarrier.init", "fence.mbarrier_init", "elect.sync", "tcgen05.alloc"]
        .iter()
        .any(|opcode| statement.is(opcode));
    quiet || statement.label().is_some() || statement.target().is_some() || flow::is_pure(statement)
}

/// The first barrier behind a statement, with nothing but quiet statements in between, if all threads of the cluster come to it and
/// are told of what was done before.
fn barrier_behind(kernel: &Kernel, at: usize) -> Option<usize> {
    let text = &kernel.text;
    let next = (at + 1..text.statements.len()).find(|&next| !is_quiet(&text.statements[next]))?;
    let alone = kernel.launch.cluster == [1; 3];
    let barrier = &text.statements[next];
    let tells = match barrier {
        _ if barrier.is("bar.sync") => alone && meeting(text, next) == Some(Together::Cta),
        _ if barrier.is("barrier.cluster.arrive") => {
            !barrier.is("barrier.cluster.arrive.relaxed") && together(text, next) == Some(Together::Cta)
        }
        _ => false,
    };
    tells.then_some(next)
}

/// `fence.mbarrier_init` tells others of initialisations by a relaxed arrival that follows. Here a barrier follows that tells all threads
/// of the cluster of everything (PTX ISA 9.7.13.1, barrier.cluster). The fence may be missing, be another one, or come too early.
pub fn told_by_the_barrier_behind(kernel: &Kernel, mutant: &Mutant) -> bool {
    let text = &kernel.text;
    let is_fence = |at: usize| text.statements[at].is("fence.mbarrier_init");
    let (at, last) = match &mutant.what {
        What::Deleted(at) => (*at, *at),
        What::Changed(at, now) if now.starts_with("fence.") => (*at, *at),
        What::Moved(at, across) => {
            let fence = if is_fence(*at) { *at } else { *across };
            (fence, *at.max(across))
        }
        _ => return false,
    };
    let moved = match mutant.what {
        What::Moved(at, across) => {
            [at, across].iter().all(|&one| is_quiet(&text.statements[one]) && text.statements[one].target().is_none())
        }
        _ => true,
    };
    is_fence(at) && moved && barrier_behind(kernel, last).is_some()
}

/// The first barrier of a cluster, relaxed. Nothing stands before it but initialisations and, behind them, their fence: what the
/// fence covers is told by a relaxed arrival, too (PTX ISA, membar, fence).
pub fn told_by_the_fence(text: &Text, mutant: &Mutant) -> bool {
    let Some((at, now)) = now(mutant) else { return false };
    let before = &text.statements[..at];
    let fence = before.iter().rposition(|s| s.is("fence.mbarrier_init"));
    let init = before.iter().rposition(|s| s.is("mbarrier.init"));
    let only = before.iter().all(|s| is_quiet(s) && !s.is("tcgen05.alloc"));
    let arrives = text.statements[at].is("barrier.cluster.arrive") && now.is("barrier.cluster.arrive.relaxed");
    arrives && only && fence > init
}

/// The last barrier of a cluster, relaxed: it keeps shared memory until all have come (PTX ISA, barrier.cluster), and behind its wait
/// nothing is accessed.
pub fn nothing_behind_it(text: &Text, mutant: &Mutant) -> bool {
    let Some((at, now)) = now(mutant) else { return false };
    let arrives = text.statements[at].is("barrier.cluster.arrive") && now.is("barrier.cluster.arrive.relaxed");
    let ends = |s: &Statement| s.is("barrier.cluster.wait") || s.is("ret") || s.label().is_some();
    arrives && text.statements[at + 1..].iter().all(ends)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, made, text};
    use super::*;

    const KERNEL: &str = "bar.sync 0;
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 7;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra $end;
mov.u32 %r3, 0;
$tile:
fence.proxy.async;
bar.sync 1, 128;
elect.sync _|%p2, 0xffffffff;
@!%p2 bra $elected_end;
fence.proxy.async.global;
bar.warp.sync 0xffffffff;
$elected_end:
add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 5;
@%p3 bra $tile;
$end:
ret;";

    #[test]
    fn the_same_threads_each_time() {
        let text = text(KERNEL);
        let doubled = |code: &str| meets_twice(&text, &made(What::Doubled(at(&text, code))));
        assert!(doubled("bar.sync 0") && doubled("bar.sync 1"));
        let other = super::super::tests::text(&KERNEL.replace("bar.sync 1, 128", "bar.sync 1, 64"));
        assert!(!meets_twice(&other, &made(What::Doubled(at(&other, "bar.sync 1")))), "half of them are counted");
    }

    #[test]
    fn numbers() {
        let text = text(KERNEL);
        let to =
            |code: &str, to: &str| another_free_barrier(&text, &made(What::Changed(at(&text, code), to.to_string())));
        assert!(
            to("bar.sync 1", "bar.sync 2, 128;")
                && to("bar.sync 1", "bar.sync 0, 128;")
                && to("bar.sync 0", "bar.sync 1;")
        );
        assert!(!to("bar.sync 1", "bar.sync 16, 128;") && !to("bar.sync 1", "bar.sync 2, 96;"));
        let again = super::super::tests::text(&KERNEL.replace("$end:", "$end:\nbar.sync 2;"));
        let changed = made(What::Changed(at(&again, "bar.sync 1"), "bar.sync 2, 128;".to_string()));
        assert!(!another_free_barrier(&again, &changed), "others are there already");
    }

    #[test]
    fn fences_behind_barriers() {
        let text = text(KERNEL);
        let (fence, barrier) = (at(&text, "fence.proxy.async;"), at(&text, "bar.sync 1"));
        assert!(fence_behind_the_barrier(&text, &made(What::Moved(fence, barrier))));
        assert!(fence_behind_the_barrier(&text, &made(What::Moved(barrier, fence))));
        let one = at(&text, "fence.proxy.async.global");
        assert!(!fence_behind_the_barrier(&text, &made(What::Moved(one, one + 1))), "one thread fences");
    }

    #[test]
    fn relaxed_barriers() {
        let lines = "mbarrier.init.b64 [s], 1;\nfence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;";
        let relaxed = |text: &Text| {
            made(What::Changed(
                at(text, "barrier.cluster.arrive"),
                "barrier.cluster.arrive.relaxed.aligned;".to_string(),
            ))
        };
        let first = text(&format!("{lines}\nld.shared.b32 %r1, [s];"));
        assert!(told_by_the_fence(&first, &relaxed(&first)) && !nothing_behind_it(&first, &relaxed(&first)));
        let stores = text(&format!("st.shared.b32 [s+8], %r1;\n{lines}\nret;"));
        assert!(!told_by_the_fence(&stores, &relaxed(&stores)) && nothing_behind_it(&stores, &relaxed(&stores)));
        let early = text(&lines.replace("fence.mbarrier_init.release.cluster;\n", ""));
        assert!(!told_by_the_fence(&early, &relaxed(&early)));
    }

    #[test]
    fn initialisations_are_told_by_a_barrier() {
        let kernel = |step: u8, from: &str, to: &str| {
            let mut kernel = Kernel::new(step).unwrap();
            kernel.text = Text::new(&kernel.built.ptx.replacen(from, to, 1));
            let fence = at(&kernel.text, "fence.mbarrier_init");
            told_by_the_barrier_behind(&kernel, &made(What::Deleted(fence)))
        };
        assert!(kernel(1, "", "") && kernel(9, "", ""));
        assert!(!kernel(9, "arrive.release", "arrive.relaxed"), "that tells of nothing else");
        assert!(!kernel(1, "bar.sync 0;", "mbarrier.arrive.b64 _, [dynamic_shared];"), "somebody is told before");
    }
}
