//! Instructions that changed places with a neighbour that has nothing to do with them.

use super::super::text::{Statement, Text, registers};
use super::super::{Mutant, What, flow};
use super::neighbours;

/// `mbarrier.arrive.expect_tx` behind a copy that counts on the same mbarrier, by the same thread, where it was before. The phase is open until
/// the arrival, which counts its bytes in the same step; bytes that have come before are counted then (PTX ISA 9.7.13.15.5).
pub fn expected_behind_the_copy(text: &Text, mutant: &Mutant) -> bool {
    let Some((first, expects, second, copy)) = neighbours(text, mutant) else { return false };
    let copies = copy.is("cp.async.bulk") && copy.opcode().contains("complete_tx");
    let barrier = expects.operands().get(1).map(|barrier| flow::value(text, barrier, first));
    let same = barrier.is_some() && copy.operands().last().map(|counts| flow::value(text, counts, second)) == barrier;
    expects.is("mbarrier.arrive.expect_tx") && copies && same && expects.guard() == copy.guard()
}

/// `tcgen05.fence` orders accesses of tensor memory and nothing else (PTX ISA 9.7.16.11.1), and `tcgen05.wait::ld` what may overwrite it: a
/// plain store, load or proxy fence of other memory tells nobody of them. Registers that a store takes wait for their values by
/// themselves.
pub fn across_what_it_does_not_order(text: &Text, mutant: &Mutant) -> bool {
    let Some((_, one, _, two)) = neighbours(text, mutant) else { return false };
    let plain = |s: &Statement| {
        let weak = ["st.global.v4.b32", "st.shared.v4.b32", "ld.global.v4.b32"].contains(&s.opcode());
        weak || s.is("fence.proxy.async")
    };
    let of_tensor_memory = |s: &Statement| s.is("tcgen05.fence") || s.is("tcgen05.wait::ld");
    of_tensor_memory(one) && plain(two) || of_tensor_memory(two) && plain(one)
}

/// A wait for groups of `wgmma`, or a fence, before the branch back of a loop and not behind it, with nothing in between. Who leaves the
/// loop has done it, where it stood before. Who goes round again does it once more: such waits end by themselves, and a fence too many
/// does no harm.
pub fn in_the_loop_as_well(text: &Text, mutant: &Mutant) -> bool {
    let What::Moved(at, across) = mutant.what else { return false };
    let more = ["wgmma.wait_group", "tcgen05.fence", "fence.proxy.async"];
    let back = across < at && text.target(across).is_some_and(|to| to < across);
    let nobody_comes =
        |s: &Statement| s.label().is_none_or(|label| text.find(|s| s.target() == Some(label)).next().is_none());
    let between = |s: &Statement| s.label().is_some() && nobody_comes(s);
    let is_more = text.statements[at].guard().is_none() && more.iter().any(|opcode| text.statements[at].is(opcode));
    is_more && back && text.statements[across + 1..at].iter().all(between)
}

/// `wgmma.fence` and a whole wait for an mbarrier. The fence orders accesses of registers of a `wgmma` (PTX ISA, wgmma.fence); the wait
/// touches a predicate, an address and a parity.
pub fn registers_of_no_wait(text: &Text, mutant: &Mutant) -> bool {
    let What::Moved(at, across) = mutant.what else { return false };
    let waits = |label: usize| text.wait_loop(label + 1).is_some_and(|whole| whole.start == label);
    let is_fence = |at: usize| text.statements[at].is("wgmma.fence");
    let between = &text.statements[at.min(across) + 1..at.max(across)];
    let quiet = |s: &Statement| flow::is_pure(s) || s.is("mbarrier.try_wait") || s.target().is_some();
    across < at && is_fence(at) && waits(across) && {
        let whole = text.wait_loop(across + 1).map_or(0, |whole| whole.len());
        // Behind the wait only registers for descriptors are computed, which no `wgmma` holds.
        let computes =
            |s: &Statement| flow::is_pure(s) && !flow::written(s).iter().any(|register| holds(text, register));
        between.iter().all(quiet) && between.iter().skip(whole.saturating_sub(1)).all(computes)
    }
}

/// Whether a register stands in the braces of a `wgmma`: its accumulator, or A.
fn holds(text: &Text, register: &str) -> bool {
    let has = |operand: &String| operand.starts_with('{') && registers(operand).any(|one| one == register);
    let mut all = text.touching(register).iter().map(|&at| &text.statements[at]);
    all.any(|s| s.is("wgmma") && s.operands().iter().any(has))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, made, text};
    use super::*;

    fn swapped(text: &Text, moved: &str, across: &str) -> Mutant {
        made(What::Moved(at(text, moved), at(text, across)))
    }

    #[test]
    fn fences_of_tensor_memory() {
        let text = text(
            "st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5};\ntcgen05.fence::before_thread_sync;\nfence.proxy.async;\nmbarrier.arrive.b64 _, [%r1];",
        );
        assert!(across_what_it_does_not_order(&text, &swapped(&text, "tcgen05.fence", "st.shared")));
        assert!(across_what_it_does_not_order(&text, &swapped(&text, "fence", "tcgen05.fence")));
        assert!(!across_what_it_does_not_order(&text, &swapped(&text, "tcgen05.fence", "mbarrier.arrive")));
    }
    #[test]
    fn arrivals_behind_copies() {
        let text = text(
            "mbarrier.arrive.expect_tx.b64 _, [%r1], 64;\ncp.async.bulk.tensor.2d.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r3, %r4}], [%r1];\nmbarrier.arrive.expect_tx.b64 _, [%r5], 64;\ncp.async.bulk.wait_group 0;",
        );
        assert!(expected_behind_the_copy(&text, &made(What::Moved(0, 1))));
        assert!(!expected_behind_the_copy(&text, &made(What::Moved(2, 1))), "another barrier, and in the other order");
        assert!(!expected_behind_the_copy(&text, &made(What::Moved(2, 3))));
    }

    #[test]
    fn before_the_branch_back() {
        let lines = "$repeat:\nwgmma.commit_group.sync.aligned;\n@%p1 bra $repeat;\n$end:\nwgmma.wait_group.sync.aligned 0;\nret;";
        let proves = |lines: &str| {
            let text = text(lines);
            in_the_loop_as_well(&text, &made(What::Moved(at(&text, "wgmma.wait"), at(&text, "@%p1"))))
        };
        assert!(proves(lines));
        assert!(!proves(&lines.replace("$repeat:", "@%p2 bra $end;\n$repeat:")), "some come around the loop");
        assert!(
            !proves(&lines.replace("@%p1 bra $repeat", "@%p1 bra $end")),
            "a branch forward: who takes it does not wait"
        );
        assert!(
            !proves(&lines.replace("$end:", "$end:\nwgmma.commit_group.sync.aligned;")),
            "there is more to wait for"
        );
    }

    #[test]
    fn a_fence_of_registers_and_a_wait() {
        let lines = "$wait:\nmbarrier.try_wait.parity.b64 %p1, [%r1], %r2;\n@!%p1 bra $wait;\nmov.u32 %r3, 0;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.x {%f1}, %rd1, %rd2, %p2;";
        let proves = |lines: &str| {
            let text = text(lines);
            registers_of_no_wait(&text, &made(What::Moved(at(&text, "wgmma.fence"), at(&text, "$wait"))))
        };
        assert!(proves(lines));
        assert!(
            !proves(&lines.replace("mov.u32 %r3, 0", "mov.f32 %f1, 0f00000000")),
            "the accumulator is written between"
        );
        assert!(!proves(&lines.replace("mov.u32 %r3, 0", "ld.shared.f32 %f1, [%r3]")), "so it is here");
    }
}
