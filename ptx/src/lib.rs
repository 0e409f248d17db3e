//! Writes PTX kernels for NVIDIA Blackwell (`sm_100a`), and for Hopper (`sm_90a`), in Rust, one call for one
//! instruction.
//!
//! **Does:** run a kernel's Rust function once, on the CPU, and record the instructions it asks for, each with the line
//! that asked; hand out shared memory and tensor memory; refuse what cannot be right, as a compile error where a type
//! can do it, else as a [`BuildError`] at the call. **Never does:** run a kernel, know what it should compute, or hide
//! a synchronisation: a missing fence, a wrong phase or a wrong count can be written, and is for the emulator to find.
//!
//! ```
//! use ptx::prelude::*;
//!
//! // Each of 128 threads copies 16 bytes of a row of A to D.
//! fn copy(k: &mut Cta, gemm: &Gemm) {
//!     k.threads(128);
//!     let row = k.thread_index();
//!     let eight = k.load_global_16(gemm.a.at(row, 0));
//!     k.store_global_16(gemm.d.at(row, 0), eight);
//! }
//!
//! let kernel = ptx::build("copy", &Gemm::new(128, 128, 64, Dtype::F16, 148), copy)?;
//! assert!(kernel.text.contains("ld.global.v4.b32"));
//! assert_eq!(kernel.block, [128, 1, 1]);
//! # Ok::<(), Vec<ptx::BuildError>>(())
//! ```
//!
//! # Map
//! | for | look at |
//! |---|---|
//! | building, what comes out, errors | [`build`], [`Kernel`], [`BuildError`] |
//! | who executes: the CTA, a warpgroup, a warp, a thread | [`Cta`], [`Warpgroup`], [`Warp`], [`Thread`]: a [`Scope`] each; [`level`] |
//! | values of the GPU, and arithmetic on them | [`U32`], [`U64`], [`F32`], [`Pred`], [`B16`], [`B32`] |
//! | the problem, its matrices in global memory | [`Gemm`], [`Matrix`] |
//! | shared memory: tiles, swizzles, mbarriers | [`Tile`], [`Swizzle`], [`Barrier`] |
//! | tensor memory and the tensor core | [`Tmem`], [`Accumulator`], [`Scope::mma`], [`instruction_descriptor`], [`matrix_descriptor`] |
//! | TMA: loads and stores of tiles | [`Scope::tma_load`], [`Scope::tma_store`], [`TensorMap`] |
//! | pipelines: rings of stages, kinds of barriers, phases | [`Ring`], [`TmaBarrier`], [`CommitBarrier`], [`ThreadBarrier`], [`PipelineState`] |
//! | persistent kernels, clusters, CTA pairs | [`TileScheduler`], [`Scope::cluster`], [`Scope::cta_pair`] |
//! | Hopper (`sm_90a`): `wgmma`, sums in registers | [`Scope::hopper`], [`Scope::wgmma`], [`Fragment`] |
//! | loops, conditions, variables, `raw`, `todo` | [`Scope::repeat`], [`Scope::when`], [`Scope::variable`], [`Scope::raw`], [`Scope::todo`] |

mod address;
mod barrier;
mod cluster;
mod control;
mod descriptor;
mod gemm;
mod hopper;
mod kernel;
pub mod level;
mod memory;
mod operator;
mod pipeline;
mod register;
mod ring;
mod scheduler;
mod scope;
mod state;
mod tensor;
mod text;
mod tile;
mod tma;

pub use address::{GlobalAddress, SharedAddress};
pub use barrier::{
    Barrier, CommitBarrier, Mbarrier, Mbarriers, TakesBytes, TakesCommits, TakesThreads, ThreadBarrier, TmaBarrier,
};
pub use descriptor::{
    hopper_matrix_descriptor_base, instruction_descriptor, matrix_descriptor, matrix_descriptor_base,
};
pub use gemm::{Dtype, Gemm, Matrix};
pub use hopper::Fragment;
pub use kernel::{BuildError, Kernel, KernelFn, Param, Place, Region, RegionKind, Space, TensorMap, Todo, build};
pub use memory::Chunk;
pub use operator::Selectable;
pub use pipeline::PipelineState;
pub use register::{B16, B32, F32, Operand, Pred, Register, U32, U64};
pub use ring::{Ring, Staged};
pub use scheduler::TileScheduler;
pub use scope::{Cta, Scope, SomeThreads, Thread, Warp, Warpgroup};
pub use tensor::{Accumulator, Columns, LoadWidth, TMEM_COLUMNS, Tmem};
pub use tile::{MAX_SHARED, Slice, Swizzle, Tile};

/// What the file of a kernel imports.
pub mod prelude {
    pub use crate::{
        Accumulator, B16, B32, Barrier, Chunk, CommitBarrier, Cta, Dtype, F32, Fragment, Gemm, Matrix, PipelineState,
        Pred, Ring, Swizzle, Thread, ThreadBarrier, Tile, TileScheduler, TmaBarrier, Tmem, U32, U64, Warp, Warpgroup,
    };
}
