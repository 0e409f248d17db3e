//! How to judge: on what, under which schedules.

use crate::device::Device;
use crate::diagnostics::Sources;
use crate::fast::FAST;
use crate::problem::Problem;
use crate::progress::Progress;
use crate::reference_kernels::{reference_kernel, reference_kernel_anywhere};
use crate::source::Built;
use crate::steps::{Step, TARGET, hopper};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// How to judge.
#[derive(Clone, Debug)]
pub struct JudgeOptions {
    /// What kernels run on.
    pub device: Device,
    /// Adversarial schedules beside the default one: those of the seeds from 1 to this number.
    pub seeds: u32,
    /// The schedule of this seed alone, instead of those.
    pub seed: Option<u64>,
    /// The seed of the first inputs.
    pub input_seed: u64,
    /// Streaming multiprocessors that kernels are built for.
    pub sms: u32,
    /// Host threads that a kernel's clusters are run on; no result depends on it. `None`: as many as the host runs at once.
    pub threads: Option<NonZeroUsize>,
    /// Every element of D is checked at large sizes, too, where else a sample is.
    pub full: bool,
    /// Where the lines of Rust are found that explanations show.
    pub sources: Sources,
    /// What a course asks for in place of what the steps say.
    pub demands: Demands,
    /// Who is told what is being judged.
    pub progress: Progress,
}

/// What a course asks for, by the number of the step. What is not in it is as the steps say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demands {
    /// The sizes of the table in docs/steps.md. The cases that bite stay.
    pub sizes: BTreeMap<u8, Vec<Problem>>,
    /// The largest share of the reference solution's time that is fast.
    pub fast: BTreeMap<u8, f64>,
    /// The size at which this is asked.
    pub timed: BTreeMap<u8, Problem>,
}

impl Demands {
    /// The sizes that a kernel of this step must solve.
    pub fn sizes<'a>(&'a self, step: &'a Step) -> &'a [Problem] {
        self.sizes.get(&step.number).map_or(step.sizes, Vec::as_slice)
    }

    /// The largest share of the reference solution's time that is fast.
    pub fn fast(&self, step: &Step) -> f64 {
        self.fast.get(&step.number).copied().unwrap_or(FAST)
    }

    /// The reference kernel that a kernel's time is held against, at the size that is timed.
    ///
    /// # Errors
    /// Why there is none, in one sentence.
    pub(crate) fn reference(&self, step: &Step, sms: u32) -> Result<Built, String> {
        let problem = self.timed(step);
        let build = if problem == step.timed { reference_kernel } else { reference_kernel_anywhere };
        build(step, &problem, sms)
    }

    /// The size at which a kernel's time is held against the reference solution's.
    pub fn timed(&self, step: &Step) -> Problem {
        self.timed.get(&step.number).copied().unwrap_or(step.timed)
    }
}

impl Default for JudgeOptions {
    fn default() -> JudgeOptions {
        JudgeOptions {
            device: Device::default(),
            seeds: 8,
            seed: None,
            input_seed: 0,
            // A B200 has 148.
            sms: 148,
            threads: None,
            full: false,
            sources: Sources::workspace(),
            demands: Demands::default(),
            progress: Progress::default(),
        }
    }
}

/// The environment variable that chooses [`JudgeOptions::seed`].
pub const SEED: &str = "WORKBOOK_SEED";
/// The environment variable that chooses [`JudgeOptions::full`].
pub const FULL: &str = "WORKBOOK_FULL";

impl JudgeOptions {
    /// The options that the environment asks for, for the kernels of the steps: `WORKBOOK_DEVICE`, `WORKBOOK_SEED` and `WORKBOOK_FULL`.
    ///
    /// # Errors
    /// One sentence with the value found and the values allowed.
    pub fn from_env() -> Result<JudgeOptions, String> {
        JudgeOptions::for_target(TARGET)
    }

    /// The same, for the kernel for Hopper.
    ///
    /// # Errors
    /// As [`JudgeOptions::from_env`].
    pub fn for_hopper() -> Result<JudgeOptions, String> {
        Ok(JudgeOptions { sms: hopper::SMS, ..JudgeOptions::for_target(hopper::STEP.target())? })
    }

    fn for_target(target: &str) -> Result<JudgeOptions, String> {
        let seed = match std::env::var_os(SEED) {
            Some(value) => seed_named(&value.to_string_lossy())?,
            None => None,
        };
        let full = match std::env::var_os(FULL) {
            Some(value) => yes(&value.to_string_lossy())?,
            None => false,
        };
        Ok(JudgeOptions { device: Device::from_env(target)?, seed, full, ..JudgeOptions::default() })
    }
}

fn yes(value: &str) -> Result<bool, String> {
    match value.trim() {
        "" | "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("{FULL}={value}: allowed is 1 (check every element of D at large sizes, too) or 0")),
    }
}

fn seed_named(value: &str) -> Result<Option<u64>, String> {
    match value.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            format!(
                "{SEED}={value}: there is no such seed; allowed is a number from 0 to {}, or leave it unset",
                u64::MAX
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_number() {
        assert_eq!(seed_named("7"), Ok(Some(7)));
        assert_eq!(seed_named(""), Ok(None));
        let error = seed_named("seven").unwrap_err();
        assert!(
            error.starts_with("WORKBOOK_SEED=seven: there is no such seed; allowed is a number from 0 to 1844"),
            "{error}"
        );
    }
}
