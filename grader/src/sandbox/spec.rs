//! What is run in a sandbox: the program, what it sees, what it may use up, what is taken out.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The one folder that a locked program can write to.
pub const WORK: &str = "/hand-in-scratch";
/// The file in which the outer process tells of a run, beside the answer.
pub const TOLD: &str = "told.json";
/// Where the compiler sees its own processes.
pub(super) const PROC: &str = "/proc";
/// Where a locked program looks for others.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What each program sees of the system: libraries.
pub(super) const LIBRARIES: [&str; 7] =
    ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/nix/store"];
/// What the compiler sees beside them: the linker.
pub(super) const TOOLS: [&str; 5] = ["/bin", "/usr/bin", "/usr/libexec", "/usr/local/bin", "/etc/alternatives"];

/// Whether every locked program sees a path.
pub fn is_shown(path: &Path) -> bool {
    LIBRARIES.iter().chain(&TOOLS).any(|folder| path.starts_with(folder))
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

/// What may be used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds of CPU time of a process.
    pub cpu_seconds: u64,
    /// Bytes of address space of a process.
    pub memory: u64,
    /// Bytes of all files in the scratch folder; also the most that is brought out of it.
    pub scratch: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Open files.
    pub files: u64,
    /// Seconds that it may sleep; 0: it may as long as it likes, since it waits for what it started.
    pub asleep_seconds: u64,
    /// Seconds from its begin to its end. Generous: a machine with much to do takes longer, and that is nobody's fault.
    pub wall_seconds: u64,
}

impl Limits {
    /// The compiler and its linker.
    pub const COMPILER: Limits =
        Limits { memory: 4 << 30, scratch: 256 << 20, processes: 64, files: 256, ..Limits::NONE }.of_time(120, false);
    /// The program that builds a kernel.
    pub const PROGRAM: Limits =
        Limits { memory: 1 << 30, scratch: 80 << 20, processes: 1, files: 32, ..Limits::NONE }.of_time(20, true);
    const NONE: Limits =
        Limits { cpu_seconds: 0, memory: 0, scratch: 0, processes: 0, files: 0, asleep_seconds: 0, wall_seconds: 0 };
    /// How much longer than its CPU time a run may take.
    const PATIENCE: u64 = 10;

    /// The same with so much CPU time, and as much sleep if it is one process that has nothing to wait for.
    pub const fn of_time(self, cpu_seconds: u64, alone: bool) -> Limits {
        let asleep_seconds = if alone { cpu_seconds } else { 0 };
        Limits { cpu_seconds, asleep_seconds, wall_seconds: cpu_seconds * Limits::PATIENCE, ..self }
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
    /// The program.
    pub program: PathBuf,
    /// Its arguments. A request for a kernel, `--emit REQUEST ANSWER`, may follow the specification on the command line.
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
    /// A folder that does not exist yet and that nobody else uses: the sandbox is put together there. Empty: beside the answer.
    pub stage: PathBuf,
    /// A file that is copied into the scratch folder, and its name there.
    pub input: Option<(PathBuf, String)>,
    /// Where the outer process tells how the run went ([`super::Told`]): a path that the program does not see. Empty: beside the answer.
    pub told: PathBuf,
    /// The process that waits for this run: without it, it ends.
    pub grader: u32,
    /// The account that the program gets; none in a user namespace. Filled in by the sandbox.
    pub account: Option<u32>,
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

    /// Reads the argument of the hidden commands. `--emit REQUEST ANSWER` behind it, paths outside of the sandbox, becomes the same
    /// with paths inside, a file that is copied in, and one that is brought out.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn from_arguments(arguments: &[OsString]) -> Result<Spec, String> {
        let usage = || "this command is the grader's own; it takes what `Spec` holds as JSON".to_string();
        let [spec, rest @ ..] = arguments else { return Err(usage()) };
        let mut spec: Spec = serde_json::from_str(spec.to_str().ok_or_else(usage)?).map_err(|_| usage())?;
        match rest {
            [] => {}
            [emit, request, answer] if emit == "--emit" => {
                let answer = PathBuf::from(answer);
                if spec.stage.as_os_str().is_empty() {
                    spec.stage = answer.with_file_name("stage");
                }
                if spec.told.as_os_str().is_empty() {
                    spec.told = answer.with_file_name(TOLD);
                }
                spec.arguments =
                    ["--emit".to_string(), format!("{WORK}/request.json"), format!("{WORK}/answer.json")].to_vec();
                spec.input = Some((PathBuf::from(request), "request.json".to_string()));
                spec.outputs.push(Output { name: "answer.json".to_string(), to: answer });
            }
            _ => return Err(usage()),
        }
        Ok(spec)
    }
}
