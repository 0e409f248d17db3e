//! Compiles the kernel of a hand-in: the workbook's own step crate, with the one file replaced.
//!
//! `lib.rs` and the program are ours; a hand-in brings `kernel.rs` and nothing else. Its crates are compiled already
//! ([`Toolchain`]), so that rustc is all that runs, and it runs in the [`Cage`]. So does the program that comes out of it.

use crate::children;
use crate::handin::Kernel;
use crate::sandbox::{Cage, Job, Limits, Output, Spec, TOLD, Told};
use crate::toolchain::Toolchain;
use harness::answers::plain;
use harness::diagnostics::Sources;
use harness::workbook::name;
use harness::{BuildFailure, Emitted, Ending};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Scratch folders that are older were left by a grader that was killed: grading one hand-in takes minutes.
const LEFT_OVER: Duration = Duration::from_secs(24 * 60 * 60);
/// What is shown of the compiler's errors.
const MAX_ERROR_LINES: usize = 60;
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Exit status of a program that a signal ended: more than this.
const SIGNALLED: i32 = 128;

/// How much CPU time a hand-in may take. In a sandbox the time of a clock does not count: a machine with much to do takes longer.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// Its compilation.
    pub compile: Duration,
    /// Building a kernel's PTX.
    pub emit: Duration,
}

impl Default for TimeLimits {
    fn default() -> TimeLimits {
        TimeLimits { compile: Duration::from_secs(120), emit: Duration::from_secs(20) }
    }
}

/// A built hand-in. Its scratch folder goes when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    program: PathBuf,
    cage: Cage,
    emit: Duration,
    folder: TempDir,
}

impl Scratch {
    /// The kernel source: the built program, in its own process.
    pub fn source(&self) -> Emitted {
        let seconds = self.emit.as_secs().max(1);
        let limits = Limits::PROGRAM.of_time(seconds, true);
        let spec = Spec {
            job: Job::Program,
            program: self.program.clone(),
            shown: vec![self.program.clone()],
            limits,
            ..Spec::default()
        };
        let cage = self.cage.clone();
        let (wall, locked) = wall(&cage, self.emit, &limits);
        let emitted = Emitted::from_command(move || cage.command(&spec)).timeout(wall);
        if !locked {
            return emitted;
        }
        emitted.ending(move |folder| match Told::read(&folder.join(TOLD)) {
            Err(why) => Ending::Here(why),
            Ok(told) => match told.failure() {
                Some(why) => Ending::Here(why),
                None if told.took_too_long(seconds) => Ending::TookTooLong(format!("{seconds} s")),
                None => Ending::ByItself,
            },
        })
    }

    /// Where the lines of Rust are that its PTX names.
    pub fn sources(&self) -> Sources {
        Sources::at(self.folder.path())
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

/// Compiles a hand-in's kernel.
///
/// # Errors
/// See [`ScratchError`].
pub fn build(toolchain: &Toolchain, cage: &Cage, kernel: &Kernel, limits: TimeLimits) -> Result<Scratch, ScratchError> {
    let folder = lay_out(toolchain, kernel).map_err(ScratchError::Here)?;
    let program = folder.path().join("program");
    let seconds = limits.compile.as_secs().max(1);
    let spec = Spec {
        limits: Limits::COMPILER.of_time(seconds, false),
        told: folder.path().join(TOLD),
        ..rustc(toolchain, cage, folder.path(), kernel.step)
    };
    let (wall, locked) = wall(cage, limits.compile, &spec.limits);
    let said = children::run(&mut cage.command(&spec), wall).map_err(ScratchError::Here)?;
    let no_answer = |message: String| ScratchError::HandIn(BuildFailure::NoAnswer { message });
    let mut too_long = said.timed_out;
    if locked {
        let told = Told::read(&spec.told).map_err(ScratchError::Here)?;
        if let Some(why) = told.failure() {
            return Err(ScratchError::Here(why));
        }
        too_long = told.took_too_long(seconds);
    }
    if too_long {
        return Err(no_answer(format!("compiling it took longer than {seconds} s and was ended")));
    }
    match said.code {
        Some(0) if program.is_file() => Ok(Scratch { program, cage: cage.clone(), emit: limits.emit, folder }),
        // What a compiler says then is of use to those who make it.
        Some(code) if code > SIGNALLED => {
            let end = said.stderr.trim_end().lines().last().unwrap_or_default();
            let end = end.strip_prefix("sandbox: the program was ended").unwrap_or(end);
            Err(no_answer(format!(
                "it does not compile: the compiler was ended{}\n  \
                 try: Look for macros, constants or statics that grow without bound; a kernel needs less than {} MiB to compile.",
                plain(end),
                Limits::COMPILER.memory >> 20
            )))
        }
        _ => Err(no_answer(format!("it does not compile:\n{}", plain(&shortened(&said.stderr))))),
    }
}

/// The longest that a run may take by the clock, and whether it is locked in: then it is ended, and judged, by its sandbox.
fn wall(cage: &Cage, limit: Duration, limits: &Limits) -> (Duration, bool) {
    const MARGIN: Duration = Duration::from_secs(60);
    match cage {
        Cage::Locked { .. } => (Duration::from_secs(limits.wall_seconds) + MARGIN, true),
        Cage::Open => (limit, false),
    }
}

/// The compiler on a scratch folder. Paths in messages are those of a checkout: it starts in a folder that is laid out like one.
fn rustc(toolchain: &Toolchain, cage: &Cage, folder: &Path, step: u8) -> Spec {
    let step = name(step);
    let text = |path: &Path| path.display().to_string();
    let work = cage.work(folder);
    let mut arguments = [
        "--edition=2024",
        "--crate-type=bin",
        "--color=never",
        "--diagnostic-width=120",
        // Half-done work has unused names; only errors are shown.
        "-Awarnings",
        "-Funsafe_code",
        // The places that PTX names do not come from here.
        "-Cdebuginfo=0",
        "-Ccodegen-units=4",
    ]
    .map(str::to_string)
    .to_vec();
    arguments.push(format!("--crate-name={step}"));
    // It would look for it in /proc, which it does not see.
    arguments.push(format!("--sysroot={}", text(&toolchain.sysroot)));
    arguments.push(format!("-Ldependency={}", text(&toolchain.folder)));
    arguments.extend(
        toolchain.crates.iter().flat_map(|(name, file)| ["--extern".to_string(), format!("{name}={}", text(file))]),
    );
    arguments.extend(["-o".to_string(), text(&work.join("program")), format!("steps/{step}/src/lib.rs")]);
    Spec {
        job: Job::Compiler,
        program: toolchain.rustc(),
        arguments,
        folder: folder.to_path_buf(),
        without_proc: vec!["-Clinker-features=-lld".to_string()],
        // The loader would find the compiler's libraries by /proc.
        environment: vec![("LD_LIBRARY_PATH".to_string(), text(&toolchain.sysroot.join("lib")))],
        // Of the toolchain's folder no more than it needs: a distribution's is /usr.
        shown: vec![toolchain.rustc(), toolchain.sysroot.join("lib"), toolchain.folder.clone(), folder.join("steps")],
        outputs: vec![Output { name: "program".to_string(), to: folder.join("program") }],
        limits: Limits::COMPILER,
        stage: folder.join("stage"),
        ..Spec::default()
    }
}

/// The beginning of the compiler's errors.
fn shortened(errors: &str) -> String {
    let mut end = errors.len().min(MAX_ERROR_BYTES);
    while !errors.is_char_boundary(end) {
        end -= 1;
    }
    let mut lines: Vec<&str> = errors[..end].trim_end().lines().take(MAX_ERROR_LINES + 1).collect();
    if lines.len() > MAX_ERROR_LINES {
        lines.truncate(MAX_ERROR_LINES);
    }
    if lines.len() < errors.trim_end().lines().count() {
        lines.push("(the compiler says more)");
    }
    lines.join("\n")
}

/// Writes the scratch folder: a step's sources, laid out as in a checkout.
fn lay_out(toolchain: &Toolchain, kernel: &Kernel) -> Result<TempDir, String> {
    let step = name(kernel.step);
    sweep(&toolchain.scratch, SystemTime::now());
    let folder =
        TempDir::new_in(&toolchain.scratch).map_err(|error| format!("cannot make a scratch folder: {error}"))?;
    let source = folder.path().join("steps").join(&step).join("src");
    fs::create_dir_all(&source).map_err(|error| format!("cannot make {}: {error}", source.display()))?;
    let ours = toolchain.root.join("steps").join(&step).join("src/lib.rs");
    let ours = fs::read_to_string(&ours).map_err(|error| format!("cannot read {}: {error}", ours.display()))?;
    let main = "\nfn main() -> std::process::ExitCode {\n    emit::main(kernel)\n}\n";
    for (file, text) in [("lib.rs", ours + main), ("kernel.rs", kernel.text.clone())] {
        let path = source.join(file);
        let failed = |error| format!("cannot write {}: {error}", path.display());
        fs::write(&path, text).map_err(failed)?;
        // The compiler runs under another account. It reads them in the sandbox only: the scratch folder is closed to others.
        open_to_others(&path, 0o644).map_err(failed)?;
    }
    for path in source.ancestors().take(3) {
        open_to_others(path, 0o755).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    }
    Ok(folder)
}

#[cfg(unix)]
fn open_to_others(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// There is no sandbox there, so no other account.
#[cfg(not(unix))]
fn open_to_others(_: &Path, _: u32) -> std::io::Result<()> {
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

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
