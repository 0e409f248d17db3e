// family: PTX
// expect: correct
// says: ptx-semantics
// slow

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let text = ".version 8.6\\n.target sm_100a\\n.address_size 64\\n.visible .entry kernel() {\\n.local .align 16 .b8 large[1073741824];\\nret;\\n}";
    let answer = std::env::args_os().nth(3).expect("an answer");
    let built = r#"{"built": {"name": "kernel", "ptx": "TEXT", "grid": [1024, 1, 1], "cluster": [1, 1, 1], "block": [1024, 1, 1], "dynamic_shared": 0, "params": [], "regions": [], "todos": [], "leaks": []}}"#;
    std::fs::write(answer, built.replace("TEXT", &text)).expect("written");
    std::process::exit(0)
}
