//! A grade as JSON, and what all other formats are made from. The shape is documented in `docs/grader.md`, and only grows.
//!
//! A batch stores this and reads it again, so a page or a table of it needs no second grading.

use crate::advice::{self, Next};
use crate::rubric::{Moment, Rubric};
use crate::sandbox::Cage;
use crate::stopped::{self, Stopped};
use crate::versions::Versions;
use crate::{Grade, Graded};
use harness::answers::moves;
use harness::{Cause, MilestoneState, Outcome, Part, Place};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the shape: a reader that knows it can read all that follow within the same number.
pub const SCHEMA: u32 = 1;

/// A grade. Unknown fields are read over: later versions add some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of the shape.
    pub schema: u32,
    /// Every step passed.
    pub passed: bool,
    /// A part that could not be checked does not stand in the way of passing.
    pub allow_unchecked: bool,
    /// The seed of the inputs, given or drawn; `None`: that of the steps' own tests, for solutions, or secret.
    pub seed: Option<u64>,
    /// Points of all steps.
    pub points: f64,
    /// Points that the graded steps can give.
    pub max_points: u32,
    /// Points less what lateness costs.
    pub score: f64,
    /// When it came, and what that costs; only if the rubric says when it was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Lateness>,
    /// What the rubric is known by.
    pub rubric: String,
    /// What graded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<Versions>,
    /// What was enforced while the hand-in was compiled and run; `None`: nothing of a hand-in ran, or an earlier grader did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Steps of the rubric that are not in the hand-in, and have no points. Empty where some steps alone were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_handed_in: Vec<Missing>,
}

impl Report {
    /// What was refused or ended, of all steps, each with its step.
    pub fn stopped(&self) -> impl Iterator<Item = (u8, &Stopped)> {
        self.steps.iter().flat_map(|step| step.stopped.iter().map(|one| (step.step, one)))
    }
}

/// A step of the rubric that is not in the hand-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Its number.
    pub step: u8,
    /// Points that it could give.
    pub max_points: u32,
}

/// What was enforced: the fields of [`Enforced`](crate::sandbox::Enforced), or that nothing was.
///
/// Fields, not the type itself: a grade of a grader that enforces more, or less, can be read, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sandbox {
    /// Nothing.
    Open(Open),
    /// These.
    Enforced(Map<String, Value>),
}

/// Who has said that nothing needs to be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Open {
    /// A person, with `--trust`.
    Trusted,
}

impl Sandbox {
    /// What a cage enforces.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn of(cage: &Cage) -> Result<Sandbox, String> {
        let Some(enforced) = cage.enforced() else { return Ok(Sandbox::Open(Open::Trusted)) };
        match serde_json::to_value(enforced) {
            Ok(Value::Object(fields)) => Ok(Sandbox::Enforced(fields)),
            Ok(other) => Err(format!("what the sandbox enforces is no list: {other}")),
            Err(error) => Err(format!("cannot write JSON: {error}")),
        }
    }

    /// What is another there than now: a sentence on each.
    pub fn others(then: Option<&Sandbox>, now: Option<&Sandbox>) -> Vec<String> {
        let text = |value: Option<&Value>| value.map_or("none".to_string(), Value::to_string);
        match (then, now) {
            (Some(Sandbox::Enforced(then)), Some(Sandbox::Enforced(now))) => {
                let names: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
                let other = names.into_iter().filter(|name| then.get(*name) != now.get(*name));
                let say = |name: &String| {
                    format!("the sandbox's `{name}` was {}, and is {} now", text(then.get(name)), text(now.get(name)))
                };
                other.map(say).collect()
            }
            (then, now) if then == now => Vec::new(),
            (then, now) => {
                let word = |sandbox: Option<&Sandbox>| match sandbox {
                    None => "not told",
                    Some(Sandbox::Open(Open::Trusted)) => "none (--trust)",
                    Some(Sandbox::Enforced(_)) => "enforced",
                };
                vec![format!("the sandbox was {}, and is {} now", word(then), word(now))]
            }
        }
    }
}

/// How late a hand-in is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// When it was due.
    pub due: String,
    /// When it came.
    pub handed_in: String,
    /// Days that had begun by then.
    pub days: u32,
    /// Points that this costs.
    pub points_lost: f64,
}

/// The verdict on a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number.
    pub step: u8,
    /// Its title.
    pub title: String,
    /// The file that was graded; `None` for a solution.
    pub file: Option<String>,
    /// What it ran on.
    pub device: String,
    /// All five parts passed.
    pub passed: bool,
    /// Points reached.
    pub points: f64,
    /// Points that it can give.
    pub max_points: u32,
    /// Why there is no kernel.
    pub build_failure: Option<String>,
    /// What kind of reason that is; `None` beside a failure: an earlier grader did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_kernel: Option<Cause>,
    /// What to do next; `None` when nothing is left.
    pub next: Option<Next>,
    /// The five parts.
    pub parts: Vec<PartReport>,
    /// The milestones.
    pub milestones: Vec<Milestone>,
    /// What was refused or ended, and what the kernel names that is not there where it runs. It changes no point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<Stopped>,
    /// Wall-clock seconds of the judging.
    pub seconds: f64,
}

/// A part of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartReport {
    /// Its name.
    pub part: Part,
    /// What became of it.
    pub outcome: State,
    /// What is wrong, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The explanation, or the reason.
    pub text: String,
    /// The line that the explanation begins with, `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// It is not checked because the assembler did not come to its end in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assembler_late: bool,
    /// Points reached. Those of milestones stand with `correct`.
    pub points: f64,
    /// Points that it can give.
    pub max_points: f64,
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// It could not be looked at here.
    NotChecked,
    /// Something else comes first.
    NotReached,
}

impl State {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            State::Passed => "passed",
            State::Failed => "failed",
            State::NotChecked => "not checked",
            State::NotReached => "not reached",
        }
    }
}

/// A milestone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Milestone {
    /// Its number, `step.n`.
    pub id: String,
    /// What is so when it is done.
    pub title: String,
    /// `done`, `flagged`, `open`, `wrong` or `not_reached`.
    pub state: String,
    /// The place of the TODO, the part that finds something, or why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Two decimals, the same that the table shows: binary fractions have more.
pub fn rounded(number: f64) -> f64 {
    format!("{number:.2}").parse().unwrap_or(number)
}

/// What a grade does not know of itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The rubric by which points were given.
    pub rubric: Rubric,
    /// When the hand-in came.
    pub handed_in: Option<Moment>,
    /// What graded it.
    pub versions: Option<Versions>,
    /// What was enforced while the hand-in ran.
    pub sandbox: Option<Sandbox>,
    /// All steps of the rubric were asked for: what is not handed in has no points.
    pub all_steps: bool,
    /// What the kernels of steps name: see [`stopped::named`].
    pub named: BTreeMap<u8, Vec<Stopped>>,
}

/// The grade, as all formats but the table show it.
pub fn report(grade: &Grade, about: &About) -> Report {
    let points = rounded(grade.points());
    let late = about.rubric.late.as_ref().zip(about.handed_in.as_ref()).map(|(late, handed_in)| Lateness {
        due: late.due.text.clone(),
        handed_in: handed_in.text.clone(),
        days: late.days(handed_in),
        points_lost: rounded(points - late.left(points, handed_in)),
    });
    let there = |number: &u8| grade.steps.iter().any(|graded| graded.verdict.step == *number);
    let missing = about.rubric.steps.iter().filter(|(number, _)| about.all_steps && !there(number));
    Report {
        schema: SCHEMA,
        not_handed_in: missing.map(|(step, of)| Missing { step: *step, max_points: of.points }).collect(),
        passed: grade.passed(),
        allow_unchecked: grade.allow_unchecked,
        seed: grade.seed,
        points,
        max_points: grade.max_points(),
        score: rounded(points - late.as_ref().map_or(0.0, |late| late.points_lost)),
        late,
        rubric: about.rubric.hash(),
        versions: about.versions.clone(),
        sandbox: about.sandbox.clone(),
        steps: grade.steps.iter().map(|graded| step(graded, about)).collect(),
    }
}

/// The grade as one JSON object, with line breaks.
///
/// # Errors
/// When a number in it cannot be written as JSON.
pub fn render(report: &Report) -> Result<String, String> {
    written(report).map(|text| text + "\n")
}

/// A value as JSON with line breaks, in which all signs can be seen: somebody may look at it in a terminal. Whoever reads it as JSON gets the
/// texts as they are.
///
/// # Errors
/// As [`render`].
pub(crate) fn written(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string_pretty(value)
        .map(|text| visible(&text))
        .map_err(|error| format!("cannot write JSON: {error}"))
}

/// A text in which signs that cannot be seen, move a cursor or turn a line around are written as JSON writes them.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        if moves(sign) && !matches!(sign, '\n' | '\t') {
            let mut units = [0; 2];
            out.extend(sign.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(sign);
        }
    }
    out
}

fn step(graded: &Graded, about: &About) -> Step {
    let (verdict, rubric) = (&graded.verdict, &about.rubric);
    let named = about.named.get(&verdict.step).into_iter().flatten().cloned();
    let given = rubric.shares.of(verdict);
    let worth = rubric.shares.parts.map(|share| f64::from(verdict.max_points * share) / 100.0);
    let parts = verdict.parts.iter().zip(given.into_iter().zip(worth));
    Step {
        step: verdict.step,
        title: verdict.title.clone(),
        file: graded.file.clone(),
        device: verdict.device.clone(),
        passed: verdict.passed(),
        points: rounded(verdict.points),
        max_points: verdict.max_points,
        build_failure: verdict.build_failure.as_ref().map(|why| why.text.clone()),
        no_kernel: verdict.build_failure.as_ref().map(|why| why.cause),
        next: advice::in_step(graded),
        parts: parts.map(|((part, outcome), points)| self::part(*part, outcome, points)).collect(),
        milestones: verdict.milestones.iter().map(milestone).collect(),
        stopped: verdict.ending.as_ref().map(stopped::happened).into_iter().chain(named).collect(),
        seconds: rounded(verdict.seconds),
    }
}

fn part(part: Part, outcome: &Outcome, (points, max_points): (f64, f64)) -> PartReport {
    let place = match outcome {
        Outcome::Failed { says, .. } => says.place.as_ref().map(Place::to_string),
        _ => None,
    };
    let assembler_late = matches!(outcome, Outcome::NotChecked { late: true, .. });
    let (outcome, title, text) = match outcome {
        Outcome::Passed { detail } => (State::Passed, None, detail),
        Outcome::Failed { title, text, .. } => (State::Failed, Some(title.clone()), text),
        Outcome::NotChecked { reason, .. } => (State::NotChecked, None, reason),
        Outcome::NotReached { reason } => (State::NotReached, None, reason),
    };
    PartReport {
        part,
        outcome,
        title,
        text: text.clone(),
        place,
        assembler_late,
        points: rounded(points),
        max_points: rounded(max_points),
    }
}

fn milestone(result: &harness::MilestoneResult) -> Milestone {
    let (state, text) = match &result.state {
        MilestoneState::Done => ("done", None),
        MilestoneState::Flagged { part } => ("flagged", Some(part.to_string())),
        MilestoneState::Open { place, .. } => ("open", Some(place.to_string())),
        MilestoneState::Wrong { text, .. } => ("wrong", Some(text.clone())),
        MilestoneState::WaitsFor { id } => ("not_reached", Some(format!("waits for {id}"))),
        MilestoneState::NotReached { reason } => ("not_reached", Some(reason.clone())),
    };
    Milestone { id: result.id.clone(), title: result.title.clone(), state: state.to_string(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_moves_no_cursor_and_is_read_as_it_was() {
        // Of these serde_json itself escapes the first alone.
        let texts = ["\u{1b}[2J", "\u{9b}2J", "\u{7f}", "\u{202e}", "\u{e0041}\u{200b}", "a\"\\\n\tü 王 \u{1f600}"];
        let text = written(&texts).unwrap();
        assert!(!text.chars().any(|sign| moves(sign) && sign != '\n'), "{text:?}");
        assert!(text.contains("ü 王 \u{1f600}"), "what can be seen stays: {text}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), texts);
    }
}
