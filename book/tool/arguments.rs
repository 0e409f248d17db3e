//! What the command is asked to do.

use std::path::PathBuf;

/// What `--help` shows.
pub const USAGE: &str = "\
cargo run -p book                          writes the book to target/book, and names its first page
cargo run -p book -- --open                and opens it in the browser
cargo run -p book -- --out FOLDER          writes it to that folder, new, empty, or with a book in it
cargo run -p book -- serve [--port PORT]   shows it on http://localhost:3000, or that port, until Ctrl-C; with --open in the browser
cargo run -p book -- findings [--check]    writes what the emulator says for each of its codes to book/src/findings; --check compares
cargo run -p book -- formulas              prints what the emulator does with swizzles and descriptors, for the tests of the figures";

const PORT: u16 = 3000;

/// What becomes of the outputs of the findings' pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Findings {
    /// They are made again.
    Write,
    /// They are compared with what is said now.
    Check,
}

/// The arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The port to listen on.
    pub serve: Option<u16>,
    /// Open the first page.
    pub open: bool,
    /// Where the book is written.
    pub out: Option<PathBuf>,
    /// The outputs of the findings' pages, and not the book.
    pub findings: Option<Findings>,
    /// What the emulator does with swizzles and descriptors, and not the book.
    pub formulas: bool,
}

impl Arguments {
    /// Reads them; `None` when help is asked for.
    ///
    /// # Errors
    /// When one is unknown, or a value is missing or wrong.
    pub fn read(given: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
        let mut arguments = Arguments::default();
        let (mut serve, mut port) = (false, None);
        let mut given = given.peekable();
        while let Some(argument) = given.next() {
            let mut value = |what: &str| given.next().ok_or_else(|| format!("`{argument}` lacks {what}\n\n{USAGE}"));
            match argument.as_str() {
                "serve" => serve = true,
                "formulas" => arguments.formulas = true,
                "findings" => arguments.findings = Some(Findings::Write),
                "--check" if arguments.findings.is_some() => arguments.findings = Some(Findings::Check),
                "--open" => arguments.open = true,
                "--out" => arguments.out = Some(PathBuf::from(value("a folder")?)),
                "--port" => {
                    let text = value("a port")?;
                    let number = text.parse::<u16>();
                    port = Some(number.map_err(|_| format!("`{text}` is no port: 0 to 65535 are"))?);
                }
                "--help" | "-h" | "help" => return Ok(None),
                unknown => return Err(format!("`{unknown}` is unknown here\n\n{USAGE}")),
            }
        }
        if port.is_some() && !serve {
            return Err(format!("`--port` needs `serve`\n\n{USAGE}"));
        }
        arguments.serve = serve.then(|| port.unwrap_or(PORT));
        Ok(Some(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Option<Arguments>, String> {
        Arguments::read(words.split_whitespace().map(str::to_string))
    }

    #[test]
    fn arguments_are_read_or_refused() {
        assert_eq!(read(""), Ok(Some(Arguments::default())));
        assert_eq!(read("serve --port 0").unwrap().unwrap().serve, Some(0));
        assert_eq!(
            read("serve --open").unwrap().unwrap(),
            Arguments { serve: Some(PORT), open: true, ..Arguments::default() }
        );
        assert_eq!(read("--help"), Ok(None));
        assert!(read("formulas").unwrap().unwrap().formulas);
        assert_eq!(read("findings").unwrap().unwrap().findings, Some(Findings::Write));
        assert_eq!(read("findings --check").unwrap().unwrap().findings, Some(Findings::Check));
        for (words, why) in [
            ("--port 1", "needs `serve`"),
            ("serve --port", "lacks a port"),
            ("serve --port 70000", "`70000` is no port"),
            ("--check", "`--check` is unknown"),
            ("watch", "`watch` is unknown"),
        ] {
            assert!(read(words).unwrap_err().contains(why), "{words}: {:?}", read(words));
        }
    }
}
