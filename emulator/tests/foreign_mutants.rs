//! Kernels of libraries with one thing wrong, and what must hold of every one of them, whatever the mistake is: where a run finds
//! nothing, no other schedule shows anything.
//!
//! Nobody wrote down what should be said of these mutants. What a schedule shows is the witness: another matrix, a hang or a finding
//! of a mutant that was called clean is a hole in the emulator.
//!
//! A few of each kernel run here. `FOREIGN_MUTANTS=all` runs all of them, `FOREIGN_MUTANTS=40` so many of each, `FOREIGN_SEEDS=12` more
//! schedules; `docs/figures.md` says what came of that. `FOREIGN_KERNELS` names another folder of kernels and launches, and
//! `FOREIGN_KINDS=guard,address` only mutants that are told with one of these words.

#[path = "common/random.rs"]
mod random;

use emulator::{Deadlock, Launch, Options, Report};
use random::Random;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Mutants of each kernel, and schedules of each mutant, unless the environment says otherwise.
const FEW: usize = 3;
const SEEDS: u64 = 2;

/// Instructions that are changed: those that order something, and those whose work must be ordered.
const CHANGED: &[&str] = &[
    "bar.sync",
    "bar.warp.sync",
    "barrier.",
    "clusterlaunchcontrol",
    "cp.async",
    "elect.sync",
    "fence",
    "griddepcontrol",
    "mbarrier.",
    "setmaxnreg",
    "st.shared",
    "tcgen05.alloc",
    "tcgen05.commit",
    "tcgen05.cp",
    "tcgen05.dealloc",
    "tcgen05.mma",
    "tcgen05.relinquish",
    "tcgen05.st",
    "tcgen05.wait",
    "wgmma.",
];

/// A kernel with one thing wrong: what, and its text.
struct Mutant {
    what: String,
    text: String,
}

/// The decimal numbers of a statement: not parts of names, registers or opcodes.
fn numbers(code: &str) -> Vec<std::ops::Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_%.$".contains(c);
    let mut found = Vec::new();
    let mut start = 0;
    for (end, _) in code.char_indices().filter(|&(_, c)| !is_part(c)).chain([(code.len(), ' ')]) {
        let word = &code[start.min(end)..end];
        if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
            found.push(start..end);
        }
        start = end + 1;
    }
    found
}

/// Words of an opcode, and weaker ones in their place.
const WEAKER: &[(&str, &str)] = &[
    (".acquire", ".relaxed"),
    (".release", ".relaxed"),
    (".acq_rel", ".acquire"),
    (".cluster.", ".cta."),
    ("::cluster::all", ""),
    (".gpu", ".cta"),
    ("cta_group::2", "cta_group::1"),
    (".read", ""),
    (".async.shared::cta", ".async.global"),
    ("after_thread_sync", "before_thread_sync"),
    ("wait::ld", "wait::st"),
];

/// The address of a statement.
fn address(code: &str) -> Option<&str> {
    let start = code.find('[')?;
    Some(&code[start..=start + code[start..].find(']')?])
}

/// The statement left out, twice, behind the next one, and each of its numbers more and less; of a wait, one that always passes. With the other guard
/// or none, with the address of the next statement of the same opcode, and with each word of its opcode weaker.
fn mutants(text: &str) -> Vec<Mutant> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default().trim();
        if code.starts_with('.') || !code.ends_with(';') || !CHANGED.iter().any(|opcode| code.contains(opcode)) {
            continue;
        }
        let mut add = |what: &str, changed: &str, next: Option<&str>| {
            let mut lines = lines.clone();
            lines[n] = changed;
            if let Some(next) = next {
                lines[n + 1] = next;
            }
            all.push(Mutant { what: format!("line {}, {what}: {code}", n + 1), text: lines.join("\n") });
        };
        let waits = code.contains("try_wait") || code.contains("test_wait");
        if waits {
            let answer = code.split("b64 ").nth(1).and_then(|rest| rest.split([',', '|']).next());
            if let Some(answer) = answer.filter(|_| !code.contains('{')) {
                add("passes at once", &format!("setp.eq.u32 {answer}, 0, 0;"), None);
            }
        } else if !code.contains("elect") {
            add("left out", "", None);
            add("twice", &format!("{line} {line}"), None);
            let below = lines.get(n + 1).map_or("", |line| line.trim());
            if below.ends_with(';') && !below.starts_with('.') && ![*line, below].iter().any(|l| l.contains(['{', '}']))
            {
                add("behind the next", lines[n + 1], Some(line));
            }
        }
        if let Some(guarded) = code.strip_prefix('@') {
            let (guard, rest) = guarded.split_once(' ').unwrap_or((guarded, ""));
            add("without its guard", rest, None);
            let other = guard.strip_prefix('!').map_or(format!("@!{guard} {rest}"), |guard| format!("@{guard} {rest}"));
            add("with the other guard", &other, None);
        }
        let opcode = |code: &str| code.split([' ', '\t']).find(|word| word.contains('.')).map(str::to_string);
        let own = address(code);
        let theirs = lines[n + 1..].iter().filter(|line| opcode(line.trim()) == opcode(code));
        if let (Some(own), Some(theirs)) = (own, theirs.filter_map(|line| address(line)).find(|&it| Some(it) != own)) {
            add("at another address", &code.replacen(own, theirs, 1), None);
        }
        for (word, weaker) in WEAKER.iter().filter(|(word, _)| code.contains(word)) {
            add(&format!("`{weaker}` for `{word}`"), &code.replacen(word, weaker, 1), None);
        }
        for range in numbers(code) {
            let Ok(value) = code[range.clone()].parse::<u64>() else { continue };
            let step = if code.contains("expect_tx") {
                128
            } else if code.contains("st.shared") {
                16
            } else {
                1
            };
            for other in [Some(value + step), value.checked_sub(step)].into_iter().flatten() {
                add(
                    &format!("{other} for {value}"),
                    &format!("{}{other}{}", &code[..range.start], &code[range.end..]),
                    None,
                );
            }
        }
    }
    all
}

/// How a mutant ended, and why that must not be, if so.
fn judge(text: &str, launch: &Launch, right: &Report, seeds: u64) -> (&'static str, Option<String>) {
    let Ok(program) = emulator::load(text) else { return ("refused", None) };
    let run = |seed| {
        let threads = Some(std::num::NonZeroUsize::MIN);
        emulator::run(&program, launch, &Options { seed, threads, max_instructions: 20_000_000, ..Default::default() })
    };
    let same = |a: &Report, b: &Report| a.buffers.iter().zip(&b.buffers).all(|(a, b)| a.bytes == b.bytes);
    let first = run(None);
    if let Some(finding) = first.findings.first() {
        return (if finding.code == "hang" { "hang" } else { "finding" }, None);
    }
    if !first.incomplete.is_empty() {
        return ("incomplete", None);
    }
    if first.deadlock == Deadlock::Possible {
        return ("hole", Some("it can hang, and no finding says so".into()));
    }
    for seed in 0..seeds {
        let other = run(Some(seed));
        if let Some(finding) = other.findings.first() {
            // Where time decides what warps do, or an arrival may count for another phase, the first run says so, and speaks of its own paths only; but what
            // it proves holds of all.
            let refuted = finding.code == "hang" && first.deadlock == Deadlock::Impossible;
            let said = !first.timing.is_empty() || first.notes.iter().any(|note| note.code == "early-arrival");
            return if !said || refuted {
                ("hole", Some(format!("seed {seed}: {finding:#?}")))
            } else {
                ("on other paths", None)
            };
        }
        if !same(&other, &first) {
            return ("hole", Some(format!("seed {seed}: other results, and no finding")));
        }
    }
    (if same(&first, right) { "the same" } else { "wrong, and the same on each schedule" }, None)
}

fn from_environment<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn what_is_called_clean_is_so_on_every_schedule() {
    let asked = std::env::var_os("FOREIGN_KERNELS");
    let enough = if asked.is_some() { 0 } else { 30 };
    let folder =
        asked.map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/libraries")), PathBuf::from);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).flatten();
    let mut kernels: Vec<PathBuf> =
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|ending| ending == "ptx")).collect();
    kernels.sort();
    let all = std::env::var("FOREIGN_MUTANTS").is_ok_and(|which| which == "all");
    let few = from_environment("FOREIGN_MUTANTS").unwrap_or(FEW);
    let seeds = from_environment("FOREIGN_SEEDS").unwrap_or(SEEDS);
    let threads = from_environment("FOREIGN_THREADS").unwrap_or(2);
    let mut random = Random(7);
    let (mut counts, mut holes, mut clean) = (BTreeMap::<&str, usize>::new(), Vec::new(), 0);
    for kernel in kernels {
        let read = |ending: &str| {
            let path = kernel.with_extension(ending);
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let (text, launch): (_, Launch) = (read("ptx"), serde_json::from_str(&read("json")).expect("a launch"));
        let right = emulator::run(&emulator::load(&text).expect("it loads"), &launch, &Options::default());
        if !right.is_clean() {
            // Something is wrong with it as it is, and `libraries.rs` knows what: its mutants tell nothing new.
            continue;
        }
        let mut mutants = mutants(&text);
        if mutants.len() <= 40 {
            // Hardly anything is ordered in it.
            println!("{}: {} mutants, left out", kernel.display(), mutants.len());
            continue;
        }
        clean += 1;
        if let Ok(kinds) = std::env::var("FOREIGN_KINDS") {
            mutants.retain(|mutant| kinds.split(',').any(|kind| mutant.what.contains(kind)));
        }
        while !all && mutants.len() > few {
            mutants.swap_remove(random.below(mutants.len()));
        }
        let (next, ended) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let verdict = judge(&mutant.text, &launch, &right, seeds);
                        ended.lock().expect("no thread panics").push((verdict, &mutant.what));
                    }
                });
            }
        });
        for ((verdict, why), what) in ended.into_inner().expect("no thread panics") {
            *counts.entry(verdict).or_default() += 1;
            holes.extend(why.map(|why| format!("{}, {what}: {why}", kernel.display())));
        }
    }
    println!("{} mutants of {clean} kernels: {counts:?}", counts.values().sum::<usize>());
    assert!(clean > enough, "{clean} kernels are clean");
    assert!(holes.is_empty(), "{} holes:\n{}", holes.len(), holes.join("\n"));
}

#[test]
fn mutants_are_what_they_say() {
    let text = "tcgen05.commit.b64 [%r1];\nmbarrier.try_wait.parity.shared.b64 P1, [%r1], %r2;\nmbarrier.init.shared.b64 [%r1+16], 32;\nadd.u32 %r1, %r1, 3;";
    let made: Vec<String> = mutants(text).into_iter().map(|mutant| mutant.what).collect();
    let of = |line: usize| made.iter().filter(|what| what.starts_with(&format!("line {line},"))).count();
    assert_eq!([of(1), of(2), of(3), of(4)], [3, 1, 7, 0], "{made:#?}");
    let text = "@%p1 fence.acq_rel.cluster;\nmbarrier.inval.b64 [%r1];\nmbarrier.inval.b64 [%r2+8];\n";
    let made = mutants(text);
    let code = |what: &str| made.iter().find(|mutant| mutant.what.contains(what)).map(|mutant| mutant.text.lines());
    let line = |what: &str, n: usize| code(what).and_then(|mut lines| lines.nth(n)).unwrap_or("none");
    assert_eq!(line("without its guard", 0), "fence.acq_rel.cluster;");
    assert_eq!(line("with the other guard", 0), "@!%p1 fence.acq_rel.cluster;");
    assert_eq!(line("`.acquire` for `.acq_rel`", 0), "@%p1 fence.acquire.cluster;");
    assert_eq!(line("at another address", 1), "mbarrier.inval.b64 [%r2+8];");
}
