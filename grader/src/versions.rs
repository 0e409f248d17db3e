//! What graded a hand-in: without it, nobody can grade it again and expect the same.

use crate::children;
use crate::toolchain::SAYS_LIMIT;
use harness::ptxas;
use harness::workbook::Workspace;
use harness::workbook::pack::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What of a checkout is compiled with each hand-in, beside the `lib.rs` of its step.
const SHARED: [&str; 6] =
    ["Cargo.toml", "Cargo.lock", "ptx/Cargo.toml", "ptx/src", "harness/emit/Cargo.toml", "harness/emit/src"];

/// The workbook that this program was built from: its number, and the commit if git knew one then; `changed` where the sources were others than
/// that commit's. The checkout in which it runs may be another by now.
pub const WORKBOOK: &str = match env!("GRADER_COMMIT").is_empty() {
    true => env!("CARGO_PKG_VERSION"),
    false => concat!(env!("CARGO_PKG_VERSION"), " (", env!("GRADER_COMMIT"), ")"),
};

/// Versions of what takes part in a grade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The workbook that this grader was built from ([`WORKBOOK`]).
    pub workbook: String,
    /// The emulator. It has its number from the workbook.
    pub emulator: String,
    /// The grader as it was built, with the judge, the emulator and the reference kernels in it: SHA-256 of the program.
    pub grader: String,
    /// What is compiled with a hand-in: SHA-256 of these sources of the checkout. `None`: it was not asked.
    #[serde(default)]
    pub sources: Option<String>,
    /// The program of `--grade-with`, which a batch started in place of the grader: its SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade_with: Option<String>,
    /// The compiler of the hand-ins. `None`: it was not asked.
    pub rustc: Option<String>,
    /// The assembler of the part `resources`; `None`: there is none.
    pub ptxas: Option<String>,
}

/// How the version of something begins that does not say which it is. Two of these are not the same: nobody knows.
const UNKNOWN: &str = "unknown: ";

fn unknown(why: impl std::fmt::Display) -> String {
    format!("{UNKNOWN}{why}")
}

/// Something that decides on a grade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deciding<'a> {
    /// What it is.
    pub name: &'static str,
    /// Which one; `None`: there is none, or it is unknown.
    pub version: Option<&'a str>,
    /// That there is none is an answer.
    may_be_none: bool,
}

impl Deciding<'_> {
    /// Which one it is cannot be told.
    pub fn is_unknown(&self) -> bool {
        self.version.map_or(!self.may_be_none, |version| version.starts_with(UNKNOWN))
    }

    /// It is the same, as far as that is known.
    fn is(&self, other: &Deciding) -> bool {
        self.version == other.version && !self.is_unknown() && !other.is_unknown()
    }
}

impl Versions {
    /// Those of this program and of the tools that it will call. `root` is the checkout.
    pub fn here(root: &Path) -> Versions {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let rustc = said(Command::new(rustc).arg("--version").current_dir(root));
        let assembler = ptxas::find().ok().map(|path| said(Command::new(path).arg("--version")));
        let first = |text: String| text.lines().next().unwrap_or_default().to_string();
        let last = |text: String| text.lines().next_back().unwrap_or_default().to_string();
        Versions {
            workbook: WORKBOOK.to_string(),
            emulator: env!("CARGO_PKG_VERSION").to_string(),
            grader: own_hash().unwrap_or_else(unknown),
            sources: Some(sources(root).unwrap_or_else(unknown)),
            grade_with: None,
            rustc: Some(rustc.map_or_else(unknown, first)),
            ptxas: assembler.map(|said| said.map_or_else(unknown, last)),
        }
    }

    /// What decides on a grade. The number of a workbook and of its emulator do not: the program's hash says more.
    pub fn deciding(&self) -> [Deciding<'_>; 5] {
        let needed = |name, version| Deciding { name, version, may_be_none: false };
        let other = |name, version| Deciding { name, version, may_be_none: true };
        [
            needed("grader", Some(&self.grader)),
            needed("the sources compiled with a hand-in", self.sources.as_deref()),
            other("the program of --grade-with", self.grade_with.as_deref()),
            needed("rustc", self.rustc.as_deref()),
            other("ptxas", self.ptxas.as_deref()),
        ]
    }

    /// The same decide on a grade, and it is known of each of them.
    pub fn decide_as(&self, other: &Versions) -> bool {
        self.deciding().iter().zip(&other.deciding()).all(|(one, other)| one.is(other))
    }

    /// What cannot be told of what decides on a grade: a sentence on each.
    pub fn unknowns(&self) -> Vec<String> {
        let unknown = self.deciding().into_iter().filter(Deciding::is_unknown);
        unknown.map(|one| format!("{} is {}", one.name, shown(&one))).collect()
    }

    /// What is another there than here, or may be: a sentence on each.
    pub fn others(&self, now: &Versions) -> Vec<String> {
        let workbook = (self.workbook != now.workbook)
            .then(|| format!("workbook was {}, and is {} now", self.workbook, now.workbook));
        let deciding = self.deciding().into_iter().zip(now.deciding()).filter(|(then, now)| !then.is(now));
        let say = |(then, now): (Deciding, Deciding)| {
            let whether =
                if then.is_unknown() || now.is_unknown() { ": whether it is the same cannot be told" } else { "" };
            format!("{} was {}, and is {} now{whether}", then.name, shown(&then), shown(&now))
        };
        workbook.into_iter().chain(deciding.map(say)).collect()
    }
}

/// Which one it is, for people.
fn shown(one: &Deciding) -> String {
    match one.version {
        Some(version) => version.to_string(),
        None if one.is_unknown() => "unknown".to_string(),
        None => "none".to_string(),
    }
}

/// SHA-256 of the running program.
fn own_hash() -> io::Result<String> {
    file_hash(&std::env::current_exe()?)
}

/// SHA-256 of a file.
pub(crate) fn file_hash(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut hasher))?;
    Ok(hex(&hasher.finalize()))
}

/// SHA-256 of the sources of a checkout that are compiled with a hand-in: each file's name and hash.
fn sources(root: &Path) -> io::Result<String> {
    let steps = (Workspace { root: root.to_path_buf() }).steps();
    hash_of(root, steps.into_iter().map(|step| root.join(Workspace::kernel(step)).with_file_name("lib.rs")).collect())
}

/// The same of those that are compiled once for all hand-ins.
pub(crate) fn shared_sources(root: &Path) -> io::Result<String> {
    hash_of(root, Vec::new())
}

fn hash_of(root: &Path, mut files: Vec<PathBuf>) -> io::Result<String> {
    for place in SHARED {
        below(&root.join(place), &mut files)?;
    }
    files.sort();
    let mut hasher = Sha256::new();
    for path in files {
        let name = path.strip_prefix(root).unwrap_or(&path);
        hasher.update(format!("{} {}\n", file_hash(&path)?, name.display()));
    }
    Ok(hex(&hasher.finalize()))
}

/// The files below a folder, or this file.
fn below(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        below(&entry?.path(), files)?;
    }
    Ok(())
}

/// What is written goes into a hash.
pub(crate) struct HashWriter<'a>(pub(crate) &'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a program prints, or why it says nothing.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    // One that does not end would hold up who grades, and go on without him.
    let ended = children::run(command, SAYS_LIMIT)?;
    let how = match (ended.stopped, ended.code, ended.signal) {
        (None, Some(0), _) if !ended.stdout.trim().is_empty() => return Ok(ended.stdout.trim().to_string()),
        (Some(_), ..) => format!("after {} s", SAYS_LIMIT.as_secs()),
        (None, Some(code), _) => format!("exit status: {code}"),
        (None, None, signal) => format!("signal: {}", signal.unwrap_or_default()),
    };
    Err(format!("{name} does not say which it is ({how})"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Some that are all known.
    pub(crate) fn known() -> Versions {
        Versions {
            workbook: "0".to_string(),
            emulator: "0".to_string(),
            grader: "g".to_string(),
            sources: Some("s".to_string()),
            grade_with: None,
            rustc: Some("r".to_string()),
            ptxas: None,
        }
    }

    #[test]
    fn what_is_unknown_is_the_same_as_nothing() {
        assert!(known().decide_as(&known()) && known().others(&known()).is_empty() && known().unknowns().is_empty());
        let why = "unknown: Permission denied";
        let unknown = [
            ("grader", Versions { grader: why.to_string(), ..known() }),
            ("the sources compiled with a hand-in", Versions { sources: Some(why.to_string()), ..known() }),
            ("the sources compiled with a hand-in", Versions { sources: None, ..known() }),
            ("rustc", Versions { rustc: Some(why.to_string()), ..known() }),
            ("rustc", Versions { rustc: None, ..known() }),
            ("ptxas", Versions { ptxas: Some(why.to_string()), ..known() }),
        ];
        for (name, one) in unknown {
            assert!(!one.decide_as(&one), "{name}: nobody knows whether it is the same");
            let [said] = &one.others(&one)[..] else { panic!("{name}: {:?}", one.others(&one)) };
            assert!(said.starts_with(name) && said.contains("was unknown") && said.contains("is unknown"), "{said}");
            assert!(said.ends_with(": whether it is the same cannot be told"), "{said}");
            assert_eq!(one.unknowns().len(), 1, "{name}");
        }
        let others =
            [Versions { grader: "h".to_string(), ..known() }, Versions { ptxas: Some("p".to_string()), ..known() }];
        for other in others {
            assert!(!known().decide_as(&other) && !other.decide_as(&known()), "{other:?}");
            assert!(!known().others(&other)[0].contains("cannot be told"), "{:?}", known().others(&other));
        }
    }

    /// A checkout of which files are missing, and a compiler that there is not: that is not told as "none".
    #[test]
    fn what_cannot_be_read_or_started_is_unknown_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let here = Versions::here(folder.path());
        let sources = here.sources.as_deref().unwrap_or_default();
        assert!(sources.starts_with(UNKNOWN) && sources.len() > UNKNOWN.len(), "{here:?}");
        assert!(here.unknowns().iter().any(|said| said.starts_with("the sources")), "{:?}", here.unknowns());
        assert_eq!(here.workbook, WORKBOOK, "the program's, not that of where it runs");
        let none = said(&mut Command::new(folder.path().join("rustc"))).unwrap_err();
        assert!(none.contains("cannot start"), "{none}");
        assert!(
            said(Command::new("false").arg(""))
                .unwrap_err()
                .ends_with("false does not say which it is (exit status: 1)")
        );
    }
}
