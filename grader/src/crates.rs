//! The workbook's compiled crates, kept under a hash of all that they are made from.
//!
//! **Does:** copy what cargo made to a folder of its own, hold it while it is used, and remove folders that nobody holds. **Never does:** write to
//! a folder that is complete. So graders that are started before and after a change of the sources, or with two compilers, take nothing from each
//! other: each has the crates that were made from what it saw.

use crate::locks;
use crate::versions::file_hash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// Beside the crates: what they are. It is written last.
const LIST: &str = "list.json";

/// What cargo made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// The crates that a hand-in names, and their files.
    pub named: Vec<(String, PathBuf)>,
    /// All files that these need, themselves too.
    pub files: Vec<PathBuf>,
}

/// Compiled crates in a folder, which stays while this lives.
#[derive(Clone, Debug)]
pub struct Crates {
    /// Where they lie.
    pub folder: PathBuf,
    /// Those that a hand-in names, and their files.
    pub named: Vec<(String, PathBuf)>,
    _held: Arc<File>,
}

/// What a folder holds.
#[derive(Debug, Serialize, Deserialize)]
struct List {
    /// Crates, and the names of their files.
    named: Vec<(String, String)>,
    /// All files.
    files: Vec<Listed>,
}

/// A file as it was copied.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    name: String,
    bytes: u64,
    sha256: String,
}

/// The crates that are made from `key`: those below `parent`, or what `make` makes. `now` gives the key anew. The caller is alone: he holds the
/// lock of those who compile.
///
/// # Errors
/// When they cannot be made or kept, or what they are made from changes meanwhile.
pub(crate) fn of(
    parent: &Path,
    key: &str,
    make: impl FnOnce() -> Result<Made, String>,
    now: impl FnOnce() -> Result<String, String>,
) -> Result<Crates, String> {
    let folder = parent.join(key);
    if let Some(crates) = kept(&folder)? {
        return Ok(crates);
    }
    let made = make()?;
    if now()? != key {
        return Err("the sources that are compiled with a hand-in changed while they were compiled\n  \
                    try: Grade again when nobody changes the checkout."
            .to_string());
    }
    fs::create_dir_all(parent).map_err(|error| format!("cannot make {}: {error}", parent.display()))?;
    locks::sweep(parent);
    keep(parent, &folder, &made)?;
    kept(&folder)?.ok_or_else(|| format!("the crates in {} do not stay as they are written", folder.display()))
}

/// Those in a folder, if all are there.
fn kept(folder: &Path) -> Result<Option<Crates>, String> {
    let Ok(text) = fs::read(folder.join(LIST)) else { return Ok(None) };
    let Ok(list) = serde_json::from_slice::<List>(&text) else { return Ok(None) };
    if !is_whole(folder, &text, &list) {
        return Ok(None);
    }
    let named = list.named.into_iter().map(|(name, file)| (name, folder.join(file))).collect();
    Ok(Some(Crates { folder: folder.to_path_buf(), named, _held: Arc::new(locks::share(folder)?) }))
}

/// Whether all files are there as they are listed. What they hold is read once in a process.
fn is_whole(folder: &Path, text: &[u8], list: &List) -> bool {
    static READ: Mutex<BTreeSet<(PathBuf, Vec<u8>)>> = Mutex::new(BTreeSet::new());
    let is_there = |file: &Listed| {
        let about = folder.join(&file.name).symlink_metadata();
        about.is_ok_and(|about| about.is_file() && about.len() == file.bytes)
    };
    if !list.files.iter().all(is_there) {
        return false;
    }
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let this = (folder.to_path_buf(), text.to_vec());
    if read.contains(&this) {
        return true;
    }
    let is_same = |file: &Listed| file_hash(&folder.join(&file.name)).is_ok_and(|hash| hash == file.sha256);
    let whole = list.files.iter().all(is_same);
    if whole {
        read.insert(this);
    }
    whole
}

/// Copies them to their folder, which is there as a whole or not at all.
fn keep(parent: &Path, folder: &Path, made: &Made) -> Result<(), String> {
    let failed = |what: &Path| {
        let what = what.display().to_string();
        move |error: io::Error| format!("cannot keep the crates that hand-ins are compiled with: {what}: {error}")
    };
    let new = TempDir::new_in(parent).map_err(failed(parent))?;
    let mut list = List { named: Vec::new(), files: Vec::new() };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for path in &made.files {
        let copy = new.path().join(name(path));
        let bytes = fs::copy(path, &copy).map_err(failed(path))?;
        open_to_others(&copy, 0o644).map_err(failed(&copy))?;
        let sha256 = file_hash(&copy).map_err(failed(&copy))?;
        list.files.push(Listed { name: name(path), bytes, sha256 });
    }
    list.named = made.named.iter().map(|(crate_name, path)| (crate_name.clone(), name(path))).collect();
    let text = serde_json::to_vec_pretty(&list).map_err(|error| error.to_string())?;
    let file = new.path().join(LIST);
    let written = File::create(&file).and_then(|mut list| list.write_all(&text).and_then(|()| list.sync_all()));
    written.map_err(failed(&file))?;
    // The compiler may run under another account.
    open_to_others(new.path(), 0o755).map_err(failed(new.path()))?;
    // One that is damaged, as when somebody cleared up in it, and that another grader holds: nobody else's was left. What he has open stays,
    // what he opens next is whole, and he holds that, too.
    if folder.symlink_metadata().is_ok() {
        locks::hand_on(folder, new.path())?;
        fs::rename(folder, aside(parent, folder)).map_err(failed(folder))?;
    }
    fs::rename(new.path(), folder).map_err(failed(folder))?;
    // It has another name now.
    let _ = new.keep();
    Ok(())
}

/// A name for a folder that another takes the place of.
fn aside(parent: &Path, folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let free = |path: &PathBuf| path.symlink_metadata().is_err();
    let mut names = (0u32..).map(|number| parent.join(format!(".old-{name}-{number}")));
    names.find(free).unwrap_or_else(|| parent.join(format!(".old-{name}")))
}

#[cfg(unix)]
fn open_to_others(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// There is no sandbox there, so no other account.
#[cfg(not(unix))]
fn open_to_others(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        folder: TempDir,
    }

    impl Place {
        fn new() -> Place {
            Place { folder: tempfile::tempdir().unwrap() }
        }

        fn parent(&self) -> PathBuf {
            self.folder.path().join("crates")
        }

        /// The crates of a key, as cargo leaves them in the one folder that it writes to.
        fn of(&self, key: &str) -> Result<Crates, String> {
            let target = self.folder.path().join("target");
            let make = || {
                fs::create_dir_all(&target).unwrap();
                let files: Vec<PathBuf> =
                    ["libptx-1.rlib", "libserde_derive-2.so"].map(|name| target.join(name)).to_vec();
                files.iter().for_each(|file| fs::write(file, format!("made from {key}")).unwrap());
                Ok(Made { named: vec![("ptx".to_string(), files[0].clone())], files })
            };
            of(&self.parent(), key, make, || Ok(key.to_string()))
        }
    }

    fn text(crates: &Crates) -> String {
        fs::read_to_string(&crates.named[0].1).unwrap()
    }

    #[test]
    fn who_grades_keeps_what_it_began_with_whatever_others_compile() {
        let place = Place::new();
        let first = place.of("a").unwrap();
        // Another grader, after a change of the sources: cargo writes to the same files.
        let second = place.of("b").unwrap();
        assert_eq!((text(&first), text(&second)), ("made from a".to_string(), "made from b".to_string()));
        let never = || Err("cargo is not asked for what is there".to_string());
        let again = of(&place.parent(), "a", never, || Ok("a".to_string())).unwrap();
        assert_eq!(again.folder, first.folder);
        // With a third, what nobody holds goes, and nothing else: the first is held twice.
        let [held, left] = [&first, &second].map(|crates| crates.folder.clone());
        drop((first, second));
        let third = place.of("c").unwrap();
        assert!(held.exists() && !left.exists() && third.folder.exists());
        assert_eq!(text(&again), "made from a");
    }

    #[test]
    fn what_is_damaged_and_held_is_put_aside_and_what_replaces_it_is_held_too() {
        let place = Place::new();
        let first = place.of("a").unwrap();
        let other = first.folder.join("libserde_derive-2.so");
        fs::write(&other, "short").unwrap();
        let second = place.of("a").unwrap();
        let old = place.parent().join(".old-a-0");
        assert_eq!(fs::read_to_string(old.join("libserde_derive-2.so")).unwrap(), "short");
        assert_eq!(fs::read_to_string(&other).unwrap(), "made from a");
        // The first goes on with what replaced its own, also when the second is done.
        drop(second);
        let third = place.of("b").unwrap();
        assert_eq!(text(&first), "made from a");
        drop(first);
        let fourth = place.of("c").unwrap();
        let mut left: Vec<_> = fs::read_dir(place.parent()).unwrap().flatten().map(|entry| entry.path()).collect();
        left.sort();
        assert_eq!(left, [third.folder, fourth.folder], "what nobody holds goes");
    }

    #[test]
    fn what_is_damaged_or_was_made_from_something_else_is_not_taken() {
        let place = Place::new();
        let folder = place.of("a").unwrap().folder;
        for damage in [("libserde_derive-2.so", "short"), (LIST, "{")] {
            fs::write(folder.join(damage.0), damage.1).unwrap();
            assert_eq!(text(&place.of("a").unwrap()), "made from a");
            assert_eq!(fs::read_to_string(folder.join("libserde_derive-2.so")).unwrap(), "made from a");
        }
        // As long as it was, with something else in it, and not looked at by this process before.
        let other = Place::new();
        let copy = other.parent().join("a");
        fs::create_dir_all(&copy).unwrap();
        for name in ["libptx-1.rlib", "libserde_derive-2.so", LIST] {
            fs::copy(folder.join(name), copy.join(name)).unwrap();
        }
        fs::write(copy.join("libptx-1.rlib"), "made from b").unwrap();
        assert_eq!(text(&other.of("a").unwrap()), "made from a");
        // A file changes while cargo runs: nobody can tell which of the two was compiled.
        let make = || Ok(Made::default());
        let why = of(&place.parent(), "d", make, || Ok("e".to_string())).unwrap_err();
        assert!(why.contains("changed while they were compiled") && !place.parent().join("d").exists(), "{why}");
        // A copy that fails leaves nothing that looks whole.
        let make = || Ok(Made { files: vec![place.folder.path().join("missing.rlib")], ..Made::default() });
        let why = of(&place.parent(), "f", make, || Ok("f".to_string())).unwrap_err();
        assert!(why.contains("missing.rlib") && !place.parent().join("f").exists(), "{why}");
        let left: Vec<_> = fs::read_dir(place.parent()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, Vec::<std::ffi::OsString>::new(), "nobody holds any of them");
    }
}
