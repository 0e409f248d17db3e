//! Any size of the contract: the solutions of steps 4 to 10 on rectangles that a seed draws are right, and break no rule.
//!
//! `RECTANGLES=200 cargo test -p harness --test rectangles` tries more of each step than the 16 of `cargo test`.

use harness::observe::Observation;
use harness::{InProcess, InputKind, Inputs, KernelSource, Problem};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use ptx::Dtype;

const CASES: &str = "RECTANGLES";
const MOST: u32 = 700;

/// Cases of each step.
fn cases() -> u32 {
    match std::env::var(CASES) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{CASES}={value}: allowed is a number")),
        Err(_) => 16,
    }
}

/// A problem of the contract of steps 4 to 10, the SMs of a GPU, inputs and a schedule.
fn drawn() -> impl Strategy<Value = (Problem, u32, InputKind, Option<u64>)> {
    let dtype = prop_oneof![Just(Dtype::F16), Just(Dtype::Bf16)];
    let problem = (1..=MOST, 1..=MOST / 8, 1..=MOST / 8, dtype);
    let problem = problem.prop_map(|(m, n, k, dtype)| Problem { m, n: 8 * n, k: 8 * k, dtype });
    let sms = prop::sample::select(vec![2u32, 3, 4, 148]);
    (problem, sms, prop::sample::select(InputKind::ALL.to_vec()), prop::option::of(1..=1000u64))
}

fn solves(number: u8) {
    let (_, kernel) = solutions::ALL.iter().find(|(solved, _)| *solved == number).expect("it is solved");
    let step = harness::step(number).expect("the step exists");
    // The same cases in every run, others for each step.
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[number; 32]);
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let property = |(problem, sms, kind, seed): (Problem, u32, InputKind, Option<u64>)| {
        let built =
            InProcess(*kernel).build(&problem, sms).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        let program = emulator::load(&built.ptx).map_err(|found| TestCaseError::fail(format!("{found:#?}")))?;
        let options =
            emulator::Options { seed, max_instructions: step.max_instructions(&problem), ..Default::default() };
        let run = Observation::new(&built, &program, Inputs::new(problem, kind, u64::from(problem.m)), &options);
        let report = &run.report;
        prop_assert!(
            report.is_clean() && report.notes.is_empty(),
            "{:#?} {:#?} {:?}",
            report.findings,
            report.notes,
            report.incomplete
        );
        let wrong = harness::mismatch::classify(&run.reference, &run.comparison).map(|wrong| wrong.text());
        prop_assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
        Ok(())
    };
    let outcome = TestRunner::new_with_rng(config, rng).run(&drawn(), property);
    assert!(outcome.is_ok(), "step {number}: {}", outcome.err().map(|error| error.to_string()).unwrap_or_default());
}

macro_rules! steps {
    ($($name:ident $number:literal),+ $(,)?) => { $(#[test] fn $name() { solves($number); })+ };
}
steps!(step04 4, step05 5, step06 6, step07 7, step08 8, step09 9, step10 10);
