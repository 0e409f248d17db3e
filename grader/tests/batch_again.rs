//! What a batch asks is looked at before a grade is replaced, and each entry of its folder has a row that says what became of it.

mod class;

use class::{Class, files, said};
use expect_test::{Expect, expect};
use grader::batch::store::Outcome;
use std::fs;

/// Refuses a batch, and leaves everything as it was. `names` stand in what is said for what is another each time.
fn refuses(class: &Class, options: &[&str], names: &[(&str, &str)], expected: Expect) {
    let all = || (class.records("grades"), class.csv("grades"), files(&class.grades("grades").join("secret")));
    let before = all();
    let (status, text, errors) = said(class.batch("grades", options));
    assert_eq!((status, text.as_str()), (Some(2), ""), "{options:?}: {errors}");
    let folder = class.folder.path().to_string_lossy().into_owned();
    let names = [&[(folder.as_str(), "FOLDER")], names].concat();
    expected.assert_eq(&names.iter().fold(errors, |said, (found, name)| said.replace(found, name)));
    assert_eq!(before, all(), "{options:?}");
}

#[test]
fn a_batch_that_asks_for_something_else_is_refused_and_says_how_it_was_asked_before() {
    let class = Class::new(&[("anna", "fn broken( {"), ("ben", "fn broken( {")]);
    let rubric = class.folder.path().join("rubric.toml");
    fs::write(&rubric, "[steps.step01]\npoints = 7\n").expect("written");
    let by = ["--rubric", &*rubric.to_string_lossy(), "--seed-commit"];
    let (status, _, errors) = said(class.batch("grades", &by));
    assert_eq!(status, Some(0), "{errors}");
    let commitment = errors.lines().find_map(|line| line.strip_prefix("seed commitment: ")).expect("printed");
    let hash = class.records("grades")["anna"].rubric.clone();
    let names = [(hash.as_str(), "HASH"), (&hash[..12], "HASH"), (&commitment[..12], "COMMITMENT")];
    let line = |text: &str| text.lines().next().map(str::to_string);
    let (status, text, errors) = said(class.batch("grades", &by));
    assert_eq!(
        (status, line(&text).as_deref()),
        (Some(0), Some("0 graded now, 2 kept from before, 0 not graded")),
        "{errors}"
    );

    refuses(
        &class,
        &[],
        &names,
        expect![[r#"
        error: this batch asks for something else than the one before, and would replace 2 grades in FOLDER/grades
          the grade of anna:
            rubric: then HASH…, now what `grader rubric` prints
            seed: then a secret one, committed to by COMMITMENT…, now one that is not drawn yet
          try: Ask as before: --rubric FOLDER/grades/rubrics/HASH.toml, --seed-commit. To grade all of them anew, give --replace, or another folder with --out.
    "#]],
    );
    let more = [&by[..], &["--step", "1", "--allow-unchecked"]].concat();
    refuses(
        &class,
        &more,
        &names,
        expect![[r#"
        error: this batch asks for something else than the one before, and would replace 2 grades in FOLDER/grades
          the grade of anna:
            steps: then all, now 1
            parts that are not checked: then not allowed, now allowed
          try: Ask as before: no --step, no --allow-unchecked. To grade all of them anew, give --replace, or another folder with --out.
    "#]],
    );
    refuses(
        &class,
        &["--seed", "7", by[0], by[1]],
        &names,
        expect![[r#"
        error: this batch asks for something else than the one before, and would replace 2 grades in FOLDER/grades
          the grade of anna:
            seed: then a secret one, committed to by COMMITMENT…, now 7
          try: Ask as before: --seed-commit. To grade all of them anew, give --replace, or another folder with --out.
    "#]],
    );
    // Who means it says so.
    let (status, text, errors) = said(class.batch("grades", &["--replace"]));
    assert_eq!(
        (status, line(&text).as_deref()),
        (Some(0), Some("2 graded now, 0 kept from before, 0 not graded")),
        "{errors}"
    );
    // Nobody named a seed: one was drawn, which stands in each result, and was told when all were graded.
    let drawn = class.records("grades").into_values().map(|record| record.seed).collect::<Vec<_>>();
    assert!(drawn[0].is_some_and(|seed| seed > 1 << 20) && drawn[0] == drawn[1], "{drawn:?}");
    let drawn = drawn[0].unwrap_or_default().to_string();
    let told =
        format!("note: the inputs were of the seed {drawn}, which was drawn for this folder; --seed {drawn} gives");
    assert!(errors.contains(&told), "{errors}");
    let (_, text, errors) = said(class.batch("grades", &["--seed", &drawn]));
    assert_eq!(line(&text).as_deref(), Some("0 graded now, 2 kept from before, 0 not graded"), "{errors}");
    let names = [names.as_slice(), &[(drawn.as_str(), "DRAWN")]].concat();
    refuses(
        &class,
        &by,
        &names,
        expect![[r#"
        error: this batch asks for something else than the one before, and would replace 2 grades in FOLDER/grades
          the grade of anna:
            rubric: then what `grader rubric` prints, now HASH…
            seed: then DRAWN, which was drawn for this folder, now a secret one, committed to by COMMITMENT…
          try: Ask as before: no --rubric, neither --seed nor --seed-commit. To grade all of them anew, give --replace, or another folder with --out.
    "#]],
    );
    // A hand-in that is new, or another now, is graded; and a grade of one that is not there any more stands in nobody's way.
    class.write("carla", "fn broken_otherwise( {");
    class.write("ben", "fn broken_otherwise( {");
    let (_, text, errors) = said(class.batch("grades", &[]));
    assert_eq!(line(&text).as_deref(), Some("2 graded now, 1 kept from before, 0 not graded"), "{errors}");
    assert!(errors.contains("note: the seed that was drawn for this folder is used again"), "{errors}");
    assert_eq!(class.records("grades")["carla"].seed.map(|seed| seed.to_string()), Some(drawn));
    // Another folder has another.
    said(class.batch("others", &[]));
    assert_ne!(class.records("others")["ben"].seed, class.records("grades")["ben"].seed);
}

#[test]
fn options_that_no_grade_has_are_refused_before_they_take_everyones() {
    let class = Class::new(&[("anna", "fn broken( {")]);
    let (status, _, errors) = said(class.batch("grades", &[]));
    assert_eq!(status, Some(0), "{errors}");
    if !class::sandboxed() {
        return println!("without a sandbox, `-- --trust` is in each batch here: not tried");
    }
    refuses(
        &class,
        &["--", "--bogus"],
        &[],
        expect![[r#"
            error: "--bogus" cannot be an option of `grader grade` in a batch: allowed are --trust and --allow-unchecked
              try: Leave it out.
        "#]],
    );
    refuses(
        &class,
        &["--", "--format", "csv"],
        &[],
        expect![[r#"
            error: "--format" cannot be an option of `grader grade` in a batch: it decides on grades, or names a file that no grade says anything of
              try: Give it to the batch, before `--`, if it has it: --rubric, --handed-in, --seed, --step.
        "#]],
    );
    refuses(
        &class,
        &["--", "another"],
        &[],
        expect![[r#"
            error: "another" cannot be an option of `grader grade` in a batch: allowed are --trust and --allow-unchecked
              try: Leave it out.
        "#]],
    );
    refuses(
        &class,
        &["--", "--trust", "--trust"],
        &[],
        expect![[r#"
            error: "--trust" cannot be an option of `grader grade` in a batch: it stands there twice
              try: Give it once.
        "#]],
    );
    refuses(
        &class,
        &["--format", "csv"],
        &[],
        expect![[r#"
        error: --format is not for `grader batch`
          try: Leave it out. A batch writes JSON, CSV and pages by itself, into the folder of --out.
    "#]],
    );
    // Also where there is nothing yet.
    let (status, _, errors) = said(class.batch("fresh", &["--", "--bogus"]));
    assert!(status == Some(2) && !class.grades("fresh").exists(), "{errors}");
    let (status, _, errors) = said(class.batch("trusted", &["--trust"]));
    assert_eq!(status, Some(0), "{errors}");
    assert_eq!(class.records("trusted")["anna"].asked.options, ["--trust"]);
}

#[cfg(unix)]
#[test]
fn each_entry_has_a_row_with_what_it_is_and_what_to_do() {
    let class = Class::new(&[("anna", "fn broken( {")]);
    let at = |name: &str| class.hand_ins().join(name);
    for file in ["ben.zip", "step01.rs", "notes", ".DS_Store"] {
        fs::write(at(file), "").expect("written");
    }
    fs::create_dir_all(at("dora/homework/step02")).expect("a folder");
    fs::write(at("dora/homework/step02/kernel.rs"), "// two").expect("written");
    fs::write(at("dora/kernel.rs"), "// one").expect("written");
    std::os::unix::fs::symlink(class.grades("elsewhere"), at("carl")).expect("a link");
    let (status, text, errors) = said(class.batch("grades", &[]));
    assert_eq!(status, Some(1), "{errors}");
    assert!(text.starts_with("1 graded now, 0 kept from before, 5 not graded\n"), "{text}");
    assert!(errors.contains("note: .DS_Store is left out: its name begins with a dot\n"), "{errors}");
    let csv = class.csv("grades");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let next = reader.headers().expect("a head").iter().position(|column| column == "next").expect("what comes next");
    let rows = reader.records().map(|row| row.expect("a row"));
    let rows: Vec<String> = rows.map(|row| format!("{}: {}\n", &row[0], &row[next])).collect();
    expect![[r#"
        anna: step01: it does not compile: error: this file contains an unclosed delimiter, at steps/step01/src/kernel.rs:1; try: Run `cargo check -p step01` until it compiles; read: step 1 (book/src/step01.md)
        ben.zip: not graded: ben.zip is a .zip file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file; try: Unpack it into a folder of that name, or ask for what `cargo workbook pack` writes.
        carl: not graded: carl is a symbolic link, and links are not followed; try: Put what it leads to in its place: the folder or the archive itself.
        dora: not graded: dora holds no kernel for step01 to step10; there is: `homework/`, `kernel.rs`; looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps; try: Hand in what lies in `homework`, not the folder around it: `homework/step02/kernel.rs` is one folder too deep.
        notes: not graded: notes is a file of another kind; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file; try: Ask for what `cargo workbook pack` writes. If it is nobody's hand-in, move it out of this folder.
        step01.rs: not graded: step01.rs is one Rust file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file; try: Put it into a folder with the student's name, as `step01.rs`, with the number of its step.
    "#]].assert_eq(&rows.concat());
    let index = fs::read_to_string(class.grades("grades").join("index.html")).expect("index.html");
    // Each thing is said once there: why there is no grade beside the name, and not in the table of all once more.
    assert_eq!(index.matches("is a .zip file").count(), 1, "{index}");
    assert!(index.contains("dora</a>: holds no kernel for step01"), "{index}");
    for record in class.records("grades").values() {
        let Outcome::NotGraded { reason, here: false, .. } = &record.outcome else { continue };
        let way_out = reason.rsplit("try: ").next().expect("a way out");
        assert!(index.contains(&record.name) && index.contains(&way_out[..20]), "{reason}: {index}");
    }
    // Where nothing is a hand-in, the folder is another one.
    fs::remove_dir_all(at("anna")).expect("removed");
    fs::remove_dir_all(at("dora")).expect("removed");
    refuses(
        &class,
        &[],
        &[],
        expect![[r#"
        error: FOLDER/hand-ins holds no hand-in
          ben.zip is a .zip file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
          carl is a symbolic link, and links are not followed
          notes is a file of another kind; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
          step01.rs is one Rust file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
          try: Name the folder in which each hand-in is a folder, a .tar, a .tar.gz or a .tgz file.
    "#]],
    );
}

#[test]
fn a_row_says_what_comes_next_or_what_the_machine_lacks() {
    let (solution, untouched) =
        (include_str!("../../solutions/src/step01.rs"), include_str!("../../steps/step01/src/kernel.rs"));
    let begun = solution.replace("t.commit(mma_done);", "t.todo(\"1.4\");");
    let class = Class::new(&[("begun", &begun), ("done", solution), ("untouched", untouched)]);
    let mut command = class.batch("grades", &["--step", "1"]);
    command.env("PTXAS", "/no/ptxas");
    let (status, _, errors) = said(command);
    assert_eq!(status, Some(0), "{errors}");
    let csv = class.csv("grades");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let next = reader.headers().expect("a head").iter().position(|column| column == "next").expect("what comes next");
    let rows = reader.records().map(|row| row.expect("a row"));
    let rows: Vec<String> = rows.map(|row| format!("{}: {}\n", &row[0], &row[next])).collect();
    expect![[r#"
        begun: step01: TODO 1.4: the MMAs are committed to the mbarrier, at steps/step01/src/kernel.rs:81; try: Let the thread that issued the MMAs ask that mma_done hears of their end; read: mbarriers and phases (book/src/mbarriers.md)
        done: step01: resources could not be checked by the machine that grades: PTXAS=/no/ptxas is no file; `pip install --no-deps --target target/cuda nvidia-cuda-nvcc` brings it; then `export PTXAS=$PWD/target/cuda/nvidia/cu13/bin/ptxas`
        untouched: step01: TODO 1.1: A and B arrive swizzled in shared memory, at steps/step01/src/kernel.rs:59; try: Copy A and B to their tiles with all 128 threads, 16 bytes at a time, each element to where the swizzle puts it; read: shared memory and swizzles (book/src/shared-memory.md)
    "#]].assert_eq(&rows.concat());
    // Of the whole class it is said once, to who can mend it; on the page, too.
    let index = fs::read_to_string(class.grades("grades").join("index.html")).expect("index.html");
    assert_eq!(index.matches("PTXAS=/no/ptxas is no file").count(), 1, "{index}");
    assert!(errors.contains("note: `resources` could not be checked in 1 of 3 hand-ins"), "{errors}");
}

#[test]
fn moments_without_a_due_date_cost_nothing_and_that_is_said() {
    let class = Class::new(&[("anna", "fn broken( {")]);
    let table = class.folder.path().join("came.csv");
    fs::write(&table, "name,handed_in\nanna,2026-12-01T12:00:01Z\n").expect("written");
    let (status, _, errors) = said(class.batch("grades", &["--handed-in", &table.to_string_lossy()]));
    assert_eq!(status, Some(0), "{errors}");
    let said_so: Vec<&str> = errors.lines().filter(|line| line.contains("[late]")).collect();
    expect!["note: --handed-in says when hand-ins came, and the rubric does not say when they were due: being late costs nothing. A table [late] in the rubric's file says so"].assert_eq(&said_so.join("\n"));
}

#[test]
fn a_hash_that_no_result_has_is_answered_with_the_nearest() {
    let class = Class::new(&[("anna", "fn broken( {"), ("ben", "fn broken( { {")]);
    let (status, _, errors) = said(class.batch("grades", &[]));
    assert_eq!(status, Some(0), "{errors}");
    let (anna, ben) = (class.records("grades")["anna"].hand_in.clone(), class.records("grades")["ben"].hand_in.clone());
    // A slip in the seventh digit of ben's.
    let slip = if ben.as_bytes()[6] == b'0' { '1' } else { '0' };
    let wrong = format!("{}{slip}{}", &ben[..6], &ben[7..12]);
    let (status, _, errors) =
        said(class.command(&["regrade", &class.grades("grades").to_string_lossy(), "--hash", &wrong]));
    assert_eq!(status, Some(2));
    let folder = class.folder.path().to_string_lossy().into_owned();
    let errors = [(&*folder, "FOLDER"), (&wrong, "WRONG"), (&anna[..12], "ANNA"), (&ben[..12], "BEN")]
        .into_iter()
        .fold(errors, |said, (found, name)| said.replace(found, name));
    expect![[r#"
        error: no result in FOLDER/grades is of a hand-in WRONG
          try: Give digits of one that is there:
            BEN (ben)
            ANNA (anna)
    "#]]
    .assert_eq(&errors);
}

/// Who names the folder of one hand-in in place of the class would get a row called `steps`.
#[test]
fn one_hand_in_is_no_class() {
    let class = Class::new(&[]);
    for place in ["steps/step01/src/kernel.rs", "step01/kernel.rs", "step01.rs"] {
        let kernel = class.hand_ins().join(place);
        fs::create_dir_all(kernel.parent().expect("a folder")).expect("a folder");
        fs::write(&kernel, "fn a( {").expect("written");
        let hand_ins = class.hand_ins().to_string_lossy().into_owned();
        for (status, text, errors) in [said(class.batch("grades", &[])), said(class.command(&["similar", &hand_ins]))] {
            assert_eq!((status, text.as_str()), (Some(2), ""), "{errors}");
            assert!(errors.contains(&format!(" is one hand-in, since it holds {place}\n  try: ")), "{errors}");
        }
        assert!(!class.grades("grades").exists(), "nothing was written");
        fs::remove_dir_all(class.hand_ins()).expect("removed");
    }
    // The other way round: who names a class in place of a hand-in is told what grades one.
    class.write("anna", "fn a( {");
    let grade = || said(class.command(&["grade", &class.hand_ins().to_string_lossy()])).2;
    assert!(!grade().contains("grader batch"), "{}", grade());
    class.write("ben", "fn b( {");
    assert!(grade().contains("is one folder too deep. If it is a class, `grader batch` grades it."), "{}", grade());
}

/// A folder that somebody uses is no place for grades: neither hand-ins of another class, nor one that holds or lies in those that are graded.
#[test]
fn grades_are_not_written_among_somebodys_files() {
    let class = Class::new(&[("anna", "fn a( {")]);
    let other = class.folder.path().join("other-class");
    fs::create_dir_all(other.join("ben")).expect("a folder");
    fs::write(other.join("ben/step01.rs"), "fn b( {").expect("written");
    let results = class.folder.path().join("with-results");
    fs::create_dir_all(results.join("results")).expect("a folder");
    let archives = class.folder.path().join("archives");
    fs::create_dir(&archives).expect("a folder");
    fs::write(archives.join("ben.tar.gz"), "").expect("written");
    let link = class.folder.path().join("link");
    std::os::unix::fs::symlink(class.hand_ins(), &link).expect("a link");
    let (hand_ins, all) = (class.hand_ins(), class.folder.path().to_path_buf());
    let told = "and no batch has written to it";
    for (out, expected) in [
        (other.clone(), told),
        (other.join("ben"), told),
        (results, told),
        (archives, told),
        (hand_ins.clone(), "would lie among the hand-ins"),
        (hand_ins.join("anna"), "would lie among the hand-ins"),
        (hand_ins.join("new"), "would lie among the hand-ins"),
        (link.join("new"), "would lie among the hand-ins"),
        (all.clone(), "lie in the folder of grades"),
    ] {
        let there =
            || [&all, &hand_ins, &hand_ins.join("anna"), &other, &other.join("ben")].map(|folder| files(folder));
        let before = there();
        let (status, _, errors) = said(class.batch(&out.to_string_lossy(), &["--seed-commit"]));
        assert_eq!(status, Some(2), "{}: {errors}", out.display());
        assert!(errors.contains(expected) && errors.contains("\n  try: "), "{}: {errors}", out.display());
        assert_eq!(there(), before, "{}: nothing was written", out.display());
    }
    // One that is there and empty is as good as a new one, and so is one of which a batch made the lock and was killed.
    let empty = class.folder.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    fs::write(empty.join("lock"), "").expect("written");
    let (status, _, errors) = said(class.batch("empty", &[]));
    assert_eq!(status, Some(0), "{errors}");
    let (_, text, errors) = said(class.batch("empty", &[]));
    assert!(text.starts_with("0 graded now, 1 kept"), "{text}{errors}");
}
