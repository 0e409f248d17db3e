//! A case: a kernel, its launch, and what its first lines say of it.

use emulator::{Launch, Numerics, Options, Program, Report};
use std::fs;
use std::path::{Path, PathBuf};

pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/silicon");

/// What the emulator must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing is wrong.
    Clean,
    /// Findings with these codes, perhaps among others.
    Found(Vec<String>),
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Case {
    /// Family and name, with a slash between.
    pub name: String,
    pub path: PathBuf,
    pub ptx: String,
    pub launch: Launch,
    pub proves: String,
    pub expected: Expected,
    /// Adversarial schedules count, too.
    pub on_every_schedule: bool,
    /// Outputs that are recorded for people to read, and compared with nothing.
    not_compared: Vec<String>,
}

/// All cases, in alphabetical order.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for family in files(Path::new(FOLDER)).into_iter().filter(|path| path.is_dir()) {
        for path in files(&family).into_iter().filter(|path| path.extension().is_some_and(|e| e == "ptx")) {
            cases.push(Case::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display())));
        }
    }
    assert!(cases.len() > 250, "{} cases in {FOLDER}: some are missing", cases.len());
    cases
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let list = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut list: Vec<PathBuf> = list.flatten().map(|entry| entry.path()).collect();
    list.sort();
    list
}

impl Case {
    fn read(path: &Path) -> Result<Case, String> {
        let ptx = fs::read_to_string(path).map_err(|e| e.to_string())?;
        let launch = path.with_extension("json");
        let launch = fs::read_to_string(&launch).map_err(|e| format!("its launch {}: {e}", launch.display()))?;
        let launch: Launch = serde_json::from_str(&launch).map_err(|e| format!("its launch: {e}"))?;
        let says = |what: &str| {
            let line = ptx.lines().take_while(|line| line.starts_with("//")).find_map(|line| {
                let (name, text) = line.strip_prefix("// ")?.split_once(": ")?;
                (name == what).then(|| text.to_string())
            });
            line.filter(|text| !text.is_empty())
        };
        let lacks = |what: &str| format!("it lacks its line `// {what}: …`");
        says("source").ok_or_else(|| lacks("source"))?;
        let list = |text: String| text.split(", ").map(str::to_string).collect::<Vec<_>>();
        let expected = match says("expects").ok_or_else(|| lacks("expects"))?.as_str() {
            "clean" => Expected::Clean,
            codes => Expected::Found(list(codes.into())),
        };
        if let Expected::Found(codes) = &expected
            && let Some(none) = codes.iter().find(|code| emulator::CODES.iter().all(|(known, _)| known != code))
        {
            return Err(format!("it expects `{none}`, which is no code of a finding"));
        }
        let not_compared = says("not compared").map(list).unwrap_or_default();
        let folder = path.parent().and_then(Path::file_name).ok_or("it lies in no folder")?;
        let name = format!("{}/{}", folder.to_string_lossy(), path.file_stem().unwrap_or_default().to_string_lossy());
        let on_every_schedule = match says("schedules") {
            Some(text) if text.starts_with("default; ") => false,
            Some(text) => {
                return Err(format!("its schedules are `{text}` (allowed: `default; ` and why, or no such line)"));
            }
            None => true,
        };
        let proves = says("proves").ok_or_else(|| lacks("proves"))?;
        let case = Case { name, path: path.into(), ptx, launch, proves, expected, on_every_schedule, not_compared };
        if case.launch.outputs.is_empty() {
            return Err("its launch names no outputs".into());
        }
        Ok(case)
    }

    /// Numbers of the buffers whose bytes are compared.
    pub fn compared(&self) -> impl Iterator<Item = usize> {
        let outputs = self.launch.outputs.iter().map(|output| output.buffer);
        outputs.filter(|&n| !self.not_compared.contains(&self.launch.buffers[n].name))
    }

    pub fn run(&self, program: &Program, seed: Option<u64>) -> Report {
        let options = Options { seed, numerics: Numerics::Exact, max_instructions: 20_000_000, ..Default::default() };
        emulator::run(program, &self.launch, &options)
    }

    /// Why a report is not what the case expects, if it is not.
    pub fn contradicts(&self, report: &Report) -> Option<String> {
        let found: Vec<String> = report.findings.iter().map(|f| format!("{} ({})", f.code, f.title)).collect();
        match &self.expected {
            Expected::Clean if report.is_clean() => None,
            Expected::Clean => Some(format!(
                "expected to be clean; findings: {}; not checked: {}; {}",
                found.join(", "),
                report.incomplete.join(", "),
                if report.completed { "completed" } else { "not completed" }
            )),
            Expected::Found(codes) => {
                let missed = codes.iter().find(|code| report.findings.iter().all(|f| f.code != code.as_str()))?;
                Some(format!("expected to find {missed}; findings: {}", found.join(", ")))
            }
        }
    }
}
