//! Explanations, and what they say for who acts on them and reads no sentence: the grader picks a line, a thing to try and a TODO.

use crate::source::Place;
use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign};

/// What an explanation says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Says {
    /// The code of the finding that it begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The line that it shows first: of Rust, if it shows any, else of the PTX text, whose file is [`PTX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The first thing that it says to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Where it says to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<Pointer>,
}

/// What a place in the PTX text has for a file.
pub const PTX: &str = "PTX";

/// Where to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pointer {
    /// The TODO that mends it, `step.n`.
    pub todo: String,
    /// The page to read, as `book: TITLE (FILE)`.
    pub read: String,
}

impl Says {
    /// One thing to try.
    pub fn help(help: impl Into<String>) -> Says {
        Says { help: Some(help.into()).filter(|help| !help.is_empty()), ..Says::default() }
    }

    /// What two texts say, one behind the other.
    fn and(self, other: Says) -> Says {
        let of_rust = |place: &Place| place.file != PTX;
        let place = match (self.place, other.place) {
            (Some(first), Some(second)) if !of_rust(&first) && of_rust(&second) => Some(second),
            (first, second) => first.or(second),
        };
        Says { code: self.code, place, help: self.help.or(other.help), pointer: self.pointer.or(other.pointer) }
    }
}

/// An explanation for a human, without colour, and what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The text.
    pub text: String,
    /// What it says.
    pub says: Says,
}

impl Told {
    /// A text that ends with one thing to try; empty: nothing.
    pub fn with_help(text: impl Into<String>, help: impl Into<String>) -> Told {
        Told { text: text.into(), says: Says::help(help) }
    }

    /// Several, with an empty line between them.
    pub fn joined(sections: impl IntoIterator<Item = Told>) -> Told {
        sections.into_iter().reduce(|all, next| all + "\n" + next).unwrap_or_default()
    }
}

/// A text that says nothing of that.
impl From<String> for Told {
    fn from(text: String) -> Told {
        Told { text, says: Says::default() }
    }
}

impl AddAssign<Told> for Told {
    fn add_assign(&mut self, other: Told) {
        // What begins with nothing begins with the other.
        if self.text.is_empty() {
            *self = other;
            return;
        }
        self.text += &other.text;
        self.says = std::mem::take(&mut self.says).and(other.says);
    }
}

impl Add<Told> for Told {
    type Output = Told;

    fn add(mut self, other: Told) -> Told {
        self += other;
        self
    }
}

impl Add<&str> for Told {
    type Output = Told;

    fn add(mut self, text: &str) -> Told {
        self.text += text;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_texts_the_first_of_each_is_said_and_rust_before_ptx() {
        let place = |file: &str, line| Some(Place { file: file.to_string(), line, column: 1 });
        let told = |code: &str, place, help: &str| Told {
            text: format!("{code}\n"),
            says: Says { code: Some(code.to_string()), place, ..Says::help(help) },
        };
        let all =
            [told("hang", place(PTX, 90), ""), told("race", place("k.rs", 7), "a"), told("x", place("k.rs", 8), "b")];
        let Told { text, says } = Told::joined(all.clone());
        assert_eq!(text, "hang\n\nrace\n\nx\n");
        assert_eq!(says, Says { code: Some("hang".to_string()), place: place("k.rs", 7), ..Says::help("a") });
        let behind = Told::from("It hangs.\n".to_string()) + all[1].clone();
        assert_eq!((behind.says.code, behind.says.place), (None, place("k.rs", 7)), "it begins with no finding");
    }
}
