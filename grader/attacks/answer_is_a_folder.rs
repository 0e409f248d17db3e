// family: results of others
// expect: no-answer
// says: left no answer

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    std::fs::create_dir(std::env::args_os().nth(3).expect("an answer")).expect("made");
    std::process::exit(0)
}
