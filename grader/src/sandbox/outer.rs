//! Makes the place that a program is locked into, waits for it, and brings its results out.
//!
//! It stays outside: in the process namespace of the grader, where the program has no name for it, and with the grader's files. It
//! reads nothing that the program wrote, except to copy plain files of known names.

use super::spec::{LIBRARIES, PATH, PROC, TOOLS, WORK};
use super::{BEGUN, Cut, INNER, Job, Limits, Spec, Told, raw};
use rustix::fs::Mode;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount};
use rustix::param::clock_ticks_per_second;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getegid, geteuid, getppid, set_parent_process_death_signal, umask};
use rustix::thread::UnshareFlags;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Devices without a content.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/zero"];
/// Accounts that no system gives to anyone begin here; each sandbox takes the one of its process number.
const ACCOUNTS: u32 = 2_000_000_000;
/// What the tree of mount points may take.
const SKELETON_BYTES: u64 = 1 << 20;

/// Runs a program as the specification says, and tells how that went.
pub(super) fn run(spec: &Spec) -> Result<ExitCode, String> {
    let mut told = Told::default();
    let result = locked(spec, &mut told);
    told.failed = result.as_ref().err().cloned();
    if !spec.told.as_os_str().is_empty() {
        let text = serde_json::to_vec(&told).map_err(|error| error.to_string())?;
        fs::write(&spec.told, text).map_err(|error| format!("cannot write {}: {error}", spec.told.display()))?;
    }
    result
}

fn locked(spec: &Spec, told: &mut Told) -> Result<ExitCode, String> {
    let mut spec = spec.clone();
    let input = match &spec.input {
        Some((path, name)) => Some((fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?, name)),
        None => None,
    };
    let user = geteuid();
    (spec.account, spec.namespaces) = isolate()?;
    spec.process_limit = spec.account.is_some() || !user.is_root();
    // Folders on the way to what is shown must be open to the program's account.
    umask(Mode::from_raw_mode(0o022));
    // Later than `isolate`: a change of rights forgets it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| format!("cannot be bound to the grader: {e}"))?;
    // It may have gone before that.
    if getppid().map(Pid::as_raw_nonzero).map(|id| id.get().unsigned_abs()) != Some(spec.grader) {
        return Err("the grader that wanted this has gone".to_string());
    }
    // As the probe did: what it found missing is missing here.
    if spec.job != Job::Probe && !spec.process_limit {
        return Err("no limit on processes: this account is root, and may not give a program another".to_string());
    }
    fs::create_dir(&spec.stage).map_err(|error| format!("cannot make {}: {error}", spec.stage.display()))?;
    furnish(&spec)?;
    let work = inside(&spec.stage, Path::new(WORK));
    if let Some((content, name)) = input {
        let path = work.join(name);
        fs::write(&path, content).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).map_err(|error| error.to_string())?;
    }
    let status = start(&spec, told)?;
    for output in &spec.outputs {
        let taken = bring_out(&work.join(&output.name), &output.to, spec.limits.scratch)
            .map_err(|error| format!("cannot write {}: {error}", output.to.display()))?;
        if let Taken::Refused(why) = taken {
            eprintln!("sandbox: {} was not taken: {why}", output.name);
        }
    }
    Ok(ended(status))
}

/// Namespaces of its own. As root with an account of its own; else in a user namespace, where this account is root.
fn isolate() -> Result<(Option<u32>, Vec<String>), String> {
    let spaces = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    let mut names: Vec<String> = ["mount", "pid", "network", "ipc", "uts", "cgroup"].map(str::to_string).to_vec();
    let (user, group) = (geteuid(), getegid());
    if user.is_root() && raw::unshare(spaces).is_ok() {
        return Ok((Some(ACCOUNTS + std::process::id() % 100_000_000), names));
    }
    raw::unshare(UnshareFlags::NEWUSER | spaces).map_err(|error| {
        format!("no namespaces: {error} (user namespaces are switched off, or a container forbids them)")
    })?;
    names.push("user".to_string());
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| format!("no user namespace: cannot write {file}: {error}"))
    };
    write("/proc/self/setgroups", "deny".to_string())?;
    write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))?;
    Ok((None, names))
}

/// Puts the file system together that the program will see, below the stage.
fn furnish(spec: &Spec) -> Result<(), String> {
    let failed =
        |what: &str, path: &Path, error: &dyn std::fmt::Display| format!("cannot {what} {}: {error}", path.display());
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| failed("keep to itself", Path::new("/"), &error))?;
    scratch(&spec.stage, SKELETON_BYTES, 0o755, None)?;
    let tools: &[&str] = if spec.job == Job::Compiler { &TOOLS } else { &[] };
    let devices: &[&str] = if spec.job == Job::Compiler { &DEVICES } else { &[] };
    let system = LIBRARIES.iter().chain(tools).chain(devices).map(PathBuf::from);
    let mut shown = Vec::new();
    for path in system.chain(spec.shown.iter().cloned()) {
        let Ok(about) = path.symlink_metadata() else { continue };
        let at = inside(&spec.stage, &path);
        if at.symlink_metadata().is_ok_and(|there| there.is_symlink()) {
            continue;
        }
        let parent = at.parent().unwrap_or(&spec.stage);
        fs::create_dir_all(parent).map_err(|error| failed("make", parent, &error))?;
        if about.is_symlink() {
            let target = fs::read_link(&path).map_err(|error| failed("read", &path, &error))?;
            std::os::unix::fs::symlink(target, &at).map_err(|error| failed("link", &at, &error))?;
            continue;
        }
        // It may be there already, in a folder that is shown.
        if at.symlink_metadata().is_err() {
            let made = if about.is_dir() { fs::create_dir(&at) } else { File::create(&at).map(drop) };
            made.map_err(|error| failed("make", &at, &error))?;
        }
        mount_bind_recursive(&path, &at).map_err(|error| failed("show", &path, &error))?;
        shown.push(at);
    }
    let owner = spec.account;
    let work = inside(&spec.stage, Path::new(WORK));
    for folder in [&work, &inside(&spec.stage, Path::new(PROC))] {
        fs::create_dir(folder).map_err(|error| failed("make", folder, &error))?;
    }
    for at in &shown {
        read_only(at)?;
    }
    scratch(&work, spec.limits.scratch.max(SKELETON_BYTES), 0o700, owner)
}

/// A file system in memory, of a limited size.
fn scratch(at: &Path, bytes: u64, mode: u32, owner: Option<u32>) -> Result<(), String> {
    let owner = owner.map(|id| format!(",uid={id},gid={id}")).unwrap_or_default();
    // A file needs a page, whatever it holds.
    let text = format!("size={bytes},nr_inodes={},mode={mode:o}{owner}", (bytes >> 12).max(1024));
    let options = CString::new(text).map_err(|error| error.to_string())?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(c"sandbox", at, c"tmpfs", flags, options.as_c_str())
        .map_err(|error| format!("cannot mount a scratch file system at {}: {error}", at.display()))
}

/// Makes a mount, and all mounts in it, read-only. Options that they have are kept: without that a user namespace may not.
fn read_only(at: &Path) -> Result<(), String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| format!("cannot read mounts: {error}"))?;
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (Some(path), Some(options)) = (fields.get(4), fields.get(5)) else { continue };
        let path = PathBuf::from(unescaped(path));
        if !path.starts_with(at) {
            continue;
        }
        let mut flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID;
        for option in options.split(',') {
            flags |= match option {
                "nodev" => MountFlags::NODEV,
                "noexec" => MountFlags::NOEXEC,
                "noatime" => MountFlags::NOATIME,
                "nodiratime" => MountFlags::NODIRATIME,
                "relatime" => MountFlags::RELATIME,
                _ => MountFlags::empty(),
            };
        }
        mount_remount(&path, flags, c"")
            .map_err(|error| format!("cannot make {} read-only: {error}", path.display()))?;
    }
    Ok(())
}

/// A path of the list of mounts, in which blanks are `\040`.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_string(), |text, (code, sign)| text.replace(code, sign))
}

pub(super) fn inside(stage: &Path, path: &Path) -> PathBuf {
    stage.join(path.strip_prefix("/").unwrap_or(path))
}

/// Starts the part that becomes the program, the first process of the process namespace, and waits for its end.
fn start(spec: &Spec, told: &mut Told) -> Result<ExitStatus, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot start the program: {error}");
    // By this the inner part says how far it came. The program does not get it.
    let (from_inner, to_outer) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(&error))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(INNER).arg(spec.to_json()).env_clear().stdin(Stdio::from(to_outer));
    command.envs([("PATH", PATH), ("LC_ALL", "C"), ("TMPDIR", WORK)]).envs(spec.environment.iter().cloned());
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    drop(command);
    let mut said = String::new();
    // It ends when the program has begun, or the inner part is gone.
    File::from(from_inner).read_to_string(&mut said).map_err(|error| failed(&error))?;
    let (status, cut) = watch(&mut child, &spec.limits).map_err(|error| format!("cannot wait for it: {error}"))?;
    (told.signal, told.cut, told.cpu_seconds) = (status.signal(), cut, cpu_seconds_of_children());
    match said.strip_prefix(BEGUN) {
        Some("") => Ok(status),
        // A hand-in may make something that is no program.
        Some(error) if spec.job == Job::Program => {
            eprintln!("sandbox: {error}");
            Ok(status)
        }
        Some(error) => Err(error.to_string()),
        None if said.is_empty() => Err(failed(&format!("it ended before it had begun ({status})"))),
        None => Err(said),
    }
}

/// Waits for a program, and ends it when it sleeps for too long, or takes far too long.
fn watch(child: &mut Child, limits: &Limits) -> io::Result<(ExitStatus, Option<Cut>)> {
    let (begin, mut asleep, mut pause) = (Instant::now(), Duration::ZERO, Duration::from_millis(1));
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, None));
        }
        let sleeps = limits.asleep_seconds > 0 && is_asleep(child.id());
        asleep += if sleeps { pause } else { Duration::ZERO };
        let cut = match limits {
            Limits { asleep_seconds, .. } if sleeps && asleep.as_secs() >= *asleep_seconds => Some(Cut::Asleep),
            Limits { wall_seconds, .. } if *wall_seconds > 0 && begin.elapsed().as_secs() >= *wall_seconds => {
                Some(Cut::Late)
            }
            _ => None,
        };
        if cut.is_some() {
            child.kill()?;
            return Ok((child.wait()?, cut));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Whether a process waits for something, rather than for a processor.
fn is_asleep(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may hold anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

/// CPU time of all children that have ended, and of theirs.
fn cpu_seconds_of_children() -> f64 {
    const USER_AND_SYSTEM: std::ops::Range<usize> = 13..15;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect()).unwrap_or_default();
    let ticks: u64 =
        fields.get(USER_AND_SYSTEM).into_iter().flatten().filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / clock_ticks_per_second() as f64
}

/// What came of a file that is to be brought out.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Yes,
    NotThere,
    /// It is no plain file, or too large.
    Refused(String),
}

/// Copies a plain file out of the scratch folder. An error is this machine's: it could not be written.
fn bring_out(from: &Path, to: &Path, most: u64) -> io::Result<Taken> {
    // Neither a link is followed nor a pipe waited for.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(from) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Taken::NotThere),
        Err(error) => return Ok(Taken::Refused(error.to_string())),
    };
    match file.metadata() {
        Ok(about) if about.is_file() && about.len() <= most => {}
        _ => return Ok(Taken::Refused(format!("it is not a plain file of at most {most} bytes"))),
    }
    let mut copy = File::create(to)?;
    io::copy(&mut file.take(most), &mut copy)?;
    copy.set_permissions(fs::Permissions::from_mode(0o755))?;
    Ok(Taken::Yes)
}

/// The program's exit status; of a signal, what it means here.
fn ended(status: ExitStatus) -> ExitCode {
    const SIGNALLED: u8 = 128;
    if let Some(signal) = status.signal() {
        let why = match signal {
            libc::SIGXCPU => ": its CPU time was used up",
            libc::SIGXFSZ => ": a file became too large",
            libc::SIGSYS => ": it made a system call that is not allowed",
            // The hard limit of CPU time, the kernel short of memory, or the grader.
            libc::SIGKILL => ": its CPU time or its memory was used up",
            libc::SIGSEGV => ": it used memory that it does not have, or its stack was used up",
            libc::SIGABRT => ": it gave up",
            _ => "",
        };
        eprintln!("sandbox: the program was ended by signal {signal}{why}");
        return ExitCode::from(u8::try_from(signal).map_or(u8::MAX, |signal| SIGNALLED.saturating_add(signal)));
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sleeps_is_told_from_who_works() {
        let run = |script: &str, limits: Limits| {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            let (status, cut) = watch(&mut child, &limits).unwrap();
            (status.success(), cut)
        };
        let limits = Limits { asleep_seconds: 1, wall_seconds: 3, ..Limits::default() };
        assert_eq!(run("exec sleep 60", limits), (false, Some(Cut::Asleep)));
        // The state that it is in while it has work: one that is starved of processors looks the same.
        assert_eq!(run("while :; do :; done", limits), (false, Some(Cut::Late)));
        assert_eq!(run("sleep 0.1", limits), (true, None));
        assert!(cpu_seconds_of_children() > 1.0, "{}", cpu_seconds_of_children());
    }

    #[test]
    fn only_plain_files_of_the_right_size_are_brought_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("plain"), "12345678").unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("plain"), at("link")).unwrap();
        // A pipe without a writer: who waits for it waits for ever.
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["folder", "link", "pipe"] {
            assert!(matches!(bring_out(&at(name), &at("out"), 8), Ok(Taken::Refused(_))), "{name}");
            assert!(!at("out").exists(), "{name}");
        }
        assert_eq!(bring_out(&at("missing"), &at("out"), 8).unwrap(), Taken::NotThere);
        assert!(matches!(bring_out(&at("plain"), &at("out"), 7), Ok(Taken::Refused(_))), "it is too large");
        // What cannot be written is this machine's fault, not the program's.
        bring_out(&at("plain"), &at("folder"), 8).expect_err("a folder is there");
        assert_eq!(bring_out(&at("plain"), &at("out"), 8).unwrap(), Taken::Yes);
        assert_eq!(fs::read_to_string(at("out")).unwrap(), "12345678");
    }
}
