// family: bombs
// expect: program-failed
// says: No space left on device

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    for file in 0..10_000_000 {
        if let Err(error) = std::fs::write(format!("/hand-in-scratch/{file}"), "") {
            panic!("held after {file} files: {error}");
        }
    }
    panic!("escaped")
}
