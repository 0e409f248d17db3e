//! What the judge found: five parts, the milestones, the points.

use crate::source::{Ending, Place, Unbuilt};
use crate::told::{Says, Told};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A part of the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// D is right, for every size and every input.
    Correct,
    /// No rule of the memory model is broken, under the default schedule and adversarial ones.
    RaceFree,
    /// The kernel is what the step claims, as its run shows.
    Structure,
    /// It assembles, and stays within the limits of an SM.
    Resources,
    /// It takes no more than 1.30 times the reference solution's time.
    Fast,
}

impl Part {
    /// All parts, in the order of the verdict.
    pub const ALL: [Part; 5] = [Part::Correct, Part::RaceFree, Part::Structure, Part::Resources, Part::Fast];

    /// Its name, the same everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Correct => "correct",
            Part::RaceFree => "race-free",
            Part::Structure => "structure",
            Part::Resources => "resources",
            Part::Fast => "fast",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What became of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// It holds.
    Passed {
        /// What was looked at, in a few words.
        detail: String,
    },
    /// It does not hold.
    Failed {
        /// What is wrong, in one sentence.
        title: String,
        /// The explanation, for a human, without colour.
        text: String,
        /// What it says.
        says: Says,
    },
    /// It could not be looked at here.
    NotChecked {
        /// Why, and what to do about it.
        reason: String,
        /// The assembler was ended before it came to its end: the text's doing, or that of a machine that is busy.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
    },
    /// Something else comes first.
    NotReached {
        /// What.
        reason: String,
    },
}

impl Outcome {
    /// It does not hold: what is wrong in one sentence, and the explanation.
    pub fn failed(title: impl Into<String>, told: impl Into<Told>) -> Outcome {
        let Told { text, says } = told.into();
        Outcome::Failed { title: title.into(), text, says }
    }

    /// It could not be looked at here, for this.
    pub fn not_checked(reason: impl Into<String>) -> Outcome {
        Outcome::NotChecked { reason: reason.into(), late: false }
    }

    /// Whether it is [`Outcome::Passed`].
    pub fn passed(&self) -> bool {
        matches!(self, Outcome::Passed { .. })
    }
}

/// A milestone and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MilestoneResult {
    /// Its number, `step.n`.
    pub id: String,
    /// What is so when it is done.
    pub title: String,
    /// How far it is.
    pub state: MilestoneState,
}

/// How far a milestone is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MilestoneState {
    /// Its effect was seen.
    Done,
    /// Its effect was seen, and a part finds something wrong with its code.
    Flagged {
        /// Which part says what.
        part: Part,
    },
    /// Its TODO is still in the kernel.
    Open {
        /// Where.
        place: Place,
        /// Its effect was seen, and code stands there: only the call that marks it is left.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        there: bool,
    },
    /// Its TODO is gone, but the run shows something else.
    Wrong {
        /// What.
        text: String,
        /// What that says.
        says: Says,
    },
    /// The run shows something else, which may come of a milestone that is not right: nothing is held against it.
    WaitsFor {
        /// The number of that one, `step.n`.
        id: String,
    },
    /// The run did not come so far.
    NotReached {
        /// Why.
        reason: String,
    },
}

/// The verdict on a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The step's number.
    pub step: u8,
    /// The step's title.
    pub title: String,
    /// What it ran on.
    pub device: String,
    /// The five parts, in order.
    pub parts: [(Part, Outcome); 5],
    /// The milestones, in order.
    pub milestones: Vec<MilestoneResult>,
    /// Why there is no kernel to judge, if so.
    pub build_failure: Option<Unbuilt>,
    /// How it came to that, where a program was ended or its answer is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// What failed on this machine, if something did: then this is no verdict on the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<String>,
    /// Points reached.
    pub points: f64,
    /// Points that the step can give.
    pub max_points: u32,
    /// Wall-clock seconds of the judging.
    pub seconds: f64,
}

/// That a run shows something else.
impl From<Told> for MilestoneState {
    fn from(Told { text, says }: Told) -> MilestoneState {
        MilestoneState::Wrong { text, says }
    }
}

impl MilestoneState {
    /// Its effect was seen.
    pub fn seen(&self) -> bool {
        matches!(self, MilestoneState::Done | MilestoneState::Flagged { .. })
    }
}

impl Verdict {
    /// All five parts hold.
    pub fn passed(&self) -> bool {
        self.parts.iter().all(|(_, outcome)| outcome.passed())
    }

    /// Some part could not be checked here, and nothing else is wrong.
    pub fn only_unchecked(&self) -> bool {
        !self.passed()
            && self
                .parts
                .iter()
                .all(|(_, outcome)| matches!(outcome, Outcome::Passed { .. } | Outcome::NotChecked { .. }))
    }

    /// What became of a part.
    pub fn part(&self, part: Part) -> &Outcome {
        let at = Part::ALL.iter().position(|candidate| *candidate == part).unwrap_or(0);
        &self.parts[at].1
    }

    /// While a TODO is open: the milestone that comes first of all that are open or wrong. Of what was cut short nothing is known.
    pub fn first_undone(&self) -> Option<&MilestoneResult> {
        self.next_todo()?;
        let undone =
            |state: &MilestoneState| matches!(state, MilestoneState::Open { .. } | MilestoneState::Wrong { .. });
        self.milestones.iter().find(|milestone| undone(&milestone.state))
    }

    /// The part that failed and says this, too: its text has the same first line.
    pub fn part_that_says(&self, text: &str) -> Option<Part> {
        // Without what stands before the sentence: `error: `, `finding[code]: `.
        let line = text.lines().next().unwrap_or_default();
        let sentence = line.split_once(": ").map_or(line, |(_, sentence)| sentence);
        self.parts.iter().find_map(|(part, outcome)| match outcome {
            Outcome::Failed { text, .. } if !sentence.is_empty() && text.contains(sentence) => Some(*part),
            _ => None,
        })
    }

    /// The first milestone whose TODO is open, and where it stands.
    pub fn next_todo(&self) -> Option<(&MilestoneResult, &Place)> {
        self.milestones.iter().find_map(|milestone| match &milestone.state {
            MilestoneState::Open { place, .. } => Some((milestone, place)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results are kept: in those from before it had a state of its own, a milestone that waits for another one says so as a reason.
    #[test]
    fn a_milestone_that_waits_is_read_as_it_was_written_and_as_it_once_was() {
        let waits = MilestoneState::WaitsFor { id: "6.3".to_string() };
        let text = serde_json::to_string(&waits).expect("JSON");
        assert_eq!(text, r#"{"waits_for":{"id":"6.3"}}"#);
        assert_eq!(serde_json::from_str::<MilestoneState>(&text).expect("it is read"), waits);
        let old = serde_json::from_str::<MilestoneState>(r#"{"not_reached":{"reason":"waits for 6.3"}}"#);
        assert_eq!(old.expect("it is read"), MilestoneState::NotReached { reason: "waits for 6.3".to_string() });
    }
}
