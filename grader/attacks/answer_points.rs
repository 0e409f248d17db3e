// family: answers
// expect: answer-refused
// says: unknown field `points`

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    std::fs::write(answer, r#"{"built": {"name": "kernel", "ptx": ".version 8.6", "grid": [1, 1, 1], "cluster": [1, 1, 1], "block": [128, 1, 1], "dynamic_shared": 0, "params": [], "regions": [], "todos": [], "leaks": [], "points": 100}}"#).expect("written");
    std::process::exit(0)
}
