//! What the site allows the grader itself. A program inherits it, and cannot be allowed more.

use super::Limits;
use rustix::process::{Resource, getrlimit};

/// The process outside ends a program whose CPU time is used up, and says so. The kernel does if that comes too late, or for a process
/// that the program started; it counts in another way, which differs by a few percent, and does not say why.
const SPARE_CPU_SECONDS: u64 = 5;

/// What a program is allowed of each thing that the kernel counts: as much, and no more.
pub(super) fn allowed(limits: &Limits) -> [(Resource, u64); 8] {
    [
        (Resource::Cpu, limits.cpu_seconds.max(1) + SPARE_CPU_SECONDS),
        (Resource::As, limits.memory.max(64 << 20)),
        (Resource::Fsize, limits.scratch),
        (Resource::Nproc, limits.processes.max(1)),
        (Resource::Nofile, limits.files.max(16)),
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
    ]
}

/// Refuses where the hard limits of this process are lower than what one of these needs. Less would be another verdict on whoever needs what is
/// between.
///
/// # Errors
/// Each that is, what is needed, and the way out.
pub(super) fn enough(all: &[Limits]) -> Result<(), String> {
    let own = |resource| getrlimit(resource).maximum;
    let low: Vec<String> =
        lower(all, own).into_iter().map(|(resource, needed, own)| said(resource, needed, own)).collect();
    if low.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the hard limits of the grader itself are lower than what a hand-in is allowed: {}\n  \
         try: Raise them where the grader is started: in a shell of root (`ulimit`), for an account (/etc/security/limits.conf), for a service \
         (`LimitAS=` and the like), or for a container (`docker run --ulimit`).",
        low.join("; ")
    ))
}

/// What is lower, with what is needed and what there is.
fn lower(all: &[Limits], own: impl Fn(Resource) -> Option<u64>) -> Vec<(Resource, u64, u64)> {
    let needed = |at: usize| all.iter().map(|limits| allowed(limits)[at]).max_by_key(|(_, most)| *most);
    let each = (0..allowed(&Limits::default()).len()).filter_map(needed);
    each.filter_map(|(resource, most)| own(resource).filter(|own| *own < most).map(|own| (resource, most, own)))
        .collect()
}

fn said(resource: Resource, needed: u64, own: u64) -> String {
    let (what, option, unit) = match resource {
        Resource::Cpu => ("s of CPU time", "-t", 1),
        Resource::As => ("KiB of address space", "-v", 1 << 10),
        Resource::Fsize => ("KiB of a file", "-f", 1 << 10),
        Resource::Nproc => ("processes of one account", "-u", 1),
        Resource::Nofile => ("open files", "-n", 1),
        // Of the others a program is allowed none, which is never more than there is.
        _ => ("of something else", "-a", 1),
    };
    format!("{} {what} (`ulimit -H {option}`), needed are {}", own / unit, needed.div_ceil(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lower_than_the_larger_of_two_is_named() {
        let both = [Limits::PROGRAM, Limits::COMPILER];
        assert_eq!(lower(&both, |_| None), []);
        // As much as is needed, and one less.
        let needed =
            |resource| allowed(&Limits::COMPILER).into_iter().find(|(one, _)| *one == resource).map(|one| one.1);
        assert_eq!(lower(&both, needed), []);
        let low = lower(&both, |resource| needed(resource).map(|most| most.saturating_sub(1)));
        let said: Vec<String> = low.into_iter().map(|(resource, needed, own)| said(resource, needed, own)).collect();
        let expected = [
            "124 s of CPU time (`ulimit -H -t`), needed are 125",
            "4194303 KiB of address space (`ulimit -H -v`), needed are 4194304",
            "262143 KiB of a file (`ulimit -H -f`), needed are 262144",
            "63 processes of one account (`ulimit -H -u`), needed are 64",
            "255 open files (`ulimit -H -n`), needed are 256",
        ];
        assert_eq!(said, expected);
    }
}
