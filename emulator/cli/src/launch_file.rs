//! The launch file: read, understood, its files brought in.

use crate::bad_input::BadInput;
use crate::file::text_of;
use crate::locate::locate;
use crate::tree::{DEEPEST, Node, too_deep};
use crate::{shape, show};
use emulator::{Content, Launch};
use serde_json::error::Category;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Bytes of a file that a buffer holds, at most: what a run takes.
const MOST: u64 = 1 << 32;

/// The launch that a file describes, and the text of the file. Files that buffers name are read.
pub fn read(path: &Path) -> Result<(Launch, String), BadInput> {
    let text = text_of(path, "Give a launch file; docs/emulate.md describes it.")?;
    let mut launch = parse(path, &text)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    for n in 0..launch.buffers.len() {
        let buffer = &mut launch.buffers[n];
        let Content::File(file) = &buffer.content else { continue };
        let from = folder.join(file);
        let bytes = match fs::metadata(&from) {
            Ok(meta) if !meta.is_file() => Err("it is no file".to_string()),
            Ok(meta) if meta.len() > MOST => Err(format!("it has {} bytes (up to {MOST})", meta.len())),
            _ => fs::read(&from).map_err(|e| e.to_string()),
        };
        match bytes {
            Ok(bytes) => buffer.content = Content::Bytes(bytes.into()),
            Err(why) => {
                let title = format!("buffer {n} (`{}`) names a file that cannot be read: {why}", buffer.name);
                let field = format!("buffers[{n}].content.file");
                let range = locate(&text, &field).unwrap_or(0..1);
                let label = format!("looked for {}", from.display());
                let help = "A relative path counts from the launch file's folder.";
                return Err(BadInput::at(&title, &path.display().to_string(), &text, range, &label, help));
            }
        }
    }
    Ok((launch, text))
}

/// The launch that a text describes, as it stands: `path` is only named in messages.
pub fn parse(path: &Path, text: &str) -> Result<Launch, BadInput> {
    let at = |title: &str, range, way_out: &str| {
        BadInput::at(title, &path.display().to_string(), text, show::first_line(text, range), "found here", way_out)
    };
    if let Some(range) = too_deep(text) {
        let title = format!("this is no launch file: here more than {DEEPEST} values lie within each other");
        return Err(at(&title, range, SHALLOW));
    }
    let wrong = Node::read(text).map_or(Vec::new(), |tree| shape::wrong(text, &tree));
    let launch = match wrong.is_empty() {
        false => Err(BadInput::all(wrong.iter().map(|w| at(&w.title, w.range.clone(), &w.way_out)))),
        true => serde_json::from_str(text).map_err(|error| {
            let (title, way_out) = misread(text, &error);
            at(&title, place(text, &error), way_out)
        }),
    };
    launch.map_err(|bad| {
        if !is_recording(text) {
            return bad;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let way_out = format!(
            "Make the launch file of it: `cargo run -p emulator --example gluon -- {name} > {name}.launch.json`, and give that."
        );
        at("this is a compiler's recording, and no launch file", 0..text.len(), &way_out)
    })
}

/// What serde found in a text that is no JSON.
fn misread(text: &str, error: &serde_json::Error) -> (String, &'static str) {
    let said = error.to_string();
    let said = said.strip_suffix(&format!(" at line {} column {}", error.line(), error.column())).unwrap_or(&said);
    match error.classify() {
        _ if text.starts_with('\u{feff}') => {
            ("the file begins with a byte-order mark".into(), "Save it as UTF-8 without one.")
        }
        Category::Eof => ("this is no JSON: the text ends too early".into(), JSON),
        Category::Syntax => (format!("this is no JSON: {said}"), JSON),
        Category::Data | Category::Io => (format!("this is no launch file: {said}"), SCHEMA),
    }
}

const JSON: &str = "Write JSON (RFC 8259): names and texts in double quotes, a comma between values and none behind the last, no comments.";
const SHALLOW: &str = "Close the brackets: the values of a launch file lie a few deep (docs/launch.schema.json).";
const SCHEMA: &str = "docs/launch.schema.json says what there is.";

/// The word that ends where serde stopped.
fn place(text: &str, error: &serde_json::Error) -> Range<usize> {
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let last = before + error.column().saturating_sub(1);
    let begin = text.as_bytes()[before.min(text.len())..last.min(text.len())]
        .iter()
        .rposition(|b| !(b.is_ascii_alphanumeric() || b"\"_.-+".contains(b)))
        .map_or(before, |at| before + at + 1);
    let end = (last + 1..text.len()).find(|&n| text.is_char_boundary(n)).unwrap_or(text.len());
    let begin = (0..=begin.min(end.saturating_sub(1))).rev().find(|&n| text.is_char_boundary(n)).unwrap_or(0);
    begin..end
}

/// Whether a text is what lies beside the kernels of `emulator/tests/gluon`: which compiler made it, and what it computes, which a launch file
/// does not say.
fn is_recording(text: &str) -> bool {
    let value: Result<serde_json::Value, _> = serde_json::from_str(text);
    value.is_ok_and(|value| ["compiler", "computes", "entry"].iter().all(|field| value[field].is_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_launch_file_is_no_reason_to_panic() {
        for text in [
            "",
            "{",
            "ä",
            "{\"entry\": \"ä",
            "{\"ä\": 1}",
            "[\n\n",
            "{\"entry\":\n7}",
            "\u{feff}{}",
            "nul",
            "{} ä",
            "[1]",
        ] {
            let message = parse(Path::new("l.json"), text).unwrap_err().text;
            assert!(message.contains("try: "), "{text:?}: {message}");
        }
    }
}
