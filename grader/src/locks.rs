//! Locks of files: who holds one is alive. The system takes it back when a process ends, by whatever way.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The name of a file that is locked, in the folder that it stands for.
const LOCK: &str = "lock";

/// Holds a lock until it is dropped, and waits for it. What is `told` to a person while another has it; nothing, if that takes a moment.
///
/// # Errors
/// When the file cannot be written, or the file system knows no locks.
pub(crate) fn wait(path: &Path, told: Option<&str>) -> Result<File, String> {
    let failed = |error| failed(path, error);
    let file = open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    if let Some(told) = told {
        eprintln!("note: {told}");
    }
    file.lock().map_err(failed)?;
    Ok(file)
}

/// Holds a folder with others who do, until it is dropped: [`sweep`] leaves it alone.
///
/// # Errors
/// As [`wait`].
pub(crate) fn share(folder: &Path) -> Result<File, String> {
    let path = folder.join(LOCK);
    let file = open(&path).and_then(|file| file.lock_shared().map(|()| file));
    file.map_err(|error| failed(&path, error))
}

/// Those who hold a folder hold `new`, too: it takes the place of theirs.
///
/// # Errors
/// When the file system does not give a file two names.
pub(crate) fn hand_on(folder: &Path, new: &Path) -> Result<(), String> {
    match fs::hard_link(folder.join(LOCK), new.join(LOCK)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(&folder.join(LOCK), error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path, error: std::io::Error) -> String {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull};
    let way_out = match error.kind() {
        PermissionDenied | ReadOnlyFilesystem => {
            "try: Grade with the account that owns the checkout, or from a checkout of your own: the grader writes below its target/grader."
        }
        StorageFull => "try: Make room there.",
        _ => "try: Have the checkout on a disk of this machine; not every file system of a network knows locks.",
    };
    format!("cannot lock {}: {error}\n  {way_out}", path.display())
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// A folder that goes when this is dropped; and when this process is killed, with the next one that is made beside it.
#[derive(Debug)]
pub(crate) struct Folder {
    // First: while it goes, it is still held.
    folder: TempDir,
    _held: File,
}

impl Folder {
    /// Makes one, and removes those that nobody holds any more.
    ///
    /// # Errors
    /// When it cannot be made or locked.
    pub(crate) fn make(parent: &Path) -> Result<Folder, String> {
        // One at a time: a folder is there before it is held.
        let _alone = wait(&parent.join(LOCK), None)?;
        sweep(parent);
        let folder = TempDir::new_in(parent)
            .map_err(|error| format!("cannot make a scratch folder in {}: {error}", parent.display()))?;
        let held = wait(&folder.path().join(LOCK), None)?;
        Ok(Folder { folder, _held: held })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders that nobody holds. Who calls it is alone: a folder is there before it is held.
pub(crate) fn sweep(parent: &Path) {
    let folders = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    for folder in folders.filter(|path| path.symlink_metadata().is_ok_and(|about| about.is_dir())) {
        if let Some(_held) = left(&folder) {
            // What cannot be removed costs space, nothing else.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Holds a folder if nobody does. The outer `None`: somebody does, or nothing can be said.
fn left(folder: &Path) -> Option<Option<File>> {
    let path: PathBuf = folder.join(LOCK);
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file.try_lock().is_ok().then_some(Some(file)),
        // Its maker was killed before it could lock it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn who_may_not_write_is_told_so_and_nothing_of_file_systems() {
        use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull, Unsupported};
        let said = |kind: std::io::ErrorKind| failed(Path::new("lock"), kind.into());
        for kind in [PermissionDenied, ReadOnlyFilesystem] {
            assert!(said(kind).contains("\n  try: Grade with the account that owns the checkout"), "{}", said(kind));
        }
        assert!(said(StorageFull).ends_with("\n  try: Make room there."));
        assert!(said(Unsupported).contains("not every file system of a network knows locks"));
    }

    #[test]
    fn what_nobody_holds_is_removed_at_once_and_the_rest_never() {
        let parent = tempfile::tempdir().unwrap();
        let held = Folder::make(parent.path()).unwrap();
        fs::write(held.path().join("kernel.rs"), "").unwrap();
        // As a grader leaves them that was killed: with a lock that nobody holds, or before it had one.
        let (left, before) = (parent.path().join(".tmpAbc"), parent.path().join(".tmpDef"));
        for folder in [&left, &before] {
            fs::create_dir_all(folder.join("steps")).unwrap();
        }
        fs::write(left.join(LOCK), "").unwrap();
        let another = Folder::make(parent.path()).unwrap();
        assert!(!left.exists() && !before.exists());
        assert!(held.path().join("kernel.rs").exists() && another.path().exists());
        let path = held.path().to_path_buf();
        drop(held);
        assert!(!path.exists() && another.path().exists());
    }

    #[test]
    fn a_lock_that_cannot_be_had_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        for why in [share(&none).unwrap_err(), wait(&none.join(LOCK), None).unwrap_err()] {
            assert!(why.contains("none/lock") && why.contains("\n  try: Have the checkout"), "{why}");
        }
    }

    #[test]
    fn a_lock_is_waited_for_and_ends_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK);
        // A process of its own, that is killed.
        let script = "exec 9>\"$1\"; flock 9; echo held; exec sleep 60";
        let mut other = Command::new("sh");
        let mut other = other.args(["-c", script, "sh"]).arg(&path).stdout(Stdio::piped()).spawn().unwrap();
        let mut word = [0; 4];
        std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut word).unwrap();
        let begin = Instant::now();
        let waits = std::thread::spawn(move || wait(&path, Some("waiting for another grader")).map(drop));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!waits.is_finished(), "it did not wait");
        other.kill().unwrap();
        other.wait().unwrap();
        waits.join().unwrap().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
