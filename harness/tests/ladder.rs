//! Every solution on the emulator: right and without findings, at sizes that bite.

use harness::observe::Observation;
use harness::{InProcess, InputKind, Inputs, KernelSource, Problem};

fn check(step: u8, problem: Problem, sms: u32, seed: Option<u64>) {
    let (_, kernel) = solutions::ALL.iter().find(|(number, _)| *number == step).unwrap();
    let built = InProcess(*kernel).build(&problem, sms).unwrap_or_else(|e| panic!("step {step} at {problem}: {e}"));
    let program = emulator::load(&built.ptx).unwrap_or_else(|all| panic!("step {step}: {all:#?}"));
    let kind = [InputKind::Integers, InputKind::Normal][(seed.unwrap_or(0) % 2) as usize];
    let start = std::time::Instant::now();
    let options = emulator::Options { seed, ..Default::default() };
    let seen = Observation::new(&built, &program, Inputs::new(problem, kind, 1), &options);
    println!("step {step} {problem} sms {sms} seed {seed:?}: {} cycles {:.2} s", seen.report.cycles, start.elapsed().as_secs_f64());
    let text: Vec<String> = seen.report.findings.iter().chain(&seen.report.notes).map(|d| harness::diagnostics::render(d, &harness::diagnostics::Sources::workspace())).collect();
    assert!(text.is_empty() && seen.report.is_clean(), "step {step} at {problem}: {}\n{:?}", text.join("\n"), seen.report.incomplete);
    assert!(seen.comparison.is_right(), "step {step} at {problem} is wrong");
}

#[test]
fn solutions_are_right() {
    for step in 1..=10u8 {
        let sizes: &[[u32; 3]] = match step {
            1 => &[[128, 128, 64]],
            2 => &[[128, 128, 64], [128, 128, 320]],
            3 => &[[256, 384, 192]],
            _ => &[[512, 768, 320], [520, 264, 200], [1, 8, 8], [300, 1000, 64]],
        };
        for &[m, n, k] in sizes {
            for sms in if step >= 6 { vec![2, 4, 148] } else { vec![148] } {
                for seed in [None, Some(1), Some(2)] {
                    check(step, Problem::f16(m, n, k), sms, seed);
                }
            }
        }
    }
}
