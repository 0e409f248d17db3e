//! For each TODO of each skeleton: a kernel in which only the TODOs before it are filled has reached exactly their milestones.

use harness::{InProcess, JudgeOptions, MilestoneState, judge, step};

fn check(number: u8) {
    let step = step(number).expect("the step exists");
    for prefix in prefixes::ALL.iter().filter(|prefix| prefix.step == number && prefix.filled < prefix.of) {
        assert_eq!(prefix.of, step.milestones.len(), "step {number}: one milestone for each TODO");
        let verdict = judge(step, &InProcess(prefix.kernel), &JudgeOptions::default());
        for (index, milestone) in verdict.milestones.iter().enumerate() {
            let expected = index < prefix.filled;
            let done = milestone.state == MilestoneState::Done;
            assert_eq!(
                done, expected,
                "step {number} with {} of {} TODOs filled: milestone {} is {:#?}",
                prefix.filled, prefix.of, milestone.id, milestone.state
            );
        }
        let points = 0.3 * f64::from(step.points) * prefix.filled as f64 / prefix.of as f64;
        assert!((verdict.points - points).abs() < 0.01, "{} points, not {points}", verdict.points);
    }
}

macro_rules! steps {
    ($($name:ident $number:literal),+ $(,)?) => { $(#[test] fn $name() { check($number); })+ };
}
steps!(
    step01 1, step02 2, step03 3, step04 4, step05 5, step06 6, step07 7, step08 8, step09 9, step10 10,
);
