//! Each program in the sandbox has an account that nobody else has, wherever its grader runs: what one hand-in uses up is nobody else's.
#![cfg(target_os = "linux")]

use grader::sandbox::{Cage, End, Job, Limits, Spec};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const GRADER: &str = env!("CARGO_BIN_EXE_grader");

/// The sandbox of this machine, if it is one with accounts: that of root.
fn cage() -> Option<Cage> {
    match Cage::locked(Path::new(GRADER)) {
        Ok(cage) if cage.enforced().is_some_and(|enforced| enforced.identity == "account of its own") => Some(cage),
        Ok(cage) => {
            println!("NO ACCOUNTS HERE, so that nothing was tried: {cage}");
            None
        }
        Err(error) => {
            println!("NOT ENFORCEABLE HERE: {error}");
            assert!(std::env::var_os("GRADER_REQUIRE_SANDBOX").is_none(), "GRADER_REQUIRE_SANDBOX is set: {error}");
            None
        }
    }
}

/// A run that prints the account that it has.
fn says_who(folder: &Path, job: Job) -> Spec {
    let program = PathBuf::from("/usr/bin/id");
    Spec {
        job,
        arguments: vec!["-u".to_string()],
        shown: if job == Job::Compiler { Vec::new() } else { vec![program.clone()] },
        program,
        limits: Limits { cpu_seconds: 10, clock_seconds: 60, ..Limits::PROGRAM },
        stage: folder.join("stage"),
        ..Spec::default()
    }
}

#[test]
fn graders_whose_processes_have_the_same_numbers_have_other_accounts() {
    let Some(Cage::Locked { enforced, .. }) = cage() else { return };
    let mut seen = BTreeSet::new();
    for run in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        // As in a container: its process numbers begin at 1, and the sandbox is always the second process.
        let spec = Spec { required: Some(enforced.clone()), parent: 1, ..says_who(folder.path(), Job::Program) };
        let spec = serde_json::to_string(&spec).expect("plain data");
        let script = "\"$1\" __sandboxed \"$2\"; exit $?";
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh", GRADER, &spec]);
        let output = command.output().expect("unshare starts");
        let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
        let report = fs::read_to_string(folder.path().join("report")).unwrap_or_default();
        assert!(output.status.success(), "run {run}: {}{report}", String::from_utf8_lossy(&output.stderr));
        let account: u32 = text.parse().unwrap_or_else(|_| panic!("run {run}: {text:?} is no account"));
        assert!(seen.insert(account), "run {run}: account {account} came twice, after {seen:?}");
    }
}

/// A process of another that has this account.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_account_that_has_a_process_is_not_taken() {
    let Some(cage) = cage() else { return };
    const ACCOUNT: u32 = 2_345_678_901;
    let run = |job| {
        let folder = TempDir::new().expect("a folder");
        let ran = cage.run(&Spec { account: Some(ACCOUNT), ..says_who(folder.path(), job) });
        let ran = ran.unwrap_or_else(|why| panic!("{job:?}: this machine failed: {why}"));
        assert_eq!(ran.end, End::Exited(0), "{job:?}: {}", ran.stderr);
        ran.stdout.trim().parse::<u32>().expect("an account")
    };
    for job in [Job::Program, Job::Compiler] {
        assert_eq!(run(job), ACCOUNT, "nobody has it, so that {job:?} gets what was asked for");
    }
    let mut sleeper = Command::new("sleep");
    let _other = Other(sleeper.arg("600").uid(ACCOUNT).gid(ACCOUNT).stdout(Stdio::null()).spawn().expect("it starts"));
    for job in [Job::Program, Job::Compiler] {
        assert_ne!(run(job), ACCOUNT, "{job:?} shares the account of another");
    }
}
