//! Builds the book: `cargo run -p book` writes it to `target/book`, as HTML without anything from the network.
//!
//! The sources are plain mdBook: the `mdbook` program works on this folder as well.

use mdbook_driver::MDBook;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let build = |book: MDBook| book.build().map(|()| book.build_dir_for("html"));
    match MDBook::load(folder).and_then(build) {
        Ok(html) => {
            // The path has `..` in it; show the one that a person would write.
            let html = html.canonicalize().unwrap_or(html);
            println!("{}", html.join("index.html").display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the book in {} does not build: {error:#}", folder.display());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
