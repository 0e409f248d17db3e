//! A kernel function as a program: what the judge asks of it, and what it answers.
//!
//! **Does:** the problems that a kernel is built for; the built kernel as it crosses to the judge, PTX text and a closed
//! recipe ([`Built`]); the program that answers a request file. **Never does:** judge. It depends on the builder and on
//! nothing that runs a kernel, so that the program of a hand-in is small and compiles in a moment.
//!
//! | module | idea |
//! |---|---|
//! | [`problem`] | what is computed |
//! | [`source`] | where kernels come from; what crosses to the judge |
//! | [`answer`](mod@answer) | a request file answered |

pub mod answer;
pub mod problem;
pub mod source;

pub use answer::{Answer, Request, main};
pub use problem::Problem;
pub use source::{
    BuildErrorAt, BuildFailure, Built, Ending, InProcess, KernelSource, Matrix, OpenTodo, Param, Place, Whose,
};
