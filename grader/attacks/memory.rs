// family: bombs
// expect: program-failed
// says: ended by signal

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let mut all = Vec::new();
    loop {
        all.push(vec![1u8; 16 << 20]);
    }
}
