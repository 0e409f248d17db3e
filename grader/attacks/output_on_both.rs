// family: bombs
// expect: panicked
// says: held

use ptx::prelude::*;
use std::io::Write;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    // Both streams by turns, no end of a line, and what is no text.
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let bytes: Vec<u8> = (0..=255).cycle().filter(|byte| *byte != b'\n').take(60_000).collect();
    for _ in 0..2000 {
        out.write_all(&bytes).and_then(|()| out.flush()).expect("written");
        err.write_all(&bytes).expect("written");
    }
    panic!("held")
}
