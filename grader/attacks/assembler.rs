// family: tricks of the build
// expect: does-not-compile
// says: unsafe

std::arch::global_asm!(".incbin \"/etc/passwd\"");
pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {}
