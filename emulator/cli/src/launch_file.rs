//! The launch file: read, understood, its files brought in.

use crate::bad_input::BadInput;
use crate::locate::locate;
use emulator::{Content, Launch};
use std::fs;
use std::path::Path;

/// Bytes of a file that a buffer holds, at most: what a run takes.
const MOST: u64 = 1 << 32;

/// The launch that a file describes, and the text of the file. Files that buffers name are read.
pub fn read(path: &Path) -> Result<(Launch, String), BadInput> {
    let text = fs::read_to_string(path)
        .map_err(|e| BadInput::file(path, "read", &e, "Give a launch file; docs/emulate.md describes it."))?;
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
            Ok(bytes) => buffer.content = Content::Bytes(bytes),
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
    serde_json::from_str(text).map_err(|e| misread(path, text, &e))
}

/// Says what serde found, in the words of the other messages.
fn misread(path: &Path, text: &str, error: &serde_json::Error) -> BadInput {
    let (line, column) = (error.line(), error.column());
    let said = error.to_string();
    let said = said.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&said);
    let (title, way_out) = match said.split_once(", expected ") {
        Some((found, expected)) => (in_words(found), format!("Allowed here: {}.", allowed(expected))),
        None if error.is_syntax() || error.is_eof() => {
            (format!("this is no JSON: {said}"), "Write JSON (RFC 8259).".into())
        }
        None => (said.to_string(), "docs/launch.schema.json lists every field.".into()),
    };
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let last = before + column.saturating_sub(1);
    // serde counts to the last byte of the value: mark all of it.
    let begin = text.as_bytes()[before.min(text.len())..last.min(text.len())]
        .iter()
        .rposition(|b| !(b.is_ascii_alphanumeric() || b"\"_.-+".contains(b)))
        .map_or(before, |at| before + at + 1);
    let end = (last + 1..text.len()).find(|&n| text.is_char_boundary(n)).unwrap_or(text.len());
    let begin = (0..=begin.min(end.saturating_sub(1))).rev().find(|&n| text.is_char_boundary(n)).unwrap_or(0);
    BadInput::at(&title, &path.display().to_string(), text, begin..end, "found here", &way_out)
}

/// `invalid type: string "x"` without the words that say nothing.
fn in_words(found: &str) -> String {
    let Some((_, value)) = found.split_once(": ").filter(|(what, _)| what.starts_with("invalid ")) else {
        return found.replace("invalid length ", "a list of length ");
    };
    let value = match value {
        "map" => "an object",
        "sequence" => "a list",
        _ => ["integer ", "string ", "floating point ", "boolean "]
            .iter()
            .find_map(|kind| value.strip_prefix(kind))
            .unwrap_or(value),
    };
    format!("{value} does not fit here")
}

/// What serde expected, with its names of Rust types in words.
fn allowed(expected: &str) -> String {
    let range = |low: i128, high: i128| format!("a whole number from {low} to {high}");
    match expected {
        "u8" => range(0, u8::MAX.into()),
        "u16" => range(0, u16::MAX.into()),
        "u32" => range(0, u32::MAX.into()),
        "u64" | "usize" => range(0, u64::MAX.into()),
        "i8" => range(i8::MIN.into(), i8::MAX.into()),
        "i16" => range(i16::MIN.into(), i16::MAX.into()),
        "i32" => range(i32::MIN.into(), i32::MAX.into()),
        "i64" => range(i64::MIN.into(), i64::MAX.into()),
        "f32" | "f64" => "a number".into(),
        "a sequence" => "a list".into(),
        "a map" => "an object".into(),
        "an array of length 3" => "a list of three numbers: x, y, z".into(),
        other if other.starts_with("struct ") || other.starts_with("enum ") => {
            format!("an object ({})", other.trim_start_matches("struct ").trim_start_matches("enum "))
        }
        other => other.replace("one of ", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_launch_file_is_no_reason_to_panic() {
        for text in
            ["", "{", "ä", "{\"entry\": \"ä", "{\"ä\": 1}", "[\n\n", "{\"entry\":\n7}", "\u{feff}{}", "nul", "{} ä"]
        {
            let error = serde_json::from_str::<Launch>(text).unwrap_err();
            let message = misread(Path::new("l.json"), text, &error).to_string();
            assert!(message.contains("try: "), "{text:?}: {message}");
        }
    }
}
