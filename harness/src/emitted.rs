//! Kernels built by another process: a step's test binary, asked with `--emit REQUEST ANSWER`.
//!
//! So a student's code never runs beside the judge: what comes back is JSON with PTX text and a closed recipe.

use crate::problem::Problem;
use crate::process;
use crate::source::{BuildFailure, Built, KernelSource};
use emit::{Answer, Request};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The largest answer that is read. A kernel of ten thousand instructions is about 1 MiB.
const MAX_ANSWER: u64 = 64 << 20;

/// A kernel source in another process.
pub struct Emitted {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    timeout: Duration,
    /// What the program prints is to be shown, and was not yet.
    echo: AtomicBool,
}

impl Emitted {
    /// A step's test binary.
    pub fn new(program: impl Into<PathBuf>) -> Emitted {
        let program = program.into();
        Emitted::from_command(move || Command::new(&program))
    }

    /// Anything that takes `--emit REQUEST ANSWER` as its last arguments, for example the binary in a sandbox.
    pub fn from_command(command: impl Fn() -> Command + Send + Sync + 'static) -> Emitted {
        Emitted { command: Box::new(command), timeout: Duration::from_secs(10), echo: AtomicBool::new(false) }
    }

    /// Ends the process after so long.
    pub fn timeout(mut self, timeout: Duration) -> Emitted {
        self.timeout = timeout;
        self
    }

    /// Shows on stderr what the kernel function prints: once, though it is built for several problems.
    pub fn echo(self) -> Emitted {
        self.echo.store(true, Ordering::Relaxed);
        self
    }
}

impl KernelSource for Emitted {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        let no_answer = |message: String| BuildFailure::NoAnswer { message };
        let folder = tempfile::tempdir().map_err(|e| no_answer(format!("cannot make a scratch folder: {e}")))?;
        let (request, reply) = (folder.path().join("request.json"), folder.path().join("answer.json"));
        let text = serde_json::to_string(&Request { problem: *problem, sms }).map_err(|e| no_answer(e.to_string()))?;
        fs::write(&request, text).map_err(|e| no_answer(format!("cannot write {}: {e}", request.display())))?;

        let mut command = (self.command)();
        command.arg("--emit").arg(&request).arg(&reply);
        let ended = process::run(&mut command, self.timeout).map_err(|failure| match failure {
            process::Failure::TookTooLong(limit) => no_answer(format!(
                "building the kernel for {problem} took longer than {limit} s and was ended\n\
                 try: Look for a Rust loop that does not end: `repeat` loops on the GPU, a Rust `for` unrolls while building."
            )),
            failure => no_answer(failure.to_string()),
        })?;
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        if ended.success && !printed.trim().is_empty() && self.echo.swap(false, Ordering::Relaxed) {
            // A front end may be in the middle of a line.
            eprintln!("\nprinted while the kernel was built for {problem}:\n{}", printed.trim_end());
        }
        if !ended.success {
            return Err(no_answer(format!(
                "the program that builds the kernel failed ({}){}",
                ended.status,
                ended.said()
            )));
        }
        let answer = read_answer(&reply).map_err(|e| no_answer(format!("{e}{}", ended.said())))?;
        match answer {
            Answer::Built(built) => Ok(built),
            Answer::Failed(failure) => Err(failure),
        }
    }
}

fn read_answer(path: &Path) -> Result<Answer, String> {
    // An answer is a plain file: a link or a pipe made by the program would make the judge read something else.
    let about = fs::symlink_metadata(path).map_err(|_| {
        "the program that builds the kernel left no answer: it ended before the kernel function returned".to_string()
    })?;
    if !about.is_file() || about.len() > MAX_ANSWER {
        return Err(format!("the answer is not a file of at most {} MiB", MAX_ANSWER >> 20));
    }
    let text = fs::read_to_string(path).map_err(|e| format!("cannot read the answer: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("the answer is not a kernel: {e}"))
}
