//! Hand-ins as one file: what `cargo workbook pack` writes, and any other `.tar`, `.tar.gz` or `.tgz`.
//!
//! **Does:** read it in memory, within bounds, and give the kernels in it. **Never does:** write a file, follow a link, or believe a
//! size. What is odd is refused by a name ([`Refused::reason`]); other plain files are left alone, with a note.

mod pax;

use flate2::read::MultiGzDecoder;
use harness::workbook::pack::{MANIFEST, MAX_KERNEL, Manifest, Packed, SCHEMA};
use pax::{Extended, MAX_PAX};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use tar::{Archive, EntryType};

/// The most that is unpacked of an archive, headers and files that are left alone included.
const MAX_UNPACKED: u64 = 32 << 20;
/// The largest archive file.
pub(crate) const MAX_FILE: u64 = 32 << 20;
/// The most entries.
const MAX_ENTRIES: usize = 1000;
/// The longest name.
const MAX_NAME: usize = 200;
/// The largest manifest.
const MAX_MANIFEST: u64 = 64 << 10;
/// How many notes on files that are left alone are given.
const MAX_NOTES: usize = 5;

/// What an archive holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The files that can be kernels, by name.
    pub kernels: BTreeMap<String, String>,
    /// What was left alone, and what is missing: a sentence each.
    pub notes: Vec<String>,
    /// The names of all files but the manifest, in the archive's order.
    pub names: Vec<String>,
}

/// Why an archive is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The reason's name; these stay: `not-an-archive`, `too-large`, `too-many-entries`, `absolute-path`, `parent-path`, `odd-name`,
    /// `link`, `not-a-file`, `sparse`, `extended-header`, `duplicate`, `not-text`, `manifest`, `hash-mismatch`, `not-in-manifest`, `not-in-archive`.
    /// And [`UNREADABLE`], which is this machine's fault.
    pub reason: &'static str,
    /// What was found.
    pub found: String,
}

/// The reason's name when the system does not give the file.
pub const UNREADABLE: &str = "unreadable";

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reason == UNREADABLE {
            return write!(
                f,
                "it cannot be read: {}\n  try: Look at the disk it lies on, and who may read it.",
                self.found
            );
        }
        write!(f, "refused ({}): {}\n  try: Hand in what `cargo workbook pack` writes.", self.reason, self.found)
    }
}

fn refused<T>(reason: &'static str, found: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { reason, found: found.into() })
}

/// Reads an archive. `is_kernel` tells the names that kernels have.
///
/// # Errors
/// [`Refused`].
pub fn read(file: File, is_kernel: impl Fn(&str) -> bool) -> Result<Contents, Refused> {
    let unreadable = |error: &io::Error| Refused { reason: UNREADABLE, found: error.to_string() };
    let about = file.metadata().map_err(|error| unreadable(&error))?;
    if about.len() > MAX_FILE {
        return refused("too-large", format!("it has {} bytes; up to {MAX_FILE} are read", about.len()));
    }
    let failed = RefCell::new(None);
    // It may grow while it is read.
    let mut file = BufReader::new(Watched { reader: file.take(MAX_FILE), failed: &failed });
    let read = match io::BufRead::fill_buf(&mut file) {
        Ok([0x1f, 0x8b, ..]) => unpack(MultiGzDecoder::new(file), is_kernel),
        Ok([b'P', b'K', 3 | 5, 4 | 6, ..]) => {
            refused("not-an-archive", "it is a ZIP file; read are .tar, .tar.gz and .tgz")
        }
        Ok(_) => unpack(file, is_kernel),
        Err(error) => Err(unreadable(&error)),
    };
    // Whatever those who read tar and gzip make of it.
    failed.into_inner().map_or(read, |error| Err(unreadable(&error)))
}

/// A reader that keeps what the system says when it gives nothing.
struct Watched<'a, R> {
    reader: R,
    failed: &'a RefCell<Option<io::Error>>,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                *self.failed.borrow_mut() = Some(io::Error::new(error.kind(), error.to_string()));
            }
        })
    }
}

/// Why reading stopped.
fn broken(error: &io::Error) -> Refused {
    /// What those who read tar and gzip say without a word of the file; other messages of theirs quote it, with whatever is in it.
    const KNOWN: [&str; 9] = [
        "failed to read entire block",
        "unexpected EOF during skip",
        "unexpected end of file",
        "archive header checksum mismatch",
        "found block of 0s not followed by a second block of 0s",
        "numeric field was not a number",
        "invalid gzip header",
        "corrupt gzip stream does not have a matching checksum",
        "corrupt deflate stream",
    ];
    if error.get_ref().is_some_and(|inner| inner.is::<TooLarge>()) {
        return Refused { reason: "too-large", found: format!("unpacked it has more than {MAX_UNPACKED} bytes") };
    }
    let said = error.to_string();
    let said = KNOWN.iter().find(|known| said.starts_with(**known)).map(|known| format!(": {known}"));
    let said = said.unwrap_or_default();
    Refused { reason: "not-an-archive", found: format!("it is cut off, or no tar archive{said}") }
}

fn unpack(reader: impl Read, is_kernel: impl Fn(&str) -> bool) -> Result<Contents, Refused> {
    let mut found = Found::default();
    let mut left_alone = 0;
    // One byte more than allowed tells a full archive from one that is too large.
    let mut archive = Archive::new(Bounded { reader, left: MAX_UNPACKED });
    let broken = |error: io::Error| broken(&error);
    // What an extended header says of the next entry.
    let mut extended: Option<Extended> = None;
    // Raw: extensions that change names and sizes are entries like others.
    for (count, entry) in archive.entries().map_err(broken)?.raw(true).enumerate() {
        let mut entry = entry.map_err(broken)?;
        if count == MAX_ENTRIES {
            return refused("too-many-entries", format!("it has more than {MAX_ENTRIES} entries"));
        }
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XHeader | EntryType::XGlobalHeader) {
            let size = entry.size();
            if size > MAX_PAX {
                return refused("too-large", format!("an extended header has {size} bytes; allowed are {MAX_PAX}"));
            }
            let mut content = Vec::new();
            entry.by_ref().take(MAX_PAX).read_to_end(&mut content).map_err(broken)?;
            if content.len() as u64 != size {
                return refused("not-an-archive", "an extended header is cut off");
            }
            let read = pax::read(&content, kind == EntryType::XGlobalHeader)?;
            // Programs disagree on which of two counts.
            if extended.is_some() {
                return refused("extended-header", "two extended headers stand before one entry");
            }
            if kind == EntryType::XHeader {
                extended = Some(read);
            }
            continue;
        }
        let Extended { path, size: said } = extended.take().unwrap_or_default();
        if let Some(said) = said.filter(|said| *said != entry.size()) {
            let found =
                format!("an extended header says that a file has {said} bytes, and its own says {}", entry.size());
            return refused("extended-header", found);
        }
        let path = path.unwrap_or_else(|| entry.path_bytes().into_owned());
        let name = checked(&path, kind)?;
        found.places.enter(&name, kind == EntryType::Directory)?;
        if kind == EntryType::Directory {
            continue;
        }
        let size = entry.size();
        let most = if name == MANIFEST { MAX_MANIFEST } else { MAX_KERNEL };
        if name != MANIFEST {
            found.names.push(name.clone());
        }
        if name != MANIFEST && !is_kernel(&name) {
            left_alone += 1;
            if left_alone <= MAX_NOTES {
                found.notes.push(format!("`{name}` is left alone: only kernels are graded"));
            }
            continue;
        }
        if size > most {
            return refused("too-large", format!("`{name}` has {size} bytes; allowed are {most}"));
        }
        let mut content = Vec::new();
        entry.by_ref().take(most).read_to_end(&mut content).map_err(broken)?;
        if content.len() as u64 != size {
            return refused("not-an-archive", format!("`{name}` is cut off"));
        }
        if found.files.insert(name.clone(), content).is_some() {
            return refused("duplicate", format!("`{name}` is in it twice"));
        }
    }
    if extended.is_some() {
        return refused("extended-header", "an extended header stands before nothing");
    }
    // What stands behind the end is nobody's file, and must not be too much all the same. What is wrong with it otherwise is of no matter.
    if let Err(error) = io::copy(&mut archive.into_inner(), &mut io::sink())
        && error.get_ref().is_some_and(|inner| inner.is::<TooLarge>())
    {
        return Err(broken(error));
    }
    if left_alone > MAX_NOTES {
        found.notes.push(format!("{} more files are left alone", left_alone - MAX_NOTES));
    }
    found.finish()
}

/// The name of a plain file or a folder, without what says nothing.
fn checked(raw: &[u8], kind: EntryType) -> Result<String, Refused> {
    let Ok(name) = std::str::from_utf8(raw) else {
        return refused("odd-name", format!("a name is not UTF-8: `{}`", raw.escape_ascii()));
    };
    let shown = name.escape_debug();
    match kind {
        EntryType::Regular | EntryType::Continuous => {}
        EntryType::Directory => {}
        EntryType::Symlink | EntryType::Link => return refused("link", format!("`{shown}` is a link")),
        EntryType::GNUSparse => return refused("sparse", format!("`{shown}` has holes")),
        EntryType::GNULongName | EntryType::GNULongLink => {
            return refused("odd-name", "a name has more than 100 bytes".to_string());
        }
        EntryType::Char | EntryType::Block => return refused("not-a-file", format!("`{shown}` is a device")),
        EntryType::Fifo => return refused("not-a-file", format!("`{shown}` is a pipe")),
        _ => return refused("not-a-file", format!("`{shown}` is no plain file")),
    }
    if name.starts_with('/') {
        return refused("absolute-path", format!("`{shown}` begins at the root"));
    }
    let odd = |sign: char| !(sign.is_ascii_alphanumeric() || " !#%()+,-./=@[]^_{}~".contains(sign));
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(|sign| sign == '\\' || sign.is_control()) {
        return refused("odd-name", format!("`{shown}`"));
    }
    // `./steps/…` is what `tar c .` writes.
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return refused("parent-path", format!("`{shown}` leads out of the archive"));
    }
    if kind == EntryType::Directory {
        return Ok(parts.join("/"));
    }
    // With a slash at its end, a file is a folder for `tar`.
    let folder = parts.last().is_none_or(|last| !name.ends_with(last));
    let name = parts.join("/");
    if folder || name.is_empty() || name.chars().any(odd) {
        return refused("odd-name", format!("`{shown}`"));
    }
    Ok(name)
}

/// What an archive has where: a name is that of a file or of a folder, never of both.
#[derive(Default)]
struct Places {
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
}

impl Places {
    fn enter(&mut self, name: &str, folder: bool) -> Result<(), Refused> {
        let both = |name: &str| refused("duplicate", format!("`{name}` is a file in it, and a folder"));
        let above = name.match_indices('/').map(|(at, _)| &name[..at]);
        for folder in above.chain(folder.then_some(name)).filter(|folder| !folder.is_empty()) {
            if self.files.contains(folder) {
                return both(folder);
            }
            self.folders.insert(folder.to_string());
        }
        if folder {
            return Ok(());
        }
        self.files.insert(name.to_string());
        if self.folders.contains(name) { both(name) } else { Ok(()) }
    }
}

#[derive(Default)]
struct Found {
    places: Places,
    files: BTreeMap<String, Vec<u8>>,
    notes: Vec<String>,
    names: Vec<String>,
}

impl Found {
    /// Compares the files with the manifest, if there is one.
    fn finish(mut self) -> Result<Contents, Refused> {
        match self.files.remove(MANIFEST) {
            Some(text) => self.compare(&text)?,
            None => {
                self.notes.push(format!("there is no {MANIFEST}: `cargo workbook pack` did not write this archive"))
            }
        }
        let mut kernels = BTreeMap::new();
        for (name, content) in self.files {
            let Ok(text) = String::from_utf8(content) else {
                return refused("not-text", format!("`{name}` is not UTF-8 text"));
            };
            kernels.insert(name, text);
        }
        Ok(Contents { kernels, notes: self.notes, names: self.names })
    }

    fn compare(&self, text: &[u8]) -> Result<(), Refused> {
        let manifest: Manifest = match serde_json::from_slice(text) {
            Ok(manifest) => manifest,
            Err(error) => {
                let error = harness::answers::plain(&error.to_string());
                return refused("manifest", format!("{MANIFEST} is no list of files: {error}"));
            }
        };
        if manifest.schema != SCHEMA {
            let found = format!("{MANIFEST} has schema {}; this grader knows {SCHEMA}", manifest.schema);
            return refused("manifest", found);
        }
        let mut listed = BTreeMap::new();
        for file in &manifest.files {
            if listed.insert(file.name.as_str(), file).is_some() {
                return refused("manifest", format!("{MANIFEST} lists `{}` twice", file.name.escape_debug()));
            }
        }
        for (name, content) in &self.files {
            let Some(file) = listed.remove(name.as_str()) else {
                return refused("not-in-manifest", format!("{MANIFEST} does not list `{name}`"));
            };
            let found = Packed::of(name, content);
            if found != *file {
                return refused(
                    "hash-mismatch",
                    format!(
                        "`{name}` has {} bytes and the SHA-256 {}; {MANIFEST} says {} bytes and {}",
                        found.bytes,
                        found.sha256,
                        file.bytes,
                        file.sha256.escape_debug()
                    ),
                );
            }
        }
        match listed.first_key_value() {
            Some((name, _)) => refused(
                "not-in-archive",
                format!("{MANIFEST} lists `{}`, which is no kernel in it", name.escape_debug()),
            ),
            None => Ok(()),
        }
    }
}

/// Reads so many bytes, and fails if there are more.
struct Bounded<R> {
    reader: R,
    left: u64,
}

#[derive(Debug)]
struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too large")
    }
}

impl std::error::Error for TooLarge {}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| io::Error::other(TooLarge))?;
        Ok(count)
    }
}
