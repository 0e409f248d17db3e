// family: bombs
// expect: panicked
// says: held

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let line = "passed ".repeat(10_000);
    for _ in 0..1000 {
        println!("{line}");
    }
    panic!("held")
}
