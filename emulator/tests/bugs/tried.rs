//! More of what judges tried: bodies of a few lines, each right, and what authors of kernels for Hopper and Blackwell get wrong in such.

use super::case::{Base, Case, Expect, Result, case, edited, first, says, told};
use super::common;
use super::tried_kernels::*;
use Base::{Grid, Small};
use Expect::{Finds, Notes};
use emulator::Deadlock;

pub fn cases() -> Vec<Case> {
    let own = ("of our own", "not run on a GPU");
    let race_global = |at| {
        Finds(match at {
            "@read" => &[("race-global", "@read"), ("race-global", "@read_second")],
            _ => &[("race-global", "@store")],
        })
    };
    vec![
        case(
            "t1",
            "a thread stores 5 and then 1, another one 1: who has heard of the other one only may find 5",
            own,
            Small(1, 64, SAME_VALUE),
            &[("mov.u32 %r4, 1;", "mov.u32 %r4, 5;")],
            Finds(&[("race-shared", "@other"), ("race-shared", "@five")]),
        ),
        case(
            "t2",
            "the same of two CTAs",
            own,
            Grid(2, 32, SAME_VALUE_OF_CTAS),
            &[("mov.u32 %r4, 1;", "mov.u32 %r4, 5;")],
            Finds(&[("race-global", "@other"), ("race-global", "@five"), ("race-global", "@one")]),
        ),
        case(
            "t3",
            "CTAs of a cluster allocate tensor memory one by one, and wait for each other: two clusters of the same SMs may each hold half of both",
            own,
            Small(2, 32, ALLOCATED_BY_BOTH),
            &[
                ("@alloc", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;"),
                ("@free", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512;"),
            ],
            Finds(&[("can-hang", "@alloc"), ("hang", "@alloc")]),
        )
        .launched(|launch| launch.grid = [400, 1, 1]),
        case(
            "t4",
            "a bulk store writes what threads have loaded from global memory, and a fence of shared memory lies between",
            own,
            Small(1, 128, IN_PLACE),
            &[("@fence", "fence.proxy.async.shared::cta;")],
            Notes("missing-proxy-fence-before-overwrite", "@store", Result::Right),
        ),
        case(
            "t5",
            "a bulk reduction adds to what threads have stored to global memory, and a fence of shared memory lies between",
            own,
            Small(1, 128, ADDED_TO),
            &[("@fence", "fence.proxy.async.shared::cta;")],
            Finds(&[("missing-proxy-fence", "@add")]),
        ),
        case("t6", "the last CTA reads without a fence behind the ticket", own, Grid(4, 64, LAST_CTA), &[("@acquire", "")], race_global("@read")),
        case("t7", "the others store without a fence in front of the ticket", own, Grid(4, 64, LAST_CTA), &[("@release", "")], race_global("@read")),
        case(
            "t8",
            "only the warp of the ticket has fenced",
            own,
            Grid(4, 64, LAST_CTA),
            &[("@release", "setp.eq.u32 %p7, %r1, 0;\n@%p7 membar.gl;")],
            race_global("@read"),
        ),
        case(
            "t9",
            "nobody waits before the ticket is read from shared memory",
            own,
            Grid(4, 64, LAST_CTA),
            &[("@told", "")],
            Finds(&[("undefined-operand", "@heard"), ("race-shared", "@heard"), ("race-shared", "@tell")]),
        ),
        case(
            "t10",
            "the mbarrier of free stages counts two of three readers",
            own,
            Small(1, 128, ONE_STAGE),
            &[("@count", "mbarrier.init.shared::cta.b64 [bar_b], 2;")],
            Finds(&[("mbarrier-overflow", "@announce"), ("race-shared", "@copy"), ("race-shared", "@read")]),
        ),
        case(
            "t11",
            "the readers' parity never changes",
            own,
            Small(1, 128, ONE_STAGE),
            &[("@flip", "")],
            Finds(&[("mbarrier-overflow", "@announce"), ("race-shared", "@copy"), ("race-shared", "@read")]),
        ),
        case(
            "t12",
            "who only arrives at a CTA barrier comes round before the others have come",
            own,
            Small(1, 256, MEET_THRICE),
            &[("@arrive", "bar.arrive 1, 256;")],
            Finds(&[("hang", "@wait"), ("can-hang", "@arrive"), ("can-hang", "@wait")]),
        ),
        case(
            "t13",
            "the reader's parity changes with each stage",
            own,
            Small(1, 64, THREE_STAGES),
            &[("@flip", "xor.b32 %r12, %r12, 1;")],
            Finds(&[("hang", "@full"), ("mbarrier-overflow", "[%r14+4096], 1024;"), ("race-shared", "ld.shared.u32 %r20")]),
        ),
        case(
            "t15",
            "nobody waits for the MMA before its product is read, and stored where the MMA reads",
            own,
            Small(1, 128, PRODUCT_IN_ITS_OPERAND),
            &[("@wait", "setp.eq.u32 %p2, 0, 0;")],
            Finds(&[("mma-not-awaited", "@load")]),
        ),
        case(
            "t14",
            "the reader goes round two of three stages",
            own,
            Small(1, 64, THREE_STAGES),
            &[("@last_stage", "setp.eq.u32 %p6, %r11, 2;")],
            Finds(&[("hang", "[%r14+4128], %r19;"), ("hang", "@full"), ("mbarrier-overflow", "[%r14+4096], 1024;")]),
        ),
    ]
}

/// An arrival too many is told by what let it come too early.
#[test]
fn arrivals_too_many_are_traced_to_the_wait_before() {
    let count = first(Small(1, 128, ONE_STAGE), &[("@count", "mbarrier.init.shared::cta.b64 [bar_b], 2;")], |_| {});
    says(
        &count,
        &[
            "passes its wait for `bar_b` too early",
            "initialised for 2 arrivals a phase, and 3 warps arrive",
            "Initialise `bar_b`",
        ],
    );
    let parity = first(Small(1, 128, ONE_STAGE), &[("@flip", "")], |_| {});
    says(
        &parity,
        &["passes its wait for `bar_a` for phase 0 a second time", "Let the parity of the wait for `bar_a` change"],
    );
}

/// Who comes to a CTA barrier twice is named.
#[test]
fn who_arrives_twice_at_a_cta_barrier_is_named() {
    let found = first(Small(1, 256, MEET_THRICE), &[("@arrive", "bar.arrive 1, 256;")], |_| {});
    says(&found, &["has come twice to one phase", "bar.arrive does not wait"]);
}

/// A value that is not there yet is told with the store that nobody waited for.
#[test]
fn a_store_that_had_not_come_is_named() {
    let found = first(Grid(4, 64, LAST_CTA), &[("@told", "")], |_| {});
    says(&found, &["this stores to it, and had not when it was read", "bar.sync"]);
}

/// Several mbarriers of one variable are told apart, and a phase that is left out is seen.
#[test]
fn mbarriers_of_one_variable_are_told_apart() {
    let found = first(Small(1, 64, THREE_STAGES), &[("@last_stage", "setp.eq.u32 %p6, %r11, 2;")], |_| {});
    says(&found, &["`tile` at byte 4144 never ends", "only at `tile` at byte 4128"]);
    let found = first(Small(1, 64, THREE_STAGES), &[("@flip", "xor.b32 %r12, %r12, 1;")], |_| {});
    says(&found, &["`tile` at byte 4104 (parity 1), and left out phase 0"]);
}

/// Clusters that hold what the other waits for: who holds how much, in the run that is stuck.
#[test]
fn clusters_that_wait_for_each_others_columns_are_named() {
    let edits = [
        (
            "@alloc",
            "mov.u32 %r5, %ctaid.x;\nmov.u32 %r6, %nsmid;\ndiv.u32 %r5, %r5, %r6;\nand.b32 %r5, %r5, 1;\nsetp.eq.u32 %p1, %r5, %r2;\n@%p1 bra NOW;\nnanosleep.u32 20000;\nNOW:\n\
             tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;",
        ),
        ("@free", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512;"),
    ];
    let (text, mut launch) =
        (edited(&Small(2, 32, ALLOCATED_BY_BOTH).text(), &edits), Small(2, 32, ALLOCATED_BY_BOTH).launch());
    launch.grid = [400, 1, 1];
    let program = common::load(&text);
    let stuck = (0..20).find_map(|seed| {
        let report = common::run(&program, &launch, Some(seed), 400_000);
        report.findings.into_iter().find(|found| found.code == "hang")
    });
    let stuck = stuck.unwrap_or_else(|| panic!("no schedule of 20 gets stuck"));
    says(
        &stuck,
        &[
            "clusters wait for each other's tensor memory",
            "waits for 512 columns on the SM of its CTA",
            "holds 512 columns",
        ],
    );
}

/// Without sharing an SM nobody waits for another cluster.
#[test]
fn a_cluster_with_sms_of_its_own_does_not_hang() {
    let edits = [
        ("@alloc", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;"),
        ("@free", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512;"),
    ];
    let (base, text) = (Small(2, 32, ALLOCATED_BY_BOTH), edited(&Small(2, 32, ALLOCATED_BY_BOTH).text(), &edits));
    let report = common::run(&common::load(&text), &base.launch(), None, 400_000);
    assert!(report.is_clean() && report.deadlock != Deadlock::Possible, "{}", told(&report.findings));
}

/// `mbarrier.arrive_drop` counts for its phase, and for none behind it: whoever comes last.
#[test]
fn a_warp_that_drops_out_hangs_nobody() {
    let base = Small(1, 64, ONE_DROPS_OUT);
    for seed in common::schedules(8) {
        let report = common::run(&common::load(&base.text()), &base.launch(), seed, 100_000);
        assert!(report.is_clean() && report.deadlock == Deadlock::Impossible, "seed {seed:?}: {:?}", report.deadlock);
    }
}
