//! Kernels built by another process: a step's test binary, asked with `--emit REQUEST ANSWER`.
//!
//! So a student's code never runs beside the judge: what comes back is JSON with PTX text and a closed recipe.

use crate::answers;
use crate::problem::Problem;
use crate::process;
use crate::source::{BuildFailure, Built, Cause, Ending, KernelSource, Unbuilt, Whose};
use emit::{Answer, Request};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What became of a program that was asked for a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// How it ended.
    pub end: End,
    /// What it printed.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
    /// Why the answer that it left was not taken, in the words of who ran it.
    pub not_taken: Option<String>,
}

/// How a program ended that was asked for a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, and it says that all went well.
    Well,
    /// By itself or by a signal, and not well: how, in a few words.
    Failed(String),
    /// It took too long, and was ended: after what, in a few words.
    TookTooLong(String),
}

/// Asks a program for a kernel: with the paths of the request and of the answer. An error is this machine's.
type Ask = dyn Fn(&Path, &Path) -> Result<Asked, String> + Send + Sync;

/// A kernel source in another process.
pub struct Emitted {
    ask: Box<Ask>,
    /// Where requests and answers lie; `None`: in the system's folder for such.
    folder: Option<PathBuf>,
    /// What the program prints is to be shown, and was not yet.
    echo: AtomicBool,
}

/// The longest that a step's test binary may take.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Emitted {
    /// A step's test binary.
    pub fn new(program: impl Into<PathBuf>) -> Emitted {
        let program = program.into();
        Emitted::from_command(move || Command::new(&program), TIMEOUT)
    }

    /// Anything that takes `--emit REQUEST ANSWER` as its last arguments. It is ended after so long.
    pub fn from_command(command: impl Fn() -> Command + Send + Sync + 'static, timeout: Duration) -> Emitted {
        Emitted::by(move |request, answer| {
            let mut command = command();
            let ended = match process::run(command.arg("--emit").arg(request).arg(answer), timeout) {
                Ok(ended) => ended,
                Err(process::Failure::TookTooLong(seconds)) => {
                    let end = End::TookTooLong(format!("{seconds} s"));
                    return Ok(Asked { end, stdout: String::new(), stderr: String::new(), not_taken: None });
                }
                Err(failure @ (process::Failure::DoesNotStart(_) | process::Failure::Unknown(_))) => {
                    return Err(failure.to_string());
                }
            };
            let end = if ended.success { End::Well } else { End::Failed(ended.status) };
            Ok(Asked { end, stdout: ended.stdout, stderr: ended.stderr, not_taken: None })
        })
    }

    /// Any way to ask a program for a kernel, for example in a sandbox. It gets the paths of the request and of the answer; its error is
    /// what failed on this machine.
    pub fn by(ask: impl Fn(&Path, &Path) -> Result<Asked, String> + Send + Sync + 'static) -> Emitted {
        Emitted { ask: Box::new(ask), folder: None, echo: AtomicBool::new(false) }
    }

    /// Requests and answers lie in a folder of their own below this one.
    pub fn within(mut self, folder: impl Into<PathBuf>) -> Emitted {
        self.folder = Some(folder.into());
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
        // What it printed stands between what happened and what to try.
        let ended = |what: String, said: &str, help: &str, ending: Option<Ending>| {
            let message = format!("{what}{}\n  try: {help}", answers::plain(said));
            let says = Unbuilt { help: Some(help.to_string()), ..Unbuilt::new(Cause::NoAnswer, what) };
            BuildFailure::NoAnswer { message, ending, says: Some(Box::new(says)) }
        };
        let here = |message: String| BuildFailure::Here { message };
        let folder = match &self.folder {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        };
        let folder = folder.map_err(|e| here(format!("cannot make a scratch folder: {e}")))?;
        let (request, reply) = (folder.path().join("request.json"), folder.path().join("answer.json"));
        let text = serde_json::to_string(&Request { problem: *problem, sms }).map_err(|e| here(e.to_string()))?;
        fs::write(&request, text).map_err(|e| here(format!("cannot write {}: {e}", request.display())))?;

        let asked = (self.ask)(&request, &reply).map_err(here)?;
        let said = process::last_lines(&asked.stderr);
        match asked.end {
            End::Well => {}
            End::TookTooLong(limit) => {
                let message = format!(
                    "building the kernel for {problem} took longer than {limit} and was ended\n\
                     try: Look for a Rust loop that does not end: `repeat` loops on the GPU, a Rust `for` unrolls while building."
                );
                return Err(BuildFailure::NoAnswer {
                    message,
                    ending: Some(Ending::TooLong(Whose::Kernel, limit)),
                    says: None,
                });
            }
            End::Failed(how) => {
                // A program that may write the answer itself fails when it cannot.
                writable(folder.path()).map_err(here)?;
                let what = format!("the program that builds the kernel failed ({how})");
                let help = "Look in the kernel function for what ends a program: `std::process`, calls without an end, tables that \
                            fill the memory.";
                return Err(ended(what, &said, help, Some(Ending::Failed(Whose::Kernel, how))));
            }
        }
        let printed = format!("{}{}", asked.stdout, asked.stderr);
        if !printed.trim().is_empty() && self.echo.swap(false, Ordering::Relaxed) {
            // A front end may be in the middle of a line.
            eprintln!("\nprinted while the kernel was built for {problem}:\n{}", answers::plain(printed.trim_end()));
        }
        let answer = answers::read(&reply).map_err(|failure| match failure {
            BuildFailure::NoAnswer { message, ending, .. } => {
                // That nothing lies here is not that nothing was left.
                let (why, ending) = match &asked.not_taken {
                    Some(why) => {
                        let why = format!("the answer is not taken: {why}");
                        (why.clone(), Some(Ending::Refused(why)))
                    }
                    None => (message, ending),
                };
                ended(why, &said, "Let the kernel function return, and leave the answer to the workbook.", ending)
            }
            other => other,
        })?;
        match answer {
            Answer::Built(built) => answers::fits(&built, problem).map(|()| built).map_err(answers::refused),
            Answer::Failed(failure) => Err(failure),
        }
    }
}

/// Whether an answer could be written here: nobody is to blame for a full disk but this machine.
fn writable(folder: &Path) -> Result<(), String> {
    // An answer is seldom larger.
    const BYTES: usize = 1 << 20;
    let path = folder.join("room");
    fs::write(&path, vec![1; BYTES]).map_err(|e| format!("cannot write {}: {e}", path.display()))
}
