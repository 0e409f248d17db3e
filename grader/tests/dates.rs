//! What a batch says of moments and counts: nobody gets late points back in silence, and each hand-in is counted once.

mod class;

use class::{Class, files, said};
use expect_test::expect;
use std::fs;
use std::path::PathBuf;

/// Hand-ins that do not compile: what they lose does not depend on what they reach.
fn class() -> (Class, PathBuf, PathBuf) {
    let class = Class::new(&[("anna", "fn a( {"), ("ben", "fn b( {"), ("cleo", "fn c( {")]);
    let (rubric, table) = (class.folder.path().join("rubric.toml"), class.folder.path().join("came.csv"));
    fs::write(&rubric, "[late]\ndue = 2026-11-30T12:00:00Z\npoints-per-day = 1.0\nlatest-day = 3\n").expect("written");
    fs::write(&table, "name,handed_in\nanna,2026-12-01T12:00:01Z\nben,2026-11-01T12:00:00Z\n").expect("written");
    (class, rubric, table)
}

#[test]
fn where_being_late_costs_points_a_batch_without_moments_is_refused() {
    let (class, rubric, table) = class();
    let (rubric, table) = (rubric.to_string_lossy(), table.to_string_lossy());
    let (late, dated) = (["--step", "1", "--rubric", &*rubric], ["--handed-in", &*table]);
    let refused = |options: &[&str]| {
        let before = files(&class.grades("grades").join("results"));
        let (status, text, errors) = said(class.batch("grades", options));
        assert_eq!((status, text.as_str()), (Some(2), ""), "{options:?}: {errors}");
        assert_eq!(files(&class.grades("grades").join("results")), before);
        errors.replace(&*class.folder.path().to_string_lossy(), "FOLDER")
    };
    let said_then = refused(&late);
    assert!(!class.grades("grades").exists());
    expect![[r#"
        error: the rubric says that hand-ins were due at 2026-11-30T12:00:00Z, and nothing says when they came: no late one would lose points
          try: Give --handed-in FILE, a CSV file whose first line is `name,handed_in`, or Gradescope's submission_metadata.yml; a hand-in that FILE does not name counts as in time. Or leave [late] out of the rubric.
    "#]].assert_eq(&said_then);

    let (status, text, errors) = said(class.batch("grades", &[&late[..], &dated].concat()));
    assert_eq!(status, Some(0), "{errors}");
    assert!(text.starts_with("3 graded now, 0 kept from before, 0 not graded\n"), "{text}");
    // Also where grades are to be replaced.
    assert_eq!(refused(&late), said_then);
    assert_eq!(refused(&[&late[..], &["--replace"]].concat()), said_then);

    // A table that has lost a line.
    let shorter = class.folder.path().join("shorter.csv");
    fs::write(&shorter, "name,handed_in\nben,2026-11-01T12:00:00Z\n").expect("written");
    let shorter = shorter.to_string_lossy();
    let shorter = [&late[..], &["--handed-in", &*shorter]].concat();
    expect![[r#"
        error: this batch asks for something else than the one before, and would replace 1 grade in FOLDER/grades
          the grade of anna:
            when it was handed in: then 2026-12-01T12:00:01Z, now not given
          try: Ask as before: --handed-in FILE, where FILE says when each came. To grade all of them anew, give --replace, or another folder with --out.
    "#]].assert_eq(&refused(&shorter));
    let (status, text, errors) = said(class.batch("grades", &[&shorter[..], &["--replace"]].concat()));
    assert!(text.starts_with("1 graded now, 2 kept from before, 0 not graded\n"), "{text}");
    assert_eq!(status, Some(0), "{errors}");
    let unknown = "note: --handed-in does not say when these came, and they lose no points: \"anna\", \"cleo\"\n";
    assert!(errors.contains(unknown), "{errors}");
}

#[test]
fn days_late_are_a_number_wherever_a_moment_is_known_and_each_hand_in_is_counted_once() {
    let (class, rubric, table) = class();
    fs::write(class.hand_ins().join("dora.zip"), "PK").expect("written");
    fs::write(class.hand_ins().join("emil.zip"), "PK").expect("written");
    let list = fs::read_to_string(&table).expect("read") + "dora.zip,2026-12-02T12:00:00Z\n";
    fs::write(&table, list).expect("written");
    let options = ["--step", "1", "--rubric", &*rubric.to_string_lossy(), "--handed-in", &*table.to_string_lossy()];
    let days = || {
        let csv = class.csv("grades");
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let rows = reader.records().map(|row| row.expect("a row"));
        rows.map(|row| format!("{}:{} ", &row[0], &row[3])).collect::<String>()
    };
    let (status, text, errors) = said(class.batch("grades", &options));
    assert_eq!(status, Some(1), "{errors}");
    assert!(text.starts_with("3 graded now, 0 kept from before, 2 not graded\n"), "{text}");
    assert_eq!(days(), "anna:2 ben:0 cleo: dora.zip:2 emil.zip: ", "{}", class.csv("grades"));
    // Given again, what has no grade is no grade that was kept: five hand-ins are five.
    class.write("fritz", "fn f( {");
    let (_, text, _) = said(class.batch("grades", &options));
    assert!(text.starts_with("1 graded now, 3 kept from before, 2 not graded\n"), "{text}");
    // Nothing is late where nothing was due.
    let (_, _, errors) = said(class.batch("undue", &[&options[..2], &options[4..]].concat()));
    assert_eq!(days(), "anna:2 ben:0 cleo: dora.zip:2 emil.zip: fritz: ", "{errors}");
    let csv = class.csv("undue");
    assert!(csv.contains("\nanna,0,5,0,") && csv.contains("\ncleo,0,5,,"), "{csv}");
}
