// family: answers
// expect: correct
// says: a CTA of 65536

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    // As much of everything as is read.
    let params = vec![r#"{"tensor_map": {"matrix": "A", "box_rows": 256, "box_columns": 256, "swizzle": "none"}}"#; 4096].join(",");
    let name = "n".repeat(250);
    let region = |n: u32| format!(r#"{{"name": "{name}{n}", "space": "dynamic_shared", "offset": {n}, "bytes": 16000000, "kind": "barrier", "stage": null}}"#);
    let regions: Vec<String> = (0..4096).map(region).collect();
    let text = ".version 8.6\\n.target sm_100a\\n.address_size 64\\n.visible .entry kernel() {\\nret;\\n}";
    let built = r#"{"built": {"name": "kernel", "ptx": "TEXT", "grid": [1024, 1, 1], "cluster": [65536, 1, 1], "block": [65536, 1, 1], "dynamic_shared": 16777216, "params": [PARAMS], "regions": [REGIONS], "todos": [], "leaks": []}}"#;
    let built = built.replace("TEXT", text).replace("PARAMS", &params).replace("REGIONS", &regions.join(","));
    std::fs::write(std::env::args_os().nth(3).expect("an answer"), built).expect("written");
    std::process::exit(0)
}
