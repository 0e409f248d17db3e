//! Records what a GPU does with a PTX file, so that the emulator can be held against it.
//!
//! **Does:** run cases (a PTX file, and the launch file that the command `emulate` takes) on a GPU, each in a process of its own;
//! write down the bytes that they leave, the driver's error, or that they hang; compare with what was recorded before; list what is
//! recorded, and set measured cycles beside the emulator's. **Never does:** let the emulator into a recording, or say which of the
//! two is right.
//!
//! ```text
//! silicon run CASE.ptx CASE.json OUT.json
//! silicon record FOLDER [--only NAME] [--check]
//! silicon table FOLDER
//! silicon clock FOLDER
//! ```
//!
//! A recording lies beside its case, as `CASE.h200.json`; [`recording`] says what it holds.

pub mod base64;
pub mod case;
pub mod clock;
pub mod recording;
pub mod table;
mod watchdog;

use case::Case;
use clap::{Parser, Subcommand};
use device::{About, Choice, Gpu};
use recording::{Outcome, Recording};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Records what a GPU does with PTX files.
#[derive(Debug, Parser)]
#[command(name = "silicon")]
struct Cli {
    #[command(subcommand)]
    action: Action,
    /// Seconds that a kernel may run
    #[arg(long, global = true, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// One kernel on one launch file
    Run {
        /// The PTX text
        kernel: PathBuf,
        /// The launch file; docs/emulate.md describes it
        launch: PathBuf,
        /// Where the recording goes
        out: PathBuf,
    },
    /// Every case of a folder: CASE.ptx with CASE.json, to CASE.GPU.json
    Record {
        /// The folder
        folder: PathBuf,
        /// The case of this name alone
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Compare with what is recorded, and write nothing
        #[arg(long)]
        check: bool,
    },
    /// What is recorded in a folder of families, as a Markdown table; needs no GPU
    Table {
        /// The folder that holds the families' folders
        folder: PathBuf,
    },
    /// Cycles that kernels measured, on GPUs and on the emulator, as a Markdown table; needs no GPU
    Clock {
        /// A folder of cases with comments `// row: LABEL`
        folder: PathBuf,
    },
    /// For this program's own use: a case in this process
    #[command(hide = true)]
    Child { kernel: PathBuf, launch: PathBuf, out: PathBuf, uuid: String, limit: u64, typed: String },
}

/// The command, with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let limit = Duration::from_secs(cli.seconds);
    let done = match cli.action {
        Action::Child { kernel, launch, out, uuid, limit, typed } => {
            case::run_here(&kernel, &launch, &out, &uuid, &typed, Duration::from_secs(limit)).map(|()| true)
        }
        Action::Run { kernel, launch, out } => run(kernel, launch, &out, limit),
        Action::Record { folder, only, check } => record(&folder, only.as_deref(), check, limit),
        Action::Table { folder } => table::table(&folder).map(|text| print(&text)),
        Action::Clock { folder } => clock::table(&folder).map(|text| print(&text)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn print(text: &str) -> bool {
    print!("{text}");
    true
}

/// This program, as the process that a case runs in.
fn child() -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot tell where this program lies: {error}"))?;
    let mut command = Command::new(program);
    command.arg("child");
    Ok(command)
}

fn gpu(choice: &Choice) -> Result<About, String> {
    Gpu::choose(choice).map_err(|why| format!("{why}\n  try: {}", why.way_out()))
}

fn run(kernel: PathBuf, launch: PathBuf, out: &std::path::Path, limit: Duration) -> Result<bool, String> {
    let case = Case { name: String::new(), ptx: kernel, launch };
    let about = gpu(&case.target().map_or(Choice::Any, Choice::Runs))?;
    let typed = format!("silicon run {} {}", case.ptx.display(), case.launch.display());
    let recording = match watchdog::record(child()?, &case, &about, &typed, limit) {
        Ok(recording) => recording,
        Err(why) => {
            eprintln!("{}: not recorded: {why}", about.name);
            return Ok(false);
        }
    };
    case::write(out, &recording)?;
    println!("{}: {}", about.name, line(&recording));
    Ok(recording.outcome == Outcome::Done)
}

fn record(folder: &std::path::Path, only: Option<&str>, check: bool, limit: Duration) -> Result<bool, String> {
    let cases = case::cases(folder, only)?;
    let about = gpu(&Choice::Any)?;
    println!("{}, {}, driver {}", about.title(), about.uuid, about.driver.as_deref().unwrap_or("unknown"));
    let typed = format!("silicon record {}", folder.display());
    let width = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
    let (mut done, mut wrong, mut skipped) = (0, 0, 0);
    for case in &cases {
        let name = format!("{:<width$}", case.name);
        if let Some(target) = case.target().filter(|target| !target.runs_on(about.capability())) {
            println!("{name}  skipped: made for {target}");
            skipped += 1;
            continue;
        }
        let path = case.recording(&about.name);
        let now = child().and_then(|child| watchdog::record(child, case, &about, &typed, limit));
        let differences = match (&now, check) {
            (Err(why), _) => vec![why.clone()],
            (Ok(now), false) => case::write(&path, now).err().into_iter().collect(),
            (Ok(now), true) => match case::read(&path) {
                Ok(before) => before.differences(now, !case.is_wrong(), &case.not_compared()),
                Err(why) => vec![why],
            },
        };
        match now {
            Ok(now) => println!("{name}  {}", line(&now)),
            Err(_) => println!("{name}  not recorded"),
        }
        for difference in &differences {
            println!("{:<width$}  {difference}", "");
        }
        if differences.is_empty() { done += 1 } else { wrong += 1 }
    }
    let what = if check { "as recorded" } else { "recorded" };
    println!("{done} {what}, {wrong} not, {skipped} skipped, of {}", cases.len());
    if skipped == cases.len() {
        return Err(nothing_runs(folder, &cases, &about));
    }
    Ok(wrong == 0)
}

/// Why nothing was recorded: the folder has no cases, or the GPU runs none of them.
fn nothing_runs(folder: &std::path::Path, cases: &[Case], about: &About) -> String {
    let mut targets: Vec<String> = cases.iter().filter_map(Case::target).map(|target| target.to_string()).collect();
    targets.sort_unstable();
    targets.dedup();
    match targets.as_slice() {
        [] => format!(
            "{} holds no case\n  try: Name a folder with PTX files and a launch file beside each.",
            folder.display()
        ),
        targets => format!(
            "{} runs none of the {} cases of {}: they are made for {}\n  try: Record them on a machine whose GPU runs one of these.",
            about.title(),
            cases.len(),
            folder.display(),
            targets.join(", ")
        ),
    }
}

/// A recording in a line.
fn line(recording: &Recording) -> String {
    let mut text = match (recording.outcome, &recording.error) {
        (Outcome::Done, _) => {
            let bytes: usize = recording.buffers.values().map(|buffer| buffer.bytes).sum();
            format!("done, {} buffers, {bytes} bytes", recording.buffers.len())
        }
        (Outcome::Hang, _) => "hang".to_string(),
        (Outcome::Error, error) => {
            let message = recording.message.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
            format!("error {}: {message}", error.as_deref().unwrap_or_default())
        }
    };
    for touched in &recording.touched {
        text += &format!("; {touched}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_which_nothing_runs_says_what_it_is_made_for() {
        let folder = tempfile::tempdir().unwrap();
        let about = About { name: "NVIDIA H200".into(), capability: (9, 0), ..About::default() };
        let mut cases = Vec::new();
        for (name, target) in [("a", "sm_100a"), ("b", "sm_100a"), ("c", "sm_120a")] {
            let ptx = folder.path().join(name).with_extension("ptx");
            std::fs::write(&ptx, format!(".version 8.6\n.target {target}\n")).unwrap();
            cases.push(Case { name: name.into(), launch: ptx.with_extension("json"), ptx });
        }
        let says = nothing_runs(std::path::Path::new("cases"), &cases, &about);
        let begins = "NVIDIA H200 (9.0) runs none of the 3 cases of cases: they are made for sm_100a, sm_120a\n  try: ";
        assert!(says.starts_with(begins), "{says}");
        assert!(nothing_runs(std::path::Path::new("cases"), &[], &about).starts_with("cases holds no case\n  try: "));
    }
}
