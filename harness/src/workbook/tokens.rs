//! Rust in pieces: enough to compare code whatever its layout, and to see where a block ends. Never fails: text that is
//! not Rust gives pieces, too.

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or keyword.
    Word,
    /// A number.
    Number,
    /// A string or character.
    Text,
    /// One sign.
    Sign,
    /// A comment.
    Comment,
}

/// A piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// Where it begins, in bytes.
    pub at: usize,
}

impl Token<'_> {
    /// Whether it is this name, number or sign.
    pub fn is(&self, text: &str) -> bool {
        self.kind != Kind::Text && self.kind != Kind::Comment && self.text == text
    }

    /// By how much it changes how deep blocks and brackets are nested.
    pub fn nests(&self) -> i32 {
        match (self.kind, self.text) {
            (Kind::Sign, "{" | "(" | "[") => 1,
            (Kind::Sign, "}" | ")" | "]") => -1,
            _ => 0,
        }
    }
}

/// The pieces of a text, without white space.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, length) = piece(&text[at..], first);
        found.push(Token { kind, text: &text[at..at + length], at });
        at += length;
    }
    found
}

/// The pieces without comments.
pub fn code(text: &str) -> Vec<Token<'_>> {
    tokens(text).into_iter().filter(|token| token.kind != Kind::Comment).collect()
}

/// The first piece of a text that does not begin with white space, and its bytes.
fn piece(rest: &str, first: char) -> (Kind, usize) {
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if let Some(length) = string(rest) {
        return (Kind::Text, length);
    }
    if first == '\'' {
        return quote(rest);
    }
    let word = |c: char| c.is_alphanumeric() || c == '_';
    if first.is_ascii_digit() {
        let mut length = rest.find(|c| !word(c)).unwrap_or(rest.len());
        // `1.5`, but neither `0..4` nor `1.max(2)`.
        let point = rest[length..].strip_prefix('.').and_then(|after| after.chars().next());
        if point.is_some_and(|digit| digit.is_ascii_digit()) {
            let fraction = &rest[length + 1..];
            length += 1 + fraction.find(|c| !word(c)).unwrap_or(fraction.len());
        }
        return (Kind::Number, length);
    }
    if word(first) {
        return (Kind::Word, rest.find(|c| !word(c)).unwrap_or(rest.len()));
    }
    (Kind::Sign, first.len_utf8())
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(next) = rest[at..].chars().next() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += next.len_utf8();
        }
    }
    rest.len()
}

/// Bytes of a string at the beginning, also of a raw, byte or C string.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|after| {
            after.starts_with('"') || (prefix.ends_with('r') && after.trim_start_matches('#').starts_with('"'))
        })
    })?;
    let after = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = after.len() - after.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let begin = prefix.len() + hashes + 1;
        return Some(rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len()));
    }
    Some(prefix.len() + quoted(after, '"'))
}

/// Bytes up to and with the closing quote; an escape hides one character.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// A character, or a lifetime as a word.
fn quote(rest: &str) -> (Kind, usize) {
    let mut chars = rest.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => (Kind::Text, quoted(rest, '\'')),
        _ => {
            let name = rest[1..].find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len() - 1);
            (Kind::Word, 1 + name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces() {
        let text = "let a = r#\"x\"y\"#.at(0..4, 1.5); // }\n'x' '\\'' 'life b\"}\" /* { /* */ */ ä \"\\\"}";
        let found: Vec<&str> = tokens(text).iter().map(|token| token.text).collect();
        let expected = [
            "let",
            "a",
            "=",
            "r#\"x\"y\"#",
            ".",
            "at",
            "(",
            "0",
            ".",
            ".",
            "4",
            ",",
            "1.5",
            ")",
            ";",
            "// }",
            "'x'",
            "'\\''",
            "'life",
            "b\"}\"",
            "/* { /* */ */",
            "ä",
            "\"\\\"}",
        ];
        assert_eq!(found, expected);
        assert_eq!(code(text).iter().map(Token::nests).sum::<i32>(), 0, "no bracket of a string or comment counts");
    }

    #[test]
    fn any_text_ends() {
        for text in ["'", "\"", "r#", "/*", "b'", "r##\"", "'\\", "1.", "€"] {
            let all = tokens(text);
            assert_eq!(all.last().map(|last| last.at + last.text.len()), Some(text.len()), "{text}: {all:?}");
        }
    }
}
