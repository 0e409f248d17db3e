//! Mistakes that students make in a step, where the words of the finding must name the cause: what is said, and what is pointed at. Unlike the
//! others here they were written when the emulator had seen the mistakes, and its words had been mended.

use super::case::{Base, Case, Expect, case, edited, told};
use Base::{Pair, Ring, Small};
use Expect::{Among, Finds};

/// What the finding of this code says: a passage of its help, and one of a label.
type Said = (&'static str, &'static str, &'static str);

/// Warp 0 waits until something is free, which it is at first, and hands it to warp 1; that takes its time, and gives it back. Twice.
const HANDED_TO_AND_FRO: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 1;
MADE:
bar.sync 0;
mov.u32 %r3, 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra TAKE;
mov.u32 %r4, 1;
GIVE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r4; // @wait_free
@!%p2 bra GIVE;
@%p0 mbarrier.arrive.shared::cta.b64 _, [bar_b]; // @full
xor.b32 %r4, %r4, 1; // @flip
add.u32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, 2;
@%p1 bra GIVE;
bra END;
TAKE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], %r3; // @wait_full
@!%p2 bra TAKE;
mov.u32 %r5, 0;
WORK:
add.u32 %r5, %r5, 1;
setp.lt.u32 %p1, %r5, 100;
@%p1 bra WORK;
setp.eq.u32 %p1, %r0, 32;
@%p1 mbarrier.arrive.shared::cta.b64 _, [bar_a]; // @free
add.u32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, 2;
@%p1 bra TAKE;
END:";

fn cases() -> Vec<(Case, Said)> {
    let own = ("of our own", "not run on a GPU");
    vec![
        (
            case(
                "s1",
                "the multiplier's wait stays at one stage and one parity",
                own,
                Ring,
                &[("@next_stage_multiplier", ""), ("@flip_multiplier", "")],
                Among(&[("operand-not-ready", "@mma"), ("hang", "@wait_full")]),
            ),
            ("operand-not-ready", "go on from round to round", "passed on phase 0 a second time"),
        ),
        (
            case(
                "s2",
                "another thread than the one that stores waits for the store",
                own,
                Ring,
                &[
                    ("@wait_read", ""),
                    ("@tile_free", "setp.eq.u32 %p9, %r0, 32;\n@%p9 cp.async.bulk.wait_group.read 0; // @idle\n{}"),
                ],
                Finds(&[("race-shared", "@st_tile")]),
            ),
            ("race-shared", "wait_group.read", "warp 1 waits here for its own copies, and has issued none"),
        ),
        (
            case(
                "s3",
                "the mask of a commit names the other CTA alone",
                own,
                Pair,
                &[("mov.b16 %h0, 3;", "mov.b16 %h0, 2;")],
                Finds(&[("hang", "*")]),
            ),
            ("hang", "name CTA 0, too: its bit 0 is not set", "of CTA 1 alone"),
        ),
        (
            case(
                "s4",
                "the write-back does not wait for the product, and hands the accumulator back before it is full",
                own,
                Ring,
                &[("@wait_acc_full", ""), ("@loop_acc_full", "")],
                Finds(&[("mma-not-awaited", "@ld")]),
            ),
            ("mma-not-awaited", "wait for", "reads it here"),
        ),
        (
            case(
                "s5",
                "the wait for a free accumulator keeps parity 1, with which it passed the first time",
                own,
                Small(1, 64, HANDED_TO_AND_FRO),
                &[("@flip", "")],
                Among(&[("phase-overtaken", "@free"), ("hang", "@wait_free"), ("hang", "@wait_full")]),
            ),
            (
                "phase-overtaken",
                "go on with each phase: it asks for one parity twice running, and passes both times at once",
                "this wait is for parity 1 twice running, before any phase is complete",
            ),
        ),
        (
            case(
                "s6",
                "of two commits that free a stage, the mask of one names the other CTA alone",
                own,
                Pair,
                &[
                    ("[%r4+16], 1;", "[%r4+16], 2;"),
                    ("[%r4+24], 1;", "[%r4+24], 2;"),
                    (
                        "[%r14], %h0;",
                        "[%r14], %h0;\n    mov.b16 %h1, 2;\n    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r14], %h1;",
                    ),
                ],
                Finds(&[("hang", "[%r14], %h1")]),
            ),
            ("hang", "name CTA 0, too: its bit 0 is not set", "of CTA 1, and not at"),
        ),
    ]
}

#[test]
fn a_finding_names_the_cause() {
    let (cases, said): (Vec<Case>, Vec<Said>) = cases().into_iter().unzip();
    super::judge(&cases);
    for (case, (code, help, label)) in cases.iter().zip(said) {
        let report = super::common::run(
            &super::common::load(&edited(&case.right(), &case.edits)),
            &case.base.launch(),
            None,
            400_000,
        );
        let of_code = report.findings.iter().filter(|d| d.code == code);
        let says = of_code.filter(|d| d.help.contains(help) && d.labels.iter().any(|l| l.text.contains(label)));
        assert_eq!(says.count(), 1, "{}: {}", case.row, told(&report.findings));
    }
}
