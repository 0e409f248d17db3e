// family: tricks of the build
// expect: does-not-compile
// says: unsafe

#[link(name = "c")]
unsafe extern "C" {
    safe fn fork() -> i32;
}

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    panic!("escaped: {}", fork())
}
