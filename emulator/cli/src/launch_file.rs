//! The launch file: read, understood, its files brought in.

use crate::bad_input::BadInput;
use crate::locate::{field_at, locate};
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
    serde_json::from_str(text).map_err(|error| misread(path, text, &error))
}

/// Says what serde found, in the words of the other messages: the field, what was found, what is allowed.
fn misread(path: &Path, text: &str, error: &serde_json::Error) -> BadInput {
    let (line, column) = (error.line(), error.column());
    let said = error.to_string();
    let said = said.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&said);
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let last = before + column.saturating_sub(1);
    let field = field_at(text, last);
    let well_formed = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let (title, way_out) = if is_recording(text) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let way_out = format!(
            "Make the launch file of it: `cargo run -p emulator --example gluon -- {name} > {name}.launch.json`, and give that."
        );
        ("this is a compiler's recording, and no launch file".into(), way_out)
    } else if well_formed {
        in_words(said, &field)
    } else {
        (format!("this is no JSON: {said}"), "Write JSON (RFC 8259).".into())
    };
    // serde counts to the last byte of the value: mark all of it.
    let begin = text.as_bytes()[before.min(text.len())..last.min(text.len())]
        .iter()
        .rposition(|b| !(b.is_ascii_alphanumeric() || b"\"_.-+".contains(b)))
        .map_or(before, |at| before + at + 1);
    let end = (last + 1..text.len()).find(|&n| text.is_char_boundary(n)).unwrap_or(text.len());
    let begin = (0..=begin.min(end.saturating_sub(1))).rev().find(|&n| text.is_char_boundary(n)).unwrap_or(0);
    BadInput::at(&title, &path.display().to_string(), text, begin..end, "found here", &way_out)
}

/// Whether a text is what lies beside the kernels of `emulator/tests/gluon`: which compiler made it, and what it computes, which a launch file
/// does not say.
fn is_recording(text: &str) -> bool {
    let value: Result<serde_json::Value, _> = serde_json::from_str(text);
    value.is_ok_and(|value| ["compiler", "computes", "entry"].iter().all(|field| value[field].is_string()))
}

/// The title, and the way out, for what serde says of a field.
fn in_words(said: &str, field: &str) -> (String, String) {
    let of = if field.is_empty() { "the launch file".to_string() } else { format!("`{field}`") };
    let quoted = || said.split('`').nth(1).unwrap_or("?");
    if said.starts_with("missing field ") {
        return (format!("{of} lacks its field `{}`", quoted()), "docs/launch.schema.json lists every field.".into());
    }
    if said.starts_with("duplicate field ") {
        return (format!("{of} has its field `{}` twice", quoted()), "Give each field once.".into());
    }
    let Some((found, expected)) = said.split_once(", expected ") else {
        let names = names(field);
        if !names.is_empty() {
            return (format!("{of} is no text in quotes"), format!("Allowed here: {names}."));
        }
        // A value of one of several kinds that is no object with one field, which names the kind. Of one with several fields, serde
        // names the first.
        let whole = if kinds(field).is_empty() { field.rsplit_once('.').map(|(whole, _)| whole) } else { None };
        let title = match whole {
            Some(whole) => format!("`{whole}` has more than one field"),
            None => format!("{of} does not name its kind"),
        };
        let kinds = kinds(whole.unwrap_or(field));
        return (title, format!("Allowed here: an object with one field, which names the kind: {kinds}."));
    };
    let allowed = format!("Allowed here: {}.", allowed(expected, field));
    if found.starts_with("unknown field ") {
        let place = if field.is_empty() { String::new() } else { format!(" in {of}") };
        return (format!("unknown field `{}`{place}", quoted()), allowed);
    }
    if found.starts_with("unknown variant ") {
        let last = field.rsplit('.').next().unwrap_or_default();
        let example = match last.split('[').next().unwrap_or_default() {
            "params" => " As in `{ \"pointer\": { \"buffer\": 0 } }` or `{ \"u32\": 1000 }`.",
            "content" => " As in `{ \"fill\": { \"bytes\": 4096, \"value\": 0 } }`.",
            _ => "",
        };
        return (format!("{of} cannot be `{}`", quoted()), allowed + example);
    }
    if let Some(length) = found.strip_prefix("invalid length ") {
        return (format!("{of} is a list of length {length}"), allowed);
    }
    let value = found.split_once(": ").map_or(found, |(_, value)| value);
    let value = match value {
        "map" => "an object",
        "sequence" => "a list",
        "null" | "unit" | "unit value" => "`null`",
        "unit variant" => "a name alone",
        _ => ["integer ", "string ", "floating point ", "boolean ", "number "]
            .iter()
            .find_map(|kind| value.strip_prefix(kind))
            .unwrap_or(value),
    };
    (format!("{of} cannot be {value}"), allowed)
}

/// What serde expected, with its names of Rust types in words.
fn allowed(expected: &str, field: &str) -> String {
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
        "a boolean" => "`true` or `false`".into(),
        "a string" => "a text in quotes".into(),
        "a sequence" => "a list".into(),
        "a map" => "an object".into(),
        "an array of length 3" => "a list of three numbers: x, y, z".into(),
        other if other.starts_with("struct ") => {
            let fields = kinds(field);
            if fields.is_empty() { "an object".into() } else { format!("an object with fields of {fields}") }
        }
        other if other.contains("enum ") || other.contains("variant") => {
            format!("an object with one field, which names the kind: {}", kinds(field))
        }
        other => other.replace("one of ", ""),
    }
}

/// What serde expects in the place of a text.
fn expected<T: serde::de::DeserializeOwned>(text: &str) -> String {
    let error = serde_json::from_str::<T>(text).err().map(|e| e.to_string()).unwrap_or_default();
    let listed = error.split_once("expected ").map_or("", |(_, list)| list);
    listed.split(" at line ").next().unwrap_or("").replace("one of ", "")
}

/// The names that a field can have, where its value is one of some names.
fn names(field: &str) -> String {
    fn list<T: serde::de::DeserializeOwned>() -> String {
        expected::<T>("\"\"")
    }
    match field.rsplit('.').next().unwrap_or("") {
        "swizzle" => list::<emulator::Swizzle>(),
        "element" => list::<emulator::Element>(),
        "type" => list::<emulator::NumberType>(),
        "space" => list::<emulator::RegionSpace>(),
        _ => String::new(),
    }
}

/// The kinds that the value of a field can have, as serde lists them, or its fields.
fn kinds(field: &str) -> String {
    fn list<T: serde::de::DeserializeOwned>() -> String {
        expected::<T>("{\"\":0}")
    }
    let last = field.rsplit('.').next().unwrap_or("");
    match last.split('[').next().unwrap_or("") {
        "content" => list::<emulator::Content>(),
        "params" | "value" => list::<emulator::Param>(),
        "distribution" => list::<emulator::Distribution>(),
        "kind" => list::<emulator::RegionKind>(),
        "" => list::<Launch>(),
        "buffers" => list::<emulator::Buffer>(),
        "random" => list::<emulator::Random>(),
        "map" => list::<emulator::TensorMap>(),
        "regions" => list::<emulator::Region>(),
        "attributes" => list::<emulator::Attributes>(),
        "outputs" => list::<emulator::Output>(),
        "struct" | "param_block" => list::<emulator::Block>(),
        "fields" => list::<emulator::Field>(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number, or nothing, where one of some names belongs.
    #[test]
    fn what_is_no_name_is_told_the_names() {
        for (value, field) in [("3", "swizzle"), ("null", "swizzle"), ("6", "element")] {
            let text =
                format!("{{\"entry\":\"k\",\"params\":[{{\"tensor_map\":{{\"map\":{{\"{field}\":{value}}}}}}}]}}");
            let message = parse(Path::new("l.json"), &text).unwrap_err().text;
            let title = format!("`params[0].tensor_map.map.{field}` is no text in quotes");
            assert!(message.contains(&title) && message.contains("Allowed here: `"), "{value}: {message}");
        }
    }

    #[test]
    fn text_that_is_no_launch_file_is_no_reason_to_panic() {
        for text in
            ["", "{", "ä", "{\"entry\": \"ä", "{\"ä\": 1}", "[\n\n", "{\"entry\":\n7}", "\u{feff}{}", "nul", "{} ä"]
        {
            let error = serde_json::from_str::<Launch>(text).unwrap_err();
            let message = misread(Path::new("l.json"), text, &error).text;
            assert!(message.contains("try: "), "{text:?}: {message}");
        }
    }
}
