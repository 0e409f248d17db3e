//! Instructions that judges had left out, as in `untried.rs`: what CTAs, threads and warps give each other.

use super::case::{Base, Case, Expect, Result, edited, first, says};
use super::tried_more_kernels::FILL;
use super::untried::of;
use super::untried_kernels::*;
use Base::{Grid, Small};
use Expect::{Finds, Notes, Refused};

pub fn cases() -> Vec<Case> {
    [sums(), sums_elsewhere(), sent(), counted(), lanes_and_registers()].into_iter().flatten().collect()
}

/// Reductions by the TMA engine (PTX ISA, cp.reduce.async.bulk).
fn sums() -> Vec<Case> {
    let added = Grid(2, 64, ADDED_IN_BULK);
    vec![
        of("u50", "no proxy fence before the sum", added, &[("@pf", "")], Finds(&[("missing-proxy-fence", "@add")])),
        of(
            "u51",
            "the wait is for the reads of the source alone",
            added,
            &[("@done", "cp.async.bulk.wait_group.read 0;")],
            Finds(&[("race-global", "@ld"), ("race-global", "@add")]),
        ),
        of(
            "u52",
            "the group has no end: the wait is for nothing",
            added,
            &[("@group", "")],
            Finds(&[
                ("race-shared", "@again"),
                ("race-shared", "@add"),
                ("race-global", "@ld"),
                ("race-global", "@add"),
            ]),
        ),
        of(
            "u53",
            "the source is written again before it was read",
            added,
            &[("@group", "{}\nst.shared.u32 [tile], %r4; // @early")],
            Finds(&[("race-shared", "@early"), ("race-shared", "@add")]),
        ),
        of(
            "u54",
            "FP16 without .noftz",
            added,
            &[("@add", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd0+1024], [tile], 256;")],
            Refused("ptx-semantics", ".add.noftz"),
        ),
        of(
            "u55",
            "eight bytes",
            added,
            &[("@add", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd0+1024], [tile], 8;")],
            Finds(&[("bulk-size", "@add")]),
        ),
        of(
            "u56",
            "the count is passed on without a release",
            added,
            &[("@release", "")],
            Finds(&[("race-global", "@ld"), ("race-global", "@add")]),
        ),
        of(
            "u57",
            "one of the CTAs stores where the other adds",
            added,
            &[("@group", "{}\nst.global.u32 [%rd0+1024], %r6; // @plain")],
            Finds(&[("race-global", "@plain"), ("race-global", "@add")]),
        ),
    ]
}

/// Reductions in the shared memory of another CTA (PTX ISA, cp.reduce.async.bulk).
fn sums_elsewhere() -> Vec<Case> {
    let base = Small(2, 32, ADDED_ELSEWHERE);
    vec![
        of("u100", "no proxy fence for the source", base, &[("@pf", "")], Finds(&[("missing-proxy-fence", "@add")])),
        of(
            "u101",
            "nobody waits for the sum",
            base,
            &[("@wait", "setp.eq.u32 %p2, %r0, %r0;")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u102",
            "half of the bytes are expected",
            base,
            &[("@expect", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 64;")],
            Finds(&[("hang", "*")]),
        ),
        of(
            "u103",
            "the mbarrier is the sender's",
            base,
            &[("@mapb", "mov.u32 %r8, %r5;")],
            Finds(&[("copy-barrier", "*")]),
        ),
        of(
            "u104",
            "a sum of 64-bit numbers with sign",
            base,
            &[(
                "@add",
                "@%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s64 [%r7], [tile], 128, [%r8];",
            )],
            Refused("not-modelled", "add.s64"),
        ),
        of(
            "u105",
            "the source is written again before it was read",
            base,
            &[("@add", "{}\n@%p0 st.shared.u32 [tile], %r5; // @early")],
            Finds(&[("race-shared", "@early"), ("race-shared", "@add")]),
        ),
        of(
            "u106",
            "what the sums are added to is not told",
            base,
            &[("@carr", "barrier.cluster.arrive.relaxed.aligned;")],
            Finds(&[("race-shared", "@add"), ("race-shared", "@base"), ("missing-proxy-fence", "@add")]),
        ),
    ]
}

/// Stores and arrivals at another CTA (PTX ISA, st.async, red.async, mapa, mbarrier).
fn sent() -> Vec<Case> {
    let sent = Small(2, 32, SENT);
    let told = Small(2, 32, TOLD);
    let exchanged = Small(2, 32, EXCHANGED);
    vec![
        of(
            "u60",
            "the bytes of the stores alone are expected",
            sent,
            &[("@expect", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 128;")],
            Finds(&[
                ("phase-completed-early", "*"),
                ("race-shared", "@ld"),
                ("race-shared", "@ld2"),
                ("mbarrier-overflow", "*"),
            ]),
        ),
        of(
            "u61",
            "the mbarrier is that of the sender",
            sent,
            &[("@mapb", "mov.u32 %r8, %r5;")],
            Finds(&[("copy-barrier", "@send")]),
        ),
        of(
            "u62",
            "the CTAs do not meet before the stores",
            sent,
            &[("@carr", ""), ("@cwait", "")],
            Finds(&[
                ("mbarrier-init-unordered", "@send"),
                ("mbarrier-not-initialised", "@send"),
                ("race-shared", "*"),
                ("cta-not-started", "@send"),
            ]),
        ),
        of(
            "u63",
            "nobody waits for what is sent",
            sent,
            &[("@wait", "setp.eq.u32 %p2, %r0, %r0;")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u64",
            "the cluster barrier is relaxed, and what the sum begins with is not told",
            sent,
            &[("@carr", "barrier.cluster.arrive.relaxed.aligned;")],
            Finds(&[("race-shared", "@add"), ("race-shared", "@base")]),
        ),
        of(
            "u65",
            "the initialisation is not fenced, and the cluster barrier is relaxed",
            sent,
            &[("@fi", ""), ("@base", ""), ("@add", "{}"), ("@carr", "barrier.cluster.arrive.relaxed.aligned;")],
            Finds(&[("mbarrier-init-unordered", "*")]),
        ),
        of(
            "u66",
            "the wait is of the CTA, the stores come from another one",
            told,
            &[("@wait", "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [bar_a], 0;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u67",
            "the arrival is at the scope of the CTA",
            told,
            &[("@arrive", "mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r8];")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u68",
            "the arrival is relaxed",
            told,
            &[("@arrive", "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r8];")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u69",
            "the arrivals of a warp are counted as one",
            told,
            &[("@init", "mbarrier.init.shared::cta.b64 [bar_a], 1;")],
            Finds(&[("mbarrier-overflow", "@arrive"), ("mbarrier-split", "@arrive")]),
        ),
        of(
            "u70",
            "a wait for an mbarrier of another CTA",
            told,
            &[("@wait", "mbarrier.try_wait.parity.acquire.cluster.shared::cluster.b64 %p2, [bar_a], 0;")],
            Finds(&[("ptx-semantics", "@wait")]),
        ),
        of(
            "u71",
            "no fence before the relaxed arrival",
            exchanged,
            &[("@fence", "")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u72",
            "the fence is of the CTA",
            exchanged,
            &[("@fence", "fence.acq_rel.cta;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u73",
            "a CTA may end before the other has read its word",
            exchanged,
            &[("@arrive2", ""), ("@wait2", "")],
            Finds(&[("remote-use-outlives-cta", "@ld")]),
        ),
        of(
            "u74",
            "a CTA that the cluster has not",
            exchanged,
            &[("@mapa", "mapa.shared::cluster.u32 %r5, %r3, 2;")],
            Finds(&[("out-of-bounds", "*"), ("ptx-semantics", "@mapa")]),
        ),
        of(
            "u75",
            "the address of another CTA is taken for the own",
            exchanged,
            &[("@ld", "ld.shared::cta.u32 %r6, [%r5];")],
            Finds(&[("out-of-bounds", "@ld"), ("ptx-semantics", "@ld")]),
        ),
    ]
}

/// Copies that threads issue and mbarriers count (PTX ISA, cp.async.mbarrier.arrive, mbarrier.test_wait).
fn counted() -> Vec<Case> {
    let counted = Small(1, 64, COPIED_AND_COUNTED);
    let state = Small(1, 64, COUNTED_BY_STATE);
    vec![
        of(
            "u80",
            "one arrival is expected of 64 copies' own",
            counted,
            &[("@init", "@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;")],
            Finds(&[("mbarrier-overflow", "*"), ("mbarrier-split", "*"), ("race-shared", "*")]),
        ),
        of(
            "u81",
            "without .noinc, an arrival adds the one that it waits for",
            counted,
            &[("@arrive", "cp.async.mbarrier.arrive.shared::cta.b64 [bar_a];")],
            Finds(&[("hang", "*")]),
        ),
        of(
            "u82",
            "the arrival stands before the copy",
            counted,
            &[("@arrive", ""), ("@copy", "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar_a];\n{}")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u83",
            "a plain arrival, which does not wait for the copies",
            counted,
            &[("@arrive", "mbarrier.arrive.shared::cta.b64 _, [bar_a];")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u84",
            "a test that is not repeated: who hears no goes on all the same",
            counted,
            &[("@again", "@!%p2 add.u32 %r4, %r4, 0;")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u85",
            "a test whose answer nobody hears",
            counted,
            &[("@again", "")],
            Finds(&[("wait-result-unread", "@wait")]),
        ),
        of(
            "u86",
            "with .noinc, the threads' own arrivals are too many",
            state,
            &[("@arrive", "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar_a];")],
            Finds(&[("mbarrier-overflow", "*"), ("race-shared", "*"), ("hang", "*"), ("mbarrier-split", "*")]),
        ),
        of("u87", "nothing ties the copies to the mbarrier", state, &[("@arrive", "")], Finds(&[("race-shared", "*")])),
        of(
            "u88",
            "the test is relaxed",
            state,
            &[("@wait", "mbarrier.test_wait.relaxed.cta.shared::cta.b64 %p2, [bar_a], %rd5;")],
            Notes("missing-acquire", "*", Result::Right),
        ),
    ]
}

/// elect.sync, setmaxnreg and griddepcontrol.
fn lanes_and_registers() -> Vec<Case> {
    let elected = Small(1, 32, TWO_ELECTED);
    let registers = Small(1, 256, REGISTERS);
    vec![
        of(
            "u90",
            "a mask of lanes that went elsewhere",
            elected,
            &[("@first", "elect.sync %r4|%p2, -1;")],
            Finds(&[("*", "@first"), ("*", "@second")]),
        ),
        of(
            "u91",
            "a mask of the other half",
            elected,
            &[("@second", "elect.sync %r4|%p2, %r3;")],
            Finds(&[("*", "@second")]),
        ),
        of("u92", "an empty mask", elected, &[("@second", "elect.sync %r4|%p2, 0;")], Finds(&[("*", "@second")])),
        of(
            "u93",
            "registers are given back with no synchronisation since they were taken",
            registers,
            &[("@between", "")],
            Notes("setmaxnreg-unordered", "@back", Result::Right),
        ),
        of(
            "u94",
            "a warp synchronises, the warpgroup does not",
            registers,
            &[("@between", "bar.warp.sync -1;")],
            Notes("setmaxnreg-unordered", "@back", Result::Right),
        ),
        of(
            "u95",
            "more registers than were given back",
            registers,
            &[("@inc", "setmaxnreg.inc.sync.aligned.u32 240;")],
            Finds(&[("hang", "@inc")]),
        ),
        of("u96", "half a warp gives registers away", registers, &[("@dec", "@%p0 {}")], Finds(&[("*", "@dec")])),
        of(
            "u97",
            "a warp of each warpgroup does not take part",
            registers,
            &[("setp.ge.u32 %p1, %r0, 128;", "setp.ge.u32 %p1, %r0, 96;")],
            Finds(&[("register-count", "*")]),
        ),
    ]
}

/// The kernel in front of which another one runs gives no finding: what that one writes cannot be seen here.
#[test]
fn a_dependent_grid() {
    let report = super::case::run(Small(1, 64, DEPENDENT), &[], |_| {}, 400_000);
    assert!(report.is_clean(), "{}", super::case::told(&report.findings));
}

/// A wait that is asked once is told where it stands, not only by the race that it leads to.
#[test]
fn a_test_that_is_not_repeated() {
    let base = Small(1, 64, COPIED_AND_COUNTED);
    let found = first(base, &[("@again", "@!%p2 add.u32 %r4, %r4, 0;")], |_| {});
    says(&found, &["the wait is not repeated", "Repeat the wait for `bar_a`", "9.7.13.15.16"]);
    let found = first(base, &[("@again", "")], |_| {});
    says(&found, &["nothing reads what it says", "Repeat the wait for `bar_a`"]);
}

/// Two CTAs add to a third's memory, or each to the other's: what comes of it; and where addresses lie.
#[test]
fn values() {
    let words = |base: Base| {
        let report = super::case::run(base, &[], |_| {}, 400_000);
        assert!(report.is_clean(), "{}", super::case::told(&report.findings));
        let bytes = report.buffers[0].bytes.as_chunks::<4>().0;
        bytes.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>()
    };
    // 7, and what two CTAs add: 1 + the number of the word.
    let sums = words(Small(2, 32, ADDED_ELSEWHERE));
    assert!((0..32).all(|n| sums[n] == 7 + n as u32), "{sums:?}");
    assert_eq!(words(Small(2, 32, SPACES))[..2], [SPACES_SEEN; 2]);
}

/// The size of `st.bulk` may have 32 bits from PTX 9.0 on.
#[test]
fn a_fill_by_32_bits() {
    let narrow = [("mov.u64 %rd3, 256;", "mov.u32 %r6, 256;"), ("[%r3], %rd3, 0;", "[%r3], %r6, 0;")];
    let text = edited(&Small(1, 64, FILL).text(), &narrow);
    let Err(errors) = emulator::load(&text) else { panic!("PTX 8.7 takes 32 bits") };
    says(&errors[0], &["is a 32-bit register", "version 9.0 or later, this module has 8.7"]);
    let text = edited(&text, &[(".version 8.7", ".version 9.0")]);
    let program = super::common::load(&text);
    let report = super::common::run(&program, &Small(1, 64, FILL).launch(), None, 100_000);
    assert!(report.is_clean(), "{}", super::case::told(&report.findings));
}
