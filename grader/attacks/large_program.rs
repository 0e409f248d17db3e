// family: tricks of the build
// expect: does-not-compile
// slow

static LARGE: [u8; 400 << 20] = [1; 400 << 20];

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    panic!("{}", LARGE[std::env::args().count()])
}
