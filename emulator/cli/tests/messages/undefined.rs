//! Values that nothing has written: where they began.

use crate::common::emulate_texts;
use crate::{kernel, launch, says};
use expect_test::expect;

/// A register that nothing has written goes through shared memory: the message names where it began.
#[test]
fn undefined_values_keep_their_origin_in_shared_memory() {
    says(
        "add.u32 %r1, %r2, 1;\nst.shared.u32 [tile], %r1;\nld.shared.u32 %r3, [tile];\nst.global.u32 [%rd0], %r3;",
        32,
        &[],
        expect![[r#"
            finding[undefined-value-stored]: `out` at byte 0 receives a value that was never computed
              --> k.ptx:17:1
               |
            17 | add.u32 %r1, %r2, 1;
               | ^^^^^^^^^^^^^^^^^^^^ a register is read here that nothing has written
            ...
            20 | st.global.u32 [%rd0], %r3;
               | -------------------------- an undefined value is stored to `out` at byte 0 here
               |
               = note: seen 32 times
               = rule: Tensor memory, registers and shared memory hold unknown values until they are written (for memory, PTX ISA 8.2.6).
               = try: Write the value before it is used, on every path that leads here.

            `k`, default schedule: 1 finding; N cycles, 9 warp instructions
        "#]],
    );
    says(
        "st.shared.u32 [tile], %r2;\nld.shared.u32 %r3, [tile];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 st.global.u32 [%rd0], 1;",
        32,
        &[],
        expect![[r#"
            error[undefined-operand]: the guard predicate of `st.global.u32` has no defined value
              --> k.ptx:17:1
               |
            17 | st.shared.u32 [tile], %r2;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^ a register is stored here that nothing has written
            ...
            20 | @%p1 st.global.u32 [%rd0], 1;
               | ----------------------------- the guard predicate, `%p1`, is undefined here
               |
               = rule: Registers and memory hold unknown values until they are written (for memory, PTX ISA 8.2.6).
               = try: Write the value on every path that leads here.

            `k`, default schedule: 1 finding, did not end; 8 warp instructions
        "#]],
    );
}

/// The same by the TMA engine: global memory that nothing has written is copied to shared memory, and a part of a tile that nothing
/// has written is copied to global memory.
#[test]
fn undefined_values_keep_their_origin_through_copies() {
    says(
        "@!%p0 bra DONE;
mbarrier.init.shared.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
add.u64 %rd3, %rd0, 1024;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3], 64, [bar];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r3, [tile+16];
st.global.u32 [%rd0], %r3;
DONE:",
        32,
        &[],
        expect![[r#"
            finding[undefined-value-stored]: `out` at byte 0 receives a value that was never computed
              --> k.ptx:21:1
               |
            21 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3], 64, [bar];
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ this copies bytes of `out` that nothing has written
            ...
            26 | st.global.u32 [%rd0], %r3;
               | -------------------------- an undefined value is stored to `out` at byte 0 here
               |
               = rule: Tensor memory, registers and shared memory hold unknown values until they are written (for memory, PTX ISA 8.2.6).
               = try: Write the value before it is used, on every path that leads here.

            `k`, default schedule: 1 finding; N cycles, 14 warp instructions
        "#]],
    );
    says(
        "@!%p0 bra DONE;
st.shared.v4.b32 [tile], {%r0, %r0, %r9, %r0};
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:",
        32,
        &[],
        expect![[r#"
            finding[undefined-value-stored]: `out` at byte 8 receives a value that was never computed
              --> k.ptx:18:1
               |
            18 | st.shared.v4.b32 [tile], {%r0, %r0, %r9, %r0};
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a register is stored here that nothing has written
            19 | fence.proxy.async.shared::cta;
            20 | cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16;
               | --------------------------------------------------------------- this copy stores `tile`, an undefined value, to `out` at byte 8 here
               |
               = rule: Tensor memory, registers and shared memory hold unknown values until they are written (for memory, PTX ISA 8.2.6).
               = try: Write the value before it is used, on every path that leads here.

            `k`, default schedule: 1 finding; N cycles, 11 warp instructions
        "#]],
    );
}

/// What an atomic operation brings from memory that nothing has written has its origin there, also if it does not depend on it.
#[test]
fn undefined_values_keep_their_origin_through_atomics() {
    let said =
        emulate_texts(&kernel("atom.global.exch.b32 %r1, [%rd0+64], 4;\nst.global.u32 [%rd0], %r1;"), &launch(32), &[]);
    assert!(
        said.out.contains("`out` at byte 64 is read here, but nothing has written a defined value to it"),
        "{}",
        said.out
    );
}

/// Of tensor memory of which some lanes were written, as by an MMA with M = 64, the others are named.
#[test]
fn lanes_of_tensor_memory_that_nothing_has_written_are_named() {
    let body = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32;\nld.shared.u32 %r1, [tile];\n\
                tcgen05.st.sync.aligned.16x64b.x1.b32 [%r1], {%r0};\ntcgen05.wait::st.sync.aligned;\n\
                tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];\ntcgen05.wait::ld.sync.aligned;\n\
                mul.wide.u32 %rd3, %r0, 4;\nadd.u64 %rd0, %rd0, %rd3;\nst.global.u32 [%rd0], %r2;\n\
                tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;";
    let said = emulate_texts(&kernel(body), &launch(32), &[]).out;
    assert!(said.contains("lanes 16 to 31 of tensor memory column 0 are read here, but nothing has written"), "{said}");
}

/// The address of columns is not a result of `tcgen05.alloc`.
#[test]
fn what_alloc_takes_is_said_where_it_is_taken_for_what_it_gives() {
    says(
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;",
        32,
        &[],
        expect![[r#"
        error[undefined-operand]: an operand of `tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32` has no defined value
          --> k.ptx:17:1
           |
        17 | tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ an operand, `%r1`, is undefined here
           |
           = rule: Registers and memory hold unknown values until they are written (for memory, PTX ISA 8.2.6).
           = try: The operand is no result: tcgen05.alloc stores the address of the columns to shared memory, at the address that this operand gives. Give it that of a shared variable (in inline PTX, as an input), and load what it has stored there behind a barrier.

        `k`, default schedule: 1 finding, did not end; 5 warp instructions
    "#]],
    );
}
