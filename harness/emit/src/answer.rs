//! A program asked with `--emit REQUEST ANSWER`: it reads the one file, builds the kernel and writes the other.

use crate::problem::Problem;
use crate::source::{BuildFailure, Built, InProcess, KernelSource};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// What to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The problem.
    pub problem: Problem,
    /// Streaming multiprocessors of the device.
    pub sms: u32,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// A kernel.
    Built(Built),
    /// No kernel.
    Failed(BuildFailure),
}

/// Answers these arguments if they hold `--emit REQUEST ANSWER`; the exit status says whether the answer was written.
pub fn asked(kernel: ptx::KernelFn, arguments: &[OsString]) -> Option<ExitCode> {
    const USAGE: u8 = 2;
    let at = arguments.iter().position(|argument| argument == "--emit")?;
    let [request, answer] = &arguments[at + 1..] else {
        eprintln!("error: --emit takes two paths: a request and an answer");
        return Some(ExitCode::from(USAGE));
    };
    Some(match write(&InProcess(kernel), Path::new(request), Path::new(answer)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    })
}

/// The main of a program that does nothing else.
pub fn main(kernel: ptx::KernelFn) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    asked(kernel, &arguments).unwrap_or_else(|| {
        eprintln!("error: this program builds a kernel; it is called with `--emit REQUEST ANSWER`, two paths");
        ExitCode::FAILURE
    })
}

/// Answers a request file.
///
/// # Errors
/// When the request cannot be read or the answer cannot be written; the text names the file.
pub fn write(source: &dyn KernelSource, request: &Path, answer: &Path) -> Result<(), String> {
    let text =
        fs::read_to_string(request).map_err(|e| format!("cannot read the request {}: {e}", request.display()))?;
    let request: Request =
        serde_json::from_str(&text).map_err(|e| format!("{} is not a request for a kernel: {e}", request.display()))?;
    let result = match source.build(&request.problem, request.sms) {
        Ok(built) => Answer::Built(built),
        Err(failure) => Answer::Failed(failure),
    };
    let text = serde_json::to_string(&result).map_err(|e| format!("cannot write the answer: {e}"))?;
    fs::write(answer, text).map_err(|e| format!("cannot write the answer {}: {e}", answer.display()))
}
