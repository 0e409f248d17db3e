//! What course systems give to those who download all hand-ins is graded as it is, and a batch writes nowhere but in a folder of its own.

mod class;

use class::{Class, said};
use grader::batch::store::Outcome;
use std::fs;
use std::path::Path;

const BROKEN: &str = "fn broken( {";

/// A packed hand-in with a kernel of step 1.
fn packed(kernel: &str) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_size(kernel.len() as u64);
    header.set_mode(0o644);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, "steps/step01/src/kernel.rs", kernel.as_bytes()).expect("written");
    archive.into_inner().expect("an archive")
}

fn put(folder: &Path, name: &str, bytes: &[u8]) {
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join(name), bytes).expect("written");
}

/// Gradescope and Moodle give each hand-in a folder, with what was handed in inside.
#[test]
fn a_folder_with_one_archive_is_that_archive_and_with_two_nobody_knows() {
    let class = Class::new(&[("kernel beside", BROKEN)]);
    let at = |name: &str| class.hand_ins().join(name);
    put(&at("packed"), "handin.tar", &packed(BROKEN));
    put(&at("packed"), "._handin.tar", b"left behind by a system");
    put(&at("torn"), "handin.TAR", b"no archive");
    put(&at("two"), "first.tar", &packed(BROKEN));
    put(&at("two"), "second.tar", &packed(BROKEN));
    put(&at("zipped"), "handin.zip", b"PK");
    put(&at("kernel beside"), "data.tar", b"no archive");
    #[cfg(unix)]
    {
        fs::create_dir(at("link")).expect("a folder");
        std::os::unix::fs::symlink(at("packed").join("handin.tar"), at("link").join("handin.tar")).expect("a link");
    }

    let (status, text, errors) = said(class.batch("grades", &["--jobs", "2"]));
    assert_eq!(status, Some(1), "{text}{errors}");
    let records = class.records("grades");
    let files = |name: &str| match &records[name].outcome {
        Outcome::Graded(report) => report.steps.iter().filter_map(|step| step.file.clone()).collect::<Vec<_>>(),
        Outcome::NotGraded { reason, .. } => panic!("{name}: {reason}"),
    };
    assert_eq!(files("packed"), ["packed/steps/step01/src/kernel.rs"]);
    assert_eq!(files("kernel beside"), ["kernel beside/step01.rs"], "a kernel comes before an archive beside it");
    let why = |name: &str| match &records[name].outcome {
        Outcome::NotGraded { reason, here: false, .. } => reason.clone(),
        other => panic!("{name}: {other:?}"),
    };
    assert!(why("torn").starts_with("torn: refused (not-an-archive): "), "{}", why("torn"));
    let two = "\n  try: Leave the archive that counts, alone: `first.tar`, `second.tar`.";
    assert!(why("two").ends_with(two), "{}", why("two"));
    let zipped = "\n  try: Unpack `handin.zip` in its place, or hand in what `cargo workbook pack` writes.";
    assert!(why("zipped").ends_with(zipped), "{}", why("zipped"));
    #[cfg(unix)]
    assert!(why("link").starts_with("link/handin.tar is a symbolic link\n  try: "), "{}", why("link"));

    // The copy that was kept is graded again, and one that is graded alone is graded so, too.
    let hash = records["packed"].hand_in.clone();
    let grades = class.grades("grades");
    let (status, text, errors) = said(class.command(&["regrade", grades.to_str().expect("UTF-8"), "--hash", &hash]));
    if class::sandboxed() {
        assert_eq!((status, text.as_str()), (Some(0), "packed: identical\n"), "{errors}");
    }
    let trust: &[&str] = if class::sandboxed() { &[] } else { &["--trust"] };
    let packed = at("packed");
    let (status, text, errors) = said(class.command(&[&["grade", packed.to_str().expect("UTF-8")], trust].concat()));
    assert_eq!(status, Some(1), "{errors}");
    assert!(text.contains("packed/handin.tar/steps/step01/src/kernel.rs)"), "{text}");
}

#[test]
fn gradescopes_list_is_nobodys_hand_in_and_says_when_each_came() {
    let class = Class::new(&[("submission_1", BROKEN), ("submission_2", BROKEN), ("submission_3", BROKEN)]);
    let list = class.hand_ins().join("submission_metadata.yml");
    let text = "---\nsubmission_1:\n  :created_at: 2026-11-30 23:00:00.5 Z\nsubmission_2:\n  :created_at: 2026-12-02 12:00:00.5 Z\n\
                submission_7:\n  :created_at: 2026-12-02 12:00:00.5 Z\n";
    fs::write(&list, text).expect("written");
    let rubric = class.folder.path().join("rubric.toml");
    let late = "[late]\ndue = 2026-12-01T00:00:00+01:00\npoints-per-day = 1\nlatest-day = 3\n";
    fs::write(&rubric, late).expect("written");
    let options = ["--handed-in", list.to_str().expect("UTF-8"), "--rubric", rubric.to_str().expect("UTF-8")];
    let (status, text, errors) = said(class.batch("grades", &options));
    assert_eq!(status, Some(0), "{text}{errors}");
    assert!(errors.contains("submission_metadata.yml is left out"), "{errors}");
    assert!(errors.contains("no hand-in is called \"submission_7\", for which"), "{errors}");
    assert!(errors.contains("does not say when these came, and they lose no points: \"submission_3\"\n"), "{errors}");
    let csv = class.csv("grades");
    let days: Vec<_> = csv.lines().skip(1).map(|row| row.split(',').take(4).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(days, ["submission_1 0 100 0", "submission_2 0 100 2", "submission_3 0 100 "]);
}

#[test]
fn a_batch_writes_over_no_file_of_others_and_not_among_hand_ins() {
    let class = Class::new(&[("anna", BROKEN)]);
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    // The folder above the hand-ins: copies would be kept where the hand-ins lie.
    let (status, _, errors) = said(class.batch(".", &[]));
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("lie in the folder of grades") && errors.contains("\n  try: "), "{errors}");
    assert_eq!((names(class.folder.path()), names(&class.hand_ins())), (vec!["hand-ins".into()], vec!["anna".into()]));
    // Somebody's own page, and somebody's table.
    for file in ["index.html", "grades.csv"] {
        let own = class.grades(&format!("own {file}"));
        put(&own, file, b"mine");
        let (status, _, errors) = said(class.batch(&format!("own {file}"), &[]));
        assert_eq!(status, Some(2), "{errors}");
        assert!(
            errors.contains(&format!(" holds `{file}`, and no batch has written to it"))
                && errors.contains("\n  try: "),
            "{errors}"
        );
        assert_eq!((names(&own), fs::read(own.join(file)).expect("read")), (vec![file.to_string()], b"mine".to_vec()));
    }
    // Anything else stays beside the grades.
    put(&class.grades("notes"), "notes.txt", b"mine");
    let (status, _, errors) = said(class.batch("notes", &[]));
    assert_eq!(status, Some(0), "{errors}");
}
