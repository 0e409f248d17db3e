//! Compiles the kernel of a hand-in: the workbook's own step crate, with the one file replaced.
//!
//! `lib.rs` and the program are ours; a hand-in brings `kernel.rs` and nothing else. Its crates are compiled already
//! ([`Toolchain`]), so that rustc is all that runs, and it runs in the [`Cage`]. So does the program that comes out of it.

use crate::handin::Kernel;
use crate::head;
use crate::locks::Folder;
use crate::rustc_says;
use crate::sandbox::{Cage, End, Job, Limits, Output, PATIENCE, PROGRAM, Ran, Spec};
use crate::toolchain::Toolchain;
use harness::answers::plain;
use harness::diagnostics::Sources;
use harness::workbook::name;
use harness::{BuildFailure, Cause, Emitted, Ending, Unbuilt, Whose, emitted};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is shown of the compiler's errors.
const MAX_ERROR_LINES: usize = 60;
const MAX_ERROR_BYTES: usize = 64 << 10;

/// How long a hand-in may take: CPU time. A busy machine is nobody's fault.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// Its compilation.
    pub compile: Duration,
    /// Building a kernel's PTX.
    pub emit: Duration,
    /// On the clock, so many times as long.
    pub patience: u32,
}

impl Default for TimeLimits {
    fn default() -> TimeLimits {
        TimeLimits {
            compile: Duration::from_secs(Limits::COMPILER.cpu_seconds),
            emit: Duration::from_secs(Limits::PROGRAM.cpu_seconds),
            patience: PATIENCE as u32,
        }
    }
}

impl TimeLimits {
    fn compiler(self) -> Limits {
        Limits::COMPILER.times(self.compile, self.compile * self.patience)
    }

    fn program(self) -> Limits {
        Limits::PROGRAM.times(self.emit, self.emit * self.patience)
    }
}

/// A built hand-in. Its scratch folder goes when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    program: PathBuf,
    cage: Cage,
    limits: Limits,
    folder: Folder,
}

impl Scratch {
    /// The kernel source: the built program, in its own process.
    pub fn source(&self) -> Emitted {
        let spec = Spec {
            job: Job::Program,
            program: PathBuf::from(PROGRAM),
            outside: Some(self.program.clone()),
            limits: self.limits,
            ..Spec::default()
        };
        let cage = self.cage.clone();
        let ask = move |request: &Path, answer: &Path| cage.run(&spec.clone().asks(&cage, request, answer)).map(asked);
        // Beside the program: what is left there is removed when nobody holds it any more.
        Emitted::by(ask).within(self.folder.path())
    }

    /// Where the lines of Rust are that its PTX names.
    pub fn sources(&self) -> Sources {
        Sources::at(self.folder.path())
    }
}

/// What the judge is told of a program that was asked for a kernel.
fn asked(ran: Ran) -> emitted::Asked {
    let end = match (ran.too_long(), ran.failure()) {
        (Some(limit), _) => emitted::End::TookTooLong(limit),
        (None, Some(how)) => emitted::End::Failed(how),
        (None, None) => emitted::End::Well,
    };
    // These are the sandbox's words, and not the program's.
    let not_taken = ran.not_taken.into_iter().next();
    emitted::Asked { end, stdout: ran.stdout, stderr: ran.stderr, not_taken }
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
    let tried = || -> Result<Result<Scratch, Ran>, ScratchError> {
        let (folder, mut ran) = compile(toolchain, cage, kernel, limits).map_err(ScratchError::Here)?;
        ran.stderr = without_places(&ran.stderr, &[folder.path(), &toolchain.root, &toolchain.sysroot]);
        let program = folder.path().join("program");
        let is_there = ran.end == End::Exited(0) && program.is_file();
        Ok(if is_there {
            Ok(Scratch { program, cage: cage.clone(), limits: limits.program(), folder })
        } else {
            Err(ran)
        })
    };
    let ended = |says: Unbuilt, ending: Option<Ending>| {
        ScratchError::HandIn(BuildFailure::NoAnswer { message: says.text.clone(), ending, says: Some(Box::new(says)) })
    };
    let too_long = |limit: String| {
        let message = format!("compiling it took longer than {limit} and was ended");
        ended(Unbuilt::new(Cause::NoAnswer, message), Some(Ending::TooLong(Whose::Compiler, limit)))
    };
    match tried()? {
        Ok(scratch) => return Ok(scratch),
        Err(ran) => ran.too_long().map_or(Ok(()), |limit| Err(too_long(limit)))?,
    }
    // What failed may have been this machine, for a moment: the compiler must work on another text, and then fail on this one again.
    control(toolchain, cage, kernel.step, limits).map_err(ScratchError::Here)?;
    let ran = match tried()? {
        Ok(scratch) => return Ok(scratch),
        Err(ran) => ran,
    };
    if let Some(limit) = ran.too_long() {
        return Err(too_long(limit));
    }
    // What a compiler says when it is ended is of use to those who make it.
    let says = match (ran.end, ran.failure()) {
        (End::Signalled(_), Some(how)) => {
            let message = format!(
                "it does not compile: the compiler was {how}\n  \
                 try: Look for macros, constants or statics that grow without bound; a kernel needs less than {} MiB to compile.",
                Limits::COMPILER.memory >> 20
            );
            return Err(ended(Unbuilt::new(Cause::NotCompiled, message), Some(Ending::Failed(Whose::Compiler, how))));
        }
        (_, None) => {
            let why = ran.not_taken.first().map_or("there is none", String::as_str);
            let message = format!(
                "it compiles, and its program cannot be taken: {why}\n  try: Look for tables that are built into it."
            );
            Unbuilt::new(Cause::NoAnswer, message)
        }
        _ => head::wrong(kernel, &ran.stderr)
            .unwrap_or_else(|| rustc_says::unbuilt(kernel.step, &plain(&shortened(&ran.stderr)))),
    };
    Err(ended(says, None))
}

/// Runs the compiler on a kernel in a scratch folder. An error is this machine's.
fn compile(toolchain: &Toolchain, cage: &Cage, kernel: &Kernel, limits: TimeLimits) -> Result<(Folder, Ran), String> {
    let folder = lay_out(toolchain, kernel)?;
    let spec = rustc(toolchain, cage, folder.path(), kernel.step)?;
    let ran = cage.run(&Spec { limits: limits.compiler(), ..spec })?;
    Ok((folder, ran))
}

/// A compiler that fails may want for memory, processes, or a file that somebody removed, and its words do not tell: then it fails on
/// this text, too.
fn control(toolchain: &Toolchain, cage: &Cage, step: u8, limits: TimeLimits) -> Result<(), String> {
    let text = "pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}\n".to_string();
    let kernel = Kernel { step, path: PathBuf::from("kernel.rs"), text };
    let (_folder, ran) = compile(toolchain, cage, &kernel, limits)?;
    match ran.failure() {
        None => Ok(()),
        Some(how) => Err(format!(
            "the compiler fails here, and not on this hand-in alone: of an empty kernel it says ({how}):\n{}",
            plain(&shortened(&ran.stderr))
        )),
    }
}

/// The compiler on a scratch folder. Paths in messages are those of a checkout: it starts in a folder that is laid out like one.
fn rustc(toolchain: &Toolchain, cage: &Cage, folder: &Path, step: u8) -> Result<Spec, String> {
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
    arguments.push(format!("-Ldependency={}", text(&toolchain.crates.folder)));
    arguments.extend(
        toolchain
            .crates
            .named
            .iter()
            .flat_map(|(name, file)| ["--extern".to_string(), format!("{name}={}", text(file))]),
    );
    arguments.extend(["-o".to_string(), text(&work.join("program")), format!("steps/{step}/src/lib.rs")]);
    let mut shown = toolchain.compiler()?;
    shown.extend([toolchain.crates.folder.clone(), folder.join("steps")]);
    Ok(Spec {
        job: Job::Compiler,
        program: toolchain.rustc(),
        arguments,
        folder: folder.to_path_buf(),
        without_proc: vec!["-Clinker-features=-lld".to_string()],
        // The loader would find the compiler's libraries by /proc.
        environment: vec![("LD_LIBRARY_PATH".to_string(), text(&toolchain.sysroot.join("lib")))],
        shown,
        outputs: vec![Output { name: "program".to_string(), to: folder.join("program") }],
        limits: Limits::COMPILER,
        stage: folder.join("stage"),
        ..Spec::default()
    })
}

/// Words of the compiler without where these folders lie: that is no matter of who reads them, and another each time.
fn without_places(words: &str, folders: &[&Path]) -> String {
    folders.iter().fold(words.to_string(), |words, folder| words.replace(&format!("{}/", folder.display()), ""))
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
fn lay_out(toolchain: &Toolchain, kernel: &Kernel) -> Result<Folder, String> {
    let step = name(kernel.step);
    let folder = Folder::make(&toolchain.scratch)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use harness::{KernelSource, Problem};

    #[test]
    fn words_of_the_sandbox_are_not_said_to_be_the_programs() {
        let ran = Ran {
            end: End::Exited(0),
            cpu_seconds: 0.1,
            cpu_limit: 20,
            seconds: 0.1,
            stdout: String::new(),
            stderr: "out of cheese\n".to_string(),
            not_taken: vec!["`answer.json` is not a plain file of at most 80 MiB".to_string()],
        };
        let why = |ran: &Ran| {
            let ran = ran.clone();
            let source = Emitted::by(move |_, _| Ok(asked(ran.clone())));
            match source.build(&Problem::f16(128, 128, 64), 148) {
                Err(BuildFailure::NoAnswer { message, .. }) => message,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            why(&ran),
            "the answer is not taken: `answer.json` is not a plain file of at most 80 MiB; \
             it said:\nout of cheese\n  try: Let the kernel function return, and leave the answer to the workbook."
        );
        let ran = Ran { end: End::Exited(3), ..ran };
        assert!(!why(&ran).contains("answer.json"), "{}", why(&ran));
        let ran = Ran { end: End::Exited(0), stderr: String::new(), not_taken: Vec::new(), ..ran };
        assert!(!why(&ran).contains("it said"), "{}", why(&ran));
    }
}
