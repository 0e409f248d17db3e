//! Asks ptxas, the assembler of the CUDA toolkit, whether it takes a kernel. Shared by tests of several crates.

use std::path::{Path, PathBuf};
use std::process::Command;

/// ptxas: named by `PTXAS`, in `CUDA_HOME/bin`, or on the `PATH`.
fn find() -> Option<PathBuf> {
    let file = format!("ptxas{}", std::env::consts::EXE_SUFFIX);
    if let Some(named) = std::env::var_os("PTXAS") {
        return Some(PathBuf::from(named));
    }
    let home = std::env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    home.into_iter().chain(std::env::split_paths(&path)).map(|folder| folder.join(&file)).find(|file| file.is_file())
}

/// Where ptxas is; `None` without it. Fails the test when it is missing and `WORKBOOK_REQUIRE_PTXAS=1`.
pub fn there() -> Option<PathBuf> {
    let ptxas = find();
    if ptxas.is_none() {
        let required = std::env::var_os("WORKBOOK_REQUIRE_PTXAS").is_some_and(|value| value == "1");
        assert!(!required, "no ptxas in PTXAS, CUDA_HOME/bin or PATH, and WORKBOOK_REQUIRE_PTXAS=1 asks for it");
        println!("skipped: no ptxas");
    }
    ptxas
}

/// Assembles the text and gives what ptxas said about registers and spills; `None` without ptxas. Fails the test when
/// ptxas refuses the text, or when it is missing and `WORKBOOK_REQUIRE_PTXAS=1`.
pub fn assemble(name: &str, text: &str) -> Option<String> {
    let ptxas = there()?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Binaries of other tests run beside this one, and write there, too.
    let of = |kind: &str| folder.join(format!("{}.{name}.{kind}", env!("CARGO_CRATE_NAME")));
    let (source, object) = (of("ptx"), of("cubin"));
    std::fs::write(&source, text).expect("the scratch folder of tests can be written");
    let target = text.lines().find_map(|line| line.strip_prefix(".target ")).expect("a kernel has a target");
    let output = Command::new(&ptxas)
        .arg(format!("-arch={target}"))
        .args(["-v", "-lineinfo"])
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .output()
        .unwrap_or_else(|error| panic!("{} cannot be run: {error}", ptxas.display()));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "ptxas refuses {}:\n{said}", source.display());
    Some(said)
}
