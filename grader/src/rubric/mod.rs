//! What a course gives points for: points of the steps, shares of the parts, sizes, the bound of `fast`, what lateness costs.
//!
//! **Does:** read a rubric from TOML (`file.rs`, its shape in `shape.rs`), write one, and set a verdict's points by it. **Never does:** change what is
//! right: the cases that bite and the rules of the memory model are the same for every course.
//!
//! What a rubric does not say is as in [`Rubric::default`], which is what the workbook itself does.

mod file;
mod late;
mod shape;

pub use late::{Late, Moment};

use crate::Grade;
use harness::points::Shares;
use harness::workbook::pack::hex;
use harness::{Demands, Problem, STEPS};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What is said where it is known when a hand-in came, and the rubric has no due date.
pub const NOT_DUE: &str = "--handed-in says when hand-ins came, and the rubric does not say when they were due: being late costs \
                           nothing. A table [late] in the rubric's file says so";

/// A course's rubric.
#[derive(Clone, Debug, PartialEq)]
pub struct Rubric {
    /// What share of a step's points is for what.
    pub shares: Shares,
    /// What lateness costs; `None`: nothing is late.
    pub late: Option<Late>,
    /// Each step of the workbook, by its number.
    pub steps: BTreeMap<u8, StepRubric>,
}

/// What a rubric says of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRubric {
    /// Its points.
    pub points: u32,
    /// The sizes that a kernel must solve, beside the cases that bite.
    pub sizes: Vec<Problem>,
    /// The largest share of the reference solution's time that is fast.
    pub fast: f64,
    /// The size at which it is timed; a kernel must solve it, too.
    pub timed: Problem,
}

impl Default for Rubric {
    fn default() -> Rubric {
        let fast = harness::fast::FAST;
        let of = |step: &harness::Step| StepRubric {
            points: step.points,
            sizes: step.sizes.to_vec(),
            fast,
            timed: step.timed,
        };
        let steps = STEPS.iter().map(|step| (step.number, of(step))).collect();
        Rubric { shares: Shares::default(), late: None, steps }
    }
}

impl Rubric {
    /// What the judge is asked for.
    pub fn demands(&self) -> Demands {
        let mut demands = Demands::default();
        for (number, step) in &self.steps {
            demands.sizes.insert(*number, step.sizes.clone());
            demands.fast.insert(*number, step.fast);
            demands.timed.insert(*number, step.timed);
        }
        demands
    }

    /// Gives the points of each verdict.
    pub fn give_points(&self, grade: &mut Grade) {
        for graded in &mut grade.steps {
            let verdict = &mut graded.verdict;
            if let Some(step) = self.steps.get(&verdict.step) {
                verdict.max_points = step.points;
            }
            verdict.points = self.shares.points(verdict);
        }
    }

    /// Points that these steps can give; all steps, if none is named.
    pub fn max_points(&self, steps: &[u8]) -> u32 {
        let counts = |number: &u8| steps.is_empty() || steps.contains(number);
        self.steps.iter().filter(|(number, _)| counts(number)).map(|(_, step)| step.points).sum()
    }

    /// What it is known by: SHA-256 of its text without comments.
    pub fn hash(&self) -> String {
        let text = self.to_toml();
        let values: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        hex(&Sha256::digest(values.join("\n")))
    }
}
