//! The PTX of every solution, held as text: a change of the builder shows as a difference.
//! `UPDATE_EXPECT=1 cargo test -p solutions` writes it anew.

use expect_test::{expect, expect_file};
use ptx::{Dtype, Gemm, Kernel, KernelFn, Param, Region, RegionKind, Space, TensorMap};
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

/// The kernel for Hopper: its text, and at several sizes that ptxas takes it, spills nothing and lets every `wgmma` run
/// beside others.
#[test]
fn hopper() {
    let built = ok(ptx::build("hopper", &Gemm::new(1024, 1024, 1024, Dtype::F16, 132), solutions::hopper::kernel));
    expect_file![format!("{}/golden/hopper.ptx", env!("CARGO_MANIFEST_DIR"))].assert_eq(&built.text);
    for ([m, n, k], dtype) in [([520, 264, 200], Dtype::F16), ([1024; 3], Dtype::Bf16), ([8192; 3], Dtype::F16)] {
        let name = format!("hopper_{m}_{n}_{k}_{dtype}");
        let built = ok(ptx::build(&name, &Gemm::new(m, n, k, dtype, 132), solutions::hopper::kernel));
        if let Some(said) = ptxas::assemble(&name, &built.text) {
            assert!(said.contains("0 bytes spill stores, 0 bytes spill loads"), "{name} spills:\n{said}");
            assert!(!said.contains("wgmma"), "{name}:\n{said}");
        }
    }
}

/// What a launch of the kernel needs, a few lines long.
fn facts(kernel: &Kernel) -> String {
    let extent = |[x, y, z]: [u32; 3]| format!("{x} x {y} x {z}");
    let mut text = format!(
        "grid {}, cluster {}, block {}, {} bytes of shared memory\n",
        extent(kernel.grid),
        extent(kernel.cluster),
        extent(kernel.block),
        kernel.dynamic_shared
    );
    for param in &kernel.params {
        text += &match param {
            Param::Pointer(matrix) => format!("  pointer to {matrix}\n"),
            Param::TensorMap(map) => {
                let TensorMap { matrix, box_rows, box_columns, swizzle, name } = map;
                format!(
                    "  {name}: tensor map of {matrix}, boxes of {box_rows} x {box_columns}, swizzle {}\n",
                    swizzle.width()
                )
            }
            _ => panic!("{param:?}"),
        };
    }
    for stages in kernel.regions.chunk_by(|a, b| (&a.name, a.space) == (&b.name, b.space)) {
        let Region { name, space, offset, bytes, kind, stage } = &stages[0];
        let numbers: Vec<_> = stages.iter().map(|region| region.stage).collect();
        let expected: Vec<_> = (0..).take(stages.len()).map(|number| stage.map(|first| first + number)).collect();
        assert_eq!(numbers, expected, "{name}");
        let what = match kind {
            RegionKind::Tile { rows, columns, element_bytes, swizzle } => {
                format!("{rows} x {columns} of {element_bytes} bytes, swizzle {swizzle}")
            }
            RegionKind::Barrier => "mbarrier".to_string(),
            RegionKind::Scalar => "scalar".to_string(),
        };
        let name = if stage.is_some() { format!("{name}[0..{}]", stages.len()) } else { name.clone() };
        text += &match space {
            Space::DynamicShared => format!("  {offset}: {name}, {what}\n"),
            Space::Tensor => format!("  {bytes} columns of tensor memory: {name}\n"),
        };
    }
    assert_eq!((&kernel.todos, &kernel.leaks), (&vec![], &vec![]));
    text
}

/// The launch of each step, at a size with an edge in each direction where the step takes one.
#[test]
fn launches() {
    let mut text = String::new();
    for (number, kernel) in solutions::ALL {
        let [m, n, k] = match number {
            1 => [128, 128, 64],
            2 => [128, 128, 512],
            3 => [512, 768, 320],
            _ => [520, 264, 200],
        };
        let gemm = Gemm::new(m, n, k, Dtype::F16, SMS);
        let kernel = ok(ptx::build(&format!("step{number:02}"), &gemm, kernel));
        text += &format!("step {number} for {gemm}: {}", facts(&kernel));
    }
    expect![[r#"
        step 1 for 128x128x64 f16: grid 1 x 1 x 1, cluster 1 x 1 x 1, block 128 x 1 x 1, 32780 bytes of shared memory
          pointer to A
          pointer to B
          pointer to D
          0: A, 128 x 64 of 2 bytes, swizzle 128
          16384: B, 128 x 64 of 2 bytes, swizzle 128
          32768: mma_done, mbarrier
          32776: accumulator.address, scalar
          128 columns of tensor memory: accumulator
        step 2 for 128x128x512 f16: grid 1 x 1 x 1, cluster 1 x 1 x 1, block 128 x 1 x 1, 32780 bytes of shared memory
          pointer to A
          pointer to B
          pointer to D
          0: A, 128 x 64 of 2 bytes, swizzle 128
          16384: B, 128 x 64 of 2 bytes, swizzle 128
          32768: mma_done, mbarrier
          32776: accumulator.address, scalar
          128 columns of tensor memory: accumulator
        step 3 for 512x768x320 f16: grid 4 x 6 x 1, cluster 1 x 1 x 1, block 128 x 1 x 1, 32780 bytes of shared memory
          pointer to A
          pointer to B
          pointer to D
          0: A, 128 x 64 of 2 bytes, swizzle 128
          16384: B, 128 x 64 of 2 bytes, swizzle 128
          32768: mma_done, mbarrier
          32776: accumulator.address, scalar
          128 columns of tensor memory: accumulator
        step 4 for 520x264x200 f16: grid 5 x 3 x 1, cluster 1 x 1 x 1, block 128 x 1 x 1, 65556 bytes of shared memory
          A_map: tensor map of A, boxes of 128 x 64, swizzle 128
          B_map: tensor map of B, boxes of 128 x 64, swizzle 128
          D_map: tensor map of D, boxes of 128 x 64, swizzle 128
          0: A, 128 x 64 of 2 bytes, swizzle 128
          16384: B, 128 x 64 of 2 bytes, swizzle 128
          32768: D[0..2], 128 x 64 of 2 bytes, swizzle 128
          65536: tma2mma, mbarrier
          65544: mma_done, mbarrier
          65552: accumulator.address, scalar
          128 columns of tensor memory: accumulator
        step 5 for 520x264x200 f16: grid 5 x 3 x 1, cluster 1 x 1 x 1, block 128 x 1 x 1, 98332 bytes of shared memory
          A_map: tensor map of A, boxes of 128 x 64, swizzle 128
          B_map: tensor map of B, boxes of 128 x 64, swizzle 128
          D_map: tensor map of D, boxes of 128 x 64, swizzle 128
          0: A[0..2], 128 x 64 of 2 bytes, swizzle 128
          32768: B[0..2], 128 x 64 of 2 bytes, swizzle 128
          65536: D[0..2], 128 x 64 of 2 bytes, swizzle 128
          98304: tma2mma[0..2], mbarrier
          98320: mma_done, mbarrier
          98328: accumulator.address, scalar
          128 columns of tensor memory: accumulator
        step 6 for 520x264x200 f16: grid 148 x 1 x 1, cluster 1 x 1 x 1, block 128 x 1 x 1, 98332 bytes of shared memory
          A_map: tensor map of A, boxes of 128 x 64, swizzle 128
          B_map: tensor map of B, boxes of 128 x 64, swizzle 128
          D_map: tensor map of D, boxes of 128 x 64, swizzle 128
          0: A[0..2], 128 x 64 of 2 bytes, swizzle 128
          32768: B[0..2], 128 x 64 of 2 bytes, swizzle 128
          65536: D[0..2], 128 x 64 of 2 bytes, swizzle 128
          98304: tma2mma[0..2], mbarrier
          98320: mma_done, mbarrier
          98328: accumulator.address, scalar
          128 columns of tensor memory: accumulator
        step 7 for 520x264x200 f16: grid 148 x 1 x 1, cluster 1 x 1 x 1, block 256 x 1 x 1, 81972 bytes of shared memory
          A_map: tensor map of A, boxes of 128 x 64, swizzle 128
          B_map: tensor map of B, boxes of 128 x 64, swizzle 128
          D_map: tensor map of D, boxes of 128 x 64, swizzle 128
          0: A[0..2], 128 x 64 of 2 bytes, swizzle 128
          32768: B[0..2], 128 x 64 of 2 bytes, swizzle 128
          65536: D, 128 x 64 of 2 bytes, swizzle 128
          81920: tma2mma[0..2], mbarrier
          81936: mma2tma[0..2], mbarrier
          81952: mma2ld, mbarrier
          81960: ld2mma, mbarrier
          81968: accumulator.address, scalar
          128 columns of tensor memory: accumulator
        step 8 for 520x264x200 f16: grid 148 x 1 x 1, cluster 1 x 1 x 1, block 256 x 1 x 1, 147540 bytes of shared memory
          A_map: tensor map of A, boxes of 128 x 64, swizzle 128
          B_map: tensor map of B, boxes of 128 x 64, swizzle 128
          D_map: tensor map of D, boxes of 128 x 64, swizzle 128
          0: A[0..4], 128 x 64 of 2 bytes, swizzle 128
          65536: B[0..4], 128 x 64 of 2 bytes, swizzle 128
          131072: D, 128 x 64 of 2 bytes, swizzle 128
          147456: tma2mma[0..4], mbarrier
          147488: mma2tma[0..4], mbarrier
          147520: mma2ld, mbarrier
          147528: ld2mma, mbarrier
          147536: accumulator.address, scalar
          128 columns of tensor memory: accumulator
        step 9 for 520x264x200 f16: grid 148 x 1 x 1, cluster 2 x 1 x 1, block 256 x 1 x 1, 147540 bytes of shared memory
          A_map: tensor map of A, boxes of 128 x 64, swizzle 128
          B_map: tensor map of B, boxes of 128 x 64, swizzle 128
          D_map: tensor map of D, boxes of 128 x 64, swizzle 128
          0: A[0..4], 128 x 64 of 2 bytes, swizzle 128
          65536: B[0..4], 128 x 64 of 2 bytes, swizzle 128
          131072: D, 128 x 64 of 2 bytes, swizzle 128
          147456: tma2mma[0..4], mbarrier
          147488: mma2tma[0..4], mbarrier
          147520: mma2ld, mbarrier
          147528: ld2mma, mbarrier
          147536: accumulator.address, scalar
          512 columns of tensor memory: accumulator
        step 10 for 520x264x200 f16: grid 148 x 1 x 1, cluster 2 x 1 x 1, block 384 x 1 x 1, 229476 bytes of shared memory
          A_map: tensor map of A, boxes of 128 x 64, swizzle 128
          B_map: tensor map of B, boxes of 128 x 64, swizzle 128
          D_map: tensor map of D, boxes of 128 x 64, swizzle 128
          0: A0[0..4], 128 x 64 of 2 bytes, swizzle 128
          65536: A1[0..4], 128 x 64 of 2 bytes, swizzle 128
          131072: B[0..4], 128 x 64 of 2 bytes, swizzle 128
          196608: D[0..2], 128 x 64 of 2 bytes, swizzle 128
          229376: tma2mma[0..4], mbarrier
          229408: mma2tma[0..4], mbarrier
          229440: mma2ld[0..2], mbarrier
          229456: ld2mma[0..2], mbarrier
          229472: accumulators.address, scalar
          512 columns of tensor memory: accumulators
    "#]].assert_eq(&text);
}

/// A step names what it solves when it is asked for something else (docs/steps.md has the table).
#[test]
fn other_problems_are_refused() {
    let refused = |number, [m, n, k]: [u32; 3]| {
        let gemm = Gemm::new(m, n, k, Dtype::F16, SMS);
        let errors = ptx::build("kernel", &gemm, step(number)).expect_err(&format!("step {number} for {gemm}"));
        assert!(errors[0].place.file.ends_with(&format!("step{number:02}.rs")), "{errors:#?}");
        let (rule, problem) = errors[0].message.split_once("; ").expect("the rule, then the problem");
        assert_eq!(problem, format!("this problem is {gemm}"));
        rule.to_string()
    };
    let others: [&[[u32; 3]]; 4] = [
        &[[256, 128, 64], [128, 256, 64], [128, 128, 128]],
        &[[256, 128, 64], [128, 256, 64], [128, 128, 96]],
        &[[192, 128, 64], [128, 192, 64], [128, 128, 96]],
        &[[128, 132, 64], [128, 128, 60], [1, 1, 1]],
    ];
    let mut text = String::new();
    for (number, _) in solutions::ALL {
        let rules: Vec<_> =
            others[usize::from(*number).min(4) - 1].iter().map(|size| refused(*number, *size)).collect();
        assert!(rules.windows(2).all(|pair| pair[0] == pair[1]), "{rules:#?}");
        text += &(rules[0].clone() + "\n");
    }
    expect![[r#"
        step 1 solves 128x128x64
        step 2 solves 128x128 with K a multiple of 64
        step 3 solves whole tiles: M and N multiples of 128, K of 64
        step 4 solves N and K that are multiples of 8
        step 5 solves N and K that are multiples of 8
        step 6 solves N and K that are multiples of 8
        step 7 solves N and K that are multiples of 8
        step 8 solves N and K that are multiples of 8
        step 9 solves N and K that are multiples of 8
        step 10 solves N and K that are multiples of 8
    "#]]
    .assert_eq(&text);
    // Nothing to compute: no step is asked.
    for (_, kernel) in solutions::ALL {
        let errors = ptx::build("kernel", &Gemm::new(128, 0, 64, Dtype::F16, SMS), kernel).expect_err("it is empty");
        assert!(errors[0].message.starts_with("there is nothing to compute"), "{errors:#?}");
    }
    // A pair of CTAs needs two SMs.
    for number in [9, 10] {
        let errors = ptx::build("kernel", &Gemm::new(1024, 1024, 64, Dtype::F16, 1), step(number)).expect_err("one SM");
        assert_eq!(errors[0].message, format!("step {number} needs 2 SMs; this problem is 1024x1024x64 f16"));
    }
}

/// At small, odd and large sizes ptxas takes the text, and no register is spilled.
fn all_assemble(dtype: Dtype) {
    let mut assembled = 0;
    for [m, n, k] in [[128, 128, 64], [512, 768, 320], [520, 264, 200], [1024; 3], [8192; 3]] {
        for (number, kernel) in solutions::ALL {
            let name = format!("step{number:02}_{m}_{n}_{k}_{dtype}");
            // Steps 1 to 3 solve some of them.
            let Ok(built) = ptx::build(&name, &Gemm::new(m, n, k, dtype, SMS), kernel) else {
                assert!(*number < 4, "step {number} solves {m}x{n}x{k}");
                continue;
            };
            if let Some(said) = ptxas::assemble(&name, &built.text) {
                assert!(said.contains("0 bytes spill stores, 0 bytes spill loads"), "{name} spills:\n{said}");
            }
            assembled += 1;
        }
    }
    // Of steps 1 and 2 one size, of step 3 four, of the others all five.
    assert_eq!(assembled, 1 + 1 + 4 + 7 * 5);
}

#[test]
fn every_solution_assembles_in_f16() {
    all_assemble(Dtype::F16);
}

#[test]
fn every_solution_assembles_in_bf16() {
    all_assemble(Dtype::Bf16);
}
