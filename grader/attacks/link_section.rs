// family: tricks of the build
// expect: does-not-compile
// says: unsafe

#[used]
#[unsafe(link_section = ".init_array")]
static FIRST: extern "C" fn() = { extern "C" fn first() { panic!("escaped") } first };
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
