// family: answers
// expect: answer-refused
// says: (grid): 1048576 x 1 x 1; allowed are 1 to 1024 CTAs

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    // What is kept of each CTA, a million times.
    let text = ".version 8.6\\n.target sm_100a\\n.address_size 64\\n.visible .entry kernel() {\\nret;\\n}";
    let answer = std::env::args_os().nth(3).expect("an answer");
    let built = r#"{"built": {"name": "kernel", "ptx": "TEXT", "grid": [1048576, 1, 1], "cluster": [1, 1, 1], "block": [1024, 1, 1], "dynamic_shared": 0, "params": [], "regions": [], "todos": [], "leaks": []}}"#;
    std::fs::write(answer, built.replace("TEXT", text)).expect("written");
    std::process::exit(0)
}
