//! Bytes that do not come out even, and addresses that lead nowhere.

use crate::says;
use expect_test::expect;

/// More or fewer bytes are announced than the copies of a phase bring.
#[test]
fn bytes_that_do_not_come_out_even() {
    let body = |announced: u32| {
        format!(
            "@!%p0 bra SKIP;
mbarrier.init.shared.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], {announced};
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+64], [%rd2], 64, [bar];
SKIP:
bar.sync 0;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r3, [tile];"
        )
    };
    says(
        &body(256),
        32,
        &[],
        expect![[r#"
            error[hang]: `bar` never completes phase 0: 256 bytes are announced, its copies bring 128 bytes
              --> k.ptx:19:1
               |
            19 | mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ 256 bytes are announced here
            20 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
               | ---------------------------------------------------------------------------------------- this copy brings 64 bytes
            21 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+64], [%rd2], 64, [bar];
               | ------------------------------------------------------------------------------------------- this copy brings 64 bytes
            ...
            25 | mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
               | -------------------------------------------------- warp 0 waits for `bar`, parity 0 (phase 0)
               |
               = rule: A phase completes when its arrivals are there and the bytes that were announced for it (expect_tx) are those that copies have brought (complete_tx): each tensor copy brings its whole box, also where that hangs over the tensor's edge (PTX ISA, mbarrier, tracking asynchronous operations).
               = try: Announce 128 bytes, or let the copies of a phase bring 256.

            `k`, default schedule: 1 finding, did not end; 11 warp instructions
        "#]],
    );
    says(
        &body(96),
        32,
        &[],
        expect![[r#"
            error[hang]: `bar` never completes phase 0: 96 bytes are announced, its copies bring 128 bytes
              --> k.ptx:19:1
               |
            19 | mbarrier.arrive.expect_tx.shared.b64 _, [bar], 96;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ 96 bytes are announced here
            20 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
               | ---------------------------------------------------------------------------------------- this copy brings 64 bytes
            21 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+64], [%rd2], 64, [bar];
               | ------------------------------------------------------------------------------------------- this copy brings 64 bytes
            ...
            25 | mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
               | -------------------------------------------------- warp 0 waits for `bar`, parity 0 (phase 0)
               |
               = rule: A phase completes when its arrivals are there and the bytes that were announced for it (expect_tx) are those that copies have brought (complete_tx): each tensor copy brings its whole box, also where that hangs over the tensor's edge (PTX ISA, mbarrier, tracking asynchronous operations).
               = try: Announce 128 bytes, or let the copies of a phase bring 96.

            `k`, default schedule: 1 finding, did not end; 11 warp instructions
        "#]],
    );
    says(
        &body(64),
        32,
        &[],
        expect![[r#"
            finding[phase-completed-early]: `bar` completes phase 0 before all its bytes are there: 64 bytes are announced, its copies bring 128 bytes
              --> k.ptx:19:1
               |
            19 | mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ 64 bytes are announced here
            20 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
               | ---------------------------------------------------------------------------------------- this copy brings 64 bytes
            21 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+64], [%rd2], 64, [bar];
               | ------------------------------------------------------------------------------------------- this copy brings 64 bytes
               |
               = rule: A phase completes when its arrivals are there and the bytes that were announced for it (expect_tx) are those that copies have brought (complete_tx): each tensor copy brings its whole box, also where that hangs over the tensor's edge (PTX ISA, mbarrier, tracking asynchronous operations).
               = try: Announce 128 bytes, or let the copies of a phase bring 64.
            not proved that no interleaving hangs: line 20: this is meant for phase 1 of `bar`, and may come before phase 0 is complete

            `k`, default schedule: 1 finding; N cycles, 14 warp instructions
        "#]],
    );
}

/// Beyond a buffer: the bytes are not the distance, and the thread is named.
#[test]
fn accesses_beyond_a_buffer_name_the_thread() {
    says(
        "mul.wide.u32 %rd3, %r0, 4;\nadd.u64 %rd3, %rd3, %rd2;\nld.global.u32 %r1, [%rd3+4096];",
        40,
        &[],
        expect![[r#"
            error[out-of-bounds]: thread (0, 0, 0) of CTA (0, 0, 0) would load 4 bytes from 0x7f0000401000, outside of global memory: right behind the end of `in` (4096 bytes)
              --> k.ptx:19:1
               |
            19 | ld.global.u32 %r1, [%rd3+4096];
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here
               |
               = rule: Every access must lie within memory that the launch has: the CTA's shared memory (PTX ISA 5.1.7), the parameters (5.1.6.1) or a buffer in global memory (5.1.4).
               = try: Check row, column and row pitch of the address.

            `k`, default schedule: 1 finding, did not end; 13 warp instructions
        "#]],
    );
    says(
        "@!%p0 bra DONE;\nmbarrier.init.shared.b64 [bar], 1;\nDONE:\nbar.sync 0;\n@%p0 bra NEVER;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n@!%p1 bra WAIT;\nNEVER:",
        64,
        &[],
        expect![[r#"
            error[hang]: the wait for `bar` never ends: nothing ever arrives at it
              --> k.ptx:23:1
               |
            23 | mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 waits for `bar`, parity 0 (phase 0)
               |
               = rule: Every wait must be matched by what it waits for, in every run: an mbarrier's phase by its arrivals and bytes (PTX ISA 9.7.13.15.6), a CTA barrier by its threads (9.7.13.1).
               = try: Let a thread execute mbarrier.arrive on it (with expect_tx if copies bring their bytes to it) before others wait. If it waits for something to be free, as it is at the beginning, let it begin with parity 1.

            `k`, default schedule: 1 finding, did not end; 17 warp instructions
        "#]],
    );
}
