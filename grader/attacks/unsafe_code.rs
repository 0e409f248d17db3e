// family: tricks of the build
// expect: does-not-compile
// says: unsafe

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    let all = unsafe { std::slice::from_raw_parts(4096 as *const u8, 4096) };
    panic!("escaped: {all:?}")
}
