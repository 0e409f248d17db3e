//! A GEMM by pairs of CTAs, written by hand in PTX: TMA loads and stores, remote barriers, `cta_group::2`, multicast commits.

mod common;

use common::{load, schedules};
use emulator::{Buffer, Content, Element, Launch, Options, Param, Report, Swizzle, TensorMap};
use half::f16;

const TEXT: &str = include_str!("kernels/pair.ptx");

fn matrix(rows: usize, columns: usize, seed: u64) -> Vec<i32> {
    common::matrix(rows, columns, seed, 2)
}

fn map(buffer: usize, rows: u64, columns: u64, box_rows: u32) -> Param {
    Param::TensorMap {
        buffer,
        map: TensorMap {
            address: 0,
            element: Element::F16,
            dims: vec![columns, rows],
            strides: vec![columns * 2],
            box_dims: vec![64, box_rows],
            element_strides: vec![],
            swizzle: Swizzle::B128,
            fill_nan: false,
        },
    }
}

/// M rows, 256 columns of D; depth K.
fn run(text: &str, m: usize, k: usize, seed: Option<u64>) -> (Report, usize) {
    let program = load(text);
    let (a, b) = (matrix(m, k, 1), matrix(256, k, 2));
    let bytes = |m: &[i32]| m.iter().flat_map(|&x| f16::from_f32(x as f32).to_bits().to_le_bytes()).collect();
    let buffer =
        |name: &str, content, row| Buffer { name: name.into(), content, row_bytes: Some(row), element_bytes: Some(2) };
    let launch = Launch {
        entry: "pair".into(),
        grid: [m.div_ceil(256) as u32 * 2, 1, 1],
        cluster: [2, 1, 1],
        block: [128, 1, 1],
        dynamic_shared: 81920 + 48,
        buffers: vec![
            buffer("A", Content::Bytes(bytes(&a)), 2 * k as u32),
            buffer("B", Content::Bytes(bytes(&b)), 2 * k as u32),
            buffer("D", Content::Undefined { bytes: (m * 256 * 2) as u64 }, 512),
        ],
        params: vec![
            map(0, m as u64, k as u64, 128),
            map(1, 256, k as u64, 128),
            map(2, m as u64, 256, 128),
            Param::U32(k.div_ceil(64) as u32),
        ],
        ..Default::default()
    };
    let report =
        emulator::run(&program, &launch, &Options { seed, max_instructions: 10_000_000, ..Default::default() });
    let wrong = match report.buffers.get(2) {
        None => m * 256,
        Some(d) => (0..m * 256)
            .filter(|&n| {
                let (row, column) = (n / 256, n % 256);
                let sum: i32 = (0..k).map(|i| a[row * k + i] * b[column * k + i]).sum();
                let found = f16::from_bits(u16::from_le_bytes([d.bytes[2 * n], d.bytes[2 * n + 1]]));
                found != f16::from_f32(sum as f32)
            })
            .count(),
    };
    (report, wrong)
}

#[test]
fn right_and_clean() {
    for (m, k) in [(256, 64), (512, 320), (200, 200)] {
        for seed in schedules(6) {
            let (report, wrong) = run(TEXT, m, k, seed);
            assert!(report.is_clean(), "{m} x {k}, seed {seed:?}: {:#?}", report.findings);
            assert!(report.notes.is_empty(), "{:#?}", report.notes);
            assert_eq!(wrong, 0, "{m} x {k}, seed {seed:?}");
        }
    }
}
