//! What was asked on the command line, looked at before anything is done: options that an action does not have.

use crate::{Action, Asked, class};
use grader::formats::Format;

/// A step: `1`, `01` or `step01`.
pub(crate) fn step_number(text: &str) -> Result<u8, String> {
    let number = harness::workbook::number(text.strip_prefix("step").unwrap_or(text));
    number.ok_or_else(|| {
        let (first, last) = (harness::STEPS.first(), harness::STEPS.last());
        let known = first.zip(last).map(|(first, last)| format!(": here from {} to {}", first.number, last.number));
        format!(
            "a step is a number from 1 to 99, such as 1, 01 or step01\n  try: Name one that there is{}.",
            known.unwrap_or_default()
        )
    })
}

/// How an action is called, and which of the options that all share it does not have, with a reason.
fn lacks(action: &Action) -> (&'static str, &'static [&'static str], &'static str) {
    const STORED: &str = "What a hand-in was graded with is stored in its result.";
    match action {
        Action::Solutions => ("solutions", &[], ""),
        Action::Grade { .. } => ("grade", &[], ""),
        Action::Sandbox => ("sandbox", &["--allow-unchecked", "--seed", "--rubric", "--step"], "Nothing is graded."),
        Action::Rubric => {
            let none = &["--format", "--allow-unchecked", "--seed", "--step"];
            ("rubric", none, "It prints TOML, the whole of --rubric FILE or of what is used without it.")
        }
        Action::Class(class::Action::Batch { .. }) => {
            ("batch", &["--format"], "A batch writes JSON, CSV and pages by itself, into the folder of --out.")
        }
        Action::Class(class::Action::Similar { .. }) => {
            ("similar", &["--format", "--allow-unchecked", "--seed", "--rubric"], "Nothing is graded.")
        }
        Action::Class(class::Action::Regrade { .. }) => {
            ("regrade", &["--format", "--allow-unchecked", "--seed", "--rubric", "--step"], STORED)
        }
        Action::Class(class::Action::Reveal { .. }) => {
            ("reveal", &["--format", "--allow-unchecked", "--seed", "--rubric", "--step"], "It prints the seed.")
        }
        Action::Class(class::Action::Work { .. }) => {
            ("work", &["--format", "--allow-unchecked", "--seed", "--rubric", "--step"], STORED)
        }
    }
}

/// Whether each option that was given means something to the action: else who gave it would believe that it did.
pub(crate) fn all_used(action: &Action, asked: &Asked) -> Result<(), String> {
    let (name, lacks, why) = lacks(action);
    let given = [
        ("--format", asked.format != Format::Text),
        ("--allow-unchecked", asked.allow_unchecked),
        ("--seed", asked.seed.is_some()),
        ("--rubric", asked.rubric.is_some()),
        ("--step", !asked.steps.is_empty()),
    ];
    match given.into_iter().find(|(option, given)| *given && lacks.contains(option)) {
        Some((option, _)) => Err(format!("{option} is not for `grader {name}`\n  try: Leave it out. {why}")),
        None => Ok(()),
    }
}
