// family: tricks of the build
// expect: does-not-compile
// says: the compiler was ended
// slow

macro_rules! more { ($($t:tt)*) => { more!($($t)* $($t)* x) } }
const _: () = { more!(x) };
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
