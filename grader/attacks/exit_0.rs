// family: words of the judge
// expect: no-answer
// says: left no answer

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    std::process::exit(0)
}
