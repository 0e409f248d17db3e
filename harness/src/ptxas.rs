//! The assembler's judgement: whether the text assembles for its target, and what the machine code takes.

use crate::process;
use crate::source::Place;
use device::Target;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

/// What the machine code takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of static shared memory.
    pub static_shared: u32,
    /// Bytes of a thread's stack.
    pub stack: u32,
    /// Bytes of registers that are stored to memory and loaded again.
    pub spills: u32,
}

/// What the assembler makes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What the machine code takes.
    pub usage: Usage,
    /// The ELF file that it writes.
    pub elf: Vec<u8>,
}

/// A line of the text that does not assemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssemblerError {
    /// Line of PTX, from 1; 0 when the assembler names none.
    pub line: u32,
    /// What the assembler says.
    pub message: String,
    /// The line of Rust that wrote it, from the `.loc` in force.
    pub source: Option<Place>,
}

/// Why the assembler gave no answer, or that it refused the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is none, or another program in its place: how to get it.
    Unavailable(String),
    /// It did not come to its end in time, and was ended: that says neither.
    TookTooLong(String),
    /// It does not work on this machine: that says nothing of the text.
    Here(String),
    /// It refuses the text.
    Refused(Vec<AssemblerError>),
}

/// The largest kernel takes a second; a machine that does much else takes longer.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How to get the assembler.
/// As the README says it, from the workbook's folder.
const HOW: &str = "`pip install --no-deps --target target/cuda nvidia-cuda-nvcc` brings it; then `export \
                   PTXAS=$PWD/target/cuda/nvidia/cu13/bin/ptxas`";

/// Finds `ptxas`: `PTXAS`, then `CUDA_HOME/bin`, then `PATH`.
///
/// # Errors
/// When there is none: where was looked, and how to get it.
pub fn find() -> Result<PathBuf, String> {
    const NAME: &str = if cfg!(windows) { "ptxas.exe" } else { "ptxas" };
    if let Some(path) = env::var_os("PTXAS").filter(|path| !path.is_empty()).map(PathBuf::from) {
        return if path.is_file() { Ok(path) } else { Err(format!("PTXAS={} is no file; {HOW}", path.display())) };
    }
    let cuda = env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    cuda.into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join(NAME))
        .find(|path| path.is_file())
        .ok_or_else(|| format!("no ptxas in CUDA_HOME/bin or PATH; {HOW}"))
}

/// What PTX text is assembled for.
pub fn target(ptx: &str) -> String {
    Target::of(ptx).map_or("sm_100a".to_string(), |target| target.to_string())
}

/// Assembles PTX text for the target that it names; for sm_100a if it names none.
///
/// An answer without a line of the text (a crash, "fatal", no end) may come from this machine, which lacks memory or a file: then the
/// same is asked again, and the text is to blame only if it fails again and a text that is known to assemble does not.
///
/// # Errors
/// [`Failure`].
pub fn assemble(ptx: &str) -> Result<Usage, Failure> {
    object(ptx).map(|object| object.usage)
}

/// The same, with the file that the assembler writes.
///
/// # Errors
/// [`Failure`].
pub fn object(ptx: &str) -> Result<Object, Failure> {
    let ptxas = find().map_err(Failure::Unavailable)?;
    assemble_with(&ptxas, ptx, TIMEOUT)
}

/// The same with this assembler.
fn assemble_with(ptxas: &Path, ptx: &str, timeout: Duration) -> Result<Object, Failure> {
    /// Assembles on every target that this workbook knows.
    const KNOWN: &str = ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry known()\n{\n    ret;\n}\n";
    let answer = match attempt(ptxas, ptx, timeout)? {
        Answer::Failed(_) => attempt(ptxas, ptx, timeout)?,
        answer => answer,
    };
    let how = match answer {
        Answer::Object(object) => return Ok(object),
        Answer::Refused(errors) => return Err(Failure::Refused(errors)),
        Answer::Silent(why) => return Err(Failure::Unavailable(why)),
        Answer::Failed(how) => how,
    };
    match attempt(ptxas, KNOWN, timeout)? {
        Answer::Object(_) => Err(Failure::Refused(vec![AssemblerError { line: 0, message: how, source: None }])),
        Answer::Refused(_) | Answer::Silent(_) | Answer::Failed(_) => {
            Err(Failure::Here(format!("{} fails here on any text: {how}", ptxas.display())))
        }
    }
}

/// What the assembler made of a text.
enum Answer {
    Object(Object),
    /// Lines that it refuses.
    Refused(Vec<AssemblerError>),
    /// It succeeds and does not say what the kernel takes: another program in its place.
    Silent(String),
    /// It names no line: what it says, or how it ended.
    Failed(String),
}

/// Asks the assembler once. An error is this machine's.
fn attempt(ptxas: &Path, ptx: &str, timeout: Duration) -> Result<Answer, Failure> {
    let here = Failure::Here;
    let folder = tempfile::tempdir().map_err(|e| here(format!("cannot make a scratch folder: {e}")))?;
    let (text, machine_code) = (folder.path().join("kernel.ptx"), folder.path().join("kernel.cubin"));
    fs::write(&text, ptx).map_err(|e| here(format!("cannot write {}: {e}", text.display())))?;
    let mut command = Command::new(ptxas);
    let target = target(ptx);
    command.arg(format!("-arch={target}")).arg("-v").arg(&text).arg("-o").arg(&machine_code);
    let ended = match process::run_in(&mut command, Some(folder.path()), timeout) {
        Ok(ended) => ended,
        // Once: what takes so long takes as long again.
        Err(process::Failure::TookTooLong(seconds)) => {
            return Err(Failure::TookTooLong(format!(
                "ptxas took longer than {seconds} s and was ended; look for a text that is far longer than its kernel needs"
            )));
        }
        Err(failure) => return Err(here(failure.to_string())),
    };
    let said = format!("{}{}", ended.stderr, ended.stdout);
    if ended.success {
        // Another program in its place may write none: then it does not say what the kernel takes, either.
        let elf = fs::read(&machine_code).unwrap_or_default();
        return Ok(usage(&said).map_or_else(
            || {
                let said = match said.trim() {
                    "" => "nothing".to_string(),
                    text => format!("`{}`", text.lines().next().unwrap_or_default()),
                };
                let name = ptxas.display();
                Answer::Silent(format!(
                    "{name} does not say how many registers the kernel takes, it printed {said}; {HOW}"
                ))
            },
            |usage| Answer::Object(Object { usage, elf }),
        ));
    }
    let errors = errors(&said, ptx);
    if !errors.is_empty() {
        return Ok(Answer::Refused(errors));
    }
    Ok(Answer::Failed(match fatal(&said) {
        Some(fatal) => fatal,
        None => format!("it ended with {}", ended.status),
    }))
}

/// Reads what `ptxas -v` says: `Used 40 registers, used 1 barriers, 1024 bytes smem` and
/// `0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads`. `None`: it says nothing of registers.
fn usage(said: &str) -> Option<Usage> {
    let mut usage = Usage::default();
    let mut told = false;
    for line in said.lines() {
        // `ptxas info    : ` stands before the first kind of line.
        let line = line.strip_prefix("ptxas info").map_or(line, |rest| rest.trim_start().trim_start_matches(':'));
        for part in line.split(',').map(str::trim) {
            let part = part.strip_prefix("Used ").unwrap_or(part);
            let Some((number, what)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u32>() else { continue };
            match what {
                "registers" => {
                    usage.registers = usage.registers.max(number);
                    told = true;
                }
                "bytes smem" => usage.static_shared = usage.static_shared.max(number),
                "bytes stack frame" => usage.stack = usage.stack.max(number),
                "bytes spill stores" | "bytes spill loads" => usage.spills = usage.spills.max(number),
                _ => {}
            }
        }
    }
    told.then_some(usage)
}

/// Reads `ptxas FILE, line N; error   : TEXT`.
fn errors(said: &str, ptx: &str) -> Vec<AssemblerError> {
    let mut found: Vec<AssemblerError> = Vec::new();
    for line in said.lines() {
        let Some((place, rest)) = line.split_once("; error") else { continue };
        let Some(number) = place.rsplit("line ").next().and_then(|number| number.trim().parse::<u32>().ok()) else {
            continue;
        };
        let message = rest.trim_start().trim_start_matches(':').trim().to_string();
        found.push(AssemblerError { line: number, message, source: source(ptx, number) });
    }
    found
}

/// Reads `ptxas fatal   : TEXT`, which names no line.
fn fatal(said: &str) -> Option<String> {
    let line = said.lines().find_map(|line| line.strip_prefix("ptxas fatal").or(line.strip_prefix("ptxas error")))?;
    Some(line.trim_start().trim_start_matches(':').trim().to_string())
}

/// The line of Rust that the `.loc` in force at this line of PTX names.
pub fn source(ptx: &str, line: u32) -> Option<Place> {
    let mut files: Vec<(&str, &str)> = Vec::new();
    let mut loc = None;
    for (index, text) in ptx.lines().enumerate() {
        let text = text.trim();
        let mut words = text.split_whitespace();
        match words.next() {
            // `.file` may stand after the text that it serves.
            Some(".file") => {
                if let (Some(number), Some(name)) = (words.next(), text.split('"').nth(1)) {
                    files.push((number, name));
                }
            }
            Some(".loc") if index < line as usize => loc = Some((words.next()?, words.next()?, words.next()?)),
            _ => {}
        }
    }
    let (file, line, column) = loc?;
    let (_, name) = files.iter().find(|(number, _)| *number == file)?;
    let number = |text: &str| text.trim_matches([',', ';']).parse().ok();
    Some(Place { file: (*name).to_string(), line: number(line)?, column: number(column)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "ptxas info    : 0 bytes gmem\n\
        ptxas info    : Compiling entry function 'kernel' for 'sm_100a'\n\
        ptxas info    : Function properties for kernel\n    \
            16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
        ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem\n\
        ptxas info    : Compile time = 3.000 ms\n";

    #[test]
    fn reads_what_ptxas_says() {
        assert_eq!(usage(SAID), Some(Usage { registers: 40, static_shared: 1024, stack: 16, spills: 12 }));
        // Another program in its place, that succeeds and says nothing.
        assert_eq!(usage("ptxas info    : 0 bytes gmem\n"), None);
    }

    /// An assembler that answers the known text, and others as the script says; and what it makes of a text.
    #[cfg(unix)]
    fn with_script(known: &str, others: &str) -> Result<Object, Failure> {
        counted(known, others, TIMEOUT).0
    }

    /// The same, and how often it was asked.
    #[cfg(unix)]
    fn counted(known: &str, others: &str, timeout: Duration) -> (Result<Object, Failure>, String) {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ptxas");
        let script = format!(
            "#!/bin/sh\ncount=$(cat {0}/count 2>/dev/null || echo 0); echo $((count + 1)) > {0}/count\n\
             if grep -q 'entry known' \"$3\"; then {known}; else {others}; fi\n",
            folder.path().display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let found = assemble_with(&path, ".version 8.7\n.target sm_100a\n.visible .entry mine() { ret; }\n", timeout);
        (found, fs::read_to_string(folder.path().join("count")).unwrap_or_default())
    }

    #[test]
    #[cfg(unix)]
    fn what_does_not_end_is_asked_once_and_neither_refused_nor_passed() {
        let (found, count) = counted("exit 0", "sleep 60", Duration::from_secs(1));
        let Err(Failure::TookTooLong(why)) = found else { panic!("{found:?}") };
        assert!(why.starts_with("ptxas took longer than 1 s"), "{why}");
        assert_eq!(count.trim(), "1");
    }

    #[test]
    #[cfg(unix)]
    fn what_fails_on_any_text_is_not_the_texts_fault() {
        const USED: &str = "echo 'ptxas info    : Used 8 registers' >&2";
        const FATAL: &str = "echo 'ptxas fatal   : Memory allocation failure' >&2; exit 1";
        let refused = |found: Result<Object, Failure>| match found {
            Err(Failure::Refused(errors)) => errors[0].message.clone(),
            other => panic!("{other:?}"),
        };
        let here = |found: Result<Object, Failure>| assert!(matches!(found, Err(Failure::Here(_))), "{found:?}");
        assert_eq!(refused(with_script(USED, FATAL)), "Memory allocation failure");
        assert!(refused(with_script(USED, "exit 139")).contains("139"));
        here(with_script(FATAL, FATAL));
        here(with_script("exit 139", "kill -s SEGV $$"));
        // It passes: the second answer counts.
        let once = format!("if [ $count = 0 ]; then {FATAL}; else {USED}; fi");
        assert_eq!(with_script("exit 1", &once).unwrap().usage.registers, 8);
    }

    #[test]
    fn an_error_is_mapped_to_the_line_of_rust() {
        let ptx = ".version 8.6\n.file 1 \"src/kernel.rs\"\n.visible .entry kernel() {\n.loc 1 7 9\nmov.u32 %r1, 0;\n\
            .loc 1 8 13\nbar.sync x;\n}\n";
        let said = "ptxas /tmp/kernel.ptx, line 7; error   : Unknown symbol 'x'\nptxas fatal   : Ptx assembly aborted due to errors\n";
        let place = Place { file: "src/kernel.rs".to_string(), line: 8, column: 13 };
        let expected = AssemblerError { line: 7, message: "Unknown symbol 'x'".to_string(), source: Some(place) };
        assert_eq!(errors(said, ptx), [expected]);
        assert_eq!(source(ptx, 5).map(|place| place.line), Some(7));
        assert_eq!(source(ptx, 3), None);
    }
}
