//! A case: a PTX file and the launch file beside it; and its run, in the process that may be lost with it.

use crate::recording::{Bytes, Outcome, Recording};
use device::{About, Choice, Gpu, Target};
use emulator::Launch;
use harness::cuda::{self, CudaFailure, Outputs};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A case of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name: the files', without their endings.
    pub name: String,
    /// The PTX text.
    pub ptx: PathBuf,
    /// The launch file.
    pub launch: PathBuf,
}

impl Case {
    /// The file that holds what this GPU did: `CASE.h200.json`.
    pub fn recording(&self, gpu: &str) -> PathBuf {
        self.launch.with_file_name(format!("{}.{}.json", self.name, short(gpu)))
    }

    /// Whether a kernel is wrong on purpose: its comment `// expects:` names another end than `clean`. What such a kernel leaves in
    /// its buffers is chance.
    pub fn is_wrong(&self) -> bool {
        self.says("expects").first().is_some_and(|expects| expects != "clean")
    }

    /// Buffers whose bytes are chance although the kernel is right, such as measured times: its comment `// not compared:`.
    pub fn not_compared(&self) -> Vec<String> {
        self.says("not compared").iter().flat_map(|names| names.split(", ").map(str::to_string)).collect()
    }

    fn says(&self, what: &str) -> Vec<String> {
        says(&fs::read_to_string(&self.ptx).unwrap_or_default(), what)
    }

    /// The target of its PTX text, if it can be read and names one.
    pub fn target(&self) -> Option<Target> {
        Target::of(&fs::read_to_string(&self.ptx).ok()?)
    }
}

/// What the comments `// WHAT: TEXT` at the top of a PTX text say, in order.
pub fn says(ptx: &str, what: &str) -> Vec<String> {
    let comments = ptx.lines().take_while(|line| line.starts_with("//"));
    let named = comments.filter_map(|line| line.strip_prefix("// ")?.split_once(": "));
    named.filter(|(name, _)| *name == what).map(|(_, text)| text.trim().to_string()).collect()
}

/// A GPU's name in one word: `h200` for `NVIDIA H200`, `h100` for `NVIDIA H100 80GB HBM3`.
fn short(gpu: &str) -> String {
    let word = gpu.split_whitespace().find(|word| *word != "NVIDIA").unwrap_or("gpu");
    word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// The cases of a folder, in order; of this name only, if one is given.
///
/// # Errors
/// When the folder cannot be read, a launch file is missing, or no case has the name.
pub fn cases(folder: &Path, only: Option<&str>) -> Result<Vec<Case>, String> {
    let entries = fs::read_dir(folder).map_err(|error| {
        format!(
            "cannot read {}: {error}\n  try: Name a folder with PTX files and a launch file beside each.",
            folder.display()
        )
    })?;
    let mut all = Vec::new();
    for ptx in entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "ptx")) {
        let launch = ptx.with_extension("json");
        if !launch.is_file() {
            return Err(format!("{} has no launch file\n  try: Write {}.", ptx.display(), launch.display()));
        }
        let name = ptx.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        all.push(Case { name, ptx, launch });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(only) = only {
        let names: Vec<String> = all.iter().map(|case| case.name.clone()).collect();
        all.retain(|case| case.name == only);
        if all.is_empty() {
            return Err(format!("{} has no case `{only}`; there are {}", folder.display(), names.join(", ")));
        }
    }
    Ok(all)
}

/// Runs a case in this process and writes the recording. A kernel that hangs, or takes the context with it, ends the process.
///
/// # Errors
/// When nothing can be recorded: a file cannot be read or written, there is no GPU.
pub fn run_here(
    ptx: &Path,
    launch: &Path,
    out: &Path,
    uuid: &str,
    command: &str,
    limit: Duration,
) -> Result<(), String> {
    let text = fs::read_to_string(ptx).map_err(|error| format!("cannot read {}: {error}", ptx.display()))?;
    let described = emulate::read_launch(launch)?;
    cuda::leave_with_the_parent();
    let gpu = Gpu::open(&Choice::Uuid(uuid.to_string())).map_err(|why| format!("{why}\n  try: {}", why.way_out()))?;
    let ran = cuda::run_marked(&gpu, &text, &described, limit, Some(&mark(out)));
    let lost = gpu.is_dead();
    let done = recorded(gpu.about(), command, &described, &ran).and_then(|recording| write(out, &recording));
    if lost {
        if let Err(why) = &done {
            eprintln!("error: {why}");
        }
        device::leave(if done.is_ok() { 0 } else { 2 });
    }
    done
}

/// The file that is there while the kernel runs, beside where its recording goes.
pub fn mark(out: &Path) -> PathBuf {
    out.with_extension("running")
}

/// A recording without an outcome of its own yet: who, where, when.
pub fn blank(about: &About, command: &str) -> Recording {
    Recording {
        gpu: about.name.clone(),
        uuid: about.uuid.clone(),
        driver: about.driver.clone().unwrap_or_else(|| "unknown".to_string()),
        cuda: about.cuda.clone(),
        date: harness::date::today(),
        command: command.to_string(),
        outcome: Outcome::Done,
        error: None,
        message: None,
        touched: Vec::new(),
        buffers: BTreeMap::new(),
    }
}

fn recorded(
    about: &About,
    command: &str,
    launch: &Launch,
    ran: &Result<Outputs, CudaFailure>,
) -> Result<Recording, String> {
    let mut recording = blank(about, command);
    match ran {
        Ok(outputs) => {
            recording.touched = outputs.touched.iter().map(ToString::to_string).collect();
            let kept = |n: usize| launch.outputs.is_empty() || launch.outputs.iter().any(|output| output.buffer == n);
            for (n, (buffer, bytes)) in
                launch.buffers.iter().zip(&outputs.buffers).enumerate().filter(|(n, _)| kept(*n))
            {
                let mut name = buffer.name.clone();
                if recording.buffers.contains_key(&name) {
                    name += &format!("#{n}");
                }
                recording.buffers.insert(name, Bytes::pack(bytes)?);
            }
        }
        // The machine's memory, its GPU, its driver: that is nothing the case did.
        Err(failure) if failure.is_of_the_machine() => return Err(failure.to_string()),
        Err(CudaFailure::Hung { .. }) => recording.outcome = Outcome::Hang,
        Err(failure) => {
            recording.outcome = Outcome::Error;
            recording.error = Some(failure.code().to_string());
            recording.message = Some(failure.to_string());
        }
    }
    Ok(recording)
}

/// Writes a recording in one step: who reads it never sees a half of it.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, recording: &Recording) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", path.display());
    let text = serde_json::to_string_pretty(recording).map_err(|error| failed(&error))? + "\n";
    let beside = path.with_extension("json.part");
    fs::write(&beside, text).map_err(|error| failed(&error))?;
    fs::rename(&beside, path).map_err(|error| failed(&error))
}

/// Reads a recording.
///
/// # Errors
/// When the file is none.
pub fn read(path: &Path) -> Result<Recording, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{} is no recording: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_one_word() {
        assert_eq!((short("NVIDIA H200"), short("NVIDIA H100 80GB HBM3")), ("h200".into(), "h100".into()));
        assert_eq!((short("NVIDIA B200"), short("")), ("b200".into(), "gpu".into()));
    }

    #[test]
    fn a_folder_has_cases_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), "").unwrap();
        ["b.ptx", "b.json", "a.ptx", "a.json", "a.h200.json", "notes.md"].into_iter().for_each(write);
        let names =
            |only| cases(folder.path(), only).map(|all| all.into_iter().map(|case| case.name).collect::<Vec<_>>());
        assert_eq!(names(None), Ok(vec!["a".to_string(), "b".to_string()]));
        assert_eq!(names(Some("b")), Ok(vec!["b".to_string()]));
        assert!(names(Some("c")).unwrap_err().ends_with("has no case `c`; there are a, b"));
        write("c.ptx");
        assert!(names(None).unwrap_err().contains("c.ptx has no launch file"));
    }

    #[test]
    fn only_buffers_that_the_launch_file_keeps_are_recorded() {
        let buffer = |name: &str| emulator::Buffer { name: name.into(), ..Default::default() };
        let outputs = Outputs { buffers: vec![vec![1], vec![2]], ..Outputs::default() };
        let about = About { name: "NVIDIA H200".into(), ..About::default() };
        let mut launch = Launch { buffers: vec![buffer("x"), buffer("x")], ..Launch::default() };
        let names =
            |launch: &Launch, ran| recorded(&about, "c", launch, &ran).unwrap().buffers.into_keys().collect::<Vec<_>>();
        assert_eq!(names(&launch, Ok(outputs.clone())), ["x", "x#1"]);
        launch.outputs = vec![emulator::Output { buffer: 1, file: "y.bin".into() }];
        assert_eq!(names(&launch, Ok(outputs)), ["x"]);
        let hung = CudaFailure::Hung { what: "launch".into(), after: Duration::from_secs(10) };
        assert_eq!(recorded(&about, "c", &launch, &Err(hung)).unwrap().outcome, Outcome::Hang);
        let error = |of_the_machine| {
            let (what, name) = ("launch".to_string(), "CUDA_ERROR".to_string());
            Err(CudaFailure::Failed(device::Error { what, name, of_the_machine, ..device::Error::default() }))
        };
        assert_eq!(recorded(&about, "c", &launch, &error(false)).unwrap().outcome, Outcome::Error);
        assert_eq!(recorded(&about, "c", &launch, &error(true)), Err("launch:  (CUDA_ERROR)".to_string()));
    }
}
