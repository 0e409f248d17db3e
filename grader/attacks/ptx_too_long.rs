// family: PTX
// expect: answer-refused
// says: (ptx)

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let text = "/".repeat(5 << 20);
    let answer_text = r#"{"built": {"name": "kernel", "ptx": "TEXT", "grid": [1, 1, 1], "cluster": [1, 1, 1], "block": [128, 1, 1], "dynamic_shared": 0, "params": [], "regions": [], "todos": [], "leaks": []}}"#;
    let answer = std::env::args_os().nth(3).expect("an answer");
    std::fs::write(answer, answer_text.replace("TEXT", &text)).expect("written");
    std::process::exit(0)
}
