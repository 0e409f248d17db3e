// family: tricks of the build
// expect: does-not-compile
// says: couldn't read

include!("../../../../../../../harness/src/reference.rs");
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
