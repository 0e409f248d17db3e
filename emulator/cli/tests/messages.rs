//! What a user reads of mistakes that newcomers make: each whole message.

mod common;

use common::{emulate_texts, without_cycles};
use expect_test::{Expect, expect};

/// A kernel `k` around a body, with registers and 4 KiB of shared memory. `%rd0` points to the buffer `out`, `%rd2` to `in`; `%r0` is
/// the thread's number.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in)\n{{\n\
         .shared .align 1024 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 free;\n\
         .reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n\
         ld.param.u64 %rd0, [out];\nld.param.u64 %rd2, [in];\nmov.u32 %r0, %tid.x;\nsetp.eq.u32 %p0, %r0, 0;\n{body}\nret;\n}}\n"
    )
}

/// A launch of one CTA: `out` was never written, `in` holds ones.
fn launch(threads: u32) -> String {
    format!(
        r#"{{"entry": "k", "grid": [1, 1, 1], "block": [{threads}, 1, 1],
 "buffers": [{{"name": "out", "content": {{"undefined": {{"bytes": 4096}}}}}},
             {{"name": "in", "content": {{"fill": {{"bytes": 4096, "value": 1}}}}}}],
 "params": [{{"pointer": {{"buffer": 0}}}}, {{"pointer": {{"buffer": 1}}}}]}}"#
    )
}

/// What the command says of a kernel.
fn says(body: &str, threads: u32, arguments: &[&str], expected: Expect) {
    let said = emulate_texts(&kernel(body), &launch(threads), arguments);
    expected.assert_eq(&without_cycles(&(said.out + &said.err)));
}

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

/// A race with a copy is cured by what says that the copy is complete: another thing for each pair.
#[test]
fn races_with_copies_have_their_own_cure() {
    const LOAD: &str = "@!%p0 bra SKIP;
mbarrier.init.shared.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
SKIP:
bar.sync 0;";
    // Nobody waits for the load.
    says(
        &format!("{LOAD}\nld.shared.u32 %r3, [tile];"),
        32,
        &[],
        expect![[r#"
        finding[race-shared]: the TMA engine writes `tile`, warp 0 reads it, and nothing orders the two
          --> k.ptx:23:1
           |
        20 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
           | ---------------------------------------------------------------------------------------- the TMA engine writes it here
        ...
        23 | ld.shared.u32 %r3, [tile];
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 reads it here
           |
           = note: seen 32 times
           = rule: A bulk copy into shared memory is complete when its bytes have completed a phase of its mbarrier; only who has waited for that phase may touch what it writes, or overwrite what it reads (PTX ISA, cp.async.bulk).
           = try: Let warp 0 wait for `bar` first: mbarrier.try_wait.parity with parity 0, until it says true; the copy's bytes complete its phase 0.

        `k`, default schedule: 1 finding; N cycles, 11 warp instructions
    "#]],
    );
    // A wait with the parity that passes on a fresh mbarrier.
    says(
        &format!(
            "{LOAD}\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p1, [bar], 1;\n@!%p1 bra WAIT;\nld.shared.u32 %r3, [tile];"
        ),
        32,
        &[],
        expect![[r#"
            finding[race-shared]: the TMA engine writes `tile`, warp 0 reads it, and nothing orders the two
              --> k.ptx:26:1
               |
            20 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
               | ---------------------------------------------------------------------------------------- the TMA engine writes it here
            ...
            24 | mbarrier.try_wait.parity.shared.b64 %p1, [bar], 1;
               | -------------------------------------------------- this wait for parity 1 of `bar` passed at once: on a fresh mbarrier, parity 1 counts as complete
            25 | @!%p1 bra WAIT;
            26 | ld.shared.u32 %r3, [tile];
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 reads it here
               |
               = note: seen 32 times
               = rule: A bulk copy into shared memory is complete when its bytes have completed a phase of its mbarrier; only who has waited for that phase may touch what it writes, or overwrite what it reads (PTX ISA, cp.async.bulk).
               = try: Wait for parity 0 of `bar`: the copy's bytes complete phase 0, and phase n has parity n mod 2.

            `k`, default schedule: 1 finding; N cycles, 13 warp instructions
        "#]],
    );
    // The source of a store is written again while it may still be read.
    says(
        "@!%p0 bra DONE;
st.shared.v4.b32 [tile], {%r0, %r0, %r0, %r0};
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16;
cp.async.bulk.commit_group;
st.shared.b32 [tile], %r0;
cp.async.bulk.wait_group 0;
DONE:",
        32,
        &[],
        expect![[r#"
            finding[race-shared]: the TMA engine reads `tile`, warp 0 writes it, and nothing orders the two
              --> k.ptx:22:1
               |
            20 | cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16;
               | --------------------------------------------------------------- the TMA engine reads it here
            21 | cp.async.bulk.commit_group;
            22 | st.shared.b32 [tile], %r0;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 writes it here
               |
               = rule: A bulk copy out of shared memory is waited for by the thread that issued it: cp.async.bulk.wait_group.read says that its source has been read, cp.async.bulk.wait_group that its writes are made, too (PTX ISA, cp.async.bulk.wait_group).
               = try: Before `tile` is written again, let the thread that issued the copy execute cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0.

            `k`, default schedule: 1 finding; N cycles, 12 warp instructions
        "#]],
    );
    // A tile is loaded again while another warp may still be reading it.
    says(
        &format!(
            "{LOAD}
@%p0 bra AGAIN;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r3, [tile];
bra DONE;
AGAIN:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
@!%p1 bra AGAIN;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
WAIT2:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 1;
@!%p1 bra WAIT2;
DONE:"
        ),
        33,
        &[],
        expect![[r#"
            finding[phase-overtaken]: `bar` may complete phase 1 before a wait has seen phase 0
              --> k.ptx:32:1
               |
            25 | mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
               | -------------------------------------------------- this wait is for phase 0
            ...
            32 | mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ this arrival completes phase 1; nothing orders it after the wait
               |
               = rule: A wait by parity tells a phase only from the one before it: every waiter must have seen a phase complete before the next one does, or it waits for ever (PTX ISA 9.7.13.15.4, 9.7.13.15.16).
               = try: Let one arrival complete one phase for each wait (a single tcgen05.commit, after the last MMA), or let the next arrival come only after all have waited.

            finding[race-shared]: warp 1 reads `tile`, the TMA engine writes it, and nothing orders the two
              --> k.ptx:33:1
               |
            27 | ld.shared.u32 %r3, [tile];
               | -------------------------- warp 1 reads it here
            ...
            33 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the TMA engine writes it here
               |
               = rule: A copy is ordered after the accesses before it only through synchronisation of their threads with the thread that issues it; written data need a fence.proxy.async as well (PTX ISA 8.6, cp.async.bulk).
               = try: Let all who use `tile` say that it is free, by an mbarrier.arrive each (or a CTA barrier), and let the thread that issues the copy wait for that first.

            `k`, default schedule: 2 findings; N cycles, 33 warp instructions
        "#]],
    );
    // What a copy has stored to global memory is read before it is complete.
    says(
        "@!%p0 bra DONE;
st.shared.v4.b32 [tile], {%r0, %r0, %r0, %r0};
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
ld.global.u32 %r3, [%rd0];
DONE:",
        32,
        &[],
        expect![[r#"
            finding[race-global]: the TMA engine writes `out` at byte 0, warp 0 reads it, and nothing orders the two
              --> k.ptx:23:1
               |
            20 | cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16;
               | --------------------------------------------------------------- the TMA engine writes it here
            ...
            23 | ld.global.u32 %r3, [%rd0];
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 reads it here
               |
               = rule: A bulk copy out of shared memory is waited for by the thread that issued it: cp.async.bulk.wait_group.read says that its source has been read, cp.async.bulk.wait_group that its writes are made, too (PTX ISA, cp.async.bulk.wait_group).
               = try: Before the result is used, let the thread that issued the copy execute cp.async.bulk.commit_group and cp.async.bulk.wait_group 0 (without .read).

            `k`, default schedule: 1 finding; N cycles, 12 warp instructions
        "#]],
    );
    // cp.async, by the same thread and by another warp.
    says(
        "cp.async.ca.shared.global [tile], [%rd2], 16;\nld.shared.u32 %r3, [tile];",
        1,
        &[],
        expect![[r#"
            finding[race-shared]: cp.async of warp 0 writes `tile`, warp 0 reads it, and nothing orders the two
              --> k.ptx:18:1
               |
            17 | cp.async.ca.shared.global [tile], [%rd2], 16;
               | --------------------------------------------- cp.async of warp 0 writes it here
            18 | ld.shared.u32 %r3, [tile];
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 reads it here
               |
               = rule: cp.async is asynchronous also for the thread that issues it: cp.async.wait_group or cp.async.wait_all waits for the own copies, a barrier after it for those of others (PTX ISA, cp.async.wait_group).
               = try: After the copies, let every thread that issued some execute cp.async.commit_group and cp.async.wait_group 0.

            `k`, default schedule: 1 finding; N cycles, 7 warp instructions
        "#]],
    );
    says(
        "@!%p0 bra SKIP;\ncp.async.ca.shared.global [tile], [%rd2], 16;\nSKIP:\nbar.sync 0;\n@%p0 bra DONE;\nld.shared.u32 %r3, [tile];\nDONE:",
        64,
        &[],
        expect![[r#"
            finding[race-shared]: cp.async of warp 0 writes `tile`, warp 1 reads it, and nothing orders the two
              --> k.ptx:22:1
               |
            18 | cp.async.ca.shared.global [tile], [%rd2], 16;
               | --------------------------------------------- cp.async of warp 0 writes it here
            ...
            22 | ld.shared.u32 %r3, [tile];
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 1 reads it here
               |
               = note: seen 63 times
               = rule: cp.async is asynchronous also for the thread that issues it: cp.async.wait_group or cp.async.wait_all waits for the own copies, a barrier after it for those of others (PTX ISA, cp.async.wait_group).
               = try: After the copies, let every thread that issued some execute cp.async.commit_group and cp.async.wait_group 0, then a CTA barrier (bar.sync).

            `k`, default schedule: 1 finding; N cycles, 19 warp instructions
        "#]],
    );
}

/// Two CTAs speak through a relaxed flag.
#[test]
fn a_relaxed_flag_orders_nothing() {
    let two = launch(32)
        .replace("[1, 1, 1], \"block\"", "[2, 1, 1], \"block\"")
        .replace("\"undefined\": {\"bytes\": 4096}", "\"fill\": {\"bytes\": 4096, \"value\": 0}");
    let body = "mov.u32 %r1, %ctaid.x;
setp.eq.u32 %p1, %r1, 1;
@!%p0 bra DONE;
@%p1 bra READER;
st.global.u32 [%rd0+256], 7;
st.relaxed.gpu.global.u32 [%rd0], 1;
bra DONE;
READER:
ld.relaxed.gpu.global.u32 %r2, [%rd0];
setp.eq.u32 %p2, %r2, 0;
@%p2 bra READER;
ld.global.u32 %r3, [%rd0+256];
DONE:";
    let said = emulate_texts(&kernel(body), &two, &[]);
    expect![[r#"
        finding[race-global]: another CTA writes `out` at byte 256, warp 0 reads it, and nothing orders the two
          --> k.ptx:28:1
           |
        21 | st.global.u32 [%rd0+256], 7;
           | ---------------------------- another CTA writes it here
        22 | st.relaxed.gpu.global.u32 [%rd0], 1;
           | ------------------------------------ without .release, this orders none of the accesses around it
        ...
        25 | ld.relaxed.gpu.global.u32 %r2, [%rd0];
           | -------------------------------------- without .acquire, this orders none of the accesses around it
        ...
        28 | ld.global.u32 %r3, [%rd0+256];
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 reads it here
           |
           = rule: Accesses of other CTAs are ordered by a release pattern and an acquire pattern on the same location; a relaxed or volatile access orders nothing else (PTX ISA 8.7, 8.8).
           = try: Set the flag with st.release.gpu (or red.release.gpu) after the data, and read it with ld.acquire.gpu before the data; or put a fence.acq_rel.gpu before the one and after the other.

        `k`, default schedule: 1 finding; N cycles, 28 warp instructions
    "#]].assert_eq(&without_cycles(&said.out));
}

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

        `k`, default schedule: 1 finding, did not end; N cycles, 11 warp instructions
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

        `k`, default schedule: 1 finding, did not end; N cycles, 11 warp instructions
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

            `k`, default schedule: 1 finding, did not end; N cycles, 13 warp instructions
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
               = try: Let a thread execute mbarrier.arrive on it (with expect_tx if copies bring their bytes to it) before others wait.

            `k`, default schedule: 1 finding, did not end; N cycles, 17 warp instructions
        "#]],
    );
}

/// Target and version: there are only some, and instructions need theirs.
#[test]
fn targets_and_versions_are_checked() {
    let says = |from: &str, to: &str, expected: Expect| {
        let text = kernel(
            "tcgen05.fence::before_thread_sync;\nmbarrier.try_wait.parity.relaxed.cta.shared.b64 %p1, [bar], 0;",
        );
        assert!(text.contains(from), "{from}");
        let said = emulate_texts(&text.replace(from, to), &launch(32), &[]);
        expected.assert_eq(&said.err);
        assert_eq!((said.status, said.out.as_str()), (2, ""));
    };
    says(
        "sm_100a",
        "sm_999",
        expect![[r#"
            error[ptx-target]: there is no target `sm_999`
             --> k.ptx:2:9
              |
            2 | .target sm_999
              |         ^^^^^^ here
              |
              = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
              = try: Targets are, among others, sm_90a, sm_100a, sm_100f, sm_103a, sm_110a, sm_120a; with a comma behind: texmode_unified, texmode_independent, debug, map_f64_to_f32.
        "#]],
    );
    says(
        "sm_100a",
        "sm_10a",
        expect![[r#"
            error[ptx-target]: there is no target `sm_10a`
             --> k.ptx:2:9
              |
            2 | .target sm_10a
              |         ^^^^^^ here
              |
              = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
              = try: Did you mean `sm_100a`? Targets are, among others, sm_90a, sm_100a, sm_100f, sm_103a, sm_110a, sm_120a; with a comma behind: texmode_unified, texmode_independent, debug, map_f64_to_f32.
        "#]],
    );
    says(
        "sm_100a",
        "debug",
        expect![[r#"
        error[ptx-target]: no GPU in `.target`
         --> k.ptx:2:9
          |
        2 | .target debug
          |         ^^^^^ here
          |
          = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
          = try: Name a GPU first: `.target sm_100a`.
    "#]],
    );
    says(
        "sm_100a",
        "sm_90a",
        expect![[r#"
        error[ptx-target]: `tcgen05.fence::before_thread_sync` needs a target with tensor memory, such as `sm_100a`, `sm_100f` or `sm_103a`, this module is for `sm_90a`
          --> k.ptx:17:1
           |
         2 | .target sm_90a
           |         ------ `sm_90a` does not have it
        ...
        17 | tcgen05.fence::before_thread_sync;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ needed here
           |
           = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
           = try: Write `.target sm_100a`, or use what `sm_90a` has.
    "#]],
    );
    says(
        "8.8",
        "8.5",
        expect![[r#"
            error[ptx-target]: `sm_100a` needs PTX version 8.6 or later, this module has 8.5
             --> k.ptx:1:10
              |
            1 | .version 8.5
              |          ^^^ version 8.5 does not know this target
            2 | .target sm_100a
              |         ------- the target
              |
              = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
              = try: Write `.version 8.6` or later.
        "#]],
    );
    says(
        "8.8",
        "8.9",
        expect![[r#"
        error[ptx-target]: there is no PTX version 8.9
         --> k.ptx:1:10
          |
        1 | .version 8.9
          |          ^^^ here
          |
          = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
          = try: Versions 8.0 to 8.8 exist.
    "#]],
    );
    says(
        "8.8\n.target sm_100a",
        "8.0\n.target sm_90",
        expect![[r#"
        error[ptx-target]: `tcgen05.fence::before_thread_sync` needs a target with tensor memory, such as `sm_100a`, `sm_100f` or `sm_103a`, this module is for `sm_90`
          --> k.ptx:17:1
           |
         2 | .target sm_90
           |         ----- `sm_90` does not have it
        ...
        17 | tcgen05.fence::before_thread_sync;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ needed here
           |
           = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
           = try: Write `.target sm_100a`, or use what `sm_90` has.

        error[ptx-target]: `mbarrier.try_wait.parity.relaxed.cta.shared.b64` needs PTX version 8.6 or later, this module has 8.0
          --> k.ptx:18:1
           |
         1 | .version 8.0
           |          --- the version
        ...
        18 | mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p1, [bar], 0;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ needed here
           |
           = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
           = try: Write `.version 8.6` or later.
    "#]],
    );
}

/// Slips of the finger in opcodes and names.
#[test]
fn slips_are_answered_with_what_was_meant() {
    for (body, expected) in [
        (
            "mbarrier.try_wiat.parity.shared.b64 %p1, [bar], 0;",
            expect![[r#"
            error[not-modelled]: `mbarrier.try_wiat.parity.shared.b64` is not modelled
               = try: Did you mean `mbarrier.try_wait.parity.shared.b64`?
        "#]],
        ),
        (
            "ld.global.v3.f32 {%r1, %r2, %r3}, [%rd2];",
            expect![[r#"
            error[not-modelled]: `ld.global.v3.f32` is not modelled
               = try: The nearest form that is modelled: `ld.global.v2.f32`. `emulate --list-instructions` lists all.
        "#]],
        ),
        (
            "mov.u32 %r1, %tid;",
            expect![[r#"
                error[ptx-semantics]: `%tid` is not declared
                   = try: Name the axis, too: `%tid.x`.
            "#]],
        ),
        (
            "mov.u32 %r1, %laneId;",
            expect![[r#"
            error[ptx-semantics]: `%laneId` is not declared
               = try: Did you mean `%laneid`? A name must be declared in this scope or in one around it.
        "#]],
        ),
        (
            "mov.u32 %r1, %gridid;",
            expect![[r#"
            error[not-modelled]: the special register `%gridid` is not modelled
               = try: `emulate --list-instructions` lists the special registers that are.
        "#]],
        ),
        (
            "mov.u32 %r1, %r32;",
            expect![[r#"
            error[ptx-semantics]: `%r32` is not declared
               = try: The highest of `%r<…>` that is declared is `%r31`: declare more, or correct the number.
        "#]],
        ),
        (
            "mov.u32 %r1, tiel;",
            expect![[r#"
            error[ptx-semantics]: `tiel` is not declared
               = try: Did you mean `tile`? A name must be declared in this scope or in one around it.
        "#]],
        ),
    ] {
        let said = emulate_texts(&kernel(body), &launch(32), &[]);
        let kept = said.err.lines().filter(|line| line.starts_with("error") || line.contains("= try"));
        expected.assert_eq(&kept.map(|line| format!("{line}\n")).collect::<String>());
    }
}

/// Launch files that say what cannot be meant: the field, what was found, what is allowed.
#[test]
fn launch_files_are_refused_at_their_field() {
    const KERNEL: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])\n{\nret;\n}\n";
    let file = |from: &str, to: &str| {
        let text = r#"{"entry": "k", "grid": [1, 1, 1], "block": [32, 1, 1],
 "buffers": [{"name": "a", "content": {"fill": {"bytes": 4096, "value": 1}}},
             {"name": "b", "content": {"undefined": {"bytes": 64}}}],
 "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"u32": 5},
            {"tensor_map": {"buffer": 0, "map": {"element": "f16", "dims": [32, 64], "strides": [64], "box_dims": [32, 8]}}}],
 "attributes": {"resident_clusters": 4},
 "outputs": [{"buffer": 0, "file": "a.bin"}, {"buffer": 1, "file": "b.bin"}]}"#;
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    for (from, to, expected) in [
        (
            "\"u32\": 5",
            "\"u32\": 1.5",
            expect![[r#"
            error: `params[1].u32` cannot be `1.5`
             --> k.json:4:63
              |
            4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"u32": 1.5},
              |                                                               ^^^ found here
              |
              = try: Allowed here: a whole number from 0 to 4294967295.
        "#]],
        ),
        (
            "\"u32\": 5",
            "\"f32\": 1.5",
            expect![[r#"
                error[launch]: parameter `n` is of type `.u32`, the launch gives a 32-bit floating-point number
                 --> k.json:4:55
                  |
                4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"f32": 1.5},
                  |                                                       ^^^^^^^^^^^^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Give a value of its type: `{ "u32": … }`, or its bits as `bytes`.
            "#]],
        ),
        (
            "\"u32\": 5",
            "\"u33\": 5",
            expect![[r#"
            error: `params[1]` cannot be `u33`
             --> k.json:4:56
              |
            4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"u33": 5},
              |                                                        ^^^^^ found here
              |
              = try: Allowed here: `u8`, `i8`, `s8`, `u16`, `i16`, `s16`, `u32`, `i32`, `s32`, `u64`, `i64`, `s64`, `f16`, `bf16`, `f32`, `f64`, `pointer`, `bytes`, `tensor_map`, `struct`.
        "#]],
        ),
        (
            "{\"u32\": 5}",
            "5",
            expect![[r#"
                error: `params[1]` does not name its kind
                 --> k.json:4:55
                  |
                4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, 5,
                  |                                                       ^ found here
                  |
                  = try: Allowed here: an object with one field, which names the kind: `u8`, `i8`, `s8`, `u16`, `i16`, `s16`, `u32`, `i32`, `s32`, `u64`, `i64`, `s64`, `f16`, `bf16`, `f32`, `f64`, `pointer`, `bytes`, `tensor_map`, `struct`.
            "#]],
        ),
        (
            "\"u32\": 5",
            "\"u32\": 5, \"f32\": 1",
            expect![[r#"
                error: `params[1]` has more than one field
                 --> k.json:4:63
                  |
                4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"u32": 5, "f32": 1},
                  |                                                               ^ found here
                  |
                  = try: Allowed here: an object with one field, which names the kind: `u8`, `i8`, `s8`, `u16`, `i16`, `s16`, `u32`, `i32`, `s32`, `u64`, `i64`, `s64`, `f16`, `bf16`, `f32`, `f64`, `pointer`, `bytes`, `tensor_map`, `struct`.
            "#]],
        ),
        (
            "\"buffer\": 0, \"offset\": 16",
            "\"offset\": 16",
            expect![[r#"
            error: `params[0].pointer` lacks its field `buffer`
             --> k.json:4:36
              |
            4 |  "params": [{"pointer": {"offset": 16}}, {"u32": 5},
              |                                    ^^^ found here
              |
              = try: docs/launch.schema.json lists every field.
        "#]],
        ),
        (
            "\"offset\": 16",
            "\"offset\": 4097",
            expect![[r#"
                error[launch]: parameter `a` points to byte 4097 of buffer 0, which has 4096 bytes
                 --> k.json:4:49
                  |
                4 |  "params": [{"pointer": {"buffer": 0, "offset": 4097}}, {"u32": 5},
                  |                                                 ^^^^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Give a byte within the buffer, or make the buffer larger.
            "#]],
        ),
        (
            "[1, 1, 1]",
            "[1, 1]",
            expect![[r#"
            error: `grid` is a list of length 2
             --> k.json:1:28
              |
            1 | {"entry": "k", "grid": [1, 1], "block": [32, 1, 1],
              |                            ^^ found here
              |
              = try: Allowed here: a list of three numbers: x, y, z.
        "#]],
        ),
        (
            "[1, 1, 1]",
            "null",
            expect![[r#"
            error: `grid` cannot be `null`
             --> k.json:1:24
              |
            1 | {"entry": "k", "grid": null, "block": [32, 1, 1],
              |                        ^^^^ found here
              |
              = try: Allowed here: a list of three numbers: x, y, z.
        "#]],
        ),
        (
            "\"entry\": \"k\"",
            "\"entry\": 7",
            expect![[r#"
            error: `entry` cannot be `7`
             --> k.json:1:11
              |
            1 | {"entry": 7, "grid": [1, 1, 1], "block": [32, 1, 1],
              |           ^ found here
              |
              = try: Allowed here: a text in quotes.
        "#]],
        ),
        (
            "\"name\": \"b\"",
            "\"name\": \"a\"",
            expect![[r#"
            error[launch]: buffers 0 and 1 have one name, `a`
             --> k.json:3:23
              |
            3 |              {"name": "a", "content": {"undefined": {"bytes": 64}}}],
              |                       ^^^ given here
              |
              = rule: A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming Guide, compute capability 10.0).
              = try: Give each buffer a name of its own: messages call it by that.
        "#]],
        ),
        (
            "\"resident_clusters\": 4",
            "\"resident_clusters\": 0",
            expect![[r#"
            error[launch]: no cluster may run: `resident_clusters` is 0
             --> k.json:6:38
              |
            6 |  "attributes": {"resident_clusters": 0},
              |                                      ^ given here
              |
              = rule: A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming Guide, compute capability 10.0).
              = try: Allowed: 1 or more. Left out, as many run as the GPU has room for.
        "#]],
        ),
        (
            "b.bin",
            "a.bin",
            expect![[r#"
            error[launch]: outputs 0 and 1 go to one file, `a.bin`
             --> k.json:7:68
              |
            7 |  "outputs": [{"buffer": 0, "file": "a.bin"}, {"buffer": 1, "file": "a.bin"}]}
              |                                                                    ^^^^^^^ given here
              |
              = rule: A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming Guide, compute capability 10.0).
              = try: Give each output a file of its own.
        "#]],
        ),
        (
            "[32, 8]",
            "[32, 257]",
            expect![[r#"
                error[launch]: parameter `map` is no tensor map: `box_dims[1]` is 257 (allowed: 1 to 256)
                 --> k.json:5:120
                  |
                5 |             {"tensor_map": {"buffer": 0, "map": {"element": "f16", "dims": [32, 64], "strides": [64], "box_dims": [32, 257]}}}],
                  |                                                                                                                        ^^^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Keep to what cuTensorMapEncodeTiled takes.
            "#]],
        ),
        (
            "[32, 8]",
            "[4, 8]",
            expect![[r#"
                error[launch]: parameter `map` is no tensor map: `box_dims[0]` is 4, which makes rows of 8 bytes with elements of 2 bytes (allowed: multiples of 16 bytes)
                 --> k.json:5:116
                  |
                5 |             {"tensor_map": {"buffer": 0, "map": {"element": "f16", "dims": [32, 64], "strides": [64], "box_dims": [4, 8]}}}],
                  |                                                                                                                    ^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Keep to what cuTensorMapEncodeTiled takes.
            "#]],
        ),
        (
            "\"dims\": [32, 64]",
            "\"dims\": [32]",
            expect![[r#"
                error[launch]: parameter `map` is no tensor map: `box_dims` has 2 numbers; for 1 dimension it has 1
                 --> k.json:5:111
                  |
                5 |             {"tensor_map": {"buffer": 0, "map": {"element": "f16", "dims": [32], "strides": [64], "box_dims": [32, 8]}}}],
                  |                                                                                                               ^^^^^^^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Keep to what cuTensorMapEncodeTiled takes.
            "#]],
        ),
        (
            "\"buffer\": 1, \"file\"",
            "\"buffer\": 1 \"file\"",
            expect![[r#"
            error: this is no JSON: expected `,` or `}`
             --> k.json:7:59
              |
            7 |  "outputs": [{"buffer": 0, "file": "a.bin"}, {"buffer": 1 "file": "b.bin"}]}
              |                                                           ^ found here
              |
              = try: Write JSON (RFC 8259).
        "#]],
        ),
    ] {
        let said = emulate_texts(KERNEL, &file(from, to), &[]);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{to}");
        expected.assert_eq(&said.err);
    }
    assert_eq!(emulate_texts(KERNEL, &file("", ""), &[]).status, 0);
}

/// The same as values.
#[test]
fn json_has_errors_of_kernels_and_of_launch_files() {
    let json = |kernel: &str, launch: &str| {
        let said = emulate_texts(kernel, launch, &["--format", "json"]);
        assert_eq!((said.status, said.err.as_str()), (2, ""));
        said.out
    };
    expect![[r#"
        {
          "schema": 1,
          "kernel": "k.ptx",
          "launch": "k.json",
          "errors": [
            {
              "code": "ptx-semantics",
              "title": "`%r32` is not declared",
              "places": [
                {
                  "file": "k.ptx",
                  "line": 17,
                  "column": 1,
                  "text": "here"
                }
              ],
              "rule": "PTX instructions take the operands that chapter 9 of the PTX ISA gives them.",
              "help": "The highest of `%r<…>` that is declared is `%r31`: declare more, or correct the number."
            }
          ]
        }
    "#]]
    .assert_eq(&json(&kernel("mov.u32 %r1, %r32;"), &launch(32)));
    expect![[r#"
        {
          "schema": 1,
          "kernel": "k.ptx",
          "launch": "k.json",
          "errors": [
            {
              "code": "launch",
              "title": "a CTA of 2048 × 1 × 1 threads",
              "places": [
                {
                  "file": "k.json",
                  "line": 1,
                  "column": 44,
                  "text": "`block` of the launch description"
                },
                {
                  "file": "k.ptx",
                  "line": 4,
                  "column": 17,
                  "text": "this kernel"
                }
              ],
              "rule": "A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming Guide, compute capability 10.0).",
              "help": "1 to 1024 threads, z up to 64."
            }
          ]
        }
    "#]].assert_eq(&json(&kernel(""), &launch(2048)));
    expect![[r#"
        {
          "schema": 1,
          "kernel": "k.ptx",
          "launch": "k.json",
          "errors": [
            {
              "code": "launch",
              "title": "unknown field `gird`",
              "places": [
                {
                  "file": "k.json",
                  "line": 1,
                  "column": 16,
                  "text": "found here"
                }
              ],
              "rule": "",
              "help": "Allowed here: `entry`, `grid`, `cluster`, `block`, `dynamic_shared`, `buffers`, `params`, `param_block`, `regions`, `attributes`, `outputs`."
            }
          ]
        }
    "#]].assert_eq(&json(&kernel(""), &launch(32).replace("\"grid\"", "\"gird\"")));
}

/// Of several seeds, each finding says which ones it was seen under; notes are counted, and hidden if so wished.
#[test]
fn findings_of_several_seeds_and_notes() {
    let body =
        "mov.u32 %r1, 7;\nst.shared.u32 [tile], %r1;\nst.shared.u32 [tile+128], %r0;\nld.shared.u32 %r2, [tile+128];";
    says(
        body,
        64,
        &["--seeds", "0..12"],
        expect![[r#"
        finding[race-shared]: warp 1 writes `tile`, warp 0 writes it, and nothing orders the two
          --> k.ptx:19:1
           |
        19 | st.shared.u32 [tile+128], %r0;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           | |
           | warp 0 writes it here
           | warp 1 writes it here
           |
           = note: seen under all 12 seeds
           = rule: Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them (PTX ISA 8.7.1, 8.9.5).
           = try: Let each byte be written by one warp: check how the address depends on the thread.

        Notes: rules broken that no machine code would show. They change no exit status; `--notes hide` hides them.

        note[same-value-written-twice]: warp 1 and warp 0 store the same value to `tile`, and nothing orders the two
          --> k.ptx:18:1
           |
        18 | st.shared.u32 [tile], %r1;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^
           | |
           | stored here
           | stored here before
           |
           = note: seen under all 12 seeds
           = rule: Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them (PTX ISA 8.7.1, 8.9.5), also when the value does not depend on it.
           = try: Let one warp store it.

        `k`, seed 0: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 1: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 2: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 3: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 4: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 5: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 6: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 7: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 8: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 9: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 10: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`, seed 11: 1 finding, 1 note; N cycles, 18 warp instructions
        `k`: 0 of 12 schedules are clean; 1 finding, 1 note
    "#]],
    );
    says(
        body,
        64,
        &["--notes", "hide"],
        expect![[r#"
        finding[race-shared]: warp 0 writes `tile`, warp 1 writes it, and nothing orders the two
          --> k.ptx:19:1
           |
        19 | st.shared.u32 [tile+128], %r0;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           | |
           | warp 1 writes it here
           | warp 0 writes it here
           |
           = rule: Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them (PTX ISA 8.7.1, 8.9.5).
           = try: Let each byte be written by one warp: check how the address depends on the thread.

        finding[race-shared]: warp 1 writes `tile`, warp 0 reads it, and nothing orders the two
          --> k.ptx:20:1
           |
        19 | st.shared.u32 [tile+128], %r0;
           | ------------------------------ warp 1 writes it here
        20 | ld.shared.u32 %r2, [tile+128];
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 reads it here
           |
           = note: seen 32 times
           = rule: Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them (PTX ISA 8.7.1, 8.9.5).
           = try: Put a CTA barrier (bar.sync) between the two.

        `k`, default schedule: 2 findings, 1 note (hidden); N cycles, 18 warp instructions
    "#]],
    );
}
