//! The parser's hands: where it is, how it looks ahead, how it says what is wrong, and where it goes on after an error.

use super::ast::{SourceLine, Span};
use super::lexer::{self, Broken, Kind, Token};
use super::{MAX_ERRORS, SyntaxError};

/// Blocks, operands and expressions may be nested so deep: more is an error, not a stack overflow.
const MAX_DEPTH: u32 = 100;

/// An error was recorded; the caller has nothing to add.
#[derive(Debug)]
pub(super) struct Failed;

/// What a parsing function returns.
pub(super) type Parsed<T> = Result<T, Failed>;

pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    end: Token,
    depth: u32,
    pub(super) errors: Vec<SyntaxError>,
    /// The end of the text was already reported, so that a truncated text gives one error.
    ended: bool,
    /// Braces of operands that are open: recovery must not take theirs for the end of a block.
    pub(super) open_braces: u32,
    /// The `.loc` in force.
    pub(super) source: Option<SourceLine>,
    /// Inside the operands of a `call`, where parentheses are lists.
    pub(super) in_call: bool,
    /// Elements that initialisers may still be padded with, over the whole module.
    pub(super) padding_left: u64,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Parser<'a> {
        let tokens = lexer::tokens(text);
        let end = tokens.last().copied().unwrap_or(Token { kind: Kind::End, span: Span::default() });
        Parser {
            text,
            tokens,
            at: 0,
            end,
            depth: 0,
            errors: Vec::new(),
            ended: false,
            open_braces: 0,
            source: None,
            in_call: false,
            padding_left: 1 << 20,
        }
    }

    /// The next token.
    pub(super) fn peek(&self) -> Token {
        self.peek_at(0)
    }

    /// The token `distance` behind the next.
    pub(super) fn peek_at(&self, distance: usize) -> Token {
        self.tokens.get(self.at + distance).copied().unwrap_or(self.end)
    }

    /// The kind of the next token.
    pub(super) fn kind(&self) -> Kind {
        self.peek().kind
    }

    /// The token before the next.
    pub(super) fn previous(&self) -> Token {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).copied().unwrap_or(self.end)
    }

    /// How many tokens were taken.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Goes back to where [`Parser::position`] was.
    pub(super) fn rewind(&mut self, position: usize) {
        self.at = position;
    }

    /// Takes the next token.
    pub(super) fn bump(&mut self) -> Token {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    /// The text of a token.
    pub(super) fn text_of(&self, token: Token) -> &'a str {
        self.text.get(token.span.start as usize..token.span.end as usize).unwrap_or_default()
    }

    /// The next token is this punctuation.
    pub(super) fn at_symbol(&self, symbol: u8) -> bool {
        self.kind() == Kind::Symbol(symbol)
    }

    /// Takes this punctuation if it is next.
    pub(super) fn eat(&mut self, symbol: u8) -> bool {
        let found = self.at_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    /// Takes this punctuation, or says that it was expected.
    pub(super) fn expect(&mut self, symbol: u8, help: &str) -> Parsed<()> {
        if self.eat(symbol) { Ok(()) } else { self.unexpected(&format!("`{}`", symbol as char), help) }
    }

    /// The next token, if it is a directive.
    pub(super) fn directive(&self) -> Option<&'a str> {
        let token = self.peek();
        (token.kind == Kind::Directive).then(|| self.text_of(token))
    }

    /// Takes this directive if it is next.
    pub(super) fn eat_directive(&mut self, name: &str) -> bool {
        let found = self.directive() == Some(name);
        self.at += usize::from(found);
        found
    }

    /// Takes an identifier.
    pub(super) fn word(&mut self, what: &str, help: &str) -> Parsed<(&'a str, Span)> {
        let token = self.peek();
        if token.kind != Kind::Word {
            return self.unexpected(what, help);
        }
        self.at += 1;
        Ok((self.text_of(token), token.span))
    }

    /// Takes the semicolon that ends a statement. One that is missing at the end of a line is reported there, and parsing
    /// goes on with the next line.
    pub(super) fn end_of_statement(&mut self, expected: &str) -> Parsed<()> {
        if self.eat(b';') {
            return Ok(());
        }
        const HELP: &str = "a statement ends with `;`, and has `,` between its operands";
        let (found, last) = (self.peek(), self.previous());
        if found.kind == Kind::End || matches!(found.kind, Kind::Broken(_)) || found.span.line == last.span.line {
            return self.unexpected(expected, HELP);
        }
        let message =
            format!("found {} on line {}, expected {expected} behind this", self.describe(found), found.span.line);
        let _: Parsed<()> = self.error(last.span, message, HELP);
        Ok(())
    }

    /// Runs `parse` one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Parser<'a>) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("found nesting deeper than {MAX_DEPTH} levels, expected at most {MAX_DEPTH}");
            let failed = self.error(self.peek().span, message, "take some braces or parentheses away");
            // What follows is most likely more of the same.
            self.stop();
            return failed;
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// A token as messages show it.
    pub(super) fn describe(&self, token: Token) -> String {
        const LONGEST: usize = 40;
        let text = self.text_of(token);
        match token.kind {
            Kind::End => "the end of the text".into(),
            _ if text.chars().count() > LONGEST => {
                format!("`{}…`", text.chars().take(LONGEST).collect::<String>())
            }
            _ => format!("`{text}`"),
        }
    }

    /// Says that the next token is not what was expected.
    #[cold]
    pub(super) fn unexpected<T>(&mut self, expected: &str, help: &str) -> Parsed<T> {
        let token = self.peek();
        let Span { start, .. } = token.span;
        let (message, help) = match token.kind {
            Kind::End if std::mem::replace(&mut self.ended, true) => return Err(Failed),
            Kind::Broken(Broken::Character) => {
                let character = self.text.get(start as usize..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
                if character.is_ascii_graphic() {
                    (format!("found `{character}`, expected {expected}"), help)
                } else {
                    let code = u32::from(character);
                    let printable = character.escape_debug().count() == 1;
                    let shown = if printable { format!(" `{character}`") } else { String::new() };
                    (
                        format!("found the character{shown} (U+{code:04X}), expected {expected}"),
                        "PTX text is ASCII outside of comments and strings",
                    )
                }
            }
            Kind::Broken(Broken::Nul) => (
                format!("found a NUL byte with text behind it, expected {expected}"),
                "NUL bytes may only stand at the end of the text",
            ),
            Kind::Broken(Broken::Text) => {
                ("found a string without its closing `\"`, expected it on the same line".into(), "close the string")
            }
            Kind::Broken(Broken::Comment) => {
                self.ended = true;
                let message = "found `/*` and then the end of the text, expected `*/`";
                (message.into(), "close the comment; comments do not nest")
            }
            _ => (format!("found {}, expected {expected}", self.describe(token)), help),
        };
        self.error(token.span, message, help)
    }

    /// Records an error.
    #[cold]
    pub(super) fn error<T>(&mut self, span: Span, message: String, help: &str) -> Parsed<T> {
        // Blocks that end at the same place all complain; the first one says it best.
        if self.errors.len() < MAX_ERRORS && self.errors.last().is_none_or(|last| last.span.start != span.start) {
            self.errors.push(SyntaxError { span, message, help: help.into() });
        }
        if self.errors.len() >= MAX_ERRORS {
            self.stop();
        }
        Err(Failed)
    }

    /// Goes to the end of the text: nothing behind this point is worth a message.
    fn stop(&mut self) {
        self.at = self.tokens.len().saturating_sub(1);
        self.ended = true;
    }

    /// Goes behind the next semicolon, but not out of the block.
    pub(super) fn recover_in_block(&mut self) {
        let mut open = std::mem::take(&mut self.open_braces);
        // A block where none may be, for example behind a guard: it ends with its brace.
        let block = open == 0 && self.at_symbol(b'{');
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Symbol(b'}') if block && open == 1 => {
                    self.bump();
                    self.eat(b';');
                    return;
                }
                Kind::Symbol(b';') if block => {}
                Kind::Symbol(b';') => {
                    self.bump();
                    return;
                }
                Kind::Symbol(b'{') => open += 1,
                Kind::Symbol(b'}') if open == 0 => return,
                Kind::Symbol(b'}') => open -= 1,
                _ => {}
            }
            self.bump();
        }
    }

    /// Goes to the next line that begins a declaration.
    pub(super) fn recover_in_module(&mut self) {
        self.open_braces = 0;
        loop {
            let token = self.peek();
            let declaration = token.kind == Kind::Directive
                && matches!(
                    self.text_of(token),
                    ".visible" | ".extern" | ".weak" | ".common" | ".entry" | ".func" | ".global" | ".const"
                );
            if token.kind == Kind::End || declaration && self.previous().span.line < token.span.line {
                return;
            }
            self.bump();
        }
    }
}
