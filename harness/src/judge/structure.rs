//! The part `structure`: whether the kernel is what its step claims, on what its runs show.

use super::{Case, Judge, MEDIUM};
use crate::inputs::{InputKind, Random, decode, encode};
use crate::observe::Observation;
use crate::options::JudgeOptions;
use crate::source::KernelSource;
use crate::steps::Step;
use crate::steps::hopper::HOPPER;
use crate::verdict::Outcome;
use emulator::Options;
use matrices::drawn::drawn;

/// The part `structure` alone: what [`super::judge`] says of it, without the runs of the other parts. A kernel that is not built
/// for all sizes of the step fails; of one whose D is wrong at the size that is looked at, nothing is said.
pub fn structure(step: &Step, source: &dyn KernelSource, options: &JudgeOptions) -> Outcome {
    let judge = Judge { step, source, options };
    let cases = match judge.cases() {
        Ok(cases) => cases,
        Err(stop) => return judge.why(&stop),
    };
    // What the recipe says takes no run.
    if let Some(wrong) = judge.launched_otherwise(&cases) {
        return Outcome::failed(wrong.clone(), format!("{wrong}.\n"));
    }
    let Some(first) = cases.first() else {
        return Outcome::NotReached { reason: "the step has no sizes".to_string() };
    };
    let seen = judge.observe(&first.built, &first.program, first.problem).on(first.sms);
    if !(seen.report.completed && seen.comparison.is_right()) {
        return Outcome::NotReached { reason: "`correct` comes first".to_string() };
    }
    judge.structure(&cases, &seen)
}

/// The probe: so many times what is in tensor memory is loaded.
const FACTOR: f32 = 2.0;

impl Judge<'_> {
    pub(super) fn structure(&self, cases: &[Case], seen: &Observation) -> Outcome {
        let checked = (self.step.structure)(seen);
        let mut wrong = checked.as_ref().err().cloned().unwrap_or_default();
        if wrong.is_empty() {
            wrong.extend(self.launched_otherwise(cases));
        }
        // The sums of a `wgmma` are in registers: there is no load to double.
        if wrong.is_empty() && self.step.number != HOPPER {
            wrong
                .extend(self.probed(cases).find_map(|case| self.probe(case).err()).or_else(|| self.probe_large(cases)));
        }
        match (wrong.first(), checked) {
            (None, Ok(detail)) => Outcome::Passed { detail },
            (first, _) => {
                let other = || format!("this is not a kernel of step {}", self.step.number);
                let text: String = wrong.iter().map(|line| format!("{line}.\n")).collect();
                Outcome::failed(first.cloned().unwrap_or_else(other), text)
            }
        }
    }

    /// A launch that is not the step's, whatever the size.
    fn launched_otherwise(&self, cases: &[Case]) -> Option<String> {
        let shape = &self.step.shape;
        cases.iter().find_map(|case| shape.launched_otherwise(&case.built, &case.problem, case.sms))
    }

    /// The case that is looked at, and two others that the seed chooses: a kernel cannot be honest at one size alone.
    fn probed<'a>(&self, cases: &'a [Case]) -> impl Iterator<Item = &'a Case> {
        let mut others: Vec<&Case> = cases.iter().skip(1).filter(|case| case.problem.products() <= MEDIUM).collect();
        let mut random = Random::new(self.options.input_seed);
        let count = others.len().min(2);
        let drawn: Vec<&Case> =
            (0..count).map(|_| others.swap_remove(random.below(others.len() as u64) as usize)).collect();
        cases.first().into_iter().chain(drawn)
    }

    /// The same of the smallest case that is too large for this, on a sample.
    fn probe_large(&self, cases: &[Case]) -> Option<String> {
        let large = cases.iter().filter(|case| case.problem.products() > MEDIUM);
        let case = large.min_by_key(|case| case.problem.products())?;
        let run = self.sample(case, FACTOR);
        let wrong = run.title().filter(|_| run.report.completed)?;
        Some(format!(
            "D is what is loaded from tensor memory; when the emulator doubles each of these values, this kernel's D is not doubled: {wrong}"
        ))
    }

    /// The MMAs are those of the product, and D comes from tensor memory: when each value that is loaded from there is doubled, D
    /// doubles.
    fn probe(&self, case: &Case) -> Result<(), String> {
        let (inputs, reference) = drawn(case.problem, InputKind::Integers, self.options.input_seed);
        let options = Options { tensor_load_factor: FACTOR, trace: true, ..self.options(&case.problem, None) };
        let run = Observation::against(reference, &case.built, &case.program, inputs, &options);
        let problem = case.problem;
        if let Some(reason) = run.report.incomplete.first() {
            return Err(format!("whether D comes from tensor memory could not be seen at {problem}: {reason}"));
        }
        if let Some(other) = self.step.shape.multiplied_otherwise(&run) {
            return Err(format!("at {problem} {other}"));
        }
        let dtype = problem.dtype;
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
                 kernel's D is not doubled at {problem}",
                index / run.comparison.columns,
                index % run.comparison.columns
            )),
        }
    }
}
