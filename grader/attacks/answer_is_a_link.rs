// family: results of others
// expect: panicked
// says: held

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let answer = std::env::args_os().nth(3).expect("an answer");
    match std::os::unix::fs::symlink("/hand-in-scratch/request.json", answer) {
        Ok(()) => std::process::exit(0),
        Err(error) => panic!("held: {error}"),
    }
}
