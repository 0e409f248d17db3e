//! Values that nothing has written: where they began.

use crate::says;
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
               = try: Write the value before it is used; for an accumulator, let the first MMA of a tile overwrite (enable-input-d = false).

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
               | ----------------------------- the guard predicate is undefined here
               |
               = rule: Registers and memory hold unknown values until they are written (for memory, PTX ISA 8.2.6).
               = try: Write the value on every path that leads here.

            `k`, default schedule: 1 finding, did not end; N cycles, 8 warp instructions
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
               = try: Write the value before it is used; for an accumulator, let the first MMA of a tile overwrite (enable-input-d = false).

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
               = rule: Shared memory holds no defined value before one is written to it (PTX ISA 8.2.6).
               = try: Write the value before it is used.

            `k`, default schedule: 1 finding; N cycles, 11 warp instructions
        "#]],
    );
}
