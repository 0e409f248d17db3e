//! Reads files of a folder that a stranger filled.
//!
//! **Does:** open a place in it name by name, follow no link on the way, and read a plain file within a bound. **Never does:** look first and
//! read then: what is looked at is what was opened, whatever is put in its place meanwhile. That there is nothing is one answer; that the system
//! does not give it is another, and is said.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Whether the last name of a path may be a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A person named it: a link is meant.
    ByPerson,
    /// It is an entry of a folder in which strangers write.
    ByEntry,
}

/// A folder that is open: it stays the same one, whatever its path leads to later.
#[derive(Debug)]
pub struct Folder(system::Open);

/// Why a place of a folder is not read.
#[derive(Debug)]
pub enum Odd {
    /// This part of it is a symbolic link.
    Link(String),
    /// It is a folder, a pipe, a device.
    NotPlain(String),
    /// It has more bytes than this.
    TooLarge {
        /// The place.
        place: String,
        /// Its bytes, as the system says.
        bytes: u64,
        /// The most that are read.
        most: u64,
    },
    /// The system does not give it.
    Failed(String, io::Error),
}

/// Begins with the place, as it is seen from the folder.
impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Odd::Link(part) => write!(
                f,
                "{part} is a symbolic link\n  try: Put in its place what it leads to (`cp -rL` copies so). Links are not followed, \
                 and with one where a kernel is looked for nothing of a hand-in is graded."
            ),
            Odd::NotPlain(place) => write!(f, "{place} is no plain file\n  try: Hand in the file itself."),
            Odd::TooLarge { place, bytes, most } => {
                write!(f, "{place} has {bytes} bytes; allowed are {most}\n  try: Generate tables in code.")
            }
            Odd::Failed(place, error) => write!(f, "{place} cannot be read: {error}"),
        }
    }
}

impl Odd {
    /// The same, with the place as it is seen from where the folder lies.
    pub fn within(&self, folder: &str) -> String {
        format!("{folder}/{self}")
    }
}

/// There is nothing of that name.
fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path, named: Named) -> io::Result<Folder> {
        system::folder(path, named).map(Folder)
    }

    /// The bytes of the plain file at a place, `a/b/c`; `None` if there is nothing.
    ///
    /// # Errors
    /// [`Odd`].
    pub fn read(&self, place: &str, most: u64) -> Result<Option<Vec<u8>>, Odd> {
        let Some(file) = self.file(place)? else { return Ok(None) };
        let failed = |error| Odd::Failed(place.to_string(), error);
        let about = file.metadata().map_err(failed)?;
        let mut bytes = Vec::new();
        // It may grow while it is read.
        file.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > most {
            return Err(Odd::TooLarge { place: place.to_string(), bytes: about.len().max(most + 1), most });
        }
        Ok(Some(bytes))
    }

    /// The plain file at a place, open for reading; `None` if there is nothing.
    ///
    /// # Errors
    /// [`Odd`].
    pub fn file(&self, place: &str) -> Result<Option<File>, Odd> {
        let Some(file) = system::below(&self.0, place)? else { return Ok(None) };
        match file.metadata() {
            Ok(about) if about.is_file() => Ok(Some(file)),
            Ok(_) => Err(Odd::NotPlain(place.to_string())),
            Err(error) => Err(Odd::Failed(place.to_string(), error)),
        }
    }

    /// The names in it in their order, those of folders with a `/` at their end. What cannot be listed has none: names are only shown.
    pub fn names(&self) -> Vec<String> {
        let mut names = system::names(&self.0).unwrap_or_default();
        names.sort_unstable();
        names
    }

    /// The folder at a place; `None` if there is none, or the system does not give it. What lies in it is only shown.
    pub(crate) fn folder(&self, place: &str) -> Option<Folder> {
        system::open_below(&self.0, place).map(Folder)
    }

    /// Whether anything is at a place, of whatever kind.
    pub fn holds(&self, place: &str) -> bool {
        !matches!(system::below(&self.0, place), Ok(None))
    }
}

/// Opens a plain file, and nothing else. A pipe does not make it wait.
///
/// # Errors
/// What the system says; `InvalidInput` if it is of another kind.
pub fn plain_file(path: &Path, named: Named) -> io::Result<File> {
    let file = system::file(path, named)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is no plain file")),
    }
}

#[cfg(unix)]
mod system {
    //! By file descriptors.

    use super::{Named, Odd, absent};
    use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::path::Path;

    pub(super) type Open = OwnedFd;

    /// A folder that is only walked through: where the system can, it need not be readable.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const WALK: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const WALK: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    /// A file. A pipe without a writer must not make us wait, and a terminal must not become ours.
    const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

    fn links(named: Named) -> OFlags {
        match named {
            Named::ByPerson => OFlags::empty(),
            Named::ByEntry => OFlags::NOFOLLOW,
        }
    }

    pub(super) fn folder(path: &Path, named: Named) -> io::Result<Open> {
        Ok(openat(CWD, path, WALK | links(named), Mode::empty())?)
    }

    pub(super) fn file(path: &Path, named: Named) -> io::Result<File> {
        Ok(File::from(openat(CWD, path, READ | links(named), Mode::empty())?))
    }

    /// The names in a folder, as they are; its own and that of the folder above it are none.
    pub(super) fn names(folder: &Open) -> io::Result<Vec<String>> {
        // It may be open only for walking through.
        let listed = openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::new(listed)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                _ if name == "." || name == ".." => {}
                FileType::Directory => names.push(name + "/"),
                _ => names.push(name),
            }
        }
        Ok(names)
    }

    /// The folder at a place.
    pub(super) fn open_below(folder: &Open, place: &str) -> Option<Open> {
        let file = below(folder, place).ok()??;
        file.metadata().is_ok_and(|about| about.is_dir()).then(|| OwnedFd::from(file))
    }

    /// What is at a place; `None` if there is nothing.
    pub(super) fn below(folder: &Open, place: &str) -> Result<Option<File>, Odd> {
        #[cfg(target_os = "linux")]
        match at_once(folder, place) {
            Ok(file) => return Ok(Some(file)),
            Err(error) if absent(&error) => return Ok(None),
            // There is a link on the way, or the kernel or a filter has no such call: name by name.
            Err(_) => {}
        }
        by_names(folder, place)
    }

    /// The kernel itself follows no link, and does not leave the folder.
    #[cfg(target_os = "linux")]
    fn at_once(folder: &Open, place: &str) -> io::Result<File> {
        use rustix::fs::{ResolveFlags, openat2};
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(File::from(openat2(folder, place, READ, Mode::empty(), how)?))
    }

    /// The same with the calls that every system has: each name below the folder before it.
    pub(super) fn by_names(folder: &Open, place: &str) -> Result<Option<File>, Odd> {
        let mut before: Option<OwnedFd> = None;
        let mut walked = String::new();
        let mut names = place.split('/').peekable();
        while let Some(name) = names.next() {
            walked += if walked.is_empty() { "" } else { "/" };
            walked += name;
            // The places that kernels may have are ours; none leads out.
            if matches!(name, "" | "." | "..") {
                return Ok(None);
            }
            let (last, here) = (names.peek().is_none(), before.as_ref().map_or(folder.as_fd(), AsFd::as_fd));
            let opened = openat(here, name, if last { READ } else { WALK } | OFlags::NOFOLLOW, Mode::empty());
            match opened {
                Ok(file) if last => return Ok(Some(File::from(file))),
                Ok(folder) => before = Some(folder),
                Err(error) => {
                    // Only what is said depends on this second look.
                    let kind = statat(here, name, AtFlags::SYMLINK_NOFOLLOW);
                    let kind = kind.map(|about| FileType::from_raw_mode(about.st_mode));
                    let error = io::Error::from(error);
                    return match kind {
                        Ok(FileType::Symlink) => Err(Odd::Link(walked)),
                        _ if absent(&error) => Ok(None),
                        // A socket cannot be opened.
                        Ok(kind) if last && kind != FileType::RegularFile => Err(Odd::NotPlain(walked)),
                        _ => Err(Odd::Failed(walked, error)),
                    };
                }
            }
        }
        Ok(None)
    }
}

#[cfg(not(unix))]
mod system {
    //! By paths: between a look and the opening, an entry may become another.

    use super::{Named, Odd, absent};
    use std::fs::File;
    use std::io;
    use std::path::{Path, PathBuf};

    pub(super) type Open = PathBuf;

    pub(super) fn folder(path: &Path, named: Named) -> io::Result<Open> {
        let about = if named == Named::ByPerson { path.metadata()? } else { path.symlink_metadata()? };
        match about.is_dir() {
            true => Ok(path.to_path_buf()),
            false => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    pub(super) fn file(path: &Path, named: Named) -> io::Result<File> {
        let about = if named == Named::ByPerson { path.metadata()? } else { path.symlink_metadata()? };
        match about.is_file() {
            true => File::open(path),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")),
        }
    }

    pub(super) fn names(folder: &Open) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<std::fs::DirEntry>| {
            let entry = entry?;
            let end = if entry.file_type()?.is_dir() { "/" } else { "" };
            Ok(entry.file_name().to_string_lossy().into_owned() + end)
        };
        folder.read_dir()?.map(name).collect()
    }

    pub(super) fn open_below(folder: &Open, place: &str) -> Option<Open> {
        let path = folder.join(place);
        path.symlink_metadata().is_ok_and(|about| about.is_dir()).then_some(path)
    }

    pub(super) fn below(folder: &Open, place: &str) -> Result<Option<File>, Odd> {
        let (mut path, mut walked) = (folder.clone(), String::new());
        for name in place.split('/') {
            walked += if walked.is_empty() { "" } else { "/" };
            walked += name;
            path.push(name);
            match path.symlink_metadata() {
                Ok(about) if about.is_symlink() => return Err(Odd::Link(walked)),
                Ok(_) => {}
                Err(error) if absent(&error) => return Ok(None),
                Err(error) => return Err(Odd::Failed(walked, error)),
            }
        }
        if !path.is_file() {
            return Err(Odd::NotPlain(walked));
        }
        File::open(&path).map(Some).map_err(|error| Odd::Failed(walked, error))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A folder of a student, beside something that is not the student's.
    fn student() -> (tempfile::TempDir, Folder) {
        let folder = tempfile::tempdir().unwrap();
        let at = |place: &str| folder.path().join(place);
        fs::create_dir_all(at("secret/step01")).unwrap();
        fs::write(at("secret/step01/kernel.rs"), "SECRET").unwrap();
        fs::create_dir_all(at("hand-in/step02/kernel.rs")).unwrap();
        fs::write(at("hand-in/step03.rs"), "// three").unwrap();
        fs::write(at("hand-in/step04"), "a file where a folder is looked for").unwrap();
        symlink("../secret", at("hand-in/steps")).unwrap();
        symlink("../secret/step01", at("hand-in/step01")).unwrap();
        symlink("/etc/passwd", at("hand-in/step05.rs")).unwrap();
        symlink("nowhere", at("hand-in/step06.rs")).unwrap();
        let open = Folder::open(&at("hand-in"), Named::ByEntry).unwrap();
        (folder, open)
    }

    #[test]
    fn no_link_is_followed_at_any_part_of_a_place() {
        let (_folder, open) = student();
        let said = |read: Result<Option<Vec<u8>>, Odd>| match read {
            Ok(Some(bytes)) => String::from_utf8(bytes).unwrap(),
            Ok(None) => "nothing".to_string(),
            Err(odd) => odd.to_string().lines().next().unwrap().to_string(),
        };
        for (place, expected) in [
            ("steps/step01/kernel.rs", "steps is a symbolic link"),
            ("step01/kernel.rs", "step01 is a symbolic link"),
            ("step02/kernel.rs", "step02/kernel.rs is no plain file"),
            ("step03.rs", "// three"),
            ("step04/kernel.rs", "nothing"),
            ("step05.rs", "step05.rs is a symbolic link"),
            ("step06.rs", "step06.rs is a symbolic link"),
            ("step07/kernel.rs", "nothing"),
            ("../secret/step01/kernel.rs", "nothing"),
        ] {
            assert_eq!(said(open.read(place, 100)), expected, "{place}");
            assert_eq!(open.holds(place), expected != "nothing", "{place}");
            // Where the kernel has no call that does it at once.
            let by_names = system::by_names(&open.0, place).map(|file| file.is_some());
            let there = !matches!(by_names, Ok(false));
            assert_eq!(there, expected != "nothing", "{place}: {by_names:?}");
            assert_eq!(matches!(by_names, Err(Odd::Link(_))), expected.ends_with("symbolic link"), "{place}");
        }
    }

    #[test]
    fn pipes_and_large_files_are_named_and_nobody_waits() {
        let (folder, open) = student();
        let pipe = folder.path().join("hand-in/step08.rs");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(matches!(open.read("step08.rs", 100), Err(Odd::NotPlain(_))));
        assert_eq!(plain_file(&pipe, Named::ByEntry).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(open.read("step03.rs", 8).unwrap().unwrap().len(), 8);
        let large = open.read("step03.rs", 7).unwrap_err().to_string();
        assert_eq!(large.lines().next(), Some("step03.rs has 8 bytes; allowed are 7"));
        // A link is one when a person names it, and none when it is an entry.
        let link = folder.path().join("hand-in/steps");
        assert!(Folder::open(&link, Named::ByPerson).is_ok() && Folder::open(&link, Named::ByEntry).is_err());
        let link = folder.path().join("hand-in/step05.rs");
        assert!(plain_file(&link, Named::ByPerson).is_ok() && plain_file(&link, Named::ByEntry).is_err());
    }

    #[test]
    fn what_the_system_does_not_give_is_not_the_same_as_nothing() {
        let (folder, open) = student();
        let name = "n".repeat(300);
        assert!(matches!(open.read(&name, 100), Err(Odd::Failed(..))), "a name that no file system has");
        // Root may look everywhere.
        let closed = folder.path().join("hand-in/step09");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        if fs::read_dir(&closed).is_err() {
            assert!(matches!(open.read("step09/kernel.rs", 100), Err(Odd::Failed(..))));
        }
        fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// A student who changes a folder into a link and back, as fast as it goes, never gets another's file read.
    #[test]
    fn a_folder_that_becomes_a_link_meanwhile_is_not_followed() {
        let (folder, open) = student();
        let at = |place: &str| folder.path().join("hand-in").join(place);
        fs::create_dir(at("own")).unwrap();
        fs::write(at("own/kernel.rs"), "// own").unwrap();
        symlink("../secret/step01", at("link")).unwrap();
        let stop = AtomicBool::new(false);
        let (mut own, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for name in ["own", "link"] {
                        // Only one of the two is `step10` at a time.
                        let _ = fs::rename(at(name), at("step10"));
                        std::thread::yield_now();
                        let _ = fs::rename(at("step10"), at(name));
                    }
                }
            });
            let begin = std::time::Instant::now();
            while (own < 50 || refused < 50) && begin.elapsed().as_secs() < 20 {
                for read in [
                    open.read("step10/kernel.rs", 100),
                    system::by_names(&open.0, "step10/kernel.rs")
                        .map(|file| file.map(|file| io::read_to_string(file).unwrap_or_default().into_bytes())),
                ] {
                    match read {
                        Ok(Some(bytes)) => {
                            assert_eq!(String::from_utf8(bytes).unwrap(), "// own");
                            own += 1;
                        }
                        Err(Odd::Link(_)) => refused += 1,
                        Ok(None) | Err(_) => {}
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(own > 0 && refused > 0, "both were seen: {own} and {refused}");
    }
}
