// family: results of others
// expect: program-failed
// says: failed to map segment

use ptx::prelude::*;
use std::os::unix::process::CommandExt;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    // A program of its own, in the one folder that can be written to, given to the loader that runs others.
    let arguments: Vec<_> = std::env::args_os().collect();
    assert!(arguments[1] != "again", "escaped: it runs what it wrote");
    let copy = "/hand-in-scratch/copy";
    std::fs::write(copy, std::fs::read(&arguments[0]).expect("read")).expect("written");
    let direct = std::process::Command::new(copy).exec();
    assert!(direct.kind() == std::io::ErrorKind::PermissionDenied, "escaped: {direct}");
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let loader = loaders.into_iter().find(|path| std::path::Path::new(path).exists()).expect("a loader");
    let failed = std::process::Command::new(loader).args([copy, "again"]).args(&arguments[1..]).exec();
    panic!("the loader did not start: {failed}");
}
