//! Writes a file so that after a kill, or a loss of power, it is there whole or as it was before.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How the name begins of what is not yet whole. A kill leaves it behind.
pub const UNFINISHED: &str = ".unfinished-";

/// Writes a file whole or not at all: to a name beside it first. What a link leads to is written, and the link stays.
///
/// # Errors
/// What the system says; what was there is still there.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (file, folder) = beside(&path, content)?;
    if let Ok(about) = fs::metadata(&path) {
        file.as_file().set_permissions(about.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    sync_folder(&folder)
}

/// The same for a file that is not there yet. Of several who write it at once, one does; what is there is not replaced.
///
/// # Errors
/// `AlreadyExists`, or what the system says.
pub fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let (file, folder) = beside(path, content)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    sync_folder(&folder)
}

/// A file of this content beside another, and their folder.
fn beside(path: &Path, content: &[u8]) -> io::Result<(tempfile::NamedTempFile, PathBuf)> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    // As other files are: a temporary file is for its owner alone.
    #[cfg(unix)]
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(everybody);
    let mut file = builder.tempfile_in(&folder)?;
    file.write_all(content)?;
    Ok((file, folder))
}

/// Brings the names in a folder to the disk.
///
/// # Errors
/// What the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
