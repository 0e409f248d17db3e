//! One hand-in that waits to be graded, with all that it takes: here, or on another machine that sees the folder of grades.

use super::child::Grader;
use super::hand_ins::{self, NoCopy};
use super::seed;
use super::store::{self, Asked, Outcome, Record};
use crate::versions::Versions;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A hand-in that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// What its files are called.
    pub id: String,
    /// The hand-in's name.
    pub name: String,
    /// Its hash.
    pub hand_in: String,
    /// The copy that is graded, or why there is none.
    pub kept: Result<PathBuf, NoCopy>,
    /// What its result will be a result of.
    pub identity: String,
    /// What is asked.
    pub asked: Asked,
    /// What all of a batch have in common.
    pub common: Common,
}

/// What all hand-ins of a batch have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// The program that grades.
    pub program: PathBuf,
    /// The rubric's file.
    pub rubric: PathBuf,
    /// The rubric's hash.
    pub rubric_hash: String,
    /// The seed of the inputs; `None` while it is secret.
    pub seed: Option<u64>,
    /// The commitment to a secret seed, told by now or not.
    pub seed_commitment: Option<String>,
    /// The longest that one may take.
    pub limit: Duration,
    /// What grades.
    pub versions: Versions,
    /// Where verdicts on kernels are kept; `None`: each kernel is judged.
    pub verdicts: Option<PathBuf>,
}

impl Common {
    /// The longest that grading one may take: both tries, and what lies between them.
    pub fn longest(&self) -> Duration {
        2 * (self.limit + ENDING) + PAUSE
    }
}

impl Work {
    /// Grades it. `seed`: the seed of the inputs, told or not.
    pub fn run(self, seed: u64) -> Record {
        let begin = Instant::now();
        let common = self.common;
        let grader = Grader {
            program: common.program,
            rubric: common.rubric,
            seed,
            // Told by now or not: the same hand-in has the same grade, word by word.
            secret: common.seed_commitment.is_some(),
            limit: common.limit,
            verdicts: common.verdicts,
        };
        let outcome = match &self.kept {
            Ok(path) => {
                let grade = || grader.grade(path, &self.name, &self.asked);
                same_tools(unchanged(path, &self.hand_in, || twice(grade, PAUSE)), &common.versions)
            }
            Err(NoCopy { reason, here, no_kernel }) => {
                Outcome::NotGraded { reason: reason.clone(), here: *here, limit: None, no_kernel: *no_kernel }
            }
        };
        let mut record = Record {
            schema: store::SCHEMA,
            name: self.name,
            hand_in: self.hand_in,
            identity: self.identity,
            rubric: common.rubric_hash,
            seed: common.seed,
            seed_commitment: common.seed_commitment,
            versions: common.versions,
            asked: self.asked,
            seconds: crate::json::rounded(begin.elapsed().as_secs_f64()),
            outcome,
        };
        if let Some(seed) = common.seed {
            seed::tell(&mut record, seed);
        }
        record
    }
}

/// What ending a try may take that is longer than its limit.
const ENDING: Duration = Duration::from_secs(15);
/// Before a machine that failed is tried again.
const PAUSE: Duration = Duration::from_secs(5);

/// A grade of a copy that is what it was kept as, before and after it was graded. Between the listing of a batch and a task of an array lie
/// hours, and what another hand-in does where it is trusted may reach it.
fn unchanged(path: &Path, hash: &str, grade: impl FnOnce() -> Outcome) -> Outcome {
    let looks = || hand_ins::unchanged(path.to_path_buf(), hash).map(drop);
    let graded = looks().map(|()| grade());
    match graded.and_then(|outcome| looks().map(|()| outcome)) {
        Ok(outcome) => outcome,
        Err(reason) => Outcome::not_graded_here(reason),
    }
}

/// Once more, if this machine failed: a disk may have room again, and others may have gone.
fn twice(grade: impl Fn() -> Outcome, pause: Duration) -> Outcome {
    let first = grade();
    if !first.failed_here() {
        return first;
    }
    std::thread::sleep(pause);
    match grade() {
        Outcome::NotGraded { reason, here: true, limit, no_kernel } => {
            let reason = format!("because of this machine, twice: {reason}");
            Outcome::NotGraded { reason, here: true, limit, no_kernel }
        }
        second => second,
    }
}

/// A grade by what it is said to be by. A node may have another compiler, and a checkout may change while a batch runs.
fn same_tools(outcome: Outcome, begun: &Versions) -> Outcome {
    // What is started in place of the grader may grade in a container, with tools of its own, and says which in the report.
    if begun.grade_with.is_some() {
        return outcome;
    }
    let Outcome::Graded(report) = &outcome else { return outcome };
    let Some(graded) = &report.versions else { return outcome };
    let others = Versions { workbook: graded.workbook.clone(), ..begun.clone() }.others(graded);
    if others.is_empty() {
        return outcome;
    }
    let reason = format!(
        "it was graded by others than this batch began with: {}\n  \
         try: Have the same on all nodes, leave the checkout as it is meanwhile, and give --retry.",
        others.join("; ")
    );
    Outcome::not_graded(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_fails_here_is_tried_once_more() {
        let here = |reason: &str| Outcome::not_graded_here(reason.to_string());
        let tries = |outcomes: [Outcome; 2]| {
            let count = Cell::new(0);
            let outcome = twice(|| outcomes[count.replace(count.get() + 1)].clone(), Duration::ZERO);
            (outcome, count.get())
        };
        let no_kernel = Outcome::not_graded("no kernel".to_string());
        assert_eq!(tries([no_kernel.clone(), here("unused")]), (no_kernel.clone(), 1));
        assert_eq!(tries([here("the disk is full"), no_kernel.clone()]), (no_kernel, 2));
        let (both, count) = tries([here("the disk is full"), here("no more processes")]);
        assert_eq!((both, count), (here("because of this machine, twice: no more processes"), 2));
    }
}
