//! Of equal kernels in a batch one is judged, and nobody's grade is another for it.

mod class;

use class::{Class, files, said, sandboxed};
use grader::batch::store::Outcome;
use grader::json::{Report, Sandbox};
use harness::workbook::Workspace;
use std::fs;
use std::path::{Path, PathBuf};

fn text(file: String) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join(file)).expect("read")
}

/// Kernels of step 1, and the rubric by which they are judged at one small size.
struct Kernels {
    untouched: String,
    solved: String,
    /// The same, with another name and on other lines.
    renamed: String,
    rubric: PathBuf,
}

fn kernels(class: &Class) -> Kernels {
    let rubric = class.folder.path().join("rubric.toml");
    fs::write(&rubric, "[steps.step01]\nsizes = [\"128x128x64 f16\"]\n").expect("written");
    let solved = text(Workspace::solution(1));
    let renamed = format!("// Mine.\n\n{}", solved.replace("first_row", "row_of_this_thread"));
    assert_ne!(renamed.matches("row_of_this_thread").count(), 0);
    Kernels { untouched: text(Workspace::kernel(1)), solved, renamed, rubric }
}

/// The grade of a hand-in in a batch, as JSON without times and names.
fn grade(class: &Class, out: &str, name: &str) -> String {
    let record = class.records(out).remove(name).unwrap_or_else(|| panic!("{name} has no result"));
    let Outcome::Graded(report) = record.outcome else { panic!("{name} is not graded: {:?}", record.outcome) };
    nameless(*report)
}

fn nameless(mut report: Report) -> String {
    for step in &mut report.steps {
        step.seconds = 0.0;
        step.file = None;
    }
    serde_json::to_string_pretty(&report).expect("JSON")
}

#[test]
fn an_equal_kernel_has_the_grade_that_it_would_have_alone() {
    let class = Class::new(&[]);
    let Kernels { untouched, solved, renamed, rubric } = kernels(&class);
    let handed_in =
        [("anna", &untouched), ("ben", &untouched), ("carol", &solved), ("dora", &solved), ("gina", &renamed)];
    for (name, kernel) in handed_in {
        class.write(name, kernel);
    }
    let rubric = rubric.to_string_lossy().into_owned();
    let options = ["--jobs", "1", "--seed", "5", "--allow-unchecked", "--rubric", &rubric];
    let (status, text, errors) = said(class.batch("grades", &options));
    assert_eq!(status, Some(0), "{text}{errors}");
    let folder = class.grades("grades").join("verdicts");
    if !sandboxed() {
        assert_eq!(files(&folder).len(), 0, "what is not locked in could have written them");
        return;
    }
    // Without an assembler, a part is not checked: who has one may judge it later.
    let kept = files(&folder);
    let whole = usize::from(harness::ptxas::find().is_ok());
    assert_eq!(
        kept.len(),
        1 + 3 * whole,
        "one for each text, and one for what is built of the two that pass: {kept:?}"
    );
    for (kernel, names) in
        [(&untouched, ["anna", "ben"].as_slice()), (&solved, &["carol", "dora"]), (&renamed, &["gina"])]
    {
        let alone = class.folder.path().join("alone");
        fs::create_dir_all(&alone).expect("a folder");
        fs::write(alone.join("step01.rs"), kernel).expect("written");
        let mut command = class.command(&["grade", "--format", "json", "--seed", "5", "--allow-unchecked"]);
        command.args(["--rubric", &rubric]).arg(&alone);
        let (_, json, errors) = said(command);
        let report: Report = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}{errors}"));
        assert!(matches!(report.sandbox, Some(Sandbox::Enforced(_))), "{:?}", report.sandbox);
        let alone = nameless(report);
        for name in names {
            assert_eq!(grade(&class, "grades", name), alone, "{name}");
        }
    }

    // That a verdict is found, and not made again, is seen by a word in it.
    for path in kept.keys() {
        let text = fs::read_to_string(path).expect("read");
        assert!(text.contains("\"title\":\"one tile\""), "{text}");
        fs::write(path, text.replace("\"title\":\"one tile\"", "\"title\":\"found again\"")).expect("written");
    }
    class.write("emil", &untouched);
    class.write("frida", &format!("{untouched}\n// mine\n"));
    class.write("hans", &format!("{renamed}\n// and his\n"));
    class.write("ina", &solved.replace("k.sync();", "k.sync(); k.sync();"));
    let found = |name: &str| grade(&class, "grades", name).contains("found again");
    let (status, text, errors) = said(class.batch("grades", &options));
    assert_eq!(
        (status, text.lines().next()),
        (Some(0), Some("4 graded now, 5 kept from before, 0 not graded")),
        "{errors}"
    );
    assert!(found("emil") && !found("frida"), "what is not done is the same only with the same text");
    assert_eq!(found("hans"), whole == 1, "what passes is the same when the same is built of it");
    assert!(!found("ina"), "another barrier is another kernel");
    // Another seed, other inputs.
    let (status, _, errors) =
        said(class.batch("grades", &["--jobs", "1", "--seed", "6", "--replace", "--rubric", &rubric]));
    assert_eq!(status, Some(0), "{errors}");
    assert!(!found("emil"));
    // Who grades again does not take a verdict from there.
    let record = class.records("grades").remove("emil").expect("a result");
    for path in files(&folder).into_keys() {
        let text = fs::read_to_string(&path).expect("read");
        fs::write(path, text.replace("\"title\":\"one tile\"", "\"title\":\"found again\"")).expect("written");
    }
    let grades = class.grades("grades").to_string_lossy().into_owned();
    let (status, text, errors) = said(class.command(&["regrade", &grades, "--hash", &record.hand_in]));
    assert_eq!(status, Some(0), "{text}{errors}");
    // A grade in which less was enforced is noted, and is no other grade.
    let path = files(&class.grades("grades").join("results"))
        .into_keys()
        .find(|path| path.to_string_lossy().contains("emil"))
        .expect("its result");
    let text = fs::read_to_string(&path).expect("read");
    let less = text.replacen("\"seccomp\": true", "\"seccomp\": false", 1);
    assert_ne!(less, text);
    fs::write(&path, less).expect("written");
    let (status, text, _) = said(class.command(&["regrade", &grades, "--hash", &record.hand_in]));
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("note: the sandbox's `seccomp` was false, and is true now\n"), "{text}");
}

#[test]
fn verdicts_on_inputs_of_a_secret_seed_lie_beside_it_and_those_of_trusted_code_nowhere() {
    let class = Class::new(&[]);
    let Kernels { untouched, .. } = kernels(&class);
    class.write("anna", &untouched);
    let (status, text, errors) = said(class.batch("secret", &["--seed-commit"]));
    assert_eq!(status, Some(0), "{text}{errors}");
    assert_eq!(files(&class.grades("secret").join("verdicts")).len(), 0);
    assert_eq!(files(&class.grades("secret").join("secret/verdicts")).len(), usize::from(sandboxed()));
    let mut trusted = class.command(&["batch"]);
    trusted.arg(class.hand_ins()).arg("--out").arg(class.grades("trusted")).args(["--", "--trust"]);
    let (status, text, errors) = said(trusted);
    assert_eq!(status, Some(0), "{text}{errors}");
    assert_eq!(files(&class.grades("trusted").join("verdicts")).len(), 0);
    let Outcome::Graded(report) = class.records("trusted").remove("anna").expect("a result").outcome else {
        panic!("not graded")
    };
    assert_eq!(serde_json::to_value(&report.sandbox).expect("JSON"), "trusted");
}
