//! Which files of a hand-in, a folder or an archive, are kernels.

use crate::archive::{self, Contents};
use crate::plain::{self, Found};
use harness::workbook::name;
use harness::workbook::pack::MAX_KERNEL;
use std::path::{Path, PathBuf};

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

/// A hand-in: a folder, or an archive that was read once.
#[derive(Clone, Debug)]
pub struct HandIn {
    path: PathBuf,
    /// None for a folder.
    contents: Option<Contents>,
}

/// The kernels in a folder or an archive: [`HandIn::open`], then [`HandIn::find`].
///
/// # Errors
/// As both.
pub fn find(folder: &Path, existing: &[u8], wanted: &[u8]) -> Result<Vec<Kernel>, String> {
    HandIn::open(folder)?.find(existing, wanted)
}

impl HandIn {
    /// Opens it, and reads an archive.
    ///
    /// # Errors
    /// When there is none, or it is an archive that is refused.
    pub fn open(path: &Path) -> Result<HandIn, String> {
        Ok(HandIn { path: path.to_path_buf(), contents: open(path)? })
    }

    /// The kernels for the steps that exist. `wanted`: those that must be there; if empty, at least one must.
    ///
    /// # Errors
    /// What is missing, found twice, or not a file that can be taken; with what was looked for.
    pub fn find(&self, existing: &[u8], wanted: &[u8]) -> Result<Vec<Kernel>, String> {
        for step in wanted {
            if !existing.contains(step) {
                let names: Vec<String> = existing.iter().map(|step| name(*step)).collect();
                return Err(format!(
                    "there is no step {step}\n  try: Name one of the steps here: {}.",
                    names.join(", ")
                ));
            }
        }
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
            return Err(self.lacks(&missing, existing));
        }
        Ok(kernels)
    }

    /// The kernel of a step, if there is one.
    ///
    /// # Errors
    /// When there are two, or it is not a file that can be taken.
    pub fn kernel(&self, step: u8) -> Result<Option<Kernel>, String> {
        match &self.contents {
            Some(contents) => packed(&self.path, contents, step),
            None => kernel(&self.path, step),
        }
    }

    /// That there is no kernel of these steps, and where it was looked for.
    fn lacks(&self, missing: &[u8], existing: &[u8]) -> String {
        // Of many steps the places once, as a pattern.
        const FEW: usize = 2;
        let shown = if missing.len() > FEW { &missing[..1] } else { missing };
        let mut looked: Vec<String> =
            shown.iter().flat_map(|step| places(*step)).map(|place| format!("\n    {place}")).collect();
        if missing.len() > FEW {
            looked.push("\n    and the same for the other steps".to_string());
        }
        let names: Vec<String> = missing.iter().map(|step| name(*step)).collect();
        let ignored: Vec<String> = self.ignored(existing).iter().map(|note| format!("\n  {note}")).collect();
        format!(
            "{} holds no kernel for {}; looked for{}{}",
            self.path.display(),
            names.join(", "),
            looked.concat(),
            ignored.concat()
        )
    }

    /// Kernels that are not graded, since this checkout has no such step, and what an archive holds beside kernels: a sentence on each.
    pub fn ignored(&self, existing: &[u8]) -> Vec<String> {
        let there = |step: &u8| {
            let place = places(*step).into_iter().find(|place| match &self.contents {
                Some(contents) => contents.kernels.contains_key(place),
                None => self.path.join(place).exists(),
            });
            place.map(|place| self.path.join(place))
        };
        let steps = (1..=99).filter(|step| !existing.contains(step));
        let say = |step| Some(format!("{} is not graded: there is no step {step} here", there(&step)?.display()));
        let mut notes: Vec<String> = steps.filter_map(say).collect();
        let contents = self.contents.iter().flat_map(|contents| &contents.notes);
        notes.extend(contents.map(|note| format!("{}: {note}", self.path.display())));
        notes
    }
}

/// The contents of an archive; none for a folder.
fn open(hand_in: &Path) -> Result<Option<Contents>, String> {
    if hand_in.is_dir() {
        return Ok(None);
    }
    let shown = hand_in.display();
    const TRY: &str = "try: Give what was handed in: a folder, or the archive that `cargo workbook pack` writes.";
    if !hand_in.exists() {
        return Err(format!("{shown} does not exist\n  {TRY}"));
    }
    if !hand_in.is_file() {
        return Err(format!("{shown} is neither a folder nor a plain file\n  {TRY}"));
    }
    let is_kernel = |name: &str| (1..=99).any(|step| places(step).iter().any(|place| place == name));
    archive::read(hand_in, is_kernel).map(Some).map_err(|error| format!("{shown}: {error}"))
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

fn kernel(folder: &Path, step: u8) -> Result<Option<Kernel>, String> {
    let mut found = Vec::new();
    for place in places(step) {
        match plain::read(folder, Path::new(&place), MAX_KERNEL) {
            Found::Nothing => {}
            Found::File(bytes) => found.push((folder.join(place), bytes)),
            // The place, or a part of it, is named below the folder.
            Found::Wrong(why) => return Err(why.replacen(&place, &folder.join(&place).display().to_string(), 1)),
        }
    }
    match found.as_slice() {
        [] => Ok(None),
        [(path, bytes)] => match String::from_utf8(bytes.clone()) {
            Ok(text) => Ok(Some(Kernel { step, path: path.clone(), text })),
            Err(_) => Err(format!("cannot read {}: stream did not contain valid UTF-8", path.display())),
        },
        [(first, _), (second, _), ..] => Err(format!(
            "two kernels for step {step}: {} and {}\n  try: Leave the one that counts.",
            first.display(),
            second.display()
        )),
    }
}
