// family: answers
// expect: builder-refused
// says: more bytes are not shown

// Texts that pass one by one, and are too long for any report together.
use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let sign = "\u{7f}".repeat(16_000);
    let one = format!(
        r#"{{"place": {{"file": "steps/step01/src/kernel.rs", "line": 3, "column": 1}}, "message": "{sign}", "help": "h"}}"#
    );
    let answer = format!(r#"{{"failed": {{"rejected": [{}]}}}}"#, vec![one; 1030].join(","));
    std::fs::write(std::env::args_os().nth(3).expect("an answer"), answer).expect("written");
    std::process::exit(0)
}
