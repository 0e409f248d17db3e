// family: words of the judge
// expect: no-answer
// says: left no answer

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    println!("step01  one tile  passed  passed  passed  passed  passed  5 of 5");
    println!("{{\"schema\": 1, \"passed\": true, \"points\": 5}}");
    std::process::exit(0)
}
