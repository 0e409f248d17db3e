//! The judge: from a kernel source to a verdict.

use crate::device::Device;
use crate::diagnostics::{self, Explanation, Sources};
use crate::inputs::{InputKind, Inputs};
use crate::mismatch;
use crate::observe::Observation;
use crate::points;
use crate::problem::Problem;
use crate::resources;
use crate::source::{BuildFailure, Built, InProcess, KernelSource, Matrix};
use crate::steps::{Seen, Step};
use crate::verdict::{MilestoneResult, MilestoneState, Outcome, Part, Verdict};
use emulator::{Diagnostic, Options, Program};
use std::time::Instant;

/// How to judge.
#[derive(Clone, Debug)]
pub struct JudgeOptions {
    /// What kernels run on.
    pub device: Device,
    /// Adversarial schedules beside the default one.
    pub seeds: u32,
    /// The seed of the first inputs.
    pub input_seed: u64,
    /// Streaming multiprocessors that kernels are built for.
    pub sms: u32,
    /// Where the lines of Rust are found that explanations show.
    pub sources: Sources,
}

impl Default for JudgeOptions {
    fn default() -> JudgeOptions {
        JudgeOptions {
            device: Device::default(),
            seeds: 8,
            input_seed: 0,
            // A B200 has 148.
            sms: 148,
            sources: Sources::workspace(),
        }
    }
}

/// The largest share of the reference solution's time that is fast.
const FAST: f64 = 1.30;

/// Findings of the emulator that are about resources, not about order: `resources` reports them.
const LEAKS: &[&str] = &["tensor-memory-leak"];

/// Judges a kernel.
pub fn judge(step: &Step, source: &dyn KernelSource, options: &JudgeOptions) -> Verdict {
    let begin = Instant::now();
    let mut verdict = Judge { step, source, options }.run();
    verdict.points = points::points(&verdict);
    verdict.seconds = begin.elapsed().as_secs_f64();
    verdict
}

struct Judge<'a> {
    step: &'a Step,
    source: &'a dyn KernelSource,
    options: &'a JudgeOptions,
}

/// A kernel that runs, at one size.
struct Case {
    built: Built,
    program: Program,
    problem: Problem,
}

impl Judge<'_> {
    fn run(&self) -> Verdict {
        let mut verdict = self.blank();
        let mut builds = Vec::new();
        for problem in self.step.sizes {
            match self.source.build(problem, self.options.sms) {
                Ok(built) => builds.push((built, *problem)),
                Err(failure) => return self.not_built(verdict, &failure),
            }
        }
        if let Some((built, problem)) = builds.iter().find(|(built, _)| !built.todos.is_empty()) {
            return self.half_done(verdict, built, *problem);
        }
        let mut cases = Vec::new();
        for (built, problem) in builds {
            match emulator::load(&built.ptx) {
                Ok(program) => cases.push(Case { built, program, problem }),
                Err(diagnostics) => {
                    self.set(&mut verdict, Part::Correct, self.refused(&diagnostics));
                    return verdict;
                }
            }
        }
        self.whole(verdict, &cases)
    }

    /// The verdict before anything was looked at.
    fn blank(&self) -> Verdict {
        let reason = "`correct` comes first".to_string();
        let milestones = self.step.milestones.iter().map(|milestone| MilestoneResult {
            id: milestone.id.to_string(),
            title: milestone.title.to_string(),
            state: MilestoneState::NotReached { reason: "the kernel does not run".to_string() },
        });
        Verdict {
            step: self.step.number,
            title: self.step.title.to_string(),
            device: self.options.device.to_string(),
            parts: Part::ALL.map(|part| (part, Outcome::NotReached { reason: reason.clone() })),
            milestones: milestones.collect(),
            build_failure: None,
            points: 0.0,
            max_points: self.step.points,
            seconds: 0.0,
        }
    }

    fn set(&self, verdict: &mut Verdict, part: Part, outcome: Outcome) {
        for (_, slot) in verdict.parts.iter_mut().filter(|(candidate, _)| *candidate == part) {
            *slot = outcome.clone();
        }
    }

    fn not_built(&self, mut verdict: Verdict, failure: &BuildFailure) -> Verdict {
        let sources = &self.options.sources;
        let text = match failure {
            BuildFailure::Rejected(errors) => {
                diagnostics::first_few(errors.iter().map(|error| diagnostics::refused(error, sources)).collect())
            }
            BuildFailure::Panicked { message, place: Some(place) } => {
                let title = format!("the kernel function panicked: {message}");
                let help = "a kernel function runs on the CPU, once, while the kernel is built";
                diagnostics::at(&title, place, "here", help, sources)
            }
            other => format!("{other}\n"),
        };
        let title = match failure {
            BuildFailure::Rejected(errors) => match errors.as_slice() {
                [first, ..] => first.message.clone(),
                [] => "the builder refused the kernel".to_string(),
            },
            BuildFailure::Panicked { .. } => "the kernel function panicked".to_string(),
            BuildFailure::NoAnswer { .. } => "the kernel could not be built".to_string(),
        };
        self.set(&mut verdict, Part::Correct, Outcome::Failed { title, text });
        verdict.build_failure = Some(failure.to_string());
        verdict
    }

    /// The emulator does not take the PTX text.
    fn refused(&self, diagnostics: &[Diagnostic]) -> Outcome {
        let title = diagnostics.first().map_or("the PTX text is refused", |first| &first.title).to_string();
        Outcome::Failed { title, text: diagnostics::render_all(diagnostics, &self.options.sources) }
    }

    fn options(&self, seed: Option<u64>) -> Options {
        Options { seed, max_instructions: self.step.max_instructions, ..Options::default() }
    }

    /// A run with all that can be kept of it.
    fn observe(&self, built: &Built, program: &Program, problem: Problem) -> Observation {
        let options = Options { trace: true, keep_ctas: true, keep_operands: true, ..self.options(None) };
        let inputs = Inputs::new(problem, InputKind::Normal, self.options.input_seed);
        Observation::new(built, program, inputs, &options)
    }

    /// Some TODOs are open: which of the others are done.
    fn half_done(&self, mut verdict: Verdict, built: &Built, problem: Problem) -> Verdict {
        let open = |id: &str| built.todos.iter().find(|todo| todo.id == id);
        let next = self.step.milestones.iter().map(|milestone| milestone.id).find(|id| open(id).is_some());
        let next = next.map(str::to_string).or(built.todos.first().map(|todo| todo.id.clone())).unwrap_or_default();
        for part in Part::ALL {
            self.set(&mut verdict, part, Outcome::NotReached { reason: format!("TODO {next} is open") });
        }
        // An untouched skeleton is not run: there is nothing to see.
        let untouched = self.step.milestones.iter().all(|milestone| open(milestone.id).is_some());
        let mut broken = None;
        let mut seen = None;
        if !untouched {
            match emulator::load(&built.ptx) {
                Ok(program) => {
                    let observation = self.observe(built, &program, problem);
                    broken = self.broken_off(&observation);
                    seen = Some(observation);
                }
                Err(diagnostics) => broken = Some(diagnostics::render_all(&diagnostics, &self.options.sources)),
            }
        }
        for (result, milestone) in verdict.milestones.iter_mut().zip(self.step.milestones) {
            result.state = match (open(milestone.id), &seen) {
                (Some(todo), _) => MilestoneState::Open { place: todo.place.clone() },
                (None, Some(seen)) => self.state((milestone.check)(seen), &mut broken),
                (None, None) => self.state(Seen::Cut, &mut broken),
            };
        }
        verdict
    }

    /// Why a run did not come to its end.
    fn broken_off(&self, seen: &Observation) -> Option<String> {
        let report = &seen.report;
        (!report.completed).then(|| diagnostics::render_all(&report.findings, &self.options.sources))
    }

    /// `broken` is what broke the run off: the first milestone that it cut short shows it.
    fn state(&self, seen: Seen, broken: &mut Option<String>) -> MilestoneState {
        match seen {
            Seen::Done => MilestoneState::Done,
            Seen::Wrong(explanation) => {
                MilestoneState::Wrong { text: diagnostics::explain(&explanation, &self.options.sources) }
            }
            Seen::NotReached(reason) => MilestoneState::NotReached { reason },
            Seen::Cut => match broken.take() {
                Some(text) => MilestoneState::Wrong { text },
                None => MilestoneState::NotReached { reason: "the run broke off before".to_string() },
            },
        }
    }

    /// No TODO is open: all five parts.
    fn whole(&self, mut verdict: Verdict, cases: &[Case]) -> Verdict {
        let Some(first) = cases.first() else { return verdict };
        let seen = self.observe(&first.built, &first.program, first.problem);
        let mut findings = Findings::default();
        let correct = self.correct(cases, &seen, &mut findings);
        let passed = correct.passed();
        self.set(&mut verdict, Part::Correct, correct);
        let mut clean = false;
        if passed {
            let race_free = self.race_free(first, &seen, &mut findings);
            clean = race_free.passed() && findings.leaks.is_empty();
            self.set(&mut verdict, Part::RaceFree, race_free);
            self.set(&mut verdict, Part::Structure, structure(self.step, &seen));
            let leaks = diagnostics::render_all(&findings.leaks, &self.options.sources);
            self.set(&mut verdict, Part::Resources, resources::check(&seen, &leaks, &self.options.sources));
            self.set(&mut verdict, Part::Fast, self.fast(&seen));
        }
        let mut broken = self.broken_off(&seen);
        for (result, milestone) in verdict.milestones.iter_mut().zip(self.step.milestones) {
            // A kernel that is right and clean has reached every milestone, also one that goes another way than ours.
            let seen = if clean { Seen::Done } else { (milestone.check)(&seen) };
            result.state = self.state(seen, &mut broken);
        }
        verdict
    }

    fn correct(&self, cases: &[Case], seen: &Observation, findings: &mut Findings) -> Outcome {
        let mut runs = 0;
        for (size, case) in cases.iter().enumerate() {
            for index in 0..self.step.inputs_per_size {
                let kind = InputKind::ALL[index as usize % InputKind::ALL.len()];
                let seed = self.options.input_seed.wrapping_add(u64::from(index));
                // The first run of all is the one that was observed.
                let fresh = (size, index) != (0, 0);
                let run = fresh.then(|| {
                    let inputs = Inputs::new(case.problem, kind, seed);
                    Observation::new(&case.built, &case.program, inputs, &self.options(None))
                });
                let run = run.as_ref().unwrap_or(seen);
                runs += 1;
                findings.add("the default schedule", run);
                if !(run.report.completed && run.comparison.is_right() && run.overwritten().is_empty()) {
                    return self.incorrect(run, seen, findings);
                }
            }
        }
        let sizes = cases.len();
        let sizes = if sizes == 1 { format!("{}", cases[0].problem) } else { format!("{sizes} sizes") };
        Outcome::Passed { detail: format!("{runs} inputs at {sizes}: random normal, small integers, one-hot") }
    }

    /// D is wrong, or the run broke off: root causes first, then what is wrong with D.
    fn incorrect(&self, run: &Observation, seen: &Observation, findings: &Findings) -> Outcome {
        let sources = &self.options.sources;
        let mut title = None;
        let mut sections = Vec::new();
        if let Some((_, first)) = findings.found.first() {
            title = Some(first.title.clone());
            sections.push(diagnostics::render_all(findings.found.iter().map(|(_, diagnostic)| diagnostic), sources));
        }
        for matrix in run.overwritten() {
            let changed = overwritten(matrix, seen);
            title.get_or_insert_with(|| changed.title.clone());
            sections.push(diagnostics::explain(&changed, sources));
        }
        if sections.is_empty() {
            // No rule was broken, so the kernel does in order something that it should not: the milestones know what.
            let checks = self.step.milestones.iter().map(|milestone| (milestone.check)(seen));
            let wrong = checks.filter_map(|seen| match seen {
                Seen::Wrong(explanation) => Some(explanation),
                _ => None,
            });
            if let Some(explanation) = wrong.into_iter().next() {
                title = Some(explanation.title.clone());
                sections.push(diagnostics::explain(&explanation, sources));
            }
        }
        if let Some(mismatch) = mismatch::classify(&run.reference, &run.comparison) {
            // Every run of a kernel stores the same; only the observed one has a trace.
            let mismatch = mismatch.stored(seen.bytes_stored_to_d());
            if !run.report.completed && mismatch.unwritten == mismatch.wrong.1 {
                sections.push("The run broke off: D was never written.\n".to_string());
            } else {
                // One thing to try is enough: that of the cause.
                let help = if sections.is_empty() { mismatch.help() } else { String::new() };
                title.get_or_insert_with(|| mismatch.title());
                sections.push(mismatch.text() + &help);
            }
        }
        if let Some(reason) = run.report.incomplete.first() {
            sections.push(format!("Not modelled, and so not checked: {reason}.\n"));
        }
        let inputs = &run.inputs;
        sections.push(format!("Inputs: {}, seed {}, at {}.\n", inputs.kind, inputs.seed, inputs.problem));
        let title = title.unwrap_or_else(|| "the run did not come to its end".to_string());
        Outcome::Failed { title, text: sections.join("\n") }
    }

    fn race_free(&self, case: &Case, seen: &Observation, findings: &mut Findings) -> Outcome {
        let mut wrong = None;
        for seed in 1..=u64::from(self.options.seeds) {
            let run = Observation::new(&case.built, &case.program, seen.inputs.clone(), &self.options(Some(seed)));
            let schedule = format!("the schedule of seed {seed}");
            findings.add(&schedule, &run);
            if wrong.is_none() && !(run.report.completed && run.comparison.is_right()) {
                wrong = Some((schedule, run));
            }
        }
        let mut sections = Vec::new();
        // Here the rules are learnt: what no machine code would show counts, too.
        let all = || findings.found.iter().chain(&findings.notes);
        if all().next().is_some() {
            sections.push(diagnostics::first_few(all().map(|found| self.seen_under(found)).collect()));
        }
        if let Some((schedule, run)) = &wrong {
            let what = mismatch::classify(&run.reference, &run.comparison).map_or_else(
                || "The run did not come to its end.\n".to_string(),
                |mismatch| mismatch.text() + &mismatch.help(),
            );
            sections.push(format!("Under {schedule}: {what}"));
        }
        if !sections.is_empty() {
            let title = all()
                .next()
                .map_or_else(|| "D depends on the schedule".to_string(), |(_, diagnostic)| diagnostic.title.clone());
            return Outcome::Failed { title, text: sections.join("\n") };
        }
        if !findings.incomplete.is_empty() {
            return Outcome::NotChecked { reason: format!("not modelled: {}", findings.incomplete.join("; ")) };
        }
        Outcome::Passed {
            detail: format!("no finding under the default schedule and seeds 1 to {}", self.options.seeds),
        }
    }

    fn seen_under(&self, (schedule, diagnostic): &(String, Diagnostic)) -> String {
        format!("{}Seen under {schedule}.\n", diagnostics::render(diagnostic, &self.options.sources))
    }

    /// Simulated cycles against those of the reference solution, on the same inputs.
    fn fast(&self, seen: &Observation) -> Outcome {
        let Some((_, kernel)) = solutions::ALL.iter().find(|(number, _)| *number == self.step.number) else {
            return Outcome::NotChecked {
                reason: format!("there is no reference solution of step {}", self.step.number),
            };
        };
        let reference = (InProcess(*kernel).build(&seen.inputs.problem, self.options.sms).map_err(|e| e.to_string()))
            .and_then(|built| {
                let program =
                    emulator::load(&built.ptx).map_err(|all| diagnostics::render_all(&all, &Sources::none()))?;
                Ok(Observation::new(&built, &program, seen.inputs.clone(), &self.options(None)).report)
            });
        let reference = match reference {
            Ok(report) if report.completed && report.cycles > 0 => report.cycles,
            Ok(_) => return Outcome::NotChecked { reason: "the reference solution does not run".to_string() },
            Err(why) => return Outcome::NotChecked { reason: format!("the reference solution does not build: {why}") },
        };
        let cycles = seen.report.cycles;
        let ratio = cycles as f64 / reference as f64;
        let detail = format!("{cycles} cycles, {ratio:.2} times the reference solution's {reference}");
        if ratio <= FAST {
            return Outcome::Passed { detail };
        }
        let text = format!(
            "{detail}; the limit is {FAST:.2} times (simulated cycles, at {}).\n\
             try: look for work that the tensor core waits for: copies of less than 16 bytes, threads that do nothing, a \
             wait that could come later\n",
            seen.inputs.problem
        );
        Outcome::Failed { title: format!("it takes {ratio:.2} times as long as the reference solution"), text }
    }
}

/// A and B are there to be read.
fn overwritten(matrix: Matrix, seen: &Observation) -> Explanation {
    let title = format!("the kernel writes to {matrix}, which holds something else after it");
    let rule = "a product reads A and B and writes D, nothing else";
    let explanation = Explanation::new(title, rule, format!("store to D, and leave {matrix} as it is"));
    match seen.first_store_to_matrix(matrix) {
        Some(event) => explanation.at(&event.place, "stored here"),
        None => explanation,
    }
}

fn structure(step: &Step, seen: &Observation) -> Outcome {
    match (step.structure)(seen) {
        Ok(detail) => Outcome::Passed { detail },
        Err(wrong) => Outcome::Failed {
            title: wrong.first().cloned().unwrap_or_else(|| format!("this is not a kernel of step {}", step.number)),
            text: wrong.iter().map(|line| format!("{line}.\n")).collect(),
        },
    }
}

/// What the runs broke, each root cause once, with the schedule that showed it first.
#[derive(Default)]
struct Findings {
    found: Vec<(String, Diagnostic)>,
    notes: Vec<(String, Diagnostic)>,
    leaks: Vec<Diagnostic>,
    incomplete: Vec<String>,
}

impl Findings {
    fn add(&mut self, schedule: &str, run: &Observation) {
        let same = |a: &Diagnostic, b: &Diagnostic| {
            a.code == b.code
                && a.labels.first().map(|label| label.place.line) == b.labels.first().map(|label| label.place.line)
        };
        for diagnostic in &run.report.findings {
            if LEAKS.contains(&diagnostic.code) {
                if !self.leaks.iter().any(|known| same(known, diagnostic)) {
                    self.leaks.push(diagnostic.clone());
                }
            } else if !self.found.iter().any(|(_, known)| same(known, diagnostic)) {
                self.found.push((schedule.to_string(), diagnostic.clone()));
            }
        }
        for note in &run.report.notes {
            if !self.notes.iter().any(|(_, known)| same(known, note)) {
                self.notes.push((schedule.to_string(), note.clone()));
            }
        }
        for reason in &run.report.incomplete {
            if !self.incomplete.contains(reason) {
                self.incomplete.push(reason.clone());
            }
        }
    }
}
