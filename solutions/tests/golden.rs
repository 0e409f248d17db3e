//! The PTX of every solution, held as text: a change of the builder shows as a difference.
//! `UPDATE_EXPECT=1 cargo test -p solutions` writes it anew.

use expect_test::expect_file;
use ptx::{Dtype, Gemm, KernelFn, Param, RegionKind, Space};
use std::fmt::Debug;

#[path = "../../ptx/tests/ptxas/mod.rs"]
mod ptxas;

/// SMs of a B200.
const SMS: u32 = 148;

fn step(number: u8) -> KernelFn {
    let found = solutions::ALL.iter().find(|(step, _)| *step == number);
    found.unwrap_or_else(|| panic!("no solution of step {number} in {:?}", solutions::ALL)).1
}

#[track_caller]
fn ok<T, E: Debug>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// The PTX of a step at a size that it solves: the smallest that takes several tiles of each extent that it tiles.
#[test]
fn texts() {
    for (number, kernel) in solutions::ALL {
        let [m, n, k] = match number {
            1 => [128, 128, 64],
            2 => [128, 128, 512],
            _ => [1024, 1024, 1024],
        };
        let name = format!("step{number:02}");
        let built = ok(ptx::build(&name, &Gemm::new(m, n, k, Dtype::F16, SMS), kernel));
        expect_file![format!("{}/golden/{name}.ptx", env!("CARGO_MANIFEST_DIR"))].assert_eq(&built.text);
    }
}

#[test]
fn step01_launch() {
    let kernel = ok(ptx::build("step01", &Gemm::new(128, 128, 64, Dtype::F16, SMS), step(1)));
    assert_eq!((kernel.grid, kernel.cluster, kernel.block), ([1; 3], [1; 3], [128, 1, 1]));
    assert_eq!(kernel.params, ["A", "B", "D"].map(Param::Pointer));
    let tile = RegionKind::Tile { rows: 128, columns: 64, element_bytes: 2, swizzle: 128 };
    let regions: Vec<_> =
        kernel.regions.iter().map(|r| (r.name.as_str(), r.space, r.offset, r.bytes, r.kind)).collect();
    assert_eq!(
        regions,
        [
            ("A", Space::DynamicShared, 0, 16384, tile),
            ("B", Space::DynamicShared, 16384, 16384, tile),
            ("mma_done", Space::DynamicShared, 32768, 8, RegionKind::Barrier),
            ("accumulator.address", Space::DynamicShared, 32776, 4, RegionKind::Scalar),
            ("accumulator", Space::Tensor, 0, 128, RegionKind::Scalar),
        ]
    );
    assert_eq!(kernel.dynamic_shared, 32780);
    assert_eq!(kernel.todos, []);
}

#[test]
fn step01_refuses_other_problems() {
    for (m, n, k) in [(256, 128, 64), (128, 256, 64), (128, 128, 128)] {
        let errors = ptx::build("step01", &Gemm::new(m, n, k, Dtype::F16, SMS), step(1)).expect_err("another size");
        assert!(errors[0].message.contains(&format!("this problem is {m}x{n}x{k} f16")), "{errors:#?}");
        assert!(errors[0].place.file.ends_with("step01.rs"), "{errors:#?}");
    }
}

#[test]
fn every_solution_assembles() {
    for dtype in [Dtype::F16, Dtype::Bf16] {
        for (number, kernel) in solutions::ALL {
            let name = format!("step{number:02}_{dtype}");
            let built = ok(ptx::build(&name, &Gemm::new(128, 128, 64, dtype, SMS), kernel));
            if let Some(said) = ptxas::assemble(&name, &built.text) {
                assert!(said.contains("0 bytes spill stores, 0 bytes spill loads"), "{name} spills:\n{said}");
            }
        }
    }
}
