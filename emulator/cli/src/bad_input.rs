//! Input that no run can begin with: what is wrong, where it stands, and a way out.

use crate::show::{self, Spot};
use annotate_snippets::Level;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// The whole message, ready to print.
#[derive(Debug)]
pub struct BadInput(String);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl BadInput {
    /// About a file as a whole: it cannot be read, or written.
    pub fn file(path: &Path, what: &str, error: &std::io::Error, way_out: &str) -> BadInput {
        let title = format!("{} cannot be {what}: {error}", path.display());
        BadInput(show::message(Level::ERROR, None, &title, &[], &[("try", way_out)]))
    }

    /// About a part of a text.
    pub fn at(title: &str, file: &str, text: &str, range: Range<usize>, label: &str, way_out: &str) -> BadInput {
        let spots = [Spot { file, text, range, label }];
        BadInput(show::message(Level::ERROR, None, title, &spots, &[("try", way_out)]))
    }

    /// Messages that are complete.
    pub fn messages(messages: Vec<String>) -> BadInput {
        BadInput(messages.join("\n"))
    }
}
