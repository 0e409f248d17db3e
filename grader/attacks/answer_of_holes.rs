// family: answers
// expect: answer-refused
// says: expected value

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    let file = std::fs::File::create(answer).expect("made");
    file.set_len(16 << 20).expect("nothing in it but its length");
    std::process::exit(0)
}
