//! A job from its files to what is printed and written.

use crate::arguments::{Format, Job, Notes};
use crate::bad_input::{self, BadInput};
use crate::file::text_of;
use crate::progress::Progress;
use crate::show::{self, Texts};
use crate::{launch_file, locate};
use emulator::{Deadlock, Diagnostic, Label, Launch, Meaning, Memory, Mode, Options, Printed, Program, Report};
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// What `--format json` prints.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    schema: u32,
    kernel: String,
    entry: &'a str,
    /// What the text calls it.
    #[serde(skip)]
    called: &'a str,
    clean: bool,
    /// Only times were simulated: nothing was computed or checked.
    timing_only: bool,
    /// No access was checked.
    results_only: bool,
    runs: Vec<Run>,
    outputs: Vec<Written>,
}

/// What it prints instead if no run could begin.
#[derive(Debug, Serialize)]
struct Refusal<'a> {
    schema: u32,
    kernel: String,
    launch: String,
    errors: &'a [bad_input::Error],
}

/// Of both.
const SCHEMA: u32 = 1;

/// Adversarial schedules that are tried to show what the findings of the default schedule lead to.
const CONFIRMING: u64 = 8;

/// One schedule.
#[derive(Debug, Serialize)]
struct Run {
    seed: Option<u64>,
    clean: bool,
    completed: bool,
    cycles: u64,
    instructions: u64,
    findings: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
    incomplete: Vec<String>,
    deadlock: Deadlock,
    timing: Vec<Label>,
    printed: Vec<Printed>,
    printed_beyond: u64,
}

/// A buffer that was written to a file.
#[derive(Debug, Serialize)]
struct Written {
    buffer: String,
    file: String,
    bytes: usize,
    never_written: usize,
}

/// Runs a job; tells whether it went as it should: clean, or just to its end where only times are wanted.
pub fn run(job: &Job) -> Result<bool, BadInput> {
    let (program, kernel, launch, text) = match (load(&job.kernel), launch_file::read(&job.launch)) {
        (Ok((program, kernel)), Ok((launch, text))) => (program, kernel, launch, text),
        (Err(bad), Ok(_)) | (Ok(_), Err(bad)) => return Err(bad),
        (Err(kernel), Err(launch)) => return Err(kernel.and(launch)),
    };
    let texts = Texts { kernel: (&job.kernel, &kernel), launch: Some((&job.launch, &text)) };
    emulator::check(&program, &launch).map_err(|errors| BadInput::diagnostics(&texts, &errors))?;
    if let Some(why) = job.options.gpu.and_then(|gpu| program.refused_by(gpu)) {
        return Err(BadInput::option("--gpu", &why));
    }

    keep_inputs(job, &launch, &text)?;

    let (mut runs, mut outputs) = (Vec::new(), Vec::new());
    let mut progress = Progress::new(job.schedules.seeds().count());
    for seed in job.schedules.seeds() {
        progress.at(runs.len());
        let options = Options { seed, ..job.options.clone() };
        let mut report = emulator::run(&program, &launch, &options);
        if seed.is_none() && options.mode == Mode::Judge {
            emulator::confirm(&program, &launch, &options, &mut report, 0..CONFIRMING);
        }
        if runs.is_empty() && options.mode != Mode::Time {
            outputs = write(&launch, &job.launch, &text, &report.buffers)?;
        }
        if let Some(path) = &job.trace {
            write_timeline(path, &emulator::timeline(&report.trace, &launch, &report.variables))?;
        }
        runs.push(Run::new(seed, report));
    }
    progress.end();
    let clean = runs.iter().all(|run| run.clean);
    let ended = |run: &Run| run.completed && run.findings.is_empty();
    let fine = clean || job.options.mode != Mode::Judge && runs.iter().all(ended);
    let summary = Summary {
        schema: SCHEMA,
        kernel: job.kernel.display().to_string(),
        entry: &launch.entry,
        called: program.called(&launch.entry),
        clean,
        timing_only: job.options.mode == Mode::Time,
        results_only: job.options.mode == Mode::Compute,
        runs,
        outputs,
    };
    let shown = match job.format {
        Format::Text => summary.text(&texts, job.notes),
        Format::Json => json(&summary),
    };
    // A closed pipe loses the text, not the exit status.
    let _ = show::print(&shown);
    Ok(fine)
}

/// The kernel, and its text.
fn load(path: &Path) -> Result<(Program, String), BadInput> {
    let text = text_of(path, "Give a file with PTX text.")?;
    let texts = Texts { kernel: (path, &text), launch: None };
    let program = emulator::load(&text).map_err(|errors| BadInput::diagnostics(&texts, &errors))?;
    Ok((program, text))
}

/// What `--format json` prints of input that no run can begin with.
pub fn refusal(job: &Job, errors: &[bad_input::Error]) -> String {
    let [kernel, launch] = [&job.kernel, &job.launch].map(|path| path.display().to_string());
    json(&Refusal { schema: SCHEMA, kernel, launch, errors })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).map(|json| json + "\n").unwrap_or_else(|e| e.to_string())
}

/// No output may go where the kernel or the launch file stands.
fn keep_inputs(job: &Job, launch: &Launch, text: &str) -> Result<(), BadInput> {
    let folder = job.launch.parent().unwrap_or(Path::new(""));
    let inputs = [(&job.kernel, "the kernel"), (&job.launch, "the launch file")];
    if let Some(trace) = &job.trace {
        keep_from_timeline(trace)?;
    }
    for (n, output) in launch.outputs.iter().enumerate() {
        let Ok(to) = folder.join(&output.file).canonicalize() else { continue };
        for (input, what) in inputs {
            if input.canonicalize().is_ok_and(|input| input == to) {
                let title = format!("output {n} would overwrite {what}, {}", input.display());
                let range = locate::locate(text, &format!("outputs[{n}].file")).unwrap_or(0..1);
                let launch = job.launch.display().to_string();
                return Err(BadInput::at(&title, &launch, text, range, "asked for here", "Name another file."));
            }
        }
    }
    Ok(())
}

/// A timeline takes the place of an older one only.
fn keep_from_timeline(path: &Path) -> Result<(), BadInput> {
    match fs::read(path) {
        Ok(bytes) if !emulator::is_timeline(&bytes) => {
            let title = format!("--trace would overwrite {}, which is no timeline", path.display());
            Err(BadInput::argument(&title, "Name another file."))
        }
        _ => Ok(()),
    }
}

/// Writes what happened when.
fn write_timeline(path: &Path, timeline: &emulator::Timeline) -> Result<(), BadInput> {
    // An output may have been written there.
    keep_from_timeline(path)?;
    fs::write(path, timeline.to_json())
        .map_err(|e| BadInput::file(path, "written", &e, "Name a file in a folder that exists and can be written."))
}

/// Writes the buffers that the launch file asks for, as the first run left them.
fn write(launch: &Launch, path: &Path, text: &str, buffers: &[Memory]) -> Result<Vec<Written>, BadInput> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut written = Vec::new();
    for (n, output) in launch.outputs.iter().enumerate() {
        let (Some(buffer), Some(memory)) = (launch.buffers.get(output.buffer), buffers.get(output.buffer)) else {
            continue;
        };
        let to = folder.join(&output.file);
        if let Err(e) = fs::write(&to, &memory.bytes) {
            let title = format!("buffer `{}` cannot be written to {}: {e}", buffer.name, to.display());
            let range = locate::locate(text, &format!("outputs[{n}].file")).unwrap_or(0..1);
            let help =
                "Name a file in a folder that exists and can be written; a relative path counts from the launch file.";
            return Err(BadInput::at(&title, &path.display().to_string(), text, range, "asked for here", help));
        }
        let never_written = (0..memory.bytes.len()).filter(|&byte| !memory.is_defined(byte)).count();
        written.push(Written {
            buffer: buffer.name.clone(),
            file: to.display().to_string(),
            bytes: memory.bytes.len(),
            never_written,
        });
    }
    Ok(written)
}

impl Run {
    fn new(seed: Option<u64>, report: Report) -> Run {
        Run {
            seed,
            clean: report.is_clean(),
            completed: report.completed,
            cycles: report.cycles,
            instructions: report.instructions,
            findings: report.findings,
            notes: report.notes,
            incomplete: report.incomplete,
            deadlock: report.deadlock,
            timing: report.timing,
            printed: report.printed,
            printed_beyond: report.printed_beyond,
        }
    }

    fn schedule(&self) -> String {
        self.seed.map_or("default schedule".into(), |seed| format!("seed {seed}"))
    }
}

/// A diagnostic of one or several runs.
struct Seen<'a> {
    diagnostic: &'a Diagnostic,
    seeds: Vec<u64>,
}

impl Seen<'_> {
    /// A schedule shows it as well; one may show it twice, in other columns of tensor memory say.
    fn under(&mut self, seed: Option<u64>) {
        if self.seeds.last() != seed.as_ref() {
            self.seeds.extend(seed);
        }
    }
}

impl Summary<'_> {
    fn text(&self, texts: &Texts, notes: Notes) -> String {
        let mut out = self.printed();
        let findings = self.seen(|run| &run.findings);
        out += &self.first_few(texts, &findings);
        let mut incomplete: Vec<&String> = self.runs.iter().flat_map(|run| &run.incomplete).collect();
        incomplete.dedup();
        for text in incomplete {
            let _ = writeln!(out, "not checked: {text}");
        }
        out += &self.limits(texts);
        if !out.is_empty() {
            out.push('\n');
        }
        let noted = self.seen(|run| &run.notes);
        if !noted.is_empty() && notes == Notes::Show {
            out += "Notes: rules broken that no machine code would show, and what a right kernel seldom does. They change no exit status; `--notes hide` hides them.\n\n";
            out += &self.first_few(texts, &noted);
            out.push('\n');
        }
        for run in self.runs.iter().filter(|run| self.runs.len() == 1 || !run.clean) {
            // How long a run would have taken that did not end is not known.
            let end = match run.completed {
                true => format!("; {} cycles, ", run.cycles),
                false => ", did not end; ".into(),
            };
            let _ = writeln!(
                out,
                "`{}`, {}: {}{end}{} warp instructions",
                self.called,
                run.schedule(),
                if self.timing_only && run.findings.is_empty() {
                    "times only".into()
                } else if self.results_only && run.findings.is_empty() {
                    "results only".into()
                } else {
                    let proved = run.findings.is_empty() && run.deadlock == Deadlock::Impossible;
                    let hangs = match (proved, run.timing.is_empty()) {
                        (true, true) => ", cannot hang",
                        (true, false) => ", cannot hang on these paths",
                        (false, _) => "",
                    };
                    counts(run.findings.len(), run.notes.len(), notes) + hangs
                },
                run.instructions
            );
        }
        if self.runs.len() > 1 {
            let clean = self.runs.iter().filter(|run| run.clean).count();
            let counts = counts(findings.len(), noted.len(), notes);
            let _ = writeln!(out, "`{}`: {clean} of {} schedules are clean; {counts}", self.called, self.runs.len());
        }
        for file in &self.outputs {
            let _ = write!(out, "wrote `{}`, {} bytes, to {}", file.buffer, file.bytes, file.file);
            if file.never_written > 0 {
                let _ = write!(
                    out,
                    " ({} of them hold no defined value, most of them 0xff: nothing, or something undefined, was written there)",
                    file.never_written
                );
            }
            out.push('\n');
        }
        out
    }

    /// What the kernel printed, of the first run: the others print the same, or what their findings tell.
    fn printed(&self) -> String {
        let mut out = String::new();
        let Some(run) = self.runs.first() else { return out };
        for Printed { thread, text } in &run.printed {
            let text: String =
                text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '?' } else { c }).collect();
            for line in text.lines() {
                let _ = writeln!(out, "printed by {thread}: {line}");
            }
        }
        if run.printed_beyond > 0 {
            let _ = writeln!(out, "printed {} times more", run.printed_beyond);
        }
        out
    }

    /// What a run's verdict does not cover: other paths, and interleavings that may get stuck.
    fn limits(&self, texts: &Texts) -> String {
        let mut out = String::new();
        let mut reasons: Vec<&String> = Vec::new();
        for run in &self.runs {
            let Deadlock::NotProved(more) = &run.deadlock else { continue };
            let new: Vec<&String> = more.iter().filter(|reason| !reasons.contains(reason)).collect();
            reasons.extend(new);
        }
        for reason in reasons.iter().take(3) {
            let _ = writeln!(out, "not proved that no interleaving hangs: {reason}");
        }
        let [first, more @ ..] = &self.runs[..] else { return out };
        let unseeded = more.is_empty() && first.seed.is_none();
        // No other seed grants a request that all clusters leave nothing for.
        let never = |run: &Run| run.timing.iter().any(|label| label.meaning == Meaning::NeverGranted);
        let goes_on = |label: &&Label| unseeded || label.meaning == Meaning::NeverGranted && more.iter().all(never);
        if self.runs.iter().all(|run| run.clean) {
            let mut told = first.timing.iter().filter(goes_on).take(3).peekable();
            let other_schedules = unseeded && told.peek().is_some();
            for label in told {
                let _ = writeln!(out, "depends on time: {} {}", texts.place(&label.place), label.text);
            }
            if other_schedules {
                out += "Other schedules may take other paths, of which this run says nothing: `--seeds 0..50` tries some.\n";
            }
        }
        out
    }

    /// What the runs found, each root cause once, with the seeds it was seen under.
    fn seen<'r>(&'r self, of: impl Fn(&'r Run) -> &'r Vec<Diagnostic>) -> Vec<Seen<'r>> {
        let mut list: Vec<Seen> = Vec::new();
        for run in &self.runs {
            for diagnostic in of(run) {
                let place = |d: &'r Diagnostic| d.labels.first().map(|label| &label.place);
                let same = |seen: &&mut Seen<'r>| {
                    seen.diagnostic.code == diagnostic.code && place(seen.diagnostic) == place(diagnostic)
                };
                match list.iter_mut().find(same) {
                    Some(known) => known.under(run.seed),
                    None => list.push(Seen { diagnostic, seeds: run.seed.into_iter().collect() }),
                }
            }
        }
        list
    }

    fn first_few(&self, texts: &Texts, list: &[Seen]) -> String {
        let several = |seen: &Seen| match seen.seeds.len() {
            _ if self.runs.len() == 1 => String::new(),
            n if n == self.runs.len() => format!("seen under all {n} seeds"),
            1 => format!("seen under seed {} only", seen.seeds[0]),
            n => {
                let first: Vec<String> = seen.seeds.iter().take(8).map(u64::to_string).collect();
                let more = if n > 8 { format!(" and {} more", n - 8) } else { String::new() };
                format!("seen under {n} of {} seeds: {}{more}", self.runs.len(), first.join(", "))
            }
        };
        let shown: Vec<(&Diagnostic, String)> = list.iter().map(|seen| (seen.diagnostic, several(seen))).collect();
        texts.first_few_seen(&shown)
    }
}

/// `1 finding, 2 notes`.
fn counts(findings: usize, notes: usize, shown: Notes) -> String {
    let count = |n: usize, what: &str| match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let mut text = count(findings, "finding");
    if notes > 0 {
        let _ = write!(text, ", {}{}", count(notes, "note"), if shown == Notes::Hide { " (hidden)" } else { "" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::Severity;

    #[test]
    fn a_schedule_that_shows_a_finding_twice_is_counted_once() {
        let diagnostic = Diagnostic {
            code: "tensor-freed-in-use",
            severity: Severity::Finding,
            title: String::new(),
            labels: vec![],
            rule: String::new(),
            help: String::new(),
            count: 1,
            confirmed: None,
        };
        let mut seen = Seen { diagnostic: &diagnostic, seeds: vec![3] };
        [3, 4, 4, 5].into_iter().for_each(|seed| seen.under(Some(seed)));
        assert_eq!(seen.seeds, [3, 4, 5]);
    }
}
