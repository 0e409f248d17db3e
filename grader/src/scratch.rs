//! Builds the kernel of a hand-in: the workspace's own step crate, with the one file replaced, in a workspace of its own.
//!
//! Manifest, `lib.rs` and the program are ours; a hand-in brings `kernel.rs` and nothing else. The target folder is shared by all
//! hand-ins, so what they depend on is compiled once.

use crate::handin::Kernel;
use harness::diagnostics::Sources;
use harness::workbook::name;
use harness::{BuildFailure, Emitted};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

/// The longest that cargo may take: the first build compiles what all hand-ins depend on.
const BUILD_LIMIT: Duration = Duration::from_secs(600);
/// The longest that building a kernel's PTX may take.
const EMIT_LIMIT: Duration = Duration::from_secs(20);
/// Scratch crates that are older were left by a grader that was killed: grading one takes minutes.
const LEFT_OVER: Duration = Duration::from_secs(24 * 60 * 60);
/// What is read of cargo's output.
const MAX_OUTPUT: u64 = 16 << 20;
/// What is shown of the compiler's errors.
const MAX_ERROR_LINES: usize = 60;

/// A built hand-in. Its scratch crate and what was compiled for it alone go when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    binary: PathBuf,
    /// Files in the target folder that no other hand-in uses.
    own: Vec<PathBuf>,
    folder: TempDir,
}

impl Scratch {
    /// The kernel source: the built program, in its own process.
    pub fn source(&self) -> Emitted {
        Emitted::new(&self.binary).timeout(EMIT_LIMIT)
    }

    /// Where the lines of Rust are that its PTX names.
    pub fn sources(&self) -> Sources {
        Sources::at(self.folder.path())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for file in &self.own {
            // What is left over costs space in the target folder, nothing else.
            let _ = fs::remove_file(file);
        }
    }
}

/// Why there is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScratchError {
    /// The hand-in does not compile (or takes too long to): this is the student's to see.
    HandIn(BuildFailure),
    /// Something here does not work.
    Here(String),
}

/// Builds a hand-in's kernel. `root` is the checkout of the workbook.
///
/// # Errors
/// See [`ScratchError`].
pub fn build(root: &Path, kernel: &Kernel) -> Result<Scratch, ScratchError> {
    let target = root.join("target/grader");
    let folder = lay_out(root, &target, kernel).map_err(ScratchError::Here)?;
    let offline = cargo(folder.path(), &target, kernel.step, true).map_err(ScratchError::Here)?;
    let output = if offline.lacks_crates() {
        cargo(folder.path(), &target, kernel.step, false).map_err(ScratchError::Here)?
    } else {
        offline
    };
    let no_answer = |message: String| ScratchError::HandIn(BuildFailure::NoAnswer { message });
    if output.timed_out {
        return Err(no_answer(format!("compiling it took longer than {} s and was ended", BUILD_LIMIT.as_secs())));
    }
    if !output.errors.is_empty() {
        let mut lines: Vec<&str> = output.errors.lines().take(MAX_ERROR_LINES + 1).collect();
        if lines.len() > MAX_ERROR_LINES {
            lines[MAX_ERROR_LINES] = "(the compiler says more)";
        }
        return Err(no_answer(format!("it does not compile:\n{}", lines.join("\n"))));
    }
    match output.binary {
        Some(binary) => {
            let own = own_files(&binary, &output.artifacts);
            Ok(Scratch { binary, own, folder })
        }
        None => Err(ScratchError::Here(format!("cargo built no program; it said:\n{}", output.stderr.trim_end()))),
    }
}

/// Writes the scratch workspace. Paths in it are those of a checkout, so that messages name `steps/step01/src/kernel.rs`.
fn lay_out(root: &Path, target: &Path, kernel: &Kernel) -> Result<TempDir, String> {
    let step = name(kernel.step);
    let ours = root.join("steps").join(&step);
    let scratch = target.join("hand-ins");
    fs::create_dir_all(&scratch).map_err(|error| format!("cannot make {}: {error}", scratch.display()))?;
    sweep(&scratch, SystemTime::now());
    let folder = TempDir::new_in(&scratch).map_err(|error| format!("cannot make a scratch folder: {error}"))?;
    let theirs = folder.path().join("steps").join(&step);
    let [src, tests] = ["src", "tests"].map(|sub| theirs.join(sub));
    for path in [&src, &tests] {
        fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
    }
    let write = |path: PathBuf, text: &str| {
        fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    write(folder.path().join("Cargo.toml"), &workspace_manifest(&step))?;
    write(theirs.join("Cargo.toml"), &step_manifest(&step, root, folder.path())?)?;
    write(src.join("kernel.rs"), &kernel.text)?;
    write(tests.join("program.rs"), &program(&step))?;
    for (from, to) in
        [(ours.join("src/lib.rs"), src.join("lib.rs")), (root.join("Cargo.lock"), folder.path().join("Cargo.lock"))]
    {
        fs::copy(&from, &to).map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
    }
    Ok(folder)
}

/// Removes the scratch crates that nobody works in any more.
fn sweep(scratch: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(scratch) else { return };
    for entry in entries.flatten() {
        let made = entry.metadata().and_then(|about| about.modified());
        let age = made.ok().and_then(|made| now.duration_since(made).ok());
        if age.is_some_and(|age| age > LEFT_OVER) {
            // What cannot be removed costs space, nothing else.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The program of a hand-in: it writes down what the kernel function builds, and has no part of the judge in it. It is a test
/// target because cargo gives those a name of their own: programs of other hand-ins do not take its place.
fn program(step: &str) -> String {
    format!("fn main() -> std::process::ExitCode {{\n    emit::main({step}::kernel)\n}}\n")
}

fn workspace_manifest(step: &str) -> String {
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"steps/{step}\"]\n\n[profile.dev]\ndebug = \"line-tables-only\"\n"
    )
}

/// The version is the folder's: cargo takes packages of one name, version and place in their workspaces for the same one, and would
/// give this hand-in what it has compiled of another.
fn step_manifest(step: &str, root: &Path, folder: &Path) -> Result<String, String> {
    let own: String =
        folder.file_name().unwrap_or_default().to_string_lossy().chars().filter(char::is_ascii_alphanumeric).collect();
    let path = |crate_name: &str| {
        let path = root.join(crate_name);
        // JSON strings are TOML strings.
        let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8: cargo cannot name it", path.display()))?;
        serde_json::to_string(text).map_err(|error| error.to_string())
    };
    Ok(format!(
        "[package]\nname = \"{step}\"\nversion = \"0.0.0-{own}\"\nedition = \"2024\"\npublish = false\n\n\
         [lib]\ntest = false\ndoctest = false\n\n\
         [[test]]\nname = \"program\"\nharness = false\n\n\
         [dependencies]\nptx = {{ path = {} }}\nemit = {{ path = {} }}\n\n\
         [lints.rust]\nunsafe_code = \"forbid\"\n",
        path("ptx")?,
        path("harness/emit")?
    ))
}

/// What cargo gave.
#[derive(Debug, Default)]
struct Output {
    timed_out: bool,
    /// The program.
    binary: Option<PathBuf>,
    /// Files that were compiled from the scratch crate.
    artifacts: Vec<PathBuf>,
    /// The compiler's errors, as it prints them.
    errors: String,
    stderr: String,
}

impl Output {
    /// Cargo failed for want of crates that are not on this machine.
    fn lacks_crates(&self) -> bool {
        self.binary.is_none() && self.errors.is_empty() && self.stderr.contains("--offline")
    }
}

fn cargo(folder: &Path, target: &Path, step: u8, offline: bool) -> Result<Output, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["test", "--no-run", "--quiet", "--message-format=json", "-p", &name(step)])
        .args(offline.then_some("--offline"))
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        // Nothing of a hand-in is compiled twice.
        .env("CARGO_INCREMENTAL", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A group of its own: when time is up, the compilers that cargo started must end too.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| format!("cannot start cargo: {error}"))?;
    #[cfg(unix)]
    let _warden = Warden::of(&child);
    let stdout = read(child.stdout.take());
    let stderr = read(child.stderr.take());
    let timed_out = !wait(&mut child, BUILD_LIMIT)?;
    let mut output = Output { timed_out, stderr: stderr.join().unwrap_or_default(), ..Output::default() };
    read_messages(&stdout.join().unwrap_or_default(), folder, &mut output);
    Ok(output)
}

/// A process that ends a group of processes when this one is gone, by whatever way. A group of its own gets no Ctrl-C.
#[cfg(unix)]
struct Warden(Child);

#[cfg(unix)]
impl Warden {
    /// `None` where there is no `sh`: then the group ends by itself.
    fn of(leader: &Child) -> Option<Warden> {
        let mut command = Command::new("sh");
        // The other end of its input is held here. It is closed when this process ends.
        command.args(["-c", "cat > /dev/null; kill -s KILL -- \"-$1\"", "warden", &leader.id().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().ok().map(Warden)
    }
}

#[cfg(unix)]
impl Drop for Warden {
    /// The group has ended: its number may be another's soon.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a pipe to its end, and keeps its beginning.
fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // A pipe that breaks ends the text; cargo's exit says the rest. What is too much is read and dropped, since
            // cargo would stop at a full pipe.
            let _ = pipe.by_ref().take(MAX_OUTPUT).read_to_end(&mut text);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Whether the process ended by itself in time.
fn wait(child: &mut Child, limit: Duration) -> Result<bool, String> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(true),
            Ok(None) if begin.elapsed() < limit => thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                #[cfg(unix)]
                let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
                // It may have ended just now; either way it is gone afterwards.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(false);
            }
            Err(error) => return Err(format!("cannot wait for cargo: {error}")),
        }
    }
}

fn read_messages(text: &str, folder: &Path, output: &mut Output) {
    for message in text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
        let ours = message["manifest_path"].as_str().is_some_and(|path| Path::new(path).starts_with(folder));
        match message["reason"].as_str() {
            Some("compiler-artifact") if ours => {
                let files = message["filenames"].as_array().into_iter().flatten();
                output.artifacts.extend(files.filter_map(|file| file.as_str()).map(PathBuf::from));
                if message["target"]["kind"][0] == "test" {
                    output.binary = message["executable"].as_str().map(PathBuf::from);
                }
            }
            Some("compiler-message") if message["message"]["level"] == "error" => {
                output.errors.push_str(message["message"]["rendered"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }
}

/// Files of the target folder that carry the hash of something compiled from the scratch crate.
fn own_files(binary: &Path, artifacts: &[PathBuf]) -> Vec<PathBuf> {
    let hash = |path: &Path| Some(path.file_stem()?.to_str()?.rsplit_once('-')?.1.to_string());
    let hashes: Vec<String> = artifacts.iter().filter_map(|path| hash(path)).filter(|hash| hash.len() == 16).collect();
    let Some(Ok(entries)) = binary.parent().map(fs::read_dir) else { return Vec::new() };
    let mine = |path: &PathBuf| hash(path).is_some_and(|hash| hashes.contains(&hash));
    entries.flatten().map(|entry| entry.path()).filter(mine).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};

    fn sleeper() -> Child {
        // A process of the group that is not its leader ends, too.
        Command::new("sh").args(["-c", "sleep 60; true"]).process_group(0).spawn().unwrap()
    }

    #[test]
    fn a_group_ends_with_who_started_it_and_not_before() {
        let mut group = sleeper();
        drop(Warden::of(&group).unwrap());
        assert_eq!(group.try_wait().unwrap(), None, "a warden that is dismissed does nothing");
        let mut warden = Warden::of(&group).unwrap();
        thread::sleep(Duration::from_millis(200));
        assert_eq!(group.try_wait().unwrap(), None);
        // As when this process ends.
        drop(warden.0.stdin.take());
        assert_eq!(group.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn what_a_killed_grader_left_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let left = scratch.path().join(".tmpAbc/steps");
        fs::create_dir_all(&left).unwrap();
        let now = SystemTime::now();
        sweep(scratch.path(), now + LEFT_OVER / 2);
        assert!(left.exists());
        sweep(scratch.path(), now + LEFT_OVER + Duration::from_secs(60));
        assert!(!scratch.path().join(".tmpAbc").exists() && scratch.path().exists());
    }
}
