//! What to try where a phase may complete before a wait has seen the one before: the cause that the run shows, or both that it may have. And phases that
//! another interleaving completes by arrivals that are meant for later ones.

mod common;

use common::{launch, load, rendered, zeroes};
use emulator::Diagnostic;

/// Three warps; `bar` takes one arrival a phase, and so do the two mbarriers of `ring`. `%r1` is the warp, `%p1` the first thread of each.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .shared .align 1024 .b8 tile[64];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 full[2];\n.shared .align 8 .b64 free[2];\n\
         .reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<8>;\n\
         ld.param.u64 %rd0, [out];\nmov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 5;\nsetp.eq.u32 %p0, %r0, 0;\n\
         @!%p0 bra MADE;\nmbarrier.init.shared.b64 [bar], 1;\n\
         mbarrier.init.shared.b64 [full], 1;\nmbarrier.init.shared.b64 [full+8], 1;\n\
         mbarrier.init.shared.b64 [free], 1;\nmbarrier.init.shared.b64 [free+8], 1;\nfence.mbarrier_init.release.cluster;\n\
         MADE:\nbar.sync 0;\nand.b32 %r2, %r0, 31;\nsetp.eq.u32 %p1, %r2, 0;\nmov.u32 %r3, 0;\n\
         setp.eq.u32 %p2, %r1, 1;\n@%p2 bra WARP_1;\nsetp.eq.u32 %p2, %r1, 2;\n@%p2 bra WARP_2;\n\
         {body}\nDONE:\nret;\n}}\n"
    )
}

/// What is said of a kernel's phases: by the first of these findings.
#[track_caller]
fn overtaken(body: &str) -> Diagnostic {
    let program = load(&kernel(body));
    let report = common::run(&program, &launch("k", 96, vec![zeroes("out", 64)]), None, 100_000);
    let found = report.findings.iter().find(|d| d.code == "phase-overtaken");
    found.unwrap_or_else(|| panic!("no `phase-overtaken`:\n{}", rendered(&report))).clone()
}

#[track_caller]
fn advises(body: &str, help: &str) {
    assert_eq!(overtaken(body).help, help);
}

/// The first warp waits for these parities of `bar`, one after the other.
fn waits(parities: &[u32]) -> String {
    let wait = |(n, parity): (usize, &u32)| {
        format!("WAIT_{n}:\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], {parity};\n@!%p3 bra WAIT_{n};\n")
    };
    parities.iter().enumerate().map(wait).collect::<String>() + "bra DONE;\n"
}

/// A thread does this so many times, with time in between.
fn repeats(times: u32, statement: &str) -> String {
    format!(
        "@!%p1 bra DONE;\nREPEAT:\nnanosleep.u32 4000;\n{statement}\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p4, %r3, {times};\n@%p4 bra REPEAT;\nbra DONE;\n"
    )
}

const ARRIVE: &str = "mbarrier.arrive.shared.b64 _, [bar];";
const COMMIT: &str = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];";

const EITHER_PARITY_OR_ARRIVAL: &str = "If the wait is for what this arrival tells, let it wait for parity 0; if it is for what is free at the \
                                        beginning, let the arrival come only behind it.";

/// One wait, one arrival: the wait may be for either.
#[test]
fn a_wait_for_parity_1_may_be_meant_for_what_is_free() {
    advises(&format!("{}WARP_1:\n{}WARP_2:\nbra DONE;", waits(&[1]), repeats(1, ARRIVE)), EITHER_PARITY_OR_ARRIVAL);
}

/// Two phases come, whatever the waiter does: it passes in front of both or behind both, and nothing depends on which. It does where the last phase is
/// an even one, where the second phase waits for it, and where it reads what the arrivals tell of.
#[test]
fn a_wait_for_parity_1_that_passes_whenever_it_comes_is_no_mistake() {
    let codes = |first: &str, second: &str| {
        let text = kernel(&format!("{first}WARP_1:\n{second}WARP_2:\nbra DONE;"));
        let report = common::run(&load(&text), &launch("k", 96, vec![zeroes("out", 64)]), None, 100_000);
        report.findings.iter().map(|d| d.code).collect::<Vec<_>>()
    };
    let waits_and = |then: &str| waits(&[1]).replace("bra DONE;", &format!("{then}\nbra DONE;"));
    assert_eq!(codes(&waits(&[1]), &repeats(2, ARRIVE)), [""; 0]);
    assert_eq!(codes(&format!("nanosleep.u32 20000;\n{}", waits(&[1])), &repeats(2, ARRIVE)), [""; 0]);
    assert_eq!(codes(&waits(&[1]), &repeats(3, ARRIVE)), ["phase-overtaken"]);
    let stores = repeats(2, &format!("st.shared.u32 [tile], %r3;\n{ARRIVE}"));
    assert!(codes(&waits_and("ld.shared.u32 %r4, [tile];"), &stores).contains(&"phase-overtaken"));
    // The second phase comes only behind the wait: who comes late waits for itself.
    let second = format!(
        "@!%p1 bra DONE;\nnanosleep.u32 4000;\n{ARRIVE}\nFREE:\nmbarrier.try_wait.parity.shared.b64 %p3, [free], 0;\n@!%p3 bra FREE;\n{ARRIVE}\nbra DONE;\n"
    );
    assert_eq!(codes(&waits_and("@%p1 mbarrier.arrive.shared.b64 _, [free];"), &second), ["phase-overtaken"]);
}

/// A relaxed arrival at the cluster barrier says of what comes before it that it is over, and nothing of a wait behind it.
#[test]
fn a_barrier_in_front_of_the_wait_says_nothing_of_it() {
    let meet = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n";
    let body = format!("{meet}{}WARP_1:\n{meet}{}WARP_2:\n{meet}bra DONE;", waits(&[1]), repeats(1, ARRIVE));
    advises(&body, EITHER_PARITY_OR_ARRIVAL);
}

/// Bytes are waited for when they are there.
#[test]
fn a_phase_of_bytes_has_parity_0() {
    let copy = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n\
                cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd0], 64, [bar];";
    advises(
        &format!("{}WARP_1:\n{}WARP_2:\nbra DONE;", waits(&[1]), repeats(1, copy)),
        "Let this wait be for parity 0: phase 0 is complete when its bytes are there, and parity 1 lets a wait pass before.",
    );
}

/// What somebody else waits for is not free at the beginning.
#[test]
fn a_phase_that_another_warp_waits_for_first_has_parity_0() {
    let other = "WARP_2:\nOTHER:\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra OTHER;\nbra DONE;";
    advises(
        &format!("{}WARP_1:\n{}{other}", waits(&[1]), repeats(1, ARRIVE)),
        "Let this wait be for parity 0, as that of warp 2 is: parity 1 lets it pass before anything has arrived.",
    );
}

/// A warp arrives for phase 0 and for phase 1, and waits for the second alone, as the kernel of FlashInfer's TGV for pairs of CTAs does with the
/// mbarrier behind which tensor memory is freed. Both phases are complete when it looks: the arrival that is shown is the one of phase 0.
#[test]
fn who_arrives_for_two_phases_waits_for_the_first_too() {
    let arrive = "@%p1 mbarrier.arrive.shared.b64 _, [full];";
    let wait = |n: u32, parity: u32| {
        format!("WAIT_{n}:\nmbarrier.try_wait.parity.shared.b64 %p3, [full], {parity};\n@!%p3 bra WAIT_{n};\n")
    };
    let run = |first: &str| {
        let own = format!("{arrive}\n{first}\n{arrive}\nnanosleep.u32 4000;\n{}", wait(1, 1));
        let other = format!("nanosleep.u32 1000;\n{arrive} // first\n{}{arrive}", wait(2, 0));
        let text = kernel(&format!("{own}bra DONE;\nWARP_1:\n{other}\nbra DONE;\nWARP_2:\nbra DONE;"));
        let text = text.replace("init.shared.b64 [full], 1;", "init.shared.b64 [full], 2;");
        let report = common::run(&load(&text), &launch("k", 96, vec![zeroes("out", 64)]), None, 100_000);
        (text, report)
    };
    let (_, right) = run(&wait(0, 0));
    assert!(right.findings.is_empty(), "{}", rendered(&right));
    let (text, wrong) = run("nanosleep.u32 2000;");
    let found = wrong.findings.iter().find(|d| d.code == "phase-overtaken").expect("it is found");
    let line = text.lines().nth(found.labels[0].place.line as usize - 1).unwrap_or_default();
    assert!(line.ends_with("// first"), "{line}\n{}", rendered(&wrong));
    assert_eq!(
        found.help,
        "Let warp 0 wait for parity 0, too, before it arrives for the second time: this wait is for the phase behind that, and parity 1 lets it \
         pass before anything has arrived."
    );
}

/// What a commit was issued behind came before it arrives: who has waited for it waits for phase 1 of an mbarrier whose phase 0 the issuer had
/// seen, as the kernel of FlashInfer's gated delta net does with its state. Who has not waited for it may come earlier.
#[test]
fn a_phase_that_came_before_a_commit_is_not_waited_for_again() {
    let run = |committed: &str| {
        let wait = |n: u32, at: &str, parity: u32| {
            format!("WAIT_{n}:\nmbarrier.try_wait.parity.shared.b64 %p3, [{at}], {parity};\n@!%p3 bra WAIT_{n};\n")
        };
        let text = kernel(&format!(
            "@!%p1 bra DONE;\n{ARRIVE}\n{}{ARRIVE}\nbra DONE;\n\
             WARP_1:\n@!%p1 bra DONE;\n{}{}\nbra DONE;\n\
             WARP_2:\n@!%p1 bra DONE;\n{committed}mbarrier.arrive.shared.b64 _, [free];\n{}bra DONE;",
            wait(0, "free", 0),
            wait(1, "bar", 0),
            COMMIT.replace("[bar]", "[full]"),
            wait(2, "bar", 1),
        ));
        let report = common::run(&load(&text), &launch("k", 96, vec![zeroes("out", 64)]), None, 100_000);
        report.findings.iter().map(|d| d.code).collect::<Vec<_>>()
    };
    let wait = "COMMITTED:\nmbarrier.try_wait.parity.shared.b64 %p4, [full], 0;\n@!%p4 bra COMMITTED;\n";
    assert_eq!(run(wait), [""; 0]);
    assert!(run("nanosleep.u32 4000;\n").contains(&"phase-overtaken"));
}

/// Commits of one thread arrive in order: who has waited for a later one knows of the phases that those before it completed alone, as in the
/// attention of TLX, whose epilogue waits for the last product only. Of what a commit behind it completed, or a thread, it knows nothing.
#[test]
fn phases_that_commits_completed_are_not_waited_for_again() {
    let wait = |n: u32, at: &str, parity: u32| {
        format!("WAIT_{n}:\nmbarrier.try_wait.parity.shared.b64 %p3, [{at}], {parity};\n@!%p3 bra WAIT_{n};\n")
    };
    let run = |first: &str, second: &str, third: &str| {
        let [first, second, third] = [first, second, third]
            .map(|at| if at.is_empty() { String::new() } else { COMMIT.replace("[bar]", &format!("[{at}]")) });
        let issues = format!("@!%p1 bra DONE;\n{first}\n{second}\n{}{third}\nbra DONE;", wait(0, "free", 0));
        let knows =
            format!("{}@%p1 mbarrier.arrive.shared.b64 _, [free];\n{}bra DONE;", wait(1, "full", 0), wait(2, "bar", 1));
        let other = if first.is_empty() { "@%p1 mbarrier.arrive.shared.b64 _, [bar];\n" } else { "" };
        let text = kernel(&format!("{issues}\nWARP_1:\n{knows}\nWARP_2:\n{other}bra DONE;"));
        let report = common::run(&load(&text), &launch("k", 96, vec![zeroes("out", 64)]), None, 100_000);
        (report.findings.iter().map(|d| d.code).collect::<Vec<_>>(), report.deadlock == emulator::Deadlock::Impossible)
    };
    assert_eq!(run("bar", "full", "bar"), (vec![], true));
    assert_ne!(run("full", "bar", "bar"), (vec![], true));
    assert_ne!(run("", "full", "bar"), (vec![], true));
}

/// A ring of two stages, of which the consumer frees the other one each time. Where phase 0 comes behind this wait, it is for what is free.
#[test]
fn a_stage_that_is_freed_too_early_is_freed_behind_the_wait() {
    let ring = |freed: &str| {
        format!(
            "@!%p1 bra DONE;\nFILL:\nshl.b32 %r4, %r3, 3;\nmov.u32 %r5, free;\nadd.u32 %r5, %r5, %r4;\nmov.u32 %r6, full;\nadd.u32 %r6, %r6, %r4;\n\
             FREE:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r5], 1;\n@!%p3 bra FREE;\n\
             mbarrier.arrive.shared.b64 _, [%r6];\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p4, %r3, 2;\n@%p4 bra FILL;\nbra DONE;\n\
             WARP_1:\n@!%p1 bra DONE;\nREAD:\nshl.b32 %r4, %r3, 3;\nmov.u32 %r5, free;\n{freed}\nadd.u32 %r5, %r5, %r7;\nmov.u32 %r6, full;\n\
             add.u32 %r6, %r6, %r4;\n\
             FULL:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r6], 0;\n@!%p3 bra FULL;\nnanosleep.u32 4000;\n\
             mbarrier.arrive.shared.b64 _, [%r5];\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p4, %r3, 2;\n@%p4 bra READ;\nbra DONE;\nWARP_2:\nbra DONE;"
        )
    };
    let right = load(&kernel(&ring("mov.u32 %r7, %r4;")));
    let report = common::run(&right, &launch("k", 96, vec![zeroes("out", 64)]), None, 100_000);
    assert!(report.findings.is_empty(), "the ring itself:\n{}", rendered(&report));
    let found = overtaken(&ring("xor.b32 %r7, %r4, 8;"));
    let help = "Let this arrival come only behind the wait, which is for what is free at the beginning: for `free` at byte 0, the arrival does.";
    assert_eq!(found.help, help, "{}", found.title);
}

/// Two warps arrive for each phase that is waited for.
#[test]
fn more_arrivals_than_the_mbarrier_is_made_for_are_counted() {
    let both = "nanosleep.u32 4000;\n@%p1 mbarrier.arrive.shared.b64 _, [bar];\nbar.sync 1, 96;";
    let warps = format!(
        "ROUND:\nWAIT:\nand.b32 %r4, %r3, 1;\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], %r4;\n@!%p3 bra WAIT;\nbar.sync 1, 96;\n\
         add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p4, %r3, 4;\n@%p4 bra ROUND;\nbra DONE;\n\
         WARP_2:\nnanosleep.u32 2000;\nWARP_1:\nARRIVE:\n{both}\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p4, %r3, 4;\n@%p4 bra ARRIVE;"
    );
    advises(
        &warps,
        "Initialise `bar` for as many arrivals as come in one phase: 2 arrive in a round, and it counts 1. If it counts what it should, let no more arrive.",
    );
}

/// Each phase is waited for, but the thread that arrives does not know whether.
#[test]
fn an_arrival_that_comes_too_early_waits() {
    advises(
        &format!("{}WARP_1:\n{}WARP_2:\nbra DONE;", waits(&[0, 1, 0, 1]), repeats(4, ARRIVE)),
        "Let this arrival come only after all have seen the phase before.",
    );
}

/// Two phases and one wait: the second may be one that nobody needs to wait for, or a second arrival of the first.
#[test]
fn one_wait_for_two_phases_may_be_either() {
    advises(
        &format!("{}WARP_1:\n{}WARP_2:\nbra DONE;", waits(&[0]), repeats(2, ARRIVE)),
        "Let this arrival come only after all have seen the phase before; or, if more than 1 arrival belong to one phase, initialise the mbarrier \
         for as many.",
    );
}

#[test]
fn commits_are_too_many_or_too_early() {
    let commits =
        |times, parities: &[u32]| format!("{}WARP_1:\n{}WARP_2:\nbra DONE;", waits(parities), repeats(times, COMMIT));
    advises(&commits(4, &[0, 1, 0, 1]), "Let the next arrival come only after all have waited.");
    advises(
        &commits(3, &[0]),
        "Let one arrival complete one phase for each wait (a single tcgen05.commit, after the last MMA): 3 phases are complete, and this wait is \
         for 1.",
    );
    advises(
        &commits(2, &[0]),
        "Let one arrival complete one phase for each wait (a single tcgen05.commit, after the last MMA), or let the next arrival come only after \
         all have waited.",
    );
}

/// A wait at one statement, for `bar` or for one mbarrier of `full` after the other, that asks for parity 0 each time.
fn never_goes_on(address: &str, arrivals: &str) -> String {
    format!(
        "@!%p1 bra DONE;\nROUND:\nand.b32 %r4, %r3, 1;\nshl.b32 %r4, %r4, 3;\n{address}\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;\n@!%p3 bra WAIT;\n\
         add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p4, %r3, 4;\n@%p4 bra ROUND;\nbra DONE;\n\
         WARP_1:\n{}WARP_2:\nbra DONE;",
        repeats(2, &format!("{arrivals}\nnanosleep.u32 20000;"))
    )
}

/// In a ring, each stage has an mbarrier of its own already.
#[test]
fn a_parity_that_does_not_go_on_is_not_told_of_stages_that_share() {
    let shared = overtaken(&never_goes_on("mov.u32 %r5, bar;", ARRIVE));
    let one = |name: &str| {
        format!(
            "Let the parity of this wait for {name} go on with each phase: it asks for one parity twice running, and passes the second time on \
             the phase that it has seen."
        )
    };
    assert_eq!(shared.help, one("`bar`") + " If it is for two stages in turn, give each an mbarrier of its own.");
    let ring = overtaken(&never_goes_on(
        "mov.u32 %r5, full;\nadd.u32 %r5, %r5, %r4;",
        "mbarrier.arrive.shared.b64 _, [full];\nmbarrier.arrive.shared.b64 _, [full+8];",
    ));
    assert!([0, 8].iter().any(|byte| ring.help == one(&format!("`full` at byte {byte}"))), "{}", ring.help);
}

/// Two parts of a warp that has diverged come to one wait one after the other: none of them passes it twice.
#[test]
fn parts_of_a_warp_pass_a_wait_once_each() {
    let apart = |who: &str| {
        format!(
            "{who}\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\n\
             setp.lt.u32 %p5, %r3, %r6;\nadd.u32 %r3, %r3, 1;\n@%p5 bra WAIT;\nbra DONE;\n\
             LATER:\nnanosleep.u32 6000;\nbra WAIT;\n\
             WARP_1:\n{}WARP_2:\nbra DONE;",
            repeats(2, &format!("{ARRIVE}\nnanosleep.u32 20000;"))
        )
    };
    let twice = |found: &Diagnostic| found.labels.iter().any(|label| label.text.contains("twice running"));
    let halves = overtaken(&apart("mov.u32 %r6, 0;\nsetp.ge.u32 %p4, %r2, 16;\n@%p4 bra LATER;"));
    assert!(!twice(&halves), "each half waits once: {halves:#?}");
    // The half that comes first waits once more behind the other one.
    let again = overtaken(&apart("mov.u32 %r6, 1;\nsetp.ge.u32 %p4, %r2, 16;\n@%p4 mov.u32 %r6, 0;\n@%p4 bra LATER;"));
    assert!(twice(&again), "one half waits twice: {again:#?}");
    let whole = overtaken(&apart("mov.u32 %r6, 1;"));
    assert!(twice(&whole), "the warp waits twice: {whole:#?}");
}

/// The first warp waits for two others, of which one stores what it reads and the other arrives twice: the second time it counts for the next phase in
/// this run, and may count for this one. As the third arrival of one phase, or behind a wait for the phase before, it is right.
#[test]
fn an_arrival_that_may_count_for_an_earlier_phase_is_told() {
    let judged = |arrivals: u32, before_the_second: &str| {
        let text = kernel(&format!(
            "{}WARP_1:\n@!%p1 bra DONE;\n{ARRIVE}\nnanosleep.u32 8000;\n{before_the_second}{ARRIVE}\nbra DONE;\n\
             WARP_2:\n@!%p1 bra DONE;\nst.shared.b32 [tile], 7;\n{ARRIVE}\nbra DONE;\n",
            waits(&[0]).replace("bra DONE;", "ld.shared.b32 %r7, [tile];\nst.global.b32 [%rd0], %r7;\nbra DONE;")
        ))
        .replace("mbarrier.init.shared.b64 [bar], 1;", &format!("mbarrier.init.shared.b64 [bar], {arrivals};"));
        common::run(&load(&text), &launch("k", 96, vec![zeroes("out", 64)]), None, 100_000)
    };
    let early = judged(2, "");
    assert!(early.findings.is_empty(), "{}", rendered(&early));
    assert_eq!(common::notes(&early), ["early-arrival"], "{}", rendered(&early));
    let first = early.notes[0].labels.first().map(|label| label.text.as_str());
    assert_eq!(first, Some("nothing orders this behind the end of phase 0"), "{}", rendered(&early));
    let wait = "AGAIN:\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra AGAIN;\n";
    for right in [judged(3, ""), judged(2, wait)] {
        assert!(right.findings.is_empty() && common::notes(&right).is_empty(), "{}", rendered(&right));
    }
}
