// family: bombs
// expect: emit-too-long
// says: took longer than
// slow

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let mut n = 0u64;
    loop {
        n = std::hint::black_box(n + 1);
    }
}
