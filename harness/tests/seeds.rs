//! Step 1's solution on the emulator: 20 seeds of each kind of input, each under the default schedule and an adversarial one.

use harness::observe::Observation;
use harness::{InProcess, InputKind, Inputs, KernelSource, Problem};
use ptx::Dtype;

#[test]
fn twenty_seeds_of_each_kind_of_input() {
    for dtype in [Dtype::F16, Dtype::Bf16] {
        let problem = Problem { m: 128, n: 128, k: 64, dtype };
        let built = InProcess(solutions::step01::kernel).build(&problem, 148).expect("the solution builds");
        let program = emulator::load(&built.ptx).expect("the solution loads");
        for kind in InputKind::ALL {
            for seed in 0..20 {
                for schedule in [None, Some(seed)] {
                    let options = emulator::Options { seed: schedule, ..Default::default() };
                    let run = Observation::new(&built, &program, Inputs::new(problem, kind, seed), &options);
                    assert!(
                        run.report.is_clean() && run.report.notes.is_empty() && run.comparison.is_right(),
                        "{kind}, seed {seed}, schedule {schedule:?}: {:#?}",
                        run.report.findings
                    );
                }
            }
        }
    }
}
