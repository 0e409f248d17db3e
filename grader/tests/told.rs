//! What a student and a teacher read of hand-ins that give no kernel: from the command, for real files.

use expect_test::{Expect, expect};
use std::fs;
use std::process::Command;
use tempfile::TempDir;

fn hand_in(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (file, text) in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    folder
}

/// Grades it, and gives what is said of the kernel and what comes next, or of the hand-in.
fn graded(folder: &TempDir, options: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
    command.arg("grade").arg(folder.path()).args(options).env("NO_COLOR", "1").env_remove("WORKBOOK_DEVICE");
    // Nothing here means harm, and a machine without a sandbox has the same words.
    let output = command.arg("--trust").output().expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&*folder.path().to_string_lossy(), "HAND-IN");
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    match said.find("\nstep01: no kernel") {
        // What is not handed in is no matter of these; `formats.rs` looks at it.
        Some(at) => said[at + 1..].split("\nnot handed in").next().unwrap_or_default().to_string(),
        None => errors.lines().filter(|line| !line.starts_with("note: ")).map(|line| format!("{line}\n")).collect(),
    }
}

fn says(kernel: &str, expected: Expect) {
    expected.assert_eq(&graded(&hand_in(&[("step01.rs", kernel)]), &[]));
}

#[test]
fn one_file_is_told_what_to_hand_in_and_by_which_command() {
    let folder = hand_in(&[
        ("steps/step03/src/kernel.rs", "// three"),
        ("kernel.rs", "// one"),
        ("a b/anna.zip", "PK"),
        ("a b/step02.rs", "// 2"),
        ("lone/kernel.rs", "// four"),
    ]);
    let said = |file: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
        let output = command.arg("grade").arg(folder.path().join(file)).args(["--format", "gradescope"]).output();
        let output = output.expect("the command starts");
        // It is the hand-in's fault: no points, and the same words.
        let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("results.json");
        assert_eq!((output.status.code(), printed["score"].as_f64()), (Some(2), Some(0.0)), "{printed}");
        String::from_utf8_lossy(&output.stderr).replace(&*folder.path().to_string_lossy(), "FOLDER")
    };
    expect![[r#"
        error: FOLDER/steps/step03/src/kernel.rs is one Rust file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
          try: Give the file that `cargo workbook pack --step step03` writes; or put this one into a folder under the name of its step, `mkdir hand-in && cp FOLDER/steps/step03/src/kernel.rs hand-in/step03.rs`, and give the folder.
        error: FOLDER/kernel.rs is one Rust file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
          try: Give the file that `cargo workbook pack --step step01` writes; or put this one into a folder under the name of its step, `mkdir hand-in && cp FOLDER/kernel.rs hand-in/step01.rs`, and give the folder.
        error: FOLDER/a b/step02.rs is one Rust file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
          try: Give the file that `cargo workbook pack --step step02` writes; or put this one into a folder under the name of its step, `mkdir hand-in && cp 'FOLDER/a b/step02.rs' hand-in/step02.rs`, and give the folder.
        error: FOLDER/a b/anna.zip is a .zip file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
          try: Unpack it into a folder and give that, or hand in what `cargo workbook pack` writes.
        error: FOLDER/lone holds no kernel for step01 to step10
          there is: `kernel.rs`
          looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps
          try: The name of `kernel.rs` does not say its step: call it `step01.rs`, with the number of its step, or hand in what `cargo workbook pack` writes.
    "#]].assert_eq(
        &["steps/step03/src/kernel.rs", "kernel.rs", "a b/step02.rs", "a b/anna.zip", "lone"].map(said).concat(),
    );
}

const SOLUTION: &str = include_str!("../../solutions/src/step01.rs");

#[test]
fn a_kernel_function_with_another_head_is_told_at_the_students_line() {
    says(
        "",
        expect![[r#"
        step01: no kernel (HAND-IN/step01.rs)
            steps/step01/src/kernel.rs:1: it does not compile: the file is empty
              try: Hand in the file with `pub fn kernel(k: &mut Cta, gemm: &Gemm)`; `cargo workbook reset step01` writes the one to begin with.

        step01: what comes next (HAND-IN/step01.rs)
            it does not compile: the file is empty
            --> steps/step01/src/kernel.rs:1
            try:  Hand in the file with `pub fn kernel(k: &mut Cta, gemm: &Gemm)`; `cargo workbook reset step01` writes the one to begin with.
            read: step 1 (book/src/step01.md)
    "#]],
    );
    says(
        &SOLUTION.replace("pub fn kernel(", "fn kernel("),
        expect![[r#"
        step01: no kernel (HAND-IN/step01.rs)
            steps/step01/src/kernel.rs:31: it does not compile: `fn kernel` is not public, so that the grader cannot call it
              try: Write `pub fn kernel(k: &mut Cta, gemm: &Gemm)`.

        step01: what comes next (HAND-IN/step01.rs)
            it does not compile: `fn kernel` is not public, so that the grader cannot call it
            --> steps/step01/src/kernel.rs:31
            try:  Write `pub fn kernel(k: &mut Cta, gemm: &Gemm)`.
            read: step 1 (book/src/step01.md)
    "#]],
    );
    says(
        &SOLUTION.replace("pub fn kernel(", "pub fn my_kernel("),
        expect![[r#"
        step01: no kernel (HAND-IN/step01.rs)
            steps/step01/src/kernel.rs:31: it does not compile: there is no `pub fn kernel`; here stands `fn my_kernel`
              try: Call the function that is graded `kernel`: `pub fn kernel(k: &mut Cta, gemm: &Gemm)`.

        step01: what comes next (HAND-IN/step01.rs)
            it does not compile: there is no `pub fn kernel`; here stands `fn my_kernel`
            --> steps/step01/src/kernel.rs:31
            try:  Call the function that is graded `kernel`: `pub fn kernel(k: &mut Cta, gemm: &Gemm)`.
            read: step 1 (book/src/step01.md)
    "#]],
    );
    says(
        "use ptx::*;\n\npub fn kernel(k: &mut Cta) {}\n",
        expect![[r#"
        step01: no kernel (HAND-IN/step01.rs)
            steps/step01/src/kernel.rs:3: it does not compile: `kernel` takes or gives something else than what it is called with
              try: Write its head as `pub fn kernel(k: &mut Cta, gemm: &Gemm)`, and let it give nothing.

        step01: what comes next (HAND-IN/step01.rs)
            it does not compile: `kernel` takes or gives something else than what it is called with
            --> steps/step01/src/kernel.rs:3
            try:  Write its head as `pub fn kernel(k: &mut Cta, gemm: &Gemm)`, and let it give nothing.
            read: step 1 (book/src/step01.md)
    "#]],
    );
}

#[test]
fn a_kernel_function_that_panics_or_ends_the_program_is_told_plainly() {
    let body = |line: &str| format!("use ptx::*;\n\npub fn kernel(k: &mut Cta, gemm: &Gemm) {{\n    {line}\n}}\n");
    says(
        &body("let b = [1, 2, 3][gemm.m as usize / 2];"),
        expect![[r#"
        step01: no kernel (HAND-IN/step01.rs)
            error: the kernel function panicked: index out of bounds: the len is 3 but the index is 64
             --> steps/step01/src/kernel.rs:4:13
              |
            4 |     let b = [1, 2, 3][gemm.m as usize / 2];
              |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here
              |
              = try: Look at this line with the eyes of the CPU: a kernel function runs there, once, while the kernel is built, and its Rust values are not those of the GPU.
            Built for 128x128x64 f16 on 148 SMs, which step 1 has to solve.

        step01: what comes next (HAND-IN/step01.rs)
            the kernel function panicked: index out of bounds: the len is 3 but the index is 64
            --> steps/step01/src/kernel.rs:4
            try:  Look at this line with the eyes of the CPU: a kernel function runs there, once, while the kernel is built, and its Rust values are not those of the GPU.
            read: step 1 (book/src/step01.md)
    "#]],
    );
    says(
        &body("let all: Vec<u64> = Vec::with_capacity(usize::MAX);"),
        expect![[r#"
        step01: no kernel (HAND-IN/step01.rs)
            the kernel function panicked: capacity overflow
              in code that it calls, library/alloc/src/raw_vec/mod.rs:28
              try: Look in the kernel function for the call that ends there: it runs on the CPU, once, while the kernel is built.

        step01: what comes next (HAND-IN/step01.rs)
            the kernel function panicked: capacity overflow
            try:  Look in the kernel function for the call that ends there: it runs on the CPU, once, while the kernel is built.
            read: step 1 (book/src/step01.md)
    "#]],
    );
    says(
        &body("std::process::exit(3);"),
        expect![[r#"
        step01: no kernel (HAND-IN/step01.rs)
            the program that builds the kernel failed (exit status: 3)
              try: Look in the kernel function for what ends a program: `std::process`, calls without an end, tables that fill the memory.

        step01: what comes next (HAND-IN/step01.rs)
            the program that builds the kernel failed (exit status: 3)
            try:  Look in the kernel function for what ends a program: `std::process`, calls without an end, tables that fill the memory.
            read: step 1 (book/src/step01.md)
    "#]],
    );
}

#[test]
fn a_hand_in_without_a_kernel_is_told_with_what_is_there() {
    let says = |files: &[(&str, &str)], options: &[&str], expected: Expect| {
        expected.assert_eq(&graded(&hand_in(files), options));
    };
    says(
        &[("kernel.rs", ""), ("notes/a.txt", "")],
        &[],
        expect![[r#"
            error: HAND-IN holds no kernel for step01 to step10
              there is: `kernel.rs`, `notes/`
              looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps
              try: The name of `kernel.rs` does not say its step: call it `step01.rs`, with the number of its step, or hand in what `cargo workbook pack` writes.
        "#]],
    );
    says(
        &[("homework/steps/step02/src/kernel.rs", "")],
        &[],
        expect![[r#"
            error: HAND-IN holds no kernel for step01 to step10
              there is: `homework/`
              looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps
              try: Hand in what lies in `homework`, not the folder around it: `homework/steps/step02/src/kernel.rs` is one folder too deep.
        "#]],
    );
    says(
        &[("step02.rs", "")],
        &["--step", "1"],
        expect![[r#"
        error: HAND-IN holds no kernel for step01
          there is: `step02.rs`
          looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs
          try: Put each kernel at one of these places, or hand in what `cargo workbook pack` writes.
    "#]],
    );
    let many: Vec<String> = (0..9).map(|n| format!("file{n}\u{202e}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    says(
        &many,
        &["--step", "1"],
        expect![[r#"
        error: HAND-IN holds no kernel for step01
          there is: `file0�`, `file1�`, `file2�`, `file3�`, `file4�`, `file5�` and 3 more
          looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs
          try: Put each kernel at one of these places, or hand in what `cargo workbook pack` writes.
    "#]],
    );
}

#[test]
fn an_archive_without_a_kernel_is_told_with_what_is_there() {
    let folder = hand_in(&[]);
    let mut builder = tar::Builder::new(fs::File::create(folder.path().join("handin.tar")).expect("a file"));
    for name in ["homework/step01.rs", "homework/notes.txt"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        builder.append_data(&mut header, name, &b""[..]).expect("appended");
    }
    builder.finish().expect("whole");
    let error = grader::handin::find(&folder.path().join("handin.tar"), &[1], &[]).expect_err("no kernel");
    expect![[r#"
        FOLDER/handin.tar holds no kernel for step01
          there is: `homework/step01.rs`, `homework/notes.txt`
          looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs
          try: Hand in what lies in `homework`, not the folder around it: `homework/step01.rs` is one folder too deep."#]].assert_eq(&error.reason.replace(&*folder.path().to_string_lossy(), "FOLDER"));
}

#[test]
fn moments_without_a_due_date_cost_nothing_and_that_is_said() {
    let folder = hand_in(&[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
    command.arg("grade").arg(folder.path()).args(["--handed-in", "2026-12-01T12:00:01Z"]);
    let said = String::from_utf8_lossy(&command.output().expect("started").stderr).into_owned();
    assert!(said.starts_with("note: --handed-in says when hand-ins came, and the rubric does not say"), "{said}");
}

/// Both are about who is harmed, TODO 2.2; what mends it is the fence of TODO 2.1.
/// Grades a kernel of step 2 at one small size, as JSON and as a page.
fn of_step_2(kernel: &str) -> (serde_json::Value, String) {
    let folder = hand_in(&[("step02.rs", kernel)]);
    let rubric = folder.path().join("rubric.toml");
    fs::write(&rubric, "[steps.step02]\nsizes = [\"128x128x128 f16\"]\ntimed = \"128x128x128 f16\"\n")
        .expect("written");
    let report = |format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
        command.arg("grade").arg(folder.path()).arg("--rubric").arg(&rubric).args(["--trust", "--format", format]);
        String::from_utf8_lossy(&command.output().expect("started").stdout).into_owned()
    };
    let grade: serde_json::Value = serde_json::from_str(&report("json")).expect("JSON");
    (grade["steps"][0].clone(), report("html"))
}

#[test]
fn a_finding_and_what_comes_next_name_the_same_todo() {
    let kernel = include_str!("../../solutions/src/step02.rs");
    let changed = |changes: &[(&str, &str)]| {
        changes.iter().fold(kernel.to_string(), |text, (from, to)| {
            assert_eq!(kernel.matches(from).count(), 1, "the solution has another text");
            text.replace(from, to)
        })
    };
    let (fence, commit, wait) = ("k.fence_proxy_async();", "t.commit(mma_done);", "k.wait(mma_done, round & 1);");
    let (sums, once) =
        ("k.tcgen05_fence_after();", "k.warp(0, |w| w.elect_one(|t| t.commit(mma_done)));\n    k.wait(mma_done, 0);");
    let waits_once = changed(&[(commit, ""), (wait, ""), (sums, &format!("{once}\n    {sums}"))]);
    for (kernel, todo, page, undone, never) in [
        (changed(&[(fence, "")]), "2.1", "proxies", vec!["2.1"], "2.2"),
        // The finding points at the stores to a tile that is still multiplied. They are right: what is missing is the wait.
        // So is the commit that the next finding points at, where each wait is for the phase that is over.
        (changed(&[(wait, "k.wait(mma_done, round + 1 & 1);")]), "2.4", "mbarriers", vec!["2.2", "2.4", "2.5"], "2.1"),
        (waits_once, "2.4", "mbarriers", vec!["2.2", "2.4", "2.5"], "2.1"),
    ] {
        let (step, html) = of_step_2(&kernel);
        let failed = step["parts"].as_array().expect("parts").iter().find(|part| part["outcome"] == "failed");
        let text = failed.and_then(|part| part["text"].as_str()).unwrap_or_else(|| panic!("nothing failed: {step:#}"));
        let pointer = text.lines().find(|line| line.contains("; read: "));
        let pointer = pointer.unwrap_or_else(|| panic!("no pointer: {text}"));
        assert!(pointer.starts_with(&format!("  TODO {todo}; read: ")), "{text}");
        let page = format!("book/src/{page}.md");
        assert!(pointer.ends_with(&format!("({page})")), "{text}");
        assert_eq!((&step["next"]["todo"], &step["next"]["page"]), (&todo.into(), &page.into()), "{step:#}");
        // Nor does the page say the one that is harmed.
        let says = |todo: &str| html.contains(&format!("TODO {todo}"));
        assert!(says(todo) && !says(never), "{html}");
        let all = step["milestones"].as_array().expect("milestones");
        let found = all.iter().filter(|milestone| milestone["state"] != "done");
        let found: Vec<&str> = found.filter_map(|milestone| milestone["id"].as_str()).collect();
        assert_eq!(found, undone, "{step:#}");
    }
}

/// The first round hangs, and cuts short what TODO 2.1 does in all others: that is right.
#[test]
fn a_hang_in_a_loop_names_the_commit_that_it_waits_for() {
    let kernel = include_str!("../../solutions/src/step02.rs");
    let (commit, sums) = ("t.commit(mma_done);", "k.tcgen05_fence_after();");
    assert!([commit, sums].iter().all(|text| kernel.matches(text).count() == 1), "the solution has another text");
    let kernel = kernel.replace(commit, "");
    for kernel in [&kernel, &kernel.replace(sums, "k.todo(\"2.6\");\n    k.tcgen05_fence_after();")] {
        let (step, _) = of_step_2(kernel);
        let page: serde_json::Value = "book/src/mbarriers.md".into();
        assert_eq!((&step["next"]["todo"], &step["next"]["page"]), (&"2.3".into(), &page), "{step:#}");
    }
}

#[test]
fn what_the_machine_lacks_is_the_courses_to_mend_and_not_the_students() {
    let folder = hand_in(&[("step01.rs", SOLUTION)]);
    let report = |of: &str, format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
        match of {
            "grade" => command.arg(of).arg(folder.path()).arg("--trust"),
            _ => command.args([of, "--step", "1"]),
        };
        command.args(["--format", format]).env("PTXAS", "/no/ptxas").env_remove("WORKBOOK_DEVICE").env("NO_COLOR", "1");
        String::from_utf8_lossy(&command.output().expect("started").stdout).into_owned()
    };
    let grade: serde_json::Value = serde_json::from_str(&report("grade", "json")).expect("JSON");
    let next = &grade["steps"][0]["next"];
    expect![[r#"
        {
          "task": "Leave the kernel as it is, and tell the course, which can mend it there: PTXAS=/no/ptxas is no file; `pip install --no-deps --target target/cuda nvidia-cuda-nvcc` brings it; then `export PTXAS=$PWD/target/cuda/nvidia/cu13/bin/ptxas`.",
          "title": "`resources` could not be checked, because of the machine that grades and not because of the kernel"
        }
    "#]].assert_eq(&format!("{next:#}\n"));
    let why = "the machine that grades could not look at it, and the kernel is not why: PTXAS=/no/ptxas is no file";
    for format in ["text", "gradescope", "junit", "autolab", "html"] {
        let said = report("grade", format);
        assert!(said.contains(why), "{format}: {said}");
    }
    // A solution is the course's own.
    let solutions: serde_json::Value = serde_json::from_str(&report("solutions", "json")).expect("JSON");
    assert!(solutions["steps"][0]["next"].is_null(), "{solutions:#}");
}
