//! How grades read, and which files of a hand-in are taken.

use expect_test::{Expect, expect};
use grader::handin::find;
use grader::json::About;
use grader::{Grade, Graded, json, table};
use harness::{Cause, MilestoneResult, MilestoneState, Outcome, Part, Place, Says, Told, Unbuilt, Verdict};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn passed() -> Outcome {
    Outcome::Passed { detail: "20 inputs".to_string() }
}
fn failed(title: &str) -> Outcome {
    let place = Place { file: "step01.rs".to_string(), line: 7, column: 1 };
    let text = "error: what\n --> step01.rs:7\n\n  = try: this\n".to_string();
    Outcome::failed(title, Told { text, says: Says { place: Some(place), ..Says::help("this") } })
}
fn unchecked() -> Outcome {
    Outcome::not_checked("no ptxas in CUDA_HOME/bin or PATH")
}
fn not_reached() -> Outcome {
    Outcome::NotReached { reason: "`correct` comes first".to_string() }
}

fn graded(step: u8, title: &str, points: f64, max_points: u32, outcomes: [Outcome; 5]) -> Graded {
    let mut outcomes = outcomes.into_iter();
    let parts = Part::ALL.map(|part| (part, outcomes.next().expect("five")));
    let place = Place { file: "steps/step01/src/kernel.rs".to_string(), line: 61, column: 9 };
    let states = [
        MilestoneState::Done,
        MilestoneState::Open { place, there: false },
        Told::from("the barrier's count is 2".to_string()).into(),
        MilestoneState::NotReached { reason: "the run ended before".to_string() },
    ];
    let milestone = |(index, state)| MilestoneResult {
        id: format!("{step}.{}", index + 1),
        title: "it happens".to_string(),
        state,
    };
    let verdict = Verdict {
        step,
        title: title.to_string(),
        device: "emulator".to_string(),
        parts,
        milestones: states.into_iter().enumerate().map(milestone).collect(),
        here: None,
        build_failure: None,
        ending: None,
        points,
        max_points,
        seconds: 0.25,
    };
    Graded { file: (step > 1).then(|| format!("hand-in/step{step:02}.rs")), verdict }
}

fn grade(steps: Vec<Graded>) -> Grade {
    Grade { steps, allow_unchecked: false, seed: None }
}

fn mixed() -> Grade {
    let mut none =
        graded(3, "a grid", 0.0, 10, [failed("no kernel"), not_reached(), not_reached(), not_reached(), not_reached()]);
    none.verdict.build_failure = Some(Unbuilt {
        title: "it does not compile: error: expected one of `;`".to_string(),
        help: Some("Run `cargo check -p step03` until it compiles.".to_string()),
        ..Unbuilt::new(Cause::NotCompiled, "it does not compile:\nerror: expected one of `;`\n")
    });
    grade(vec![
        graded(1, "one tile, end to end", 4.75, 5, [passed(), passed(), passed(), unchecked(), passed()]),
        graded(
            2,
            "a loop",
            0.375,
            5,
            [failed("D is wrong"), failed("a race"), not_reached(), not_reached(), not_reached()],
        ),
        none,
    ])
}

#[test]
fn a_table_and_what_is_behind_it() {
    colored::control::set_override(false);
    expect![[r#"
        step                          correct      race-free    structure    resources    fast         points
        step01  one tile, end to end  passed       passed       passed       not checked  passed       4.75 of 5
        step02  a loop                failed       failed       not reached  not reached  not reached  0.38 of 5
        step03  a grid                failed       not reached  not reached  not reached  not reached  0 of 10
        total                                                                                          5.12 of 20

        step01 resources: not checked
            no ptxas in CUDA_HOME/bin or PATH

        step02 correct: failed (hand-in/step02.rs): D is wrong
            error: what
             --> step01.rs:7

              = try: this

        step02 race-free: failed (hand-in/step02.rs): a race
            error: what
             --> step01.rs:7

              = try: this

        step02: milestones (hand-in/step02.rs)
            2.1 it happens: done
            2.2 it happens: open, at steps/step01/src/kernel.rs:61
            2.3 it happens: something else happened: the barrier's count is 2
            2.4 it happens: not reached: the run ended before

        step02: what comes next (hand-in/step02.rs)
            TODO 2.2: it happens
            --> steps/step01/src/kernel.rs:61
            try:  Four MMAs a round; of all of them only the very first does not accumulate. Which one it is, the GPU computes.
            read: a loop over K (book/src/k-loop.md)

        step03: no kernel (hand-in/step03.rs)
            it does not compile:
            error: expected one of `;`

        step03: what comes next (hand-in/step03.rs)
            it does not compile: error: expected one of `;`
            try:  Run `cargo check -p step03` until it compiles.
            read: step 3 (book/src/step03.md)
    "#]]
    .assert_eq(&table::render(&mixed()));
    // Open TODOs: nothing failed, and what is missing is said nevertheless.
    let open = [not_reached(), not_reached(), not_reached(), not_reached(), not_reached()];
    expect![[r#"
        step            correct      race-free    structure    resources    fast         points
        step02  a loop  not reached  not reached  not reached  not reached  not reached  0.38 of 5
        total                                                                            0.38 of 5

        step02: milestones (hand-in/step02.rs)
            2.1 it happens: done
            2.2 it happens: open, at steps/step01/src/kernel.rs:61
            2.3 it happens: something else happened: the barrier's count is 2
            2.4 it happens: not reached: the run ended before

        step02: what comes next (hand-in/step02.rs)
            TODO 2.2: it happens
            --> steps/step01/src/kernel.rs:61
            try:  Four MMAs a round; of all of them only the very first does not accumulate. Which one it is, the GPU computes.
            read: a loop over K (book/src/k-loop.md)
    "#]]
    .assert_eq(&table::render(&grade(vec![graded(2, "a loop", 0.375, 5, open)])));
    let all = grade(vec![graded(1, "one tile", 5.0, 5, [passed(), passed(), passed(), passed(), passed()])]);
    expect![[r#"
        step              correct      race-free    structure    resources    fast         points
        step01  one tile  passed       passed       passed       passed       passed       5 of 5
        total                                                                              5 of 5
    "#]]
    .assert_eq(&table::render(&all));
}

#[test]
fn json_has_the_documented_shape() {
    let mut grade = mixed();
    grade.steps.truncate(2);
    grade.steps[1].verdict.parts[1].1 = not_reached();
    expect![[r#"
        {
          "schema": 1,
          "passed": false,
          "allow_unchecked": false,
          "seed": null,
          "points": 5.12,
          "max_points": 10,
          "score": 5.12,
          "rubric": "55169ce5201943394c8c4f413ae72ce75a0a81dfb119efba728183c682046d28",
          "steps": [
            {
              "step": 1,
              "title": "one tile, end to end",
              "file": null,
              "device": "emulator",
              "passed": false,
              "points": 4.75,
              "max_points": 5,
              "build_failure": null,
              "next": null,
              "parts": [
                {
                  "part": "correct",
                  "outcome": "passed",
                  "text": "20 inputs",
                  "points": 2.5,
                  "max_points": 2.5
                },
                {
                  "part": "race-free",
                  "outcome": "passed",
                  "text": "20 inputs",
                  "points": 0.75,
                  "max_points": 0.75
                },
                {
                  "part": "structure",
                  "outcome": "passed",
                  "text": "20 inputs",
                  "points": 0.75,
                  "max_points": 0.75
                },
                {
                  "part": "resources",
                  "outcome": "not_checked",
                  "text": "no ptxas in CUDA_HOME/bin or PATH",
                  "points": 0.0,
                  "max_points": 0.25
                },
                {
                  "part": "fast",
                  "outcome": "passed",
                  "text": "20 inputs",
                  "points": 0.75,
                  "max_points": 0.75
                }
              ],
              "milestones": [
                {
                  "id": "1.1",
                  "title": "it happens",
                  "state": "done"
                },
                {
                  "id": "1.2",
                  "title": "it happens",
                  "state": "open",
                  "text": "steps/step01/src/kernel.rs:61"
                },
                {
                  "id": "1.3",
                  "title": "it happens",
                  "state": "wrong",
                  "text": "the barrier's count is 2"
                },
                {
                  "id": "1.4",
                  "title": "it happens",
                  "state": "not_reached",
                  "text": "the run ended before"
                }
              ],
              "seconds": 0.25
            },
            {
              "step": 2,
              "title": "a loop",
              "file": "hand-in/step02.rs",
              "device": "emulator",
              "passed": false,
              "points": 0.38,
              "max_points": 5,
              "build_failure": null,
              "next": {
                "title": "it happens",
                "todo": "2.2",
                "place": "steps/step01/src/kernel.rs:61",
                "task": "Four MMAs a round; of all of them only the very first does not accumulate. Which one it is, the GPU computes.",
                "read": "a loop over K",
                "page": "book/src/k-loop.md"
              },
              "parts": [
                {
                  "part": "correct",
                  "outcome": "failed",
                  "title": "D is wrong",
                  "text": "error: what\n --> step01.rs:7\n\n  = try: this\n",
                  "place": "step01.rs:7",
                  "points": 0.38,
                  "max_points": 2.5
                },
                {
                  "part": "race-free",
                  "outcome": "not_reached",
                  "text": "`correct` comes first",
                  "points": 0.0,
                  "max_points": 0.75
                },
                {
                  "part": "structure",
                  "outcome": "not_reached",
                  "text": "`correct` comes first",
                  "points": 0.0,
                  "max_points": 0.75
                },
                {
                  "part": "resources",
                  "outcome": "not_reached",
                  "text": "`correct` comes first",
                  "points": 0.0,
                  "max_points": 0.25
                },
                {
                  "part": "fast",
                  "outcome": "not_reached",
                  "text": "`correct` comes first",
                  "points": 0.0,
                  "max_points": 0.75
                }
              ],
              "milestones": [
                {
                  "id": "2.1",
                  "title": "it happens",
                  "state": "done"
                },
                {
                  "id": "2.2",
                  "title": "it happens",
                  "state": "open",
                  "text": "steps/step01/src/kernel.rs:61"
                },
                {
                  "id": "2.3",
                  "title": "it happens",
                  "state": "wrong",
                  "text": "the barrier's count is 2"
                },
                {
                  "id": "2.4",
                  "title": "it happens",
                  "state": "not_reached",
                  "text": "the run ended before"
                }
              ],
              "seconds": 0.25
            }
          ]
        }
    "#]]
    .assert_eq(&json::render(&json::report(&grade, &About::default())).expect("JSON"));
}

#[test]
fn passing_is_for_all_that_was_asked() {
    let five = || [passed(), passed(), passed(), passed(), passed()];
    let one = |outcomes| grade(vec![graded(1, "one tile", 5.0, 5, five()), graded(2, "a loop", 5.0, 5, outcomes)]);
    assert!(one(five()).passed());
    assert!(!grade(vec![]).passed(), "nothing graded is nothing passed");
    let not_checked = [passed(), passed(), passed(), unchecked(), passed()];
    assert!(!one(not_checked.clone()).passed());
    assert!(Grade { allow_unchecked: true, ..one(not_checked) }.passed());
    for wrong in [failed("slow"), not_reached()] {
        let outcomes = [passed(), passed(), passed(), unchecked(), wrong];
        assert!(!Grade { allow_unchecked: true, ..one(outcomes) }.passed(), "only what is not checked is allowed");
    }
}

fn folder(files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, format!("// {file}\n")).expect("written");
    }
    folder
}

#[test]
fn a_kernel_is_found_at_each_of_its_places() {
    for place in ["steps/step01/src/kernel.rs", "step01/src/kernel.rs", "step01/kernel.rs", "step01.rs"] {
        let folder = folder(&[place, "notes.txt", "step77.rs"]);
        let kernels = find(folder.path(), &[1, 2], &[]).expect("found");
        assert_eq!(kernels.len(), 1);
        assert_eq!((kernels[0].step, kernels[0].text.as_str()), (1, format!("// {place}\n").as_str()));
    }
}

fn refuses(folder: &Path, wanted: &[u8], expected: Expect) {
    let error = find(folder, &[1, 2], wanted).expect_err("must be refused");
    expected.assert_eq(&error.reason.replace(&*folder.to_string_lossy(), "FOLDER"));
}

#[test]
fn a_folder_without_what_was_asked() {
    refuses(
        folder(&["kernel.rs"]).path(),
        &[1],
        expect![[r#"
            FOLDER holds no kernel for step01
              there is: `kernel.rs`
              looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs
              try: The name of `kernel.rs` does not say its step: call it `step01.rs`, with the number of its step, or hand in what `cargo workbook pack` writes."#]],
    );
    refuses(
        folder(&["step01.rs"]).path(),
        &[1, 2],
        expect![[r#"
            FOLDER holds no kernel for step02
              there is: `step01.rs`
              looked for: steps/step02/src/kernel.rs, step02/src/kernel.rs, step02/kernel.rs, step02.rs
              try: Put each kernel at one of these places, or hand in what `cargo workbook pack` writes."#]],
    );
    refuses(
        folder(&["step03.rs", "step07/kernel.rs"]).path(),
        &[],
        expect![[r#"
            FOLDER holds no kernel for step01, step02
              there is: `step03.rs`, `step07/`
              looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps
              FOLDER/step03.rs is not graded: there is no step 3 here
              FOLDER/step07/kernel.rs is not graded: there is no step 7 here
              try: Put each kernel at one of these places, or hand in what `cargo workbook pack` writes."#]],
    );
    refuses(
        folder(&["step01.rs"]).path(),
        &[9],
        expect![[r#"
            there is no step 9
              try: Name one of the steps here: step01, step02."#]],
    );
    refuses(
        folder(&["step01.rs", "step01/kernel.rs"]).path(),
        &[],
        expect![[r#"
            two kernels for step 1: FOLDER/step01/kernel.rs and FOLDER/step01.rs
              try: Leave the one that counts."#]],
    );
    refuses(
        folder(&["step01.rs/file"]).path(),
        &[],
        expect![[r#"
            FOLDER/step01.rs is no plain file
              try: Hand in the file itself."#]],
    );
    let file = folder(&["step01.rs"]);
    refuses(
        &file.path().join("step01.rs"),
        &[],
        expect![[r#"
            FOLDER is one Rust file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
              try: Give the file that `cargo workbook pack --step step01` writes; or put this one into a folder under the name of its step, `mkdir hand-in && cp FOLDER hand-in/step01.rs`, and give the folder."#]],
    );
    refuses(
        &file.path().join("none"),
        &[],
        expect![[r#"
            FOLDER does not exist
              try: Give what was handed in: a folder, or the archive that `cargo workbook pack` writes."#]],
    );
    let large = folder(&[]);
    fs::write(large.path().join("step01.rs"), vec![b' '; (1 << 20) + 1]).expect("written");
    refuses(
        large.path(),
        &[],
        expect![[r#"
        FOLDER/step01.rs has 1048577 bytes; allowed are 1048576
          try: Generate tables in code."#]],
    );
    let binary = folder(&[]);
    fs::write(binary.path().join("step01.rs"), [0xff]).expect("written");
    refuses(
        binary.path(),
        &[],
        expect![[r#"
        FOLDER/step01.rs is not UTF-8 text
          try: Save it as UTF-8, as Rust asks."#]],
    );
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_out_of_a_hand_in() {
    let folder = folder(&["outside.rs", "in/notes.txt"]);
    std::os::unix::fs::symlink(folder.path().join("outside.rs"), folder.path().join("in/step01.rs")).expect("a link");
    refuses(
        &folder.path().join("in"),
        &[],
        expect![[r#"
            FOLDER/step01.rs is a symbolic link
              try: Put in its place what it leads to (`cp -rL` copies so). Links are not followed, and with one where a kernel is looked for nothing of a hand-in is graded."#]],
    );
}
