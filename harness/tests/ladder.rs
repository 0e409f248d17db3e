//! Every solution through the judge: five parts, all milestones.

use harness::{InProcess, JudgeOptions, judge, report, step};

fn passes(number: u8) {
    colored::control::set_override(false);
    let step = step(number).unwrap_or_else(|| panic!("step {number} exists"));
    let (_, kernel) = solutions::ALL.iter().find(|(solved, _)| *solved == number).expect("it is solved");
    let verdict = judge(step, &InProcess(*kernel), &JudgeOptions::default());
    println!("{}\n{:.1} s", report::render(&verdict), verdict.seconds);
    assert_eq!(verdict.points, f64::from(step.points), "{}", report::render(&verdict));
}

macro_rules! steps {
    ($($name:ident $number:literal),+) => { $(#[test] fn $name() { passes($number); })+ };
}
steps!(step02 2, step03 3, step04 4, step05 5, step06 6, step07 7, step08 8, step09 9, step10 10);
