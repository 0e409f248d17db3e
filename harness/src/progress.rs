//! What a judge is at, for who waits at a terminal.

use std::io::{IsTerminal, Write};

/// Told of what the judge is at. It changes no verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress(Option<fn(&str)>);

impl Progress {
    /// Each time this is called with what it is at, and with an empty text when it is through.
    pub fn new(tell: fn(&str)) -> Progress {
        Progress(Some(tell))
    }

    /// On stderr if that is a terminal that can move its cursor: behind what stands there, and gone when it is through. Else nothing.
    pub fn on_terminal() -> Progress {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if dumb || !std::io::stderr().is_terminal() { Progress::default() } else { Progress::new(behind_the_cursor) }
    }

    /// The judge is at this.
    pub(crate) fn at(self, what: impl FnOnce() -> String) {
        if let Some(tell) = self.0 {
            tell(&what());
        }
    }

    /// The judge is through.
    pub(crate) fn over(self) {
        self.at(String::new);
    }
}

/// Writes behind the cursor and puts it back, so that what is printed next overwrites it. Short: a line must not wrap.
fn behind_the_cursor(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // A terminal that went away is no error of the verdict.
    let _ = write!(stderr, "\x1b7\x1b[K{text}\x1b8");
    let _ = stderr.flush();
}
