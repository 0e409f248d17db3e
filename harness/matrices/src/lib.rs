//! What kernels are given, and what they must make of it: seeded inputs, the product in FP64, and D held against it.
//!
//! A crate of its own since whole matrices go through it, so that it is optimised in the profile of tests. The rest of the harness, which is
//! much larger, is not, and builds in a third of the time.

pub use emit::problem;

pub mod compare;
pub mod drawn;
pub mod gemm;
pub mod inputs;
pub mod reference;
pub mod slices;
