// family: answers
// expect: answer-refused
// says: (regions)

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    std::fs::write(answer, r#"{"built": {"name": "kernel", "ptx": ".version 8.6", "grid": [1, 1, 1], "cluster": [1, 1, 1], "block": [128, 1, 1], "dynamic_shared": 0, "params": [], "regions": [{"name": "a\u001b[2J", "space": "tensor", "offset": 0, "bytes": 8, "kind": "scalar", "stage": null}], "todos": [], "leaks": []}}"#).expect("written");
    std::process::exit(0)
}
