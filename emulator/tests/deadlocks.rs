//! Kernels whose barrier operations are broken, one at a time: where some schedule hangs, no other schedule's run may say that it cannot.

#[path = "gluon/case.rs"]
mod case;
mod common;

use case::case;
use emulator::{Deadlock, Options, Report};

/// Lines that let warps and engines wait for each other.
const OPERATIONS: &[&str] = &["mbarrier.", "bar.sync", "barrier.", "tcgen05.commit", "cp.async.bulk.tensor"];

/// The text with one change, and what that was.
fn mutants(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or("").trim();
        if !OPERATIONS.iter().any(|op| code.contains(op)) || !code.ends_with(';') {
            continue;
        }
        let mut add = |what: &str, new: &[String]| {
            let text = lines[..n]
                .iter()
                .map(|l| l.to_string())
                .chain(new.iter().cloned())
                .chain(lines[n + 1..].iter().map(|l| l.to_string()));
            all.push((format!("line {}: {what}: {code}", n + 1), text.collect::<Vec<_>>().join("\n")));
        };
        let waits = code.contains("try_wait") || code.contains("test_wait");
        if !waits {
            add("removed", &[]);
            add("twice", &[line.to_string(), line.to_string()]);
        }
        if waits && let Some(p) = code.split("parity").nth(1).and_then(|rest| rest.split_whitespace().nth(1)) {
            let p = p.trim_end_matches(',');
            add("passes at once", &[format!("setp.eq.u32 {p}, 0, 0;")]);
            if let Some((head, tail)) = line.rsplit_once(',') {
                let parity = tail.trim().trim_end_matches(';');
                let flipped = format!("{{ .reg .b32 %flipped; xor.b32 %flipped, {parity}, 1; {head}, %flipped; }}");
                add("other parity", &[flipped]);
            }
        }
        if code.contains(".init")
            && let Some((head, tail)) = line.rsplit_once(',')
        {
            let count: u32 = tail.trim().trim_end_matches(';').parse().unwrap_or(1);
            add("one more arrival", &[format!("{head}, {};", count + 1)]);
            if count > 1 {
                add("one arrival less", &[format!("{head}, {};", count - 1)]);
            }
        }
    }
    all
}

fn hangs(report: &Report) -> bool {
    report.findings.iter().any(|f| f.code == "hang")
}

/// Adversarial schedules of each mutant: a few, or as many as `DEADLOCK_SEEDS` says.
fn seeds() -> u64 {
    std::env::var("DEADLOCK_SEEDS").map_or(2, |n| n.parse().expect("DEADLOCK_SEEDS is a number"))
}

/// Of all mutants that come to their end on the default schedule: none that hangs on another is said to be free of that, and of at
/// most one in twenty nothing is said.
#[test]
fn no_mutant_hangs_that_was_proved() {
    let (mut all, mut unsettled, mut refuted) = (0, 0, 0);
    for name in ["ring3", "multicast", "ws_persistent", "attention_roles"] {
        let mut case = case(name, None);
        case.fill_with_small_integers(1);
        for (what, text) in mutants(&case.text) {
            all += 1;
            let Ok(program) = emulator::load(&text) else { continue };
            let run = |seed| {
                let options = Options { seed, max_instructions: 3_000_000, ..Default::default() };
                emulator::run(&program, &case.launch, &options)
            };
            let report = run(None);
            match report.deadlock {
                Deadlock::NotJudged => assert!(!report.completed || hangs(&report), "{name}, {what}: not judged"),
                Deadlock::Possible => refuted += 1,
                Deadlock::NotProved(_) => unsettled += 1,
                Deadlock::Impossible => {
                    let hang = (0..seeds()).find(|&seed| hangs(&run(Some(seed))));
                    assert_eq!(hang, None, "{name}, {what}: said never to hang, but hangs with this seed");
                }
            }
        }
    }
    println!("{all} mutants: {refuted} hang or can, of {unsettled} nothing is known");
    assert!(unsettled * 20 <= all, "{unsettled} of {all} mutants are neither proved nor refuted");
    assert!(
        refuted * 5 >= all,
        "only {refuted} of {all} mutants hang: do the mutations still find the kernels' barriers?"
    );
}

/// What `volatile` in C++ makes of a word in shared memory, as of the address that `tcgen05.alloc` wrote: where no strong store writes there, it is no
/// flag, and what it says depends on no schedule. Where one does, it is one.
#[test]
fn volatile_words_are_flags_only_where_strong_stores_write() {
    let run = |store: &str| {
        let text = format!(
            ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.shared .align 4 .b32 word;\n\
             .reg .pred %first;\n.reg .b32 %tid, %v;\n.reg .b64 %out, %own;\nmov.u32 %tid, %tid.x;\nsetp.eq.u32 %first, %tid, 0;\n\
             @%first st.shared.u32 [word], 7;\nbar.sync 0;\n{store}\nld.volatile.shared.u32 %v, [word];\n\
             ld.param.u64 %out, [out];\nmul.wide.u32 %own, %tid, 4;\nadd.s64 %own, %own, %out;\nst.global.u32 [%own], %v;\nret;\n}}\n"
        );
        common::run(&common::load(&text), &common::launch("k", 64, vec![common::zeroes("out", 256)]), None, 10_000)
    };
    let plain = run("");
    assert!(plain.is_clean() && plain.timing.is_empty(), "{plain:#?}");
    assert_eq!(plain.deadlock, Deadlock::Impossible);
    let strong = run("@%first st.volatile.shared.u32 [word], 8;");
    assert!(strong.is_clean() && strong.timing.len() == 1, "{strong:#?}");
    assert!(matches!(strong.deadlock, Deadlock::NotProved(_)), "{:?}", strong.deadlock);
    // A plain store that nothing orders is a race, whatever the load is.
    let race = run("@%first st.shared.u32 [word], 8;");
    assert_eq!(common::codes(&race), ["race-shared"], "{:#?}", race.findings);
}
