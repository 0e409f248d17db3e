//! Mistakes that examples of CuTe DSL make: the finding names their cause.

use super::case::{Base, Case, Expect, case, first, run, says, told};
use Base::Small;

/// CTA 0 loads 256 bytes and waits for them; CTA 1 reads them behind the cluster barrier.
const LOADED_AFAR: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra MEET;
@!%p0 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 256;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [bar_a]; // @cp
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra WAIT;
MEET:
barrier.cluster.arrive.aligned; // @arrive
barrier.cluster.wait.aligned; // @met
mov.u32 %r3, tile;
mapa.shared::cluster.u32 %r4, %r3, 0;
shl.b32 %r5, %r0, 2;
add.u32 %r4, %r4, %r5;
ld.shared::cluster.u32 %r6, [%r4]; // @ld
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
mul.wide.u32 %rd4, %r2, 256;
add.s64 %rd3, %rd3, %rd4;
st.global.u32 [%rd3], %r6;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
END:";

/// One warp stores the tile.
const STORED: &str = "\
mov.u32 %r3, tile;
shl.b32 %r4, %r0, 2;
add.u32 %r5, %r4, %r3;
st.shared.u32 [%r5], %r0;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra END; // @one
elect.sync _|%p2, -1;
@%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 256; // @store
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:";

/// A ring of two stages: the producer's own arrivals say that both are free at the beginning, and the first is filled without a wait.
const RING_OF_TWO: &str = "\
mov.u32 %r3, tile;
add.u32 %r4, %r3, 4096;
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [%r4], 1; // @full0
mbarrier.init.shared::cta.b64 [%r4+8], 1;
mbarrier.init.shared::cta.b64 [%r4+16], 1;
mbarrier.init.shared::cta.b64 [%r4+24], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
@!%p0 bra FREE;
mbarrier.arrive.shared::cta.b64 _, [%r4+16];
mbarrier.arrive.shared::cta.b64 _, [%r4+24];
FREE:
bar.sync 0;
mov.u32 %r5, 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra NEXT;
@!%p0 bra END;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256; // @announce
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [%r4]; // @first
FILL:
add.u32 %r5, %r5, 1;
and.b32 %r6, %r5, 1;
shl.b32 %r7, %r6, 3;
add.u32 %r7, %r7, %r4;
shr.u32 %r8, %r5, 1;
and.b32 %r8, %r8, 1;
EMPTY:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r7+16], %r8; // @empty
@!%p2 bra EMPTY;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], 256;
shl.b32 %r9, %r6, 8;
add.u32 %r9, %r9, %r3;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r9], [%rd1], 256, [%r7];
setp.lt.u32 %p3, %r5, 4;
@%p3 bra FILL;
bra.uni END;
NEXT:
and.b32 %r6, %r5, 1;
shl.b32 %r7, %r6, 3;
add.u32 %r7, %r7, %r4;
shr.u32 %r8, %r5, 1;
and.b32 %r8, %r8, 1;
FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r7], %r8; // @full
@!%p2 bra FULL;
shl.b32 %r9, %r6, 8;
add.u32 %r9, %r9, %r3;
and.b32 %r10, %r0, 31;
shl.b32 %r11, %r10, 2;
add.u32 %r9, %r9, %r11;
ld.shared.u32 %r12, [%r9];
mul.wide.u32 %rd3, %r11, 1;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r12;
bar.warp.sync -1;
setp.eq.u32 %p4, %r10, 0;
@%p4 mbarrier.arrive.shared::cta.b64 _, [%r7+16]; // @release
add.u32 %r5, %r5, 1;
setp.lt.u32 %p3, %r5, 5;
@%p3 bra NEXT;
END:";

const RING: Base = Small(1, 64, RING_OF_TWO);
const LOADED: Base = Small(2, 64, LOADED_AFAR);
const STORES: Base = Small(1, 64, STORED);
const RELAXED: &[(&str, &str)] = &[("@arrive", "barrier.cluster.arrive.relaxed.aligned; // @arrive")];
const BY_EACH: &[(&str, &str)] = &[("@one", "")];

pub fn cases() -> Vec<Case> {
    let dsl = ("CuTe DSL 4.8.1, experimental/primitives", "the examples run on B200s");
    vec![
        case(
            "f1",
            "what one CTA has waited for is read by another behind a relaxed arrival at the cluster barrier",
            dsl,
            LOADED,
            RELAXED,
            Expect::Finds(&[("race-shared", "@ld"), ("race-shared", "@cp"), ("race-shared", "@arrive")]),
        ),
        case(
            "f2",
            "a thread of each warp stores the same tile",
            dsl,
            STORES,
            BY_EACH,
            Expect::Finds(&[("race-global", "@store")]),
        ),
        // The producer waits for a stage that it said itself is free: that is not what is wrong.
        case(
            "f3",
            "the bytes of the first copy of a ring are not announced",
            dsl,
            RING,
            &[("@announce", "")],
            Expect::Finds(&[("hang", "@full"), ("hang", "@first")]),
        ),
        case(
            "f4",
            "the first copy of a ring is missing",
            dsl,
            RING,
            &[("@first", "")],
            Expect::Finds(&[("hang", "@announce"), ("hang", "@full")]),
        ),
        case(
            "f5",
            "an mbarrier of a ring is initialised for one arrival too many",
            dsl,
            RING,
            &[("@full0", "mbarrier.init.shared::cta.b64 [%r4], 2; // @full0")],
            Expect::Finds(&[("hang", "@full"), ("hang", "@full0")]),
        ),
        case(
            "f6",
            "nobody says that the stages of a ring are free again",
            dsl,
            RING,
            &[("@release", "")],
            Expect::Finds(&[("hang", "@empty")]),
        ),
    ]
}

#[test]
fn who_uses_a_stage_says_that_it_is_free() {
    says(&first(RING, &[("@release", "")], |_| ()), &["Nobody but warp 0 has arrived at it", "in every round"]);
}

/// Who leaves for good is none who arrives too often.
#[test]
fn arrivals_that_were_dropped_are_told() {
    let edits = [("@release", "@%p4 mbarrier.arrive_drop.shared::cta.b64 _, [%r7+16]; // @release")];
    let found = first(RING, &edits, |_| ());
    assert_eq!(found.code, "mbarrier-overflow");
    says(
        &found,
        &["initialised for 1 arrival a phase", "arrive_drop has taken 1 of them away", "execute mbarrier.arrive here"],
    );
}

/// A reader whose parity stays the same reads too early and frees too early: that is one mistake.
#[test]
fn a_parity_that_stays_the_same_is_one_finding() {
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r7], 0; // @full";
    let report = run(RING, &[("@full", wait)], |_| (), 400_000);
    let [found] = &report.findings[..] else { panic!("{}", told(&report.findings)) };
    says(found, &["a second time", "change with each phase"]);
}

/// One warp waits for what a copy of the other brought, and then the other for the same, with the parity of the phase behind it.
const WAITED_TWICE: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra WAIT;
@!%p0 bra MEET;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 256;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [bar_a];
bra MEET;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
@!%p2 bra WAIT;
MEET:
bar.sync 0;
@%p1 bra END;
AGAIN:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @again
@!%p2 bra AGAIN;
ld.shared.u32 %r3, [tile];
@%p0 st.global.u32 [%rd0], %r3;
END:";

/// That only its own copies came to it is as it should be: the parity is wrong.
#[test]
fn who_waits_for_its_own_copy_is_told_its_parity() {
    let wrong = [("@again", "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 1;")];
    let found = first(Small(1, 64, WAITED_TWICE), &wrong, |_| ());
    says(&found, &["to wait for phase 0, use parity 0"]);
}

/// Nobody can wait for an mbarrier of another CTA, so that is no advice.
#[test]
fn what_another_cta_waits_for_is_told_at_a_barrier() {
    let found = first(LOADED, RELAXED, |_| ());
    says(&found, &["their own CTA only", "leave .relaxed out"]);
    let found = first(LOADED, &[("@arrive", ""), ("@met", "")], |_| ());
    says(&found, &["Let a thread of CTA 0 wait for", "tell warp", "mbarrier.arrive.release.cluster"]);
}

#[test]
fn copies_by_several_warps_are_named_so() {
    says(&first(STORES, BY_EACH, |_| ()), &["elects a thread in every warp", "choose a warp before elect.sync"]);
}
