//! The `workbook` command: what it prints, what it refuses, and that it loses nothing.

use expect_test::{Expect, expect};
use harness::workbook::{self, Workspace};
use harness::{
    BuildErrorAt, Built, Cause, MilestoneResult, MilestoneState, OpenTodo, Outcome, Part, Place, Told, Unbuilt,
    Verdict, ptxas,
};
use ptx::{Region, RegionKind, Space};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const SOLUTION: &str = "\
pub fn kernel(k: &mut Cta) {
    k.start();
    // TODO 1.1: Go on. book: mbarriers and phases
    // ANCHOR: todo_1_1
    k.go_on();
    // ANCHOR_END: todo_1_1
}
";

/// A checkout in small: one step, one solution.
fn checkout() -> (TempDir, Workspace) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    };
    write("Cargo.toml", "[workspace]\nmembers = []\n");
    write("steps/step01/Cargo.toml", "[package]\nname = \"step01\"\n");
    write("solutions/src/step01.rs", SOLUTION);
    let workspace = Workspace { root: folder.path().to_path_buf() };
    workbook::write_all(&workspace).expect("a first skeleton");
    (folder, workspace)
}

fn read(folder: &TempDir, file: &str) -> String {
    fs::read_to_string(folder.path().join(file)).expect(file)
}

/// Runs the command in a folder of a checkout.
fn workbook(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workbook"));
    command.args(args).current_dir(folder).env("NO_COLOR", "1").env_remove("WORKBOOK_DEVICE");
    command.output().expect("the command starts")
}

fn fails(folder: &Path, args: &[&str], expected: Expect) {
    let output = workbook(folder, args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    expected.assert_eq(&String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty(), "errors go to stderr: {output:?}");
}

#[test]
fn reset_gives_the_untouched_file_and_keeps_every_other() {
    let (folder, workspace) = checkout();
    let file = "steps/step01/src/kernel.rs";
    let untouched = read(&folder, file);
    for (number, work) in [(1, "first work"), (2, "second work")] {
        fs::write(folder.path().join(file), work).expect("written");
        let told = workbook::reset(&workspace, 1).expect("reset");
        assert_eq!(read(&folder, file), untouched);
        let backup = format!(".workbook/backup/step01-{number}.rs");
        assert!(told.contains(&format!("try: `cp {backup} {file}` puts it back")), "{told}");
        assert_eq!(read(&folder, &backup), work);
    }
    assert_eq!(read(&folder, ".workbook/backup/step01-1.rs"), "first work");
    // Also work that is no text.
    fs::write(folder.path().join(file), [0xff, 0xfe]).expect("written");
    workbook::reset(&workspace, 1).expect("reset");
    assert_eq!(fs::read(folder.path().join(".workbook/backup/step01-3.rs")).expect("kept"), [0xff, 0xfe]);
    fs::remove_file(folder.path().join(file)).expect("removed");
    workbook::reset(&workspace, 1).expect("a missing file comes back");
    assert_eq!(read(&folder, file), untouched);
}

#[test]
fn authors_write_skeletons_without_losing_work() {
    let (folder, workspace) = checkout();
    fs::write(folder.path().join("steps/step01/src/kernel.rs"), "work").expect("written");
    let told = workbook::write_all(&workspace).expect("written");
    expect![[r#"
        steps/step01/src/kernel.rs: written; what stood there is kept: .workbook/backup/step01-1.rs
        steps/carry.json: up to date
    "#]]
    .assert_eq(&told);
    assert_eq!(read(&folder, ".workbook/backup/step01-1.rs"), "work");
}

#[test]
fn drift_is_shown_line_by_line() {
    let (folder, _) = checkout();
    let output = workbook(folder.path(), &["skeletons", "--check"]);
    assert!(output.status.success(), "{output:?}");
    fs::write(folder.path().join("solutions/src/step01.rs"), SOLUTION.replace("start", "begin")).expect("written");
    fails(
        folder.path(),
        &["skeletons", "--check"],
        expect![[r#"
            error: steps/step01/src/kernel.rs is not what solutions/src/step01.rs gives:
                 8
                 9 pub fn kernel(k: &mut Cta) {
            -   10     k.start();
            +   10     k.begin();
                11     // TODO 1.1: Go on. book: mbarriers and phases
                12     k.todo("1.1");
              try: `cargo workbook skeletons` writes them. (A file that holds work differs, as it should.)
        "#]],
    );
    fs::write(folder.path().join("solutions/src/step01.rs"), SOLUTION.replace("ANCHOR_END", "ANCHOR_AND"))
        .expect("written");
    fails(
        folder.path(),
        &["skeletons", "--check"],
        expect![[r#"
            error: solutions/src/step01.rs:4: region `todo_1_1` is never closed
              try: Put `// ANCHOR_END: todo_1_1` after its last line.
        "#]],
    );
    fs::write(folder.path().join("solutions/src/step01.rs"), SOLUTION).expect("written");
    fs::write(folder.path().join("solutions/src/step02.rs"), SOLUTION).expect("written");
    fails(
        folder.path(),
        &["skeletons"],
        expect![[r#"
            error: solutions/src/step02.rs has no crate steps/step02 to go to
              try: Copy steps/step01 to steps/step02, and change name and number in it (CONTRIBUTING.md: adding a step).
        "#]],
    );
}

#[test]
fn errors_name_what_exists() {
    let (folder, _) = checkout();
    let below = folder.path().join("steps/step01/src");
    fails(
        &below,
        &["reset", "step11"],
        expect![[r#"
            error: there is no step `step11`
              try: Name one of the steps here: step01 (`1` and `01` also mean `step01`).
        "#]],
    );
    fails(
        &below,
        &["inspect", "one"],
        expect![[r#"
            error: there is no step `one`
              try: Name one of the steps here: step01 (`1` and `01` also mean `step01`).
        "#]],
    );
    // Before the first is built.
    fails(
        &below,
        &["bundle", "1,hopper,11"],
        expect![[r#"
            error: there is no step `11`
              try: Name one of the steps here: step01 (`1` and `01` also mean `step01`).
              `hopper` is the kernel for an H100 or H200.
        "#]],
    );
    // Nothing to reset is nothing wrong.
    let told = |expected: Expect| {
        let output = workbook(&below, &["reset", "01"]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        expected.assert_eq(&String::from_utf8_lossy(&output.stdout));
    };
    told(expect![[r#"
        steps/step01/src/kernel.rs is untouched: there is nothing to reset
    "#]]);
    fs::write(below.join("kernel.rs"), "work").expect("written");
    workbook(&below, &["reset", "01"]);
    told(expect![[r#"
        steps/step01/src/kernel.rs is untouched: there is nothing to reset
          try: Look into .workbook/backup/: `reset` kept an earlier file of this step there.
    "#]]);
    let outside = tempfile::tempdir().expect("a scratch folder");
    let output = workbook(outside.path(), &["list"]);
    let text = String::from_utf8_lossy(&output.stderr).replace(&*outside.path().to_string_lossy(), "OUTSIDE");
    expect![[r#"
        error: OUTSIDE is not in a checkout of the workbook: neither it nor a folder above it holds `steps/` and a `Cargo.toml` with [workspace]
          try: Change into your clone, and give the command again.
    "#]].assert_eq(&text);
}

#[test]
fn wrong_arguments_say_what_is_allowed() {
    let (folder, _) = checkout();
    let output = workbook(folder.path(), &["inspect", "1", "--size", "128x128"]);
    assert_eq!(output.status.code(), Some(2));
    expect![[r#"
        error: invalid value '128x128' for '--size <MxNxK>': allowed is three numbers with an `x` between them. Write MxNxK, or MxNxK:bf16, for example 128x128x64

        For more information, try '--help'.
    "#]].assert_eq(&String::from_utf8_lossy(&output.stderr));
}

#[test]
fn names_of_steps() {
    let (_folder, workspace) = checkout();
    for name in ["step01", "01", "1", "step1"] {
        assert_eq!(workspace.named(name), Ok(1), "{name}");
    }
    for name in ["", "step", "0", "+1", "001", "step01 ", "2", "256"] {
        assert!(workspace.named(name).is_err(), "{name}");
    }
}

fn place(line: u32) -> Place {
    Place { file: "steps/step01/src/kernel.rs".to_string(), line, column: 5 }
}

#[test]
fn ptx_stands_under_its_rust() {
    let ptx = "\
.version 8.6
.target sm_100a
.file 1 \"src/kernel.rs\"

.visible .entry kernel()
{
    .reg .b32 %r<3>;
    .reg .pred p, q;

    .loc 1 2 7
    mov.u32 %r1, 1;
    mov.u32 %r2, 2;
    // again

    // TODO 1.3

    .loc 1 2 11
    mov.u32 %r2, 3;
    .loc 1 3 5
    bar.sync 0;
    .loc 1 99 5
    ret;
}
";
    let tile = RegionKind::Tile { rows: 128, columns: 64, element_bytes: 2, swizzle: 128 };
    let region = |name: &str, space, offset, bytes, kind, stage| Region {
        name: name.to_string(),
        space,
        offset,
        bytes,
        kind,
        stage,
    };
    let shared = Space::DynamicShared;
    let built = Built {
        name: "kernel".to_string(),
        ptx: ptx.to_string(),
        grid: [2, 3, 1],
        cluster: [1, 1, 1],
        block: [128, 1, 1],
        dynamic_shared: 16408,
        params: Vec::new(),
        regions: vec![
            region("done", shared, 16384, 8, RegionKind::Barrier, None),
            region("free", shared, 16392, 8, RegionKind::Barrier, Some(1)),
            region("A", shared, 0, 16384, tile, None),
            region("accumulator", Space::Tensor, 0, 128, RegionKind::Scalar, None),
        ],
        todos: vec![OpenTodo {
            id: "1.3".to_string(),
            place: Place { file: "src/kernel.rs".to_string(), line: 4, column: 5 },
        }],
        leaks: vec![BuildErrorAt {
            place: place(50),
            message: "the 128 columns are never freed".to_string(),
            help: "Free them.".to_string(),
        }],
    };
    colored::control::set_override(false);
    let rust = ["fn kernel() {", "    k.two(1, 2, 3);", "    k.sync();", "    k.todo(\"1.3\");"];
    let mut source = |file: &str, line: u32| {
        assert_eq!(file, "src/kernel.rs");
        rust.get(line as usize - 1).map(|line| (*line).to_string())
    };
    let text = workbook::listing(&built, &mut source)
        + "\n"
        + &workbook::summary(&built)
        + &workbook::open_todos(&built)
        + &workbook::leaks(&built);
    expect![[r#"
             | .version 8.6
             | .target sm_100a
             |
             | .visible .entry kernel()
             | {
             |     .reg .b32 %r<3>;
             |     .reg .pred p, q;
        --> src/kernel.rs
           2 |     k.two(1, 2, 3);
             |     mov.u32 %r1, 1;
             |     mov.u32 %r2, 2;
           4 |     k.todo("1.3");
             |     // again
             |     // TODO 1.3
           2 |     k.two(1, 2, 3);
             |     mov.u32 %r2, 3;
           3 |     k.sync();
             |     bar.sync 0;
          99 |
             |     ret;
             | }

        launch     6 CTAs (grid 2x3x1) of 128 threads
        registers  3 .b32, 2 .pred (virtual, all that the PTX names)
        shared     16408 bytes, dynamic
                        0 +  16384 bytes    A: 128 x 64 elements of 2 bytes, 128-byte swizzle
        barriers    16384 +      8 bytes    done
                    16392 +      8 bytes    free, stage 1
        tensor          0 +    128 columns  accumulator
        open TODO  1.3 at src/kernel.rs:4
        leak       the 128 columns are never freed at steps/step01/src/kernel.rs:50
    "#]]
    .assert_eq(&text);
}

#[test]
fn the_assembler_in_a_line() {
    let error = ptxas::AssemblerError { line: 7, message: "Unknown symbol 'x'".to_string(), source: Some(place(8)) };
    let usage = ptxas::Usage { registers: 40, static_shared: 1024, stack: 0, spills: 0 };
    let all = [
        Ok(usage),
        Err(ptxas::Failure::Unavailable("there is none".to_string())),
        Err(ptxas::Failure::Refused(vec![error.clone(), ptxas::AssemblerError { source: None, ..error }])),
    ];
    let text: String = all.iter().map(workbook::assembler).collect();
    expect![[r#"
        ptxas      40 registers a thread, 0 bytes spilled, 0 bytes of stack, 1024 bytes of static shared memory
        ptxas      not asked: there is none
        ptxas      refuses it: steps/step01/src/kernel.rs:8: Unknown symbol 'x'
        ptxas      refuses it: PTX line 7: Unknown symbol 'x'
    "#]]
    .assert_eq(&text);
}

fn verdict(outcomes: [fn() -> Outcome; 5], states: Vec<MilestoneState>) -> Verdict {
    let mut index = 0;
    let milestones = states.into_iter().map(|state| {
        index += 1;
        MilestoneResult { id: format!("1.{index}"), title: "it happens".to_string(), state }
    });
    Verdict {
        step: 1,
        title: "one tile".to_string(),
        device: "emulator".to_string(),
        milestones: milestones.collect(),
        parts: std::array::from_fn(|part| (Part::ALL[part], outcomes[part]())),
        here: None,
        build_failure: None,
        ending: None,
        points: 0.0,
        max_points: 5,
        seconds: 0.0,
    }
}

fn ok() -> Outcome {
    Outcome::Passed { detail: "all of it".to_string() }
}
fn failed() -> Outcome {
    Outcome::failed("something", "an explanation".to_string())
}
fn unchecked() -> Outcome {
    Outcome::not_checked("no ptxas")
}
fn not_reached() -> Outcome {
    Outcome::NotReached { reason: "correct comes first".to_string() }
}

#[test]
fn progress_in_a_line() {
    let done = || MilestoneState::Done;
    let open = MilestoneState::Open { place: place(61), there: false };
    let wrong = Told::from("a fence is missing".to_string()).into();
    let mut refused = verdict([failed, not_reached, not_reached, not_reached, not_reached], vec![]);
    let refusal = "steps/step01/src/kernel.rs:44: column 70 of a tile of 64\nand more";
    refused.build_failure = Some(Unbuilt::new(Cause::Refused, refusal));
    let verdicts = [
        verdict([ok; 5], vec![done(), done()]),
        verdict([failed, not_reached, not_reached, not_reached, not_reached], vec![done(), open, done()]),
        verdict([failed, failed, not_reached, ok, not_reached], vec![done(), wrong]),
        verdict([ok, ok, ok, unchecked, ok], vec![done(), done()]),
        refused,
    ];
    let wrong = || Told::from("error: a fence is missing\n --> kernel.rs:61\n".to_string()).into();
    let open = MilestoneState::Open { place: place(70), there: false };
    let verdicts = verdicts.into_iter().chain([verdict([not_reached; 5], vec![done(), wrong(), done(), open])]);
    let verdicts: Vec<Verdict> = verdicts.collect();
    let row = |verdict: &Verdict| workbook::Row {
        step: verdict.step,
        title: verdict.title.clone(),
        points: verdict.max_points,
        progress: workbook::progress(verdict),
    };
    let rows: Vec<workbook::Row> = verdicts.iter().map(row).collect();
    expect![[r#"
        step    title     points  progress
        step01  one tile       5  passed
        step01  one tile       5  2 of 3 TODOs done; next: 1.2 at steps/step01/src/kernel.rs:61
        step01  one tile       5  no TODO is open, but it failed: correct, race-free
        step01  one tile       5  passed, except for what is not checked: resources
        step01  one tile       5  builds no kernel: steps/step01/src/kernel.rs:44: column 70 of a tile of 64
        step01  one tile       5  2 of 4 TODOs done; next: 1.2, wrong: a fence is missing
    "#]]
    .assert_eq(&workbook::render(&rows));
}

/// The seams between the solutions, the steps' descriptions and the book: each TODO is a milestone and names a page.
#[test]
fn todos_milestones_and_pages_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let workspace = Workspace::find(&root.canonicalize().expect("the checkout")).expect("a checkout");
    for step in harness::STEPS {
        let skeleton = workspace.skeleton(step.number).expect("a skeleton");
        let todos: Vec<&str> =
            skeleton.lines().filter_map(|line| line.trim().strip_prefix("// TODO ")?.split(':').next()).collect();
        let milestones: Vec<&str> = step.milestones.iter().map(|milestone| milestone.id).collect();
        assert_eq!(todos, milestones, "step {}: TODOs of the solution, and milestones", step.number);
        let summary = fs::read_to_string(root.join("book/src/SUMMARY.md")).expect("SUMMARY.md").to_lowercase();
        for milestone in step.milestones {
            // `book: the tensor core (book/src/tensor-core.md)`
            let page = milestone.read.trim_start_matches("book: ").replace(" (book/src/", "](").to_lowercase();
            assert!(
                summary.contains(&format!("[{page}")),
                "{}: no page of the book is {:?}",
                milestone.id,
                milestone.read
            );
        }
    }
}

/// A page that nobody named a place for goes to what is built, a file that one can name is where one says, and the output says where.
#[test]
#[cfg(feature = "solutions")]
fn a_trace_leaves_the_sources_alone_and_says_where_it_is() {
    let (folder, _) = checkout();
    let told = |args: &[&str]| {
        let output = workbook(folder.path(), args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let at_the_top = || {
        let entries = fs::read_dir(folder.path()).expect("a folder").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let sources = at_the_top();
    let said = told(&["trace", "1", "--solution"]);
    assert!(said.contains(" simulated cycles, to target/trace/step01-solution.html\n"), "{said}");
    assert!(read(&folder, "target/trace/step01-solution.html").starts_with("<!doctype html>"));
    assert_eq!(at_the_top(), [&sources[..], &["target".to_string()]].concat());
    // Again, in the place of the one before; and where one says.
    told(&["trace", "1", "--solution"]);
    let said = told(&["trace", "1", "--solution", "--out", "mine.html"]);
    assert!(said.contains(", to mine.html\n") && read(&folder, "mine.html").starts_with("<!doctype html>"), "{said}");
    // What is no page stays, and the way out is named.
    fs::write(folder.path().join("notes.md"), "notes").expect("written");
    fails(
        folder.path(),
        &["trace", "1", "--solution", "--out", "notes.md"],
        expect![[r#"
            error: notes.md exists and is no page of `trace`; nothing was changed
              try: Name another file with `--out`.
        "#]],
    );
    assert_eq!(read(&folder, "notes.md"), "notes");
    fails(
        folder.path(),
        &["trace", "1", "--solution", "--out", "nowhere/mine.html"],
        expect![[r#"
            error: nowhere/mine.html cannot be written: No such file or directory (os error 2)
              try: Name another file with `--out`.
        "#]],
    );
}
