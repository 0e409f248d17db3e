//! Writes skeletons. What stood in a student's file is kept before anything else is written there.

use super::carry::relation::{self, Regions, TABLE};
use super::whole::write_whole;
use super::workspace::{Workspace, name};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};

/// Puts the untouched file of a step back. Gives what to tell the user.
///
/// # Errors
/// When a file cannot be read or written; the student's file is then as it was.
pub fn reset(workspace: &Workspace, step: u8) -> Result<String, String> {
    let skeleton = workspace.skeleton(step)?;
    match replace(workspace, step, &skeleton)? {
        Replaced::Same => Ok(format!(
            "{} is untouched: there is nothing to reset{}\n",
            Workspace::kernel(step),
            match kept(workspace, step) {
                0 => String::new(),
                1 => format!("\n  try: Look into {BACKUP}/: `reset` kept an earlier file of this step there."),
                files =>
                    format!("\n  try: Look into {BACKUP}/: `reset` kept {files} earlier files of this step there."),
            }
        )),
        Replaced::Kept(backup) => {
            let file = Workspace::kernel(step);
            Ok(format!(
                "{file} is as it was at the beginning\nyour file is kept: {backup}\n  try: `cp {backup} {file}` puts it back.\n"
            ))
        }
        Replaced::Missing => Ok(format!("{} was missing, and is there again\n", Workspace::kernel(step))),
    }
}

/// Writes the skeletons of all solutions. Gives what to tell the user.
///
/// # Errors
/// When a solution's regions are not well formed, or a file cannot be read or written.
pub fn write_all(workspace: &Workspace) -> Result<String, String> {
    let mut told = String::new();
    for (step, skeleton) in skeletons(workspace)? {
        let file = Workspace::kernel(step);
        told.push_str(&match replace(workspace, step, &skeleton)? {
            Replaced::Same => format!("{file}: up to date\n"),
            Replaced::Kept(backup) => format!("{file}: written; what stood there is kept: {backup}\n"),
            Replaced::Missing => format!("{file}: written\n"),
        });
    }
    let table = table(workspace)?;
    if fs::read_to_string(workspace.root.join(TABLE)).is_ok_and(|found| found == table) {
        told.push_str(&format!("{TABLE}: up to date\n"));
    } else {
        write_whole(&workspace.root.join(TABLE), table.as_bytes())
            .map_err(|error| format!("cannot write {TABLE}: {error}; it is as it was"))?;
        told.push_str(&format!("{TABLE}: written\n"));
    }
    Ok(told)
}

/// Compares the files in the steps with what the solutions give.
///
/// # Errors
/// The differences, or why they could not be looked for.
pub fn check_all(workspace: &Workspace) -> Result<String, String> {
    let mut drifted = String::new();
    let skeletons = skeletons(workspace)?;
    for (step, skeleton) in &skeletons {
        let file = Workspace::kernel(*step);
        let found = found(workspace, &file)?;
        if found != *skeleton {
            drifted.push_str(&format!("{file} is not what {} gives:\n", Workspace::solution(*step)));
            drifted.push_str(&super::diff::lines(&found, skeleton));
        }
    }
    let (table, found) = (table(workspace)?, found(workspace, TABLE)?);
    if found != table {
        drifted.push_str(&format!("{TABLE} is not what the solutions give:\n"));
        drifted.push_str(&super::diff::lines(&found, &table));
    }
    if drifted.is_empty() {
        let steps: Vec<String> = skeletons.iter().map(|(step, _)| name(*step)).collect();
        return Ok(format!("the files of {} are what their solutions give\n", steps.join(", ")));
    }
    drifted.push_str("  try: `cargo workbook skeletons` writes them. (A file that holds work differs, as it should.)");
    Err(drifted)
}

/// A file's text; empty if there is none.
fn found(workspace: &Workspace, file: &str) -> Result<String, String> {
    match fs::read_to_string(workspace.root.join(file)) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("cannot read {file}: {error}")),
    }
}

/// The table of what `carry` can carry, from the solutions. Their regions are well formed: they gave skeletons.
fn table(workspace: &Workspace) -> Result<String, String> {
    let mut steps = Vec::new();
    for step in workspace.solved() {
        let file = Workspace::solution(step);
        let text =
            fs::read_to_string(workspace.root.join(&file)).map_err(|error| format!("cannot read {file}: {error}"))?;
        steps.push(Regions::of(step, &text));
    }
    relation::render(&relation::relations(&steps))
}

/// Each step that has a solution, with its skeleton; all that is wrong, if anything is.
fn skeletons(workspace: &Workspace) -> Result<Vec<(u8, String)>, String> {
    let mut skeletons = Vec::new();
    let mut errors = Vec::new();
    let steps = workspace.steps();
    for step in workspace.solved() {
        if !steps.contains(&step) {
            errors.push(format!(
                "{0} has no crate steps/{1} to go to\n  try: Copy steps/step01 to steps/{1}, and change name and number in it \
                 (CONTRIBUTING.md: adding a step).",
                Workspace::solution(step),
                name(step)
            ));
            continue;
        }
        match workspace.skeleton(step) {
            Ok(skeleton) => skeletons.push((step, skeleton)),
            Err(error) => errors.push(error),
        }
    }
    if skeletons.is_empty() && errors.is_empty() {
        errors.push("there are no solutions: expected solutions/src/step01.rs".to_string());
    }
    if errors.is_empty() { Ok(skeletons) } else { Err(errors.join("\n")) }
}

/// Where replaced files go, from the top folder.
const BACKUP: &str = ".workbook/backup";

enum Replaced {
    /// It held this text already.
    Same,
    /// Its text is now in this file.
    Kept(String),
    /// There was no file.
    Missing,
}

fn replace(workspace: &Workspace, step: u8, text: &str) -> Result<Replaced, String> {
    let file = Workspace::kernel(step);
    let path = workspace.root.join(&file);
    // Bytes, not text: also a file that is no longer UTF-8 is somebody's work.
    let replaced = match fs::read(&path) {
        Ok(found) if found == text.as_bytes() => return Ok(Replaced::Same),
        Ok(found) => Replaced::Kept(keep(workspace, step, &found)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Replaced::Missing,
        Err(error) => return Err(format!("cannot read {file}: {error}; nothing was changed")),
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("cannot make the folder of {file}: {error}"))?;
    }
    write_whole(&path, text.as_bytes()).map_err(|error| match &replaced {
        Replaced::Kept(backup) => format!("cannot write {file}: {error}; what stood there is kept: {backup}"),
        Replaced::Same | Replaced::Missing => format!("cannot write {file}: {error}"),
    })?;
    Ok(replaced)
}

/// The student's file of a step.
///
/// # Errors
/// When it cannot be read as text.
pub(super) fn read_kernel(workspace: &Workspace, step: u8) -> Result<String, String> {
    let file = Workspace::kernel(step);
    fs::read_to_string(workspace.root.join(&file)).map_err(|error| {
        format!(
            "cannot read {file}: {error}\n  try: `cargo workbook reset {}` puts the untouched file there.",
            name(step)
        )
    })
}

/// How many files of a step were kept.
fn kept(workspace: &Workspace, step: u8) -> usize {
    let Ok(entries) = fs::read_dir(workspace.root.join(BACKUP)) else { return 0 };
    let begin = format!("{}-", name(step));
    entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&begin)).count()
}

/// Writes a file's content to the first free name, and gives that name.
pub(super) fn keep(workspace: &Workspace, step: u8, content: &[u8]) -> Result<String, String> {
    let problem =
        |what: &str, error: &std::io::Error| format!("cannot keep your file: {what}: {error}; nothing was changed");
    fs::create_dir_all(workspace.root.join(BACKUP)).map_err(|error| problem(BACKUP, &error))?;
    for number in 1_u32.. {
        let backup = format!("{BACKUP}/{}-{number}.rs", name(step));
        // `create_new`: two resets at once must not write into one file.
        match OpenOptions::new().write(true).create_new(true).open(workspace.root.join(&backup)) {
            Ok(mut file) => {
                file.write_all(content).and_then(|()| file.sync_all()).map_err(|error| problem(&backup, &error))?;
                return Ok(backup);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(problem(&backup, &error)),
        }
    }
    Err(format!("cannot keep your file: {BACKUP} holds too many; nothing was changed"))
}
