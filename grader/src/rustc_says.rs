//! What a compiler says of a kernel: the words are rustc's, which no type carries. They are read here alone.

use harness::workbook::name;
use harness::{Cause, Place, Unbuilt};

/// That a kernel does not compile.
pub(crate) fn unbuilt(step: u8, errors: &str) -> Unbuilt {
    let title = "it does not compile";
    let first = errors.lines().map(str::trim).find(|line| line.starts_with("error"));
    let help = errors.lines().find_map(|line| line.trim_start().trim_start_matches("= ").strip_prefix("help: "));
    let check = || format!("Run `cargo check -p {}` until it compiles.", name(step));
    Unbuilt {
        cause: Cause::NotCompiled,
        text: format!("{title}:\n{errors}"),
        title: first.map_or(title.to_string(), |first| format!("{title}: {first}")),
        place: place(errors),
        help: Some(help.map_or_else(check, str::to_string)),
    }
}

/// The place that it shows first: of Rust, if it shows any.
fn place(errors: &str) -> Option<Place> {
    let shown = |line: &str| {
        let mut pieces = line.trim_start().strip_prefix("--> ")?.trim().splitn(3, ':');
        let (file, line) = (pieces.next()?, pieces.next()?.parse().ok()?);
        let column = pieces.next().and_then(|column| column.parse().ok()).unwrap_or(1);
        Some(Place { file: file.to_string(), line, column })
    };
    let places: Vec<Place> = errors.lines().filter_map(shown).collect();
    places.iter().find(|place| place.file.ends_with(".rs")).or(places.first()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_its_place_and_what_to_try_are_found() {
        let errors = "error[E0425]: cannot find value `x`\n  --> steps/step01/src/kernel.rs:61:9\n   |\n   = help: consider `y`\n\nerror: aborting\n";
        let all = unbuilt(1, errors);
        assert_eq!(all.title, "it does not compile: error[E0425]: cannot find value `x`");
        assert_eq!(all.place.map(|place| place.to_string()).as_deref(), Some("steps/step01/src/kernel.rs:61"));
        assert_eq!(all.help.as_deref(), Some("consider `y`"));
        assert_eq!(all.text, format!("it does not compile:\n{errors}"));
        let bare = unbuilt(2, "error: expected one of `;`\n --> b\n");
        assert_eq!((bare.place, bare.help.as_deref()), (None, Some("Run `cargo check -p step02` until it compiles.")));
    }
}
