//! Tells the grader which commit it is built from: a checkout can move on, the program stays what it is.
//!
//! Without git, or outside of a repository that holds these sources, it is told nothing, and says so.

use std::path::Path;
use std::process::Command;

include!("sources.rs");

fn main() {
    let root = Path::new("..");
    for source in SOURCES {
        println!("cargo:rerun-if-changed=../{source}");
    }
    println!("cargo:rerun-if-changed=sources.rs");
    println!("cargo:rustc-env=GRADER_COMMIT={}", commit(root).unwrap_or_default());
}

/// The commit, and whether the sources that are compiled here are others than its own.
fn commit(root: &Path) -> Option<String> {
    // Somebody's repository around a copy that it does not hold says nothing of the copy.
    git(root, &["ls-files", "--error-unmatch", "grader/Cargo.toml"])?;
    let commit = git(root, &["describe", "--always"])?;
    let changed = git(root, &[&["status", "--porcelain", "--untracked-files=all", "--"], SOURCES].concat())?;
    if changed.is_empty() {
        return Some(commit);
    }
    // Once they are committed they are that commit's. Where all is clean, a commit that changes none of them asks for no new program.
    if let Some(log) = git(root, &["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
        && Path::new(&log).is_file()
    {
        println!("cargo:rerun-if-changed={log}");
    }
    Some(format!("{commit}, changed"))
}

/// What git says of the checkout.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // A build that a hook of git starts would ask about another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    let output = command.current_dir(root).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
