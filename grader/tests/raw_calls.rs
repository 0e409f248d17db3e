//! Whoever gets around Rust's rules (its compiler has known holes) calls the kernel directly. What is left then: this program is compiled
//! without those rules, and is run where programs of hand-ins run.
#![cfg(target_os = "linux")]

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
        // `fork` under the numbers of another ABI of the same machine.
        say("fork of x32", syscall(0x4000_0000 + 57));
    }
}
"#;

#[test]
fn no_call_that_reaches_out_is_left() {
    let launcher = Path::new(env!("CARGO_BIN_EXE_grader"));
    let cage = match Cage::locked(launcher) {
        Ok(cage) => cage,
        Err(error) => {
            println!("NOT ENFORCEABLE HERE: {error}");
            assert!(error.contains("cannot be locked in") && error.contains("--trust"), "{error}");
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (source, program) = (folder.path().join("calls.rs"), folder.path().join("calls"));
    fs::write(&source, PROGRAM).expect("written");
    let mut rustc = Command::new("rustc");
    let built = rustc.args(["--edition=2024", "-o"]).arg(&program).arg(&source).status().expect("rustc starts");
    assert!(built.success());
    let spec = Spec {
        job: Job::Program,
        program: program.clone(),
        shown: vec![program],
        limits: Limits::PROGRAM,
        stage: folder.path().join("stage"),
        ..Spec::default()
    };
    let output = cage.command(&spec).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let wrong: Vec<&str> = said.lines().filter(|line| !line.ends_with(": PermissionDenied")).collect();
    assert!(said.lines().count() == 20 && wrong.is_empty(), "{wrong:#?} of\n{said}");
}
