// family: bombs
// expect: panicked
// says: held

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    match std::thread::Builder::new().spawn(|| loop {}) {
        Ok(_) => panic!("escaped"),
        Err(error) => panic!("held: {error}"),
    }
}
