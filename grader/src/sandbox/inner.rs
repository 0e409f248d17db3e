//! Gives up all rights, step by step, and becomes the program.

use super::spec::{PROC, WORK};
use super::{Enforced, Job, Limits, Spec, account, calls, outer, raw, site};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::process::{Rlimit, Signal, pivot_root, set_parent_process_death_signal, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, Gid, Uid, UnshareFlags, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{Read, Write, stdin};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// What this process says to the one outside, before it becomes the program.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// All is as it must be; next is the program.
    Prepared(Enforced),
    /// It is not, or the program cannot be started.
    Failed(String),
}

/// Becomes the program. What is in its way is said to the process outside.
///
/// The pipe to it comes as the standard input, and is closed when the program takes over: whatever that is, it says nothing there.
pub(super) fn become_program(arguments: &[OsString]) -> Result<ExitCode, String> {
    let channel = stdin().as_fd().try_clone_to_owned().map_err(|error| failed("keep the pipe", &error))?;
    let mut channel = File::from(channel);
    let nothing = File::open("/dev/null").map_err(|error| failed("open /dev/null", &error))?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed("close the standard input", &error))?;
    let error = match prepare(arguments) {
        Ok((spec, enforced)) => {
            // Who was outside may have ended before this process was bound to it: then nobody reads, and this fails.
            say(&mut channel, &Word::Prepared(enforced))?;
            if spec.job == Job::Probe {
                return Ok(ExitCode::SUCCESS);
            }
            let mut command = Command::new(&spec.program);
            command.args(&spec.arguments).args(&spec.without_proc);
            format!("cannot start {}: {}", spec.program.display(), exec(command))
        }
        Err(error) => error,
    };
    say(&mut channel, &Word::Failed(error))?;
    Ok(ExitCode::from(super::NO_SANDBOX))
}

/// Becomes the program; gives why not. A thread that has ended may count for a moment yet: then there is one process too many.
fn exec(mut command: Command) -> std::io::Error {
    const TRIES: u32 = 100;
    for _ in 0..TRIES {
        let error = command.exec();
        if error.kind() != std::io::ErrorKind::WouldBlock {
            return error;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    command.exec()
}

fn say(channel: &mut File, word: &Word) -> Result<(), String> {
    let mut line = serde_json::to_string(word).map_err(|error| error.to_string())?;
    line.push('\n');
    channel.write_all(line.as_bytes()).map_err(|error| failed("reach the process outside", &error))
}

/// What was said, to its end: that all is prepared and the program runs, or why not.
pub(super) fn listen(channel: impl Read) -> Result<Enforced, String> {
    const MOST: u64 = 64 << 10;
    let mut text = String::new();
    channel.take(MOST).read_to_string(&mut text).map_err(|error| failed("hear the process inside", &error))?;
    let mut prepared = Err("the sandbox was ended before all rights were given up".to_string());
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Word::Prepared(enforced)) => prepared = Ok(enforced),
            Ok(Word::Failed(why)) => return Err(why),
            Err(error) => return Err(failed("understand the process inside", &error)),
        }
    }
    prepared
}

fn prepare(arguments: &[OsString]) -> Result<(Spec, Enforced), String> {
    let mut spec = Spec::from_arguments(arguments)?;
    if enter(&spec)? {
        spec.without_proc.clear();
    }
    raw::close_files_on_exec().map_err(|error| failed("close the grader's files", &error))?;
    if let Some(first) = spec.account {
        let account = account::unused(first)?;
        std::os::unix::fs::chown(WORK, Some(account), Some(account))
            .map_err(|error| failed("give the scratch folder to the program's account", &error))?;
        spec.account = Some(account);
    }
    limit(&spec.limits)?;
    drop_rights(&spec)?;
    // After the change of rights, which would forget it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| failed("be bound to the grader", &error))?;
    let landlock = landlock(&spec).map_err(|error| failed("use landlock", &error))?;
    calls::filter(spec.job)?;
    let identity = if spec.account.is_some() { "account of its own" } else { "user namespace" };
    let mut enforced = Enforced {
        namespaces: spec.namespaces.clone(),
        identity: identity.to_string(),
        seccomp: true,
        landlock: landlock.to_string(),
        process_limit: spec.process_limit,
        holes: Vec::new(),
    };
    if spec.job == Job::Probe {
        enforced.holes = holes();
    } else {
        as_required(&enforced, spec.required.as_ref())?;
    }
    Ok((spec, enforced))
}

/// Whether this run has all that the probe had: what worked once may fail now, for want of memory or of namespaces.
fn as_required(enforced: &Enforced, required: Option<&Enforced>) -> Result<(), String> {
    let missing = enforced.missing();
    if !missing.is_empty() {
        return Err(format!("this run could not be locked in: {}", missing.join("; ")));
    }
    match required {
        Some(required) if required == enforced => Ok(()),
        Some(required) => Err(format!("this run could not be locked in as the probe was: {enforced}; not {required}")),
        None => Err("nothing says how this run must be locked in".to_string()),
    }
}

fn failed(what: &str, error: &dyn Display) -> String {
    format!("cannot {what}: {error}")
}

/// The stage becomes all that there is. Gives whether the compiler sees its processes.
fn enter(spec: &Spec) -> Result<bool, String> {
    raw::unshare(UnshareFlags::NEWNS).map_err(|error| failed("take a mount namespace", &error))?;
    // A linker asks where it lies. A container may forbid it; then another linker is taken.
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let proc = outer::inside(&spec.stage, Path::new(PROC));
    let seen = spec.job == Job::Compiler && mount(c"proc", proc, c"proc", flags, c"subset=pid").is_ok();
    std::env::set_current_dir(&spec.stage).map_err(|error| failed("enter the stage", &error))?;
    // The old root lands on top of the new one, and is taken off.
    pivot_root(".", ".").map_err(|error| failed("change the root", &error))?;
    unmount(".", UnmountFlags::DETACH).map_err(|error| failed("leave the old root", &error))?;
    std::env::set_current_dir("/").map_err(|error| failed("enter the new root", &error))?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount_remount("/", flags, c"").map_err(|error| failed("make the root read-only", &error))?;
    let folder = if spec.folder.as_os_str().is_empty() { Path::new(WORK) } else { &spec.folder };
    // As root of a namespace it may enter what the program's account may not: the program will see.
    std::env::set_current_dir(folder).map_err(|error| failed(&format!("enter {}", folder.display()), &error))?;
    Ok(seen)
}

fn limit(limits: &Limits) -> Result<(), String> {
    site::enough(std::slice::from_ref(limits))?;
    for (resource, most) in site::allowed(limits) {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| failed(&format!("limit {resource:?}"), &error))?;
    }
    Ok(())
}

fn drop_rights(spec: &Spec) -> Result<(), String> {
    let rights = |error: rustix::io::Errno| failed("give up rights", &error);
    for capability in CapabilitySet::all().iter() {
        // A kernel that does not know one cannot give it.
        match remove_capability_from_bounding_set(capability) {
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(rights(error)),
        }
    }
    clear_ambient_capability_set().map_err(rights)?;
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(bits).map_err(rights)?;
    if let Some(account) = spec.account {
        let (user, group) = (Uid::from_raw(account), Gid::from_raw(account));
        set_thread_groups(&[]).map_err(rights)?;
        set_thread_res_gid(group, group, group).map_err(rights)?;
        set_thread_res_uid(user, user, user).map_err(rights)?;
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none }).map_err(rights)?;
    set_no_new_privs(true).map_err(rights)
}

/// What the mount namespace gives, a second time: reading and running what is shown, writing in the scratch folder.
fn landlock(spec: &Spec) -> Result<&'static str, Box<dyn std::error::Error>> {
    // What was there when this was written; a kernel that knows less gives less, and says so.
    let abi = ABI::V6;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::from_read(abi)))?;
    let mut writes = AccessFs::from_write(abi);
    writes.remove(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock | AccessFs::IoctlDev);
    rules = rules.add_rule(PathBeneath::new(PathFd::new(WORK)?, writes | AccessFs::from_read(abi)))?;
    if spec.job == Job::Compiler {
        for device in ["/dev/null", "/dev/zero"] {
            rules = rules.add_rule(PathBeneath::new(PathFd::new(device)?, AccessFs::WriteFile))?;
        }
    }
    Ok(match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => "full",
        RulesetStatus::PartiallyEnforced => "partial",
        RulesetStatus::NotEnforced => "none",
    })
}

/// Tries to get out.
fn holes() -> Vec<String> {
    let mut found = Vec::new();
    let mut possible = |what: &str, done: bool| {
        if done {
            found.push(what.to_string());
        }
    };
    for path in ["/etc/passwd", "/proc/self/status", "/root", "/home", "/sys/kernel", "/dev/kmsg", "/tmp", "/var"] {
        possible(&format!("{path} exists"), Path::new(path).symlink_metadata().is_ok());
    }
    for folder in ["/", "/usr/lib", "/lib"] {
        possible(
            &format!("{folder} can be written to"),
            std::fs::write(Path::new(folder).join("probe.tmp"), "").is_ok(),
        );
    }
    possible("a socket", std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
    // The same system call makes processes.
    possible("a thread", std::thread::Builder::new().spawn(|| ()).is_ok());
    possible("a signal", rustix::process::test_kill_process(rustix::process::Pid::INIT).is_ok());
    possible("a mount", mount(c"probe", WORK, c"tmpfs", MountFlags::empty(), c"").is_ok());
    possible("another account", set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok());
    possible("a namespace", raw::unshare(UnshareFlags::NEWUSER).is_ok());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed() -> Enforced {
        Enforced {
            namespaces: ["mount", "pid", "network", "ipc", "uts", "cgroup"].map(str::to_string).to_vec(),
            identity: "account of its own".to_string(),
            seccomp: true,
            landlock: "full".to_string(),
            process_limit: true,
            holes: Vec::new(),
        }
    }

    #[test]
    fn a_run_with_less_than_the_probe_had_is_refused() {
        as_required(&probed(), Some(&probed())).expect("the same");
        as_required(&probed(), None).expect_err("nobody asked the probe");
        let less = [
            Enforced { namespaces: vec!["mount".to_string()], ..probed() },
            Enforced { namespaces: ["mount", "pid", "network", "ipc"].map(str::to_string).to_vec(), ..probed() },
            Enforced { identity: "user namespace".to_string(), ..probed() },
            Enforced { seccomp: false, ..probed() },
            Enforced { landlock: "partial".to_string(), ..probed() },
            Enforced { process_limit: false, ..probed() },
        ];
        for run in less {
            let why = as_required(&run, Some(&probed())).expect_err("it has less");
            assert!(why.starts_with("this run could not be locked in"), "{why}");
        }
    }

    #[test]
    fn only_who_was_prepared_and_did_not_fail_runs() {
        let said = |words: &[Word]| {
            let lines: Vec<String> = words.iter().map(|word| serde_json::to_string(word).unwrap()).collect();
            listen(lines.join("\n").as_bytes())
        };
        assert_eq!(said(&[Word::Prepared(probed())]), Ok(probed()));
        assert!(said(&[]).unwrap_err().contains("before all rights"));
        assert_eq!(said(&[Word::Failed("no pid".to_string())]), Err("no pid".to_string()));
        let exec = [Word::Prepared(probed()), Word::Failed("cannot start it".to_string())];
        assert_eq!(said(&exec), Err("cannot start it".to_string()));
        listen(&b"{\"prepa"[..]).expect_err("it was cut off");
    }
}
