//! What is run in a sandbox: the program, what it sees, what it may use up, what is taken out.

use super::Enforced;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The one folder that a locked program can write to.
pub const WORK: &str = "/hand-in-scratch";
/// Where a stranger's program lies for itself: the same in every run, and nothing of the machine that grades.
pub const PROGRAM: &str = "/hand-in-program";
/// Where the compiler sees its own processes.
pub(super) const PROC: &str = "/proc";
/// Where a locked program looks for others.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What each program sees of the system: libraries.
pub(super) const LIBRARIES: [&str; 7] =
    ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/nix/store"];
/// What the compiler sees beside them: the linker.
pub(super) const TOOLS: [&str; 5] = ["/bin", "/usr/bin", "/usr/libexec", "/usr/local/bin", "/etc/alternatives"];

/// The folder of the system, with all below it seen by every locked program or compiler, in which a path lies. A path that does not exist yet
/// lies where it would be made.
pub fn shown_by(path: &Path) -> Option<&'static str> {
    let path = real(path);
    // A folder may be a link to another, or lie below one.
    let holds = |folder: &&&str| {
        let folder = Path::new(folder);
        path.starts_with(folder) || folder.canonicalize().is_ok_and(|folder| path.starts_with(folder))
    };
    LIBRARIES.iter().chain(&TOOLS).find(holds).copied()
}

/// A path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let there = whole.ancestors().find_map(|above| Some((above.canonicalize().ok()?, above)));
    match there {
        Some((real, above)) => whole.strip_prefix(above).map_or(real.clone(), |rest| real.join(rest)),
        None => whole,
    }
}

/// Refuses what every hand-in would see, though none may. `what`: what it is, such as `the hand-ins`.
///
/// # Errors
/// Where it lies, and what to do.
pub fn hidden(what: &str, path: &Path) -> Result<(), String> {
    let Some(folder) = shown_by(path) else { return Ok(()) };
    Err(format!(
        "{what}: {} lies in {folder}, a folder of the system that every hand-in sees\n  try: Put it elsewhere.",
        path.display()
    ))
}

/// What is run: it decides which system calls and which of the system's files are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// rustc and its linker on a stranger's text.
    Compiler,
    /// A stranger's program.
    Program,
    /// The grader itself, which tries to get out.
    #[default]
    Probe,
}

/// So many times its CPU time a program may take on the clock.
pub const PATIENCE: u64 = 10;

/// What may be used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds of CPU time of a process.
    pub cpu_seconds: u64,
    /// Seconds on the clock: for those that sleep, and on a machine that does much else.
    pub clock_seconds: u64,
    /// Bytes of address space of a process.
    pub memory: u64,
    /// Bytes of all files in the scratch folder; also the most that is brought out of it.
    pub scratch: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Open files.
    pub files: u64,
    /// Bytes of its output that are kept, of each stream.
    pub output: u64,
}

impl Limits {
    /// The compiler and its linker.
    pub const COMPILER: Limits = Limits {
        cpu_seconds: 120,
        clock_seconds: 120 * PATIENCE,
        memory: 4 << 30,
        scratch: 256 << 20,
        processes: 64,
        files: 256,
        output: 16 << 20,
    };
    /// The program that builds a kernel.
    pub const PROGRAM: Limits = Limits {
        cpu_seconds: 20,
        clock_seconds: 20 * PATIENCE,
        memory: 1 << 30,
        scratch: 80 << 20,
        processes: 1,
        files: 32,
        output: 1 << 20,
    };

    /// With other times.
    pub fn times(self, cpu: Duration, clock: Duration) -> Limits {
        Limits { cpu_seconds: cpu.as_secs().max(1), clock_seconds: clock.as_secs().max(1), ..self }
    }
}

/// A file that is brought out, if the program leaves a plain file of this name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its name in the scratch folder.
    pub name: String,
    /// Where it goes.
    pub to: PathBuf,
}

/// A run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Spec {
    /// What kind of run.
    pub job: Job,
    /// The program, where it sees itself.
    pub program: PathBuf,
    /// Where it lies outside, if that is elsewhere; then it need not be in [`shown`](Spec::shown).
    pub outside: Option<PathBuf>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Arguments for a system that gives no `/proc` to a [`Job::Compiler`].
    pub without_proc: Vec<String>,
    /// Where it starts; empty: in the scratch folder.
    pub folder: PathBuf,
    /// Files and folders that it sees, at the same paths, and cannot change.
    pub shown: Vec<PathBuf>,
    /// Variables of its environment, beside `PATH`, `LC_ALL` and `TMPDIR`.
    pub environment: Vec<(String, String)>,
    /// What is brought out.
    pub outputs: Vec<Output>,
    /// What it may use up.
    pub limits: Limits,
    /// A folder that does not exist yet and that nobody else uses: the sandbox is put together there. Beside it, what the sandbox says.
    pub stage: PathBuf,
    /// A file that is copied into the scratch folder, and its name there.
    pub input: Option<(PathBuf, String)>,
    /// The account that the program gets, unless it has processes already: then, and without one, one is drawn. None in a user namespace.
    pub account: Option<u32>,
    /// What must be enforced; `None`: what can be, which is for the probe alone. Filled in by the cage.
    pub required: Option<Enforced>,
    /// The process that started the sandbox. Filled in by the cage.
    pub parent: u32,
    /// The namespaces that it has. Filled in by the sandbox.
    pub namespaces: Vec<String>,
    /// The limit on processes holds: it does not for the machine's own root. Filled in by the sandbox.
    pub process_limit: bool,
}

impl Spec {
    /// As the argument of the hidden commands.
    pub(super) fn to_json(&self) -> String {
        // Plain data with text keys: it cannot fail. An empty text would be refused on the other side.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the argument of the hidden commands.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn from_arguments(arguments: &[OsString]) -> Result<Spec, String> {
        let usage = || "this command is the grader's own; it takes what `Spec` holds as JSON".to_string();
        let [spec] = arguments else { return Err(usage()) };
        serde_json::from_str(spec.to_str().ok_or_else(usage)?).map_err(|_| usage())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_folder_that_hand_ins_see_is_refused() {
        for shown in ["/usr/lib/class", "/usr/local/lib/judge/not/there", "/usr/local/lib/../lib/x", "/lib/grades"] {
            let why = hidden("the grades", Path::new(shown)).expect_err(shown);
            assert!(why.contains(shown) && why.contains("\n  try: "), "{why}");
        }
        let folder = tempfile::tempdir().unwrap();
        hidden("the grades", folder.path()).expect("it is seen by nobody");
        #[cfg(unix)]
        {
            let link = folder.path().join("class");
            std::os::unix::fs::symlink("/usr/lib", &link).unwrap();
            hidden("the hand-ins", &link.join("anna")).expect_err("it leads there");
        }
    }
}
