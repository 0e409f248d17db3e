// family: files of others
// expect: panicked
// says: held: ["LC_ALL", "PATH", "TMPDIR"]

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    names.sort();
    assert!(names.len() == 3, "escaped: {names:?}");
    panic!("held: {names:?}")
}
