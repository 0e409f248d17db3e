//! Kernels built by another process: a step's test binary, asked with `--emit REQUEST ANSWER`.
//!
//! So a student's code never runs beside the judge: what comes back is JSON with PTX text and a closed recipe.

use crate::answers;
use crate::problem::Problem;
use crate::process;
use crate::source::{BuildFailure, Built, KernelSource};
use emit::{Answer, Request};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How a run in this folder went.
type AskEnding = dyn Fn(&Path) -> Ending + Send + Sync;

/// A kernel source in another process.
pub struct Emitted {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    timeout: Duration,
    /// What the program prints is to be shown, and was not yet.
    echo: AtomicBool,
    /// How a run went, by who ran it, in this folder.
    ending: Option<Box<AskEnding>>,
    /// What did not work on this machine.
    here: Mutex<Option<String>>,
}

/// How a program came to its end, said by who runs it rather than by the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    ByItself,
    /// It was ended after so long: "20 s of CPU time".
    TookTooLong(String),
    /// It did not run, or what it left could not be taken: this machine is to blame.
    Here(String),
}

impl Emitted {
    /// A step's test binary.
    pub fn new(program: impl Into<PathBuf>) -> Emitted {
        let program = program.into();
        Emitted::from_command(move || Command::new(&program))
    }

    /// Anything that takes `--emit REQUEST ANSWER` as its last arguments, for example the binary in a sandbox.
    pub fn from_command(command: impl Fn() -> Command + Send + Sync + 'static) -> Emitted {
        Emitted {
            command: Box::new(command),
            timeout: Duration::from_secs(10),
            echo: AtomicBool::new(false),
            ending: None,
            here: Mutex::new(None),
        }
    }

    /// Ends the process after so long.
    pub fn timeout(mut self, timeout: Duration) -> Emitted {
        self.timeout = timeout;
        self
    }

    /// Asks how each run went, with the folder of its answer, after it.
    pub fn ending(mut self, ending: impl Fn(&Path) -> Ending + Send + Sync + 'static) -> Emitted {
        self.ending = Some(Box::new(ending));
        self
    }

    /// What did not work on this machine, if anything: then what was built, or was not, says nothing of the kernel.
    pub fn failed_here(&self) -> Option<String> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn here(&self, message: String) -> BuildFailure {
        self.here.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| message.clone());
        BuildFailure::NoAnswer { message }
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
        let here = |message: String| self.here(message);
        let folder = tempfile::tempdir().map_err(|e| here(format!("cannot make a scratch folder: {e}")))?;
        let (request, reply) = (folder.path().join("request.json"), folder.path().join("answer.json"));
        let text = serde_json::to_string(&Request { problem: *problem, sms }).map_err(|e| here(e.to_string()))?;
        fs::write(&request, text).map_err(|e| here(format!("cannot write {}: {e}", request.display())))?;

        let mut command = (self.command)();
        command.arg("--emit").arg(&request).arg(&reply);
        let too_long = |limit: &str| {
            no_answer(format!(
                "building the kernel for {problem} took longer than {limit} and was ended\n\
                 try: Look for a Rust loop that does not end: `repeat` loops on the GPU, a Rust `for` unrolls while building."
            ))
        };
        let ended = process::run(&mut command, self.timeout);
        if let Some(ending) = &self.ending {
            match ending(folder.path()) {
                Ending::ByItself => {}
                Ending::TookTooLong(limit) => return Err(too_long(&limit)),
                Ending::Here(why) => return Err(here(why)),
            }
        }
        let ended = ended.map_err(|failure| match failure {
            process::Failure::TookTooLong(limit) => too_long(&format!("{limit} s")),
            failure => here(failure.to_string()),
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
