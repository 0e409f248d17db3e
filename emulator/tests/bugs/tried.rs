//! More of what judges tried: bodies of a few lines, each right, and what authors of kernels for Hopper and Blackwell get wrong in such.

use super::case::{Base, Case, Expect, Result, case, edited, told};
use super::common;
use Base::{Grid, Small};
use Expect::{Finds, Notes};
use emulator::{Deadlock, Diagnostic};

/// Two warps store 1 to one place; the first of them stores it twice.
const SAME_VALUE: &str = "\
mov.u32 %r3, 1;
mov.u32 %r4, 1;
setp.eq.u32 %p1, %r0, 32;
@!%p0 bra SECOND;
st.shared.u32 [tile], %r4; // @five
st.shared.u32 [tile], %r3; // @one
SECOND:
@!%p1 bra END;
nanosleep.u32 3000;
st.shared.u32 [tile], %r3; // @other
END:";

/// The same of two CTAs.
const SAME_VALUE_OF_CTAS: &str = "\
mov.u32 %r3, %ctaid.x;
setp.eq.u32 %p1, %r3, 0;
mov.u32 %r4, 1;
@!%p0 bra END;
@%p1 bra FIRST;
nanosleep.u32 5000;
st.global.u32 [%rd0], 1; // @other
bra END;
FIRST:
st.global.u32 [%rd0], %r4; // @five
st.global.u32 [%rd0], 1; // @one
END:";

/// Each CTA of a pair gets all columns of its SM, and they meet.
const ALLOCATED_BY_BOTH: &str = "\
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 512; // @alloc
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ld.shared.b32 %r3, [slot];
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 512; // @free
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;";

/// D is added to in place: threads load it, and a bulk store writes it.
const IN_PLACE: &str = "\
shl.b32 %r4, %r0, 2;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r4;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd3, %rd3, %rd0;
ld.global.u32 %r6, [%rd3]; // @load
add.u32 %r6, %r6, 1;
st.shared.u32 [%r5], %r6;
fence.proxy.async; // @fence
bar.sync 0; // @meet
@!%p0 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 512; // @store
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:";

/// Threads store zeroes, and a bulk reduction adds to them.
const ADDED_TO: &str = "\
shl.b32 %r4, %r0, 2;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r4;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r0; // @zero
st.shared.u32 [%r5], %r0;
fence.proxy.async; // @fence
bar.sync 0;
@!%p0 bra END;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [tile], 512; // @add
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:";

/// All threads of four CTAs store, the last CTA to come reads. As PyTorch's reductions do, all threads fence in front of the barrier behind
/// which one of them takes the ticket, and behind the barrier that tells the others of it.
const LAST_CTA: &str = "\
mov.u32 %r3, %ctaid.x;
mad.lo.u32 %r8, %r3, 64, %r0;
mul.wide.u32 %rd3, %r8, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3+64], %r3; // @store
membar.gl; // @release
bar.sync 0; // @before
@!%p0 bra TOLD;
atom.global.add.u32 %r4, [%rd0], 1; // @ticket
st.shared.u32 [slot], %r4; // @tell
TOLD:
bar.sync 0; // @told
ld.shared.u32 %r4, [slot]; // @heard
setp.ne.u32 %p1, %r4, 3;
@%p1 bra END;
membar.gl; // @acquire
mul.wide.u32 %rd4, %r0, 4;
add.s64 %rd4, %rd4, %rd0;
ld.global.u32 %r5, [%rd4+64]; // @read
ld.global.u32 %r6, [%rd4+320]; // @read_second
add.u32 %r5, %r5, %r6;
st.global.u32 [%rd4+2048], %r5;
END:";

/// A producer and three warps that read what it brings, one stage.
const ONE_STAGE: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 3; // @count
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
mov.u32 %r10, 0;
mov.u32 %r11, 0;
elect.sync _|%p5, 0xffffffff;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READ;
@!%p5 bra END;
BRING:
xor.b32 %r12, %r11, 1;
FREE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], %r12; // @free
@!%p2 bra FREE;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024; // @announce
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar_a]; // @copy
xor.b32 %r11, %r11, 1;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@%p3 bra BRING;
bra END;
READ:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r11; // @full
@!%p2 bra READ;
ld.shared.u32 %r15, [tile]; // @read
@%p5 mbarrier.arrive.shared::cta.b64 _, [bar_b];
xor.b32 %r11, %r11, 1; // @flip
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@%p3 bra READ;
END:";

/// Three stages, whose mbarriers lie one behind the other in `response` and behind it, as variables of a structure do.
const THREE_STAGES: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [tile+4096], 1;
mbarrier.init.shared::cta.b64 [tile+4104], 1;
mbarrier.init.shared::cta.b64 [tile+4112], 1;
mbarrier.init.shared::cta.b64 [tile+4128], 1;
mbarrier.init.shared::cta.b64 [tile+4136], 1;
mbarrier.init.shared::cta.b64 [tile+4144], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
mov.u32 %r10, 0;
mov.u32 %r11, 0;
mov.u32 %r12, 0;
mov.u32 %r3, tile;
elect.sync _|%p5, 0xffffffff;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READ;
@!%p5 bra END;
BRING:
shl.b32 %r13, %r11, 3;
add.u32 %r14, %r3, %r13;
shl.b32 %r17, %r11, 10;
add.u32 %r17, %r17, %r3;
xor.b32 %r19, %r12, 1;
FREE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r14+4128], %r19;
@!%p2 bra FREE;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r14+4096], 1024;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r17], [%rd1], 1024, [%r14+4096];
add.u32 %r11, %r11, 1;
setp.eq.u32 %p6, %r11, 3;
@%p6 mov.u32 %r11, 0;
@%p6 xor.b32 %r12, %r12, 1;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 8;
@%p3 bra BRING;
bra END;
READ:
shl.b32 %r13, %r11, 3;
add.u32 %r14, %r3, %r13;
shl.b32 %r17, %r11, 10;
add.u32 %r17, %r17, %r3;
FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r14+4096], %r12; // @full
@!%p2 bra FULL;
ld.shared.u32 %r20, [%r17];
@%p5 mbarrier.arrive.shared::cta.b64 _, [%r14+4128]; // @release
add.u32 %r11, %r11, 1;
setp.eq.u32 %p6, %r11, 3; // @last_stage
@%p6 mov.u32 %r11, 0;
@%p6 xor.b32 %r12, %r12, 1; // @flip
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 8;
@%p3 bra READ;
END:";

/// Two groups meet three times.
const MEET_THRICE: &str = "\
setp.lt.u32 %p1, %r0, 128;
mov.u32 %r10, 0;
@%p1 bra COMPUTE;
LOAD:
bar.sync 1, 256; // @wait
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 3;
@%p2 bra LOAD;
bra END;
COMPUTE:
bar.sync 1, 256; // @arrive
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 3;
@%p2 bra COMPUTE;
END:";

/// One of two warps takes part in the first phase only.
const ONE_DROPS_OUT: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 2;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
setp.eq.u32 %p1, %r1, 0;
elect.sync _|%p5, 0xffffffff;
@%p1 bra STAYS;
@%p5 mbarrier.arrive_drop.shared::cta.b64 _, [bar_a];
bra END;
STAYS:
@%p5 mbarrier.arrive.shared::cta.b64 _, [bar_a];
FIRST:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
@!%p2 bra FIRST;
@%p5 mbarrier.arrive.shared::cta.b64 _, [bar_a];
SECOND:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 1;
@!%p2 bra SECOND;
END:";

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
            "t14",
            "the reader goes round two of three stages",
            own,
            Small(1, 64, THREE_STAGES),
            &[("@last_stage", "setp.eq.u32 %p6, %r11, 2;")],
            Finds(&[("hang", "[%r14+4128], %r19;"), ("hang", "@full"), ("mbarrier-overflow", "[%r14+4096], 1024;")]),
        ),
    ]
}

/// What is found first, on the default schedule.
fn first(base: Base, edits: &[(&str, &str)], change: fn(&mut emulator::Launch)) -> Diagnostic {
    let (text, mut launch) = (edited(&base.text(), edits), base.launch());
    change(&mut launch);
    let report = common::run(&common::load(&text), &launch, None, 400_000);
    report.findings.first().cloned().unwrap_or_else(|| panic!("nothing is found in\n{text}"))
}

fn says(found: &Diagnostic, parts: &[&str]) {
    let all = told(std::slice::from_ref(found));
    parts.iter().for_each(|part| assert!(all.contains(part), "`{part}` is not in\n{all}"));
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
