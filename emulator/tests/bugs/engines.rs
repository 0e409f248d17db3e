//! Kernels that nobody had tried: launch control, maps in use, scale factors of another warp, registers that change hands, and what two do that one should.
//! What is wrong in them was missed, or told by another cause.

use super::case::{Base, Case, Expect, all_say};
use super::engines_kernels::*;
use super::untried::of;
use Base::{Grid, Pair, Small};
use Expect::Finds;

const ON: &str = "setp.eq.u32 %p2, %r0, %r0;";
const COUNTS_ONE: &str = "mbarrier.init.shared::cta.b64 [bar_b], 1;";
const ALONE: &str = "@%p0 mbarrier.arrive.shared::cta.b64 _, [bar_b];";

/// Two CTAs run at a time.
fn two_at_a_time(case: Case) -> Case {
    case.launched(|launch| launch.attributes.resident_clusters = Some(2))
}

pub fn cases() -> Vec<Case> {
    let requested = Grid(10, 64, REQUESTED);
    let factors = Small(1, 128, FACTORS_OF_ANOTHER);
    let handed = Small(1, 384, HANDED_ON);
    let readers = Small(1, 96, TWO_READERS);
    let mut cases: Vec<Case> = [
        of(
            "y1",
            "who asks does not wait until the last response is read",
            requested,
            &[("@ew", ON)],
            Finds(&[("race-shared", "@ask"), ("race-shared", "@ld")]),
        ),
        of(
            "y2",
            "one of two readers says that it has read, and one is counted",
            requested,
            &[("@ib", COUNTS_ONE), ("@arr", ALONE)],
            Finds(&[("race-shared", "@ask"), ("race-shared", "@ld")]),
        ),
        of(
            "y3",
            "two readers say so, and one is counted",
            requested,
            &[("@ib", COUNTS_ONE)],
            Finds(&[("hang", "@ib"), ("race-shared", "@ask"), ("race-shared", "@ld")]),
        ),
        of(
            "y4",
            "the bytes of a response are not announced",
            requested,
            &[("@exp", "mbarrier.arrive.shared::cta.b64 _, [bar_a];")],
            Finds(&[("race-shared", "@ld"), ("phase-completed-early", "*")]),
        ),
        of(
            "y5",
            "the parity of the wait for a response never changes",
            requested,
            &[("@flip", "")],
            Finds(&[("race-shared", "@ld")]),
        ),
    ]
    .into_iter()
    .map(two_at_a_time)
    .collect();
    cases.extend([
        of(
            "y7",
            "nobody says that the scale factors are on their way",
            factors,
            &[("@met", "")],
            Finds(&[("race-tensor", "@mma"), ("race-tensor", "@cpA")]),
        ),
        of(
            "y8",
            "scale factors are copied behind the commit, and the columns are freed",
            factors,
            &[("@commit", "{}\ntcgen05.cp.cta_group::1.32x128b.warpx4 [%r31], %rd7; // @late")],
            Finds(&[("tensor-freed-in-use", "@free")]),
        ),
        of(
            "y9",
            "one warp of the warpgroup gives nothing",
            handed,
            &[("@dec", "setp.eq.u32 %p2, %r1, 3;\n@%p2 bra MET;\n{}")],
            Finds(&[("hang", "@inc")]),
        ),
        of(
            "y10",
            "registers are given behind the barrier that the others come to with them",
            handed,
            &[("@dec", ""), ("@bar", "{}\n@%p1 bra X;\nsetmaxnreg.dec.sync.aligned.u32 88; // @late\nX:")],
            Finds(&[("hang", "@inc")]),
        ),
        of(
            "y11",
            "each warp frees the columns",
            Small(1, 128, FREED),
            &[("@freer", "")],
            Finds(&[("tensor-free-mismatch", "@free")]),
        ),
        of(
            "y12",
            "both warps copy to the same place",
            Small(1, 64, EACH_ITS_OWN),
            &[("@off", "mov.u64 %rd3, 0;")],
            Finds(&[("race-global", "@cp")]),
        ),
        of(
            "y13",
            "readers take turns in saying that they have read",
            readers,
            &[
                ("@ib", COUNTS_ONE),
                (
                    "@ab",
                    "rem.u32 %r11, %r10, 2;\nadd.u32 %r11, %r11, 1;\nsetp.eq.u32 %p5, %r11, %r1;\nand.pred %p5, %p5, %p4;\n\
                     @%p5 mbarrier.arrive.shared::cta.b64 _, [bar_b]; // @turn",
                ),
            ],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "y14",
            "two readers say that they have read, and one is counted",
            readers,
            &[("@ib", COUNTS_ONE)],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st"), ("hang", "*"), ("mbarrier-overflow", "*")]),
        ),
        of(
            "y15",
            "both CTAs of a pair load the same half of B",
            Pair,
            &[("    shl.b32 %r8, %r2, 7;", "    mov.u32 %r8, 0;")],
            Finds(&[("operand-overlap", "[%rd1, {%r19, %r8}], [%r15]")]),
        ),
    ]);
    cases
}

/// How each is explained. What is no more than a note has its test by itself.
#[test]
fn what_they_are_told() {
    const SAID: &[(&str, &[&str])] = &[
        ("y1", &["warp 0 never waits for that", "Let warp 0 wait for `bar_b` before it writes `response` again"]),
        ("y2", &["for which warp 0 waits; warp 1 never does", "Let warp 1 arrive at `bar_b`, too, behind its access"]),
        ("y3", &["2 warps arrive at it, and it counts 1"]),
        ("y4", &["completes phase 0 without the copy's bytes", "Announce 16 bytes with the arrival for phase 0"]),
        ("y5", &["passed on phase 0 a second time", "go on from round to round"]),
        ("y7", &["are not ordered"]),
        ("y8", &["a tcgen05.cp may still be writing it", "commit it (tcgen05.commit)"]),
        ("y9", &["warp 3 of this warpgroup does not execute it", "Let all warps of the warpgroup, 0 to 3"]),
        ("y10", &["would give registers back here, behind CTA barrier 0", "in front of CTA barrier 0"]),
        ("y11", &["freed here before", "Free each allocation once"]),
        ("y12", &["copy two parts of `tile` to one place", "Give each warp a destination of its own"]),
        ("y13", &["let each arrive in every round", "2 warps arrive at it, and it counts 1"]),
        ("y14", &["2 warps arrive at it, and it counts 1"]),
    ];
    let found: Vec<Case> = cases().into_iter().filter(|case| case.row != "y15").collect();
    all_say(&found, SAID);
}

/// A response goes to both CTAs, and is announced in one.
#[test]
fn announced_in_one_of_two_ctas() {
    let taken = Base::Clusters(12, 2, super::untried_kernels::TAKEN_BY_TWO);
    let edit = ("@expect", "@%p1 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar_a], 16;");
    super::case::says(&super::case::first(taken, &[edit], |_| {}), &["Announce 16 bytes in CTA 1, too"]);
}

/// Whose rows are repeated, and by which copies.
#[test]
fn the_same_half_in_both_ctas() {
    let edit = [("    shl.b32 %r8, %r2, 7;", "    mov.u32 %r8, 0;")];
    let report = super::case::run(Pair, &edit, |_| {}, 400_000);
    let found = report.findings.first().filter(|found| found.code == "operand-overlap").expect("B is loaded twice");
    let missing = "128 of the 256 rows of the tensor at `B` are never loaded";
    super::case::says(
        found,
        &["the same 128 rows of B", "CTAs 0 and 1, with the same coordinates", missing, "rank in the pair"],
    );
}
