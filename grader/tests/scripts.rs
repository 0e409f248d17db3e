//! The scripts of docs/grader.md for Gradescope and Autolab, run as they stand there, on folders laid out as theirs.

use serde_json::Value;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// A script of docs/grader.md: what stands in the fence that begins so.
fn documented(begins: &str) -> String {
    let text = include_str!("../../docs/grader.md");
    let start = text.find(&format!("\n{begins}")).unwrap_or_else(|| panic!("no {begins}")) + 1;
    text[start..].split("```").next().unwrap_or_default().to_string()
}

/// A place as these systems have it: `/autograder` or `/opt/workbook` below a scratch folder, with the grader in it.
fn system(workbook: &str) -> TempDir {
    let root = tempfile::tempdir().expect("a scratch folder");
    let at = root.path().join(workbook.trim_start_matches('/')).join("target/release");
    fs::create_dir_all(&at).expect("made");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_grader"), at.join("grader")).expect("linked");
    root
}

/// An archive with one kernel.
fn packed(kernel: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(kernel.len() as u64);
    builder.append_data(&mut header, "step01.rs", kernel.as_bytes()).expect("appended");
    builder.into_inner().expect("whole")
}

/// What `run_autograder` leaves in results.json.
fn gradescope(metadata: &str, archive: Option<&[u8]>) -> Value {
    let root = system("/autograder/workbook");
    let at = |name: &str| root.path().join("autograder").join(name);
    fs::create_dir_all(at("results")).and_then(|()| fs::create_dir_all(at("submission"))).expect("made");
    fs::write(at("submission_metadata.json"), metadata).expect("written");
    if let Some(archive) = archive {
        fs::write(at("submission/handin.tar"), archive).expect("written");
    }
    let script = documented("#!/bin/sh\n# run_autograder")
        .replace("/autograder", at("").to_string_lossy().trim_end_matches('/'));
    let ended = Command::new("sh").args(["-c", &script]).output().expect("started");
    assert!(ended.status.success(), "{ended:?}");
    let results = fs::read_to_string(at("results/results.json")).expect("written");
    serde_json::from_str(&results).unwrap_or_else(|error| panic!("{error}: {results:?} {ended:?}"))
}

/// Gradescope's own example.
const METADATA: &str = r#"{ "id": 123456, "created_at": "2018-07-01T14:22:32.365935-07:00", "users": [] }"#;

#[test]
fn what_is_documented_for_gradescope_works_also_without_a_grade() {
    let refused = gradescope(METADATA, None);
    assert_eq!(refused["score"], 0.0);
    let output = refused["output"].as_str().expect("a text");
    assert!(
        output.starts_with("The hand-in is not graded, and has no points.") && output.contains("looked for"),
        "{output}"
    );
    let broken = gradescope(METADATA, Some(b"no archive"));
    assert!(
        broken["score"] == 0.0 && broken["output"].as_str().is_some_and(|text| text.contains("cargo workbook pack")),
        "{broken}"
    );
    // Nobody gets a 0 for what the course has done.
    for metadata in ["{}", r#"{ "created_at": "yesterday" }"#, "no JSON"] {
        let failed = gradescope(metadata, None);
        let output = failed["output"].as_str().expect("a text");
        assert!(output.starts_with("The hand-in could not be graded: ask the course."), "{output}");
        assert!(failed.get("score").is_none() && failed.get("tests").is_none(), "{failed}");
    }
    let graded = gradescope(METADATA, Some(&packed("fn broken( {\n")));
    assert_eq!((graded["score"].as_f64(), graded["tests"].as_array().map(Vec::len)), (Some(0.0), Some(5)), "{graded}");
    assert!(graded["output"].as_str().is_some_and(|text| text.contains("it does not compile")), "{graded}");
}

#[test]
fn what_is_documented_for_autolab_ends_with_scores_or_with_none() {
    let autolab = |archive: &[u8], device: &str| {
        let root = system("/opt/workbook");
        fs::write(root.path().join("handin.tar"), archive).expect("written");
        let makefile = documented("autograde:").replace("/opt", &root.path().join("opt").to_string_lossy());
        // Both streams in one file, as its machines have them.
        fs::write(root.path().join("Makefile"), makefile).expect("written");
        let mut make = Command::new("sh");
        make.args(["-c", "make 2>&1"]).current_dir(root.path()).env("WORKBOOK_DEVICE", device);
        String::from_utf8(make.output().expect("started").stdout).expect("text")
    };
    let refused = autolab(b"no archive", "");
    let lines: Vec<&str> = refused.lines().rev().take(2).collect();
    let scores: Value = serde_json::from_str(lines[0]).unwrap_or_else(|error| panic!("{error}: {refused}"));
    let scores = scores["scores"].as_object().expect("scores");
    assert!(scores.len() == 10 && scores.values().all(|score| score == 0.0), "{refused}");
    let feedback: Value = serde_json::from_str(lines[1]).unwrap_or_else(|error| panic!("{error}: {refused}"));
    let hint = feedback["hand-in"]["hand-in"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("not-an-archive"), "{hint}");
    let failed = autolab(b"no archive", "abacus");
    assert!(failed.contains("could not be graded: ask the course") && !failed.contains("scores"), "{failed}");
    let graded = autolab(&packed("fn broken( {\n"), "");
    let scores: Value =
        graded.lines().last().and_then(|line| serde_json::from_str(line).ok()).expect("JSON at the end");
    assert_eq!(scores["scores"]["step01"], 0.0, "{graded}");
}
