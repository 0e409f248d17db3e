//! `cargo workbook carry`: what is filled in, what is left alone, what is said. With the project's own solutions as the
//! student's work.

use expect_test::{Expect, expect};
use harness::workbook::{self, Workspace};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A checkout with two steps: the earlier one done as in the solution, the later one untouched.
struct Checkout {
    folder: TempDir,
    workspace: Workspace,
    from: u8,
    to: u8,
}

fn tree() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn solution(step: u8) -> String {
    let text = fs::read_to_string(tree().join(Workspace::solution(step))).expect("a solution");
    let lines = text.lines().filter(|line| !line.trim().starts_with("// ANCHOR"));
    lines.map(|line| format!("{line}\n")).collect()
}

impl Checkout {
    fn new(from: u8, to: u8) -> Checkout {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("written");
        };
        write("Cargo.toml", "[workspace]\n");
        for step in [from, to] {
            let text = fs::read_to_string(tree().join(Workspace::solution(step))).expect("a solution");
            write(&Workspace::solution(step), &text);
            write(&format!("steps/{}/Cargo.toml", workbook::name(step)), "[package]\n");
        }
        let workspace = Workspace { root: folder.path().to_path_buf() };
        workbook::write_all(&workspace).expect("skeletons");
        let checkout = Checkout { folder, workspace, from, to };
        checkout.write(from, &solution(from));
        checkout
    }

    fn write(&self, step: u8, text: &str) {
        fs::write(self.folder.path().join(Workspace::kernel(step)), text).expect("written");
    }

    fn read(&self, step: u8) -> String {
        fs::read_to_string(self.folder.path().join(Workspace::kernel(step))).expect("a kernel")
    }

    /// Changes the student's file of the earlier step.
    fn edit(&self, old: &str, new: &str) {
        let text = self.read(self.from);
        assert_eq!(text.matches(old).count(), 1, "{old}");
        self.write(self.from, &text.replace(old, new));
    }

    /// Removes the comment of a TODO from the student's file of the earlier step.
    fn remove_comment(&self, id: &str) {
        let text = self.read(self.from);
        let lines: Vec<&str> = text.lines().collect();
        let begin = lines.iter().position(|line| line.contains(&format!("// TODO {id}:"))).expect("a comment");
        let length = lines[begin..].iter().take_while(|line| line.trim().starts_with("//")).count();
        let left = lines[..begin].iter().chain(&lines[begin + length..]);
        self.write(self.from, &left.map(|line| format!("{line}\n")).collect::<String>());
    }

    fn carry(&self) -> String {
        self.carry_so(false)
    }

    fn carry_so(&self, as_comments: bool) -> String {
        workbook::carry(&self.workspace, self.from, self.to, as_comments).expect("carried")
    }

    /// TODOs of the later step that are still open.
    fn open(&self) -> Vec<String> {
        let text = self.read(self.to);
        let id = |line: &str| Some(line.trim().split_once(".todo(\"")?.1.split('"').next()?.to_string());
        text.lines().filter_map(id).collect()
    }
}

#[test]
fn what_is_the_same_is_filled_in() {
    let checkout = Checkout::new(4, 5);
    let untouched = checkout.read(5);
    expect![[r#"
        carried to steps/step05/src/kernel.rs
          5.1   your 4.1
          5.6   your 4.5
          5.7   your 4.6 and 4.7
          5.8   your 4.8
        not carried
          5.2   it is like 4.2, and not the same
          5.3   it is like 4.3, and not the same
          5.4   it is like 4.4, and not the same
          5.5   it is like 4.2, and not the same
                try: Write it anew; `--as-comments` puts your earlier lines there, as a comment.
        your file as it was is kept: .workbook/backup/step05-1.rs
        next: cargo test -p step05
    "#]]
    .assert_eq(&checkout.carry());
    assert_eq!(checkout.open(), ["5.2", "5.3", "5.4", "5.5"]);
    // What was filled in is what the solution has there, blank lines and layout included.
    let (carried, solved) = (checkout.read(5), solution(5));
    let end = |text: &str| text[text.find("    // TODO 5.6").expect("TODO 5.6")..].to_string();
    assert_eq!(end(&carried), end(&solved));
    let backup = fs::read_to_string(checkout.folder.path().join(".workbook/backup/step05-1.rs")).expect("kept");
    assert_eq!(backup, untouched);
    // Once more: nothing changes, nothing is kept.
    expect![[r#"
        left alone, since you have begun there
          5.1
          5.6
          5.7
          5.8
        not carried
          5.2   it is like 4.2, and not the same
          5.3   it is like 4.3, and not the same
          5.4   it is like 4.4, and not the same
          5.5   it is like 4.2, and not the same
                try: Write it anew; `--as-comments` puts your earlier lines there, as a comment.
        steps/step05/src/kernel.rs is as it was
    "#]]
    .assert_eq(&checkout.carry());
    assert_eq!(checkout.read(5), carried);
    assert!(!checkout.folder.path().join(".workbook/backup/step05-2.rs").exists());
}

/// Every pair of neighbours: each TODO that is filled in is as in the later solution.
#[test]
fn neighbours() {
    let mut filled = Vec::new();
    for from in 1..=9 {
        let checkout = Checkout::new(from, from + 1);
        let todos = checkout.open();
        checkout.carry();
        let open = checkout.open();
        // Nothing else is in it than the solution has.
        let expected = solution(from + 1);
        let code = |text: &str| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        let carried = code(&checkout.read(from + 1));
        for line in carried.lines().filter(|line| !line.contains(".todo(")) {
            assert!(code(&expected).contains(line), "step {}: {line}", from + 1);
        }
        filled.extend(todos.into_iter().filter(|id| !open.contains(id)));
    }
    expect!["2.3 2.6 3.3 3.4 3.6 4.1 4.8 5.1 5.6 5.7 5.8 6.5 6.7 7.1 8.2 8.3 8.4 8.5 8.6 8.7 8.8 9.4"]
        .assert_eq(&filled.join(" "));
}

#[test]
fn a_student_edits_elsewhere() {
    let checkout = Checkout::new(4, 5);
    // A helper below, a constant above, another value, a line after the loop, comments, another layout.
    checkout.edit("/// The kernel of step 4.", "const ROWS: u32 = 32;\n/// The kernel of step 4.");
    checkout.edit("const CHUNK: u32 = 8;", "const CHUNK: u32 = 8 + 0;");
    checkout.edit("    k.tcgen05_fence_after();\n", "    // seen by\n    k.tcgen05_fence_after(); // all\n");
    checkout.edit("let row = k.thread_index();", "let row = k.thread_index();\n    let quarter = row / ROWS * ROWS;");
    checkout.edit("lane(row / 32 * 32)", "lane(quarter)");
    checkout.edit("    // One thread loads", "    let unused = 1;\n    // One thread loads");
    checkout.edit(
        "            });\n        });\n    });\n\n    // TODO 4.5",
        "            });\n            t.nothing();\n        });\n    });\n    // TODO 4.5",
    );
    let helper = "\nfn helper() -> &'static str {\n    \"}\"\n}\n";
    checkout.write(4, &(checkout.read(4) + helper));
    expect![[r#"
        carried to steps/step05/src/kernel.rs
          5.1   your 4.1
          5.6   your 4.5
          5.7   your 4.6 and 4.7
          5.8   your 4.8
        not carried
          5.2   it is like 4.2, and not the same
          5.3   it is like 4.3, and not the same
          5.4   it is like 4.4, and not the same
          5.5   it is like 4.2, and not the same
                try: Write it anew; `--as-comments` puts your earlier lines there, as a comment.
        beside the kernel function, your step04 has what step05 has not
          const CHUNK (line 27), another one there; 5.7 needs it
          const ROWS (line 29); 5.7 needs it
          fn helper (line 126)
                try: Copy what you need.
        your file as it was is kept: .workbook/backup/step05-1.rs
        next: cargo test -p step05
    "#]]
    .assert_eq(&checkout.carry());
    let carried = checkout.read(5);
    assert!(carried.contains("    // seen by\n    k.tcgen05_fence_after(); // all\n"), "{carried}");
    assert!(carried.contains("    let quarter = row / ROWS * ROWS;\n"), "{carried}");
    assert!(carried.ends_with("    k.warp(0, |w| w.tmem_dealloc(tmem));\n}\n"), "{carried}");
}

#[test]
fn nothing_of_the_student_is_written_over() {
    let checkout = Checkout::new(4, 5);
    let begun = checkout.read(5).replace("    k.todo(\"5.6\");", "    k.sync(); // mine\n    k.todo(\"5.6\");");
    let done = begun.replace("    k.todo(\"5.8\");", "    k.mine();");
    checkout.write(5, &done);
    expect![[r#"
        carried to steps/step05/src/kernel.rs
          5.1   your 4.1
          5.7   your 4.6 and 4.7
        left alone, since you have begun there
          5.6
          5.8
        not carried
          5.2   it is like 4.2, and not the same
          5.3   it is like 4.3, and not the same
          5.4   it is like 4.4, and not the same
          5.5   it is like 4.2, and not the same
                try: Write it anew; `--as-comments` puts your earlier lines there, as a comment.
        your file as it was is kept: .workbook/backup/step05-1.rs
        next: cargo test -p step05
    "#]]
    .assert_eq(&checkout.carry());
    let carried = checkout.read(5);
    assert!(carried.contains("    k.sync(); // mine\n    k.todo(\"5.6\");"), "{carried}");
    assert!(carried.contains("    k.mine();"), "{carried}");
    assert_eq!(checkout.open(), ["5.2", "5.3", "5.4", "5.5", "5.6"]);
}

#[test]
fn what_must_change_comes_as_a_comment() {
    let checkout = Checkout::new(4, 5);
    let told = checkout.carry_so(true);
    expect![[r#"
        carried to steps/step05/src/kernel.rs
          5.1   your 4.1
          5.6   your 4.5
          5.7   your 4.6 and 4.7
          5.8   your 4.8
        put there as comments, to be changed
          5.2   your 4.2
          5.3   your 4.3
          5.4   your 4.4
          5.5   your 4.2
        your file as it was is kept: .workbook/backup/step05-1.rs
        next: cargo test -p step05
    "#]]
    .assert_eq(&told);
    let carried = checkout.read(5);
    let begin = carried.find("                // TODO 5.3").expect("TODO 5.3");
    let end = carried.find("                // TODO 5.4").expect("TODO 5.4");
    expect![[r#"
        in step05
                        // TODO 5.3: Wait until the tiles of this stage have come: its barrier, in the phase that `at` knows.
                        // Keep the MMAs behind the wait, as in step 4. book: a software pipeline
                        // Your lines for TODO 4.3. Here something must change:
                        //     t.wait(tma2mma, round & 1);
                        //     t.tcgen05_fence_after();
                        t.todo("5.3");
    "#]].assert_eq(&format!("in step05\n{}", &carried[begin..end]));
    assert_eq!(checkout.open(), ["5.2", "5.3", "5.4", "5.5"]);
    checkout.carry_so(true);
    assert_eq!(checkout.read(5), carried, "a second time changes nothing");
}

/// `not carried` for one TODO of step 5, after an edit of step 4.
fn refused(edit: impl Fn(&Checkout), id: &str, expected: Expect) {
    let checkout = Checkout::new(4, 5);
    edit(&checkout);
    let told = checkout.carry();
    let from = told.find(&format!("  {id}   ")).unwrap_or_else(|| panic!("{told}"));
    let lines: Vec<&str> = told[from..].lines().take(4).collect();
    // A line that is not indented: `expect` takes away what all lines have.
    expected.assert_eq(&format!("not carried\n{}\n", lines.join("\n")));
    assert!(checkout.open().contains(&id.to_string()), "{told}");
}

#[test]
fn what_cannot_be_carried_has_a_reason() {
    refused(
        |c| c.edit("    k.fence_proxy_async();\n", "    k.todo(\"4.7\");\n"),
        "5.7",
        expect![[r#"
            not carried
              5.7   it follows from 4.6 and 4.7
                    TODO 4.7 is still open, at steps/step04/src/kernel.rs:104
                    try: Finish it there, then give this command again.
            your file as it was is kept: .workbook/backup/step05-1.rs
        "#]],
    );
    refused(
        |c| c.edit("    k.tcgen05_fence_before();\n    k.sync();\n    k.tcgen05_fence_after();\n", "    // nothing\n"),
        "5.6",
        expect![[r#"
            not carried
              5.6   it follows from 4.5
                    no code stands at TODO 4.5, steps/step04/src/kernel.rs:86
                    try: Finish it there, then give this command again.
            your file as it was is kept: .workbook/backup/step05-1.rs
        "#]],
    );
    refused(
        |c| c.remove_comment("4.7"),
        "5.7",
        expect![[r#"
            not carried
              5.7   it follows from 4.6 and 4.7
                    your code for TODO 4.6 cannot be told from the rest of steps/step04/src/kernel.rs:
                    where it ends cannot be told: the comment `// TODO 4.7: …` above it is gone
                    try: Put that right and give this command again, or copy your lines by hand.
        "#]],
    );
    refused(
        |c| c.edit("    k.fence_proxy_async();\n", "    // TODO 4.7: once more\n"),
        "5.7",
        expect![[r#"
            not carried
              5.7   it follows from 4.6 and 4.7
                    your code for TODO 4.6 cannot be told from the rest of steps/step04/src/kernel.rs:
                    where it ends cannot be told: the comment `// TODO 4.7: …` stands there on lines 101, 104
                    try: Put that right and give this command again, or copy your lines by hand.
        "#]],
    );
    refused(
        |c| c.edit("    let row = k.thread_index();\n", "    { let row = k.thread_index();\n"),
        "5.7",
        expect![[r#"
            not carried
              5.7   it follows from 4.6 and 4.7
                    your code for TODO 4.6 cannot be told from the rest of steps/step04/src/kernel.rs:
                    from line 92 on it is too different from the untouched file: brackets do not match
                    try: Put that right and give this command again, or copy your lines by hand.
        "#]],
    );
    // Without their comment, these lines cannot be told from those of the TODO above.
    refused(
        |c| c.remove_comment("4.8"),
        "5.8",
        expect![[r#"
            not carried
              5.8   it follows from 4.8
                    your code for TODO 4.8 cannot be told from the rest of steps/step04/src/kernel.rs:
                    the comment `// TODO 4.8: …` above it is gone
                    try: Put that right and give this command again, or copy your lines by hand.
        "#]],
    );
}

/// A comment that is gone is no obstacle where a line of the untouched file stood above it.
#[test]
fn a_comment_may_be_gone() {
    let checkout = Checkout::new(7, 8);
    checkout.remove_comment("7.6");
    checkout.carry();
    assert_eq!(checkout.open(), ["8.1"]);
}

#[test]
fn errors() {
    let checkout = Checkout::new(4, 5);
    let error = |from, to| workbook::carry(&checkout.workspace, from, to, false).expect_err("refused");
    expect![[r#"
        cannot carry from step05 to step04: code is carried from a step to a later one
          try: `cargo workbook carry 4 5`."#]]
    .assert_eq(&error(5, 4));
    expect![[r#"
        cannot carry from step04 to step04: code is carried from a step to a later one
          try: `cargo workbook carry 4 5`."#]]
    .assert_eq(&error(4, 4));
    fs::remove_file(checkout.folder.path().join(Workspace::kernel(4))).expect("removed");
    expect![[r#"
        cannot read steps/step04/src/kernel.rs: No such file or directory (os error 2)
          try: `cargo workbook reset step04` puts the untouched file there."#]]
    .assert_eq(&error(4, 5));
    fs::write(checkout.folder.path().join("steps/carry.json"), "[{}]").expect("written");
    expect![[r#"
        steps/carry.json: missing field `to` at line 1 column 3
          try: Get the file back from git, or from the course's material."#]]
    .assert_eq(&error(4, 5));
    fs::remove_file(checkout.folder.path().join("steps/carry.json")).expect("removed");
    expect![[r#"
        cannot read steps/carry.json: No such file or directory (os error 2)
          try: Get the file back from git, or from the course's material; where the solutions are, `cargo workbook skeletons` writes it."#]].assert_eq(&error(4, 5));
}

#[test]
fn line_ends_stay() {
    let checkout = Checkout::new(4, 5);
    checkout.write(5, &checkout.read(5).replace('\n', "\r\n"));
    checkout.carry();
    let carried = checkout.read(5);
    assert_eq!(carried.matches('\n').count(), carried.matches("\r\n").count());
    assert_eq!(checkout.open(), ["5.2", "5.3", "5.4", "5.5"]);
}

/// Step 8 does what TODO 9.3 asks for, for one CTA: it is not said that nothing does.
#[test]
fn what_has_no_entry_is_not_said_to_be_new() {
    let told = Checkout::new(8, 9).carry();
    assert!(!told.contains("nothing in step"), "{told}");
    assert!(told.contains("step 8 has no code that fits as it is: "), "{told}");
}
