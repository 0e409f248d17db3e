//! What a kernel's warps and engines do when: as a file for a trace viewer, or as a page that needs nothing else.

use crate::{Built, Problem, diagnostics, launch, steps};
use emulator::Options;
use std::fs;
use std::path::Path;

/// What was recorded of a kernel.
struct Recorded {
    /// The timeline, as JSON.
    json: String,
    events: usize,
    cycles: u64,
    completed: bool,
}

impl Recorded {
    fn written(&self, path: &Path, how: &str) -> String {
        let Recorded { events, cycles, completed, .. } = self;
        let end = if *completed { "" } else { "the run did not come to its end: `cargo workbook run` says why\n" };
        format!("{events} events in {cycles} simulated cycles, to {}\n{how}\n{end}", path.display())
    }
}

/// Runs the kernel for its times.
fn record(built: &Built, problem: Problem, step: u8) -> Result<Recorded, String> {
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
    Ok(Recorded { json, events: report.trace.len(), cycles: report.cycles, completed: report.completed })
}

fn keep(path: &Path, text: &str, is_ours: impl Fn(&[u8]) -> bool, what: &str) -> Result<(), String> {
    // A file that was there is not replaced, unless it was one of these.
    if fs::read(path).is_ok_and(|bytes| !is_ours(&bytes)) {
        return Err(format!("{} exists and is no {what}: name another file", path.display()));
    }
    fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Writes the timeline of a kernel; says what was written.
pub fn write(path: &Path, built: &Built, problem: Problem, step: u8) -> Result<String, String> {
    let recorded = record(built, problem, step)?;
    keep(path, &recorded.json, emulator::is_timeline, "timeline")?;
    Ok(recorded.written(path, "open it in ui.perfetto.dev; one microsecond there is one cycle"))
}

/// Writes the timeline of a kernel as a page; says what was written.
pub fn write_page(path: &Path, built: &Built, problem: Problem, step: u8, title: &str) -> Result<String, String> {
    let recorded = record(built, problem, step)?;
    keep(path, &page(title, &recorded.json), |bytes| bytes.starts_with(page_begin().as_bytes()), "page of a timeline")?;
    Ok(recorded.written(path, "open it in a browser; it needs nothing else"))
}

const PAGE: &str = include_str!("trace.html");

fn page_begin() -> &'static str {
    PAGE.split("TITLE").next().unwrap_or_default()
}

fn page(title: &str, json: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    // What stands in a script ends at the first `</`, whatever it is within.
    PAGE.replace("TITLE", &title).replacen("DATA", &json.replace("</", "<\\/"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_its_data_and_asks_the_network_for_nothing() {
        let json = r#"{"traceEvents":[{"name":"</script><b>","ph":"X"}]}"#;
        let page = page("a < b & c", json);
        assert!(page.contains("<title>a &lt; b &amp; c</title>") && page.starts_with(page_begin()));
        assert!(page.contains(r#"{"traceEvents":[{"name":"<\/script><b>","ph":"X"}]}"#));
        assert_eq!(page.matches("</script>").count(), 2, "the data do not end their script");
        for remote in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(remote), "{remote}");
        }
        assert!(!page.contains("TITLE") && !page.contains(">DATA<"));
    }
}
