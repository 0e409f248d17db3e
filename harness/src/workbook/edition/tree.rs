//! What the student edition holds of the full tree.

use super::marks;
use std::fs;
use std::path::{Component, Path};

/// What is copied, from the top folder. Whatever else lies there stays there.
const COPIED: [&str; 16] = [
    ".cargo",
    ".gitignore",
    "AGENTS.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "book",
    "device",
    "docs",
    "emulator",
    "harness",
    "ptx",
    "rustfmt.toml",
    "steps",
];

/// What is left out of it: tests of the project's own, which show solutions or need them, and what only they need.
pub(super) const LEFT_OUT: [&str; 14] = [
    "device/tests",
    "docs/corpus.md",
    "docs/figures.md",
    "docs/grader.md",
    "emulator/benches",
    "emulator/cli/tests",
    "emulator/fuzz",
    "emulator/tests/common",
    "emulator/tests/forms",
    "emulator/tests/kernels",
    "emulator/tests/libraries",
    "emulator/tests/silicon",
    "harness/tests",
    "ptx/tests",
];

/// Tests of the emulator are left out; what they and the documents read (kernels of other compilers, tensor maps) stays, and what an example
/// reads those with.
fn is_test_of_emulator(path: &str) -> bool {
    path.strip_prefix("emulator/tests/").is_some_and(|rest| match rest {
        "gluon/case.rs" | "gluon/formats.rs" => false,
        "bugs" | "values" => true,
        _ => rest.ends_with(".rs"),
    })
}

/// Whether a path, from the top folder, lies in what is copied.
pub(super) fn is_copied(path: &Path) -> bool {
    match path.components().next() {
        Some(Component::Normal(first)) => COPIED.iter().any(|copied| first == *copied),
        _ => true,
    }
}

/// Copies what is handed out, with marked texts as the student edition has them. Gives the number of files.
pub(super) fn copy(from: &Path, to: &Path) -> Result<usize, String> {
    let mut count = 0;
    for entry in COPIED {
        count += copy_entry(from, to, entry)?;
    }
    Ok(count)
}

fn copy_entry(from: &Path, to: &Path, path: &str) -> Result<usize, String> {
    if LEFT_OUT.contains(&path) || is_test_of_emulator(path) {
        return Ok(0);
    }
    let (source, target) = (from.join(path), to.join(path));
    let failed = |error: std::io::Error| format!("cannot copy {path}: {error}");
    if !fs::symlink_metadata(&source).map_err(failed)?.is_dir() {
        let content = fs::read(&source).map_err(failed)?;
        let marked = [".md", ".toml"].iter().any(|end| path.ends_with(end));
        let content = match String::from_utf8(content) {
            Ok(text) if marked => marks::apply(path, &text)?.into_bytes(),
            Ok(text) => text.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        super::write(&target, &content)?;
        return Ok(1);
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&source).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        // What editors, cargo and graders leave there is not the project's.
        let name = name.to_string_lossy().into_owned();
        if name != "target" && !name.starts_with('.') && !name.ends_with(".bin") && !name.ends_with('~') {
            names.push(name);
        }
    }
    names.sort_unstable();
    let mut count = 0;
    for name in names {
        count += copy_entry(from, to, &format!("{path}/{name}"))?;
    }
    Ok(count)
}
