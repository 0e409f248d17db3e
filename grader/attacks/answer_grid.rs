// family: answers
// expect: answer-refused
// says: (grid): 2147483648 x 1 x 1; allowed are 1 to 1024 CTAs

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    std::fs::write(answer, r#"{"built": {"name": "kernel", "ptx": ".version 8.6", "grid": [2147483648, 1, 1], "cluster": [1, 1, 1], "block": [128, 1, 1], "dynamic_shared": 0, "params": [], "regions": [], "todos": [], "leaks": []}}"#).expect("written");
    std::process::exit(0)
}
