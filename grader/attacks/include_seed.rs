// family: tricks of the build
// expect: panicked
// says: held

// The only processes that the compiler sees are its own.
const ENVIRONMENT: &str = include_str!("/proc/1/environ");

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    for name in ["HOME", "CARGO", "PTXAS", "USER", "SEED"] {
        assert!(!ENVIRONMENT.contains(name), "escaped: {ENVIRONMENT}");
    }
    panic!("held")
}
