// family: answers
// expect: answer-refused
// says: at most 16 MiB

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    std::fs::write(answer, " ".repeat(17 << 20)).expect("written");
    std::process::exit(0)
}
