//! What independent judges tried, and were told nothing of, or too much: asynchronous writes of one thread, opaque objects, halves of words,
//! loops that nothing ends. The kernel without the bug is the silent twin.

use super::case::{Base, Case, Expect, case, edited, ring_launch, told};
use super::common;
use Base::{Ring, Small};
use Expect::Finds;

/// A thread stores two chunks by the TMA engine, one after the other, to the same place.
const STORED_TWICE: &str = "\
@!%p0 bra END;
mov.u32 %r3, tile;
st.shared.v4.u32 [%r3], {%r3, %r3, %r3, %r3};
st.shared.v4.u32 [%r3+16], {%r0, %r0, %r0, %r0};
fence.proxy.async.shared::cta;
add.u32 %r4, %r3, 16;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0; // @wait
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r4], 16; // @second
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:";

/// The same of copies into shared memory.
const COPIED_TWICE: &str = "\
@!%p0 bra END;
mov.u32 %r3, tile;
cp.async.cg.shared.global [%r3], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_group 0; // @wait
cp.async.cg.shared.global [%r3], [%rd1+16], 16; // @second
cp.async.wait_all;
ld.shared.u32 %r4, [tile];
st.global.u32 [%rd0], %r4;
END:";

/// Two stores that one phase counts.
const SENT_TWICE: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@!%p0 bra END;
mov.u32 %r3, tile;
mov.u32 %r4, bar_a;
mapa.shared::cluster.u32 %r3, %r3, 0;
mapa.shared::cluster.u32 %r4, %r4, 0;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 8;
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], 5, [%r4];
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3+4], 6, [%r4]; // @second
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r5, [tile];
st.global.u32 [%rd0], %r5;
END:";

/// A word beside an mbarrier.
const BESIDE: &str = "\
@!%p0 bra END;
mbarrier.init.shared::cta.b64 [bar_a], 1;
st.shared.u32 [slot], 7;
ld.shared.u32 %r3, [slot]; // @ld
add.u32 %r3, %r3, 1;
st.shared.u32 [tile], %r3;
END:";

/// Of a word only the lower half is written, and only that is used.
const HALVES: &str = "\
@!%p0 bra END;
st.shared.u16 [slot], 7;
ld.shared.u32 %r3, [slot]; // @ld
and.b32 %r4, %r3, 0xffff; // @and
bfe.u32 %r5, %r3, 4, 12; // @bfe
lop3.b32 %r6, %r3, 0xff, 0x100, 0xea; // @lop3
cvt.u16.u32 %h0, %r3;
cvt.u32.u16 %r7, %h0; // @cvt
shl.b32 %r8, %r3, 16; // @shl
cvt.u64.u32 %rd3, %r3;
shl.b64 %rd3, %rd3, 48; // @shl64
cvt.u8.u32 %h1, %r3;
cvt.u32.u16 %r9, %h1;
st.global.v4.u32 [%rd0], {%r4, %r5, %r6, %r7};
st.global.v2.u32 [%rd0+16], {%r8, %r9};
st.global.u64 [%rd0+24], %rd3;
END:";

/// A warp loads what it has stored to tensor memory.
const THERE_AND_BACK: &str = "\
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
ld.shared.b32 %r3, [slot];
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r0}; // @st
tcgen05.wait::st.sync.aligned; // @wait
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3]; // @ld
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r4;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;";

/// A warp raises a flag in shared memory, and another looks for it; then a loop of four rounds.
const ROUNDS: &str = "\
@%p0 st.shared.u32 [slot], 0;
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra LOOK;
@%p0 st.release.cta.shared.u32 [slot], 1; // @raise
bra END;
LOOK:
ld.acquire.cta.shared.u32 %r3, [slot]; // @look
setp.eq.u32 %p2, %r3, 0;
@%p2 bra LOOK;
mov.u32 %r4, 0;
AGAIN:
add.u32 %r4, %r4, 1; // @count
setp.ne.u32 %p3, %r4, 4;
@%p3 bra AGAIN; // @again
END:";

pub fn cases() -> Vec<Case> {
    let judge = ("an independent judge", "not run on a GPU");
    vec![
        case(
            "j1",
            "two bulk stores of one thread to the same bytes, in two groups",
            judge,
            Small(1, 32, STORED_TWICE),
            &[("@wait", "")],
            Finds(&[("race-global", "@second")]),
        ),
        case(
            "j2",
            "two cp.async of one thread to the same bytes",
            judge,
            Small(1, 32, COPIED_TWICE),
            &[("@wait", "")],
            Finds(&[("race-shared", "@second")]),
        ),
        case(
            "j3",
            "two st.async of one thread to the same word, in one phase",
            judge,
            Small(1, 32, SENT_TWICE),
            &[("[%r3+4], 6", "[%r3], 6")],
            Finds(&[("race-shared", "@second")]),
        ),
        case(
            "j4",
            "a plain load of a live mbarrier",
            judge,
            Small(1, 32, BESIDE),
            &[("ld.shared.u32 %r3, [slot]", "ld.shared.u32 %r3, [bar_a]")],
            Finds(&[("mbarrier-overwritten", "@ld")]),
        ),
        case(
            "j5",
            "a mask takes in a byte that nothing has written",
            judge,
            Small(1, 32, HALVES),
            &[("0xffff; // @and", "0x1ffff; // @and")],
            Finds(&[("undefined-value-stored", "@ld")]),
        ),
        case(
            "j6",
            "a field takes in a bit that nothing has written",
            judge,
            Small(1, 32, HALVES),
            &[("4, 12; // @bfe", "4, 13; // @bfe")],
            Finds(&[("undefined-value-stored", "@ld")]),
        ),
        case(
            "j7",
            "a table of lop3 takes in bits that nothing has written",
            judge,
            Small(1, 32, HALVES),
            &[("0xea; // @lop3", "0xfa; // @lop3")],
            Finds(&[("undefined-value-stored", "@ld")]),
        ),
        case(
            "j8",
            "a shift leaves a bit that nothing has written",
            judge,
            Small(1, 32, HALVES),
            &[("%r3, 16; // @shl", "%r3, 15; // @shl")],
            Finds(&[("undefined-value-stored", "@ld")]),
        ),
        case(
            "j9",
            "a tcgen05.st that nothing waits for is read, and its columns freed: one cause",
            judge,
            Small(1, 32, THERE_AND_BACK),
            &[("@wait", "")],
            Finds(&[("race-tensor", "@st")]),
        ),
        case(
            "j10",
            "a flag in shared memory that nobody raises",
            judge,
            Small(1, 64, ROUNDS),
            &[("@raise", "")],
            Finds(&[("hang", "@look")]),
        ),
        case(
            "j11",
            "a loop that does not count",
            judge,
            Small(1, 64, ROUNDS),
            &[("@count", "add.u32 %r4, %r4, 0;")],
            Finds(&[("hang", "@again")]),
        ),
    ]
}

/// The first finding of a ring with these edits that multiplies so many rows, and how many findings there are.
fn of_the_ring(edits: &[(&str, &str)], rows: usize) -> (emulator::Diagnostic, usize) {
    let text = edited(&Ring.text(), edits);
    let report = common::run(&common::load(&text), &ring_launch(rows, 192), None, 400_000);
    let first = report.findings.first().unwrap_or_else(|| panic!("nothing is found"));
    (first.clone(), report.findings.len())
}

/// The multiplier commits to a stage and to the accumulator: who reads that one should wait for its mbarrier, not for the stage's.
#[test]
fn who_reads_an_accumulator_is_told_to_wait_for_its_mbarrier() {
    let (found, _) = of_the_ring(&[("@wait_acc_full", ""), ("@loop_acc_full", "")], 128);
    assert_eq!(found.code, "mma-not-awaited", "{}", told(std::slice::from_ref(&found)));
    assert!(found.help.contains("dynamic shared memory at byte 65568"), "{}", told(std::slice::from_ref(&found)));
}

/// One cause, one finding.
#[test]
fn a_store_that_nothing_waits_for_is_told_once() {
    let case = cases().into_iter().find(|case| case.row == "j9").unwrap();
    let report = common::run(&common::load(&edited(&case.right(), &case.edits)), &case.base.launch(), None, 400_000);
    assert_eq!(common::codes(&report), ["race-tensor"], "{}", told(&report.findings));
}

/// A wait for what the loads of a stage wait for is missing altogether: that is told, not a count.
#[test]
fn an_arrival_too_many_behind_no_wait() {
    let (found, count) = of_the_ring(&[("@wait_empty", ""), ("@loop_empty", "")], 384);
    assert_eq!((found.code, count), ("mbarrier-overflow", 1), "{}", told(std::slice::from_ref(&found)));
    assert!(
        found.title.starts_with("warp 4 arrives again and has not waited in between"),
        "{}",
        told(std::slice::from_ref(&found))
    );
    assert!(
        found.help.starts_with("Let the thread wait, before it arrives again"),
        "{}",
        told(std::slice::from_ref(&found))
    );
}

/// The MMA reads the stage behind its own: that is one finding, however many of its bytes' stores are in no order with it.
#[test]
fn both_directions_of_a_pair_are_one_finding() {
    let (found, count) = of_the_ring(
        &[(
            "@stage_multiplier",
            "    add.u32 %r16, %r16, %r2;\n    xor.b32 %r50, %r11, 1;\n    mul.lo.u32 %r16, %r50, 24576;\n    add.u32 %r16, %r16, %r2;",
        )],
        384,
    );
    assert_eq!((found.code, count), ("operand-not-ready", 1), "{}", told(std::slice::from_ref(&found)));
    assert!(
        found.help.contains("the addresses of A and B and the commit of a round be of one stage"),
        "{}",
        told(std::slice::from_ref(&found))
    );
}

/// An MMA that begins its sum anew is told, though a bug that has nothing to do with it is there, too.
#[test]
fn an_unrelated_finding_hides_no_overwritten_product() {
    let anew = ("@first", "    and.b32 %r19, %r18, 3;");
    let codes = |edits: &[(&str, &str)]| {
        let text = edited(&Ring.text(), edits);
        common::codes(&common::run(&common::load(&text), &Ring.launch(), None, 400_000))
    };
    assert_eq!(codes(&[anew]), ["product-overwritten"]);
    let both = codes(&[anew, ("@fence_tile", "")]);
    assert!(both.contains(&"product-overwritten") && both.contains(&"missing-proxy-fence"), "{both:?}");
}

/// A branch on the clock: the run says that time decides.
#[test]
fn a_branch_on_the_clock_is_told() {
    let timing = |clock: &str, last: &str| {
        let body = format!(
            "mov.u64 %rd3, {clock};\ncvt.u32.u64 %r3, %rd3;\nand.b32 %r3, %r3, 1;\nsetp.eq.u32 %p1, %r3, 0;\n{last}"
        );
        let body: &'static str = Box::leak(body.into_boxed_str());
        let report = common::run(&common::load(&Small(1, 32, body).text()), &Small(1, 32, body).launch(), None, 10_000);
        assert!(report.is_clean(), "{}", told(&report.findings));
        report.timing.iter().map(|label| label.place.text.clone()).collect::<Vec<_>>()
    };
    for clock in ["%clock64", "%globaltimer"] {
        let told = timing(clock, "@%p1 bra END;\n@%p0 st.global.u32 [%rd0], 1;\nEND:");
        assert_eq!(told, [format!("mov.u64 %rd3, {clock}")]);
        assert_eq!(timing(clock, "@%p0 st.global.u32 [%rd0], %r3;"), [] as [String; 0]);
    }
}

/// One mbarrier is initialised twice, and another never: one finding names all three lines.
#[test]
fn an_initialisation_of_the_wrong_mbarrier_is_one_finding() {
    let (found, count) = of_the_ring(&[("@init_full_1", "    mbarrier.init.shared::cta.b64 [%r3], 1; // twice")], 384);
    assert_eq!((found.code, count), ("mbarrier-not-initialised", 1), "{}", told(std::slice::from_ref(&found)));
    let twice = found.labels.iter().any(|label| label.text.ends_with("this may be meant for the other"));
    assert!(twice && found.labels.len() == 3, "{}", told(std::slice::from_ref(&found)));
}

/// Sizes in messages are written as people write them.
#[test]
fn a_block_of_another_size_is_told() {
    let (program, mut launch) = (common::load(&Ring.text()), Ring.launch());
    launch.block = [64, 1, 1];
    let errors = emulator::check(&program, &launch).unwrap_err();
    assert_eq!(
        errors[0].title,
        "launched with CTAs of 64 × 1 × 1 threads, the kernel requires 192 × 1 × 1 (`.reqntid`)"
    );
}

/// Who has waited for a response of launch control reads what nobody stores meanwhile, by whatever load.
#[test]
fn a_response_is_no_flag() {
    let acquire = ("ld.shared.b128 %q, [response];", "ld.acquire.cta.shared.b128 %q, [response];");
    let report = super::case::run(super::case::Base::LaunchControl, &[acquire], |_| {}, 400_000);
    assert!(report.is_clean());
    let [asks] = &report.timing[..] else { panic!("{:#?}", report.timing) };
    assert!(asks.place.text.contains("clusterlaunchcontrol.try_cancel"), "{asks:#?}");
}
