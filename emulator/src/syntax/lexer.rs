//! Text to tokens.
//!
//! One pass over the bytes. A token is its kind and its span; the parser looks at the text of a span when it needs it.

use super::ast::Span;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier: `%r1`, `$L__BB0_1`, `_`.
    Word,
    /// Identifiers joined by `.` and `::`: opcodes such as `cp.async.bulk.tensor.2d`, special registers such as `%tid.x`.
    Dotted,
    /// `.b32`, `.shared::cta`.
    Directive,
    /// Anything that begins as a number does. Whether it is one is seen when it is read.
    Number,
    /// `"…"`
    Text,
    /// One byte of punctuation.
    Symbol(u8),
    /// Not a token.
    Broken(Broken),
    /// Behind the last token.
    End,
}

/// What is wrong with a [`Kind::Broken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// A character that PTX does not use.
    Character,
    /// A NUL byte with text behind it.
    Nul,
    /// A `"` without its partner on the line.
    Text,
    /// A `/*` without `*/`.
    Comment,
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub span: Span,
}

/// May stand in an identifier.
const WORD: u8 = 1;
/// May begin an identifier.
const START: u8 = 2;
/// Blank, but not the end of a line.
const BLANK: u8 = 4;

/// The classes of each byte.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        classes[byte] = match b {
            b'0'..=b'9' => WORD,
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' => WORD | START,
            // Only in front: `mov.b32%r1,0;` is fine for ptxas.
            b'%' => START,
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => BLANK,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// Splits the text. The last token is [`Kind::End`].
pub(super) fn tokens(text: &str) -> Vec<Token> {
    // Loaders pass PTX as a C string, so NUL bytes at the end are part of the dialect.
    let text = text.trim_end_matches(|c: char| c == '\0' || c.is_ascii_whitespace());
    // About 4 bytes a token in what compilers write; a guess too low only costs a copy.
    let tokens = Vec::with_capacity(text.len() / 4 + 1);
    Lexer { text, bytes: text.as_bytes(), at: 0, line: 1, line_start: 0, tokens }.run()
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn run(mut self) -> Vec<Token> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if is(byte, BLANK) {
                self.at += 1;
            } else if byte == b'\n' {
                self.at += 1;
                self.new_line();
            } else if byte == b'/' && matches!(self.ahead(1), b'/' | b'*') {
                self.comment();
            } else {
                self.token(byte);
            }
        }
        let end = self.bytes.len();
        self.push(Kind::End, end);
        self.tokens
    }

    /// The byte so far ahead; 0 behind the end.
    fn ahead(&self, distance: usize) -> u8 {
        self.bytes.get(self.at + distance).copied().unwrap_or(0)
    }

    fn new_line(&mut self) {
        self.line += 1;
        self.line_start = self.at;
    }

    /// The token ends before `end`.
    fn push(&mut self, kind: Kind, end: usize) {
        let column = (self.at - self.line_start) as u32 + 1;
        let span = Span { start: self.at as u32, end: end as u32, line: self.line, column };
        self.tokens.push(Token { kind, span });
        self.at = end;
    }

    /// The end of the bytes of `class` from `at` on.
    fn run_of(&self, mut at: usize, class: u8) -> usize {
        while self.bytes.get(at).is_some_and(|&byte| is(byte, class)) {
            at += 1;
        }
        at
    }

    fn token(&mut self, byte: u8) {
        match byte {
            // `%` alone is the remainder of constant expressions.
            b'%' if !is(self.ahead(1), WORD) => self.push(Kind::Symbol(b'%'), self.at + 1),
            _ if is(byte, START) => self.word(),
            b'.' if is(self.ahead(1), WORD) => self.directive(),
            b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b',' | b';' | b':' | b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'<' | b'>' | b'@' | b'!' | b'|' | b'+'
            | b'-' | b'*' | b'/' | b'~' | b'&' | b'^' | b'?' | b'=' => self.push(Kind::Symbol(byte), self.at + 1),
            0 => self.push(Kind::Broken(Broken::Nul), self.at + 1),
            _ => {
                // A whole character, so that spans never cut one.
                let length = self.text.get(self.at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
                self.push(Kind::Broken(Broken::Character), self.at + length);
            }
        }
    }

    fn word(&mut self) {
        let mut kind = Kind::Word;
        let mut end = self.at + 1;
        loop {
            end = self.run_of(end, WORD);
            let after = |distance: usize| self.bytes.get(end + distance).copied().unwrap_or(0);
            match after(0) {
                b'.' if is(after(1), WORD) => end += 2,
                b':' if after(1) == b':' && is(after(2), WORD) => end += 3,
                _ => break,
            }
            kind = Kind::Dotted;
        }
        self.push(kind, end);
    }

    fn directive(&mut self) {
        // `.5` is a number, `.2d` and `.32x32b` are not.
        if self.ahead(1).is_ascii_digit() {
            let end = self.fraction(self.at);
            if !self.bytes.get(end).is_some_and(|&byte| is(byte, WORD)) {
                return self.push(Kind::Number, end);
            }
        }
        let mut end = self.run_of(self.at + 1, WORD);
        while self.bytes.get(end..end + 2) == Some(b"::") && self.bytes.get(end + 2).is_some_and(|&b| is(b, WORD)) {
            end = self.run_of(end + 2, WORD);
        }
        self.push(Kind::Directive, end);
    }

    fn number(&mut self) {
        let radix = self.ahead(0) == b'0' && matches!(self.ahead(1) | 0x20, b'x' | b'b' | b'f' | b'd');
        let mut end = self.at + 1;
        if !radix {
            while self.bytes.get(end).is_some_and(u8::is_ascii_digit) {
                end += 1;
            }
            end = self.fraction(end);
        }
        // Whatever is glued to it belongs to it, so that `12abc` is one mistake and not two tokens.
        end = self.run_of(end, WORD);
        self.push(Kind::Number, end);
    }

    /// The end of `.5e-3`, each part optional, from `at` on.
    fn fraction(&self, mut at: usize) -> usize {
        let digit = |at: usize| self.bytes.get(at).is_some_and(u8::is_ascii_digit);
        let word = |at: usize| self.bytes.get(at).is_some_and(|&byte| is(byte, WORD));
        if self.bytes.get(at) == Some(&b'.') && (digit(at + 1) || !word(at + 1)) {
            at += 1;
            while digit(at) {
                at += 1;
            }
        }
        if matches!(self.bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.bytes.get(at + 1), Some(b'+' | b'-')));
            if digit(at + 1 + sign) {
                at += 1 + sign;
                while digit(at) {
                    at += 1;
                }
            }
        }
        at
    }

    fn string(&mut self) {
        let mut end = self.at + 1;
        loop {
            match self.bytes.get(end) {
                // PTX has no escapes: a backslash is a character of a path.
                Some(b'"') => return self.push(Kind::Text, end + 1),
                None | Some(b'\n') => return self.push(Kind::Broken(Broken::Text), end),
                Some(_) => end += 1,
            }
        }
    }

    fn comment(&mut self) {
        if self.ahead(1) == b'/' {
            while self.bytes.get(self.at).is_some_and(|&byte| byte != b'\n') {
                self.at += 1;
            }
            return;
        }
        let rest = self.bytes.get(self.at + 2..).unwrap_or_default();
        let end = match rest.windows(2).position(|pair| pair == b"*/") {
            Some(length) => self.at + 2 + length + 2,
            None => {
                self.push(Kind::Broken(Broken::Comment), self.at + 2);
                self.bytes.len()
            }
        };
        while self.at < end {
            let byte = self.ahead(0);
            self.at += 1;
            if byte == b'\n' {
                self.new_line();
            }
        }
    }
}
