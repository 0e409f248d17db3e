//! Input that no run can begin with: what is wrong, where it stands, and a way out.

use crate::show::{self, Spot, Texts};
use annotate_snippets::Level;
use emulator::Diagnostic;
use serde::Serialize;
use std::ops::Range;
use std::path::Path;

/// All that is wrong, as text and as values.
#[derive(Debug)]
pub struct BadInput {
    /// The whole message, ready to print.
    pub text: String,
    pub errors: Vec<Error>,
}

/// One thing that is wrong, for `--format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Error {
    /// Of [`emulator::CODES`]; `file` when a file cannot be read or written.
    pub code: &'static str,
    pub title: String,
    /// The first is the primary one; none when it concerns a file as a whole.
    pub places: Vec<Place>,
    pub rule: String,
    pub help: String,
}

/// A place in the kernel's text or in the launch file.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    pub file: String,
    /// Line and column (in characters), from 1.
    pub line: usize,
    pub column: usize,
    pub text: String,
}

impl BadInput {
    /// About a file as a whole: it cannot be read, or written.
    pub fn file(path: &Path, what: &str, error: &std::io::Error, way_out: &str) -> BadInput {
        let title = format!("{} cannot be {what}: {error}", path.display());
        let text = show::message(Level::ERROR, None, &title, &[], &[("try", way_out)]);
        let error = Error { code: "file", title, places: vec![], rule: String::new(), help: way_out.into() };
        BadInput { text, errors: vec![error] }
    }

    /// About an argument that does not fit the kernel.
    pub fn option(name: &str, why: &str) -> BadInput {
        BadInput::argument(&format!("{name}: {why}"), &format!("Leave {name} out: the kernel's `.target` decides."))
    }

    /// About an argument that cannot be followed.
    pub fn argument(title: &str, way_out: &str) -> BadInput {
        let text = show::message(Level::ERROR, None, title, &[], &[("try", way_out)]);
        let error =
            Error { code: "launch", title: title.into(), places: vec![], rule: String::new(), help: way_out.into() };
        BadInput { text, errors: vec![error] }
    }

    /// About a part of a launch file.
    pub fn at(title: &str, file: &str, text: &str, range: Range<usize>, label: &str, way_out: &str) -> BadInput {
        let (line, column) = line_and_column(text, range.start);
        let places = vec![Place { file: file.into(), line, column, text: label.into() }];
        let spots = [Spot { file, text, range, label }];
        let text = show::message(Level::ERROR, None, title, &spots, &[("try", way_out)]);
        let error = Error { code: "launch", title: title.into(), places, rule: String::new(), help: way_out.into() };
        BadInput { text, errors: vec![error] }
    }

    /// Several, each with one message; the text has the first few.
    pub fn all(several: impl Iterator<Item = BadInput>) -> BadInput {
        let (texts, errors): (Vec<String>, Vec<Vec<Error>>) = several.map(|one| (one.text, one.errors)).unzip();
        BadInput { text: show::first_few(texts.len(), texts.into_iter()), errors: errors.concat() }
    }

    /// This, and another.
    pub fn and(mut self, other: BadInput) -> BadInput {
        self.text = format!("{}\n{}", self.text, other.text);
        self.errors.extend(other.errors);
        self
    }

    /// What the emulator says of a kernel or a launch.
    pub fn diagnostics(texts: &Texts, diagnostics: &[Diagnostic]) -> BadInput {
        let error = |d: &Diagnostic| {
            let mut places: Vec<Place> = d.labels.iter().filter_map(|label| place(texts, label)).collect();
            // The launch file is what there is to change.
            places.sort_by_key(|place| texts.launch.is_none_or(|(path, _)| place.file != path.display().to_string()));
            Error { code: d.code, title: d.title.clone(), places, rule: d.rule.clone(), help: d.help.clone() }
        };
        BadInput { text: texts.first_few(diagnostics), errors: diagnostics.iter().map(error).collect() }
    }
}

fn place(texts: &Texts, label: &emulator::Label) -> Option<Place> {
    let at = &label.place;
    if at.line > 0 {
        let file = texts.kernel.0.display().to_string();
        return Some(Place { file, line: at.line as usize, column: at.column as usize, text: label.text.clone() });
    }
    let (path, text) = texts.launch?;
    let (line, column) = line_and_column(text, crate::locate::locate(text, &at.text)?.start);
    Some(Place { file: path.display().to_string(), line, column, text: label.text.clone() })
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1)
}
