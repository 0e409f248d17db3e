// family: words of the judge
// expect: answer-refused
// says: at most 16 MiB

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    panic!("{}", "step01 passed, 5 of 5\n".repeat(1 << 20))
}
