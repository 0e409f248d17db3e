//! Instructions that changed places with a neighbour that has nothing to do with them.

use super::super::text::{Statement, Text};
use super::super::{Mutant, flow};
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

#[cfg(test)]
mod tests {
    use super::super::super::What;
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
}
