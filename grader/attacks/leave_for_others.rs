// family: results of others
// expect: panicked
// says: held

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let places = [
        "/dev/shm/note", "/dev/mqueue/note", "/tmp/note", "/var/tmp/note", "/run/note", "/run/lock/note", "/hand-in-scratch/../note",
        "/proc/self/oom_score_adj", "/proc/self/comm", "/proc/self/fd/3", "/proc/sysrq-trigger", "/sys/fs/cgroup/cgroup.procs",
        "/usr/lib/note", "/dev/null", "/dev/zero",
    ];
    for place in places {
        assert!(std::fs::write(place, "note").is_err(), "escaped: {place}");
    }
    // A link leads where it may not write, either.
    assert!(std::os::unix::fs::symlink("/usr/lib/note", "/hand-in-scratch/link").is_err(), "escaped: a link");
    panic!("held")
}
