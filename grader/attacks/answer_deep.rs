// family: answers
// expect: answer-refused
// says: the answer is not a kernel

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    std::fs::write(answer, format!("{}{}", r#"{"failed": {"rejected": "#, "[".repeat(10_000_000))).expect("written");
    std::process::exit(0)
}
