// family: tricks of the build
// expect: compiling-too-long
// says: compiling it took longer
// slow

#[allow(long_running_const_eval)]
const NEVER: u64 = {
    let mut n = 0u64;
    while n != 1 {
        n = n.wrapping_add(2);
    }
    n
};

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    panic!("{NEVER}")
}
