// family: tricks of the build
// expect: does-not-compile
// says: couldn't read

// Of the machine, its memory and its other processes: none of these is in the compiler's `/proc`.
const MEMORY: &[u8] = include_bytes!("/proc/kcore");
const MESSAGES: &[u8] = include_bytes!("/proc/kmsg");
const SETTINGS: &[u8] = include_bytes!("/proc/sys/kernel/random/boot_id");
const START: &[u8] = include_bytes!("/proc/cmdline");
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
