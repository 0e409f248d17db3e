// family: tricks of the build
// expect: does-not-compile
// says: can't find crate

extern crate harness;
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
