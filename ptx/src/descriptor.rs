//! The two descriptors of `tcgen05.mma`, bit by bit (PTX ISA 9.7.16.4.2, instruction descriptor; 9.7.16.4.1, shared
//! memory descriptor).

use crate::gemm::Dtype;
use crate::tile::Swizzle;

/// The instruction descriptor of an MMA of kind `f16` with both operands K-major and sums in FP32.
///
/// | bits | field | value here |
/// |---|---|---|
/// | 0–3 | sparsity, saturation | 0 |
/// | 4–5 | type of D: 0 FP16, 1 FP32, 2 S32 | 1 |
/// | 7–9 | type of A: 0 FP16, 1 BF16 | from `dtype` |
/// | 10–12 | type of B, likewise | from `dtype` |
/// | 13–14 | negate A, negate B | 0 |
/// | 15–16 | A, B transposed: 0 is K-major | 0 |
/// | 17–22 | N / 8 | `n >> 3` |
/// | 24–28 | M / 16 | `m >> 4` |
/// | 30–31 | shift of B, weight-stationary forms only | 0 |
///
/// The depth of 16 is not in it: it follows from the kind.
///
/// ```
/// use ptx::{Dtype, instruction_descriptor};
/// assert_eq!(instruction_descriptor(Dtype::F16, 128, 128), 0x0820_0010);
/// ```
pub const fn instruction_descriptor(dtype: Dtype, m: u32, n: u32) -> u32 {
    let format = match dtype {
        Dtype::F16 => 0,
        Dtype::Bf16 => 1,
    };
    1 << 4 | format << 7 | format << 10 | (n >> 3 & 0x3F) << 17 | (m >> 4 & 0x1F) << 24
}

/// The matrix descriptor of a K-major tile whose rows are as wide as its swizzle pattern, but for the address.
///
/// | bits | field | value here |
/// |---|---|---|
/// | 0–13 | start address / 16 | 0: see [`matrix_descriptor`] |
/// | 16–29 | leading dimension offset / 16 | 0: not used by a swizzled K-major tile |
/// | 32–45 | stride dimension offset / 16: from 8 rows to the next 8 | 8 · width of a row / 16 |
/// | 46–48 | constant | `0b001` |
/// | 49–51 | base offset | 0: the tile begins where its pattern does |
/// | 52 | leading dimension mode | 0 |
/// | 61–63 | swizzle: 0 none, 2 of 128 bytes, 4 of 64, 6 of 32 | from `swizzle` |
pub const fn matrix_descriptor_base(swizzle: Swizzle) -> u64 {
    let (code, stride) = match swizzle {
        // Without a swizzle the engine wants blocks of 8 rows x 16 bytes: no tile of this crate lies so.
        Swizzle::None => (0, 0),
        Swizzle::B32 => (6, 8 * 32),
        Swizzle::B64 => (4, 8 * 64),
        Swizzle::B128 => (2, 8 * 128),
    };
    code << 61 | 1 << 46 | (stride >> 4) << 32
}

/// The matrix descriptor of `wgmma` for such a tile, but for the address: as [`matrix_descriptor_base`], without the
/// constant, and with the swizzle in bits 62 and 63: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32 (PTX ISA, `wgmma` matrix
/// descriptor format).
pub const fn hopper_matrix_descriptor_base(swizzle: Swizzle) -> u64 {
    let (code, stride) = match swizzle {
        Swizzle::None => (0, 0),
        Swizzle::B32 => (3, 8 * 32),
        Swizzle::B64 => (2, 8 * 64),
        Swizzle::B128 => (1, 8 * 128),
    };
    code << 62 | (stride >> 4) << 32
}

/// The matrix descriptor of a K-major tile at this shared address: what [`crate::Tile::k_slice`] computes on the GPU.
///
/// ```
/// use ptx::{Swizzle, matrix_descriptor};
/// assert_eq!(matrix_descriptor(0x4000, Swizzle::B128), 0x4000_4040_0000_0400);
/// ```
pub const fn matrix_descriptor(address: u32, swizzle: Swizzle) -> u64 {
    matrix_descriptor_base(swizzle) | (address as u64 & 0x3_FFFF) >> 4
}
