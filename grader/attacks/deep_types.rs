// family: tricks of the build
// expect: does-not-compile
// slow
// repeat: OPEN => 100000 Option<
// repeat: CLOSE => 100000 >

pub struct Deep(OPEN u8 CLOSE);
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
