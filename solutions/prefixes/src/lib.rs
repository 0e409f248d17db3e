//! Half-done kernels: of each step the skeleton with its first TODOs filled as in the solution, one kernel for each number.
//!
//! **Does:** make them from the solutions, so that tests can show what a student sees on the way. **Never does:** anything
//! else; no one depends on it.

/// A half-done kernel.
#[derive(Clone, Copy)]
pub struct Prefix {
    /// The step.
    pub step: u8,
    /// TODOs that are filled: the first so many.
    pub filled: usize,
    /// TODOs of the step.
    pub of: usize,
    /// The kernel.
    pub kernel: ptx::KernelFn,
}

include!(concat!(env!("OUT_DIR"), "/prefixes.rs"));
