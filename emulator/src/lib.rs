//! Executes PTX text on the CPU, faithfully enough to be believed, and explains what is wrong with it.
//!
//! **Does:** parse PTX text; run a launch of it, warps and asynchronous engines on a simulated clock; check every access
//! against the memory model; say what is wrong as [`Diagnostic`]s that name the source line. **Never does:** know who
//! wrote the PTX (our builder has no back door), what it computes, or what it should compute.
//!
//! ```
//! # // (being written)
//! ```

mod diagnostic;
mod launch;
mod report;
pub mod syntax;

pub use diagnostic::{Diagnostic, Label, Place, Severity, Source};
pub use launch::{Buffer, Content, Launch, Param, Region, RegionKind, RegionSpace};
pub use report::{Actor, Barrier, CtaState, Event, EventKind, Memory, Mma, OperandRead, Report};

/// How to run a launch.
#[derive(Clone, Debug)]
pub struct Options {
    /// `None`: the default schedule of the simulated clock. `Some(seed)`: an adversarial one that the seed repeats.
    pub seed: Option<u64>,
    /// The run ends with an error after so many warp instructions.
    pub max_instructions: u64,
    /// Fill [`Report::trace`].
    pub trace: bool,
    /// Fill [`Report::ctas`].
    pub keep_ctas: bool,
    /// Fill [`OperandRead::elements`] in the trace.
    pub keep_operands: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { seed: None, max_instructions: 1 << 32, trace: false, keep_ctas: false, keep_operands: false }
    }
}

/// A PTX module, parsed and ready to run.
#[derive(Debug)]
pub struct Program {}

/// Every [`Diagnostic::code`] with one line on what it means.
pub const CODES: &[(&str, &str)] = &[];

/// Parses PTX text and resolves every instruction in it.
///
/// # Errors
/// All that is malformed, unknown or not modelled, each with line and column, before anything runs.
pub fn load(_text: &str) -> Result<Program, Vec<Diagnostic>> {
    Ok(Program {})
}

/// Runs a launch. What goes wrong is in the report: this never panics and never fails.
pub fn run(_program: &Program, _launch: &Launch, _options: &Options) -> Report {
    Report::default()
}
