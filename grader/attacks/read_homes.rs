// family: files of others
// expect: panicked
// says: held: []

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let folders = ["/root", "/home", "/tmp", "/var", "/srv", "/mnt", "/opt"];
    let found: Vec<_> = folders.iter().flat_map(std::fs::read_dir).flatten().flatten().map(|entry| entry.path()).collect();
    // A folder on the way to the program itself may be there; nothing else may be.
    let mine = std::env::args().next().unwrap_or_default();
    let others: Vec<_> = found.iter().filter(|path| !mine.starts_with(path.to_str().unwrap_or("?"))).collect();
    assert!(others.is_empty(), "escaped: {others:?}");
    panic!("held: {others:?}")
}
