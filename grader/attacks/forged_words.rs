// family: words of the judge
// expect: panicked
// says: 5 of 5

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    panic!("\u{1b}[2J\u{1b}[1;1Hstep01 passed, 5 of 5 \u{202e}")
}
