//! Races with copies, and of CTAs: what would put the two accesses in order.

use crate::common::{emulate_texts, without_cycles};
use crate::{kernel, launch, says};
use expect_test::expect;

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
               = confirmed: with --seed 2, the kernel hangs: the wait for phase 1 of `bar` (parity 1) never ends: nothing arrives any more after phase 0
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
            finding[race-shared]: warp 1 reads `tile`, the TMA engine writes it, and nothing orders the two
              --> k.ptx:33:1
               |
            27 | ld.shared.u32 %r3, [tile];
               | -------------------------- warp 1 reads it here
            ...
            33 | cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the TMA engine writes it here
               |
               = confirmed: with --seed 3, the kernel hangs: the wait for `bar`, parity 0, never ends: 2 phases were complete before it came
               = rule: A copy is ordered after the accesses before it only through synchronisation of their threads with the thread that issues it; written data need a fence.proxy.async as well (PTX ISA 8.6, cp.async.bulk).
               = try: Let all who use `tile` say that it is free, by an mbarrier.arrive each (or a CTA barrier), and let the thread that issues the copy wait for that first.

            `k`, default schedule: 1 finding; N cycles, 33 warp instructions
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
            21 | cp.async.bulk.commit_group;
            22 | cp.async.bulk.wait_group.read 0;
               | -------------------------------- warp 0 waits here only until the copy has read its source
            23 | ld.global.u32 %r3, [%rd0];
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 reads it here
               |
               = rule: With .read, cp.async.bulk.wait_group waits until the copies of its groups have read their sources, and not until their writes are made (PTX ISA, cp.async.bulk.wait_group).
               = try: Execute cp.async.bulk.wait_group without .read before the result is used.

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
               = note: seen 2 times
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
        finding[race-global]: warp 0 of CTA (0, 0, 0) writes `out` at byte 256, warp 0 of CTA (1, 0, 0) reads it, and nothing orders the two
          --> k.ptx:28:1
           |
        21 | st.global.u32 [%rd0+256], 7;
           | ---------------------------- warp 0 of CTA (0, 0, 0) writes it here
        22 | st.relaxed.gpu.global.u32 [%rd0], 1;
           | ------------------------------------ without .release, this orders none of the accesses around it
        ...
        25 | ld.relaxed.gpu.global.u32 %r2, [%rd0];
           | -------------------------------------- without .acquire, this orders none of the accesses around it
        ...
        28 | ld.global.u32 %r3, [%rd0+256];
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ warp 0 of CTA (1, 0, 0) reads it here
           |
           = rule: Accesses of other threads are ordered by a release pattern and an acquire pattern on the same location; a relaxed or volatile access orders nothing else (PTX ISA 8.7, 8.8).
           = try: Set the flag with st.release.gpu (or red.release.gpu) after the data, and read it with ld.acquire.gpu before the data; or put a fence.acq_rel.gpu before the one and after the other.
        not proved that no interleaving hangs: line 25: this reads what others store meanwhile, and may wait for it

        `k`, default schedule: 1 finding; N cycles, 28 warp instructions
    "#]].assert_eq(&without_cycles(&said.out));
}

/// A phase that no bytes hold open completes before its copy is issued: the bytes to announce are named, not a later phase to wait for.
#[test]
fn a_load_whose_bytes_nobody_announces() {
    for arrive in ["mbarrier.arrive.expect_tx.shared.b64 _, [bar], 0;", "mbarrier.arrive.shared.b64 _, [bar];"] {
        let body = format!(
            "@!%p0 bra SKIP;\nmbarrier.init.shared.b64 [bar], 1;\nfence.proxy.async;\n{arrive}\n\
             cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];\nSKIP:\nbar.sync 0;\nWAIT:\n\
             mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n@!%p1 bra WAIT;\nld.shared.u32 %r3, [tile];"
        );
        let said = emulate_texts(&kernel(&body), &launch(64), &[]).out;
        assert!(
            said.contains("try: Announce 64 bytes with the arrival for phase 0: mbarrier.arrive.expect_tx with 64."),
            "{said}"
        );
        assert!(said.contains("this completes phase 0 without the copy's bytes"), "{said}");
    }
}

/// Who reads before a load comes, and never waits, is told to wait; who has used what lay there before, to say that it is free.
#[test]
fn who_reads_before_a_load_comes() {
    let issue = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n\
                 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 64, [bar];";
    let wait = |label: &str, parity: u32| {
        format!("{label}:\nmbarrier.try_wait.parity.shared.b64 %p1, [bar], {parity};\n@!%p1 bra {label};")
    };
    let body = |reader: &str, producer: &str| {
        format!(
            "@%p0 mbarrier.init.shared.b64 [bar], 1;\n@%p0 fence.proxy.async;\nbar.sync 0;\nsetp.ge.u32 %p2, %r0, 32;\n\
             @%p2 bra READ;\n@!%p0 bra END;\n{producer}\nbra END;\nREAD:\n{reader}\nEND:"
        )
    };
    let never = body("ld.shared.u32 %r3, [tile];", &format!("nanosleep.u32 3000;\n{issue}\n{}", wait("P", 0)));
    let again = body(
        &format!("{}\nld.shared.u32 %r3, [tile];", wait("R", 0)),
        &format!("{issue}\n{}\nnanosleep.u32 3000;\n{issue}\n{}", wait("P", 0), wait("Q", 1)),
    );
    for (body, says) in [
        (never, "try: Let warp 1 wait for `bar` first: mbarrier.try_wait.parity with parity 0"),
        (again, "try: Let all who use `tile` say that it is free"),
    ] {
        let said = emulate_texts(&kernel(&body), &launch(64), &[]).out;
        assert!(said.contains(says), "{body}\n{said}");
    }
}
