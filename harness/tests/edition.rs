//! `cargo workbook student-edition`: what is in the tree and what is not. (That it works as a student uses it: `.ci/run`.)

use expect_test::expect;
use harness::workbook::{self, Workspace};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn full_tree() -> Workspace {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    Workspace { root: root.canonicalize().expect("the checkout") }
}

/// A student edition in a scratch folder.
fn edition() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let root = scratch.path().join("course");
    workbook::student_edition(&full_tree(), &root).unwrap_or_else(|error| panic!("{error}"));
    (scratch, root)
}

/// All files, by their path from the top folder.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("below").to_string_lossy().replace('\\', "/");
                found.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// Text without white space and comments, so that layout hides nothing.
fn dense(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn the_tree_without_solutions() {
    let (_scratch, root) = edition();
    let files = files(&root);
    for example in files.keys().filter(|file| file.starts_with("emulator/examples/") && file.ends_with(".rs")) {
        let text = String::from_utf8_lossy(&files[example]);
        for module in text.lines().filter_map(|line| line.strip_prefix("#[path = \"../tests/")) {
            let path = format!("emulator/tests/{}", module.trim_end_matches("\"]"));
            assert!(files.contains_key(&path), "{example} needs {path}, which is not there");
        }
    }
    let folders: std::collections::BTreeSet<&str> = files.keys().filter_map(|file| file.split('/').next()).collect();
    expect![[r#"
        {
            ".cargo",
            ".gitignore",
            "AGENTS.md",
            "Cargo.lock",
            "Cargo.toml",
            "LICENSE-APACHE",
            "LICENSE-MIT",
            "README.md",
            "book",
            "device",
            "docs",
            "emulator",
            "harness",
            "ptx",
            "rustfmt.toml",
            "steps",
        }
    "#]]
    .assert_eq(&format!("{folders:#?}\n"));
    for file in files.keys() {
        let left_out = ["golden", ".git/", "target/", ".ci/", "harness/tests", "ptx/tests", "grader"];
        assert!(left_out.iter().all(|part| !file.contains(part)), "{file}");
    }
    // Each step is untouched, also in the file that `reset` takes.
    for (step, _) in solutions::ALL {
        let kernel = &files[&Workspace::kernel(*step)];
        assert_eq!(Some(kernel), files.get(&Workspace::untouched(*step)));
        let text = String::from_utf8_lossy(kernel);
        assert!(text.contains(&format!(".todo(\"{step}.1\")")) && !text.contains("solutions/"), "{text}");
    }
    // No code of any region is anywhere.
    let texts: Vec<(&String, String)> =
        files.iter().map(|(file, content)| (file, dense(&String::from_utf8_lossy(content)))).collect();
    let mut regions = 0;
    for (step, _) in solutions::ALL {
        let solution = fs::read_to_string(full_tree().root.join(Workspace::solution(*step))).expect("a solution");
        for region in solution.split("// ANCHOR: todo_").skip(1) {
            let (name, rest) = region.split_once('\n').expect("a name");
            let code = dense(rest.split("// ANCHOR_END").next().expect("an end"));
            // Shorter ones are calls of the builder, as its documentation shows them.
            if code.len() < 80 {
                continue;
            }
            regions += 1;
            for (file, text) in &texts {
                assert!(!text.contains(&code), "{file} holds region {name} of the solution of step {step}");
            }
        }
    }
    assert!(regions > 20, "{regions} regions were looked for");
    // The same versions of the same packages.
    let packages = |lock: &[u8]| {
        let text = String::from_utf8_lossy(lock).into_owned();
        let blocks = text.split("[[package]]").skip(1).filter(|block| block.contains("checksum = "));
        let what = |block: &str| {
            let line = |key: &str| block.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_string();
            [line("name = "), line("version = "), line("checksum = ")]
        };
        blocks.map(what).collect::<Vec<_>>()
    };
    let all = packages(&fs::read(full_tree().root.join("Cargo.lock")).expect("a lock file"));
    let some = packages(&files["Cargo.lock"]);
    assert!(!some.is_empty() && some.len() < all.len(), "{} of {}", some.len(), all.len());
    for package in some {
        assert!(all.contains(&package), "{package:?}");
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let error = |folder: &Path| {
        let error = workbook::student_edition(&full_tree(), folder).expect_err("refused");
        let error = error.replace(&*scratch.path().to_string_lossy(), "SCRATCH");
        error.replace(&*full_tree().root.to_string_lossy(), "TREE")
    };
    let full = scratch.path().join("full");
    fs::create_dir(&full).expect("a folder");
    fs::write(full.join("work"), "mine").expect("written");
    expect![[r#"
        SCRATCH/full is not empty; nothing was changed
          try: Name a folder that does not exist yet."#]]
    .assert_eq(&error(&full));
    expect![[r#"
        cannot write to SCRATCH/full/work: Not a directory (os error 20)
          try: Name a folder that does not exist yet."#]]
    .assert_eq(&error(&full.join("work")));
    expect![[r#"
        the folder above SCRATCH/no/where does not exist
          try: Make it, or name another folder."#]]
    .assert_eq(&error(&scratch.path().join("no/where")));
    expect![[r#"
        TREE/docs/course lies in the tree that is handed out
          try: Name a folder outside of it."#]]
    .assert_eq(&error(&full_tree().root.join("docs/course")));
    // A tree that cannot be handed out: a step without solution.
    let broken = scratch.path().join("broken");
    let course = scratch.path().join("course");
    for (file, content) in files(&full_tree().root.join("solutions/src")) {
        let path = broken.join("solutions/src").join(&file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("written");
    }
    let error = workbook::student_edition(&Workspace { root: broken }, &course).expect_err("refused");
    assert_eq!(error, "cannot copy .cargo: No such file or directory (os error 2)");
    assert!(!course.exists());
    let left: Vec<_> =
        fs::read_dir(scratch.path()).expect("a folder").map(|entry| entry.expect("entry").path()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(fs::read(full.join("work")).expect("there"), b"mine");
}

/// What the student edition measures beside takes as long as the solution, to the cycle.
#[test]
fn bare_kernels_run_as_before() {
    use harness::observe::Observation;
    use harness::{InProcess, InputKind, Inputs, KernelSource, Problem, reference_kernels};
    for (step, kernel) in solutions::ALL {
        let problem = match step {
            1 => Problem::f16(128, 128, 64),
            2 => Problem::f16(128, 128, 192),
            _ => Problem::f16(256, 256, 192),
        };
        let built = InProcess(*kernel).build(&problem, 4).expect("it builds");
        let bare = reference_kernels::bare(built.clone());
        assert!(!bare.ptx.contains("//") && !bare.ptx.contains(".loc") && !bare.ptx.contains("  "), "{}", bare.ptx);
        let [full, bare] = [built, bare].map(|built| {
            let program = emulator::load(&built.ptx).expect("it loads");
            let seen =
                Observation::new(&built, &program, Inputs::new(problem, InputKind::Normal, 1), &Default::default());
            assert!(seen.report.is_clean() && seen.comparison.is_right(), "step {step}");
            (seen.report.cycles, seen.report.instructions)
        });
        assert_eq!(full, bare, "step {step}");
    }
}
