//! A batch: killed at any moment, it loses and repeats nothing; bad hand-ins and hostile names harm nobody; grades can be made again.
//!
//! Hand-ins are real, and cheap: kernels that do not compile take half a second each.

mod class;

use class::{Class, files, said, timeless};
use grader::batch::store::Outcome;
use harness::workbook::Workspace;
use harness::workbook::pack::{Compiled, pack};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Kills a batch when so many results are there, somewhere in the middle of the next.
fn kill_at(child: &mut Child, results: &Path, count: usize) {
    let begin = Instant::now();
    while files(results).len() < count {
        assert!(begin.elapsed() < Duration::from_secs(300), "no {count} results in five minutes");
        assert_eq!(child.try_wait().expect("asked"), None, "it ended before it had {count} results");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(10 * count as u64));
    child.kill().expect("SIGKILL");
    child.wait().expect("ended");
}

#[test]
fn a_batch_that_is_killed_three_times_gives_the_grades_of_one_that_ran_through() {
    let kernels: Vec<(String, String)> =
        (1..=5).map(|number| (format!("student {number}"), format!("fn broken{number}( {{"))).collect();
    let kernels: Vec<(&str, &str)> = kernels.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let class = Class::new(&kernels);
    let results = class.grades("killed").join("results");
    let mut before = BTreeMap::new();
    for count in [1, 2, 3] {
        let mut child = class.batch("killed", &["--jobs", "2"]).spawn().expect("the command starts");
        kill_at(&mut child, &results, count);
        let now = files(&results);
        for (path, time) in &before {
            assert_eq!(now.get(path), Some(time), "{path:?} was there, and is made once");
        }
        assert!(now.len() < kernels.len(), "a batch that is done cannot be killed: {}", now.len());
        before = now;
    }
    let (status, text, errors) = said(class.batch("killed", &["--jobs", "2"]));
    assert_eq!(status, Some(0), "{errors}");
    let (graded, kept) = (kernels.len() - before.len(), before.len());
    assert!(text.starts_with(&format!("{graded} graded now, {kept} kept from before, 0 not graded\n")), "{text}");
    let left: Vec<PathBuf> = fs::read_dir(&results).expect("read").flatten().map(|entry| entry.path()).collect();
    assert_eq!(left.len(), kernels.len(), "nothing unfinished is left: {left:?}");

    // Another folder would get another seed.
    let seed = class.records("killed")["student 1"].seed.expect("it was drawn").to_string();
    let (status, _, errors) = said(class.batch("through", &["--jobs", "2", "--seed", &seed]));
    assert_eq!(status, Some(0), "{errors}");
    assert!(!errors.contains('\u{1b}') && !errors.contains("hand-ins,"), "no bar where there is no terminal: {errors}");
    assert_eq!(class.csv("killed"), class.csv("through"));
    let [killed, through] = ["killed", "through"].map(|out| {
        class.records(out).into_iter().map(|(name, record)| (name, timeless(record))).collect::<BTreeMap<_, _>>()
    });
    assert_eq!(killed, through);
    assert_eq!(killed.len(), kernels.len());
    assert!(killed.values().all(|record| matches!(record.outcome, Outcome::Graded(_))));

    // What changed is graded again, and nothing else.
    class.write("student 3", "fn broken_otherwise( {");
    let (_, text, _) = said(class.batch("killed", &[]));
    assert!(text.starts_with("1 graded now, 4 kept from before"), "{text}");

    // What is asked wrongly replaces no grade.
    let before = class.records("killed");
    let (status, _, errors) = said(class.batch("killed", &["--step", "99"]));
    assert_eq!((status, errors.lines().next()), (Some(2), Some("error: there is no step 99")), "{errors}");
    assert_eq!(class.records("killed"), before);
}

#[cfg(unix)]
#[test]
fn bad_hand_ins_stop_nobody_and_hostile_names_stay_text() {
    let script = "<script>alert(1)&";
    let class = Class::new(&[("=1+1", "fn broken( {"), (script, "fn broken( {"), ("\u{1b}[2J\n..", "fn broken( {")]);
    fs::create_dir_all(class.hand_ins().join("empty")).expect("a folder");
    fs::create_dir_all(class.hand_ins().join("link/step01")).expect("a folder");
    let outside = class.folder.path().join("outside");
    fs::create_dir_all(&outside).expect("a folder");
    fs::write(outside.join("kernel.rs"), "// SECRET OF THE TEACHER\n").expect("written");
    fs::remove_dir(class.hand_ins().join("link/step01")).expect("removed");
    std::os::unix::fs::symlink(&outside, class.hand_ins().join("link/step01")).expect("a link");
    std::os::unix::fs::symlink(&outside, class.hand_ins().join("linked")).expect("a link");
    fs::write(class.hand_ins().join("torn.tar.gz"), "no archive").expect("written");

    let (status, text, errors) = said(class.batch("grades", &["--jobs", "2"]));
    assert_eq!(status, Some(1), "{text}{errors}");
    assert!(text.starts_with("3 graded now, 0 kept from before, 4 not graded\n"), "{text}{errors}");
    assert!(!errors.contains('\u{1b}'), "{errors}");
    let records = class.records("grades");
    let why = |name: &str| match &records[name].outcome {
        Outcome::NotGraded { reason, .. } => reason.clone(),
        Outcome::Graded(_) => panic!("{name} is graded"),
    };
    assert!(why("empty").starts_with("empty holds no kernel"), "{}", why("empty"));
    assert!(why("link").starts_with("link/step01 is a symbolic link\n  try: "), "{}", why("link"));
    assert!(why("linked").starts_with("linked is a symbolic link, and links are not followed\n  try: "));
    assert!(!why("torn.tar.gz").is_empty());
    // Every file that was written lies where it should, under a harmless name.
    for folder in ["results", "reports"] {
        for path in files(&class.grades("grades").join(folder)).into_keys() {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{name:?}");
            let text = fs::read_to_string(&path).expect("read");
            assert!(!text.contains("SECRET"), "{name}");
            assert!(folder == "results" || !text.contains("<script"), "{name}: {text}");
        }
    }
    let index = fs::read_to_string(class.grades("grades").join("index.html")).expect("index.html");
    assert!(!index.contains("<script") && index.contains("&lt;script&gt;alert(1)&amp;"), "{index}");
    assert!(
        index.contains("3 graded, 4 not graded")
            && index.contains("the kernel could not be built: it does not compile"),
        "{index}"
    );
    // Where hand-ins run is said first, as `grade` says it.
    assert!(errors.lines().next().is_some_and(|line| line.starts_with("sandbox: ")), "{errors}");
    let csv = class.csv("grades");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<String> = reader.records().map(|row| row.expect("a row")[0].to_string()).collect();
    assert_eq!(names, [script, "'=1+1", "empty", "link", "linked", "torn.tar.gz", "\u{fffd}[2J\u{fffd}.."]);
    // A hand-in is no folder of hand-ins.
    let mut wrong = class.command(&["batch"]);
    wrong.arg(class.hand_ins().join("=1+1")).arg("--out").arg(class.grades("wrong"));
    let (status, _, errors) = said(wrong);
    assert_eq!(status, Some(2));
    assert!(errors.contains(" is one hand-in, since it holds step01.rs\n  try: "), "{errors}");
    // A folder of grades among the hand-ins would be graded.
    let mut inside = class.command(&["batch"]);
    inside.arg(class.hand_ins()).arg("--out").arg(class.hand_ins().join("grades"));
    let (status, _, errors) = said(inside);
    assert_eq!(status, Some(2));
    assert!(errors.contains("would lie among the hand-ins") && errors.contains("try: "), "{errors}");
}

#[test]
fn lateness_comes_from_a_table_whose_errors_name_their_lines() {
    let class = Class::new(&[("anna", "fn a( {"), ("ben", "fn b( {")]);
    let rubric = class.folder.path().join("rubric.toml");
    let late = "[late]\ndue = 2026-11-30T12:00:00Z\npoints-per-day = 1.0\nlatest-day = 3\n";
    fs::write(&rubric, late).expect("written");
    let table = class.folder.path().join("came.csv");
    let batch = |text: &str| {
        fs::write(&table, text).expect("written");
        let options = ["--step", "1", "--rubric", &rubric.to_string_lossy(), "--handed-in", &table.to_string_lossy()];
        said(class.batch("grades", &options))
    };
    for (text, expected) in [
        ("who,when\n", "came.csv:1: the columns are \"who,when\"\n  try: Begin with the line `name,handed_in`."),
        ("name,handed_in\nanna\n", "came.csv:2: "),
        (
            "name,handed_in\nanna,2026-12-01T12:00:00Z\nben,soon\n",
            "came.csv:3: `handed_in` of \"ben\" is \"soon\"; allowed is ",
        ),
        (
            "name,handed_in\nben,2026-12-01T12:00:00Z\nben,2026-12-01T12:00:00Z\n",
            "came.csv:3: \"ben\" stands there twice",
        ),
    ] {
        let (status, _, errors) = batch(text);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains(expected), "{text:?}: {errors}");
    }
    let (status, _, errors) = batch("name,handed_in\nanna,2026-12-01T12:00:01Z\ncarol,2026-12-01T12:00:01Z\n");
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.contains("note: no hand-in is called \"carol\""), "{errors}");
    assert!(
        errors.contains("note: --handed-in does not say when these came, and they lose no points: \"ben\""),
        "{errors}"
    );
    let csv = class.csv("grades");
    assert!(csv.contains("\nanna,0,5,2,0,") && csv.contains("\nben,0,5,,0,"), "{csv}");
}

#[test]
fn who_grades_for_a_batch_ends_when_that_is_gone() {
    let class = Class::new(&[]);
    let mut command = class.command(&["solutions", "--step", "10", "--allow-unchecked", "--seed", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, b"7\n").expect("written");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(child.try_wait().expect("asked"), None, "step 10 takes seconds");
    drop(stdin);
    let begin = Instant::now();
    assert_eq!(child.wait().expect("ended").code(), Some(2));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[cfg(target_os = "linux")]
#[test]
fn a_hand_in_that_does_not_end_is_ended_and_can_be_tried_again() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;
    let class = Class::new(&[("slow", "")]);
    let slow = class.folder.path().join("slow.sh");
    let quick = class.folder.path().join("quick");
    // A process of its own below it holds the pipes open.
    let script = "#!/bin/sh\n[ -e QUICK ] && echo 'error: no kernel' >&2 && exit 2\nsleep 600 &\nsleep 600\n";
    let script = script.replace("QUICK", &quick.to_string_lossy());
    fs::write(&slow, &script).expect("written");
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).expect("executable");
    let program = slow.to_string_lossy().into_owned();
    let begin = Instant::now();
    let (status, text, _) = said(class.batch("grades", &["--limit", "1", "--grade-with", &program]));
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert_eq!((status, text.lines().next()), (Some(1), Some("0 graded now, 0 kept from before, 1 not graded")));
    let Outcome::NotGraded { reason, .. } = &class.records("grades")["slow"].outcome else { panic!("graded") };
    let ended = "grading it took longer than 1 s and was ended\n  \
                 try: Give the batch again with a larger --limit (seconds), or with --retry if the machine was busy.";
    assert_eq!(reason, ended);
    // A batch that is killed takes it along, though it does not look at its input: also if that comes before all else, by its first line.
    let kills = class.folder.path().join("kills");
    fs::write(&kills, "#!/bin/sh\nkill -KILL $PPID\nsleep 600 &\nsleep 600\n").expect("written");
    fs::set_permissions(&kills, fs::Permissions::from_mode(0o755)).expect("executable");
    let name = kills.to_string_lossy().into_owned();
    let running = || {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let command = |process: fs::DirEntry| fs::read(process.path().join("cmdline")).unwrap_or_default();
        let name = name.as_bytes();
        all.map(command).filter(|line| line.split(|byte| *byte == 0).nth(1) == Some(name)).count()
    };
    let killed = class.batch("killed", &["--grade-with", &name]).status().expect("the command starts");
    assert_eq!(killed.signal(), Some(9));
    let begin = Instant::now();
    while running() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "it goes on without its batch");
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::write(&quick, "").expect("written");
    let again = |options: &[&str]| {
        said(class.batch("grades", &[&["--grade-with", &program], options].concat()));
        class.records("grades")["slow"].outcome.clone()
    };
    let not_graded = |reason: &str| Outcome::not_graded(reason.to_string());
    let kept = Outcome::NotGraded { reason: ended.to_string(), here: false, limit: Some(1), no_kernel: false };
    assert_eq!(again(&["--limit", "1"]), kept, "with the time that it had");
    assert_eq!(again(&["--limit", "1", "--retry"]), not_graded("no kernel"));
    // What is started in place of the grader decides on grades, too.
    fs::write(&slow, script.replace("no kernel", "no kernel at all")).expect("written");
    assert_eq!(again(&[]), not_graded("no kernel at all"));
    // Who had too little time is graded again by a batch that gives more.
    fs::remove_file(&quick).expect("removed");
    let limit = |outcome| match outcome {
        Outcome::NotGraded { limit, .. } => limit,
        Outcome::Graded(_) => panic!("graded"),
    };
    assert_eq!(limit(again(&["--limit", "1", "--retry"])), Some(1));
    assert_eq!(limit(again(&["--limit", "2"])), Some(2));
    let (status, _, errors) = said(class.batch("grades", &["--grade-with", "no/such/program"]));
    assert_eq!(status, Some(2));
    assert!(errors.contains("cannot read no/such/program, which is to grade\n  try: "), "{errors}");
}

#[test]
fn an_archive_that_the_workbook_packs_is_graded_and_its_kept_copy_is_watched() {
    let class = Class::new(&[]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let student = Workspace { root: class.folder.path().join("student") };
    for step in [1, 2] {
        let kernel = student.root.join(Workspace::kernel(step));
        fs::create_dir_all(kernel.parent().expect("a folder")).expect("a folder");
        fs::copy(root.join(Workspace::solution(step)), kernel).expect("a solution");
    }
    fs::create_dir_all(class.hand_ins()).expect("a folder");
    let packed = class.hand_ins().join("dora.tar");
    pack(&student, &[1, 2], &packed, Compiled::NotAsked).expect("packed");
    let rubric = class.folder.path().join("rubric.toml");
    let sizes = "[steps.step01]\nsizes = [\"128x128x64 f16\"]\n[steps.step02]\nsizes = [\"128x128x128 bf16\"]\n";
    fs::write(&rubric, sizes).expect("written");
    let options = ["--rubric", &rubric.to_string_lossy(), "--allow-unchecked"];
    let (status, text, errors) = said(class.batch("grades", &options));
    assert_eq!(status, Some(0), "{text}{errors}");
    let record = class.records("grades").remove("dora.tar").expect("a result");
    let Outcome::Graded(report) = &record.outcome else { panic!("{:?}", record.outcome) };
    let steps: Vec<(u8, bool)> = report.steps.iter().map(|step| (step.step, step.parts[0].points > 0.0)).collect();
    assert!(report.passed && steps == [(1, true), (2, true)], "{report:?}");
    assert_eq!(report.steps[0].file.as_deref(), Some("dora.tar/steps/step01/src/kernel.rs"));

    // A copy that somebody has changed is not graded as the hand-in that it was.
    let kept = class.grades("grades").join("hand-ins").join(format!("{}.tar", record.hand_in));
    let good = fs::read(&kept).expect("kept");
    fs::write(&kept, "no archive").expect("written");
    let (status, _, errors) = said(class.batch("grades", &["--step", "1", "--replace"]));
    assert_eq!(status, Some(1), "{errors}");
    let Outcome::NotGraded { reason, .. } = &class.records("grades")["dora.tar"].outcome else { panic!("graded") };
    assert!(reason.contains("was changed since it was kept: its hash is another\n  try: "), "{reason}");
    fs::write(&kept, good).expect("written");

    // A result of another schema is another grader's: it is not written over.
    let path = files(&class.grades("grades").join("results")).into_keys().next().expect("a result");
    let later = fs::read_to_string(&path).expect("read").replacen("\"schema\": 1", "\"schema\": 2", 1);
    fs::write(&path, &later).expect("written");
    let (status, _, errors) = said(class.batch("grades", &options));
    assert_eq!(status, Some(2), "{errors}");
    let known =
        format!("{} has schema 2; this grader knows 1\n  try: ", path.canonicalize().expect("a path").display());
    assert!(errors.contains(&known), "{errors}");
    assert_eq!(fs::read_to_string(&path).expect("read"), later);
}

/// A machine that fails gives nobody a grade. What it could not do is tried twice, told as its own, and done when it can be.
#[test]
fn a_machine_that_fails_gives_no_grade_and_is_tried_again() {
    let class = Class::new(&[("student", "fn broken( {")]);
    let nowhere = class.folder.path().join("nowhere");
    let mut broken = class.batch("grades", &[]);
    let begin = Instant::now();
    // Nothing can be locked in without a folder for temporary files.
    let (status, text, errors) = said({
        broken.env("TMPDIR", &nowhere);
        broken
    });
    assert_eq!(status, Some(1), "{text}{errors}");
    assert!(text.starts_with("0 graded now, 0 kept from before, 1 not graded\n"), "{text}");
    assert!(begin.elapsed() >= Duration::from_secs(5), "it was tried once");
    let Outcome::NotGraded { reason, here: true, .. } = &class.records("grades")["student"].outcome else {
        panic!("{:?}", class.records("grades")["student"].outcome)
    };
    assert!(reason.starts_with("because of this machine, twice: hand-ins cannot be locked in"), "{reason}");
    let table = fs::read_to_string(class.grades("grades").join("grades.csv")).expect("a table");
    assert!(table.contains("student,,"), "no score, not 0: {table}");
    assert!(table.contains("not graded: because of this machine"), "{table}");
    // The machine is mended: nobody has to ask for another try.
    let (status, text, errors) = said(class.batch("grades", &[]));
    assert_eq!(status, Some(0), "{errors}");
    assert!(text.starts_with("1 graded now, 0 kept from before, 0 not graded\n"), "{text}");
}

/// The teacher sees in the table, on the page and in each report which hand-ins were refused or stopped, and what they name; a text that does
/// not compile, and a folder without a kernel, are no such thing.
#[cfg(unix)]
#[test]
fn the_summary_tells_what_was_refused_or_stopped() {
    if !class::sandboxed() {
        println!("not run: nothing can be locked in here");
        return;
    }
    let attack = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("attacks/{name}.rs"));
        fs::read_to_string(path).expect("an attack")
    };
    let [tcp, points, bomb] = ["tcp", "answer_points", "processes"].map(attack);
    let class = Class::new(&[("anna", &tcp), ("bert", &points), ("cora", &bomb), ("dora", "fn broken( {")]);
    fs::create_dir_all(class.hand_ins().join("emil")).expect("a folder");
    fs::create_dir_all(class.hand_ins().join("fred")).expect("a folder");
    std::os::unix::fs::symlink("/etc/passwd", class.hand_ins().join("fred/step01.rs")).expect("a link");
    let (_, text, errors) = said(class.batch("grades", &["--jobs", "2"]));
    assert!(text.starts_with("4 graded now, 0 kept from before, 2 not graded\n"), "{text}{errors}");
    let mut reader =
        csv::Reader::from_reader(fs::File::open(class.grades("grades").join("grades.csv")).expect("a table"));
    let rows: BTreeMap<String, BTreeMap<String, String>> = reader
        .deserialize()
        .map(|row: Result<BTreeMap<String, String>, _>| row.expect("a row"))
        .map(|row| (row["name"].clone(), row))
        .collect();
    let index = fs::read_to_string(class.grades("grades").join("index.html")).expect("index.html");
    let section =
        index.split("Refused or stopped").nth(1).and_then(|rest| rest.split("<h2").next()).expect("a section");
    assert!(section.contains("4 of 6 hand-ins."), "{section}");
    for (name, says) in [
        ("anna", "step01: the kernel names `std::net` (line 8); there is no network where a hand-in runs"),
        ("bert", "step01: refused: the answer is not a kernel: unknown field `points`"),
        ("cora", "step01: the kernel names `std::process`"),
        ("fred", "refused: fred/step01.rs is a symbolic link"),
    ] {
        assert!(rows[name]["stopped"].contains(says), "{name}: {:?}", rows[name]);
        let in_section = if name == "fred" { "refused, for the reason above" } else { says };
        assert!(section.contains(in_section), "{name}: {section}");
    }
    for name in ["dora", "emil"] {
        assert_eq!(rows[name]["stopped"], "", "{name}");
        assert!(!section.contains(name), "{section}");
    }
    let page = fs::read_to_string(class.grades("grades").join(&rows["anna"]["report"])).expect("a page");
    assert!(page.contains("Refused or stopped") && page.contains("`std::net` (line 8)"), "{page}");
}
