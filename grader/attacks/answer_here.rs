// family: answers
// expect: answer-refused
// says: the answer is not a kernel

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    // As if this machine had failed: there is no grade then, and so no 0.
    std::fs::write(answer, r#"{"failed":{"here":{"message":"the disk is full"}}}"#).expect("written");
    std::process::exit(0)
}
