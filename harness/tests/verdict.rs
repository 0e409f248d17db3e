//! Verdicts that need no run: kernels that are open, refused, or not there; and the way through another process.

use harness::{
    Answer, BuildFailure, Built, Emitted, InProcess, JudgeOptions, KernelSource, MilestoneState, Outcome, Part,
    Problem, Request, Verdict, judge, report, step,
};
use ptx::prelude::*;
use std::time::{Duration, Instant};

const SIZE: Problem = Problem::f16(128, 128, 64);

/// A skeleton whose TODOs are all open.
fn untouched(k: &mut Cta, _: &Gemm) {
    k.threads(128);
    for id in ["1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"] {
        k.todo(id);
    }
}

fn panicking(_: &mut Cta, _: &Gemm) {
    let nothing: Vec<u32> = Vec::new();
    assert_eq!(nothing.len(), 1, "one tile");
}

fn refused(k: &mut Cta, gemm: &Gemm) {
    k.threads(128);
    k.require(gemm.m == 1, "this kernel solves one row");
}

fn verdict(source: &dyn KernelSource) -> Verdict {
    judge(step(1).expect("step 1 exists"), source, &JudgeOptions::default())
}

/// The first line of this file that holds a text.
fn line_of(text: &str) -> u32 {
    let at = include_str!("verdict.rs").lines().position(|line| line.contains(text));
    at.expect("it stands above") as u32 + 1
}

fn failure(verdict: &Verdict) -> (&str, &str) {
    match verdict.part(Part::Correct) {
        Outcome::Failed { title, text, .. } => (title, text),
        other => panic!("correct is {other:?}"),
    }
}

#[test]
fn an_untouched_skeleton_says_what_comes_first_without_a_run() {
    let begin = Instant::now();
    let verdict = verdict(&InProcess(untouched));
    assert!(begin.elapsed() < Duration::from_secs(1));
    assert_eq!(verdict.points, 0.0);
    assert!(verdict.milestones.iter().all(|milestone| matches!(milestone.state, MilestoneState::Open { .. })));
    for (part, outcome) in &verdict.parts {
        assert_eq!(*outcome, Outcome::NotReached { reason: "TODO 1.1 is open".to_string() }, "{part}");
    }
    let next = report::next_todo(&verdict).expect("a TODO is open");
    assert!(next.contains("TODO 1.1 comes first: A and B arrive swizzled in shared memory"), "{next}");
    assert!(next.contains(&format!("--> harness/tests/verdict.rs:{}\n", line_of("k.todo(id)"))), "{next}");
    assert!(next.contains("read: book: shared memory and swizzles"), "{next}");
}

#[test]
fn a_kernel_that_the_builder_refuses_is_shown_at_its_line() {
    let verdict = verdict(&InProcess(refused));
    let (_, text) = failure(&verdict);
    assert!(text.contains(&format!("--> harness/tests/verdict.rs:{}:7\n", line_of("k.require("))), "{text}");
    assert!(text.contains("this kernel solves one row"), "{text}");
    assert_eq!(verdict.points, 0.0);
    assert!(verdict.build_failure.is_some());
}

#[test]
fn a_todo_that_does_not_exist_is_refused() {
    fn unknown(k: &mut Cta, _: &Gemm) {
        k.threads(128);
        k.todo("1.9");
    }
    let verdict = verdict(&InProcess(unknown));
    let (title, text) = failure(&verdict);
    assert_eq!(title, "step 1 has no TODO 1.9");
    assert!(text.contains("= try: Its TODOs are 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7."), "{text}");
    assert!(text.contains(&format!("--> harness/tests/verdict.rs:{}", line_of("k.todo(\"1.9\")"))), "{text}");
}

#[test]
fn a_panic_is_a_value_with_its_line() {
    let built = InProcess(panicking).build(&SIZE, 148);
    let Err(BuildFailure::Panicked { message, place: Some(place) }) = built else { panic!("{built:?}") };
    assert!(message.contains("one tile"), "{message}");
    assert_eq!((place.file.as_str(), place.line), ("harness/tests/verdict.rs", line_of("assert_eq!(nothing.len()")));
    let verdict = verdict(&InProcess(panicking));
    let (title, text) = failure(&verdict);
    assert_eq!(title, "the kernel function panicked");
    assert!(text.contains("assert_eq!(nothing.len(), 1"), "{text}");
    // The thread that builds is none the worse for it.
    assert!(InProcess(untouched).build(&SIZE, 148).is_ok());
}

#[test]
fn a_verdict_goes_through_json() {
    let before = verdict(&InProcess(untouched));
    let json = serde_json::to_string(&before).expect("a verdict is plain data");
    let after: Verdict = serde_json::from_str(&json).expect("it reads what it wrote");
    assert_eq!((after.parts, after.milestones, after.points), (before.parts, before.milestones, before.points));
}

#[test]
fn a_request_is_answered() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (request, answer) = (folder.path().join("request.json"), folder.path().join("answer.json"));
    let text = serde_json::to_string(&Request { problem: SIZE, sms: 148 }).expect("plain data");
    assert_eq!(text, r#"{"problem":"128x128x64 f16","sms":148}"#);
    std::fs::write(&request, text).expect("it is ours");
    emit::answer::write(&InProcess(untouched), &request, &answer).expect("both files are there");
    let text = std::fs::read_to_string(&answer).expect("it was written");
    let Answer::Built(built) = serde_json::from_str(&text).expect("an answer") else { panic!("{text}") };
    assert_eq!(Ok(built), InProcess(untouched).build(&SIZE, 148));
    // What is not part of a recipe is refused.
    let more = text.replacen("\"grid\"", "\"run\":\"rm -rf /\",\"grid\"", 1);
    assert!(serde_json::from_str::<Answer>(&more).is_err_and(|e| e.to_string().contains("unknown field `run`")));
    let error =
        emit::answer::write(&InProcess(untouched), &folder.path().join("none"), &answer).expect_err("no request");
    assert!(error.starts_with("cannot read the request"), "{error}");
}

#[cfg(unix)]
#[test]
fn another_process_is_asked_and_not_trusted() {
    use std::process::Command;

    let folder = tempfile::tempdir().expect("a scratch folder");
    let prepared = folder.path().join("prepared.json");
    let built: Built = InProcess(untouched).build(&SIZE, 148).expect("it builds");
    std::fs::write(&prepared, serde_json::to_string(&Answer::Built(built.clone())).expect("plain data")).expect("ours");
    // `sh -c SCRIPT sh --emit REQUEST ANSWER`: $2 is the request, $3 the answer.
    let asked = |script: String, seconds: f64| {
        let shell = move || {
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]);
            command
        };
        let built = Emitted::from_command(shell, Duration::from_secs_f64(seconds)).build(&SIZE, 148);
        built.map_err(|failure| match failure {
            BuildFailure::NoAnswer { message, .. } => message,
            other => panic!("the program's fault is told as {other:?}"),
        })
    };
    let prepared = prepared.display();
    assert_eq!(asked(format!("grep -q 128x128x64 \"$2\" && cp '{prepared}' \"$3\""), 10.0), Ok(built));
    let said = |script: &str, seconds| asked(script.to_string(), seconds).expect_err("no kernel came");
    let text = said("echo out of cheese >&2; exit 3", 10.0);
    assert!(text.contains("exit status: 3") && text.contains("it said:\nout of cheese\n  try: "), "{text}");
    // As a kernel function that calls `process::exit(0)` does.
    let text = said("exit 0", 10.0);
    assert!(text.contains("left no answer: it ended before the kernel function returned\n  try: "), "{text}");
    assert!(said("echo '{' > \"$3\"", 10.0).contains("the answer is not a kernel"));
    assert!(said(&format!("ln -s '{prepared}' \"$3\""), 10.0).contains("the answer is not a file"));
    assert!(said("sleep 60", 0.2).contains("took longer than"));
    // What only this side knows cannot be said by the other.
    let forged = r#"echo '{"failed":{"here":{"message":"the disk is full"}}}' > "$3""#;
    assert!(said(forged, 10.0).contains("the answer is not a kernel"));
}

/// A full disk, a folder that cannot be written, a program that does not start: no verdict on the kernel, and its part is not failed.
#[cfg(unix)]
#[test]
fn what_fails_here_is_not_the_kernels_fault() {
    use std::process::Command;

    let folder = tempfile::tempdir().expect("a scratch folder");
    let nowhere = folder.path().join("nowhere");
    let script = |script: &'static str| {
        move || {
            let mut command = Command::new("sh");
            command.args(["-c", script, "sh"]);
            command
        }
    };
    let limit = Duration::from_secs(10);
    let sources = [
        ("no folder", "cannot make a scratch folder", Emitted::from_command(script("exit 0"), limit).within(&nowhere)),
        ("no program", "cannot start", Emitted::new(&nowhere)),
        ("no sandbox", "no more processes", Emitted::by(|_, _| Err("no more processes".to_string()))),
        // As on a full disk: the program cannot write its answer, and nobody else could.
        ("no room", "room: ", Emitted::from_command(script(r#"mkdir "$(dirname "$3")/room"; exit 1"#), limit)),
    ];
    for (name, says, source) in sources {
        let built = source.build(&SIZE, 148);
        assert!(matches!(&built, Err(BuildFailure::Here { message }) if message.contains(says)), "{name}: {built:?}");
        let verdict = verdict(&source);
        assert!(verdict.here.as_ref().is_some_and(|why| why.contains(says)), "{name}: {verdict:?}");
        assert_eq!(verdict.build_failure, None, "{name}");
        assert!(matches!(verdict.part(Part::Correct), Outcome::NotChecked { .. }), "{name}: {verdict:?}");
        assert!(!verdict.passed() && !verdict.only_unchecked(), "{name}");
    }
}
