// family: tricks of the build
// expect: does-not-compile
// slow

const ZEROS: &[u8] = include_bytes!("/dev/zero");
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
