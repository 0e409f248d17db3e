//! Diagnostics, laid out as rustc lays out errors.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use emulator::{Diagnostic, Label, Severity};
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Writes to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A part of a text, and what is there.
pub struct Spot<'a> {
    pub file: &'a str,
    pub text: &'a str,
    pub range: Range<usize>,
    pub label: &'a str,
}

/// A message with places, in a terminal in colour. The first spot is the primary one.
pub fn message(level: Level, code: Option<&str>, title: &str, spots: &[Spot], last: &[(&str, &str)]) -> String {
    let mut head = level.primary_title(title);
    if let Some(code) = code {
        head = head.id(code);
    }
    let mut group = Group::with_title(head);
    let mut files: Vec<&str> = Vec::new();
    for spot in spots {
        if !files.contains(&spot.file) {
            files.push(spot.file);
        }
    }
    for file in files {
        let of_file = || spots.iter().enumerate().filter(|(_, spot)| spot.file == file);
        let Some((_, Spot { text, .. })) = of_file().next() else { continue };
        let mut snippet = Snippet::source(*text).path(file);
        for (index, spot) in of_file() {
            let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            snippet = snippet.annotation(kind.span(spot.range.clone()).label(spot.label));
        }
        group = group.element(snippet);
    }
    for (name, text) in last.iter().filter(|(_, text)| !text.is_empty()) {
        group = group.element(Level::NOTE.with_name(*name).message(*text));
    }
    let colour = env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && io::stdout().is_terminal();
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut text: String = renderer.render(&[group]).lines().map(|line| format!("{}\n", line.trim_end())).collect();
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

/// The texts that diagnostics point into.
pub struct Texts<'a> {
    pub kernel: (&'a Path, &'a str),
    pub launch: Option<(&'a Path, &'a str)>,
}

impl Texts<'_> {
    /// A diagnostic of the emulator: at the lines of PTX, and of the program that the PTX was made from.
    fn diagnostic(&self, d: &Diagnostic, seen: &str) -> String {
        let ptx = self.kernel.0.display().to_string();
        let launch = self.launch.map(|(path, _)| path.display().to_string()).unwrap_or_default();
        let sources = self.sources(&d.labels);
        let mut spots: Vec<Spot> = Vec::new();
        let mut elsewhere = Vec::new();
        for label in &d.labels {
            let place = &label.place;
            if place.line == 0 {
                let range = self.launch.and_then(|(_, text)| crate::locate::locate(text, &place.text));
                match (self.launch, range) {
                    (Some((_, text)), Some(range)) => {
                        // The launch file is what there is to change.
                        spots.insert(
                            0,
                            Spot { file: &launch, text, range: first_line(text, range), label: "given here" },
                        );
                    }
                    _ => elsewhere.push(label.text.clone()),
                }
                continue;
            }
            match span(self.kernel.1, place.line, place.column, false) {
                Some(range) => spots.push(Spot { file: &ptx, text: self.kernel.1, range, label: &label.text }),
                None => elsewhere.push(format!("{ptx}:{}: {}", place.line, label.text)),
            }
        }
        for label in &d.labels {
            let Some(source) = &label.place.source else { continue };
            let text = sources.get(source.file.as_str()).and_then(Option::as_deref);
            match text.and_then(|text| Some((text, span(text, source.line, source.column, true)?))) {
                Some((text, range)) => spots.push(Spot { file: &source.file, text, range, label: &label.text }),
                None => elsewhere.push(format!("{}:{}: {}", source.file, source.line, label.text)),
            }
        }
        let again = match (seen, d.count) {
            ("", 0 | 1) => String::new(),
            ("", n) => format!("seen {n} times"),
            (seen, _) => seen.into(),
        };
        let confirmed =
            d.confirmed.as_ref().map(|w| format!("with --seed {}, {}", w.seed, w.outcome)).unwrap_or_default();
        let mut last: Vec<(&str, &str)> = elsewhere.iter().map(|text| ("at", text.as_str())).collect();
        last.extend([("confirmed", confirmed.as_str()), ("note", again.as_str()), ("rule", &d.rule), ("try", &d.help)]);
        let level = match d.severity {
            Severity::Error => Level::ERROR,
            Severity::Finding => Level::ERROR.with_name("finding"),
            Severity::Note => Level::NOTE,
        };
        message(level, Some(d.code), &d.title, &spots, &last)
    }

    /// Where a statement stands: in the program that the PTX was made from, if that is known.
    pub fn place(&self, place: &emulator::Place) -> String {
        match &place.source {
            Some(source) => format!("{}:{}:", source.file, source.line),
            None => format!("{}:{}:", self.kernel.0.display(), place.line),
        }
    }

    /// The first three, and how many more there are: root causes come first.
    pub fn first_few(&self, diagnostics: &[Diagnostic]) -> String {
        let seen: Vec<(&Diagnostic, String)> = diagnostics.iter().map(|d| (d, String::new())).collect();
        self.first_few_seen(&seen)
    }

    /// The same, with what is to be said of how often each was seen.
    pub fn first_few_seen(&self, diagnostics: &[(&Diagnostic, String)]) -> String {
        first_few(diagnostics.len(), diagnostics.iter().map(|(d, seen)| self.diagnostic(d, seen)))
    }

    /// The source files that labels name, as far as they exist: in this folder, the folders above, or beside the kernel.
    fn sources<'l>(&self, labels: &'l [Label]) -> HashMap<&'l str, Option<String>> {
        let here = env::current_dir().unwrap_or_default();
        let roots: Vec<PathBuf> = here.ancestors().chain(self.kernel.0.parent()).map(Path::to_path_buf).collect();
        let files = labels.iter().filter_map(|label| label.place.source.as_ref()).map(|source| source.file.as_str());
        files.map(|file| (file, read_source(&roots, Path::new(file)))).collect()
    }
}

/// The first three of so many messages, and how many more there are.
pub fn first_few(count: usize, messages: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 3;
    let mut texts: Vec<String> = messages.take(SHOWN).collect();
    match count.saturating_sub(SHOWN) {
        0 => {}
        1 => texts.push("There is 1 more: `--format json` gives all.\n".into()),
        more => texts.push(format!("There are {more} more: `--format json` gives all.\n")),
    }
    texts.join("\n")
}

/// PTX text names the file, so only what looks like a program is read.
fn read_source(roots: &[PathBuf], file: &Path) -> Option<String> {
    const PROGRAMS: [&str; 9] = ["rs", "py", "cu", "cuh", "c", "cpp", "h", "hpp", "mojo"];
    const MOST: u64 = 4 << 20;
    let extension = file.extension()?.to_str()?;
    if !PROGRAMS.contains(&extension) {
        return None;
    }
    let mut candidates = roots.iter().map(|root| root.join(file));
    let found = candidates.find(|path| path.metadata().is_ok_and(|m| m.is_file() && m.len() <= MOST))?;
    fs::read_to_string(found).ok()
}

/// A value of many lines is shown by its first one.
pub fn first_line(text: &str, range: Range<usize>) -> Range<usize> {
    let line = text[range.clone()].lines().next().map_or(1, str::len).max(1);
    range.start..range.start + line
}

/// The bytes of a statement, or of the name that begins at this line and column (from 1; 0: unknown).
fn span(text: &str, line: u32, column: u32, name: bool) -> Option<Range<usize>> {
    let before = text.split_inclusive('\n').take(line.checked_sub(1)? as usize).map(str::len).sum::<usize>();
    let line = text.get(before..)?.lines().next()?.trim_end();
    let indent = line.len() - line.trim_start().len();
    let skipped = line.char_indices().nth(column.saturating_sub(1) as usize).map_or(indent, |(at, _)| at.max(indent));
    let rest = line.get(skipped..)?;
    let end = match rest.find(|c: char| !(c.is_alphanumeric() || c == '_')) {
        Some(word) if name && word > 0 => word,
        _ if name => rest.len(),
        _ => rest.find("//").map_or(rest, |at| &rest[..at]).trim_end().len(),
    };
    Some(before + skipped..before + skipped + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_becomes_the_bytes_of_a_statement_or_a_name() {
        let text = "ä\n    bar.sync 0; // all\n  foo_1(x)\n";
        for (line, column, name, found) in [
            (2, 5, false, Some("bar.sync 0;")),
            (2, 0, false, Some("bar.sync 0;")),
            (3, 3, true, Some("foo_1")),
            (3, 99, true, Some("foo_1")),
            (0, 1, false, None),
            (9, 1, false, None),
        ] {
            assert_eq!(span(text, line, column, name).map(|range| &text[range]), found, "{line}:{column}");
        }
    }
}
