//! A wrong D of a kernel that breaks no rule: the place is named at which its product went astray.

#![cfg(feature = "solutions")]

use harness::astray::Stage;
use harness::corpus::kernels::{Kernel, STEPS};
use harness::corpus::run::Bench;
use harness::corpus::{Kind, mutants};

/// What is changed, the stage that must be named, words of its title, and of the PTX instruction that is named first.
const WRONG: [(&str, Stage, &str, &str); 8] = [
    ("04/sign-of-A/178", Stage::Descriptor, "multiplies by −A", "tcgen05.mma"),
    ("02/type-of-B/452", Stage::Descriptor, "takes B for BF16, which is FP16", "tcgen05.mma"),
    ("02/transposed-B/435", Stage::Descriptor, "takes columns of the tile of B for its rows", "tcgen05.mma"),
    ("02/swizzle/433.4", Stage::Operand, "row 0 of an operand is columns 32 to 47 of B, its row 1", "tcgen05.mma"),
    ("05/map-extents/0", Stage::Operand, "is zero, and should be 16 columns of a row of A", "tcgen05.mma"),
    ("07/column/366", Stage::ReadOut, "column 0 of an accumulator is never read", "tcgen05.ld"),
    ("00/coordinate/503", Stage::Store, "row 0, column 64 of D is stored twice", "cp.async.bulk.tensor"),
    ("04/map-swizzle/0.7", Stage::Epilogue, "permuted within each row by the 128-byte swizzle", "cp.async.bulk.tensor"),
];

#[test]
fn the_first_wrong_place_is_named() {
    for (id, stage, words, instruction) in WRONG {
        let kernel = Kernel::new(id[..2].parse().expect("a step")).expect("a solution");
        let bench = Bench::new(&kernel).expect("it runs");
        let mutant = mutants(&kernel, &Kind::ALL).into_iter().find(|mutant| mutant.id == id);
        let (ptx, launch) = bench.mutated(&mutant.unwrap_or_else(|| panic!("there is no {id}")));
        let (run, found) = bench.followed(&ptx, &launch).expect("it loads");
        assert!(run.report.findings.is_empty() && !run.comparison.is_right(), "{id}: {:?}", run.report.findings);
        let found = found.unwrap_or_else(|| panic!("{id}: nothing is named"));
        assert_eq!(found.stage, stage, "{id}: {:#?}", found.explanation);
        assert!(found.explanation.title.contains(words), "{id}: {}", found.explanation.title);
        let first = &found.explanation.labels[0].place.text;
        assert!(first.contains(instruction), "{id} names {first}");
    }
}

/// Of the solutions, nothing in front of the stores is wrong: each stage of the way finds all as it should be.
#[test]
fn nothing_is_astray_in_a_right_kernel() {
    for step in STEPS {
        let kernel = Kernel::new(step).expect("a solution");
        let bench = Bench::new(&kernel).expect("it runs");
        let (run, found) = bench.followed(&kernel.built.ptx, &kernel.launch).expect("it loads");
        assert!(run.comparison.is_right());
        let found = found.unwrap_or_else(|| panic!("step {step}: its way is not followed"));
        assert_eq!(found.stage, Stage::Epilogue, "step {step}: {:#?}", found.explanation);
    }
}
