//! What a kernel's warps and engines do when, as a file for a trace viewer.

use crate::{Built, Problem, diagnostics, launch, steps};
use emulator::Options;
use std::fs;
use std::path::Path;

/// Runs the kernel for its times and writes its timeline; says what was written.
pub fn write(path: &Path, built: &Built, problem: Problem, step: u8) -> Result<String, String> {
    // A file that was there is no timeline to be replaced, unless it was one.
    if fs::read(path).is_ok_and(|bytes| !emulator::is_timeline(&bytes)) {
        return Err(format!("{} exists and is no timeline: name another file", path.display()));
    }
    let refused = |list: &[emulator::Diagnostic]| {
        let sources = diagnostics::Sources::default();
        format!("the kernel does not run\n\n{}", diagnostics::render_all(list, &sources).trim_end())
    };
    let program = emulator::load(&built.ptx).map_err(|errors| refused(&errors))?;
    let launch = launch::times_only(built, problem).map_err(|error| error.to_string())?;
    let max_instructions = steps::step(step).map_or(1 << 28, |step| step.max_instructions(&problem));
    let options = Options { timing_only: true, trace: true, max_instructions, ..Options::default() };
    let report = emulator::run(&program, &launch, &options);
    let json = serde_json::to_string(&emulator::timeline(&report.trace, &launch)).map_err(|error| error.to_string())?;
    fs::write(path, json).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    let mut text = format!(
        "{} events in {} simulated cycles, to {}\nopen it in ui.perfetto.dev; one microsecond there is one cycle\n",
        report.trace.len(),
        report.cycles,
        path.display()
    );
    if !report.completed {
        text += "the run did not come to its end: `cargo workbook run` says why\n";
    }
    Ok(text)
}
