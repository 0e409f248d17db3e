//! Barriers to which the same threads come each time, all together.

use super::super::flow::{self, Together, reached_together, together};
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
            let wait = (next + 1..text.statements.len()).find(|&at| !is_quiet(&text.statements[at]));
            let waits = wait.is_some_and(|at| text.statements[at].is("barrier.cluster.wait"));
            let all = |at: usize| together(text, at) == Some(Together::Cta);
            !barrier.is("barrier.cluster.arrive.relaxed") && waits && all(next) && wait.is_some_and(all)
        }
        _ => false,
    };
    tells.then_some(next)
}

/// Whether a barrier behind a statement tells the cluster of initialisations, with nothing that needs them in between.
pub fn tells_of_initialisations(kernel: &Kernel, at: usize) -> bool {
    barrier_behind(kernel, at).is_some()
}

/// The last barrier of a CTA: behind it tensor memory is freed, and the kernel ends. Without it, the warp that frees still learns of all
/// that others did there, from an earlier barrier at which it meets all who load: they load behind the MMAs, have waited for their loads and
/// stores before that barrier (a load is done when `tcgen05.wait` says so, PTX ISA 9.7.16.8.5, and not when its registers are used), and
/// nothing uses tensor memory between the two barriers. Now the barrier is missing, or stands behind the freeing, where as before all
/// threads come to it.
pub fn nothing_left_to_order(kernel: &Kernel, mutant: &Mutant) -> bool {
    let text = &kernel.text;
    let last = match mutant.what {
        What::Deleted(at) => at,
        What::Moved(at, across) if across > at && reached_together(text, across) == Some(Together::Cta) => at,
        _ => return false,
    };
    // The address of tensor memory lies where the allocation wrote it, which everybody has learnt of long before.
    let address = text.statements.iter().find(|s| s.is("tcgen05.alloc")).and_then(|s| s.operands().first());
    let ends = |s: &Statement| {
        let frees = ["tcgen05.dealloc", "tcgen05.fence", "ret"].iter().any(|opcode| s.is(opcode));
        frees
            || s.is("ld.shared") && s.operands().get(1) == address
            || s.label().is_some()
            || s.target().is_some()
            || flow::is_pure(s)
    };
    let is_last = kernel.launch.cluster == [1; 3]
        && meeting(text, last) == Some(Together::Cta)
        && text.statements[last + 1..].iter().all(ends);
    let uses_tensor_memory = |s: &Statement| {
        s.opcode().starts_with("tcgen05.") && !["tcgen05.fence", "tcgen05.wait"].iter().any(|opcode| s.is(opcode))
    };
    let used = text.statements[..last].iter().rposition(uses_tensor_memory).unwrap_or_default();
    let includes = |who: Together, at: usize| match (who, reached_together(text, at)) {
        (Together::Cta, Some(_)) => true,
        (Together::Group(who), Some(Together::Group(other))) => other.is_part_of(who),
        _ => false,
    };
    let mut touch = text.find(|s| ["tcgen05.ld", "tcgen05.st", "tcgen05.dealloc"].iter().any(|opcode| s.is(opcode)));
    let earlier = (used..last).find_map(|at| Some((at, meeting(text, at)?)));
    is_last
        && earlier.is_some_and(|(barrier, who)| {
            // All who load or store wait for it, behind the last one, and behind that wait they meet.
            let waits_for = |access: &str, wait: &str| {
                let last = text.find(|s| s.is(access)).last();
                let waits = |at: usize| text.statements[at].is(wait) && together(text, at) == Some(who);
                last.is_none_or(|access| (access..barrier).any(waits))
            };
            let waited = waits_for("tcgen05.ld", "tcgen05.wait::ld") && waits_for("tcgen05.st", "tcgen05.wait::st");
            waited && touch.all(|at| includes(who, at))
        })
}

/// What a mutant does to a `fence.mbarrier_init`, and the last statement of the change: a barrier behind that has all of it before it. What it
/// changes places with neither uses an mbarrier nor leads elsewhere.
fn fence_of_initialisations(text: &Text, what: &What) -> Option<(usize, usize)> {
    let is_fence = |at: &usize| text.statements[*at].is("fence.mbarrier_init");
    let stays = |at: usize| is_quiet(&text.statements[at]) && text.statements[at].target().is_none();
    let (fence, last) = match what {
        What::Deleted(at) => (*at, *at),
        What::Changed(at, now) if now.starts_with("fence.") => (*at, *at),
        What::Moved(at, across) if stays(*at) && stays(*across) => {
            (if is_fence(at) { *at } else { *across }, *at.max(across))
        }
        _ => return None,
    };
    Some((fence, last)).filter(|(fence, _)| is_fence(fence))
}

/// The fence stands further down, where the thread that executed it still does, in front of the barrier that tells of the initialisations: it covers
/// as many or more. Or it is a `fence.proxy.async`: the barrier tells threads of all that was done before it, and this fence orders the
/// initialisations for the engines of the asynchronous proxy. So the proof holds also if a `fence.mbarrier_init` were to mean them, too.
pub fn fenced_all_the_same(kernel: &Kernel, mutant: &Mutant) -> bool {
    let Some((fence, last)) = fence_of_initialisations(&kernel.text, &mutant.what) else { return false };
    let still = match &mutant.what {
        What::Changed(_, now) => {
            now.starts_with("fence.proxy.async.shared::cta;") || now.starts_with("fence.proxy.async;")
        }
        What::Moved(..) => last > fence,
        _ => false,
    };
    still && barrier_behind(kernel, last).is_some()
}

/// `fence.mbarrier_init` is a release fence whose effect is restricted to initialisations by the same thread (PTX ISA, membar, fence): a relaxed
/// arrival behind it tells of them. It is no proxy fence, and engines need none: they access an mbarrier through the generic proxy (PTX ISA 9.4,
/// cp.async.bulk, tcgen05.commit). A barrier follows, with nothing that uses an mbarrier in between, to which all threads of the
/// cluster come, and which orders all that was done before it ahead of all that comes behind (`bar.sync` of the only CTA;
/// `barrier.cluster.arrive`, which releases, and its wait, which acquires). So whoever could hear of the initialisation by the fence hears of it
/// by the barrier, and the fence may be missing, be another one, or come too early. That it does nothing more is the ISA's word; ptxas
/// makes no instruction of it (a test of `machine_code.rs`), and where the code differs all the same, it is other registers.
pub fn told_by_the_barrier_behind(kernel: &Kernel, mutant: &Mutant) -> bool {
    let fence = fence_of_initialisations(&kernel.text, &mutant.what);
    fence.is_some_and(|(_, last)| barrier_behind(kernel, last).is_some())
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
    #[test]
    fn the_last_barrier() {
        let kernel = Kernel::new(4).unwrap();
        let last = kernel.text.find(|s| s.is("bar.sync")).last().unwrap();
        assert!(nothing_left_to_order(&kernel, &made(What::Deleted(last))));
        let before = kernel.text.find(|s| s.is("bar.sync")).filter(|at| *at < last).last().unwrap();
        assert!(!nothing_left_to_order(&kernel, &made(What::Deleted(before))), "a store is behind it");
        let without = |of: &Kernel| {
            let line = of.text.statements[before].line;
            Kernel { text: Text::new(&of.text.with(&[(line, String::new())])), ..of.clone() }
        };
        let first = without(&kernel);
        let last = first.text.find(|s| s.is("bar.sync")).last().unwrap();
        assert!(!nothing_left_to_order(&first, &made(What::Deleted(last))), "nobody has heard of the loads");
        let pair = Kernel::new(9).unwrap();
        let last = pair.text.find(|s| s.is("barrier.cluster.arrive")).last().unwrap();
        assert!(!nothing_left_to_order(&pair, &made(What::Deleted(last))), "the other CTA may use its memory");
    }
}
