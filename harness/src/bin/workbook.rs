//! `cargo workbook`: see [`harness::workbook`].

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::workbook::main()
}
