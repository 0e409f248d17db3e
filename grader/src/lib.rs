//! Grades kernels: the reference solutions, and what students hand in.
//!
//! **Does:** find the kernels of a hand-in, build them in a scratch crate, take the PTX that they emit, and have
//! [`harness::judge`](fn@harness::judge) judge it; tables and JSON. **Never does:** run a student's code in its own
//! process. What crosses is the answer file of [`harness::Emitted`]: PTX text and a closed recipe.
//!
//! A hand-in is compiled and run in a [`sandbox`]; where the machine has none, the grader refuses unless it is told to trust.
//!
//! ```
//! use grader::{Grade, Graded};
//! use harness::{BuildFailure, Built, JudgeOptions, KernelSource, Problem};
//!
//! /// A hand-in that did not compile.
//! struct Nothing;
//! impl KernelSource for Nothing {
//!     fn build(&self, _: &Problem, _: u32) -> Result<Built, BuildFailure> {
//!         Err(BuildFailure::no_answer("does not compile"))
//!     }
//! }
//!
//! let step = harness::step(1).expect("step 1 exists");
//! let verdict = harness::judge(step, &Nothing, &JudgeOptions::default());
//! let grade = Grade { steps: vec![Graded { file: None, verdict }], allow_unchecked: false, seed: None };
//! assert!(!grade.passed());
//! assert_eq!(grade.points(), 0.0);
//! println!("{}", grader::table::render(&grade));
//! ```
//!
//! | module | idea |
//! |---|---|
//! | [`handin`], [`archive`], [`folder`] | which files of a hand-in are kernels, and how a stranger's files are read |
//! | [`scratch`] | builds one, apart from everything else |
//! | [`toolchain`], `cargo`, [`crates`] | what it is built with |
//! | [`sandbox`] | runs what a stranger wrote |
//! | [`stopped`] | what of a hand-in was refused or ended, for the teacher |
//! | [`memory`] | how much judging it may take |
//! | [`bounds`] | how much is told of a kernel |
//! | [`rubric`] | what a course gives points for |
//! | [`advice`] | what a student does next |
//! | [`table`], [`json`], [`formats`] | the ways to print a grade |
//! | [`versions`] | what graded it |
//! | [`verdicts`], [`ahead`] | of equal kernels one is judged |
//! | [`batch`] | many hand-ins, in processes of their own |
//! | [`similar`] | hand-ins that stand out by what they share |

pub mod advice;
pub mod ahead;
pub mod archive;
pub mod batch;
pub mod bounds;
mod cargo;
mod children;
pub mod crates;
pub mod folder;
pub mod formats;
pub mod handin;
mod head;
pub mod json;
mod lacks;
mod locks;
pub mod memory;
pub mod rubric;
mod rustc_says;
pub mod sandbox;
pub mod scratch;
pub mod similar;
pub mod stopped;
pub mod table;
pub mod toolchain;
pub mod verdicts;
pub mod versions;

use harness::Verdict;

/// Verdicts, and what was asked of them.
#[derive(Clone, Debug)]
pub struct Grade {
    /// One for each step.
    pub steps: Vec<Graded>,
    /// A part that could not be checked does not stand in the way of passing.
    pub allow_unchecked: bool,
    /// The seed of the inputs, given or drawn; `None`: that of the steps' own tests.
    pub seed: Option<u64>,
}

/// The verdict on one kernel.
#[derive(Clone, Debug)]
pub struct Graded {
    /// The file that was graded; `None` for a solution.
    pub file: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Grade {
    /// All that was asked for passed.
    pub fn passed(&self) -> bool {
        let passed = |verdict: &Verdict| verdict.passed() || (self.allow_unchecked && verdict.only_unchecked());
        !self.steps.is_empty() && self.steps.iter().all(|graded| passed(&graded.verdict))
    }

    /// Points reached.
    pub fn points(&self) -> f64 {
        self.steps.iter().map(|graded| graded.verdict.points).sum()
    }

    /// Points that the graded steps can give.
    pub fn max_points(&self) -> u32 {
        self.steps.iter().map(|graded| graded.verdict.max_points).sum()
    }
}
