//! Hand-ins that mean harm: `grader/attacks`, one file each. A header says the family, the verdict that it must get, and words that the
//! verdict must hold, and what share of the points it keeps for what is honest in it (`keeps`, in percent; none without it); what follows
//! is the kernel, or replaces passages of a solution.
//!
//! An attack that finds what it looked for panics with `escaped`, one that does not with `held`.

use grader::batch::seed;
use grader::bounds::bounded;
use grader::handin::Kernel;
use grader::sandbox::Cage;
use grader::scratch::{self, ScratchError, TimeLimits};
use grader::toolchain::Toolchain;
use grader::{Grade, Graded, table};
use harness::{BuildFailure, Built, JudgeOptions, KernelSource, Outcome, Problem, Verdict, judge};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

struct Attack {
    name: String,
    family: String,
    expect: String,
    says: String,
    /// What is honest in it, in percent of the step's points: it earns so much, and no more.
    keeps: u32,
    /// It takes long: only in the full run.
    slow: bool,
    step: u8,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

fn attacks() -> Vec<Attack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("attacks");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder").flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.iter().map(|file| attack(file)).collect()
}

fn attack(file: &Path) -> Attack {
    let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
    let text = fs::read_to_string(file).expect("a text");
    let header: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("// ")).collect();
    let value = |key: &str| {
        let key = format!("{key}: ");
        header.iter().find_map(|line| line.strip_prefix(&key)).map(str::to_string)
    };
    let mut text = match value("base") {
        None => text.clone(),
        Some(base) => {
            let mut text = fs::read_to_string(root().join(format!("solutions/src/{base}.rs"))).expect("a solution");
            for line in header.iter().filter_map(|line| line.strip_prefix("replace: ")) {
                let (old, new) = line.split_once(" => ").expect("a passage and another");
                assert_eq!(text.matches(old).count(), 1, "{name}: `{old}` must stand once in {base}");
                text = text.replace(old, new);
            }
            text
        }
    };
    // `repeat: WORD => 1000 TEXT`: what would be long to keep.
    for line in header.iter().filter_map(|line| line.strip_prefix("repeat: ")) {
        let (word, (count, with)) = line
            .split_once(" => ")
            .and_then(|(word, rest)| Some((word, rest.split_once(' ')?)))
            .expect("a word, how often, and what");
        let (kept, code) = text.split_at(text.find("\n\n").expect("a blank line behind the header"));
        assert_eq!(code.matches(word).count(), 1, "{name}: `{word}` must stand once");
        text = format!("{kept}{}", code.replace(word, &with.repeat(count.parse().expect("a number"))));
    }
    if header.contains(&"windows") {
        text = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    }
    Attack {
        expect: value("expect").unwrap_or_else(|| panic!("{name} says what to expect")),
        family: value("family").unwrap_or_else(|| panic!("{name} has a family")),
        says: value("says").unwrap_or_default(),
        keeps: value("keeps").map_or(0, |keeps| keeps.parse().expect("a number")),
        slow: header.contains(&"slow"),
        step: value("step").map_or(1, |step| step.parse().expect("a number")),
        text,
        name,
    }
}

/// A hand-in that gave no program.
struct NoKernel(BuildFailure);

impl KernelSource for NoKernel {
    fn build(&self, _: &Problem, _: u32) -> Result<Built, BuildFailure> {
        Err(self.0.clone())
    }
}

/// What came of a hand-in, by name.
fn named(verdict: &Verdict) -> String {
    if let Some(failure) = &verdict.build_failure {
        let names = [
            ("it does not compile", "does-not-compile"),
            ("compiling it took longer", "compiling-too-long"),
            ("building the kernel for", "emit-too-long"),
            ("left no answer", "no-answer"),
            ("the program that builds the kernel failed", "program-failed"),
            ("the answer is not", "answer-refused"),
            ("is another each time", "another-each-time"),
            ("panicked", "panicked"),
        ];
        let found = names.iter().find(|(words, _)| failure.text.contains(words));
        return found.map_or("builder-refused", |(_, name)| name).to_string();
    }
    let failed = verdict.parts.iter().find(|(_, outcome)| matches!(outcome, Outcome::Failed { .. }));
    match failed {
        Some((part, _)) => part.name().to_string(),
        None if verdict.passed() || verdict.only_unchecked() => "passed".to_string(),
        None => "not-reached".to_string(),
    }
}

struct Range {
    toolchain: Toolchain,
    cage: Cage,
    /// Drawn, as where nobody names one.
    seed: u64,
}

impl Range {
    fn grade(&self, attack: &Attack) -> Verdict {
        let kernel = Kernel { step: attack.step, path: PathBuf::from("kernel.rs"), text: attack.text.clone() };
        let step = harness::step(attack.step).expect("the step exists");
        let limits = TimeLimits { compile: Duration::from_secs(30), emit: Duration::from_secs(5), patience: 3 };
        match scratch::build(&self.toolchain, &self.cage, &kernel, limits) {
            Ok(built) => {
                let options =
                    JudgeOptions { sources: built.sources(), input_seed: self.seed, ..JudgeOptions::default() };
                let verdict = bounded(judge(step, &built.source(), &options));
                assert_eq!(verdict.here, None, "{}: no attack makes this machine fail", attack.name);
                verdict
            }
            Err(ScratchError::HandIn(failure)) => judge(step, &NoKernel(failure), &JudgeOptions::default()),
            Err(ScratchError::Here(error)) => panic!("{}: the grader failed: {error}", attack.name),
        }
    }

    /// What is wrong with the verdict on an attack.
    fn wrong(&self, attack: &Attack) -> Option<String> {
        let begin = Instant::now();
        let verdict = self.grade(attack);
        let name = named(&verdict);
        let (points, most) = (verdict.points, verdict.max_points);
        let shown = table::render(&Grade {
            steps: vec![Graded { file: Some("kernel.rs".to_string()), verdict }],
            allow_unchecked: false,
            seed: None,
        });
        println!("{:24} {:24} {name} ({:.1} s)", attack.family, attack.name, begin.elapsed().as_secs_f64());
        let cursor =
            |sign: char| sign.is_control() && !matches!(sign, '\n' | '\t') || ('\u{202a}'..='\u{202e}').contains(&sign);
        let complaints = [
            (name != attack.expect).then(|| format!("the verdict is `{name}`, not `{}`", attack.expect)),
            (!shown.contains(&attack.says)).then(|| format!("it does not say `{}`", attack.says)),
            shown.contains(&*root().to_string_lossy()).then(|| "it names the grader's folders".to_string()),
            shown.contains("escaped").then(|| "it got out".to_string()),
            shown.contains(cursor).then(|| "what is shown moves the cursor".to_string()),
            (name != "passed" && too_many(attack.keeps, points, most)).then(|| format!("it gets {points} points")),
        ];
        let complaints: Vec<String> = complaints.into_iter().flatten().collect();
        (!complaints.is_empty()).then(|| format!("{}: {}\n{shown}", attack.name, complaints.join("; ")))
    }
}

/// Whether an attack gains by so many points: it has more than what in it is honest, in percent of the step's. An untouched file has none.
fn too_many(keeps: u32, points: f64, most: u32) -> bool {
    points > f64::from(most * keeps) / 100.0
}

/// `GRADER_REQUIRE_SANDBOX=1`: a machine without a sandbox fails these tests.
fn required() -> bool {
    std::env::var_os("GRADER_REQUIRE_SANDBOX").is_some_and(|value| value == "1")
}

/// The sandbox; where this machine has none, that the grader says so and refuses.
fn range() -> Option<Range> {
    colored::control::set_override(false);
    match Cage::locked(Path::new(env!("CARGO_BIN_EXE_grader"))) {
        Ok(cage) => {
            println!("{cage}");
            let (seed, toolchain) =
                (seed::draw().expect("a seed"), Toolchain::prepare(&root()).expect("what hand-ins use"));
            println!("inputs of the seed {seed}");
            Some(Range { toolchain, cage, seed })
        }
        Err(error) => {
            assert!(std::env::var_os("GRADER_REQUIRE_SANDBOX").is_none(), "GRADER_REQUIRE_SANDBOX is set: {error}");
            println!("NOT ENFORCEABLE HERE, so that no attack ran: {error}");
            assert!(!required(), "GRADER_REQUIRE_SANDBOX is set, and there is no sandbox: {error}");
            let output = Command::new(env!("CARGO_BIN_EXE_grader"))
                .args(["grade", concat!(env!("CARGO_MANIFEST_DIR"), "/../solutions/src")])
                .output()
                .expect("the command starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains("cannot be locked in") && said.contains("--trust"), "{said}");
            None
        }
    }
}

fn run(attacks: &[Attack]) {
    // One run after the other: what one leaves would be taken for the other's.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    adopting();
    let Some(range) = range() else { return };
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = range.wrong(attack);
                    wrong.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
                }
            });
        }
    });
    // The same attack without a sandbox finds what it looks for, and the range sees that.
    let open = Range { toolchain: range.toolchain.clone(), cage: Cage::Open, seed: range.seed };
    let attack = attacks.iter().find(|attack| attack.name == "read_accounts").expect("it is in every run");
    let seen = open.wrong(attack).expect("it gets out");
    assert!(seen.contains("it got out"), "{seen}");
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{} of {} attacks:\n{}", wrong.len(), attacks.len(), wrong.join("\n"));
    // What a program without a sandbox leaves is seen.
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("it starts");
    let begin = Instant::now();
    while !left_over().iter().any(|line| line.contains("sleep 60")) {
        // For a moment a program that begins has no arguments yet.
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", left_over());
        std::thread::sleep(Duration::from_millis(10));
    }
    sleeper.kill().and_then(|()| sleeper.wait()).expect("it ends");
    // After all of that an honest hand-in gets what it got before.
    let honest = attacks.iter().find(|attack| attack.name == "solution").expect("the solution is in every run");
    let verdict = range.grade(honest);
    assert_eq!(named(&verdict), "passed", "{verdict:?}");
    let begin = Instant::now();
    while let left = left_over()
        && !left.is_empty()
    {
        // The kernel clears a process namespace up after its first process has gone.
        assert!(begin.elapsed() < Duration::from_secs(5), "processes are left: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Processes that this one started, or they in turn, and that go on. Who loses the process above comes below this one: see `adopting`.
fn left_over() -> Vec<String> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers: Vec<u32> = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // Behind the name, in brackets: the state, and the process above.
    let stat = |process: u32| -> Option<(String, u32)> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let mut rest = text.get(text.rfind(')')? + 1..)?.split_whitespace();
        Some((rest.next()?.to_string(), rest.next()?.parse().ok()?))
    };
    let is_ours = |process: u32| {
        let mut above = process;
        while let Some((_, next)) = stat(above).filter(|(_, next)| *next > 1) {
            if next == own {
                return true;
            }
            above = next;
        }
        false
    };
    let goes_on = |process: &u32| stat(*process).is_some_and(|(state, _)| state != "Z") && is_ours(*process);
    let line = |process: u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        format!("{process}: {}", String::from_utf8_lossy(&line).replace('\0', " "))
    };
    numbers.into_iter().filter(goes_on).map(line).collect()
}

/// Lets processes come below this one whose own is gone, so that none is lost sight of.
fn adopting() {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("it is allowed to everybody");
}

#[test]
fn each_attack_says_what_it_is() {
    let attacks = attacks();
    assert!(attacks.len() >= 40, "{}", attacks.len());
    let families: BTreeSet<&str> = attacks.iter().map(|attack| attack.family.as_str()).collect();
    // Each has its row in the table of the documents.
    let documents = fs::read_to_string(root().join("docs/grader.md")).expect("docs/grader.md");
    for family in families {
        assert!(documents.contains(&format!("| {family} |")), "docs/grader.md has no row for `{family}`");
    }
}

#[test]
fn an_attack_earns_what_is_honest_in_it_and_no_more() {
    assert!(!too_many(0, 0.0, 5) && too_many(0, 0.01, 5) && too_many(0, 3.5, 5));
    assert!(!too_many(85, 8.5, 10) && too_many(85, 8.51, 10) && too_many(85, 10.0, 10));
}

/// One of each family: what a change of the sandbox breaks first.
#[test]
fn attacks_of_each_family() {
    let mut seen = BTreeSet::new();
    let always = ["solution", "read_accounts", "find_reference", "tcp", "processes", "write_outside", "memory"];
    let chosen: Vec<Attack> = attacks()
        .into_iter()
        .filter(|attack| !attack.slow && (always.contains(&attack.name.as_str()) || seen.insert(attack.family.clone())))
        .collect();
    run(&chosen);
}

#[test]
#[ignore = "takes minutes; `cargo test -p grader --test attacks -- --ignored`"]
fn all_attacks() {
    // `ATTACKS=name,name`: only these, beside those of each run.
    let only = std::env::var("ATTACKS").ok();
    let names: Option<Vec<&str>> = only.as_deref().map(|only| only.split(',').collect());
    let asked = |attack: &Attack| {
        let name = attack.name.as_str();
        names.as_ref().is_none_or(|names| names.contains(&name) || ["solution", "read_accounts"].contains(&name))
    };
    let chosen: Vec<Attack> = attacks().into_iter().filter(asked).collect();
    assert!(names.is_none_or(|names| chosen.len() == names.len() + 2), "ATTACKS names one that is not there");
    run(&chosen);
}
