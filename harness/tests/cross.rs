//! Structure tells the ten steps apart: the solution of each, handed in as each. A kernel of one step is none of another, but a
//! more general one of steps 1 to 3 serves as a simpler one.

use harness::{InProcess, JudgeOptions, Outcome, STEPS, structure};
use std::thread;

/// Solution and step, where the solution of another step may be handed in.
const SERVES: &[(u8, u8)] = &[(2, 1), (3, 1), (3, 2)];

/// The outcomes of a solution, handed in as each step.
fn row(kernel: ptx::KernelFn) -> Vec<Outcome> {
    STEPS.iter().map(|step| structure(step, &InProcess(kernel), &JudgeOptions::default())).collect()
}

#[test]
fn a_kernel_of_one_step_is_none_of_another() {
    colored::control::set_override(false);
    let rows: Vec<Vec<Outcome>> = thread::scope(|scope| {
        let rows: Vec<_> = solutions::ALL.iter().map(|(_, kernel)| scope.spawn(move || row(*kernel))).collect();
        rows.into_iter().map(|row| row.join().expect("no row panics")).collect()
    });
    let (mut table, mut wrong) = (String::from("solution | passes as a step: x, fails: .\n"), Vec::new());
    for ((solution, _), row) in solutions::ALL.iter().zip(&rows) {
        let cells: Vec<&str> = row.iter().map(|outcome| if outcome.passed() { "x" } else { "." }).collect();
        table += &format!("{solution:>8} | {}\n", cells.join(" "));
        for (step, outcome) in STEPS.iter().zip(row) {
            let serves = *solution == step.number || SERVES.contains(&(*solution, step.number));
            // "Not reached" says nothing of the structure: these kernels are right where they run.
            let as_it_should = match outcome {
                Outcome::Passed { .. } => serves,
                Outcome::Failed { .. } => !serves,
                _ => false,
            };
            if !as_it_should {
                wrong.push(format!("solution {solution} as step {}: {outcome:?}", step.number));
            }
        }
    }
    assert!(wrong.is_empty(), "{table}{}", wrong.join("\n"));
}
