//! Variables, parameters and initialisers.

use super::ast::{Operand, Variable};
use super::lexer::Kind;
use super::parser::{Parsed, Parser};

/// `name<count>` declares at most so many registers.
const MAX_REGISTERS: u32 = 1_000_000;

/// What a declaration says before its names.
struct Head {
    space: String,
    align: Option<u32>,
    vector: Option<String>,
    ty: String,
    pointer: Option<(Option<String>, Option<u32>)>,
}

impl Parser<'_> {
    /// `.shared .align 16 .b8 a[4], b;`: one variable each.
    pub(super) fn variables(&mut self, linkage: &[String], mut take: impl FnMut(Variable)) -> Parsed<()> {
        let head = self.head()?;
        loop {
            let mut variable = self.declarator(&head, linkage)?;
            if self.at_symbol(b'=') {
                self.bump();
                variable.initial = self.initialiser(&variable)?;
            }
            take(variable);
            if !self.eat(b',') {
                break;
            }
        }
        self.end_of_statement("`,` or `;`")
    }

    /// `(.param .b32 a, .param .b64 b)`, also `()`.
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Variable>> {
        self.expect(b'(', "parameters stand between parentheses")?;
        let mut parameters = Vec::new();
        if self.eat(b')') {
            return Ok(parameters);
        }
        loop {
            let head = self.head()?;
            parameters.push(self.declarator(&head, &[])?);
            if !self.eat(b',') {
                break;
            }
        }
        if !self.eat(b')') {
            return self.unexpected("`,` or `)`", "a parameter is written `.param .u64 name`");
        }
        Ok(parameters)
    }

    /// All directives up to the first name.
    fn head(&mut self) -> Parsed<Head> {
        let mut head = Head { space: String::new(), align: None, vector: None, ty: String::new(), pointer: None };
        let mut type_at = None;
        while let Some(directive) = self.directive() {
            // Without the dot; the dot is there, for that makes a directive.
            let name = directive.get(1..).unwrap_or_default();
            match name {
                "reg" | "sreg" | "param" | "shared" | "shared::cta" | "global" | "const" | "local" => {
                    let space = name.strip_suffix("::cta").unwrap_or(name);
                    match &mut head.pointer {
                        Some((pointee @ None, _)) => *pointee = Some(space.into()),
                        None if head.space.is_empty() => head.space = space.into(),
                        _ => return self.unexpected("a name", "a variable has one state space"),
                    }
                    self.bump();
                }
                "align" => {
                    self.bump();
                    let align = Some(self.alignment()?);
                    match &mut head.pointer {
                        Some((_, pointee)) => *pointee = align,
                        None => head.align = align,
                    }
                }
                "v2" | "v4" | "v8" => {
                    self.bump();
                    head.vector = Some(name.into());
                }
                "ptr" => {
                    self.bump();
                    head.pointer = Some((None, None));
                }
                "attribute" => {
                    self.bump();
                    self.skip_parentheses()?;
                }
                _ if is_type(name) && head.ty.is_empty() => {
                    type_at = Some(self.position());
                    self.bump();
                    head.ty = name.into();
                }
                _ => break,
            }
        }
        if head.space.is_empty() {
            if let Some(position) = type_at {
                self.rewind(position);
            }
            return self.unexpected(
                "a state space",
                "state spaces are .reg, .param, .shared, .global, .const and .local: `.reg .b32 name`",
            );
        }
        if head.ty.is_empty() {
            return self.unexpected(
                "a type",
                "types are .b8 to .b128, .u8 to .u64, .s8 to .s64, .f16 to .f64, .pred and the like",
            );
        }
        Ok(head)
    }

    fn alignment(&mut self) -> Parsed<u32> {
        const HELP: &str = "`.align` takes 1, 2, 4, 8, … bytes";
        let (align, token) = self.integer32("an alignment", HELP)?;
        if align.is_power_of_two() {
            return Ok(align);
        }
        self.error(token.span, format!("found the alignment {align}, expected a power of two"), HELP)
    }

    /// A name with its count or dimensions.
    fn declarator(&mut self, head: &Head, linkage: &[String]) -> Parsed<Variable> {
        let (name, span) = self.word("a name", "a declaration is written `.reg .b32 name;`")?;
        let mut count = None;
        if self.eat(b'<') {
            const HELP: &str = "`%r<8>` declares %r0 to %r7";
            let (number, token) = self.integer("a number of registers", HELP)?;
            count = u32::try_from(number).ok().filter(|&count| count <= MAX_REGISTERS);
            if count.is_none() {
                let message = format!("found {number} registers, expected at most {MAX_REGISTERS}");
                return self.error(token.span, message, HELP);
            }
            self.expect(b'>', HELP)?;
        }
        let mut dimensions = Vec::new();
        while self.eat(b'[') {
            const HELP: &str = "an array is declared as `name[4]`, or `name[]` where its size comes from elsewhere";
            dimensions.push(match self.at_symbol(b']') {
                true => None,
                false => Some(self.integer("a number of elements", HELP)?.0),
            });
            self.expect(b']', HELP)?;
        }
        Ok(Variable {
            linkage: linkage.to_vec(),
            space: head.space.clone(),
            align: head.align,
            vector: head.vector.clone(),
            ty: head.ty.clone(),
            pointer: head.pointer.clone(),
            name: name.into(),
            dimensions,
            count,
            initial: Vec::new(),
            span,
        })
    }

    /// What follows `=`.
    fn initialiser(&mut self, variable: &Variable) -> Parsed<Vec<Operand>> {
        let mut elements = Vec::new();
        if !self.at_symbol(b'{') {
            elements.push(self.element()?);
            return Ok(elements);
        }
        // How many things stand between the braces of each level, from the second on.
        let mut extents: Vec<Option<u64>> = variable.dimensions.get(1..).unwrap_or_default().to_vec();
        if let Some(width) = variable.vector.as_deref().and_then(|vector| vector.strip_prefix('v')?.parse().ok()) {
            extents.push(Some(width));
        }
        self.braces(&extents, &mut elements)?;
        Ok(elements)
    }

    fn braces(&mut self, extents: &[Option<u64>], elements: &mut Vec<Operand>) -> Parsed<()> {
        self.expect(b'{', "the elements of an array stand between braces")?;
        self.open_braces += 1;
        loop {
            if self.at_symbol(b'{') {
                let Some((extent, inner)) = extents.split_first() else {
                    return self.unexpected("a value", "as many braces as dimensions");
                };
                let before = elements.len();
                let start = self.peek().span;
                self.nested(|p| p.braces(inner, elements))?;
                let sizes = || inner.iter().chain([extent]).copied();
                if let Some(size) = sizes().try_fold(1u64, |size, extent| size.checked_mul(extent?)) {
                    let found = (elements.len() - before) as u64;
                    let Some(missing) = size.checked_sub(found) else {
                        let message = format!("found {found} values between braces, expected at most {size}");
                        return self.error(start, message, "the dimension says how many values it holds");
                    };
                    let Some(left) = self.padding_left.checked_sub(missing) else {
                        let message = format!("found {found} of {size} values, expected more of them");
                        return self.error(start, message, "write the zeros out, or leave the initialiser away");
                    };
                    self.padding_left = left;
                    elements.extend((0..missing).map(|_| Operand::Integer(0)));
                }
            } else {
                elements.push(self.element()?);
            }
            if !self.eat(b',') {
                break;
            }
        }
        if !self.eat(b'}') {
            return self.unexpected("`,` or `}`", "the elements of an array stand between braces");
        }
        self.open_braces -= 1;
        Ok(())
    }

    /// A number or an address.
    fn element(&mut self) -> Parsed<Operand> {
        const HELP: &str = "initial values are numbers, names, `name+4`, `generic(name)` and `0xFF(name)`";
        let token = self.peek();
        let called = self.peek_at(1).kind == Kind::Symbol(b'(');
        match token.kind {
            Kind::Word if called && self.text_of(token) == "generic" => {
                self.bump();
                let (name, offset) = self.address_of(HELP)?;
                Ok(Operand::Generic(name, offset))
            }
            Kind::Number if called => {
                let (mask, _) = self.integer("a mask", HELP)?;
                let (name, offset) = self.address_of(HELP)?;
                Ok(Operand::Masked(mask, name, offset))
            }
            Kind::Word => {
                self.bump();
                let name = self.text_of(token).to_owned();
                Ok(match self.offset(HELP)? {
                    Some(offset) => Operand::Offset(name, offset),
                    None => Operand::Name(name),
                })
            }
            Kind::Number | Kind::Symbol(b'-' | b'+' | b'~' | b'!' | b'(') => self.constant_operand(),
            _ => self.unexpected("a value", HELP),
        }
    }

    /// `(name)+offset`, also `(name+offset)`.
    fn address_of(&mut self, help: &str) -> Parsed<(String, i64)> {
        self.expect(b'(', help)?;
        let (name, _) = self.word("a name", help)?;
        let inside = self.offset(help)?.unwrap_or(0);
        self.expect(b')', help)?;
        let behind = self.offset(help)?.unwrap_or(0);
        Ok((name.into(), inside.wrapping_add(behind)))
    }

    /// `( … )` with anything in it.
    pub(super) fn skip_parentheses(&mut self) -> Parsed<()> {
        self.expect(b'(', "attributes stand between parentheses")?;
        let mut open = 1u32;
        while open > 0 {
            match self.kind() {
                Kind::End | Kind::Broken(_) => return self.unexpected("`)`", "every `(` needs its `)`"),
                Kind::Symbol(b'(') => open += 1,
                Kind::Symbol(b')') => open -= 1,
                _ => {}
            }
            self.bump();
        }
        Ok(())
    }
}

/// The types of variables.
fn is_type(name: &str) -> bool {
    matches!(
        name,
        "b8" | "b16"
            | "b32"
            | "b64"
            | "b128"
            | "u8"
            | "u16"
            | "u32"
            | "u64"
            | "s8"
            | "s16"
            | "s32"
            | "s64"
            | "f16"
            | "f16x2"
            | "bf16"
            | "bf16x2"
            | "f32"
            | "f64"
            | "pred"
            | "texref"
            | "samplerref"
            | "surfref"
    )
}
