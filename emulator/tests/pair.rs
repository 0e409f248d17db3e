//! A GEMM by pairs of CTAs, written by hand in PTX: TMA loads and stores, remote barriers, `cta_group::2`, multicast commits.

use emulator::{Buffer, Content, Element, Launch, Options, Param, Report, Swizzle, TensorMap};
use half::f16;

const TEXT: &str = include_str!("kernels/pair.ptx");

fn matrix(rows: usize, columns: usize, seed: u64) -> Vec<i32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as i32 % 5 - 2
    };
    (0..rows * columns).map(|_| next()).collect()
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
    let program = emulator::load(text).unwrap_or_else(|errors| panic!("does not load: {errors:#?}"));
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
    let report = emulator::run(
        &program,
        &launch,
        &Options { seed, max_instructions: 10_000_000, trace: true, keep_operands: true, ..Default::default() },
    );
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
        for seed in std::iter::once(None).chain((0..6).map(Some)) {
            let (report, wrong) = run(TEXT, m, k, seed);
            if std::env::var("DBG").is_ok() {
                for e in &report.trace {
                    if !matches!(e.kind, emulator::EventKind::SharedStore { .. }) {
                        println!(
                            "{} {:?} {}..{} {:?}",
                            e.cta,
                            e.actor,
                            e.start,
                            e.end,
                            match &e.kind {
                                emulator::EventKind::Mma(m) => format!(
                                    "mma {:?} a {:?} {} b {} {:?}",
                                    m.shape,
                                    m.a.offset,
                                    m.a.elements.len(),
                                    m.b.offset,
                                    &m.a.elements.get(..4)
                                ),
                                k => format!("{k:?}"),
                            }
                        );
                    }
                }
            }
            assert!(report.is_clean(), "{m} x {k}, seed {seed:?}: {:#?}", report.findings);
            assert!(report.notes.is_empty(), "{:#?}", report.notes);
            assert_eq!(wrong, 0, "{m} x {k}, seed {seed:?}");
        }
    }
}
