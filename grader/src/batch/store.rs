//! The folder of grades: what lies where, and how it is written so that a kill at any moment loses nothing.
//!
//! | path | holds |
//! |---|---|
//! | `results/ID.json` | a [`Record`] for each hand-in |
//! | `hand-ins/HASH…` | what was graded |
//! | `rubrics/HASH.toml` | by what it was graded |
//! | `reports/ID.html`, `grades.csv`, `index.html` | made from the results, each time anew |
//! | `verdicts/KEY.json` | verdicts on kernels, of use while a batch runs ([`crate::verdicts`]) |
//! | `secret/seed.json`, `secret/verdicts/` | a seed that is not told yet, and verdicts by which one could guess it |
//! | `seed.json` | the seed, once it was told |
//! | `under-way.json` | while a batch runs, and after one was killed: what it grades, by ID and name |

use crate::handin::{ARCHIVES, end_of, is_archive, is_other_archive};
use crate::json::{Report, written};
use crate::rubric::Rubric;
use crate::versions::Versions;
use harness::workbook::pack::hex;
use harness::workbook::whole::{self, UNFINISHED};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What a batch grades, until it is through.
const UNDER_WAY: &str = "under-way.json";
/// Who has it locked writes to the folder.
const LOCK: &str = "lock";

/// The version of [`Record`].
pub const SCHEMA: u32 = 1;

/// What a batch asks of each hand-in beside points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only these steps; all that it holds, if empty.
    pub steps: Vec<u8>,
    /// A part that could not be checked does not stand in the way of passing.
    pub allow_unchecked: bool,
    /// When it was handed in.
    pub handed_in: Option<String>,
    /// What kernels run on: the value of `WORKBOOK_DEVICE`.
    pub device: String,
    /// Further options of `grader grade`.
    pub options: Vec<String>,
}

/// What a result is a result of.
#[derive(Serialize)]
pub struct Identity<'a> {
    /// The hand-in's hash.
    pub hand_in: &'a str,
    /// The rubric's hash.
    pub rubric: &'a str,
    /// What grades: [`Versions::deciding`]. Without an assembler, a part is not checked.
    pub tools: [(&'static str, Option<&'a str>); 5],
    /// The seed of the inputs, or the commitment to it while it is secret.
    pub seed: &'a str,
    /// What was asked.
    pub asked: &'a Asked,
}

impl Identity<'_> {
    /// As one hash.
    pub fn hash(&self) -> String {
        // Of strings and numbers: JSON can say them all.
        hex(&Sha256::digest(serde_json::to_vec(self).unwrap_or_default()))
    }
}

/// What became of a hand-in, and all that it takes to grade it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of the shape.
    pub schema: u32,
    /// The hand-in's name.
    pub name: String,
    /// Its hash.
    pub hand_in: String,
    /// The hash of [`Identity`].
    pub identity: String,
    /// The rubric's hash.
    pub rubric: String,
    /// The seed of the inputs; `None` while it is secret.
    pub seed: Option<u64>,
    /// The commitment to a secret seed, told by now or not.
    pub seed_commitment: Option<String>,
    /// What graded it.
    pub versions: Versions,
    /// What was asked.
    pub asked: Asked,
    /// Wall-clock seconds of its process.
    pub seconds: f64,
    /// The grade, or why there is none.
    pub outcome: Outcome,
}

/// What became of a hand-in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has a grade.
    Graded(Box<Report>),
    /// It has none.
    NotGraded {
        /// Why.
        reason: String,
        /// The machine failed, or the course's files did: it is graded again whenever the batch is given again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        here: bool,
        /// It was ended after so many seconds: a batch that gives it more grades it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// It holds no kernel that was asked for: nothing was there to refuse.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        no_kernel: bool,
    },
}

impl Outcome {
    /// A hand-in that could not be graded.
    pub fn not_graded(reason: String) -> Outcome {
        Outcome::NotGraded { reason, here: false, limit: None, no_kernel: false }
    }

    /// This machine is why a hand-in could not be graded.
    pub fn not_graded_here(reason: String) -> Outcome {
        Outcome::NotGraded { reason, here: true, limit: None, no_kernel: false }
    }

    /// It had no grade by a time limit that is shorter than this one.
    pub fn had_less_than(&self, seconds: u64) -> bool {
        matches!(self, Outcome::NotGraded { limit: Some(limit), .. } if *limit < seconds)
    }

    /// This machine is why there is no grade.
    pub fn failed_here(&self) -> bool {
        matches!(self, Outcome::NotGraded { here: true, .. })
    }
}

/// A folder of grades. While it is open, no other batch writes to it.
#[derive(Debug)]
pub struct Store {
    /// The folder.
    pub folder: PathBuf,
    /// Its lock ends with the process, by whatever way.
    _lock: Option<File>,
}

impl Store {
    /// Opens a folder of grades for writing, and makes it if there is none.
    ///
    /// # Errors
    /// When it cannot be written, or another batch writes to it.
    pub fn open(folder: &Path) -> Result<Store, String> {
        if let Some(other) = of_others(folder) {
            return Err(format!(
                "{folder} holds `{}`, and no batch has written to it: grades would lie among somebody's files\n  \
                 try: Name a new folder with --out.",
                harness::answers::named(&other),
                folder = folder.display(),
            ));
        }
        // First the lock: by it the folder is known, whenever this ends.
        fs::create_dir_all(folder).map_err(|error| {
            format!("cannot make {}: {error}\n  try: Name a folder that can be written with --out.", folder.display())
        })?;
        let lock = lock(folder)?.ok_or_else(|| {
            let folder = folder.display();
            format!(
                "another batch writes to {folder}\n  try: Wait until it has ended, or give another folder with --out."
            )
        })?;
        for sub in ["results", "hand-ins", "rubrics", "reports"] {
            let path = folder.join(sub);
            fs::create_dir_all(&path).map_err(|error| {
                format!("cannot make {}: {error}\n  try: Name a folder that can be written with --out.", path.display())
            })?;
        }
        // The whole path: others will look from other places.
        let folder = fs::canonicalize(folder).map_err(|error| format!("cannot find {}: {error}", folder.display()))?;
        let store = Store { folder, _lock: Some(lock) };
        store.sweep();
        Ok(store)
    }

    /// A folder of grades in which results are to be changed.
    ///
    /// # Errors
    /// When it is none, or a batch writes to it.
    pub fn to_change(folder: &Path) -> Result<Store, String> {
        let Store { folder, .. } = Store::existing(folder)?;
        match lock(&folder)? {
            Some(lock) => Ok(Store { folder, _lock: Some(lock) }),
            None => Err(format!("a batch writes to {}\n  try: Wait until it has ended.", folder.display())),
        }
    }

    /// A folder of grades for reading.
    ///
    /// # Errors
    /// When it is none.
    pub fn existing(folder: &Path) -> Result<Store, String> {
        if folder.join("results").is_dir() {
            return Ok(Store { folder: folder.to_path_buf(), _lock: None });
        }
        let folder = folder.display();
        Err(format!(
            "{folder} holds no grades: there is no {folder}/results\n  try: Name the folder that `grader batch … --out` wrote."
        ))
    }

    /// Removes what a batch left that was killed while it wrote. Nobody else writes now.
    fn sweep(&self) {
        for sub in ["results", "hand-ins", "rubrics", "reports", "verdicts", "secret", "secret/verdicts", "."] {
            let Ok(entries) = fs::read_dir(self.folder.join(sub)) else { continue };
            for entry in entries.flatten() {
                if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                    // What cannot be removed costs space, nothing else.
                    let path = entry.path();
                    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                }
            }
        }
    }

    /// Where a hand-in of this hash is kept: a folder, or an archive with one of these ends. What is no hash names no file.
    pub fn kept_hand_in(&self, hash: &str) -> Option<PathBuf> {
        if !is_hash(hash) {
            return None;
        }
        let path = |end: &str| self.folder.join("hand-ins").join(format!("{hash}{end}"));
        [""].into_iter().chain(ARCHIVES).map(path).find(|path| path.exists())
    }

    /// Where a rubric is kept.
    pub fn kept_rubric(&self, hash: &str) -> PathBuf {
        let name = if is_hash(hash) { hash } else { "no-hash" };
        self.folder.join("rubrics").join(format!("{name}.toml"))
    }

    /// Where verdicts on kernels are kept. Their names and texts come from the seed: those of a secret one lie beside it.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn verdicts(&self, secret: bool) -> Result<PathBuf, String> {
        let folder = self.folder.join(if secret { "secret/verdicts" } else { "verdicts" });
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Keeps a rubric. Gives its file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_rubric(&self, rubric: &Rubric) -> Result<PathBuf, String> {
        let path = self.kept_rubric(&rubric.hash());
        write_whole(&path, rubric.to_toml().as_bytes())?;
        Ok(path)
    }

    fn result_path(&self, id: &str) -> PathBuf {
        self.folder.join("results").join(format!("{id}.json"))
    }

    /// The result of a hand-in, if there is one.
    ///
    /// # Errors
    /// When the file is there and cannot be read: it may be another grader's, with what this one does not know, and is not ours to write over.
    pub fn result(&self, id: &str) -> Result<Option<Record>, String> {
        /// What all schemas have.
        #[derive(Deserialize)]
        struct Head {
            schema: u64,
        }
        let path = self.result_path(id);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let odd = |error: serde_json::Error| {
            format!(
                "{}:{}: it is no result that this grader can read: {error}\n  try: Use the grader that wrote it, or give another folder \
                 with --out. If it was damaged, move it away: its hand-in is then graded again.",
                path.display(),
                error.line()
            )
        };
        match serde_json::from_slice(&bytes).map_err(odd)? {
            Head { schema } if schema != u64::from(SCHEMA) => Err(format!(
                "{} has schema {schema}; this grader knows {SCHEMA}\n  \
                 try: Use the grader that wrote it, or give another folder with --out.",
                path.display()
            )),
            Head { .. } => serde_json::from_slice(&bytes).map(Some).map_err(odd),
        }
    }

    /// Keeps the result of a hand-in.
    ///
    /// # Errors
    /// When it cannot be written; what was there is still there.
    pub fn keep_result(&self, id: &str, record: &Record) -> Result<(), String> {
        write_whole(&self.result_path(id), written(record)?.as_bytes())
    }

    fn under_way_path(&self) -> PathBuf {
        self.folder.join(UNDER_WAY)
    }

    /// Says what a batch grades, by the IDs and names of hand-ins: to be known after a kill.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&self, hand_ins: &BTreeMap<String, String>) -> Result<(), String> {
        let text = serde_json::to_vec_pretty(hand_ins).map_err(|error| format!("cannot write JSON: {error}"))?;
        write_whole(&self.under_way_path(), &text)
    }

    /// Says that it is through.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn end(&self) -> Result<(), String> {
        let path = self.under_way_path();
        fs::remove_file(&path).map_err(|error| format!("cannot remove {}: {error}", path.display()))
    }

    /// What a batch grades that runs, or that was killed; `None`: each is through.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn under_way(&self) -> Result<Option<BTreeMap<String, String>>, String> {
        let path = self.under_way_path();
        let failed = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| failed(&error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    /// All results, one after the other, in the order of their names.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn ids(&self) -> Result<Vec<String>, String> {
        let folder = self.folder.join("results");
        let entries = fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
        let id = |name: String| name.strip_suffix(".json").map(str::to_string);
        let mut ids: Vec<String> =
            entries.flatten().filter_map(|entry| id(entry.file_name().to_string_lossy().into_owned())).collect();
        ids.sort_unstable();
        Ok(ids)
    }
}

/// What lies in a folder that no batch has written to, and is not to lie among grades: what may be a hand-in (a folder, an archive, a kernel),
/// and what has the name of something that a batch writes. A batch that was killed at once has left no more than its lock. Other files, and
/// what begins with a dot, stay beside the grades.
fn of_others(folder: &Path) -> Option<String> {
    if [LOCK, "results"].iter().all(|name| folder.join(name).symlink_metadata().is_ok()) {
        return None;
    }
    let ours = ["grades.csv", "index.html", "seed.json", UNDER_WAY];
    let others = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let plain = entry.file_type().is_ok_and(|kind| kind.is_file());
        let handed_in = is_archive(&name) || is_other_archive(&name) || end_of(&name) == "rs";
        let harmless = name.starts_with('.') || plain && !handed_in && !ours.contains(&name.as_str());
        (!harmless).then_some(name)
    });
    others.min()
}

/// Whether this is a SHA-256: a name that leads nowhere else.
fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The lock of a folder of grades; `None`: another has it.
fn lock(folder: &Path) -> Result<Option<File>, String> {
    let path = folder.join(LOCK);
    let lock = File::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(format!("cannot lock {}: {error}", path.display())),
    }
}

/// Writes a file that its owner alone can read, whole or not at all.
pub(super) fn write_closed(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || {
        // A temporary file is for its owner alone.
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        whole::sync_folder(folder)
    };
    write().map_err(|error: std::io::Error| format!("cannot write {}: {error}", path.display()))
}

/// Writes a file whole or not at all, and says which one could not be written.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    whole::write_whole(path, bytes).map_err(|error| {
        let shown = path.display();
        format!("cannot write {shown}: {error}\n  try: Make room there, and give the batch again: it goes on where it ended.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_a_grade_changes_its_identity() {
        let asked = Asked::default();
        let tools = || ["g", "s", "w", "c", "p"].map(|name| (name, Some("1")));
        let base = || Identity { hand_in: "h", rubric: "r", tools: tools(), seed: "1", asked: &asked };
        let all_steps = Asked { steps: vec![1], ..Asked::default() };
        let others = [
            Identity { hand_in: "i", ..base() },
            Identity { rubric: "s", ..base() },
            Identity { seed: "2", ..base() },
            Identity { asked: &all_steps, ..base() },
        ];
        let tools = (0..5).flat_map(|index| [None, Some("2")].map(|version| (index, version)));
        let others = others.into_iter().chain(tools.map(|(index, version)| {
            let mut other = base();
            other.tools[index].1 = version;
            other
        }));
        for (index, other) in others.enumerate() {
            assert_ne!(other.hash(), base().hash(), "{index}");
        }
        assert_eq!(base().hash(), base().hash());
    }
}
