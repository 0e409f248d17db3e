//! The tensor core's arithmetic. MMAs read their operands (`operand`, `formats`), wait until several can be computed together (`batch`), and are computed in FP32
//! (`product` for FP16 and BF16, `kinds` for the others; `tiles` in those of AMX) or bit for bit (`exact`, `exact_kinds`). What the CPU has for it is in `simd`.

pub mod batch;
pub mod exact;
pub mod exact_kinds;
pub mod formats;
pub mod kinds;
pub mod operand;
pub mod product;
pub mod simd;
pub mod strip;
pub mod tiles;
