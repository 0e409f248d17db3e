// family: tricks of the build
// expect: does-not-compile
// says: error

#![allow(unsafe_code)]
#![feature(core_intrinsics)]
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
