//! `student-edition`: the tree that a course hands out. It has no solutions: untouched files in the steps, recipes of the
//! reference kernels for `fast`, and nothing that refers to what is left out.

mod marks;
mod references;
mod tree;

use super::cargo::cargo;
use super::workspace::{Workspace, name};
use crate::JudgeOptions;
use crate::reference_kernels::{self, Recipe};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes the student edition to a folder that does not exist or is empty. Gives what to tell the user.
///
/// # Errors
/// When the folder holds something, or the tree cannot be made; the folder is then as it was.
pub fn student_edition(workspace: &Workspace, folder: &Path) -> Result<String, String> {
    let folder = free(workspace, folder)?;
    let above = folder.parent().ok_or_else(|| format!("{} has no folder above it", folder.display()))?;
    // Beside its place, so that it is moved there in one step; removed with all that is in it if anything fails.
    let scratch = tempfile::Builder::new()
        .prefix(".student-edition-")
        .tempdir_in(above)
        .map_err(|error| format!("cannot make a folder in {}: {error}", above.display()))?;
    let root = scratch.path().join("tree");
    let files = tree::copy(&workspace.root, &root)?;
    let steps = steps(workspace, &root)?;
    let recipes = recipes(&workspace.root, &root)?;
    lock(&root)?;
    references::check(&root)?;

    let place = |error: std::io::Error| format!("cannot put the finished tree at {}: {error}", folder.display());
    match fs::remove_dir(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(place(error)),
    }
    fs::rename(&root, &folder).map_err(place)?;
    Ok(format!(
        "{}: {files} files, {steps} untouched steps, {recipes} reference kernels\n\
         next: cd {} && cargo test -p step01\n",
        folder.display(),
        folder.display()
    ))
}

/// The folder to write to, made absolute; what stands there is nobody's work.
fn free(workspace: &Workspace, folder: &Path) -> Result<PathBuf, String> {
    const WAY_OUT: &str = "try: Name a folder that does not exist yet.";
    let absolute = std::path::absolute(folder).map_err(|error| format!("cannot use {}: {error}", folder.display()))?;
    match fs::read_dir(&absolute).map(|mut entries| entries.next()) {
        Ok(None) => {}
        Ok(Some(_)) => return Err(format!("{} is not empty; nothing was changed\n  {WAY_OUT}", folder.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("cannot write to {}: {error}\n  {WAY_OUT}", folder.display())),
    }
    let above = absolute.parent().filter(|above| above.is_dir()).ok_or_else(|| {
        format!("the folder above {} does not exist\n  try: Make it, or name another folder.", folder.display())
    })?;
    // Resolved, since a link may lead into the tree that is copied.
    let above = above.canonicalize().map_err(|error| format!("cannot use {}: {error}", above.display()))?;
    let last = absolute.file_name().ok_or_else(|| format!("{} names no folder\n  {WAY_OUT}", folder.display()))?;
    let place = above.join(last);
    let root = workspace.root.canonicalize().unwrap_or_else(|_| workspace.root.clone());
    if let Ok(inside) = place.strip_prefix(&root)
        && tree::is_copied(inside)
    {
        return Err(format!(
            "{} lies in the tree that is handed out\n  try: Name a folder outside of it.",
            folder.display()
        ));
    }
    Ok(place)
}

/// Writes the untouched file of each step twice: where the student works, and where `reset` and `carry` find it.
fn steps(workspace: &Workspace, root: &Path) -> Result<usize, String> {
    let solved = workspace.solved();
    if let Some(step) = workspace.steps().into_iter().find(|step| !solved.contains(step)) {
        return Err(format!(
            "{} has no solution, so there is no untouched file to hand out\n  try: Write {}, or remove the step's folder.",
            name(step),
            Workspace::solution(step)
        ));
    }
    for step in &solved {
        let untouched = workspace.skeleton(*step)?;
        for file in [Workspace::kernel(*step), Workspace::untouched(*step)] {
            write(&root.join(file), untouched.as_bytes())?;
        }
    }
    Ok(solved.len())
}

/// Writes the reference kernels that `fast` asks for, and those of the book's figures.
fn recipes(source: &Path, root: &Path) -> Result<usize, String> {
    let folder = root.join(reference_kernels::FOLDER);
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let sms = JudgeOptions::default().sms;
    let mut count = 0;
    for step in crate::STEPS {
        let mut recipes = Vec::new();
        for problem in reference_kernels::problems(step) {
            let kernel = reference_kernels::bare(reference_kernels::reference_kernel(step, problem, sms)?);
            recipes.push(Recipe { problem: *problem, sms, kernel });
        }
        reference_kernels::write(&folder, step.number, &recipes)?;
        count += recipes.len();
    }
    count += crate::figures::write(&folder, source)?;
    Ok(count)
}

/// Lets cargo take out of the lock file what only left-out crates needed; versions stay what they are.
fn lock(root: &Path) -> Result<(), String> {
    let update = |offline: &[&str]| {
        Command::new(cargo())
            .args(["update", "--workspace", "--quiet"])
            .args(offline)
            .current_dir(root)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start cargo: {error}\n  try: Install Rust from https://rustup.rs."))
    };
    let mut output = update(&["--offline"])?;
    if !output.status.success() {
        output = update(&[])?;
    }
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("cargo does not take the tree without solutions; it said:\n{}", said.trim_end()))
}

/// Writes a file and the folders above it.
fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, content).map_err(failed)
}
