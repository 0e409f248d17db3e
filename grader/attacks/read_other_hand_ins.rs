// family: files of others
// expect: panicked
// says: held

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let program = std::path::PathBuf::from(std::env::args_os().next().expect("a name"));
    for folder in program.ancestors().skip(1).take(4) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            assert!(program.starts_with(entry.path()) || folder == std::path::Path::new("/"), "escaped: {:?}", entry.path());
        }
    }
    panic!("held")
}
