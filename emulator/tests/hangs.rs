//! What a run that is stuck says: the wait that keeps the others waiting comes first, with a way out that fits it.

mod common;

use common::{load, zeroes};
use emulator::{Diagnostic, Launch, Mode, Options};

/// Two warps: what lane 0 of each does, with `bar_a` and `bar_b` made for one arrival each.
fn stuck(first: &str, second: &str) -> Diagnostic {
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .shared .align 8 .b64 bar_a;\n.shared .align 8 .b64 bar_b;\n.reg .pred %p<4>;\n.reg .b32 %r<4>;\n\
         mov.u32 %r0, %tid.x;\nsetp.ne.u32 %p0, %r0, 0;\n\
         @!%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;\n@!%p0 mbarrier.init.shared::cta.b64 [bar_b], 1;\n\
         bar.sync 0;\nand.b32 %r1, %r0, 31;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\n\
         setp.ge.u32 %p2, %r0, 32;\n@%p2 bra SECOND;\n{}\nbra END;\nSECOND:\n{}\nEND:\nret;\n}}\n",
        told(first, "F"),
        told(second, "S")
    );
    let launch = common::launch("k", 64, vec![zeroes("out", 4096)]);
    let program = load(&text);
    let report = common::run(&program, &launch, None, 1_000_000);
    assert_eq!(common::codes(&report), ["hang"], "{:#?}", report.findings);
    // It is the same where only times are wanted.
    let timed = emulator::run(&program, &launch, &Options { mode: Mode::Time, ..Default::default() });
    let said = |report: &emulator::Report| {
        report.findings.iter().map(|d| (d.title.clone(), d.help.clone())).collect::<Vec<_>>()
    };
    assert_eq!(said(&timed), said(&report), "times only");
    report.findings[0].clone()
}

/// `arrive a`, `wait b 1`, one after the other.
fn told(words: &str, label: &str) -> String {
    let mut text = String::new();
    for (n, one) in words.split(", ").enumerate() {
        let words: Vec<&str> = one.split(' ').collect();
        text += &match words.as_slice() {
            ["arrive", bar] => format!("mbarrier.arrive.shared::cta.b64 _, [bar_{bar}];\n"),
            ["wait", bar, parity] => format!(
                "{label}{n}:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_{bar}], {parity};\n@!%p3 bra {label}{n};\n"
            ),
            _ => panic!("{one}"),
        };
    }
    text
}

/// Several phases have gone by that both have waited for.
#[test]
fn two_that_wait_for_each_other_after_several_rounds() {
    let first = "arrive a, wait b 0, arrive a, wait b 1, arrive a, wait b 0, wait b 1";
    let second = "wait a 0, arrive b, wait a 1, arrive b, wait a 0, arrive b, wait a 1";
    let found = stuck(first, second);
    assert!(found.title.starts_with("two warps wait for each other: "), "{}", found.title);
}

/// Warp 0 waits for an arrival of warp 1, which waits itself: the parity of warp 0 is right.
#[test]
fn who_should_arrive_waits_itself() {
    let found = stuck("wait a 0, wait a 1", "arrive a, wait b 0, arrive a");
    assert_eq!(found.title, "the wait for `bar_b` never ends: nothing ever arrives at it", "{found:#?}");
    assert!(found.labels[0].text.starts_with("warp 1 waits for `bar_b`"), "{found:#?}");
    assert!(found.labels.iter().any(|label| label.text.starts_with("warp 0 waits for `bar_a`")), "{found:#?}");
}

/// Warp 1 is done, and warp 0 has seen its phase: the parity of the second wait is right, and an arrival is missing.
#[test]
fn who_arrived_has_ended() {
    let found = stuck("wait a 0, wait a 1", "arrive a");
    assert!(found.title.contains("nothing arrives any more after phase 0"), "{found:#?}");
    assert!(found.help.starts_with("warp 0 has seen phase 0 and waits for one more"), "{found:#?}");
}

/// Warp 0 comes when phase 0 is complete, and has waited for none: it has the wrong parity.
#[test]
fn who_has_seen_no_phase_has_the_wrong_parity() {
    let found = stuck("wait b 0, wait a 1", "arrive a, arrive b");
    assert!(found.title.contains("nothing arrives any more after phase 0"), "{found:#?}");
    assert_eq!(found.help, "Phase n has parity n mod 2: to wait for phase 0, use parity 0.");
}

/// The same where warp 1 goes on only behind warp 0, and would arrive again then.
#[test]
fn who_has_seen_no_phase_holds_up_who_would_arrive() {
    let found = stuck("arrive b, wait b 0, wait a 1, arrive b", "arrive a, wait b 0, wait b 1, arrive a");
    assert_eq!(found.help, "Phase n has parity n mod 2: to wait for phase 0, use parity 0.", "{found:#?}");
    // Who would not arrive has to.
    let found = stuck("arrive b, wait b 0, wait a 1, arrive b", "arrive a, wait b 0, wait b 1");
    assert!(found.help.contains("arrive once more before it waits"), "{found:#?}");
}

/// Each waits for the other before it arrives, and nothing has come yet: who waits for whom is drawn.
#[test]
fn each_waits_for_the_other_from_the_beginning() {
    let found = stuck("wait a 0, arrive b", "wait b 0, arrive a");
    let ring = "two warps wait for each other: warp 0 → `bar_a` → warp 1 → `bar_b` → warp 0";
    assert_eq!(
        found.title,
        format!("the wait for `bar_a` never ends: nothing ever arrives at it: {ring}"),
        "{found:#?}"
    );
    assert!(found.labels.iter().all(|label| !label.aside), "both are the cause: {found:#?}");
}

/// Each waits for the other: no wait is the root, and no parity is wrong.
#[test]
fn each_waits_for_the_other() {
    let found = stuck("wait a 0, arrive b, wait a 1, arrive b", "arrive a, wait b 0, wait b 1, arrive a");
    assert_eq!(
        found.title, "two warps wait for each other: warp 0 → `bar_a` → warp 1 → `bar_b` → warp 0",
        "{found:#?}"
    );
    assert_eq!(
        found.help,
        "Let warp 1, whose arrival completed phase 0, arrive once more before it waits where it does now."
    );
}

/// Warp 0 has passed phase 0, knows that phase 1 is complete, and asks for parity 0 again: whatever others do, that is phase 2.
#[test]
fn a_phase_is_left_out() {
    let found = stuck("wait a 0, arrive b, wait b 1, wait a 0", "arrive a, wait b 0, arrive a, arrive b, wait a 0");
    assert_eq!(found.title, "warp 0 waits for phase 2 of `bar_a` (parity 0), and left out phase 1", "{found:#?}");
    assert!(found.labels[1].text.contains("passed phase 0 here"), "{found:#?}");
}

/// A kernel of 96 threads with `ring` of two mbarriers and `other` of one behind it, each made for one arrival.
fn of_three_warps(body: &str) -> Diagnostic {
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .shared .align 8 .b64 ring[2];\n.shared .align 8 .b64 other;\n.reg .pred %p<6>;\n.reg .b32 %r<6>;\n\
         mov.u32 %r0, %tid.x;\nsetp.ne.u32 %p0, %r0, 0;\n\
         @!%p0 mbarrier.init.shared::cta.b64 [ring], 1;\n@!%p0 mbarrier.init.shared::cta.b64 [ring+8], 1;\n\
         @!%p0 mbarrier.init.shared::cta.b64 [other], 1;\nbar.sync 0;\n{body}\nret;\n}}\n"
    );
    let report = common::run(&load(&text), &common::launch("k", 96, vec![zeroes("out", 4096)]), None, 1_000_000);
    assert_eq!(common::codes(&report), ["hang"], "{:#?}", report.findings);
    report.findings[0].clone()
}

/// Warps 0 and 1 meet at a barrier for 96 threads. Warp 2 waits for what comes behind it, and its number alone says that it would
/// never come to that barrier, although the text of its role goes on to it.
#[test]
fn nobody_else_comes_to_a_cta_barrier() {
    let found = of_three_warps(
        "shr.u32 %r1, %r0, 5;\nsetp.ne.u32 %p1, %r1, 2;\n@%p1 bra BOTH;\n\
         WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [ring], 0;\n@!%p2 bra WAIT;\n\
         setp.eq.u32 %p3, %r1, 2;\n@%p3 bra END;\n\
         BOTH:\nbar.sync 1, 96;\n@!%p0 mbarrier.arrive.shared::cta.b64 _, [ring];\nEND:",
    );
    assert_eq!(found.title, "CTA barrier 1 waits for 96 threads and gets 64", "{found:#?}");
    assert!(found.help.ends_with("or let it count 64 threads."), "{found:#?}");
    let others: Vec<bool> = found.labels.iter().map(|label| label.aside).collect();
    assert_eq!(others, [false, true], "the wait of warp 2 is not the cause: {found:#?}");
}

/// All three warps meet at a barrier twice, and warp 0 alone once more, behind a guard. Told is that statement, and what leads the others past it,
/// wherever warp 0 is stuck. Where warp 0 and the others have statements of their own, and warp 2 is missing, it is not theirs.
#[test]
fn a_barrier_behind_a_guard_is_told_with_the_guard() {
    let meet = "bar.sync 1, 96;\n";
    let guard = "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra PAST;\nbar.sync 1, 96;\nPAST:\n";
    for (body, elsewhere) in [(format!("{meet}{meet}{guard}"), false), (format!("{meet}{guard}{meet}"), true)] {
        let found = of_three_warps(&body);
        assert_eq!(found.title, "CTA barrier 1 waits for 96 threads and gets 32", "{found:#?}");
        let said = |text: &str| found.labels.iter().any(|label| label.text.contains(text) && !label.aside);
        assert_eq!(said("32 of the 96 threads that meet at it come here"), elsewhere, "{found:#?}");
        assert!(said("warps 1 to 2 come here, and none goes on to it"), "{found:#?}");
        assert!(found.help.contains("in front of the guard"), "{found:#?}");
    }
    let apart = "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra OTHERS;\nbar.sync 1, 96;\nbar.sync 1, 96;\nbra END;\n\
                 OTHERS:\nbar.sync 1, 96;\nsetp.ge.u32 %p1, %r0, 64;\n@%p1 bra END;\nbar.sync 1, 96;\nEND:";
    let found = of_three_warps(&format!("{meet}{apart}"));
    assert!(!found.help.contains("in front of the guard"), "{found:#?}");
}

/// Three warps of which each waits at a barrier for the next, and comes to that of the one before only behind it: drawn, with the statement by which
/// the next one would come. The same with an mbarrier in the round; and not drawn where the last one waits for something else.
#[test]
fn who_waits_for_each_other_at_cta_barriers_is_drawn() {
    let roles = "shr.u32 %r1, %r0, 5;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra A;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra B;\n";
    let first = "bra END;\nA:\nbar.sync 1, 64;\nbar.arrive 2, 64;\nbra END;\nB:\n";
    let found = of_three_warps(&format!(
        "{roles}bar.sync 3, 64;\nbar.arrive 1, 64;\n{first}bar.sync 2, 64;\nbar.arrive 3, 64;\nEND:"
    ));
    assert_eq!(
        found.title,
        "CTA barrier 1 waits for 64 threads and gets 32: these warps wait for each other: warp 0 → CTA barrier 1 → warp 2 → CTA barrier 3 → warp 1 → \
         CTA barrier 2 → warp 0",
        "{found:#?}"
    );
    let said = |found: &Diagnostic| found.labels[1].text.clone();
    assert_eq!(said(&found), "warp 2 would come to it here, but waits at CTA barrier 3 before", "{found:#?}");
    assert_eq!(found.help, "Let warp 2 come to what warp 0 waits for before it waits at CTA barrier 3 itself.");

    let wait = "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [other], 0;\n@!%p2 bra W;\n";
    let by_mbarrier = of_three_warps(&format!(
        "{roles}bra END;\nA:\nbar.sync 1, 64;\n@!%p0 mbarrier.arrive.shared::cta.b64 _, [other];\nbra END;\nB:\n{wait}bar.sync 1, 64;\nEND:"
    ));
    assert!(
        by_mbarrier
            .title
            .ends_with("two warps wait for each other: warp 0 → CTA barrier 1 → warp 1 → `other` → warp 0"),
        "{by_mbarrier:#?}"
    );

    let open = of_three_warps(&format!("{roles}bar.sync 3, 64;\nbar.arrive 1, 64;\n{first}END:"));
    assert_eq!(open.title, "CTA barrier 3 waits for 64 threads and gets 32", "{open:#?}");
}

/// One statement goes through the two mbarriers of a ring, and on to the one behind them.
#[test]
fn an_index_runs_past_its_ring() {
    let found = of_three_warps(
        "@!%p0 mbarrier.arrive.shared::cta.b64 _, [ring];\n@!%p0 mbarrier.arrive.shared::cta.b64 _, [ring+8];\n\
         setp.ne.u32 %p1, %r0, 32;\n@%p1 bra END;\nmov.u32 %r2, ring;\n\
         WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n@!%p2 bra WAIT;\n\
         add.u32 %r2, %r2, 8;\nbra WAIT;\nEND:",
    );
    assert_eq!(
        found.title, "warp 1 waits for `other`: by the same statement it waited for `ring` at byte 8 before",
        "{found:#?}"
    );
}

/// Three warpgroups that begin with 168 registers a thread, as `.minnctapersm` and the block leave them: 504 for a lane of each. One that
/// gives too few back leaves another waiting; without `.minnctapersm` the assembler passes over `setmaxnreg`, and nobody waits.
#[test]
fn registers_that_nobody_gives_back() {
    let run_with = |directives: &str, fewer: u32, more: u32| {
        let text = format!(
            ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n.reqntid 384, 1, 1\n{directives}\n{{\n.reg .pred %p<2>;\n\
             .reg .b32 %r<2>;\nmov.u32 %r0, %tid.x;\nsetp.lt.u32 %p0, %r0, 128;\n@%p0 bra LESS;\nsetmaxnreg.inc.sync.aligned.u32 {more};\nbra END;\n\
             LESS:\nsetmaxnreg.dec.sync.aligned.u32 {fewer};\nEND:\nret;\n}}\n"
        );
        let report = common::run(&load(&text), &common::launch("k", 384, vec![]), None, 100_000);
        report.findings
    };
    let run = |directives: &str, fewer: u32| run_with(directives, fewer, 232);
    assert_eq!(run(".minnctapersm 1", 40), []);
    assert_eq!(run("", 48), []);
    let found = run(".minnctapersm 1", 48);
    assert_eq!(found.iter().map(|found| found.code).collect::<Vec<_>>(), ["hang"], "{found:?}");
    assert!(found[0].help.contains("every warp begins with 168 a thread"), "{found:?}");
    // Where too few came from: a number there may be the wrong one.
    let gave = found[0].labels.iter().find(|label| label.text == "warps 0 to 3 gave 120 registers a thread here");
    assert!(gave.is_some_and(|label| !label.aside && label.place.text.contains("setmaxnreg.dec")), "{found:#?}");
    // Where nobody asks for 168, the assembler lets all begin with fewer: 152 are there, 160 cannot be given back.
    assert_eq!(run_with(".minnctapersm 1", 152, 152), []);
    let found = run_with(".minnctapersm 1", 160, 152);
    assert!(found[0].title.starts_with("setmaxnreg.dec to 160 registers a thread, of which warp 0"), "{found:?}");
    assert!(found[0].title.ends_with("has 152"), "{found:?}");
}

/// Warps 0 to 3 wait for an arrival that comes behind a wait for registers. If nobody gives registers back any more, that one is the root, and the
/// mbarrier is only starved; if warps 0 to 3 would give some behind their wait, it is their wait that comes too early.
#[test]
fn a_wait_for_registers_starves_others() {
    let run = |behind: &str| {
        let text = format!(
            ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n.reqntid 384, 1, 1\n.minnctapersm 1\n{{\n.reg .pred %p<3>;\n\
             .reg .b32 %r<2>;\n.shared .align 8 .b64 bar;\nmov.u32 %r0, %tid.x;\nsetp.eq.u32 %p1, %r0, 0;\n\
             @%p1 mbarrier.init.shared::cta.b64 [bar], 1;\nbar.sync 0;\nsetp.lt.u32 %p0, %r0, 128;\n@%p0 bra LESS;\n\
             setmaxnreg.inc.sync.aligned.u32 232;\nsetp.eq.u32 %p2, %r0, 128;\n@%p2 mbarrier.arrive.shared::cta.b64 _, [bar];\nbra END;\n\
             LESS:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra LESS;\n{behind}\nEND:\nret;\n}}\n"
        );
        let report = common::run(&load(&text), &common::launch("k", 384, vec![]), None, 100_000);
        report.findings.into_iter().find(|found| found.code == "hang").expect("a hang").title
    };
    assert!(run("").starts_with("setmaxnreg.inc of warp 4 waits for 64 registers"), "{}", run(""));
    let early = run("setmaxnreg.dec.sync.aligned.u32 40;");
    assert!(early.contains("`bar`"), "{early}");
}

/// Eight warps wait at eight places: six are named, and the others counted.
#[test]
fn who_is_not_named_is_counted() {
    let waits: String = (0..8)
        .map(|n| format!("setp.eq.u32 %p1, %r1, {n};\n@!%p1 bra N{n};\nW{n}:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar+{}], 0;\n@!%p2 bra W{n};\nN{n}:\n", 8 * n))
        .collect();
    let inits: String = (0..8).map(|n| format!("@%p0 mbarrier.init.shared::cta.b64 [bar+{}], 1;\n", 8 * n)).collect();
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n.shared .align 8 .b64 bar[8];\n.reg .pred %p<4>;\n\
         .reg .b32 %r<4>;\nmov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 5;\nsetp.eq.u32 %p0, %r0, 0;\n{inits}bar.sync 0;\n{waits}ret;\n}}\n"
    );
    let report = common::run(&load(&text), &common::launch("k", 256, vec![]), None, 1_000_000);
    let found = &report.findings[0];
    assert_eq!((found.code, found.labels.len()), ("hang", 6), "{found:#?}");
    assert!(found.labels[5].text.ends_with("; 2 more wait elsewhere"), "{found:#?}");
}

/// One lane of each of two warps arrives where 64 arrivals are counted.
#[test]
fn one_lane_of_each_warp_arrives() {
    let text = ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n.shared .align 8 .b64 bar;\n.reg .pred %p<4>;\n\
        .reg .b32 %r<4>;\nmov.u32 %r0, %tid.x;\nand.b32 %r1, %r0, 31;\nsetp.eq.u32 %p0, %r0, 0;\nsetp.eq.u32 %p1, %r1, 0;\n\
        @%p0 mbarrier.init.shared::cta.b64 [bar], 64;\nbar.sync 0;\n@%p1 mbarrier.arrive.shared::cta.b64 _, [bar];\n\
        W:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra W;\nret;\n}\n";
    let report = common::run(&load(text), &common::launch("k", 64, vec![]), None, 1_000_000);
    let found = &report.findings[0];
    assert!(
        found.labels.iter().any(|label| label.text == "2 arrivals from here: 1 lane of each of 2 warps"),
        "{found:#?}"
    );
    assert!(found.help.starts_with("One lane of a warp arrives where 32 are counted"), "{found:#?}");
}

/// A kernel of 200,000 instructions, written out, whose warps wait at 32 places and would arrive at thousands: the explanation takes no longer than
/// the kernel takes to load.
#[test]
fn a_hang_of_a_large_kernel_is_explained_in_time() {
    let waits: String = (0..32)
        .map(|n| format!("setp.ne.u32 %p1, %r1, {n};\n@%p1 bra N{n};\nadd.u32 %r4, %r2, %r3;\nW{n}:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;\n@!%p2 bra W{n};\nN{n}:\n"))
        .collect();
    let arrivals =
        "add.u32 %r5, %r5, 1;\nadd.u32 %r7, %r5, %r3;\nand.b32 %r8, %r7, %r5;\nmad.lo.u32 %r6, %r8, 8, %r2;\n\
                    mbarrier.arrive.shared::cta.b64 _, [%r6];\n"
            .repeat(40_000);
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n.shared .align 8 .b64 bar[32];\n.reg .pred %p<4>;\n\
         .reg .b32 %r<16>;\nmov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 5;\nshl.b32 %r3, %r1, 3;\nmov.u32 %r2, bar;\nmov.u32 %r5, 0;\n\
         and.b32 %r9, %r0, 31;\nsetp.eq.u32 %p0, %r9, 0;\nadd.u32 %r4, %r2, %r3;\n@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\n\
         bar.sync 0;\n{waits}{arrivals}ret;\n}}\n"
    );
    let begun = common::processor::time();
    let program = load(&text);
    let loaded = common::processor::time() - begun;
    let (report, ran) = common::timed::run(&program, &common::launch("k", 1024, vec![]), 1_000_000);
    assert_eq!(common::codes(&report), ["hang"]);
    assert!(ran < 4 * loaded + std::time::Duration::from_secs(2), "loads in {loaded:?}, runs in {ran:?}");
}

/// One lane goes apart in front of what the whole warp does together; behind it nothing returns any more.
fn apart_before(rest: &str) -> Diagnostic {
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.shared .align 8 .b64 bar;\n\
         .reg .pred %p<3>;\n.reg .b32 %r<3>;\n.reg .b64 %d;\nmov.u32 %r0, %tid.x;\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 bra MEET;\n\
         mbarrier.init.shared::cta.b64 [bar], 1;\nMEET:\nbar.sync 0;\nld.param.u64 %d, [out];\nmov.u32 %r1, 0;\n{rest}\nret;\n}}\n"
    );
    let launch = common::launch("k", 32, vec![zeroes("out", 4)]);
    let report = common::run(&load(&text), &launch, None, 100_000);
    assert!(!report.completed);
    report.findings[0].clone()
}

/// Lanes meet again in front of a trap, and of a loop without an end, as in front of a return.
#[test]
fn lanes_meet_again_where_nothing_returns() {
    let found = apart_before("trap;");
    assert_eq!((found.code, &found.labels[0].place.text[..]), ("trap", "trap"), "{found:#?}");
    let found = apart_before("AGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\nbra AGAIN;");
    assert_eq!(found.code, "hang", "{found:#?}");
    // Two loops, one in the other.
    let found = apart_before(
        "OUTER:\nINNER:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 8;\n@%p2 bra INNER;\nmov.u32 %r1, 0;\nbra OUTER;",
    );
    assert_ne!(found.code, "aligned-lanes-missing", "{found:#?}");
}

/// A loop that stores to one place for so long that it is no hang ends at its budget: each store costs the same, however many there were before.
#[test]
fn a_long_loop_of_stores_ends_at_its_budget() {
    let found = apart_before(
        "AGAIN:\nst.global.u32 [%d], %r1;\nmad.lo.u32 %r1, %r1, 5, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;",
    );
    assert_eq!(found.code, "instruction-budget", "{found:#?}");
    let labels: Vec<(&str, &str)> = found.labels.iter().map(|l| (&l.place.text[..], &l.text[..])).collect();
    assert_eq!(labels[0], ("@%p1 bra AGAIN", "this branch leads back to `st.global.u32 [%d], %r1`, time and again"));
    assert!(found.title.ends_with("warp 0 goes round and round"), "{found:#?}");
}

/// What is said of a loop that nothing ends: the branch that keeps the loop going, what decides it, and what that compares; not the
/// statement that would have been next.
#[test]
fn a_loop_that_nothing_ends_is_named() {
    let inner =
        "add.u32 %r2, %r2, 1;\nst.global.u32 [%d], %r2;\nsetp.lt.u32 %p2, %r2, 9;\n@%p2 bra INNER;\nmov.u32 %r2, 0;";
    for (rest, labels, says) in [
        (
            "AGAIN:\nst.global.u32 [%d], %r1;\nadd.u32 %r1, %r1, 0;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bra AGAIN;".to_string(),
            &[
                ("@%p1 bra AGAIN", "leads back to `st.global.u32 [%d], %r1`"),
                ("setp.lt.u32 %p1, %r1, 16", "this decides whether it does"),
                ("add.u32 %r1, %r1, 0", "in lane 0 it is 0 now"),
            ][..],
            "ever becomes what ends the loop",
        ),
        (
            "AGAIN:\nst.global.u32 [%d], %r1;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bra AGAIN;".to_string(),
            &[("@%p1 bra AGAIN", "leads back"), ("setp.lt.u32 %p1, %r1, 16", "this decides")],
            "Nothing in the loop changes what is compared there",
        ),
        // The inner one comes to its end each time.
        (
            format!("mov.u32 %r2, 0;\nOUTER:\nadd.u32 %r1, %r1, 1;\nINNER:\n{inner}\nbra OUTER;"),
            &[("bra OUTER", "leads back to `add.u32 %r1, %r1, 1`")],
            "Nothing leads out of the loop",
        ),
        // The inner one does not: the outer one never comes to its branch.
        (
            format!(
                "mov.u32 %r2, 0;\nOUTER:\nINNER:\n{}\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 4;\n@%p1 bra OUTER;",
                inner.replace("%r2, %r2, 1;", "%r2, %r2, 0;")
            ),
            &[("@%p2 bra INNER", "leads back"), ("setp.lt.u32 %p2, %r2, 9", "decides"), ("add.u32 %r2, %r2, 0", "it is 0 now")],
            "ever becomes what ends the loop",
        ),
        // Its only way out is in its middle.
        (
            "AGAIN:\nst.global.u32 [%d], %r1;\nsetp.gt.u32 %p1, %r1, 16;\n@%p1 bra OUT;\nadd.u32 %r1, %r1, 0;\nbra AGAIN;\nOUT:".into(),
            &[("bra AGAIN", "leads back"), ("@%p1 bra OUT", "only from here")],
            "Look why the loop is never left there",
        ),
    ] {
        let found = apart_before(&rest);
        assert_eq!(found.code, "hang", "{rest}: {found:#?}");
        let told: Vec<(&str, &str)> = found.labels.iter().map(|l| (&l.place.text[..], &l.text[..])).collect();
        assert_eq!(told.len(), labels.len(), "{rest}: {told:?}");
        for ((at, text), (wanted, said)) in told.iter().zip(labels) {
            assert!(at == wanted && text.contains(said), "{rest}: {told:?}");
        }
        assert!(found.help.contains(says), "{rest}: {}", found.help);
    }
}

/// A warp that waits for another goes round, too: the other, which does not come out of its loop, is told.
#[test]
fn a_loop_that_waits_for_another_is_not_the_one() {
    let text = ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.shared .align 8 .b64 bar;\n\
         .reg .pred %p<3>;\n.reg .b32 %r<3>;\n.reg .b64 %d;\nmov.u32 %r0, %tid.x;\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 bra MEET;\n\
         mbarrier.init.shared::cta.b64 [bar], 1;\nMEET:\nbar.sync 0;\nld.param.u64 %d, [out];\nmov.u32 %r1, 0;\n\
         setp.lt.u32 %p1, %r0, 32;\n@%p1 bra WORK;\nWAIT:\nmbarrier.test_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n\
         ret;\nWORK:\nst.global.u32 [%d], %r1;\nadd.u32 %r1, %r1, 0;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bra WORK;\nret;\n}\n";
    let report = common::run(&load(text), &common::launch("k", 64, vec![zeroes("out", 4)]), None, 100_000);
    let found = &report.findings[0];
    assert_eq!((found.code, &found.labels[0].place.text[..]), ("hang", "@%p1 bra WORK"), "{found:#?}");
    assert!(found.title.starts_with("warp 0 goes round for ever"), "{found:#?}");
}

/// Warp 1 is alone at CTA barrier 3, whose number is in a register, as that of the barriers behind it is: to none of these does warp 0, which waits
/// at barrier 0, bring the number 3, so that barrier 3 comes first. Where it does, each waits for the other.
#[test]
fn who_would_come_to_a_barrier_is_told_by_the_number_that_its_register_holds() {
    let run = |number: &str, last: &str| {
        let text = format!(
            ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
             .reg .pred %p<4>;\n.reg .b32 %r<4>;\nmov.u32 %r0, %tid.x;\nsetp.lt.u32 %p0, %r0, 32;\nshr.u32 %r1, %r0, 5;\n{number}\n\
             @%p0 bra MEET;\nbar.sync %r2, 64;\nMEET:\nbar.sync 0;\n{last}\nbar.sync %r2, 32;\nret;\n}}\n"
        );
        let launch = common::launch("k", 64, vec![zeroes("out", 4096)]);
        let report = common::run(&load(&text), &launch, None, 1_000_000);
        assert_eq!(common::codes(&report), ["hang"], "{:#?}", report.findings);
        report.findings[0].title.clone()
    };
    let own = "add.u32 %r2, %r1, 2;";
    assert_eq!(run(own, ""), "CTA barrier 3 waits for 64 threads and gets 32");
    for (number, last) in
        [("mov.u32 %r2, 3;", ""), (own, "mov.u32 %r2, 3;"), ("add.u32 %r2, %r1, 3;", "add.u32 %r2, %r2, 1;")]
    {
        let title = run(number, last);
        assert!(title.starts_with("CTA barrier 0 waits for 64 threads and gets 32"), "{number} {last}: {title}");
    }
}

/// Bytes that `mbarrier.complete_tx` completes are counted beside those of copies: too few of them, and too many.
#[test]
fn bytes_that_nobody_copies_are_told() {
    let told = |completed: u32| {
        let text = format!(
            ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n.shared .align 8 .b64 bar;\n.reg .pred %p<2>;\n.reg .b32 %r0;\n\
             mov.u32 %r0, %tid.x;\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 mbarrier.init.shared.b64 [bar], 2;\nbar.sync 0;\n\
             @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n@%p0 mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], {completed};\n\
             @%p0 mbarrier.arrive.shared.b64 _, [bar];\nW: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n@!%p1 bra W;\nret;\n}}\n"
        );
        let launch =
            Launch { entry: "k".into(), grid: [1; 3], cluster: [1; 3], block: [32, 1, 1], ..Default::default() };
        let report = emulator::run(&load(&text), &launch, &Options::default());
        report.findings.first().map(|d| (d.title.clone(), d.help.clone()))
    };
    assert_eq!(told(64), None);
    for completed in [16, 128] {
        let (title, help) = told(completed).expect("it hangs");
        let what =
            format!("64 bytes are announced, copies bring none, and mbarrier.complete_tx completes {completed} bytes");
        assert_eq!(title, format!("`bar` never completes phase 0: {what}"));
        assert!(help.starts_with(&format!("Announce {completed} bytes")), "{help}");
    }
}

/// Two warps, of which nobody passes the guard of the initialisation: it asks for a warp that the CTA does not have.
#[test]
fn an_initialisation_that_nobody_executes_is_told_with_its_guard() {
    let kernel = |warp: u32| {
        format!(
            ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n\
             .shared .align 8 .b64 bar;\n.reg .pred %p<4>;\n.reg .b32 %r<4>;\n\
             mov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 5;\nsetp.ne.u32 %p0, %r1, {warp};\n@%p0 bra MADE;\n\
             elect.sync _|%p1, 0xffffffff;\n@%p1 mbarrier.init.shared::cta.b64 [bar], 1;\nMADE:\nbar.sync 0;\n\
             setp.eq.u32 %p2, %r0, 0;\n@%p2 mbarrier.arrive.shared::cta.b64 _, [bar];\n\
             WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\nret;\n}}\n"
        )
    };
    let run = |warp: u32| common::run(&load(&kernel(warp)), &common::launch("k", 64, vec![]), None, 100_000);
    assert!(common::codes(&run(1)).is_empty(), "{}", common::rendered(&run(1)));
    let report = run(4);
    let shown = common::rendered(&report);
    assert_eq!(common::codes(&report), ["mbarrier-not-initialised"], "{shown}");
    let said = report.findings[0].labels.iter().map(|label| (label.place.text.as_str(), label.text.as_str()));
    let said: Vec<(&str, &str)> = said.collect();
    let told = |line: &str, words: &str| said.iter().any(|(text, label)| text.contains(line) && label.contains(words));
    assert!(told("mbarrier.init", "this would initialise one, but was never executed"), "{shown}");
    assert!(told("bra MADE", "none goes on to it: `setp.ne.u32 %p0, %r1, 4` compares 0 to 1 with 4"), "{shown}");
}

/// A CTA that holds 512 columns asks for more, and nothing frees them.
#[test]
fn an_allocation_that_gets_no_columns_names_who_holds_them() {
    let kernel = |first: u32| {
        format!(
            ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n\
             .shared .align 4 .b32 slot[2];\n.reg .b32 %r<4>;\n\
             tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], {first};\n\
             tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+4], 256;\nld.shared.b32 %r1, [slot];\nld.shared.b32 %r2, [slot+4];\n\
             tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, {first};\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 256;\nret;\n}}\n"
        )
    };
    let run = |first: u32| common::run(&load(&kernel(first)), &common::launch("k", 32, vec![]), None, 100_000);
    assert!(common::codes(&run(256)).is_empty(), "{}", common::rendered(&run(256)));
    let report = run(512);
    let shown = common::rendered(&report);
    assert_eq!(common::codes(&report), ["hang"], "{shown}");
    let found = &report.findings[0];
    assert_eq!(found.title, "tcgen05.alloc waits for columns that are never freed", "{shown}");
    assert_eq!(found.labels[1].text, "512 columns are held since here", "{shown}");
}
