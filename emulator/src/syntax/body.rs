//! What stands in a function: statements, labels, instructions, nested scopes.

use super::ast::{Instruction, SourceLine, Span, Statement};
use super::lexer::{Kind, Token};
use super::parser::{Parsed, Parser};

/// What a block is made of, for messages.
const STATEMENT: &str = "a statement";
const STATEMENT_HELP: &str = "a statement is an instruction, a label, a declaration, `.loc` or `{ … }`";

/// Functions of CUDA, and the instructions that they are.
const FUNCTIONS: &[(&str, &str)] = &[
    ("__syncthreads", "bar.sync 0;"),
    ("__syncwarp", "bar.warp.sync 0xffffffff;"),
    ("__threadfence_block", "fence.acq_rel.cta;"),
    ("__threadfence", "fence.acq_rel.gpu;"),
    ("__threadfence_system", "fence.acq_rel.sys;"),
    ("__nanosleep", "nanosleep.u32 …;"),
    ("__trap", "trap;"),
];

impl<'a> Parser<'a> {
    /// Statements up to the `}` of a block whose `{` was taken; `open` is its place.
    pub(super) fn block(&mut self, open: Span) -> Parsed<Vec<Statement>> {
        let help = |line: u32| format!("the block that begins on line {line} needs its `}}`");
        let mut statements = Vec::new();
        loop {
            match self.kind() {
                Kind::Symbol(b'}') => {
                    self.bump();
                    return Ok(statements);
                }
                Kind::End => return self.unexpected("`}`", &help(open.line)),
                // The `}` was forgotten: go on with the next function.
                Kind::Directive if matches!(self.directive(), Some(".visible" | ".entry" | ".func" | ".version")) => {
                    return self.unexpected("`}`", &help(open.line));
                }
                _ => {
                    let before = self.position();
                    if self.statement(&mut statements).is_err() {
                        // A block that never ends has said so already.
                        if matches!(self.directive(), Some(".visible" | ".entry" | ".func" | ".version")) {
                            continue;
                        }
                        self.recover_in_block();
                        if self.position() == before {
                            self.bump();
                        }
                    }
                }
            }
        }
    }

    fn statement(&mut self, statements: &mut Vec<Statement>) -> Parsed<()> {
        let token = self.peek();
        match token.kind {
            Kind::Word if self.peek_at(1).kind == Kind::Symbol(b':') => {
                let (name, span) = self.word("a label", STATEMENT_HELP)?;
                self.bump();
                statements.push(self.labelled(name, span)?);
                Ok(())
            }
            Kind::Word | Kind::Dotted | Kind::Symbol(b'@') => {
                let instruction = self.instruction()?;
                statements.push(Statement::Instruction(Box::new(instruction)));
                Ok(())
            }
            Kind::Symbol(b'{') => {
                self.bump();
                let block = self.nested(|p| p.block(token.span))?;
                statements.push(Statement::Block(block));
                Ok(())
            }
            Kind::Directive => match self.text_of(token) {
                ".reg" | ".param" | ".local" | ".shared" | ".shared::cta" | ".global" | ".const" | ".align" => {
                    self.variables(&[], |variable| statements.push(Statement::Variable(variable)))
                }
                ".loc" => self.loc(),
                ".pragma" => self.pragma(),
                ".extern" => self.unexpected(
                    STATEMENT,
                    "in a kernel, `.shared .align 16 .b8 name[256];` declares shared memory of a size, without `.extern`; outside of \
                     kernels, `.extern .shared .align 16 .b8 name[];` that of which the launch gives the size",
                ),
                _ => self.unexpected(STATEMENT, STATEMENT_HELP),
            },
            Kind::Symbol(b';') => self.unexpected(STATEMENT, "a statement has one `;`, a block and a label have none"),
            _ => self.unexpected(STATEMENT, STATEMENT_HELP),
        }
    }

    /// What a label belongs to.
    fn labelled(&mut self, name: &str, span: Span) -> Parsed<Statement> {
        match self.directive() {
            Some(".branchtargets" | ".calltargets") => {
                self.bump();
                let mut targets = Vec::new();
                loop {
                    targets.push(self.word("a name", "targets are names with commas between them")?.0.to_owned());
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.end_of_statement("`,` or `;`")?;
                Ok(Statement::Targets(name.into(), targets, span))
            }
            Some(".callprototype") => {
                self.bump();
                let mut function = self.signature(false, Vec::new())?;
                self.end_of_statement("`;`")?;
                (function.name, function.span) = (name.into(), span);
                Ok(Statement::Prototype(Box::new(function)))
            }
            _ => Ok(Statement::Label(name.into(), span)),
        }
    }

    fn instruction(&mut self) -> Parsed<Instruction> {
        let first = self.peek().span;
        let source = self.source;
        let mut guard = None;
        if self.eat(b'@') {
            let negated = self.eat(b'!');
            let (predicate, _) = self.word("a predicate", "a guard is written `@p` or `@!p`")?;
            guard = Some((negated, predicate.to_owned()));
            if self.at_symbol(b'{') {
                return self.unexpected("an instruction", "a guard is for one instruction; branch around a block");
            }
        }
        let opcode = self.opcode()?;
        self.in_call = opcode == "call" || opcode.starts_with("call.");
        let operands = self.operands()?;
        let last = self.previous().span;
        if self.at_symbol(b'@')
            && let Some(guard) = self.guard_behind()
        {
            let whole = self.text_of(Token { kind: Kind::Word, span: Span { end: last.end, ..first } });
            return self.unexpected("`;`", &format!("a guard stands in front of its instruction: `@{guard} {whole};`"));
        }
        self.end_of_statement(if operands.is_empty() { "an operand or `;`" } else { "`,` or `;`" })?;
        Ok(Instruction { span: Span { end: last.end, ..first }, source, guard, opcode, operands })
    }

    /// The guard that comes next, if the statement ends with it.
    fn guard_behind(&self) -> Option<String> {
        let negated = self.peek_at(1).kind == Kind::Symbol(b'!');
        let name = self.peek_at(1 + usize::from(negated));
        let ends = self.peek_at(2 + usize::from(negated)).kind == Kind::Symbol(b';');
        let there = ends && name.kind == Kind::Word;
        there.then(|| format!("{}{}", if negated { "!" } else { "" }, self.text_of(name)))
    }

    fn opcode(&mut self) -> Parsed<String> {
        let token = self.peek();
        let text = self.text_of(token);
        if let Some((_, ptx)) = FUNCTIONS.iter().find(|(name, _)| *name == text) {
            return self.unexpected("an instruction", &format!("CUDA's `{text}()` is `{ptx}` in PTX"));
        }
        // Opcodes begin with a letter.
        if !matches!(token.kind, Kind::Word | Kind::Dotted) || text.starts_with(['%', '$', '_']) {
            return self.unexpected("an instruction", "an instruction is written `opcode operand, operand;`");
        }
        self.bump();
        let mut opcode = String::from(text);
        // `mov .b32` is one opcode, as it is for ptxas. Not over the end of a line: there a semicolon is missing.
        while let Some(modifier) = self.directive() {
            if self.peek().span.line != self.previous().span.line {
                break;
            }
            self.bump();
            opcode.push_str(modifier);
        }
        Ok(opcode)
    }

    /// `.loc file line column` with `, function_name label, inlined_at file line column`.
    pub(super) fn loc(&mut self) -> Parsed<()> {
        const HELP: &str = "`.loc` is written `.loc file line column`";
        self.bump();
        let (file, _) = self.integer32("the number of a file", HELP)?;
        let (line, _) = self.integer32("a line", HELP)?;
        let (column, _) = self.integer32("a column", HELP)?;
        self.source = Some(SourceLine { file, line, column });
        while self.eat(b',') {
            const HELP: &str = "`function_name label` or `inlined_at file line column`";
            let token = self.peek();
            match self.text_of(token) {
                "function_name" => {
                    self.bump();
                    self.word("a label", HELP)?;
                    self.offset(HELP)?;
                }
                "inlined_at" => {
                    self.bump();
                    for what in ["the number of a file", "a line", "a column"] {
                        self.integer32(what, HELP)?;
                    }
                }
                _ => return self.unexpected("`function_name` or `inlined_at`", HELP),
            }
        }
        Ok(())
    }

    /// `.pragma "text", "text";`: no pragma means anything here.
    pub(super) fn pragma(&mut self) -> Parsed<()> {
        self.bump();
        loop {
            if self.kind() != Kind::Text {
                return self.unexpected("a string", "a pragma is written `.pragma \"nounroll\";`");
            }
            self.bump();
            if !self.eat(b',') {
                break;
            }
        }
        self.end_of_statement("`,` or `;`")
    }
}
