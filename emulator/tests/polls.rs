//! Polls that never end, one row for each shape: a hang, or a runaway, that is found after a few rounds; and their twins that end, which must end right.

mod common;

use common::{codes, load, zeroes};
use emulator::{Launch, Options, Report};
use std::num::NonZeroUsize;

/// CTAs of two warps poll the first word of `a`. `%own` is a thread's own word in `out`, `%cta` its CTA.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 out)\n{{\n\
         .shared .align 8 .b64 bar;\n.shared .align 4 .b32 flag;\n.shared .align 128 .b8 tile[128];\n.reg .pred %p<6>;\n.reg .b32 %r<12>, %tid, %cta;\n.reg .b64 %d<8>, %a, %out, %own;\n\
         ld.param.u64 %a, [a];\nld.param.u64 %out, [out];\nmov.u32 %tid, %tid.x;\nmov.u32 %cta, %ctaid.x;\nmad.lo.u32 %r0, %cta, 64, %tid;\n\
         mul.wide.u32 %own, %r0, 4;\nadd.s64 %own, %own, %out;\nmov.u32 %r1, 1;\nmov.u32 %r3, 0;\nmov.u64 %d1, %clock64;\nmov.u64 %d2, %globaltimer;\n\
         mov.u32 %r7, %clock;\n{body}\nEND:\nret;\n}}\n"
    )
}

fn launch(ctas: u32) -> Launch {
    let buffers = vec![zeroes("a", 4096), zeroes("out", 4096)];
    Launch { grid: [ctas, 1, 1], ..common::launch("k", 64, buffers) }
}

/// The same on 1, 2 and 7 host threads.
fn run(body: &str, ctas: u32, seed: Option<u64>) -> Report {
    let program = load(&kernel(body));
    let run = |threads| {
        let options = Options { seed, threads: NonZeroUsize::new(threads), ..Default::default() };
        emulator::run(&program, &launch(ctas), &options)
    };
    let one = run(1);
    for threads in [2, 7] {
        let many = run(threads);
        assert_eq!((one.cycles, one.instructions), (many.cycles, many.instructions), "{threads} threads:\n{body}");
        assert_eq!(one.findings, many.findings, "{threads} threads:\n{body}");
        assert!(one.buffers == many.buffers, "{threads} threads:\n{body}");
    }
    one
}

const STRONG: &str = "ld.acquire.gpu.global.u32 %r2, [%a];";
const PLAIN: &str = "ld.global.u32 %r2, [%a];";

fn poll(look: &str, round: &str) -> String {
    format!("L:\n{look}\n{round}\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 bra L;")
}

/// What a round does besides looking, and how the loop is not left.
const ROUNDS: [(&str, &str); 14] = [
    ("counts", "add.u32 %r1, %r1, 1;"),
    ("sums", "add.u32 %r1, %r1, 1;\nmad.lo.u32 %r3, %r1, %r1, %r3;"),
    ("doubles its pause", "shl.b32 %r1, %r1, 1;\nmin.u32 %r1, %r1, 1024;\nnanosleep.u32 %r1;\nadd.u32 %r3, %r3, 1;"),
    ("LCG", "mad.lo.u32 %r1, %r1, 1664525, 1013904223;\nand.b32 %r3, %r1, 255;\nnanosleep.u32 %r3;"),
    (
        "xor-shift",
        "shl.b32 %r3, %r1, 13;\nxor.b32 %r1, %r1, %r3;\nshr.u32 %r3, %r1, 17;\nxor.b32 %r1, %r1, %r3;\nshl.b32 %r3, %r1, 5;\nxor.b32 %r1, %r1, %r3;",
    ),
    (
        "pauses from a number of rounds on",
        "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 100000;\n@%p1 bra N;\nnanosleep.u32 100;\nN:",
    ),
    (
        "pauses by a loop of its own",
        "mad.lo.u32 %r1, %r1, 1664525, 1013904223;\nand.b32 %r3, %r1, 15;\nI:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 20;\n@%p1 bra I;",
    ),
    (
        "pauses by the clock",
        "mov.u64 %d3, %clock64;\nI:\nmov.u64 %d4, %clock64;\nsub.s64 %d4, %d4, %d3;\nsetp.lt.s64 %p1, %d4, 100;\n@%p1 bra I;",
    ),
    ("tells how long it took", "mov.u64 %d3, %clock64;\nsub.s64 %d3, %d3, %d1;"),
    (
        "votes",
        "setp.eq.u32 %p1, %r2, 0;\nvote.sync.any.pred %p2, %p1, 0xffffffff;\nselp.b32 %r2, 0, 1, %p2;\nadd.u32 %r1, %r1, 1;",
    ),
    ("counts failures in memory", "red.global.add.u32 [%a+64], 1;"),
    ("takes the failures' number", "atom.global.add.u32 %r4, [%a+64], 1;"),
    ("tells its progress", "add.u32 %r1, %r1, 1;\nst.global.u32 [%own], %r1;"),
    ("tells its progress in shared memory", "add.u32 %r1, %r1, 1;\nst.volatile.shared.u32 [flag], %r1;"),
];

/// None of it has a part in whether the loop is left.
#[test]
fn what_a_round_does_besides_does_not_matter() {
    for (name, round) in ROUNDS {
        for look in [STRONG, PLAIN] {
            for seed in [None, Some(1)] {
                let report = run(&poll(look, round), 3, seed);
                let hang = report.findings.iter().find(|found| found.code == "hang");
                assert!(hang.is_some(), "{name}, {look}, {seed:?}: {:#?}", report.findings);
                let label = &hang.unwrap().labels[0];
                assert_eq!(
                    (&*label.place.text, &*label.text),
                    (look.trim_end_matches(';'), "it finds 0 at `a` at byte 0"),
                    "{name}"
                );
                assert!(report.instructions < 40_000, "{name}, {look}, {seed:?}: {} instructions", report.instructions);
            }
        }
    }
}

/// Waits for an mbarrier, and flags in shared memory.
#[test]
fn polls_of_shared_memory() {
    let init = "setp.eq.u32 %p3, %tid, 0;\n@%p3 mbarrier.init.shared::cta.b64 [bar], 1;\n@%p3 st.volatile.shared.u32 [flag], 0;\nbar.sync 0;\n";
    for look in [
        "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;\nselp.b32 %r2, 1, 0, %p1;",
        "ld.volatile.shared.u32 %r2, [flag];",
    ] {
        let report = run(&format!("{init}{}", poll(look, "add.u32 %r1, %r1, 1;")), 2, None);
        assert!(codes(&report).contains(&"hang"), "{look}: {:#?}", report.findings);
        assert!(report.instructions < 10_000, "{look}: {} instructions", report.instructions);
    }
    // A wait that would give up is told as one that does not: what should arrive is known.
    let body = "L:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], 0;\n@%p0 bra END;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 2000000000;\n@%p1 bra L;";
    let report = run(&format!("{init}{body}"), 2, None);
    assert_eq!(
        report.findings[0].title, "the wait for `bar` never ends: nothing ever arrives at it",
        "{:#?}",
        report.findings
    );
}

/// What would end the loop comes only after all that the run may execute: that is said at once, and no hang.
#[test]
fn who_gives_up_too_late_is_a_runaway() {
    let until = [
        (
            "add.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %r1, 2000000000;\n@%p1 bra END;",
            "it counts its rounds here, which would end it at last",
        ),
        (
            "sub.u32 %r3, %r3, 1;\nsetp.eq.s32 %p1, %r3, 5;\n@%p1 trap;",
            "it counts its rounds here, which would end it at last",
        ),
        (
            "mov.u64 %d3, %clock64;\nsub.s64 %d3, %d3, %d1;\nsetp.gt.s64 %p1, %d3, 200000000000;\n@%p1 bra END;",
            "it looks at the clock here, which would end it at last",
        ),
        (
            "mov.u64 %d3, %globaltimer;\nsub.s64 %d3, %d3, %d2;\nsetp.lt.u64 %p1, %d3, 60000000000;\n@!%p1 trap;",
            "it looks at the clock here, which would end it at last",
        ),
        (
            "add.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %r1, 2000000000;\n@%p1 bra END;\nst.global.u32 [%own], %r1;",
            "it counts its rounds here, which would end it at last",
        ),
    ];
    for (round, why) in until {
        for look in [STRONG, PLAIN] {
            let report = run(&format!("mov.u32 %r3, 4000000000;\n{}", poll(look, round)), 3, None);
            let found = report.findings.iter().find(|found| found.code == "instruction-budget");
            let found = found.unwrap_or_else(|| panic!("{round}, {look}: {:#?}", report.findings));
            assert!(
                found.title.contains("asks for what does not happen, and gives up only after more than"),
                "{found:#?}"
            );
            let texts: Vec<&str> = found.labels.iter().map(|label| &*label.text).collect();
            assert_eq!(texts, ["it finds 0 at `a` at byte 0", why], "{round}");
            assert!(report.instructions < 40_000, "{round}, {look}: {} instructions", report.instructions);
        }
    }
}

/// A poll in a loop around it, which would count its rounds: once a pause has taken long, it is looked at by itself. Long pauses that end are none.
#[test]
fn a_poll_in_another_loop() {
    let around = |inner: &str| {
        format!(
            "mov.u32 %r6, 0;\nO:\n{inner}\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, 4;\n@%p1 bra O;\nst.global.u32 [%own], %r6;"
        )
    };
    for look in [STRONG, PLAIN] {
        let report = run(&around(&poll(look, "add.u32 %r1, %r1, 1;")), 2, None);
        assert_eq!(codes(&report), ["hang"], "{look}: {:#?}", report.findings);
        assert!(report.instructions < 60_000, "{look}: {} instructions", report.instructions);
        let pause =
            format!("mov.u32 %r4, 0;\nI:\n{look}\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, 3000;\n@%p2 bra I;");
        let report = run(&around(&pause), 2, None);
        assert!(report.is_clean() && report.completed, "{look}: {:#?}", report.findings);
        // One that is long, in a loop that never ends.
        let report = run(&poll(look, &pause.replace("3000", "400").replace("%r2", "%r5")), 2, None);
        assert_eq!(codes(&report), ["hang"], "{look}: {:#?}", report.findings);
        assert!(report.instructions < 1_000_000, "{look}: {} instructions", report.instructions);
    }
}

/// Of a count that goes on for ever, the low bits choose where a round looks: every eighth finds the same. Where somebody sets one of the flags, that is
/// found.
#[test]
fn a_count_that_chooses_a_flag_comes_round() {
    let round = "add.u32 %r1, %r1, 1;\nand.b32 %r4, %r1, 7;\nmul.wide.u32 %d5, %r4, 4;\nadd.s64 %d5, %d5, %a;";
    for load in ["ld.acquire.gpu.global.u32", "ld.volatile.global.u32"] {
        let poll = format!("L:\n{round}\n{load} %r2, [%d5];\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 bra L;");
        let report = run(&poll, 3, None);
        assert_eq!(codes(&report), ["hang"], "{load}: {:#?}", report.findings);
        assert!(report.instructions < 40_000, "{load}: {} instructions", report.instructions);
        let sets = format!(
            "setp.eq.u32 %p5, %cta, 0;\n@!%p5 bra L;\nC:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 20000;\n@%p1 bra C;\n\
             st.release.gpu.global.u32 [%a+20], 1;\nbra END;\n{poll}"
        );
        let report = run(&sets, 3, None);
        assert!(report.completed && !codes(&report).contains(&"hang"), "{load}: {:#?}", report.findings);
    }
}

/// Who has left its poll, and waits elsewhere for ever, goes round no more: its wait is told.
#[test]
fn who_has_left_its_poll_waits_where_it_does() {
    let body = "setp.eq.u32 %p3, %tid, 0;\n@%p3 mbarrier.init.shared::cta.b64 [bar], 1;\n@%p3 st.volatile.shared.u32 [flag], 0;\nbar.sync 0;\n\
                setp.lt.u32 %p1, %tid, 32;\n@%p1 bra L;\nC:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 20000;\n@%p2 bra C;\n\
                st.volatile.shared.u32 [flag], 1;\nbra WAIT;\n\
                L:\nld.volatile.shared.u32 %r2, [flag];\nadd.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %r1, 2000000000;\n@%p1 bra END;\n\
                setp.eq.u32 %p0, %r2, 0;\n@%p0 bra L;\n\
                WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], 0;\n@!%p0 bra WAIT;";
    let report = run(body, 1, None);
    let titles: Vec<&str> = report.findings.iter().map(|found| &*found.title).collect();
    assert_eq!(titles, ["the wait for `bar` never ends: nothing ever arrives at it"], "{:#?}", report.findings);
}

/// Who gives up in time does, and goes on; strong polls for longer than after which one that nothing ends is called a hang.
#[test]
fn who_gives_up_in_time_goes_on() {
    let until = [
        ("add.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %r1, 3000;\n@%p1 bra OUT;", 3001),
        ("add.u32 %r1, %r1, 1;\nsetp.eq.u32 %p1, %r1, 3000;\n@%p1 bra OUT;\nadd.u32 %r3, %r3, 1;", 3000),
        ("add.u32 %r1, %r1, 1;\nand.b32 %r3, %r1, 4095;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra OUT;", 4096),
        ("add.u32 %r3, %r3, %r1;\nadd.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %r3, 2000000;\n@%p1 bra OUT;", 2001),
        // The pause is of no account, the number of pauses is.
        (
            "mad.lo.u32 %r3, %r3, 1664525, 1013904223;\nand.b32 %r5, %r3, 15;\nI:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 20;\n@%p1 bra I;\n\
          add.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %r1, 2500;\n@%p1 bra OUT;",
            2501,
        ),
        (
            "mov.u64 %d3, %clock64;\nsub.s64 %d3, %d3, %d1;\nsetp.gt.s64 %p1, %d3, 1500000;\nadd.u32 %r1, %r1, 1;\nmin.u32 %r1, %r1, 5;\n@%p1 bra OUT;",
            5,
        ),
        ("mov.u32 %r5, %clock;\nsub.u32 %r5, %r5, %r7;\nsetp.gt.u32 %p1, %r5, 1500000;\n@%p1 bra OUT;", 1),
        ("mov.u64 %d3, %globaltimer;\nsub.s64 %d3, %d3, %d2;\nsetp.gt.s64 %p1, %d3, 800000;\n@%p1 bra OUT;", 1),
    ];
    for (round, last) in until {
        for look in [STRONG, PLAIN] {
            for seed in [None, Some(1)] {
                let body = format!(
                    "setp.ge.u32 %p4, %tid, 32;\n@%p4 bra END;\n{}\nOUT:\nst.global.u32 [%own], %r1;",
                    poll(look, round)
                );
                let report = run(&body, 2, seed);
                assert!(
                    report.completed && report.findings.is_empty(),
                    "{round}, {look}, {seed:?}: {:#?}",
                    report.findings
                );
                let word = |n: usize| {
                    u32::from_le_bytes(report.buffers[1].bytes[4 * n..][..4].try_into().expect("four bytes"))
                };
                assert_eq!((word(0), word(64 + 31)), (last, last), "{round}, {look}, {seed:?}");
            }
        }
    }
}

/// CTA 0 writes in each round, goes round alike, and CTA 1 looks at what it writes: what comes of that ends both.
#[test]
fn writes_that_another_looks_at_are_no_hang() {
    let writes = [
        // A number that grows.
        (
            "red.global.add.u32 [%a+64], 1;",
            "ld.relaxed.gpu.global.u32 %r5, [%a+64];\nsetp.lt.u32 %p1, %r5, 200000;\n@%p1 bra M;",
        ),
        (
            "add.u32 %r1, %r1, 1;\nst.relaxed.gpu.global.u32 [%a+64], %r1;",
            "ld.relaxed.gpu.global.u32 %r5, [%a+64];\nsetp.lt.u32 %p1, %r5, 3000;\n@%p1 bra M;",
        ),
        (
            "atom.global.add.u32 %r4, [%a+64], 1;",
            "ld.relaxed.gpu.global.u32 %r5, [%a+64];\nsetp.lt.u32 %p1, %r5, 100000;\n@%p1 bra M;",
        ),
    ];
    for (write, wait) in writes {
        let body = format!(
            "setp.ge.u32 %p4, %tid, 32;\n@%p4 bra END;\nsetp.eq.u32 %p5, %cta, 0;\n@!%p5 bra M;\n{}\nbra END;\nM:\n{wait}\n\
             st.release.gpu.global.u32 [%a], 1;",
            poll(STRONG, write)
        );
        for seed in [None, Some(1)] {
            let report = run(&body, 2, seed);
            assert!(report.completed, "{write}, {seed:?}: {:#?}", report.findings);
            assert!(!codes(&report).contains(&"hang"), "{write}, {seed:?}: {:#?}", report.findings);
        }
    }
}

/// A ticket that somebody gets at last: all look where all write.
#[test]
fn who_draws_tickets_gets_one() {
    let body = "setp.ge.u32 %p4, %tid, 1;\n@%p4 bra END;\nL:\natom.global.add.u32 %r2, [%a], 1;\nsetp.lt.u32 %p0, %r2, 4000;\n@%p0 bra L;";
    let report = run(body, 2, None);
    assert!(report.completed && report.findings.is_empty(), "{:#?}", report.findings);
}

/// Who could change what a poll looks at is named: statements that write there, or to a place that is computed. If there is none, that is said.
#[test]
fn who_could_change_it_is_named() {
    let never = |store: &str| {
        let store = format!("setp.eq.u32 %p4, %cta, 77;\n@!%p4 bra L;\n{store}\nbra END;\n");
        let report = run(&format!("{store}{}", poll(STRONG, "")), 2, None);
        report.findings[0].clone()
    };
    for store in [
        "st.release.gpu.global.u32 [%a], 1",
        "red.global.add.u32 [%a], 1",
        "add.s64 %d5, %a, %d4;\nst.global.u32 [%d5], 1",
    ] {
        let found = never(&format!("mov.u64 %d4, 0;\n{store};"));
        let told = found.labels.iter().find(|label| label.text == "this could change it").expect(store);
        assert_eq!(told.place.text, store.lines().last().unwrap_or_default(), "{found:#?}");
    }
    for store in ["st.release.gpu.global.u32 [%a+4], 1", "st.global.u32 [%own], 1"] {
        let found = never(&format!("{store};"));
        assert!(found.labels.iter().all(|label| label.text != "this could change it"), "{found:#?}");
        assert!(found.help.ends_with("No statement of the kernel writes there, to `a` at byte 0."), "{found:#?}");
    }
}

/// Who computes for long first, and then polls, has come to another loop: it is compared anew at once.
#[test]
fn a_poll_behind_long_work() {
    let body = format!(
        "mov.u32 %r5, 0;\nW:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 100000;\n@%p1 bra W;\n{}",
        poll(STRONG, "add.u32 %r1, %r1, 1;")
    );
    let report = run(&body, 2, None);
    assert_eq!(codes(&report), ["hang"], "{:#?}", report.findings);
    assert!(report.instructions < 4 * 300_000 + 5_000, "{} instructions", report.instructions);
}

/// What a matrix load finds decides, and the own stores change it.
#[test]
fn a_loop_that_ends_by_what_ldmatrix_finds_ends() {
    let body = "mov.u32 %r5, tile;\nshl.b32 %r6, %tid, 2;\nand.b32 %r6, %r6, 127;\nadd.u32 %r6, %r6, %r5;\nand.b32 %r8, %tid, 7;\nshl.b32 %r8, %r8, 4;\n\
         add.u32 %r8, %r8, %r5;\nsetp.ge.u32 %p1, %tid, 32;\n@%p1 bra END;\n\
         L:\nadd.u32 %r3, %r3, 1;\nst.shared.u32 [%r6], %r3;\nbar.warp.sync 0xffffffff;\n\
         ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r8];\nbar.warp.sync 0xffffffff;\nsetp.ne.u32 %p0, %r4, 6000;\n@%p0 bra L;\n\
         st.global.u32 [%own], %r4;";
    let report = run(body, 1, None);
    assert!(report.is_clean(), "{:#?}", report.findings);
}

/// While another warp computes for long, a round of the one that polls has few instructions of its own.
#[test]
fn a_poll_that_gives_up_beside_a_warp_that_computes_ends() {
    let body = "setp.lt.u32 %p1, %tid, 32;\n@%p1 bra POLL;\n\
         C:\nadd.u32 %r3, %r3, 1;\nmad.lo.u32 %r4, %r3, %r3, %r4;\nsetp.lt.u32 %p2, %r3, 5000;\n@%p2 bra C;\n\
         W:\nld.acquire.gpu.global.u32 %r2, [%a+4];\nnanosleep.u32 2000;\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 bra W;\nbra END;\n\
         POLL:\nld.acquire.gpu.global.u32 %r2, [%a];\nnanosleep.u32 200;\nadd.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %r1, 60000;\n@%p1 bra GIVE;\n\
         setp.eq.u32 %p0, %r2, 0;\n@%p0 bra POLL;\nGIVE:\nmov.u32 %r5, 1;\nst.release.gpu.global.u32 [%a+4], %r5;";
    let program = load(&kernel(body));
    let options = Options { max_instructions: 1_000_000, ..Default::default() };
    let report = emulator::run(&program, &launch(1), &options);
    assert!(report.completed && codes(&report).is_empty(), "{:#?}", report.findings);
}

/// Loops in which something happens in each round, and whose ways out nothing changes: told after some thousand instructions, with what decides. `%r5` is the
/// CTA's tile; the twins end, each by a value that changes some way.
#[test]
fn a_loop_that_works_for_ever_is_told() {
    let work = "bar.sync 0;\nst.shared.u32 [flag], %tid;\natom.global.add.u32 %r4, [%a+64], 1;";
    let tiles = |after: &str| {
        format!(
            "mov.u32 %r5, %cta;\nT:\nsetp.ge.u32 %p1, %r5, 6;\n@%p1 bra END;\nmov.u32 %r6, 0;\nK:\n{work}\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 5;\n@%p2 bra K;\n{after}\nbra T;"
        )
    };
    for (body, place, helps) in [
        (format!("L:\n{work}\nbra L;"), "bra L", "a condition"),
        ("L:\nbar.sync 0;\nbra L;".to_string(), "bra L", "a condition"),
        ("L:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nbra L;".to_string(), "bra L", "a condition"),
        (tiles(""), "bra T", "the number of its CTAs"),
        // It is computed anew in each round, from the same.
        (tiles("mad.lo.u32 %r7, %r5, 2, 4;\nsub.u32 %r7, %r7, 4;"), "bra T", "the number of its CTAs"),
        // The inner loop is not left; the outer one would be.
        (
            format!(
                "mov.u32 %r6, 0;\nT:\nK:\n{work}\nsetp.lt.u32 %p2, %r6, 5;\n@%p2 bra K;\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 9;\n@%p2 bra T;"
            ),
            "@%p2 bra K",
            "in each round",
        ),
    ] {
        let report = run(&body, 2, None);
        let first = report
            .findings
            .iter()
            .find(|d| d.code == "hang")
            .unwrap_or_else(|| panic!("{:?}:\n{body}", codes(&report)));
        assert!(!report.completed && report.instructions < 100_000, "{} instructions:\n{body}", report.instructions);
        assert!(first.title.contains("goes round for ever"), "{}\n{body}", first.title);
        assert!(first.labels[0].place.text.contains(place) && first.help.contains(helps), "{first:#?}\n{body}");
    }
    for body in [
        tiles("add.u32 %r5, %r5, 2;"),
        // The number of rounds is what an atomic operation gives.
        "L:\nbar.sync 0;\natom.global.add.u32 %r5, [%a], 1;\nsetp.lt.u32 %p1, %r5, 100000;\nbar.sync 0;\n@%p1 bra L;".to_string(),
        // A register is read that the round before has given a value.
        "mov.u32 %r5, 0;\nmov.u32 %r6, 0;\nL:\nbar.sync 0;\nsetp.gt.u32 %p1, %r6, 4000;\n@%p1 bra END;\nmov.u32 %r6, %r5;\nadd.u32 %r5, %r5, 1;\nbra L;".to_string(),
        // Another way through the loop gives it one.
        "mov.u32 %r5, 0;\nmov.u32 %r6, 0;\nL:\nbar.sync 0;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 4000;\n@%p1 bra M;\nmov.u32 %r6, 1;\nM:\nsetp.eq.u32 %p2, %r6, 1;\n@!%p2 bra L;".to_string(),
        // Lanes leave it one after the other.
        "mov.u32 %r5, 0;\nL:\natom.global.add.u32 %r4, [%a+64], 1;\nsetp.ge.u32 %p1, %r5, %tid;\n@%p1 bra END;\nadd.u32 %r5, %r5, 1;\nbra L;".to_string(),
        // It is a count from before the loop, and taken from by a guarded instruction.
        "mov.u32 %r5, 3000;\nsetp.ne.u32 %p3, %r5, 0;\nL:\nbar.sync 0;\n@%p3 sub.u32 %r5, %r5, 1;\nsetp.ne.u32 %p1, %r5, 0;\n@%p1 bra L;".to_string(),
    ] {
        let report = run(&body, 2, None);
        assert!(report.completed && codes(&report).iter().all(|code| *code != "hang"), "{:?}:\n{body}", codes(&report));
    }
}
