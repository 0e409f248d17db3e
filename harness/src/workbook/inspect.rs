//! A kernel's PTX, each instruction under the line of Rust that wrote it.

use crate::{Built, Place, ptxas};
use colored::Colorize;
use ptx::{RegionKind, Space};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A line of PTX, and the line of Rust that a `.loc` names for it.
struct PtxLine<'a> {
    place: Option<(&'a str, u32)>,
    text: &'a str,
}

/// The PTX with its Rust lines. `source` gives a line of a file, if it can be read.
///
/// Writing to a `String` cannot fail, so results of `write!` are dropped here and below.
pub fn listing(built: &Built, source: &mut dyn FnMut(&str, u32) -> Option<String>) -> String {
    let lines = attribute(built);
    let mut text = String::new();
    let mut file = None;
    let mut at = None;
    for line in &lines {
        if let Some((name, number)) = line.place {
            if file != Some(name) {
                let _ = writeln!(text, "{}", format!("--> {name}").blue());
                file = Some(name);
            }
            if at != line.place {
                let rust = source(name, number).map(|rust| format!(" {}", rust.trim_end().bold())).unwrap_or_default();
                let _ = writeln!(text, "{}{rust}", format!("{number:>4} |").blue());
                at = line.place;
            }
        }
        let shown = format!("{} {}", "     |".blue(), line.text);
        let _ = writeln!(text, "{}", if line.text.is_empty() { "     |".blue().to_string() } else { shown });
    }
    text
}

/// Takes `.file` and `.loc` out of the text and gives each other line its place.
fn attribute(built: &Built) -> Vec<PtxLine<'_>> {
    let ptx = built.ptx.as_str();
    let mut todos = built.todos.iter();
    let mut files: BTreeMap<&str, &str> = BTreeMap::new();
    for line in ptx.lines() {
        if let Some((number, name)) = line.trim().strip_prefix(".file").and_then(|rest| rest.trim().split_once(' ')) {
            files.insert(number, name.trim().trim_matches('"'));
        }
    }
    let mut place = None;
    let mut lines = Vec::new();
    for line in ptx.lines() {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix(".loc") {
            let mut words = rest.split_whitespace();
            let file = words.next().and_then(|number| files.get(number).copied());
            place = file.zip(words.next().and_then(|number| number.parse().ok()));
        } else if !trimmed.starts_with(".file") {
            // What closes the body belongs to no line.
            let closes = trimmed == "}" && !line.starts_with(char::is_whitespace);
            lines.push(PtxLine { place: place.filter(|_| !closes), text: line.trim_end() });
        }
    }
    // An open TODO writes nothing but its comment.
    let mut own = vec![false; lines.len()];
    for (line, own) in lines.iter_mut().zip(&mut own) {
        if let Some(id) = line.text.trim_start().strip_prefix("// TODO ")
            && let Some(todo) = todos.find(|todo| todo.id == id)
        {
            line.place = Some((todo.place.file.as_str(), todo.place.line));
            *own = true;
        }
    }
    // Any other comment belongs to what follows it; empty lines are of use between declarations only.
    for index in (0..lines.len().saturating_sub(1)).rev() {
        let text = lines[index].text.trim_start();
        if !own[index] && (text.is_empty() || text.starts_with("//")) {
            lines[index].place = lines[index + 1].place;
        }
    }
    lines.retain(|line| line.place.is_none() || !line.text.is_empty());
    lines
}

/// What the kernel takes: threads, registers, shared memory, barriers, tensor memory.
pub fn summary(built: &Built) -> String {
    let [x, y, z] = built.grid;
    let ctas = u64::from(x) * u64::from(y) * u64::from(z);
    let threads: u64 = built.block.iter().map(|extent| u64::from(*extent)).product();
    let mut text = String::new();
    let plural = if ctas == 1 { "" } else { "s" };
    let _ = writeln!(text, "launch     {ctas} CTA{plural} (grid {x}x{y}x{z}) of {threads} threads");
    if built.cluster != [1, 1, 1] {
        let [x, y, z] = built.cluster;
        let _ = writeln!(text, "clusters   of {x}x{y}x{z} CTAs");
    }
    let _ = writeln!(text, "registers  {}", registers(&built.ptx));
    let _ = writeln!(text, "shared     {} bytes, dynamic", built.dynamic_shared);
    let map = |text: &mut String, title: &str, unit: &str, wanted: &dyn Fn(&ptx::Region) -> bool| {
        let mut regions: Vec<&ptx::Region> = built.regions.iter().filter(|region| wanted(region)).collect();
        regions.sort_by_key(|region| region.offset);
        for (index, region) in regions.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let _ =
                writeln!(text, "{title:<9}  {:>6} + {:>6} {unit}  {}", region.offset, region.bytes, describe(region));
        }
    };
    let shared = |region: &ptx::Region| region.space == Space::DynamicShared;
    map(&mut text, "", "bytes  ", &|region| shared(region) && region.kind != RegionKind::Barrier);
    map(&mut text, "barriers", "bytes  ", &|region| shared(region) && region.kind == RegionKind::Barrier);
    map(&mut text, "tensor", "columns", &|region| region.space == Space::Tensor);
    text
}

fn describe(region: &ptx::Region) -> String {
    let mut text = region.name.clone();
    if let Some(stage) = region.stage {
        let _ = write!(text, ", stage {stage}");
    }
    if let RegionKind::Tile { rows, columns, element_bytes, swizzle } = region.kind {
        let _ = write!(text, ": {rows} x {columns} elements of {element_bytes} bytes");
        match swizzle {
            0 => text.push_str(", no swizzle"),
            bytes => {
                let _ = write!(text, ", {bytes}-byte swizzle");
            }
        }
    }
    text
}

/// Virtual registers that the text declares, by type.
fn registers(ptx: &str) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for line in ptx.lines() {
        let Some(rest) = line.trim().strip_prefix(".reg") else { continue };
        let mut words = rest.trim().trim_end_matches(';').splitn(2, char::is_whitespace);
        let (Some(ty), Some(names)) = (words.next(), words.next()) else { continue };
        for name in names.split(',') {
            let count = name.split_once('<').and_then(|(_, count)| count.trim().trim_end_matches('>').parse().ok());
            *counts.entry(ty).or_default() += count.unwrap_or(1);
        }
    }
    if counts.is_empty() {
        return "none".to_string();
    }
    let list: Vec<String> = counts.iter().map(|(ty, count)| format!("{count} {ty}")).collect();
    format!("{} (virtual, all that the PTX names)", list.join(", "))
}

/// What the assembler says of it, in a line; that there is no assembler, if so.
pub fn assembler(result: &Result<ptxas::Usage, ptxas::Failure>) -> String {
    match result {
        Ok(usage) => format!(
            "ptxas      {} registers a thread, {} bytes spilled, {} bytes of stack, {} bytes of static shared memory\n",
            usage.registers, usage.spills, usage.stack, usage.static_shared
        ),
        Err(ptxas::Failure::Unavailable(why) | ptxas::Failure::TookTooLong(why) | ptxas::Failure::Here(why)) => {
            format!("ptxas      not asked: {why}\n")
        }
        Err(ptxas::Failure::Refused(errors)) => {
            let line = |error: &ptxas::AssemblerError| {
                let place = match &error.source {
                    Some(place) => place.to_string(),
                    None => format!("PTX line {}", error.line),
                };
                format!("ptxas      refuses it: {place}: {}\n", error.message)
            };
            errors.iter().map(line).collect()
        }
    }
}

/// The TODOs that are still open, a line each.
pub fn open_todos(built: &Built) -> String {
    let line = |id: &str, place: &Place| format!("open TODO  {id} at {place}\n");
    built.todos.iter().map(|todo| line(&todo.id, &todo.place)).collect()
}

/// The tensor memory that is never freed, a line each.
pub fn leaks(built: &Built) -> String {
    built.leaks.iter().map(|leak| format!("leak       {} at {}\n", leak.message, leak.place)).collect()
}
