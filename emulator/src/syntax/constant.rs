//! Numbers and constant expressions.

use super::ast::Operand;
use super::lexer::{Kind, Token};
use super::parser::{Parsed, Parser};

/// A number as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Integer(Value),
    /// The bits of `0f…`.
    Float32(u32),
    /// The bits of `0d…` or of a decimal number.
    Float64(u64),
}

/// An integer constant: PTX has signed and unsigned ones, of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub bits: u64,
    pub unsigned: bool,
}

impl Value {
    fn signed(value: i64) -> Value {
        Value { bits: value as u64, unsigned: false }
    }
}

/// Binary operators with how tightly they bind. Longer ones first: `<<` is not `<` and `<`.
const OPERATORS: [(&[u8], u8); 18] = [
    (b"<<", 8),
    (b">>", 8),
    (b"<=", 7),
    (b">=", 7),
    (b"==", 6),
    (b"!=", 6),
    (b"&&", 2),
    (b"||", 1),
    (b"*", 10),
    (b"/", 10),
    (b"%", 10),
    (b"+", 9),
    (b"-", 9),
    (b"<", 7),
    (b">", 7),
    (b"&", 5),
    (b"^", 4),
    (b"|", 3),
];

impl Parser<'_> {
    /// A plain integer, as `.align`, dimensions and counts want it.
    pub(super) fn integer(&mut self, what: &str, help: &str) -> Parsed<(u64, Token)> {
        let token = self.peek();
        if token.kind != Kind::Number {
            return self.unexpected(what, help);
        }
        match self.literal()? {
            Literal::Integer(value) => Ok((value.bits, token)),
            _ => self.error(token.span, format!("found {}, expected {what}", self.describe(token)), help),
        }
    }

    /// A plain integer of 32 bits.
    pub(super) fn integer32(&mut self, what: &str, help: &str) -> Parsed<(u32, Token)> {
        let (value, token) = self.integer(what, help)?;
        match u32::try_from(value) {
            Ok(value) => Ok((value, token)),
            Err(_) => self.error(token.span, format!("found {value}, expected {what} of at most {}", u32::MAX), help),
        }
    }

    /// A number or a constant expression as an operand.
    pub(super) fn constant_operand(&mut self) -> Parsed<Operand> {
        // Floats have no expressions, only a sign.
        let negative = self.at_symbol(b'-');
        if self.peek_at(usize::from(negative)).kind == Kind::Number {
            let before = self.position();
            if negative {
                self.bump();
            }
            let token = self.peek();
            match self.literal()? {
                Literal::Float32(_) | Literal::Float64(_) if negative && is_bits(self.text_of(token)) => {
                    return self.error(
                        token.span,
                        format!("found `-` before {}, expected the bits alone", self.describe(token)),
                        "the sign is the highest of the bits: -1 is 0fBF800000",
                    );
                }
                Literal::Float64(bits) => return Ok(Operand::Float64(bits ^ (u64::from(negative) << 63))),
                Literal::Float32(bits) => return Ok(Operand::Float32(bits)),
                // By far the most frequent: a number and nothing else.
                Literal::Integer(value) if matches!(self.kind(), Kind::Symbol(b',' | b';' | b']' | b'}' | b')')) => {
                    let bits = if negative { value.bits.wrapping_neg() } else { value.bits };
                    return Ok(Operand::Integer(bits as i64));
                }
                Literal::Integer(_) => self.rewind(before),
            }
        }
        Ok(Operand::Integer(self.constant("a number", "only numbers may be combined here")?))
    }

    /// A constant expression.
    pub(super) fn constant(&mut self, what: &str, help: &str) -> Parsed<i64> {
        Ok(self.conditional(what, help)?.bits as i64)
    }

    fn conditional(&mut self, what: &str, help: &str) -> Parsed<Value> {
        self.nested(|p| {
            let condition = p.binary(1, what, help)?;
            if !p.eat(b'?') {
                return Ok(condition);
            }
            let yes = p.conditional(what, help)?;
            p.expect(b':', "a condition is written `condition ? number : number`")?;
            let no = p.conditional(what, help)?;
            Ok(if condition.bits != 0 { yes } else { no })
        })
    }

    /// The operator that comes next, if it binds at least as tightly as `least`.
    fn operator(&self, least: u8) -> Option<(&'static [u8], u8)> {
        let (first, second) = (self.peek(), self.peek_at(1));
        let Kind::Symbol(symbol) = first.kind else { return None };
        if matches!(symbol, b',' | b';' | b']' | b'}' | b')') {
            return None;
        }
        let adjacent = match second.kind {
            Kind::Symbol(symbol) if first.span.end == second.span.start => Some(symbol),
            _ => None,
        };
        OPERATORS
            .into_iter()
            .find(|(text, _)| text[0] == symbol && (text.len() == 1 || adjacent == text.get(1).copied()))
            .filter(|&(_, binds)| binds >= least)
    }

    fn binary(&mut self, least: u8, what: &str, help: &str) -> Parsed<Value> {
        let mut left = self.unary(what, help)?;
        while let Some((operator, binds)) = self.operator(least) {
            let token = self.bump();
            if operator.len() == 2 {
                self.bump();
            }
            let right = self.nested(|p| p.binary(binds + 1, what, help))?;
            left = match apply(operator, left, right) {
                Some(value) => value,
                None => {
                    return self.error(
                        token.span,
                        "found a division by 0, expected another divisor".into(),
                        "constant expressions are evaluated when the text is read",
                    );
                }
            };
        }
        Ok(left)
    }

    fn unary(&mut self, what: &str, help: &str) -> Parsed<Value> {
        let token = self.peek();
        match token.kind {
            Kind::Number => match self.literal()? {
                Literal::Integer(value) => Ok(value),
                _ => self.error(
                    token.span,
                    format!("found {}, expected an integer", self.describe(token)),
                    "constant expressions are made of integers",
                ),
            },
            Kind::Symbol(sign @ (b'-' | b'+' | b'~' | b'!')) => {
                self.bump();
                let value = self.nested(|p| p.unary(what, help))?;
                Ok(match sign {
                    b'-' => Value { bits: value.bits.wrapping_neg(), ..value },
                    b'~' => Value { bits: !value.bits, ..value },
                    b'!' => Value::signed(i64::from(value.bits == 0)),
                    _ => value,
                })
            }
            Kind::Symbol(b'(') => {
                self.bump();
                // `(.u64)` and `(.s64)` are casts.
                if let Some(cast @ (".u64" | ".s64")) = self.directive() {
                    self.bump();
                    self.expect(b')', "a cast is written `(.u64)`")?;
                    let value = self.nested(|p| p.unary(what, help))?;
                    return Ok(Value { bits: value.bits, unsigned: cast == ".u64" });
                }
                let value = self.conditional(what, help)?;
                self.expect(b')', "every `(` needs its `)`")?;
                Ok(value)
            }
            _ => self.unexpected(what, help),
        }
    }

    /// Takes a token that begins as a number and reads it.
    pub(super) fn literal(&mut self) -> Parsed<Literal> {
        let token = self.bump();
        match read(self.text_of(token)) {
            Ok(literal) => Ok(literal),
            Err(expected) => self.error(
                token.span,
                format!("found {}, expected {expected}", self.describe(token)),
                "integers are written 42, 0x2A, 052, 0b101010 or 42U; floats 1.5, 0f3FC00000 or 0d3FF8000000000000",
            ),
        }
    }
}

/// `0f…` or `0d…`: the bits of a float, and not a decimal number.
fn is_bits(text: &str) -> bool {
    matches!(text.as_bytes().get(1), Some(b'f' | b'F' | b'd' | b'D'))
}

/// What a number says, or what was expected in its place.
fn read(text: &str) -> Result<Literal, &'static str> {
    let bytes = text.as_bytes();
    let prefix = if bytes.first() == Some(&b'0') { bytes.get(1).map_or(0, |b| b | 0x20) } else { 0 };
    let digits = text.get(2..).unwrap_or_default();
    match prefix {
        b'f' if digits.len() == 8 => {
            u32::from_str_radix(digits, 16).map(Literal::Float32).map_err(|_| "8 hex digits behind `0f`")
        }
        b'f' => Err("8 hex digits behind `0f`"),
        b'd' if digits.len() == 16 => {
            u64::from_str_radix(digits, 16).map(Literal::Float64).map_err(|_| "16 hex digits behind `0d`")
        }
        b'd' => Err("16 hex digits behind `0d`"),
        b'x' => integer(digits, 16, "hex digits behind `0x`"),
        b'b' => integer(digits, 2, "binary digits behind `0b`"),
        _ if bytes.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Literal::Float64(value.to_bits())),
            _ => Err("a decimal number in the range of 64-bit floats"),
        },
        b'0'..=b'9' => integer(text, 8, "an octal number (it begins with 0)"),
        _ => integer(text, 10, "a number"),
    }
}

fn integer(digits: &str, radix: u32, expected: &'static str) -> Result<Literal, &'static str> {
    let (digits, unsigned) = match digits.strip_suffix('U') {
        Some(digits) => (digits, true),
        None => (digits, false),
    };
    if digits.is_empty() {
        return Err(expected);
    }
    let mut bits = 0u64;
    for byte in digits.bytes() {
        let digit = char::from(byte).to_digit(radix).ok_or(expected)?;
        bits = bits
            .checked_mul(u64::from(radix))
            .and_then(|bits| bits.checked_add(u64::from(digit)))
            .ok_or("an integer of at most 64 bits")?;
    }
    // Only what fits 63 bits is signed.
    Ok(Literal::Integer(Value { bits, unsigned: unsigned || bits > i64::MAX as u64 }))
}

/// `None`: a division by zero.
fn apply(operator: &[u8], left: Value, right: Value) -> Option<Value> {
    let unsigned = left.unsigned || right.unsigned;
    let (a, b) = (left.bits, right.bits);
    let (signed_a, signed_b) = (a as i64, b as i64);
    let order = if unsigned { a.cmp(&b) } else { signed_a.cmp(&signed_b) };
    let value = |bits: u64| Some(Value { bits, unsigned });
    let truth = |truth: bool| Some(Value::signed(i64::from(truth)));
    // Shifts keep the kind of their left side; by 64 or more they leave only the sign.
    let distance = u32::try_from(b).unwrap_or(u32::MAX);
    let shifted = |bits: u64| Some(Value { bits, unsigned: left.unsigned });
    match operator {
        b"*" => value(a.wrapping_mul(b)),
        b"/" | b"%" if b == 0 => None,
        b"/" if unsigned => value(a / b),
        b"/" => value(signed_a.wrapping_div(signed_b) as u64),
        b"%" if unsigned => value(a % b),
        b"%" => value(signed_a.wrapping_rem(signed_b) as u64),
        b"+" => value(a.wrapping_add(b)),
        b"-" => value(a.wrapping_sub(b)),
        b"<<" => shifted(a.checked_shl(distance).unwrap_or(0)),
        b">>" if left.unsigned => shifted(a.checked_shr(distance).unwrap_or(0)),
        b">>" => shifted((signed_a >> distance.min(63)) as u64),
        b"<" => truth(order.is_lt()),
        b">" => truth(order.is_gt()),
        b"<=" => truth(order.is_le()),
        b">=" => truth(order.is_ge()),
        b"==" => truth(a == b),
        b"!=" => truth(a != b),
        b"&&" => truth(a != 0 && b != 0),
        b"||" => truth(a != 0 || b != 0),
        b"&" => value(a & b),
        b"^" => value(a ^ b),
        // The last of the table.
        _ => value(a | b),
    }
}
