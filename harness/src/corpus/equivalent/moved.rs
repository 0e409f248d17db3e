//! Instructions that changed places with a neighbour that has nothing to do with them.

use super::super::flow;
use super::super::text::{Statement, Text};
use super::super::{Mutant, What};
use super::neighbours;
use super::repeated::{is_fence, moved_up};

/// A synchronising instruction and one that computes registers change places. The other one reads no memory, and nobody else sees
/// registers. The loads that `tcgen05.wait::ld` waits for write registers until then: the neighbour may read them, which waits for
/// the value by itself (PTX ISA 9.7.16.6.4.5), and must not write them; registers of a `wgmma` it must not touch at all.
/// `elect.sync`, and a wait's question, write a register themselves.
pub fn across_registers(text: &Text, mutant: &Mutant) -> bool {
    let What::Moved(at, across) = mutant.what else { return false };
    let (moved, neighbour) = (&text.statements[at], &text.statements[across]);
    if !flow::is_pure(neighbour) {
        return false;
    }
    let (theirs, writes) = (flow::touched(neighbour), flow::written(neighbour));
    let whole = text.wait_loop(at).unwrap_or(at..at + 1);
    let mine = |statement: &Statement| {
        let sets = statement.is("elect.sync") || statement.is("mbarrier.try_wait");
        let sets = if sets { flow::written(statement) } else { Vec::new() };
        flow::read(statement).iter().any(|one| writes.contains(one)) || sets.iter().any(|one| theirs.contains(one))
    };
    let of = |opcode: &str, register: &str| {
        text.find(|s| s.is(opcode) && flow::touched(s).contains(&register)).next().is_some()
    };
    let open = match moved {
        _ if moved.is("tcgen05.wait") => writes.iter().any(|register| of("tcgen05.ld", register)),
        _ if moved.is("wgmma") => theirs.iter().any(|register| of("wgmma.mma_async", register)),
        _ => false,
    };
    !open && !text.statements[whole].iter().any(mine)
}

/// Two initialisations of different barriers by the same thread. Somebody who could see one without the other would not be ordered
/// behind them.
pub fn initialised_in_another_order(text: &Text, mutant: &Mutant) -> bool {
    let Some((_, one, _, two)) = neighbours(text, mutant) else { return false };
    let address = |s: &Statement| s.operands().first().filter(|_| s.is("mbarrier.init")).cloned();
    let constant = |address: &String| !address.contains('%');
    match (address(one), address(two)) {
        (Some(one), Some(two)) => one != two && constant(&one) && constant(&two),
        _ => false,
    }
}

/// A label that no branch names is no place to come from.
pub fn across_an_unused_label(text: &Text, mutant: &Mutant) -> bool {
    let What::Moved(_, across) = mutant.what else { return false };
    let Some(label) = text.statements[across].label() else { return false };
    text.find(|s| s.operands().iter().any(|operand| operand == label)).next().is_none()
}

/// A fence behind a wait moves before its branch back. It is executed behind each question, also behind the last; nothing lies between
/// the two places. Fences too many do no harm.
pub fn in_the_loop_of_the_wait(text: &Text, mutant: &Mutant) -> bool {
    let Some((at, across)) = moved_up(text, mutant) else { return false };
    let asks = across.checked_sub(1).and_then(|ask| text.wait_loop(ask));
    asks.is_some_and(|whole| whole.end == across + 1) && is_fence(&text.statements[at])
}

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
    use super::super::tests::{at, made, text};
    use super::*;

    fn swapped(text: &Text, moved: &str, across: &str) -> Mutant {
        made(What::Moved(at(text, moved), at(text, across)))
    }

    #[test]
    fn registers() {
        let text = text(
            "tcgen05.ld.x1.b32 {%f1}, [%r9];\ntcgen05.wait::ld.sync.aligned;\ncvt.rn.f16x2.f32 %r1, %f1, %f1;\nmov.f32 %f1, %f2;\nmbarrier.arrive.b64 _, [%r1];\nmov.u32 %r2, 1;\nld.shared.b32 %r3, [%r4];\nelect.sync _|%p1, 0xffffffff;\nsetp.eq.u32 %p1, %r1, 0;",
        );
        let may = |moved: &str, across: &str| across_registers(&text, &swapped(&text, moved, across));
        assert!(may("mbarrier.arrive", "mov.u32 %r2"));
        assert!(!may("mbarrier.arrive", "cvt"), "it computes the address");
        assert!(!may("mbarrier.arrive", "ld.shared"), "it reads memory");
        assert!(may("tcgen05.wait", "cvt"));
        assert!(!may("tcgen05.wait", "mov.f32"), "it writes what the load writes");
        assert!(may("elect.sync", "mov.u32 %r2"));
        assert!(!may("elect.sync", "setp"), "both write the predicate");
    }

    #[test]
    fn initialisations() {
        let text = text(
            "mbarrier.init.b64 [s+8], 1;\nmbarrier.init.b64 [s+16], 2;\nmbarrier.init.b64 [%r1], 2;\nfence.mbarrier_init.release.cluster;",
        );
        assert!(initialised_in_another_order(&text, &made(What::Moved(0, 1))));
        assert!(!initialised_in_another_order(&text, &made(What::Moved(1, 2))), "it may be the same barrier");
        assert!(!initialised_in_another_order(&text, &made(What::Moved(2, 3))));
    }

    #[test]
    fn labels_and_loops() {
        let text = text(
            "$w:\nmbarrier.try_wait.parity.b64 %p1, [%r1], 0;\n@!%p1 bra $w;\ntcgen05.fence::after_thread_sync;\n$unused:\nbar.sync 0;\n@%p1 bra $end;\nfence.proxy.async;\n$end:",
        );
        assert!(across_an_unused_label(&text, &swapped(&text, "bar.sync", "$unused")));
        assert!(!across_an_unused_label(&text, &swapped(&text, "fence", "$end")));
        assert!(in_the_loop_of_the_wait(&text, &swapped(&text, "tcgen05.fence", "@!%p1")));
        assert!(!in_the_loop_of_the_wait(&text, &swapped(&text, "fence", "@%p1 bra $end")), "other threads come to it");
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
