// family: tricks of the build
// expect: does-not-compile
// says: file not found for module

mod other;
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
