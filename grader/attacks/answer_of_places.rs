// family: files of others
// expect: builder-refused
// says: nothing is shown of it

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    // Lines of files that the judge would look up.
    let answer = std::env::args_os().nth(3).expect("an answer");
    let at = |file: &str| format!(r#"{{"place": {{"file": "{file}", "line": 1, "column": 1}}, "message": "nothing is shown of it", "help": ""}}"#);
    let files = ["/etc/passwd", "../../../../../../etc/passwd", "solutions/src/step02.rs", "../../../../solutions/src/step02.rs", "steps/step01/src/../../../../../Cargo.toml"];
    let rejected: Vec<String> = files.map(at).to_vec();
    std::fs::write(answer, format!(r#"{{"failed": {{"rejected": [{}]}}}}"#, rejected.join(","))).expect("written");
    std::process::exit(0)
}
