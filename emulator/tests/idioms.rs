//! What kernels in production do, and checkers have taken for bugs: each must be clean, and the same with one mistake must not be.
//! The expectations were written down before the emulator had seen the kernels.

mod common;

#[path = "bugs/case.rs"]
mod case;

use Base::{LaunchControl, OneTile, Pair, Quad, Ring, Small};
use Expect::{Among, Finds, Notes, Refused};
use case::{Base, Case, Expect, Result, case, ring_launch};
use common::{load, schedules};
use emulator::{Deadlock, Launch, Options, Values};

type Edits = &'static [(&'static str, &'static str)];

/// An idiom and its twin: what makes the idiom of the base, how it is launched, and the mistake.
fn idiom(
    number: &'static str,
    (does, mistake): (&'static str, &'static str),
    base: Base,
    first: Edits,
    launch: fn(&mut Launch),
    edits: Edits,
    expect: Expect,
) -> Case {
    let case = case(number, does, (mistake, "mistake"), base, edits, expect);
    Case { first: first.to_vec(), launch, ..case }
}

const AS_IT_IS: fn(&mut Launch) = |_| {};

/// CTA 1 stores to CTA 0; the arrival tells CTA 0 that it may end.
const TEAR_DOWN: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.aligned;
@!%p0 bra END;
mov.u32 %r5, bar_a;
mapa.shared::cluster.u32 %r5, %r5, 0;
mov.u32 %r6, tile;
mapa.shared::cluster.u32 %r6, %r6, 0;
setp.eq.u32 %p1, %r2, 0;
@%p1 bra READ;
st.shared::cluster.u32 [%r6], 7; // @st_remote
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5]; // @arrive_remote
bra END;
READ:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra READ;
ld.shared.u32 %r7, [tile]; // @ld
st.global.u32 [%rd0], %r7;
END:";

const REGISTERS: &str = "\
setp.ge.u32 %p1, %r0, 128;
@%p1 bra TAKE;
setmaxnreg.dec.sync.aligned.u32 24; // @give
bra END;
TAKE:
setp.ge.u32 %p1, %r0, 256;
@%p1 bra END;
setmaxnreg.inc.sync.aligned.u32 240; // @take
END:";

fn idioms() -> Vec<Case> {
    vec![
        idiom(
            "1",
            ("the proxy fence by the thread that stores, behind the barrier", "in front of the barrier"),
            Ring,
            &[("@fence_tile", ""), ("@tile_d_store", "    fence.proxy.async.shared::cta; // @late_fence\n{}")],
            AS_IT_IS,
            &[("@late_fence", ""), ("@tile_written", "    @!%p8 fence.proxy.async.shared::cta;\n{}")],
            Finds(&[("missing-proxy-fence", "@store")]),
        ),
        idiom(
            "2",
            ("loads before their bytes are announced", "and the arrival before the announcement"),
            Ring,
            &[
                ("@expect", ""),
                ("@load_b", "{}\n    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 24576; // @announce"),
            ],
            AS_IT_IS,
            &[
                ("@announce", "    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r15], 24576;"),
                ("@loop_empty", "{}\n    mbarrier.arrive.shared::cta.b64 _, [%r15]; // <- here"),
            ],
            // No copy had begun in the phase that the arrival completes.
            Among(&[("operand-not-ready", "@mma")]),
        ),
        idiom(
            "3",
            ("a relaxed arrival at the cluster barrier behind fence.mbarrier_init, the wait later", "no fence"),
            Pair,
            &[
                (
                    "    barrier.cluster.wait.aligned;\n    @!%p0 bra ALLOCATED;",
                    "    mov.u32 %r45, %clock;\n    barrier.cluster.wait.acquire.aligned;\n    @!%p0 bra ALLOCATED;",
                ),
                (
                    "INIT_DONE:\n    barrier.cluster.arrive.aligned;",
                    "INIT_DONE:\n    barrier.cluster.arrive.relaxed.aligned;",
                ),
            ],
            AS_IT_IS,
            &[("    fence.mbarrier_init.release.cluster;\n", "")],
            Finds(&[("mbarrier-init-unordered", "[%r17], [%rd0")]),
        ),
        idiom(
            "4",
            ("one arrival tells that a CTA may end", "the arrival before the last use"),
            Small(2, 32, TEAR_DOWN),
            &[],
            AS_IT_IS,
            &[("@st_remote", ""), ("@arrive_remote", "{}\nst.shared::cluster.u32 [%r6], 7; // <- here")],
            // CTA 0 reads before it ends.
            Among(&[("remote-use-outlives-cta", "// <- here"), ("race-shared", "@ld")]),
        ),
        idiom(
            "5",
            ("the tile that goes out lies over the stages, when all MMAs are awaited", "a store to it before"),
            Pair,
            &[
                ("    add.u32 %r25, %r25, 65536;", "    add.u32 %r25, %r25, 0;"),
                ("    add.u32 %r44, %r3, 65536;", "    add.u32 %r44, %r3, 0;"),
            ],
            AS_IT_IS,
            &[(
                "DONE_WAIT:\n",
                "    setp.eq.u32 %p14, %r0, 96;\n    @%p14 st.shared.u32 [%r3], 0; // <- here\nDONE_WAIT:\n",
            )],
            Among(&[("*", "// <- here"), ("race-shared", "[%r17], [%rd0")]),
        ),
        idiom(
            "6a",
            ("bytes of both CTAs announced by the leader, on its barrier", "by both CTAs, each on its own"),
            Pair,
            &[],
            AS_IT_IS,
            &[("    @%p1 mbarrier.arrive.expect_tx", "    mbarrier.arrive.expect_tx")],
            // The odd CTA announces what never comes; nobody waits for it. But its barrier gets an arrival in each lap.
            Among(&[("*", "_, [%r13], 65536;")]),
        ),
        idiom(
            "6b",
            ("each CTA announces its share on the leader's barrier, made for two arrivals", "each announces all"),
            Pair,
            &[
                ("[%r4], 1;", "[%r4], 2;"),
                ("[%r4+8], 1;", "[%r4+8], 2;"),
                ("    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 65536;\n", ""),
                (
                    "    shl.b32 %r16, %r10, 15;\n    add.u32 %r17, %r3, %r16;\n    add.u32 %r18",
                    "    mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r15], 32768; // @share\n{}",
                ),
            ],
            AS_IT_IS,
            &[("[%r15], 32768;", "[%r15], 65536;")],
            Finds(&[("hang", "@share"), ("hang", "%p4, [%r13], %r11")]),
        ),
        idiom(
            "7a",
            ("all lanes wait for the stage, one issues", "all issue"),
            Ring,
            &[
                ("@one_multiplier", ""),
                ("    tcgen05.mma.cta_group::1", "    @%p2 tcgen05.mma.cta_group::1"),
                (
                    "@commit_empty",
                    "    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r15+16];",
                ),
                (
                    "@commit_acc",
                    "    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r22+32];",
                ),
            ],
            AS_IT_IS,
            &[(
                "@commit_empty",
                "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r15+16];",
            )],
            Finds(&[("issued-by-many-lanes", "@commit_empty")]),
        ),
        idiom(
            "7b",
            ("one lane of each warp waits, then bar.warp.sync", "only the first warp waits"),
            Ring,
            &[
                ("OUT_WAIT:\n", "    elect.sync _|%p2, 0xffffffff;\n    @!%p2 bra WAITED; // @who_waits\nOUT_WAIT:\n"),
                ("@fence_after_acc", "WAITED:\n    bar.warp.sync 0xffffffff;\n{}"),
            ],
            AS_IT_IS,
            &[("@who_waits", "    @!%p2 bra WAITED;\n    @%p0 bra WAITED;")],
            Among(&[("mma-not-awaited", "@ld")]),
        ),
        idiom(
            "8",
            (
                "the MMA thread waits for its MMAs through the next stage only",
                "the producer does not wait for the stage",
            ),
            Ring,
            &[],
            AS_IT_IS,
            &[("@wait_empty", ""), ("@loop_empty", "")],
            // The stage's barrier, too, has not had its bytes yet.
            Among(&[("operand-overwritten", "@load_a"), ("mbarrier-overflow", "@expect")]),
        ),
        idiom(
            "9",
            ("MMAs of two accumulators in turn", "which overlap"),
            OneTile,
            &[
                ("[slot], 128;", "[slot], 256;"),
                ("%r2, 128;", "%r2, 256;"),
                (
                    "    add.s64 %rd3, %rd3, 2;",
                    "    add.u32 %r40, %r2, 128; // @second\n    tcgen05.mma.cta_group::1.kind::f16 [%r40], %rd3, %rd4, 0x08200010, %p3; // @mma_second\n{}",
                ),
                (
                    "DRAIN:\n",
                    "{}    add.u32 %r41, %r23, 128;\n    tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r42, %r43, %r44, %r45, %r46, %r47, %r48, %r49}, [%r41];\n",
                ),
            ],
            AS_IT_IS,
            &[("@second", "    add.u32 %r40, %r2, 64;")],
            Among(&[("*", "@mma_second"), ("*", "[%r2], %rd3, %rd4")]),
        ),
        idiom(
            "10",
            ("no tcgen05.fence where only shared memory is handed over", "none where tensor memory is"),
            Ring,
            &[("    tcgen05.fence::after_thread_sync;\n    mul.lo.u32", "    mul.lo.u32")],
            AS_IT_IS,
            &[("@fence_after_empty", "")],
            Notes("missing-tensor-fence", "@mma", Result::Right),
        ),
        idiom(
            "11",
            (
                "commits that arrive in both CTAs, where nobody waits for the last ones",
                "one behind the last that is awaited",
            ),
            Pair,
            &[("mbarrier.init.shared::cta.b64 [%r4+32], 1;", "{}\n    mbarrier.init.shared::cta.b64 [%r4+48], 1;")],
            |launch| launch.dynamic_shared += 16,
            &[(
                "EPILOGUE:\n",
                "    add.u32 %r45, %r4, 48;\n    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r45], %h0;\nEPILOGUE:\n",
            )],
            Finds(&[("remote-use-outlives-cta", "[%r45], %h0")]),
        ),
        idiom(
            "12",
            ("wait_group.read only, then the end", "of all groups but one"),
            Ring,
            &[],
            AS_IT_IS,
            &[("@wait_read", "    cp.async.bulk.wait_group.read 1;")],
            Among(&[("race-shared", "@store"), ("race-shared", "@st_tile")]),
        ),
        idiom(
            "13",
            ("the first lap of empty barriers passes at once", "and every other lap, too"),
            Ring,
            &[],
            AS_IT_IS,
            &[("@flip_producer", "")],
            Among(&[("operand-overwritten", "@load_a"), ("mbarrier-overflow", "@expect"), ("hang", "@wait_empty")]),
        ),
        idiom(
            "14a",
            ("tensor memory is freed by another warp", "by both"),
            Ring,
            &[("    @%p0 bra FREED;", "    setp.ne.u32 %p10, %r1, 1; // @who_frees\n    @%p10 bra FREED;")],
            AS_IT_IS,
            &[("@who_frees", "    setp.gt.u32 %p10, %r1, 1;")],
            Finds(&[("tensor-free-mismatch", "@dealloc")]),
        ),
        idiom(
            "14b",
            ("the right to allocate is given up before tensor memory is freed", "and asked for again"),
            Ring,
            &[],
            AS_IT_IS,
            &[("@dealloc", "{}\n    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3+64], 32; // <- here")],
            Finds(&[("tensor-relinquished", "// <- here")]),
        ),
        idiom(
            "15",
            ("the mbarrier of the pair's even CTA, by & 0xfeffffff", "of another pair"),
            Quad,
            &[],
            AS_IT_IS,
            &[("0xfeffffff", "0xfdffffff")],
            Finds(&[("copy-barrier", "[%r17], [%rd0")]),
        ),
        idiom(
            "16",
            ("boxes that hang over the edge count in full", "the bytes of the part inside announced"),
            Ring,
            &[],
            |launch| *launch = ring_launch(300, 160),
            &[(
                "@expect",
                "    setp.eq.u32 %p10, %r14, 2;\n    selp.b32 %r50, 12288, 24576, %p10;\n    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], %r50;",
            )],
            Finds(&[("hang", "@expect"), ("phase-completed-early", "@load_a")]),
        ),
        idiom(
            "17",
            ("test_wait in a loop, with nanosleep", "three times at most"),
            Ring,
            &[
                (
                    "@wait_full",
                    "    mov.u32 %r50, 0;\nPOLL:\n    mbarrier.test_wait.parity.shared::cta.b64 %p4, [%r15], %r12;",
                ),
                ("@loop_full", "    @%p4 bra POLLED;\n    nanosleep.u32 20;\n    bra POLL; // @again\nPOLLED:"),
            ],
            AS_IT_IS,
            &[("@again", "    add.u32 %r50, %r50, 1;\n    setp.lt.u32 %p10, %r50, 3;\n    @%p10 bra POLL;")],
            Among(&[("operand-not-ready", "@mma")]),
        ),
        idiom(
            "18",
            ("setmaxnreg in some warpgroups only", "by one thread of a warp"),
            Small(1, 384, REGISTERS),
            &[],
            AS_IT_IS,
            &[("@give", "@%p0 setmaxnreg.dec.sync.aligned.u32 24;")],
            Finds(&[("aligned-lanes-missing", "@give")]),
        ),
        idiom(
            "19",
            ("launch control, whose last response says no", "a response that is read before it has come"),
            LaunchControl,
            &[],
            AS_IT_IS,
            &[("\tmbarrier.try_wait.parity.shared::cta.b64 %p, [bar], %r5;\n\t@!%p bra WAIT;\n", "")],
            Among(&[
                ("race-shared", "ld.shared.b128"),
                ("race-shared", "clusterlaunchcontrol.try_cancel"),
                ("undefined-operand", "*"),
            ]),
        ),
        idiom(
            "20a",
            ("all of shared memory, rounded up to 1024 bytes by the kernel", "not rounded"),
            Ring,
            &[
                (".extern .shared .align 1024", ".extern .shared .align 16"),
                ("    .reg .pred %p<16>;", "    .shared .align 16 .b8 front[16];\n{}"),
                ("@pool", "    mov.u32 %r2, pool;\n    add.u32 %r2, %r2, 1023;\n    and.b32 %r2, %r2, 0xfffffc00;"),
            ],
            |launch| launch.dynamic_shared = 232_448 - 16,
            &[("    add.u32 %r2, %r2, 1023;\n    and.b32 %r2, %r2, 0xfffffc00;", "")],
            Finds(&[("bulk-shared-address", "@load_a")]),
        ),
    ]
}

/// No finding, no note, the right result, and the proof that no interleaving gets stuck: on the default schedule and on twenty adversarial ones; on most of these nothing is
/// multiplied, since rules need no values.
fn clean(case: &Case) -> std::result::Result<(), String> {
    let program = load(&case.right());
    let mut launch = case.base.launch();
    (case.launch)(&mut launch);
    for seed in schedules(20) {
        let computes = seed.is_none_or(|seed| seed < 2);
        let values = if computes { Values::All } else { Values::OfClusters(vec![]) };
        let options = Options { seed, values, max_instructions: 1_000_000, ..Default::default() };
        let report = emulator::run(&program, &launch, &options);
        let right = !computes || case.base.result(&launch, &report) == Result::Right;
        if report.deadlock != Deadlock::Impossible {
            return Err(format!("idiom {}, {}: seed {seed:?}, {:?}", case.row, case.what, report.deadlock));
        }
        if !report.is_clean() || !report.notes.is_empty() || !right {
            let (found, notes) = (case::told(&report.findings), case::told(&report.notes));
            return Err(format!(
                "idiom {}, {}: seed {seed:?}, right: {right}, incomplete {:?}\n{found}{notes}",
                case.row, case.what, report.incomplete
            ));
        }
    }
    Ok(())
}

#[test]
fn idioms_are_clean() {
    let mut seen = vec![];
    let mut wrong = vec![];
    for case in idioms() {
        let kernel = (case.right(), case.launch as usize);
        if !seen.contains(&kernel) {
            seen.push(kernel);
            wrong.extend(clean(&case).err());
        }
    }
    assert!(wrong.is_empty(), "{} idioms:\n{}", wrong.len(), wrong.join("\n"));
}

/// Twins that are not found as they should be, and what is said instead.
const MISSES: &[(&str, &str)] = &[];

#[test]
fn one_mistake_away() {
    case::judge_all(&idioms(), MISSES);
}

/// More shared memory than a CTA can have.
#[test]
fn one_byte_too_many() {
    let too_much = |launch: &mut Launch| launch.dynamic_shared = 232_448 + 1;
    let case = case("20b", "", ("", ""), Ring, &[], Refused("launch", "232448")).launched(too_much);
    case.judge().unwrap_or_else(|instead| panic!("{instead}"));
}
