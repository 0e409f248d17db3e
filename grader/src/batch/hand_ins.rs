//! Which entries of a folder are hand-ins, what each is known by, and the copy that is graded.
//!
//! Names and files are a stranger's. A name is shown with its control characters replaced, and names no file here: an [`HandIn::id`] does.
//! Links are not followed. What is graded is the copy, so nobody changes it meanwhile, and it can be graded again.

use super::odd;
use super::store::Store;
use crate::archive::MAX_FILE;
use crate::folder::{Folder, Named, Odd, plain_file};
use crate::handin::{self, ARCHIVES, places};
use crate::lacks::There;
use harness::answers::named;
use harness::workbook::pack::{MANIFEST, MAX_KERNEL, hex};
use harness::workbook::whole::{UNFINISHED, sync_folder};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// What Gradescope puts beside the hand-ins that one downloads: whose they are, and when they came.
const GRADESCOPE: &str = "submission_metadata.yml";

/// A hand-in of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandIn {
    /// Its name, fit to be shown.
    pub name: String,
    /// What its files in the folder of grades are called: letters, digits, `-`, `_`.
    pub id: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Why nothing of it can be graded, whatever is in it: it is of a kind that no hand-in has. Somebody handed it in all the same.
    pub odd: Option<String>,
}

/// A hand-in of which there is a copy, or which cannot be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// SHA-256 of what would be graded.
    pub hash: String,
    /// The copy, or why there is none.
    pub kept: Result<PathBuf, NoCopy>,
}

/// Why there is no copy of a hand-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoCopy {
    /// What was found, or what failed.
    pub reason: String,
    /// The system did not give it: then nothing is known of the hand-in, and its hash is none.
    pub here: bool,
    /// It holds no kernel.
    #[serde(default)]
    pub no_kernel: bool,
}

impl NoCopy {
    fn here(reason: String) -> NoCopy {
        NoCopy { reason, here: true, no_kernel: false }
    }
}

/// The hand-ins of a folder in the order of their names, and a sentence on each entry that is left out: what goes away meanwhile, and files
/// whose names begin with a dot, which systems leave behind. Whatever else lies there somebody may have handed in ([`HandIn::odd`]).
///
/// # Errors
/// When the folder cannot be read, or grades would lie in it.
pub fn list(folder: &Path, out: Option<&Path>) -> Result<(Vec<HandIn>, Vec<String>), String> {
    const TRY: &str = "try: Name the folder in which each hand-in is a folder, a .tar, a .tar.gz or a .tgz file.";
    let failed = |error: io::Error| format!("cannot read {}: {error}\n  {TRY}", folder.display());
    let real = fs::canonicalize(folder).map_err(failed)?;
    if let Some(out) = out
        && is_below(out, &real)
    {
        return Err(format!(
            "the grades, {}, would lie among the hand-ins, {}\n  try: Name a folder beside it with --out.",
            out.display(),
            folder.display()
        ));
    }
    // The copies that are kept would lie among them, or beside them: who gives the batch again would grade copies.
    if let Some(grades) = out.and_then(|out| fs::canonicalize(out).ok())
        && real.starts_with(&grades)
    {
        return Err(format!(
            "the hand-ins, {}, lie in the folder of grades, {}\n  try: Name another folder with --out, beside the hand-ins.",
            folder.display(),
            grades.display()
        ));
    }
    let (mut hand_ins, mut ignored) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), shown(&entry.file_name()));
        let about = match path.symlink_metadata() {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                ignored.push(format!("{name} is left out: it went away"));
                continue;
            }
            // It may be one: who hands in must not be left out because of a disk.
            Err(_) => {
                hand_ins.push(HandIn { id: id(&entry.file_name()), name, path, odd: None });
                continue;
            }
        };
        if about.is_file() && entry.file_name() == GRADESCOPE {
            ignored
                .push(format!("{name} is left out: it is Gradescope's list of the hand-ins, which --handed-in takes"));
            continue;
        }
        let archive = about.is_file() && archive_end(&entry.file_name()).is_some();
        if about.is_dir() || archive {
            hand_ins.push(HandIn { id: id(&entry.file_name()), name, path, odd: None });
        } else if name.starts_with('.') {
            ignored.push(format!("{name} is left out: its name begins with a dot"));
        } else {
            let odd = Some(odd::why(&name, &about));
            hand_ins.push(HandIn { id: id(&entry.file_name()), name, path, odd });
        }
    }
    if let Some(place) = kernel_of_one(folder, &hand_ins) {
        let shown = folder.display();
        return Err(format!(
            "{shown} is one hand-in, since it holds {place}\n  \
             try: Name the folder in which each hand-in has a folder of its own; `grader grade {shown}` grades this one."
        ));
    }
    hand_ins.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    ignored.sort_unstable();
    Ok((hand_ins, ignored))
}

/// The kernel by which a folder is known as one hand-in and not as a folder of them: nothing lies there but what one has.
fn kernel_of_one(folder: &Path, entries: &[HandIn]) -> Option<String> {
    let of_one = |name: &str| {
        let step = |step: u8| [harness::workbook::name(step), format!("{}.rs", harness::workbook::name(step))];
        ["steps", MANIFEST].contains(&name) || (1..=99).any(|number| step(number).iter().any(|known| known == name))
    };
    let places = || (1..=99).flat_map(places);
    let all = !entries.is_empty() && entries.iter().all(|entry| of_one(&entry.name));
    if all { places().find(|place| folder.join(place).is_file()) } else { None }
}

/// Whether a folder, which need not exist yet, is or would be in another one.
fn is_below(folder: &Path, other: &Path) -> bool {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let real = folder.ancestors().find_map(|above| fs::canonicalize(above).ok());
    real.is_some_and(|real| real.starts_with(other))
}

/// A name without what moves a cursor or turns a line around.
fn shown(name: &OsStr) -> String {
    named(&name.to_string_lossy())
}

/// A file name for any name: what is readable of it, and a hash that tells it from all others.
fn id(name: &OsStr) -> String {
    const READABLE: usize = 40;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let readable: String =
        name.to_string_lossy().chars().map(|c| if fits(c) { c } else { '_' }).take(READABLE).collect();
    format!("{}-{}", readable, &hex(&Sha256::digest(name.as_encoded_bytes()))[..16])
}

/// How the name of an archive ends.
fn archive_end(name: &OsStr) -> Option<&'static str> {
    handin::archive_end(name.to_str()?)
}

/// Copies a hand-in to where it is kept.
///
/// # Errors
/// When the copy cannot be written. What is wrong with the hand-in itself is in [`Taken::kept`].
pub fn take(hand_in: &HandIn, store: &Store) -> Result<Taken, String> {
    let gone = |error: io::Error| {
        // Its hash is that of nothing, so it is graded once it is there again.
        let reason = format!("{} was there, and cannot be looked at now: {error}", hand_in.name);
        Ok(Taken { hash: Hash::default().end(), kept: Err(NoCopy::here(reason)) })
    };
    if let Some(odd) = &hand_in.odd {
        // By what is said of it: its bytes are not looked at.
        let mut hash = Hash::default();
        hash.add(odd.as_bytes());
        return Ok(Taken {
            hash: hash.end(),
            kept: Err(NoCopy { reason: odd.clone(), here: false, no_kernel: false }),
        });
    }
    match Folder::open(&hand_in.path, Named::ByEntry) {
        Ok(folder) => match handin::archive_in(&folder) {
            Some(archive) => take_archive_in(&folder, &archive, &hand_in.name, store),
            None => take_folder(&folder, &hand_in.name, store),
        },
        Err(not_a_folder) => match hand_in.path.file_name().and_then(archive_end) {
            None => gone(not_a_folder),
            Some(end) => match plain_file(&hand_in.path, Named::ByEntry) {
                Ok(file) => take_archive(file, &hand_in.name, end, store),
                Err(error) => gone(error),
            },
        },
    }
}

/// A hash of texts of any length, one after the other.
#[derive(Default)]
struct Hash(Sha256);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn end(self) -> String {
        hex(&self.0.finalize())
    }
}

/// What is taken of a folder: its hash, the kernels with their places, and what is wrong with it.
struct Kernels {
    hash: String,
    kernels: Vec<(String, Vec<u8>)>,
    wrong: Option<NoCopy>,
}

/// Of a folder only the kernels are taken: nothing else of it is graded.
fn kernels(folder: &Folder, name: &str) -> Kernels {
    let (mut hash, mut kernels, mut wrong) = (Hash::default(), Vec::new(), None);
    for place in (1..=99).flat_map(places) {
        match folder.read(&place, MAX_KERNEL) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                hash.add(place.as_bytes());
                hash.add(&bytes);
                kernels.push((place, bytes));
            }
            // Not the same as nothing: a hand-in on a disk that fails must not lose its points.
            Err(odd) => {
                let (reason, here) = (odd.within(name), matches!(odd, Odd::Failed(..)));
                hash.add(reason.as_bytes());
                // What the system does not give decides: who looks again may find nothing wrong.
                if here || wrong.is_none() {
                    wrong = Some(NoCopy { reason, here, no_kernel: false });
                }
            }
        }
    }
    if kernels.is_empty() && wrong.is_none() {
        // The copy would hold nothing that one could name.
        let steps: Vec<u8> = harness::STEPS.iter().map(|step| step.number).collect();
        let reason = There::of_folder(folder).without(name, &steps, &[]);
        hash.add(reason.as_bytes());
        wrong = Some(NoCopy { reason, here: false, no_kernel: true });
    }
    Kernels { hash: hash.end(), kernels, wrong }
}

/// The hash of a hand-in that was kept, as it is now.
///
/// # Errors
/// When it cannot be read.
pub fn hash(kept: &Path) -> Result<String, String> {
    let failed = |error: io::Error| format!("cannot read {}: {error}", kept.display());
    match kept.file_name().and_then(archive_end) {
        Some(end) => plain_file(kept, Named::ByEntry).and_then(|file| archive_hash(file, end)).map_err(failed),
        None => Ok(kernels(&Folder::open(kept, Named::ByEntry).map_err(failed)?, "").hash),
    }
}

fn take_folder(folder: &Folder, name: &str, store: &Store) -> Result<Taken, String> {
    let Kernels { hash, kernels, wrong } = kernels(folder, name);
    if let Some(wrong) = wrong {
        return Ok(Taken { hash, kept: Err(wrong) });
    }
    let kept = store.folder.join("hand-ins").join(&hash);
    if !kept.is_dir() {
        let failed = |error: io::Error| format!("cannot write {}: {error}", kept.display());
        let folder = store.folder.join("hand-ins");
        let copy = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&folder).map_err(failed)?;
        let mut folders = BTreeSet::from([copy.path().to_path_buf()]);
        for (place, bytes) in kernels {
            let path = copy.path().join(place);
            fs::create_dir_all(path.parent().unwrap_or(copy.path())).map_err(failed)?;
            fs::write(&path, bytes).and_then(|()| File::open(&path)?.sync_all()).map_err(failed)?;
            let between = path.ancestors().skip(1).take_while(|folder| *folder != copy.path());
            folders.extend(between.map(Path::to_path_buf));
        }
        // The names in them, too: after a loss of power a copy is there whole or not at all.
        folders.iter().try_for_each(|folder| sync_folder(folder)).map_err(failed)?;
        match fs::rename(copy.path(), &kept) {
            Ok(()) => sync_folder(&folder).map_err(failed)?,
            // The same was handed in twice, and the other was faster.
            Err(_) if kept.is_dir() => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let kept = unchanged(kept, &hash).map_err(NoCopy::here);
    Ok(Taken { hash, kept })
}

/// A kept copy, if it is still what it was kept as.
///
/// # Errors
/// When it is not, or cannot be read.
pub fn unchanged(kept: PathBuf, expected: &str) -> Result<PathBuf, String> {
    if self::hash(&kept)? == expected {
        return Ok(kept);
    }
    Err(format!(
        "{} was changed since it was kept: its hash is another\n  \
         try: Look who writes there. When it is removed, a batch with --retry keeps it anew.",
        kept.display()
    ))
}

fn archive_hash(mut file: File, end: &str) -> io::Result<String> {
    let mut sha = Sha256::new();
    io::copy(&mut file, &mut crate::versions::HashWriter(&mut sha))?;
    // A folder with the bytes of an archive in it is another hand-in.
    Ok(hex(&Sha256::digest(format!("{end} {}", hex(&sha.finalize())))))
}

/// The archive that a folder holds in place of kernels.
fn take_archive_in(folder: &Folder, archive: &str, name: &str, store: &Store) -> Result<Taken, String> {
    match folder.file(archive) {
        Ok(Some(file)) => take_archive(file, name, handin::archive_end(archive).unwrap_or(ARCHIVES[0]), store),
        // It went away.
        Ok(None) => take_folder(folder, name, store),
        Err(odd) => {
            let (reason, here) = (odd.within(name), matches!(odd, Odd::Failed(..)));
            let mut hash = Hash::default();
            hash.add(reason.as_bytes());
            Ok(Taken { hash: hash.end(), kept: Err(NoCopy { reason, here, no_kernel: false }) })
        }
    }
}

fn take_archive(mut file: File, name: &str, end: &str, store: &Store) -> Result<Taken, String> {
    let folder = store.folder.join("hand-ins");
    let failed = |error: io::Error| format!("cannot write below {}: {error}", folder.display());
    let mut copy = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&folder).map_err(failed)?;
    let mut bytes = 0;
    // Not `io::copy`: a disk that is full here is nobody's fault who handed something in.
    let mut part = vec![0; 64 << 10];
    loop {
        let count = match file.read(&mut part) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let reason = format!("cannot read {name}: {error}");
                return Ok(Taken { hash: Hash::default().end(), kept: Err(NoCopy::here(reason)) });
            }
        };
        copy.write_all(&part[..count]).map_err(failed)?;
        bytes += count as u64;
        if bytes > MAX_FILE {
            break;
        }
    }
    let hash = copy.reopen().and_then(|copy| archive_hash(copy, end)).map_err(failed)?;
    if bytes > MAX_FILE {
        let reason = format!(
            "refused (too-large): {name} has more than {MAX_FILE} bytes\n  try: Hand in what `cargo workbook pack` writes."
        );
        return Ok(Taken { hash, kept: Err(NoCopy { reason, here: false, no_kernel: false }) });
    }
    let kept = folder.join(format!("{hash}{end}"));
    if !kept.is_file() {
        copy.as_file().sync_all().map_err(failed)?;
        copy.persist(&kept).map_err(|error| failed(error.error))?;
        sync_folder(&folder).map_err(failed)?;
    }
    let kept = unchanged(kept, &hash).map_err(NoCopy::here);
    Ok(Taken { hash, kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_has_a_harmless_id_of_its_own() {
        let names = ["../../etc", "a/b", "anna", "Anna", "<script>", "x\u{1b}[2J", "", &"long ".repeat(100)];
        let ids: Vec<String> = names.iter().map(|name| id(OsStr::new(name))).collect();
        for id in &ids {
            assert!(id.len() < 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{id}");
        }
        let mut unique = ids.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
        assert_eq!(shown(OsStr::new("x\u{1b}[2J\u{202e}y")), "x\u{fffd}[2J\u{fffd}y");
    }

    #[test]
    fn an_entry_that_goes_away_while_the_folder_is_listed_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("anna")).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    for number in 0..20 {
                        fs::write(folder.path().join(format!("{number}.part")), "").unwrap();
                    }
                    for number in 0..20 {
                        fs::remove_file(folder.path().join(format!("{number}.part"))).unwrap();
                    }
                }
            });
            let lists: Vec<_> = (0..300).map(|_| list(folder.path(), None)).collect();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            for list in lists {
                let whole = list.unwrap().0.into_iter().filter(|hand_in| hand_in.odd.is_none());
                let names: Vec<String> = whole.map(|hand_in| hand_in.name).collect();
                assert_eq!(names, ["anna"]);
            }
        });
    }
}
