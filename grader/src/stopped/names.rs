//! Names in a kernel's text that reach beyond what a kernel is built of. Comments and texts in quotes count for nothing.

use super::What;
use harness::workbook::tokens::{Token, code};

/// A name, and the line that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub what: What,
    pub name: String,
    pub line: u32,
}

/// Modules of `std` that no kernel needs.
const MODULES: &[(&str, What)] = &[
    ("net", What::Network),
    ("fs", What::Files),
    ("process", What::Processes),
    ("thread", What::Threads),
    ("env", What::Environment),
    ("os", What::System),
    ("arch", What::Unsafe),
    ("io", What::Output),
    ("panic", What::Output),
];

/// Macros by which the compiler reads something else, or takes code as it is.
const MACROS: &[(&str, What)] = &[
    ("include", What::Build),
    ("include_str", What::Build),
    ("include_bytes", What::Build),
    ("env", What::Build),
    ("option_env", What::Build),
    ("asm", What::Unsafe),
    ("global_asm", What::Unsafe),
];

/// What an attribute begins with.
const ATTRIBUTES: &[(&str, What)] = &[
    ("path", What::Build),
    ("feature", What::Build),
    ("proc_macro", What::Build),
    ("link", What::Unsafe),
    ("link_section", What::Unsafe),
    ("no_mangle", What::Unsafe),
    ("export_name", What::Unsafe),
];

/// All such names, in the order of the text.
pub(super) fn of(text: &str) -> Vec<Named> {
    let tokens = code(text);
    let at = |n: usize| tokens.get(n).map_or("", |token| token.text);
    let path = |n: usize| at(n) == ":" && at(n + 1) == ":";
    let mut all = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for (n, token) in tokens.iter().enumerate() {
        line += text[counted..token.at].matches('\n').count() as u32;
        counted = token.at;
        let mut add = |what, name: String| all.push(Named { what, name, line });
        let find =
            |list: &[(&str, What)], word: &str| list.iter().find(|(known, _)| *known == word).map(|(_, what)| *what);
        let inner = at(n + 1) == "!" && at(n + 2) == "[";
        match token.text {
            "std" | "core" if path(n + 1) => {
                for module in first_of_path(&tokens, n + 3) {
                    if let Some(what) = find(MODULES, module) {
                        add(what, format!("{}::{module}", token.text));
                    }
                }
            }
            "std" if at(n + 1) == "as" => add(What::System, format!("std as {}", short(at(n + 2)))),
            "unsafe" => add(What::Unsafe, "unsafe".to_string()),
            "extern" if at(n + 1) == "crate" => add(What::Build, format!("extern crate {}", short(at(n + 2)))),
            "extern" => add(What::Unsafe, "extern".to_string()),
            "mod" if at(n + 2) == ";" => add(What::Build, format!("mod {};", short(at(n + 1)))),
            "#" if at(n + 1) == "[" || inner => {
                let word = if inner { at(n + 3) } else { at(n + 2) };
                if let Some(what) = find(ATTRIBUTES, word) {
                    add(what, format!("#{}[{word}", if inner { "!" } else { "" }) + "]");
                }
            }
            word if at(n + 1) == "!" && at(n + 2) != "=" => {
                if let Some(what) = find(MACROS, word) {
                    add(what, format!("{word}!"));
                }
            }
            _ => {}
        }
    }
    all
}

/// Words and signs of a list in braces that are looked at: no list of modules is longer, and a text of a thousand lists that never end is
/// read once.
const LIST: usize = 1000;

/// The first words behind `std::`: one, or each of a list in braces.
fn first_of_path<'a>(tokens: &[Token<'a>], begin: usize) -> Vec<&'a str> {
    let at = |n: usize| tokens.get(n).map(|token| token.text);
    if at(begin) != Some("{") {
        return at(begin).into_iter().collect();
    }
    let (mut depth, mut first, mut all, mut n) = (1, true, Vec::new(), begin + 1);
    while let Some(text) = at(n).filter(|_| depth > 0 && n < begin + LIST) {
        match text {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 1 => first = true,
            word => {
                if first && depth == 1 {
                    all.push(word);
                }
                first = false;
            }
        }
        n += 1;
    }
    all
}

/// A name that somebody chose, which may be of any length.
fn short(name: &str) -> &str {
    const SHOWN: usize = 60;
    name.char_indices().nth(SHOWN).map_or(name, |(end, _)| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        of(text).into_iter().map(|named| format!("{} {}", named.line, named.name)).collect()
    }

    #[test]
    fn names_are_found_whatever_way_they_are_written() {
        assert_eq!(found("use std::{cmp, net::TcpStream,\n fs as f};"), ["1 std::net", "1 std::fs"]);
        assert_eq!(found("fn a() {\n std :: process\n ::exit(0) }"), ["2 std::process"]);
        assert_eq!(found("use std as s;"), ["1 std as s"]);
        assert_eq!(found("const A: &str = include_str!(\"x\");\nunsafe { }"), ["1 include_str!", "2 unsafe"]);
        assert_eq!(
            found("#![feature(x)]\n#[path = \"/x\"] mod other;"),
            ["1 #![feature]", "2 #[path]", "2 mod other;"]
        );
        assert_eq!(found("extern crate proc_macro;\nextern \"C\" {}"), ["1 extern crate proc_macro", "2 extern"]);
    }

    #[test]
    fn what_is_no_name_is_not_found() {
        for text in [
            "// std::net and unsafe",
            "/* std::fs /* unsafe */ std::net */",
            "let a = \"std::net \\\" unsafe\";",
            "let a = r#\"std::fs \" unsafe\"#;",
            "let a = ['\\'', 'x']; fn b<'a>(c: &'a str) {}",
            "use std::{array, iter};",
            "let path = std::array::from_fn(|n| n); env.include(a != b);",
            "let b = br\"unsafe\"; let c = b'\\''; let d = b\"unsafe\";",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_text_that_ends_anywhere_is_read_to_its_end() {
        let text = "use std::{net, r#\"a\"#, 'x', /* y */ b'\\u{7f}', \"z\"};é'";
        for end in (0..text.len()).filter(|n| text.is_char_boundary(*n)) {
            of(&text[..end]);
        }
    }
}
