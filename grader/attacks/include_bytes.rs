// family: tricks of the build
// expect: does-not-compile
// says: couldn't read

const ACCOUNTS: &[u8] = include_bytes!("/etc/passwd");
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
