//! One hand-in that waits to be graded, with all that it takes: here, or on another machine that sees the folder of grades.

use super::child::Grader;
use super::store::{self, Asked, Outcome, Record};
use crate::versions::Versions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
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
    pub kept: Result<PathBuf, String>,
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
    /// The commitment to a secret seed.
    pub seed_commitment: Option<String>,
    /// The longest that one may take.
    pub limit: Duration,
    /// What grades.
    pub versions: Versions,
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
            secret: common.seed.is_none(),
            limit: common.limit,
        };
        let outcome = match &self.kept {
            Ok(path) => grader.grade(path, &self.name, &self.asked),
            Err(reason) => Outcome::NotGraded { reason: reason.clone() },
        };
        Record {
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
        }
    }
}
