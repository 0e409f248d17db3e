//! Buffers that are used in rounds, and what says that they are written, read, or free: told to the wrong one, too early, or to nobody who waits. What is
//! wrong in them was found, and another cause was told.

use super::case::{Base, Case, Expect, all_say, edited, run, says};
use super::hunted::{ANNOUNCED_APART, SCHEDULED};
use super::hunted_more::MULTICAST;
use super::untried::of;
use Base::{Grid, Pair, Ring, Small};
use Expect::Finds;

/// CTA 0 stores to CTA 1 in rounds, and waits until that has read.
const SENT_IN_ROUNDS: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 32;
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r4, tile;
mov.u32 %r5, bar_a;
mov.u32 %r6, bar_b;
shl.b32 %r7, %r0, 2;
add.u32 %r8, %r4, %r7;
mapa.shared::cluster.u32 %r9, %r8, 1;
mapa.shared::cluster.u32 %r10, %r5, 1;
mapa.shared::cluster.u32 %r11, %r6, 0;
mov.u32 %r12, 0;
setp.eq.u32 %p1, %r2, 0;
mov.u32 %r15, 0;
@!%p1 bra RECV;
SL:
xor.b32 %r13, %r12, 1;
and.b32 %r13, %r13, 1;
SW:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], %r13; // @sw
@!%p2 bra SW;
add.u32 %r14, %r12, %r0;
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r14, [%r10]; // @sa
add.u32 %r12, %r12, 1;
setp.lt.u32 %p3, %r12, 4;
@%p3 bra SL;
bra FIN;
RECV:
and.b32 %r13, %r12, 1;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 128; // @exp
RW:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], %r13; // @rw
@!%p2 bra RW;
ld.shared.u32 %r16, [%r8]; // @ld
add.u32 %r15, %r15, %r16;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; // @credit
add.u32 %r12, %r12, 1;
setp.lt.u32 %p3, %r12, 4;
@%p3 bra RECV;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r15;
FIN:
barrier.cluster.arrive.aligned; // @fa
barrier.cluster.wait.aligned; // @fw";

/// Two warps copy out of one tile in turn.
const PING_PONG: &str = "\
mov.u32 %r4, tile;
shl.b32 %r5, %r0, 2;
and.b32 %r6, %r0, 31;
shl.b32 %r7, %r6, 2;
add.u32 %r8, %r4, %r7;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p6, %r6, 0;
mov.u32 %r10, 0;
@%p1 bra W0;
bra W1;
W0:
add.u32 %r11, %r10, %r0;
st.shared.u32 [%r8], %r11; // @st0
fence.proxy.async.shared::cta; // @f0
bar.warp.sync -1;
@!%p6 bra S0;
shl.b32 %r12, %r10, 8;
cvt.u64.u32 %rd3, %r12;
add.s64 %rd3, %rd3, %rd0;
cp.async.bulk.global.shared::cta.bulk_group [%rd3], [tile], 128; // @cp0
cp.async.bulk.commit_group; // @cg0
cp.async.bulk.wait_group.read 0; // @wg0
S0:
bar.warp.sync -1;
bar.arrive 1, 64; // @a1
bar.sync 2, 64; // @s2
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 4;
@%p2 bra W0;
bra END;
W1:
bar.sync 1, 64; // @s1
add.u32 %r11, %r10, %r0;
st.shared.u32 [%r8], %r11; // @st1
fence.proxy.async.shared::cta; // @f1
bar.warp.sync -1;
@!%p6 bra S1;
shl.b32 %r12, %r10, 8;
add.u32 %r12, %r12, 128;
cvt.u64.u32 %rd3, %r12;
add.s64 %rd3, %rd3, %rd0;
cp.async.bulk.global.shared::cta.bulk_group [%rd3], [tile], 128; // @cp1
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0; // @wg1
S1:
bar.warp.sync -1;
bar.arrive 2, 64; // @a2
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 4;
@%p2 bra W1;
END:
@!%p6 bra OUT;
cp.async.bulk.wait_group 0; // @final
OUT:";

/// Copies of all threads arrive at an mbarrier, in rounds; the warps say at another one when they have read.
const COPIED_IN_ROUNDS: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 64; // @ia
mbarrier.init.shared::cta.b64 [bar_b], 2; // @ib
MADE:
bar.sync 0;
mov.u32 %r4, tile;
shl.b32 %r5, %r0, 4;
add.u32 %r6, %r4, %r5;
mul.wide.u32 %rd3, %r0, 16;
add.s64 %rd3, %rd3, %rd1;
and.b32 %r7, %r0, 31;
setp.eq.u32 %p6, %r7, 0;
xor.b32 %r8, %r0, 63;
shl.b32 %r8, %r8, 4;
add.u32 %r8, %r8, %r4;
mov.u32 %r10, 0;
mov.u32 %r15, 0;
mov.u32 %r11, 1;
L:
E:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_b], %r11; // @we
@!%p1 bra E;
cp.async.cg.shared.global [%r6], [%rd3], 16; // @cp
cp.async.mbarrier.arrive.noinc.shared.b64 [bar_a]; // @arr
xor.b32 %r12, %r11, 1;
F:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], %r12; // @wf
@!%p1 bra F;
ld.shared.u32 %r13, [%r8]; // @ld
add.u32 %r15, %r15, %r13;
bar.warp.sync -1;
@%p6 mbarrier.arrive.shared::cta.b64 _, [bar_b]; // @free
xor.b32 %r11, %r11, 1;
add.s64 %rd3, %rd3, 1024;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 4;
@%p2 bra L;
mul.wide.u32 %rd4, %r0, 4;
add.s64 %rd4, %rd4, %rd0;
st.global.u32 [%rd4], %r15;";

/// CTA 1 leaves a part of a sum to CTA 0, thread 0 of each speaking for the others.
const SUMMED: &str = "\
mov.u32 %r3, %ctaid.x;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd4, %rd3, %rd0;
setp.eq.u32 %p1, %r3, 0;
@%p1 bra OWNER;
add.u32 %r4, %r0, 100;
st.global.u32 [%rd4+1024], %r4; // @part
membar.gl; // @mb
bar.sync 0; // @bs
@%p0 red.release.gpu.global.add.u32 [%rd0+4096], 1; // @flag
bra END;
OWNER:
@!%p0 bra W;
P:
ld.acquire.gpu.global.u32 %r5, [%rd0+4096]; // @poll
setp.lt.u32 %p2, %r5, 1;
@%p2 bra P;
W:
bar.sync 0; // @bw
ld.global.u32 %r6, [%rd4+1024]; // @ld
st.global.u32 [%rd4], %r6;
END:";

/// Warp 0 stores, and a thread of warp 1 copies that away.
const FENCED: &str = "\
mov.u32 %r4, tile;
shl.b32 %r5, %r0, 2;
add.u32 %r4, %r4, %r5;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r0, 32;
@!%p1 bra SECOND;
st.shared.u32 [%r4], %r5; // @st
fence.proxy.async.shared::cta; // @pf
bar.sync 0; // @b0
bra END;
SECOND:
mov.u32 %r6, 0; // @early
bar.sync 0; // @b1
@!%p2 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 128; // @cp
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:";

const FENCE: &str = "fence.proxy.async.shared::cta;";
const AT_HOME: &str = "@%p6 mbarrier.arrive.shared::cta.b64 _, [bar_b];";
const ON: &str = "setp.eq.u32 %p2, %r0, %r0;";
const LOAD_B: &str = "\
    xor.b32 %r50, %r15, 8;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r17], [%rd1, {%r18, %r19}], [%r50]; // @load_b";

pub fn cases() -> Vec<Case> {
    let sent = Small(2, 32, SENT_IN_ROUNDS);
    let copied = Small(1, 64, COPIED_IN_ROUNDS);
    let summed = Grid(2, 64, SUMMED);
    let fenced = Small(1, 64, FENCED);
    let multicast = Small(2, 64, MULTICAST);
    vec![
        of(
            "x22",
            "the bytes of B count on the other stage's mbarrier",
            Ring,
            &[("@load_b", LOAD_B)],
            Finds(&[("hang", "@load_b")]),
        ),
        of(
            "x23",
            "who writes does not wait until the last round is read",
            Small(1, 64, SCHEDULED),
            &[("@se", ON)],
            Finds(&[("race-shared", "@get"), ("race-shared", "@put")]),
        ),
        of(
            "x24",
            "readers of a multicast tell their own CTA alone, whose mbarrier counts one",
            multicast,
            &[("@initb", "mbarrier.init.shared::cta.b64 [bar_b], 1;"), ("@arr0", AT_HOME), ("@arr1", "")],
            Finds(&[("race-shared", "@cp"), ("race-shared", "@ld"), ("race-shared", "@ld2")]),
        ),
        of(
            "x25",
            "the same, and it counts two",
            multicast,
            &[("@arr0", AT_HOME), ("@arr1", "")],
            Finds(&[("hang", "@initb")]),
        ),
        of(
            "x26",
            "the mask of a multicast lacks a CTA",
            multicast,
            &[("@mask", "mov.b16 %h0, 1;")],
            Finds(&[("hang", "@exp")]),
        ),
        of(
            "x27",
            "the second CTA of a pair does not wait until its stage is free",
            Pair,
            &[("LOAD_WAIT:\n", "@!%p1 bra GO;\nLOAD_WAIT:\n"), ("    @!%p4 bra LOAD_WAIT;", "{}\nGO:")],
            Finds(&[("phase-completed-early", "mbarrier.arrive.expect_tx")]),
        )
        .launched(|launch| *launch = super::common::pair::launch(256, 512)),
        of(
            "x28",
            "stores to another CTA do not wait until the last round is read",
            sent,
            &[("@sw", ON)],
            Finds(&[("phase-completed-early", "@exp")]),
        ),
        of(
            "x29",
            "copies arrive without .noinc",
            copied,
            &[("@arr", "cp.async.mbarrier.arrive.shared.b64 [bar_a];")],
            Finds(&[("hang", "@arr")]),
        ),
        of(
            "x30",
            "two warps arrive where one is counted",
            copied,
            &[("@ib", "mbarrier.init.shared::cta.b64 [bar_b], 1;")],
            Finds(&[("hang", "@ib"), ("race-shared", "*"), ("mbarrier-overflow", "*")]),
        ),
        of(
            "x31",
            "threads arrive, and their copies do not",
            copied,
            &[("@arr", "mbarrier.arrive.shared::cta.b64 _, [bar_a];")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@cp")]),
        ),
        of(
            "x32",
            "the arrival of copies stands in front of them",
            copied,
            &[("@cp", "cp.async.mbarrier.arrive.noinc.shared.b64 [bar_a]; // @told\n{}"), ("@arr", "")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@cp")]),
        ),
        of(
            "x33",
            "copies do not wait until the last round is read",
            copied,
            &[("@we", "setp.eq.u32 %p1, %r0, %r0;")],
            Finds(&[("race-shared", "@cp"), ("race-shared", "@ld")]),
        ),
        of(
            "x34",
            "a warp lets the other one go on before its copy has read",
            Small(1, 64, PING_PONG),
            &[("@a1", ""), ("@f0", "{}\nbar.arrive 1, 64; // @a1")],
            Finds(&[("race-shared", "@cp0"), ("race-shared", "@st1")]),
        ),
        of(
            "x35",
            "the warps of a CTA do not meet before one of them tells",
            summed,
            &[("@bs", "")],
            Finds(&[("race-global", "@ld")]),
        ),
        of(
            "x36",
            "the warps of a CTA do not meet behind the one that hears",
            summed,
            &[("@bw", "")],
            Finds(&[("race-global", "@ld"), ("race-global", "@part")]),
        ),
        of(
            "x37",
            "the fence stands in front of the stores",
            fenced,
            &[("@st", FENCE), ("@pf", "st.shared.u32 [%r4], %r5;")],
            Finds(&[("missing-proxy-fence", "@cp")]),
        ),
        of(
            "x38",
            "who copies fences before the barrier",
            fenced,
            &[("@pf", ""), ("@early", FENCE)],
            Finds(&[("missing-proxy-fence", "@cp")]),
        ),
        of(
            "x39",
            "who stores fences behind the barrier",
            fenced,
            &[("@pf", ""), ("@b0", "{}\nfence.proxy.async.shared::cta; // @late")],
            Finds(&[("missing-proxy-fence", "@cp")]),
        ),
        of(
            "x40",
            "a thread arrives and copies, another one announces, and nothing lies between",
            Small(1, 64, ANNOUNCED_APART),
            COPIED_BY_THE_OTHER,
            Finds(&[("phase-completed-early", "@exp"), ("race-shared", "@ld"), ("race-shared", "@cp")]),
        ),
    ]
}

/// The instruction descriptor names another type than the tensor maps.
#[test]
fn operands_that_are_taken_for_another_type() {
    let bf16 = "tcgen05.mma.cta_group::1.kind::f16 [%r23], %rd2, %rd3, 0x08100490, %p7;";
    let report = run(Ring, &[("@mma", bf16)], |_| {}, 400_000);
    let found = report.findings.iter().find(|found| found.code == "type-mismatch").expect("they were loaded as FP16");
    says(found, &["takes A and B for BF16, which are FP16", "Give both the type FP16."]);
}

const COPIED_BY_THE_OTHER: &[(&str, &str)] = &[
    ("@cp", ""),
    ("@between", ""),
    (
        "@arrive",
        "@!%p1 bra WAIT;\nmbarrier.arrive.shared::cta.b64 _, [bar_a];\n\
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar_a]; // @cp",
    ),
];

/// How each is explained.
#[test]
fn what_they_are_told() {
    const SAID: &[(&str, &[&str])] = &[
        ("x22", &["this copy, of those whose bytes are announced, tells", "Let the copy tell"]),
        ("x23", &["warp 0 never waits for that", "Let warp 0 wait for `bar_b` before it writes `slot` again"]),
        (
            "x24",
            &["alone; warp 0 of CTA", "whose copy writes here", "initialise the mbarrier for the readers of all CTAs"],
        ),
        ("x25", &["is initialised for the arrivals of 2 CTAs, and each CTA arrives at its own mbarrier alone"]),
        ("x26", &["Let the CTA mask of this multicast name CTA 1, too: its bit 1 is not set."]),
        (
            "x27",
            &["warp 0 of CTA 1, whose copies come too early, never waits for that", "Let warp 0 of CTA 1 wait for"],
        ),
        ("x28", &["Let warp 0 of CTA 0 wait for `bar_b` of CTA 0 before"]),
        ("x29", &["Write cp.async.mbarrier.arrive.noinc"]),
        ("x30", &["2 warps arrive at it, and it counts 1"]),
        ("x31", &["whether its copies are complete or not", "cp.async.mbarrier.arrive.noinc instead of this arrival"]),
        ("x32", &["of none behind it", "behind the copies"]),
        ("x33", &["never waits for that", "wait for `bar_b` before it writes `tile` again"]),
        ("x34", &["warp 0 arrives at CTA barrier 1 here, before its copy reads", "when it has waited for this read"]),
        ("x35", &["no CTA barrier stands between the write and this", "in front of what tells other CTAs"]),
        (
            "x36",
            &["no CTA barrier stands between this and the access that relies on it", "behind what hears of other CTAs"],
        ),
        ("x37", &["warp 0 executes this fence in front of the stores", "on the wrong side of the stores"]),
        ("x38", &["warp 1 executes this fence before it has synchronised", "on the wrong side of it"]),
        ("x39", &["and warp 1 has not synchronised with it since", "on the wrong side of it"]),
        ("x40", &["announce"]),
    ];
    all_say(&cases(), SAID);
}

/// The thread that copies may fence for all that it has heard of: behind the barrier (PTX ISA 8.9.5, 9.7.13.4).
#[test]
fn a_fence_behind_the_barrier() {
    let behind = [("@pf", ""), ("@b1", "{}\nfence.proxy.async.shared::cta;")];
    let report = run(Small(1, 64, FENCED), &behind, |_| {}, 400_000);
    assert!(report.is_clean() && report.notes.is_empty(), "{}", super::case::told(&report.findings));
}

/// That an announcement may come too late is found in every schedule, whether the copy was over before it or not.
#[test]
fn an_announcement_beside_the_arrival_is_found_in_every_schedule() {
    let base = Small(1, 64, ANNOUNCED_APART);
    let text = edited(&base.text(), COPIED_BY_THE_OTHER);
    let program = super::common::load(&text);
    for seed in super::common::schedules(16) {
        let report = super::common::run(&program, &base.launch(), seed, 400_000);
        let announced = |d: &emulator::Diagnostic| d.labels.iter().any(|label| label.place.text.contains("expect_tx"));
        assert!(report.findings.iter().any(announced), "seed {seed:?}: {}", super::case::told(&report.findings));
    }
}

/// A fence behind the initialisation of an mbarrier is meant for that, not for stores that have none.
#[test]
fn a_fence_behind_an_initialisation() {
    let init = "@%p2 mbarrier.init.shared::cta.b64 [bar_a], 1;\nfence.proxy.async.shared::cta;";
    let report = run(Small(1, 64, FENCED), &[("@pf", ""), ("@early", init)], |_| {}, 400_000);
    let said: Vec<&str> = report.findings.iter().map(|d| &d.help[..]).collect();
    let advice =
        "Let every thread that stores execute fence.proxy.async.shared::cta after its stores, before the barrier.";
    assert_eq!(said, [advice], "{}", super::case::told(&report.findings));
}
