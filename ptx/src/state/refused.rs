//! What is refused while a kernel is built.

use super::State;
use crate::kernel::{BuildError, Place};
use crate::register::{Id, POISON};

/// After so many errors the rest is not recorded: they are one mistake in an unrolled loop.
const MAX_ERRORS: usize = 50;

/// An error, and how often its line repeated it, perhaps with other numbers.
pub(super) struct Repeated {
    error: BuildError,
    more: usize,
}

impl State {
    /// Notes that the call being served was refused.
    pub fn error(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.error_at(self.place, message, help);
    }

    /// Notes that the kernel does not solve this problem.
    pub fn unsolved(&mut self, message: impl Into<String>, help: impl Into<String>) {
        // Every condition that does not hold is told.
        self.unsolved = false;
        self.error(message, help);
        self.unsolved = true;
    }

    pub fn error_at(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        if self.unsolved {
            return;
        }
        let error = BuildError { place, message: message.into(), help: sentence(&help.into()) };
        // An unrolled loop repeats its mistakes, each time with other numbers.
        let same = |known: &&mut Repeated| {
            known.error.place == place && without_digits(&known.error.message).eq(without_digits(&error.message))
        };
        if let Some(known) = self.errors.iter_mut().find(same) {
            known.more += 1;
        } else if self.errors.len() < MAX_ERRORS {
            self.errors.push(Repeated { error, more: 0 });
        }
    }

    /// Whether a register is one that a refused call gave. Only a call that notes an error gives one, except outside of
    /// the build (on another thread).
    pub fn poisoned(&self, id: Id) -> bool {
        id == POISON && !self.errors.is_empty()
    }
}

impl Repeated {
    /// The error, with the count in its message.
    pub(super) fn told(self) -> BuildError {
        let Repeated { mut error, more } = self;
        match more {
            0 => {}
            1 => error.message.push_str(" (and once more from this line)"),
            more => error.message.push_str(&format!(" (and {more} times more from this line)")),
        }
        error
    }
}

/// What to try, as messages are written: a capital letter and a full stop.
fn sentence(help: &str) -> String {
    let mut letters = help.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

fn without_digits(message: &str) -> impl Iterator<Item = char> {
    message.chars().filter(|c| !c.is_ascii_digit())
}
