//! Judges kernels: builds them, runs them on the emulator, and says in five parts what is right and what is not.
//!
//! **Does:** problems, seeded inputs and references; the verdict (correct, race-free, structure, resources, fast) with
//! the line of Rust behind each finding; milestones of half-done steps; the test main that every step shares; the
//! `workbook` command. **Never does:** contain kernels, or run a student's code beside its own decisions: what crosses
//! from a kernel to the judge is PTX text and a closed recipe ([`Built`]).
//!
//! ```
//! use harness::{InProcess, JudgeOptions, judge};
//!
//! let step = harness::step(1).expect("step 1 exists");
//! let kernel: ptx::KernelFn = |k, _| {
//!     k.threads(128);
//!     k.todo("1.1");
//! }; // in a step: `kernel` of its `kernel.rs`
//! let verdict = judge(step, &InProcess(kernel), &JudgeOptions::default());
//! println!("{}", harness::report::render(&verdict));
//! assert_eq!(verdict.next_todo().map(|(todo, _)| todo.id.as_str()), Some("1.1"));
//! ```
//!
//! | module | idea |
//! |---|---|
//! | [`problem`], [`inputs`], [`reference`](mod@reference) | what is computed, on what, and what is right |
//! | [`compare`], [`mismatch`], [`astray`] | whether D is right; what kind of wrong it is; where on its way it went wrong |
//! | [`source`], [`emitted`], [`answers`] | where kernels come from; what of them is refused |
//! | [`launch`], [`placement`], [`device`] | from a recipe to a launch; where its matrices lie; what it runs on |
//! | [`cuda`] | a launch on a GPU |
//! | [`reference_kernels`] | what `fast` measures beside a kernel |
//! | [`sampled`] | large problems, of which a sample is checked |
//! | [`observe`], [`steps`] | one run, looked at closely; what each step asks for |
//! | [`judge`](mod@judge), [`options`], [`verdict`], [`points`], [`fast`] | the verdict and how it is reached |
//! | [`told`] | an explanation, and what it says for who reads no sentence |
//! | [`diagnostics`], [`builder_calls`], [`ptxas`] | findings and assembler errors at the lines of Rust, in the builder's words |
//! | `process`, [`warden`], [`streams`] | programs that are started: how long they may take, that none outlives who started it, what they write |
//! | [`report`], [`test_main`] | what people see |
//! | [`recording`], [`figures`] | runs as small JSON; those that the figures of the book are made from |
//! | [`skeleton`], [`workbook`] | the files students get; the command they type |

pub mod answers;
pub mod astray;
pub mod bench;
pub mod builder_calls;
pub mod bundle;
#[cfg(feature = "solutions")]
pub mod corpus;
pub mod cuda;
pub mod date;
pub mod device;
pub mod diagnostics;
pub mod emitted;
pub mod fast;
pub mod figures;
mod findings;
pub mod judge;
pub mod launch;
pub mod mismatch;
pub mod observe;
pub mod options;
pub mod placement;
pub mod points;
mod process;
pub mod progress;
pub mod ptxas;
pub mod recording;
pub mod reference_kernels;
pub mod report;
mod resources;
pub mod sampled;
pub mod skeleton;
pub mod steps;
pub mod streams;
pub mod test_main;
pub mod told;
pub mod verdict;
pub mod waits;
pub mod warden;
pub mod workbook;

pub use device::Device;
pub use emit::{Answer, Request, problem, source};
pub use emitted::Emitted;
pub use findings::rank;
pub use inputs::{InputKind, Inputs};
pub use judge::{judge, structure};
pub use matrices::{compare, inputs, reference};
pub use options::{Demands, JudgeOptions};
pub use problem::Problem;
pub use source::{
    BuildErrorAt, BuildFailure, Built, Cause, Ending, InProcess, KernelSource, Matrix, OpenTodo, Param, Place, Unbuilt,
    Whose,
};
pub use steps::{Milestone, STEPS, Step, step};
pub use test_main::step_main;
pub use told::{Pointer, Says, Told};
pub use verdict::{MilestoneResult, MilestoneState, Outcome, Part, Verdict};
