//! Which files of a hand-in, a folder or an archive, are kernels.

use crate::archive::{self, Contents};
use crate::folder::{self, Folder, Named, Odd};
use crate::formats::not_graded::NotGraded;
use crate::lacks::There;
use harness::workbook::name;
use harness::workbook::pack::MAX_KERNEL;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// How the names of archives end.
pub const ARCHIVES: [&str; 3] = [".tar.gz", ".tgz", ".tar"];
/// What can be a hand-in, for messages.
pub const KINDS: &str = "a folder, a .tar, a .tar.gz or a .tgz file";

/// How the names of archives end that are not read.
const OTHER_ARCHIVES: [&str; 9] = ["zip", "7z", "rar", "gz", "bz2", "xz", "zst", "tbz", "txz"];

/// A kernel file of a hand-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The step that it is for.
    pub step: u8,
    /// Where it lies.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// Where the kernel of a step may lie, in a hand-in.
pub fn places(step: u8) -> [String; 4] {
    let name = name(step);
    [
        format!("steps/{name}/src/kernel.rs"),
        format!("{name}/src/kernel.rs"),
        format!("{name}/kernel.rs"),
        format!("{name}.rs"),
    ]
}

/// Whether the steps that are asked for exist.
///
/// # Errors
/// The first that does not, and those that do.
pub fn there_are(existing: &[u8], wanted: &[u8]) -> Result<(), String> {
    let Some(step) = wanted.iter().find(|step| !existing.contains(step)) else { return Ok(()) };
    let names: Vec<String> = existing.iter().map(|step| name(*step)).collect();
    Err(format!("there is no step {step}\n  try: Name one of the steps here: {}.", names.join(", ")))
}

/// A hand-in: a folder, or an archive that was read once.
#[derive(Debug)]
pub struct HandIn {
    path: PathBuf,
    files: Files,
}

#[derive(Debug)]
enum Files {
    Folder(Folder),
    Archive(Contents),
}

/// The kernels in a folder or an archive: [`HandIn::open`], then [`HandIn::find`].
///
/// # Errors
/// As both.
pub fn find(folder: &Path, existing: &[u8], wanted: &[u8]) -> Result<Vec<Kernel>, NotGraded> {
    HandIn::open(folder, Named::ByPerson)?.find(existing, wanted)
}

impl HandIn {
    /// Opens it, and reads an archive.
    ///
    /// # Errors
    /// When there is none or the system does not give it, which is nobody's fault who handed it in; or it is an archive that is refused.
    pub fn open(path: &Path, named: Named) -> Result<HandIn, NotGraded> {
        let (path, files) = open(path, named)?;
        Ok(HandIn { path, files })
    }

    /// The kernels for the steps that exist. `wanted`: those that must be there; if empty, at least one must.
    ///
    /// # Errors
    /// What is missing, found twice, or not a file that can be taken; with what was looked for.
    pub fn find(&self, existing: &[u8], wanted: &[u8]) -> Result<Vec<Kernel>, NotGraded> {
        there_are(existing, wanted)?;
        let steps = if wanted.is_empty() { existing } else { wanted };
        let mut kernels = Vec::new();
        let mut missing = Vec::new();
        for &step in steps {
            match self.kernel(step)? {
                Some(kernel) => kernels.push(kernel),
                None => missing.push(step),
            }
        }
        if kernels.is_empty() || !(wanted.is_empty() || missing.is_empty()) {
            return Err(NotGraded::no_kernel(self.lacks(&missing, existing)));
        }
        Ok(kernels)
    }

    /// The kernel of a step, if there is one.
    ///
    /// # Errors
    /// When there are two, or it is not a file that can be taken.
    pub fn kernel(&self, step: u8) -> Result<Option<Kernel>, NotGraded> {
        match &self.files {
            Files::Archive(contents) => packed(&self.path, contents, step).map_err(NotGraded::hand_in),
            Files::Folder(folder) => kernel(&self.path, folder, step),
        }
    }

    /// Why there is no kernel of any of these steps, though something was handed in; `None` where there is one, or nothing at all.
    pub(crate) fn without_kernel(&self, existing: &[u8]) -> Result<Option<String>, NotGraded> {
        for step in existing {
            if self.kernel(*step)?.is_some() {
                return Ok(None);
            }
        }
        let empty = match &self.files {
            Files::Archive(contents) => contents.names.is_empty(),
            Files::Folder(folder) => folder.names().is_empty(),
        };
        Ok((!empty).then(|| self.lacks(existing, existing)))
    }

    /// That there is no kernel of these steps, what is there, and where it was looked for.
    fn lacks(&self, missing: &[u8], existing: &[u8]) -> String {
        let there = match &self.files {
            Files::Archive(contents) => There::of_archive(&contents.names),
            Files::Folder(folder) => There::of_folder(folder),
        };
        there.without(&self.path.display().to_string(), missing, &self.of_no_step(existing))
    }

    /// Kernels that are not graded, since this checkout has no such step: a sentence on each.
    fn of_no_step(&self, existing: &[u8]) -> Vec<String> {
        let there = |step: &u8| {
            let place = places(*step).into_iter().find(|place| match &self.files {
                Files::Archive(contents) => contents.kernels.contains_key(place),
                Files::Folder(folder) => folder.holds(place),
            });
            place.map(|place| self.path.join(place))
        };
        let steps = (1..=99).filter(|step| !existing.contains(step));
        let say = |step| Some(format!("{} is not graded: there is no step {step} here", there(&step)?.display()));
        steps.filter_map(say).collect()
    }

    /// The same, and what an archive holds beside kernels.
    pub fn ignored(&self, existing: &[u8]) -> Vec<String> {
        let mut notes = self.of_no_step(existing);
        if let Files::Archive(contents) = &self.files {
            notes.extend(contents.notes.iter().map(|note| format!("{}: {note}", self.path.display())));
        }
        notes
    }
}

/// What is looked at, and where it lies.
fn open(path: &Path, named: Named) -> Result<(PathBuf, Files), NotGraded> {
    let shown = path.display();
    const TRY: &str = "try: Give what was handed in: a folder, or the archive that `cargo workbook pack` writes.";
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => NotGraded::from(format!("{shown} does not exist\n  {TRY}")),
        ErrorKind::InvalidInput => NotGraded::hand_in(format!("{shown} is neither a folder nor a plain file\n  {TRY}")),
        _ => NotGraded::from(format!("{shown} cannot be opened: {error}\n  {TRY}")),
    };
    match Folder::open(path, named) {
        Ok(folder) => {
            let Some(archive) = archive_in(&folder) else { return Ok((path.to_path_buf(), Files::Folder(folder))) };
            match folder.file(&archive).map_err(|odd| not_read(path, &odd))? {
                Some(file) => unpacked(path.join(archive), file),
                // It went away.
                None => Ok((path.to_path_buf(), Files::Folder(folder))),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            if let Some(reason) = lone(path) {
                return Err(NotGraded::hand_in(reason));
            }
            unpacked(path.to_path_buf(), folder::plain_file(path, named).map_err(failed)?)
        }
        Err(error) => Err(failed(error)),
    }
}

/// What is said of one file that is no hand-in, as its name says: a kernel alone, or an archive that is not read.
fn lone(path: &Path) -> Option<String> {
    let (shown, end) = (path.display(), end_of(&path.to_string_lossy()));
    if is_other_archive(&path.to_string_lossy()) {
        return Some(format!(
            "{shown} is a .{end} file; a hand-in is {KINDS}\n  \
             try: Unpack it into a folder and give that, or hand in what `cargo workbook pack` writes."
        ));
    }
    // `steps/step03/src/kernel.rs`, `step03.rs`: the nearest name that is a step's.
    let step = path.ancestors().find_map(|part| {
        let digits = part.file_stem()?.to_str()?.strip_prefix("step")?;
        harness::workbook::number(digits).map(name)
    });
    let step = step.as_deref().unwrap_or("step01");
    let plain = |c: char| c.is_alphanumeric() || "/._-+,".contains(c);
    let word = shown.to_string();
    let word = if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) };
    (end == "rs").then(|| {
        format!(
            "{shown} is one Rust file; a hand-in is {KINDS}\n  \
             try: Give the file that `cargo workbook pack --step {step}` writes; or put this one into a folder under the name of its step, \
             `mkdir hand-in && cp {word} hand-in/{step}.rs`, and give the folder."
        )
    })
}

fn unpacked(path: PathBuf, file: File) -> Result<(PathBuf, Files), NotGraded> {
    let is_kernel = |name: &str| (1..=99).any(|step| places(step).iter().any(|place| place == name));
    match archive::read(file, is_kernel) {
        Ok(contents) => Ok((path, Files::Archive(contents))),
        Err(refused) => {
            let reason = format!("{}: {refused}", path.display());
            Err(if refused.reason == archive::UNREADABLE { reason.into() } else { NotGraded::hand_in(reason) })
        }
    }
}

/// How the name of an archive ends.
pub(crate) fn archive_end(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    ARCHIVES.into_iter().find(|end| name.ends_with(end))
}

/// The archive in a folder that holds one and no kernel: course systems give each hand-in a folder, with what was handed in inside.
pub(crate) fn archive_in(folder: &Folder) -> Option<String> {
    if (1..=99).flat_map(places).any(|place| folder.holds(&place)) {
        return None;
    }
    let mut archives = folder.names().into_iter().filter(|name| is_archive(name));
    let (archive, None) = (archives.next()?, archives.next()) else { return None };
    Some(archive)
}

/// Whether a name in a folder is an archive's; systems leave behind files whose names begin with a dot.
pub(crate) fn is_archive(name: &str) -> bool {
    archive_end(name).is_some() && !name.starts_with('.')
}

/// Whether a name is that of an archive that is not read.
pub(crate) fn is_other_archive(name: &str) -> bool {
    !is_archive(name) && OTHER_ARCHIVES.contains(&end_of(name).as_str())
}

/// What comes behind the last point of a name.
pub(crate) fn end_of(name: &str) -> String {
    name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default()
}

/// What of a folder is not read.
fn not_read(path: &Path, odd: &Odd) -> NotGraded {
    let reason = format!("{}/{odd}", path.display());
    if matches!(odd, Odd::Failed(..)) { reason.into() } else { NotGraded::hand_in(reason) }
}

/// The kernel of a step in an archive.
fn packed(path: &Path, contents: &Contents, step: u8) -> Result<Option<Kernel>, String> {
    let mut found = places(step).into_iter().filter_map(|place| contents.kernels.get_key_value(&place));
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some((name, text)), None) => Ok(Some(Kernel { step, path: path.join(name), text: text.clone() })),
        (Some((first, _)), Some((second, _))) => Err(format!(
            "two kernels for step {step}: {first} and {second} in {}\n  try: Leave the one that counts.",
            path.display()
        )),
    }
}

/// The kernel of a step in a folder.
fn kernel(path: &Path, folder: &Folder, step: u8) -> Result<Option<Kernel>, NotGraded> {
    let mut found: Option<(PathBuf, Vec<u8>)> = None;
    for place in places(step) {
        let read = folder.read(&place, MAX_KERNEL).map_err(|odd| not_read(path, &odd))?;
        let (Some(bytes), place) = (read, path.join(&place)) else { continue };
        if let Some((first, _)) = &found {
            return Err(NotGraded::hand_in(format!(
                "two kernels for step {step}: {} and {}\n  try: Leave the one that counts.",
                first.display(),
                place.display()
            )));
        }
        found = Some((place, bytes));
    }
    let Some((path, bytes)) = found else { return Ok(None) };
    let not_text = || format!("{} is not UTF-8 text\n  try: Save it as UTF-8, as Rust asks.", path.display());
    let text = String::from_utf8(bytes).map_err(|_| NotGraded::hand_in(not_text()))?;
    Ok(Some(Kernel { step, path, text }))
}
