//! Kernels built by another process: a step's test binary, asked with `--emit REQUEST ANSWER`.
//!
//! So a student's code never runs beside the judge: what comes back is JSON with PTX text and a closed recipe.

use crate::answers;
use crate::problem::Problem;
use crate::process;
use crate::source::{BuildFailure, Built, KernelSource};
use emit::{Answer, Request};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
            eprintln!("\nprinted while the kernel was built for {problem}:\n{}", answers::plain(printed.trim_end()));
        }
        if !ended.success {
            return Err(no_answer(format!(
                "the program that builds the kernel failed ({}){}",
                ended.status,
                answers::plain(&ended.said())
            )));
        }
        let answer = answers::read(&reply).map_err(|e| no_answer(format!("{e}{}", answers::plain(&ended.said()))))?;
        match answer {
            Answer::Built(built) => Ok(built),
            Answer::Failed(failure) => Err(failure),
        }
    }
}
