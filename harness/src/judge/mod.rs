//! The judge: from a kernel source to a verdict.

mod again;
mod correct;
mod follows;
mod on_gpu;
mod structure;
mod todos;
mod unbuilt;

pub use todos::mended_elsewhere;

pub use structure::structure;

use crate::device::Device;
use crate::diagnostics;
use crate::fast;
use crate::findings::{Findings, Run, rank};
use crate::inputs::InputKind;
use crate::launch;
use crate::mismatch::{self, Mismatch};
use crate::observe::{self, Observation};
use crate::options::{JudgeOptions, SEED};
use crate::points;
use crate::problem::Problem;
use crate::resources::{self, Wrong};
use crate::source::{BuildErrorAt, BuildFailure, Built, KernelSource};
use crate::steps::hopper::HOPPER;
use crate::steps::{self, Seen, Step};
use crate::told::Told;
use crate::verdict::{MilestoneResult, MilestoneState, Outcome, Part, Verdict};
use emulator::{Diagnostic, Mode, Options, Program};
use matrices::drawn::drawn;
use ptx::Dtype;
use std::time::Instant;

/// Judges a kernel.
pub fn judge(step: &Step, source: &dyn KernelSource, options: &JudgeOptions) -> Verdict {
    let begin = Instant::now();
    let mut verdict = Judge { step, source, options }.run();
    options.progress.over();
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
    /// Inputs that it is run on.
    inputs: u32,
}

/// What is judged, in order, and on how many inputs: the case that is looked at closely, numbers of rounds and tiles (small, and they say
/// best what is wrong with phases), the cases that bite, the sizes of the table; each once.
fn plan(step: &Step, sizes: &[Problem], timed: Problem) -> Vec<(steps::Case, u32)> {
    let inputs = |case: steps::Case| (case, if case.problem.products() > MEDIUM { 1 } else { step.inputs_per_size });
    let sizes = sizes.iter().chain([&timed]).map(|problem| steps::Case { problem: *problem, sms: None });
    let trips = step.trips().into_iter().map(|case| (case, 1));
    let rest = step.cases.iter().copied().chain(sizes).map(inputs);
    let mut plan: Vec<(steps::Case, u32)> = Vec::new();
    for (case, inputs) in [inputs(step.observed)].into_iter().chain(trips).chain(rest) {
        match plan.iter_mut().find(|known| known.0 == case) {
            Some(known) => known.1 = known.1.max(inputs),
            None => plan.push((case, inputs)),
        }
    }
    plan
}

/// What a kernel of this step is built for, in the judge's order: problems, and the number of SMs of the GPU.
pub fn asked_for(step: &Step, options: &JudgeOptions) -> Vec<(Problem, u32)> {
    let plan = plan(step, options.demands.sizes(step), options.demands.timed(step));
    plan.into_iter().map(|(case, _)| (case.problem, case.sms.unwrap_or(options.sms))).collect()
}

/// Why nothing is known of a milestone.
const BROKE_OFF: &str = "the run broke off before";

/// Problems with more multiplications are run on one input.
const MEDIUM: u64 = 1 << 28;

/// Why a kernel is not judged in all five parts.
enum Stop {
    /// It could not be built for a problem that the step has to solve, for a GPU of so many SMs.
    NotBuilt(BuildFailure, Problem, u32),
    /// TODOs are open; this is what it is at the first of the step's cases.
    Open(Box<Built>, steps::Case),
    /// The emulator does not take its PTX text.
    Refused(Vec<Diagnostic>),
}

impl Judge<'_> {
    fn run(&self) -> Verdict {
        let verdict = self.blank();
        match self.cases() {
            Ok(cases) => self.whole(verdict, &cases),
            Err(Stop::Open(built, case)) => self.half_done(verdict, &built, case),
            Err(stop) => self.stopped(verdict, &stop),
        }
    }

    /// The kernel at each of the step's sizes.
    fn cases(&self) -> Result<Vec<Case>, Stop> {
        let (mut cases, demands) = (Vec::new(), &self.options.demands);
        for (case, inputs) in plan(self.step, demands.sizes(self.step), demands.timed(self.step)) {
            let (problem, sms) = (case.problem, case.sms.unwrap_or(self.options.sms));
            let not_built = |failure| Stop::NotBuilt(failure, problem, sms);
            // Each of them twice: what differs at any is judged by chance.
            let built = again::twice(|| self.source.build(&problem, sms)).map_err(not_built)?;
            if let Some(failure) = self.unknown_todos(&built) {
                return Err(Stop::NotBuilt(failure, problem, sms));
            }
            // While a TODO is open, one size tells all there is to tell.
            if !built.todos.is_empty() {
                return Err(Stop::Open(Box::new(built), case));
            }
            let program = emulator::load(&built.ptx).map_err(Stop::Refused)?;
            cases.push(Case { built, program, problem, sms, inputs });
        }
        Ok(cases)
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
            ending: None,
            here: None,
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
        // A list of thousands says no more.
        const SHOWN: usize = 20;
        let errors: Vec<BuildErrorAt> = unknown
            .take(SHOWN)
            .map(|todo| BuildErrorAt {
                place: todo.place.clone(),
                message: format!("step {} has no TODO {}", self.step.number, todo.id),
                help: format!("Its TODOs are {}.", known.join(", ")),
            })
            .collect();
        (!errors.is_empty()).then_some(BuildFailure::Rejected(errors))
    }

    fn stopped(&self, mut verdict: Verdict, stop: &Stop) -> Verdict {
        match stop {
            Stop::NotBuilt(BuildFailure::Here { message }, ..) => verdict.here = Some(message.clone()),
            Stop::NotBuilt(failure, ..) => {
                verdict.build_failure = Some(failure.unbuilt());
                verdict.ending = failure.ending().cloned();
            }
            Stop::Open(..) | Stop::Refused(_) => {}
        }
        let outcome = self.why(stop);
        self.set(&mut verdict, Part::Correct, outcome);
        verdict
    }

    /// Why there is nothing to judge.
    fn why(&self, stop: &Stop) -> Outcome {
        match stop {
            Stop::NotBuilt(BuildFailure::Here { message }, ..) => {
                Outcome::not_checked(format!("this machine failed, not the kernel: {message}"))
            }
            Stop::NotBuilt(failure, problem, sms) => self.not_built(failure, problem, *sms),
            Stop::Open(built, _) => {
                let first = built.todos.first().map(|todo| todo.id.as_str()).unwrap_or_default();
                Outcome::NotReached { reason: format!("TODO {first} is open") }
            }
            Stop::Refused(diagnostics) => self.refused(diagnostics),
        }
    }

    /// The emulator does not take the PTX text.
    fn refused(&self, diagnostics: &[Diagnostic]) -> Outcome {
        let title = diagnostics.first().map_or("the PTX text is refused", |first| &first.title).to_string();
        Outcome::failed(title, diagnostics::render_all(diagnostics, &self.options.sources))
    }

    fn options(&self, problem: &Problem, seed: Option<u64>) -> Options {
        Options {
            seed,
            threads: self.options.threads,
            max_instructions: self.step.max_instructions(problem),
            ..Options::default()
        }
    }

    /// A run with all that can be kept of it.
    fn observe(&self, built: &Built, program: &Program, problem: Problem) -> Observation {
        let options = Options { trace: true, keep_ctas: true, keep_operands: true, ..self.options(&problem, None) };
        let (inputs, reference) = drawn(problem, InputKind::Normal, self.options.input_seed);
        Observation::against(reference, built, program, inputs, &options)
    }

    /// Some TODOs are open: which of the others are done.
    fn half_done(&self, mut verdict: Verdict, built: &Built, case: steps::Case) -> Verdict {
        let (problem, sms) = (case.problem, case.sms.unwrap_or(self.options.sms));
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
        let mut waits = false;
        let home = seen.as_ref().and_then(|seen| self.home(seen, |id| open(id).is_some()));
        for (result, milestone) in verdict.milestones.iter_mut().zip(self.step.milestones) {
            result.state = match (open(milestone.id), &seen) {
                (Some(todo), seen) => {
                    let there = seen.as_ref().is_some_and(|seen| self.is_there(milestone, &todo.place, seen));
                    MilestoneState::Open { place: todo.place.clone(), there }
                }
                (None, Some(seen)) => match (milestone.check)(seen) {
                    // The run broke off where an earlier TODO is open: that says nothing of this one.
                    Seen::Cut if waits => MilestoneState::NotReached {
                        reason: "cannot be seen yet: it needs what comes before".to_string(),
                    },
                    Seen::Cut if home.is_some_and(|home| home != milestone.id) => self.state(Seen::Cut, &mut None),
                    seen => self.state(seen, &mut broken),
                },
                (None, None) => self.state(Seen::Cut, &mut broken),
            };
            waits |= open(milestone.id).is_some();
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
    fn broken_off(&self, seen: &Observation) -> Option<Told> {
        (!seen.report.completed).then(|| diagnostics::render_all(ranked(seen), &self.options.sources))
    }

    /// `broken` is what broke the run off: the first milestone that it cut short shows it, unless the finding has a home.
    fn state(&self, seen: Seen, broken: &mut Option<Told>) -> MilestoneState {
        match seen {
            Seen::Done => MilestoneState::Done,
            Seen::Wrong(explanation) => diagnostics::explain(&explanation, &self.options.sources).into(),
            Seen::Found(found) => diagnostics::render(&found, &self.options.sources).into(),
            Seen::NotReached(reason) => MilestoneState::NotReached { reason },
            Seen::Cut => match broken.take() {
                Some(told) => told.into(),
                None => MilestoneState::NotReached { reason: BROKE_OFF.to_string() },
            },
        }
    }

    /// No TODO is open: all five parts.
    fn whole(&self, mut verdict: Verdict, cases: &[Case]) -> Verdict {
        let Some(first) = cases.first() else { return verdict };
        let seen = self.observe(&first.built, &first.program, first.problem).on(first.sms);
        let mut findings = Findings::default();
        let correct = match &self.options.device {
            Device::Emulator => self.correct(cases, &seen, &mut findings),
            Device::Cuda(card) => self.correct_on(card.as_ref(), cases, &seen, &mut findings),
        };
        let passed = correct.passed();
        self.set(&mut verdict, Part::Correct, correct);
        let mut clean = false;
        if passed {
            let race_free = self.race_free(first, &seen, &mut findings);
            let leaks = self.leaks(&first.built, &findings);
            clean = race_free.passed() && leaks.is_none();
            self.set(&mut verdict, Part::RaceFree, race_free);
            self.set(&mut verdict, Part::Structure, self.structure(cases, &seen));
            let longest = cases.iter().max_by_key(|case| case.built.ptx.len());
            let bf16 = cases.iter().find(|case| case.problem.dtype == Dtype::Bf16);
            let others: Vec<_> = longest.into_iter().chain(bf16).map(|case| (&case.built, case.problem)).collect();
            let resources = resources::check(&seen, &others, leaks, &self.options.sources);
            let resources = resources.unwrap_or_else(|why| {
                verdict.here = Some(why.clone());
                Outcome::not_checked(why)
            });
            self.set(&mut verdict, Part::Resources, resources);
            self.options.progress.at(|| format!("time at {} …", self.options.demands.timed(self.step)));
            let fast = match &self.options.device {
                Device::Emulator => self.fast(cases, &seen, findings.timed_cycles),
                Device::Cuda(card) => self.fast_on(card.as_ref(), cases, &seen),
            };
            self.set(&mut verdict, Part::Fast, fast);
            if let (Device::Cuda(_), Some(reason)) = (&self.options.device, on_gpu::tells_apart(cases)) {
                for part in [Part::RaceFree, Part::Structure] {
                    if verdict.part(part).passed() {
                        self.set(&mut verdict, part, Outcome::not_checked(reason.clone()));
                    }
                }
            }
        }
        let mut broken = self.broken_off(&seen);
        let home = self.home(&seen, |_| false);
        let part = if passed { Part::RaceFree } else { Part::Correct };
        let all = findings.found.iter().chain(findings.notes.iter().filter(|_| passed));
        let flagged: Vec<&str> =
            all.filter_map(|(_, found)| self.milestone_of(found, &seen)).map(|milestone| milestone.id).collect();
        for (result, milestone) in verdict.milestones.iter_mut().zip(self.step.milestones) {
            // A kernel that is right and clean has reached every milestone, also one that goes another way than ours.
            let seen = if clean { Seen::Done } else { (milestone.check)(&seen) };
            result.state = match seen {
                Seen::Cut if home.is_some_and(|home| home != milestone.id) => self.state(Seen::Cut, &mut None),
                seen => self.state(seen, &mut broken),
            };
            if result.state == MilestoneState::Done && flagged.contains(&milestone.id) {
                result.state = MilestoneState::Flagged { part };
            }
        }
        self.settle(&mut verdict, &findings, &seen);
        verdict
    }

    /// Tensor memory that is never freed: in the builder's words, else in the emulator's.
    fn leaks(&self, built: &Built, findings: &Findings) -> Option<Wrong> {
        let sources = &self.options.sources;
        let refused = |error: &BuildErrorAt| {
            diagnostics::at(&error.message, &error.place, "taken here, and never freed", &error.help, sources)
        };
        match (built.leaks.as_slice(), findings.leaks.as_slice()) {
            ([], []) => None,
            ([], all @ [first, ..]) => {
                Some(Wrong { title: first.title.clone(), told: diagnostics::render_all(all, sources) })
            }
            (all @ [first, ..], _) => Some(Wrong {
                title: first.message.clone(),
                told: diagnostics::first_few(all.iter().map(refused).collect()),
            }),
        }
    }

    /// `checked`: cycles of the timed problem in a run whose D was checked; 0: D was checked elsewhere.
    fn fast(&self, cases: &[Case], seen: &Observation, checked: u64) -> Outcome {
        let demands = &self.options.demands;
        let (timed, limit) = (demands.timed(self.step), demands.fast(self.step));
        let reference = demands.reference(self.step, self.options.sms);
        // The sums of a `wgmma` are no MMAs of the trace.
        let products = if self.step.number == HOPPER { 0 } else { timed.products() };
        let zeros = seen.inputs.problem != timed;
        let demanded = fast::Demanded { problem: timed, limit, products, checked, zeros };
        let options = Options { trace: true, ..self.options(&timed, None) };
        if !zeros {
            return fast::check(reference, &demanded, &seen.report, |built, program| {
                observe::run(program, launch::launch(built, &seen.inputs), &options)
            });
        }
        let Some(case) = cases.iter().find(|case| case.problem == timed && case.sms == self.options.sms) else {
            return Outcome::not_checked(format!("the kernel was not built for {timed}"));
        };
        // No inputs, and no product to hold D against.
        let options = Options { mode: Mode::Time, ..options };
        let times =
            |built: &Built, program: &Program| observe::run(program, launch::times_only(built, timed), &options);
        fast::check(reference, &demanded, &times(&case.built, &case.program), times)
    }

    fn race_free(&self, case: &Case, seen: &Observation, findings: &mut Findings) -> Outcome {
        let mut wrong = None;
        let seeds = match self.options.seed {
            Some(seed) => seed..=seed,
            None => 1..=u64::from(self.options.seeds),
        };
        for seed in seeds.clone() {
            self.options.progress.at(|| format!("{}, schedule {seed} of {} …", case.problem, seeds.end()));
            let options = self.options(&case.problem, Some(seed));
            let (reference, inputs) = (seen.reference.clone(), seen.inputs.clone());
            let run = Observation::against(reference, &case.built, &case.program, inputs, &options);
            findings.add(Some(seed), &run);
            if wrong.is_none() && !(run.report.completed && run.comparison.is_right()) {
                wrong = Some((seed, run));
            }
        }
        let mut sections: Vec<Told> = Vec::new();
        // Here the rules are learnt: what no machine code would show counts, too.
        let all = || findings.found.iter().chain(&findings.notes);
        if all().next().is_some() {
            sections.push(diagnostics::first_few(all().map(|found| self.seen_under(found, seen)).collect()));
        }
        // A run that broke off has said why.
        if let Some((seed, run)) = wrong.filter(|(_, run)| run.report.completed || run.report.findings.is_empty()) {
            let what = match mismatch::classify(&run.reference, &run.comparison) {
                Some(mismatch) if run.report.completed => tried(mismatch.text(), &mismatch),
                _ => "the run did not come to its end.\n".to_string().into(),
            };
            sections.push(Told::from(format!("Under {}: ", schedule(Some(seed)))) + what + self.repeat(seed).as_str());
        }
        if !sections.is_empty() {
            let title = all()
                .next()
                .map_or_else(|| "D depends on the schedule".to_string(), |(_, diagnostic)| diagnostic.title.clone());
            return Outcome::failed(title, Told::joined(sections));
        }
        if !findings.incomplete.is_empty() {
            return Outcome::not_checked(format!("not modelled: {}", findings.incomplete.join("; ")));
        }
        let seeds = match (seeds.start(), seeds.end()) {
            (first, last) if first > last => String::new(),
            (first, last) if first == last => format!(" and seed {first}"),
            (first, last) => format!(" and seeds {first} to {last}"),
        };
        let hangs = match findings.unproved.first() {
            None => "no interleaving hangs".to_string(),
            Some(why) => format!("not proved that no interleaving hangs ({why})"),
        };
        Outcome::Passed { detail: format!("no finding under the default schedule{seeds}; {hangs}") }
    }

    /// A finding, and the run that showed it: its size, if it is not the one that is looked at closely.
    fn seen_under(&self, ((seed, problem), diagnostic): &(Run, Diagnostic), seen: &Observation) -> Told {
        let text = self.shown(diagnostic, seen);
        let repeat = seed.map(|seed| self.repeat(seed)).unwrap_or_default();
        let at = if *problem == seen.inputs.problem { String::new() } else { format!("at {problem} ") };
        text + format!("Seen {at}under {}.\n{repeat}", schedule(*seed)).as_str()
    }

    /// How to judge under one schedule alone.
    fn repeat(&self, seed: u64) -> String {
        format!("repeat: {SEED}={seed} {}\n", self.step.command())
    }
}

/// The findings of a run, with what says most about the others first.
fn ranked(seen: &Observation) -> Vec<&Diagnostic> {
    let mut findings: Vec<&Diagnostic> = seen.report.findings.iter().collect();
    findings.sort_by_key(|found| rank(found));
    findings
}

fn schedule(seed: Option<u64>) -> String {
    seed.map_or_else(|| "the default schedule".to_string(), |seed| format!("the schedule of seed {seed}"))
}

/// A text on a mismatch, with what to try; with nothing when nothing explains it.
fn tried(text: String, mismatch: &Mismatch) -> Told {
    match mismatch.help() {
        Some(help) => Told::with_help(format!("{text}try: {help}\n"), help),
        None => text.into(),
    }
}
