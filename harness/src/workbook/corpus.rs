//! `corpus`: what the emulator says of the solutions with one thing wrong.

use super::{Patience, print};
use crate::corpus::equivalent;
use crate::corpus::kernels::{Kernel, STEPS};
use crate::corpus::run::{Bench, Judged, SEEDS, Verdict, judge_all, verdict};
use crate::corpus::{Kind, Mutant, mutants, sample, table};
use crate::diagnostics::{self, Sources};
use crate::steps::hopper::HOPPER;
use clap::Args;
use emulator::{Deadlock, Report};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which mutants, and what becomes of them.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// These steps only, e.g. 1,7; `hopper` or 0 for the kernel for Hopper
    #[arg(long, value_delimiter = ',', value_parser = step)]
    steps: Vec<u8>,
    /// Mutants of this kind only; may be given several times
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<Kind>,
    /// Mutants with this mistake only, such as `rounds` or `next-barrier`; may be given several times
    #[arg(long, value_name = "MISTAKE", value_delimiter = ',')]
    mistake: Vec<String>,
    /// These mutants only, by their names, such as `08/first-phase/103`; may be given several times
    #[arg(long, value_name = "ID", value_delimiter = ',', conflicts_with = "sample")]
    only: Vec<String>,
    /// So many mutants of each step and kind
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with_all = ["all", "show"], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sample: u32,
    /// The seed that chooses them
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// All mutants
    #[arg(long, conflicts_with = "show")]
    all: bool,
    /// Mutants at a time (without it: as many as this machine runs at once)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Write every mutant, and what came of it, to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show one mutant, and all that the emulator says of it
    #[arg(long, value_name = "ID")]
    show: Option<String>,
}

/// A step of the corpus, by its number or name.
fn step(text: &str) -> Result<u8, String> {
    let number = if text == "hopper" { Some(HOPPER) } else { text.strip_prefix("step").unwrap_or(text).parse().ok() };
    number.filter(|number| STEPS.contains(number)).ok_or_else(|| "the steps are 1 to 10, and `hopper`".to_string())
}

/// The command.
///
/// # Errors
/// When a solution does not build, a file cannot be written, or no mutant has the name.
pub fn corpus(options: &Options) -> Result<ExitCode, String> {
    if let Some(id) = &options.show {
        print(&show(id)?);
        return Ok(ExitCode::SUCCESS);
    }
    let steps = if options.steps.is_empty() { STEPS.to_vec() } else { options.steps.clone() };
    let kinds = if options.kind.is_empty() { Kind::ALL.to_vec() } else { options.kind.clone() };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.map_or(cores, usize::from);
    let (mut all, mut rows, mut missed, mut alarms) = (Vec::new(), Vec::new(), String::new(), Vec::new());
    for step in steps {
        let kernel = Kernel::new(step)?;
        let bench = Bench::new(&kernel)?;
        alarms.extend(false_alarm(&bench)?);
        let mut made = mutants(&kernel, &kinds);
        let of_mistake = |mutant: &Mutant| {
            mutant.id.split('/').nth(1).is_some_and(|is| options.mistake.iter().any(|one| one.replace(' ', "-") == is))
        };
        made.retain(|mutant| options.mistake.is_empty() || of_mistake(mutant));
        made.retain(|mutant| options.only.is_empty() || options.only.contains(&mutant.id));
        let chosen = if options.all || !options.only.is_empty() {
            made
        } else {
            sample(made, options.sample as usize, options.seed)
        };
        let judged = judge(&bench, chosen, threads);
        let open = |judged: &&Judged| judged.rule.is_none() && judged.verdict == Verdict::Nothing;
        missed.extend(judged.iter().filter(open).map(|judged| table::line(&kernel, judged)));
        rows.extend(judged.iter().map(|judged| row(&kernel, judged)));
        all.extend(judged);
        if let Some(path) = &options.json {
            write(path, &rows, &all)?;
        }
    }
    if let Some(id) = options.only.iter().find(|id| !all.iter().any(|judged| judged.mutant.id == **id)) {
        return Err(unknown(id));
    }
    if all.is_empty() {
        return Err(
            "no mutant is left by `--steps`, `--kind` and `--mistake`\n  try: Take mistakes from the second part of a \
                    mutant's name, such as `first-phase`; the file of `--json` has all."
                .into(),
        );
    }
    print(&table::table(&all));
    print(&table::summary(&all));
    print(&format!("false alarms on the unchanged kernels: {}\n", alarms.len()));
    alarms.iter().for_each(|alarm| print(&format!("  {alarm}\n")));
    let contradicted: Vec<&Judged> = all.iter().filter(|judged| judged.is_contradicted()).collect();
    for judged in &contradicted {
        let rule = judged.rule.map_or(equivalent::SAME_MACHINE_CODE.name, |rule| rule.name);
        print(&format!("proved equivalent by {rule}, and caught: {}\n", judged.mutant.id));
    }
    if !missed.is_empty() {
        print(&format!("\nmissed, to be looked at with `cargo workbook corpus --show ID`\n{missed}"));
    }
    Ok(if alarms.is_empty() && contradicted.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Judges the mutants of a kernel, and says on stderr how far it is.
fn judge(bench: &Bench, mutants: Vec<Mutant>, threads: usize) -> Vec<Judged> {
    const EVERY: usize = 100;
    let (count, done) = (mutants.len(), AtomicUsize::new(0));
    let label = super::name(bench.kernel.step);
    let _patience = Patience::new(format!("judging {count} mutants of {label} …"));
    judge_all(bench, mutants, threads, |_| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(EVERY) {
            eprintln!("{label}: {done} of {count}");
        }
    })
}

/// What is said of the unchanged kernel, if anything is.
fn false_alarm(bench: &Bench) -> Result<Option<String>, String> {
    let kernel = bench.kernel;
    let runs = bench
        .unchanged()
        .map_err(|errors| format!("{} does not load: {} errors", super::name(kernel.step), errors.len()))?;
    let verdict = crate::corpus::run::verdict(&runs);
    let said = runs.iter().flat_map(|(report, _)| report.findings.iter().chain(&report.notes)).map(|found| found.code);
    let said: Vec<&str> = said.collect();
    let alarm = format!("{} at {}: {verdict:?} {}", super::name(kernel.step), kernel.problem, said.join(", "));
    Ok((verdict != Verdict::Nothing).then_some(alarm))
}

/// A mutant for a file.
fn row(kernel: &Kernel, judged: &Judged) -> Value {
    let Judged { mutant, verdict, codes, rule, same_code, culprit, idle, milliseconds } = judged;
    json!({
        "id": mutant.id, "step": mutant.step, "kind": mutant.kind, "mistake": mutant.mistake, "line": mutant.line,
        "changed": mutant.diff(&kernel.text), "verdict": verdict, "codes": codes, "names_the_line": judged.names_the_line(),
        "culprit": culprit.as_ref().map(|of| json!({ "told": of.is_told(), "told_first": of.is_told_first(), "right": of.right, "named": of.named })),
        "equivalent": rule.map(|rule| rule.name), "same_code": same_code, "on_the_launch_with_an_idle_cta": idle,
        "milliseconds": milliseconds,
    })
}

fn write(path: &Path, rows: &[Value], all: &[Judged]) -> Result<(), String> {
    let (total, _) = table::counts(all);
    let text = format!("{:#}\n", json!({ "total": total, "mutants": rows }));
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A mutant's name, where one is asked for.
const EXAMPLE: &str = "08/first-phase/103";

fn unknown(id: &str) -> String {
    format!(
        "there is no mutant `{id}`, or `--steps`, `--kind` and `--mistake` leave it out\n  try: Take a name from the file of `--json`, or from the list of those that were missed: step, \
         mistake and line, such as `{EXAMPLE}`"
    )
}

/// One mutant: what was changed, and all that is said of it.
fn show(id: &str) -> Result<String, String> {
    let number = id.split('/').next().unwrap_or_default();
    let step = step(number).map_err(|_| unknown(id))?;
    let kernel = Kernel::new(step)?;
    let bench = Bench::new(&kernel)?;
    let found = mutants(&kernel, &Kind::ALL).into_iter().find(|mutant| mutant.id == id).ok_or_else(|| unknown(id))?;
    let (ptx, launch) = bench.mutated(&found);
    let mut text = format!("{id}, {}, at {}\n\n", found.kind, kernel.problem);
    text.push_str(&super::diff::lines(&kernel.built.ptx, &ptx));
    text.push_str(&format!("{}\n\n", found.diff(&kernel.text)));
    if let Some(rule) = equivalent::rule(&kernel, &found) {
        text.push_str(&format!("equivalent by {}: {}\n\n", rule.name, rule.because));
    }
    if bench.same_code(&found) == Some(true) {
        text.push_str("ptxas makes the same machine code of it as of the solution\n\n");
    }
    // It shows lines of Rust where it finds them.
    let sources = Sources::workspace();
    match bench.runs(&ptx, &launch, &SEEDS) {
        Err(errors) => text.push_str(&diagnostics::render_all(&errors, &sources).text),
        Ok(runs) => {
            let shows_nothing = verdict(&runs) >= Verdict::Note;
            let said = schedules().zip(runs).map(|(schedule, (report, right))| {
                let head = format!("{schedule}: {}", of_run(&report, right));
                let mut said = all_said(&report, &sources);
                if !right && report.findings.iter().all(|found| found.code == "hang") {
                    let astray = bench.followed(&ptx, &launch).and_then(|(_, found)| found);
                    said.extend(astray.map(|found| diagnostics::explain(&found.explanation, &sources).text));
                }
                (head, said)
            });
            text.push_str(&together(said));
            let idle = bench.mutated_idle(&found).filter(|_| shows_nothing);
            let runs = idle.and_then(|(ptx, launch)| bench.runs(&ptx, &launch, &SEEDS).ok());
            let said = schedules().zip(runs.unwrap_or_default()).map(|(schedule, (report, right))| {
                let head = format!("where a CTA has no tile, {schedule}: {}", of_run(&report, right));
                (head, all_said(&report, &sources))
            });
            text.push_str(&together(said));
        }
    }
    Ok(text)
}

/// The schedules that a mutant runs under.
fn schedules() -> impl Iterator<Item = String> {
    let others = SEEDS.iter().map(|seed| format!("the schedule of seed {seed}"));
    std::iter::once("the default schedule".to_string()).chain(others)
}

/// What came of runs, and what is said of them: the same once, below all runs of which it is said.
fn together(runs: impl Iterator<Item = (String, String)>) -> String {
    let mut all: Vec<(String, String)> = Vec::new();
    for (head, said) in runs {
        match all.iter_mut().find(|(_, known)| *known == said) {
            Some((heads, _)) => heads.push_str(&head),
            None => all.push((head, said)),
        }
    }
    all.into_iter().map(|(heads, said)| heads + &said).collect()
}

/// What came of a run.
fn of_run(report: &Report, right: bool) -> String {
    let d = if right { "D is right" } else { "D is wrong" };
    // A run that broke off has no time of its own.
    let mut text = match report.completed {
        true => format!("completed in {} cycles, {} instructions, {d}", report.cycles, report.instructions),
        false => format!("broke off after {} instructions, {d}", report.instructions),
    };
    text.push_str(match report.deadlock {
        Deadlock::NotJudged => ", whether an interleaving hangs was not asked\n",
        Deadlock::Impossible => ", no interleaving hangs\n",
        Deadlock::Possible if report.completed => ", another interleaving hangs\n",
        Deadlock::Possible => ", it hangs\n",
        Deadlock::NotProved(_) => ", not proved that no interleaving hangs\n",
    });
    if let Deadlock::NotProved(reasons) = &report.deadlock {
        text.extend(reasons.iter().map(|reason| format!("  not proved: {reason}\n")));
    }
    text.extend(report.incomplete.iter().map(|reason| format!("  not checked: {reason}\n")));
    text
}

/// What is said of a run.
fn all_said(report: &Report, sources: &Sources) -> String {
    diagnostics::render_all(report.findings.iter().chain(&report.notes), sources).text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_mutant() {
        let kernel = Kernel::new(8).expect("a solution");
        assert!(mutants(&kernel, &Kind::ALL).iter().any(|mutant| mutant.id == EXAMPLE));
        assert!(unknown("x").contains(EXAMPLE));
    }

    #[test]
    fn a_sample_of_none_is_refused_by_its_name() {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            options: Options,
        }
        let asked =
            |sample: &str| <Command as clap::Parser>::try_parse_from(["corpus", "--sample", sample, "--steps", "1"]);
        let said = asked("0").err().expect("refused").to_string();
        assert!(said.contains("'0' for '--sample <N>'") && !said.contains("--kind"), "{said}");
        assert_eq!(asked("1").map_err(|error| error.to_string()).expect("allowed").options.sample, 1);
    }

    #[test]
    fn the_same_report_is_shown_once_with_its_schedules() {
        let run = |head: &str, said: &str| (head.to_string(), said.to_string());
        let all = together([run("a: 1\n", "hangs\n"), run("b: 2\n", "right\n"), run("c: 3\n", "hangs\n")].into_iter());
        assert_eq!(all, "a: 1\nc: 3\nhangs\nb: 2\nright\n");
    }

    #[test]
    fn a_mutant_is_shown_in_words() {
        colored::control::set_override(false);
        // It hangs under each schedule in the same way.
        let kernel = Kernel::new(4).expect("a solution");
        let all = mutants(&kernel, &Kind::ALL);
        let commit = all
            .iter()
            .find(|mutant| mutant.mistake == "delete" && mutant.diff(&kernel.text).contains("tcgen05.commit"));
        let shown = show(&commit.expect("a commit is deleted").id).expect("it is a mutant");
        for schedule in schedules() {
            let head = shown.lines().find(|line| line.starts_with(&schedule)).expect("each schedule has a line");
            assert!(head.contains("broke off after ") && head.ends_with(", it hangs"), "{head}");
        }
        for word in ["Possible", "Impossible", "NotProved", "deadlock:", " 0 cycles"] {
            assert!(!shown.contains(word), "`{word}`: {shown}");
        }
        assert_eq!(shown.matches("[hang]").count(), 1, "{shown}");
    }
}
