//! The command `emulate`: runs any PTX file as a launch file says. `docs/emulate.md` describes it.

mod arguments;
mod bad_input;
mod launch_file;
mod lists;
mod locate;
mod run;
mod show;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    let lists = lists::text(&arguments);
    // A closed pipe (`emulate … | head`) is no reason to end with a backtrace.
    if show::print(&lists).is_err() {
        return ExitCode::SUCCESS;
    }
    let Some(job) = arguments.job() else { return ExitCode::SUCCESS };
    match run::run(&job) {
        Ok(clean) => ExitCode::from(u8::from(!clean)),
        Err(bad) => {
            eprint!("{bad}");
            ExitCode::from(2)
        }
    }
}
