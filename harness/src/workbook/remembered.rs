//! What the list said of a step, for as long as nothing is another that it follows from.

use super::workspace::Workspace;
use crate::device::Device;
use crate::progress::Progress;
use crate::{JudgeOptions, ptxas, reference_kernels};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Where it stands, from the top folder.
const FILE: &str = ".workbook/list.json";

/// What was said of a step, and what it followed from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Said {
    key: u64,
    progress: String,
}

/// What the list said of steps when it was asked last.
pub(super) struct Remembered<'a> {
    workspace: &'a Workspace,
    file: PathBuf,
    said: BTreeMap<u8, Said>,
    /// Of all that is the same for every step; `None`: nothing is to be remembered.
    common: Option<u64>,
}

impl<'a> Remembered<'a> {
    /// What was said, unless all is to be `fresh`.
    pub(super) fn read(workspace: &'a Workspace, options: &JudgeOptions, fresh: bool) -> Remembered<'a> {
        let file = workspace.root.join(FILE);
        // A file that is not ours says nothing.
        let read = || serde_json::from_slice(&fs::read(&file).ok()?).ok();
        let said = if fresh { BTreeMap::new() } else { read().unwrap_or_default() };
        Remembered { workspace, file, said, common: common(options) }
    }

    /// What a step's line follows from: its test program (which holds its kernel), the kernel's text, the recipes of what it is measured beside,
    /// this program, the assembler, the options.
    pub(super) fn key(&self, step: u8, program: &Path) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        self.common?.hash(&mut hasher);
        fs::read(program).ok()?.hash(&mut hasher);
        let recipes = reference_kernels::file(Path::new(reference_kernels::FOLDER), step);
        let files = [PathBuf::from(Workspace::kernel(step)), PathBuf::from(Workspace::untouched(step)), recipes];
        for file in files {
            fs::read(self.workspace.root.join(file)).ok().hash(&mut hasher);
        }
        Some(hasher.finish())
    }

    /// What was said of the step.
    pub(super) fn of(&self, step: u8, key: Option<u64>) -> Option<String> {
        let said = self.said.get(&step)?;
        (Some(said.key) == key).then(|| said.progress.clone())
    }

    /// Keeps what is said of the step. Where it cannot be written, the step is judged again next time.
    pub(super) fn keep(&mut self, step: u8, key: Option<u64>, progress: &str) {
        let Some(key) = key else { return };
        self.said.insert(step, Said { key, progress: progress.to_string() });
        if let (Some(folder), Ok(text)) = (self.file.parent(), serde_json::to_vec(&self.said)) {
            let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&self.file, text));
        }
    }
}

/// Of what every line follows from. What a GPU says may be another the next time.
fn common(options: &JudgeOptions) -> Option<u64> {
    if !matches!(options.device, Device::Emulator) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    // Who is told changes nothing.
    format!("{:?}", JudgeOptions { progress: Progress::default(), ..options.clone() }).hash(&mut hasher);
    fs::read(std::env::current_exe().ok()?).ok()?.hash(&mut hasher);
    if let Ok(assembler) = ptxas::find() {
        let of_file = fs::metadata(&assembler).ok()?;
        (assembler, of_file.len(), of_file.modified().ok()).hash(&mut hasher);
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same as before is not judged again; each thing that a line follows from makes it new.
    #[test]
    fn what_changed_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: folder.path().to_path_buf() };
        let kernel = folder.path().join(Workspace::kernel(3));
        let program = folder.path().join("verdict");
        fs::create_dir_all(kernel.parent().unwrap()).unwrap();
        fs::write(&kernel, "kernel").unwrap();
        fs::write(&program, "program").unwrap();
        let options = JudgeOptions::default();
        let said = |options: &JudgeOptions, fresh| {
            let remembered = Remembered::read(&workspace, options, fresh);
            remembered.of(3, remembered.key(3, &program))
        };
        assert_eq!(said(&options, false), None, "nothing was said yet");
        let mut remembered = Remembered::read(&workspace, &options, false);
        let key = remembered.key(3, &program);
        remembered.keep(3, key, "passed");
        assert_eq!(said(&options, false).as_deref(), Some("passed"));
        assert_eq!(said(&options, true), None, "all is to be fresh");
        assert_eq!(remembered.of(4, key), None, "another step");
        assert_eq!(said(&JudgeOptions { full: true, ..options.clone() }, false), None, "other options");
        fs::write(&kernel, "another").unwrap();
        assert_eq!(said(&options, false), None, "another text");
        fs::write(&kernel, "kernel").unwrap();
        assert_eq!(said(&options, false).as_deref(), Some("passed"), "the same text again");
        fs::write(&program, "another").unwrap();
        assert_eq!(said(&options, false), None, "another program");
        fs::write(&program, "program").unwrap();
        assert_eq!(said(&options, false).as_deref(), Some("passed"), "the same program again");
        let recipes = folder.path().join(reference_kernels::FOLDER);
        fs::create_dir_all(&recipes).unwrap();
        fs::write(reference_kernels::file(&recipes, 3), "recipes").unwrap();
        assert_eq!(said(&options, false), None, "something else to be measured beside");
        fs::write(folder.path().join(FILE), "no JSON").unwrap();
        assert_eq!(said(&options, false), None, "a file that is not ours");
    }
}
