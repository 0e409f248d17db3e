//! A job from its files to what is printed and written.

use crate::arguments::{Format, Job};
use crate::bad_input::BadInput;
use crate::show::{self, Texts};
use crate::{launch_file, locate};
use emulator::{Diagnostic, Launch, Memory, Options, Report};
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
    clean: bool,
    runs: Vec<Run>,
    outputs: Vec<Written>,
}

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
    let kernel = fs::read_to_string(&job.kernel)
        .map_err(|e| BadInput::file(&job.kernel, "read", &e, "Give a file with PTX text."))?;
    let texts = Texts { kernel: (&job.kernel, &kernel), launch: None };
    let program = emulator::load(&kernel).map_err(|errors| BadInput::messages(vec![texts.first_few(&errors)]))?;
    let (launch, text) = launch_file::read(&job.launch)?;
    let texts = Texts { launch: Some((&job.launch, &text)), ..texts };
    emulator::check(&program, &launch).map_err(|errors| BadInput::messages(vec![texts.first_few(&errors)]))?;

    let (mut runs, mut outputs) = (Vec::new(), Vec::new());
    for seed in job.schedules.seeds() {
        let options = Options { seed, ..job.options.clone() };
        let report = emulator::run(&program, &launch, &options);
        if runs.is_empty() && !options.timing_only {
            outputs = write(&launch, &job.launch, &text, &report.buffers)?;
        }
        runs.push(Run::new(seed, report));
    }
    let clean = runs.iter().all(|run| run.clean);
    let ended = |run: &Run| run.completed && run.findings.is_empty();
    let fine = clean || job.options.timing_only && runs.iter().all(ended);
    let summary =
        Summary { schema: 1, kernel: job.kernel.display().to_string(), entry: &launch.entry, clean, runs, outputs };
    let shown = match job.format {
        Format::Text => summary.text(&texts),
        Format::Json => {
            serde_json::to_string_pretty(&summary).map(|json| json + "\n").unwrap_or_else(|e| e.to_string())
        }
    };
    // A closed pipe loses the text, not the exit status.
    let _ = show::print(&shown);
    Ok(fine)
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
        }
    }

    fn schedule(&self) -> String {
        self.seed.map_or("default schedule".into(), |seed| format!("seed {seed}"))
    }
}

impl Summary<'_> {
    fn text(&self, texts: &Texts) -> String {
        let mut out = String::new();
        // What several schedules find is shown once: by the first that is not clean.
        if let Some(run) = self.runs.iter().find(|run| !run.clean) {
            out += &texts.first_few(&run.findings);
            for text in &run.incomplete {
                let _ = writeln!(out, "not checked: {text}");
            }
            out.push('\n');
        }
        if let Some(run) = self.runs.iter().find(|run| !run.notes.is_empty()) {
            out += "Notes: rules broken that no machine code would show. They change no exit status.\n\n";
            out += &texts.first_few(&run.notes);
            out.push('\n');
        }
        for run in self.runs.iter().filter(|run| self.runs.len() == 1 || !run.clean) {
            let end = if run.completed { "" } else { ", did not end" };
            let _ = writeln!(
                out,
                "`{}`, {}: {}{end}; {} cycles, {} warp instructions",
                self.entry,
                run.schedule(),
                count(run.findings.len()),
                run.cycles,
                run.instructions
            );
        }
        if self.runs.len() > 1 {
            let clean = self.runs.iter().filter(|run| run.clean).count();
            let _ = writeln!(out, "`{}`: {clean} of {} schedules are clean", self.entry, self.runs.len());
        }
        for file in &self.outputs {
            let _ = write!(out, "wrote `{}`, {} bytes, to {}", file.buffer, file.bytes, file.file);
            if file.never_written > 0 {
                let _ = write!(out, " ({} of them were never written by the kernel and hold 0xff)", file.never_written);
            }
            out.push('\n');
        }
        out
    }
}

fn count(findings: usize) -> String {
    match findings {
        0 => "no findings".into(),
        1 => "1 finding".into(),
        n => format!("{n} findings"),
    }
}
