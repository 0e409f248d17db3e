//! What each step asks for: sizes, milestones, structure. One file a step.

mod step01;
pub mod tile;

use crate::diagnostics::Explanation;
use crate::observe::Observation;
use crate::problem::Problem;
use emulator::Diagnostic;

/// A step of the workbook.
#[derive(Debug)]
pub struct Step {
    /// 1 to 10.
    pub number: u8,
    /// Its new idea, in a few words.
    pub title: &'static str,
    /// Points of 100.
    pub points: u32,
    /// The sizes that are tested; the first is the one whose run is looked at closely (milestones, structure, time).
    pub sizes: &'static [Problem],
    /// Different inputs at each size, of each kind of [`crate::InputKind`] in turn.
    pub inputs_per_size: u32,
    /// A run ends with an error after so many warp instructions: far more than a kernel of this step takes, so few that
    /// an endless loop ends within a second, and its trace fits into memory.
    pub max_instructions: u64,
    /// Its TODOs, in order, and how one sees on a run that they are done.
    pub milestones: &'static [Milestone],
    /// Whether the kernel is what the step claims, as its run shows: one sentence, or what is otherwise.
    pub structure: fn(&Observation) -> Result<String, Vec<String>>,
}

/// A TODO of a skeleton and its observable effect.
#[derive(Debug)]
pub struct Milestone {
    /// Its number, `step.n`.
    pub id: &'static str,
    /// What is so when it is done, in a few words.
    pub title: &'static str,
    /// What to do, in a sentence.
    pub task: &'static str,
    /// What to read.
    pub read: &'static str,
    /// Looks for the effect in a run.
    pub check: fn(&Observation) -> Seen,
}

/// What a run shows of a milestone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The effect is there.
    Done,
    /// Something else is there.
    Wrong(Explanation),
    /// The emulator says what is wrong with it.
    Found(Box<Diagnostic>),
    /// Something else has to be done first: what.
    NotReached(String),
    /// The run broke off before it could show.
    Cut,
}

/// The steps that exist, in order.
pub const STEPS: &[Step] = &[step01::STEP];

/// The step of this number.
pub fn step(number: u8) -> Option<&'static Step> {
    STEPS.iter().find(|step| step.number == number)
}
