// family: PTX
// expect: correct
// says: 1 to 16 CTAs

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    // So many CTAs that no number holds their product.
    let text = ".version 8.6\\n.target sm_100a\\n.address_size 64\\n.visible .entry kernel() .reqnctapercluster 4294967295, 4294967295, 4294967295 {\\nret;\\n}";
    let built = r#"{"built": {"name": "kernel", "ptx": "TEXT", "grid": [1, 1, 1], "cluster": [1, 1, 1], "block": [128, 1, 1], "dynamic_shared": 0, "params": [], "regions": [], "todos": [], "leaks": []}}"#;
    let answer = std::env::args_os().nth(3).expect("an answer");
    std::fs::write(answer, built.replace("TEXT", text)).expect("written");
    std::process::exit(0)
}
