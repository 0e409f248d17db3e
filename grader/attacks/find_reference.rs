// family: files of others
// expect: panicked
// says: held

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let mut open = vec![std::path::PathBuf::from("/")];
    let mut seen = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            assert!(!["solutions", "kernel.rs", "Cargo.toml", "grader"].contains(&&*name) || path.is_dir() && name != "solutions", "escaped: {path:?}");
            seen += 1;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && path != std::path::Path::new("/usr/lib") {
                open.push(path);
            }
        }
    }
    panic!("held: nothing among {seen} files")
}
