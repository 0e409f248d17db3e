//! Findings shown as rustc shows errors: at the lines of Rust that made the PTX.

use crate::builder_calls::named_in;
use crate::source::{BuildErrorAt, Place};
use crate::told::{PTX, Says, Told};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use emulator::{Diagnostic, Label, Severity};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::{env, fs};

/// What is wrong and where, in the judge's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// One sentence.
    pub title: String,
    /// Where, and what happened there; the first is the primary place.
    pub labels: Vec<Label>,
    /// The rule that was broken.
    pub rule: String,
    /// One thing to try.
    pub help: String,
}

impl Explanation {
    /// An explanation without places yet.
    pub fn new(title: impl Into<String>, rule: impl Into<String>, help: impl Into<String>) -> Explanation {
        Explanation { title: title.into(), labels: Vec::new(), rule: rule.into(), help: help.into() }
    }

    /// With a place, and what happened there.
    pub fn at(mut self, place: &emulator::Place, text: impl Into<String>) -> Explanation {
        self.labels.push(Label::new(place.clone(), text));
        self
    }
}

/// Where the text of Rust files is found.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    roots: Vec<PathBuf>,
}

impl Sources {
    /// Files of this workspace: those of the folder that the program was started in, and of the folders above it.
    pub fn workspace() -> Sources {
        let mut roots: Vec<PathBuf> =
            env::current_dir().iter().flat_map(|at| at.ancestors()).map(PathBuf::from).collect();
        // A binary that is started elsewhere still finds the workspace it was built from.
        roots.extend(Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from));
        Sources { roots }
    }

    /// Files below this folder only: those of a hand-in.
    pub fn at(root: impl Into<PathBuf>) -> Sources {
        Sources { roots: vec![root.into()] }
    }

    /// No files: places are shown in the PTX text.
    pub fn none() -> Sources {
        Sources::default()
    }

    /// The text of a file. PTX text names the file, so it is read only if it is a Rust file below a root.
    pub(crate) fn read(&self, file: &str) -> Option<String> {
        let path = Path::new(file);
        let below = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !below || path.extension().is_none_or(|extension| extension != "rs") {
            return None;
        }
        self.roots.iter().find_map(|root| fs::read_to_string(root.join(path)).ok())
    }
}

/// A place with a few words.
struct Note<'a> {
    file: Option<(&'a str, u32, u32)>,
    ptx: Option<(u32, &'a str)>,
    text: &'a str,
}

struct Finding<'a> {
    level: Level<'a>,
    code: Option<&'a str>,
    title: &'a str,
    notes: Vec<Note<'a>>,
    rule: &'a str,
    help: &'a str,
    count: u64,
}

/// A finding of the emulator.
pub fn render(diagnostic: &Diagnostic, sources: &Sources) -> Told {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Finding => Level::ERROR.with_name("finding"),
        Severity::Note => Level::NOTE,
    };
    Finding {
        level,
        code: Some(diagnostic.code),
        title: &diagnostic.title,
        notes: notes(&diagnostic.labels),
        rule: &diagnostic.rule,
        help: &diagnostic.help,
        count: diagnostic.count,
    }
    .render(sources)
}

/// Findings, one after the other: the first three, and how many more there are.
pub fn render_all<'a>(diagnostics: impl IntoIterator<Item = &'a Diagnostic>, sources: &Sources) -> Told {
    first_few(diagnostics.into_iter().map(|diagnostic| render(diagnostic, sources)).collect())
}

/// The first three of some texts, and how many more there are.
pub(crate) fn first_few(mut texts: Vec<Told>) -> Told {
    // Root causes come first; what follows is often their consequence.
    const SHOWN: usize = 3;
    let more = texts.len().saturating_sub(SHOWN);
    texts.truncate(SHOWN);
    if more > 0 {
        let are = if more == 1 { "is" } else { "are" };
        texts.push(format!("There {are} {more} more.\n").into());
    }
    Told::joined(texts)
}

/// An explanation of the judge.
pub fn explain(explanation: &Explanation, sources: &Sources) -> Told {
    Finding {
        level: Level::ERROR,
        code: None,
        title: &explanation.title,
        notes: notes(&explanation.labels),
        rule: &explanation.rule,
        help: &explanation.help,
        count: 1,
    }
    .render(sources)
}

/// A call that the builder refused.
pub fn refused(error: &BuildErrorAt, sources: &Sources) -> Told {
    at(&error.message, &error.place, "refused here", &error.help, sources)
}

/// A sentence about one line of Rust.
pub fn at(title: &str, place: &Place, label: &str, help: &str, sources: &Sources) -> Told {
    let note = Note { file: Some((&place.file, place.line, place.column)), ptx: None, text: label };
    Finding { level: Level::ERROR, code: None, title, notes: vec![note], rule: "", help, count: 1 }.render(sources)
}

fn notes(labels: &[Label]) -> Vec<Note<'_>> {
    fn note(label: &Label) -> Note<'_> {
        let Label { place, text, .. } = label;
        let file = place.source.as_ref().map(|source| (source.file.as_str(), source.line, source.column));
        Note { file, ptx: (place.line > 0).then_some((place.line, place.text.as_str())), text }
    }
    labels.iter().map(note).collect()
}

impl<'a> Finding<'a> {
    fn render(self, sources: &Sources) -> Told {
        let mut files: HashMap<&str, Option<String>> = HashMap::new();
        for (file, ..) in self.notes.iter().filter_map(|note| note.file) {
            files.entry(file).or_insert_with(|| sources.read(file));
        }
        let mut title = self.level.primary_title(self.title);
        if let Some(code) = self.code {
            title = title.id(code);
        }
        let mut group = Group::with_title(title);
        let mut plain = Vec::new();
        // Places in one file share a snippet; the first place's file comes first.
        let mut snippets: Vec<(&str, Snippet<'_, _>)> = Vec::new();
        let mut texts: Vec<Snippet<'_, _>> = Vec::new();
        let mut place: Option<Place> = None;
        for (index, note) in self.notes.iter().enumerate() {
            let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let in_file = note.file.and_then(|(file, line, column)| {
                let text = files.get(file)?.as_deref()?;
                Some((file, text, span(text, line, column)?))
            });
            match (in_file, note.ptx, note.file) {
                (Some((file, text, span)), _, _) => {
                    let shown = note.file.map(|(file, line, column)| Place { file: file.to_string(), line, column });
                    place = place.filter(|place| place.file != PTX).or(shown);
                    let at = snippets.iter().position(|(known, _)| *known == file).unwrap_or_else(|| {
                        snippets.push((file, Snippet::source(text).path(file)));
                        snippets.len() - 1
                    });
                    let (file, snippet) = snippets.swap_remove(at);
                    snippets.push((file, snippet.annotation(kind.span(span).label(note.text))));
                    let last = snippets.len() - 1;
                    snippets.swap(at, last);
                }
                (None, Some((line, text)), file) => {
                    let path = match file {
                        Some((file, line, _)) => format!("{file}:{line}, PTX"),
                        None => {
                            place.get_or_insert_with(|| Place { file: PTX.to_string(), line, column: 1 });
                            PTX.to_string()
                        }
                    };
                    let snippet = Snippet::source(text).path(path).line_start(line as usize);
                    texts.push(snippet.annotation(kind.span(0..text.len()).label(note.text)));
                }
                (None, None, Some((file, line, _))) => plain.push(format!("{file}:{line}: {}", note.text)),
                (None, None, None) => plain.push(note.text.to_string()),
            }
        }
        group = group.elements(snippets.into_iter().map(|(_, snippet)| snippet)).elements(texts);
        for line in plain.iter().filter(|line| !line.is_empty()) {
            group = group.element(Level::NOTE.message(line.as_str()));
        }
        let again = format!("seen {} times", self.count);
        if self.count > 1 {
            group = group.element(Level::NOTE.message(again.as_str()));
        }
        // Lines of Rust: who wrote them has the builder's names before his eyes.
        let of_rust = self.notes.iter().any(|note| note.file.is_some());
        let calls = of_rust.then(|| named_in(self.help)).flatten().unwrap_or_default();
        let said = [("rule", self.rule), ("try", self.help), ("builder", calls.as_str())];
        for (name, text) in said.into_iter().filter(|(_, text)| !text.is_empty()) {
            let level = if name == "rule" { Level::NOTE } else { Level::HELP };
            group = group.element(level.with_name(name).message(text));
        }
        let text = Renderer::plain().render(&[group]);
        let mut text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        while text.ends_with("\n\n") {
            text.pop();
        }
        let code = self.code.map(str::to_string);
        Told { text, says: Says { code, place, ..Says::help(self.help) } }
    }
}

/// The bytes of the name (or number) that begins at this line and column; the rest of the line if none does.
fn span(text: &str, line: u32, column: u32) -> Option<std::ops::Range<usize>> {
    let mut start = 0;
    let mut lines = text.split_inclusive('\n');
    for _ in 1..line {
        start += lines.next()?.len();
    }
    let line = lines.next()?.trim_end();
    let skipped = (column.max(1) - 1) as usize;
    let first = line.char_indices().nth(skipped).map(|(at, _)| at).unwrap_or(line.len() - line.trim_start().len());
    let rest = line.get(first..)?;
    let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let length = if word == 0 { rest.len() } else { word };
    Some(start + first..start + first + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::Source;
    use expect_test::expect;

    fn label(line: u32, column: u32, text: &str) -> Label {
        let source = Source { file: "src/kernel.rs".to_string(), line, column };
        let place =
            emulator::Place {
                line: 90, column: 5, text: "st.shared.v4.b32 [%r1], {…};".into(), source: Some(source)
            };
        Label::new(place, text)
    }

    fn finding() -> Diagnostic {
        Diagnostic {
            code: "missing-proxy-fence",
            severity: Severity::Finding,
            title: "the MMA reads tile `a`, which was stored without a proxy fence".to_string(),
            labels: vec![label(4, 7, "read here"), label(2, 7, "stored here")],
            rule: "What generic stores wrote is visible to the async proxy after `fence.proxy.async`.".to_string(),
            help: "Call `k.fence_proxy_async()` after the stores.".to_string(),
            count: 128,
            confirmed: None,
        }
    }

    #[test]
    fn a_finding_shows_the_lines_of_rust() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        let text = "fn kernel() {\n    t.store(a, 1);\n    t.barrier();\n    t.mma(d, a, b);\n}\n";
        fs::write(folder.path().join("src/kernel.rs"), text).unwrap();
        expect![[r#"
            finding[missing-proxy-fence]: the MMA reads tile `a`, which was stored without a proxy fence
             --> src/kernel.rs:4:7
              |
            2 |     t.store(a, 1);
              |       ----- stored here
            3 |     t.barrier();
            4 |     t.mma(d, a, b);
              |       ^^^ read here
              |
              = note: seen 128 times
              = rule: What generic stores wrote is visible to the async proxy after `fence.proxy.async`.
              = try: Call `k.fence_proxy_async()` after the stores.
        "#]]
        .assert_eq(&render(&finding(), &Sources::at(folder.path())).text);
    }

    #[test]
    fn without_the_file_it_shows_the_ptx() {
        expect![[r#"
            finding[missing-proxy-fence]: the MMA reads tile `a`, which was stored without a proxy fence
              --> src/kernel.rs:4, PTX:90:1
               |
            90 | st.shared.v4.b32 [%r1], {…};
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ read here
               |
              ::: src/kernel.rs:2, PTX:90:1
               |
            90 | st.shared.v4.b32 [%r1], {…};
               | ---------------------------- stored here
               |
               = note: seen 128 times
               = rule: What generic stores wrote is visible to the async proxy after `fence.proxy.async`.
               = try: Call `k.fence_proxy_async()` after the stores.
        "#]]
        .assert_eq(&render(&finding(), &Sources::none()).text);
    }

    #[test]
    fn files_outside_of_the_root_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(folder.path().join("secret.rs"), "secret").unwrap();
        fs::write(inner.join("open.rs"), "open").unwrap();
        fs::write(inner.join("notes.txt"), "notes").unwrap();
        let sources = Sources::at(&inner);
        assert_eq!(sources.read("open.rs").as_deref(), Some("open"));
        for file in ["../secret.rs", "notes.txt", folder.path().join("secret.rs").to_str().unwrap()] {
            assert_eq!(sources.read(file), None, "{file}");
        }
    }

    #[test]
    fn a_line_or_column_that_does_not_exist_is_no_reason_to_panic() {
        for (line, column) in [(0, 0), (1, 1), (1, 99), (9, 1), (u32::MAX, u32::MAX)] {
            let _ = span("ä b\n", line, column);
        }
        assert_eq!(span("ä be c\n", 1, 3), Some(3..5));
    }
}
