//! The judge: from a kernel source to a verdict.

use crate::diagnostics::{self, Explanation};
use crate::fast;
use crate::findings::Findings;
use crate::inputs::{InputKind, Inputs, decode, encode};
use crate::mismatch::{self, Mismatch};
use crate::observe::Observation;
use crate::options::{JudgeOptions, SEED};
use crate::points;
use crate::problem::Problem;
use crate::resources;
use crate::sampled::Sampled;
use crate::source::{BuildErrorAt, BuildFailure, Built, KernelSource, Matrix};
use crate::steps::{self, Seen, Step};
use crate::verdict::{MilestoneResult, MilestoneState, Outcome, Part, Verdict};
use emulator::{Diagnostic, Options, Program};
use std::time::Instant;

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
    /// SMs of the GPU that it was built for.
    sms: u32,
}

/// What is judged, in order: the case that is looked at closely, those that bite, the sizes of the table; each once.
fn plan(step: &Step) -> Vec<steps::Case> {
    let sizes = step.sizes.iter().chain([&step.timed]).map(|problem| steps::Case { problem: *problem, sms: None });
    let mut plan: Vec<steps::Case> = Vec::new();
    for case in [step.observed].into_iter().chain(step.cases.iter().copied()).chain(sizes) {
        if !plan.contains(&case) {
            plan.push(case);
        }
    }
    plan
}

/// Problems with more multiplications are checked on a sample.
const LARGE: u64 = 1 << 31;
/// Problems with more multiplications are run on one input.
const MEDIUM: u64 = 1 << 28;

impl Judge<'_> {
    fn run(&self) -> Verdict {
        let mut verdict = self.blank();
        let mut cases: Vec<Case> = Vec::new();
        for case in plan(self.step) {
            let sms = case.sms.unwrap_or(self.options.sms);
            let built = match self.source.build(&case.problem, sms) {
                Ok(built) => match self.unknown_todos(&built) {
                    Some(failure) => return self.not_built(verdict, &failure),
                    // While a TODO is open, one size tells all there is to tell.
                    None if !built.todos.is_empty() => return self.half_done(verdict, &built, case.problem, sms),
                    None => built,
                },
                Err(failure) => return self.not_built(verdict, &failure),
            };
            match emulator::load(&built.ptx) {
                Ok(program) => cases.push(Case { built, program, problem: case.problem, sms }),
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

    /// TODOs that this step does not have.
    fn unknown_todos(&self, built: &Built) -> Option<BuildFailure> {
        let known: Vec<&str> = self.step.milestones.iter().map(|milestone| milestone.id).collect();
        let unknown = built.todos.iter().filter(|todo| !known.contains(&todo.id.as_str()));
        let errors: Vec<BuildErrorAt> = unknown
            .map(|todo| BuildErrorAt {
                place: todo.place.clone(),
                message: format!("step {} has no TODO {}", self.step.number, todo.id),
                help: format!("Its TODOs are {}.", known.join(", ")),
            })
            .collect();
        (!errors.is_empty()).then_some(BuildFailure::Rejected(errors))
    }

    fn not_built(&self, mut verdict: Verdict, failure: &BuildFailure) -> Verdict {
        let sources = &self.options.sources;
        let text = match failure {
            BuildFailure::Rejected(errors) => {
                diagnostics::first_few(errors.iter().map(|error| diagnostics::refused(error, sources)).collect())
            }
            BuildFailure::Panicked { message, place: Some(place) } => {
                let title = format!("the kernel function panicked: {message}");
                let help = "Look at this line with the eyes of the CPU: a kernel function runs there, once, while the \
                            kernel is built, and its Rust values are not those of the GPU.";
                diagnostics::at(&title, place, "here", help, sources)
            }
            other => format!("error: {other}\n"),
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

    fn options(&self, problem: &Problem, seed: Option<u64>) -> Options {
        Options { seed, max_instructions: self.step.max_instructions(problem), ..Options::default() }
    }

    /// A run with all that can be kept of it.
    fn observe(&self, built: &Built, program: &Program, problem: Problem) -> Observation {
        let options = Options { trace: true, keep_ctas: true, keep_operands: true, ..self.options(&problem, None) };
        let inputs = Inputs::new(problem, InputKind::Normal, self.options.input_seed);
        Observation::new(built, program, inputs, &options)
    }

    /// Some TODOs are open: which of the others are done.
    fn half_done(&self, mut verdict: Verdict, built: &Built, problem: Problem, sms: u32) -> Verdict {
        let open = |id: &str| built.todos.iter().find(|todo| todo.id == id);
        // An untouched skeleton is not run: there is nothing to see.
        let untouched = self.step.milestones.iter().all(|milestone| open(milestone.id).is_some());
        let mut broken = None;
        let mut seen = None;
        if !untouched {
            match emulator::load(&built.ptx) {
                Ok(program) => {
                    let observation = self.observe(built, &program, problem).on(sms);
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
        let reason = verdict.first_undone().map(|first| match first.state {
            MilestoneState::Open { .. } => format!("TODO {} is open", first.id),
            _ => format!("TODO {} is not right yet", first.id),
        });
        for part in Part::ALL {
            self.set(&mut verdict, part, Outcome::NotReached { reason: reason.clone().unwrap_or_default() });
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
            Seen::Found(found) => MilestoneState::Wrong { text: diagnostics::render(&found, &self.options.sources) },
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
        let seen = self.observe(&first.built, &first.program, first.problem).on(first.sms);
        let mut findings = Findings::default();
        let correct = self.correct(cases, &seen, &mut findings);
        let passed = correct.passed();
        self.set(&mut verdict, Part::Correct, correct);
        let mut clean = false;
        if passed {
            let race_free = self.race_free(first, &seen, &mut findings);
            let leaks = self.leaks(&first.built, &findings);
            clean = race_free.passed() && leaks.is_empty();
            self.set(&mut verdict, Part::RaceFree, race_free);
            self.set(&mut verdict, Part::Structure, self.structure(cases, &seen));
            self.set(&mut verdict, Part::Resources, resources::check(&seen, &leaks, &self.options.sources));
            self.set(&mut verdict, Part::Fast, self.fast(cases, &seen));
        }
        let mut broken = self.broken_off(&seen);
        for (result, milestone) in verdict.milestones.iter_mut().zip(self.step.milestones) {
            // A kernel that is right and clean has reached every milestone, also one that goes another way than ours.
            let seen = if clean { Seen::Done } else { (milestone.check)(&seen) };
            result.state = self.state(seen, &mut broken);
        }
        verdict
    }

    /// Tensor memory that is never freed: in the builder's words, else in the emulator's.
    fn leaks(&self, built: &Built, findings: &Findings) -> String {
        let sources = &self.options.sources;
        let refused = |error: &BuildErrorAt| {
            diagnostics::at(&error.message, &error.place, "taken here, and never freed", &error.help, sources)
        };
        match built.leaks.as_slice() {
            [] => diagnostics::render_all(&findings.leaks, sources),
            leaks => diagnostics::first_few(leaks.iter().map(refused).collect()),
        }
    }

    fn correct(&self, cases: &[Case], seen: &Observation, findings: &mut Findings) -> Outcome {
        let (mut runs, mut samples) = (0, Vec::new());
        for (size, case) in cases.iter().enumerate() {
            let products = case.problem.products();
            if products > LARGE && !self.options.full {
                let run = self.sample(case);
                findings.add_report(None, &run.report);
                // Its values depend on what a sample leaves out: then all of them are computed below.
                if run.report.incomplete.is_empty() || !run.report.findings.is_empty() {
                    runs += 1;
                    if !run.is_right() {
                        return self.wrong_sample(&run, findings);
                    }
                    samples.push(format!("{} of {} tiles at {}", run.checked.0, run.checked.1, case.problem));
                    continue;
                }
                findings.incomplete.clear();
            }
            let inputs = if products > MEDIUM { 1 } else { self.step.inputs_per_size };
            for index in 0..inputs {
                let kind = InputKind::ALL[index as usize % InputKind::ALL.len()];
                let seed = self.options.input_seed.wrapping_add(u64::from(index));
                // The first run of all is the one that was observed.
                let fresh = (size, index) != (0, 0);
                let run = fresh.then(|| {
                    let inputs = Inputs::new(case.problem, kind, seed);
                    Observation::new(&case.built, &case.program, inputs, &self.options(&case.problem, None))
                        .on(case.sms)
                });
                let run = run.as_ref().unwrap_or(seen);
                runs += 1;
                findings.add(None, run);
                if !(run.report.completed && run.comparison.is_right() && run.overwritten().is_empty()) {
                    return self.incorrect(run, seen, findings);
                }
            }
        }
        let sizes = sizes(cases.iter().map(|case| case.problem));
        let kinds = "random normal, small integers, one-hot";
        let detail = match samples.as_slice() {
            [] => format!("{runs} inputs ({kinds}), {sizes}"),
            samples => format!(
                "{runs} inputs ({kinds}), {sizes}; on a sample, with order checked everywhere: {}",
                samples.join(", ")
            ),
        };
        Outcome::Passed { detail }
    }

    fn sample(&self, case: &Case) -> Sampled {
        let options = self.options(&case.problem, None);
        let seed = self.options.input_seed;
        Sampled::new(&case.built, &case.program, case.problem, &self.step.shape, case.sms, seed, &options)
    }

    /// D is wrong at a large size, or the run broke off.
    fn wrong_sample(&self, run: &Sampled, findings: &Findings) -> Outcome {
        let sources = &self.options.sources;
        let mut sections: Vec<String> = Vec::new();
        if !findings.found.is_empty() {
            sections.push(diagnostics::render_all(findings.found.iter().map(|(_, diagnostic)| diagnostic), sources));
        }
        let wrong = run.title();
        sections.extend(wrong.iter().map(|wrong| format!("{wrong}.\n")));
        sections.push(format!(
            "Inputs: small integers, seed {}, at {}; {} of {} tiles were checked. `{}=1` checks all.\n",
            self.options.input_seed,
            run.problem,
            run.checked.0,
            run.checked.1,
            crate::options::FULL
        ));
        let first = findings.found.first().map(|(_, first)| first.title.clone());
        let title = first.or(wrong).unwrap_or_else(|| "the run did not come to its end".to_string());
        Outcome::Failed { title, text: sections.join("\n") }
    }

    fn fast(&self, cases: &[Case], seen: &Observation) -> Outcome {
        let timed = self.step.timed;
        if seen.inputs.problem == timed {
            return fast::check(self.step, seen, &self.options(&timed, None), self.options.sms);
        }
        let Some(case) = cases.iter().find(|case| case.problem == timed && case.sms == self.options.sms) else {
            return Outcome::NotChecked { reason: format!("the kernel was not built for {timed}") };
        };
        let options = Options { timing_only: true, trace: true, ..self.options(&timed, None) };
        let inputs = Inputs::new(timed, InputKind::Integers, self.options.input_seed);
        let seen = Observation::new(&case.built, &case.program, inputs, &options).on(case.sms);
        fast::check(self.step, &seen, &options, self.options.sms)
    }

    fn structure(&self, cases: &[Case], seen: &Observation) -> Outcome {
        let (step, shape) = (self.step, &self.step.shape);
        let mut wrong = (step.structure)(seen).err().unwrap_or_default();
        // Whatever the size.
        let other = cases.iter().find(|case| {
            let [x, y] = shape.grid(&case.problem, case.sms);
            case.built.grid != [x, y, 1]
        });
        if let (Some(case), true) = (other, wrong.is_empty()) {
            let [x, y] = shape.grid(&case.problem, case.sms);
            wrong.push(format!(
                "at {} with {} SMs this step launches {x} x {y} CTAs; this kernel's grid is {:?}",
                case.problem, case.sms, case.built.grid
            ));
        }
        if wrong.is_empty()
            && let Some(first) = cases.first()
            && let Err(decoy) = self.probe(first)
        {
            wrong.push(decoy);
        }
        match (wrong.first(), (step.structure)(seen)) {
            (None, Ok(detail)) => Outcome::Passed { detail },
            (first, _) => Outcome::Failed {
                title: first.cloned().unwrap_or_else(|| format!("this is not a kernel of step {}", step.number)),
                text: wrong.iter().map(|line| format!("{line}.\n")).collect(),
            },
        }
    }

    /// D comes from tensor memory: when each value that is loaded from there is doubled, D doubles.
    fn probe(&self, case: &Case) -> Result<(), String> {
        const FACTOR: f32 = 2.0;
        let inputs = Inputs::new(case.problem, InputKind::Integers, self.options.input_seed);
        let options = Options { tensor_load_factor: FACTOR, ..self.options(&case.problem, None) };
        let run = Observation::new(&case.built, &case.program, inputs, &options);
        if let Some(reason) = run.report.incomplete.first() {
            return Err(format!("whether D comes from tensor memory could not be seen: {reason}"));
        }
        let dtype = case.problem.dtype;
        let doubled = |expected: &f64| decode(dtype, encode(dtype, FACTOR * *expected as f32));
        let other = run
            .comparison
            .found
            .iter()
            .zip(&run.reference.values)
            .position(|(found, expected)| *found != doubled(expected));
        match other {
            None => Ok(()),
            Some(index) => Err(format!(
                "D is what is loaded from tensor memory; when the emulator doubles each of these values, element ({}, {}) of this \
                 kernel's D is not doubled",
                index / run.comparison.columns,
                index % run.comparison.columns
            )),
        }
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
            let mut checks = self.step.milestones.iter().map(|milestone| (milestone.check)(seen));
            let wrong = checks.find_map(|seen| match seen {
                Seen::Wrong(explanation) => {
                    Some((explanation.title.clone(), diagnostics::explain(&explanation, sources)))
                }
                Seen::Found(found) => Some((found.title.clone(), diagnostics::render(&found, sources))),
                _ => None,
            });
            if let Some((first, text)) = wrong {
                title = Some(first);
                sections.push(text);
            }
        }
        if let Some(mismatch) = mismatch::classify(&run.reference, &run.comparison) {
            let mismatch = seen.told(mismatch);
            if !run.report.completed {
                // What is missing is missing because of that.
                let all = mismatch.unwritten == mismatch.wrong.1;
                let how_far = if all { "D was never written" } else { "D is not complete" };
                sections.push(format!("The run broke off: {how_far}.\n"));
            } else if sections.is_empty() {
                title = Some(mismatch.title());
                sections.push(mismatch.text() + &tried(&mismatch));
            } else if title.as_deref() == Some(&mismatch.title()) {
                sections.push(mismatch.numbers());
            } else {
                // One thing to try is enough: that of the cause.
                sections.push(mismatch.summary());
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
        let seeds = match self.options.seed {
            Some(seed) => seed..=seed,
            None => 1..=u64::from(self.options.seeds),
        };
        for seed in seeds.clone() {
            let options = self.options(&case.problem, Some(seed));
            let run = Observation::new(&case.built, &case.program, seen.inputs.clone(), &options);
            findings.add(Some(seed), &run);
            if wrong.is_none() && !(run.report.completed && run.comparison.is_right()) {
                wrong = Some((seed, run));
            }
        }
        let mut sections = Vec::new();
        // Here the rules are learnt: what no machine code would show counts, too.
        let all = || findings.found.iter().chain(&findings.notes);
        if all().next().is_some() {
            sections.push(diagnostics::first_few(all().map(|found| self.seen_under(found)).collect()));
        }
        // A run that broke off has said why.
        if let Some((seed, run)) = wrong.filter(|(_, run)| run.report.completed || run.report.findings.is_empty()) {
            let what = match mismatch::classify(&run.reference, &run.comparison) {
                Some(mismatch) if run.report.completed => mismatch.text() + &tried(&mismatch),
                _ => "the run did not come to its end.\n".to_string(),
            };
            sections.push(format!("Under {}: {what}{}", schedule(Some(seed)), self.repeat(seed)));
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
        let seeds = match (seeds.start(), seeds.end()) {
            (first, last) if first > last => String::new(),
            (first, last) if first == last => format!(" and seed {first}"),
            (first, last) => format!(" and seeds {first} to {last}"),
        };
        Outcome::Passed { detail: format!("no finding under the default schedule{seeds}") }
    }

    fn seen_under(&self, (seed, diagnostic): &(Option<u64>, Diagnostic)) -> String {
        let text = diagnostics::render(diagnostic, &self.options.sources);
        let repeat = seed.map(|seed| self.repeat(seed)).unwrap_or_default();
        format!("{text}Seen under {}.\n{repeat}", schedule(*seed))
    }

    /// How to judge under one schedule alone.
    fn repeat(&self, seed: u64) -> String {
        format!("repeat: {SEED}={seed} cargo test -p step{:02}\n", self.step.number)
    }
}

fn schedule(seed: Option<u64>) -> String {
    seed.map_or_else(|| "the default schedule".to_string(), |seed| format!("the schedule of seed {seed}"))
}

/// What to try, as a line; empty when nothing explains the mismatch.
fn tried(mismatch: &Mismatch) -> String {
    mismatch.help().map(|help| format!("try: {help}\n")).unwrap_or_default()
}

/// Sizes, each once with its types: `128x128x64 in f16 and bf16`; of many only how many.
fn sizes(problems: impl Iterator<Item = Problem>) -> String {
    let mut sizes: Vec<(String, String)> = Vec::new();
    for problem in problems {
        let text = problem.to_string();
        let (size, dtype) = text.split_once(' ').unwrap_or((&text, ""));
        match sizes.iter_mut().find(|(known, _)| known == size) {
            Some((_, types)) => *types += &format!(" and {dtype}"),
            None => sizes.push((size.to_string(), dtype.to_string())),
        }
    }
    // A line that can be read at a glance.
    const FEW: usize = 4;
    if sizes.len() > FEW {
        return format!("{} sizes", sizes.len());
    }
    let sizes: Vec<String> = sizes.into_iter().map(|(size, types)| format!("{size} in {types}")).collect();
    sizes.join(", ")
}

/// A and B are there to be read.
fn overwritten(matrix: Matrix, seen: &Observation) -> Explanation {
    let title = format!("the kernel writes to {matrix}, which holds something else after it");
    let rule = "A product reads A and B and writes D, nothing else.";
    let explanation = Explanation::new(title, rule, format!("Store to D, and leave {matrix} as it is."));
    match seen.first_store_to_matrix(matrix) {
        Some(event) => explanation.at(&event.place, "stored here"),
        None => explanation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx::Dtype;

    #[test]
    fn sizes_are_named_once_with_their_types() {
        let (f16, bf16) = (Problem::f16(128, 128, 64), Problem { dtype: Dtype::Bf16, ..Problem::f16(128, 128, 64) });
        assert_eq!(sizes([f16, bf16].into_iter()), "128x128x64 in f16 and bf16");
        assert_eq!(sizes([f16, Problem::f16(128, 128, 512)].into_iter()), "128x128x64 in f16, 128x128x512 in f16");
    }
}
