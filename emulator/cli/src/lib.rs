//! What the command `emulate` does. A library, so that tests and fuzzers go the way that the command goes.

mod arguments;
mod bad_input;
mod file;
mod launch_file;
mod lists;
mod locate;
mod progress;
mod run;
mod shape;
mod show;
mod tree;

use arguments::Format;
use clap::Parser;
use emulator::Launch;
use std::path::Path;
use std::process::ExitCode;

/// The command, with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    let lists = lists::text(&arguments);
    // A closed pipe (`emulate … | head`) is no reason to end with a backtrace.
    if show::print(&lists).is_err() {
        return ExitCode::SUCCESS;
    }
    let Some(job) = arguments.job() else { return ExitCode::SUCCESS };
    match run::run(&job) {
        Ok(clean) => ExitCode::from(u8::from(!clean)),
        Err(bad) => {
            match job.format {
                Format::Text => eprint!("{}", bad.text),
                // A closed pipe loses the text, not the exit status.
                Format::Json => drop(show::print(&run::refusal(&job, &bad.errors))),
            }
            ExitCode::from(2)
        }
    }
}

/// The launch that a file describes; the files that its buffers name are read.
///
/// # Errors
/// What the command would print.
pub fn read_launch(path: &Path) -> Result<Launch, String> {
    launch_file::read(path).map(|(launch, _)| launch).map_err(|bad| bad.text)
}

/// A kernel's text and a launch file's, as far as they go without running: the launch.
///
/// # Errors
/// What the command would print instead.
pub fn check(kernel: &str, launch: &str) -> Result<Launch, String> {
    let (kernel_path, launch_path) = (Path::new("kernel.ptx"), Path::new("launch.json"));
    let texts = show::Texts { kernel: (kernel_path, kernel), launch: Some((launch_path, launch)) };
    let program = emulator::load(kernel).map_err(|errors| texts.first_few(&errors))?;
    let described = launch_file::parse(launch_path, launch).map_err(|bad| bad.text)?;
    emulator::check(&program, &described).map_err(|errors| texts.first_few(&errors))?;
    Ok(described)
}
