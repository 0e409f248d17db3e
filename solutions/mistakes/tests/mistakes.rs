//! Every mistake is caught, and nearly every one by the finding, at the line and with the advice that was written down before the
//! emulator first saw it. Caught is one by a finding of the emulator, a hang among them, a wrong D, or the builder, a launch or a loader that
//! refuses it: a note is not. What a note or the structure of a kernel alone tells is on a list of its own, `rules/`, and counted apart.
//!
//! `cargo test -p mistakes -- --nocapture` prints what came of each, and with `MISTAKES=NAME,NAME` all that is said of these, as a student reads it.

use emulator::{Diagnostic, Launch, Options, Param, Report, Severity};
use harness::compare::Comparison;
use harness::diagnostics::{self, Sources};
use harness::reference::Reference;
use harness::source::Built;
use harness::steps::hopper::HOPPER;
use harness::{
    InProcess, InputKind, Inputs, JudgeOptions, KernelSource, Matrix, Outcome, Problem, launch, rank,
    reference_kernels, structure, workbook,
};
use mistakes::{ALL, List, Mistake};
use std::sync::Mutex;

/// Adversarial schedules beside the default one.
const SEEDS: [u64; 2] = [1, 2];
/// Far more than any solution takes at these sizes.
const BUDGET: u64 = 4_000_000;
const WRONG: &str = "wrong-result";
const MISSED: &str = "missed";
const BEHIND: &str = "what was expected stands behind it";
/// Codes of runs that did not come to their end, and say no more than that.
const HANGS: [&str; 3] = ["hang", "instruction-budget", "trap"];

/// Mistakes of which something else is said first than was expected, and why that is left so.
const OTHERWISE: &[(&str, &str)] = &[
    (
        "07-product-told-each-round",
        "it is told as an arrival that comes too early, a code that was not thought of: at the commit, and the wait for mma2ld that it lets pass",
    ),
    (
        "10-one-commit-frees",
        "it is told by the initialisation for one arrival, which is the mistake, and by the second arrival of who waited for it; not by a commit",
    ),
];

/// The same of those on the list of rules.
const OTHERWISE_OF_RULES: &[(&str, &str)] = &[(
    "06-sms-of-one-gpu",
    "all CTAs write the same values, and D is right: a note, and the part `structure` of the verdict fails",
)];

/// Small problems that together show what goes wrong: rounds fewer and more than stages, several tiles for a CTA, parts of tiles at the
/// edges, and GPUs with few SMs.
fn problems(step: u8) -> Vec<(Problem, u32)> {
    let of = |sizes: &[([u32; 3], u32)]| sizes.iter().map(|&([m, n, k], sms)| (Problem::f16(m, n, k), sms)).collect();
    match step {
        HOPPER => of(&[([768, 256, 768], 4), ([768, 256, 64], 4), ([456, 520, 328], 4)]),
        1 => of(&[([128, 128, 64], 148)]),
        2 => of(&[([128, 128, 192], 148)]),
        3 => of(&[([128, 256, 192], 148), ([256, 128, 64], 148)]),
        4 => of(&[([128, 256, 192], 148), ([200, 136, 72], 148)]),
        5 => of(&[([128, 256, 320], 148), ([128, 128, 64], 148), ([200, 136, 640], 148)]),
        6..=8 => of(&[([640, 128, 320], 2), ([640, 128, 64], 2), ([200, 392, 328], 2)]),
        9 => of(&[([1280, 256, 384], 4), ([1280, 256, 64], 4), ([456, 520, 328], 4)]),
        _ => of(&[([2560, 256, 384], 4), ([2560, 256, 64], 4), ([712, 520, 328], 4)]),
    }
}

/// What was said of a kernel, up to the first run that shows something.
#[derive(Default)]
struct Said {
    /// Findings, or notes where there are none, with the text of each as it is printed; in the order of the verdict, which a person reads.
    diagnostics: Vec<(Diagnostic, String)>,
    wrong: bool,
    refused: Option<String>,
    /// The part `structure` of the verdict on the step fails, with these words.
    structure: Option<String>,
    on: String,
}

impl Said {
    /// By a finding, a hang, a wrong D, or what refuses it.
    fn caught(&self) -> bool {
        let found = self.diagnostics.iter().any(|(diagnostic, _)| diagnostic.severity != Severity::Note);
        found || self.wrong || self.refused.is_some()
    }

    /// By the verdict on the step alone: a note fails its part `race-free`, or its part `structure` fails; D is right, and there is no finding.
    fn by_the_verdict_alone(&self) -> bool {
        !self.caught() && (self.structure.is_some() || !self.diagnostics.is_empty())
    }

    fn codes(&self) -> String {
        let codes = self.diagnostics.iter().map(|(diagnostic, _)| diagnostic.code);
        let structure = self.structure.as_ref().map(|_| "structure");
        let other = [self.wrong.then_some(WRONG), self.refused.as_ref().map(|_| "refused-builder"), structure];
        codes.chain(other.into_iter().flatten()).collect::<Vec<_>>().join(", ")
    }
}

/// Runs a kernel on one problem.
fn run(
    built: &Built,
    ptx: &str,
    launched: impl Fn(&mut Launch),
    problem: Problem,
    seed: Option<u64>,
) -> Result<(Report, bool), String> {
    let inputs = Inputs::new(problem, InputKind::Normal, 0);
    let mut launch = launch::launch(built, &inputs).map_err(|refused| refused.to_string())?;
    launched(&mut launch);
    let program = emulator::load(ptx).map_err(|errors| format!("it does not load: {errors:?}"))?;
    let report = emulator::run(&program, &launch, &Options { seed, max_instructions: BUDGET, ..Options::default() });
    let d = report.buffers.get(launch::buffer(Matrix::D));
    let right = d.is_some_and(|d| Comparison::new(&Reference::new(&inputs), d).is_right());
    Ok((report, right))
}

fn judge(kernel: ptx::KernelFn, step: u8, change: impl Fn(&str) -> String, launched: impl Fn(&mut Launch)) -> Said {
    let mut noted = None;
    for (problem, sms) in problems(step) {
        let on = format!("{problem} on {sms} SMs");
        let built = match InProcess(kernel).build(&problem, sms) {
            Ok(built) => built,
            Err(failure) => return Said { refused: Some(failure.to_string()), on, ..Said::default() },
        };
        let ptx = change(&built.ptx);
        for seed in [None].into_iter().chain(SEEDS.map(Some)) {
            let (report, right) = match run(&built, &ptx, &launched, problem, seed) {
                Ok(run) => run,
                Err(refused) => return Said { refused: Some(refused), on, ..Said::default() },
            };
            let shown = |list: &[Diagnostic]| {
                let mut list: Vec<&Diagnostic> = list.iter().collect();
                list.sort_by_key(|diagnostic| rank(diagnostic));
                list.iter().map(|&d| (d.clone(), diagnostics::render(d, &Sources::default()).text)).collect::<Vec<_>>()
            };
            let wrong = report.completed && !right;
            if !report.findings.is_empty() || wrong {
                return Said { diagnostics: shown(&report.findings), wrong, on, ..Said::default() };
            }
            if !report.notes.is_empty() && noted.is_none() {
                noted = Some(Said { diagnostics: shown(&report.notes), on: on.clone(), ..Said::default() });
            }
        }
    }
    let noted = noted.unwrap_or_default();
    let step = harness::step(step).expect("a step");
    match structure(step, &InProcess(kernel), &JudgeOptions::default()) {
        Outcome::Failed { title, .. } => Said { structure: Some(title), ..noted },
        _ => noted,
    }
}

/// The `n`th line of a text that is this one, from 1. `WHAT #2` is the second.
fn line_of(source: &str, wanted: &str) -> Option<u32> {
    let (wanted, number) = match wanted.rsplit_once(" #") {
        Some((line, number)) if number.parse::<usize>().is_ok() => (line, number.parse().unwrap_or(1)),
        _ => (wanted, 1usize),
    };
    let mut found = (1..).zip(source.lines()).filter(|(_, line)| line.trim() == wanted).map(|(n, _)| n);
    found.nth(number - 1)
}

/// What of the expectation does not hold: nothing, if it does. It is held against what is said first, which is what a person reads. What is said
/// as was expected behind something else is not as expected, and told apart ([`BEHIND`]).
fn differs(said: &Said, expected: &[&str], source: &str, line: Option<&str>, hint: Option<&str>) -> Vec<String> {
    let Some(first) = said.diagnostics.first() else {
        let code = if said.wrong { WRONG } else { "refused-builder" };
        return if said.caught() && expected.contains(&code) { vec![] } else { vec![format!("expected {expected:?}")] };
    };
    let lacks = |(diagnostic, text): &(Diagnostic, String)| {
        if !expected.contains(&diagnostic.code) {
            return vec![format!("expected {expected:?}, and not {} first: {}", diagnostic.code, diagnostic.title)];
        }
        let mut differs = Vec::new();
        if let Some(wanted) = line {
            let number = line_of(source, wanted);
            let named = diagnostic.labels.iter().filter_map(|label| Some(label.place.source.as_ref()?.line));
            if number.is_none() || !named.clone().any(|line| Some(line) == number) {
                let line = |line: u32| source.lines().nth(line as usize - 1).unwrap_or_default().trim();
                let named: Vec<&str> = named.map(line).collect();
                differs.push(format!("{} does not name `{wanted}`, but {named:?}", diagnostic.code));
            }
        }
        if let Some(hint) = hint.filter(|hint| !text.to_lowercase().contains(*hint)) {
            differs.push(format!("{} does not say `{hint}`: {}", diagnostic.code, diagnostic.title));
        }
        differs
    };
    let mut differs = lacks(first);
    if !differs.is_empty() && said.diagnostics.iter().any(|other| lacks(other).is_empty()) {
        differs.push(BEHIND.to_string());
    }
    differs
}

/// An edit of PTX text: `OLD => NEW`, everywhere if it ends in ` (all)`.
fn edited(ptx: &str, edit: &str, name: &str) -> String {
    let (edit, all) = edit.strip_suffix(" (all)").map_or((edit, false), |edit| (edit, true));
    let (old, new) = edit.split_once("=>").unwrap_or_else(|| panic!("{name}: `OLD => NEW`, not `{edit}`"));
    let (old, new) = (old.trim(), new.trim());
    assert!(ptx.contains(old), "{name}: the PTX text has no `{old}`");
    if all { ptx.replace(old, new) } else { ptx.replacen(old, new, 1) }
}

/// An edit of the launch: `cluster 1`, `shared BYTES`, or `box PARAMETER EXTENT EXTENT`.
fn relaunched(launch: &mut Launch, edit: &str, name: &str) {
    let mut words = edit.split(' ');
    let what = words.next().unwrap_or_default();
    let numbers: Vec<u32> = words.map(|word| word.parse().expect("a number")).collect();
    match (what, numbers.as_slice()) {
        ("cluster", &[ctas]) => launch.cluster = [ctas, 1, 1],
        ("shared", &[bytes]) => launch.dynamic_shared = bytes,
        ("box", &[param, columns, rows]) => match launch.params.get_mut(param as usize) {
            Some(Param::TensorMap { map, .. }) => map.box_dims = vec![columns, rows],
            _ => panic!("{name}: parameter {param} is no tensor map"),
        },
        _ => panic!("{name}: `{edit}` is no edit of a launch"),
    }
}

/// The mistake, and the same in PTX text where the builder refuses it: what was said, and what is not as expected.
fn results(mistake: &Mistake) -> Vec<(String, Said, Vec<String>)> {
    let first = |key: &str| mistake.says(key).next();
    let said = judge(mistake.kernel, mistake.step, str::to_string, |_| {});
    let held = |said: &Said| match mistake.list {
        List::Harm => said.caught(),
        List::Rule => said.by_the_verdict_alone(),
    };
    let mut differing = match &said.refused {
        Some(message) => {
            let says = first("message").is_none_or(|part| message.contains(part));
            let refused = mistake.expected().contains(&"refused-builder");
            if says && refused { vec![] } else { vec![format!("it was refused: {message}")] }
        }
        None => differs(&said, &mistake.expected(), mistake.source, first("line"), first("hint")),
    };
    if !held(&said) {
        differing.push(MISSED.to_string());
    }
    let mut all = vec![(mistake.name.to_string(), said, differing)];
    let also: Vec<&str> = mistake.says("also").collect();
    let says = |key: &'static str| also.iter().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(": "));
    if says("ptx").chain(says("launch")).next().is_some() {
        let name = format!("{} in PTX", mistake.name);
        let solution = reference_kernels::solution(mistake.step).expect("a solution");
        let change = |ptx: &str| says("ptx").fold(ptx.to_string(), |text, edit| edited(&text, edit, &name));
        let launched = |launch: &mut Launch| says("launch").for_each(|edit| relaunched(launch, edit, &name));
        let said = judge(solution, mistake.step, change, launched);
        let expected: Vec<&str> = says("expect").flat_map(|codes| codes.split(" | ")).collect();
        let file = workbook::name(mistake.step);
        let source = std::fs::read_to_string(format!("{}/../src/{file}.rs", env!("CARGO_MANIFEST_DIR")));
        let source = source.unwrap_or_default();
        let mut differing = differs(&said, &expected, &source, says("line").next(), says("hint").next());
        if !held(&said) {
            differing.push(MISSED.to_string());
        }
        all.push((name, said, differing));
    }
    all
}

/// What each came to, in a word and the code that is said first: the row of the corpus's table is counted from it.
fn outcomes(all: &[(String, Said, Vec<String>)]) -> String {
    let of = |said: &Said| {
        let first = said.diagnostics.first().map(|(diagnostic, _)| diagnostic);
        match first {
            _ if said.refused.is_some() => "refused".to_string(),
            Some(found) if !said.caught() => format!("note {}", found.code),
            Some(found) if found.code == "launch" => "launch".to_string(),
            Some(found) if HANGS.contains(&found.code) => format!("hang {}", found.code),
            Some(found) => format!("finding {}", found.code),
            None if said.wrong => "wrong".to_string(),
            None => "missed".to_string(),
        }
    };
    all.iter().map(|(name, said, _)| format!("{name}: {}\n", of(said))).collect()
}

/// All of a list, judged, by name; printed.
fn judged(list: List) -> Vec<(String, Said, Vec<String>)> {
    let whole = std::env::var("MISTAKES").ok();
    let asked =
        |mistake: &&Mistake| whole.as_ref().is_none_or(|names| names.split(',').any(|name| name == mistake.name));
    let waiting = Mutex::new(ALL.iter().filter(|mistake| mistake.list == list).filter(asked));
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(mistake) = waiting.lock().ok().and_then(|mut waiting| waiting.next()) {
                    let results = results(mistake);
                    if let Ok(mut done) = done.lock() {
                        done.extend(results);
                    }
                }
            });
        }
    });
    let mut all = done.into_inner().unwrap_or_default();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, said, differing) in &all {
        println!("{name}: {} ({})", said.codes(), said.on);
        differing.iter().for_each(|what| println!("    {what}"));
        if whole.is_some() {
            said.diagnostics.iter().for_each(|(_, text)| println!("{text}"));
        }
    }
    assert!(whole.is_none(), "MISTAKES names some of them: without it, all are judged");
    all
}

/// Those that are missed, and those of which something else is said than was expected.
fn open(all: &[(String, Said, Vec<String>)]) -> (Vec<&str>, Vec<&str>) {
    let of = |holds: fn(&[String]) -> bool| {
        all.iter().filter(|(.., differing)| holds(differing)).map(|(name, ..)| name.as_str()).collect()
    };
    (of(|differing| differing.iter().any(|what| what == MISSED)), of(|differing| !differing.is_empty()))
}

#[test]
fn mistakes_are_caught_as_was_expected() {
    let all = judged(List::Harm);
    let (missed, other) = open(&all);
    let behind = all.iter().filter(|(.., differing)| differing.iter().any(|what| what == BEHIND)).count();
    println!(
        "{} mistakes: {} missed; of {} something else is said first, behind which {behind} have what was expected",
        all.len(),
        missed.len(),
        other.len()
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/outcomes.txt");
    let outcomes = outcomes(&all);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &outcomes).expect("the list can be written");
    }
    let list = std::fs::read_to_string(path).unwrap_or_default();
    let hint =
        "`UPDATE_EXPECT=1 cargo test -p mistakes` writes the list, from which `cargo workbook corpus` counts its row";
    assert!(list == outcomes, "outcomes.txt says otherwise: {hint}\n{outcomes}");
    assert!(missed.is_empty(), "missed: {missed:?}");
    let known: Vec<&str> = OTHERWISE.iter().map(|(name, _)| *name).collect();
    assert_eq!(other, known, "not as expected");
    // What is wanted is 95 percent, by what is said first.
    assert!(all.len() >= 40 && other.len() * 20 <= all.len(), "{} of {} are told otherwise", other.len(), all.len());
}

/// A rule that is broken without harm is told, too, and never as a finding: then it belongs on the other list.
#[test]
fn rules_that_only_the_verdict_holds() {
    let all = judged(List::Rule);
    let (missed, other) = open(&all);
    println!("{} rules that only the verdict holds: {} missed", all.len(), missed.len());
    assert!(!all.is_empty() && missed.is_empty(), "not told by the verdict alone: {missed:?}");
    let known: Vec<&str> = OTHERWISE_OF_RULES.iter().map(|(name, _)| *name).collect();
    assert_eq!(other, known, "not as expected");
}

/// The tables of README.md are those of the files: the same names, each with the codes that are expected. And of an expectation that is not the
/// first one any more, the file says what it was, and why.
#[test]
fn the_tables_of_the_readme_are_the_files() {
    let readme = include_str!("../README.md");
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [step, name, _, expected, ..] = cells.as_slice() else { return None };
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        Some((name, step.parse::<u8>().ok()?, *expected))
    };
    let mut rows: Vec<_> = readme.lines().filter(|line| line.starts_with("| ")).filter_map(row).collect();
    rows.sort_unstable();
    let code = |code: &str| format!("`{code}`");
    let expected = |mistake: &Mistake| mistake.expected().into_iter().map(code).collect::<Vec<_>>().join(" or ");
    let files: Vec<(&str, u8, String)> =
        ALL.iter().map(|mistake| (mistake.name, mistake.step, expected(mistake))).collect();
    for (name, step, codes) in &files {
        let of = rows.iter().find(|(row, ..)| row == name);
        assert_eq!(
            of,
            Some(&(*name, *step, codes.as_str())),
            "README.md, the row of {name}: what its file says is on the right"
        );
    }
    let unknown: Vec<&str> =
        rows.iter().map(|row| row.0).filter(|name| !files.iter().any(|file| file.0 == *name)).collect();
    assert!(unknown.is_empty() && rows.len() == files.len(), "rows without a file, or twice: {unknown:?}");
    for mistake in ALL {
        for changed in mistake.says("changed") {
            let (first, why) =
                changed.split_once("; ").unwrap_or_else(|| panic!("{}: `changed: WHAT IT WAS; WHY`", mistake.name));
            assert!(first.len() >= 4 && why.len() >= 20, "{}: {changed}", mistake.name);
        }
    }
    let changed = ALL.iter().filter(|mistake| mistake.says("changed").next().is_some()).count();
    let says = format!("{changed} expectations were changed");
    assert!(readme.contains(&says), "README.md does not say: {says}");
}
