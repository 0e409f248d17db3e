//! Bugs of which the emulator once knew nothing: what it remembered held only the last of several sums, and between clusters no release fence
//! of tensor maps.

use super::case::{Base, Case, Expect, first, ring_launch, run, says};
use super::untried::of;
use super::untried_maps::MAP_OF_ANOTHER_CLUSTER;
use Base::{Grid, Ring, Small};
use Expect::{Among, Finds, Sometimes};
use emulator::Launch;

pub fn cases() -> Vec<Case> {
    [sums_of_clusters(), sums_of_warps(), flags(), maps(), two_mistakes()].into_iter().flatten().collect()
}

/// All warps of two CTAs add to one number; the CTA that comes last reads it.
const ADDED: &str = "\
mov.u32 %r3, 1;
and.b32 %r4, %r0, 31;
setp.eq.u32 %p2, %r4, 0;
@%p2 red.global.relaxed.gpu.add.u32 [%rd0+1024], %r3; // @add
bar.sync 0;
@!%p0 bra MET;
fence.acq_rel.gpu; // @release
atom.global.relaxed.gpu.add.u32 %r7, [%rd0+4096], 1;
fence.acq_rel.gpu;
st.shared.u32 [slot], %r7;
MET:
bar.sync 0; // @met
ld.shared.u32 %r7, [slot];
setp.ne.u32 %p1, %r7, 1;
@%p1 bra END;
@%p0 ld.global.u32 %r8, [%rd0+1024]; // @ld
@%p0 st.global.u32 [%rd0], %r8;
END:";

fn sums_of_clusters() -> Vec<Case> {
    let added = Grid(2, 64, ADDED);
    let missing = || Finds(&[("race-global", "@ld"), ("race-global", "@add")]);
    vec![
        of("u120", "the sum is passed on without a release", added, &[("@release", "")], missing()),
        of("u121", "the release reaches its own cluster", added, &[("@release", "fence.acq_rel.cluster;")], missing()),
        of(
            "u122",
            "the warps of a CTA do not meet before the release",
            added,
            &[("bar.sync 0;\n@!%p0 bra MET;", "@!%p0 bra MET;")],
            Sometimes(&[("race-global", "@ld"), ("race-global", "@add")]),
        ),
        of(
            "u123",
            "the sum of two halves, passed on without a release",
            added,
            &[("@add", "@%p2 red.global.relaxed.gpu.add.noftz.f16x2 [%rd0+1024], %r3;"), ("@release", "")],
            missing(),
        ),
    ]
}

/// Two warps add to one number in shared memory; a third one waits for both.
const ADDED_BY_WARPS: &str = "\
@%p0 st.shared.u32 [slot], %r0;
bar.sync 0;
and.b32 %r4, %r0, 31;
setp.eq.u32 %p2, %r4, 0;
setp.eq.u32 %p3, %r1, 0;
@%p3 bra READ;
setp.eq.u32 %p4, %r1, 2;
@%p4 bra SECOND;
@%p2 red.relaxed.cta.shared.add.u32 [slot], 1; // @one
bar.arrive 1, 96; // @first
bra END;
SECOND:
@%p2 red.relaxed.cta.shared.add.u32 [slot], 1; // @two
bar.arrive 1, 96; // @second
bra END;
READ:
bar.sync 1, 96; // @read
@%p0 ld.shared.u32 %r8, [slot]; // @ld
@%p0 st.global.u32 [%rd0], %r8;
END:";

fn sums_of_warps() -> Vec<Case> {
    let added = Small(1, 96, ADDED_BY_WARPS);
    vec![
        of(
            "u124",
            "the reader waits for the second warp alone",
            added,
            &[("@first", ""), ("@second", "bar.arrive 1, 64;"), ("@read", "bar.sync 1, 64;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@one")]),
        ),
        of(
            "u125",
            "the reader waits for the first warp alone",
            added,
            &[("@second", ""), ("@first", "bar.arrive 1, 64;"), ("@read", "bar.sync 1, 64;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@two")]),
        ),
        of(
            "u126",
            "a warp adds behind its arrival",
            added,
            &[("@one", ""), ("@first", "{}\n@%p2 red.relaxed.cta.shared.add.u32 [slot], 1; // @late")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@late")]),
        ),
    ]
}

/// Two CTAs count themselves by `red`; one of them asks until both have, and begins anew with a plain store: it has seen the sums that it
/// overwrites.
const COUNTED_BY_RED: &str = "\
@!%p0 bra END;
mov.u32 %r9, %ctaid.x;
mul.wide.u32 %rd3, %r9, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3+1024], %r9; // @data
red.global.release.gpu.add.u32 [%rd0+4096], 1; // @count
setp.ne.u32 %p1, %r9, 0;
@%p1 bra END;
ASK:
ld.acquire.gpu.global.u32 %r5, [%rd0+4096]; // @ask
setp.ne.u32 %p2, %r5, 2;
@%p2 bra ASK;
ld.global.u32 %r6, [%rd0+1028]; // @ld
st.global.u32 [%rd0], %r6;
mov.u32 %r7, 0;
st.global.u32 [%rd0+4096], %r7; // @again
END:";

fn flags() -> Vec<Case> {
    let counted = Grid(2, 32, COUNTED_BY_RED);
    vec![
        of(
            "u127",
            "the count is not a release",
            counted,
            &[("@count", "red.global.relaxed.gpu.add.u32 [%rd0+4096], 1;")],
            Finds(&[("race-global", "@ld"), ("race-global", "@data")]),
        ),
        of(
            "u128",
            "nobody asks before the count begins anew",
            counted,
            &[("@ask", "mov.u32 %r5, 2;"), ("@ld", "mov.u32 %r6, 0;")],
            Finds(&[("race-global", "@again"), ("race-global", "@count")]),
        ),
    ]
}

/// The map is built in shared memory, and published whole.
const MAP_PUBLISHED_AFAR: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
add.s64 %rd5, %rd0, 4096;
add.s64 %rd7, %rd0, 6144;
mov.u32 %r9, %ctaid.x;
setp.ne.u32 %p1, %r9, 0;
@%p1 bra MADE;
mov.u32 %r8, tile;
shl.b32 %r4, %r0, 2;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd6, %rd2, %rd3;
ld.b32 %r5, [%rd6];
add.u32 %r7, %r8, %r4;
st.shared.b32 [%r7], %r5;
bar.warp.sync -1;
add.s64 %rd4, %rd1, 1024;
@%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [tile], %rd4;
bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5], [%r8], 128; // @publish
@%p0 st.release.gpu.global.u32 [%rd7], 1;
bra END;
MADE:
@!%p0 bra WAIT;
ASK:
ld.acquire.gpu.global.u32 %r5, [%rd7];
setp.eq.u32 %p2, %r5, 0;
@%p2 bra ASK;
fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128; // @acquire
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd5, {0, 0}], [bar_a]; // @copy
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 0;
@!%p3 bra WAIT;
shl.b32 %r4, %r0, 2;
mov.u32 %r6, tile;
add.u32 %r7, %r6, %r4;
ld.shared.u32 %r10, [%r7];
mul.wide.u32 %rd6, %r0, 4;
add.s64 %rd6, %rd6, %rd0;
st.global.u32 [%rd6], %r10;
END:";

/// A CTA changes the map, a second one releases it, having heard of it from the first, and a third one uses it.
const MAP_HANDED_ON: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
add.s64 %rd5, %rd0, 4096;
add.s64 %rd7, %rd0, 6144;
mov.u32 %r9, %ctaid.x;
setp.eq.u32 %p1, %r9, 2;
@%p1 bra MADE;
setp.eq.u32 %p1, %r9, 1;
@%p1 bra HAND;
shl.b32 %r4, %r0, 2;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd6, %rd2, %rd3;
ld.b32 %r5, [%rd6];
add.s64 %rd6, %rd5, %rd3;
st.global.b32 [%rd6], %r5; // @write
bar.warp.sync -1;
@%p0 st.release.gpu.global.u32 [%rd7], 1;
bra END;
HAND:
@!%p0 bra END;
HEAR:
ld.acquire.gpu.global.u32 %r5, [%rd7];
setp.eq.u32 %p2, %r5, 0;
@%p2 bra HEAR;
fence.proxy.tensormap::generic.release.gpu; // @release
st.release.gpu.global.u32 [%rd7+128], 1;
bra END;
MADE:
@!%p0 bra WAIT;
ASK:
ld.acquire.gpu.global.u32 %r5, [%rd7+128];
setp.eq.u32 %p2, %r5, 0;
@%p2 bra ASK;
fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128; // @acquire
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd5, {0, 0}], [bar_a]; // @copy
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 0;
@!%p3 bra WAIT;
END:";

const TO_THE_CTA: &str =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.cta.sync.aligned [%rd5], [%r8], 128;";
const TO_THE_CLUSTER: &str =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.cluster.sync.aligned [%rd5], [%r8], 128;";

fn maps() -> Vec<Case> {
    let far = Grid(2, 32, MAP_OF_ANOTHER_CLUSTER);
    let published = Grid(2, 32, MAP_PUBLISHED_AFAR);
    let handed = Grid(3, 32, MAP_HANDED_ON);
    let missing = || Finds(&[("tensor-map-not-acquired", "@copy")]);
    vec![
        of("u129", "the writer releases nothing to another cluster", far, &[("@release", "")], missing()),
        of(
            "u130",
            "the writer's release reaches its own CTA",
            far,
            &[("@release", "fence.proxy.tensormap::generic.release.cta;")],
            missing(),
        ),
        of(
            "u131",
            "the writer's release reaches its own cluster",
            far,
            &[("@release", "fence.proxy.tensormap::generic.release.cluster;")],
            missing(),
        ),
        of(
            "u132",
            "a proxy fence of another proxy in place of the map's release",
            far,
            &[("@release", "fence.proxy.async.global;")],
            missing(),
        ),
        of(
            "u133",
            "the map is released before it is changed",
            far,
            &[
                ("@release", ""),
                ("add.s64 %rd4, %rd1, 1024;", "fence.proxy.tensormap::generic.release.gpu;\nadd.s64 %rd4, %rd1, 1024;"),
            ],
            missing(),
        ),
        of("u134", "the map is published to its own CTA", published, &[("@publish", TO_THE_CTA)], missing()),
        of("u135", "the map is published to its own cluster", published, &[("@publish", TO_THE_CLUSTER)], missing()),
        of("u136", "the reader in another cluster acquires nothing", published, &[("@acquire", "")], missing()),
        of("u137", "who hands the map on releases nothing", handed, &[("@release", "")], missing()),
        of(
            "u138",
            "who hands the map on releases it to its own cluster",
            handed,
            &[("@release", "fence.proxy.tensormap::generic.release.cluster;")],
            missing(),
        ),
    ]
}

const HALF: (&str, &str) = ("@expect", "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 16384;");

/// The bytes of a phase are announced in part; and something else is wrong.
fn two_mistakes() -> Vec<Case> {
    let undefined = || Among(&[("undefined-value-stored", "@mma")]);
    vec![
        of(
            "u139",
            "the first MMA adds to an accumulator that holds nothing",
            Ring,
            &[HALF, ("setp.ne.u32 %p7, %r19, 0;", "setp.eq.u32 %p7, %r19, %r19;")],
            undefined(),
        )
        .launched(|launch| *launch = ring_launch(128, 64)),
        of(
            "u140",
            "B lies where nothing is ever written",
            Ring,
            &[HALF, ("@descriptor_b", "    add.s64 %rd3, %rd2, 4608;")],
            undefined(),
        )
        .launched(|launch| *launch = Launch { dynamic_shared: 131072, ..ring_launch(128, 64) }),
    ]
}

/// The finding says which of the two fences is missing, and for whom.
#[test]
fn the_fence_that_is_missing_is_named() {
    let far = Grid(2, 32, MAP_OF_ANOTHER_CLUSTER);
    let release = first(far, &[("@release", "fence.proxy.tensormap::generic.release.cluster;")], |_| {});
    says(&release, &["no release fence for tensor maps at .gpu scope or a wider one follows"]);
    let acquire = first(far, &[("@acquire", "fence.proxy.tensormap::generic.acquire.cta [%rd5], 128;")], |_| {});
    says(&acquire, &["no acquire fence for tensor maps at .gpu scope or a wider one follows"]);
}

/// What an MMA reads before the copy of the phase has brought it follows from the phase, and is not told.
#[test]
fn what_a_phase_lacks_is_told_once() {
    let report = run(Ring, &[HALF], |launch| *launch = ring_launch(128, 64), 1_000_000);
    let codes: Vec<&str> = report.findings.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["phase-completed-early"]);
}
