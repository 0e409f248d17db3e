//! The reference kernels, one file a step: the single source that skeletons, golden files and the book are made from.
//!
//! **Does:** hold kernels, with the regions marked that a student writes. **Never does:** differ from what a student
//! sees outside of these regions.
//!
//! A region begins with a line `// ANCHOR: todo_1_3` and ends with `// ANCHOR_END: todo_1_3`; the comment `TODO 1.3:`
//! above it stays in the skeleton, the region becomes `k.todo("1.3");`. What a region defines is used after
//! it only if the lines above define it, too.
//!
//! ```
//! use ptx::{Dtype, Gemm};
//!
//! let (step, kernel) = solutions::ALL[0];
//! let built = ptx::build("step01", &Gemm::new(128, 128, 64, Dtype::F16, 148), kernel)?;
//! assert_eq!((step, built.block), (1, [128, 1, 1]));
//! # Ok::<(), Vec<ptx::BuildError>>(())
//! ```
//!
//! # Map
//! | step | module | new in it |
//! |---|---|---|
//! | 1 | [`step01`] | one tile: load, four MMAs, read tensor memory, store |
//! | 2 | [`step02`] | a loop over K: accumulate, phases |
//! | 3 | [`step03`] | a grid of CTAs |
//! | 4 | [`step04`] | TMA loads and stores |
//! | 5 | [`step05`] | a pipeline of two stages |
//! | 6 | [`step06`] | a persistent kernel, an order of tiles |
//! | 7 | [`step07`] | warp specialisation, four kinds of barriers |
//! | 8 | [`step08`] | four stages |
//! | 9 | [`step09`] | pairs of CTAs |
//! | 10 | [`step10`] | two consumers |
//! | beside them | [`hopper`] | for the H100 and H200: `wgmma`, multicast |

pub mod hopper;
pub mod step01;
pub mod step02;
pub mod step03;
pub mod step04;
pub mod step05;
pub mod step06;
pub mod step07;
pub mod step08;
pub mod step09;
pub mod step10;

/// The text of each step's file, by its number: that of the kernels in the same program.
pub const TEXTS: &[(u8, &str)] = &[
    (1, include_str!("step01.rs")),
    (2, include_str!("step02.rs")),
    (3, include_str!("step03.rs")),
    (4, include_str!("step04.rs")),
    (5, include_str!("step05.rs")),
    (6, include_str!("step06.rs")),
    (7, include_str!("step07.rs")),
    (8, include_str!("step08.rs")),
    (9, include_str!("step09.rs")),
    (10, include_str!("step10.rs")),
];

/// The kernel of each step, by its number.
pub const ALL: &[(u8, ptx::KernelFn)] = &[
    (1, step01::kernel),
    (2, step02::kernel),
    (3, step03::kernel),
    (4, step04::kernel),
    (5, step05::kernel),
    (6, step06::kernel),
    (7, step07::kernel),
    (8, step08::kernel),
    (9, step09::kernel),
    (10, step10::kernel),
];
