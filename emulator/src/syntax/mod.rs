//! PTX text to syntax tree.
//!
//! Hand-written: `lexer` makes tokens that are only a kind and a place; the other files are a recursive descent over
//! them, with a limit on the depth. What a name or an opcode means is not known here. The parser accepts what `ptxas`
//! accepts and a little more (`[reg+4+8]`); it never panics, whatever the text.
//!
//! `module`: header, directives, entries and functions · `declaration`: variables, parameters, initialisers ·
//! `body`: statements and instructions · `operand`: operands · `constant`: numbers and constant expressions.

pub mod ast;
mod body;
mod constant;
mod declaration;
mod lexer;
mod module;
mod operand;
mod parser;
#[cfg(test)]
mod tests;

use std::fmt;

use ast::{Module, Span};

/// No more errors than this are collected: what comes later is mostly caused by what came before.
pub const MAX_ERRORS: usize = 10;

/// Something in the text that is not PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub span: Span,
    /// What was found and what was expected.
    pub message: String,
    /// A way out.
    pub help: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} ({})", self.span.line, self.span.column, self.message, self.help)
    }
}

impl std::error::Error for SyntaxError {}

/// Parses a PTX module.
///
/// # Errors
/// The first error and up to [`MAX_ERRORS`] in all, in the order in which the parser met them. Statements with an error
/// are skipped up to their semicolon.
pub fn parse(text: &str) -> Result<Module, Vec<SyntaxError>> {
    // Spans are 32 bits wide.
    if u32::try_from(text.len()).is_err() {
        return Err(vec![SyntaxError {
            span: Span { start: 0, end: 0, line: 1, column: 1 },
            message: format!("found {} bytes of text, expected less than 4 GiB", text.len()),
            help: "split the module".into(),
        }]);
    }
    parser::Parser::new(text).module()
}
