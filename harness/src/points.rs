//! Points of a step.

use crate::verdict::{Part, Verdict};

/// The share of a step's points that a part gives, in percent.
pub const fn share(part: Part) -> u32 {
    match part {
        Part::Correct => 50,
        Part::RaceFree => 15,
        Part::Structure => 15,
        Part::Resources => 5,
        Part::Fast => 15,
    }
}

/// The share that milestones give at most while D is not right, in percent.
pub const MILESTONE_SHARE: u32 = 30;

/// What share of a step's points is for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Of the five parts, in the order of the verdict, in percent.
    pub parts: [u32; 5],
    /// Of all milestones together while D is not right, in percent.
    pub milestones: u32,
}

impl Default for Shares {
    fn default() -> Shares {
        Shares { parts: Part::ALL.map(share), milestones: MILESTONE_SHARE }
    }
}

impl Shares {
    /// Points that each part of a verdict gives. Correct is a gate: without it, milestones count, and stand where it stands.
    pub fn of(&self, verdict: &Verdict) -> [f64; 5] {
        let passed = |part: Part| verdict.part(part).passed();
        let mut percent = [0.0; 5];
        if passed(Part::Correct) {
            for ((percent, share), part) in percent.iter_mut().zip(self.parts).zip(Part::ALL) {
                *percent = if passed(part) { f64::from(share) } else { 0.0 };
            }
        } else {
            let done = verdict.milestones.iter().filter(|milestone| milestone.state.seen()).count();
            percent[0] = f64::from(self.milestones) * done as f64 / verdict.milestones.len().max(1) as f64;
        }
        // Two decimals: what people and machines read are the same points. Of whole percents, nothing is rounded.
        percent.map(|percent| (f64::from(verdict.max_points) * percent).round() / 100.0)
    }

    /// Points of a verdict.
    pub fn points(&self, verdict: &Verdict) -> f64 {
        let hundredths: f64 = self.of(verdict).iter().map(|points| (points * 100.0).round()).sum();
        hundredths / 100.0
    }
}

/// Points of a verdict, as the workbook itself gives them.
pub fn points(verdict: &Verdict) -> f64 {
    Shares::default().points(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{MilestoneResult, MilestoneState, Outcome};

    fn verdict(passed: [bool; 5], done: usize, of: usize) -> Verdict {
        let outcome = |passed| match passed {
            true => Outcome::Passed { detail: String::new() },
            false => Outcome::not_checked(String::new()),
        };
        let [a, b, c, d, e] = Part::ALL;
        let state = |index| {
            if index < done { MilestoneState::Done } else { MilestoneState::NotReached { reason: String::new() } }
        };
        let milestone = |index| MilestoneResult { id: String::new(), title: String::new(), state: state(index) };
        Verdict {
            step: 1,
            title: String::new(),
            device: String::new(),
            parts: [
                (a, outcome(passed[0])),
                (b, outcome(passed[1])),
                (c, outcome(passed[2])),
                (d, outcome(passed[3])),
                (e, outcome(passed[4])),
            ],
            milestones: (0..of).map(milestone).collect(),
            build_failure: None,
            ending: None,
            here: None,
            points: 0.0,
            max_points: 10,
            seconds: 0.0,
        }
    }

    #[test]
    fn correct_is_a_gate() {
        assert_eq!(points(&verdict([true; 5], 8, 8)), 10.0);
        assert_eq!(points(&verdict([true, false, false, false, false], 8, 8)), 5.0);
        assert_eq!(points(&verdict([true, true, true, false, true], 8, 8)), 9.5);
        // Nothing else counts without it but milestones, up to 30 %.
        assert_eq!(points(&verdict([false, true, true, true, true], 0, 8)), 0.0);
        assert_eq!(points(&verdict([false, true, true, true, true], 4, 8)), 1.5);
        assert_eq!(points(&verdict([false; 5], 8, 8)), 3.0);
        assert_eq!(points(&verdict([false; 5], 0, 0)), 0.0);
        // 4 of 7 of 3 points are 1.714…
        assert_eq!(points(&verdict([false; 5], 4, 7)), 1.71);
        assert_eq!(Part::ALL.map(share).iter().sum::<u32>(), 100);
    }
}
