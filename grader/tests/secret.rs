//! Secret seeds: who may see them and when, and that what is stored gives the same grades again, before they are told and after.

mod class;

use class::{Class, files, said};
use grader::batch::seed::Secret;
use grader::batch::store::Outcome;
use grader::json::State;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The seed that a folder of grades keeps secret.
fn secret(class: &Class) -> Secret {
    let path = class.grades("grades").join("secret/seed.json");
    serde_json::from_slice(&fs::read(path).expect("kept")).expect("a seed")
}

/// A commitment is worth nothing where hand-ins can read what is committed to: that is said, and only then.
#[test]
fn who_trusts_hand_ins_is_told_that_they_can_read_the_seed() {
    let class = Class::new(&[]);
    fs::create_dir_all(class.hand_ins().join("anna")).expect("a folder");
    let says = |out: &str, options: &[&str]| {
        let mut command = class.command(&["batch"]);
        command.arg(class.hand_ins()).arg("--out").arg(class.grades(out)).args(options);
        said(command).2.contains("note: with --trust a hand-in has all rights of this account, and can read the seed")
    };
    assert!(says("grades", &["--trust", "--seed-commit"]) && says("drawn", &["--trust"]));
    assert!(!says("sandboxed", &["--seed-commit"]) && !says("told", &["--trust", "--seed", "1"]));
}

#[test]
fn a_secret_seed_is_told_only_by_reveal_and_grades_come_out_the_same_again() {
    let class = Class::new(&[("anna", "fn broken( {")]);
    let (status, _, errors) = said(class.batch("grades", &["--seed-commit"]));
    assert_eq!(status, Some(0), "{errors}");
    let commitment = errors.lines().find_map(|line| line.strip_prefix("seed commitment: ")).expect("printed");
    let record = class.records("grades").remove("anna").expect("a result");
    assert_eq!((record.seed, record.seed_commitment.as_deref()), (None, Some(commitment)));
    let grades = class.grades("grades").to_string_lossy().into_owned();
    let seed = secret(&class).seed.to_string();
    for folder in ["results", "reports"] {
        for path in files(&class.grades("grades").join(folder)).into_keys() {
            assert!(!fs::read_to_string(&path).expect("read").contains(&seed), "{path:?} tells the seed");
        }
    }
    let mode =
        |place: &str| fs::metadata(class.grades("grades").join(place)).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode("secret"), mode("secret/seed.json")), (0o700, 0o600), "nobody else can read it");
    // One that an earlier grader left open is closed.
    let open = class.grades("grades").join("secret/seed.json");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).expect("open");
    // A second batch has the same seed, so it has nothing to do.
    let again = || said(class.batch("grades", &["--seed-commit"]));
    let (_, text, errors) = again();
    assert!(text.starts_with("0 graded now, 1 kept") && errors.contains(commitment), "{text}{errors}");
    assert!(!errors.contains("was told") && mode("secret/seed.json") == 0o600, "{errors}");

    let regrade = || said(class.command(&["regrade", &grades, "--hash", &record.hand_in[..12]]));
    let (status, text, errors) = regrade();
    assert_eq!((status, text.as_str()), (Some(0), "anna: identical\n"), "{errors}");

    // Now it is told: by the command, and in each result.
    let (status, told, errors) = said(class.command(&["reveal", &grades]));
    assert_eq!(status, Some(0), "{errors}");
    let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).expect("told").trim().to_string();
    let (seed, nonce) = (field("seed:"), field("nonce:"));
    let hash = <sha2::Sha256 as sha2::Digest>::digest(format!("{seed}{nonce}"));
    assert_eq!(harness::workbook::pack::hex(&hash), commitment);
    assert!(told.ends_with("in the 1 result that was made with it\n"), "{told}");
    let record = class.records("grades").remove("anna").expect("a result");
    let Outcome::Graded(report) = &record.outcome else { panic!("graded") };
    let number = seed.parse().ok();
    assert_eq!((record.seed, report.seed, record.seed_commitment.as_deref()), (number, number, Some(commitment)));
    // Twice tells the same, and changes nothing.
    assert_eq!(said(class.command(&["reveal", &grades])).1, told);
    assert_eq!(class.records("grades")["anna"], record);
    // It is the same seed for a batch, which says that it is no secret any more. Who comes late is graded by it.
    let (_, text, errors) = again();
    assert!(text.starts_with("0 graded now, 1 kept"), "{text}{errors}");
    assert!(errors.contains(commitment) && errors.contains("note: this seed was told: "), "{errors}");
    class.write("ben", "fn late( {");
    let (_, text, errors) = again();
    assert!(text.starts_with("1 graded now, 1 kept"), "{text}{errors}");
    let ben = &class.records("grades")["ben"];
    assert_eq!((ben.seed, ben.seed_commitment.as_deref()), (number, Some(commitment)));
    // Whoever has results, hand-ins and rubrics alone comes to the same grade.
    fs::remove_dir_all(class.grades("grades").join("secret")).expect("removed");
    fs::remove_file(class.grades("grades").join("seed.json")).expect("removed");
    let (status, text, errors) = regrade();
    assert_eq!((status, text.as_str()), (Some(0), "anna: identical\n"), "{errors}");
    // Another seed in a result is found out by the commitment.
    fs::write(
        class.grades("grades").join("seed.json"),
        serde_json::json!({"seed": number, "nonce": nonce}).to_string(),
    )
    .expect("written");
    let path = files(&class.grades("grades").join("results")).into_keys().next().expect("a result");
    let mut other = record.clone();
    other.seed = Some(7);
    fs::write(&path, serde_json::to_vec(&other).expect("JSON")).expect("written");
    let (status, _, errors) = regrade();
    assert!(status == Some(2) && errors.contains("somebody has changed the result"), "{errors}");
    // A grade that was tampered with is found, line by line.
    let mut tampered = record.clone();
    let Outcome::Graded(report) = &mut tampered.outcome else { panic!("graded") };
    report.points = 5.0;
    report.steps[0].parts[0].outcome = State::Passed;
    tampered.versions.rustc = Some("rustc 1.0.0".to_string());
    tampered.versions.sources = Some("0123".to_string());
    tampered.versions.grade_with = Some("4567".to_string());
    fs::write(&path, serde_json::to_vec(&tampered).expect("JSON")).expect("written");
    let (status, text, _) = said(class.command(&["regrade", &grades, "--hash", &record.hand_in]));
    assert_eq!(status, Some(1), "{text}");
    for needed in [
        "anna: DIFFERENT\n",
        "note: rustc was rustc 1.0.0",
        "note: the sources compiled with a hand-in was 0123, and is ",
        "note: the program of --grade-with was 4567, and is none now",
        "-  \"points\": 5.0",
        "+  \"points\": 0.0",
    ] {
        assert!(text.contains(needed), "no {needed:?}: {text}");
    }
    // So is a hand-in.
    let kept = class.grades("grades").join("hand-ins").join(&record.hand_in).join("step01.rs");
    fs::write(kept, "fn other( {").expect("written");
    let (status, _, errors) = said(class.command(&["regrade", &grades, "--hash", &record.hand_in]));
    assert_eq!(status, Some(2));
    assert!(errors.contains("was changed since it was kept"), "{errors}");
    for hash in ["12", "0123456789abcdef", "no hash!"] {
        let (status, _, errors) = said(class.command(&["regrade", &grades, "--hash", hash]));
        assert_eq!(status, Some(2));
        assert!(errors.starts_with("error: ") && errors.contains("\n  try: "), "{errors}");
    }
}

#[test]
fn a_seed_is_not_told_while_hand_ins_wait_unless_that_is_meant() {
    let class = Class::new(&[]);
    fs::create_dir_all(class.hand_ins()).expect("a folder");
    let grades = class.grades("grades").to_string_lossy().into_owned();
    let reveal = |options: &[&str]| said(class.command(&[&["reveal", &grades], options].concat()));
    let told = |errors: &str| errors.contains(&secret(&class).seed.to_string());
    // The commitment comes before the first hand-in: there is nothing to tell yet.
    let (status, _, errors) = said(class.batch("grades", &["--seed-commit"]));
    assert_eq!(status, Some(0), "{errors}");
    let (status, text, errors) = reveal(&[]);
    assert_eq!((status, text.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains("was graded with the secret seed yet: whoever learns the seed now"), "{errors}");
    assert!(errors.contains("\n  try: ") && errors.contains("--anyway") && !told(&errors), "{errors}");

    // A batch that is killed: one has its result, the other waits.
    class.write("anna", "fn a( {");
    class.write("ben", "fn b( {");
    let slow = class.folder.path().join("slow");
    fs::write(&slow, "").expect("written");
    let grader = class.folder.path().join("in-place.sh");
    let script = format!(
        "#!/bin/sh\ngrep -q 'fn b' \"$2/step01.rs\" && [ -e {slow:?} ] && sleep 60\necho 'error: no' >&2; exit 2\n"
    );
    fs::write(&grader, script).expect("written");
    fs::set_permissions(&grader, fs::Permissions::from_mode(0o755)).expect("executable");
    let options = ["--seed-commit", "--jobs", "1", "--grade-with", &grader.to_string_lossy()];
    let mut batch = class.batch("grades", &options).stderr(Stdio::null()).spawn().expect("started");
    let begin = Instant::now();
    while !class.records("grades").contains_key("anna") {
        assert!(begin.elapsed() < Duration::from_secs(60), "it grades nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (status, _, errors) = reveal(&["--anyway"]);
    assert!(status == Some(2) && errors.contains("error: a batch writes to "), "{errors}");
    batch.kill().expect("killed");
    batch.wait().expect("ended");
    let (status, _, errors) = reveal(&[]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(
        errors.contains("error: 1 of 2 hand-ins in ") && errors.contains("wait for their grades: \"ben\""),
        "{errors}"
    );
    assert!(!told(&errors) && !class.grades("grades").join("seed.json").exists(), "{errors}");
    // Given again it gets through, and then the seed may be told.
    fs::remove_file(&slow).expect("removed");
    let (status, _, errors) = said(class.batch("grades", &options));
    assert_eq!(status, Some(1), "{errors}");
    let (status, text, errors) = reveal(&[]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    assert!(told(&text), "{text}");
}

#[test]
fn a_seed_that_is_told_too_early_is_told_with_a_note() {
    let class = Class::new(&[]);
    fs::create_dir_all(class.hand_ins()).expect("a folder");
    said(class.batch("grades", &["--seed-commit"]));
    let grades = class.grades("grades").to_string_lossy().into_owned();
    let (status, text, errors) = said(class.command(&["reveal", &grades, "--anyway"]));
    assert_eq!(status, Some(0), "{errors}");
    assert!(
        errors.starts_with("note: nothing in ") && text.contains(&secret(&class).seed.to_string()),
        "{text}{errors}"
    );
}
