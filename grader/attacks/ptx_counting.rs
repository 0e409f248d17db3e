// family: PTX
// expect: correct
// says: hang
// slow

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let text = ".version 8.6\\n.target sm_100a\\n.address_size 64\\n.visible .entry kernel() {\\n.reg .b32 %r;\\nmov.u32 %r, 0;\\nL: add.u32 %r, %r, 1;\\nbra L;\\n}";
    let answer_text = r#"{"built": {"name": "kernel", "ptx": "TEXT", "grid": [1, 1, 1], "cluster": [1, 1, 1], "block": [128, 1, 1], "dynamic_shared": 0, "params": [], "regions": [], "todos": [], "leaks": []}}"#;
    let answer = std::env::args_os().nth(3).expect("an answer");
    std::fs::write(answer, answer_text.replace("TEXT", &text)).expect("written");
    std::process::exit(0)
}
