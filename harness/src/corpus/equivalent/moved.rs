//! Instructions that changed places with a neighbour that has nothing to do with them.

use super::super::Mutant;
use super::super::text::{Statement, Text};
use super::neighbours;

/// `tcgen05.fence` orders accesses of tensor memory and nothing else (PTX ISA 9.7.16.11.1): a plain store, load or proxy fence of other
/// memory tells nobody of them.
pub fn across_what_it_does_not_order(text: &Text, mutant: &Mutant) -> bool {
    let Some((_, one, _, two)) = neighbours(text, mutant) else { return false };
    let plain = |s: &Statement| {
        let weak = ["st.global.v4.b32", "st.shared.v4.b32", "ld.global.v4.b32"].contains(&s.opcode());
        weak || s.is("fence.proxy.async")
    };
    one.is("tcgen05.fence") && plain(two) || two.is("tcgen05.fence") && plain(one)
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
}
