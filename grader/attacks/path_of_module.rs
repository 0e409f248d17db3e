// family: tricks of the build
// expect: does-not-compile
// says: error

#[path = "/etc/passwd"]
mod accounts;
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
