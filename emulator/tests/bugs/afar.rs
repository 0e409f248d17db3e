//! Mistakes that examples of CuTe DSL make: the finding names their cause.

use super::case::{Base, Case, Expect, case, first, says};
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
    ]
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
