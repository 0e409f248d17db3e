//! What instructions compute that only touch registers: which opcode is which function of one lane (`alu`, `convert`, `rare`), and those functions: FP16, BF16 and pairs
//! (`packed`, `packed_set`), roundings other than to nearest (`rounding`, `rounding64`, `stochastic`), narrow formats and scale factors (`narrow`, `scaled`), many lanes
//! at once (`lanes`, `to_halves`), and which bits of a result come from where (`bits`).

pub mod alu;
pub mod bits;
pub mod convert;
pub mod lanes;
pub mod narrow;
pub mod packed;
pub mod packed_set;
pub mod rare;
pub mod rounding;
pub mod rounding64;
pub mod scaled;
pub mod stochastic;
pub mod to_halves;
