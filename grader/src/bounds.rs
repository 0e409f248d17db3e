//! How much is told of one kernel: a hand-in decides what stands in its own explanations, and must not make a report of them that nobody reads.
//!
//! Texts are cut, never points: a verdict says the same of each part, and how much of its words is left out.

use harness::{Ending, MilestoneState, Outcome, Says, Unbuilt, Verdict};

/// The longest text. The longest explanation of the corpus has a tenth of it.
const TEXT: usize = 32 << 10;
/// The longest title.
const TITLE: usize = 4 << 10;

/// The verdict with texts of which a report of all steps can be made, and read by who batches it.
pub fn bounded(mut verdict: Verdict) -> Verdict {
    if let Some(Unbuilt { text, title, place, help, cause: _ }) = &mut verdict.build_failure {
        cut(text, TEXT);
        cut(title, TITLE);
        place.iter_mut().for_each(|place| cut(&mut place.file, TITLE));
        help.iter_mut().for_each(|help| cut(help, TITLE));
    }
    if let Some(Ending::Refused(how) | Ending::TooLong(_, how) | Ending::Failed(_, how)) = &mut verdict.ending {
        cut(how, TITLE);
    }
    for (_, outcome) in &mut verdict.parts {
        match outcome {
            Outcome::Failed { title, text, says } => {
                cut(title, TITLE);
                cut(text, TEXT);
                cut_all(says);
            }
            Outcome::Passed { detail: text }
            | Outcome::NotChecked { reason: text, .. }
            | Outcome::NotReached { reason: text } => cut(text, TITLE),
        }
    }
    for milestone in &mut verdict.milestones {
        match &mut milestone.state {
            MilestoneState::Open { place, .. } => cut(&mut place.file, TITLE),
            MilestoneState::Wrong { text, says } => {
                cut(text, TEXT);
                cut_all(says);
            }
            MilestoneState::WaitsFor { id: text } | MilestoneState::NotReached { reason: text } => cut(text, TITLE),
            MilestoneState::Done | MilestoneState::Flagged { .. } => {}
        }
    }
    verdict
}

fn cut_all(says: &mut Says) {
    let Says { code, place, help, pointer } = says;
    let pointer = pointer.iter_mut().flat_map(|pointer| [&mut pointer.todo, &mut pointer.read]);
    let texts = code.iter_mut().chain(help).chain(place.iter_mut().map(|place| &mut place.file)).chain(pointer);
    texts.for_each(|text| cut(text, TITLE));
}

fn cut(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    let left = text.len() - end;
    text.truncate(end);
    *text += &format!("…\n({left} more bytes are not shown)\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::{BuildFailure, Built, JudgeOptions, KernelSource, Part, Problem, judge};

    struct Says(String);

    impl KernelSource for Says {
        fn build(&self, _: &Problem, _: u32) -> Result<Built, BuildFailure> {
            Err(BuildFailure::no_answer(self.0.clone()))
        }
    }

    #[test]
    fn whatever_a_hand_in_says_its_report_is_short() {
        let step = harness::step(1).unwrap();
        let long = bounded(judge(step, &Says("\u{fffd}".repeat(4 << 20)), &JudgeOptions::default()));
        let failure = &long.build_failure.as_ref().unwrap().text;
        assert!(failure.len() < TEXT + 100 && failure.contains(" more bytes are not shown"), "{}", failure.len());
        let Outcome::Failed { title, text, .. } = long.part(Part::Correct) else { panic!("it failed") };
        assert!(title.len() + text.len() < 2 * TEXT && long.points == 0.0);
        let short = judge(step, &Says("no kernel".to_string()), &JudgeOptions::default());
        assert_eq!(format!("{:?}", bounded(short.clone()).parts), format!("{:?}", short.parts));
    }
}
