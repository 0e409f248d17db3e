// family: words of the judge
// expect: program-failed
// says: 125

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    std::process::exit(125)
}
