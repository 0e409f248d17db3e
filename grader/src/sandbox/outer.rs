//! Makes the place that a program is locked into, waits for it, and brings its results out.
//!
//! It stays outside: in the process namespace of the grader, where the program has no name for it, and with the grader's files. It
//! reads nothing that the program wrote, except to copy plain files of known names.

use super::report::{Channel, Reached, Report};
use super::spec::{LIBRARIES, PATH, PROC, TOOLS, WORK};
use super::{Enforced, INNER, Job, Limits, NO_SANDBOX, Spec, account, inner, raw};
use crate::children;
use rustix::fs::Mode;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount};
use rustix::process::{Signal, getegid, geteuid, getppid, set_parent_process_death_signal, umask};
use rustix::thread::UnshareFlags;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Devices without a content.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/zero"];
/// What the tree of mount points may take.
const SKELETON_BYTES: u64 = 1 << 20;

/// What making the place and bringing the results out may take, beside the program's own time.
const LAST: Duration = Duration::from_secs(30);

/// Runs a program as the specification says, and says how far it came. What fails on the way is this machine's.
pub(super) fn run(spec: &Spec) -> Result<ExitCode, String> {
    // Whatever hangs, a mount or this process, does not hang for ever; what is inside ends with this process.
    raw::end_after(Duration::from_secs(spec.limits.clock_seconds.max(1)) + LAST);
    let mut channel = Channel::open(&spec.report())?;
    let mut report = Report::default();
    channel.say(&report)?;
    let failed = locked(spec, &mut channel, &mut report).err();
    let well = failed.is_none();
    channel.say(&Report { failed, ..report })?;
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::from(NO_SANDBOX) })
}

fn locked(spec: &Spec, channel: &mut Channel, report: &mut Report) -> Result<(), String> {
    let mut spec = spec.clone();
    let input = match &spec.input {
        Some((path, name)) => Some((fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?, name)),
        None => None,
    };
    let user = geteuid();
    let has_accounts;
    (has_accounts, spec.namespaces) = isolate()?;
    spec.account = if has_accounts { Some(spec.account.map_or_else(account::draw, Ok)?) } else { None };
    spec.process_limit = spec.account.is_some() || !user.is_root();
    // Folders on the way to what is shown must be open to the program's account.
    umask(Mode::from_raw_mode(0o022));
    // Later than `isolate`: a change of rights forgets it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| format!("cannot be bound to the grader: {e}"))?;
    // It may have ended before this process was bound to it, and this process may be another's child by now.
    if getppid().map(|parent| parent.as_raw_nonzero().get().unsigned_abs()) != Some(spec.parent) {
        return Err("the grader has ended".to_string());
    }
    fs::create_dir(&spec.stage).map_err(|error| format!("cannot make {}: {error}", spec.stage.display()))?;
    furnish(&spec)?;
    let work = inside(&spec.stage, Path::new(WORK));
    if let Some((content, name)) = input {
        let path = work.join(name);
        fs::write(&path, content).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).map_err(|error| error.to_string())?;
    }
    report.reached = Reached::Entered;
    channel.say(report)?;
    let (begin, killed_before) = (Instant::now(), killed_for_memory());
    let (mut child, enforced) = start(&spec)?;
    report.enforced = Some(enforced);
    report.reached = Reached::Started;
    channel.say(report)?;
    let status =
        wait(&mut child, &spec.limits, report).map_err(|error| format!("cannot wait for the program: {error}"))?;
    report.seconds = begin.elapsed().as_secs_f64();
    report.cpu_seconds = raw::cpu_seconds_of_children().map_err(|e| format!("cannot tell the CPU time: {e}"))?;
    report.short_of_memory = killed_for_memory() > killed_before;
    report.code = status.and_then(|status| status.code());
    report.signal = status.and_then(|status| status.signal());
    // What a program leaves that did not end well is of no use.
    for output in spec.outputs.iter().filter(|_| report.code == Some(0)) {
        match bring_out(&work.join(&output.name), &output.to, spec.limits.scratch) {
            Ok(None) => report.brought_out.push(output.name.clone()),
            // That there is nothing to take says who looks for it.
            Ok(Some(why)) if why != MISSING => report.not_taken.push(format!("`{}` {why}", output.name)),
            Ok(Some(_)) => {}
            Err(error) => return Err(format!("cannot bring out {}: {error}", output.name)),
        }
    }
    report.reached = Reached::Ended;
    Ok(())
}

/// How many processes the kernel has ended for want of memory; 0 where it does not say.
fn killed_for_memory() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
}

/// Namespaces of its own, and whether there are accounts to give: as root; else it is a user namespace, where this account is root.
fn isolate() -> Result<(bool, Vec<String>), String> {
    let spaces = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    let mut names: Vec<String> = ["mount", "pid", "network", "ipc", "uts", "cgroup"].map(str::to_string).to_vec();
    let (user, group) = (geteuid(), getegid());
    if user.is_root() && raw::unshare(spaces).is_ok() {
        return Ok((true, names));
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
    Ok((false, names))
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
    let system = system.map(|path| (path.clone(), path, false));
    let ours = spec.shown.iter().map(|path| (path.clone(), path.clone(), true));
    let program = spec.outside.iter().map(|path| (path.clone(), spec.program.clone(), true));
    for (path, seen, needed) in system.chain(ours).chain(program) {
        let about = match path.symlink_metadata() {
            Ok(about) => about,
            // No system has all of them.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !needed => continue,
            Err(error) => return Err(failed("look at", &path, &error)),
        };
        let at = inside(&spec.stage, &seen);
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

/// Starts the part that becomes the program: the first process of the process namespace. Gives it when it has.
fn start(spec: &Spec) -> Result<(Child, Enforced), String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot start the program: {error}");
    let (hears, says) = io::pipe().map_err(|error| failed(&error))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(INNER).arg(spec.to_json()).env_clear().stdin(says);
    command.envs([("PATH", PATH), ("LC_ALL", "C"), ("TMPDIR", WORK)]).envs(spec.environment.iter().cloned());
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    // It holds the end of the pipe that is to be closed.
    drop(command);
    match inner::listen(hears) {
        Ok(enforced) => Ok((child, enforced)),
        Err(why) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(why)
        }
    }
}

/// Waits for the end of the program; `None`: its time was over, and it was ended, with all that it started. The report says which.
fn wait(child: &mut Child, limits: &Limits, report: &mut Report) -> io::Result<Option<ExitStatus>> {
    let (cpu, clock) =
        (Duration::from_secs(limits.cpu_seconds.max(1)), Duration::from_secs(limits.clock_seconds.max(1)));
    const LONGEST_PAUSE: Duration = Duration::from_millis(20);
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        report.cpu_ran_out = children::cpu_time(child.id()).is_some_and(|used| used >= cpu);
        report.clock_ran_out = !report.cpu_ran_out && begin.elapsed() >= clock;
        if report.cpu_ran_out || report.clock_ran_out {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Why nothing was copied: the program left nothing.
const MISSING: &str = "is not there";

/// Why what is there was not copied.
fn not_plain(most: u64) -> String {
    format!("is not a plain file of at most {} MiB", most >> 20)
}

/// Copies a plain file out of the scratch folder. Gives why there was nothing to copy; an error is this machine's.
fn bring_out(from: &Path, to: &Path, most: u64) -> io::Result<Option<String>> {
    // Neither a link is followed nor a pipe waited for.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(from) {
        Ok(file) => file,
        // Nothing, a link, or a socket: that is what the program left.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ELOOP | libc::ENXIO | libc::ENOTDIR)) =>
        {
            let missing = error.raw_os_error() == Some(libc::ENOENT);
            return Ok(Some(if missing { MISSING.to_string() } else { not_plain(most) }));
        }
        Err(error) => return Err(error),
    };
    let about = file.metadata()?;
    if !about.is_file() || about.len() > most {
        return Ok(Some(not_plain(most)));
    }
    let mut copy = File::create(to)?;
    io::copy(&mut file.take(most), &mut copy)?;
    copy.set_permissions(fs::Permissions::from_mode(0o755))?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_of_the_right_size_are_brought_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("plain"), "12345678").unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("plain"), at("link")).unwrap();
        // A pipe without a writer: who waits for it waits for ever.
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["folder", "link", "pipe", "missing"] {
            let why = bring_out(&at(name), &at("out"), 8).expect(name);
            assert!(why.is_some(), "{name}");
            assert!(!at("out").exists(), "{name}");
        }
        assert!(bring_out(&at("plain"), &at("out"), 7).unwrap().is_some(), "it is too large");
        assert_eq!(bring_out(&at("plain"), &at("out"), 8).unwrap(), None);
        assert_eq!(fs::read_to_string(at("out")).unwrap(), "12345678");
        // A place that cannot be written to is not the program's fault.
        bring_out(&at("plain"), &at("folder/no/out"), 8).expect_err("it cannot be written");
        if Path::new("/dev/full").exists() {
            bring_out(&at("plain"), Path::new("/dev/full"), 8).expect_err("the disk is full");
        }
    }
}
