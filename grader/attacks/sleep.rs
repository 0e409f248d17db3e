// family: bombs
// expect: emit-too-long
// says: took longer than
// slow

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    std::thread::sleep(std::time::Duration::from_secs(3600))
}
