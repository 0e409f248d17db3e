//! What stands outside of functions, and the heads of functions.

use super::SyntaxError;
use super::ast::{Function, Module};
use super::lexer::Kind;
use super::parser::{Parsed, Parser};

const HEADER_HELP: &str = "a module begins with `.version 8.8`, then `.target sm_100a`, then `.address_size 64`";

impl Parser<'_> {
    /// The whole text.
    pub(super) fn module(mut self) -> Result<Module, Vec<SyntaxError>> {
        let mut module = Module::default();
        if self.header(&mut module).is_err() {
            self.recover_in_module();
        }
        while self.kind() != Kind::End {
            let before = self.position();
            if self.declaration(&mut module).is_err() {
                if self.position() == before {
                    self.bump();
                }
                self.recover_in_module();
            }
        }
        if self.errors.is_empty() { Ok(module) } else { Err(self.errors) }
    }

    fn header(&mut self, module: &mut Module) -> Parsed<()> {
        if !self.eat_directive(".version") {
            return self.unexpected("`.version`", HEADER_HELP);
        }
        let token = self.peek();
        let version = self.text_of(token).split_once('.').and_then(|(major, minor)| {
            let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?;
            Some((number(major)?, number(minor)?))
        });
        match version {
            Some(version) if token.kind == Kind::Number => {
                (module.version, module.version_span) = (version, token.span)
            }
            _ => return self.unexpected("a version", "a version is written `.version 8.8`"),
        }
        self.bump();
        if !self.eat_directive(".target") {
            return self.unexpected("`.target`", HEADER_HELP);
        }
        loop {
            let (target, span) = self.word("a target", "a target is written `.target sm_100a`")?;
            module.targets.push(target.into());
            module.target_spans.push(span);
            if !self.eat(b',') {
                break;
            }
        }
        if self.eat_directive(".address_size") {
            const HELP: &str = "addresses have 64 bits: `.address_size 64`";
            let (size, token) = self.integer32("64", HELP)?;
            if size != 64 {
                return self.error(token.span, format!("found addresses of {size} bits, expected 64"), HELP);
            }
        }
        Ok(())
    }

    fn declaration(&mut self, module: &mut Module) -> Parsed<()> {
        const HELP: &str =
            "outside of functions stand .entry, .func, .global, .const and .shared variables, .file and .section";
        match self.directive() {
            Some(".file") => self.file(module),
            Some(".section") => self.section(),
            Some(".loc") => self.loc(),
            Some(".pragma") => self.pragma(),
            Some(".alias") => {
                const HELP: &str = "an alias is written `.alias name, function;`";
                self.bump();
                let (name, _) = self.word("a name", HELP)?;
                self.expect(b',', HELP)?;
                let (function, _) = self.word("the name of a function", HELP)?;
                module.aliases.push((name.into(), function.into()));
                self.end_of_statement("`;`")
            }
            Some(
                ".visible" | ".extern" | ".weak" | ".common" | ".entry" | ".func" | ".global" | ".const" | ".shared"
                | ".shared::cta" | ".align" | ".local" | ".param" | ".reg",
            ) => self.linked(module),
            Some(".version" | ".target" | ".address_size") => self.unexpected(
                "a declaration",
                "a module has one header; of several modules in one text, parse each on its own",
            ),
            _ => self.unexpected("a declaration", HELP),
        }
    }

    /// A variable or function, perhaps with a linkage.
    fn linked(&mut self, module: &mut Module) -> Parsed<()> {
        let mut linkage = Vec::new();
        while let Some(directive @ (".visible" | ".extern" | ".weak" | ".common")) = self.directive() {
            self.bump();
            linkage.push(directive.to_owned());
        }
        let is_entry = match self.directive() {
            Some(".entry") => true,
            Some(".func") => false,
            _ => return self.variables(&linkage, |variable| module.variables.push(variable)),
        };
        self.bump();
        if self.eat_directive(".attribute") {
            self.skip_parentheses()?;
        }
        let mut function = self.signature(is_entry, linkage)?;
        let open = self.peek();
        if self.eat(b'{') {
            // A `.loc` is in force up to the end of its function.
            self.source = None;
            function.body = Some(self.block(open.span)?);
            module.functions.push(function);
            return Ok(());
        }
        if !self.at_symbol(b';') {
            return self.unexpected(
                "`{`, `;` or a performance directive",
                "behind the parameters stand .maxnreg, .maxntid, .reqntid, .minnctapersm, .explicitcluster, \
                 .reqnctapercluster, .maxclusterrank, .blocksareclusters, .noreturn or .pragma, then the body",
            );
        }
        self.bump();
        module.functions.push(function);
        Ok(())
    }

    /// `(returns) name (params) directives`
    pub(super) fn signature(&mut self, is_entry: bool, linkage: Vec<String>) -> Parsed<Function> {
        let returns = if !is_entry && self.at_symbol(b'(') { self.parameters()? } else { Vec::new() };
        let (name, span) =
            self.word("the name of a function", "a kernel is written `.visible .entry name(…) { … }`")?;
        let params = if self.at_symbol(b'(') { self.parameters()? } else { Vec::new() };
        let mut directives = Vec::new();
        while let Some(directive) = self.directive() {
            let name = directive.get(1..).unwrap_or_default();
            let most = match name {
                "maxntid" | "reqntid" | "reqnctapercluster" => 3,
                "maxnreg"
                | "minnctapersm"
                | "maxnctapersm"
                | "maxclusterrank"
                | "abi_preserve"
                | "abi_preserve_control" => 1,
                "explicitcluster" | "blocksareclusters" | "noreturn" => 0,
                "pragma" => {
                    self.pragma()?;
                    continue;
                }
                _ => break,
            };
            let span = self.bump().span;
            let mut values = Vec::new();
            while values.len() < most {
                let help = format!("`{directive}` takes {}", if most == 1 { "a number" } else { "up to 3 numbers" });
                values.push(self.integer("a number", &help)?.0);
                if values.len() == most || !self.eat(b',') {
                    break;
                }
            }
            directives.push((name.to_owned(), values, span));
        }
        Ok(Function { is_entry, linkage, name: name.into(), span, returns, params, directives, body: None })
    }

    /// `.file 1 "name", time, size`
    fn file(&mut self, module: &mut Module) -> Parsed<()> {
        const HELP: &str = "a file is written `.file 1 \"name\"`";
        self.bump();
        let (number, _) = self.integer32("the number of a file", HELP)?;
        let token = self.peek();
        if token.kind != Kind::Text {
            return self.unexpected("the name of a file in quotes", HELP);
        }
        self.bump();
        module.files.push((number, self.text_of(token).trim_matches('"').to_owned()));
        // Time and size.
        while self.eat(b',') {
            self.integer("a number", HELP)?;
        }
        Ok(())
    }

    /// `.section .name { … }`: debug information, which nobody here reads.
    fn section(&mut self) -> Parsed<()> {
        const HELP: &str = "a section is written `.section .name { … }`";
        self.bump();
        while matches!(self.kind(), Kind::Directive | Kind::Word | Kind::Dotted | Kind::Text | Kind::Symbol(b',')) {
            self.bump();
        }
        let line = self.peek().span.line;
        self.expect(b'{', HELP)?;
        let mut open = 1u32;
        while open > 0 {
            match self.kind() {
                Kind::End | Kind::Broken(_) => {
                    return self.unexpected("`}`", &format!("the section that begins on line {line} needs its `}}`"));
                }
                Kind::Symbol(b'{') => open += 1,
                Kind::Symbol(b'}') => open -= 1,
                _ => {}
            }
            self.bump();
        }
        Ok(())
    }
}
