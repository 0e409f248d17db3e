// family: tricks of the build
// expect: panicked
// says: held

// What is mounted says where things lie outside; it opens none of them.
const MOUNTS: &str = include_str!("/proc/self/mountinfo");

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    for line in MOUNTS.lines() {
        let place = line.split(' ').nth(3).unwrap_or_default();
        let own = place.contains("/hand-ins/");
        assert!(own || std::fs::read_dir(place).is_err() || place.starts_with("/usr") || place.starts_with("/lib") || place == "/", "escaped: {place}");
    }
    panic!("held")
}
