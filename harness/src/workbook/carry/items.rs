//! What stands in a file beside the kernel function: constants, functions, types, `use`.

use super::super::tokens::{Kind, Token, tokens};

/// An item of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// `const EPI_N`.
    pub title: String,
    /// What it defines; empty for `use`, `const _` and the like.
    pub name: String,
    /// Its line, from 1.
    pub line: usize,
    /// Its code without layout.
    code: Vec<String>,
}

impl Item {
    /// Whether both are the same code.
    pub fn is_the_same_as(&self, other: &Item) -> bool {
        self.code == other.code
    }
}

/// Words of an item that say what it is.
const KINDS: [&str; 10] = ["const", "static", "fn", "struct", "enum", "type", "trait", "impl", "use", "mod"];

/// The items of a file, in order.
pub(crate) fn items(text: &str) -> Vec<Item> {
    let all: Vec<Token<'_>> = tokens(text).into_iter().filter(|token| token.kind != Kind::Comment).collect();
    let mut items = Vec::new();
    let (mut begin, mut depth) = (0, 0);
    for (index, token) in all.iter().enumerate() {
        depth += token.nests();
        let block = token.is("}") && !all.get(index + 1).is_some_and(|next| next.is(";"));
        if depth <= 0 && (token.is(";") || block) {
            items.extend(item(text, &all[begin..=index]));
            (begin, depth) = (index + 1, 0);
        }
    }
    items
}

fn item(text: &str, tokens: &[Token<'_>]) -> Option<Item> {
    let at = tokens.iter().position(|token| KINDS.iter().any(|kind| token.is(kind)))?;
    // `const fn`: the last of such words.
    let at = (at..tokens.len()).take_while(|at| KINDS.iter().any(|kind| tokens[*at].is(kind))).last()?;
    let named = !["use", "impl"].contains(&tokens[at].text);
    let name = tokens.get(at + 1).filter(|token| named && token.kind == Kind::Word).map_or("", |token| token.text);
    let name = name.trim_start_matches('_');
    let line = text[..tokens.first()?.at].matches('\n').count() + 1;
    let title = format!("{} {name}", tokens[at].text).trim_end().to_string();
    let code = tokens.iter().map(|token| token.text.to_string()).collect();
    Some(Item { title, name: name.to_string(), line, code })
}

/// The items of a student's file that the untouched one has not so; the kernel function aside.
pub(crate) fn added(untouched: &str, file: &str) -> Vec<Item> {
    let known = items(untouched);
    let new = items(file).into_iter().filter(|item| !known.iter().any(|other| other.is_the_same_as(item)));
    new.filter(|item| item.title != "fn kernel").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_were_added() {
        let untouched = "//! Doc\nuse ptx::prelude::*;\n/// Rows.\nconst M: u32 = 8;\nconst _: () =\n assert!(M == 8, \"}\");\n\
                         const N: u32 = 1;\npub fn kernel(k: &mut Cta) {\n k.todo(\"1.1\");\n}\n";
        let file = untouched.replace("N: u32 = 1", "N: u32 = 2").replace("k.todo", "k.x")
            + "\nconst fn twice(n: u32) -> u32 {\n 2 * n\n}\nuse std::fmt;\nstruct Pair { a: u32 }\nconst LIST: [u32; 2] = [1, 2];\n";
        let all: Vec<(String, usize)> =
            added(untouched, &file).into_iter().map(|item| (item.title, item.line)).collect();
        let expected = [("const N", 7), ("fn twice", 12), ("use", 15), ("struct Pair", 16), ("const LIST", 17)];
        assert_eq!(all, expected.map(|(title, line)| (title.to_string(), line)));
        assert_eq!(added(untouched, untouched), []);
    }
}
