//! Gives up all rights, step by step, and becomes the program.

use super::spec::{PROC, WORK};
use super::{BEGUN, Enforced, Job, Limits, Spec, calls, outer, raw};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{fcntl_dupfd_cloexec, write};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::process::{Resource, Rlimit, Signal, pivot_root, set_parent_process_death_signal, setrlimit};
use rustix::stdio::{dup2_stdin, stdin};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, Gid, Uid, UnshareFlags, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::ffi::OsString;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Becomes the program. Gives why it did not.
pub(super) fn become_program(arguments: &[OsString]) -> String {
    let outer = match channel() {
        Ok(outer) => outer,
        Err(error) => return failed("take what leads to the outer part", &error),
    };
    // The outer part reads it to its end; when that is gone, this part must not go on.
    let say = |text: &str| write(&outer, text.as_bytes()).map_err(|error| failed("tell the outer part", &error));
    let error = match prepare(arguments).and_then(|prepared| say(BEGUN).map(|_| prepared)) {
        Ok((spec, enforced)) if spec.job == Job::Probe => {
            println!("{}", serde_json::to_string(&enforced).unwrap_or_default());
            std::process::exit(0)
        }
        Ok((spec, _)) => {
            let mut command = Command::new(&spec.program);
            command.args(&spec.arguments).args(&spec.without_proc);
            format!("cannot start {}: {}", spec.program.display(), command.exec())
        }
        Err(error) => error,
    };
    // That it ends says it, too.
    let _ = say(&error);
    error
}

/// What leads to the outer part stands in for the standard input until here. It is closed when the program begins.
fn channel() -> rustix::io::Result<OwnedFd> {
    let outer = fcntl_dupfd_cloexec(stdin(), 3)?;
    let nothing = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&nothing)?;
    Ok(outer)
}

fn prepare(arguments: &[OsString]) -> Result<(Spec, Enforced), String> {
    let mut spec = Spec::from_arguments(arguments)?;
    if enter(&spec)? {
        spec.without_proc.clear();
    }
    raw::close_files_on_exec().map_err(|error| failed("close the grader's files", &error))?;
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
        return Ok((spec, enforced));
    }
    match enforced.missing().as_slice() {
        [] => Ok((spec, enforced)),
        missing => Err(missing.join("; ")),
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
    let all = [
        (Resource::Cpu, limits.cpu_seconds.max(1)),
        (Resource::As, limits.memory.max(64 << 20)),
        (Resource::Fsize, limits.scratch),
        (Resource::Nproc, limits.processes.max(1)),
        (Resource::Nofile, limits.files.max(16)),
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
    ];
    for (resource, most) in all {
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
