//! What a kernel's warps and engines do when, as a file for a trace viewer.

use crate::{Built, Problem, diagnostics, launch, steps};
use emulator::{Launch, Mode, Options, Report};
use std::fs;
use std::path::Path;

/// Runs the kernel for its times and writes its timeline; says what was written.
pub fn write(path: &Path, built: &Built, problem: Problem, step: u8) -> Result<String, String> {
    let (report, launch) = run(built, problem, step)?;
    write_perfetto(path, &report, &launch)
}

/// Runs the kernel for its times.
pub(super) fn run(built: &Built, problem: Problem, step: u8) -> Result<(Report, Launch), String> {
    let refused = |list: &[emulator::Diagnostic]| {
        let sources = diagnostics::Sources::default();
        format!("the kernel does not run\n\n{}", diagnostics::render_all(list, &sources).text.trim_end())
    };
    let program = emulator::load(&built.ptx).map_err(|errors| refused(&errors))?;
    let launch = launch::times_only(built, problem).map_err(|error| error.to_string())?;
    let max_instructions = steps::step(step).map_or(1 << 28, |step| step.max_instructions(&problem));
    let options = Options { mode: Mode::Time, trace: true, max_instructions, ..Options::default() };
    let report = emulator::run(&program, &launch, &options);
    Ok((report, launch))
}

/// Writes a timeline for Perfetto; says what was written.
pub(super) fn write_perfetto(path: &Path, report: &Report, launch: &Launch) -> Result<String, String> {
    // A file that was there is no timeline to be replaced, unless it was one.
    if fs::read(path).is_ok_and(|bytes| !emulator::is_timeline(&bytes)) {
        return Err(format!(
            "{} exists and is no timeline; nothing was changed\n  try: Name another file.",
            path.display()
        ));
    }
    fs::write(path, emulator::timeline(&report.trace, launch, &report.variables).to_json())
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    let mut text = format!(
        "{} events in {} simulated cycles, to {}\nopen it in ui.perfetto.dev; one microsecond there is one cycle\n",
        report.trace.len(),
        report.cycles,
        path.display()
    );
    text += ended(report);
    Ok(text)
}

/// What is to be said of a run that did not end.
pub(super) fn ended(report: &Report) -> &'static str {
    if report.completed { "" } else { "the run did not come to its end: `cargo workbook run` says why\n" }
}
