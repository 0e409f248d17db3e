//! What an audit found told by a consequence, or as several: who writes the same bytes, who does not hear of a wait, which barrier is used for two, what a flag
//! leads to.

use super::case::{Base, Case, Expect, case, edited, told};
use super::common;
use Base::{Grid, Pair, Small};
use Expect::Finds;

/// Two groups of two warps exchange what they have stored, each at a barrier of its own.
const TWO_GROUPS: &str = "\
shl.b32 %r3, %r0, 2;
mov.u32 %r4, tile;
add.u32 %r4, %r4, %r3;
st.shared.u32 [%r4], %r0;
xor.b32 %r5, %r4, 128;
setp.lt.u32 %p1, %r0, 64;
@%p1 bra FIRST;
bar.sync 2, 64; // @second
ld.shared.u32 %r6, [%r5]; // @ld_second
bra STORE;
FIRST:
bar.sync 1, 64; // @first
ld.shared.u32 %r6, [%r5]; // @ld_first
STORE:
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r6;";

/// A CTA raises a flag behind a value, and another looks for it.
const FLAG: &str = "\
mov.u32 %r3, %ctaid.x;
setp.ne.u32 %p1, %r3, 0;
@!%p0 bra END;
@%p1 bra LOOK;
mov.u32 %r4, 42;
st.global.u32 [%rd0+256], %r4; // @data
mov.u32 %r5, 1;
st.release.gpu.global.u32 [%rd0], %r5; // @raise
bra END;
LOOK:
ld.acquire.gpu.global.u32 %r6, [%rd0]; // @look
setp.eq.u32 %p2, %r6, 0;
@%p2 bra LOOK;
ld.global.u32 %r7, [%rd0+256]; // @use
st.global.u32 [%rd0+512], %r7;
END:";

/// Two boxes come for one phase; all wait for it.
const TWO_BOXES: &str = "\
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [bar_a], 1; // @init
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 2048; // @announce
mov.u32 %r3, tile;
mov.u32 %r4, 0;
mov.u32 %r5, 8;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2, {%r4, %r4}], [bar_a];
add.u32 %r3, %r3, 1024;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2, {%r4, %r5}], [bar_a];
READY:
bar.sync 0;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0; // @wait
@!%p1 bra WAIT;
shl.b32 %r6, %r0, 2;
mov.u32 %r7, tile;
add.u32 %r7, %r7, %r6;
ld.shared.u32 %r8, [%r7]; // @one
ld.shared.u32 %r9, [%r7+1024]; // @other
add.u32 %r8, %r8, %r9;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r8;";

/// Every warp of a CTA waits, and one ends the mbarrier.
const INVALIDATED: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
@%p0 fence.mbarrier_init.release.cluster;
bar.sync 0;
@%p0 mbarrier.arrive.shared::cta.b64 _, [bar_a];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0; // @wait
@!%p1 bra WAIT;
bar.sync 0; // @meet
@%p0 mbarrier.inval.shared::cta.b64 [bar_a]; // @inval";

pub fn cases() -> Vec<Case> {
    let own = ("of our own", "not run on a GPU");
    vec![
        case(
            "1r1",
            "both CTAs of a pair load their part of A into the tile of CTA 0",
            own,
            Pair,
            &[
                ("    shl.b32 %r19, %r9, 6;\n", "    shl.b32 %r19, %r9, 6;\n    and.b32 %r51, %r17, 0xfeffffff;\n"),
                ("[%r17], [%rd0", "[%r51], [%rd0"),
            ],
            Finds(&[("race-shared", "[%r51], [%rd0")]),
        ),
        case(
            "1r2",
            "two groups of warps use one barrier number",
            own,
            Small(1, 128, TWO_GROUPS),
            &[("@second", "bar.sync 1, 64;")],
            Finds(&[("race-shared", "@ld_first"), ("race-shared", "@ld_second"), ("named-barrier", "*")]),
        ),
        case(
            "1r3",
            "a flag is raised for the own CTA only",
            own,
            Grid(2, 32, FLAG),
            &[("@raise", "st.release.cta.global.u32 [%rd0], %r5;")],
            Finds(&[("race-global", "@raise"), ("race-global", "@look")]),
        ),
        case(
            "1r4",
            "a flag is raised and read by plain accesses",
            own,
            Grid(2, 32, FLAG),
            &[("@raise", "st.global.u32 [%rd0], %r5;"), ("@look", "ld.global.u32 %r6, [%rd0];")],
            Finds(&[("race-global", "@raise"), ("race-global", "@look")]),
        ),
        case(
            "1r5",
            "the first wait for two boxes is of parity 1",
            own,
            Small(1, 128, TWO_BOXES),
            &[("@wait", "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 1;")],
            Finds(&[("race-shared", "@one")]),
        ),
        case(
            "1r6",
            "an mbarrier ends while others wait for it",
            own,
            Small(1, 64, INVALIDATED),
            &[("@meet", "")],
            Finds(&[("mbarrier-invalidated-early", "@inval"), ("mbarrier-not-initialised", "@wait")]),
        ),
        case(
            "1r7",
            "a staging tile is stored to behind the wait of one thread",
            own,
            Pair,
            &[("STORED:\n    bar.sync 1, 128;", "STORED:")],
            Finds(&[("race-shared", "st.shared.v4.b32 [%r43]"), ("race-shared", "cp.async.bulk.tensor.2d.global")]),
        ),
    ]
}

/// What is told first, and that it is all that is told.
#[test]
fn one_mistake_is_one_finding() {
    let says: &[(&str, &[&str])] = &[
        ("1r1", &["CTA 0 and CTA 1", "Let each CTA of the cluster copy to bytes that no other one writes"]),
        ("1r2", &["Give each group of warps a barrier number of its own: at barrier 1"]),
        ("1r3", &["at .cta scope, this includes no thread of another CTA", "Give both accesses the scope .gpu"]),
        ("1r4", &["Set the flag with st.release.gpu", "ld.acquire.gpu"]),
        ("1r5", &["passed at once", "Wait for parity 0"]),
        ("1r6", &["Let the threads of the CTA meet"]),
        ("1r7", &["Put a CTA barrier (bar.sync) behind this wait", "does not hear of it"]),
    ];
    for case in cases() {
        let text = edited(&case.right(), &case.edits);
        let program = emulator::load(&text).unwrap_or_else(|e| panic!("{}: {e:#?}", case.row));
        let right = emulator::load(&case.right()).unwrap_or_else(|e| panic!("{}: {e:#?}", case.row));
        let run = |program| common::run(program, &case.base.launch(), None, 400_000);
        let found = run(&program).findings;
        let all = told(&found);
        assert_eq!(found.len(), 1, "{}, {}:\n{all}", case.row, case.what);
        let (_, parts) = says.iter().find(|(row, _)| *row == case.row).expect("it says something");
        let sorted = all.replace("CTA 1 and CTA 0", "CTA 0 and CTA 1");
        for part in *parts {
            assert!(sorted.contains(part), "{}: no `{part}` in\n{all}", case.row);
        }
        let right = run(&right);
        assert!(right.is_clean(), "{}: the right kernel\n{}", case.row, told(&right.findings));
    }
}

/// The same in a compiler's kernel, whose copies and waits stand behind one branch for all but one thread: it leads past neither for that one.
#[test]
fn a_wait_behind_the_branch_of_its_copy_is_told_as_heard_by_nobody() {
    let launch: emulator::Launch =
        serde_json::from_str(include_str!("../libraries/quack_pair.json")).expect("a launch");
    let text = include_str!("../libraries/quack_pair.ptx");
    let text = super::case::edited(text, &[("$L__BB0_145:\n\tbar.sync \t1, 128;\n", "$L__BB0_145:\n")]);
    let report = crate::common::run(&crate::common::load(&text), &launch, None, 100_000_000);
    let told = super::case::told(&report.findings);
    assert_eq!(crate::common::codes(&report), ["race-shared"], "{told}");
    for part in ["warp 0 of CTA 0 waits here until the copy has read", "does not hear of it", "Put a CTA barrier"] {
        assert!(told.contains(part), "`{part}` is not in\n{told}");
    }
}
