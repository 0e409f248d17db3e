//! Reads a plain file of a stranger's folder. Neither it nor a folder on the way to it may be a link, and what it is and what is read are
//! one and the same file, whatever is exchanged meanwhile.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path};

/// What is at a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    File(Vec<u8>),
    /// Not what can be taken. Names the place, or what of it is wrong, and mostly a way out.
    Wrong(String),
}

/// Reads a file of at most so many bytes at a place below a folder.
pub(crate) fn read(folder: &Path, place: &Path, most: u64) -> Found {
    let shown = place.display();
    let opened = match open(folder, place) {
        Ok(opened) => opened,
        Err(found) => return found,
    };
    let about = match opened.metadata() {
        Ok(about) => about,
        Err(error) => return Found::Wrong(format!("cannot look at {shown}: {error}")),
    };
    if !about.is_file() {
        return Found::Wrong(format!("{shown} is no plain file\n  try: Hand in the file itself."));
    }
    let too_large = |bytes: u64| Found::Wrong(format!("{shown} has {bytes} bytes; allowed are {most}"));
    if about.len() > most {
        return too_large(about.len());
    }
    let mut bytes = Vec::new();
    match opened.take(most + 1).read_to_end(&mut bytes) {
        // It grew.
        Ok(read) if read as u64 > most => too_large(read as u64),
        Ok(_) => Found::File(bytes),
        Err(error) => Found::Wrong(format!("cannot read {shown}: {error}")),
    }
}

fn cannot_look(place: &Path, error: &io::Error) -> Found {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Found::Nothing,
        // Not the same as nothing: a hand-in on a disk that fails must not lose its points.
        _ => Found::Wrong(format!("cannot look at {}: {error}", place.display())),
    }
}

fn link(part: &Path) -> Found {
    Found::Wrong(format!("{} is a symbolic link\n  try: Hand in the file itself.", part.display()))
}

/// Opens it from folder to folder: a name on the way that is exchanged for a link leads nowhere.
#[cfg(target_os = "linux")]
fn open(folder: &Path, place: &Path) -> Result<File, Found> {
    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;
    // A pipe is not waited for, and a terminal does not become ours.
    let plain = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let error = |error: rustix::io::Errno| cannot_look(place, &error.into());
    // Who grades has named the folder: it may be a link itself.
    let mut at: OwnedFd =
        openat(CWD, folder, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY, Mode::empty()).map_err(error)?;
    let (mut part, mut names) = (PathBuf::new(), place.components().peekable());
    while let Some(Component::Normal(name)) = names.next() {
        part.push(name);
        let flags = if names.peek().is_some() { plain | OFlags::DIRECTORY } else { plain };
        at = openat(&at, name, flags, Mode::empty()).map_err(|why| {
            let is_link = statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Symlink);
            // A socket cannot be opened at all.
            let is_none = why == rustix::io::Errno::NXIO;
            match (is_link, is_none) {
                (true, _) => link(&part),
                (_, true) => {
                    Found::Wrong(format!("{} is no plain file\n  try: Hand in the file itself.", part.display()))
                }
                _ => error(why),
            }
        })?;
    }
    Ok(File::from(at))
}

#[cfg(not(target_os = "linux"))]
fn open(folder: &Path, place: &Path) -> Result<File, Found> {
    let mut path = folder.to_path_buf();
    for component in place.components() {
        let Component::Normal(name) = component else { return Err(Found::Nothing) };
        path.push(name);
        let about = path.symlink_metadata().map_err(|error| cannot_look(place, &error))?;
        if about.is_symlink() {
            return Err(link(path.strip_prefix(folder).unwrap_or(&path)));
        }
        if !about.is_file() && !about.is_dir() {
            return Err(Found::Wrong(format!("{} is no plain file\n  try: Hand in the file itself.", place.display())));
        }
    }
    File::open(&path).map_err(|error| cannot_look(place, &error))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn links_on_the_way_pipes_and_large_files_are_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("steps/step01/src")).unwrap();
        fs::write(at("steps/step01/src/kernel.rs"), "text").unwrap();
        symlink(at("steps"), at("others")).unwrap();
        symlink(at("steps/step01/src/kernel.rs"), at("link.rs")).unwrap();
        // Whoever waits for its writer waits for ever.
        assert!(Command::new("mkfifo").arg(at("pipe.rs")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket.rs")).unwrap();
        fs::create_dir(at("folder.rs")).unwrap();
        let read = |place: &str, most| read(folder.path(), Path::new(place), most);
        assert_eq!(read("steps/step01/src/kernel.rs", 4), Found::File(b"text".to_vec()));
        assert_eq!(read("steps/step02/src/kernel.rs", 4), Found::Nothing);
        assert_eq!(read("steps/step01/src/kernel.rs/more", 4), Found::Nothing);
        for (place, words) in [
            ("steps/step01/src/kernel.rs", "has 4 bytes; allowed are 3"),
            ("others/step01/src/kernel.rs", "others is a symbolic link"),
            ("link.rs", "link.rs is a symbolic link"),
            ("pipe.rs", "pipe.rs is no plain file"),
            ("socket.rs", "socket.rs is no plain file"),
            ("folder.rs", "folder.rs is no plain file"),
        ] {
            let found = read(place, 3);
            assert!(matches!(&found, Found::Wrong(why) if why.contains(words)), "{place}: {found:?}");
        }
    }
}
