//! Runs what a stranger wrote, and the compiler that reads it, where it sees and reaches nothing of ours.
//!
//! **Does:** lock a program in: namespaces of its own (no other process, no network), a file system that holds what it needs and
//! nothing else, limits, no privilege, a filter of system calls; say what of this is enforced. **Never does:** run a program
//! with something [`missing`](Enforced::missing). What is trusted runs outside, or under [`Cage::Open`], which a person asks for.
//!
//! The grader starts itself anew for that, twice: `grader __sandboxed SPEC` makes the namespaces and stays outside of the inner one; its
//! child gives up all rights and becomes the program. The program is the only process (the first) of its process namespace: when it
//! ends, or when either of the two is killed, everything that it started ends with it.
//!
//! | module | idea |
//! |---|---|
//! | [`spec`] | what is run, what it sees, what it may use up |
//! | `run` | runs a program, and says how it ended, or that this machine failed |
//! | `report` | what is said of a run, where the program cannot reach |
//! | `outer` | makes the place, waits, brings the results out |
//! | `inner` | gives up all rights, and becomes the program |
//! | `account` | whose rights a program has |
//! | `calls` | which system calls are left |
//! | `site` | whether the grader itself is allowed what a program is |
//! | `raw` | the calls that are `unsafe` |

#[cfg(target_os = "linux")]
mod account;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod inner;
#[cfg(target_os = "linux")]
mod outer;
#[cfg(target_os = "linux")]
mod raw;
mod report;
mod run;
#[cfg(target_os = "linux")]
mod site;
pub mod spec;

pub use run::{End, Ran};
pub use spec::{Job, Limits, Output, PATIENCE, PROGRAM, Spec, WORK, hidden};

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The hidden command that makes the place.
const OUTER: &str = "__sandboxed";
/// The hidden command that becomes the program.
const INNER: &str = "__sandboxed-inner";
/// Exit status when the sandbox itself could not be made. Programs may have it, too: what counts is the report.
const NO_SANDBOX: u8 = 125;

/// What is enforced for each program, as the machine here allows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// Namespaces of its own: `mount`, `pid`, `network`, `ipc`, `uts`, `cgroup`, `user`.
    pub namespaces: Vec<String>,
    /// Whose rights it has: `account of its own` or `user namespace`.
    pub identity: String,
    /// A filter of system calls.
    pub seccomp: bool,
    /// Landlock: `full`, `partial` or `none`. It repeats what the mount namespace gives.
    pub landlock: String,
    /// How many processes it may have is limited.
    pub process_limit: bool,
    /// Tried from inside, and possible nevertheless. Empty, or it is not used.
    pub holes: Vec<String>,
}

impl Enforced {
    /// What is needed and not there: a few words each.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for name in ["mount", "pid", "network", "ipc"] {
            if !self.namespaces.iter().any(|here| here == name) {
                missing.push(format!("no {name} namespace"));
            }
        }
        if !self.seccomp {
            missing.push("no filter of system calls".to_string());
        }
        if !self.process_limit {
            missing.push("no limit on processes: this account is root, and may not give a program another".to_string());
        }
        missing.extend(self.holes.iter().map(|hole| format!("possible from inside: {hole}")));
        missing
    }
}

impl fmt::Display for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { cpu_seconds, memory, scratch, .. } = Limits::PROGRAM;
        write!(
            f,
            "namespaces ({}), {}, {}, landlock: {}; a program gets {cpu_seconds} s of CPU, {} MiB of memory, {} MiB of \
             scratch files, one process",
            self.namespaces.join(", "),
            self.identity,
            if self.seccomp { "seccomp" } else { "no seccomp" },
            self.landlock,
            memory >> 20,
            scratch >> 20,
        )
    }
}

/// Where hand-ins run.
#[derive(Clone, Debug)]
pub enum Cage {
    /// Locked in.
    Locked {
        /// The program that has the hidden commands: this grader.
        launcher: PathBuf,
        /// What is enforced.
        enforced: Enforced,
    },
    /// With all rights of this account: someone trusts the hand-ins.
    Open,
}

/// What is said when there is no sandbox and nobody said `--trust`.
const WAY_OUT: &str = "try: Grade on Linux with user namespaces (or as root with CAP_SYS_ADMIN), or in a container that allows them. \
     `--trust` runs hand-ins with all rights of this account: only for code that you trust, or on a machine that you can throw away.";

impl Cage {
    /// Looks what this machine can enforce, with the grader at `launcher`.
    ///
    /// # Errors
    /// When something that is needed is missing: what, and the way out.
    pub fn locked(launcher: &Path) -> Result<Cage, String> {
        enough()?;
        let refused = |why: String| format!("hand-ins cannot be locked in on this machine: {why}\n  {WAY_OUT}");
        let enforced = probe(launcher).map_err(refused)?;
        let missing = enforced.missing();
        if !missing.is_empty() {
            return Err(refused(missing.join("; ")));
        }
        Ok(Cage::Locked { launcher: launcher.to_path_buf(), enforced })
    }

    /// What is enforced; nothing where hand-ins are trusted.
    pub fn enforced(&self) -> Option<&Enforced> {
        match self {
            Cage::Locked { enforced, .. } => Some(enforced),
            Cage::Open => None,
        }
    }

    /// Where the program sees its scratch folder; `folder` is where it is outside.
    pub fn work<'a>(&self, folder: &'a Path) -> &'a Path {
        match self {
            Cage::Locked { .. } => Path::new(WORK),
            Cage::Open => folder,
        }
    }

    /// The command that runs a program so.
    fn command(&self, spec: &Spec) -> Command {
        let mut command = match self {
            Cage::Locked { launcher, enforced } => {
                let mut command = Command::new(launcher);
                let required = (spec.job != Job::Probe).then(|| enforced.clone());
                let spec = Spec { required, parent: std::process::id(), ..spec.clone() };
                command.arg(OUTER).arg(spec.to_json());
                command
            }
            Cage::Open => {
                let mut command = Command::new(spec.outside.as_ref().unwrap_or(&spec.program));
                // Its own name is the same in every run.
                #[cfg(unix)]
                std::os::unix::process::CommandExt::arg0(&mut command, &spec.program);
                command.args(&spec.arguments);
                if !spec.folder.as_os_str().is_empty() {
                    command.current_dir(&spec.folder);
                }
                command
            }
        };
        // What is in the environment is the grader's own.
        command.env_clear().env("PATH", spec::PATH).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

impl fmt::Display for Cage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cage::Locked { enforced, .. } => write!(f, "sandbox: {enforced}"),
            Cage::Open => f.write_str("sandbox: none (--trust): hand-ins run with all rights of this account"),
        }
    }
}

/// Refuses where this machine allows the grader itself less than a hand-in, or the compiler that reads it, is allowed: each hand-in would have no
/// grade, for the same reason.
///
/// # Errors
/// What is lower, what is needed, and the way out.
pub fn enough() -> Result<(), String> {
    #[cfg(target_os = "linux")]
    site::enough(&[Limits::PROGRAM, Limits::COMPILER])?;
    Ok(())
}

/// Locks a part of the grader in, which tries to get out and says what it found.
fn probe(launcher: &Path) -> Result<Enforced, String> {
    if !cfg!(target_os = "linux") {
        return Err(format!("it needs Linux, and this is {}", std::env::consts::OS));
    }
    let folder = tempfile::tempdir().map_err(|error| format!("cannot make a scratch folder: {error}"))?;
    let stage = folder.path().join("stage");
    let spec = Spec { job: Job::Probe, stage, limits: Limits::PROGRAM, ..Spec::default() };
    let probed = Cage::Locked { launcher: launcher.to_path_buf(), enforced: Enforced::default() }.run(&spec)?;
    if let Some(how) = probed.failure() {
        return Err(format!("its probe failed ({how}): {}", probed.stderr.trim()));
    }
    let report = report::read(&spec.report()).and_then(|report| report.enforced);
    report.ok_or_else(|| "its probe said nothing".to_string())
}

/// Answers the hidden commands, if these arguments are one.
pub fn asked(arguments: &[OsString]) -> Option<ExitCode> {
    let [first, rest @ ..] = arguments else { return None };
    let act: fn(&[OsString]) -> Result<ExitCode, String> = match first.to_str()? {
        OUTER => enter_outer,
        INNER => enter_inner,
        _ => return None,
    };
    Some(act(rest).unwrap_or_else(|error| {
        eprintln!("sandbox: {error}");
        ExitCode::from(NO_SANDBOX)
    }))
}

fn enter_outer(arguments: &[OsString]) -> Result<ExitCode, String> {
    let spec = Spec::from_arguments(arguments)?;
    #[cfg(target_os = "linux")]
    return outer::run(&spec);
    #[cfg(not(target_os = "linux"))]
    return Err(format!("it needs Linux; cannot run {}", spec.program.display()));
}

fn enter_inner(arguments: &[OsString]) -> Result<ExitCode, String> {
    #[cfg(target_os = "linux")]
    return inner::become_program(arguments);
    #[cfg(not(target_os = "linux"))]
    return Err(format!("it needs Linux; cannot run {arguments:?}"));
}
