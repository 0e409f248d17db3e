//! Every solution through the judge: five parts, all milestones. `grader solutions` does the same at all sizes of the table;
//! here the largest are left out.

use harness::{InProcess, JudgeOptions, Problem, Step, judge, report, step};

/// Multiplications of the largest problem here.
const LARGEST: u64 = 1 << 30;

fn passes(number: u8) {
    colored::control::set_override(false);
    let whole = step(number).unwrap_or_else(|| panic!("step {number} exists"));
    let sizes: Vec<Problem> = whole.sizes.iter().copied().filter(|size| size.products() <= LARGEST).collect();
    let step = Step { sizes: sizes.leak(), ..*whole };
    let (_, kernel) = solutions::ALL.iter().find(|(solved, _)| *solved == number).expect("it is solved");
    let verdict = judge(&step, &InProcess(*kernel), &JudgeOptions::default());
    assert_eq!(verdict.points, f64::from(step.points), "{}", report::render(&verdict));
}

macro_rules! steps {
    ($($name:ident $number:literal),+ $(,)?) => { $(#[test] fn $name() { passes($number); })+ };
}
steps!(step02 2, step03 3, step04 4, step05 5, step06 6, step07 7, step08 8, step09 9, step10 10);
