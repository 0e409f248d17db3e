// family: results of others
// expect: answer-refused
// says: is not a plain file of at most

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    std::fs::create_dir(std::env::args_os().nth(3).expect("an answer")).expect("made");
    std::process::exit(0)
}
