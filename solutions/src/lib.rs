//! The reference kernels, one file a step: the single source that skeletons, golden files and the book are made from.
//!
//! **Does:** hold kernels, with the regions marked that a student writes. **Never does:** differ from what a student
//! sees outside of these regions.
//!
//! A region begins with a line `// ANCHOR: todo_1_3` and ends with `// ANCHOR_END: todo_1_3`; the comment `TODO 1.3:`
//! above it stays in the skeleton, the region becomes `k.todo("1.3");`. No region defines a variable that is used after
//! it.
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

pub mod step01;

/// The kernel of each step, by its number.
pub const ALL: &[(u8, ptx::KernelFn)] = &[(1, step01::kernel)];
