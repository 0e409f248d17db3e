//! The kernel's text as it is written: instructions with their places, comments, labels, indentation.

use super::State;
use crate::register::{Register, Value};
use std::fmt::Write;

/// After so many instructions the kernel's function is left: a Rust loop has unrolled more than anyone meant.
pub(super) const MAX_INSTRUCTIONS: usize = 200_000;

impl State {
    /// One instruction, with the place it comes from.
    pub fn instruction(&mut self, text: impl AsRef<str>) {
        self.instructions += 1;
        if self.instructions > MAX_INSTRUCTIONS {
            self.leave(
                format!("the kernel is longer than {MAX_INSTRUCTIONS} instructions"),
                "a Rust `for` is unrolled: use `repeat` for a loop that the GPU runs",
            );
        }
        if self.located != Some(self.place) {
            let file = match self.files.iter().position(|file| *file == self.place.file) {
                Some(index) => index,
                None => {
                    self.files.push(self.place.file);
                    self.files.len() - 1
                }
            };
            let (line, column) = (self.place.line, self.place.column);
            self.write(&format!(".loc {} {line} {column}", file + 1));
            self.located = Some(self.place);
        }
        self.write(&format!("{};", text.as_ref()));
    }

    /// `opcode new, operand`.
    pub fn unary<R: Register>(&mut self, opcode: &str, value: Value) -> R {
        let result: R = self.fresh();
        let (to, value) = (self.name(result), self.text(value));
        self.instruction(format!("{opcode} {to}, {value}"));
        result
    }

    /// `opcode new, left, right`.
    pub fn binary<R: Register>(&mut self, opcode: &str, left: Value, right: Value) -> R {
        let result: R = self.fresh();
        let (to, left, right) = (self.name(result), self.text(left), self.text(right));
        self.instruction(format!("{opcode} {to}, {left}, {right}"));
        result
    }

    /// A comment on a line of its own, after a blank line.
    pub fn comment(&mut self, text: &str) {
        if !self.body.is_empty() && !self.body.ends_with("\n\n") {
            self.body.push('\n');
        }
        self.write(&format!("// {text}"));
    }

    /// A comment and one step of indentation for what follows.
    pub fn open(&mut self, comment: &str) {
        self.comment(comment);
        self.depth += 1;
    }

    pub fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1).max(1);
        if self.depth == 1 {
            self.body.push('\n');
        }
    }

    /// A label's name that is not in use yet.
    pub fn new_label(&mut self, stem: &str) -> String {
        let count = self.labels.entry(stem.to_string()).or_default();
        *count += 1;
        if *count == 1 { format!("${stem}") } else { format!("${stem}_{count}") }
    }

    pub fn label(&mut self, label: &str) {
        // Between the indentation of the scope and that of its content, so that the eye finds it.
        let indent = 4 * self.depth - 2;
        let _ = writeln!(self.body, "{:indent$}{label}:", "");
    }

    fn write(&mut self, text: &str) {
        let indent = 4 * self.depth;
        let _ = writeln!(self.body, "{:indent$}{text}", "");
    }
}
