//! What the command refuses before it grades anything, and what it says of itself.

use std::process::{Command, Output};

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
            "is a number of seconds from 1 on\n  try: --limit",
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

#[test]
fn it_says_its_version() {
    let output = command(&["--version"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((output.status.code(), said), (Some(0), format!("grader {}\n", env!("CARGO_PKG_VERSION"))));
}
