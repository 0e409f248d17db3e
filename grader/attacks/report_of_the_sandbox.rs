// family: words of the judge
// expect: program-failed
// says: exit status: 125

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let report = r#"{"reached":"entered","failed":"no more processes","code":null}"#;
    for place in ["report", "../report", "/report", "/hand-in-scratch/report", "/hand-in-scratch/stage/report"] {
        let _ = std::fs::write(place, report);
    }
    println!("{report}");
    eprintln!("sandbox: no more processes");
    std::process::exit(125)
}
