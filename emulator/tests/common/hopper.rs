//! `kernels/hopper_gemm.ptx` and its launch: D = A·Bᵀ, tiles of 128 × 128, two CTAs a cluster.

use super::pair::map;
use emulator::{Buffer, Content, Launch, Param};
use half::f16;

pub const TEXT: &str = include_str!("../kernels/hopper_gemm.ptx");

/// M and N rows of A and B, depth K.
pub fn launch(m: usize, n: usize, k: usize) -> Launch {
    let (a, b) = (super::matrix(m, k, 1, 2), super::matrix(n, k, 2, 2));
    let bytes =
        |m: &[i32]| m.iter().flat_map(|&x| f16::from_f32(x as f32).to_bits().to_le_bytes()).collect::<Vec<u8>>();
    let buffer =
        |name: &str, content, row| Buffer { name: name.into(), content, row_bytes: Some(row), element_bytes: Some(2) };
    Launch {
        entry: "hopper_gemm".into(),
        grid: [m.div_ceil(256) as u32 * 2, n.div_ceil(128) as u32, 1],
        cluster: [2, 1, 1],
        block: [384, 1, 1],
        dynamic_shared: 163_840 + 64,
        buffers: vec![
            buffer("A", Content::Bytes(bytes(&a).into()), 2 * k as u32),
            buffer("B", Content::Bytes(bytes(&b).into()), 2 * k as u32),
            buffer("D", Content::Undefined { bytes: (m * n * 2) as u64 }, 2 * n as u32),
        ],
        params: vec![
            map(0, m as u64, k as u64, 128),
            map(1, n as u64, k as u64, 64),
            map(2, m as u64, n as u64, 64),
            Param::U32(k.div_ceil(64) as u32),
        ],
        ..Default::default()
    }
}

/// What the elements of D must be.
pub fn product(m: usize, n: usize, k: usize) -> Vec<f32> {
    let (a, b) = (super::matrix(m, k, 1, 2), super::matrix(n, k, 2, 2));
    let sum = |at: usize| -> i32 { (0..k).map(|i| a[at / n * k + i] * b[at % n * k + i]).sum() };
    (0..m * n).map(|at| f16::from_f32(sum(at) as f32).to_f32()).collect()
}
