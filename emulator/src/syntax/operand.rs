//! Operands of instructions.

use super::ast::Operand;
use super::lexer::Kind;
use super::parser::{Parsed, Parser};

/// What may begin an operand, for messages.
const OPERAND: &str = "an operand";
/// Where every operand may come from.
const OPERAND_HELP: &str = "operands are names, numbers, `{a, b}`, `[address]`, `p|q`, `!p` and `_`";
/// Addresses as PTX has them.
const ADDRESS_HELP: &str = "an address is `[name + number]`, `[number]` or `[name, {coordinates}]`";

impl<'a> Parser<'a> {
    /// Operands up to the semicolon, each behind a comma.
    pub(super) fn operands(&mut self) -> Parsed<Vec<Operand>> {
        let mut operands = Vec::new();
        if !self.at_operand() {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand()?);
            if !self.eat(b',') {
                return Ok(operands);
            }
        }
    }

    /// An operand comes next. If not, the caller misses a semicolon.
    fn at_operand(&self) -> bool {
        let token = self.peek();
        match token.kind {
            // On a line of its own this is the next opcode.
            Kind::Dotted => {
                token.span.line == self.previous().span.line || self.text_of(token).starts_with(['%', '$', '_'])
            }
            Kind::Symbol(b';' | b'}' | b'@') | Kind::Directive | Kind::End => false,
            _ => true,
        }
    }

    /// One operand, perhaps a pair.
    pub(super) fn operand(&mut self) -> Parsed<Operand> {
        let first = self.single()?;
        if !self.eat(b'|') {
            return Ok(first);
        }
        let (second, _) = self.word("a name behind `|`", "a pair is written `p|q`")?;
        Ok(Operand::Pair(Box::new(first), Box::new(name(second))))
    }

    fn single(&mut self) -> Parsed<Operand> {
        match self.kind() {
            Kind::Word | Kind::Dotted => self.named(),
            Kind::Symbol(b'[') => self.memory(),
            Kind::Symbol(b'{') => self.vector(),
            Kind::Symbol(b'(') if self.in_call => self.list(),
            Kind::Symbol(b'!') if self.peek_at(1).kind == Kind::Word => {
                self.bump();
                let (predicate, _) = self.word("a predicate", OPERAND_HELP)?;
                Ok(Operand::Not(predicate.into()))
            }
            Kind::Number | Kind::Symbol(b'-' | b'+' | b'~' | b'!' | b'(') => self.constant_operand(),
            _ => self.unexpected(OPERAND, OPERAND_HELP),
        }
    }

    /// A name, alone or with an offset.
    fn named(&mut self) -> Parsed<Operand> {
        let text = self.plain_name(OPERAND, OPERAND_HELP)?;
        match self.offset("only a number can be added to a name")? {
            Some(offset) => Ok(Operand::Offset(text.into(), offset)),
            None => Ok(name(text)),
        }
    }

    /// A name, perhaps with a component: `%tid.x`.
    fn plain_name(&mut self, what: &str, help: &str) -> Parsed<&'a str> {
        let token = self.peek();
        let text = self.text_of(token);
        // `::` is for modifiers.
        if token.kind == Kind::Dotted && text.contains("::") {
            return self.unexpected(what, help);
        }
        self.bump();
        Ok(text)
    }

    /// `+4`, `+-4`, if there is one.
    pub(super) fn offset(&mut self, help: &str) -> Parsed<Option<i64>> {
        match self.kind() {
            Kind::Symbol(b'+') => {
                self.bump();
            }
            Kind::Symbol(b'-') => return self.unexpected("`+`", "a negative offset is written `name+-4`"),
            _ => return Ok(None),
        }
        self.constant("a number", help).map(Some)
    }

    /// `[base + offset, more]`
    fn memory(&mut self) -> Parsed<Operand> {
        self.bump();
        let (base, offset) = match self.kind() {
            Kind::Word | Kind::Dotted => {
                let base = self.plain_name("an address", ADDRESS_HELP)?;
                (name(base), self.offset(ADDRESS_HELP)?.unwrap_or(0))
            }
            Kind::Number | Kind::Symbol(b'-' | b'+' | b'~' | b'(') => {
                (Operand::Integer(self.constant("an address", ADDRESS_HELP)?), 0)
            }
            _ => return self.unexpected("an address", ADDRESS_HELP),
        };
        let mut more = Vec::new();
        while self.eat(b',') {
            more.push(self.nested(Parser::operand)?);
        }
        self.expect(b']', ADDRESS_HELP)?;
        Ok(Operand::Memory(Box::new(base), offset, more))
    }

    /// `{a, b}`
    fn vector(&mut self) -> Parsed<Operand> {
        self.bump();
        self.open_braces += 1;
        let mut elements = Vec::new();
        loop {
            elements.push(self.nested(Parser::operand)?);
            if !self.eat(b',') {
                break;
            }
        }
        if !self.eat(b'}') {
            return self.unexpected("`,` or `}`", "the elements of a vector stand between braces");
        }
        self.open_braces -= 1;
        Ok(Operand::Vector(elements))
    }

    /// `(a, b)` or `()`
    fn list(&mut self) -> Parsed<Operand> {
        self.bump();
        let mut elements = Vec::new();
        if self.eat(b')') {
            return Ok(Operand::List(elements));
        }
        loop {
            elements.push(self.nested(Parser::operand)?);
            if !self.eat(b',') {
                break;
            }
        }
        if !self.eat(b')') {
            return self.unexpected("`,` or `)`", "a call is written `call (result), function, (arguments);`");
        }
        Ok(Operand::List(elements))
    }
}

/// A name, or `_`, which is none.
fn name(text: &str) -> Operand {
    if text == "_" { Operand::Sink } else { Operand::Name(text.into()) }
}
