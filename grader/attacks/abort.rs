// family: words of the judge
// expect: program-failed
// says: ended by signal

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    std::process::abort()
}
