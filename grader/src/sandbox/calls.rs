//! Which system calls are left.
//!
//! A stranger's program builds a text and writes a file: it gets a list of what that needs, and everything else fails with EPERM. The
//! compiler runs no stranger's code; it gets everything except what reaches out of a sandbox.

use super::Job;
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};
use std::collections::BTreeMap;

/// What a program that builds a text needs. No process, no thread, no socket, no signal to another.
const PROGRAM: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mkdirat,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_prlimit64,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_renameat2,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    // A process sends itself a signal to abort; there is no other process in its namespace.
    libc::SYS_tgkill,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
];

/// The same under their names of old.
#[cfg(target_arch = "x86_64")]
const PROGRAM_OF_OLD: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_stat,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const PROGRAM_OF_OLD: &[c_long] = &[];

/// What reaches out of a sandbox, or into the kernel's less tried parts. Not `socketpair`: both ends are its own, and Rust starts processes with one.
const NOT_FOR_COMPILERS: &[c_long] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bind,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_connect,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_listen,
    libc::SYS_memfd_secret,
    libc::SYS_mknodat,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_seccomp,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_socket,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// The same under their names of old, and what only this architecture has.
#[cfg(target_arch = "x86_64")]
const NOT_FOR_COMPILERS_OF_OLD: &[c_long] =
    &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_mknod, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS__sysctl];
#[cfg(not(target_arch = "x86_64"))]
const NOT_FOR_COMPILERS_OF_OLD: &[c_long] = &[];

/// All that a compiler is denied. The kernel may know a second set of numbers (x32): the same with this bit, and some of their own.
fn denied_to_compilers() -> Vec<c_long> {
    const X32: c_long = 0x4000_0000;
    const X32_OWN: std::ops::RangeInclusive<c_long> = 512..=547;
    let calls = [NOT_FOR_COMPILERS, NOT_FOR_COMPILERS_OF_OLD].concat();
    if cfg!(target_arch = "x86_64") {
        let others = calls.iter().copied().chain(X32_OWN).map(|call| X32 + call);
        // Processes and namespaces: a compiler has no use for them by these numbers.
        let processes = [libc::SYS_clone, libc::SYS_clone3].map(|call| X32 + call);
        return calls.iter().copied().chain(others).chain(processes).collect();
    }
    calls
}

/// Leaves this process, and what it becomes, the calls of a job.
pub(super) fn filter(job: Job) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("the filter of system calls cannot be set: {error}");
    let programs = programs(job).map_err(|error| failed(&error))?;
    // In this order: the last one forbids the call that sets them.
    for program in &programs {
        apply_filter(program).map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn programs(job: Job) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let denied = |errno: libc::c_int| SeccompAction::Errno(errno.unsigned_abs());
    let arch = || std::env::consts::ARCH.try_into();
    let all = |calls: &[c_long]| calls.iter().map(|call| (*call, Vec::new())).collect::<BTreeMap<_, _>>();
    if job != Job::Compiler {
        let allowed = all(&[PROGRAM, PROGRAM_OF_OLD].concat());
        let filter = SeccompFilter::new(allowed, denied(libc::EPERM), SeccompAction::Allow, arch()?)?;
        return Ok(vec![filter.try_into()?]);
    }
    // Its flags lie in memory, where no filter sees them. Who is told that it does not exist takes `clone`.
    let clone3 = all(&[libc::SYS_clone3]);
    let clone3 = SeccompFilter::new(clone3, SeccompAction::Allow, denied(libc::ENOSYS), arch()?)?;
    let mut forbidden = all(&denied_to_compilers());
    let namespaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let mut rules = Vec::new();
    for flag in namespaces {
        let flag = u64::from(flag.unsigned_abs());
        let set = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?;
        rules.push(SeccompRule::new(vec![set])?);
    }
    forbidden.insert(libc::SYS_clone, rules);
    let forbidden = SeccompFilter::new(forbidden, SeccompAction::Allow, denied(libc::EPERM), arch()?)?;
    Ok(vec![clone3.try_into()?, forbidden.try_into()?])
}
