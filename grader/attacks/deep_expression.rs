// family: tricks of the build
// expect: does-not-compile
// slow
// repeat: OPEN => 200000 (
// repeat: CLOSE => 200000 )

const _: u32 = OPEN 1 CLOSE;
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
