//! The command `silicon`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    silicon::main()
}
