//! Builds the book: `cargo run -p book` writes it to `target/book`, as HTML without anything from the network.
//!
//! **Does:** render the pages; record what the figures show, by running the emulator; with `serve` show the book on localhost. **Never does:**
//! hold a number that a figure shows. The sources are plain mdBook: the `mdbook` program works on this folder as well, and figures then show
//! their text.

mod arguments;
mod data;
mod findings;
mod formulas;
mod links;
mod listings;
mod serve;
mod site;
mod untouched;

use arguments::{Arguments, Findings};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments = match Arguments::read(std::env::args().skip(1))? {
        Some(arguments) => arguments,
        None => {
            println!("{}", arguments::USAGE);
            return Ok(());
        }
    };
    match arguments.findings {
        Some(Findings::Write) => return findings::write(),
        Some(Findings::Check) => {
            println!("{}", findings::check()?);
            return Ok(());
        }
        None => {}
    }
    if arguments.formulas {
        println!("{}", formulas::all()?);
        return Ok(());
    }
    let html = site::build(arguments.out.as_deref())?;
    let index = html.join("index.html");
    println!("{}", index.display());
    if let Some(port) = arguments.serve {
        return serve::serve(&html, port, arguments.open);
    }
    if arguments.open {
        serve::open(&index.display().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
