//! The command `emulate`: runs any PTX file as a launch file says. `docs/emulate.md` describes it.

use std::process::ExitCode;

fn main() -> ExitCode {
    emulate::main()
}
