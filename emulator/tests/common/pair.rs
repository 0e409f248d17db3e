//! `kernels/pair.ptx` and its launch: D = A·Bᵀ, 256 rows a cluster, 256 columns.

use emulator::{Buffer, Content, Element, Launch, Param, Report, Swizzle, TensorMap};
use half::f16;

pub const TEXT: &str = include_str!("../kernels/pair.ptx");

fn matrix(rows: usize, columns: usize, seed: u64) -> Vec<i32> {
    super::matrix(rows, columns, seed, 2)
}

/// A map of a matrix of FP16, in boxes of 64 columns.
pub fn map(buffer: usize, rows: u64, columns: u64, box_rows: u32) -> Param {
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

/// M rows, depth K.
pub fn launch(m: usize, k: usize) -> Launch {
    let (a, b) = (matrix(m, k, 1), matrix(256, k, 2));
    let bytes = |m: &[i32]| m.iter().flat_map(|&x| f16::from_f32(x as f32).to_bits().to_le_bytes()).collect();
    let buffer =
        |name: &str, content, row| Buffer { name: name.into(), content, row_bytes: Some(row), element_bytes: Some(2) };
    Launch {
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
    }
}

/// Elements of D, in FP32.
pub fn d(report: &Report) -> Vec<f32> {
    let bytes = report.buffers.get(2).map_or(&[][..], |d| &d.bytes);
    bytes.as_chunks().0.iter().map(|&bits| f16::from_bits(u16::from_le_bytes(bits)).to_f32()).collect()
}

/// What the elements of D must be.
pub fn product(m: usize, k: usize) -> Vec<f32> {
    let (a, b) = (matrix(m, k, 1), matrix(256, k, 2));
    let sum = |n: usize| -> i32 { (0..k).map(|i| a[n / 256 * k + i] * b[n % 256 * k + i]).sum() };
    (0..m * 256).map(|n| f16::from_f32(sum(n) as f32).to_f32()).collect()
}
