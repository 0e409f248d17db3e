//! Every solution with the values of some clusters only: the same findings and cycles as with all of them, no value that is wrong
//! and not marked, and nothing that depends on a value that is not there.

use harness::{InProcess, InputKind, Inputs, KernelSource, Problem, launch};

/// A solution at this size on so many SMs: all values, and those of the first cluster and the last.
fn compare(step: u8, problem: Problem, sms: u32) {
    let (_, kernel) = solutions::ALL.iter().find(|(number, _)| *number == step).expect("a step");
    let built = InProcess(*kernel).build(&problem, sms).unwrap_or_else(|e| panic!("step {step} at {problem}: {e}"));
    let program = emulator::load(&built.ptx).unwrap_or_else(|all| panic!("step {step}: {all:#?}"));
    let launch = launch::launch(&built, &Inputs::new(problem, InputKind::Integers, 1)).expect("it is launched");
    let run = |values| emulator::run(&program, &launch, &emulator::Options { values, ..Default::default() });
    let whole = run(emulator::Values::All);
    let sample = run(emulator::Values::OfClusters(vec![0, whole.clusters - 1]));
    let what = format!("step {step} at {problem} on {sms} SMs");
    assert_eq!((sample.cycles, sample.instructions), (whole.cycles, whole.instructions), "{what}");
    assert!(whole.is_clean() && sample.is_clean(), "{what}: {:#?} {:?}", sample.findings, sample.incomplete);
    let [whole_d, d] = [&whole, &sample].map(|report| &report.buffers[2]);
    assert!(whole_d.defined == d.defined, "{what}: other elements are written");
    let computed = (0..d.bytes.len()).filter(|&byte| !d.is_blank(byte)).count();
    assert!((0..d.bytes.len()).all(|byte| d.is_blank(byte) || d.bytes[byte] == whole_d.bytes[byte]), "{what}");
    assert!(computed > 0, "{what}: nothing is computed");
    assert!(whole.clusters < 3 || computed < d.bytes.len(), "{what}: everything is computed");
}

#[test]
fn solutions_are_as_when_all_is_computed() {
    for step in 3..=10 {
        if step == 3 {
            compare(step, Problem::f16(256, 384, 192), 148);
            continue;
        }
        // Whole tiles, a cluster for each; and parts of tiles, several for a cluster that is persistent.
        compare(step, Problem::f16(512, 512, 192), 148);
        compare(step, Problem::f16(520, 264, 200), 4);
    }
}

/// How long 8192³ takes: `cargo test --release -p harness --test sampled -- --ignored --nocapture`.
#[test]
#[ignore = "it takes minutes"]
fn the_largest_size() {
    let problem = Problem::f16(8192, 8192, 8192);
    let inputs = Inputs::new(problem, InputKind::Integers, 1);
    for step in 4..=10u8 {
        let (_, kernel) = solutions::ALL.iter().find(|(number, _)| *number == step).expect("a step");
        let built = InProcess(*kernel).build(&problem, 148).unwrap_or_else(|e| panic!("step {step}: {e}"));
        let program = emulator::load(&built.ptx).unwrap_or_else(|all| panic!("step {step}: {all:#?}"));
        let launch = launch::launch(&built, &inputs).expect("it is launched");
        let start = std::time::Instant::now();
        let values = emulator::Values::OfClusters(vec![0, 11, 33, 73]);
        let options = emulator::Options { values, max_instructions: 1 << 32, ..Default::default() };
        let report = emulator::run(&program, &launch, &options);
        let seconds = start.elapsed().as_secs_f64();
        println!("step {step}: {seconds:.1} s, {} cycles, {} clusters", report.cycles, report.clusters);
        assert!(report.is_clean(), "step {step}: {:#?} {:?}", report.findings, report.incomplete);
    }
}
