// family: tricks of the build
// expect: does-not-compile
// says: environment variable `HOME` not defined

const HOME: &str = env!("HOME");
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
