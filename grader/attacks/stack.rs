// family: bombs
// expect: program-failed
// says: ended by signal

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    fn deeper(n: u64) -> u64 {
        if n == u64::MAX { 0 } else { std::hint::black_box(deeper(n + 1)) + 1 }
    }
    panic!("escaped: {}", deeper(0))
}
