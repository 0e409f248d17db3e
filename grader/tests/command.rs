//! What the command refuses before it grades anything, and what it says of itself.

use grader::versions::{Versions, WORKBOOK};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

include!("../sources.rs");

fn command(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
    command.args(arguments).env("NO_COLOR", "1").env_remove("WORKBOOK_DEVICE");
    command.output().expect("the command starts")
}

#[test]
fn the_command_refuses_with_status_2() {
    let empty = tempfile::tempdir().expect("a scratch folder");
    let path = empty.path().to_string_lossy().into_owned();
    for (arguments, expected) in [
        (vec!["grade", path.as_str()], "step10\n  there is: nothing\n  looked for: steps/step01/src/kernel.rs, "),
        (vec!["grade", "/no/such/folder"], "/no/such/folder does not exist"),
        (vec!["solutions", "--step", "99"], "there is no solution of step 99"),
        (vec!["solutions", "--step", "first"], "a step is a number from 1 to 99, such as 1, 01 or step01"),
        (vec!["solutions", "--step", "0"], "\n  try: Name one that there is: here from 1 to 10."),
        (vec!["solutions", "--step", "-1"], "a step is a number from 1 to 99"),
        (vec!["solutions", "--seed", "-1"], "a seed is a number from 0 to 18446744073709551615, or `-`"),
        (vec!["batch", path.as_str(), "--out", "o", "--jobs", "-1"], "are a number from 1 on\n  try: --jobs 4"),
        (
            vec!["batch", path.as_str(), "--out", "o", "--limit", "-1"],
            "is a number of seconds from 1 to 31536000, a year\n  try: --limit",
        ),
        (
            vec!["batch", path.as_str(), "--out", "o", "--limit", "18446744073709551615"],
            "is a number of seconds from 1 to 31536000, a year\n  try: --limit",
        ),
        (
            vec!["rubric", "--format", "json"],
            "--format is not for `grader rubric`\n  try: Leave it out. It prints TOML",
        ),
        (vec!["sandbox", "--seed", "1"], "--seed is not for `grader sandbox`"),
        (vec!["sandbox", "--format", "csv"], "`grader sandbox` prints text or JSON\n  try: --format text"),
        (vec!["reveal", path.as_str(), "--step", "1"], "--step is not for `grader reveal`"),
        (vec!["regrade", path.as_str(), "--hash", "12345678", "--rubric", "r"], "--rubric is not for `grader regrade`"),
        (vec!["solutions", "--format", "xml"], "[possible values: text, json, gradescope, autolab, junit, csv, html]"),
        (vec!["solutions", "--rubric", "/no/such.toml"], "try: `grader rubric > rubric.toml` writes one"),
        (vec!["grade"], "<HAND_IN>"),
    ] {
        let output = command(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(expected), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

/// The number, and the commit whose sources it was built from: whatever checkout it runs in.
#[test]
fn it_says_which_commit_it_was_built_from() {
    let output = command(&["--version"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((output.status.code(), said), (Some(0), format!("grader {WORKBOOK}\n")));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let git = |root: &Path, arguments: &[&str]| {
        let user = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        Command::new("git").current_dir(root).args(user).args(arguments).output().is_ok_and(|o| o.status.success())
    };
    if !git(root, &["ls-files", "--error-unmatch", "grader/Cargo.toml"]) {
        assert_eq!(WORKBOOK, env!("CARGO_PKG_VERSION"), "nobody knows a commit");
        return;
    }
    let rest = WORKBOOK.strip_prefix(env!("CARGO_PKG_VERSION")).and_then(|rest| rest.strip_prefix(" ("));
    let commit = rest.and_then(|rest| rest.split([',', ')']).next()).unwrap_or_default();
    assert!(git(root, &["cat-file", "-e", &format!("{commit}^{{commit}}")]), "{WORKBOOK}: there is no such commit");
    // Another checkout, at another commit.
    let other = tempfile::tempdir().expect("a scratch folder");
    assert!(git(other.path(), &["init", "--quiet"]));
    assert!(git(other.path(), &["commit", "--quiet", "--allow-empty", "--message", "another"]));
    assert_eq!(Versions::here(other.path()).workbook, WORKBOOK);
}

/// What cargo says of the program: the list of sources by which a commit is told lacks none of them.
#[test]
fn the_sources_of_the_program_are_all_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    // Cargo writes it when the program is what was asked for, not when a test alone (`--test command`) needs it.
    let list = format!("{}.d", env!("CARGO_BIN_EXE_grader"));
    let list =
        std::fs::read_to_string(&list).unwrap_or_else(|e| panic!("{list}: {e}; `cargo build -p grader` writes it"));
    let (_, list) = list.split_once(": ").expect("a target and what it is made of");
    // A blank in a name has a backslash before it.
    let files = list.replace("\\ ", "\u{0}");
    let files = files.split_whitespace().map(|file| PathBuf::from(file.replace('\u{0}', " ")));
    let ours: Vec<PathBuf> = files
        .filter_map(|file| {
            file.canonicalize().ok()?.strip_prefix(root.canonicalize().ok()?).ok().map(Path::to_path_buf)
        })
        // A build with changes looks at the log of git, for when they are committed.
        .filter(|file| !file.starts_with("target") && !file.starts_with(".git"))
        .collect();
    assert!(ours.len() > 300, "{ours:?}");
    for file in ours {
        assert!(
            SOURCES.iter().any(|source| file.starts_with(source)),
            "{} is not in grader/sources.rs",
            file.display()
        );
    }
}

/// What a package's program is built from: each crate, with its features.
fn built_from(package: &str) -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"])
        .args(["--format", "{p}|{f}", "--package", package])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{output:?}");
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (name, features) = line.split_once('|').expect(line);
        crates.entry(name.to_string()).or_default().insert(features.to_string());
    }
    crates
}

/// Cargo unites the features that one command asks for. Where two commands ask for different ones, all that stands above is built twice: once
/// that was the emulator, a minute of a release build.
#[test]
fn what_the_grader_has_built_other_commands_use() {
    let grader = built_from("grader");
    assert!(grader.len() > 80, "{} crates", grader.len());
    for package in ["emulate", "harness", "silicon"] {
        let other = built_from(package);
        assert!(other.keys().any(|name| name.starts_with("emulator ")), "{package}: {:?}", other.keys());
        let differ: Vec<_> =
            other.iter().filter(|(name, has)| grader.get(*name).is_some_and(|had| had != *has)).collect();
        assert!(differ.is_empty(), "{package} asks for other features than the grader: {differ:?}");
    }
}
