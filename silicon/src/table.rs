//! What is recorded in a folder of families, as a Markdown table.

use crate::case::{self, Case};
use crate::recording::Outcome;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What is recorded of one family.
#[derive(Debug, Default)]
struct Family {
    cases: usize,
    /// Cases without a recording.
    without: usize,
    /// Recordings that ended so: done, error, hang.
    ended: [usize; 3],
    /// GPU, its UUID, and the driver.
    machines: BTreeSet<String>,
    dates: BTreeSet<String>,
}

impl Family {
    fn of(folder: &Path) -> Result<Family, String> {
        let cases = case::cases(folder, None)?;
        let mut family = Family { cases: cases.len(), ..Family::default() };
        let files = recordings(folder, &cases)?;
        for (_, file) in &files {
            let recording = case::read(file)?;
            family.ended[match recording.outcome {
                Outcome::Done => 0,
                Outcome::Error => 1,
                Outcome::Hang => 2,
            }] += 1;
            family.machines.insert(format!("{} {}, driver {}", recording.gpu, recording.uuid, recording.driver));
            family.dates.insert(recording.date);
        }
        family.without = cases.iter().filter(|case| files.iter().all(|(name, _)| *name != case.name)).count();
        Ok(family)
    }

    fn line(&self, name: &str) -> String {
        let [done, error, hang] = self.ended;
        let dates = match (self.dates.first(), self.dates.last()) {
            (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
            (first, _) => first.cloned().unwrap_or_default(),
        };
        let machines = self.machines.iter().cloned().collect::<Vec<_>>().join("; ");
        let (cases, without) = (self.cases, self.without);
        format!("| {name} | {cases} | {done} | {error} | {hang} | {without} | {machines} | {dates} |\n")
    }
}

/// The table: a line for each family, and one for all.
///
/// # Errors
/// When a folder or a recording cannot be read, a recording has no case, or there is no case at all.
pub fn table(folder: &Path) -> Result<String, String> {
    let mut text = String::from("| family | cases | done | error | hang | not recorded | on | dates |\n");
    text += "|---|---|---|---|---|---|---|---|\n";
    let mut all = Family::default();
    for path in families(folder)? {
        let family = Family::of(&path)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let _ = write!(text, "{}", family.line(&name));
        all.cases += family.cases;
        all.without += family.without;
        for (sum, n) in all.ended.iter_mut().zip(family.ended) {
            *sum += n;
        }
        all.machines.extend(family.machines);
        all.dates.extend(family.dates);
    }
    if all.cases == 0 {
        return Err(format!(
            "{} holds no family\n  try: Name a folder whose folders hold PTX files, such as emulator/tests/silicon.",
            folder.display()
        ));
    }
    text += &all.line("all");
    Ok(text)
}

/// The folders in a folder that hold PTX files, by name; the folder itself, if it holds some.
fn families(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let list = files(folder)?;
    if list.iter().any(|path| is_ptx(path)) {
        return Ok(vec![folder.to_path_buf()]);
    }
    let mut families = Vec::new();
    for path in list.into_iter().filter(|path| path.is_dir()) {
        if files(&path)?.iter().any(|file| is_ptx(file)) {
            families.push(path);
        }
    }
    Ok(families)
}

/// The recordings in a folder, `CASE.GPU.json`, each with its case's name.
pub fn recordings(folder: &Path, cases: &[Case]) -> Result<Vec<(String, PathBuf)>, String> {
    let mut all = Vec::new();
    for path in files(folder)? {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let Some((name, _)) = file.strip_suffix(".json").and_then(|name| name.rsplit_once('.')) else { continue };
        if cases.iter().all(|case| case.name != name) {
            return Err(format!(
                "{} records no case of its folder: there is no {name}.ptx\n  try: Delete it, or name it after its case.",
                path.display()
            ));
        }
        all.push((name.to_string(), path));
    }
    Ok(all)
}

fn is_ptx(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "ptx")
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| {
        format!("cannot read {}: {error}\n  try: Name a folder that holds families of cases.", folder.display())
    };
    let entries = fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut list: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    list.sort();
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(outcome: &str, uuid: &str, date: &str) -> String {
        format!(
            r#"{{"gpu":"NVIDIA H200","uuid":"{uuid}","driver":"580.1","cuda":"13.0","date":"{date}","command":"c","outcome":"{outcome}"}}"#
        )
    }

    #[test]
    fn families_are_counted_and_a_bad_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert!(table(folder.path()).unwrap_err().contains("holds no family"));
        write("notes.md", "");
        for case in ["copy/a", "copy/a_b", "copy/c", "wait/d"] {
            write(&format!("{case}.ptx"), "");
            write(&format!("{case}.json"), "");
        }
        write("copy/a.h200.json", &recording("done", "GPU-1", "2026-01-31"));
        write("copy/a_b.h200.json", &recording("hang", "GPU-2", "2026-01-02"));
        assert_eq!(
            table(folder.path()).unwrap().lines().skip(2).collect::<Vec<_>>(),
            [
                "| copy | 3 | 1 | 0 | 1 | 1 | NVIDIA H200 GPU-1, driver 580.1; NVIDIA H200 GPU-2, driver 580.1 | 2026-01-02 to 2026-01-31 |",
                "| wait | 1 | 0 | 0 | 0 | 1 |  |  |",
                "| all | 4 | 1 | 0 | 1 | 2 | NVIDIA H200 GPU-1, driver 580.1; NVIDIA H200 GPU-2, driver 580.1 | 2026-01-02 to 2026-01-31 |",
            ]
        );
        assert!(table(&folder.path().join("wait")).unwrap().contains("\n| wait | 1 |"));
        write("wait/e.h200.json", &recording("done", "GPU-1", "2026-01-31"));
        assert!(table(folder.path()).unwrap_err().contains("there is no e.ptx"));
        fs::remove_file(folder.path().join("wait/e.h200.json")).unwrap();
        write("wait/d.h200.json", "{}");
        let error = table(folder.path()).unwrap_err();
        assert!(error.contains("d.h200.json is no recording"), "{error}");
    }
}
