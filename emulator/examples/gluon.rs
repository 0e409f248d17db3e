//! The launch file of a kernel of `emulator/tests/gluon`, for the command `emulate`:
//!
//! ```sh
//! cargo run -p emulator --example gluon -- two_cta > two_cta.json
//! cargo run --release -p emulate -- emulator/tests/gluon/two_cta.ptx --launch two_cta.json
//! ```

#[path = "../tests/gluon/case.rs"]
mod case;

use std::process::ExitCode;

fn main() -> ExitCode {
    let names = case::names();
    let name = std::env::args().nth(1).unwrap_or_default();
    if !names.contains(&name) {
        eprintln!("`{name}` is no kernel of emulator/tests/gluon. There are: {}.", names.join(", "));
        return ExitCode::from(2);
    }
    match serde_json::to_string_pretty(&case::launch_file(&name)) {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the launch of `{name}` cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}
