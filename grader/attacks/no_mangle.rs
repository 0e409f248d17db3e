// family: tricks of the build
// expect: does-not-compile
// says: unsafe

#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    0
}
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
