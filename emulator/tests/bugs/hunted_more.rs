//! More that nobody had tried: what goes to the wrong CTA of a pair, and what another thread than the right one does.

use super::case::{Base, Case, Expect, all_say, says};
use super::tried_more_kernels::A_IN_TENSOR_MEMORY;
use super::untried::of;
use Base::{Ring, Small};
use Expect::Finds;

/// Each CTA of a pair loads half of what both read, and both say to both when they have.
pub const MULTICAST: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 2; // @initb
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
setp.eq.u32 %p1, %r1, 0;
mov.u32 %r10, 0;
mov.u32 %r12, 0;
mov.u32 %r11, 1;
mov.b16 %h0, 3; // @mask
mov.u32 %r20, bar_b;
mapa.shared::cluster.u32 %r21, %r20, 0; // @mapa0
mapa.shared::cluster.u32 %r22, %r20, 1;
@!%p1 bra CONS;
@!%p0 bra FIN;
mov.u32 %r15, tile;
shl.b32 %r16, %r2, 7;
add.u32 %r15, %r15, %r16;
cvt.u64.u32 %rd4, %r16;
add.s64 %rd4, %rd4, %rd1;
PL:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], %r11; // @pwait
@!%p2 bra PL;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 256; // @exp
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r15], [%rd4], 128, [bar_a], %h0; // @cp
xor.b32 %r11, %r11, 1;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@%p3 bra PL;
bra FIN;
CONS:
mov.u32 %r13, 0;
mov.u32 %r4, tile;
and.b32 %r5, %r0, 31;
setp.eq.u32 %p6, %r5, 0;
shl.b32 %r5, %r5, 2;
add.u32 %r4, %r4, %r5;
CW:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r12; // @cwait
@!%p2 bra CW;
ld.shared.u32 %r6, [%r4]; // @ld
ld.shared.u32 %r7, [%r4+128]; // @ld2
add.u32 %r13, %r13, %r6;
add.u32 %r13, %r13, %r7;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
@%p6 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21]; // @arr0
@%p6 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r22]; // @arr1
xor.b32 %r12, %r12, 1; // @flip
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@%p3 bra CW;
shl.b32 %r5, %r2, 5;
add.u32 %r5, %r5, %r0;
mul.wide.u32 %rd3, %r5, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r13;
FIN:
bar.warp.sync -1;
barrier.cluster.arrive.aligned; // @fina
barrier.cluster.wait.aligned; // @finw";

/// Each CTA of a pair stores to the other one, which counts the bytes and copies them on.
const SENT_AND_COPIED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 512; // @exp
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
xor.b32 %r3, %r2, 1;
mov.u32 %r4, tile;
mov.u32 %r5, bar_a;
shl.b32 %r6, %r0, 4;
add.u32 %r6, %r6, %r4;
mapa.shared::cluster.u32 %r7, %r6, %r3;
mapa.shared::cluster.u32 %r8, %r5, %r3;
st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r7], {%r0, %r2, %r3, %r4}, [%r8]; // @sa
W:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra W;
ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r6]; // @ld
fence.proxy.async.shared::cta; // @pf
bar.sync 0;
@!%p0 bra END;
shl.b32 %r14, %r2, 9;
cvt.u64.u32 %rd3, %r14;
add.s64 %rd3, %rd3, %rd0;
cp.async.bulk.global.shared::cta.bulk_group [%rd3], [tile], 512; // @store
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:";

/// Warps store matrices that a tensor copy takes away.
const MATRICES_STORED: &str = "\
mov.u32 %r4, tile;
shl.b32 %r5, %r0, 4;
add.u32 %r4, %r4, %r5;
add.u32 %r10, %r0, 1;
stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r4], {%r10, %r10, %r10, %r10}; // @stm
fence.proxy.async.shared::cta; // @pf
bar.sync 0; // @b
@!%p0 bra END;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {0, 0}], [tile]; // @store
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
END:";

/// Warps load matrices from the upper half of a box.
const MATRICES_LOADED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
MADE:
bar.sync 0;
@!%p0 bra W;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd2, {0, 0}], [bar_a]; // @box
W:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra W;
mov.u32 %r4, tile;
and.b32 %r5, %r0, 31;
shl.b32 %r5, %r5, 4;
add.u32 %r4, %r4, %r5;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r4]; // @ldm
mul.wide.u32 %rd3, %r0, 16;
add.s64 %rd3, %rd3, %rd0;
st.global.v4.u32 [%rd3], {%r10, %r11, %r12, %r13};";

/// All threads add to one word.
const ADDED_BY_ALL: &str = "\
@%p0 st.shared.u32 [slot], 0; // @zero
bar.sync 0; // @b1
atom.shared.add.u32 %r3, [slot], 1; // @add
bar.sync 0; // @b2
@!%p0 bra END;
ld.shared.u32 %r4, [slot]; // @ld
st.global.u32 [%rd0], %r4;
END:";

const BY_LANE_1: &str = "\
bar.warp.sync -1;
setp.eq.u32 %p6, %r0, 1;
@%p6 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_b];
DONE:";

const TO_CTA_0: (&str, &str) = ("xor.b32 %r3, %r2, 1;", "mov.u32 %r3, 0;");

pub fn cases() -> Vec<Case> {
    let sent = Small(2, 32, SENT_AND_COPIED);
    vec![
        of(
            "x13",
            "both arrivals go to one CTA",
            Small(2, 64, MULTICAST),
            &[("%r22, %r20, 1;", "%r22, %r20, 0;")],
            Finds(&[("mbarrier-overflow", "@exp")]),
        ),
        of("x14", "no proxy fence behind the wait", sent, &[("@pf", "")], Finds(&[("missing-proxy-fence", "@store")])),
        of(
            "x15",
            "all stores go to one CTA",
            sent,
            &[TO_CTA_0],
            Finds(&[("phase-completed-early", "@exp"), ("hang", "@sa")]),
        ),
        of(
            "x16",
            "another lane commits than that which multiplies",
            Small(1, 128, A_IN_TENSOR_MEMORY),
            &[("@commit", ""), ("bar.warp.sync -1;\nDONE:", BY_LANE_1)],
            Finds(&[("mma-not-committed", "@mma")]),
        ),
        of(
            "x17",
            "the MMA has half of the rows that are read",
            Ring,
            &[("@mma", "tcgen05.mma.cta_group::1.kind::f16 [%r23], %rd2, %rd3, 0x04100010, %p7;")],
            Finds(&[("instruction-descriptor", "@mma")]),
        ),
        of(
            "x18",
            "rows of matrices begin in the middle of 16 bytes",
            Small(1, 64, MATRICES_STORED),
            &[("mov.u32 %r4, tile;", "mov.u32 %r4, tile;\nadd.u32 %r4, %r4, 8;")],
            Finds(&[("misaligned-address", "@stm")]),
        ),
        of(
            "x19",
            "nobody waits before a word is added to that one thread sets to 0",
            Small(1, 64, ADDED_BY_ALL),
            &[("@b1", "")],
            Finds(&[("race-shared", "@zero"), ("race-shared", "@add")]),
        ),
        of(
            "x20",
            "matrices are loaded that have not come",
            Small(1, 64, MATRICES_LOADED),
            &[("@wait", "setp.eq.u32 %p2, %r0, %r0;")],
            Finds(&[("race-shared", "@ldm"), ("race-shared", "@box")]),
        ),
        of(
            "x21",
            "one step along K too many: the last rows lie behind the box",
            Ring,
            &[("setp.lt.u32 %p8, %r18, 4;", "setp.lt.u32 %p8, %r18, 5;")],
            Finds(&[("box-mismatch", "@mma")]),
        ),
    ]
}

/// How each is explained.
#[test]
fn what_they_are_told() {
    const SAID: &[(&str, &[&str])] = &[
        (
            "x13",
            &[
                "`bar_b` of CTA 0 is initialised for 2 arrivals a phase, and gets 4; `bar_b` of CTA 1 gets none",
                "the rank that mapa gets",
            ],
        ),
        ("x14", &["Let a thread that has waited for the bytes at their mbarrier execute fence.proxy.async"]),
        ("x15", &["512 bytes are announced"]),
        ("x16", &["no tcgen05.commit of its thread follows the MMA", "this commit is of another thread"]),
        (
            "x17",
            &[
                "says M = 64, although the tile of A has more rows",
                "lanes 16 to 31 of tensor memory column 0 are read here",
            ],
        ),
        ("x18", &["of this row: it is no multiple of 16", "stmatrix"]),
        (
            "x19",
            &[
                "this access is plain",
                "Put a CTA barrier (bar.sync) between the two. If this location tells threads of something",
            ],
        ),
        ("x20", &["wait for `bar_a` first"]),
        (
            "x21",
            &["operand A begins in row 1 of the box", "begins at byte 128 of it", "only within the 128 bytes of a row"],
        ),
    ];
    all_say(&cases(), SAID);
}

/// Stores of threads have no `.cta_group`: that a CTA gets nothing is a matter of addresses.
#[test]
fn a_cta_to_which_nothing_is_stored() {
    let report = super::case::run(Small(2, 32, SENT_AND_COPIED), &[TO_CTA_0], |_| {}, 400_000);
    let hang = report.findings.iter().find(|found| found.code == "hang").expect("CTA 1 waits for ever");
    says(
        hang,
        &["512 bytes from here come to `bar_a` of CTA 0", "check the rank that mapa gets for the two addresses"],
    );
}

/// Where nothing multiplies, nobody is told of MMAs.
#[test]
fn a_box_of_which_half_is_loaded_to_registers() {
    let report = super::case::run(Small(1, 64, MATRICES_LOADED), &[], |_| {}, 400_000);
    let note = report.notes.iter().find(|note| note.code == "loaded-never-read").expect("half of the box is left");
    assert_eq!(note.help, "Read the rest of the box, or load a smaller one.");
}

/// Readers of both CTAs arrive where the copies are issued, and their arrivals order nothing: that is what is told.
#[test]
fn relaxed_arrivals_say_of_no_stage_that_it_is_free() {
    const RELAXED: &[(&str, &str)] = &[
        ("fence.proxy.async.shared::cta;\nbar.warp.sync -1;", "bar.warp.sync -1;"),
        ("@arr0", "@%p6 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r21];"),
        ("@arr1", "@%p6 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r22];"),
    ];
    let found = super::case::first(Small(2, 64, MULTICAST), RELAXED, |_| {});
    assert_eq!(found.code, "race-shared");
    super::case::says(&found, &["relaxed: this orders none of the accesses before it", "Let the arrival release"]);
}
