// family: answers
// expect: answer-refused
// says: the answer is not UTF-8

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    // A text that is one up to the middle of its PTX.
    let built = r#"{"built": {"name": "kernel", "ptx": "TEXT", "grid": [1, 1, 1], "cluster": [1, 1, 1], "block": [128, 1, 1], "dynamic_shared": 0, "params": [], "regions": [], "todos": [], "leaks": []}}"#;
    let (head, tail) = built.split_once("TEXT").expect("a place");
    let answer = std::env::args_os().nth(3).expect("an answer");
    std::fs::write(answer, [head.as_bytes(), b".version 8.6\\n// \xff\xc0\xaf", tail.as_bytes()].concat()).expect("written");
    std::process::exit(0)
}
