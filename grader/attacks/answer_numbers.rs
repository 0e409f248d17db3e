// family: answers
// expect: answer-refused
// says: number out of range

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    // More than any number has, and more digits than anybody reads.
    let digits = "9".repeat(1 << 20);
    let built = format!(r#"{{"built": {{"name": "kernel", "ptx": "", "grid": [1e999999999, -1, {digits}]}}}}"#);
    std::fs::write(answer, built).expect("written");
    std::process::exit(0)
}
