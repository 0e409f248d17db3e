//! Whose fault it is that a program of a hand-in left nothing: this machine's, or its own. What this machine could not do must never
//! become somebody's 0.
#![cfg(target_os = "linux")]

use grader::sandbox::{Cage, Cut, Job, Limits, Output, Spec, Told};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A sandbox, unless this machine has none.
fn cage() -> Option<Cage> {
    match Cage::locked(Path::new(env!("CARGO_BIN_EXE_grader"))) {
        Ok(cage) => Some(cage),
        Err(error) if std::env::var_os("GRADER_REQUIRE_SANDBOX").is_none() => {
            println!("NOT ENFORCEABLE HERE: {error}");
            None
        }
        Err(error) => panic!("GRADER_REQUIRE_SANDBOX is set: {error}"),
    }
}

/// A program of the system, locked in, and the folder of its run.
fn spec(program: &str, arguments: &[&str]) -> (TempDir, Spec) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = fs::canonicalize(program).unwrap_or_else(|_| PathBuf::from(program));
    let spec = Spec {
        job: Job::Program,
        shown: vec![program.clone()],
        program,
        arguments: arguments.iter().map(|argument| (*argument).to_string()).collect(),
        limits: Limits { asleep_seconds: 2, wall_seconds: 20, ..Limits::PROGRAM },
        stage: folder.path().join("stage"),
        told: folder.path().join("told"),
        ..Spec::default()
    };
    (folder, spec)
}

fn run(cage: &Cage, spec: &Spec) -> Told {
    let output = cage.command(spec).output().expect("the launcher starts");
    Told::read(&spec.told).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn what_a_program_does_is_its_own() {
    let Some(cage) = cage() else { return };
    let (_folder, one) = spec("/bin/true", &[]);
    let told = run(&cage, &one);
    assert_eq!((told.failure(), told.signal, told.cut), (None, None, None), "{told:?}");
    // It leaves nothing of what it was to leave.
    let (folder, mut one) = spec("/bin/true", &[]);
    one.outputs.push(Output { name: "answer".to_string(), to: folder.path().join("answer") });
    assert_eq!(run(&cage, &one).failure(), None);
    // Sleep counts as if it were work.
    let (_folder, one) = spec("/bin/sleep", &["60"]);
    let begin = Instant::now();
    let told = run(&cage, &one);
    assert!(told.cut == Some(Cut::Asleep) && told.failure().is_none() && told.took_too_long(20), "{told:?}");
    assert!(begin.elapsed() < Duration::from_secs(15));
}

#[test]
fn what_this_machine_cannot_do_is_not() {
    let Some(cage) = cage() else { return };
    // The answer cannot be written, as on a full disk.
    let (folder, mut one) = spec("/bin/cp", &["/lib/os-release", "/hand-in-scratch/answer"]);
    one.arguments = vec![one.program.display().to_string(), "/hand-in-scratch/answer".to_string()];
    one.outputs.push(Output { name: "answer".to_string(), to: folder.path().join("missing/answer") });
    let told = run(&cage, &one);
    assert!(
        told.failure().is_some_and(|why| why.contains("cannot write") && why.contains("missing/answer")),
        "{told:?}"
    );
    // The compiler is gone.
    let (_folder, one) = spec("/no/such/compiler", &[]);
    let told = run(&cage, &Spec { job: Job::Compiler, shown: Vec::new(), ..one });
    assert!(told.failure().is_some_and(|why| why.contains("cannot start /no/such/compiler")), "{told:?}");
    // There is no place to put the sandbox together.
    let (folder, one) = spec("/bin/true", &[]);
    let told = run(&cage, &Spec { stage: folder.path().join("missing/stage"), ..one });
    assert!(told.failure().is_some_and(|why| why.contains("cannot make") && why.contains("missing/stage")), "{told:?}");
}

/// A sandbox that somebody ends tells nothing, and nobody takes that for an answer; a grader that is gone leaves no program behind.
#[test]
fn who_is_killed_is_missed() {
    let Some(cage) = cage() else { return };
    let (_folder, mut one) = spec("/bin/sleep", &["87.654"]);
    one.limits.asleep_seconds = 60;
    let mut outer = cage.command(&one).spawn().expect("the launcher starts");
    let running = || {
        let list = Command::new("ps").args(["-eo", "args"]).output().expect("ps");
        String::from_utf8_lossy(&list.stdout).lines().any(|line| line.ends_with("sleep 87.654"))
    };
    let wait_until = |there: bool| {
        let begin = Instant::now();
        while running() != there {
            assert!(begin.elapsed() < Duration::from_secs(20), "running: {}", !there);
            thread::sleep(Duration::from_millis(20));
        }
    };
    wait_until(true);
    outer.kill().expect("killed");
    outer.wait().expect("it ends");
    wait_until(false);
    Told::read(&one.told).expect_err("nobody told anything");
    // Who waits for it has another number: it has gone, as far as the sandbox can tell.
    let (_folder, one) = spec("/bin/true", &[]);
    let forged = serde_json::to_string(&Spec { grader: 1, ..one.clone() }).expect("JSON");
    let output = Command::new(env!("CARGO_BIN_EXE_grader")).args(["__sandboxed", &forged]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(125));
    assert!(Told::read(&one.told).is_ok_and(|told| told.failure().is_some_and(|why| why.contains("has gone"))));
}
