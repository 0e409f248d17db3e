//! What takes too long for every run of the tests: `cargo test --release -p harness --test full -- --ignored --nocapture`.
//!
//! Every solution, and the kernel for Hopper: 200 adversarial schedules on builds for 2 and 3 SMs (pairs and clusters: 2 and 4), and the largest sizes under the default
//! schedule and two adversarial ones, with order checked everywhere and values in a sample of clusters. In each run the proof holds that no
//! interleaving hangs. Each step is a test of its own, so that one can be run alone.

use emulator::{Deadlock, Options, Program, Report};
use harness::observe::Observation;
use harness::sampled::Sampled;
use harness::steps::hopper::{HOPPER, SMS};
use harness::{InProcess, InputKind, Inputs, KernelSource, Problem, Step, reference_kernels, step};
use ptx::Dtype;
use std::time::Instant;

const SCHEDULES: u64 = 200;

struct Solution {
    step: &'static Step,
    kernel: InProcess,
}

impl Solution {
    fn of(number: u8) -> Solution {
        let kernel = reference_kernels::solution(number).expect("it is solved");
        Solution { step: step(number).expect("the step exists"), kernel: InProcess(kernel) }
    }

    fn build(&self, problem: &Problem, sms: u32) -> (harness::Built, Program) {
        let built = self.kernel.build(problem, sms).unwrap_or_else(|e| panic!("step {}: {e}", self.step.number));
        let program = emulator::load(&built.ptx).unwrap_or_else(|all| panic!("step {}: {all:#?}", self.step.number));
        (built, program)
    }

    fn clean(&self, what: &str, report: &Report) {
        let number = self.step.number;
        assert!(
            report.is_clean() && report.notes.is_empty(),
            "step {number}, {what}: {:#?} {:#?} {:?}",
            report.findings,
            report.notes,
            report.incomplete
        );
        assert_eq!(report.deadlock, Deadlock::Impossible, "step {number}, {what}");
    }

    fn schedules(&self) {
        let number = self.step.number;
        // Few workers with several tiles each, and odd numbers of K tiles.
        let (problems, workers): (&[[u32; 3]], &[u32]) = match number {
            HOPPER => (&[[512, 512, 192], [520, 264, 1000]], &[2, 4]),
            1 => (&[[128, 128, 64]], &[148]),
            2 => (&[[128, 128, 320], [128, 128, 1024]], &[148]),
            3 => (&[[256, 384, 192], [512, 512, 1024]], &[148]),
            4 | 5 => (&[[256, 384, 192], [520, 264, 1000]], &[148]),
            6..=8 => (&[[384, 384, 192], [520, 264, 1000]], &[2, 3]),
            _ => (&[[512, 1024, 192], [1000, 520, 1000]], &[2, 4]),
        };
        let begin = Instant::now();
        let mut runs = 0;
        for &[m, n, k] in problems {
            for &sms in workers {
                for dtype in [Dtype::F16, Dtype::Bf16] {
                    let problem = Problem { m, n, k, dtype };
                    let (built, program) = self.build(&problem, sms);
                    let inputs = Inputs::new(problem, InputKind::Integers, u64::from(number));
                    // The schedules are shared out: all of them at each size, half of them for each type.
                    let seeds = (1..=SCHEDULES).filter(|seed| (seed % 2 == 0) == (dtype == Dtype::F16));
                    for seed in seeds {
                        let options = Options { seed: Some(seed), ..Options::default() };
                        let run = Observation::new(&built, &program, inputs.clone(), &options);
                        let what = format!("{problem} for {sms} SMs, seed {seed}");
                        self.clean(&what, &run.report);
                        assert!(run.comparison.is_right(), "step {number}, {what}: D is wrong");
                        runs += 1;
                    }
                }
            }
        }
        println!(
            "step {number}: {runs} runs under {SCHEDULES} schedules right and clean, {:.0} s",
            begin.elapsed().as_secs_f64()
        );
    }

    fn largest(&self) {
        let number = self.step.number;
        let (sms, large) = if number == HOPPER { (SMS, 2048) } else { (148, 4096) };
        let sizes: Vec<&Problem> = self.step.sizes.iter().filter(|size| size.m >= large).collect();
        assert!(number != HOPPER || !sizes.is_empty(), "no size is large");
        for problem in sizes {
            let (built, program) = self.build(problem, sms);
            for seed in [None, Some(1), Some(2)] {
                let begin = Instant::now();
                let options =
                    Options { seed, max_instructions: self.step.max_instructions(problem), ..Options::default() };
                let run = Sampled::new(&built, &program, *problem, &self.step.shape, sms, seed.unwrap_or(0), &options);
                let what = format!("{problem}, seed {seed:?}");
                self.clean(&what, &run.report);
                assert!(run.is_right(), "step {number}, {what}: {:?}", run.title());
                let (checked, of) = run.checked;
                println!(
                    "step {number}, {what}: {checked} of {of} tiles right, {:.0} s",
                    begin.elapsed().as_secs_f64()
                );
            }
        }
    }
}

macro_rules! steps {
    ($($name:ident $number:literal),+ $(,)?) => { $(
        #[test]
        #[ignore = "minutes to an hour: cargo test --release -p harness --test full -- --ignored"]
        fn $name() {
            let solution = Solution::of($number);
            solution.schedules();
            solution.largest();
        }
    )+ };
}
steps!(hopper 0, step01 1, step02 2, step03 3, step04 4, step05 5, step06 6, step07 7, step08 8, step09 9, step10 10);
