//! What fails on this machine is never the student's: a full disk, no more processes, a sandbox that cannot be furnished, a program
//! that cannot be started, a machine that does much else. And what is the student's stays so.
#![cfg(target_os = "linux")]

use grader::formats::not_graded::{self, Fault};
use grader::handin::Kernel;
use grader::sandbox::{Cage, End, Job, Limits, Output, PROGRAM as HAND_IN, Ran, Spec, WORK};
use grader::scratch::{self, ScratchError, TimeLimits};
use grader::toolchain::Toolchain;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const GRADER: &str = env!("CARGO_BIN_EXE_grader");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// A program, a sandbox, and a folder for a run.
struct Place {
    cage: Cage,
    folder: TempDir,
    program: PathBuf,
}

impl Place {
    /// `None` where this machine has no sandbox.
    fn new() -> Option<Place> {
        let cage = match Cage::locked(Path::new(GRADER)) {
            Ok(cage) => cage,
            Err(error) => {
                println!("NOT ENFORCEABLE HERE: {error}");
                let required = std::env::var_os("GRADER_REQUIRE_SANDBOX").is_some_and(|value| value == "1");
                assert!(!required, "GRADER_REQUIRE_SANDBOX is set, and there is no sandbox: {error}");
                return None;
            }
        };
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (source, program) = (folder.path().join("acts.rs"), folder.path().join("acts"));
        fs::write(&source, PROGRAM).expect("written");
        let built = Command::new("rustc").args(["--edition=2024", "-o"]).arg(&program).arg(&source).status();
        assert!(built.expect("rustc starts").success());
        Some(Place { cage, folder, program })
    }

    /// A run of its own: the folder of its stage, and what is to be run.
    fn spec(&self, name: &str, act: &str) -> (PathBuf, Spec) {
        let folder = self.folder.path().join(name);
        fs::create_dir(&folder).expect("a folder");
        let spec = Spec {
            job: Job::Program,
            program: self.program.clone(),
            arguments: vec![act.to_string()],
            shown: vec![self.program.clone()],
            outputs: vec![Output { name: "answer".to_string(), to: folder.join("answer") }],
            limits: Limits { cpu_seconds: 2, clock_seconds: 60, ..Limits::PROGRAM },
            stage: folder.join("stage"),
            ..Spec::default()
        };
        (folder, spec)
    }

    fn ran(&self, name: &str, act: &str) -> Ran {
        self.cage.run(&self.spec(name, act).1).unwrap_or_else(|why| panic!("{name}: this machine failed: {why}"))
    }
}

const PROGRAM: &str = r#"
use std::sync::Mutex;
// It takes no room in the file, and 100 MiB from the start.
static LARGE: Mutex<[u8; 100 << 20]> = Mutex::new([0; 100 << 20]);
fn main() {
    let act = std::env::args().nth(1).expect("an act");
    match act.as_str() {
        "answer" => std::fs::write("answer", "42").expect("written"),
        "sleep" => std::thread::sleep(std::time::Duration::from_secs(4)),
        "sleep on" => std::thread::sleep(std::time::Duration::from_secs(1000)),
        "turn" => loop { std::hint::spin_loop() },
        "abort" => std::process::abort(),
        "large" => println!("{}", LARGE.lock().unwrap()[std::env::args().count()]),
        status => std::process::exit(status.parse().expect("a status")),
    }
}
"#;

#[test]
fn how_a_program_ends_is_its_own() {
    let Some(place) = Place::new() else { return };
    let ran = place.ran("answer", "answer");
    assert_eq!(ran.end, End::Exited(0), "{ran:?}");
    assert_eq!(fs::read_to_string(place.folder.path().join("answer/answer")).expect("brought out"), "42");
    // Those of the sandbox, of a shell that finds no program, of a shell whose program was killed.
    for status in [1, 101, 125, 126, 127, 137, 255] {
        assert_eq!(place.ran(&status.to_string(), &status.to_string()).end, End::Exited(status));
    }
    assert!(matches!(place.ran("abort", "abort").end, End::Signalled(_)));
    // Too large for its memory when it begins: the kernel ends it before its first line, and that is no fault of the sandbox.
    assert_eq!(place.ran("large", "large").end, End::Exited(0));
    let (_, spec) = place.spec("too large", "large");
    let limits = Limits { memory: 90 << 20, ..spec.limits };
    let ran = place.cage.run(&Spec { limits, ..spec }).expect("it is the program's");
    assert!(matches!(ran.end, End::Signalled(_)), "{ran:?}");
}

/// As on a machine that does much else: twice its CPU time on the clock, and it is not ended.
#[test]
fn too_long_is_told_by_cpu_time() {
    let Some(place) = Place::new() else { return };
    let slow = place.ran("slow", "sleep");
    assert_eq!(slow.end, End::Exited(0), "{slow:?}");
    assert!(slow.seconds > 2.0 * 1.9 && slow.cpu_seconds < 1.0, "{slow:?}");
    let endless = place.ran("endless", "turn");
    assert_eq!(endless.end, End::CpuUsedUp, "{endless:?}");
    assert!(endless.too_long().is_some_and(|what| what == "2 s of CPU time"), "{endless:?}");
    let (_, spec) = place.spec("sleeper", "sleep on");
    let limits = Limits { clock_seconds: 3, ..spec.limits };
    let sleeper = place.cage.run(&Spec { limits, ..spec }).expect("it is the program's");
    assert_eq!(sleeper.end, End::ClockRanOut, "{sleeper:?}");
    let told = sleeper.too_long().expect("it took too long");
    assert!(told.starts_with("3 s on the clock, of which it used 0.") && told.contains("slept"), "{told}");
}

#[test]
fn what_the_machine_does_not_do_is_not_the_programs() {
    let Some(place) = Place::new() else { return };
    let Cage::Locked { enforced, .. } = &place.cage else { panic!("it is locked") };
    let fails = |name: &str, says: &str, act: &str, launcher: Option<&str>, change: &dyn Fn(&Path, &mut Spec)| {
        let (folder, mut spec) = place.spec(name, act);
        change(&folder, &mut spec);
        let launcher = match launcher {
            None => PathBuf::from(GRADER),
            Some(limit) => {
                let script = folder.join("launcher");
                fs::write(&script, format!("#!/bin/sh\n{limit}\nexec '{GRADER}' \"$@\"\n")).expect("written");
                fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("executable");
                script
            }
        };
        let ran = Cage::Locked { launcher, enforced: enforced.clone() }.run(&spec);
        let why = ran.expect_err(name);
        assert!(why.contains(says), "{name}: {why}");
        assert!(!folder.join("answer").exists() || name == "full disk, answer", "{name}");
    };
    // The folder is gone, or cannot be written; the disk is full at the first word, or when the answer is brought out.
    fails("no folder", "cannot make", "answer", None, &|folder, spec| {
        fs::create_dir(folder.join("stage")).expect("a folder");
        spec.stage = folder.join("stage");
    });
    fails("full disk", "", "answer", None, &|folder, _| {
        symlink("/dev/full", folder.join("report")).expect("a link");
    });
    fails("full disk, answer", "cannot bring out answer", "answer", None, &|folder, spec| {
        symlink("/dev/full", folder.join("answer")).expect("a link");
        spec.outputs[0].to = folder.join("answer");
    });
    fails("no input", "cannot read", "answer", None, &|folder, spec| {
        spec.input = Some((folder.join("none"), "request.json".to_string()));
    });
    // The sandbox cannot be furnished, or the program cannot be started.
    fails("not shown", "cannot look at", "answer", None, &|folder, spec| spec.shown.push(folder.join("none")));
    fails("no program", "cannot start", "answer", None, &|folder, spec| spec.program = folder.join("none"));
    fails("no executable", "cannot start", "answer", None, &|folder, spec| {
        let text = folder.join("text");
        fs::write(&text, "no program").expect("written");
        fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).expect("executable");
        (spec.program, spec.shown) = (text.clone(), vec![text]);
    });
    // No more files, no memory, no room for a file: the sandbox stops on its way, wherever that is.
    for (name, limit) in [("no files", "ulimit -n 4"), ("no memory", "ulimit -v 20000"), ("no room", "ulimit -f 0")] {
        fails(name, "", "answer", Some(limit), &|_, _| {});
    }
    // Less than a program is allowed: that the sandbox is not to blame is said, and what is.
    fails(
        "few files",
        "31 open files (`ulimit -H -n`), needed are 32\n  try: Raise them where the grader is started",
        "answer",
        Some("ulimit -n 31"),
        &|_, _| {},
    );
    fails("no sandbox", "before it began", "answer", Some("exit 0"), &|_, _| {});
}

/// A limit of the site that is too low is said once, before the first hand-in, with the way out.
#[test]
fn what_the_site_allows_too_little_of_is_said_before_the_first_hand_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let class = folder.path().join("class");
    for name in ["a", "b"] {
        fs::create_dir_all(class.join(name)).expect("a folder");
        fs::write(class.join(name).join("step01.rs"), "fn broken( {").expect("written");
    }
    let (out, hand_in) = (folder.path().join("out"), class.join("a"));
    let [out, hand_in, class] = [&out, &hand_in, &class].map(|path| path.to_str().expect("a plain path"));
    let memory = ("ulimit -v 3000000", "3000000 KiB of address space (`ulimit -H -v`), needed are 4194304");
    let cases = [
        (["sandbox"].as_slice(), memory),
        (&["sandbox"], ("ulimit -t 100", "100 s of CPU time (`ulimit -H -t`), needed are 125")),
        (&["sandbox"], ("ulimit -f 200", "KiB of a file (`ulimit -H -f`), needed are 262144")),
        (&["sandbox"], ("ulimit -n 255", "255 open files (`ulimit -H -n`), needed are 256")),
        (&["grade", hand_in], memory),
        (&["batch", class, "--out", out], memory),
    ];
    for (arguments, (limit, says)) in cases {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limit}\nexec '{GRADER}' \"$@\""), "limited"]).args(arguments);
        let output = command.current_dir(root()).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{limit}: {said}");
        assert_eq!(said.matches(says).count(), 1, "{limit}: {said}");
        assert!(said.contains("\n  try: Raise them where the grader is started"), "{limit}: {said}");
    }
    let results = fs::read_dir(Path::new(out).join("results")).map_or(0, Iterator::count);
    assert_eq!(results, 0, "a hand-in has no result for that");
}

#[test]
fn a_run_with_less_than_the_probe_had_does_not_begin() {
    let Some(place) = Place::new() else { return };
    let Cage::Locked { enforced, launcher } = &place.cage else { panic!("it is locked") };
    let mut other = enforced.clone();
    other.identity = "another".to_string();
    let (folder, spec) = place.spec("less", "answer");
    let why = Cage::Locked { launcher: launcher.clone(), enforced: other }.run(&spec).expect_err("it has less");
    assert!(why.contains("could not be locked in as the probe was"), "{why}");
    assert!(!folder.join("answer").exists(), "it ran");
}

/// The hidden command asks who started it: not the process that it is told of, if that has ended meanwhile.
#[test]
fn a_sandbox_whose_grader_has_gone_does_not_begin() {
    let Some(place) = Place::new() else { return };
    let (folder, spec) = place.spec("orphan", "answer");
    let spec = serde_json::to_string(&Spec { parent: 1, ..spec }).expect("plain data");
    let status = Command::new(GRADER).args(["__sandboxed", &spec]).status().expect("it starts");
    let report = fs::read_to_string(folder.join("report")).expect("a report");
    assert!(!status.success() && report.contains("the grader has ended"), "{status}: {report}");
    assert!(!folder.join("answer").exists(), "it ran");
}

/// What runs with this text in its command line.
fn running(text: &str) -> Vec<(u32, String)> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = all.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        Some((entry.file_name().to_string_lossy().parse().ok()?, line))
    });
    found.filter(|(_, line)| line.contains(text)).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The one process outside of the sandbox, and the sleeper in it.
#[test]
fn a_sandbox_that_is_killed_is_no_end_of_its_program() {
    let Some(place) = Place::new() else { return };
    let (folder, spec) = place.spec("killed", "sleep on");
    let stage = folder.join("stage").display().to_string();
    let inside = format!("{} sleep on", place.program.display());
    let why = std::thread::scope(|scope| {
        let run = scope.spawn(|| place.cage.run(&spec));
        until("the program is not started", || !running(&inside).is_empty());
        let outer = running(&stage);
        assert_eq!(outer.len(), 1, "{outer:?}");
        assert!(Command::new("kill").args(["-KILL", &outer[0].0.to_string()]).status().expect("kill").success());
        run.join().expect("it ends")
    });
    assert_eq!(why, Err("the sandbox was ended while the program ran".to_string()));
    until("the program goes on without its sandbox", || running(&inside).is_empty());

    // The program itself, from outside: as the kernel does when the machine runs out of memory.
    let (_, spec) = place.spec("killed inside", "sleep on");
    let why = std::thread::scope(|scope| {
        let run = scope.spawn(|| place.cage.run(&spec));
        until("the program is not started", || !running(&inside).is_empty());
        let program = running(&inside)[0].0;
        assert!(Command::new("kill").args(["-KILL", &program.to_string()]).status().expect("kill").success());
        run.join().expect("it ends")
    });
    assert!(why.as_ref().is_err_and(|why| why.contains("killed from outside")), "{why:?}");
}

fn kernel(text: &str) -> Kernel {
    Kernel { step: 1, path: PathBuf::from("kernel.rs"), text: text.to_string() }
}

#[test]
fn a_compiler_that_cannot_work_here_says_nothing_of_the_text() {
    let Some(place) = Place::new() else { return };
    let toolchain = Toolchain::prepare(root()).expect("what hand-ins use");
    let broken = kernel("fn broken( {");
    let limits = TimeLimits::default();
    let failure = scratch::build(&toolchain, &place.cage, &broken, limits).expect_err("it does not compile");
    assert!(matches!(failure, ScratchError::HandIn(_)), "{failure:?}");
    // As when somebody cleans up while hand-ins are graded: rustc then names a line of the text.
    let mut without = toolchain.clone();
    without.crates.named[0].1 = place.folder.path().join("libptx.rlib");
    let right = kernel(&fs::read_to_string(root().join("solutions/src/step01.rs")).expect("a solution"));
    for text in [&right, &broken] {
        let failure = scratch::build(&without, &place.cage, text, limits).expect_err("there is no crate");
        assert!(
            matches!(&failure, ScratchError::Here(why) if why.contains("not on this hand-in alone")),
            "{failure:?}"
        );
    }
    let without = Toolchain { scratch: place.folder.path().join("none"), ..toolchain };
    let failure = scratch::build(&without, &place.cage, &right, limits).expect_err("there is no folder");
    assert!(matches!(failure, ScratchError::Here(_)), "{failure:?}");
}

/// What the compiler sees of its own folder.
#[test]
fn the_compiler_sees_what_it_needs_and_no_more() {
    let toolchain = Toolchain::prepare(root()).expect("what hand-ins use");
    let usr = tempfile::tempdir().expect("a folder");
    for folder in ["bin", "lib/rustlib", "lib/python3", "share/secrets", "src", "local"] {
        fs::create_dir_all(usr.path().join(folder)).expect("a folder");
    }
    for file in ["bin/rustc", "bin/other", "lib/librustc_driver-1.so", "lib/libLLVM.so.21.1-rust", "lib/notes.some"] {
        fs::write(usr.path().join(file), "").expect("written");
    }
    let seen = |sysroot: &Path| {
        let toolchain = Toolchain { sysroot: sysroot.to_path_buf(), ..toolchain.clone() };
        let mut seen = toolchain.compiler().expect("it can be read");
        seen.sort();
        seen
    };
    let needed = ["bin/rustc", "lib/libLLVM.so.21.1-rust", "lib/librustc_driver-1.so", "lib/rustlib"];
    assert_eq!(seen(usr.path()), needed.map(|path| usr.path().join(path)));
    assert!(!seen(&toolchain.sysroot).contains(&toolchain.sysroot));
}

/// Being graded, and ended with the test.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A hand-in whose kernel function sleeps.
fn sleeper(folder: &Path) -> Sleeper {
    fs::write(
        folder.join("step01.rs"),
        "pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) { std::thread::sleep(std::time::Duration::from_secs(900)) }\n",
    )
    .expect("written");
    let mut grade = Command::new(GRADER);
    grade.arg("grade").arg(folder).current_dir(root()).stdout(Stdio::null()).stderr(Stdio::null());
    Sleeper(grade.spawn().expect("it starts"))
}

#[test]
fn a_grader_that_is_killed_leaves_nothing() {
    if Place::new().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut grader = sleeper(folder.path());
    let number = grader.0.id().to_string();
    // Its sandbox names it, and is above the program that sleeps in it, whose own words are the same in every run.
    let parent = format!("\"parent\":{number},");
    let asked = || running(&parent).into_iter().find(|(_, line)| line.contains("\"job\":\"Program\""));
    until("the kernel is not built", || asked().is_some());
    let (sandbox, line) = asked().expect("it runs");
    let scratch = line.split("\"outside\":\"").nth(1).and_then(|rest| rest.split("/program\"").next());
    let scratch = PathBuf::from(scratch.expect("the program's folder"));
    let inside = format!("{HAND_IN} --emit {WORK}");
    let above = |process: u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok())
    };
    let program = || running(&inside).into_iter().find(|(process, _)| above(*process) == Some(sandbox));
    until("the program is not started", || program().is_some());
    let (program, _) = program().expect("it runs");
    grader.0.kill().expect("SIGKILL");
    grader.0.wait().expect("ended");
    let ended = || running(&inside).iter().all(|(process, _)| *process != program);
    until("something goes on without its grader", || ended() && running(&parent).is_empty());
    // What it left on the disk goes with the next one, of this test or of another.
    let place = Place::new().expect("as before");
    let toolchain = Toolchain::prepare(root()).expect("what hand-ins use");
    let built = scratch::build(&toolchain, &place.cage, &kernel("fn broken( {"), TimeLimits::default());
    assert!(built.is_err());
    assert!(!scratch.exists(), "{} is left", scratch.display());
}

/// An assembler that does not end is ended with the grader that asked it, and its text goes, too: whether that is killed while the assembler
/// works, or before all else, by its first line.
#[test]
fn a_grader_that_is_killed_takes_its_assembler_with_it() {
    let text = fs::read_to_string(root().join("solutions/src/step01.rs")).expect("a solution");
    for first in ["", "kill -KILL $PPID"] {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["hand-in", "temporary"] {
            fs::create_dir(at(name)).expect("a folder");
        }
        fs::write(at("hand-in/step01.rs"), &text).expect("written");
        let script = format!(
            "#!/bin/sh\ncase $1 in --version) exit;; esac\n{first}\ntrap '' TERM\n: > {}\nsleep 900\n",
            at("asked").display()
        );
        fs::write(at("ptxas"), script).expect("written");
        fs::set_permissions(at("ptxas"), fs::Permissions::from_mode(0o755)).expect("set");
        let mut grade = Command::new(GRADER);
        grade.args(["grade", "--trust"]).arg(at("hand-in")).current_dir(root()).env("PTXAS", at("ptxas"));
        grade.env("TMPDIR", at("temporary")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut grader = Sleeper(grade.spawn().expect("it starts"));
        let text = || {
            fs::read_dir(at("temporary"))
                .into_iter()
                .flatten()
                .flatten()
                .any(|entry| entry.path().join("kernel.ptx").is_file())
        };
        if first.is_empty() {
            until("the assembler is not asked", || at("asked").is_file());
            assert!(text() && !running(&at("ptxas").display().to_string()).is_empty(), "it is asked about a text");
            grader.0.kill().expect("SIGKILL");
        }
        assert_eq!(grader.0.wait().expect("ended").signal(), Some(9));
        until("the assembler goes on", || running(&at("ptxas").display().to_string()).is_empty());
        until("its text is there yet", || !text());
    }
}

#[test]
fn the_grader_says_whose_fault_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let graded = |hand_in: &Path, temporary: Option<&Path>| {
        let mut command = Command::new(GRADER);
        command.arg("grade").arg(hand_in).args(["--format", "json"]).current_dir(root());
        if let Some(temporary) = temporary {
            command.env("TMPDIR", temporary);
        }
        let output = command.output().expect("it starts");
        let why = not_graded::parse(&output.stdout);
        (output.status.code(), why, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, why, said) = graded(folder.path(), None);
    assert_eq!((status, why.map(|why| why.fault)), (Some(2), Some(Fault::HandIn)), "{said}");
    fs::write(folder.path().join("step01.rs"), "fn broken( {").expect("written");
    // A folder for temporary files that there is not: nothing can be locked in.
    let (status, why, said) = graded(folder.path(), Some(&folder.path().join("none")));
    assert_eq!((status, why.map(|why| why.fault)), (Some(2), Some(Fault::Here)), "{said}");
}

/// Two at once would compile into one folder.
#[test]
fn a_grader_waits_for_another_that_compiles_what_all_use_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("step01.rs"), "fn broken( {").expect("written");
    Toolchain::prepare(root()).expect("what hand-ins use");
    let path = root().join("target/grader/lock");
    let lock = fs::File::options().write(true).open(&path).expect("the lock");
    lock.lock().expect("it is free soon");
    let mut command = Command::new(GRADER);
    command.args(["grade", "--trust"]).arg(folder.path()).current_dir(root());
    let mut grader = Sleeper(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts"));
    let said = BufReader::new(grader.0.stderr.take().expect("a pipe")).lines();
    let told = said.map_while(Result::ok).find(|line| line.contains("waiting for another grader"));
    assert!(told.is_some_and(|line| line.contains(&path.display().to_string())), "it does not say that it waits");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(grader.0.try_wait().expect("asked"), None, "it did not wait");
    drop(lock);
    until("it waits for nobody", || grader.0.try_wait().expect("asked").is_some_and(|status| status.code() == Some(1)));
}
