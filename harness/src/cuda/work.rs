//! What a process is asked to do on a GPU, and what it answers.

use crate::bench::Round;
use crate::inputs::InputKind;
use crate::problem::Problem;
use crate::source::{Built, Matrix};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// Run a kernel once and say whether D is right.
    Check(Check),
    /// Time two kernels side by side, and cuBLAS.
    Time(Time),
    /// Time a kernel and cuBLAS in many rounds.
    Bench(Bench),
    /// Run a kernel that hangs once more, with waits that tell.
    Tell(Check),
}

/// A kernel and its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The kernel.
    pub built: Built,
    /// The problem that it was built for.
    pub problem: Problem,
    /// What A and B hold.
    pub kind: InputKind,
    /// The seed that repeats them.
    pub seed: u64,
}

/// A kernel, and one to hold it against.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    /// The kernel.
    pub own: Built,
    /// The reference kernel.
    pub reference: Built,
    /// The problem that both were built for.
    pub problem: Problem,
    /// The seed that repeats A and B.
    pub seed: u64,
}

/// A kernel that is held against cuBLAS, round by round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bench {
    /// The kernel.
    pub built: Built,
    /// The problem that it was built for.
    pub problem: Problem,
    /// Rounds that count, at most.
    pub rounds: u32,
}

/// What came of a piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// Of a [`Check`].
    Checked(Checked),
    /// Of a [`Time`].
    Timed(Timed),
    /// Of a [`Bench`].
    Benched(Vec<Round>),
    /// Of a [`Work::Tell`]: what its threads wait for, a line each; empty if none said anything.
    Told(String),
    /// The kernel ran into an error, or could not be launched.
    Failed {
        /// What happened, in a sentence.
        why: String,
    },
    /// The machine could not do it: its memory is taken, a process or a library of ours failed. No kernel is to blame.
    Unable {
        /// What happened, in a sentence.
        why: String,
    },
    /// The kernel did not end.
    Hung {
        /// What happened, in a sentence.
        why: String,
    },
}

impl Reply {
    /// Nothing is done behind it: something is wrong.
    pub fn ends_a_batch(&self) -> bool {
        match self {
            Reply::Checked(checked) => !checked.is_right(),
            Reply::Timed(_) | Reply::Benched(_) | Reply::Told(_) => false,
            Reply::Failed { .. } | Reply::Unable { .. } | Reply::Hung { .. } => true,
        }
    }
}

/// What became of D, and of what lies around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// What D was held against.
    pub against: String,
    /// Elements that are not right, of how many.
    pub wrong: (u64, u64),
    /// The first of them.
    pub first: Option<WrongElement>,
    /// Of A and B, those that hold something else than before.
    pub overwritten: Vec<Matrix>,
    /// What was written next to a matrix.
    pub touched: Vec<String>,
    /// How long the kernel ran.
    pub milliseconds: f64,
    /// D as bytes, if it is wrong and small enough to be explained.
    pub d: Option<Vec<u8>>,
}

impl Checked {
    /// Nothing is wrong.
    pub fn is_right(&self) -> bool {
        self.wrong.0 == 0 && self.overwritten.is_empty() && self.touched.is_empty()
    }
}

/// An element of D that is not right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongElement {
    /// Row of D.
    pub row: u64,
    /// Column of D.
    pub column: u64,
    /// What it is, as text; JSON has no NaN.
    pub found: String,
    /// What it must be.
    pub expected: f64,
}

impl fmt::Display for WrongElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}, column {}: {}, not {}", self.row, self.column, self.found, self.expected)
    }
}

/// Times in microseconds, each the median of all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timed {
    /// The kernel.
    pub own: f64,
    /// The reference kernel.
    pub reference: f64,
    /// cuBLAS; or why it was not timed.
    pub cublas: Result<f64, String>,
    /// Rounds, in each of which all were timed.
    pub rounds: u32,
    /// The kernel's time over the reference kernel's, of each two rounds behind each other: the geometric mean of the two, in which
    /// who comes first cancels out.
    pub ratios: Vec<f64>,
    /// What slowed the GPU down meanwhile.
    pub slowed_by: Vec<String>,
    /// What was wrong with what the kernel left in one of the rounds; then nothing was timed behind it.
    pub wrong: Option<String>,
}

impl Timed {
    /// The ratios' lower quartile, median and upper quartile; 0 of none.
    pub fn quartiles(&self) -> [f64; 3] {
        let mut sorted = self.ratios.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * sorted.len().saturating_sub(1) as f64;
            let value = |n: f64| sorted.get(n as usize).copied().unwrap_or(0.0);
            value(place.floor()) + place.fract() * (value(place.ceil()) - value(place.floor()))
        };
        [at(0.25), at(0.5), at(0.75)]
    }

    /// What of it heat or a fault did. The power limit holds every large product back, the reference solution's as well: that is no
    /// reason to doubt a ratio.
    pub fn held_back(&self) -> Vec<&str> {
        let doubtful = |reason: &&str| ["temperature", "slowdown", "brake"].iter().any(|word| reason.contains(word));
        self.slowed_by.iter().map(String::as_str).filter(doubtful).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_the_values() {
        let timed = |ratios| Timed {
            own: 1.0,
            reference: 1.0,
            cublas: Ok(1.0),
            rounds: 0,
            ratios,
            slowed_by: Vec::new(),
            wrong: None,
        };
        assert_eq!(timed(vec![5.0, 1.0, 2.0, 4.0, 3.0]).quartiles(), [2.0, 3.0, 4.0]);
        assert_eq!(timed(vec![1.0, 2.0]).quartiles(), [1.25, 1.5, 1.75]);
        assert_eq!((timed(vec![7.0]).quartiles(), timed(vec![]).quartiles()), ([7.0; 3], [0.0; 3]));
    }
}
