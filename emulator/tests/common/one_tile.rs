//! The kernel of one tile, `kernels/one_tile.ptx`: D = A Bᵀ, of 128 × 64 elements each.

use super::{launch, matrix};
use emulator::{Buffer, Content, Launch};
use half::f16;

pub const TEXT: &str = include_str!("../kernels/one_tile.ptx");

/// A matrix of small integers.
pub fn operand(seed: u64) -> Vec<i32> {
    matrix(128, 64, seed, 4)
}

/// Its launch with these matrices.
pub fn launch_of(a: &[i32], b: &[i32]) -> Launch {
    let bytes =
        |m: &[i32]| m.iter().flat_map(|&x| f16::from_f32(x as f32).to_bits().to_le_bytes()).collect::<Vec<u8>>();
    let buffer =
        |name: &str, content, row| Buffer { name: name.into(), content, row_bytes: Some(row), element_bytes: Some(2) };
    let buffers = vec![
        buffer("A", Content::Bytes(bytes(a).into()), 128),
        buffer("B", Content::Bytes(bytes(b).into()), 128),
        buffer("D", Content::Undefined { bytes: 128 * 128 * 2 }, 256),
    ];
    launch("one_tile", 128, buffers)
}
