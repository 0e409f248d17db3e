// family: answers
// expect: answer-refused
// says: duplicate field

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    // Who checks one and takes the other is led astray.
    let built = r#"{"built": {"name": "kernel", "ptx": "", "grid": [1, 1, 1], "grid": [2147483648, 1, 1]}}"#;
    std::fs::write(answer, built).expect("written");
    std::process::exit(0)
}
