//! What a step's contract excludes is refused before the launch, in words that say what the step supports.

use harness::steps::Case;
use harness::{BuildFailure, InProcess, JudgeOptions, KernelSource, Outcome, Part, Problem, Step, judge, step};
use ptx::Dtype;

/// Step, what its contract excludes, what it says.
const EXCLUDED: &[(u8, Problem, u32, &str)] = &[
    (1, Problem::f16(128, 128, 128), 148, "step 1 solves 128x128x64; this problem is 128x128x128 f16"),
    (1, Problem::f16(64, 128, 64), 148, "step 1 solves 128x128x64; this problem is 64x128x64 f16"),
    (
        2,
        Problem::f16(256, 128, 64),
        148,
        "step 2 solves 128x128 with K a multiple of 64; this problem is 256x128x64 f16",
    ),
    (
        2,
        Problem::f16(128, 128, 96),
        148,
        "step 2 solves 128x128 with K a multiple of 64; this problem is 128x128x96 f16",
    ),
    (
        3,
        Problem::f16(128, 192, 64),
        148,
        "step 3 solves whole tiles: M and N multiples of 128, K of 64; this problem is 128x192x64 f16",
    ),
    (
        3,
        Problem { m: 128, n: 128, k: 72, dtype: Dtype::Bf16 },
        148,
        "step 3 solves whole tiles: M and N multiples of 128, K of 64; this problem is 128x128x72 bf16",
    ),
    (9, Problem::f16(256, 256, 64), 1, "step 9 needs 2 SMs; this problem is 256x256x64 f16"),
    (10, Problem::f16(256, 256, 64), 1, "step 10 needs 2 SMs; this problem is 256x256x64 f16"),
];

/// The verdict on a solution that has to solve what its contract excludes.
#[track_caller]
fn refused(number: u8, problem: Problem, sms: u32, title: &str) {
    colored::control::set_override(false);
    let (_, kernel) = solutions::ALL.iter().find(|(solved, _)| *solved == number).expect("it is solved");
    let failure = InProcess(*kernel).build(&problem, sms).expect_err("the contract excludes it");
    assert!(matches!(&failure, BuildFailure::Rejected(errors) if errors.len() == 1), "once: {failure}");
    let observed = Case { problem, sms: Some(sms) };
    let asked = Step { observed, sizes: &[], cases: &[], timed: problem, ..*step(number).expect("the step exists") };
    let verdict = judge(&asked, &InProcess(*kernel), &JudgeOptions { sms, ..JudgeOptions::default() });
    assert!(verdict.build_failure.is_some() && verdict.points == 0.0, "{verdict:?}");
    let Outcome::Failed { title: found, text, .. } = verdict.part(Part::Correct) else { panic!("{verdict:?}") };
    assert_eq!(found, title);
    let line = text.lines().find(|line| line.contains(&format!("--> solutions/src/step{number:02}.rs:")));
    assert!(line.is_some(), "it names the line:\n{text}");
    let sms = if sms == 1 { "1 SM".to_string() } else { format!("{sms} SMs") };
    let after = format!(
        "= try: Build the kernel for a problem that it can solve, or correct this condition.\n\
         Built for {problem} on {sms}, which step {number} has to solve.\n"
    );
    assert!(text.starts_with(&format!("error: {title}\n")) && text.ends_with(&after), "{text}");
}

#[test]
fn sizes_outside_of_the_contract_are_refused_in_the_steps_words() {
    for (number, problem, sms, title) in EXCLUDED {
        refused(*number, *problem, *sms, title);
    }
    for number in 4..=10 {
        let words = format!("step {number} solves N and K that are multiples of 8; this problem is");
        refused(number, Problem::f16(128, 132, 64), 148, &format!("{words} 128x132x64 f16"));
        refused(number, Problem::f16(1, 8, 12), 148, &format!("{words} 1x8x12 f16"));
    }
}

/// A kernel that lacks the condition is not launched on rows that nothing can move.
#[test]
fn rows_that_do_not_begin_on_16_bytes_are_not_launched() {
    let problem = Problem::f16(128, 132, 64);
    let observed = Case { problem, sms: None };
    let asked = Step { observed, sizes: &[], cases: &[], timed: problem, ..*step(3).expect("step 3 exists") };
    let verdict = judge(&asked, &InProcess(edited::kernel("careless_3")), &JudgeOptions::default());
    let Outcome::Failed { title, text, .. } = verdict.part(Part::Correct) else { panic!("{verdict:?}") };
    assert_eq!(title, "rows of D have 264 bytes, which is no multiple of 16", "{text}");
    assert!(text.contains("try: Pad D to a multiple of 8 columns."), "{text}");
}
