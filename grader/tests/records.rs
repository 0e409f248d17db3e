//! What a batch keeps: what it does not know it does not write over, and what it must not tell it does not write.

mod class;

use class::{Class, files, said};
use grader::batch::store::Outcome;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A program in place of the grader.
fn in_place(class: &Class, script: &str) -> String {
    let path = class.folder.path().join("in-place.sh");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path.to_string_lossy().into_owned()
}

#[test]
fn a_result_that_cannot_be_read_is_not_written_over() {
    let class = Class::new(&[("anna", "fn a( {"), ("ben", "fn b( {")]);
    let grader = in_place(&class, "echo 'error: no kernel' >&2; exit 2");
    let options = ["--grade-with", &grader];
    let (status, _, errors) = said(class.batch("grades", &options));
    assert_eq!(status, Some(1), "{errors}");
    let anna = class.records("grades")["anna"].clone();
    let all = files(&class.grades("grades").join("results"));
    let path = all.keys().find(|path| path.to_string_lossy().contains("anna")).expect("a result").clone();
    let known = fs::read_to_string(&path).expect("read");
    let later = known.replacen("\"schema\": 1,", "\"schema\": 1,\n  \"signed_by\": \"a newer grader\",", 1);
    let torn = known[..known.len() / 2].to_string();
    for (text, found) in [(later, "unknown field `signed_by`"), (torn, "EOF while parsing"), (String::new(), "EOF")] {
        fs::write(&path, &text).expect("written");
        class.write("ben", &format!("fn changed{}( {{", text.len()));
        let before = files(&class.grades("grades").join("results"));
        let (status, printed, errors) = said(class.batch("grades", &options));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), text, "it was written over: {printed}{errors}");
        assert_eq!(status, Some(2), "{printed}{errors}");
        for needed in
            [&*path.file_name().expect("a name").to_string_lossy(), found, "\n  try: Use the grader that wrote it"]
        {
            assert!(errors.contains(needed), "no {needed:?}: {errors}");
        }
        assert_eq!(files(&class.grades("grades").join("results")), before, "before anything is graded");
    }
    // Another's result is found, whatever lies beside it; this one is not said to be missing.
    let grades = class.grades("grades").to_string_lossy().into_owned();
    let ben = class.records_but("grades", &path).remove("ben").expect("a result");
    let regrade = |hash: &str| said(class.command(&["regrade", &grades, "--hash", hash, "--grade-with", &grader]));
    let (status, text, errors) = regrade(&ben.hand_in);
    assert_eq!((status, text.lines().next()), (Some(0), Some("ben: identical")), "{errors}");
    let (status, _, errors) = regrade(&anna.hand_in);
    assert!(status == Some(2) && errors.contains("it is no result that this grader can read"), "{errors}");
    // The way out.
    fs::rename(&path, path.with_extension("away")).expect("moved");
    let (status, _, errors) = said(class.batch("grades", &options));
    assert_eq!(status, Some(1), "{errors}");
    assert_eq!(class.records("grades")["anna"].outcome, anna.outcome);
}

#[test]
fn no_reason_tells_a_secret_seed_and_what_could_is_not_written() {
    let class = Class::new(&[("anna", "fn a( {")]);
    let kept = |script: &str| {
        let grader = in_place(&class, &format!("read -r seed\n{script}"));
        let (status, _, errors) = said(class.batch("grades", &["--seed-commit", "--grade-with", &grader]));
        assert_eq!(status, Some(1), "{errors}");
        let grades = class.grades("grades");
        let secret = fs::read(grades.join("secret/seed.json")).expect("kept");
        let secret: grader::batch::seed::Secret = serde_json::from_slice(&secret).expect("a seed");
        let seed = secret.seed.to_string();
        for file in ["results", "reports"].map(|folder| files(&grades.join(folder))).into_iter().flatten() {
            let text = fs::read_to_string(&file.0).expect("read");
            let digits: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
            let number: u64 = seed.parse().expect("a number");
            for sign in [seed[..12].to_string(), format!("{number:x}")[..10].to_string()] {
                assert!(!digits.contains(&sign), "{:?} tells {sign} of the seed {seed}: {text}", file.0);
            }
        }
        let Outcome::NotGraded { reason, here, .. } = class.records("grades")["anna"].outcome.clone() else {
            panic!("it is graded")
        };
        (reason, here)
    };
    let hidden = "(secret until grades are out)";
    assert_eq!(kept("echo \"error: seed $seed\" >&2; exit 2"), (format!("seed {hidden}"), false));
    let (reason, here) = kept("printf 'error: 0x%x is the seed\\n' \"$seed\" >&2; exit 2");
    assert_eq!((reason.as_str(), here), (format!("{hidden} is the seed").as_str(), false));
    let (reason, _) = kept("echo \"thread panicked: $seed\" >&2; exit 101");
    assert!(reason.contains(hidden) && reason.contains("ended without a grade"), "{reason}");
    let (reason, here) = kept("echo \"error: $(echo $seed | sed 's/./& /g')\" >&2; exit 2");
    assert!(reason.contains("it is not written, since it could tell the secret seed") && here, "{reason}");
}

#[test]
fn versions_that_are_unknown_are_not_taken_for_the_same() {
    let class = Class::new(&[("anna", "fn a( {")]);
    let nowhere = class.folder.path().join("no-rustc");
    let without = |mut command: std::process::Command| {
        command.env("RUSTC", &nowhere);
        said(command)
    };
    let (status, _, errors) = without(class.batch("grades", &[]));
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("it cannot be told what grades here") && errors.contains("rustc is unknown: "), "{errors}");
    assert!(!class.grades("grades").exists(), "nothing was written");
    // Where another program grades, it has its own; and who grades again is told what nobody knows.
    let grader = in_place(&class, "echo 'error: no kernel' >&2; exit 2");
    let (status, _, errors) = without(class.batch("grades", &["--grade-with", &grader]));
    assert_eq!(status, Some(1), "{errors}");
    let hash = class.records("grades")["anna"].hand_in.clone();
    let grades = class.grades("grades").to_string_lossy().into_owned();
    let (status, text, _) = without(class.command(&["regrade", &grades, "--hash", &hash, "--grade-with", &grader]));
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("note: rustc was unknown: ") && text.contains("whether it is the same cannot be told"),
        "{text}"
    );
}

/// What is graded is what was kept, when the grading ends as when it begins.
#[test]
fn a_copy_that_is_changed_while_it_is_graded_gives_no_grade() {
    let class = Class::new(&[("anna", "fn a( {")]);
    let grader = in_place(&class, "echo '// another' >> \"$2/step01.rs\"; echo 'error: no kernel' >&2; exit 2");
    let (status, _, errors) = said(class.batch("grades", &["--grade-with", &grader]));
    assert_eq!(status, Some(1), "{errors}");
    let Outcome::NotGraded { reason, here, .. } = &class.records("grades")["anna"].outcome else {
        panic!("it is graded")
    };
    assert!(*here && reason.contains("was changed since it was kept"), "{reason}");
}

#[test]
fn options_that_name_files_are_refused_before_anything_is_written() {
    let class = Class::new(&[("anna", "fn a( {")]);
    let other = class.folder.path().join("other.toml");
    fs::write(&other, "fast = 9.0\n").expect("written");
    let rubric = format!("--rubric={}", other.display());
    let verdicts = class.folder.path().join("verdicts").to_string_lossy().into_owned();
    for options in
        [vec![rubric.as_str()], vec!["--metadata", "/etc/hostname"], vec!["--verdicts", &verdicts], vec!["ben"]]
    {
        let mut command = class.command(&["batch"]);
        command.arg(class.hand_ins()).arg("--out").arg(class.grades("grades")).arg("--").args(&options);
        let (status, text, errors) = said(command);
        assert_eq!(status, Some(2), "{options:?}: {text}{errors}");
        let refused = format!("error: {:?} cannot be an option of `grader grade` in a batch: ", options[0]);
        assert!(errors.contains(&refused) && errors.contains("\n  try: "), "{errors}");
        assert!(!class.grades("grades").exists(), "{options:?}: nothing was written");
    }
    // Nor does a result bring them along that somebody has changed.
    let grader = in_place(&class, "echo 'error: no kernel' >&2; exit 2");
    said(class.batch("grades", &["--grade-with", &grader]));
    let path = files(&class.grades("grades").join("results")).into_keys().next().expect("a result");
    let mut record = class.records("grades").remove("anna").expect("a result");
    record.asked.options = vec![rubric];
    fs::write(&path, serde_json::to_vec(&record).expect("JSON")).expect("written");
    let grades = class.grades("grades").to_string_lossy().into_owned();
    let (status, _, errors) =
        said(class.command(&["regrade", &grades, "--hash", &record.hand_in, "--grade-with", &grader]));
    assert!(status == Some(2) && errors.contains("cannot be an option"), "{errors}");
}
