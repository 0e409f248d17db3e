//! What the types refuse, and in which words. `TRYBUILD=overwrite cargo test -p ptx` writes the words anew.

use std::process::Command;

/// The compiler whose words are in `compile_fail/*.stderr`.
const RUSTC: &str = "rustc 1.95.";

#[test]
fn refused_by_types() {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("cargo has a rustc");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(RUSTC) {
        let required = std::env::var_os("WORKBOOK_REQUIRE_COMPILE_FAIL").is_some_and(|value| value == "1");
        assert!(!required, "the texts are those of {RUSTC}x, and this is {version}");
        println!("skipped: the texts are those of {RUSTC}x, and this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
