// family: bombs
// expect: program-failed
// says: No space left on device

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let block = vec![1u8; 1 << 20];
    for file in 0..100_000 {
        if let Err(error) = std::fs::write(format!("/hand-in-scratch/{file}"), &block) {
            assert!(file < 200, "escaped: {file} MiB");
            panic!("held after {file} MiB: {error}");
        }
    }
    panic!("escaped")
}
