//! The command that builds the book, as a reader gives it.

use std::path::Path;
use std::process::Command;

#[test]
fn it_says_where_the_book_is() {
    let output = Command::new(env!("CARGO_BIN_EXE_book")).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let first = std::fs::read_to_string(Path::new(said.trim())).expect("the page that it names");
    assert!(first.contains("The Blackwell kernel workbook"), "{first}");
}
