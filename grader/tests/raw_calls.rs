//! Whoever gets around Rust's rules (its compiler has known holes) calls the kernel directly. What is left then: this program is compiled
//! without those rules, and is run where programs of hand-ins run.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use grader::sandbox::{Cage, Job, Limits, Spec};
use std::fs;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
use std::ffi::{c_char, c_int, c_long, c_ulong};
unsafe extern "C" {
    fn fork() -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn ptrace(request: c_long, ...) -> c_long;
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn mount(a: *const c_char, b: *const c_char, c: *const c_char, flags: c_ulong, data: *const c_char) -> c_int;
    fn unshare(flags: c_int) -> c_int;
    fn setuid(user: u32) -> c_int;
    fn setrlimit(resource: c_int, limit: *const [u64; 2]) -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
    fn chroot(path: *const c_char) -> c_int;
    fn mknod(path: *const c_char, mode: u32, device: u64) -> c_int;
    fn link(from: *const c_char, to: *const c_char) -> c_int;
    fn memfd_create(name: *const c_char, flags: u32) -> c_int;
    fn process_vm_readv(pid: c_int, a: *const u8, b: c_ulong, c: *const u8, d: c_ulong, e: c_ulong) -> isize;
    fn syscall(number: c_long, ...) -> c_long;
}
fn say(name: &str, result: i64) {
    let error = std::io::Error::last_os_error();
    println!("{name}: {}", if result == -1 { format!("{:?}", error.kind()) } else { "done".to_string() });
}
fn main() {
    unsafe {
        say("fork", fork().into());
        say("kill", kill(1, 0).into());
        say("ptrace", ptrace(0));
        say("socket", socket(2, 1, 0).into());
        say("local socket", socket(1, 1, 0).into());
        let (name, kind) = (c"/hand-in-scratch".as_ptr(), c"tmpfs".as_ptr());
        say("mount", mount(name, name, kind, 0, std::ptr::null()).into());
        say("unshare", unshare(0x1000_0000).into());
        say("setuid", setuid(0).into());
        // RLIMIT_CPU, without a limit.
        say("setrlimit", setrlimit(0, &[u64::MAX, u64::MAX]).into());
        // PR_SET_PDEATHSIG: to outlive the grader.
        say("prctl", prctl(1, 0).into());
        say("chroot", chroot(name).into());
        say("mknod", mknod(c"/hand-in-scratch/pipe".as_ptr(), 0o010_644, 0).into());
        say("link", link(c"/hand-in-scratch".as_ptr(), c"/hand-in-scratch/x".as_ptr()).into());
        say("memfd_create", memfd_create(name, 0).into());
        say("process_vm_readv", process_vm_readv(1, std::ptr::null(), 0, std::ptr::null(), 0, 0) as i64);
        // The same numbers on each architecture: io_uring_setup, pidfd_open, openat2, clone3.
        say("io_uring_setup", syscall(425, 1, 0));
        say("pidfd_open", syscall(434, 1, 0));
        say("openat2", syscall(437, -100, name, 0, 0));
        say("clone3", syscall(435, 0, 0));
        // The numbers of this architecture: socketpair, clock_settime, keyctl, bpf, perf_event_open, setns, sethostname, add_key,
        // userfaultfd, open_by_handle_at, kexec_file_load, memfd_secret.
        let calls: [(&str, c_long); 12] = [
            ("socketpair", 53), ("clock_settime", 227), ("keyctl", 250), ("bpf", 321), ("perf_event_open", 298), ("setns", 308),
            ("sethostname", 170), ("add_key", 248), ("userfaultfd", 323), ("open_by_handle_at", 304), ("kexec_file_load", 320), ("memfd_secret", 447),
        ];
        for (name, number) in calls {
            say(name, syscall(number, 0, 0, 0, 0, 0));
        }
        // Under the numbers of another ABI of the same machine.
        say("fork of x32", syscall(0x4000_0000 + 57));
        say("ptrace of x32", syscall(0x4000_0000 + 521, 0, 0, 0, 0));
    }
}
"#;

/// What each call came to, in a sandbox for this job.
fn said(job: Job) -> Option<Vec<(String, String)>> {
    let launcher = Path::new(env!("CARGO_BIN_EXE_grader"));
    let cage = match Cage::locked(launcher) {
        Ok(cage) => cage,
        Err(error) => {
            assert!(std::env::var_os("GRADER_REQUIRE_SANDBOX").is_none(), "GRADER_REQUIRE_SANDBOX is set: {error}");
            println!("NOT ENFORCEABLE HERE: {error}");
            assert!(error.contains("cannot be locked in") && error.contains("--trust"), "{error}");
            return None;
        }
    };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (source, program) = (folder.path().join("calls.rs"), folder.path().join("calls"));
    fs::write(&source, PROGRAM).expect("written");
    let mut rustc = Command::new("rustc");
    let built = rustc.args(["--edition=2024", "-o"]).arg(&program).arg(&source).status().expect("rustc starts");
    assert!(built.success());
    let spec = Spec {
        job,
        program: program.clone(),
        shown: vec![program],
        limits: if job == Job::Compiler { Limits::COMPILER } else { Limits::PROGRAM },
        stage: folder.path().join("stage"),
        ..Spec::default()
    };
    let output = cage.command(&spec).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines = said.lines().filter_map(|line| line.split_once(": "));
    Some(lines.map(|(name, result)| (name.to_string(), result.to_string())).collect())
}

#[test]
fn no_call_that_reaches_out_is_left_to_a_program() {
    let Some(said) = said(Job::Program) else { return };
    let wrong: Vec<_> = said.iter().filter(|(_, result)| result != "PermissionDenied").collect();
    assert!(said.len() == 33 && wrong.is_empty(), "{wrong:#?} of\n{said:#?}");
}

/// A compiler starts processes, and signals them; it does not reach out.
#[test]
fn no_call_that_reaches_out_is_left_to_a_compiler() {
    let Some(said) = said(Job::Compiler) else { return };
    const ITS_OWN: [&str; 9] =
        ["fork", "socketpair", "fork of x32", "kill", "setrlimit", "prctl", "link", "memfd_create", "openat2"];
    let is_denied = |name: &str, result: &str| match name {
        // It takes `clone`, whose flags the filter sees.
        "clone3" => result == "Unsupported",
        _ => result == "PermissionDenied",
    };
    // Who forks says all that follows twice.
    let names: std::collections::BTreeSet<&str> = said.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 33, "{said:#?}");
    let wrong: Vec<_> =
        said.iter().filter(|(name, result)| !ITS_OWN.contains(&name.as_str()) && !is_denied(name, result)).collect();
    assert!(wrong.is_empty(), "{wrong:#?} of\n{said:#?}");
}
