//! Kernels that nobody had tried: where bytes are announced, what a wait for groups leaves, locks and flags between CTAs, arrivals that come too
//! early. What is wrong in them was missed, or told by another cause.

use super::case::{Base, Case, Expect, all_say};
use super::untried::of;
use Base::{Grid, Small};
use Expect::Finds;

/// One thread announces the bytes of a copy, another one arrives.
pub const ANNOUNCED_APART: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
MADE:
bar.sync 0;
setp.eq.u32 %p1, %r0, 32;
@!%p0 bra N1;
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar_a], 1024; // @exp
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar_a]; // @cp
N1:
bar.sync 1, 64; // @between
@%p1 mbarrier.arrive.shared::cta.b64 _, [bar_a]; // @arrive
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
@!%p2 bra WAIT;
mul.wide.u32 %rd3, %r0, 4;
mov.u32 %r4, tile;
shl.b32 %r5, %r0, 2;
add.u32 %r4, %r4, %r5;
ld.shared.u32 %r6, [%r4]; // @ld
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r6;";

/// Three stages of cp.async; at the end, empty groups take the place of copies.
const THREE_STAGES_OF_COPIES: &str = "\
mul.wide.u32 %rd3, %r0, 16;
add.s64 %rd3, %rd3, %rd1;
shl.b32 %r4, %r0, 4;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r4;
mov.u32 %r6, 0;
mov.u32 %r7, 0;
cp.async.cg.shared.global [%r5], [%rd3], 16;
cp.async.commit_group;
cp.async.cg.shared.global [%r5+1024], [%rd3+1024], 16;
cp.async.commit_group;
xor.b32 %r8, %r0, 63;
shl.b32 %r8, %r8, 4;
mov.u32 %r9, tile;
add.u32 %r8, %r8, %r9;
LOOP:
cp.async.wait_group 1; // @wait
bar.sync 0; // @met
rem.u32 %r10, %r6, 3;
shl.b32 %r10, %r10, 10;
add.u32 %r11, %r10, %r8;
ld.shared.u32 %r12, [%r11]; // @ld
add.u32 %r7, %r7, %r12;
add.u32 %r13, %r6, 2;
setp.ge.u32 %p1, %r13, 6;
@%p1 bra SKIP; // @skip
rem.u32 %r14, %r13, 3;
shl.b32 %r14, %r14, 10;
add.u32 %r14, %r14, %r5;
shl.b32 %r15, %r13, 10;
cvt.u64.u32 %rd4, %r15;
add.s64 %rd4, %rd4, %rd3;
cp.async.cg.shared.global [%r14], [%rd4], 16; // @cp
SKIP:
cp.async.commit_group; // @commit
add.u32 %r6, %r6, 1;
setp.lt.u32 %p2, %r6, 6;
@%p2 bra LOOP;
mul.wide.u32 %rd5, %r0, 4;
add.s64 %rd5, %rd5, %rd0;
st.global.u32 [%rd5], %r7;";

/// CTAs add to a number, one after the other, by a lock.
const LOCKED: &str = "\
@!%p0 bra DONE;
L:
atom.acquire.gpu.global.cas.b32 %r3, [%rd0+4096], 0, 1; // @lock
setp.ne.u32 %p1, %r3, 0;
@%p1 bra L;
ld.global.u32 %r4, [%rd0]; // @ld
add.u32 %r4, %r4, 1;
st.global.u32 [%rd0], %r4; // @st
atom.release.gpu.global.exch.b32 %r5, [%rd0+4096], 0; // @unlock
DONE:";

/// CTA 0 stores, CTA 1 copies what is there.
const FLAGGED: &str = "\
mov.u32 %r3, %ctaid.x;
setp.ne.u32 %p1, %r3, 0;
@%p1 bra READER;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
add.u32 %r4, %r0, 5;
st.global.u32 [%rd3+1024], %r4; // @st
fence.proxy.async.global; // @pfw
bar.sync 0; // @b
@%p0 st.release.gpu.global.u32 [%rd0+4096], 1; // @flag
bra END;
READER:
@!%p0 bra W;
mbarrier.init.shared::cta.b64 [bar_a], 1;
POLL:
ld.acquire.gpu.global.u32 %r5, [%rd0+4096];
setp.eq.u32 %p2, %r5, 0;
@%p2 bra POLL;
fence.proxy.async.global; // @pfr
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 256;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd0+1024], 256, [bar_a]; // @cp
W:
bar.sync 0;
W3:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 0;
@!%p3 bra W3;
mov.u32 %r6, tile;
shl.b32 %r7, %r0, 2;
add.u32 %r6, %r6, %r7;
ld.shared.u32 %r8, [%r6];
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r8;
END:";

/// All CTAs of the grid meet.
const GRID_BARRIER: &str = "\
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %nctaid.x;
mul.wide.u32 %rd3, %r3, 4;
add.s64 %rd3, %rd3, %rd0;
@%p0 st.global.u32 [%rd3], %r3; // @st
bar.sync 0; // @b1
@!%p0 bra W;
fence.acq_rel.gpu; // @rel
atom.relaxed.gpu.global.add.u32 %r5, [%rd0+4096], 1; // @arr
P:
ld.relaxed.gpu.global.u32 %r6, [%rd0+4096]; // @poll
setp.lt.u32 %p1, %r6, %r4;
@%p1 bra P;
fence.acq_rel.gpu; // @acq
W:
bar.sync 0; // @b2
add.u32 %r7, %r3, 1;
rem.u32 %r7, %r7, %r4;
mul.wide.u32 %rd4, %r7, 4;
add.s64 %rd4, %rd4, %rd0;
ld.global.u32 %r8, [%rd4]; // @ld
@%p0 st.global.u32 [%rd3+2048], %r8;";

/// One warp says through shared memory what the other one does next.
pub const SCHEDULED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 1; // @initb
MADE:
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
mov.u32 %r10, 0;
mov.u32 %r11, 1;
mov.u32 %r12, 0;
mov.u32 %r13, 0;
@%p1 bra CONS;
@!%p0 bra END;
S:
SE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], %r11; // @se
@!%p2 bra SE;
st.shared.u32 [slot], %r10; // @put
mbarrier.arrive.shared::cta.b64 _, [bar_a]; // @tell
xor.b32 %r11, %r11, 1;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 5;
@%p3 bra S;
bra END;
CONS:
and.b32 %r5, %r0, 31;
setp.eq.u32 %p6, %r5, 0;
C:
CF:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r12; // @cf
@!%p2 bra CF;
ld.shared.u32 %r14, [slot]; // @get
bar.warp.sync -1;
@%p6 mbarrier.arrive.shared::cta.b64 _, [bar_b]; // @free
add.u32 %r13, %r13, %r14;
xor.b32 %r12, %r12, 1;
setp.lt.u32 %p3, %r14, 4;
@%p3 bra C;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r13;
END:";

/// Two groups hand a buffer to and fro, by two CTA barriers.
const HANDED_TO_AND_FRO: &str = "\
shl.b32 %r3, %r0, 2;
mov.u32 %r4, tile;
add.u32 %r4, %r4, %r3;
mov.u32 %r10, 0;
setp.ge.u32 %p1, %r0, 64;
@%p1 bra B;
A:
st.shared.u32 [%r4], %r10; // @st
bar.arrive 1, 128; // @a1
bar.sync 2, 128; // @a2
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 4;
@%p2 bra A;
bra END;
B:
bar.sync 1, 128; // @b1
ld.shared.u32 %r5, [%r4+-256]; // @ld
bar.arrive 2, 128; // @b2
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 4;
@%p2 bra B;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r5;
END:";

/// A reader asks once in front of the work, and waits only if the answer is no.
const ASKED_BEFORE: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 1;
MADE:
bar.sync 0;
setp.eq.u32 %p1, %r1, 0;
@!%p1 bra CONS;
@!%p0 bra END;
mov.u32 %r10, 0;
mov.u32 %r11, 1;
PL:
PE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], %r11;
@!%p2 bra PE;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 128;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [bar_a]; // @cp
xor.b32 %r11, %r11, 1;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@%p3 bra PL;
bra END;
CONS:
mov.u32 %r10, 0;
mov.u32 %r12, 0;
mov.u32 %r13, 0;
mov.u32 %r4, tile;
and.b32 %r5, %r0, 31;
setp.eq.u32 %p6, %r5, 0;
shl.b32 %r5, %r5, 2;
add.u32 %r4, %r4, %r5;
mbarrier.test_wait.parity.shared::cta.b64 %p4, [bar_a], %r12; // @peek
CL:
@%p4 bra GOT;
CW:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r12;
@!%p2 bra CW;
GOT:
ld.shared.u32 %r6, [%r4]; // @ld
add.u32 %r13, %r13, %r6;
bar.warp.sync -1;
@%p6 mbarrier.arrive.shared::cta.b64 _, [bar_b]; // @arr
xor.b32 %r12, %r12, 1; // @flip
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@!%p3 bra CD;
mbarrier.test_wait.parity.shared::cta.b64 %p4, [bar_a], %r12; // @peek2
bra CL;
CD:
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r13;
END:";

pub fn cases() -> Vec<Case> {
    let announced = Small(1, 64, ANNOUNCED_APART);
    let stages = Small(1, 64, THREE_STAGES_OF_COPIES);
    let locked = Grid(4, 32, LOCKED);
    let flagged = Grid(2, 64, FLAGGED);
    let grid = Grid(8, 64, GRID_BARRIER);
    let scheduled = Small(1, 64, SCHEDULED);
    let handed = Small(1, 128, HANDED_TO_AND_FRO);
    vec![
        of(
            "x1",
            "nothing orders the arrival behind the announcement; it comes behind it all the same",
            announced,
            &[("@between", "@%p1 nanosleep.u32 4000;")],
            Finds(&[("phase-completed-early", "@exp"), ("race-shared", "@ld")]),
        ),
        of(
            "x2",
            "nothing orders the arrival behind the announcement",
            announced,
            &[("@between", "")],
            Finds(&[("phase-completed-early", "@exp"), ("race-shared", "@ld"), ("race-shared", "@cp")]),
        ),
        of(
            "x3",
            "no groups are committed where no copies follow",
            stages,
            &[("@skip", "@%p1 bra NEXT;"), ("add.u32 %r6, %r6, 1;", "NEXT:\n{}")],
            Finds(&[("race-shared", "@ld")]),
        ),
        of(
            "x4",
            "the lock is taken by a relaxed operation",
            locked,
            &[("@lock", LOCK_RELAXED)],
            Finds(&[("race-global", "@ld")]),
        ),
        of("x5", "the lock is taken at the scope of the CTA", locked, &[("@lock", LOCK_NARROW)], locks()),
        of("x6", "the lock is given back by a plain store", locked, &[("@unlock", PLAIN_UNLOCK)], locks()),
        of(
            "x7",
            "the flag is raised at the scope of the CTA",
            flagged,
            &[("@flag", FLAG_NARROW)],
            Finds(&[("race-global", "@flag"), ("race-global", "ld.acquire.gpu")]),
        ),
        of(
            "x8",
            "warps go on that have not heard that all are there",
            grid,
            &[("@b2", "")],
            Finds(&[("race-global", "@ld"), ("race-global", "@st")]),
        ),
        of(
            "x9",
            "the warp says so before it stores",
            scheduled,
            &[("@tell", ""), ("@put", "mbarrier.arrive.shared::cta.b64 _, [bar_a]; // @early\n{}")],
            Finds(&[("race-shared", "@get"), ("race-shared", "@put")]),
        ),
        of(
            "x10",
            "the buffer is handed back before it is read",
            handed,
            &[("@b2", ""), ("@ld", "bar.arrive 2, 128; // @early\n{}")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "x11",
            "a barrier counts fewer threads than come",
            handed,
            &[("@a1", "bar.arrive 1, 96;"), ("@b1", "bar.sync 1, 96;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st"), ("hang", "*")]),
        ),
        of(
            "x12",
            "the stage is given back before it is read",
            Small(1, 64, ASKED_BEFORE),
            &[("@arr", ""), ("@ld", "@%p6 mbarrier.arrive.shared::cta.b64 _, [bar_b]; // @early\n{}")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@cp")]),
        ),
    ]
}

const LOCK_RELAXED: &str = "atom.relaxed.gpu.global.cas.b32 %r3, [%rd0+4096], 0, 1;";
const LOCK_NARROW: &str = "atom.acquire.cta.global.cas.b32 %r3, [%rd0+4096], 0, 1;";
const PLAIN_UNLOCK: &str = "st.global.u32 [%rd0+4096], 0;";
const FLAG_NARROW: &str = "@%p0 st.release.cta.global.u32 [%rd0+4096], 1;";

fn locks() -> Expect {
    Finds(&[("race-global", "@lock"), ("race-global", "@unlock")])
}

/// How each is explained.
#[test]
fn what_they_are_told() {
    const SAID: &[(&str, &[&str])] = &[
        (
            "x1",
            &[
                "may complete phase 0 before its bytes are announced",
                "warp 1 arrives here",
                "mbarrier.arrive.expect_tx",
            ],
        ),
        (
            "x2",
            &[
                "announced when phase 0 of `bar_a` is complete",
                "let an arrival of the phase come behind the announcement",
            ],
        ),
        ("x3", &["this leaves the newest group of a thread pending", "commit an empty group"]),
        ("x4", &["without .acquire, this orders none"]),
        ("x5", &["at .cta scope, this includes no thread of another CTA", "the scope .gpu"]),
        ("x6", &["this access is plain, the other one is not", "access it with st.release.gpu here"]),
        ("x7", &["at .cta scope, this includes no thread of another CTA", "the scope .gpu"]),
        ("x8", &["no CTA barrier stands between this and the access that relies on it"]),
        ("x9", &["warp 0 arrives at `bar_a` here, before it writes", "behind this write"]),
        ("x10", &["arrives at CTA barrier 2 here, before it reads", "behind this read"]),
        ("x11", &["let the barrier count all of their 128 threads"]),
        ("x12", &["warp 1 arrives at `bar_b` here, before it reads", "behind this read"]),
    ];
    all_say(&cases(), SAID);
}

/// What a lock keeps apart is no place that two CTAs should not both write; and of a flag at a narrow scope that alone is told, and not what it should have
/// told of.
#[test]
fn what_follows_from_a_lock_or_a_flag() {
    let all = |base, edit: (&'static str, &'static str)| {
        let report = super::case::run(base, &[edit], |_| {}, 400_000);
        report.findings.into_iter().map(|found| found.help).collect::<Vec<_>>()
    };
    for edit in [LOCK_RELAXED, LOCK_NARROW] {
        let help = all(Grid(4, 32, LOCKED), ("@lock", edit));
        assert!(!help.is_empty() && !help.iter().any(|help| help.contains("written by one")), "{help:#?}");
    }
    let help = all(Grid(2, 64, FLAGGED), ("@flag", FLAG_NARROW));
    assert!(matches!(&help[..], [help] if help.starts_with("Give both accesses the scope .gpu")), "{help:#?}");
}
