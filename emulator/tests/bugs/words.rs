//! Flags, locks, last blocks, launch control, `setmaxnreg`, rows that are gathered: how CTAs and warps tell each other something, or fail to. What should be
//! said was written down before the emulator had seen them.

use super::case::{Base, Case, Expect, Result, case};
use super::rows_21_30::HANDED_OVER;
use Base::{Grid, OneRow, Small};
use Expect::{Finds, Notes};

/// The last CTA to come adds up what all have stored.
const LAST: &str = "\
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
mul.wide.u32 %rd4, %r2, 256;
add.s64 %rd4, %rd4, %rd3;
st.global.u32 [%rd4], 7; // @st
bar.sync 0; // @stored
@!%p0 bra TOLD;
atom.global.add.acq_rel.gpu.u32 %r4, [%rd0+4096], 1; // @count
st.shared.u32 [slot], %r4;
TOLD:
bar.sync 0;
ld.shared.u32 %r5, [slot];
setp.ne.u32 %p1, %r5, 1;
@%p1 bra END;
ld.global.u32 %r10, [%rd3]; // @ld_first
ld.global.u32 %r11, [%rd3+256]; // @ld
add.u32 %r10, %r10, %r11;
st.global.u32 [%rd3+2048], %r10;
END:";

/// CTA 1 stores by the TMA engine and raises a flag; CTA 0 waits for it, and reads.
const STORED_BY_TMA: &str = "\
mov.u32 %r2, %ctaid.x;
setp.eq.u32 %p1, %r2, 0;
@%p1 bra LOOK;
shl.b32 %r3, %r0, 4;
mov.u32 %r4, tile;
add.u32 %r4, %r4, %r3;
st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0};
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p0 bra END;
mov.u32 %r4, tile;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r4], 1024; // @store
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0; // @wait
st.release.gpu.global.u32 [%rd0+4096], 1; // @raise
bra END;
LOOK:
@!%p0 bra SEEN;
AGAIN:
ld.acquire.gpu.global.u32 %r3, [%rd0+4096];
setp.ne.u32 %p2, %r3, 1;
@%p2 bra AGAIN;
SEEN:
bar.sync 0;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
ld.global.u32 %r5, [%rd3]; // @ld
st.global.u32 [%rd3+2048], %r5;
END:";

/// A warp stores, and raises a flag in shared memory for the other one.
const SHARED_FLAG: &str = "\
@%p0 st.shared.u32 [slot], 0;
bar.sync 0;
shl.b32 %r3, %r0, 2;
and.b32 %r3, %r3, 127;
mov.u32 %r4, tile;
add.u32 %r4, %r4, %r3;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra LOOK;
st.shared.u32 [%r4], %r0; // @st
bar.warp.sync -1;
@%p0 st.release.cta.shared.u32 [slot], 1; // @raise
bra END;
LOOK:
ld.acquire.cta.shared.u32 %r5, [slot]; // @look
setp.eq.u32 %p2, %r5, 0;
@%p2 bra LOOK;
ld.shared.u32 %r7, [%r4]; // @ld
mul.wide.u32 %rd4, %r0, 4;
add.s64 %rd4, %rd4, %rd0;
st.global.u32 [%rd4], %r7;
END:";

/// A CTA asks for others until it is refused.
const ASKED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
mov.u32 %r6, 0;
mov.u32 %r7, 0;
ASK:
@!%p0 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 16;
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [bar_a]; // @ask
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r6;
@!%p2 bra WAIT;
ld.shared.b128 %q0, [response];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0; // @see
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r5, %q0; // @first
fence.proxy.async.shared::cta;
bar.sync 0;
@%p3 mov.u32 %r7, %r5; // @taken
xor.b32 %r6, %r6, 1;
@%p3 bra ASK; // @again
@%p0 st.global.u32 [%rd0], %r7; // @st";

/// All warps of a warpgroup give registers back, and two of three warpgroups take them.
const ROLES: &str = "\
setp.ge.u32 %p1, %r0, 128;
@%p1 bra TAKE;
setp.eq.u32 %p2, %r1, 1;
@%p2 bra SECOND;
setmaxnreg.dec.sync.aligned.u32 24; // @give
bra END;
SECOND:
setmaxnreg.dec.sync.aligned.u32 24; // @give_second
bra END;
TAKE:
setmaxnreg.inc.sync.aligned.u32 240; // @take
END:";

/// Four rows of the matrix, by one instruction.
const GATHERED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 512; // @expect
mov.u32 %r3, 0;
mov.u32 %r4, 5;
mov.u32 %r5, tile;
cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r5], [%rd2, {%r3, %r4, %r3, %r4, %r4}], [bar_a]; // @gather
MADE:
bar.sync 0;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra WAIT; // @loop
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
shl.b32 %r6, %r0, 2;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r6;
ld.shared.u32 %r7, [%r5]; // @ld
st.global.u32 [%rd3], %r7;";

pub fn cases() -> Vec<Case> {
    let own = ("of our own", "not run on a GPU");
    let last = Grid(2, 64, LAST);
    let by_tma = Grid(2, 64, STORED_BY_TMA);
    let flag = Small(1, 64, SHARED_FLAG);
    let over = Small(2, 64, HANDED_OVER);
    let asked = Small(1, 64, ASKED);
    let roles = Small(1, 384, ROLES);
    vec![
        case(
            "w1",
            "the counter of the last block releases, and does not acquire",
            own,
            last,
            &[("@count", "atom.global.add.release.gpu.u32 %r4, [%rd0+4096], 1;")],
            Finds(&[("race-global", "@ld"), ("race-global", "@ld_first")]),
        ),
        case(
            "w2",
            "the counter of the last block comes behind a fence of one thread, but no barrier before it",
            own,
            last,
            &[("@stored", ""), ("@count", "fence.acq_rel.gpu;\n{}")],
            Finds(&[("race-global", "@ld"), ("race-global", "@ld_first")]),
        ),
        case(
            "w3",
            "a flag of global memory is raised when the TMA engine has read the tile, not written it",
            own,
            by_tma,
            &[("@wait", "cp.async.bulk.wait_group.read 0;")],
            Finds(&[("race-global", "@ld"), ("race-global", "@store")]),
        ),
        case(
            "w4",
            "a flag in shared memory is volatile on both sides",
            own,
            flag,
            &[("@raise", "@%p0 st.volatile.shared.u32 [slot], 1;"), ("@look", "ld.volatile.shared.u32 %r5, [slot];")],
            Finds(&[("race-shared", "@ld")]),
        ),
        case(
            "w5",
            "an arrival at another CTA's mbarrier is relaxed",
            own,
            over,
            &[("@arrive_remote", "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r5];")],
            Finds(&[("race-shared", "@ld")]),
        ),
        case(
            "w6",
            "launch control is asked again after it has refused",
            own,
            asked,
            &[("@again", "setp.eq.u32 %p4, %r6, 1;\n@%p4 bra ASK;")],
            Finds(&[("cancel-after-refusal", "@ask")]),
        ),
        case(
            "w7",
            "the first CTA of a refused request is taken for one",
            own,
            asked,
            &[("@taken", "mov.u32 %r7, %r5;")],
            Finds(&[("undefined-value-stored", "@first")]),
        ),
        case(
            "w8",
            "one warp of a warpgroup keeps its registers",
            own,
            roles,
            &[("@give_second", ""), ("@take", "setmaxnreg.inc.sync.aligned.u32 208;")],
            Finds(&[("register-count", "@give")]),
        ),
        case(
            "w9",
            "one warp of a warpgroup keeps other registers",
            own,
            roles,
            &[
                ("@give_second", "setmaxnreg.dec.sync.aligned.u32 32;"),
                ("@take", "setmaxnreg.inc.sync.aligned.u32 208;"),
            ],
            Notes("register-count", "@give", Result::Right),
        ),
        // What is noted of the numbers that they keep hides nothing.
        case(
            "w9b",
            "one warp of a warpgroup keeps other registers, and takes some back alone",
            own,
            roles,
            &[
                ("@give_second", "setmaxnreg.dec.sync.aligned.u32 32;\nsetmaxnreg.inc.sync.aligned.u32 40;"),
                ("@take", "setmaxnreg.inc.sync.aligned.u32 200;"),
            ],
            Finds(&[("register-count", "@give_second")]),
        ),
        case(
            "w10",
            "a role takes fewer registers than it has",
            own,
            roles,
            &[("@take", "setmaxnreg.inc.sync.aligned.u32 200;\nsetmaxnreg.inc.sync.aligned.u32 192;")],
            Finds(&[("register-count", "@take")]),
        ),
        Case {
            launch: |launch| {
                if let emulator::Param::TensorMap { map, .. } = &mut launch.params[2] {
                    map.box_dims = vec![32, 8];
                }
            },
            ..case(
                "w11",
                "rows are gathered with a map of boxes of eight rows",
                own,
                OneRow(GATHERED),
                &[],
                Finds(&[("tensor-map", "@gather")]),
            )
        },
        case(
            "w12",
            "the bytes of one row are announced for four that are gathered",
            own,
            OneRow(GATHERED),
            &[("@expect", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 128;")],
            Finds(&[("hang", "@expect"), ("hang", "@wait")]),
        ),
        case(
            "w13",
            "rows that are gathered are read without a wait",
            own,
            OneRow(GATHERED),
            &[("@loop", ""), ("@wait", "")],
            Finds(&[("race-shared", "@gather"), ("race-shared", "@ld")]),
        ),
        case(
            "w14",
            "one CTA of two stores the same to the same place as the other: no race of values",
            own,
            last,
            &[("@st", "st.global.u32 [%rd3], 7;"), ("@ld", "mov.u32 %r11, 0;")],
            Notes("same-value-written-twice", "@st", Result::Right),
        ),
        case(
            "w15",
            "two copies of one phase gather to the same place, with the same first row and others behind it",
            own,
            OneRow(GATHERED),
            &[
                ("@expect", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;"),
                (
                    "MADE:",
                    "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r5], [%rd2, {%r3, %r4, %r4, %r4, %r4}], [bar_a];\nMADE:",
                ),
            ],
            Finds(&[("race-shared", "{%r3, %r4, %r4, %r4, %r4}")]),
        ),
    ]
}

/// How each is explained: what the help says, and a passage that is pointed at.
#[test]
fn what_they_are_told() {
    const SAID: &[(&str, &str, &str)] = &[
        ("w1", "ld.acquire", "without .acquire"),
        ("w3", "without .read", ""),
        ("w4", "st.release.cta", "without .release"),
        ("w5", "release.cluster", "relaxed"),
        ("w6", "is_canceled is false", "is_canceled was false here"),
        ("w7", "", "the request was refused"),
        ("w8", "warps 0 to 3", ""),
    ];
    for case in cases() {
        let Some((_, help, label)) = SAID.iter().find(|(row, ..)| *row == case.row) else { continue };
        let text = super::case::edited(&case.right(), &case.edits);
        let mut launch = case.base.launch();
        (case.launch)(&mut launch);
        let report = super::common::run(&super::common::load(&text), &launch, None, 400_000);
        let first = report.findings.first().unwrap_or_else(|| panic!("{}: nothing is found", case.row));
        let pointed = label.is_empty() || first.labels.iter().any(|l| l.text.contains(label));
        assert!(first.help.contains(help) && pointed, "{}: {}", case.row, super::case::told(&report.findings));
    }
}

/// Of a flag in shared memory one side is as it should be, and orders nothing without the other: that one is named.
#[test]
fn the_side_of_a_flag_that_orders_nothing_is_named() {
    for (edit, line, lacks) in [
        (("@look", "ld.relaxed.cta.shared.u32 %r5, [slot];"), "ld.relaxed.cta", "without .acquire"),
        (("@raise", "@%p0 st.relaxed.cta.shared.u32 [slot], 1;"), "st.relaxed.cta", "without .release"),
    ] {
        let found = super::case::first(Small(1, 64, SHARED_FLAG), &[edit], |_| {});
        super::case::says(&found, &["Set the flag with st.release.cta"]);
        let named: Vec<&str> =
            found.labels.iter().filter(|l| l.text.contains("without")).map(|l| l.place.text.as_str()).collect();
        assert!(named.len() == 1 && named[0].contains(line), "{named:?}");
        super::case::says(&found, &[lacks]);
    }
}
