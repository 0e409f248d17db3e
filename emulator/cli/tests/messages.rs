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
    says(&format!("{LOAD}\nld.shared.u32 %r3, [tile];"), 32, &[], expect![[r#"
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
    "#]]);
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
    // cp.async, by the same thread and by another warp.
    says("cp.async.ca.shared.global [tile], [%rd2], 16;\nld.shared.u32 %r3, [tile];", 1, &[], expect![[r#"
        finding[race-shared]: warp 0 writes `tile`, warp 0 reads it, and nothing orders the two
          --> k.ptx:18:1
           |
        17 | cp.async.ca.shared.global [tile], [%rd2], 16;
           | --------------------------------------------- warp 0 writes it here
        18 | ld.shared.u32 %r3, [tile];
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 reads it here
           |
           = rule: cp.async is asynchronous also for the thread that issues it: cp.async.wait_group or cp.async.wait_all waits for the own copies, a barrier after it for those of others (PTX ISA, cp.async.wait_group).
           = try: After the copies, let every thread that issued some execute cp.async.commit_group and cp.async.wait_group 0.

        `k`, default schedule: 1 finding; N cycles, 7 warp instructions
    "#]]);
    says(
        "@!%p0 bra SKIP;\ncp.async.ca.shared.global [tile], [%rd2], 16;\nSKIP:\nbar.sync 0;\n@%p0 bra DONE;\nld.shared.u32 %r3, [tile];\nDONE:",
        64,
        &[],
        expect![[r#"
            finding[race-shared]: warp 0 writes `tile`, warp 1 reads it, and nothing orders the two
              --> k.ptx:22:1
               |
            18 | cp.async.ca.shared.global [tile], [%rd2], 16;
               | --------------------------------------------- warp 0 writes it here
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
    says(&body(256), 32, &[], expect![[r#"
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
    "#]]);
    says(&body(96), 32, &[], expect![[r#"
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
    "#]]);
    says(&body(64), 32, &[], expect![[r#"
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
    "#]]);
}

/// Beyond a buffer: the bytes are not the distance, and the thread is named.
#[test]
fn accesses_beyond_a_buffer_name_the_thread() {
    says(
        "mul.wide.u32 %rd3, %r0, 4;\nadd.u64 %rd3, %rd3, %rd2;\nld.global.u32 %r1, [%rd3+4096];",
        40,
        &[],
        expect![[r#"
            error[out-of-bounds]: thread (0, 0, 0) of CTA (0, 0, 0) would load 4 bytes from 0x7f0000401000, outside of global memory: 0 bytes past the end of `in` (4096 bytes)
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
            ...
            26 | ret;
               | ---- warp 0, only lane 0 waits for the lanes it parted from
               |
               = rule: Every wait must be matched by what it waits for, in every run: an mbarrier's phase by its arrivals and bytes (PTX ISA 9.7.13.15.6), a CTA barrier by its threads (9.7.13.1).
               = try: Let the MMAs' thread execute tcgen05.commit to it, or a thread mbarrier.arrive, before others wait.

            `k`, default schedule: 1 finding, did not end; N cycles, 17 warp instructions
        "#]],
    );
}
