//! The part `correct`: D, at every size and on every input.

use super::todos::pointer;
use super::{Case, Judge, tried};
use crate::astray;
use crate::diagnostics::{self, Explanation};
use crate::findings::Findings;
use crate::inputs::InputKind;
use crate::mismatch;
use crate::observe::{self, Observation};
use crate::problem::Problem;
use crate::sampled::Sampled;
use crate::source::Matrix;
use crate::steps::Seen;
use crate::told::Told;
use crate::verdict::Outcome;
use emulator::{Diagnostic, Meaning, Options, Report};
use matrices::drawn::drawn;

/// Problems with more multiplications are checked on a sample.
const LARGE: u64 = 1 << 31;

impl Judge<'_> {
    pub(super) fn correct(&self, cases: &[Case], seen: &Observation, findings: &mut Findings) -> Outcome {
        let (mut runs, mut samples) = (0, Vec::new());
        for (size, case) in cases.iter().enumerate() {
            let products = case.problem.products();
            self.options.progress.at(|| format!("{}, size {} of {} …", case.problem, size + 1, cases.len()));
            if products > LARGE && !self.options.full {
                let run = self.sample(case, 1.0);
                let known = findings.incomplete.len();
                findings.add_report((None, case.problem), &run.report);
                self.keep_time(case, &run.report, findings);
                // Its values depend on what a sample leaves out: then all of them are computed below.
                if run.report.incomplete.is_empty() || !run.report.findings.is_empty() {
                    runs += 1;
                    if !run.is_right() {
                        return self.wrong_sample(&run, seen, findings);
                    }
                    samples.push(format!("{} of {} tiles at {}", run.checked.0, run.checked.1, case.problem));
                    continue;
                }
                findings.incomplete.truncate(known);
            }
            for index in 0..case.inputs {
                let kind = InputKind::ALL[index as usize % InputKind::ALL.len()];
                let seed = self.options.input_seed.wrapping_add(u64::from(index));
                // The first run of all is the one that was observed.
                let fresh = (size, index) != (0, 0);
                let run = fresh.then(|| {
                    let (inputs, reference) = drawn(case.problem, kind, seed);
                    let options = self.options(&case.problem, None);
                    Observation::against(reference, &case.built, &case.program, inputs, &options).on(case.sms)
                });
                let run = run.as_ref().unwrap_or(seen);
                runs += 1;
                findings.add(None, run);
                self.keep_time(case, &run.report, findings);
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

    /// What the timed problem takes when there is something in its matrices.
    fn keep_time(&self, case: &Case, report: &Report, findings: &mut Findings) {
        if case.problem == self.options.demands.timed(self.step) && case.sms == self.options.sms {
            findings.timed_cycles = findings.timed_cycles.max(report.cycles);
        }
    }

    /// The first findings, each with its TODO.
    fn all_shown(&self, findings: &Findings, seen: &Observation) -> Told {
        diagnostics::first_few(findings.found.iter().map(|(_, found)| self.shown(found, seen)).collect())
    }

    /// A run of which a sample is computed; what is loaded from tensor memory is so many times what is there.
    pub(super) fn sample(&self, case: &Case, tensor_load_factor: f32) -> Sampled {
        let options = Options { tensor_load_factor, ..self.options(&case.problem, None) };
        let seed = self.options.input_seed;
        Sampled::new(&case.built, &case.program, case.problem, &self.step.shape, case.sms, seed, &options)
    }

    /// D is wrong at a large size, or the run broke off.
    fn wrong_sample(&self, run: &Sampled, seen: &Observation, findings: &Findings) -> Outcome {
        let mut sections: Vec<Told> = Vec::new();
        if !findings.found.is_empty() {
            sections.push(self.all_shown(findings, seen));
        }
        let wrong = run.title();
        sections.extend(wrong.iter().map(|wrong| format!("{wrong}.\n").into()));
        let inputs = format!(
            "Inputs: small integers, seed {}, at {}; {} of {} tiles were checked. `{}=1` checks all.\n",
            self.options.input_seed,
            run.problem,
            run.checked.0,
            run.checked.1,
            crate::options::FULL
        );
        sections.push(inputs.into());
        let first = findings.found.first().map(|(_, first)| first.title.clone());
        let title = first.or(wrong).unwrap_or_else(|| "the run did not come to its end".to_string());
        Outcome::failed(title, Told::joined(sections))
    }

    /// D is wrong, or the run broke off: root causes first, then what is wrong with D.
    pub(super) fn incorrect(&self, run: &Observation, seen: &Observation, findings: &Findings) -> Outcome {
        let sources = &self.options.sources;
        let mut title = None;
        let mut sections: Vec<Told> = Vec::new();
        if let Some(read) = reads_d(seen) {
            title = Some(read.title.clone());
            sections.push(diagnostics::explain(&read, sources));
        }
        // The emulator sees that a tile does not belong where it is stored, and not which of the two is wrong.
        let elsewhere =
            |found: &Diagnostic| found.labels.iter().any(|label| label.meaning == Meaning::BelongsElsewhere);
        let guessed = findings.found.iter().all(|(_, found)| elsewhere(found));
        let first = findings.found.first();
        if let Some((_, first)) = first.filter(|_| !guessed) {
            title.get_or_insert_with(|| first.title.clone());
            sections.push(self.all_shown(findings, seen));
        }
        // A kernel that multiplies the wrong tiles may hang because of it: that came first.
        let hangs = !seen.report.completed && !findings.found.is_empty();
        if hangs
            && findings.found.iter().all(|(_, found)| found.code == "hang")
            && let Some(found) = astray::find(seen, None)
        {
            title = Some(found.explanation.title.clone());
            sections.insert(0, diagnostics::explain(&found.explanation, sources) + "Behind it, the kernel hangs:\n");
        }
        for matrix in run.overwritten() {
            let changed = overwritten(matrix, seen);
            title.get_or_insert_with(|| changed.title.clone());
            sections.push(diagnostics::explain(&changed, sources));
        }
        let mismatch = mismatch::classify(&run.reference, &run.comparison).map(|mismatch| seen.told(mismatch));
        let telling = mismatch.as_ref().filter(|mismatch| run.report.completed && mismatch.is_telling());
        if let (Some(mismatch), true) = (telling, sections.is_empty()) {
            let wrong = Explanation::new(mismatch.title(), "", mismatch.help().unwrap_or_default());
            let wrong = match seen.first_store_to_matrix(Matrix::D) {
                Some(event) => wrong.at(&event.place, "the first store to D"),
                None => wrong,
            };
            title = Some(wrong.title.clone());
            sections.push(diagnostics::explain(&wrong, sources));
        } else if sections.is_empty() && !(seen.report.completed && seen.comparison.is_right()) {
            // No rule was broken, so the kernel does in order something that it should not: the milestones know what, if it does so in
            // the run that they look at.
            let wrong = self.step.milestones.iter().find_map(|milestone| match (milestone.check)(seen) {
                Seen::Wrong(explanation) => {
                    let text = diagnostics::explain(&explanation, sources) + pointer(self.step, milestone, "");
                    Some((explanation.title, text))
                }
                Seen::Found(found) => {
                    let text = diagnostics::render(&found, sources) + pointer(self.step, milestone, found.code);
                    Some((found.title, text))
                }
                _ => None,
            });
            // Else its way is followed from the beginning, in that run if D is wrong there, too.
            let wrong = wrong.or_else(|| {
                let mismatch = mismatch::classify(&seen.reference, &seen.comparison)?;
                let found = astray::find(seen, Some(&mismatch))?;
                let text = diagnostics::explain(&found.explanation, sources);
                Some((found.explanation.title, text))
            });
            if let Some((first, text)) = wrong {
                title = Some(first);
                sections.push(text);
            }
        }
        if let Some((_, first)) = first.filter(|_| guessed && sections.is_empty()) {
            title.get_or_insert_with(|| first.title.clone());
            sections.push(self.all_shown(findings, seen));
        }
        if let Some(mismatch) = mismatch {
            if !run.report.completed {
                // What is missing is missing because of that.
                let all = mismatch.unwritten == mismatch.wrong.1;
                let how_far = if all { "D was never written" } else { "D is not complete" };
                sections.push(format!("The run broke off: {how_far}.\n").into());
            } else if sections.is_empty() {
                title = Some(mismatch.title());
                sections.push(tried(mismatch.text(), &mismatch));
            } else if title.as_deref() == Some(&mismatch.title()) {
                sections.push(mismatch.numbers().into());
            } else {
                // One thing to try is enough: that of the cause.
                sections.push(mismatch.summary().into());
            }
        }
        if let Some(reason) = run.report.incomplete.first() {
            sections.push(format!("Not modelled, and so not checked: {reason}.\n").into());
        }
        let inputs = &run.inputs;
        sections.push(format!("Inputs: {}, seed {}, at {}.\n", inputs.kind, inputs.seed, inputs.problem).into());
        let title = title.unwrap_or_else(|| "the run did not come to its end".to_string());
        Outcome::failed(title, Told::joined(sections))
    }
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

/// D is there to be written: what a kernel reads of it before is not defined.
fn reads_d(seen: &Observation) -> Option<Explanation> {
    let read = seen.first_load_of_matrix(Matrix::D)?;
    let written = seen.first_store_to_matrix(Matrix::D);
    if written.is_some_and(|written| written.start < read.start) {
        return None;
    }
    let rule = "A product reads A and B and writes D, nothing else.";
    let help = "Compute D from the sums in tensor memory alone.";
    let explanation =
        Explanation::new("the kernel reads D before it was written", rule, help).at(&read.place, "read here");
    Some(match written {
        Some(written) => explanation.at(&written.place, "the first store to D"),
        None => explanation,
    })
}

/// A and B are there to be read.
fn overwritten(matrix: Matrix, seen: &Observation) -> Explanation {
    let title = observe::overwrites(matrix);
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
