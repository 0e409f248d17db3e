//! Mistakes.
use harness::{InProcess, JudgeOptions, Problem, Step, Verdict, judge, report, step};

fn judged(number: u8, name: &str) -> Verdict {
    colored::control::set_override(false);
    let whole = step(number).expect("the step exists");
    let _ = Problem::f16(1, 1, 1);
    let step = Step { sizes: &[], cases: &[], timed: whole.observed.problem, inputs_per_size: 1, ..*whole };
    judge(&step, &InProcess(edited::kernel(name)), &JudgeOptions { seeds: 2, ..JudgeOptions::default() })
}

#[test]
fn show() {
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, _) in edited::ALL {
        if only.split(',').any(|o| o == *name) {
            let number: u8 = name.rsplit('_').next().unwrap().parse().unwrap();
            println!("######## {name}\n{}", report::render(&judged(number, name)));
        }
    }
}
