//! The part `structure`: whether the kernel is what its step claims, on what its runs show.

use super::{Case, Judge};
use crate::inputs::{InputKind, Inputs, decode, encode};
use crate::observe::Observation;
use crate::options::JudgeOptions;
use crate::source::KernelSource;
use crate::steps::Step;
use crate::verdict::Outcome;
use emulator::Options;

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
        return Outcome::Failed { text: format!("{wrong}.\n"), title: wrong };
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

impl Judge<'_> {
    pub(super) fn structure(&self, cases: &[Case], seen: &Observation) -> Outcome {
        let checked = (self.step.structure)(seen);
        let mut wrong = checked.as_ref().err().cloned().unwrap_or_default();
        if wrong.is_empty() {
            wrong.extend(self.launched_otherwise(cases));
        }
        if wrong.is_empty()
            && let Some(first) = cases.first()
            && let Err(decoy) = self.probe(first)
        {
            wrong.push(decoy);
        }
        match (wrong.first(), checked) {
            (None, Ok(detail)) => Outcome::Passed { detail },
            (first, _) => Outcome::Failed {
                title: first.cloned().unwrap_or_else(|| format!("this is not a kernel of step {}", self.step.number)),
                text: wrong.iter().map(|line| format!("{line}.\n")).collect(),
            },
        }
    }

    /// A launch that is not the step's, whatever the size.
    fn launched_otherwise(&self, cases: &[Case]) -> Option<String> {
        let shape = &self.step.shape;
        cases.iter().find_map(|case| {
            let ([x, y], built) = (shape.grid(&case.problem, case.sms), &case.built);
            let as_wanted =
                built.grid == [x, y, 1] && built.cluster == [shape.ctas, 1, 1] && built.block == [shape.threads, 1, 1];
            (!as_wanted).then(|| {
                format!(
                    "at {} with {} SMs this step launches {x} x {y} CTAs of {} threads, in clusters of {}; this kernel's grid is \
                     {:?}, its block {:?}, its cluster {:?}",
                    case.problem, case.sms, shape.threads, shape.ctas, built.grid, built.block, built.cluster
                )
            })
        })
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
}
