// family: tricks of the build
// expect: does-not-compile
// slow

static LARGE: [u8; 1 << 33] = [1; 1 << 33];

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    panic!("{}", LARGE[std::env::args().count()])
}
