//! Whoever gets around Rust's rules (its compiler has known holes) calls the kernel directly. What is left then: this program is compiled
//! without those rules, and is run where programs of hand-ins run.
#![cfg(target_os = "linux")]

use grader::sandbox::{Cage, End, Job, Limits, Ran, Spec};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What a program of a hand-in tries.
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
    fn inotify_init1(flags: c_int) -> c_int;
    fn shmget(key: c_int, bytes: usize, flags: c_int) -> c_int;
    fn ioctl(file: c_int, request: c_ulong, ...) -> c_int;
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
        // Less than it has: to be killed as if the machine had failed.
        say("lower setrlimit", setrlimit(0, &[1, 1]).into());
        // PR_SET_PDEATHSIG: to outlive the grader.
        say("prctl", prctl(1, 0).into());
        say("chroot", chroot(name).into());
        say("mknod", mknod(c"/hand-in-scratch/pipe".as_ptr(), 0o010_644, 0).into());
        say("link", link(c"/hand-in-scratch".as_ptr(), c"/hand-in-scratch/x".as_ptr()).into());
        say("memfd_create", memfd_create(name, 0).into());
        // To see what others do, to leave them something, to type for who sits at the terminal (TIOCSTI).
        say("inotify_init1", inotify_init1(0).into());
        say("shmget", shmget(1, 4096, 0o1666).into());
        say("ioctl", ioctl(0, 0x5412, c"x".as_ptr()).into());
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

/// What a compiler has no use for, whoever has taken it over. The numbers are those of x86-64.
#[cfg(target_arch = "x86_64")]
const COMPILER: &str = r#"
use std::ffi::c_long;
unsafe extern "C" { fn syscall(number: c_long, ...) -> c_long; }
fn main() {
    let calls: &[(&str, c_long)] = &[
        ("ptrace", 101), ("process_vm_readv", 310), ("process_vm_writev", 311), ("kcmp", 312),
        ("pidfd_send_signal", 424), ("pidfd_open", 434), ("pidfd_getfd", 438), ("process_madvise", 440), ("process_mrelease", 448),
        ("mknod", 133), ("mknodat", 259),
        ("socket", 41), ("connect", 42), ("accept", 43), ("bind", 49), ("listen", 50), ("socketpair", 53), ("accept4", 288),
        ("settimeofday", 164), ("clock_settime", 227), ("clock_adjtime", 305), ("adjtimex", 159),
        ("add_key", 248), ("request_key", 249), ("keyctl", 250),
        ("io_uring_setup", 425), ("io_uring_enter", 426), ("io_uring_register", 427),
        ("bpf", 321), ("perf_event_open", 298), ("userfaultfd", 323), ("seccomp", 317), ("personality", 135),
        ("kexec_load", 246), ("kexec_file_load", 320), ("reboot", 169), ("init_module", 175), ("finit_module", 313),
        ("delete_module", 176), ("iopl", 172), ("ioperm", 173), ("modify_ldt", 154), ("syslog", 103), ("acct", 163),
        ("mount", 165), ("umount2", 166), ("pivot_root", 155), ("chroot", 161), ("swapon", 167), ("swapoff", 168),
        ("open_tree", 428), ("move_mount", 429), ("fsopen", 430), ("fsconfig", 431), ("fsmount", 432), ("fspick", 433),
        ("mount_setattr", 442), ("statmount", 457), ("listmount", 458), ("open_tree_attr", 467),
        ("unshare", 272), ("setns", 308), ("clone into a user namespace", 56),
        ("name_to_handle_at", 303), ("open_by_handle_at", 304), ("quotactl", 179), ("fanotify_init", 300), ("fanotify_mark", 301),
        ("sethostname", 170), ("setdomainname", 171),
    ];
    let say = |name: &str, result: c_long| {
        let error = std::io::Error::last_os_error().raw_os_error();
        println!("{name}: {}", if result == -1 { format!("{error:?}") } else { "done".to_string() });
    };
    for (name, number) in calls {
        // CLONE_NEWUSER is of use to the one call that takes it first.
        let first = if *number == 56 { 0x1000_0000 } else { 0 };
        say(name, unsafe { syscall(*number, first, 0, 0, 0, 0, 0) });
        // The same under the numbers of another ABI of the same machine.
        say(&format!("{name} of x32"), unsafe { syscall(0x4000_0000 + *number, first, 0, 0, 0, 0, 0) });
    }
    say("getpid of x32", unsafe { syscall(0x4000_0000 + 39, 0, 0, 0, 0, 0, 0) });
    // What a compiler needs is there: rustc starts its linker with a pair of local sockets.
    let mut pair = [0i32; 2];
    if unsafe { syscall(53, 1 as c_long, 5 as c_long, 0 as c_long, pair.as_mut_ptr()) } == 0 {
        println!("a local pair");
    }
    std::thread::spawn(|| println!("a thread runs")).join().unwrap();
    println!("{} calls", 2 * calls.len() + 1);
}
"#;

/// Compiles a program, outside, and gives what came of it where a job runs; `None` where this machine has no sandbox.
fn ran(text: &str, job: Job, limits: Limits) -> Option<Ran> {
    let launcher = Path::new(env!("CARGO_BIN_EXE_grader"));
    let cage = match Cage::locked(launcher) {
        Ok(cage) => cage,
        Err(error) => {
            println!("NOT ENFORCEABLE HERE: {error}");
            assert!(error.contains("cannot be locked in") && error.contains("--trust"), "{error}");
            let required = std::env::var_os("GRADER_REQUIRE_SANDBOX").is_some_and(|value| value == "1");
            assert!(!required, "GRADER_REQUIRE_SANDBOX is set, and there is no sandbox: {error}");
            return None;
        }
    };
    let (folder, program) = compiled(text);
    let stage = folder.path().join("stage");
    let spec = Spec { job, program: program.clone(), shown: vec![program], limits, stage, ..Spec::default() };
    Some(cage.run(&spec).expect("this machine does not fail"))
}

fn compiled(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (source, program) = (folder.path().join("calls.rs"), folder.path().join("calls"));
    fs::write(&source, text).expect("written");
    let mut rustc = Command::new("rustc");
    let built = rustc.args(["--edition=2024", "-o"]).arg(&program).arg(&source).status().expect("rustc starts");
    assert!(built.success());
    (folder, program)
}

#[test]
fn no_call_that_reaches_out_is_left() {
    let Some(ran) = ran(PROGRAM, Job::Program, Limits::PROGRAM) else { return };
    assert_eq!(ran.end, End::Exited(0), "{ran:?}");
    let wrong: Vec<&str> = ran.stdout.lines().filter(|line| !line.ends_with(": PermissionDenied")).collect();
    assert!(ran.stdout.lines().count() == 24 && wrong.is_empty(), "{wrong:#?} of\n{}", ran.stdout);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn no_call_that_reaches_out_is_left_to_a_compiler() {
    let Some(ran) = ran(COMPILER, Job::Compiler, Limits::COMPILER) else { return };
    assert_eq!(ran.end, End::Exited(0), "{ran:?}");
    let tried: Vec<&str> = ran.stdout.lines().filter(|line| line.contains(": ")).collect();
    // EPERM: of the filter. Without it many would fail in another way, and look no better.
    let wrong: Vec<&&str> = tried.iter().filter(|line| !line.ends_with(": Some(1)")).collect();
    assert!(wrong.is_empty(), "{wrong:#?} of\n{}", ran.stdout);
    assert!(ran.stdout.contains("a local pair") && ran.stdout.contains("a thread runs"), "{ran:?}");
    assert!(ran.stdout.contains(&format!("{} calls", tried.len())), "{ran:?}");
    assert!(tried.len() > 120, "{}", tried.len());
}
